"""The state of learners with forecasts of the constraint and margins around them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.learners.recent import Recent
from coldq.learners.state import GROWING_AXIS, State, axes, brief_array

# The entries of a tally.
(FACTOR, EFFORT, GAP, OVERDRAFT, STRETCH, IN_STRETCH, REDUCED_IN_STRETCH, SLOTS, VIOLATED, REDUCED,
 REDUCED_SLOTS, REDUCED_VIOLATED, INFEASIBLE, CHOSEN, KIND, SINCE) = range(16)  # fmt: skip
TALLY_SIZE = 16


@dataclass(frozen=True, eq=False, slots=True)
class ForecastState(State):
    """t, x_t, and what is remembered of constraints, forecasts and violations.

    `tally` holds the numbers that the properties below name. `margin` (N) is what the rows were
    tightened by, `ordinary` what they would have been without the error budget, whose rows are
    `largest`, `record`, `entry` (M and P) and `highest`. `predicted` (J, N) is what each of J
    forecasts expects at x_t, `moments` (J, N) and `errors` (J) are averages of their surprises and
    errors. `past`, `levels`, `terms`, `coefficients`, `covariance` and `recent` are what
    forecasts keep, see :mod:`coldq.learners.forecaster`.
    """

    tally: Array = field(metadata=axes("count"))
    margin: Array
    ordinary: Array
    largest: Array
    record: Array
    entry: Array = field(metadata=axes("count", "N"))
    highest: Array
    predicted: Array = field(metadata=axes("forecast", "N"))
    moments: Array = field(metadata=axes("forecast", "N"))
    errors: Array = field(metadata=axes("forecast"))
    past: Array = field(metadata=axes("row", GROWING_AXIS))
    levels: Array = field(metadata=axes("level", "N"))
    terms: Array = field(metadata=axes("N", "term"))
    coefficients: Array = field(metadata=axes("N", "term"))
    covariance: Array = field(metadata=axes("N", "term", "term"))
    recent: Any = field(metadata=axes("N", "slot"))

    def __post_init__(self) -> None:
        """Limits that were restored as one array are parted into blocks again."""
        State.__post_init__(self)
        object.__setattr__(self, "recent", Recent.of(self.recent))

    def about(self) -> dict[str, str]:
        """Slot, decision, how often rows were violated so far, and the margin."""
        booked = np.maximum(self.slots, 1)
        return State.about(self) | {
            "slots booked": brief_array(self.slots),
            "violated": brief_array(self.violated),
            "rate so far, %": brief_array(100.0 * self.violated / booked),
            "overdraft": brief_array(self.overdraft),
            "margin": brief_array(self.margin),
            "margin factor": brief_array(self.factor),
        }

    @property
    def factor(self) -> Array:
        """lambda, how many times its usual surprise a row is tightened by ordinarily."""
        return self.tally[..., FACTOR]

    @property
    def reduced(self) -> np.ndarray:
        """Whether x_t keeps neither its margin nor all limits so far, as no decision does."""
        return self.tally[..., REDUCED] > 0.0

    @property
    def overdraft(self) -> Array:
        """D, how many violated slots there were beyond what the rate allows."""
        return self.tally[..., OVERDRAFT]

    @property
    def safe(self) -> np.ndarray:
        """Whether the error budget is spent, so that rows are tightened by the largest surprise."""
        return self.tally[..., STRETCH] > 0.0

    @property
    def forecast(self) -> np.ndarray:
        """Which forecast the step used, a place among the learner's; one more is the user's own."""
        return self.tally[..., CHOSEN].astype(np.int64)

    @property
    def slots(self) -> np.ndarray:
        """How many slots were booked: all but the infeasible ones."""
        return self.tally[..., SLOTS].astype(np.int64)

    @property
    def violated(self) -> np.ndarray:
        """How many of these were violated."""
        return self.tally[..., VIOLATED].astype(np.int64)

    @property
    def reduced_slots(self) -> np.ndarray:
        """How many of these had a reduced decision."""
        return self.tally[..., REDUCED_SLOTS].astype(np.int64)

    @property
    def reduced_violated(self) -> np.ndarray:
        """How many had a reduced decision and were violated."""
        return self.tally[..., REDUCED_VIOLATED].astype(np.int64)

    @property
    def infeasible(self) -> np.ndarray:
        """In how many slots no decision kept the rows that were revealed."""
        return self.tally[..., INFEASIBLE].astype(np.int64)
