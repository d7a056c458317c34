"""Constraints that are the largest of several affine functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, Value, joint_batch, point, real_array
from coldq.base.contractions import affine_value
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Region
from coldq.slot.constraints.constraint import Kind, row_margins


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class MaxAffine(Kind, Value):
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

    cores: ClassVar[dict[str, int]] = {"A": 3, "b": 2}

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

    def tightened(self, margin: ArrayLike) -> MaxAffine:
        """``g + margin``, with a margin for each row; leading axes broadcast.

        >>> import coldq
        >>> coldq.MaxAffine([[[1.0], [-1.0]]], [[2.0, 2.0]]).tightened([0.5]).b
        array([[1.5, 1.5]])
        """
        rows = row_margins(margin, self.n_constraints, self.batch)
        return MaxAffine(self.A, self.b - rows[..., None])

    def largest(self, domain: Region) -> tuple[Array, bool]:
        """``max over the domain and the rows of |g|``; a bound where g may be far below zero."""
        least, greatest, exact = _ends(self.A, self.b, domain)
        # The greatest value is that of a piece; the least is at least that of every piece.
        top, bottom = np.abs(greatest.max(axis=-1)), np.abs(least.max(axis=-1))
        exact = exact and bool((top >= bottom).all())
        return np.maximum(top, bottom).max(axis=-1, initial=0.0), exact

    def max_difference(self, other: MaxAffine, domain: Region) -> tuple[Array, bool]:
        """At least ``max over the domain of |g - other|_2``: that of the pieces, one by one."""
        if self.n_pieces != other.n_pieces:
            raise InvalidInput(
                f"the variation from {other.n_pieces} pieces to {self.n_pieces} is not known"
            )
        least, greatest, _ = _ends(self.A - other.A, self.b - other.b, domain)
        rows = np.maximum(np.abs(least), np.abs(greatest)).max(axis=-1)
        return np.sqrt(np.square(rows).sum(axis=-1)), False


def _ends(A: Array, b: Array, domain: Region) -> tuple[Array, Array, bool]:
    """The least and the greatest ``<a_nk, x> - b_nk``, and whether both are exact."""
    least, greatest, exact = domain.ends(A.reshape(*A.shape[:-3], -1, A.shape[-1]))
    shape = least.shape[:-1] + A.shape[-3:-1]
    return least.reshape(shape) - b, greatest.reshape(shape) - b, exact
