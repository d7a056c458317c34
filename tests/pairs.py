"""Every pair of constraint and domain: problems drawn at random and on purpose, and one judge.

A problem is rows, a domain and a step's numbers. The judge reads x and the multipliers alone, and
the rows through formulas of its own (:class:`Rows`): nothing in it is the code of a solver.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import lsq_linear, nnls

import coldq
from coldq.slot.step.reference import domain_limits, modelled_rows
from tests.convex_functions import KINKED, SMOOTH, make_functions
from tests.curved_instances import CURVED_CATEGORIES, make_curved
from tests.instances import CATEGORIES, make_domain, make_instance
from tests.max_affine_instances import PIECEWISE_CATEGORIES, make_piecewise

INF = np.inf
AFFINE, CURVED, GAP = 1e-9, 1e-8, 1e-6  # what docs/which-pair-is-solved-how.md promises


Slopes = tuple[np.ndarray, np.ndarray, np.ndarray]


class Rows(NamedTuple):
    """Rows ``g(x) <= 0`` as the judge reads them.

    `slopes` gives the gradients at x, the row that each belongs to and the value of its tangent:
    one for a smooth row, at a kink one for every piece within `room` of being the largest. `size`
    is that of the terms which a value is the sum of. `shifted` lowers the values by so much.
    """

    constraint: Any
    value: Callable[[np.ndarray], np.ndarray]
    slopes: Callable[[np.ndarray, float], Slopes]
    size: Callable[[np.ndarray], np.ndarray]
    shifted: Callable[[np.ndarray], Rows]
    modelled: Callable[[Any, Any], list[Any]]
    curved: bool = False


def at_least(x: np.ndarray) -> np.ndarray:
    """The size with which a coordinate counts, so that x = 0 has one."""
    return np.maximum(np.abs(x), 1e-3)


def affine_rows(A: np.ndarray, b: np.ndarray, thin: bool = False) -> Rows:
    g: Any = coldq.SparseAffine(sparse.csr_array(A), b) if thin else coldq.Affine(A, b)
    return Rows(
        g, lambda x: A @ x - b, lambda x, room: (np.arange(len(b)), A, A @ x - b),
        lambda x: np.abs(A) @ at_least(x) + np.abs(b),
        lambda by: affine_rows(A, b + by, thin), lambda cp, x: modelled_rows(cp, x, g),
    )  # fmt: skip


def quadratic_rows(P: np.ndarray, q: np.ndarray, r: np.ndarray, functions: bool = False) -> Rows:
    """Quadratic rows, as such or as functions with hessians."""

    def value(x: np.ndarray) -> np.ndarray:
        return 0.5 * np.einsum("nij,i,j->n", P, x, x) + q @ x - r

    def size(x: np.ndarray) -> np.ndarray:
        at = at_least(x)
        return 0.5 * np.einsum("nij,i,j->n", np.abs(P), at, at) + np.abs(q) @ at + np.abs(r)

    g = coldq.QuadraticConstraint(P, q, r)
    return Rows(
        coldq.Convex(value, lambda x: P @ x + q, lambda x: P, len(r)) if functions else g,
        value, lambda x, room: (np.arange(len(r)), P @ x + q, value(x)), size,
        lambda by: quadratic_rows(P, q, r + by, functions),
        lambda cp, x: modelled_rows(cp, x, g), curved=True,
    )  # fmt: skip


def piecewise_rows(A: np.ndarray, b: np.ndarray) -> Rows:
    def widest(x: np.ndarray) -> np.ndarray:
        return (np.abs(A) @ at_least(x) + np.abs(b)).max(axis=1)

    def slopes(x: np.ndarray, room: float) -> Slopes:
        values = A @ x - b
        near = values >= (values.max(axis=1) - room * widest(x))[:, None]
        return np.nonzero(near)[0], A[near], values[near]

    g = coldq.MaxAffine(A, b)
    return Rows(
        g, lambda x: (A @ x - b).max(axis=1), slopes, widest,
        lambda by: piecewise_rows(A, b + by[:, None]), lambda cp, x: modelled_rows(cp, x, g),
    )  # fmt: skip


def function_rows(f: Any, zoom: float, rows: np.ndarray, by: np.ndarray, hessian: bool) -> Rows:
    """Rows ``factor f(zoom x) - by``, `rows` giving the place in f and the factor of each."""
    place, factor = rows[0].astype(int), rows[1]

    def value(x: np.ndarray) -> np.ndarray:
        return factor * np.asarray(f.value(zoom * x))[place] - by

    def jacobian(x: np.ndarray) -> np.ndarray:
        return zoom * factor[:, None] * np.asarray(f.jacobian(zoom * x))[place]

    def second(x: np.ndarray) -> np.ndarray:
        return zoom**2 * factor[:, None, None] * np.asarray(f.hessian(zoom * x))[place]

    def size(x: np.ndarray) -> np.ndarray:
        g, J = value(x), jacobian(x)
        return np.abs(J) @ at_least(x) + np.abs(g - J @ x) + np.abs(by)

    def modelled(cp: Any, x: Any) -> list[Any]:
        own = f.modelled(cp, zoom * x)
        return [c * own[k] - d for k, c, d in zip(place, factor, by, strict=True)]

    return Rows(
        coldq.Convex(value, jacobian, second if hessian else None, len(place)), value,
        lambda x, room: (np.arange(len(place)), jacobian(x), value(x)), size,
        lambda more: function_rows(f, zoom, rows, by + more, hessian), modelled, curved=True,
    )  # fmt: skip


def capacity_rows(demand: float, scale: np.ndarray, rate: np.ndarray) -> Rows:
    g = coldq.LogCapacity(demand, scale, rate)

    def value(x: np.ndarray) -> np.ndarray:
        return np.array([demand - scale @ np.log1p(rate * x)])

    def slopes(x: np.ndarray, room: float) -> Slopes:
        return np.zeros(1, int), -(scale * rate / (1.0 + rate * x))[None], value(x)

    return Rows(
        g, value, slopes,
        lambda x: np.array([abs(demand) + scale @ np.abs(np.log1p(rate * at_least(x)))]),
        lambda by: capacity_rows(demand - float(by[0]), scale, rate),
        lambda cp, x: modelled_rows(cp, x, g), curved=True,
    )  # fmt: skip


def stacked_rows(*parts: Rows) -> Rows:
    counts = [part.constraint.n_constraints for part in parts]
    begins = np.cumsum([0, *counts])

    def slopes(x: np.ndarray, room: float) -> Slopes:
        owner, S, values = zip(*(part.slopes(x, room) for part in parts), strict=True)
        owners = [first + own for first, own in zip(begins, owner, strict=False)]
        return np.concatenate(owners), np.concatenate(S), np.concatenate(values)

    def shifted(by: np.ndarray) -> Rows:
        pieces = np.split(by, begins[1:-1])
        return stacked_rows(*(part.shifted(d) for part, d in zip(parts, pieces, strict=True)))

    return Rows(
        coldq.Stacked(*(part.constraint for part in parts)),
        lambda x: np.concatenate([part.value(x) for part in parts]), slopes,
        lambda x: np.concatenate([part.size(x) for part in parts]), shifted,
        lambda cp, x: [row for part in parts for row in part.modelled(cp, x)],
        any(part.curved for part in parts),
    )  # fmt: skip


class Problem(NamedTuple):
    """One per-slot problem; a problem that clashes has enforced rows without a common point."""

    category: str
    center: np.ndarray
    gradient: np.ndarray
    alpha: float
    multiplier_lower: np.ndarray
    multiplier_upper: np.ndarray
    rows: Rows
    domain: Any
    clashes: bool = False

    def solve(self) -> coldq.Step:
        _, center, gradient, alpha, floor, weights, rows, domain, _ = self
        g = rows.constraint
        return coldq.penalised_step(
            center, gradient, alpha, weights, g, domain, multiplier_lower=floor
        )

    def objective(self, x: np.ndarray) -> float:
        """The penalised objective; enforced rows are left out."""
        move, g = x - self.center, self.rows.value(x)
        high = np.where(np.isinf(self.multiplier_upper), 0.0, self.multiplier_upper)
        low = np.where(np.isinf(self.multiplier_lower), 0.0, self.multiplier_lower)
        penalty = np.where(g > 0.0, high * g, low * g)
        return float(self.gradient @ move + self.alpha * move @ move + penalty.sum())


# The judge.


def normals_at(
    domain: Any, x: np.ndarray, room: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The outward normals of length 1 of all that holds x, how far the domain goes in each, and the
    sizes of the terms that their entries are made of: of a sphere's, x and its center."""
    eye, near = np.eye(x.size), room * (1.0 + np.abs(x))
    lower, upper = domain.box.lower, domain.box.upper
    high, low = x >= upper - near, x <= lower + near
    normals, limits = [eye[high], -eye[low]], [upper[high], -lower[low]]
    terms = [eye[high], eye[low]]
    for part, floor in domain.enforced:
        if isinstance(part, coldq.Affine):
            size = np.abs(part.b) + np.abs(part.A) @ at_least(x)
            held = part.b - part.A @ x <= room * size
            normals.append(part.A[held])
            limits.append(part.b[held])
            terms.append(np.abs(part.A[held]))
            if floor == -INF:
                normals.append(-part.A)
                limits.append(-part.b)
                terms.append(np.abs(part.A))
        else:
            own = slice(part.first, part.first + part.center.size)
            ray = np.zeros((1, x.size))
            ray[0, own] = x[own] - part.center
            length, size = np.linalg.norm(ray), part.radius + np.abs(part.center).max()
            if length >= part.radius - room * size:
                normals.append(ray)
                limits.append(ray[:, own] @ part.center + part.radius * length)
                terms.append(np.zeros((1, x.size)))
                terms[-1][0, own] = np.abs(x[own]) + np.abs(part.center)
    B, limit, size = (np.concatenate(found) for found in (normals, limits, terms))
    length = np.linalg.norm(B, axis=1)
    some = length > 0.0
    length = length[some]
    return B[some] / length[:, None], limit[some] / length, size[some] / length[:, None]


