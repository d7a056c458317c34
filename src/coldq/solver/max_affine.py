"""Rows that are the largest of several affine pieces: exact caps on the sums of multipliers.

The multipliers of a row's pieces are not negative and sum up to at most the row's weight,

    sum over k of lambda_nk <= w_n,

a cap on a group, where the kernel has only bounds of single rows. So each group gets a coordinate
s_n of its own: its pieces become hard rows ``<a_nk, x> - s_n <= b_nk``, and s_n >= 0 costs w_n s_n.
The kernel needs some curvature in s, so a proximal term ``eps |s - s'|^2 / 2`` is added and s'
moved to the answer until it stays. eps falls until it is small against the curvature that the
pieces have in s, so that a round gains several digits; where s = 0, one round is exact.

Where all rows are hinges on a box, one compiled call comes first: an interior-point method finds
which pieces decide and, if the residual says that it is right, one linear system the answer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coldq._values import Array
from coldq.errors import InvalidInput
from coldq.solver.answer import TOLERANCE
from coldq.solver.api import active_set_extended
from coldq.solver.blas import on_one_thread
from coldq.solver.cascade import solve_one
from coldq.solver.constants import DOUBT
from coldq.solver.extended import MANY, hard_rows_clash
from coldq.solver.kernels.max_affine import hinges_scratch_size, hinges_step, pieces_residual
from coldq.solver.last_resort import on_pieces
from coldq.solver.problem import AffineProblem, Part, largest_of, power, reach_of
from coldq.solver.threads import run_batch

SOFTEST, STIFFER, LEAST_SOFT = 1.0, 0.3, 1e-4  # eps relative to the group, and how it falls
ROUNDS = 60
PATIENCE = 12  # rounds in which no piece joins and s does not settle
CLEAR = 1e-11  # the residual at which the set of pieces was the right one
SETTLED = 1e-12  # of a cap: what the proximal term may still add to it
HALF, ONE = np.array(0.5), np.array(1.0)


class MaxAffineProblem(NamedTuple):
    """Rows of which each is the largest of its pieces ``A x - b``, over a batch; `group` says to
    which row a piece belongs."""

    center: Array
    gradient: Array
    alpha: Array
    floor: Array
    weights: Array
    A: Array
    b: Array
    group: Array
    lower: Array
    upper: Array

    cores = (1, 1, 0, 1, 1, 2, 1, 1, 1, 1)


class Pieces(NamedTuple):
    """One instance, divided by 2 alpha. Piece r belongs to the group ``group[r]``.

    Group n's multipliers sum up to a number in [low_n, high_n], low 0 (a hinge) or high (linear).
    Plain rows beside them have multipliers in [lo, hi].
    """

    y: Array
    A: Array
    b: Array
    group: np.ndarray
    low: Array
    high: Array
    plain: Array
    limit: Array
    lo: Array
    hi: Array
    lower: Array
    upper: Array


class Units(NamedTuple):
    """Powers of two in which an instance is of size 1: x, and the slopes of groups and rows."""

    x: float
    group: Array
    plain: Array


def units_of(problem: Pieces, size: float | None = None) -> Units:
    """The units of an instance, for an x of this size, or of that of the nearest point to y."""
    y, A, _, group, _, high, plain, _, _, _, lower, upper = problem
    if size is None:
        size = size_of(problem, np.minimum(np.maximum(y, lower), upper))
    steep = largest_of(np.abs(A).max(axis=1, initial=0.0), group, high.size)
    return Units(float(power(size)), power(steep), power(np.abs(plain).max(axis=1, initial=0.0)))


def size_of(problem: Pieces, x: Array) -> float:
    """The size of x, beside which a coordinate at zero counts, as in the kernels."""
    doubt = np.minimum(DOUBT * np.abs(problem.y), problem.upper - problem.lower)
    return float(np.maximum(np.abs(x), doubt).max(initial=0.0))


@on_one_thread
def solve_pieces(problem: Pieces, start: Array | None = None) -> tuple[Array, Array, Array, Array]:
    """x, the multipliers of pieces and of plain rows, and s; `start` is a guess of s."""
    units = units_of(problem)
    x, mu, nu, s = in_units(problem, start, units)
    size = size_of(problem, x)
    if not units.x / 64.0 <= size <= 64.0 * units.x:
        again = units_of(problem, size)
        if 0.0 < size < np.inf and not residual(problem, x, mu, nu) <= CLEAR:
            return in_units(problem, start, again)
    return x, mu, nu, s


def in_units(
    problem: Pieces, start: Array | None, units: Units
) -> tuple[Array, Array, Array, Array]:
    """The same, solved with all sizes around 1."""
    y, A, b, group, low, high, plain, limit, lo, hi, lower, upper = problem
    u, steep, beside = units
    height = steep * u
    with np.errstate(over="ignore", under="ignore"):
        scaled = Pieces(
            y / u, A / steep[group][:, None], b / height[group], group, low / u * steep,
            high / u * steep, plain / beside[:, None], limit / (beside * u), lo / u * beside,
            hi / u * beside, lower / u, upper / u,
        )  # fmt: skip
        start = None if start is None else start / height
        x, mu, nu, s = solve_unit_pieces(scaled, start)
        return x * u, mu * u / steep[group], nu * u / beside, s * height


def solve_unit_pieces(problem: Pieces, start: Array | None) -> tuple[Array, Array, Array, Array]:
    """Of many pieces few are ever the largest, so a piece becomes a row when an answer violates it.

    Sizes of x and of rows are around 1.
    """
    y, A, b, group, low, high, plain, limit, lo, hi, lower, upper = problem
    n, p, m = high.size, y.size, b.size
    x, inside = np.minimum(np.maximum(y, lower), upper), None
    if start is None and limit.size == 0:
        which = group.astype(float)
        one = MaxAffineProblem(y, 0.0 * y, HALF, low, high, A, b, which, lower, upper)
        there, pull, above, _, worst = solve_hinges(one)
        if worst <= CLEAR:
            return there, pull, limit, above
        inside = there, above, pull, pull > 0.0
    norms = np.einsum("ri,ri->r", A, A)
    largest = np.sqrt(largest_of(norms, group, n))
    hard = np.isinf(high)
    cost = np.where(hard, 0.0, high)
    paid = high > 0.0  # a group of weight zero costs nothing, whatever its pieces
    linear = (low == high) & ~hard & paid
    rows = np.zeros((m + limit.size, p + n))
    rows[:m, :p], rows[m:, :p] = A, plain
    right = np.concatenate([b, limit])
    least = np.concatenate([np.zeros(m), lo])
    most = np.concatenate([np.full(m, np.inf), hi])
    wide = (
        np.concatenate([lower, np.where(linear, -np.inf, 0.0)]),
        np.concatenate([upper, np.where(hard, 0.0, np.inf)]),
    )
    s = np.where(linear, group_values(problem, x), 0.0) if start is None else start
    size = np.sqrt(norms) + np.abs(b)
    chosen = np.concatenate([np.zeros(m, bool), np.ones(limit.size, bool)])
    mu, settled = np.zeros(chosen.size), False
    if inside is not None and all(np.isfinite(part).all() for part in inside):
        x, s, mu, chosen = inside
    # eps is small against the curvature 1 / |a|^2 that a piece has in s, and against the cost of
    # the way that s may go.
    steep = np.where(largest > 0.0, largest, 1.0)
    way = steep * (1.0 + np.abs(x).max(initial=0.0))
    eps = np.where(cost > 0.0, np.minimum(1.0 / (steep * steep), cost / way), 1.0)
    softness, waits = SOFTEST, 0
    for _ in range(ROUNDS):
        excess = A @ x - b - s[group]
        wrong = (excess > 1e-12 * size * (1.0 + np.abs(x).max(initial=0.0))) & ~chosen[:m]
        wrong &= paid[group]
        if settled and not wrong.any():
            break
        if not wrong.any():  # only s is left to settle
            softness = max(STIFFER * softness, LEAST_SOFT)
            waits += 1
            if waits > PATIENCE:
                break
        worst = largest_of(np.where(wrong, excess, -np.inf), group, n, -np.inf)
        chosen[:m] |= wrong & (excess >= worst[group])
        root = np.sqrt(softness * eps)
        rows[np.arange(m), p + group] = -1.0 / root[group]
        # Shifted by the last multipliers, the kernel starts from them: from its own zero.
        last = mu[chosen]
        center = np.concatenate([y, root * s - cost / root]) - rows[chosen].T @ last
        one = AffineProblem(
            center, 0.0 * center, HALF, least[chosen] - last, most[chosen] - last, 0.0 * last,
            rows[chosen], right[chosen], *wide,
        )  # fmt: skip
        answer = solve_one(one, slowly=True)
        if answer is None:
            break
        found, more = answer
        mu[chosen] = last + more
        x, moved = found[:p], found[p:] / root - s
        s = s + moved
        share = root * root * np.abs(moved)
        settled = bool((share <= SETTLED * (cost + largest_of(mu[:m], group, n))).all())
    return x, mu[:m], mu[m:], s


def solve_hinges(problem: MaxAffineProblem) -> tuple[Array, ...]:
    """What the kernel makes of hinges on boxes: x, the pieces' multipliers over 2 alpha, what rows
    are above zero, the rows' multipliers, and the residual, above CLEAR where it has no answer."""
    (m, p), n = problem.A.shape[-2:], problem.weights.shape[-1]
    shapes, size = ((p,), (m,), (n,), (n,), ()), hinges_scratch_size(m, n, p)
    return run_batch(hinges_step(), problem, (*problem.cores, 1), shapes, size)


