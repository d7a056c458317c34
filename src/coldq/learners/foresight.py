"""What learners share that look ahead: forecasts of the next constraint, and margins around them.

At the end of slot t, with g_t revealed, forecasts made a slot before are judged at x_t. The
surprise of row n is ``s^n = g_t^n(x_t) - forecast^n(x_t)``; sigma^n is the moving average of |s^n|,
in which a surprise counts up to four times the average, unless that is no violation (a row may
have stood still). The forecast of least error, in units of the last constraint's surprises, is
taken, and changed for a gain of 2% or more.

The ordinary margin of row n is ``lambda sigma^n``, and zero for an affine row that is expected
without a slope, because no decision makes room for one. The factor is the same for all rows, by
adaptive conformal inference on the event that a row would have been violated with that margin:
``e = 1 - q`` if one would, else ``-q max(1, q gap / 5)``, where gap counts the slots since one
would have last; 0 if one was though the decision was reduced, so that no margin would have helped;

    V += e^2,  eta = max(0.1, 1 / sqrt(1 + V)),
    lambda = max(0, lambda + eta e max(1, 0.4 lambda)).

In V e is without the gap. The error budget (:mod:`coldq.learners.error_budget`) widens the margin
when more slots were violated than the rate allows.

A number that sets how cautious decisions are, moved so by what they bring, is conformal decision
theory (Lekeufack, Angelopoulos, Bajcsy, Jordan and Malik, arXiv 2310.05921).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from coldq._values import Array, Value, one_real
from coldq.constraints import Affine, Convex
from coldq.errors import InvalidInput
from coldq.feedback import Feedback
from coldq.forecasts import Last, data_of, forecasts_of, kind_of, limits_of, with_data
from coldq.learners.error_budget import Budget, book, overdraft_bound, tighten
from coldq.learners.forecaster import Forecaster, Kept
from coldq.learners.foresight_state import (
    CHOSEN,
    EFFORT,
    FACTOR,
    GAP,
    IN_STRETCH,
    INFEASIBLE,
    KIND,
    OVERDRAFT,
    REDUCED,
    REDUCED_IN_STRETCH,
    REDUCED_SLOTS,
    REDUCED_VIOLATED,
    SINCE,
    SLOTS,
    STRETCH,
    TALLY,
    VIOLATED,
)
from coldq.learners.kept_rows import has_common_point, members_of, room_of, slack_at

SPREAD = 0.03  # the weight of a surprise in its moving average
CLIP, CLIP_FROM = 4.0, 10  # surprises count up to 4 times their average, once there are 10
FORGET = 0.02  # the least weight of a slot in a forecast's error
GAIN = 0.98  # another forecast is taken if its error is below this share
LEAST_STEP = 0.1  # of the factor
RELATIVE_STEP = 0.4  # of the factor, where it is above 1 / 0.4
PATIENCE = 5.0  # usual gaps between violations, after which the factor falls faster


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


class Outlook(NamedTuple):
    """A slot that was looked at: a state's new arrays, and the next constraint as it is expected.

    Beside it the slot's own, the user's forecast, and what every forecast expects. `worst` is the
    margin that the lowest limits so far ask for.
    """

    tally: Array
    margin: Array
    ordinary: Array
    worst: Array
    budget: Budget
    moments: Array
    errors: Array
    kept: Kept
    expected: Any
    constraint: Any
    given: Any
    data: Array
    limits: Array


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
        self._set(forecaster=Forecaster(self.forecasts), rate=self.violation_rate or 0.0)

    forecaster: ClassVar[Forecaster]  # set for each
    rate: ClassVar[float]

    @property
    def count(self) -> int:
        """J, the user's own forecast included."""
        return len(self.forecasts) + 1

    def first(self, batch: tuple[int, ...], n: int) -> tuple[Any, ...]:
        """The arrays of a first state, from `tally` to `recent`."""
        tally, J = np.zeros((*batch, TALLY)), self.count
        tally[..., FACTOR] = first_factor(self.violation_rate)
        rows = [
            np.zeros((*batch, *size)) for size in ((n,),) * 4 + ((2, n), (n,), (J, n), (J, n), (J,))
        ]
        return tally, *rows, *self.forecaster.first(batch, n)

    def look(self, learner: Any, state: Any, feedback: Feedback, played: Any) -> Outlook:
        """Judge slot t, and say what is expected of the next.

        A slot is violated where it was played, and forecasts were made for x_t. If these differ,
        surprises are those of the whole constraint, or of its linear model, at x_t.
        """
        t, n = state.t.astype(np.float64), state.margin.shape[-1]
        seen = learner.values_of(state, feedback, state.margin.shape, played)
        slopes = learner.jacobian_of(state, feedback, n, played)
        place = learner._place(state, played)
        constraint, given = whole(feedback.constraint, n), given_constraint(feedback, n)

        slack = slack_at(place, seen, slopes, learner._R, self.tolerance)
        g = seen
        if place is not state.x:
            there = with_data(constraint, data_of(constraint)).value(state.x)
            g = np.array(np.broadcast_to(there, seen.shape))
        tally = np.array(state.tally)
        surprise = g - _chosen(state.predicted, tally[..., CHOSEN])
        surprise = np.where((t > 1.0)[..., None], surprise, 0.0)
        violated = seen > slack

        infeasible, bad = np.zeros(t.shape, bool), violated.any(axis=-1)
        if bad.any():
            some = np.nonzero(bad) if bad.ndim else ()
            model = with_data(constraint, data_of(constraint))  # of what was measured, its own
            rows = members_of(model, some, t.shape)
            meets = has_common_point(rows, learner.domain, place[some], self.tolerance)
            infeasible[some] = ~meets
        # What the row was tightened by was less than it should have been.
        short = (violated & (state.margin < state.largest)).any(axis=-1) & state.safe
        reduced = state.reduced | short
        self._count(tally, bad, reduced, infeasible)
        budget = _budget_of(state)
        if self.violation_rate is not None:
            cut = (state.margin < state.ordinary).any(axis=-1)
            would = (seen + (state.margin - state.ordinary) > slack).any(axis=-1)
            self._adapt(tally, t, would, helpless=bad & (cut | infeasible))
            budget = book(
                budget, self.rate, t, violated, surprise, slack, infeasible=infeasible,
                reduced=reduced,
            )  # fmt: skip
            tally[..., OVERDRAFT], tally[..., STRETCH] = budget.overdraft, budget.stretch
            tally[..., IN_STRETCH] = budget.violations
            tally[..., REDUCED_IN_STRETCH] = budget.reduced
        moments, errors = self._judge(state, tally, t, g, slack)
        ordinary = tally[..., FACTOR, None] * _unbiased(t) * _chosen(moments, tally[..., CHOSEN])
        return self._expect(
            state, t, tally, ordinary, budget, moments, errors, constraint, given, learner.domain
        )

    @staticmethod
    def _count(tally: Array, bad: Any, reduced: Any, infeasible: Any) -> None:
        """The slots that were booked, violated, reduced and infeasible."""
        booked = ~infeasible
        tally[..., SLOTS] += booked
        tally[..., VIOLATED] += bad & booked
        tally[..., REDUCED_SLOTS] += reduced & booked
        tally[..., REDUCED_VIOLATED] += bad & reduced & booked
        tally[..., INFEASIBLE] += infeasible

    def _adapt(self, tally: Array, t: Array, would: Any, helpless: Any) -> None:
        """The factor's step after slot t, in which a row `would` have been violated or not."""
        q, judged = self.rate, (t > 1.0) & ~helpless
        gap = np.where(would, 0.0, tally[..., GAP] + 1.0)
        fall = -q * np.maximum(1.0, q * gap / PATIENCE)
        effort = tally[..., EFFORT] + np.where(would, (1.0 - q) * (1.0 - q), q * q)
        eta = np.maximum(LEAST_STEP, 1.0 / np.sqrt(1.0 + effort))
        factor = tally[..., FACTOR]
        step = eta * np.where(would, 1.0 - q, fall) * np.maximum(1.0, RELATIVE_STEP * factor)
        tally[..., FACTOR] = np.where(judged, np.maximum(0.0, factor + step), factor)
        tally[..., EFFORT] = np.where(judged, effort, tally[..., EFFORT])
        tally[..., GAP] = np.where(judged, gap, tally[..., GAP])

    def _judge(
        self, state: Any, tally: Array, t: Array, g: Array, slack: Array
    ) -> tuple[Array, Array]:
        """The moments and errors of forecasts after slot t, and the one to be used from now on."""
        judged = t > 1.0
        moments, errors, n = state.moments, state.errors, g.shape[-1]
        surprise = np.abs(g[..., None, :] - state.predicted)
        most = CLIP * _unbiased(t - 1.0)[..., None] * moments
        # What nobody would call a violation is no measure: a row may have stood still.
        clips = ((t - 2.0 >= CLIP_FROM)[..., None, None]) & (most > slack[..., None, :])
        counted = np.where(clips, np.minimum(surprise, most), surprise)
        new = moments + SPREAD * (counted - moments)
        if n:
            # Where the last constraint is never wrong, any surprise counts as a usual one.
            usual = _unbiased(t)[..., None] * new[..., :1, :]
            known = usual > slack[..., None, :]
            units = np.where(known, surprise / np.where(known, usual, 1.0), surprise > 0.0)
            error = np.add.accumulate(units, axis=-1)[..., -1] / n
            forget = np.maximum(FORGET, 1.0 / np.maximum(t - 1.0, 1.0))[..., None]
            errors = np.where(judged[..., None], errors + forget * (error - errors), errors)
        best, chosen = errors.argmin(axis=-1), tally[..., CHOSEN]
        least, own = (_chosen(errors[..., None], k)[..., 0] for k in (best, chosen))
        tally[..., CHOSEN] = np.where(judged & (least < GAIN * own), best, chosen)
        return np.where(judged[..., None, None], new, moments), np.array(errors)

    def _expect(
        self, state: Any, t: Array, tally: Array, ordinary: Array, budget: Budget, moments: Array,
        errors: Array, constraint: Any, given: Any, domain: Any,
    ) -> Outlook:  # fmt: skip
        """The next constraint as it is expected, and the rows' margins."""
        shape = ordinary.shape
        batch = shape[:-1]
        data, limits = data_of(constraint), limits_of(constraint)
        data, limits = _whole(data, (*batch, data.shape[-1])), _whole(limits, shape)
        kind, d = kind_of(constraint), data.shape[-1]
        since = np.where((tally[..., KIND] == kind) & (t > 1.0), tally[..., SINCE], t)
        tally[..., KIND], tally[..., SINCE] = kind, since

        kept = Kept(*(getattr(state, name) for name in Kept._fields))
        if kept.past.shape[-1] != d:
            kept = kept._replace(past=np.zeros((*batch, kept.past.shape[-2], d)))
        usual = np.where(
            (t - 2.0 >= CLIP_FROM)[..., None, None], _unbiased(t)[..., None] * moments, 0.0
        )
        fixed = _fixed(kept.past[..., 0, :], data, t, since, shape, type(constraint) is Affine)
        kept, lags = self.forecaster.remember(kept, t, since, data, limits, usual, fixed)
        ahead, expected_limits = (
            self.forecaster.data(kept),
            self.forecaster.limits(kept, t, since, limits, lags),
        )
        chosen = tally[..., CHOSEN]
        if given is not None:
            self._require_alike(given, constraint)
            if d == 0:  # nothing to choose by: the user's own is all there is beside the last
                chosen = np.full(t.shape, self.count - 1.0)
                tally[..., CHOSEN] = chosen
                ordinary = tally[..., FACTOR, None] * _unbiased(t) * _chosen(moments, chosen)
        expected = self._expected(constraint, given, ahead, expected_limits, chosen, shape)
        margin = ordinary
        if self.violation_rate is not None:
            margin = tighten(budget, self.rate, t, ordinary)
        standing = _standing(expected, state.x)
        # No decision makes room for more; a row that none can keep is expected as far as one can.
        margin = np.minimum(margin, room_of(expected, domain))
        margin, ordinary = (np.where(standing, 0.0, a) for a in (margin, ordinary))
        worst = limits_of(expected) - self.forecaster.lowest(kept)
        return Outlook(
            tally, margin, ordinary, worst, budget, moments, errors, kept, expected, constraint,
            given, ahead, expected_limits,
        )  # fmt: skip

    def _expected(
        self, constraint: Any, given: Any, data: Array, limits: Array, chosen: Array,
        shape: tuple[int, ...],
    ) -> Any:  # fmt: skip
        """The constraint that the chosen forecast expects; of the user's own, that one."""
        own = chosen >= len(self.forecasts)
        if own.all() and own.size and given is not None:
            return given
        place = np.where(own, 0, chosen).astype(np.intp)
        moved = limits[..., 0, :] - _chosen(limits, place)
        if not data.shape[-1]:
            return constraint.tightened(moved) if moved.any() else constraint
        taken = _chosen(data, self.forecaster.data_row[place])
        if own.any() and given is not None:
            theirs = np.broadcast_to(data_of(given), taken.shape)
            taken = np.where(own[..., None], theirs, taken)
        expected = with_data(constraint, taken)
        return expected.tightened(moved) if moved.any() else expected

    def predict(self, x: Array, outlook: Outlook) -> Array:
        """What every forecast expects at the next decision, (..., J, N)."""
        constraint, given = outlook.constraint, outlook.given
        found = self.forecaster.values(constraint, outlook.data, outlook.limits, x)
        own = found[..., :1, :] if given is None else np.asarray(given.value(x))[..., None, :]
        own = np.broadcast_to(own, (*found.shape[:-2], 1, found.shape[-1]))
        return np.concatenate([found, own], axis=-2)

    def arrays(self, x: Array, outlook: Outlook, reduced: Any) -> tuple[Any, ...]:
        """The arrays of the next state, from `tally` to `recent`, with x its decision."""
        tally, budget = outlook.tally, outlook.budget
        tally[..., REDUCED] = reduced
        entry = np.stack([budget.entry_largest, budget.entry_record], axis=-2)
        return (
            tally, outlook.margin, outlook.ordinary, np.array(budget.largest),
            np.array(budget.record), entry, np.array(budget.highest),
            self.predict(x, outlook), outlook.moments, outlook.errors,
            *outlook.kept,
        )  # fmt: skip

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

    def certificate(self, state: Any, delay: int = 0) -> dict[str, Any]:
        """What was booked so far, and the overdraft beside the most that it can be."""
        if self.violation_rate is None:
            bound = np.full(state.t.shape, np.nan)
        else:
            slots = np.maximum(state.t - 1.0, 0.0)
            bound = overdraft_bound(_budget_of(state), self.rate, slots, delay)
        return {
            "slots": state.slots, "violated": state.violated, "reduced": state.reduced_slots,
            "reduced_violated": state.reduced_violated, "infeasible": state.infeasible,
            "overdraft": state.overdraft, "overdraft_bound": bound,
        }  # fmt: skip

    def require_sound(self, state: Any) -> None:
        """What a restored state must keep beside its shapes."""
        n, J = state.margin.shape[-1], self.count
        first = self.forecaster.first((), n)
        expected = {
            "tally": (TALLY,), "entry": (2, n), "predicted": (J, n), "moments": (J, n),
            "errors": (J,), "past": (self.forecaster.rows, state.past.shape[-1]),
        } | {name: getattr(first, name).shape for name in Kept._fields[1:]}  # fmt: skip
        expected |= dict.fromkeys(("ordinary", "largest", "record", "highest"), (n,))
        require_cores(state, expected)
        chosen, tally = state.tally[..., CHOSEN], state.tally
        if not ((chosen >= 0.0) & (chosen < J) & (chosen == np.floor(chosen))).all():
            raise InvalidInput(f"tally must name one of {J} forecasts, but has {chosen}")
        amounts = tally, state.moments, state.largest, state.record, state.entry, state.highest
        if any((a < 0.0).any() for a in amounts):
            raise InvalidInput(
                "tally, moments and what the error budget keeps must not be negative"
            )


