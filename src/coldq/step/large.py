"""Many affine rows or coordinates, dense or sparse: the dual Newton method on BLAS and LAPACK.

The same dual as the compiled kernel's, for one instance at a time, so that a batch gives the bits
of one by one. What is done with the matrix are whole passes over it (``A x``, ``A'd``) and, for
the rows that move and the coordinates that are free, one product ``A_CF A_CF'``.

With fewer rows than coordinates the quadratic piece is maximised over the rows, as in the kernel.
With more rows than coordinates that piece is singular and as large as N by N; then the method of
multipliers keeps every system in x, which has only p coordinates:

    mu <- clip(mu + sigma g(x)),   x = argmin over X of |x - y|^2 / 2 + envelope(g(x); mu, sigma),

each minimisation by Newton's method with ``I + A_S' sigma A_S``, S the rows between their bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv  # type: ignore[attr-defined]

from coldq._values import Array
from coldq.constraints import Affine
from coldq.domains import Box
from coldq.sparse_affine import SparseAffine
from coldq.step.affine import TOLERANCE, misfit, raise_if_failed
from coldq.step.answer import Step
from coldq.step.kernels import COLUMNS, W, Z, dual_search
from coldq.step.rescue import Instance, clarabel_answers, hard_rows_clash

X_FLOOR = 1e-3  # keeps a row's scale positive where x = 0 and b = 0, as in the kernel
ROW_TOLERANCE = 1e-13  # of a row's scale: when its multiplier no longer moves
REGULARISATION = 1e-11  # of a row's squared norm: duplicate rows have one answer
FIRST_ROWS = 32  # how many of the most violated rows are solved for first
SEARCH_TOLERANCE = 0.02  # of the slope at the start, as in the kernel
SETTLED = 1e-11  # the residual at which the method of multipliers ends
START, STIFFEST = 1e2, 1e8  # sigma a_n'a_n: beyond, the systems lose the digits gained


class Problem(NamedTuple):
    """One instance, divided by 2 alpha: y = center - gradient / (2 alpha), bounds of mu."""

    y: Array
    A: Any  # an array, or a sparse one by rows
    b: Array
    lo: Array
    hi: Array
    lower: Array
    upper: Array
    columns: Any = None  # of a sparse A: data, indices and pointers by columns

    @property
    def sparse(self) -> bool:
        return not isinstance(self.A, np.ndarray)

    def only(self, chosen: np.ndarray, mu: Array) -> Problem:
        """The instance of the chosen rows, the others held at mu."""
        if chosen.all():
            return self
        others = np.where(chosen, 0.0, mu)
        y = self.y - self.A.T @ others if others.any() else self.y
        bounds = self.b[chosen], self.lo[chosen], self.hi[chosen], self.lower, self.upper
        A = self.A[chosen]
        return Problem(y, A, *bounds, by_columns(A))

    def clip(self, z: Array) -> Array:
        return np.minimum(np.maximum(z, self.lower), self.upper)


def by_columns(A: Any) -> Any:
    """What :mod:`coldq.step.sparse_kernels` takes of a sparse A; nothing of a dense one."""
    if isinstance(A, np.ndarray):
        return None
    turned = A.tocsc()
    return turned.data, turned.indices.astype(np.int64), turned.indptr.astype(np.int64)


def solve_one(problem: Problem) -> tuple[Array, Array]:
    """x and mu of an instance; whether they are the answer is for the residual to say.

    Of many rows few hold x back. So the rows most violated at the start are solved for first, then
    those that their answer violates are added, as many at most as there are already. Sparse rows
    cost little: of them all are taken, or as many at once as there are coordinates.
    """
    y, A, b, lo, hi, _, _, _ = problem
    n = b.size
    mu = np.minimum(np.maximum(0.0, lo), hi)
    x = problem.clip(y - A.T @ mu if mu.any() else y)
    g = A @ x - b
    norms = row_norms(problem)
    # A row that is constant on X has its multiplier at a bound, once and for all.
    fixed = norms == 0.0
    bound = np.where(g > 0.0, hi, lo)  # infinite where hard rows clash: the residual will say so
    mu = np.where(fixed & (g != 0.0) & np.isfinite(bound), bound, mu)
    length = np.sqrt(np.where(fixed, 1.0, norms))
    chosen = np.zeros(n, bool)
    while True:
        tolerance = ROW_TOLERANCE * (length * (np.linalg.norm(x) + X_FLOOR) + np.abs(b))
        wrong = ((g > tolerance) & (mu < hi)) | ((g < -tolerance) & (mu > lo))
        wrong &= ~(chosen | fixed)
        if problem.sparse and n <= x.size:
            wrong = ~(chosen | fixed) if wrong.any() else wrong
        count = max(x.size if problem.sparse else FIRST_ROWS, int(chosen.sum()))
        added = np.flatnonzero(wrong)
        if added.size == 0:
            return x, mu
        if added.size > count:
            depth = np.abs(g[added]) / length[added]
            added = added[np.argpartition(depth, -count)[-count:]]
        chosen[added] = True
        part = problem.only(chosen, mu)
        solve = newton_in_rows if part.b.size <= x.size else multipliers_method
        x, mu[chosen] = solve(part, norms[chosen], mu[chosen])
        g = A @ x - b


def residual(problem: Problem, x: Array, mu: Array) -> float:
    """The relative KKT residual, as the compiled kernel defines it; NaN where anything is."""
    y, A, b, lo, hi, _, _, _ = problem
    at = np.maximum(np.abs(x), X_FLOOR)
    if problem.sparse:
        from coldq.step.sparse_kernels import residual_terms

        terms = pull, size, value, scale = [np.zeros(k) for k in (y.size, y.size, b.size, b.size)]
        parts = A.data, A.indices.astype(np.int64), A.indptr.astype(np.int64)
        residual_terms()(*parts, mu, x, at, *terms)
    else:
        sizes = np.abs(A)
        pull, size, value, scale = A.T @ mu, sizes.T @ np.abs(mu), A @ x, sizes @ at
    g, scale = value - b, scale + np.abs(b)
    stationarity = np.abs(x - problem.clip(y - pull)) / (1.0 + np.abs(y) + size)
    wrong = ((mu > lo) & (g < 0.0)) | ((mu < hi) & (g > 0.0))
    complementarity = np.where(wrong, np.abs(g) / np.maximum(scale, 1e-300), 0.0)
    outside = np.maximum(lo - mu, mu - hi) / (1.0 + np.abs(mu))
    worst = np.concatenate([stationarity, complementarity, outside]).max(initial=0.0)
    return float(worst) if np.isfinite(g).all() else np.nan


def newton_in_rows(problem: Problem, norms: Array, mu: Array) -> tuple[Array, Array]:
    """Newton's method on the dual: each step maximises a quadratic piece over the bounds."""
    y, A, b, lo, hi, lower, upper, _ = problem
    mu, search = mu.copy(), dual_search()
    lines = np.empty((COLUMNS, y.size))  # as the kernel keeps them
    z = lines[Z]
    z[:] = y - A.T @ mu if mu.any() else y
    x = problem.clip(z)
    g = A @ x - b
    length = np.sqrt(norms)
    for _ in range(100):
        # |a||x| bounds the size |a|'|x| of a row's terms without another pass over A.
        size = length * (np.linalg.norm(x) + X_FLOOR) + np.abs(b)
        tolerance = ROW_TOLERANCE * size
        at_rest = ((mu <= lo) & (g <= tolerance)) | ((mu >= hi) & (g >= -tolerance))
        moving = np.flatnonzero(~at_rest)
        if not (np.abs(g[moving]) > tolerance[moving]).any():
            break
        free = (lower < z) & (z < upper)
        gram, combination = products(problem, moving)
        H = gram(free)
        H[np.diag_indices_from(H)] += REGULARISATION * norms[moving]
        room = lo[moving] - mu[moving], hi[moving] - mu[moving]
        d = maximise_piece(H, g[moving], *room)
        slope = float(d @ g[moving])
        if not slope > 0.0:
            break
        lines[W] = combination(d)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(d > 0.0, room[1] / d, np.where(d < 0.0, room[0] / d, np.inf))
        limit = max(float(reach.min(initial=np.inf)), 1.0)
        t = search(lower, upper, lines, slope, float(d @ b[moving]), limit)
        if t == np.inf:
            break  # the dual rises for ever: hard rows have no common point
        step = t * d
        mu[moving] = np.where(
            step >= room[1], hi[moving], np.where(step <= room[0], lo[moving], mu[moving] + step)
        )
        # z goes by increments: for a huge y they shrink, and g is driven to zero at x's accuracy.
        z -= t * lines[W]
        x = problem.clip(z)
        g = A @ x - b
    return x, mu


