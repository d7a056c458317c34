"""Constraints that are the largest of several affine functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from coldq._values import Array, Value, joint_batch, point, real_array
from coldq.contractions import affine_value
from coldq.errors import InvalidInput


@dataclass(frozen=True, eq=False, repr=False, init=False)
class MaxAffine(Value):
    """``g_n(x) = max over k of <a_nk, x> - b_nk``: worst cases, absolute values, piecewise costs.

    A has shape ``(..., N, K, p)`` and b ``(..., N, K)``: N rows of K pieces. Where pieces tie, the
    jacobian is that of the first, a subgradient.

    >>> import coldq
    >>> g = coldq.MaxAffine([[[1.0], [-1.0]]], [[2.0, 2.0]])  # |x| <= 2
    >>> g.value([-3.0]), g.jacobian([-3.0])
    (array([1.]), array([[-1.]]))
    """

    A: Array
    b: Array

    def __init__(self, A: ArrayLike, b: ArrayLike) -> None:
        self._set(A=real_array("A", A, 3), b=real_array("b", b, 2))
        if self.A.shape[-3:-1] != self.b.shape[-2:] or self.A.shape[-2] == 0:
            raise InvalidInput(
                f"A of shape {self.A.shape} needs b of shape (..., {self.A.shape[-3]}, "
                f"{self.A.shape[-2]}) with at least one piece, but b has shape {self.b.shape}"
            )
        joint_batch(A=self.A.shape[:-3], b=self.b.shape[:-2])

    @property
    def dim(self) -> int:
        """The number of coordinates p."""
        return self.A.shape[-1]

    @property
    def n_constraints(self) -> int:
        """The number of rows N."""
        return self.A.shape[-3]

    @property
    def n_pieces(self) -> int:
        """The number of pieces K of every row."""
        return self.A.shape[-2]

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        return np.broadcast_shapes(self.A.shape[:-3], self.b.shape[:-2])

    def pieces(self, x: ArrayLike) -> Array:
        """``<a_nk, x> - b_nk``, of shape ``(..., N, K)``."""
        return affine_value(self.A, point(x, self.dim)[..., None, :], self.b)

    def value(self, x: ArrayLike) -> Array:
        """The largest piece of every row."""
        return self.pieces(x).max(axis=-1)

    def jacobian(self, x: ArrayLike) -> Array:
        """The slope of the largest piece of every row, of the first where they tie."""
        largest = self.pieces(x).argmax(axis=-1)[..., None, None]
        A = np.broadcast_to(self.A, (*largest.shape[:-2], *self.A.shape[-2:]))
        return np.take_along_axis(A, largest, axis=-2)[..., 0, :]
