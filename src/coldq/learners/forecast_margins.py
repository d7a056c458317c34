"""Forecasts of the next constraint, and margins around them, which several learners share.

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
when more slots were violated than the rate allows. All of it is computed by
native/learners/foresight.hpp.

A number that sets how cautious decisions are, moved so by what they bring, is conformal decision
theory (Lekeufack, Angelopoulos, Bajcsy, Jordan and Malik, arXiv 2310.05921).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from coldq.base.arrays import Array, Value, non_negative, one_real
from coldq.base.contractions import Contraction
from coldq.base.errors import InvalidInput
from coldq.learners.enforced_rows import (
    has_common_point,
    members_of,
    room_of,
    slack_at,
)
from coldq.learners.error_budget import Budget, overdraft_bound
from coldq.learners.forecast_state import (
    CHOSEN,
    FACTOR,
    IN_STRETCH,
    OVERDRAFT,
    REDUCED,
    REDUCED_IN_STRETCH,
    SINCE,
    STRETCH,
    TALLY_SIZE,
)
from coldq.learners.forecaster import Forecaster, Kept
from coldq.learners.forecasts import (
    Last,
    data_of,
    forecasts_of,
    kind_of,
    limits_of,
    limits_within_reach,
    with_data,
)
from coldq.slot.constraints import Affine, Convex, SparseAffine, Stacked
from coldq.slot.feedback import Feedback

judge = Contraction("judge", "What is remembered of margins and forecasts after a slot.")


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
    largest: Array
    record: Array
    entry: Array
    highest: Array
    moments: Array
    errors: Array
    kept: Kept
    expected: Any
    constraint: Any
    given: Any
    data: Array
    limits: Array


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ForecastMargins(Value):
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
        tally, J = np.zeros((*batch, TALLY_SIZE)), self.count
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
        bad, infeasible = (seen > slack).any(axis=-1), np.zeros(t.shape)
        if bad.any():
            some = np.nonzero(bad) if bad.ndim else ()
            model = with_data(constraint, data_of(constraint))  # of what was measured, its own
            rows = members_of(model, some, t.shape)
            meets = has_common_point(rows, learner.domain, place[some], self.tolerance)
            infeasible[some] = ~meets
        own = limits_of(constraint)
        limits = limits_within_reach(constraint, learner.domain, infeasible > 0.0)
        data, changed = data_of(constraint, limits), limits != own
        if changed.any():
            g = np.where(changed, with_data(constraint, data).value(state.x), g)

        data, limits = _whole(data, (*t.shape, data.shape[-1])), _whole(limits, g.shape)
        forced = -1.0
        if given is not None:
            require_alike(given, constraint, t.shape)
            if not data.shape[-1]:  # nothing to choose by: it is all there is beside the last
                forced = self.count - 1.0
        tally, margin, ordinary, largest, record, entry, highest, moments, errors, usual = judge(
            t, state.predicted, state.tally, state.margin, state.ordinary, state.largest,
            state.record, state.entry, state.highest, state.moments, state.errors, seen, g, slack,
            infeasible, kind_of(constraint), forced, self.rate,
        )  # fmt: skip
        kept = Kept(*(getattr(state, name) for name in Kept._fields))
        if kept.past.shape[-1] != data.shape[-1]:
            past = np.zeros((*t.shape, self.forecaster.rows, data.shape[-1]))
            kept = kept._replace(past=past)
        kept, data, limits = self.forecaster.remember(
            kept, t, tally[..., SINCE], data, limits, usual, _are_rows(constraint), infeasible
        )
        expected = self._expected(constraint, given, data, limits, tally[..., CHOSEN], g.shape)
        standing = _standing(expected, state.x)
        # No decision makes room for more; a row that none can keep is expected as far as one can.
        room = room_of(expected, learner.domain)
        margin = np.where(room < margin, room, margin)
        margin, ordinary = (np.where(standing, 0.0, a) for a in (margin, ordinary))
        worst = limits_of(expected) - self.forecaster.lowest(kept)
        return Outlook(
            tally, margin, ordinary, worst, largest, record, entry, highest, moments, errors, kept,
            expected, constraint, given, data, limits,
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
        tally, predicted = outlook.tally, self.predict(x, outlook)
        tally[..., REDUCED] = reduced
        if not all(np.isfinite(a).all() for a in (predicted, outlook.moments, outlook.errors)):
            raise InvalidInput(
                "the constraint's numbers are too large: what forecasts expect of it, and how far "
                "they were off, is not finite. Give a limit that is meant as none a size that the "
                "row can reach"
            )
        return (
            tally, outlook.margin, outlook.ordinary, outlook.largest, outlook.record, outlook.entry,
            outlook.highest, predicted, outlook.moments, outlook.errors, *outlook.kept,
        )  # fmt: skip

    def bound_report(self, state: Any, delay: int = 0) -> dict[str, Any]:
        """What was booked so far, and the overdraft beside the most that it can be."""
        if self.violation_rate is None:
            bound = np.full(state.t.shape, np.nan)
        else:
            slots, late = np.maximum(state.t - 1.0, 0.0), non_negative("delay", delay)
            bound = overdraft_bound(_budget_of(state), self.rate, slots, late)
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
            "tally": (TALLY_SIZE,), "entry": (2, n), "predicted": (J, n), "moments": (J, n),
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


def require_alike(given: Any, constraint: Any, batch: tuple[int, ...]) -> None:
    """That a forecast is one of such a constraint."""
    kinds = [(kind_of(g), _in_words(g)) for g in (given, constraint)]
    if kinds[0] != kinds[1]:
        raise InvalidInput(
            "the forecast's constraint must be of the kind and size of the constraint itself, but "
            f"is {kinds[0][1]} beside {kinds[1][1]}"
        )
    theirs = np.shape(data_of(given))[:-1]
    try:
        fits = np.broadcast_shapes(theirs, batch) == batch
    except ValueError:
        fits = False
    if not fits:
        raise InvalidInput(
            f"the forecast's constraint must have the batch of the state, {batch}, but has {theirs}"
        )


def _in_words(g: Any) -> str:
    rows, dim = getattr(g, "n_constraints", "some"), getattr(g, "dim", None)
    where = "" if dim is None else f" and {dim} coordinates"
    return f"{type(g).__name__} of {rows} rows{where}"


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


def _are_rows(g: Any) -> bool:
    """Whether each row's data are what tells its slopes, and then its limit; all of one length."""
    if isinstance(g, Stacked):
        alike = all(type(part) is type(g.parts[0]) for part in g.parts)
        return alike and all(map(_are_rows, g.parts))
    return type(g) in (Affine, SparseAffine)


def _standing(g: Any, x: Array) -> Any:
    """Which rows no decision moves, so that none makes room for a margin: ``0'x <= b``."""
    affine = getattr(g, "is_affine", False)
    return affine & ~np.any(g.jacobian(x), axis=-1) if np.any(affine) else False