def shares_of(problem: Problem, x: np.ndarray, lam: np.ndarray, room: float) -> tuple[Any, ...]:
    """What balances ``y - x``: the rows' slopes, each with a share of its row's multiplier, and
    multiples of the domain's normals; nonnegative least squares finds both, or what is left."""
    half = 0.5 / problem.alpha
    y, mu = problem.center - problem.gradient * half, lam * half
    owner, S, _ = problem.rows.slopes(x, room)
    B, limit, size = normals_at(problem.domain, x, room)
    scale = 1.0 + np.abs(y) + np.abs(S * mu[owner, None]).sum(axis=0)
    several = np.flatnonzero((np.bincount(owner, minlength=lam.size) > 1) & (mu != 0.0))
    open_ = np.isin(owner, several)
    share = np.where(open_, 0.0, 1.0)
    v = y - x - S.T @ (share * mu[owner])
    sums = (owner[open_] == several[:, None]).astype(float)
    pull = (S * mu[owner, None])[open_]
    left = np.block([[(B / scale).T, (pull / scale).T], [np.zeros((several.size, len(B))), sums]])
    right = np.concatenate([v / scale, np.ones(several.size)])
    best: tuple[Any, ...] = (INF,)
    for fit in (_quickly, _carefully):
        found = fit(left, right)
        c, t = found[: len(B)], found[len(B) :]
        total = sums.T @ (sums @ t)
        share[open_] = t / np.where(total > 0.0, total, 1.0)
        off = np.abs(y - x - S.T @ (share * mu[owner]) - B.T @ c) / (scale + size.T @ c)
        if off.max() < best[0]:
            best = float(off.max()), S, share * mu[owner], B, c, limit
        if best[0] <= 1e-10:
            break
    return best


