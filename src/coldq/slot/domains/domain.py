"""What the library's domains share: the box and the rows that the per-slot step reads."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, Value, joint_batch, one_real, point, real_array
from coldq.base.contractions import dot, least_on_blocks, matvec
from coldq.base.errors import InvalidInput
from coldq.slot.constraints import Affine
from coldq.solver.answer import TOLERANCE
from coldq.solver.cascade import solve_affine
from coldq.solver.constants import ENFORCED_TOLERANCE, ORIGIN_SIZE
from coldq.solver.problem import HALF, zeros_of
from coldq.solver.simplices import Blocks, blocks_of, project_on_blocks

if TYPE_CHECKING:
    from coldq.slot.domains.box import Box

MAX_DISTANCE_RATIO = (
    1e15  # times its size from a domain a point's last digit is the domain: its direction is left
)


def require_domain(domain: Any) -> None:
    """Raise unless this is a domain."""
    known = hasattr(domain, "project") and hasattr(domain, "contains") and hasattr(domain, "batch")
    if not known or not isinstance(getattr(domain, "dim", None), int):
        raise InvalidInput(f"domain must be a domain such as coldq.Box, but is {domain!r:.200}")


def diameter_of(domain: Any, words: str) -> Any:
    """The diameter of a bounded domain, as the scale of steps; `words` say who needs it to be."""
    require_domain(domain)
    if not np.isfinite(domain.diameter).all():
        raise InvalidInput(f"{words} a bounded domain, but it is {domain}")
    return scale_of(domain.diameter)


def scale_of(diameter: Any) -> Any:
    """A diameter as the scale of steps: 1 where it is zero, because from one point none leads.

    >>> from coldq.slot.domains import scale_of
    >>> scale_of(2.5), scale_of(0.0)
    (2.5, 1.0)
    """
    if isinstance(diameter, float):
        return diameter or 1.0
    return np.where(diameter > 0.0, diameter, 1.0)


def require_single(domain: Any, name: str) -> None:
    """Raise unless this is one domain and not a batch."""
    require_domain(domain)
    if domain.batch:
        raise InvalidInput(
            f"{name} takes one domain, but this one has the leading axes {domain.batch}"
        )


class Rows(NamedTuple):
    """All affine rows that must hold in a domain: ``A x <= b``, equal where the floor is -inf.

    `hinges` keeps the floors of n hinges and then these rows, as most steps need them.
    """

    A: Array
    b: Array
    multiplier_lower: Array
    multiplier_upper: Array
    hinges: dict[int, Array]


class Domain(Value):
    """What the library's domains share; a domain of your own need not inherit it."""

    # Some domains store what others compute.
    dim: Any
    batch: Any
    box: Any
    enforced: Any
    diameter: Any
    diameter_exact: Any = True

    @cached_property
    def polyhedral(self) -> bool:
        """Whether the box and affine rows are all there is."""
        return self.enforced is not None and all(isinstance(g, Affine) for g, _ in self.enforced)

    @cached_property
    def rows(self) -> Rows:
        """The affine ones of the enforced rows, stacked."""
        parts = [(Affine(np.zeros((0, self.dim)), np.zeros(0)), 0.0)]
        parts += [(g, floor) for g, floor in self.enforced if isinstance(g, Affine)]
        batch = joint_batch(**{f"rows {k}": g.batch for k, (g, _) in enumerate(parts)})
        A = [np.broadcast_to(g.A, (*batch, *g.A.shape[-2:])) for g, _ in parts]
        b = [np.broadcast_to(g.b, (*batch, g.b.shape[-1])) for g, _ in parts]
        floor = np.concatenate([np.full(g.n_constraints, floor) for g, floor in parts])
        return Rows(
            real_array("A", np.concatenate(A, axis=-2), 2),
            real_array("b", np.concatenate(b, axis=-1), 1),
            real_array("multiplier_lower", floor, 1, finite=False),
            real_array("multiplier_upper", np.full(floor.shape, np.inf), 1, finite=False),
            {},
        )

    @cached_property
    def _segments(self) -> Blocks | None:
        """The coordinates in blocks, if sums of blocks are all that holds beside the bounds."""
        return blocks_of(self.dim, *self.rows[:3]) if self.polyhedral else None

    @cached_property
    def blocks(self) -> Blocks | None:
        """The sums that blocks of coordinates have, if these are all that holds beside the bounds.

        Where each block begins, its sum, and what that is: -inf if exactly this, 0 if at most, inf
        if anything. Else None. The per-slot step and the projection use them.

        >>> import coldq
        >>> X = coldq.Product(coldq.Simplex(3), coldq.Simplex(2, total=5.0))
        >>> X.blocks.start, X.blocks.total
        (array([0., 3.]), array([1., 5.]))
        """
        found = self._segments
        return found if found is not None and found.summed.size else None

    @cached_property
    def size(self) -> Array:
        """The largest finite bound or limit of each polyhedral domain of a batch, at least 1."""
        limits = np.ones(self.batch)
        for array in (self.box.lower, self.box.upper, self.rows.b):
            sizes = np.where(np.isfinite(array), np.abs(array), 0.0)
            limits = np.maximum(limits, sizes.max(axis=-1, initial=0.0))
        return limits

    @property
    def around(self) -> Box:
        """The smallest box around the domain that is known; of a box, itself."""
        return self.box

    def ends(self, A: Array) -> tuple[Array, Array, bool]:
        """The least and the greatest ``A x``, row by row, and whether both are reached.

        A has shape ``(..., N, p)``. If not said otherwise, this is over the box around the domain.

        >>> import numpy as np, coldq
        >>> coldq.Simplex(3).ends(np.array([[1.0, 2.0, 5.0]]))
        (array([1.]), array([5.]), True)
        """
        if self.blocks is not None and np.isfinite(self.box.lower).all():
            start, total, kind = self.blocks
            bounds = self.box.lower[..., None, :], self.box.upper[..., None, :]
            given = *bounds, start, total[..., None, :], kind
            return least_on_blocks(A, *given), -least_on_blocks(-A, *given), True
        box = self.around
        with np.errstate(invalid="ignore"):
            sides = np.stack([A * box.lower[..., None, :], A * box.upper[..., None, :]])
        sides = np.where(A == 0.0, 0.0, sides)  # 0 times an infinite bound
        ones = np.ones(A.shape[-1])
        return dot(sides.min(axis=0), ones), dot(sides.max(axis=0), ones), box is self

    def project(self, x: ArrayLike) -> Array:
        """The nearest point of the domain."""
        y, limit = point(x, self.dim), MAX_DISTANCE_RATIO * self.size
        if self.batch or not (y.size and -limit <= y.min() and y.max() <= limit):
            y = np.broadcast_to(y, (*joint_batch(x=y.shape[:-1], domain=self.batch), self.dim))
            with np.errstate(invalid="ignore"):  # infinity over infinity: refused below
                y = y / np.maximum(np.abs(y).max(axis=-1, keepdims=True) / limit[..., None], 1.0)
        found = self._onto_blocks(y)
        if found is not None:
            return found
        own = self.rows
        # A step without a gradient.
        return solve_affine(
            y, zeros_of(self.dim), HALF, own.multiplier_upper, own.multiplier_lower, own.A, own.b,
            self.box.lower, self.box.upper,
        ).x  # fmt: skip

    def _onto_blocks(self, y: Array) -> Array | None:
        """The nearest point, threshold by threshold; None if there is more to do."""
        if self.blocks is None:
            return None
        x, _, off = project_on_blocks(y, self.blocks, self.box.lower, self.box.upper)
        worst = off if type(off) is float else off.max(initial=0.0)
        return x if worst <= TOLERANCE else None

    def contains(self, x: ArrayLike, tolerance: float = 0.0) -> np.ndarray:
        """Whether each point lies in the domain, up to `tolerance`.

        Bounds are met exactly, rows up to rounding: 1e-9 of the size of their terms.
        """
        x = point(x, self.dim)
        joint_batch(x=x.shape[:-1], domain=self.batch)
        if self.blocks is not None:
            _, b, floor = self.blocks
            value, terms = self.blocks.sums(x), self.blocks.sums(np.maximum(np.abs(x), ORIGIN_SIZE))
        else:
            A, b, floor, *_ = self.rows
            value, terms = matvec(A, x), matvec(np.abs(A), np.maximum(np.abs(x), ORIGIN_SIZE))
        room = one_real("tolerance", tolerance) + ENFORCED_TOLERANCE * (np.abs(b) + terms)
        over = value - b
        near = (over <= room) & ((floor == 0.0) | (over >= -room)) & np.isfinite(value)
        met = (floor == np.inf) | near
        return np.asarray(self.box.contains(x, tolerance) & met.all(axis=-1))

    def start(self) -> Array:
        """Where a learner starts unless told otherwise: the point nearest to the origin."""
        return self.project(np.zeros(self.dim))
