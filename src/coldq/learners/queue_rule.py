"""The numbers of a learner with a virtual queue: how it moves, and what rows weigh."""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array
from coldq.base.contractions import bounded_queue
from coldq.solver.api import AFTER, AHEAD, BEFORE


class When(float, Enum):
    """When a queue takes in a slot's violations: before or after the step, or before it and twice.

    Each is the number that the core knows it by.
    """

    BEFORE_STEP = BEFORE
    AFTER_STEP = AFTER
    TWICE_BEFORE_STEP = AHEAD


class QueueRule(NamedTuple):
    """How a queue moves in a slot, and what rows weigh in its step: numbers, or arrays.

    The queue becomes ``max{(1 - eta) queue + gain [g]_+, floor}``; by the defaults it stays as it
    is. In the step, whose proximal weight is alpha, rows weigh price times the queue. Of a rule
    ``TWICE_BEFORE_STEP`` the gain counts there once more.
    """

    alpha: Any
    gain: Any = 0.0
    eta: Any = 0.0
    floor: Any = -inf
    price: Any = 1.0
    when: When = When.BEFORE_STEP

    def moved(self, queue: Array, g: Array) -> Array:
        """The queue once it has taken in the values g."""
        return bounded_queue(queue, g, self.gain, self.eta, self.floor)

    def weights(self, queue: Array, g: Array | None = None) -> Array:
        """What rows weigh in the step, by the queue and the values that count once more."""
        if g is not None and self.when is When.TWICE_BEFORE_STEP:
            queue = queue + self.gain[..., None] * np.maximum(g, 0.0)
        return queue if type(self.price) is float else self.price[..., None] * queue