def group_values(problem: Pieces, x: Array) -> Array:
    """The largest piece of each group at x."""
    values = problem.A @ x - problem.b
    return largest_of(values, problem.group, problem.high.size, -np.inf)


def residual(problem: Pieces, x: Array, mu: Array, nu: Array) -> float:
    """The relative KKT residual: stationarity, and for pieces and groups complementarity.

    A piece with a multiplier must be its group's largest; a group whose multipliers do not reach
    its cap must not be positive, one whose multipliers do not vanish not negative.
    """
    shapes = (3, problem.y.size), (2, mu.size), (3, problem.high.size), (2, nu.size)
    arrays = [np.ascontiguousarray(a, float) for a in (*problem, x, mu, nu)]
    return pieces_residual()(*arrays, *(np.empty(shape) for shape in shapes))


def capped_sums(problem: Pieces, mu: Array) -> Array:
    """The sums of the groups' multipliers; those at a cap but for rounding are the cap."""
    total, cap = np.bincount(problem.group, mu, problem.high.size), problem.high
    near = np.abs(total - np.where(np.isinf(cap), -1.0, cap)) <= 1e-11 * total
    return np.where(near, cap, np.minimum(total, cap))


def plain_rows(hard: tuple[tuple[Part, float], ...], p: int) -> tuple[Array, Array, Array, Array]:
    """The affine hard rows of one instance's domain: A, b and the bounds of their multipliers."""
    A, b, lo = [np.zeros((0, p))], [np.zeros(0)], [np.zeros(0)]
    for part, least in hard:
        if part.P is not None:
            raise InvalidInput(
                "max-affine and nonsmooth rows are solved on boxes and polytopes; on a domain "
                "with a curved boundary use smooth rows (coldq.QuadraticConstraint, coldq.Convex)"
            )
        A.append(part.A)
        b.append(part.b)
        lo.append(np.full(part.n_constraints, least))
    rows = np.concatenate(b)
    return np.concatenate(A), rows, np.concatenate(lo), np.full(rows.size, np.inf)


