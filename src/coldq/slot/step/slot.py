"""What a step is given, in the library's own objects, and the arrays that solvers take of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import FLOAT, Array, core_contiguous, first_index
from coldq.base.errors import InvalidInput
from coldq.slot.constraints import Affine
from coldq.slot.constraints.quadratic import QuadraticConstraint
from coldq.solver.problem import HINGE, AffineProblem, BallRow, DoNotFit, Part, append, zeros_of


class Slot(NamedTuple):
    """The per-slot problem: min over x in the domain of ``<gradient, x - center> + alpha
    |x - center|^2``, and a penalty of the constraint whose multipliers have bounds."""

    center: Array
    gradient: Array
    alpha: Array
    multiplier_upper: Array
    multiplier_lower: Any
    constraint: Any
    domain: Any

    @property
    def low(self) -> Array:
        """`multiplier_lower` as an array."""
        if self.multiplier_lower is HINGE:
            return zeros_of(self.constraint.n_constraints)
        return np.asarray(self.multiplier_lower)

    def require_fit(self) -> None:
        """Raise unless all have as many rows and coordinates; leading axes are seen to later."""
        g, p = self.constraint, self.domain.dim
        coordinates = self.center.shape[-1], self.gradient.shape[-1], getattr(g, "dim", p)
        if coordinates != (p, p, p) or self.multiplier_upper.shape[-1:] != (g.n_constraints,):
            raise DoNotFit

    def require_one_way(self, parts: Iterable[Any]) -> None:
        """Raise if a quadratic row of the constraint has a negative `multiplier_lower`."""
        begin = 0
        for part in parts if self.multiplier_lower is not HINGE else ():
            own = self.low[..., begin : begin + part.n_constraints]
            begin += part.n_constraints
            if isinstance(part, QuadraticConstraint) and (own < 0.0).any():
                raise one_way("quadratic", own)

    def misfit(self) -> InvalidInput:
        """The error for arrays that the core cannot read, or that do not belong together."""
        center, gradient, _, high, _, constraint, domain = self
        for name, given in self._asdict().items():
            array: Any = np.asarray(given)
            if isinstance(given, np.ndarray | np.generic) and not (
                array.dtype == FLOAT and core_contiguous(array, min(array.ndim, 1))
            ):
                gaps = "" if array.dtype != FLOAT else " with gaps between its entries"
                return InvalidInput(
                    f"{name} must be what np.ascontiguousarray({name}, np.float64) gives, but is "
                    f"of {array.dtype}{gaps}: was the state changed by hand?"
                )
        return InvalidInput(
            f"decisions of shape {center.shape} ({center.dtype}), gradients {gradient.shape}, "
            f"bounds of multipliers {high.shape}, a {type(constraint).__name__} of "
            f"{constraint.n_constraints} rows in {getattr(constraint, 'dim', domain.dim)} "
            f"coordinates with leading axes {constraint.batch}, and a domain of {domain.dim} "
            f"coordinates with leading axes {domain.batch} do not fit together: was the state made "
            "by another learner, or changed by hand?"
        )

    def not_finite(self) -> InvalidInput | None:
        """The error that names the first array which no step can be made of, if there is one."""
        for name, array in zip(self._fields[:4], self, strict=False):
            wrong = np.isnan(array) if name == "multiplier_upper" else ~np.isfinite(array)
            if wrong.any():  # enforced rows have infinite weights
                where = first_index(wrong)
                place = f" at index {where}" if where else ""
                return InvalidInput(f"{name} must be finite, but is {array[where]}{place}")
        return None

    def affine_problem(self) -> AffineProblem:
        """Affine rows, with those of the domain after them, which have no price, in its box."""
        center, gradient, alpha, high, low, constraint, domain = self
        own, box, (n, p) = domain.rows, domain.box, constraint.A.shape[-2:]
        if p != domain.dim or high.shape[-1:] != (n,):  # the core looks at the rest
            raise DoNotFit
        if low is not HINGE:
            low = append(np.asarray(low), own.multiplier_lower, 1)
        elif n in own.hinges:
            low = own.hinges[n]
        else:
            low = own.hinges[n] = append(zeros_of(n), own.multiplier_lower, 1)
        A, b = append(constraint.A, own.A, 2), append(constraint.b, own.b, 1)
        return AffineProblem(
            center, gradient, alpha, low, append(high, own.multiplier_upper, 1),
            zeros_of(b.shape[-1]), A, b, box.lower, box.upper,
        )  # fmt: skip


class Bounds(NamedTuple):
    """A domain as bounds, affine and quadratic rows with the least of their multipliers, and,
    where there is one, the point that all these are relative to."""

    lower: Array
    upper: Array
    enforced: tuple[tuple[Part, float], ...]
    shift: Array | None

    def from_shift(self, x: Array, domain: Any) -> Array:
        """Answers in the domain's own coordinates."""
        if self.shift is None:
            return x
        return np.clip(x + self.shift, domain.box.lower, domain.box.upper)


def bounds_of(domain: Any) -> Bounds:
    """What makes a domain.

    A ball farther than its radius from the origin is brought there: it has no digits to lose in
    ``|x|^2 - 2 <c, x> + |c|^2 - r^2``.
    """
    enforced, box, p, shift = domain.enforced, domain.box, domain.dim, None
    for row, _ in enforced:
        if isinstance(row, BallRow) and (np.abs(row.center).max(axis=-1) > row.radius).any():
            shift = np.zeros((*domain.batch, p)) if shift is None else shift
            shift[..., row.first : row.first + row.center.shape[-1]] = row.center
    parts = tuple(
        (in_ball(row, p, shift) if isinstance(row, BallRow) else part_of(row).moved(shift), least)
        for row, least in enforced
    )
    if shift is None:
        return Bounds(box.lower, box.upper, parts, None)
    return Bounds(box.lower - shift, box.upper - shift, parts, shift)


def part_of(rows: Affine | QuadraticConstraint) -> Part:
    """The arrays of affine or quadratic rows."""
    if isinstance(rows, QuadraticConstraint):
        return Part(rows.P, rows.q, rows.r)
    return Part(None, rows.A, rows.b)


def in_ball(row: BallRow, p: int, shift: Array | None) -> Part:
    """A ball's row squared, in units of the radius, as a function of ``x - shift``."""
    last = row.first + row.center.shape[-1]
    inside = (np.arange(p) >= row.first) & (np.arange(p) < last)
    batch = np.broadcast_shapes(row.radius.shape, row.center.shape[:-1])
    middle = np.zeros((*batch, 1, p))
    middle[..., 0, row.first : last] = row.center
    if shift is not None:
        middle = np.where(inside, middle - shift[..., None, :], 0.0)
    radius = np.broadcast_to(row.radius, middle.shape[:-2])[..., None]
    away = np.sqrt(np.square(middle).sum(axis=-1))
    P = np.broadcast_to(np.diag(2.0 * inside), (*middle.shape, p)) / radius[..., None, None]
    limit = (radius - away) * ((radius + away) / radius)
    return Part(P, -2.0 * middle / radius[..., None], limit)


def one_way(kind: str, low: Array) -> InvalidInput:
    """The error for a negative `multiplier_lower` of a row that is not affine."""
    return InvalidInput(
        f"a {kind} row is convex one way only: multiplier_lower must not be negative, but is {low}"
    )