def _quickly(B: np.ndarray, v: np.ndarray) -> np.ndarray:
    return nnls(B, v, maxiter=1000 * (B.shape[1] + 1))[0] if B.shape[1] else np.zeros(0)


def _carefully(B: np.ndarray, v: np.ndarray) -> np.ndarray:
    if not B.shape[1]:
        return np.zeros(0)
    return lsq_linear(B, v, (0.0, INF), method="bvls", tol=1e-15).x


def residual(problem: Problem, step: coldq.Step, tolerance: float) -> float:
    """The relative KKT residual; what is within `tolerance` of being active may act on x."""
    x, lam, rows = step.x, step.multipliers, problem.rows
    if not (problem.domain.contains(x) and within_bounds(problem, lam)):
        return INF
    g, size = rows.value(x), rows.size(x)
    wrong = ((lam > problem.multiplier_lower) & (g < 0.0)) | (
        (lam < problem.multiplier_upper) & (g > 0.0)
    )
    off = np.where(wrong, np.abs(g) / np.where(size > 0.0, size, 1.0), 0.0).max(initial=0.0)
    return max(float(off), shares_of(problem, x, lam, tolerance)[0])


def within_bounds(problem: Problem, lam: np.ndarray) -> bool:
    return bool(((problem.multiplier_lower <= lam) & (lam <= problem.multiplier_upper)).all())