def row_norms(problem: Problem) -> Array:
    """The squared length of every row over the coordinates that can move."""
    A, can_move = problem.A, (problem.lower < problem.upper).astype(float)
    if problem.sparse:
        squares = A.copy()
        squares.data = np.square(A.data)
        return squares @ can_move
    if can_move.all():
        return np.einsum("ni,ni->n", A, A)
    return np.einsum("ni,ni,i->n", A, A, can_move)


def products(
    problem: Problem, moving: np.ndarray
) -> tuple[Callable[[np.ndarray], Array], Callable[[Array], Array]]:
    """``A_CF A_CF'`` of free coordinates F, and ``A_C'd`` of d, for the rows C that move."""
    A = problem.A
    if not problem.sparse:
        rows = A if moving.size == len(A) else A[moving]

        def dense_gram(free: np.ndarray) -> Array:
            inside = rows if free.all() else rows[:, free]
            return inside @ inside.T

        return dense_gram, lambda d: rows.T @ d

    from coldq.step.sparse_kernels import chosen_gram

    place = np.full(problem.b.size, -1)
    place[moving] = np.arange(moving.size)

    def sparse_gram(free: np.ndarray) -> Array:
        H = np.zeros((moving.size, moving.size))
        chosen_gram()(*problem.columns, place, free, H)
        return H

    def combination(d: Array) -> Array:
        whole = np.zeros(problem.b.size)
        whole[moving] = d
        return A.T @ whole

    return sparse_gram, combination


