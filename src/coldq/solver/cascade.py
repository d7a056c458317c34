"""Affine rows on a box, from the first attempt to the last.

1. :func:`solve_affine`: the dual Newton method, for a single step or a batch; of more than a few
   rows it takes a working set of those that x violates. Where these leave most of the others
   wrong, :func:`at_once` takes all of them.
2. :func:`solve_large`: where most of many rows do hold x back, an interior-point method takes them
   all at once; where there is too much data for that, or it fails, BLAS takes over, one by one,
   and where that misses, double-double arithmetic.
3. :func:`rescue`: what the kernel misses is solved in double-double arithmetic, which also proves
   that hard rows have no common point. Where there are many faces on the way, an interior-point
   method is asked first which rows decide.
4. :func:`~coldq.solver.answer.raise_if_failed` says what is left.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
from numpy import maximum

from coldq._values import Array
from coldq.solver.answer import ACCEPTED, ROUGH, TOLERANCE, Step, new_tuple, raise_if_failed
from coldq.solver.api import active_set, active_set_extended, newton_step, working_set_step
from coldq.solver.blas import on_one_thread
from coldq.solver.constants import FEW_COORDINATES, MORE_ROWS, MUCH_DATA
from coldq.solver.extended import MANY, hard_rows_clash
from coldq.solver.interior_point import from_inside
from coldq.solver.problem import (
    HINGE,
    AffineProblem,
    DoNotFit,
    members,
    zeros_of,
)
from coldq.solver.simplices import solve_in_one_block, take_at_once
from coldq.solver.sparse import SparseRows
from coldq.solver.threads import fill_batch

NOTHING = 1e-20  # of a box's width: far less than a rounding of what is in it
HUGE = 1e8  # a multiplier of hard rows that tie: no price, and what is relative to it says little
# How many systems the kernel may solve before others take over. Where hard rows of a domain hold
# blocks of coordinates (simplices beside prices of many magnitudes), one step length for all rows
# creeps; on a box every answer comes from the kernel that can.
PATIENT, HASTY = np.array(np.inf), np.array(24.0)
FEW_ROWS = 16  # above, it pays to ask which of them hold x back
MANY_ROWS = 40  # above, passes on BLAS beat the compiled loops where most of them do
SOME_ROWS = 150  # up to as many, the kernel for blocks takes them all
SOME_FACES = 80  # rows and coordinates: above, an interior-point method comes before faces
SMALL_SETS = 48  # coordinates, in which active sets are small whatever the rows
MOST_AT_ONCE = 700  # rows that may be up to twice as many as coordinates
MUCH_DENSE = 4_000_000  # numbers that a sparse A may have as a dense one


def is_large(n: int, p: int) -> bool:
    """Whether :mod:`coldq.solver.large` is better than the kernel at n rows that all matter."""
    most = MORE_ROWS if p <= FEW_COORDINATES else MANY_ROWS
    return n > most or (n > FEW_ROWS and n * p > MUCH_DATA)


def solve_affine(
    center: Array,
    gradient: Array,
    alpha: Array,
    weights: Array,
    floor: Any,
    A: Array,
    b: Array,
    lower: Array,
    upper: Array,
    systems: Array = PATIENT,
) -> Step:
    """The answers of a batch; raises if any instance has none."""
    n, zeros = A.shape[-2], zeros_of(A.shape[-2])
    floor = zeros if floor is HINGE else floor
    answer = None
    if center.ndim == 1:  # a single decision costs mostly Python, so there is little of it here
        step = newton_step if n <= FEW_ROWS else working_set_step
        try:
            answer = new_tuple(
                Step,
                step(center, gradient, alpha, floor, weights, zeros, A, b, lower, upper, systems),
            )
        except TypeError:
            raise DoNotFit from None
        if answer[0].ndim > 1:  # the others are of a batch
            raise DoNotFit
        if answer[2] <= TOLERANCE:
            return answer
    problem = AffineProblem(center, gradient, alpha, floor, weights, zeros, A, b, lower, upper)
    if answer is not None:
        answer = at_once(problem, answer)
        if answer[2] <= TOLERANCE:
            return answer
        answer = new_tuple(Step, (*answer[:2], np.asarray(answer[2])))
    answer = run_affine(problem, systems, answer)
    if answer.residual.size and not maximum.reduce(answer.residual, None) <= TOLERANCE:  # or NaN
        if is_large(*A.shape[-2:]):
            return solve_large(problem, answer)
        answer, clash = rescue(problem, answer)
        raise_if_failed(answer, clash)
    return answer


def run_affine(problem: AffineProblem, systems: Array = PATIENT, found: Step | None = None) -> Step:
    """The dual Newton method alone: an answer whose residual may be large, infinite (enforced rows
    without a common point) or NaN. `found` is what the first attempt says, if that is known."""
    n, p = problem.A.shape[-2:]
    if n <= FEW_ROWS:
        return found or run_native(newton_step, problem, systems)
    if found is None:
        found = run_native(working_set_step, problem, systems)
        for where, one in members(problem, ~(found.residual <= TOLERANCE)):
            put(found, where, at_once(one, new_tuple(Step, [part[where] for part in found])))
    if is_large(n, p) or maximum.reduce(found.residual, None, initial=0.0) <= TOLERANCE:
        return found
    for where, one in members(problem, ~(found.residual <= TOLERANCE)):
        put(found, where, run_native(newton_step, one, systems))
    return found


def run_native(step: Any, problem: AffineProblem, systems: Array) -> Step:
    """A native step over a batch, split over threads where that pays."""
    n, p = problem.A.shape[-2:]
    batch, cores = problem.center.shape[:-1], (*problem.cores, 0)
    answer = Step(np.empty((*batch, p)), np.empty((*batch, n)), np.empty(batch))
    work = (n + 8) * p + 2 * n * n  # numbers that an instance is gone through in
    try:
        fill_batch(step, (*problem, systems), cores, answer, batch, work)
    except TypeError as error:
        raise DoNotFit(str(error)) from None
    return answer


def fit_at_once(n: int, p: int) -> bool:
    """Whether n rows that all matter are given to the kernel for blocks at once, which moves no
    more of them than coordinates are free."""
    return n <= min(2 * p, MOST_AT_ONCE) or 6 * n <= 5 * p


def at_once(one: AffineProblem, found: Step) -> Step:
    """Rows of which more hold x back than a few: by the active-set method in few coordinates, else
    by the kernel that takes all of them, if there are not too many; else what was found."""
    n, p = one.A.shape
    if n <= FEW_ROWS or one.soft.any():
        return found
    if p <= SMALL_SETS:
        again = active_set(one, found.multipliers)
        if again.residual <= TOLERANCE:
            return new_tuple(Step, again[:3])
    return take_at_once(one, found) if fit_at_once(n, p) else found


def put(answers: Step, where: tuple[int, ...], one: Any) -> None:
    """Put the answer of one instance to those of the others."""
    for all_of_them, its in zip(answers, one, strict=True):
        all_of_them[where] = its


def rescue(problem: AffineProblem, answer: Step) -> tuple[Step, np.ndarray]:
    """Solve again what the kernel did not; also, where hard rows have no common point."""
    x, multipliers, residual = (np.array(a) for a in answer)
    clash = np.zeros(residual.shape, bool)
    for where, one in members(problem, ~(residual <= TOLERANCE)):
        start = multipliers[where] if residual[where] <= ROUGH else guessed(one)
        again = active_set_extended(one, start)
        if not again.infeasible and again.residual > ACCEPTED:
            again = active_set_extended(at_bounds(one), start)
        clash[where] = again.infeasible or (again.residual > ACCEPTED and hard_rows_clash(one))
        if again.residual < residual[where] or np.isnan(residual[where]):
            x[where], multipliers[where], residual[where] = again[:3]
    return Step(x, multipliers, residual), clash


def at_bounds(one: AffineProblem) -> AffineProblem:
    """An instance whose center lies on a bound where it is next to nothing away from it.

    What rounding left of a zero, 1e-26 say, is too small a number for a price to be found.
    """
    center, width = one.center, one.upper - one.lower
    nothing = NOTHING * np.where(np.isfinite(width), width, 0.0)
    for bound in (one.lower, one.upper):
        center = np.where(np.abs(center - bound) <= nothing, bound, center)
    return one._replace(center=center)


def guessed(one: AffineProblem) -> Array | None:
    """Multipliers to start from, of an instance with many rows and coordinates.

    Those that are far from right are a worse start than none. From none the number of faces on the
    way, and the cost of each, grow with the rows and coordinates; an interior-point method's steps
    do not grow in number.
    """
    center, gradient, alpha, floor, weights, soft, A, b, lower, upper = one
    if sum(A.shape) <= SOME_FACES or soft.any() or not A.any(axis=1).all():
        return None
    nearer = from_inside(center, gradient, alpha, floor, weights, A, b, lower, upper)
    *_, found = None, *islice(nearer, 3)  # which multipliers are at a bound is mostly clear then
    return found


def explained(problem: AffineProblem, answer: Step, n: int) -> Step:
    """The same x with smaller multipliers of the first n rows, where they are huge.

    Where hard rows tie with those of the domain no multiplier is too large to be optimal, but a
    huge one is no price for anybody. Those of independent rows are no larger than they must be.
    """
    x, multipliers, residual = (np.array(a) for a in answer)
    huge = np.abs(multipliers[..., :n]).max(axis=-1) > HUGE
    rows, p = problem.A.shape[-2:]
    if min(rows, p) > MANY or rows * p > MUCH_DENSE:
        return answer
    for where, one in members(problem, huge):
        again = active_set_extended(as_dense(one))
        smaller = np.abs(again.multipliers[:n]).max() < np.abs(multipliers[where][:n]).max()
        if again.residual <= TOLERANCE and smaller:
            x[where], multipliers[where], residual[where] = again[:3]
    return Step(x, multipliers, residual if residual.ndim else residual[()])


def solve_large(problem: AffineProblem, answer: Step | None = None) -> Step:
    """The answers of a batch of large instances, one by one; raises if any has none.

    Those are kept that are known already.
    """
    batch, n = problem.center.shape[:-1], problem.b.shape[-1]
    if answer is None:
        answer = Step(np.empty(problem.center.shape), np.empty((*batch, n)), np.full(batch, np.inf))
    x, multipliers, worst = answer
    clash = np.zeros(batch, bool)
    for where, one in members(problem, ~(worst <= TOLERANCE)):
        x[where], multipliers[where], worst[where] = solve_large_one(one)
        if worst[where] > TOLERANCE:
            clash[where] = hard_rows_clash(as_dense(one))
    if not (worst <= TOLERANCE).all():
        raise_if_failed(answer, clash)
    return answer


def solve_large_one(one: AffineProblem) -> Step:
    """The best answer of a large instance, and its residual."""
    if not isinstance(one.A, SparseRows) and len(one.b) <= SOME_ROWS and one.A.size <= MUCH_DATA:
        from coldq.solver.large import residual

        x, multipliers, found = solve_in_one_block(one)
        if found <= TOLERANCE:  # by that kernel's reckoning, and by ours
            found = residual(one.divided(), x, multipliers * (0.5 / float(one.alpha)))
        if found <= TOLERANCE:
            return Step(x, multipliers, found)
    return solve_by_passes(one)


@on_one_thread
def solve_by_passes(one: AffineProblem) -> Step:
    """The same by whole passes over A, with what is compiled for all sizes."""
    from coldq.solver.large import residual, solve

    problem, double = one.divided(), 2.0 * float(one.alpha)
    if not np.isfinite(problem.y).all():
        return Step(problem.y, np.zeros_like(one.b), np.nan)
    x, mu, found = solve(problem, from_inside=not problem.sparse and one.A.size <= MUCH_DATA)
    multipliers = np.where(
        mu >= problem.hi, one.weights, np.where(mu <= problem.lo, one.floor, mu * double)
    )
    multipliers = np.minimum(np.maximum(multipliers, one.floor), one.weights)
    found = np.inf if np.isnan(found) else found
    if found > TOLERANCE and min(one.A.shape) <= MANY:
        dense = as_dense(one)
        slow = active_set_extended(dense, multipliers if found <= ROUGH else guessed(dense))
        again = residual(problem, slow.x, slow.multipliers * (0.5 / float(one.alpha)))
        if again < found:
            x, multipliers, found = slow.x, slow.multipliers, again
    return Step(x, multipliers, found)


def as_dense(one: AffineProblem) -> AffineProblem:
    """The instance for the slow methods, which take a dense A."""
    return one._replace(A=one.A.toarray()) if isinstance(one.A, SparseRows) else one


def solve_alone(one: AffineProblem, near: Step) -> tuple[Step, bool]:
    """The best answer of one instance, of which another method found one that is near; and whether
    hard rows have no common point."""
    n, p = one.A.shape
    if near.residual <= ROUGH and min(n, p) <= MANY and n * p <= MUCH_DENSE:
        found, _ = rescue(as_dense(one), near)
        if found.residual <= TOLERANCE:
            return found, False
    if isinstance(one.A, SparseRows) or is_large(*one.A.shape):
        answer = solve_large_one(one)
        return answer, not answer.residual <= TOLERANCE and hard_rows_clash(as_dense(one))
    answer = run_affine(one, HASTY)
    if answer.residual <= TOLERANCE:
        return answer, False
    answer, clash = rescue(one, answer)
    return answer, bool(clash)


def solve_one(one: AffineProblem, slowly: bool) -> tuple[Array, Array] | None:
    """x and multipliers of one instance, by whichever solver suits its size.

    None if hard rows have no common point, or if the kernel finds no answer and must not be helped.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        answer = run_affine(one)
        if not answer.residual <= TOLERANCE:
            if is_large(*one.A.shape):
                x, multipliers, off = solve_large_one(one)
                return None if not off <= TOLERANCE and hard_rows_clash(one) else (x, multipliers)
            if not slowly:
                return None
            answer, clash = rescue(one, answer)
            if clash.any():
                return None
    return answer.x, answer.multipliers