def gap(problem: Problem, step: coldq.Step, tolerance: float) -> float:
    """How far the value at x is above the least, relative to the value.

    Multipliers prove a bound from below: the least of the objective with each row's tangent at x
    instead of its penalty, and the domain's limits in the normals that balance x. At kinks one
    tangent is not enough: then more of them are taken, and last CVXPY is asked.
    """
    x, lam, rows = step.x, step.multipliers, problem.rows
    hard = np.isinf(problem.multiplier_upper)
    broken = (np.maximum(rows.value(x), 0.0) / rows.size(x))[hard].max(initial=0.0)
    if not (problem.domain.contains(x) and within_bounds(problem, lam) and broken <= tolerance):
        return INF
    value, twice = problem.objective(x), 2.0 * problem.alpha
    size = max(1.0, abs(value))
    _, S, mu, B, c, limit = shares_of(problem, x, lam, 1e-4)
    there = problem.center - problem.gradient / twice - S.T @ mu - B.T @ c
    move = there - problem.center
    tangents = rows.slopes(x, 1e-4)[2] + S @ (there - x)
    least = float(problem.gradient @ move + problem.alpha * move @ move)
    least += twice * float(mu @ tangents + c @ (B @ there - limit))
    enough = value - tolerance * size
    if least < enough:
        least = max(least, least_by_cuts(problem, x, enough))
    if least < enough:
        least = max(least, least_by_cvxpy(problem))
    return (value - least) / size


def least_by_cuts(problem: Problem, start: np.ndarray, enough: float) -> float:
    """The least with tangents at some points in place of the rows, which is a bound from below.

    Quadratic programs are easier than the functions themselves; each leads to the next point.
    """
    import cvxpy as cp

    x, g = cp.Variable(problem.center.size), cp.Variable(problem.multiplier_upper.size)
    move, hard = x - problem.center, np.isinf(problem.multiplier_upper)
    price = np.where(hard, 0.0, problem.multiplier_upper)
    linear = np.where(problem.multiplier_lower == problem.multiplier_upper, price, 0.0)
    cost = problem.gradient @ move + problem.alpha * cp.sum_squares(move)
    cost += linear @ g + (price - linear) @ cp.pos(g)
    limits = domain_limits(cp, x, problem.domain)
    limits += [g[k] <= 0.0 for k in np.flatnonzero(hard)]
    unit, at, best = 1.0 + price.max(initial=0.0), start, -INF
    for _ in range(20):
        owner, S, tangents = problem.rows.slopes(at, 1e-4)
        limits.append(g[owner] >= S @ (x - at) + tangents)
        with warnings.catch_warnings(), contextlib.suppress(cp.error.SolverError):
            warnings.simplefilter("ignore")
            best = max(best, unit * cp.Problem(cp.Minimize(cost / unit), limits).solve(cp.CLARABEL))
        if best >= enough or x.value is None:
            break
        at = problem.domain.project(x.value)
    return best


def least_by_cvxpy(problem: Problem) -> float:
    """The objective at CVXPY's answer; its own figure may lie below that of any point."""
    import cvxpy as cp

    x = cp.Variable(problem.center.size)
    limits = domain_limits(cp, x, problem.domain)
    move = x - problem.center
    cost = problem.gradient @ move + problem.alpha * cp.sum_squares(move)
    parts = problem.rows.modelled(cp, x)  # of one row or several
    rows = [row for g in parts for row in ([g[k] for k in range(g.size)] if g.ndim else [g])]
    for g, low, high in zip(rows, problem.multiplier_lower, problem.multiplier_upper, strict=True):
        if high == INF:
            limits.append(g <= 0.0)
        elif high > 0.0:
            cost += high * (g if low == high else cp.pos(g))
    values = []
    heaviest = 1.0 + problem.multiplier_upper[np.isfinite(problem.multiplier_upper)].max(
        initial=0.0
    )
    for unit in (1.0, heaviest, 1e3 * heaviest):  # it fails in one unit and not in another
        with warnings.catch_warnings(), contextlib.suppress(cp.error.SolverError):
            warnings.simplefilter("ignore")  # how accurate it is, its value at a point of X says
            cp.Problem(cp.Minimize(cost / unit), limits).solve(solver=cp.CLARABEL)
        if x.value is not None:
            values.append(problem.objective(problem.domain.project(x.value)))
    return min(values, default=-INF)


