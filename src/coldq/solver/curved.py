"""Quadratic rows on a box, with affine rows beside them: the compiled dual Newton method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from coldq._values import Array, joined
from coldq.solver.answer import CURVED_TOLERANCE, Step, new_tuple
from coldq.solver.api import quadratic_step
from coldq.solver.blas import on_one_thread
from coldq.solver.cascade import HUGE
from coldq.solver.clarabel import explain
from coldq.solver.constants import DOUBT, TERMS, TINY, X_FLOOR
from coldq.solver.last_resort import CERTAIN, on_quadratic_rows
from coldq.solver.problem import (
    AffineProblem,
    Part,
    QuadraticProblem,
    append,
    members,
    reach_of,
)
from coldq.solver.threads import run_native

SHARP = 1e-10  # the residual above which an answer is polished: hard rows are to hold within 1e-9
NEAR = 1e-2  # the residual up to which an answer is a place to begin
LAST_DIGIT = np.finfo(float).eps
STIFF = 1e8  # the weight that decides whether hard rows have a common point


class Rows(NamedTuple):
    """Rows as the kernel takes them: those with a P first; `order` says where each came from."""

    P: Array
    A: Array
    b: Array
    low: Array
    high: Array
    order: np.ndarray


def assemble(parts: list[Part], low: Array, high: Array, hard: tuple[Any, ...]) -> Rows:
    """The rows of all parts, and of a domain's hard rows after them."""
    if len(parts) == 1 and not hard and parts[0].P is not None:
        own = (np.ascontiguousarray(array) for array in parts[0])
        return Rows._make((*own, low, high, np.arange(parts[0].n_constraints)))
    for part, least in hard:
        low = append(low, np.full(part.n_constraints, least), 1)
        high = append(high, np.full(part.n_constraints, np.inf), 1)
    parts = [*parts, *(part for part, _ in hard)]
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
        x, found, residual = quadratic_step(*problem, None)
    except TypeError:
        return None
    if x.ndim > 1:  # the others are of a batch
        return None
    settled = residual <= SHARP and np.maximum.reduce(found, initial=0.0) <= HUGE
    return new_tuple(Step, (x, found, residual)) if settled else None


def solve_curved(problem: QuadraticProblem) -> tuple[Array, Array, Array, np.ndarray]:
    """The answers of a batch, their residuals, and where hard rows have no common point."""
    x, found, residual = run_curved(problem, np.zeros(problem.b.shape[-1]))
    if residual.size and not (residual.max() <= SHARP and np.abs(found).max(initial=0.0) <= HUGE):
        x, found, residual = (np.array(a) for a in (x, found, residual))
        return x, found, residual, again(problem, x, found, residual)
    return x, found, residual, np.zeros(residual.shape, bool)


def run_curved(problem: QuadraticProblem, start: Array) -> tuple[Array, Array, Array]:
    """The kernel alone: answers whose residual may be large, infinite or NaN."""
    n, p = problem.A.shape[-2:]
    work = problem.P.shape[-3] * p * p + n * p
    return run_native(quadratic_step, (*problem, start), (*problem.cores, 1), n, work)


def again(problem: QuadraticProblem, x: Array, found: Array, residual: Array) -> np.ndarray:
    """Polish what is not sharp, solve anew what is not solved; and say where hard rows clash."""
    clash = np.zeros(residual.shape, bool)
    huge, lost = np.abs(found).max(axis=-1, initial=0.0) > HUGE, np.isnan(residual)
    for where, one in members(problem, (residual > SHARP) | huge | lost):
        if lost[where] and not is_finite(one):
            continue
        worst = np.inf if lost[where] else float(residual[where])
        if huge[where] and not lost[where]:
            worst = residual_of(one, x[where], found[where])
        *best, clash[where] = better(one, x[where], found[where], worst)
        x[where], found[where], residual[where] = best
    return clash


