"""What learners share that look ahead: forecasts of the next constraint, and margins around them.

At the end of slot t, with g_t revealed, forecasts made a slot before are judged at x_t. The
surprise of row n is ``s^n = |g_t^n(x_t) - forecast^n(x_t)|``; sigma^n is its moving average, in
which a surprise counts up to four times the average, unless that is no violation (a row may have
stood still). The forecast of least error, in units of the
last constraint's surprises, is taken, and changed for a gain of 2% or more.

The margin of row n is ``lambda sigma^n``, and zero for an affine row that is expected without a
slope, because no decision makes room for one. The factor is the same for all rows, by adaptive
conformal inference on the event that a row is violated: ``e = 1 - q`` if one is, ``-q`` if none is,
0 if one is though the step before was saturated, so that no margin would have helped;

    V += e^2,  eta = max(0.1, 1 / sqrt(1 + V)),  lambda = max(0, lambda + eta e).

A number that sets how cautious decisions are, moved so by what they bring, is conformal decision
theory (Lekeufack, Angelopoulos, Bajcsy, Jordan and Malik, arXiv 2310.05921).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from coldq._tuning_kernels import (
    CHOSEN,
    COUNTED,
    EXCLUDED,
    FACTOR,
    FIRST_STEP,
    JUDGED,
    KIND,
    LAST_STEP,
    SATURATED,
    SPREAD,
    TALLY,
    UNSEEN,
    judge_values,
    remember_data,
)
from coldq._values import Array, Value, one_real
from coldq.constraints import Convex
from coldq.contractions import dot, matvec
from coldq.errors import InvalidInput
from coldq.feedback import Feedback
from coldq.forecasts import Last, data_of, forecasts_of, kind_of, table_of, with_data
from coldq.learners.state import MORE, State, axes, brief_array

TOLERANCE = 1e-8  # of a row's terms: a step lands on the boundary, and rounding must not count


@dataclass(frozen=True, eq=False, slots=True)
class ForesightState(State):
    """t, x_t, and what is remembered of constraints, forecasts and violations.

    `tally` holds the numbers that the properties below name. `margin` (N) is what the rows were
    tightened by; `predicted` (J, N) is what each of J forecasts expects at x_t, `moments` (J, N)
    and `errors` (J) are averages of their surprises and errors, `past` is the data they keep.
    """

    tally: Array = field(metadata=axes("count"))
    margin: Array
    predicted: Array = field(metadata=axes("forecast", "N"))
    moments: Array = field(metadata=axes("forecast", "N"))
    errors: Array = field(metadata=axes("forecast"))
    past: Array = field(metadata=axes("row", MORE))

    def about(self) -> dict[str, str]:
        """Slot, decision, how often rows were violated so far, and the margin."""
        judged = np.maximum(self.judged, 1)
        return State.about(self) | {
            "slots judged": brief_array(self.judged),
            "violated": brief_array(self.violated),
            "rate so far, %": brief_array(100.0 * self.violated / judged),
            "not counted": f"{brief_array(self.excluded)}, violated after a saturated step",
            "margin": brief_array(self.margin),
            "margin factor": brief_array(self.factor),
        }

    @property
    def factor(self) -> Array:
        """lambda, how many times its usual surprise a row is tightened by."""
        return self.tally[..., FACTOR]

    @property
    def saturated(self) -> np.ndarray:
        """Whether the step to x_t was saturated: a row could not be held at its price."""
        return self.tally[..., SATURATED] > 0.0

    @property
    def forecast(self) -> np.ndarray:
        """Which forecast the step used, a place among the learner's; one more is the user's own."""
        return self.tally[..., CHOSEN].astype(np.int64)

    @property
    def judged(self) -> np.ndarray:
        """In how many slots a violation was looked for: all but the first."""
        return self.tally[..., JUDGED].astype(np.int64)

    @property
    def violated(self) -> np.ndarray:
        """How many of these were violated, those after a saturated step not counted."""
        return self.tally[..., COUNTED].astype(np.int64)

    @property
    def excluded(self) -> np.ndarray:
        """How many were violated after a saturated step."""
        return self.tally[..., EXCLUDED].astype(np.int64)


def first_factor(rate: float | None) -> float:
    """``lambda_1 = max(0, ln(1 / 2q))``: the share q of a Laplace variable lies above it."""
    return 0.0 if rate is None else max(0.0, float(-np.log(2.0 * rate)))


def rate_of(violation_rate: Any) -> float | None:
    """A share of slots, or None for no margin."""
    if violation_rate is None:
        return None
    rate = one_real("violation_rate", violation_rate)
    if not 0.0 < rate < 1.0:
        raise InvalidInput(
            f"violation_rate must lie strictly between 0 and 1, a share of slots, but is {rate}"
        )
    return rate


def slack_at(x: Array, g: Array, J: Array, R: Any, tolerance: float = TOLERANCE) -> Array:
    """Above what each row counts as violated at x, given its values and slopes there.

    It is the `tolerance` times the size of the row's terms, ``sum_i |J_i x_i| + |J x - g|``, which
    is R |J| at most and a millionth of that at least. So a bound that is meant as no limit, or
    coordinates in other units, do not hide what is violated in the row's own. Of an unbounded
    domain, R is the decision's own size.
    """
    width = np.where(np.isfinite(R), R, np.sqrt(dot(x, x)))
    widest = width[..., None] * np.sqrt(dot(J, J))
    terms = matvec(np.abs(J), np.abs(x)) + np.abs(matvec(J, x) - g)
    return tolerance * np.minimum(np.maximum(terms, UNSEEN * widest), widest)


class Outlook(NamedTuple):
    """A slot that was looked at: a state's new arrays, and the next constraint as it is expected.

    Beside it the slot's own, the user's forecast, and the data that every forecast expects.
    """

    tally: Array
    margin: Array
    moments: Array
    errors: Array
    past: Array
    expected: Any
    constraint: Any
    given: Any
    ahead: Array


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Foresight(Value):
    """The forecasts to choose from, the rate to keep, and when a row counts as violated."""

    forecasts: tuple[Any, ...]
    violation_rate: float | None
    tolerance: float

    def __init__(self, forecasts: Any, violation_rate: Any, tolerance: Any) -> None:
        tolerance = one_real("tolerance", tolerance)
        if not tolerance >= 0.0:
            raise InvalidInput(f"tolerance must not be negative, but is {tolerance}")
        self._set(
            forecasts=forecasts_of((Last(),) if forecasts is None else forecasts),
            violation_rate=rate_of(violation_rate),
            tolerance=tolerance,
        )
        table, rows = table_of(self.forecasts)
        self._set(table=table, rows=rows, rate=np.array(self.violation_rate or 0.0))

    table: ClassVar[Any]
    rows: ClassVar[Any]
    rate: ClassVar[Any]

    @property
    def count(self) -> int:
        """J, the user's own forecast included."""
        return len(self.forecasts) + 1

    def first(self, batch: tuple[int, ...], n: int) -> tuple[Array, ...]:
        """The arrays of a first state, from `tally` to `past`."""
        tally, J = np.zeros((*batch, TALLY)), self.count
        tally[..., FACTOR] = first_factor(self.violation_rate)
        sizes = (n,), (J, n), (J, n), (J,), (self.rows, 0)
        return tally, *(np.zeros((*batch, *size)) for size in sizes)

    def past_of(self, state: Any, d: int) -> Array:
        """The state's past, if it is one of as many numbers, or room for it."""
        if state.past.shape[-1] == d:
            return state.past
        return np.zeros((*state.batch, self.rows, d))

    def look(self, learner: Any, state: Any, feedback: Feedback, played: Any) -> Outlook:
        """Judge slot t, and say what is expected of the next.

        A slot is violated where it was played, and forecasts were made for x_t. If these differ,
        surprises are those of the whole constraint, or of its linear model, at x_t.
        """
        batch, t, n = state.batch, state.t.astype(np.float64), state.margin.shape[-1]
        seen = learner.values_of(state, feedback, state.margin.shape, played)
        slopes = learner.jacobian_of(state, feedback, n, played)
        place = learner._place(state, played)
        constraint = whole(feedback.constraint, n)
        given = feedback.forecast and feedback.forecast.constraint
        given = None if given is None else whole(given, n)

        g, data = seen, data_of(constraint)
        slack = slack_at(place, seen, slopes, learner._R, self.tolerance)
        if place is not state.x:
            g = np.array(np.broadcast_to(with_data(constraint, data).value(state.x), g.shape))
        empty = np.empty
        tally, margin = empty(state.tally.shape), empty(g.shape)
        moments, errors = empty(state.moments.shape), empty(state.errors.shape)
        judge_values()(
            t, g, seen, slack, self.rate, state.tally, state.predicted, state.moments,
            state.errors, tally, moments, errors, margin,
        )  # fmt: skip
        d = data.shape[-1]
        data = np.ascontiguousarray(np.broadcast_to(data, (*batch, d)))
        kind = kind_of(constraint)
        age = np.where(state.tally[..., KIND] == kind, t, 1.0)
        tally[..., KIND] = kind
        past = empty((*batch, self.rows, d))
        ahead = empty((*batch, self.count, d))
        remember_data()(t, age, data, self.past_of(state, d), self.table, state.errors, past, ahead)
        if given is not None:
            self._require_alike(given, constraint)
            ahead[..., -1, :] = data_of(given)
            if d == 0:  # nothing to choose by: the user's own is all there is beside the last
                tally[..., CHOSEN] = self.count - 1.0
                margin = _margins(tally, moments, t)
        expected = given or constraint
        if d > 0:
            chosen = tally[..., CHOSEN].astype(np.intp)[..., None, None]
            taken = np.take_along_axis(ahead, chosen, axis=-2)[..., 0, :]
            expected = with_data(constraint, taken)
        margin = np.where(_standing(expected, state.x), 0.0, margin)
        return Outlook(tally, margin, moments, errors, past, expected, constraint, given, ahead)

    def predict(self, x: Array, outlook: Outlook) -> Array:
        """What every forecast expects at the next decision, (..., J, N)."""
        *_, constraint, given, ahead = outlook
        predicted = np.empty((*x.shape[:-1], self.count, outlook.margin.shape[-1]))
        if ahead.shape[-1] == 0:
            predicted[...] = constraint.value(x)[..., None, :]
            if given is not None:
                predicted[..., -1, :] = given.value(x)
            return predicted
        for j in range(self.count):
            predicted[..., j, :] = with_data(constraint, ahead[..., j, :]).value(x)
        return predicted

    @staticmethod
    def _require_alike(given: Any, constraint: Any) -> None:
        if (
            kind_of(given) != kind_of(constraint)
            or np.shape(data_of(given))[-1:] != np.shape(data_of(constraint))[-1:]
        ):
            raise InvalidInput(
                "the forecast's constraint must be of the kind and size of the constraint itself, "
                f"but is a {type(given).__name__} beside a {type(constraint).__name__}"
            )

    def require_sound(self, state: Any) -> None:
        """What a restored state must keep beside its shapes."""
        n, J = state.margin.shape[-1], self.count
        expected = {
            "tally": (TALLY,), "predicted": (J, n), "moments": (J, n), "errors": (J,),
            "past": (self.rows, state.past.shape[-1]),
        }  # fmt: skip
        require_cores(state, expected)
        chosen, tally = state.tally[..., CHOSEN], state.tally
        if not ((chosen >= 0.0) & (chosen < J) & (chosen == np.floor(chosen))).all():
            raise InvalidInput(f"tally must name one of {J} forecasts, but has {chosen}")
        if (tally[..., :KIND] < 0.0).any() or (state.moments < 0.0).any():
            raise InvalidInput("tally and moments must not be negative")


