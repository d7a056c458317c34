"""Capacity with falling returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, Value, first_index, joint_batch, point, real_array
from coldq.base.contractions import log_capacity
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Region
from coldq.slot.constraints.constraint import Kind, row_margins


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class LogCapacity(Kind, Value):
    """``g(x) = demand - sum_i scale_i log(1 + rate_i x_i)``: capacity with falling returns.

    One row (N = 1). `demand` has the batch's shape, `scale` and `rate` have ``(..., p)`` and are
    not negative. It is defined where ``rate_i x_i > -1``; a domain must stay inside that.

    >>> import coldq
    >>> g = coldq.LogCapacity(demand=2.0, scale=[1.0, 1.0], rate=[1.0, 1.0])
    >>> g.value([0.0, 0.0])
    array([2.])
    """

    demand: Array
    scale: Array
    rate: Array

    cores: ClassVar[dict[str, int]] = {"demand": 0, "scale": 1, "rate": 1}
    has_hessian = True

    def __init__(self, demand: ArrayLike, scale: ArrayLike, rate: ArrayLike) -> None:
        self._set(
            demand=real_array("demand", demand, 0),
            scale=real_array("scale", scale, 1),
            rate=real_array("rate", rate, 1),
        )
        for name in ("scale", "rate"):
            array = getattr(self, name)
            if (array < 0.0).any():
                where = first_index(array < 0.0)
                raise InvalidInput(
                    f"{name} must not be negative, but is {array[where]} at index {where}"
                )
        if self.scale.shape[-1] != self.rate.shape[-1]:
            raise InvalidInput(
                f"scale and rate need equally many coordinates, but have shapes "
                f"{self.scale.shape} and {self.rate.shape}"
            )
        joint_batch(
            demand=self.demand.shape, scale=self.scale.shape[:-1], rate=self.rate.shape[:-1]
        )

    @property
    def dim(self) -> int:
        """The number of coordinates p."""
        return self.scale.shape[-1]

    @property
    def n_constraints(self) -> int:
        """One."""
        return 1

    def value(self, x: ArrayLike) -> Array:
        """``demand - sum_i scale_i log(1 + rate_i x_i)``."""
        x = self._defined(x)
        served = log_capacity(self.scale, self.rate, x)
        joint_batch(demand=self.demand.shape, x=np.shape(served))
        return (self.demand - served)[..., None]

    def jacobian(self, x: ArrayLike) -> Array:
        """``-scale_i rate_i / (1 + rate_i x_i)``."""
        x = self._defined(x)
        slope = -self.scale * self.rate / (1.0 + self.rate * x)
        batch = joint_batch(demand=self.demand.shape, x=slope.shape[:-1])
        return np.broadcast_to(slope, batch + slope.shape[-1:])[..., None, :]

    def hessian(self, x: ArrayLike) -> Array:
        """A diagonal of ``scale_i (rate_i / (1 + rate_i x_i))^2``."""
        slope = self.rate / (1.0 + self.rate * self._defined(x))
        curve = self.scale * slope * slope
        return (curve[..., None] * np.eye(self.dim))[..., None, :, :]

    def largest(self, domain: Region) -> tuple[Array, bool]:
        """``max over the domain of |g|``; exact on a box, as g falls in every coordinate."""
        box = domain.around
        ends = np.abs([self.value(box.lower)[..., 0], self.value(box.upper)[..., 0]])
        return ends.max(axis=0), box is domain

    def tightened(self, margin: ArrayLike) -> LogCapacity:
        """``g + margin``: as much more demand; leading axes broadcast.

        >>> import coldq
        >>> coldq.LogCapacity(2.0, [1.0], [1.0]).tightened([0.5]).demand
        array(2.5)
        """
        rows = row_margins(margin, 1, self.batch)
        return LogCapacity(self.demand + rows[..., 0], self.scale, self.rate)

    def _defined(self, x: ArrayLike) -> Array:
        x = point(x, self.dim)
        outside = self.rate * x <= -1.0
        if outside.any():
            where = first_index(outside)
            raise InvalidInput(
                f"the capacity is defined where rate x > -1, but rate x is "
                f"{(self.rate * x)[where]} at index {where}"
            )
        return x

    @classmethod
    def all_of(cls, several: Sequence[LogCapacity]) -> LogCapacity | None:
        """The capacity with the largest demand, if they differ in that alone."""
        scale, rate = several[0].scale, several[0].rate
        for g in several:
            if not (np.array_equal(g.scale, scale) and np.array_equal(g.rate, rate)):
                return None
        return cls(reduce(np.maximum, [g.demand for g in several]), scale, rate)

    def max_difference(self, other: LogCapacity, domain: Region) -> tuple[Array, bool]:
        """``max over the box around a domain of |g - other|``, and whether that is exact."""
        box = domain.around
        # The difference of two capacities has at most one stationary point a coordinate.
        (s, r), (v, w) = (self.scale, self.rate), (other.scale, other.rate)
        s, r, v, w, low, high = np.broadcast_arrays(s, r, v, w, box.lower, box.upper)
        with np.errstate(divide="ignore", invalid="ignore"):
            turn = (v * w - s * r) / (r * w * (s - v))
            turn = np.where((turn > low) & (turn < high), turn, low)
            places = np.stack([low, high, turn])
            gap = np.where(v == 0.0, 0.0, v * np.log1p(w * places))
            gap = gap - np.where(s == 0.0, 0.0, s * np.log1p(r * places))
            gap = np.where((s == v) & (r == w), 0.0, gap)
        shift = self.demand - other.demand
        top, bottom = gap.max(axis=0).sum(axis=-1) + shift, gap.min(axis=0).sum(axis=-1) + shift
        return np.maximum(np.abs(top), np.abs(bottom)), box is domain
