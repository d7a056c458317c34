"""Products: each domain has some of the coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, joined, joint_batch, point
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput
from coldq.slot.constraints import Affine
from coldq.slot.domains.box import Box
from coldq.slot.domains.domain import MAX_DISTANCE_RATIO, Domain, require_domain
from coldq.solver.simplices import Blocks


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class Product(Domain):
    """The product of several domains: each has some of the coordinates, in order.

    >>> import coldq
    >>> X = coldq.Product(coldq.Simplex(2), coldq.Box(0.0, 5.0, dim=1))
    >>> X.dim, X.project([1.0, 1.0, 9.0])
    (3, array([0.5, 0.5, 5. ]))
    """

    domains: tuple[Domain, ...]

    def __init__(self, *domains: Domain) -> None:
        if not domains:
            raise InvalidInput("domains must name at least one domain, but is empty")
        for domain in domains:
            require_domain(domain)
        self._set(domains=domains)
        joint_batch(**{f"domain {k}": part.batch for k, part in enumerate(domains)})
        self._set(box=self._beside([part.box for part in domains]))

    def _beside(self, boxes: list[Box]) -> Box:
        """The product of boxes, which is a box."""
        return Box(_joined([b.lower for b in boxes]), _joined([b.upper for b in boxes]))

    @cached_property
    def around(self) -> Box:  # type: ignore[override]
        """The smallest box around the domain that is known, part by part."""
        return self._beside([part.around for part in self.domains])

    def ends(self, A: Array) -> tuple[Array, Array, bool]:
        """The least and the greatest ``A x``, row by row: the parts' added up."""
        if self.blocks is not None and np.isfinite(self.box.lower).all():
            return super().ends(A)
        least, greatest, exact = np.zeros(()), np.zeros(()), True
        for part, rows in self._parts(A):
            low, high, sharp = part.ends(rows)
            least, greatest, exact = least + low, greatest + high, exact and sharp
        return least, greatest, exact

    @cached_property
    def enforced(self) -> tuple[tuple[Any, float], ...] | None:
        """The parts' enforced rows in the coordinates of the whole; None if one is unknown."""
        enforced: list[tuple[Any, float]] = []
        for part, (first, last) in zip(self.domains, self.edges(), strict=True):
            if part.enforced is None:
                return None
            for g, low in part.enforced:
                if isinstance(g, Affine):
                    A = np.zeros((*g.A.shape[:-1], self.dim))
                    A[..., first:last] = g.A
                    enforced.append((Affine(A, g.b), low))
                else:
                    enforced.append((g._replace(first=first + g.first), low))
        return tuple(enforced)

    def edges(self) -> list[tuple[int, int]]:
        """Where the coordinates of each part begin and end."""
        ends = np.cumsum([0, *(part.dim for part in self.domains)]).tolist()
        return list(pairwise(ends))

    def _parts(self, x: Array) -> list[tuple[Any, Array]]:
        """Each domain with its coordinates of x."""
        return [
            (part, np.ascontiguousarray(x[..., first:last]))
            for part, (first, last) in zip(self.domains, self.edges(), strict=True)
        ]

    @cached_property
    def dim(self) -> int:
        """The number of coordinates p of all parts together."""
        return sum(part.dim for part in self.domains)

    @cached_property
    def polyhedral(self) -> bool:
        """Whether boxes and affine rows are all there is."""
        return all(getattr(part, "polyhedral", False) for part in self.domains)

    @cached_property
    def _segments(self) -> Blocks | None:
        """The parts' blocks, one after another."""
        parts = [getattr(part, "_segments", None) for part in self.domains]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        edges = zip(known, self.edges(), strict=True)
        return Blocks(
            np.concatenate([part.start + first for part, (first, _) in edges]),
            _joined([part.total for part in known]),
            np.concatenate([part.kind for part in known]),
        )

    @cached_property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of all parts together."""
        return np.broadcast_shapes(*(part.batch for part in self.domains))

    @property
    def diameter(self) -> Array:
        """R, or a bound on it if a part has only that."""
        squares = np.zeros(self.batch)
        for part in self.domains:
            squares = squares + np.square(part.diameter)
        return np.sqrt(squares)

    @property
    def diameter_exact(self) -> bool:
        """Whether the diameter is exact in every part."""
        return all(part.diameter_exact for part in self.domains)

    def project(self, x: ArrayLike) -> Array:
        """The nearest point, part by part."""
        x = point(x, self.dim)
        if (
            self.blocks is not None
            and x.size
            and x.min() >= -MAX_DISTANCE_RATIO
            and x.max() <= MAX_DISTANCE_RATIO
        ):
            near = x
            if self.batch:
                batch = joint_batch(x=x.shape[:-1], domain=self.batch)
                near = np.broadcast_to(x, (*batch, self.dim))
            found = self._onto_blocks(near)
            if found is not None:
                return found
        return _joined([part.project(y) for part, y in self._parts(x)])

    def contains(self, x: ArrayLike, tolerance: float = 0.0) -> np.ndarray:
        """Whether each point lies in every part, up to `tolerance` and rounding."""
        if self.blocks is not None:
            return super().contains(x, tolerance)
        inside = np.ones(self.batch, bool)
        for part, y in self._parts(point(x, self.dim)):
            inside = inside & part.contains(y, tolerance)
        return np.asarray(inside)

    def start(self) -> Array:
        """Where a learner starts unless told otherwise: where each part does."""
        if self.blocks is not None:
            return self.project(np.zeros(self.dim))
        return _joined([part.start() for part in self.domains])

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, self.domains))})"


def _joined(parts: list[Array]) -> Array:
    return np.ascontiguousarray(joined(parts, 1))
