"""Cutting planes for convex rows that have no hessian, or no gradient everywhere.

Every point visited gives each row an affine piece below it, and the step with these pieces is
solved exactly, caps of groups included.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from coldq.base.arrays import Array
from coldq.solver.answer import GAP_TOLERANCE, TOLERANCE
from coldq.solver.cascade import solve_one
from coldq.solver.constants import CANCELLATION_ROUNDING, ENFORCED_TOLERANCE, ORIGIN_SIZE
from coldq.solver.max_affine import (
    HALF,
    RIGHT_PIECES_RESIDUAL,
    Pieces,
    capped_sums,
    pieces_conflict,
    plain_rows,
    solve_pieces,
    with_more_digits,
)  # fmt: skip
from coldq.solver.models import Member, broken_by, require_tangent, values_at
from coldq.solver.problem import AffineProblem

MAX_CUTS = 300
RECENT_ROUNDS, MAX_STALLED_ROUNDS = 4, 30  # rounds
MAX_VAIN_ROUNDS, RETRY_ROUNDS = (
    3,
    12,
)  # rounds without all digits, after which only some are asked for them


class Bundle(NamedTuple):
    """The pieces of rows that are nothing else, the row of each, and which rows these are."""

    A: Array
    b: Array
    group: np.ndarray
    rows: np.ndarray


def relative_gap(member: Member, x: Array) -> float:
    """The relative gap between the value at x and the least with the rows' tangents there."""
    g, J = values_at(member.rows, x)
    problem = cut_problem(member, J, J @ x - g, np.arange(g.size))
    _, mu, nu, _ = solve_cuts(problem, x)
    return gap_above(member, x, g, J, problem, mu, nu)


def solve_cuts(problem: Pieces, x: Array, exactly: bool = True) -> tuple[Array, Array, Array, bool]:
    """The answer with cuts for rows, for an x about as large as this; and whether it is exact, if
    that is asked for.

    Cuts get nearly parallel in the end, so that doubles may not do; where more digits do not
    either, those of doubles do, for the gap is proven with any multipliers.
    """
    there, mu, nu, worst = solve_pieces(problem)
    if exactly and not worst <= RIGHT_PIECES_RESIDUAL:
        none, plain = np.zeros(problem.b.size), np.zeros(problem.limit.size)
        found = with_more_digits(problem, x, none, plain, np.inf, known=False)
        if found[3] <= TOLERANCE:
            return *found[:3], True
    return there, mu, nu, worst <= RIGHT_PIECES_RESIDUAL


def gap_above(
    member: Member, x: Array, g: Array, J: Array, problem: Pieces, mu: Array, nu: Array
) -> float:
    """The relative gap from a lower bound to the value at x, and how far off enforced rows are.

    Any multipliers within their bounds give a bound: the least of the Lagrangian over the box.
    """
    value, off = value_there(member, x, g, J, problem)
    terms = member.terms(x, g, J)
    least = max(least_below(member, problem, mu, nu), least_at_bounds(member, x, g, J)[0])
    gap = (value - least) / terms if terms > 0.0 else value - least
    return max(gap, off, 0.0)


def value_there(
    member: Member, x: Array, g: Array, J: Array, problem: Pieces
) -> tuple[float, float]:
    """The objective at x without enforced rows, and what those are off by.

    Infinite if x is not in the domain.
    """
    over = problem.plain @ x - problem.limit
    over = np.where(problem.lo == -np.inf, np.abs(over), over)
    # x is known up to the rounding of what it is the difference of.
    known = np.minimum(CANCELLATION_ROUNDING * np.abs(problem.y), problem.upper - problem.lower)
    known = np.maximum(np.abs(x), known)
    inside = np.where(problem.plain != 0.0, known, 0.0).max(axis=1, initial=0.0)
    at = np.maximum(known, ORIGIN_SIZE * inside[:, None])
    room = ENFORCED_TOLERANCE * ((np.abs(problem.plain) * at).sum(axis=1) + np.abs(problem.limit))
    firm = np.isinf(member.high)
    off = np.inf if (over > room).any() else broken_by(x, g[firm], J[firm])
    return member.softened(0.0).objective(x, g), off


def value_of(member: Member, x: Array, problem: Pieces) -> float:
    """The objective at x, infinite where an enforced row is broken."""
    value, off = value_there(member, x, *values_at(member.rows, x), problem)
    return value if off <= 0.5 * GAP_TOLERANCE else np.inf