# What is drawn.

FUNCTION_CATEGORIES = (
    "regular", "duplicate rows", "infeasible", "zero weights", "enforced rows", "alpha 1e-8",
    "alpha 1e8", "far outside", "row scales", "linear rows",
)  # fmt: skip
VARIANTS = {
    "box": ("box",),
    "simplex": ("simplex", "capped simplex"),
    "polytope": ("polytope", "polytope of ties", "thin polytope", "equalities"),
    "product": ("product", "product of boxes"),
    "product of boxes": ("product of boxes",),
    "ball": ("ball",),
    "ball product": ("ball product",),
}
FLAT = ("box", "simplex", "polytope", "product")
EVERY = (*FLAT, "ball", "ball product")


class Kind(NamedTuple):
    """A kind of rows: how they are drawn and judged, and on which domains they are solved.

    `make` gives a step's numbers and its rows. Where those numbers bring bounds of their own, the
    box of the kind "box" has them.
    """

    make: Callable[[np.random.Generator, str, int, Any], tuple[Any, Rows]]
    categories: tuple[str, ...]
    most: int  # coordinates
    tolerance: float
    domains: tuple[str, ...] = EVERY
    judge: Callable[[Problem, coldq.Step, float], float] = residual
    bounded: bool = False  # the domains: functions are finite somewhere only


def affine(
    rng: np.random.Generator, category: str, p: int, X: Any, least: int = 1, most: int = 14,
    thin: bool = False,
) -> tuple[Any, Rows]:  # fmt: skip
    i = make_instance(rng, category, int(rng.integers(least, most + 1)), p)
    A = i.A * (rng.random(i.A.shape) < 0.4) if thin else i.A
    return i, affine_rows(A, i.b, thin)


def any_affine(rng: np.random.Generator, category: str, p: int, X: Any) -> tuple[Any, Rows]:
    """Beside other rows: of a category of their own."""
    return affine(rng, str(rng.choice(CATEGORIES)), p, X, most=6)


def any_hinges(rng: np.random.Generator, category: str, p: int, X: Any) -> tuple[Any, Rows]:
    """The same, none of them with a price below zero."""
    i, rows = any_affine(rng, category, p, X)
    return i._replace(multiplier_lower=np.zeros(i.multiplier_upper.size)), rows


def large(rng: np.random.Generator, category: str, p: int, X: Any) -> tuple[Any, Rows]:
    return affine(rng, category, p, X, least=65, most=80)


def thin(rng: np.random.Generator, category: str, p: int, X: Any) -> tuple[Any, Rows]:
    most = int(rng.choice([14, 80]))
    return affine(rng, category, p, X, least=1 if most == 14 else 65, most=most, thin=True)


def quadratic(
    rng: np.random.Generator, category: str, p: int, X: Any, functions: bool = False
) -> tuple[Any, Rows]:
    i = make_curved(rng, category, int(rng.integers(1, 7)), p)
    return i, quadratic_rows(i.P, i.q, i.r, functions)


def pieces(rng: np.random.Generator, category: str, p: int, X: Any) -> tuple[Any, Rows]:
    i = make_piecewise(rng, category, int(rng.integers(1, 6)), int(rng.integers(1, 7)), p)
    return i, piecewise_rows(i.A, i.b)


