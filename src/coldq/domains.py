"""Feasible sets X: where every decision must lie, whatever the constraints turn out to be.

Each has ``dim``, ``batch``, ``diameter``, ``project``, ``contains`` and ``start``. For the per-slot
step it also gives ``box``, a box around it, and ``hard``, what must hold beside that box: pairs of
rows and the floor of their multipliers, 0 for ``g <= 0`` and -inf for ``g = 0``.
"""

# pyright: reportIncompatibleVariableOverride=false, reportIncompatibleMethodOverride=false
# (Some domains store what others compute.)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from coldq._user_functions import call_at
from coldq._values import (
    Array,
    Value,
    first_index,
    flag,
    joint_batch,
    one_real,
    point,
    positive,
    real_array,
    whole_number,
)
from coldq.constraints import Affine
from coldq.contractions import into_ball, matvec
from coldq.errors import Infeasible, InvalidInput, NotSaveable
from coldq.solver.cascade import HALF, solve_affine, zeros_of
from coldq.solver.constants import ORIGIN_SIZE, ROUNDING
from coldq.solver.problem import BallRow

FAR = 1e15  # times its size from a domain a point's last digit is the domain: its direction is left


def require_domain(domain: Any) -> None:
    """Raise unless this is a domain."""
    known = all(hasattr(domain, part) for part in ("project", "contains", "batch"))
    if not known or not isinstance(getattr(domain, "dim", None), int):
        raise InvalidInput(f"domain must be a domain such as coldq.Box, but is {domain!r:.200}")


class Rows(NamedTuple):
    """All affine rows that must hold in a domain: ``A x <= b``, equal where the floor is -inf.

    `hinges` keeps the floors of n hinges and then these rows, as most steps need them.
    """

    A: Array
    b: Array
    floor: Array
    weights: Array
    hinges: dict[int, Array]