def solve_member(problem: Pieces) -> tuple[Array, Array, float]:
    """x, the sums of the groups' multipliers, and the residual, infinite if hard rows clash."""
    if not np.isfinite(problem.y).all():
        return problem.y, 0.0 * problem.high, np.nan
    x, mu, nu, _ = solve_pieces(problem)
    found = residual(problem, x, mu, nu)
    if not found <= TOLERANCE:
        x, mu, nu, _ = solve_pieces(problem, np.zeros(problem.high.size))
        found = residual(problem, x, mu, nu)
    if not found <= TOLERANCE and pieces_clash(problem):
        found = np.inf
    elif not found <= TOLERANCE:
        x, mu, nu, found = with_more_digits(problem, x, mu, nu, found)
    return x, capped_sums(problem, mu), found


def with_more_digits(
    problem: Pieces, x: Array, mu: Array, nu: Array, worst: float, known: bool = True
) -> tuple[Array, Array, Array, float]:
    """The best answer of the last resort, or the one given, which may be known to be near."""
    best = x, mu, nu, worst
    begin = np.where(np.isfinite(x), x, 0.0), np.nan_to_num(mu), np.nan_to_num(nu)
    units = size_of(problem, begin[0]), reach_of(problem.lower, problem.upper, begin[0])
    for unit in dict.fromkeys(units if known else units[::-1]):
        for answer in on_pieces(problem, unit, *begin, known):
            found = residual(problem, *answer)
            best = (*answer, found) if found < best[3] or np.isnan(best[3]) else best
            if best[3] <= TOLERANCE:
                return best
    if problem.b.size == problem.high.size and min(problem.A.shape) <= MANY:
        answer = as_affine_rows(problem)
        found = residual(problem, *answer)
        best = (*answer, found) if found < best[3] or np.isnan(best[3]) else best
    return best


