"""Coordinates of unlike units: a box and its constraints, in units in which it is about as wide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from coldq.base.arrays import Array
from coldq.base.protocols import Domain
from coldq.slot.constraints import (
    Affine,
    BallRows,
    Convex,
    DiagonalQuadratic,
    LogCapacity,
    LowRankQuadratic,
    MaxAffine,
    QuadraticConstraint,
    SparseAffine,
    Stacked,
    Unconstrained,
)
from coldq.slot.domains import Box, Product

MAX_WIDTH_RATIO = 100.0  # of two widths: a step that is round for both is too long for one


def units_of(domain: Domain) -> Array | None:
    """A unit for each coordinate of a box, or of a product of boxes, about as large as it is wide,
    if some are far wider than others. All are powers of two, so that nothing is rounded."""
    parts = domain.domains if isinstance(domain, Product) else (domain,)
    if not all(isinstance(part, Box) for part in parts):
        return None
    box = cast(Box, domain.box)  # type: ignore[attr-defined]
    given = box.upper - box.lower
    widest = given.max(initial=0.0)
    width = np.where(given > 0.0, given, widest)
    if not (0.0 < widest < np.inf) or widest < MAX_WIDTH_RATIO * width.min():
        return None
    return np.exp2(np.floor(np.log2(width)))


def box_in(units: Array, domain: Any) -> Box:
    """The box in other units."""
    return Box(domain.box.lower / units, domain.box.upper / units)


def rows_in(units: Array, g: Any) -> Any:
    """A constraint as a function of ``x / units``: of its own kind, or as a function."""
    made = KINDS.get(cast("type[Any]", type(g)))
    return as_functions(g, units) if made is None else made(g, units)


def as_functions(g: Any, units: Array) -> Any:
    """One of a kind that is not known here."""
    square = units[:, None] * units

    def bend(z: Array) -> Array:
        return g.hessian(z * units) * square

    return Convex(
        lambda z: g.value(z * units),
        lambda z: g.jacobian(z * units) * units,
        bend if getattr(g, "has_hessian", False) else None,
        g.n_constraints,
        vectorised=True,
    )


def affine(g: Affine, units: Array) -> Affine:
    """Affine rows, or the model of what was measured."""
    if g.measured is None:
        return Affine(g.A * units, g.b)
    return Affine.from_measurement(g.measured_at / units, g.measured, g.A * units)  # type: ignore[operator,arg-type]


def diagonal(g: Any, units: Array) -> DiagonalQuadratic:
    return DiagonalQuadratic(g.d * units * units, g.q * units, g.r)


KINDS: dict[type, Callable[[Any, Array], Any]] = {
    Affine: affine,
    BallRows: diagonal,
    DiagonalQuadratic: diagonal,
    LogCapacity: lambda g, u: LogCapacity(g.demand, g.scale, g.rate * u),
    LowRankQuadratic: lambda g, u: LowRankQuadratic(g.d * u * u, g.F * u[:, None], g.q * u, g.r),
    MaxAffine: lambda g, u: MaxAffine(g.A * u, g.b),
    QuadraticConstraint: lambda g, u: QuadraticConstraint.unchecked(
        g.P * u * u[:, None], g.q * u, g.r
    ),
    SparseAffine: lambda g, u: SparseAffine._of_parts(  # pyright: ignore[reportPrivateUsage]
        g.data * u[g.indices], g.indices, g.indptr, g.shape, g.b
    ),
    Stacked: lambda g, u: Stacked(*(rows_in(u, part) for part in g.parts)),
    Unconstrained: lambda g, u: g,
}
