"""Forecasts of the next constraint from those before it, as small values.

A forecast is made of data of the same kind: an :class:`~coldq.Affine` row of affine rows. What
enters a constraint linearly is averaged: A and b of affine rows, the limit of sparse ones, the
demand of a capacity, the slope and the limit of a quadratic; the rest is the last slot's, and so is
all of any other constraint.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from coldq._tuning_kernels import AVERAGE, LAST, ROWS, SEASON, TREND
from coldq._values import Array, is_several, one_real, whole_number
from coldq.constraints import (
    Affine,
    BallRows,
    DiagonalQuadratic,
    LogCapacity,
    LowRankQuadratic,
    QuadraticConstraint,
    SparseAffine,
    Stacked,
)
from coldq.errors import InvalidInput


@dataclass(frozen=True)
class Last:
    """The next constraint is the last one.

    >>> import coldq
    >>> coldq.forecasts.Last()
    Last()
    """

    @property
    def code(self) -> tuple[int, float, int]:
        """Its kind, its parameter, and how many slots' data it keeps."""
        return LAST, 0.0, 0


@dataclass(frozen=True)
class Weighted:
    """What forecasts share that keep one average: the weight on what came last."""

    weight: float
    kind: ClassVar[int]

    def __post_init__(self) -> None:
        weight = one_real("weight", self.weight)
        if not 0.0 < weight <= 1.0:
            raise InvalidInput(f"weight must lie in (0, 1], but is {weight}")
        object.__setattr__(self, "weight", weight)

    @property
    def code(self) -> tuple[int, float, int]:
        """Its kind, its parameter, and how many slots' data it keeps."""
        return self.kind, self.weight, 1


class MovingAverage(Weighted):
    """The next constraint is the average of those before, `weight` on the last one.

    >>> import coldq
    >>> coldq.forecasts.MovingAverage(0.25)
    MovingAverage(weight=0.25)
    """

    kind = AVERAGE


class Trend(Weighted):
    """The last constraint and the average of its increments, `weight` on the last of them.

    >>> import coldq
    >>> coldq.forecasts.Trend(0.1)
    Trend(weight=0.1)
    """

    kind = TREND


@dataclass(frozen=True)
class Seasonal:
    """The constraint of a `period` ago; before there is one, the last.

    It keeps the data of a whole period.

    >>> import coldq
    >>> coldq.forecasts.Seasonal(288)
    Seasonal(period=288)
    """

    period: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "period", whole_number("period", self.period, 2))

    @property
    def code(self) -> tuple[int, float, int]:
        """Its kind, its parameter, and how many slots' data it keeps."""
        return SEASON, float(self.period), self.period


# Chosen while looking at Autoscale, Dispatch, JobScheduling and TimeVarying.
DEFAULT = (
    Last(),
    *(MovingAverage(w) for w in (0.5, 0.25, 0.12, 0.06, 0.03)),
    Trend(0.1),
    Trend(0.3),
)


def forecasts_of(given: Iterable[Any]) -> tuple[Any, ...]:
    """Forecasts to choose from, the last constraint first: it is what others are measured by."""
    kinds = (Last, MovingAverage, Trend, Seasonal)
    some = tuple(given) if is_several(given) else (given,)
    for one in some:
        if not isinstance(one, kinds):
            names = ", ".join(kind.__name__ for kind in kinds)
            raise InvalidInput(f"forecasts must be some of {names}, but has {one!r:.200}")
    return tuple(dict.fromkeys((Last(), *some)))


def table_of(forecasts: tuple[Any, ...]) -> tuple[Array, int]:
    """The forecasts as the kernels read them, and how many slots' data they keep in all."""
    lines, rows = [], 1
    for kind, parameter, kept in (one.code for one in forecasts):
        lines.append((float(kind), parameter, float(rows if kept else 0)))
        rows += kept
    return np.array(lines), rows


def data_of(g: Any) -> Array:
    """What of a constraint is averaged, of shape ``(..., d)``; d is 0 if nothing is.

    >>> import coldq
    >>> from coldq.forecasts import data_of
    >>> data_of(coldq.Affine([[1.0, 2.0]], [3.0])), data_of(coldq.LogCapacity(5.0, [1.0], [1.0]))
    (array([1., 2., 3.]), array([5.]))
    """
    if isinstance(g, Stacked):
        parts = [data_of(part) for part in g.parts]
        batch = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
        return np.concatenate([np.broadcast_to(a, (*batch, a.shape[-1])) for a in parts], axis=-1)
    if isinstance(g, Affine):
        return _joined(g.A, g.b)
    if isinstance(g, BallRows):
        return _joined(g.center, g.limit)
    if isinstance(g, QuadraticConstraint):
        return _joined(g.q, g.r)
    if isinstance(g, SparseAffine):
        return g.b
    if isinstance(g, LogCapacity):
        return g.demand[..., None]
    return np.zeros(0)


def limits_of(g: Any) -> Array:
    """Each row's limit, of shape ``(..., N)``: what is taken from the rest of ``g^n(x)``.

    That of affine rows is b, of a quadratic r, of a capacity minus its demand. Rows of other kinds
    have none that is known, and 0 stands for it.

    >>> import coldq
    >>> from coldq.forecasts import limits_of
    >>> limits_of(coldq.Affine([[1.0, 2.0]], [3.0])), limits_of(coldq.LogCapacity(5.0, [1.0], [1.0]))
    (array([3.]), array([-5.]))
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
    return np.zeros(g.n_constraints)


def with_data(g: Any, data: Array) -> Any:
    """A constraint as g, with other data, whose leading axes broadcast with its own.

    >>> import numpy as np, coldq
    >>> from coldq.forecasts import with_data
    >>> with_data(coldq.Affine([[1.0, 2.0]], [3.0]), np.array([0.0, 1.0, 4.0])).value([1.0, 1.0])
    array([-3.])
    """
    if isinstance(g, Stacked):
        parts, end = [], 0
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
        return SparseAffine(g.A, data) if data.ndim == 1 else Affine(g.A.toarray(), data)
    if isinstance(g, LogCapacity):
        return LogCapacity(data[..., 0], g.scale, g.rate)
    return g


def kind_of(g: Any) -> float:
    """A number for the kind of a constraint's data: another kind has another one."""
    return ROWS if type(g) is Affine else float(zlib.crc32(_words(g).encode()) + 2)


def _words(g: Any) -> str:
    if isinstance(g, Stacked):
        return f"({' '.join(_words(part) for part in g.parts)})"
    return f"{type(g).__name__}{getattr(g, 'n_constraints', '')}"


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
