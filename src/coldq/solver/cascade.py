"""Affine rows on a box: the order of methods, from the first attempt to the last.

1. The dual Newton method, for a whole batch; of more than a few rows it takes a working set of
   those that x violates (:func:`solve_affine`).
2. One by one, where more rows than a few hold x back (:func:`attempt_more`): in few coordinates the
   active set; else Newton's method in all rows, from nothing and then from what an interior-point
   method guesses of the multipliers.
3. The active set in double-double arithmetic, which also proves that enforced rows have no common
   point (:func:`rescue`).
4. :func:`~coldq.solver.answer.raise_if_failed` says what is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import maximum

from coldq.base.arrays import Array
from coldq.solver.answer import (
    MAX_RESIDUAL,
    MAX_START_RESIDUAL,
    TOLERANCE,
    Step,
    new_tuple,
    raise_if_failed,
)
from coldq.solver.api import active_set, active_set_extended, newton_step, working_set_step
from coldq.solver.constants import MAX_DENSE_ENTRIES
from coldq.solver.extended import MAX_EXTENDED_ROWS, enforced_rows_conflict
from coldq.solver.interior_point import guess_multipliers
from coldq.solver.problem import HINGE, AffineProblem, DoNotFit, as_dense, members, zeros_of
from coldq.solver.simplices import solve_in_one_block
from coldq.solver.threads import fill_batch

BOUND_ROUNDING = 1e-20  # of a box's width: far less than a rounding of what is in it
MAX_MEANINGFUL_MULTIPLIER = (
    1e8  # a multiplier of enforced rows that tie: no price, and what is relative to it says little
)
# How many systems Newton's method may solve before others take over. Where enforced rows of a
# domain hold blocks of coordinates (simplices beside prices of many magnitudes), one step length
# for all rows creeps.
UNLIMITED_SYSTEMS, MAX_SYSTEMS = np.array(np.inf), np.array(24.0)
MAX_NEWTON_ROWS = 16  # above, it pays to ask which of them hold x back
MAX_ACTIVE_SET_COORDINATES = 48  # in which active sets are small whatever the rows
MAX_COLD_START_SIZE = 80  # rows and coordinates: above, an interior-point method comes before faces


def solve_affine(
    center: Array,
    gradient: Array,
    alpha: Array,
    high: Array,
    low: Any,
    A: Array,
    b: Array,
    lower: Array,
    upper: Array,
    systems: Array = UNLIMITED_SYSTEMS,
) -> Step:
    """The answers of a batch; raises if any instance has none."""
    n, zeros = A.shape[-2], zeros_of(A.shape[-2])
    low = zeros if low is HINGE else low
    answer = None
    if center.ndim == 1:  # a single decision costs mostly Python, so there is little of it here
        step = newton_step if n <= MAX_NEWTON_ROWS else working_set_step
        try:
            answer = new_tuple(
                Step,
                step(center, gradient, alpha, low, high, zeros, A, b, lower, upper, systems),
            )
        except TypeError:
            raise DoNotFit from None
        if answer[0].ndim > 1:  # the others are of a batch
            raise DoNotFit
        if answer[2] <= TOLERANCE:
            return answer
    problem = AffineProblem(center, gradient, alpha, low, high, zeros, A, b, lower, upper)
    if answer is not None:
        answer = attempt_more(problem, answer)
        if answer[2] <= TOLERANCE:
            return answer
        answer = new_tuple(Step, (*answer[:2], np.asarray(answer[2])))
    else:
        answer = run_affine(problem, systems)
    if answer.residual.size and not maximum.reduce(answer.residual, None) <= TOLERANCE:  # or NaN
        answer, infeasible = rescue(problem, answer)
        raise_if_failed(answer, infeasible)
    return answer


def run_affine(problem: AffineProblem, systems: Array = UNLIMITED_SYSTEMS) -> Step:
    """All but the last methods: an answer whose residual may be large, infinite (enforced rows
    without a common point) or NaN."""
    n, p = problem.A.shape[-2:]
    batch, cores = problem.center.shape[:-1], (*problem.cores, 0)
    found = Step(np.empty((*batch, p)), np.empty((*batch, n)), np.empty(batch))
    step = newton_step if n <= MAX_NEWTON_ROWS else working_set_step
    work = (n + 8) * p + 2 * n * n  # numbers that an instance is gone through in
    try:
        fill_batch(step, (*problem, systems), cores, found, batch, work)
    except TypeError as error:
        raise DoNotFit(str(error)) from None
    for where, one in members(problem, ~(found.residual <= TOLERANCE)):
        put(found, where, attempt_more(one, new_tuple(Step, [part[where] for part in found])))
    return found


def attempt_more(one: AffineProblem, found: Step) -> Step:
    """One instance whose rows a working set did not settle: what was found, or better."""
    n, p = one.A.shape
    if n <= MAX_NEWTON_ROWS or not is_finite(one):
        return found
    if one.soft.any():  # rows of a least-squares loss are for the first method alone
        return better(found, newton_step(*one, UNLIMITED_SYSTEMS))
    if p <= MAX_ACTIVE_SET_COORDINATES:
        found = better(found, active_set(one, found.multipliers))
    return found if found.residual <= TOLERANCE else better(found, solve_in_one_block(one))


def is_finite(one: AffineProblem) -> bool:
    """Whether all numbers are some: else no method has an answer."""
    others = one.multiplier_lower, one.multiplier_upper, one.b
    y = one.center - one.gradient / one.alpha
    return bool(np.isfinite(y).all()) and not any(np.isnan(array).any() for array in others)


def better(found: Step, again: Any) -> Step:
    """The answer with the smaller residual, and none that is NaN."""
    is_better = again[2] < found[2] or found[2] != found[2]
    return new_tuple(Step, again[:3]) if is_better else found


def put(answers: Step, where: tuple[int, ...], one: Any) -> None:
    """Put the answer of one instance to those of the others."""
    for all_of_them, its in zip(answers, one, strict=True):
        all_of_them[where] = its


def rescue(problem: AffineProblem, answer: Step) -> tuple[Step, np.ndarray]:
    """Solve again what other methods did not; also, where enforced rows have no common point."""
    answer = Step(*(np.array(part) for part in answer))
    infeasible = np.zeros(answer.residual.shape, bool)
    for where, one in members(problem, ~(answer.residual <= TOLERANCE)):
        found, infeasible[where] = rescue_one(one, Step(*(part[where] for part in answer)))
        put(answer, where, found)
    return answer, infeasible


def rescue_one(one: AffineProblem, found: Step) -> tuple[Step, bool]:
    """Solve one instance again, whose rows may be sparse; also, whether enforced rows conflict."""
    n, p = one.A.shape
    if not is_finite(one):
        return found, False
    if min(n, p) > MAX_EXTENDED_ROWS or n * p > MAX_DENSE_ENTRIES:
        return found, not found.residual <= MAX_RESIDUAL and enforced_rows_conflict(as_dense(one))
    one = as_dense(one)
    start = found.multipliers if found.residual <= MAX_START_RESIDUAL else guessed(one)
    again = active_set_extended(one, start)
    if not again.infeasible and again.residual > MAX_RESIDUAL:
        again = active_set_extended(at_bounds(one), start)
    infeasible = again.infeasible or (again.residual > MAX_RESIDUAL and enforced_rows_conflict(one))
    return better(found, again), infeasible


def solve_alone(one: AffineProblem, near: Step) -> tuple[Step, bool]:
    """The best answer of one instance whose sums of blocks are rows, of which another method found
    one that is near; and whether enforced rows have no common point."""
    found, infeasible = rescue_one(one, near)
    if found.residual <= TOLERANCE or infeasible or not is_finite(one):
        return found, infeasible
    return better(found, solve_in_one_block(one)), False


def solve_one(one: AffineProblem) -> tuple[Array, Array] | None:
    """x and multipliers of one instance; None where that takes the last methods."""
    with np.errstate(over="ignore", invalid="ignore"):
        answer = run_affine(one)
    return (answer.x, answer.multipliers) if answer.residual <= TOLERANCE else None


def at_bounds(one: AffineProblem) -> AffineProblem:
    """An instance whose center lies on a bound where it is next to nothing away from it.

    What rounding left of a zero, 1e-26 say, is too small a number for a price to be found.
    """
    center, width = one.center, one.upper - one.lower
    nothing = BOUND_ROUNDING * np.where(np.isfinite(width), width, 0.0)
    for bound in (one.lower, one.upper):
        center = np.where(np.abs(center - bound) <= nothing, bound, center)
    return one._replace(center=center)


def guessed(one: AffineProblem) -> Array | None:
    """Multipliers to start from, of an instance with many rows and coordinates.

    Those that are far from right are a worse start than none. From none the number of faces on the
    way, and the cost of each, grow with the rows and coordinates; an interior-point method's steps
    do not grow in number.
    """
    center, gradient, alpha, low, high, soft, A, b, lower, upper = one
    if sum(A.shape) <= MAX_COLD_START_SIZE or soft.any() or not A.any(axis=1).all():
        return None
    return guess_multipliers(center, gradient, alpha, low, high, A, b, lower, upper)


def explained(problem: AffineProblem, answer: Step, n: int) -> Step:
    """Make the multipliers of the first n rows smaller, where they are huge; x stays.

    Where enforced rows tie with those of the domain no multiplier is too large to be optimal, but a
    huge one is no price for anybody. Those of independent rows are no larger than they must be.
    """
    x, multipliers, residual = (np.array(a) for a in answer)
    huge = np.abs(multipliers[..., :n]).max(axis=-1) > MAX_MEANINGFUL_MULTIPLIER
    rows, p = problem.A.shape[-2:]
    if min(rows, p) > MAX_EXTENDED_ROWS or rows * p > MAX_DENSE_ENTRIES:
        return answer
    for where, one in members(problem, huge):
        again = active_set_extended(as_dense(one))
        smaller = np.abs(again.multipliers[:n]).max() < np.abs(multipliers[where][:n]).max()
        if again.residual <= TOLERANCE and smaller:
            x[where], multipliers[where], residual[where] = again[:3]
    return Step(x, multipliers, residual if residual.ndim else residual[()])
