"""Rows that are not plain affine: capacities, quadratics, pieces, functions, stacks, sparse rows.

Every kind on every domain that takes it. A draw picks a category, a unit for x, a unit for each
row, and then numbers around these; at moderate scales every number that a user would type lies
between 1e-3 and 1e3 and weights go up to 1e8, at extreme ones between 1e-12 and 1e12, and 1e16.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import coldq
from tests.adversary.affine_rows import judged
from tests.adversary.drawn import EXTREME, MODERATE, Draw, Drawn
from tests.adversary.judging import (
    INF,
    LONG,
    ROUNDINGS,
    Problem,
    Rows,
    Slopes,
    floored,
    found_below,
    gap,
    residual,
)

Rng = np.random.Generator
AFFINE, CURVED, GAP = 1e-9, 1e-8, 1e-6  # what docs/which-pair-is-solved-how.md promises


class Scale(NamedTuple):
    """How large and how small numbers may be: powers of ten."""

    unit: float  # of x and of rows, either way
    spread: float  # between the entries of an array
    weight: float  # of the heaviest row

    def draw(self, rng: Rng) -> float:
        return float(10.0 ** rng.uniform(-self.unit, self.unit))


SCALES = {MODERATE: Scale(2.0, 1.0, 8.0), EXTREME: Scale(8.0, 4.0, 16.0)}


# Rows.


def affine_rows(A: np.ndarray, b: np.ndarray, thin: bool = False) -> Rows:
    g: Any = coldq.SparseAffine(sparse.csr_array(A), b) if thin else coldq.Affine(A, b)
    C, c = A.astype(LONG), b.astype(LONG)
    return Rows(
        g, lambda x: C @ x - c, lambda x, room, at: (np.arange(len(b)), C, C @ x - c),
        lambda x, at: (np.abs(C) * floored(C != 0.0, at)).sum(axis=1) + np.abs(c),
        lambda by: affine_rows(A, b + by, thin),
    )  # fmt: skip


def quadratic_rows(
    P: np.ndarray, q: np.ndarray, r: np.ndarray, functions: bool = False, constraint: Any = None
) -> Rows:
    """Quadratic rows, as such, or as functions with hessians, or a constraint of the same."""
    B, a, c = P.astype(LONG), q.astype(LONG), r.astype(LONG)
    # Rounding may leave a matrix not quite positive semidefinite; with a large weight that outdoes
    # the step's own curvature, and what it says of x is not told apart from this rounding.
    dent = np.maximum(-np.linalg.eigvalsh(P.astype(float))[:, :1], 0.0) / ROUNDINGS

    def value(x: np.ndarray) -> np.ndarray:
        return (0.5 * (B @ x) + a) @ x - c

    def size(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        at = floored((a != 0.0) | B.any(axis=1), at)
        return ((0.5 * (np.abs(B) * at[:, None]).sum(axis=2) + np.abs(a)) * at).sum(
            axis=1
        ) + np.abs(c)

    g: Any = constraint or coldq.QuadraticConstraint(P, q, r)
    if functions:
        g = coldq.Convex(lambda x: (0.5 * (P @ x) + q) @ x - r, lambda x: P @ x + q, lambda x: P,
                         len(r))  # fmt: skip
    return Rows(
        g, value, lambda x, room, at: (np.arange(len(r)), B @ x + a, value(x)),
        size,
        lambda by: quadratic_rows(P, q, r + by, functions), curved=True,
        wobble=lambda x, known: np.abs(B) @ known + np.abs(a) + dent * np.sqrt(x @ x),
    )  # fmt: skip


def ball_rows(c: np.ndarray, radius: np.ndarray, margin: np.ndarray) -> Rows:
    """Ball-shaped rows: their terms are those of the way from the center, and x's rounding."""
    C, limit = c.astype(LONG), radius.astype(LONG) ** 2 - margin.astype(LONG)

    def value(x: np.ndarray) -> np.ndarray:
        return np.square(x - C).sum(axis=1) - limit

    def size(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        away = np.abs(x - C)
        least = 1e-3 * (away + at - np.abs(x)).max(axis=1, keepdims=True)
        rounding = 2e-7 * away * (np.abs(x) + np.abs(C))
        return (np.square(np.maximum(away, least)) + rounding).sum(axis=1) + np.abs(limit)

    def shifted(by: np.ndarray) -> Rows:
        moved = (limit + by).astype(float)
        return ball_rows(c, np.sqrt(np.maximum(moved, 0.0)), np.maximum(-moved, 0.0))

    return Rows(
        coldq.QuadraticConstraint.ball(c, radius).tightened(margin), value,
        lambda x, room, at: (np.arange(len(c)), 2.0 * (x - C), value(x)), size, shifted,
        curved=True, wobble=lambda x, known: 2.0 * (known + np.abs(C)),
    )  # fmt: skip


def thin_rows(d: np.ndarray, F: np.ndarray | None, q: np.ndarray, r: np.ndarray) -> Rows:
    """Diagonal rows, or with factors, judged by their matrices."""
    g: Any = coldq.QuadraticConstraint.diagonal(d, q, r)
    P = d.astype(LONG)[:, :, None] * np.eye(d.shape[1])
    size = np.abs(P)
    if F is not None:
        g = coldq.QuadraticConstraint.low_rank(d, F, q, r)
        P = P + F.astype(LONG) @ np.swapaxes(F, 1, 2)
        size = size + np.abs(F) @ np.abs(np.swapaxes(F, 1, 2))  # where P may be 0, they cancel
    return quadratic_rows(P, q, r, constraint=g)._replace(
        shifted=lambda by: thin_rows(d, F, q, r + by),
        wobble=lambda x, known: size @ known + np.abs(q),
    )


def piecewise_rows(A: np.ndarray, b: np.ndarray) -> Rows:
    C, c = A.astype(LONG), b.astype(LONG)

    def widest(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return ((np.abs(C) * floored(C != 0.0, at)).sum(axis=2) + np.abs(c)).max(axis=1)

    def slopes(x: np.ndarray, room: float, at: np.ndarray) -> Slopes:
        values = C @ x - c
        near = values >= (values.max(axis=1) - room * widest(x, at))[:, None]
        return np.nonzero(near)[0], C[near], values[near]

    return Rows(
        coldq.MaxAffine(A, b), lambda x: (C @ x - c).max(axis=1), slopes, widest,
        lambda by: piecewise_rows(A, b + by[:, None]),
    )  # fmt: skip


def capacity_rows(demand: float, scale: np.ndarray, rate: np.ndarray) -> Rows:
    s, r = scale.astype(LONG), rate.astype(LONG)

    def value(x: np.ndarray) -> np.ndarray:
        return np.array([LONG(demand) - s @ np.log1p(r * x)])

    return Rows(
        coldq.LogCapacity(demand, scale, rate), value,
        lambda x, room, at: (np.zeros(1, int), -(s * r / (1.0 + r * x))[None], value(x)),
        lambda x, at: np.array([abs(demand) + s @ np.log1p(r * floored(s * r > 0.0, at))]),
        lambda by: capacity_rows(demand - float(by[0]), scale, rate), curved=True,
    )  # fmt: skip


class Family(NamedTuple):
    """N convex functions of z: values, slopes and curvatures, for any kind of floats.

    At a kink `pieces` gives more slopes than one, each with its row and its tangent's value. Every
    piece is a bowl, at least so much bent everywhere and in every direction.
    """

    value: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    bend: Callable[[np.ndarray], np.ndarray] | None
    pieces: Callable[[np.ndarray, float], Any] | None = None
    bowl: np.ndarray | None = None


def function_rows(
    f: Family, shift: np.ndarray, zoom: float, factor: np.ndarray, by: np.ndarray, hessian: bool
) -> Rows:
    """Rows ``factor f((x - shift) zoom) - by``."""

    def value(x: np.ndarray) -> np.ndarray:
        return factor * f.value((x - shift) * zoom) - by

    def slope(x: np.ndarray) -> np.ndarray:
        return zoom * factor[:, None] * f.slope((x - shift) * zoom)

    def bend(x: np.ndarray) -> np.ndarray:
        assert f.bend is not None
        return zoom**2 * factor[:, None, None] * f.bend((x - shift) * zoom)

    def slopes(x: np.ndarray, room: float, at: np.ndarray) -> Any:
        if f.pieces is None:
            return np.arange(by.size), slope(x), value(x)
        owner, S, values = f.pieces((x - shift) * zoom, room)
        return owner, zoom * factor[owner, None] * S, factor[owner] * values - by[owner]

    def size(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        g, J = value(x), slope(x)
        at = floored(J != 0.0, at)
        return (
            (np.abs(J) * (at + np.abs(shift))).sum(axis=1)
            + np.abs(g - J @ (x - shift))
            + np.abs(by)
        )

    def wobble(x: np.ndarray, known: np.ndarray) -> np.ndarray:
        return np.abs(bend(x)) @ (known + np.abs(shift)) + np.abs(slope(x))

    g = coldq.Convex(value, slope, bend if hessian else None, by.size)
    return Rows(
        g, value, slopes, size,
        lambda more: function_rows(f, shift, zoom, factor, by + more, hessian), curved=True,
        wobble=wobble if hessian else None,
        bowl=None if f.bowl is None else zoom**2 * factor * f.bowl,
    )  # fmt: skip


def stacked_rows(*parts: Rows) -> Rows:
    begins = np.cumsum([0, *(part.constraint.n_constraints for part in parts)])

    def slopes(x: np.ndarray, room: float, at: np.ndarray) -> Any:
        owner, S, values = zip(*(part.slopes(x, room, at) for part in parts), strict=True)
        owners = [first + own for first, own in zip(begins, owner, strict=False)]
        return np.concatenate(owners), np.concatenate(S), np.concatenate(values)

    def shifted(by: np.ndarray) -> Rows:
        pieces = np.split(by, begins[1:-1])
        return stacked_rows(*(part.shifted(d) for part, d in zip(parts, pieces, strict=True)))

    def wobble(x: np.ndarray, known: np.ndarray) -> np.ndarray:
        none = [np.zeros((k, x.size), LONG) for k in np.diff(begins)]
        return np.concatenate(
            [
                part.wobble(x, known) if part.wobble else zero
                for part, zero in zip(parts, none, strict=True)
            ]
        )

    return Rows(
        coldq.Stacked(*(part.constraint for part in parts)),
        lambda x: np.concatenate([part.value(x) for part in parts]), slopes,
        lambda x, at: np.concatenate([part.size(x, at) for part in parts]), shifted,
        any(part.curved for part in parts), wobble,
        np.concatenate(
            [
                np.zeros(part.constraint.n_constraints) if part.bowl is None else part.bowl
                for part in parts
            ]
        ),
    )  # fmt: skip


# Domains, each with a point of it.


class Placed(NamedTuple):
    """A domain, a point inside, and the unit of its coordinates."""

    domain: Any
    spot: np.ndarray
    unit: float


def signed(rng: Rng, shape: Any, spread: float) -> np.ndarray:
    """Numbers of either sign whose sizes differ by up to `spread` powers of ten, around 1."""
    sizes = 10.0 ** rng.uniform(-spread, spread, shape) * rng.choice([-1.0, 1.0], shape)
    return sizes if rng.random() < 0.5 else rng.standard_normal(shape)


def a_box(rng: Rng, p: int, unit: float, bounded: bool) -> Placed:
    middle = unit * rng.standard_normal(p) * rng.choice([0.0, 1.0, 1.0])
    lower = middle - unit * 10.0 ** rng.uniform(-1.0, 0.3, p)
    upper = middle + unit * 10.0 ** rng.uniform(-1.0, 0.3, p)
    if rng.random() < 0.2:
        lower[:] = 0.0
        upper = unit * np.ones(p)
    if rng.random() < 0.2:
        fixed = rng.random(p) < 0.3
        upper[fixed] = lower[fixed]
    spot = rng.uniform(lower, upper)
    if not bounded and rng.random() < 0.3:
        lower[rng.random(p) < 0.5] = -INF
        upper[rng.random(p) < 0.5] = INF
    return Placed(coldq.Box(lower, upper), spot, unit)


def a_simplex(rng: Rng, p: int, unit: float, bounded: bool) -> Placed:
    spot = unit * rng.dirichlet(np.ones(p))
    if rng.random() < 0.4:
        cap = unit * rng.uniform(1.0, 2.0) / p
        return Placed(coldq.Simplex(p, unit, max(cap, unit / p)), np.full(p, unit / p), unit)
    return Placed(coldq.Simplex(p, unit), spot, unit)


def a_polytope(rng: Rng, p: int, unit: float, bounded: bool) -> Placed:
    """Rows around a point, among them duplicates, near-parallel ones and corners that tie."""
    within = a_box(rng, p, unit, bounded=True)
    lower, upper, spot = within.domain.lower, within.domain.upper, within.spot
    m = int(rng.integers(1, 7))
    A = signed(rng, (m, p), 1.0)
    if rng.random() < 0.3:
        A[-1] = A[0] * rng.choice([1.0, 2.0])
    if rng.random() < 0.3:
        A[-1] = A[0] * (1.0 + 10.0 ** rng.uniform(-8.0, -2.0) * rng.standard_normal(p))
    room = np.abs(A) @ np.full(p, unit) * rng.random(m) * (rng.random(m) < 0.8)
    b = A @ spot + room
    if rng.random() < 0.3:
        k = int(rng.integers(1, max(2, min(p, 3))))
        E = signed(rng, (k, p), 0.5)
        X = coldq.Polytope(A, b, lower, upper, A_eq=E, b_eq=E @ spot)
    else:
        X = coldq.Polytope(A, b, lower, upper)
    return Placed(X, X.project(spot), unit)


def a_ball(rng: Rng, p: int, unit: float, bounded: bool) -> Placed:
    far = rng.choice([0.0, 1.0, 1.0, 30.0])
    center = unit * far * rng.standard_normal(p)
    ray = rng.standard_normal(p)
    spot = center + unit * rng.random() * ray / np.linalg.norm(ray)
    return Placed(coldq.Ball(center, unit), spot, unit)


def a_product(makes: Any, rng: Rng, p: int, unit: float, bounded: bool) -> Placed:
    cut = int(rng.integers(1, p)) if p > 1 else 0
    sizes = [q for q in (cut, p - cut) if q]
    chosen = [makes[0], makes[int(rng.integers(len(makes)))]]
    parts = [make(rng, q, unit, bounded) for make, q in zip(chosen, sizes, strict=False)]
    order = rng.permutation(len(parts))
    return Placed(
        coldq.Product(*(parts[k].domain for k in order)),
        np.concatenate([parts[k].spot for k in order]), unit,
    )  # fmt: skip


DOMAINS: dict[str, Any] = {
    "box": a_box,
    "simplex": a_simplex,
    "polytope": a_polytope,
    "product": partial(a_product, (a_simplex, a_box, a_polytope, a_simplex)),
    "product of boxes": partial(a_product, (a_box,)),
    "ball": a_ball,
    "ball product": partial(a_product, (a_ball, a_box, a_simplex, a_polytope)),
}
FLAT = ("box", "simplex", "polytope", "product")
EVERY = (*FLAT, "ball", "ball product")


# Kinds of rows. Each maker gets the domain and gives rows that are near zero at its point.

CATEGORIES = (
    "regular", "regular", "duplicates", "nearly parallel", "unmet", "corner", "zero weights",
    "hard", "linear", "mixed", "heavy", "alpha", "far", "integers", "clash",
)  # fmt: skip


def near_zero(rng: Rng, rows: Rows, X: Placed, category: str) -> Rows:
    """The rows shifted so that they pass near the domain's point, or through it, or are unmet."""
    value = rows.value(X.spot.astype(LONG))
    size = rows.size(X.spot.astype(LONG), np.maximum(np.abs(X.spot), 1e-3 * X.unit))
    room = (
        size * 10.0 ** rng.uniform(-3.0, 0.0, size.size) * rng.choice([-1.0, 1.0, 1.0], size.size)
    )
    if category == "corner":  # all rows meet in the point
        room = 0.0 * room
    if category in ("unmet", "heavy"):
        room = -np.abs(room)
    if category in ("hard", "mixed"):
        room = np.abs(room) if rows.curved else np.abs(room) * (rng.random(room.size) < 0.7)
    return rows.shifted((value + room).astype(float))


def some_matrix(rng: Rng, shape: tuple[int, ...], scale: Scale, category: str) -> np.ndarray:
    """Slopes: of the rows, or of the pieces of rows."""
    A = signed(rng, shape, scale.spread)
    if category == "integers":
        return rng.integers(-2, 3, shape) * 1.0
    if rng.random() < 0.3:
        A = A * (rng.random(shape) < 0.5)
    flat = A.reshape(-1, shape[-1])
    if category == "duplicates":
        flat[:] = flat[rng.integers(0, len(flat), len(flat))]
        flat *= rng.choice([1.0, 1.0, 2.0], (len(flat), 1))
    if category == "nearly parallel":
        tilt = 10.0 ** rng.uniform(-10.0, -2.0) * rng.standard_normal(flat.shape)
        flat[:] = flat[rng.integers(0, max(1, len(flat) // 2), len(flat))] * (1.0 + tilt)
    return flat.reshape(shape)


def row_units(rng: Rng, n: int, scale: Scale) -> np.ndarray:
    common = scale.draw(rng)
    if rng.random() < 0.5:
        return np.full(n, common)
    return 10.0 ** rng.uniform(-scale.unit, scale.unit, n)


def sparse_kind(rng: Rng, category: str, X: Placed, scale: Scale) -> Rows:
    n = int(rng.integers(1, 10)) if rng.random() < 0.9 else int(rng.integers(73, 90))
    A = some_matrix(rng, (n, X.spot.size), scale, category) * (rng.random((n, X.spot.size)) < 0.5)
    return affine_rows(A * row_units(rng, n, scale)[:, None], np.zeros(n), thin=True)


def affine_kind(rng: Rng, category: str, X: Placed, scale: Scale) -> Rows:
    n = int(rng.integers(1, 6))
    A = some_matrix(rng, (n, X.spot.size), scale, category) * row_units(rng, n, scale)[:, None]
    return affine_rows(A, np.zeros(n))


def pieces_kind(rng: Rng, category: str, X: Placed, scale: Scale) -> Rows:
    n, k = int(rng.integers(1, 7)), int(rng.integers(1, 7))
    A = some_matrix(rng, (n, k, X.spot.size), scale, category)
    A = A * row_units(rng, n, scale)[:, None, None]
    size = np.abs(A) @ np.full(X.spot.size, X.unit)
    b = A @ X.spot + size * (rng.random((n, k)) if category != "corner" else 0.0)
    return piecewise_rows(A, b)


def quadratic_kind(
    rng: Rng, category: str, X: Placed, scale: Scale, functions: bool = False
) -> Rows:
    n, p = int(rng.integers(1, 6)), X.spot.size
    root = some_matrix(
        rng,
        (n, int(rng.integers(1, p + 1)), p),
        scale._replace(spread=0.5 * scale.spread),
        category,
    )
    P = np.einsum("nki,nkj->nij", root, root)
    P = 0.5 * (P + np.swapaxes(P, 1, 2))
    if rng.random() < 0.3:
        P[rng.random(n) < 0.5] = 0.0
    if rng.random() < 0.2:
        P = P * np.eye(p)
    q = some_matrix(rng, (n, p), scale, category) * X.unit * rng.choice([0.0, 1.0, 1.0])
    if rng.random() < 0.4:
        q = -P @ (X.spot + X.unit * rng.standard_normal(p))  # a minimum beside the point
    units = row_units(rng, n, scale)
    return quadratic_rows(P * units[:, None, None], q * units[:, None], np.zeros(n), functions)


def ball_kind(rng: Rng, category: str, X: Placed, scale: Scale) -> Rows:
    n, p = int(rng.choice([1, 1, 1, 2, 3])), X.spot.size
    away = X.unit * rng.choice([0.0, 0.3, 1.0, 1.0, 30.0, 10.0**scale.spread])
    c = X.spot + away * rng.standard_normal((n, p))
    if category == "duplicates":
        c[:] = c[0]
    if category == "nearly parallel":
        c[:] = c[0] * (1.0 + 10.0 ** rng.uniform(-10.0, -2.0) * rng.standard_normal((n, p)))
    return ball_rows(c, np.full(n, X.unit * rng.choice([0.1, 1.0])), np.zeros(n))


def diagonal_kind(rng: Rng, category: str, X: Placed, scale: Scale, factors: bool = False) -> Rows:
    n, p = int(rng.choice([1, 1, 1, 2, 3])), X.spot.size
    spread = scale._replace(spread=0.5 * scale.spread)
    d = np.square(some_matrix(rng, (n, p), spread, category))
    d *= rng.choice([0.0, 1e-6, 1.0, 1.0, 1.0], (n, 1))
    q = some_matrix(rng, (n, p), scale, category) * X.unit * rng.choice([0.0, 1.0, 1.0])
    units, F = row_units(rng, n, scale), None
    if factors:
        F = np.swapaxes(some_matrix(rng, (n, int(rng.integers(1, 4)), p), spread, category), 1, 2)
        F = np.sqrt(units)[:, None, None] * F
    if rng.random() < 0.4:
        q = -d * (X.spot + X.unit * rng.standard_normal(p))  # a minimum beside the point
    return thin_rows(d * units[:, None], F, q * units[:, None], np.zeros(n))


def capacity_kind(rng: Rng, category: str, X: Placed, scale: Scale) -> Rows:
    p, box = X.spot.size, X.domain.box
    reach = max(float(-box.lower.min()), 0.1 * X.unit)
    rate = 10.0 ** rng.uniform(-scale.spread - 1.0, -0.05, p) / reach
    size = 10.0 ** rng.uniform(-scale.spread, scale.spread, p) * scale.draw(rng)
    if rng.random() < 0.2:
        size[rng.random(p) < 0.4] = 0.0
    if rng.random() < 0.3:
        size, rate = np.full(p, size[0]), np.full(p, rate.min())
    return capacity_rows(0.0, size, rate)


def family(rng: Rng, kind: str, n: int, p: int) -> Family:
    """Functions of z around the unit ball."""
    A, b = rng.standard_normal((n, 3, p)) / np.sqrt(p), rng.standard_normal((n, 3))
    a, lift = A[:, 0], rng.random(n)
    match kind:
        case "soft maximum":

            def shares(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
                u = A @ z + b
                top = u.max(axis=1, keepdims=True)
                e = np.exp(u - top)
                return e / e.sum(axis=1, keepdims=True), np.log(e.sum(axis=1)) + top[:, 0]

            def curvature(z: np.ndarray) -> np.ndarray:
                w = shares(z)[0]
                mean = (w[:, :, None] * A).sum(axis=1)
                second = (w[:, :, None, None] * A[:, :, :, None] * A[:, :, None, :]).sum(axis=1)
                return second - mean[:, :, None] * mean[:, None, :]

            return Family(
                lambda z: shares(z)[1], lambda z: (shares(z)[0][:, :, None] * A).sum(axis=1),
                curvature,
            )  # fmt: skip
        case "hyperbola":  # sqrt(1 + (a z)^2), with a linear part

            def arc(z: np.ndarray) -> np.ndarray:
                return np.sqrt(1.0 + np.square(a @ z))

            return Family(
                lambda z: arc(z) + A[:, 1] @ z,
                lambda z: a * (a @ z / arc(z))[:, None] + A[:, 1],
                lambda z: (a[:, :, None] * a[:, None, :]) / (arc(z) ** 3)[:, None, None],
            )
        case "quartic":
            return Family(
                lambda z: (A @ z + b) ** 4 @ np.ones(3),
                lambda z: (4.0 * ((A @ z + b) ** 3)[:, :, None] * A).sum(axis=1),
                lambda z: (
                    12.0
                    * ((A @ z + b) ** 2)[:, :, None, None]
                    * A[:, :, :, None]
                    * A[:, :, None, :]
                ).sum(axis=1),
            )
        case "exponential":
            return Family(
                lambda z: np.exp(A @ z) @ np.ones(3),
                lambda z: (np.exp(A @ z)[:, :, None] * A).sum(axis=1),
                lambda z: (
                    np.exp(A @ z)[:, :, None, None] * A[:, :, :, None] * A[:, :, None, :]
                ).sum(axis=1),
            )
        case "length":  # a kink at a point

            def ray(z: np.ndarray) -> np.ndarray:
                length = np.sqrt(z @ z)
                return z / length if length > 0.0 else z

            return Family(
                lambda z: np.sqrt(z @ z) * (1.0 + lift) + a @ z,
                lambda z: (1.0 + lift)[:, None] * ray(z) + a, None,
            )  # fmt: skip
        case _:  # a kink along a line, a curve across it

            def pieces(z: np.ndarray, room: float) -> Any:
                u = a @ z
                near = np.abs(u) <= room * (np.abs(a) @ np.abs(z))
                sides = np.where(u >= 0.0, 1.0, -1.0)
                owner = np.concatenate([np.arange(n), np.flatnonzero(near)])
                sign = np.concatenate([sides, -sides[near]])
                S = sign[:, None] * a[owner] + lift[owner, None] * z
                return owner, S, sign * u[owner] + 0.5 * lift[owner] * (z @ z)

            return Family(
                lambda z: np.abs(a @ z) + 0.5 * lift * (z @ z),
                lambda z: np.sign(a @ z)[:, None] * a + lift[:, None] * z, None, pieces, lift,
            )  # fmt: skip


SMOOTH = ("soft maximum", "hyperbola", "quartic", "exponential")
KINKED = ("length", "fold")


def functions_kind(
    rng: Rng, category: str, X: Placed, scale: Scale, kinds: tuple[str, ...] = SMOOTH,
    hessian: bool = True,
) -> Rows:  # fmt: skip
    if hessian and rng.random() < 0.3:
        return quadratic_kind(rng, category, X, scale, functions=True)
    n, p = int(rng.integers(1, 5)), X.spot.size
    f = family(rng, str(rng.choice(kinds)), n, p)
    if category == "duplicates" and n > 1:
        same = rng.integers(0, n, n)
        whole = f
        bend, pieces = whole.bend, whole.pieces

        def doubled(z: np.ndarray, room: float) -> Any:
            assert pieces is not None
            owner, S, values = pieces(z, room)
            row, piece = np.nonzero(owner == same[:, None])
            return row, S[piece], values[piece]

        f = Family(
            lambda z: whole.value(z)[same], lambda z: whole.slope(z)[same],
            None if bend is None else (lambda z: bend(z)[same]),
            None if pieces is None else doubled, None if whole.bowl is None else whole.bowl[same],
        )  # fmt: skip
    shift = X.spot + X.unit * rng.standard_normal(p) * rng.choice([0.0, 0.3])
    zoom = rng.choice([0.3, 1.0, 2.0]) / X.unit
    return function_rows(f, shift, zoom, row_units(rng, n, scale), np.zeros(n), hessian)


def stack_kind(makes: Any, rng: Rng, category: str, X: Placed, scale: Scale) -> Rows:
    chosen = [make for make in makes if rng.random() < 0.7] or [makes[0]]
    return stacked_rows(*(make(rng, category, X, scale) for make in chosen))


class Kind(NamedTuple):
    """Rows, where they are solved, and what is promised of them."""

    make: Callable[[Rng, str, Placed, Scale], Rows]
    most: int  # coordinates
    promise: float
    domains: tuple[str, ...] = EVERY
    judge: Callable[[Problem, coldq.Step, float], float] = residual
    bounded: bool = False


without_hessian = partial(functions_kind, kinds=SMOOTH + KINKED, hessian=False)
KINDS = {
    "capacity": Kind(capacity_kind, 20, AFFINE, ("box", "product of boxes"), bounded=True),
    "quadratic": Kind(quadratic_kind, 12, CURVED),
    "ball rows": Kind(ball_kind, 12, CURVED),
    "diagonal": Kind(diagonal_kind, 12, CURVED),
    "low rank": Kind(partial(diagonal_kind, factors=True), 12, CURVED),
    "thin stack": Kind(
        partial(
            stack_kind,
            (ball_kind, diagonal_kind, partial(diagonal_kind, factors=True), affine_kind),
        ),
        10,
        CURVED,
    ),
    "max-affine": Kind(pieces_kind, 12, AFFINE, FLAT),
    "convex": Kind(functions_kind, 8, CURVED, bounded=True),
    "convex without hessian": Kind(without_hessian, 6, GAP, FLAT, gap, bounded=True),
    "sparse": Kind(sparse_kind, 20, AFFINE),
    "quadratic stack": Kind(partial(stack_kind, (quadratic_kind, affine_kind)), 10, CURVED),
    "smooth stack": Kind(
        partial(stack_kind, (functions_kind, quadratic_kind, affine_kind, capacity_kind)), 7,
        CURVED, bounded=True,
    ),
    "kinked stack": Kind(
        partial(stack_kind, (pieces_kind, without_hessian, affine_kind, quadratic_kind)), 5, GAP,
        FLAT, gap, bounded=True,
    ),
}  # fmt: skip


def penalties(rng: Rng, category: str, n: int, scale: Scale) -> tuple[np.ndarray, np.ndarray]:
    """Floors and weights."""
    weights = 10.0 ** rng.uniform(-3.0, scale.weight, n)
    if rng.random() < 0.5:
        weights = 10.0 ** rng.uniform(-1.0, 3.0, n)
    floor, some = np.zeros(n), rng.random(n) < 0.5
    match category:
        case "heavy":
            weights[:] = 10.0**scale.weight
        case "zero weights":
            weights[some] = 0.0
        case "hard":
            weights[some] = INF
        case "linear":
            floor[some] = weights[some]
        case "mixed":
            what = rng.integers(0, 3, n)
            floor = np.where(what == 1, weights, 0.0)
            weights = np.where(what == 2, INF, weights)
        case "integers":
            weights = rng.integers(0, 9, n) * 1.0
    return floor, weights


def clashing(rng: Rng, problem: Problem, X: Placed) -> Problem | None:
    """One row hard and above zero on all of the domain's box; None where that has no end."""
    box, n = problem.domain.box, problem.multiplier_upper.size
    spot = X.spot.astype(LONG)
    owner, S, tangents = problem.rows.slopes(spot, 0.0, np.abs(spot))
    k = int(rng.integers(n))
    slope, value = S[owner == k][0], tangents[owner == k][0]
    least = value
    for s, down, up in zip(slope, box.lower - spot, box.upper - spot, strict=True):
        least += min(s * down, s * up) if s != 0.0 else 0.0
    far = np.where(np.isfinite(box.diameter), np.maximum(np.abs(box.lower), np.abs(box.upper)), 0.0)
    margin = 0.05 * (problem.rows.size(spot, np.maximum(np.abs(spot), far))[k] + abs(least))
    for corner in (box.lower, box.upper):  # a row may be flat at the spot, and large elsewhere
        if np.isfinite(corner).all():
            margin = max(margin, 0.05 * abs(problem.rows.value(corner.astype(LONG))[k]))
    if not (np.isfinite(least) and margin > 0.0):
        return None
    by = np.zeros(n)
    by[k] = float(least - margin)
    weights = np.where(np.arange(n) == k, INF, problem.multiplier_upper)
    return problem._replace(rows=problem.rows.shifted(by), multiplier_upper=weights)


def draw(rows: str, domain: str, rng: Rng, scales: str) -> Drawn:
    """One step of a kind of rows on a kind of domain."""
    kind, scale = KINDS[rows], SCALES[scales]
    category = str(rng.choice(CATEGORIES))
    most = 20 if rng.random() < 0.1 and not kind.bounded else kind.most
    unit = scale.draw(rng)
    X = DOMAINS[domain](rng, int(rng.integers(1, most + 1)), unit, kind.bounded)
    g = near_zero(rng, kind.make(rng, category, X, scale), X, category)
    p, n = X.spot.size, g.constraint.n_constraints
    floor, weights = penalties(rng, category, n, scale)
    center = X.spot + unit * rng.standard_normal(p) * rng.choice([0.0, 0.3, 1.0])
    alpha = (
        scale.draw(rng)
        if category != "alpha"
        else 10.0 ** rng.choice([-1.5, 1.5]) * scale.draw(rng)
    )
    # Gradients around the size that moves x through its domain, and some that do not.
    pull = 2.0 * alpha * unit * 10.0 ** rng.uniform(-1.0, 2.0)
    gradient = np.clip(
        pull, 10.0 ** -(scale.unit + 1.0), 10.0 ** (scale.unit + 1.0)
    ) * rng.standard_normal(p)
    if category == "far":
        center = center + unit * 10.0 ** rng.uniform(1.0, 3.0) * rng.standard_normal(p)
    if category == "integers":
        center, gradient = np.round(center / unit) * unit, np.round(gradient / pull) * pull
    problem = Problem(center, gradient, float(alpha), floor, weights, g, X.domain)
    feasible = True
    if category == "clash":
        unmet = clashing(rng, problem, X)
        if unmet is not None:
            problem, feasible = unmet, False
    # A stack that happens to have hessians promises a residual, not a gap.
    judge, promise = kind.judge, kind.promise
    if judge is gap and g.constraint.has_hessian:
        judge, promise = residual, CURVED
    promise = max(promise, CURVED if domain == "ball product" else 0.0)
    verdict = partial(judge, problem, tolerance=promise)
    if isinstance(g.constraint, coldq.SparseAffine):  # affine rows have one judge
        plain = problem.rows.constraint.dense()
        verdict = judged(
            *problem[:3],
            problem.multiplier_upper,
            problem.multiplier_lower,
            plain.A,
            plain.b,
            X.domain,
        )
    return Drawn(
        rows, domain, category, problem.arguments(), problem.multiplier_lower, verdict, promise,
        feasible,
        partial(found_below, problem, tolerance=promise) if judge is gap else None,
    )  # fmt: skip


DRAWS: dict[tuple[str, str], Draw] = {
    (rows, domain): partial(draw, rows, domain)
    for rows, kind in KINDS.items()
    for domain in kind.domains
}