def maximise_piece(H: Array, gain: Array, down: Array, up: Array) -> Array:
    """Maximise ``gain'd - d'Hd / 2`` over ``down <= d <= up``.

    Block principal pivoting guesses which entries are at a bound and corrects all wrong guesses
    at once: a few rounds are nearly always enough. It is not monotone and may cycle; then a
    projected Newton method takes over, of which every iterate goes up. Where H is so nearly
    singular that rounding stops both, some of its diagonal is added: a shorter step, but up.
    """
    for more in (0.0, 1e-8, 1e-6, 1e-4, 1e-2):
        stiff = H if more == 0.0 else H + np.diag(more * np.diag(H))
        d = pivot(stiff, gain, down, up)
        if d is None:
            d = climb(stiff, gain, down, up)
        if d is not None:
            return d
    return np.minimum(np.maximum(gain / np.maximum(np.diag(H), 1e-300), down), up)


def pivot(H: Array, gain: Array, down: Array, up: Array) -> Array | None:
    """Block principal pivoting; None if it does not end soon."""
    side = np.where((down >= 0.0) & (gain < 0.0), -1, np.where((up <= 0.0) & (gain > 0.0), 1, 0))
    for _ in range(10):
        free = side == 0
        if free.all():
            d, slope = solve_definite(H, gain), gain
        else:
            d = np.where(side < 0, down, up)
            d[free] = 0.0
            slope = gain - H @ d
            if free.any():
                d[free] = solve_definite(H[np.ix_(free, free)], slope[free])
                slope = slope - H[:, free] @ d[free]
        beyond = np.where(d < down, -1, np.where(d > up, 1, 0))
        guess = np.where(free, beyond, np.where(side * slope < 0.0, 0, side))
        if (guess == side).all():
            return d
        side = guess
    return None


def climb(H: Array, gain: Array, down: Array, up: Array) -> Array | None:
    """The projected Newton method from d = 0; None if a step fails to go up."""
    d, slope = np.zeros_like(gain), gain
    for _ in range(30):
        free = ~((d <= down) & (slope < 0.0) | (d >= up) & (slope > 0.0))
        step = np.zeros_like(d)
        if free.any():
            step[free] = solve_definite(H[np.ix_(free, free)], slope[free])
        for t in 0.5 ** np.arange(12):
            change = np.minimum(np.maximum(d + t * step, down), up) - d
            bend = H @ change
            first = float(slope @ change)
            if first > 0.0 and first - 0.5 * float(change @ bend) >= 0.1 * first:
                break
        else:
            return None
        d, slope = d + change, slope - bend
        if np.abs(change).max() <= 1e-10 * np.abs(d).max():
            break
    return np.minimum(np.maximum(d, down), up)