def is_finite(one: QuadraticProblem) -> bool:
    """Whether the data has no NaN, and nothing infinite but what may be."""
    firm = one.center, one.gradient, one.alpha, one.P, one.A, one.b
    bounds = one.floor, one.weights, one.lower, one.upper
    return all(np.isfinite(part).all() for part in firm) and not any(
        np.isnan(part).any() for part in bounds
    )


def solve_one(
    one: QuadraticProblem, start: Array, thorough: bool = True
) -> tuple[Array, Array, float]:
    """The best answer of one instance, from a guess of its multipliers, and from others."""
    x, found, worst = run_curved(one, start)
    worst = residual_of(one, x, found) if np.isfinite(worst) else np.inf
    if worst <= SHARP:
        return x, found, worst
    return better(one, x, found, worst)[:3] if thorough else newton(one, x, found)


@on_one_thread
def better(
    one: QuadraticProblem, x: Array, lam: Array, worst: float
) -> tuple[Array, Array, float, bool]:
    """The best answer of one instance, and whether its hard rows have no common point.

    Newton's method sharpens what the kernel found; if that is not enough, the interior-point method
    on pairs of doubles begins there and elsewhere, and at last x gets multipliers of its own.
    """
    best: Any = (x, lam, worst)
    if np.isfinite(x).all() and np.isfinite(lam).all():
        x, lam, worst = best = without_dust(one, *best)
        best = newton(one, x, lam) if worst <= NEAR else best
        if is_sharp(one, *best):
            return *best, False
        if clash_is_proven(one, x, lam):
            return *best, True
    else:
        begin = np.clip(one.center, one.lower, one.upper)
        best = begin, np.clip(0.0, one.floor, one.weights), np.inf
        if np.isfinite(lam).all() and clash_is_proven(one, begin, lam):  # they ran away
            return *best, True
    for k, (x, lam, left) in enumerate(from_inside(one, *best)):
        rounded = residual_of(one, x, lam, rounded=left <= CERTAIN)
        x, lam, _ = answer = without_dust(one, x, lam, rounded)
        if (answer[2] <= NEAR or left <= CERTAIN) and not is_sharp(one, *answer):
            other = newton(one, x, lam)
            answer = other if other[2] < answer[2] else answer
        best = answer if answer[2] < best[2] else best
        # Of an answer to twice the digits nothing but its rounding is left to improve.
        if is_sharp(one, *best) or (left <= CERTAIN and answer[2] <= CURVED_TOLERANCE):
            return *best, False
        far = k == 0 and not best[2] <= NEAR
        if clash_is_proven(one, x, lam) or (far and hard_rows_clash(one)):
            return *best, True
    if NEAR >= best[2] > CURVED_TOLERANCE and hard_rows_clash(one):
        return *best, True
    for answer in explained(one, *best[:2]):
        best = answer if answer[2] < best[2] else best
        if best[2] <= CURVED_TOLERANCE:
            break
    return *best, False


def without_dust(
    one: QuadraticProblem, x: Array, lam: Array, worst: float
) -> tuple[Array, Array, float]:
    """An answer without what rounding left of zeros, if that is better: where rows meet in zero,
    nothing else would be there to be relative to."""
    dust = LAST_DIGIT * reach_of(one.lower, one.upper, x)
    clean = np.clip(np.where(np.abs(x) <= dust, 0.0, x), one.lower, one.upper)
    off = worst if (clean == x).all() else residual_of(one, clean, lam)
    return (clean, lam, off) if off < worst else (x, lam, worst)


def from_inside(
    one: QuadraticProblem, x: Array, lam: Array, worst: float
) -> Iterator[tuple[Array, Array, float]]:
    """Answers of the last resort, in units of an answer that is near, or of the bounds."""
    near = worst <= NEAR
    units = unit_of(one, x), max(reach_of(one.lower, one.upper, x), TINY)
    for unit in dict.fromkeys(units if near else units[::-1]):
        yield from on_quadratic_rows(one, unit, x, lam, near and unit == units[0])


