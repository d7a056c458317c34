"""Many affine rows or coordinates, dense or sparse: the dual Newton method on BLAS and LAPACK.

The same dual as the compiled kernel's, for one instance at a time, so that a batch gives the bits
of one by one. What is done with the matrix are whole passes over it (``A x``, ``A'd``) and, for
the rows that move and the coordinates that are free, one product ``A_CF A_CF'``, of sparse rows in
parts that have nothing in common.

The quadratic piece is maximised over the rows, as in the kernel, by pivoting. That does not end
where rows cannot all be met and many multipliers are at their weights, and with more rows than
coordinates the piece is singular and as large as N by N: :mod:`coldq.solver.interior_point` finds
which multipliers are at a bound, by systems no larger than the rows or the coordinates, and
Newton's method finishes. Dense rows that are not too many are told so by the working set that
failed, and go that way at once, all compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg.lapack import dposv  # type: ignore[attr-defined]

from coldq._values import Array
from coldq.solver.answer import TOLERANCE
from coldq.solver.constants import REGULARISATION, X_FLOOR
from coldq.solver.interior_point import from_inside
from coldq.solver.kernels.affine import dual_search
from coldq.solver.kernels.large import (
    advance,
    corrected,
    dense_residual,
    how_far,
    mark_wrong,
    move,
    reduced,
    sparse_residual,
    to_move,
)
from coldq.solver.kernels.piece import COLUMNS, FREE, W, Z
from coldq.solver.problem import HALF, Divided, zeros_of
from coldq.solver.simplices import FEWER_STEPS, run_on_box

FLAT, FLAT_STEPS = 1e-8, 10  # of a row that no free coordinate enters, and until when that counts
SOON = 20  # Newton steps in the rows: later, it is tried from inside
ALL = 16  # times the rows chosen: with no more, all are taken from inside
SHARED = 8  # times the coordinates: as many rows may be between their bounds at the end
SMALL = 60_000  # numbers of sparse rows as dense ones, with which these are faster from inside
MOST_AT_ONCE = 600  # sparse rows that all matter, for the compiled kernel
MORE_AT_ONCE = 2500  # the same where they share coordinates, and so do not fall into parts
COMPILED = 300  # rows between their bounds for which the compiled kernel finishes
FIRST_ROWS = 32  # how many of the most violated rows are solved for first
SQUARE = 2  # times the coordinates: with more rows the piece is mostly singular, and large
SETTLED = 1e-11  # the residual of an answer that needs no other method


def solve(problem: Divided, from_inside: bool) -> tuple[Array, Array, float]:
    """x and mu of an instance, and their residual, in units in which x is not far smaller than 1;
    `from_inside` first, if so."""
    x = problem.clip(problem.y)
    mu, unit, found = np.zeros_like(problem.b), np.inf, np.inf
    while (smaller := unit_of(problem, x)) < unit:
        unit = smaller
        scaled = problem.in_units(unit)
        answer = solve_at_once(scaled) if from_inside else None
        x, mu = answer or (solve_sparse(scaled) if problem.sparse else solve_one(scaled))
        x, mu = unit * x, unit * mu
        found = residual(problem, x, mu)
        if found <= TOLERANCE:
            break
    return x, mu, found


def unit_of(problem: Divided, x: Array) -> float:
    """1, or about the size of x where that is so small that floors of 1 would hide it."""
    size = np.abs(x).max(initial=0.0)
    if size >= X_FLOOR:
        return 1.0
    reach = np.minimum(np.abs(problem.y), np.maximum(-problem.lower, problem.upper))
    size = max(size, X_FLOOR * np.abs(reach).max(initial=0.0))
    return 1.0 if not 0.0 < size < X_FLOOR else float(2.0 ** np.floor(np.log2(size)))


def solve_sparse(problem: Divided) -> tuple[Array, Array]:
    """The same of sparse rows: all at once by the kernel for blocks, or by all the methods here.

    Coordinates that no row enters are known at once and left out.
    """
    entered, A = problem.A.without_empty_columns()
    if entered.size < problem.y.size:
        y, lower, upper = (a[entered] for a in (problem.y, problem.lower, problem.upper))
        inner, mu = solve_entered(Divided(y, A, *problem[2:5], lower, upper))
        x = problem.clip(problem.y)
        x[entered] = inner
        return x, mu
    return solve_entered(problem)


def solve_entered(problem: Divided) -> tuple[Array, Array]:
    """The same where every coordinate is entered."""
    n, p = problem.A.shape
    at_once = n <= min(3 * p, MOST_AT_ONCE if 4 * n <= p else MORE_AT_ONCE)
    answer = None
    if at_once:
        x, mu, _ = run_on_box(problem, np.zeros(n), FEWER_STEPS)
        answer = (x, mu) if residual(problem, x, mu) <= SETTLED else None
    if answer is None and n * p <= SMALL:
        answer = solve_at_once(problem._replace(A=problem.A.toarray()))
    if answer is not None:
        return answer
    x, mu = solve_one(problem, at_once=2 * n <= p)
    if 2 * n <= p and not residual(problem, x, mu) <= TOLERANCE:
        x, mu = solve_one(problem, at_once=False)
    return x, mu


def solve_one(problem: Divided, at_once: bool = False) -> tuple[Array, Array]:
    """x and mu of an instance; whether they are the answer is for the residual to say.

    Of many rows few hold x back. So the rows most violated at the start are solved for first, then
    those that their answer violates are added, as many at most as there are already; `at_once` all
    there are. Where few do not end soon, most rows are likely to matter, and all are taken unless
    far more.
    """
    y, A, b, lo, hi, _, _ = problem
    n = b.size
    mu = np.minimum(np.maximum(0.0, lo), hi)
    x = problem.clip(y - mu @ A if mu.any() else y)
    g = A @ x - b
    norms = row_norms(problem)
    # A row that is constant on X has its multiplier at a bound, once and for all.
    fixed = norms == 0.0
    bound = np.where(g > 0.0, hi, lo)  # infinite where hard rows clash: the residual will say so
    mu = np.where(fixed & (g != 0.0) & np.isfinite(bound), bound, mu)
    length = np.sqrt(np.where(fixed, 1.0, norms))
    chosen = np.zeros(n, bool)
    while True:
        wrong = wrong_rows(problem, norms, x, mu, g) & ~(chosen | fixed)
        added, count = np.flatnonzero(wrong), max(FIRST_ROWS, int(chosen.sum()))
        if added.size == 0:
            return x, mu
        if at_once:
            added = np.flatnonzero(~fixed)
        elif added.size > count:
            depth = np.abs(g[added]) / length[added]
            added = added[np.argpartition(depth, -count)[-count:]]
        chosen[added] = True
        part = problem.only(chosen, mu)
        answer = solve_soon(part, norms[chosen], mu[chosen])
        if answer is None:
            if n <= ALL * chosen.sum():
                chosen = ~fixed
                part = problem.only(chosen, mu)
            answer = finish_from_inside(part, norms[chosen])
        if answer is None:
            return x, mu  # no answer, as its residual says: others go on
        x, mu[chosen] = answer
        g = A @ x - b


def solve_at_once(problem: Divided) -> tuple[Array, Array] | None:
    """x and mu of dense rows of which many hold x back, all at once from inside; None if that does
    not settle it."""
    norms = row_norms(problem)
    return finish_from_inside(problem, norms) if norms.all() else None


def finish_from_inside(problem: Divided, norms: Array) -> tuple[Array, Array] | None:
    """The same where no row is constant."""
    given = problem.lo, problem.hi, problem.A, problem.b, problem.lower, problem.upper
    for guess in from_inside(problem.y, zeros_of(problem.y.size), HALF, *given):
        # Multipliers of duplicate rows share what one would have: more are between their bounds.
        answer = finish(problem, norms, guess, most=SHARED * problem.y.size)
        if answer is not None:
            return answer
    return None


def solve_soon(problem: Divided, norms: Array, mu: Array) -> tuple[Array, Array] | None:
    """x and mu from piece to piece; None if that does not end soon."""
    if problem.b.size > SQUARE * problem.y.size:
        return None
    answer = newton_in_rows(problem, norms, mu, SOON)
    if answer is None:
        return None
    x, mu = answer
    wrong = wrong_rows(problem, norms, x, mu, problem.A @ x - problem.b)
    return None if wrong.any() else answer


def wrong_rows(problem: Divided, norms: Array, x: Array, mu: Array, g: Array) -> np.ndarray:
    """Where a multiplier has room to go where g pushes it."""
    wrong, far = np.empty(mu.size, np.int64), float(np.linalg.norm(x))
    mark_wrong()(mu, problem.lo, problem.hi, g, problem.b, norms, far, wrong)
    return wrong.astype(bool)


def residual(problem: Divided, x: Array, mu: Array) -> float:
    """The relative KKT residual, as the compiled kernel defines it; NaN where anything is."""
    unit = unit_of(problem, x)
    y, A, b, lo, hi, lower, upper = problem.in_units(unit)
    x, mu = (x, mu) if unit == 1.0 else (x / unit, mu / unit)
    rest = [np.ascontiguousarray(a) for a in (y, b, lo, hi, lower, upper, x, mu)]
    memory = np.zeros((2, y.size))
    if problem.sparse:
        return sparse_residual()(*A.parts, *rest, *memory)
    return dense_residual()(np.ascontiguousarray(A), *rest, *memory)


def newton_in_rows(
    problem: Divided, norms: Array, mu: Array, steps: int
) -> tuple[Array, Array] | None:
    """Newton's method on the dual: each step maximises a quadratic piece over the bounds. None if
    pivoting does not end."""
    y, A, b, lo, hi, lower, upper = problem
    mu, length, turned = mu.copy(), np.sqrt(norms), A.T
    lines = np.zeros((COLUMNS, y.size))  # as the kernel keeps them
    z, w, free, x = lines[Z], lines[W], lines[FREE], np.empty(y.size)
    places, rooms = np.empty(b.size, np.int64), np.empty((3, b.size))
    z[:] = y - mu @ A if mu.any() else y
    t = 0.0
    for k in range(steps):
        # z goes by increments: for a huge y they shrink, and g is driven to zero at x's accuracy.
        far = advance()(z, w, t, lower, upper, x, free)
        g = A @ x - b
        count = to_move()(mu, lo, hi, g, b, length, far, places, *rooms)
        if count == 0:
            break
        moving, (gain, down, up) = places[:count], rooms[:, :count]
        parts, combination = products(A, turned, moving, free)
        if k < FLAT_STEPS and any(
            (diagonal(H) <= FLAT * norms[moving[own]]).any() for own, H in parts
        ):
            # Of a row without free coordinates the piece does not say how far to go. At first, the
            # coordinates that the rows push off their bounds are counted in.
            push = combination(gain)
            leaving = np.where(push > 0.0, z > lower, z < upper) & (lower < upper)
            parts, combination = products(A, turned, moving, leaving.astype(float))
        d = np.empty(count)
        for own, H in parts:
            diagonal(H)[:] += REGULARISATION * norms[moving[own]]
            its = pivot(H, gain[own], down[own], up[own])
            if its is None:
                return None
            d[own] = its
        slope, offset, limit = how_far()(d, moving, b, gain, down, up)
        if not slope > 0.0:
            break
        w[:] = combination(d)
        t = dual_search()(lower, upper, lines, slope, offset, limit)
        if t == np.inf:
            break  # the dual rises for ever: hard rows have no common point
        move()(mu, lo, hi, moving, down, up, d, t)
    return x, mu


def row_norms(problem: Divided) -> Array:
    """The squared length of every row over the coordinates that can move."""
    A, can_move = problem.A, (problem.lower < problem.upper).astype(float)
    if problem.sparse:
        return A.square_lengths(can_move)
    if can_move.all():
        return np.einsum("ni,ni->n", A, A)
    return np.einsum("ni,ni,i->n", A, A, can_move)


Parts = list[tuple[Any, Array]]  # of a matrix: which lines, and what these have in common


def diagonal(H: Array) -> Array:
    return H.ravel()[:: H.shape[0] + 1]


def products(
    A: Any, turned: Any, moving: np.ndarray, free: Array
) -> tuple[Parts, Callable[[Array], Array]]:
    """``A_CF A_CF'`` of free coordinates F, and how to get ``A_C'd``, for the rows C that move.

    Sparse rows that share no free coordinate, and have no rows between them that do, are apart.
    """
    n = A.shape[0]
    if isinstance(A, np.ndarray):
        rows = A if moving.size == n else A[moving]
        inside = rows if free.all() else rows[:, free > 0.0]
        return [(slice(None), inside @ inside.T)], lambda d: d @ rows

    place = np.full(n, -1)
    place[moving] = np.arange(moving.size)

    def combination(d: Array) -> Array:
        whole = np.zeros(n)
        whole[moving] = d
        return whole @ A

    parts = turned.apart(place, moving.size, free)
    if len(parts) == 1:
        return [(slice(None), turned.squares(place, moving.size, free))], combination
    found = Parts()
    for own in parts:
        place[:] = -1
        place[moving[own]] = np.arange(own.size)
        found.append((own, turned.squares(place, own.size, free)))
    return found, combination


def pivot(H: Array, gain: Array, down: Array, up: Array) -> Array | None:
    """Maximise ``gain'd - d'Hd / 2`` over ``down <= d <= up``; None if that does not end soon.

    Block principal pivoting guesses which entries are at a bound and corrects all wrong guesses
    at once: a few rounds are nearly always enough. It is not monotone and may cycle.
    """
    reduce, correct = reduced(), corrected()
    side = np.empty(gain.size, np.int64)
    d, right, M = np.empty(gain.size), np.empty(gain.size), np.empty(H.size)
    for k in range(10):
        n = reduce(k == 0, H, gain, down, up, side, d, M, right)
        answer = solve_definite(M[: n * n].reshape(n, n), right[:n]) if n else right
        if correct(H, gain, down, up, answer, side, d):
            return d
    return None


def solve_definite(H: Array, right: Array) -> Array:
    """``H^-1 right``; H is positive definite but for rounding. It is overwritten."""
    own = diagonal(H).copy()
    _, answer, info = dposv(H.T, right, lower=1, overwrite_a=1)  # symmetric, in Fortran's order
    if info == 0:
        return answer
    H = np.tril(H, -1)  # as it was
    H += H.T
    diagonal(H)[:] = own + (1e-9 * own + 1e-300)
    return np.asarray(np.linalg.lstsq(H, right, rcond=None)[0], np.float64)


def finish(problem: Divided, norms: Array, mu: Array, most: int) -> tuple[Array, Array] | None:
    """Newton's method for the rows between their bounds at mu; None if not these decide.

    The multipliers given become the answer's.
    """
    A, b, chosen = problem.A, problem.b, (problem.lo < mu) & (mu < problem.hi)
    for _ in range(4):
        if chosen.sum() > most:
            return None
        part = problem.only(chosen, mu)
        if not problem.sparse and chosen.sum() <= COMPILED:
            x, mu[chosen], _ = run_on_box(part, mu[chosen])
        else:
            answer = newton_in_rows(part, norms[chosen], mu[chosen], steps=8)
            if answer is None:
                return None
            x, mu[chosen] = answer
        g = A @ x
        g -= b
        wrong = wrong_rows(problem, norms, x, mu, g)
        if not wrong.any():
            return (x, mu) if residual(problem, x, mu) <= SETTLED else None
        if (wrong & chosen).any():
            return None
        chosen |= wrong
    return None