def solve_definite(H: Array, right: Array) -> Array:
    """``H^-1 right``; H is positive definite but for rounding."""
    _, answer, info = dposv(H.T, right, lower=1)  # symmetric, and in Fortran's order
    if info == 0:
        return answer
    H = H + np.diag(1e-9 * np.diag(H) + 1e-300)
    return np.asarray(np.linalg.lstsq(H, right, rcond=None)[0], np.float64)


def multipliers_method(problem: Problem, norms: Array, mu: Array) -> tuple[Array, Array]:
    """The method of multipliers, for more rows than coordinates."""
    y, A, b, lo, hi, _, _, _ = problem
    x = problem.clip(y - A.T @ mu if mu.any() else y)
    g = A @ x - b
    length = np.sqrt(norms)
    # Multipliers grow with the distance of y from the box, so sigma does too.
    far = 1.0 + float(np.abs(x - y).max(initial=0.0))
    stiffness, stiffest = START * far, STIFFEST * far
    previous = np.inf
    for _ in range(40):
        sigma = stiffness / norms
        x, g = minimise_envelope(problem, x, g, mu, sigma)
        shift = np.minimum(np.maximum(mu + sigma * g, lo), hi)
        # What the multipliers still move is what the rows between their bounds are off by.
        size = length * (np.linalg.norm(x) + X_FLOOR) + np.abs(b)
        off = np.abs(shift - mu) / (sigma * size)
        mu, worst = shift, float(off.max(initial=0.0))
        if worst <= SETTLED:
            break
        if worst > 0.01 * previous:
            stiffness = min(10.0 * stiffness, stiffest)
        previous = worst
    return polish(problem, x, mu), mu


def minimise_envelope(
    problem: Problem, x: Array, g: Array, mu: Array, sigma: Array
) -> tuple[Array, Array]:
    """x, and g(x), that minimise ``|x - y|^2 / 2 + envelope(g(x))`` over the box.

    The envelope of a row has the slope ``clip(mu + sigma g)``, so the whole is piecewise quadratic
    and Newton's method the same as on the dual: minimise the piece over the box, then search along.
    """
    y, A, b, lo, hi, lower, upper, _ = problem
    for _ in range(50):
        pull = np.minimum(np.maximum(mu + sigma * g, lo), hi)
        slope = x - y + A.T @ pull
        inner = np.flatnonzero((lo < pull) & (pull < hi))
        B = curvature(problem, inner, sigma[inner])
        d = maximise_piece(B, -slope, lower - x, upper - x)
        start = -float(slope @ d)
        if not start > 0.0 or np.abs(d).max() <= 1e-14 * (X_FLOOR + np.abs(x).max()):
            break
        w = A @ d
        # The slope along d; beyond t = 1 the box may end.
        left, right, t = 0.0, np.inf, 1.0
        for _ in range(30):
            s = mu + sigma * (g + t * w)
            v = np.minimum(np.maximum(s, lo), hi)
            rise = float(d @ (x + t * d - y)) + float(w @ v)
            if abs(rise) <= SEARCH_TOLERANCE * start:
                break
            if rise < 0.0:
                if t >= 1.0:
                    break
                left = t
            else:
                right = t
            bend = float(d @ d) + float(sigma @ np.square(w * (s == v)))
            t = t - rise / bend
            if not left < t < min(right, 1.0 + 1e-12):
                t = 0.5 * (left + min(right, 1.0))
        x, g = problem.clip(x + t * d), g + t * w
    return x, A @ x - b


def curvature(problem: Problem, inner: np.ndarray, sigma: Array) -> Array:
    """``I + A_S' sigma A_S``."""
    rows = problem.A[inner]
    if problem.sparse:
        rows = rows.multiply(np.sqrt(sigma)[:, None]).tocsr()
        B = (rows.T @ rows).toarray()
    else:
        rows = rows * np.sqrt(sigma)[:, None]
        B = rows.T @ rows
    B[np.diag_indices_from(B)] += 1.0
    return B