def functions(
    rng: np.random.Generator, category: str, p: int, X: Any, kinds: tuple[str, ...] = SMOOTH,
    hessian: bool = True,
) -> tuple[Any, Rows]:  # fmt: skip
    """Functions of ``zoom x``, which on the domain lies where they are finite."""
    N, zoom = int(rng.integers(1, 5)), 2.0 / np.abs([X.box.lower, X.box.upper]).max()
    numbers = make_step(rng, category, N, p)
    place, factor, by = np.arange(N), np.ones(N), np.zeros(N)
    match category:
        case "duplicate rows":
            place = rng.integers(0, N, N)
        case "row scales":
            factor = 10.0 ** rng.uniform(-3.0, 3.0, N)
        case "infeasible":
            by = by - rng.uniform(0.0, 20.0)
    f = make_functions(rng, str(rng.choice(kinds)), N, p)
    return numbers, function_rows(f, zoom, np.stack([place, factor]), by, hessian)


def make_step(rng: np.random.Generator, category: str, N: int, p: int) -> Any:
    """The numbers of a step with N rows of any kind."""
    i = make_piecewise(rng, category, N, 1, p)
    return Step(i.center, i.gradient, i.alpha, i.multiplier_lower, i.multiplier_upper)


class Step(NamedTuple):
    """The numbers of a step."""

    center: np.ndarray
    gradient: np.ndarray
    alpha: float
    multiplier_lower: np.ndarray
    multiplier_upper: np.ndarray


def with_hessian(rng: np.random.Generator, category: str, p: int, X: Any) -> tuple[Any, Rows]:
    if category in CURVED_CATEGORIES and rng.random() < 0.5:
        numbers, rows = quadratic(rng, category, p, X, functions=True)
        return Step(*numbers[:5]), rows
    return functions(rng, category, p, X)


def without_hessian(rng: np.random.Generator, category: str, p: int, X: Any) -> tuple[Any, Rows]:
    return functions(rng, category, p, X, SMOOTH + KINKED, hessian=False)


def capacity(rng: np.random.Generator, category: str, p: int, X: Any) -> tuple[Any, Rows]:
    """One capacity, defined on the domain: rates times the lower bounds are above -1."""
    reach = max(-X.box.lower.min(), 0.2 * np.abs(X.box.upper).max(), 1e-3)
    scale, rate = rng.uniform(0.1, 5.0, p), rng.uniform(0.05, 0.9, p) / reach
    if category == "zero pieces":
        scale[rng.random(p) < 0.4] = 0.0
    most = scale @ np.log1p(rate * X.box.upper)
    demand = most * (rng.uniform(1.1, 3.0) if category == "infeasible" else rng.random())
    return make_step(rng, category, 1, p), capacity_rows(demand, scale, rate)


def beside(*makes: Any) -> Any:
    """Rows of several kinds on top of one another, the numbers those of all."""

    def make(rng: np.random.Generator, category: str, p: int, X: Any) -> tuple[Any, Rows]:
        made = [one(rng, category, p, X) for one in makes]
        first = made[0][0]
        floor, weights = (
            np.concatenate([getattr(i, name) for i, _ in made])
            for name in ("multiplier_lower", "multiplier_upper")
        )
        numbers = first._replace(multiplier_lower=floor, multiplier_upper=weights)
        return numbers, stacked_rows(*(rows for _, rows in made))

    return make


KINDS = {
    "affine": Kind(affine, CATEGORIES, 14, AFFINE),
    "quadratic": Kind(quadratic, CURVED_CATEGORIES, 10, CURVED),
    "affine and quadratic": Kind(beside(quadratic, any_affine), CURVED_CATEGORIES, 9, CURVED),
    "max-affine": Kind(pieces, PIECEWISE_CATEGORIES, 9, AFFINE, FLAT),
    "affine and max-affine": Kind(
        beside(pieces, any_hinges), PIECEWISE_CATEGORIES, 9, AFFINE, FLAT
    ),
    "affine stack": Kind(beside(affine, any_affine, thin), CATEGORIES, 12, AFFINE),
    "convex": Kind(with_hessian, FUNCTION_CATEGORIES, 8, CURVED, bounded=True),
    "convex without hessian": Kind(
        without_hessian, FUNCTION_CATEGORIES, 8, GAP, FLAT, gap, bounded=True
    ),
    "sparse": Kind(thin, CATEGORIES, 30, AFFINE),
    "large": Kind(large, CATEGORIES, 40, AFFINE, FLAT),
    "capacity": Kind(
        capacity, PIECEWISE_CATEGORIES, 40, AFFINE, ("box", "product of boxes"), bounded=True
    ),
    "smooth stack": Kind(
        beside(functions, quadratic, any_affine, capacity), FUNCTION_CATEGORIES, 7, CURVED,
        bounded=True,
    ),
    "stack with kinks": Kind(
        beside(without_hessian, pieces, quadratic), FUNCTION_CATEGORIES, 7, GAP, FLAT, gap,
        bounded=True,
    ),
}  # fmt: skip
PAIRS = [(rows, domain) for rows, kind in KINDS.items() for domain in kind.domains]