def is_sharp(one: QuadraticProblem, x: Array, lam: Array, worst: float) -> bool:
    """Whether this is an answer, and what must hold does so to more digits."""
    if worst <= SHARP or not worst <= CURVED_TOLERANCE:
        return worst <= SHARP
    g, _, size, _ = values(one, x)
    firm = np.isinf(one.floor) | np.isinf(one.weights)
    over = np.where(np.isinf(one.floor), np.abs(g), np.maximum(g, 0.0))[firm]
    return bool((over <= SHARP * size[firm]).all())


def clash_is_proven(one: QuadraticProblem, x: Array, lam: Array) -> bool:
    """Whether the hard rows, weighed by these multipliers, are above zero on all of the box."""
    g, J, size, _ = values(one, x)
    return tangents_clash(one, x, lam, g, J, size)


def tangents_clash(
    one: Any, x: Array, lam: Array, g: Array, J: Array, size: Array, bend: Array | None = None
) -> bool:
    """The same of any rows, from their values, slopes and the sizes of their terms at x.

    A convex function lies above its tangent at x, which is least in a corner; and above a bowl,
    where it is known to `bend` by so much in each coordinate at least, which has a least value
    where there are no bounds, too.
    """
    low, high, lower, upper = one.floor, one.weights, one.lower, one.upper
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


def explained(one: QuadraticProblem, x: Array, lam: Array) -> Iterator[tuple[Array, Array, float]]:
    """What Newton's method makes of an answer, and of x with multipliers found anew.

    Rows that leave a domain without an inside have no bound on their multipliers: those of the dual
    may be so huge that a residual relative to them says little. So small ones are tried.
    """
    center, gradient, alpha, low, high, _, _, _, lower, upper = one
    yield newton(one, x, lam)
    y = center - gradient * (0.5 / alpha)
    for slack in (1e-8, 1e-6, 1e-4):
        there, found = x, lam
        for _ in range(2):
            g, J, *_ = values(one, there)
            tangents = AffineProblem(
                center, gradient, alpha, low, high, 0.0 * low, J, J @ there - g, lower, upper
            )  # fmt: skip
            there, found = explain(tangents, y, there, slack)
        yield newton(one, there, found)


def newton(one: QuadraticProblem, x: Array, lam: Array) -> tuple[Array, Array, float]:
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
        size = 1.0 / np.sqrt(np.maximum(np.abs(whole).max(axis=1, initial=0.0), TINY))
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


def unit_of(one: QuadraticProblem, x: Array) -> float:
    """The size of the largest coordinate."""
    return float(known_size(one, x).max(initial=TINY))


def known_size(one: Any, x: Array) -> Array:
    """The size of each coordinate: of itself, or if more of the rounding that it may have."""
    pulled = np.abs(one.center - one.gradient * (0.5 / one.alpha))
    doubt = np.minimum(DOUBT * pulled, one.upper - one.lower)
    return np.maximum(np.abs(x), doubt)


def values(one: QuadraticProblem, x: Array) -> tuple[Array, Array, Array, Array]:
    """g, its jacobian, the sizes of the terms of g, and of those of the jacobian that x moves."""
    P, A, b = one.P, one.A, one.b
    m, terms = len(P), np.zeros_like(A)
    inside = A != 0.0
    inside[:m] |= np.diagonal(P, axis1=1, axis2=2) != 0.0
    largest = np.where(inside, known_size(one, x), 0.0).max(axis=1, initial=0.0)
    at = np.maximum(np.abs(x), X_FLOOR * largest[:, None])
    g, J, size = A @ x - b, A.copy(), (np.abs(A) * at).sum(axis=1) + np.abs(b)
    bent, most = P @ x, (np.abs(P) * at[:m, None, :]).sum(axis=2)
    g[:m] += 0.5 * (bent @ x)
    J[:m] += bent
    size[:m] += 0.5 * (most * at[:m]).sum(axis=1)
    terms[:m] = most
    return g, J, size, terms


