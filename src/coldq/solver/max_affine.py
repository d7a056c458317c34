"""Rows that are the largest of several affine pieces: exact caps on the sums of multipliers.

The multipliers of a row's pieces are not negative and sum up to at most the row's weight,

    sum over k of lambda_nk <= w_n,

a cap on a group, where other methods have bounds of single rows. One native call comes first, in
double: an interior-point method finds which pieces decide and, if the residual says that it is
right, one linear system the answer. Else the last resort has more digits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coldq.base.arrays import Array, joined
from coldq.base.errors import InvalidInput
from coldq.solver.answer import TOLERANCE
from coldq.solver.api import active_set_extended, pieces_residual, pieces_step
from coldq.solver.constants import CANCELLATION_ROUNDING
from coldq.solver.extended import MAX_EXTENDED_ROWS, enforced_rows_conflict
from coldq.solver.interior_point import on_pieces
from coldq.solver.problem import AffineProblem, DoNotFit, Part, power, reach_of
from coldq.solver.threads import fill_batch

RIGHT_PIECES_RESIDUAL = (
    1e-11  # the residual at which the native method found the right set of pieces
)
HALF, ONE = np.array(0.5), np.array(1.0)


class MaxAffineProblem(NamedTuple):
    """Rows of which each is the largest of its pieces ``A x - b``, over a batch; `group` says to
    which row a piece belongs. Plain rows ``plain x - limit`` beside them are at most 0, or just 0
    where `least` is infinite: that bounds their multipliers."""

    center: Array
    gradient: Array
    alpha: Array
    multiplier_lower: Array
    multiplier_upper: Array
    A: Array
    b: Array
    group: Array
    plain: Array
    limit: Array
    least: Array
    lower: Array
    upper: Array

    cores = (1, 1, 0, 1, 1, 2, 1, 1, 2, 1, 1, 1, 1)

    def pieces(self) -> Pieces:
        """One instance, divided by 2 alpha."""
        half = 0.5 / float(self.alpha)
        return Pieces(
            self.center - self.gradient * half, self.A, self.b, self.group.astype(int),
            self.multiplier_lower * half, self.multiplier_upper * half, self.plain, self.limit,
            self.least,
            np.full(self.limit.size, np.inf), self.lower, self.upper,
        )  # fmt: skip


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


def solve_batch(problem: MaxAffineProblem) -> tuple[Array, Array, Array, Array, Array]:
    """What the native method makes of a batch: x, the multipliers of pieces and of plain rows over
    2 alpha, the rows' multipliers, and the residual."""
    (m, p), n, r = problem.A.shape[-2:], problem.multiplier_upper.shape[-1], problem.limit.shape[-1]
    batch = problem.center.shape[:-1]
    shapes = (p,), (m,), (r,), (n,), ()
    x, mu, nu, multipliers, worst = (np.empty((*batch, *shape)) for shape in shapes)
    answer = x, mu, nu, multipliers, worst
    work = (m + n + r + 8) * p + min(m + r, p) ** 2  # numbers that an instance is gone through in
    try:
        fill_batch(pieces_step, problem, problem.cores, answer, batch, work)
    except TypeError as error:
        raise DoNotFit(str(error)) from None
    return answer


def solve_pieces(problem: Pieces) -> tuple[Array, Array, Array, float]:
    """x, the multipliers of pieces and of plain rows, and the residual, of one instance."""
    y, A, b, group, low, high, plain, limit, lo, _, lower, upper = problem
    one = MaxAffineProblem(
        y, 0.0 * y, HALF, low, high, A, b, group.astype(float), plain, limit, lo, lower, upper
    )
    x, mu, nu, _, worst = solve_batch(one)
    return x, mu, nu, float(worst)


def size_of(problem: Pieces, x: Array) -> float:
    """The size of x, beside which a coordinate at zero counts, as in the native method."""
    doubt = np.minimum(CANCELLATION_ROUNDING * np.abs(problem.y), problem.upper - problem.lower)
    return float(np.maximum(np.abs(x), doubt).max(initial=0.0))


def residual(problem: Pieces, x: Array, mu: Array, nu: Array) -> float:
    """The relative KKT residual: stationarity, and for pieces and groups complementarity.

    A piece with a multiplier must be its group's largest; a group whose multipliers do not reach
    its cap must not be positive, one whose multipliers do not vanish not negative.
    """
    return float(pieces_residual(*(np.asarray(a, float, order="C") for a in (*problem, x, mu, nu))))


