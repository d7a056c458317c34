"""Quadratic rows on a box, with affine rows beside them.

Newton's method in the multipliers answers nearly always. What it misses is polished, or solved by
an interior-point method in double-double arithmetic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array, joined
from coldq.solver.answer import CURVED_TOLERANCE, Step, new_tuple
from coldq.solver.api import curved_residual, quadratic_step, quadratic_values
from coldq.solver.blas import on_one_thread
from coldq.solver.constants import CANCELLATION_ROUNDING, DIVISION_GUARD
from coldq.solver.interior_point import EXTENDED_TOLERANCE, on_quadratic_rows
from coldq.solver.problem import Part, QuadraticProblem, append, members, reach_of
from coldq.solver.threads import run_batch

POLISH_RESIDUAL = (
    1e-10  # the residual above which an answer is polished: enforced rows are to hold within 1e-9
)
MAX_START_RESIDUAL = 1e-2  # the residual up to which an answer is a place to begin
MACHINE_EPSILON = np.finfo(float).eps

Answer = tuple[Array, Array, float]  # x, the multipliers and the residual
Values = tuple[Array, Array, Array, Array]  # of rows, slopes, and the sizes of the terms of both


class Rows(NamedTuple):
    """Rows as the core takes them: those with a P first; `order` says where each came from."""

    P: Array
    A: Array
    b: Array
    low: Array
    high: Array
    order: np.ndarray


def assemble(parts: list[Part], low: Array, high: Array, enforced: tuple[Any, ...]) -> Rows:
    """The rows of all parts, and of a domain's enforced rows after them."""
    if len(parts) == 1 and not enforced and parts[0].P is not None:
        own = (np.ascontiguousarray(array) for array in parts[0])
        return Rows._make((*own, low, high, np.arange(parts[0].n_constraints)))
    for part, least in enforced:
        low = append(low, np.full(part.n_constraints, least), 1)
        high = append(high, np.full(part.n_constraints, np.inf), 1)
    parts = [*parts, *(part for part, _ in enforced)]
    curved = np.concatenate([np.full(part.n_constraints, part.P is not None) for part in parts])
    order = np.argsort(~curved, kind="stable")
    A, b = joined([part.A for part in parts], 2), joined([part.b for part in parts], 1)
    P, p = [part.P for part in parts if part.P is not None], A.shape[-1]
    return Rows(
        np.ascontiguousarray(joined(P, 3)) if P else np.zeros((0, p, p)),
        np.ascontiguousarray(A[..., order, :]),
        np.ascontiguousarray(b[..., order]),
        np.ascontiguousarray(low[..., order]),
        np.ascontiguousarray(high[..., order]),
        order,
    )


def single_answer(problem: QuadraticProblem) -> Step | None:
    """The answer of a single decision, which costs mostly Python: there is little of it here. None
    if there is more to do, or to say."""
    try:
        answer = new_tuple(Step, quadratic_step(*problem, None))
    except TypeError:
        return None
    return answer if answer[0].ndim == 1 and answer[2] <= POLISH_RESIDUAL else None


def solve_curved(problem: QuadraticProblem) -> tuple[Array, Array, Array, np.ndarray]:
    """The answers of a batch, their residuals, and where enforced rows are proved infeasible."""
    x, found, residual = run_curved(problem)
    infeasible = np.zeros(residual.shape, bool)
    for where, one in members(problem, ~(residual <= POLISH_RESIDUAL)):
        *best, infeasible[where] = better(one, x[where], found[where], residual[where])
        x[where], found[where], residual[where] = best
    return x, found, residual, infeasible


def run_curved(problem: QuadraticProblem, start: Array | None = None) -> tuple[Array, Array, Array]:
    """Newton's method alone, from a guess of the multipliers: answers whose residual may be large,
    infinite (enforced rows seem infeasible) or NaN."""
    n, p = problem.A.shape[-2:]
    start = np.zeros(n) if start is None else start
    work = problem.P.shape[-3] * p * p + n * p
    return run_batch(  # type: ignore[return-value]
        quadratic_step, (*problem, start), (*problem.cores, 1), ((p,), (n,), ()), work
    )


def is_finite(one: Any) -> bool:
    """Whether the data of an instance has no NaN, and nothing infinite but what may be."""
    bounds = "multiplier_lower", "multiplier_upper", "lower", "upper"
    firm = (array for name, array in zip(one._fields, one, strict=True) if name not in bounds)
    return all(np.isfinite(array).all() for array in firm) and not any(
        np.isnan(getattr(one, name)).any() for name in bounds
    )