def require_cores(state: Any, expected: Mapping[str, tuple[int, ...]]) -> None:
    """That some arrays of a state have these core axes."""
    for name, core in expected.items():
        shape = getattr(state, name).shape
        if shape[len(shape) - len(core) :] != core:
            raise InvalidInput(
                f"{name} must have the shape {(*state.batch, *core)}, but has {shape}"
            )


def whole(constraint: Any, n: int) -> Any:
    """A constraint that can be tightened and stepped on: a class of the user's own as functions."""
    if hasattr(constraint, "tightened"):
        return constraint
    hessian = getattr(constraint, "hessian", None)
    return Convex(constraint.value, constraint.jacobian, hessian, max(n, 1), vectorised=True)


def _standing(g: Any, x: Array) -> Any:
    """Which rows no decision moves, so that none makes room for a margin: ``0'x <= b``."""
    affine = getattr(g, "is_affine", False)
    return affine & ~np.any(g.jacobian(x), axis=-1) if np.any(affine) else False


def _margins(tally: Array, moments: Array, t: Array) -> Array:
    """lambda sigma of the chosen forecast."""
    chosen = tally[..., CHOSEN].astype(np.intp)[..., None, None]
    moment = np.take_along_axis(moments, chosen, axis=-2)[..., 0, :]
    unbiased = 1.0 - np.exp(np.maximum(t - 1.0, 1.0) * np.log(1.0 - SPREAD))
    return tally[..., FACTOR, None] * moment / np.asarray(unbiased)[..., None]


def certificate_of(state: Any, rate: float | None) -> dict[str, Any]:
    """The counted violations of a run so far beside the most that there can have been."""
    bound = np.nan if rate is None else pathwise_bound(state, rate)
    return {
        "judged": state.judged, "violated": state.violated, "excluded": state.excluded,
        "bound": bound,
    }  # fmt: skip


def pathwise_bound(state: Any, rate: float) -> Array:
    """The most violations that can have been counted: see docs/keep-a-violation-rate.md.

    ``q (n - excluded) + lambda / eta - lambda_1 / eta_1`` over the n slots that were judged.
    """
    tally = state.tally
    judged, none = tally[..., JUDGED], tally[..., JUDGED] == 0.0
    first, last = (np.where(none, 1.0, tally[..., k]) for k in (FIRST_STEP, LAST_STEP))
    drift = tally[..., FACTOR] / last - first_factor(rate) / first
    return np.where(none, 0.0, rate * (judged - tally[..., EXCLUDED]) + drift)