def residual_of(
    one: Any, x: Array, lam: Array, terms_of_slopes: Array | None = None,
    rounded: bool = False, known: tuple[Array, Array, Array, Array] | None = None,
) -> float:  # fmt: skip
    """The relative KKT residual, stricter than the kernel's.

    An answer from elsewhere need not minimise the Lagrangian. So a coordinate is off in the
    gradient, for where alpha is tiny no step in a small box is long beside y; or in x, if less. A
    last digit of the largest coordinate is nothing in any.
    And hard rows do not count in what the gradient is relative to: their multipliers may be huge.
    Only their rounding does, if they are known to be `rounded` from more digits. Rows that have no
    matrices come with what :func:`values` gives, `known`.
    """
    center, gradient, alpha, low, high = one[:5]
    lower, upper = one.lower, one.upper
    half = 0.5 / float(alpha)
    g, J, size, most = values(one, x) if known is None else known
    most = most if terms_of_slopes is None else most + terms_of_slopes
    y, terms = center - gradient * half, J * (lam * half)[:, None]
    slope = x - y + terms.sum(axis=0)
    slope = np.where(x <= lower, np.minimum(slope, 0.0), slope)
    slope = np.abs(np.where(x >= upper, np.maximum(slope, 0.0), slope))
    firm = np.isinf(high) | np.isinf(low)
    scale = np.abs(x) + np.abs(y) + np.abs(terms[~firm]).sum(axis=0)
    if rounded:
        scale = scale + TERMS * np.abs(terms[firm]).sum(axis=0)
    scale = np.maximum(scale + TERMS * most.T @ np.abs(lam * half), TINY)
    move = np.abs(x - np.clip(y - terms.sum(axis=0), lower, upper))
    move = np.maximum(move - LAST_DIGIT * np.abs(x).max(initial=0.0), 0.0)
    move = move / np.maximum(known_size(one, x), TINY)
    wrong = ((lam > low) & (g < 0.0)) | ((lam < high) & (g > 0.0))
    off = np.where(wrong, np.abs(g) / np.where(size > 0.0, size, 1.0), 0.0)
    return float(np.concatenate([np.minimum(slope / scale, move), off]).max(initial=0.0))


def hard_rows_clash(one: QuadraticProblem) -> bool:
    """Whether hard rows stay violated where they are all that matters, however great their weight.

    Where they have a common point, a greater weight brings x closer to it.
    """
    center, gradient, _, low, high, P, A, b, lower, upper = one
    at_most, at_least = high == np.inf, low == -np.inf
    if not (at_most.any() or at_least.any()):
        return False
    begin = np.clip(center, lower, upper)
    unit = reach_of(lower, upper, begin) or 1.0
    size = np.abs(b) + np.abs(A).sum(axis=-1) * unit
    size[: len(P)] += np.abs(P).sum(axis=(-1, -2)) * unit * unit
    price = unit * unit / np.where(size > 0.0, size, 1.0)
    last = np.inf
    for weight in (STIFF, 1e3 * STIFF, 1e6 * STIFF):
        high, low = np.where(at_most, weight * price, 0.0), np.where(at_least, -weight * price, 0.0)
        soft = one._replace(
            center=begin, gradient=0.0 * gradient, alpha=np.array(1.0), floor=low, weights=high
        )
        x, lam, worst = solve_one(soft, np.zeros_like(b))
        if clash_is_proven(soft._replace(floor=one.floor, weights=one.weights), x, lam):
            return True
        if not worst <= CURVED_TOLERANCE:
            return False
        g, _, terms, _ = values(soft, x)
        violation = np.maximum(np.where(at_most, g, 0.0), np.where(at_least, -g, 0.0))
        off = float((violation / np.where(terms > 0.0, terms, 1.0)).max())
        if off <= CURVED_TOLERANCE or off < 0.5 * last < np.inf:
            return False
        last = off
    return True
