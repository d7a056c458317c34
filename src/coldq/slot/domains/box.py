"""Boxes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import (
    Array,
    first_index,
    joint_batch,
    one_real,
    point,
    real_array,
    whole_number,
)
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput
from coldq.slot.domains.domain import Domain
from coldq.solver.simplices import Blocks


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Box(Domain):
    """The box ``{x : lower <= x <= upper}``, bounds infinite where there are none.

    Parameters
    ----------
    lower, upper
        Numbers, or arrays of shape ``(p,)``, or ``(..., p)`` for a batch of different boxes.
    dim
        The number of coordinates p. Needed when both bounds are numbers, else a check.

    >>> import coldq
    >>> X = coldq.Box(0.0, 5.0, dim=3)
    >>> X.project([-1.0, 2.0, 9.0])
    array([0., 2., 5.])
    >>> X.diameter.round(6)
    np.float64(8.660254)
    """

    lower: Array
    upper: Array
    enforced = ()

    def __init__(self, lower: ArrayLike, upper: ArrayLike, dim: int | None = None) -> None:
        low = real_array("lower", lower, 0, finite=False)
        high = real_array("upper", upper, 0, finite=False)
        for name, bound in (("lower", low), ("upper", high)):
            if np.isnan(bound).any():
                raise InvalidInput(f"{name} must not be NaN")
        if dim is not None:
            dim = whole_number("dim", dim, 1)
        elif low.ndim == high.ndim == 0:
            raise InvalidInput(
                f"dim must be given where both bounds are numbers: Box({low:g}, {high:g}, dim=3)"
            )
        try:
            shape = np.broadcast_shapes(low.shape, high.shape, () if dim is None else (dim,))
        except ValueError:
            raise InvalidInput(
                f"lower of shape {low.shape}, upper of shape {high.shape}"
                + ("" if dim is None else f" and dim = {dim}")
                + " do not fit together"
            ) from None
        if shape[-1] == 0 or (dim is not None and shape[-1] != dim):
            raise InvalidInput(f"dim is {dim}, but the bounds have {shape[-1]} coordinates")
        low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
        empty = (low > high) | (low == np.inf) | (high == -np.inf)
        if empty.any():
            where = first_index(empty)
            raise InvalidInput(
                f"the domain is empty: lower = {low[where]} is above upper = {high[where]} "
                f"at index {where}"
            )
        both = real_array("bounds", np.stack([low, high]), 2, finite=False)
        self._set(lower=both[0], upper=both[1])

    @property
    def dim(self) -> int:
        """The number of coordinates p."""
        return self.lower.shape[-1]

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of the bounds; ``()`` for one box."""
        return self.lower.shape[:-1]

    @property
    def box(self) -> Box:
        """The box itself."""
        return self

    @cached_property
    def _segments(self) -> Blocks:
        """One block, whose sum may be anything."""
        return Blocks(np.zeros(1), np.zeros(1), np.full(1, np.inf))

    @property
    def diameter(self) -> Array:
        """R, the largest distance between two points of the box; infinite if it is unbounded."""
        return np.sqrt(np.square(self.upper - self.lower).sum(axis=-1))

    def project(self, x: ArrayLike) -> Array:
        """The nearest point of the box."""
        x = point(x, self.dim)
        try:
            return np.minimum(np.maximum(x, self.lower), self.upper)
        except ValueError:
            joint_batch(x=x.shape[:-1], domain=self.batch)  # which says so
            raise

    def contains(self, x: ArrayLike, tolerance: float = 0.0) -> np.ndarray:
        """Whether each point lies in the box, up to `tolerance` in every coordinate."""
        x, tolerance = point(x, self.dim), one_real("tolerance", tolerance)
        joint_batch(x=x.shape[:-1], domain=self.batch)
        inside = (x >= self.lower - tolerance) & (x <= self.upper + tolerance)
        return np.asarray(inside.all(axis=-1))

    def __repr__(self) -> str:
        low, high = np.unique(self.lower), np.unique(self.upper)
        if low.size == high.size == 1 and not self.batch:
            return f"Box({low[0]}, {high[0]}, dim={self.dim})"
        return super().__repr__()
