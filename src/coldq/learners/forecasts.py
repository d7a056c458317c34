"""Forecasts of the next constraint from those before it, as small values.

:class:`Last`, :class:`MovingAverage` and :class:`Trend` are made of data of the same kind: an
:class:`~coldq.Affine` row of affine rows. What enters a constraint linearly is averaged: A and b of
affine rows, the limit of sparse ones, the demand of a capacity, the slope and the limit of a
quadratic; the rest is the last slot's, and so is all of any other constraint.

The others are forecasts of the rows' limits alone; the slopes are the last slot's.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from coldq.base.arrays import Array, is_several, one_real, whole_number
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput
from coldq.slot.constraints import (
    Affine,
    BallRows,
    DiagonalQuadratic,
    LogCapacity,
    LowRankQuadratic,
    QuadraticConstraint,
    SparseAffine,
    Stacked,
)

MAX_LAG = 100_000  # slots that a forecast may look back
MAX_DENSE_ENTRIES = 4_000_000  # of sparse rows that are made dense


@describable
@dataclass(frozen=True)
class Last:
    """The next constraint is the last one.

    >>> import coldq
    >>> coldq.forecasts.Last()
    Last()
    """


@dataclass(frozen=True)
class Weighted:
    """What forecasts share that keep one average: the weight on what came last."""

    weight: float

    def __post_init__(self) -> None:
        weight = one_real("weight", self.weight)
        if not 0.0 < weight <= 1.0:
            raise InvalidInput(f"weight must lie in (0, 1], but is {weight}")
        object.__setattr__(self, "weight", weight)


@describable
class MovingAverage(Weighted):
    """The next constraint is the average of those before, `weight` on the last one.

    >>> import coldq
    >>> coldq.forecasts.MovingAverage(0.25)
    MovingAverage(weight=0.25)
    """


@describable
class Trend(Weighted):
    """The last constraint and the average of its increments, `weight` on the last of them.

    >>> import coldq
    >>> coldq.forecasts.Trend(0.1)
    Trend(weight=0.1)
    """


@describable
class Robust(Weighted):
    """The limits' average, in which a surprise counts up to twice its usual size.

    A spike moves it little, and the slots after a spike not at all.

    >>> import coldq
    >>> coldq.forecasts.Robust(0.1)
    Robust(weight=0.1)
    """


@dataclass(frozen=True)
class Periodic:
    """What forecasts share that look back by a whole period."""

    period: int

    def __post_init__(self) -> None:
        period = whole_number("period", self.period, 2)
        if period > MAX_LAG:
            raise InvalidInput(f"period must be at most {MAX_LAG} slots, but is {period}")
        object.__setattr__(self, "period", period)


@describable
class Seasonal(Periodic):
    """The limits of a `period` ago; before there are any, the last.

    >>> import coldq
    >>> coldq.forecasts.Seasonal(288)
    Seasonal(period=288)
    """


@describable
class SeasonalChange(Periodic):
    """The last limits and what came next a `period` ago: ``b_t + b_{t+1-P} - b_{t-P}``.

    >>> import coldq
    >>> coldq.forecasts.SeasonalChange(24)
    SeasonalChange(period=24)
    """


@describable
@dataclass(frozen=True)
class Regression:
    """The last limits and a combination of other forecasts' changes, by recursive least squares.

    The changes are those of two averages and a trend, and of the seasonal forecasts of `periods`.
    The squared error of a slot counts `forgetting` times as much one slot later.

    >>> import coldq
    >>> coldq.forecasts.Regression((24, 168)).forgetting
    0.998
    """

    periods: tuple[int, ...] = (24, 48, 96, 168, 288, 336, 672)
    forgetting: float = 0.998

    def __post_init__(self) -> None:
        given: Any = self.periods if is_several(self.periods) else (self.periods,)
        periods = tuple(Seasonal(period).period for period in given)
        forgetting = one_real("forgetting", self.forgetting)
        if not 0.0 < forgetting <= 1.0:
            raise InvalidInput(f"forgetting must lie in (0, 1], but is {forgetting}")
        object.__setattr__(self, "periods", periods)
        object.__setattr__(self, "forgetting", forgetting)


@dataclass(frozen=True)
class Own:
    """A function of the rows' limits so far that returns those of the next slot.

    It gets an array ``(slots, N)`` of the last `slots` limits at most, the oldest first, of one
    decision maker at a time, and returns N numbers.

    >>> import coldq
    >>> halfway = coldq.forecasts.Own(lambda limits: limits[-2:].mean(axis=0), slots=2)
    >>> halfway.slots
    2
    """

    function: Callable[[Array], Any]
    slots: int = 336

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidInput(f"a forecast of your own is a function, not {self.function!r:.200}")
        slots = whole_number("slots", self.slots, 1)
        if slots > MAX_LAG:
            raise InvalidInput(f"slots must be at most {MAX_LAG}, but is {slots}")
        object.__setattr__(self, "slots", slots)


KINDS = (Last, MovingAverage, Trend, Robust, Seasonal, SeasonalChange, Regression, Own)
PERIODS = (7, 12, 24, 48, 96, 144, 168, 288, 336, 672, 1440, 2016)  # days and weeks, in slots

# What keeps a few numbers a row: for those who have a million tenants.
SMALL_MEMORY = (
    Last(),
    *(MovingAverage(w) for w in (0.5, 0.25, 0.12, 0.06, 0.03)),
    Trend(0.1),
    Trend(0.3),
    Robust(0.1),
    Robust(0.03),
)
DEFAULT = (
    *SMALL_MEMORY,
    *(kind(period) for period in PERIODS for kind in (Seasonal, SeasonalChange)),
    Regression(),
)


def forecasts_of(given: Iterable[Any]) -> tuple[Any, ...]:
    """Forecasts to choose from, the last constraint first: it is what others are measured by.

    A function is taken as :class:`Own`.
    """
    some = tuple(given) if is_several(given) else (given,)
    found = [Own(one) if callable(one) and not isinstance(one, KINDS) else one for one in some]
    for one in found:
        if not isinstance(one, KINDS):
            names = ", ".join(kind.__name__ for kind in KINDS)
            raise InvalidInput(
                f"forecasts must be some of {names}, or functions of past limits, but has "
                f"{one!r:.200}"
            )
    return tuple(dict.fromkeys((Last(), *found)))


def data_of(g: Any, limits: Array | None = None) -> Array:
    """What of a constraint is averaged, of shape ``(..., d)``; d is 0 if nothing is.

    Others than its own `limits` may stand in their place. Beside each limit of sparse rows are two
    numbers that tell its slopes.

    >>> import coldq
    >>> from coldq.learners.forecasts import data_of
    >>> data_of(coldq.Affine([[1.0, 2.0]], [3.0])), data_of(coldq.LogCapacity(5.0, [1.0], [1.0]))
    (array([1., 2., 3.]), array([5.]))
    """
    if limits is None:
        limits = limits_of(g)
    if isinstance(g, Stacked):
        ends = np.cumsum([part.n_constraints for part in g.parts])[:-1]
        own = np.split(limits, ends, axis=-1)
        parts = [data_of(part, its) for part, its in zip(g.parts, own, strict=True)]
        batch = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
        return np.concatenate([np.broadcast_to(a, (*batch, a.shape[-1])) for a in parts], axis=-1)
    if isinstance(g, Affine):
        return _joined(g.A, limits)
    if isinstance(g, BallRows):
        return _joined(g.center, limits)
    if isinstance(g, QuadraticConstraint):
        return _joined(g.q, limits)
    if isinstance(g, SparseAffine):
        marks = _column_marks(g.dim)
        return _joined(np.stack([g.A @ marks, abs(g.A) @ marks], axis=-1), limits)
    if isinstance(g, LogCapacity):
        return -limits
    return np.zeros(0)


def limits_of(g: Any) -> Array:
    """Each row's limit, of shape ``(..., N)``: what is taken from the rest of ``g^n(x)``.

    That of affine rows is b, of a quadratic r, of a capacity minus its demand. Rows of other kinds
    have none that is known, and 0 stands for it.

    >>> import coldq
    >>> from coldq.learners.forecasts import limits_of
    >>> limits_of(coldq.Affine([[1.0, 2.0]], [3.0]))
    array([3.])
    >>> limits_of(coldq.LogCapacity(5.0, [1.0], [1.0]))
    array([-5.])
    """
    if isinstance(g, Stacked):
        parts = [limits_of(part) for part in g.parts]
        batch = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
        return np.concatenate([np.broadcast_to(a, (*batch, a.shape[-1])) for a in parts], axis=-1)
    if isinstance(g, Affine | SparseAffine):
        return g.b
    if isinstance(g, BallRows):
        return g.limit
    if isinstance(g, QuadraticConstraint):
        return g.r
    if isinstance(g, LogCapacity):
        return -g.demand[..., None]
    rows: int = g.n_constraints
    return np.zeros(rows)


def ends_of(g: Affine | SparseAffine, domain: Any) -> tuple[Array, Array]:
    """The least and the greatest ``A x`` of each row on the domain; infinite where sparse rows are
    too many to be dense."""
    if isinstance(g, Affine):
        return domain.ends(g.A)[:2]
    if g.n_constraints * g.dim > MAX_DENSE_ENTRIES:
        return np.full(g.n_constraints, -np.inf), np.full(g.n_constraints, np.inf)
    return domain.ends(g.A.toarray())[:2]


def limits_within_reach(g: Any, domain: Any, infeasible: np.ndarray) -> Array:
    """The limits of rows, within what these can be on the domain.

    A limit above all of that by more than its width, as one that stands for none, is that far
    above; where a slot was `infeasible`, one below is the least. So an absurd reading is no
    surprise of its own size. Affine rows and capacities alone: of others that is not known in
    closed form.
    """
    limits = limits_of(g)
    if isinstance(g, Stacked):
        parts = [limits_within_reach(part, domain, infeasible) for part in g.parts]
        batch = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
        return np.concatenate([np.broadcast_to(a, (*batch, a.shape[-1])) for a in parts], axis=-1)
    if isinstance(g, Affine | SparseAffine):
        least, most = ends_of(g, domain)
    elif isinstance(g, LogCapacity) and getattr(domain, "around", None) is domain:
        none = LogCapacity(0.0, g.scale, g.rate)
        least, most = none.value(domain.upper), none.value(domain.lower)
    else:
        return limits
    with np.errstate(invalid="ignore"):
        loosest = most + (most - least)
    limits = np.where(limits > loosest, loosest, limits)
    return np.where(infeasible[..., None] & (limits < least), least, limits)


def with_data(g: Any, data: Array) -> Any:
    """A constraint as g, with other data, whose leading axes broadcast with its own.

    >>> import numpy as np, coldq
    >>> from coldq.learners.forecasts import with_data
    >>> with_data(coldq.Affine([[1.0, 2.0]], [3.0]), np.array([0.0, 1.0, 4.0])).value([1.0, 1.0])
    array([-3.])
    """
    if isinstance(g, Stacked):
        parts: list[Any] = []
        end = 0
        for part in g.parts:
            begin, end = end, end + data_of(part).shape[-1]
            parts.append(with_data(part, data[..., begin:end]))
        return Stacked(*parts)
    if isinstance(g, Affine):
        return Affine.unchecked(*_parted(data, g.A.shape[-2:]))
    if isinstance(g, DiagonalQuadratic):
        return DiagonalQuadratic(g.d, *_parted(data, g.q.shape[-2:]))
    if isinstance(g, LowRankQuadratic):
        return LowRankQuadratic(g.d, g.F, *_parted(data, g.q.shape[-2:]))
    if isinstance(g, BallRows):
        return BallRows.of_limit(*_parted(data, g.center.shape[-2:]))
    if isinstance(g, QuadraticConstraint):
        return QuadraticConstraint.unchecked(g.P, *_parted(data, g.q.shape[-2:]))
    if isinstance(g, SparseAffine):
        b = _parted(data, (g.n_constraints, 2))[1]
        return SparseAffine(g.A, b) if b.ndim == 1 else Affine(g.A.toarray(), b)
    if isinstance(g, LogCapacity):
        return LogCapacity(data[..., 0], g.scale, g.rate)
    return g


def kind_of(g: Any) -> float:
    """A number for the kind of a constraint's data: another kind has another one."""
    return 1.0 if type(g) is Affine else float(zlib.crc32(_words(g).encode()) + 2)


def _words(g: Any) -> str:
    if isinstance(g, Stacked):
        return f"({' '.join(_words(part) for part in g.parts)})"
    return f"{type(g).__name__} {getattr(g, 'n_constraints', '')}"


@lru_cache(maxsize=8)
def _column_marks(p: int) -> Array:
    """A random number for each column: a row's product with them tells its slopes from others."""
    marks = np.random.default_rng(0).random(p)
    marks.flags.writeable = False
    return marks


def _joined(slopes: Array, limits: Array) -> Array:
    """Rows and their limits as one vector, row after row."""
    *batch, n, p = *np.broadcast_shapes(slopes.shape[:-1], limits.shape), slopes.shape[-1]
    out = np.empty((*batch, n, p + 1))
    out[..., :p], out[..., p] = slopes, limits
    return out.reshape(*batch, n * (p + 1))


def _parted(data: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    n, p = shape
    rows = data.reshape(*data.shape[:-1], n, p + 1)
    return np.ascontiguousarray(rows[..., :p]), np.ascontiguousarray(rows[..., p])