def least_below(member: Member, problem: Pieces, mu: Array, nu: Array) -> float:
    """The least of the Lagrangian over the box: below the objective of every point."""
    total = np.bincount(problem.group, mu, member.high.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(total > 0.0, capped_sums(problem, mu) / total, 1.0)
    mu = mu * share[problem.group]
    pull = problem.A.T @ mu + problem.plain.T @ nu
    there = np.minimum(np.maximum(problem.y - pull, problem.lower), problem.upper)
    rows = mu @ (problem.A @ there - problem.b) + nu @ (problem.plain @ there - problem.limit)
    move, alpha = there - member.center, member.alpha
    return float(member.gradient @ move + alpha * (move @ move) + 2.0 * alpha * rows)


def least_at_bounds(member: Member, x: Array, g: Array, J: Array) -> tuple[float, Array]:
    """Lower bounds by the tangents at x and multipliers at their bounds, the lower ones or as the
    signs of g say, and these multipliers: rounding does not spoil them."""
    problem = cut_problem(member, J, J @ x - g, np.arange(g.size))
    paid = np.where((g > 0.0) & (member.high < np.inf), member.high, member.low)
    half, best = 0.5 / member.alpha, (-np.inf, member.low)
    for lam in (member.low, paid):
        for nu in plain_prices(problem, lam * half):
            below = least_below(member, problem, lam * half, nu)
            best = (below, lam) if below > best[0] else best
    return best


def plain_prices(problem: Pieces, mu: Array) -> Iterator[Array]:
    """Multipliers of plain rows beside these of the others: none, and the nearest point's."""
    n = problem.limit.size
    yield np.zeros(n)
    if n:
        there = problem.y - problem.A.T @ mu
        answer = solve_one(
            AffineProblem(
                there, 0.0 * there, HALF, problem.lo, problem.hi, np.zeros(n), problem.plain,
                problem.limit, problem.lower, problem.upper,
            )
        )  # fmt: skip
        if answer is not None:
            yield answer[1]


def cut_problem(member: Member, A: Array, b: Array, group: np.ndarray) -> Pieces:
    """The step with affine pieces for rows."""
    center, gradient, alpha, low, high, _, lower, upper, enforced = member
    half = 0.5 / alpha
    plain = plain_rows(enforced, center.size)
    most = np.full(plain[1].size, np.inf)
    return Pieces(
        center - gradient * half, A, b, group, low * half, high * half, *plain, most, lower, upper
    )


def cutting_planes(member: Member, known: Bundle, near: Array) -> tuple[Array, Array, float]:
    """The answer by cuts, from the center, where rows often have their breakpoints, or from a point
    that may be `near`: from the better of the two, and where that leads nowhere from the other.

    `known` are the pieces of rows that are nothing else.
    """
    problem = cut_problem(member, *known[:3])
    center = np.clip(member.center, member.lower, member.upper)
    starts = [near]
    if (center != near).any():
        first = value_of(member, center, problem) < value_of(member, near, problem)
        starts.insert(0 if first else 1, center)
    best = cuts_from(member, known, starts[0])
    if len(starts) > 1 and GAP_TOLERANCE < best[2] < np.inf:
        other = cuts_from(member, known, starts[1])
        best = other if other[2] < best[2] else best
    return best


def cuts_from(member: Member, known: Bundle, x: Array) -> tuple[Array, Array, float]:
    """Cuts below the rows at every point visited, until the gap is small between the least value
    seen and the greatest bound from below; infinite if enforced rows have no common point.

    Half-way from the best point to the model's the rows are asked as well: where many cuts meet
    in a kink, the model's own points jump around it.
    """
    n, firm = member.high.size, np.isinf(member.high).any()
    A, b, group, all_known = known
    bent = np.flatnonzero(~all_known)
    used, lam = np.full(b.size, MAX_CUTS), np.zeros(n)
    problem = cut_problem(member, A, b, group)
    best, least, gap, terms = (np.inf, x), -np.inf, 1.0, 0.0
    last, late, missed, memory = np.inf, 0, 0, RECENT_ROUNDS
    seen: list[tuple[Array, Array, Array]] = []
    for k in range(MAX_CUTS):
        half = [0.5 * (x + best[1])] if best[0] < np.inf and (x != best[1]).any() else []
        points = []
        for point in (x, *half):
            g, J = values_at(member.rows, point)
            for at, value, slope in seen[-3:]:
                require_tangent(member.rows, value, slope, at, g, point)
            seen.append((point, g, J))
            points.append((point, g, J))
            value, off = value_there(member, point, g, J, problem)
            below, at_bounds = least_at_bounds(member, point, g, J)
            least, lam = (below, at_bounds) if below > least else (least, lam)
            if off <= 0.5 * GAP_TOLERANCE and value < best[0]:
                best, terms = (value, point), member.terms(point, g, J)
        if best[0] < np.inf:
            way = best[0] - least
            gap = way / terms if terms > 0.0 else way
            late = k if way < 0.9 * last else late
            last = min(way, last)
            if gap <= 0.5 * GAP_TOLERANCE or k > late + MAX_STALLED_ROUNDS:
                break
        # Cuts that have not mattered lately are forgotten. The model's least value does not fall
        # by that, for it rests on the others; where it does, digits were lost, and more are kept.
        keep = used > k - memory
        A = np.concatenate([A[keep], *(J[bent] for _, _, J in points)])
        b = np.concatenate([b[keep], *((J @ point - g)[bent] for point, g, J in points)])
        group = np.concatenate([group[keep], *(bent for _ in points)])
        used = np.concatenate([used[keep], np.full(bent.size * len(points), k)])
        problem = cut_problem(member, A, b, group)
        asked = missed < MAX_VAIN_ROUNDS or k % RETRY_ROUNDS == 0
        x, mu, nu, exactly = solve_cuts(problem, x, asked)
        missed = 0 if exactly else missed + 1
        # Cuts lie below the rows: where even they conflict, the rows do.
        if firm and asked and not exactly and pieces_conflict(problem):
            return x, np.zeros(n), np.inf
        below = least_below(member, problem, mu, nu)
        memory = memory if below >= least else 2 * memory
        if below > least:
            least, lam = below, capped_sums(problem, mu) * 2.0 * member.alpha
        mattered = mu > 1e-8 * capped_sums(problem, mu)[group]
        used = np.where(mattered & (used < MAX_CUTS), k, used)
    return best[1], np.minimum(np.maximum(lam, member.low), member.high), max(gap, 0.0)
