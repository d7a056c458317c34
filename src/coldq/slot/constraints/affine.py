"""Affine constraints: budgets, limits of loads, equalities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from coldq.base.arrays import (
    Array,
    Value,
    first_index,
    joined,
    joint_batch,
    keep_rows,
    point,
    put,
    real_array,
)
from coldq.base.contractions import affine_value, matvec
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Region
from coldq.slot.constraints.constraint import Kind, row_margins
from coldq.slot.losses import require_measured_at

VERTEX_LIMIT = 12  # up to 2^12 vertices are tried for the exact maximum of a convex function


class AffineRows(Kind):
    """What dense and sparse affine rows share."""

    dim: Any
    has_hessian = True

    def hessian(self, x: ArrayLike) -> Array:
        """Zeros."""
        batch = point(x, self.dim).shape[:-1]
        return np.zeros((*batch, self.n_constraints, self.dim, self.dim))

    @property
    def is_affine(self) -> np.ndarray:
        """All of them."""
        return np.ones(int(self.n_constraints), bool)


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Affine(AffineRows, Value):
    """``g(x) = A x - b`` with A of shape ``(..., N, p)`` and b of shape ``(..., N)``.

    >>> import coldq
    >>> g = coldq.Affine([[1.0, 1.0]], [1.0])  # x_1 + x_2 <= 1
    >>> g.value([1.0, 1.0])
    array([1.])
    """

    A: Array
    b: Array
    measured_at: Array | None = None
    measured: Array | None = None

    cores: ClassVar[dict[str, int]] = {"A": 2, "b": 1, "measured_at": 1, "measured": 1}

    def __init__(self, A: ArrayLike, b: ArrayLike) -> None:
        if type(A) is not ndarray and hasattr(A, "tocsr"):
            raise InvalidInput(
                "A is sparse: coldq.SparseAffine takes it, coldq.Affine dense arrays"
            )
        keep_rows(self, "A", A, "b", b)

    @classmethod
    def unchecked(cls, A: Array, b: Array) -> Affine:
        """Rows from arrays that are known to be sound: the step stacks some in every slot."""
        rows = object.__new__(cls)
        put(rows, "A", A, "b", b)
        return rows

    @classmethod
    def equality(cls, A: ArrayLike, b: ArrayLike) -> Affine:
        """``A x = b``, as two rows each: all of ``A x - b``, then all of ``b - A x``.

        One of the two is positive where the equality does not hold, so that the violation of both
        is ``|A x - b|``. Each side has a queue and a multiplier of its own.

        >>> import coldq
        >>> g = coldq.Affine.equality([[1.0, -1.0]], [0.0])  # x_1 = x_2
        >>> g.value([3.0, 1.0]), g.n_constraints
        (array([ 2., -2.]), 2)
        """
        rows = cls(A, b)
        return cls.between(rows.A, rows.b, rows.b)

    @classmethod
    def between(cls, A: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Affine:
        """``lower <= A x <= upper``: the rows ``A x - upper``, then the rows ``lower - A x``.

        An infinite bound has no row; in a batch it is infinite for all members or for none.

        >>> import coldq
        >>> g = coldq.Affine.between([[1.0, 1.0], [1.0, 0.0]], [0.5, 0.0], [1.0, float("inf")])
        >>> g.value([1.0, 1.0])  # x_1 + x_2 - 1, 0.5 - x_1 - x_2, -x_1
        array([ 1. , -1.5, -1. ])
        """
        every, count = real_array("A", A, 2), np.shape(A)[-2:-1]
        rows: list[Array] = []
        limits: list[Array] = []
        bounds: list[Array] = []
        for name, given, sign in (("upper", upper, 1.0), ("lower", lower, -1.0)):
            bound = real_array(name, given, 0, finite=False)
            if bound.shape[-1:] not in ((), count):
                raise InvalidInput(
                    f"{name} needs one entry for each of the {count[0]} rows on its last axis, "
                    f"but has shape {bound.shape}"
                )
            bound = np.broadcast_to(bound, bound.shape[:-1] + count)
            bounds.append(bound)
            none = bound == sign * np.inf
            needed = ~none.all(axis=tuple(range(none.ndim - 1)))
            if none[..., needed].any():
                raise InvalidInput(
                    f"{name} must be infinite in all of a batch or nowhere, but is both in row "
                    f"{first_index(none & needed)[-1]}"
                )
            rows.append(sign * every[..., needed, :])
            limits.append(sign * bound[..., needed])
        joint_batch(upper=limits[0].shape[:-1], lower=limits[1].shape[:-1])
        crossed = np.less(*bounds)
        if crossed.any():
            where = first_index(crossed)
            high, low = (np.broadcast_to(bound, crossed.shape)[where] for bound in bounds)
            raise InvalidInput(
                f"lower must not be above upper, but is {low} against {high} at index {where}"
            )
        return cls(np.concatenate(rows, axis=-2), joined(limits, 1))

    @classmethod
    def from_measurement(cls, x: ArrayLike, value: ArrayLike, jacobian: ArrayLike) -> Affine:
        """The linear model of a constraint that is known only at the decision played.

        A learner gets ``value + jacobian (. - x)`` as the whole function of its step, which is
        the constraint itself only if that is affine. ``value(x)`` returns what was measured and
        refuses any other point.

        >>> import coldq
        >>> g = coldq.Affine.from_measurement(x=[2.0], value=[4.0], jacobian=[[4.0]])  # x^2
        >>> g.value([2.0]), g.b
        (array([4.]), array([4.]))
        """
        at = real_array("x", x, 1)
        slope = real_array("jacobian", jacobian, 2)
        level = real_array("value", value, 1)
        if slope.shape != (*level.shape, at.shape[-1]) or level.shape[:-1] != at.shape[:-1]:
            raise InvalidInput(
                f"x of shape {at.shape} and value of shape {level.shape} need a jacobian of shape "
                f"{(*level.shape, at.shape[-1])}, but it has {slope.shape}"
            )
        model = cls(slope, matvec(slope, at) - level)
        model._set(measured_at=at, measured=level)
        return model

    def _constructor_name(self) -> str:
        return "Affine" if self.measured is None else "Affine.from_measurement"

    def _arguments(self) -> dict[str, Any]:
        if self.measured is None:
            return {"A": self.A, "b": self.b}
        return {"x": self.measured_at, "value": self.measured, "jacobian": self.A}

    @property
    def dim(self) -> int:
        """The number of coordinates p."""
        return self.A.shape[-1]

    @property
    def n_constraints(self) -> int:
        """The number of rows N."""
        return self.A.shape[-2]

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        rows, limits = self.A.shape[:-2], self.b.shape[:-1]
        return rows if rows == limits else np.broadcast_shapes(rows, limits)

    def value(self, x: ArrayLike) -> Array:
        """``A x - b``."""
        if self.measured is not None:
            require_measured_at("value", "constraint", self.measured_at, x)  # type: ignore[arg-type]
            return self.measured
        return affine_value(self.A, point(x, self.dim), self.b)

    def jacobian(self, x: ArrayLike) -> Array:
        """``A``."""
        if self.measured is not None:
            require_measured_at("jacobian", "constraint", self.measured_at, x)  # type: ignore[arg-type]
        shape = point(x, self.dim).shape
        batch = joint_batch(A=self.A.shape[:-2], x=shape[:-1])
        return np.broadcast_to(self.A, batch + self.A.shape[-2:])

    def as_affine(self, dim: int) -> Affine:
        """Itself."""
        return self

    @classmethod
    def all_of(cls, several: Sequence[Affine]) -> Affine:
        """All their rows, one below the other."""
        return cls(_joined([g.A for g in several], 2), _joined([g.b for g in several], 1))

    def tightened(self, margin: ArrayLike) -> Affine:
        """``g + margin``: a margin for each row, or one for all; leading axes broadcast.

        >>> import coldq
        >>> coldq.Affine([[1.0, 1.0]], [1.0]).tightened(0.25).b
        array([0.75])
        """
        rows = row_margins(margin, self.n_constraints, self.batch)
        tight = self.unchecked(self.A, self.b - rows)
        if self.measured is not None:
            tight._set(measured_at=self.measured_at, measured=self.measured + rows)
        return tight

    def max_difference(self, other: Affine, domain: Region) -> tuple[Array, bool]:
        """``max over the domain of |g - other|_2`` and whether it is exact or an upper bound.

        Exact on a simplex, and on any domain but a polytope for one row. On a box also by vertices,
        while there are at most 2^12 of them; else the rows' own maxima bound it.
        """
        A, b = self.A - other.A, self.b - other.b
        vertices = getattr(domain, "vertices", None)
        if vertices is not None:
            values = A @ np.swapaxes(vertices, -1, -2) - b[..., None]
            return np.sqrt(np.square(values).sum(axis=-2).max(axis=-1)), True
        rows, exact = largest_rows(A, b, domain)
        n, p = A.shape[-2:]
        if n == 1:
            return rows[..., 0], exact
        bound = np.sqrt(np.square(rows).sum(axis=-1))
        box = domain.around
        moving = np.flatnonzero((A != 0.0).reshape(-1, p).any(axis=0))
        if moving.size > VERTEX_LIMIT or not np.isfinite(rows).all():
            return bound, exact and not np.isfinite(rows).any()
        at_upper = np.array(list(product((False, True), repeat=int(moving.size))), bool)
        upper, lower = np.asarray(box.upper, float), np.asarray(box.lower, float)
        x = np.where(at_upper, upper[..., None, moving], lower[..., None, moving])
        values = A[..., moving] @ np.swapaxes(x, -1, -2) - b[..., None]
        return np.minimum(
            np.sqrt(np.square(values).sum(axis=-2).max(axis=-1)), bound
        ), box is domain

    def largest(self, domain: Region) -> tuple[Array, bool]:
        """``max over the domain and the rows of |g|``; a bound on a polytope, else exact."""
        rows, exact = largest_rows(self.A, self.b, domain)
        return rows.max(axis=-1, initial=0.0), exact


def _joined(arrays: list[Array], core: int) -> Array:
    """Arrays one after the other on the first of their core axes; leading axes broadcast."""
    batch = np.broadcast_shapes(*{a.shape[:-core] for a in arrays})
    whole = [np.broadcast_to(a, batch + a.shape[-core:]) for a in arrays]
    return np.concatenate(whole, axis=-core)


def largest_rows(A: Array, b: Array, domain: Region) -> tuple[Array, bool]:
    """``max over the domain of |A x - b|``, row by row, and whether that is exact."""
    least, greatest, exact = domain.ends(A)
    return np.maximum(np.abs(least - b), np.abs(greatest - b)), exact


describable(Affine.from_measurement, "Affine.from_measurement")