def polish(problem: Problem, x: Array, mu: Array) -> Array:
    """x moved by the least that puts it on the rows whose multiplier is between its bounds.

    With a huge y the stationarity of x is accurate only relative to y; the rows are not.
    """
    inner = np.flatnonzero((mu > problem.lo) & (mu < problem.hi))
    free = np.flatnonzero((problem.lower < x) & (x < problem.upper))
    if inner.size == 0 or free.size == 0 or inner.size > x.size:
        return x
    rows = problem.A[inner]
    part = rows[:, free]
    part = part.toarray() if problem.sparse else part
    x = x.copy()
    for _ in range(2):
        error = rows @ x - problem.b[inner]
        x[free] -= np.linalg.lstsq(part, error, rcond=1e-12)[0]
        x = problem.clip(x)
    return x


def solve_large(
    center: Array,
    gradient: Array,
    alpha: Array,
    weights: Array,
    floor: Any,
    constraint: Affine | SparseAffine,
    domain: Box,
) -> Step:
    """The answers of a batch, one by one; raises if any instance has none."""
    n = constraint.n_constraints
    try:
        instances = _members(center, gradient, alpha, weights, floor, constraint, domain)
    except ValueError:
        raise misfit(center, gradient, weights, constraint, domain) from None
    batch = center.shape[:-1]
    x, multipliers, worst = np.empty(center.shape), np.empty((*batch, n)), np.empty(batch)
    clash = np.zeros(batch, bool)
    for where, instance in instances:
        x[where], multipliers[where], worst[where] = _solve_member(instance)
        if worst[where] > TOLERANCE:
            clash[where] = hard_rows_clash(_dense(instance))
    answer = Step(x, multipliers, worst)
    if not (worst <= TOLERANCE).all():
        raise_if_failed(answer, clash)
    return answer


def _members(
    center: Array, gradient: Array, alpha: Array, weights: Array, floor: Any, g: Any, domain: Box
) -> Iterator[tuple[tuple[int, ...], Instance]]:
    """Every instance of a batch, as the kernel would take it."""
    batch, n, p = center.shape[:-1], g.n_constraints, g.dim
    parts = [
        np.broadcast_to(array, batch + core)
        for array, core in (
            (center, (p,)), (gradient, (p,)), (alpha, ()), (floor, (n,)), (weights, (n,)),
            (0.0, (n,)), (g.b, (n,)), (domain.lower, (p,)), (domain.upper, (p,)),
        )
    ]  # fmt: skip
    A = g.A if isinstance(g, SparseAffine) else np.broadcast_to(g.A, (*batch, n, p))
    for where in np.ndindex(*batch):
        *first, b, lower, upper = (part[where] for part in parts)
        own = A if isinstance(g, SparseAffine) else A[where]
        yield where, (*first, own, b, lower, upper)


def _solve_member(instance: Instance) -> tuple[Array, Array, float]:
    center, gradient, alpha, floor, weights, _, A, b, lower, upper = instance
    half = 0.5 / float(alpha)
    y = center - gradient * half
    if not np.isfinite(y).all():
        return y, np.zeros_like(b), np.nan
    problem = Problem(y, A, b, floor * half, weights * half, lower, upper, by_columns(A))
    x, mu = solve_one(problem)
    multipliers = np.where(
        mu >= problem.hi, weights, np.where(mu <= problem.lo, floor, mu * (2.0 * float(alpha)))
    )
    multipliers = np.minimum(np.maximum(multipliers, floor), weights)
    found = residual(problem, x, mu)
    if not found <= TOLERANCE:
        found = np.inf if np.isnan(found) else found
        for x_slow, slow in clarabel_answers(_dense(instance)):
            again = residual(problem, x_slow, slow * half)
            if again < found:
                x, multipliers, found = x_slow, slow, again
            if found <= TOLERANCE:
                break
    return x, multipliers, found


def _dense(instance: Instance) -> Instance:
    """The instance for the slow methods, which take a dense A."""
    A = instance[6]
    return instance if isinstance(A, np.ndarray) else (*instance[:6], A.toarray(), *instance[7:])