class Domain(Value):
    """What the library's domains share; a domain of your own need not inherit it."""

    dim: int
    batch: tuple[int, ...]
    box: Box
    hard: tuple[tuple[Any, float], ...]
    diameter: Array
    diameter_exact: bool = True

    @cached_property
    def polyhedral(self) -> bool:
        """Whether the box and affine rows are all there is."""
        return self.hard is not None and all(isinstance(g, Affine) for g, _ in self.hard)

    @cached_property
    def rows(self) -> Rows:
        """The affine ones of the hard rows, stacked."""
        parts = [(Affine(np.zeros((0, self.dim)), np.zeros(0)), 0.0)]
        parts += [(g, floor) for g, floor in self.hard if isinstance(g, Affine)]
        batch = joint_batch(**{f"rows {k}": g.batch for k, (g, _) in enumerate(parts)})
        A = [np.broadcast_to(g.A, (*batch, *g.A.shape[-2:])) for g, _ in parts]
        b = [np.broadcast_to(g.b, (*batch, g.b.shape[-1])) for g, _ in parts]
        floor = np.concatenate([np.full(g.n_constraints, floor) for g, floor in parts])
        return Rows(
            real_array("A", np.concatenate(A, axis=-2), 2),
            real_array("b", np.concatenate(b, axis=-1), 1),
            real_array("floor", floor, 1, finite=False),
            real_array("weights", np.full(floor.shape, np.inf), 1, finite=False),
            {},
        )

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
        box = self.around
        with np.errstate(invalid="ignore"):
            sides = np.stack([A * box.lower[..., None, :], A * box.upper[..., None, :]])
        sides = np.where(A == 0.0, 0.0, sides)  # 0 times an infinite bound
        return sides.min(axis=0).sum(axis=-1), sides.max(axis=0).sum(axis=-1), box is self

    def project(self, x: ArrayLike) -> Array:
        """The nearest point of the domain."""
        y, own, limit = point(x, self.dim), self.rows, FAR * self.size
        if self.batch or not (y.size and -limit <= y.min() and y.max() <= limit):
            y = np.broadcast_to(y, (*joint_batch(x=y.shape[:-1], domain=self.batch), self.dim))
            with np.errstate(invalid="ignore"):  # infinity over infinity: refused below
                y = y / np.maximum(np.abs(y).max(axis=-1, keepdims=True) / limit[..., None], 1.0)
        # A step without a gradient.
        return solve_affine(
            y, zeros_of(self.dim), HALF, own.weights, own.floor, own.A, own.b, self.box.lower,
            self.box.upper,
        ).x  # fmt: skip

    def contains(self, x: ArrayLike, tolerance: float = 0.0) -> np.ndarray:
        """Whether each point lies in the domain, up to `tolerance`.

        Bounds are met exactly, rows up to rounding: 1e-9 of the size of their terms.
        """
        x = point(x, self.dim)
        A, b, floor, *_ = self.rows
        value = matvec(A, x) - b
        size = np.abs(b) + matvec(np.abs(A), np.maximum(np.abs(x), ORIGIN_SIZE))
        room = one_real("tolerance", tolerance) + ROUNDING * size
        met = (value <= room) & ((floor == 0.0) | (value >= -room))
        return np.asarray(self.box.contains(x, tolerance) & met.all(axis=-1))

    def start(self) -> Array:
        """Where a learner starts unless told otherwise: the point nearest to the origin."""
        return self.project(np.zeros(self.dim))


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Box(Domain):
    """The box ``{x : lower <= x <= upper}``, bounds infinite where there are none.

    Parameters
    ----------
    lower, upper
        Numbers, or arrays of shape ``(p,)``, or ``(..., p)`` for a batch of different boxes.
    dim
        The number of coordinates p. Needed when both bounds are numbers, else a check.

    >>> import coldq
    >>> X = coldq.Box(0.0, 5.0, dim=3)
    >>> X.project([-1.0, 2.0, 9.0])
    array([0., 2., 5.])
    >>> X.diameter.round(6)
    np.float64(8.660254)
    """

    lower: Array
    upper: Array
    hard: ClassVar[tuple[()]] = ()
    bounds: ClassVar[Array | None]

    def __init__(self, lower: ArrayLike, upper: ArrayLike, dim: int | None = None) -> None:
        low = real_array("lower", lower, 0, finite=False)
        high = real_array("upper", upper, 0, finite=False)
        for name, bound in (("lower", low), ("upper", high)):
            if np.isnan(bound).any():
                raise InvalidInput(f"{name} must not be NaN")
        if dim is not None:
            dim = whole_number("dim", dim, 1)
        elif low.ndim == high.ndim == 0:
            raise InvalidInput("Box needs dim=p when both of its bounds are numbers")
        try:
            shape = np.broadcast_shapes(low.shape, high.shape, () if dim is None else (dim,))
        except ValueError:
            raise InvalidInput(
                f"lower of shape {low.shape}, upper of shape {high.shape}"
                + ("" if dim is None else f" and dim = {dim}")
                + " do not fit together"
            ) from None
        if shape[-1] == 0 or (dim is not None and shape[-1] != dim):
            raise InvalidInput(f"dim is {dim}, but the bounds have {shape[-1]} coordinates")
        low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
        empty = (low > high) | (low == np.inf) | (high == -np.inf)
        if empty.any():
            where = first_index(empty)
            raise InvalidInput(
                f"the domain is empty: lower = {low[where]} is above upper = {high[where]} "
                f"at index {where}"
            )
        both = real_array("bounds", np.stack([low, high]), 2, finite=False)
        # One box's bounds as one array: how the kernel for a single decision takes them.
        bounds = None if len(shape) > 1 else both
        self._set(lower=both[0], upper=both[1], bounds=bounds)

    @property
    def dim(self) -> int:
        """The number of coordinates p."""
        return self.lower.shape[-1]

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of the bounds; ``()`` for one box."""
        return self.lower.shape[:-1]

    @property
    def box(self) -> Box:
        """The box itself."""
        return self

    @property
    def diameter(self) -> Array:
        """R, the largest distance between two points of the box; infinite if it is unbounded."""
        return np.sqrt(np.square(self.upper - self.lower).sum(axis=-1))

    def project(self, x: ArrayLike) -> Array:
        """The nearest point of the box."""
        x = point(x, self.dim)
        try:
            return np.minimum(np.maximum(x, self.lower), self.upper)
        except ValueError:
            joint_batch(x=x.shape[:-1], domain=self.batch)  # which says so
            raise

    def contains(self, x: ArrayLike, tolerance: float = 0.0) -> np.ndarray:
        """Whether each point lies in the box, up to `tolerance` in every coordinate."""
        x, tolerance = point(x, self.dim), one_real("tolerance", tolerance)
        joint_batch(x=x.shape[:-1], domain=self.batch)
        inside = (x >= self.lower - tolerance) & (x <= self.upper + tolerance)
        return np.asarray(inside.all(axis=-1))

    def __repr__(self) -> str:
        low, high = np.unique(self.lower), np.unique(self.upper)
        if low.size == high.size == 1 and not self.batch:
            return f"Box({low[0]}, {high[0]}, dim={self.dim})"
        return super().__repr__()


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
        self._set(box=Box(0.0, upper), hard=((whole, -np.inf),))

    @cached_property
    def batch(self) -> tuple[int, ...]:
        """The leading axes; ``()`` for one simplex."""
        return np.broadcast_shapes(self.total.shape, self.cap.shape)

    def ends(self, A: Array) -> tuple[Array, Array, bool]:
        """The least and the greatest ``A x``, row by row: the best coordinates, filled."""
        cap = np.minimum(self.cap, self.total)[..., None]
        amounts = np.clip(self.total[..., None] - cap * np.arange(self.dim), 0.0, cap)
        up = np.sort(A, axis=-1)
        least, greatest = (
            (rows * amounts[..., None, :]).sum(axis=-1) for rows in (up, up[..., ::-1])
        )
        return least, greatest, True

    @property
    def vertices(self) -> Array | None:
        """The corners, of shape ``(..., p, p)``; None under a cap, where they are too many."""
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
    hard: tuple[tuple[Affine, float], ...]
    diameter_exact: ClassVar[bool] = False

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
        hard = []
        for names, rows, limits, floor in (
            ("A and b", A, b, 0.0),
            ("A_eq and b_eq", A_eq, b_eq, -np.inf),
        ):
            if (rows is None) != (limits is None):
                raise InvalidInput(f"a Polytope needs both {names} or neither")
            if rows is not None and limits is not None:
                hard.append((Affine(rows, limits), floor))
        dims = {g.dim for g, _ in hard}
        if len(dims) != 1:
            raise InvalidInput(
                f"A and A_eq need equally many coordinates, but have {sorted(dims)}"
                if dims
                else "a Polytope needs rows, A and b or A_eq and b_eq; without any use coldq.Box"
            )
        box = Box(lower, upper, dims.pop())
        self._set(box=box, hard=tuple(hard))
        joint_batch(bounds=box.batch, A=self.rows.A.shape[:-2], b=self.rows.b.shape[:-1])
        try:
            self._set(_start=Domain.project(self, np.zeros(self.dim)))
        except Infeasible as clash:
            where = f" at index {clash.indices[0]}" if self.batch else ""
            raise InvalidInput(
                f"the domain is empty: no point within the bounds meets every row{where}"
            ) from None

    def _arguments(self) -> dict[str, Any]:
        found: dict[str, Any] = {"lower": self.box.lower, "upper": self.box.upper}
        for g, floor in self.hard:
            A, b = ("A", "b") if floor == 0.0 else ("A_eq", "b_eq")
            found |= {A: g.A, b: g.b}
        return found

    @property
    def dim(self) -> int:
        """The number of coordinates p."""
        return self.box.dim

    @cached_property
    def batch(self) -> tuple[int, ...]:
        """The leading axes; ``()`` for one polytope."""
        return np.broadcast_shapes(self.box.batch, *(g.batch for g, _ in self.hard))

    @cached_property
    def around(self) -> Box:
        """The smallest box around the polytope, but for rounding.

        Two linear programs a coordinate, solved when it is first asked for.
        """
        from coldq.solver.linear_programs import smallest_box

        A, b, floor, *_ = self.rows
        A = np.broadcast_to(A, self.batch + A.shape[-2:])
        b = np.broadcast_to(b, self.batch + b.shape[-1:])
        lower = np.array(np.broadcast_to(self.box.lower, (*self.batch, self.dim)))
        upper = np.array(np.broadcast_to(self.box.upper, (*self.batch, self.dim)))
        for at in np.ndindex(*self.batch):
            lower[at], upper[at] = smallest_box(A[at], b[at], lower[at], upper[at], floor)
        return Box(lower, upper)

    @property
    def diameter(self) -> Array:
        """A bound on R: the diagonal of the smallest box around the polytope; not below R."""
        return self.around.diameter

    def start(self) -> Array:
        """Where a learner starts unless told otherwise: the point nearest to the origin."""
        return np.array(self._start)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        at_most = sum(g.n_constraints for g, floor in self.hard if floor == 0.0)
        equal = sum(g.n_constraints for g, floor in self.hard) - at_most
        return f"Polytope(dim={self.dim}, {at_most} rows, {equal} equal, in {self.box})"


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
            raise InvalidInput("center needs at least one coordinate")
        reach = self.radius[..., None]
        self._set(
            box=Box(self.center - reach, self.center + reach),
            hard=((BallRow(self.center, self.radius), 0.0),) if self.dim > 1 else (),
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
        room = (one_real("tolerance", tolerance) + ROUNDING * size)[..., None]
        return np.asarray((np.abs(x - self.project(x)) <= room).all(axis=-1))


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Product(Domain):
    """The product of several domains: each has some of the coordinates, in order.

    >>> import coldq
    >>> X = coldq.Product(coldq.Simplex(2), coldq.Box(0.0, 5.0, dim=1))
    >>> X.dim, X.project([1.0, 1.0, 9.0])
    (3, array([0.5, 0.5, 5. ]))
    """

    domains: tuple[Any, ...]

    def __init__(self, *domains: Any) -> None:
        if not domains:
            raise InvalidInput("a Product needs at least one domain")
        for domain in domains:
            require_domain(domain)
        self._set(domains=domains)
        joint_batch(**{f"domain {k}": part.batch for k, part in enumerate(domains)})
        self._set(box=self._beside([part.box for part in domains]), hard=self._placed())

    def _beside(self, boxes: list[Box]) -> Box:
        """The product of boxes, which is a box."""
        return Box(self._joined([b.lower for b in boxes]), self._joined([b.upper for b in boxes]))

    @cached_property
    def around(self) -> Box:
        """The smallest box around the domain that is known, part by part."""
        return self._beside([part.around for part in self.domains])

    def ends(self, A: Array) -> tuple[Array, Array, bool]:
        """The least and the greatest ``A x``, row by row: the parts' added up."""
        least, greatest, exact = np.zeros(()), np.zeros(()), True
        for part, rows in self._parts(A):
            low, high, sharp = part.ends(rows)
            least, greatest, exact = least + low, greatest + high, exact and sharp
        return least, greatest, exact

    def _placed(self) -> tuple[tuple[Any, float], ...] | None:
        """The parts' hard rows in the coordinates of the whole; None if one is unknown."""
        hard: list[tuple[Any, float]] = []
        for part, (first, last) in zip(self.domains, self._edges(), strict=True):
            if part.hard is None:
                return None
            for g, floor in part.hard:
                if isinstance(g, Affine):
                    A = np.zeros((*g.A.shape[:-1], self.dim))
                    A[..., first:last] = g.A
                    hard.append((Affine(A, g.b), floor))
                else:
                    hard.append((g._replace(first=first + g.first), floor))
        return tuple(hard)

    def _edges(self) -> list[tuple[int, int]]:
        ends = np.cumsum([0, *(part.dim for part in self.domains)]).tolist()
        return list(pairwise(ends))

    def _parts(self, x: Array) -> list[tuple[Any, Array]]:
        """Each domain with its coordinates of x."""
        return [
            (part, np.ascontiguousarray(x[..., first:last]))
            for part, (first, last) in zip(self.domains, self._edges(), strict=True)
        ]

    @property
    def dim(self) -> int:
        """The number of coordinates p of all parts together."""
        return sum(part.dim for part in self.domains)

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
        return self._joined([part.project(y) for part, y in self._parts(x)])

    def contains(self, x: ArrayLike, tolerance: float = 0.0) -> np.ndarray:
        """Whether each point lies in every part, up to `tolerance` and rounding."""
        inside = np.ones(self.batch, bool)
        for part, y in self._parts(point(x, self.dim)):
            inside = inside & part.contains(y, tolerance)
        return np.asarray(inside)

    def start(self) -> Array:
        """Where a learner starts unless told otherwise: where each part does."""
        return self._joined([part.start() for part in self.domains])

    @staticmethod
    def _joined(parts: list[Array]) -> Array:
        batch = np.broadcast_shapes(*(y.shape[:-1] for y in parts))
        whole = [np.broadcast_to(y, (*batch, y.shape[-1])) for y in parts]
        return np.ascontiguousarray(np.concatenate(whole, axis=-1))

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, self.domains))})"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class CustomDomain(Domain):
    """Any closed convex set, given by its projection and its diameter.

    It works with every learner that only projects: :class:`~coldq.OGD`, :class:`~coldq.Yi2023`,
    :class:`~coldq.SinhaVaze`. The per-slot step of the others needs a set that it can read.

    Parameters
    ----------
    dim
        The number of coordinates p.
    project
        The projection. It gets one point of shape ``(p,)`` at a time, unless `vectorised` says that
        it takes ``(..., p)``; then a batch gives the bits of one by one only if it sees to that.
    diameter
        R, or a bound on it; infinite if there is none.
    start
        Where a learner starts; the projection of the origin if left out.

    >>> import numpy as np, coldq
    >>> X = coldq.CustomDomain(2, lambda x: np.full(2, max(x.mean(), 0.0)), diameter=np.inf)
    >>> X.project([1.0, 3.0]), X.contains([1.0, 3.0])
    (array([2., 2.]), array(False))
    """

    dim: int
    projection: Callable[[Array], Any]
    diameter: Array
    given_start: Array | None
    vectorised: bool
    batch: ClassVar[tuple[()]] = ()
    hard: ClassVar[None] = None
    diameter_exact: ClassVar[bool] = False

    def __init__(
        self,
        dim: int,
        project: Callable[[Array], Any],
        diameter: float,
        start: ArrayLike | None = None,
        *,
        vectorised: bool = False,
    ) -> None:
        if not callable(project):
            raise InvalidInput(f"project must be a function of a point, but is {project!r}")
        width = real_array("diameter", diameter, 0, finite=False)
        if width.ndim or not width >= 0.0:
            raise InvalidInput(f"diameter must be one number, not negative, but is {diameter}")
        first = None if start is None else real_array("start", start, 1)
        self._set(
            dim=whole_number("dim", dim, 1),
            projection=project,
            diameter=width,
            given_start=first,
            vectorised=flag("vectorised", vectorised),
        )
        if first is not None and (first.shape != (self.dim,) or not self.contains(first)):
            raise InvalidInput(f"start must be one point of the domain, but is {first}")

    def _arguments(self) -> dict[str, Any]:
        return super()._arguments() | {"project": self.projection, "start": self.given_start}

    @property
    def box(self) -> Box:
        """All points that are within the diameter of the start."""
        return Box(self.start() - self.diameter, self.start() + self.diameter)

    def project(self, x: ArrayLike) -> Array:
        """The user's projection, checked."""
        x = point(x, self.dim)
        return call_at("the projection", self.projection, x, (self.dim,), self.vectorised)

    def contains(self, x: ArrayLike, tolerance: float = 0.0) -> np.ndarray:
        """Whether the projection leaves each point where it is, up to `tolerance` and rounding."""
        x = point(x, self.dim)
        room = one_real("tolerance", tolerance) + ROUNDING * (1.0 + np.abs(x))
        return np.asarray((np.abs(x - self.project(x)) <= room).all(axis=-1))

    def start(self) -> Array:
        """The start given, or the projection of the origin."""
        if self.given_start is not None:
            return np.array(self.given_start)
        return self.project(np.zeros(self.dim))

    def __reduce__(self) -> Any:
        if not hasattr(self.projection, "__name__"):  # an object; it saves itself, or says why not
            parts = (self.dim, self.projection, self.diameter, self.given_start)
            return _custom_domain, (*parts, self.vectorised)
        raise NotSaveable(
            "a domain whose projection is a plain function cannot be saved; give it a frozen "
            "dataclass of your own with __call__"
        )


def _custom_domain(dim: int, project: Any, diameter: Any, start: Any, vectorised: bool) -> Any:
    return CustomDomain(dim, project, diameter, start, vectorised=vectorised)
