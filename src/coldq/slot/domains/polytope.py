"""Polytopes: affine rows within a box."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, joint_batch
from coldq.base.describe import describable
from coldq.base.errors import Infeasible, InvalidInput
from coldq.slot.constraints import Affine
from coldq.slot.domains.box import Box
from coldq.slot.domains.domain import Domain


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Polytope(Domain):
    """``{x : A x <= b, A_eq x = b_eq, lower <= x <= upper}``, each part optional.

    Parameters
    ----------
    A, b, A_eq, b_eq
        Rows of shape ``(..., M, p)`` and their limits of shape ``(..., M)``.
    lower, upper
        As for :class:`Box`.

    >>> import coldq
    >>> X = coldq.Polytope([[1.0, 2.0]], [2.0], lower=0.0)
    >>> X.project([2.0, 2.0])
    array([1.2, 0.4])
    >>> X.diameter.round(3), X.diameter_exact
    (np.float64(2.236), False)
    """

    box: Box
    enforced: tuple[tuple[Affine, float], ...]
    diameter_exact = False

    def __init__(
        self,
        A: ArrayLike | None = None,
        b: ArrayLike | None = None,
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        *,
        A_eq: ArrayLike | None = None,
        b_eq: ArrayLike | None = None,
    ) -> None:
        enforced: list[tuple[Affine, float]] = []
        for names, rows, limits, low in (
            ("A and b", A, b, 0.0),
            ("A_eq and b_eq", A_eq, b_eq, -np.inf),
        ):
            if (rows is None) != (limits is None):
                raise InvalidInput(f"a Polytope needs both {names} or neither")
            if rows is not None and limits is not None:
                enforced.append((Affine(rows, limits), low))
        dims = {g.dim for g, _ in enforced}
        if len(dims) != 1:
            raise InvalidInput(
                f"A and A_eq need equally many coordinates, but have {sorted(dims)}"
                if dims
                else "a Polytope needs rows, A and b or A_eq and b_eq; without any use coldq.Box"
            )
        box = Box(lower, upper, dims.pop())
        self._set(box=box, enforced=tuple(enforced))
        joint_batch(bounds=box.batch, A=self.rows.A.shape[:-2], b=self.rows.b.shape[:-1])
        try:
            self._set(_start=Domain.project(self, np.zeros(self.dim)))
        except Infeasible as infeasible:
            where = f" at index {infeasible.indices[0]}" if self.batch else ""
            raise InvalidInput(
                f"the domain is empty: no point within the bounds meets every row{where}"
            ) from None

    def _arguments(self) -> dict[str, Any]:
        found: dict[str, Any] = {"lower": self.box.lower, "upper": self.box.upper}
        for g, low in self.enforced:
            A, b = ("A", "b") if low == 0.0 else ("A_eq", "b_eq")
            found |= {A: g.A, b: g.b}
        return found

    @property
    def dim(self) -> int:
        """The number of coordinates p."""
        return self.box.dim

    @cached_property
    def batch(self) -> tuple[int, ...]:
        """The leading axes; ``()`` for one polytope."""
        return np.broadcast_shapes(self.box.batch, *(g.batch for g, _ in self.enforced))

    @cached_property
    def around(self) -> Box:  # type: ignore[override]
        """The smallest box around the polytope, but for rounding.

        Two linear programs a coordinate, solved when it is first asked for.
        """
        from coldq.solver.linear_programs import smallest_box

        rows, limits, low, *_ = self.rows
        rows = np.broadcast_to(rows, self.batch + rows.shape[-2:])
        limits = np.broadcast_to(limits, self.batch + limits.shape[-1:])
        lower = np.array(np.broadcast_to(self.box.lower, (*self.batch, self.dim)))
        upper = np.array(np.broadcast_to(self.box.upper, (*self.batch, self.dim)))
        for at in np.ndindex(*self.batch):
            lower[at], upper[at] = smallest_box(rows[at], limits[at], lower[at], upper[at], low)
        return Box(lower, upper)

    @property
    def diameter(self) -> Array:
        """A bound on R: the diagonal of the smallest box around the polytope; not below R."""
        return self.around.diameter

    def start(self) -> Array:
        """Where a learner starts unless told otherwise: the point nearest to the origin."""
        return np.array(self._start)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        at_most = sum(g.n_constraints for g, low in self.enforced if low == 0.0)
        equal = sum(g.n_constraints for g, _ in self.enforced) - at_most
        return f"Polytope(dim={self.dim}, {at_most} rows, {equal} equal, in {self.box})"