def given_constraint(feedback: Feedback, n: int) -> Any:
    """The user's own forecast of the next constraint, if there is one."""
    forecast = feedback.forecast
    if forecast is None:
        return None
    if forecast.loss is not None:
        raise InvalidInput(
            "a learner that looks ahead uses forecasts of the constraint, but this Forecast "
            "has a loss: leave it out"
        )
    return whole(forecast.constraint, n)


def _budget_of(state: Any) -> Budget:
    """The error budget of a state."""
    D, stretch, violations, reduced = (
        state.tally[..., k] for k in (OVERDRAFT, STRETCH, IN_STRETCH, REDUCED_IN_STRETCH)
    )
    entry_largest, entry_record = state.entry[..., 0, :], state.entry[..., 1, :]
    return Budget(
        D, stretch, violations, reduced, state.largest, state.record, entry_largest, entry_record,
        state.highest,
    )  # fmt: skip


def _unbiased(t: Array) -> Array:
    """What corrects the bias of a moving average of the surprises of slots 2 to t, (..., 1)."""
    some = t >= 2.0
    bias = 1.0 - np.exp(np.where(some, t - 1.0, 1.0) * np.log(1.0 - SPREAD))
    return np.where(some, 1.0 / bias, 0.0)[..., None]


def _whole(array: Array, shape: tuple[int, ...]) -> Array:
    """An array of this shape, its axes in order."""
    if array.shape == shape:
        return np.ascontiguousarray(array)
    return np.ascontiguousarray(np.broadcast_to(array, shape))


def _chosen(rows: Array, chosen: Any) -> Array:
    """The row of (J, N) that is chosen."""
    at = np.asarray(chosen, np.intp).ravel()
    flat = rows.reshape(at.size, *rows.shape[-2:])
    return flat[np.arange(at.size), at].reshape(*rows.shape[:-2], rows.shape[-1])


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


def _fixed(
    last: Array, data: Array, t: Array, since: Array, shape: tuple[int, ...], affine: bool
) -> np.ndarray:
    """Which rows are affine with the slopes of the slot before; in slot 1 all that are affine."""
    if not affine or not shape[-1]:
        return np.zeros(shape, bool)
    width = data.shape[-1] // shape[-1]  # of a row: its slopes and its limit
    now, before = (a.reshape(*shape, width)[..., :-1] for a in (data, last))
    same = (now == before).all(axis=-1) & (t > since)[..., None]
    return same | (t == 1.0)[..., None]


def _standing(g: Any, x: Array) -> Any:
    """Which rows no decision moves, so that none makes room for a margin: ``0'x <= b``."""
    affine = getattr(g, "is_affine", False)
    return affine & ~np.any(g.jacobian(x), axis=-1) if np.any(affine) else False
