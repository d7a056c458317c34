"""What theorems ask of a run, and what a learner says of itself so that they can be checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coldq._values import Array
from coldq.errors import InvalidInput
from coldq.theory.bounds import queue_ceiling, steps_of

ROUNDING = 1e-9  # relative; what a comparator or a sum may be off by

HOLDS, SPOT_CHECKED, FAILS, UNKNOWN = "holds", "spot-checked", "fails", "unknown"


@dataclass(frozen=True)
class Assumption:
    """One assumption of the theorems: its `verdict` on this run, and why in plain words.

    The verdict is "holds", "spot-checked" (at some points of some slots), "fails" or "unknown".

    >>> from coldq.theory.premises import Assumption
    >>> print(Assumption("0 < eta < 1", "holds", "eta = 0.01"))
    holds         0 < eta < 1: eta = 0.01
    """

    name: str
    verdict: str
    words: str

    def __str__(self) -> str:
        return f"{self.verdict:<13} {self.name}: {self.words}"


def in_words(values: Array) -> str:
    """The least and the greatest of several numbers."""
    known = values[~np.isnan(values)]
    if not known.size:
        return "undefined"
    low, high = f"{known.min():.4g}", f"{known.max():.4g}"
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True, eq=False)
class DoublyBounded:
    """The premises of the theorems on a queue between two bounds, for a learner's parameters.

    `alpha` may have a row for each of several experts. `queues` gives the queues of a run, members
    before rows, and words for which these are; by default those of the states.

    >>> import coldq
    >>> learner = coldq.COLDQ(coldq.Box(0.0, 1.0, dim=1), horizon=100)
    >>> print(learner.premises.of_parameters(100)[1])
    holds         0 < eta < 1: eta = 0.01
    """

    alpha: Any
    eta: Any
    gamma: Any
    queues: Callable[[Any], tuple[Array, str]] | None = None

    def of_parameters(self, horizon: int) -> tuple[Assumption, ...]:
        """alpha and eta, as the theorems want them."""
        rate = Assumption("0 < eta < 1", HOLDS, f"eta = {float(self.eta):.4g}")
        name = "alpha_t does not decrease"
        try:
            if horizon == 1:
                only = np.asarray(self.alpha(np.ones(())))
                return Assumption(name, HOLDS, f"{in_words(only)} in the only slot"), rate
            steps = steps_of(self.alpha, horizon)
            ends = f"{in_words(steps[..., 0])} at first, {in_words(steps[..., -1])} last"
            return Assumption(name, HOLDS, ends), rate
        except InvalidInput as error:
            return Assumption(name, FAILS, str(error)), rate

    def of_queue(self, trace: Any, G: Array) -> Assumption:
        """Lemma 1 on a run's queue: kept, or worked out again from the violations."""
        name, gamma = "gamma <= Q <= max(G, eta gamma) / eta", self.gamma
        ceiling = queue_ceiling(G, self.eta, gamma)
        queue, when = (self.queues or self._of_states)(trace)
        low, high = queue >= gamma * (1.0 - ROUNDING), queue <= ceiling[:, None] * (1.0 + ROUNDING)
        verdict = HOLDS if (low & high).all() else FAILS
        words = f"Q = {in_words(queue)} {when}, in [{float(gamma):.4g}, {in_words(ceiling)}]"
        return Assumption(name, verdict, words if queue.size else "there is no constraint")

    def _of_states(self, trace: Any) -> tuple[Array, str]:
        if trace.queue is None and trace.delay == 0:
            again = queue_again(trace.violation, float(self.eta), float(self.gamma))
            return again, "in all slots"
        kept = () if trace.queue is None else tuple(np.moveaxis(trace.queue, 1, 0))
        return np.stack([*kept, trace.state.queue]), "as it was kept, and at the end"


def queue_again(violation: Array, eta: float, gamma: float) -> Array:
    """Q_1, ..., Q_T from the violations, slots first."""
    queue = np.full((violation.shape[1], violation.shape[0], violation.shape[2]), gamma)
    for t in range(1, len(queue)):
        queue[t] = np.maximum((1.0 - eta) * queue[t - 1] + violation[:, t], gamma)
    return queue
