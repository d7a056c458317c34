"""Rounds: decisions, receipts, feedback that waits, and what is remembered of the settled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import InvalidInput
from coldq.slot.feedback import Feedback


class Decision(NamedTuple):
    """A decision `x` to play, and the number of its `round`, which its feedback names.

    >>> import coldq
    >>> agent = coldq.Agent(coldq.COLDQ(coldq.Box(0.0, 1.0, dim=2), horizon=10), n_constraints=1)
    >>> agent.decide()
    Decision(x=array([0., 0.]), round=1)
    """

    x: Array
    round: int

    def __eq__(self, other: object) -> bool:
        """Whether two decisions are of one round, bit for bit equal."""
        if not isinstance(other, Decision):
            return NotImplemented
        return self.round == other.round and np.array_equal(self.x, other.x)

    def __hash__(self) -> int:
        return hash(self.round)


class Receipt(NamedTuple):
    """The receipt for a message about a `round`.

    `status` is "applied", or "waiting" for feedback that is held back until earlier rounds are
    settled; "repeated" if this was known already; "skipped" if the feedback comes after its round
    was; "past" if the round is so old that nothing is known of it. Only the first two change
    anything.

    >>> import coldq
    >>> coldq.agent.Receipt(3, "waiting").accepted
    True
    """

    round: int
    status: str

    @property
    def accepted(self) -> bool:
        """Whether the message was taken, now for the first time."""
        return self.status in ("applied", "waiting")


class OtherFeedback(InvalidInput):
    """A round has another feedback already, which counts."""


class Settled(NamedTuple):
    """A round that is over: its feedback, None if it was skipped, and the state after it.

    `known` is the feedback as data, if it is kept on disk and can be.
    """

    round: int
    x: Array
    feedback: Feedback | None
    known: bytes | None
    state: Any
    residuals: list[Any]
    seconds: float


class Past(NamedTuple):
    """A settled round as it is remembered; from before a restart its feedback is data alone.

    `duals` are the arrays of the state after it that the agent's `dual_names` name.
    """

    round: int
    status: str
    x: Array
    feedback: Feedback | None
    known: bytes | None
    duals: tuple[Array, ...] | None
    residuals: list[Any]
    seconds: float


class Held(NamedTuple):
    """Feedback that waits for earlier rounds."""

    decision: Decision
    feedback: Feedback
    known: bytes | None
