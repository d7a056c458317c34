"""Several constraints as one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, joined, joint_batch
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput
from coldq.base.lazy import scipy_sparse
from coldq.base.protocols import Region
from coldq.slot.constraints.affine import Affine
from coldq.slot.constraints.constraint import Kind, difference, largest, row_margins
from coldq.slot.constraints.sparse_affine import SparseAffine


@describable
@dataclass(frozen=True, init=False)
class Stacked(Kind):
    """Constraints on top of one another: their rows in order, solved together in one step.

    >>> import numpy as np, coldq
    >>> risk = coldq.QuadraticConstraint(2.0 * np.eye(2)[None], [[0.0, 0.0]], [1.0])
    >>> g = coldq.Stacked(risk, coldq.Affine([[1.0, 1.0]], [1.0]))
    >>> g.value([1.0, 1.0]), g.n_constraints
    (array([1., 1.]), 2)
    """

    parts: tuple[Any, ...]

    def __init__(self, *parts: Any) -> None:
        flat: list[Any] = []
        for part in parts:
            flat += part.parts if isinstance(part, Stacked) else [part]
        for part in flat:
            known = callable(getattr(part, "value", None)) and hasattr(part, "n_constraints")
            if isinstance(part, type) or not known:
                raise InvalidInput(
                    "Stacked takes constraints such as coldq.Affine or coldq.Convex, but got "
                    f"{part!r}"
                )
        dims = {part.dim for part in flat if hasattr(part, "dim")}
        if not flat or len(dims) > 1:
            raise InvalidInput(
                "Stacked needs constraints in equally many coordinates, but they have "
                f"{sorted(dims) or 'none'}"
            )
        joint_batch(**{f"part {k}": part.batch for k, part in enumerate(flat)})
        object.__setattr__(self, "parts", tuple(flat))

    def __getattr__(self, name: str) -> Any:
        # The number of coordinates, where a part knows it: functions of a user's own do not.
        if name == "dim":
            for part in self.parts:
                if hasattr(part, "dim"):
                    return part.dim
        raise AttributeError(name)

    @cached_property
    def for_step(self) -> Affine | SparseAffine | None:
        """One constraint of all rows, where all are affine: a step takes it in their place."""
        rows = [part for part in self.parts if part.n_constraints]
        if not rows or not all(isinstance(part, Affine | SparseAffine) for part in rows):
            return None
        if len(rows) == 1:
            return rows[0]
        b = joined([part.b for part in rows], 1)
        if self.batch or not any(isinstance(part, SparseAffine) for part in rows):
            dense = [part.dense() if isinstance(part, SparseAffine) else part for part in rows]
            return Affine.unchecked(joined([part.A for part in dense], 2), b)
        sparse = scipy_sparse()

        return SparseAffine(sparse.vstack([sparse.csr_array(part.A) for part in rows]), b)

    @property
    def n_constraints(self) -> int:
        """The number of all rows."""
        return sum(part.n_constraints for part in self.parts)

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        batches = {part.batch for part in self.parts}
        return batches.pop() if len(batches) == 1 else np.broadcast_shapes(*batches)

    def value(self, x: ArrayLike) -> Array:
        """The values of all rows."""
        return joined([part.value(x) for part in self.parts], 1)

    def jacobian(self, x: ArrayLike) -> Array:
        """The jacobians of all rows."""
        return joined([part.jacobian(x) for part in self.parts], 2)

    @property
    def has_hessian(self) -> bool:
        """Whether every row has a hessian."""
        return all(getattr(part, "has_hessian", False) for part in self.parts)

    def hessian(self, x: ArrayLike) -> Array:
        """The hessians of all rows."""
        return joined([part.hessian(x) for part in self.parts], 3)

    @property
    def is_affine(self) -> np.ndarray:
        """Which of all rows are affine."""
        own = [(getattr(part, "is_affine", False), part.n_constraints) for part in self.parts]
        return np.concatenate([np.broadcast_to(affine, n) for affine, n in own])

    def member(self, where: tuple[int, ...], batch: tuple[int, ...]) -> Stacked:
        """The parts of the member at `where` of a batch."""
        return Stacked(*(p.member(where, batch) if isinstance(p, Kind) else p for p in self.parts))

    def tightened(self, margin: ArrayLike) -> Stacked:
        """``g + margin``, each part by the margins of its own rows; leading axes broadcast.

        >>> import coldq
        >>> rows = coldq.Affine([[1.0, 1.0]], [1.0]), coldq.Affine([[1.0, -1.0]], [0.0])
        >>> coldq.Stacked(*rows).tightened([0.5, 0.0]).value([1.0, 0.0])
        array([0.5, 1. ])
        """
        rows = row_margins(margin, self.n_constraints, self.batch)
        parts: list[Any] = []
        end = 0
        for part in self.parts:
            begin, end = end, end + part.n_constraints
            parts.append(part.tightened(rows[..., begin:end]))
        return Stacked(*parts)

    def largest(self, domain: Region) -> tuple[Array, bool]:
        """``max over the domain and all rows of |g|``, and whether it is exact."""
        heights, exact = zip(*(largest(part, domain) for part in self.parts), strict=True)
        return np.max(np.broadcast_arrays(*heights), axis=0), all(exact)

    def max_difference(self, other: Stacked, domain: Region) -> tuple[Array, bool]:
        """At least ``max over the domain of |g - other|_2``; exact if one part alone moves."""
        if len(self.parts) != len(other.parts):
            raise InvalidInput(
                f"the variation from {len(other.parts)} parts to {len(self.parts)} is not known"
            )
        pairs = zip(self.parts, other.parts, strict=True)
        moves, exact = zip(*(difference(new, old, domain) for new, old in pairs), strict=True)
        total = np.sqrt(sum(np.square(move) for move in moves))
        return total, all(exact) and sum(bool(move.any()) for move in moves) <= 1
