"""Simplices, with or without a cap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, joint_batch, positive, real_array, whole_number
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput
from coldq.slot.constraints import Affine
from coldq.slot.domains.box import Box
from coldq.slot.domains.domain import Domain
from coldq.solver.simplices import Blocks


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Simplex(Domain):
    """``{x : x >= 0, sum_i x_i = total}``, and ``x <= cap`` if a cap is given.

    Parameters
    ----------
    dim
        The number of coordinates p.
    total, cap
        Positive numbers, or arrays over leading axes for a batch of different simplices. Caps that
        differ between coordinates make a :class:`Polytope`.

    >>> import coldq
    >>> X = coldq.Simplex(3)
    >>> X.project([0.5, 0.9, -1.0]).round(6)
    array([0.3, 0.7, 0. ])
    >>> coldq.Simplex(3, cap=0.5).project([0.5, 0.9, -1.0])
    array([0.5, 0.5, 0. ])
    """

    dim: int
    total: Array
    cap: Array

    def __init__(self, dim: int, total: ArrayLike = 1.0, cap: ArrayLike = np.inf) -> None:
        p, total = whole_number("dim", dim, 1), positive("total", total)
        cap = real_array("cap", cap, 0, finite=False)
        if not (cap > 0.0).all():
            raise InvalidInput(f"cap must be positive, but is {cap}")
        joint_batch(total=total.shape, cap=cap.shape)
        if (p * cap < total).any():
            raise InvalidInput(
                f"the domain is empty: {p} coordinates of at most {cap} cannot sum to {total}"
            )
        self._set(dim=p, total=total, cap=cap)
        whole = Affine(np.ones((1, p)), total[..., None])
        upper = np.broadcast_to(np.minimum(cap, total)[..., None], (*self.batch, p))
        self._set(box=Box(0.0, upper), enforced=((whole, -np.inf),))

    @cached_property
    def batch(self) -> tuple[int, ...]:
        """The leading axes; ``()`` for one simplex."""
        return np.broadcast_shapes(self.total.shape, self.cap.shape)

    @cached_property
    def _segments(self) -> Blocks:
        """One block, whose sum is the total."""
        return Blocks(np.zeros(1), self.total[..., None], np.full(1, -np.inf))

    @property
    def vertices(self) -> Array | None:
        """The vertices, of shape ``(..., p, p)``; None under a cap, where they are too many."""
        if (self.cap < self.total).any():
            return None
        return self.total[..., None, None] * np.eye(self.dim)

    @property
    def diameter(self) -> Array:
        """R, exact: two vertices with as little in common as there is room for."""
        p, cap = self.dim, np.minimum(self.cap, self.total)
        # x -> cap - x keeps distances, so at most half of the room is taken up.
        taken = np.minimum(self.total, p * cap - self.total)
        full = np.floor(taken / cap)
        rest = np.where(2.0 * full + 2.0 <= p, taken - full * cap, 0.0)
        return np.sqrt(2.0 * (full * cap * cap + rest * rest))