def finite(one: Any, x: Array, lam: Array) -> tuple[Array, Array]:
    """An answer with a point of the box or the least multipliers in place of what is not finite.

    Multipliers that ran away until x was lost may still prove that enforced rows are infeasible.
    """
    if not np.isfinite(x).all():
        x = np.clip(one.center, one.lower, one.upper)
    if not np.isfinite(lam).all():
        lam = np.clip(0.0, one.multiplier_lower, one.multiplier_upper)
    return x, lam


def solve_one(one: QuadraticProblem, start: Array, thorough: bool = True) -> Answer:
    """The best answer of one instance, from a guess of its multipliers, and from others."""
    x, found, worst = run_curved(one, start)
    if worst <= POLISH_RESIDUAL:
        return x, found, float(worst)
    return better(one, x, found, worst)[:3] if thorough else newton(one, x, found)


@on_one_thread
def better(
    one: QuadraticProblem, x: Array, lam: Array, worst: Any
) -> tuple[Array, Array, float, bool]:
    """The best answer of one instance, and whether its enforced rows are proved infeasible.

    Newton's method in x sharpens what is near; if that is not enough, the interior-point method
    begins there and elsewhere.
    """
    if np.isnan(worst) and not is_finite(one):
        return x, lam, worst, False
    x, lam = finite(one, x, lam)
    x, lam, _ = best = without_dust(one, x, lam)
    if best[2] <= MAX_START_RESIDUAL:
        best = newton(one, x, lam)
    if is_sharp(one, *best):
        return *best, False
    if is_infeasible(one, x, lam):
        return *best, True
    for x, lam, left in from_inside(one, *best):
        x, lam, _ = answer = without_dust(one, x, lam, rounded=left <= EXTENDED_TOLERANCE)
        if (answer[2] <= MAX_START_RESIDUAL or left <= EXTENDED_TOLERANCE) and not is_sharp(
            one, *answer
        ):
            answer = min(answer, newton(one, x, lam), key=lambda each: each[2])
        best = answer if answer[2] < best[2] else best
        # Of an answer to twice the digits nothing but its rounding is left to improve.
        if is_sharp(one, *best) or (left <= EXTENDED_TOLERANCE and answer[2] <= CURVED_TOLERANCE):
            return *best, False
        if is_infeasible(one, x, lam):
            return *best, True
    return *best, False


def without_dust(one: QuadraticProblem, x: Array, lam: Array, rounded: bool = False) -> Answer:
    """An answer without what rounding left of zeros, if that is better: where rows meet in zero,
    nothing else would be there to be relative to."""
    answer = x, lam, residual_of(one, x, lam, rounded=rounded)
    dust = MACHINE_EPSILON * reach_of(one.lower, one.upper, x)
    clean = np.clip(np.where(np.abs(x) <= dust, 0.0, x), one.lower, one.upper)
    off = answer[2] if (clean == x).all() else residual_of(one, clean, lam)
    return (clean, lam, off) if off < answer[2] else answer


def from_inside(one: QuadraticProblem, x: Array, lam: Array, worst: float) -> Any:
    """Answers of the interior-point method, in units of an answer that is near, or of the bounds:
    each x and multipliers, and what is left of the conditions."""
    near = worst <= MAX_START_RESIDUAL
    own, most = (
        float(known_size(one, x).max(initial=DIVISION_GUARD)),
        reach_of(one.lower, one.upper, x),
    )
    units = own, max(most, DIVISION_GUARD)
    for unit in dict.fromkeys(units if near else units[::-1]):
        yield from on_quadratic_rows(one, unit, x, lam, near and unit == own)


def is_sharp(one: QuadraticProblem, x: Array, lam: Array, worst: float) -> bool:
    """Whether this is an answer, and what must hold does so to more digits."""
    if worst <= POLISH_RESIDUAL or not worst <= CURVED_TOLERANCE:
        return worst <= POLISH_RESIDUAL
    g, _, size, _ = values(one, x)
    firm = np.isinf(one.multiplier_lower) | np.isinf(one.multiplier_upper)
    over = np.where(np.isinf(one.multiplier_lower), np.abs(g), np.maximum(g, 0.0))[firm]
    return bool((over <= POLISH_RESIDUAL * size[firm]).all())