def as_affine_rows(problem: Pieces) -> tuple[Array, Array, Array]:
    """x and multipliers where every group has one piece, from face to face in double-double: x may
    be far beyond the size of all that is given."""
    y, A, b, group, low, high, plain, limit, lo, hi, lower, upper = problem
    found = active_set_extended(
        AffineProblem(
            y, 0.0 * y, HALF, np.concatenate([low[group], lo]), np.concatenate([high[group], hi]),
            np.zeros(b.size + limit.size), np.concatenate([A, plain]), np.concatenate([b, limit]),
            lower, upper,
        )
    )  # fmt: skip
    return found.x, found.multipliers[: b.size], found.multipliers[b.size :]


def pieces_clash(problem: Pieces) -> bool:
    """Whether hard groups and hard plain rows have no common point in the box."""
    firm = np.isinf(problem.high)[problem.group]
    A = np.concatenate([problem.A[firm], problem.plain])
    b = np.concatenate([problem.b[firm], problem.limit])
    lo = np.concatenate([np.zeros(int(firm.sum())), problem.lo])
    hi = np.concatenate([np.full(int(firm.sum()), np.inf), problem.hi])
    size = units_of(problem).x
    return affine_rows_clash(A, b, lo, hi, problem.y, size, problem.lower, problem.upper)


def affine_rows_clash(
    A: Array, b: Array, lo: Array, hi: Array, y: Array, size: float, lower: Array, upper: Array
) -> bool:
    """Whether it is proven that hard rows have no common point, for x of this size near y.

    All in the unit of x and of each row, so that what is broken is relative to these.
    """
    unit, steep = float(power(size)), power(np.abs(A).max(axis=1, initial=0.0))
    A, b = A / steep[:, None], b / (steep * unit)
    y, lower, upper = y / unit, lower / unit, upper / unit
    return hard_rows_clash(AffineProblem(y, y, ONE, lo, hi, 0.0 * b, A, b, lower, upper))