def tolerance_of(rows: str, domain: str) -> float:
    """What the table promises; a ball in a product is a quadratic row."""
    return max(KINDS[rows].tolerance, CURVED if domain == "ball product" else 0.0)


def draw(rows: str, domain: str, k: int, seed: int = 0) -> Problem:
    """The k-th problem of a pair, through all categories and variants of the domain, or on one."""
    rng = np.random.default_rng((seed, k))
    kind = KINDS[rows]
    categories = (*kind.categories, "clash")
    category = categories[k % len(categories)]
    p = int(rng.integers(1, kind.most + 1))
    X = make_domain(rng, str(rng.choice(VARIANTS.get(domain, (domain,)))), p, kind.bounded)
    numbers, g = kind.make(rng, category, p, X)
    if domain == "box" and hasattr(numbers, "lower"):
        X = coldq.Box(numbers.lower, numbers.upper)
    step = (
        numbers.center,
        numbers.gradient,
        float(numbers.alpha),
        numbers.multiplier_lower,
        numbers.multiplier_upper,
    )
    problem = Problem(category, *step, g, X)
    if category == "clash":
        problem = clashing(rng, problem)
    known = problem.clashes or np.isfinite(problem.multiplier_upper).all()
    return problem if known else meeting(rng, problem)


def meeting(rng: np.random.Generator, problem: Problem) -> Problem:
    """The same with rows that meet in a point; curved ones leave room there, as theory needs."""
    rows, X, n = problem.rows, problem.domain, problem.multiplier_upper.size
    spot = X.project(rng.uniform(-1.0, 1.0, (4 if rows.curved else 1, X.dim))).mean(axis=0)
    room = rng.random(n) * (rng.random(n) < 0.7) + 0.01 * rows.curved * rows.size(spot)
    room = np.where(problem.multiplier_lower == -INF, 0.0, room)
    return problem._replace(rows=rows.shifted(rows.value(spot) + room))


def clashing(rng: np.random.Generator, problem: Problem) -> Problem:
    """One enforced row more that no point of the domain meets, where the domain is bounded.

    A row is not below its tangent, and the point farthest down the tangent is that to which a very
    far one projects.
    """
    rows, X, n = problem.rows, problem.domain, problem.multiplier_upper.size
    spot = X.project(rng.uniform(-1.0, 1.0, X.dim))
    k = int(rng.integers(n))
    owner, S, _ = rows.slopes(spot, 0.0)
    slope = S[owner == k][0]
    low = X.project(spot - 1e7 * slope / max(np.linalg.norm(slope), 1e-300))
    if np.abs(low).max() > 1e4:
        return problem
    least = rows.value(spot)[k] + slope @ (low - spot)
    by = np.zeros(n)
    by[k] = least - 0.05 * (rows.size(spot)[k] + abs(least) or 1.0)
    weights = np.where(np.arange(n) == k, INF, problem.multiplier_upper)
    return problem._replace(rows=rows.shifted(by), multiplier_upper=weights, clashes=True)


def judged(problem: Problem, rows: str, tolerance: float) -> tuple[float, str, float]:
    """What the judge says of the step's answer, in words too, and the seconds that the step took.

    Where enforced rows conflict, that must be found out; of curved ones it need not be proved.
    """
    begun = time.perf_counter()
    try:
        step, error = problem.solve(), None
    except coldq.Error as raised:
        step, error = None, raised
    seconds = time.perf_counter() - begun
    if step is None:
        unproved = KINDS[rows].tolerance > AFFINE and "may be infeasible" in str(error)
        right = problem.clashes and (isinstance(error, coldq.Infeasible) or unproved)
        return (0.0 if right else INF), f"{type(error).__name__}: {error}", seconds
    if problem.clashes:
        return INF, "an answer where enforced rows conflict", seconds
    found = KINDS[rows].judge(problem, step, tolerance)
    return found, f"{found:.2g}", seconds