def is_infeasible(
    one: Any, x: Array, lam: Array, known: Values | None = None, bend: Array | None = None
) -> bool:
    """Whether enforced rows, weighed by these multipliers, are above zero on all of the box.

    A convex function lies above its tangent at x, which is least in a corner; and above a bowl,
    where it is known to `bend` by so much in each coordinate at least, which has a least value
    where there are no bounds, too.
    """
    g, J, size, _ = values(one, x) if known is None else known
    low, high, lower, upper = one.multiplier_lower, one.multiplier_upper, one.lower, one.upper
    mu = np.where((high == np.inf) & (lam > 0.0), lam, 0.0)
    mu = np.where((low == -np.inf) & (lam < 0.0), lam, mu)
    if not (mu.any() and np.isfinite(mu).all() and np.isfinite(x).all()):
        return False
    mu = mu / np.abs(mu).max()  # lest the next line overflows
    mu = mu / np.abs(mu * size).max()
    slope = mu @ J
    slope = np.where(np.abs(slope) <= 1e-14 * (np.abs(mu) @ np.abs(J)), 0.0, slope)
    bowl = np.zeros(x.size) if bend is None else np.maximum(mu @ bend, 0.0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        farthest = np.where(slope > 0.0, lower - x, upper - x)
        move = np.where(bowl > 0.0, -slope / bowl, farthest)
        move = np.where(np.abs(move) < np.abs(farthest), move, farthest)
        way = slope * move + np.where(bowl > 0.0, 0.5 * bowl * move * move, 0.0)
    least = mu @ g + np.where(slope != 0.0, way, 0.0).sum()
    return bool(least > CURVED_TOLERANCE * (np.abs(mu) @ size))


def newton(one: QuadraticProblem, x: Array, lam: Array) -> Answer:
    """Newton's method on what an answer leaves between bounds, with x itself for an unknown.

    In the dual x is a function of the multipliers; where those are huge, it cannot hold the digits.
    """
    center, gradient, alpha, low, high, P, _, _, lower, upper = one
    best, half = (x, lam, residual_of(one, x, lam)), 0.5 / float(alpha)
    y, m = center - gradient * half, len(P)
    for _ in range(6):
        free, inner = (lower < x) & (x < upper), (low < lam) & (lam < high)
        g, J, *_ = values(one, x)
        mu = lam * half
        away = (x - y + J.T @ mu)[free]
        B = (np.eye(x.size) + np.tensordot(mu[:m], P, 1))[np.ix_(free, free)]
        rows = J[np.ix_(inner, free)]
        whole = np.block([[B, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
        # Rows and columns brought to one size first, for rows may differ by many magnitudes.
        size = 1.0 / np.sqrt(np.maximum(np.abs(whole).max(axis=1, initial=0.0), DIVISION_GUARD))
        right = -np.concatenate([away, g[inner]]) * size
        move = size * np.linalg.lstsq(whole * size * size[:, None], right, rcond=1e-14)[0]
        x, lam = x.copy(), lam.copy()
        x[free] += move[: len(B)]
        lam[inner] += move[len(B) :] / half
        x, lam = np.clip(x, lower, upper), np.clip(lam, low, high)
        found, last = residual_of(one, x, lam), best[2]
        best = (x, lam, found) if found < last else best
        if not found < 0.3 * last:
            break
    return best


def known_size(one: Any, x: Array) -> Array:
    """The size of each coordinate: of itself, or if more of the rounding that it may have."""
    pulled = np.abs(one.center - one.gradient * (0.5 / one.alpha))
    doubt = np.minimum(CANCELLATION_ROUNDING * pulled, one.upper - one.lower)
    return np.maximum(np.abs(x), doubt)


def values(one: QuadraticProblem, x: Array) -> Values:
    """The values of rows, their slopes, the sizes of the terms of the values, and of those of the
    slopes that x moves."""
    return quadratic_values(*one, x)


def residual_of(
    one: Any, x: Array, lam: Array, known: Values | None = None, rounded: bool = False
) -> float:
    """The relative KKT residual of an answer from anywhere, infinite where that is not finite.

    Enforced rows do not count in what slopes are relative to: their multipliers may be huge. Only
    their rounding does, if they are `rounded` from more digits. Rows of another kind come with what
    :func:`values` gives, `known`.
    """
    of_rows = values(one, x) if known is None else known
    given = (
        one.center,
        one.gradient,
        one.alpha,
        one.multiplier_lower,
        one.multiplier_upper,
        one.lower,
        one.upper,
    )
    found = float(curved_residual(*given, *of_rows, x, lam, float(rounded)))
    return np.inf if np.isnan(found) else found
