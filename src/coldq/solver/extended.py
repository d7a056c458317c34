"""What the kernels do not solve to the promised residual, in double-double arithmetic.

One instance at a time. It is exact on any rows, so that it also decides whether hard rows have a
common point: they have none where a combination of them says so, by more than a row may be off, or
by less where there is no answer. (Of rows that nearly depend on each other, combinations are small
beside their terms.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coldq._values import Array
from coldq.compiled.calls import STACK
from coldq.solver.answer import ACCEPTED
from coldq.solver.kernels.extended import (
    NO_END,
    extended_residual,
    extended_size,
    extended_step,
)
from coldq.solver.linear_programs import no_point
from coldq.solver.problem import AffineProblem
from coldq.solver.threads import scratch

SHARP = 1e-13  # what a row may be off by, relative to its terms
LOOSER = (SHARP, 1e-11, 5e-10)  # where rows clash by less than is promised
PROOF = 1e-9  # by how much a combination of hard rows must fail, relative to its terms
MANY = 400  # independent rows: beyond, double-double takes minutes


class Answer(NamedTuple):
    """x, the multipliers and their residual; or a proof that hard rows have no common point."""

    x: Array
    multipliers: Array
    residual: float
    clash: bool


def solve_extended(
    problem: AffineProblem,
    start: Array | None = None,
    share: Array | None = None,
    middle: Array | None = None,
) -> Answer:
    """The answer of one instance, from a guess of its multipliers.

    With a `share` and a `middle` x moves by this share of what it would, from there: what a ball's
    multiplier does to the coordinates of the ball.
    """
    problem = AffineProblem._make(np.asarray(array, np.float64, order="C") for array in problem)
    center, gradient, alpha, floor, weights, soft, A, b, lower, upper = problem
    (n, p), solve = A.shape, extended_step()
    # No more rows are independent than there are coordinates, but for those with compliance.
    most = 1 + min(n, p + np.count_nonzero(soft))
    memory = scratch(max(extended_size(n, p, most), STACK + 1))  # less would be the kernel's own
    share = np.ones(p) if share is None else share
    middle = np.zeros(p) if middle is None else middle
    starts = [np.zeros(n)]
    if start is not None and np.isfinite(start).all():
        starts.insert(0, start)
    least = np.minimum(np.maximum(0.0, floor), weights)
    best = Answer(np.minimum(np.maximum(center, lower), upper), least, np.inf, False)
    proved = False
    if not np.isfinite(center - gradient / alpha).all():
        return best._replace(residual=np.nan)
    for begin in starts:
        # A guess that leads nowhere soon is a bad one.
        steps = 100 + (20 if begin is starts[-1] else 2) * (n + p)
        for tolerance in LOOSER:
            x, multipliers = np.empty(p), np.minimum(np.maximum(begin, floor), weights)
            rise = solve(
                center, gradient, float(alpha), floor, weights, soft, A, b, lower, upper, share,
                middle, tolerance, steps, most, memory, x, multipliers,
            )  # fmt: skip
            if rise > PROOF:
                return best._replace(clash=True)
            proved = proved or rise > tolerance
            off = residual_of(problem, x, multipliers, share, middle)
            if off < best.residual:
                best = Answer(x, multipliers, off, False)
            if rise == 0.0 or off <= PROOF or (rise == NO_END and begin is not starts[-1]):
                break
        if best.residual <= PROOF:
            break
    return best._replace(clash=proved and best.residual > ACCEPTED)


def residual_of(
    problem: AffineProblem, x: Array, multipliers: Array, share: Array, middle: Array
) -> float:
    """The relative KKT residual of an answer from anywhere, relative to the instance alone."""
    center, gradient, alpha, floor, weights, soft, A, b, lower, upper = problem
    return extended_residual()(
        center, gradient, float(alpha), floor, weights, soft, A, b, lower, upper, share, middle,
        x, multipliers,
    )  # fmt: skip


def hard_rows_clash(problem: AffineProblem) -> bool:
    """Whether no point of the box satisfies all hard rows: a combination of them proves it, or,
    where multipliers got so long that no digits were left, a linear program.

    That is asked only if it can be told how far x may go.
    """
    hard = problem.hard_rows()
    if hard is None:
        return False
    if min(hard.A.shape) <= MANY:
        answer, bounded = solve_extended(hard), np.isfinite(hard.upper - hard.lower).all()
        if answer.clash or not (answer.residual > PROOF and bounded):
            return answer.clash
    return no_point(hard.A, hard.b, hard.lower, hard.upper, hard.floor, hard.weights)
