"""No constraint at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array
from coldq.base.describe import describable
from coldq.base.protocols import Region
from coldq.slot.constraints.affine import Affine
from coldq.slot.constraints.constraint import Kind, row_margins


@describable
@dataclass(frozen=True)
class Unconstrained(Kind):
    """No constraint at all: N = 0.

    >>> import coldq
    >>> coldq.Unconstrained().value([1.0, 2.0]).shape
    (0,)
    """

    n_constraints: ClassVar[int] = 0  # type: ignore[misc]
    batch: ClassVar[tuple[int, ...]] = ()  # type: ignore[misc]
    has_hessian = True

    def value(self, x: ArrayLike) -> Array:
        """An empty row of values."""
        return np.zeros((*np.shape(x)[:-1], 0))

    def jacobian(self, x: ArrayLike) -> Array:
        """An empty matrix."""
        shape = np.shape(x)
        return np.zeros((*shape[:-1], 0, shape[-1]))

    def hessian(self, x: ArrayLike) -> Array:
        """No matrices."""
        shape = np.shape(x)
        return np.zeros((*shape[:-1], 0, shape[-1], shape[-1]))

    def as_affine(self, dim: int) -> Affine:
        """No rows."""
        return Affine(np.zeros((0, dim)), np.zeros(0))

    def largest(self, domain: Region) -> tuple[Array, bool]:
        """Zero."""
        return np.zeros(()), True

    def tightened(self, margin: ArrayLike) -> Unconstrained:
        """Itself: there is no row to tighten."""
        row_margins(margin, 0)
        return self