def capped_sums(problem: Pieces, mu: Array) -> Array:
    """The sums of the groups' multipliers; those at a cap but for rounding are the cap."""
    total, cap = np.bincount(problem.group, mu, problem.high.size), problem.high
    near = np.abs(total - np.where(np.isinf(cap), -1.0, cap)) <= 1e-11 * total
    return np.where(near, cap, np.minimum(total, cap))


def plain_rows(enforced: tuple[tuple[Part, float], ...], p: int) -> tuple[Array, Array, Array]:
    """The affine enforced rows of a domain: A, b and the least of their multipliers."""
    A, b, least = [np.zeros((0, p))], [np.zeros(0)], [np.zeros(0)]
    for part, lowest in enforced:
        if part.P is not None:
            raise InvalidInput(
                "max-affine and nonsmooth rows are solved on boxes, simplexes, polytopes and "
                "products of these; on a domain with a curved boundary, as a ball, use smooth rows "
                "(coldq.QuadraticConstraint, or coldq.Convex with a hessian)"
            )
        A.append(part.A)
        b.append(part.b)
        least.append(np.full(part.n_constraints, lowest))
    return joined(A, 2), joined(b, 1), np.concatenate(least)


def solve_member(problem: Pieces, x: Array, mu: Array, nu: Array) -> tuple[Array, Array, float]:
    """x, the sums of the groups' multipliers, and the residual, of an instance with just a guess.

    The residual is infinite if enforced rows conflict.
    """
    if not np.isfinite(problem.y).all():
        return problem.y, 0.0 * problem.high, np.nan
    found = residual(problem, x, mu, nu)
    if not found <= TOLERANCE and pieces_conflict(problem):
        return x, capped_sums(problem, mu), np.inf
    best = with_more_digits(problem, x, mu, nu, np.inf, enough=RIGHT_PIECES_RESIDUAL)
    x, mu, nu, found = (x, mu, nu, found) if found < best[3] else best
    return x, capped_sums(problem, mu), found


def with_more_digits(
    problem: Pieces,
    x: Array,
    mu: Array,
    nu: Array,
    worst: float,
    known: bool = True,
    enough: float = TOLERANCE,
) -> tuple[Array, Array, Array, float]:
    """The best answer of the last resort, or the one given, which may be known to be near."""
    best = x, mu, nu, worst
    begin = np.where(np.isfinite(x), x, 0.0), np.nan_to_num(mu), np.nan_to_num(nu)
    units = size_of(problem, begin[0]), reach_of(problem.lower, problem.upper, begin[0])
    for unit in dict.fromkeys(units if known else units[::-1]):
        for answer in on_pieces(problem, unit, *begin, known):
            found = residual(problem, *answer)
            best = (*answer, found) if found < best[3] or np.isnan(best[3]) else best
            if best[3] <= enough:
                return best
    if problem.b.size == problem.high.size and min(problem.A.shape) <= MAX_EXTENDED_ROWS:
        answer = as_affine_rows(problem)
        found = residual(problem, *answer)
        best = (*answer, found) if found < best[3] or np.isnan(best[3]) else best
    return best


def as_affine_rows(problem: Pieces) -> tuple[Array, Array, Array]:
    """x and multipliers where every group has one piece, by the active set in double-double: x may
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


def pieces_conflict(problem: Pieces) -> bool:
    """Whether enforced groups and enforced plain rows have no common point in the box."""
    firm = np.isinf(problem.high)[problem.group]
    A = np.concatenate([problem.A[firm], problem.plain])
    b = np.concatenate([problem.b[firm], problem.limit])
    lo = np.concatenate([np.zeros(int(firm.sum())), problem.lo])
    hi = np.concatenate([np.full(int(firm.sum()), np.inf), problem.hi])
    size = size_of(problem, np.clip(problem.y, problem.lower, problem.upper))
    return affine_rows_conflict(A, b, lo, hi, problem.y, size, problem.lower, problem.upper)


def affine_rows_conflict(
    A: Array, b: Array, lo: Array, hi: Array, y: Array, size: float, lower: Array, upper: Array
) -> bool:
    """Whether it is proven that enforced rows have no common point, for x of this size near y.

    All in the unit of x and of each row, so that what is broken is relative to these.
    """
    unit, steep = float(power(size)), power(np.abs(A).max(axis=1, initial=0.0))
    A, b = A / steep[:, None], b / (steep * unit)
    y, lower, upper = y / unit, lower / unit, upper / unit
    return enforced_rows_conflict(AffineProblem(y, y, ONE, lo, hi, 0.0 * b, A, b, lower, upper))
