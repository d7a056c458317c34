"""Euclidean balls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, joint_batch, one_real, point, positive, real_array
from coldq.base.contractions import into_ball, matvec
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput
from coldq.slot.domains.box import Box
from coldq.slot.domains.domain import Domain
from coldq.solver.constants import ENFORCED_TOLERANCE
from coldq.solver.problem import BallRow


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Ball(Domain):
    """``{x : |x - center| <= radius}``, the Euclidean ball.

    Parameters
    ----------
    center
        Of shape ``(p,)``, or ``(..., p)`` for a batch of different balls.
    radius
        A positive number, or an array over leading axes.

    >>> import coldq
    >>> X = coldq.Ball([0.0, 0.0], radius=5.0)
    >>> X.project([6.0, 8.0])
    array([3., 4.])
    """

    center: Array
    radius: Array

    def __init__(self, center: ArrayLike, radius: ArrayLike) -> None:
        self._set(center=real_array("center", center, 1), radius=positive("radius", radius))
        joint_batch(center=self.center.shape[:-1], radius=self.radius.shape)
        if self.dim == 0:
            raise InvalidInput("center must have at least one coordinate, but is empty")
        reach = self.radius[..., None]
        self._set(
            box=Box(self.center - reach, self.center + reach),
            enforced=((BallRow(self.center, self.radius), 0.0),) if self.dim > 1 else (),
        )

    @property
    def dim(self) -> int:
        """The number of coordinates p."""
        return self.center.shape[-1]

    @cached_property
    def batch(self) -> tuple[int, ...]:
        """The leading axes; ``()`` for one ball."""
        return np.broadcast_shapes(self.center.shape[:-1], self.radius.shape)

    @property
    def diameter(self) -> Array:
        """R, twice the radius."""
        return 2.0 * np.broadcast_to(self.radius, self.batch)[()]

    def ends(self, A: Array) -> tuple[Array, Array, bool]:
        """The least and the greatest ``A x``, row by row: a radius to either side of the center."""
        middle = matvec(A, self.center)
        reach = self.radius[..., None] * np.sqrt(np.square(A).sum(axis=-1))
        return middle - reach, middle + reach, True

    def project(self, x: ArrayLike) -> Array:
        """The nearest point of the ball, on the ray from its center."""
        return into_ball(point(x, self.dim), self.center, self.radius)

    def contains(self, x: ArrayLike, tolerance: float = 0.0) -> np.ndarray:
        """Whether each point lies in the ball, up to `tolerance` and rounding."""
        x = point(x, self.dim)
        size = self.radius + np.abs(self.center).max(axis=-1)
        room = (one_real("tolerance", tolerance) + ENFORCED_TOLERANCE * size)[..., None]
        return np.asarray((np.abs(x - self.project(x)) <= room).all(axis=-1))
