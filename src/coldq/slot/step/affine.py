"""Affine rows on any domain that the step can read."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from coldq.base.errors import StepFailed
from coldq.base.lazy import scipy_sparse
from coldq.slot.constraints import Affine
from coldq.slot.domains import Ball, Box
from coldq.slot.step.residuals import accepted
from coldq.slot.step.slot import Slot
from coldq.solver.answer import CURVED_TOLERANCE, TOLERANCE, Step, new_tuple, raise_if_failed
from coldq.solver.ball import run_ball, run_balls
from coldq.solver.cascade import (
    MAX_MEANINGFUL_MULTIPLIER,
    MAX_SYSTEMS,
    explained,
    solve_affine,
    solve_alone,
)
from coldq.solver.problem import (
    HINGE,
    ONE_BOX,
    AffineProblem,
    BallProblem,
    BallRow,
    DoNotFit,
    append,
    is_sparse,
    member,
    members,
    zeros_of,
)
from coldq.solver.simplices import (
    BlockProblem,
    Blocks,
    entries_of,
    improve_blocks,
    prices_of_sums,
    run_blocks,
)

MIN_SPARSE_ENTRIES = 40_000  # N p above which sparse rows cost less as such than as dense ones


def solve_rows(slot: Slot) -> Step:
    """Affine rows: on a box, beside a domain's own rows, in a ball, in a product with balls."""
    domain = slot.domain
    if domain.polyhedral:
        return solve_beside(slot)
    if type(domain) is Ball:
        return solve_ball(slot)
    return solve_ball_product(slot)


def solve_beside(slot: Slot) -> Step:
    """On a polyhedral domain: its own rows come after the constraint's, with no price."""
    center, gradient, alpha, high, low, constraint, domain = slot
    n, box, blocks = constraint.A.shape[-2], domain.box, domain.blocks
    if blocks is not None:
        return solve_on_blocks(slot, constraint.A, blocks)
    if domain.rows.multiplier_lower.size == 0:
        return solve_affine(
            center, gradient, alpha, high, low, constraint.A, constraint.b, box.lower,
            box.upper,
        )  # fmt: skip
    problem = slot.affine_problem()
    try:
        step = solve_affine(
            center, gradient, alpha, problem.multiplier_upper, problem.multiplier_lower,
            problem.A, problem.b, box.lower, box.upper, MAX_SYSTEMS,
        )  # fmt: skip
        # Finite upper bounds bound the multipliers; where none is finite they may be huge.
        if (
            low is not HINGE
            and np.abs(step.multipliers[..., :n]).max(initial=0.0) > MAX_MEANINGFUL_MULTIPLIER
        ):
            step = explained(problem, step, n)
    except StepFailed as failed:
        if failed.step is not None:
            failed.step = failed.step._replace(multipliers=failed.step.multipliers[..., :n])
        raise
    return new_tuple(Step, (step[0], step[1][..., :n], step[2]))


def solve_on_blocks(slot: tuple[Any, ...], A: Any, blocks: Blocks) -> Step:
    """On a product of simplices, budgets and boxes; what needs more goes beside its rows."""
    center, gradient, alpha, high, low, constraint, domain = slot
    (n, p), box = A.shape[-2:], domain.box
    if p != domain.dim or high.shape[-1:] != (n,):
        raise DoNotFit
    zeros = zeros_of(n)
    low = zeros if low is HINGE else np.asarray(low)
    on_blocks = new_tuple(BlockProblem, (
        center, gradient, alpha, low, high, zeros, *entries_of(A), constraint.b, box.lower,
        box.upper, *blocks,
    ))  # fmt: skip
    step = run_blocks(on_blocks)
    if low is HINGE and isinstance(step[2], float) and step[2] <= TOLERANCE:
        return step
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return better_on_blocks(Slot(*slot), A, blocks, on_blocks, step)


def better_on_blocks(
    slot: Slot, A: Any, blocks: Blocks, on_blocks: BlockProblem, step: Step
) -> Step:
    """What the first method found, and more where that is not enough."""
    n, low = A.shape[-2], slot.multiplier_lower
    step = improve_blocks(on_blocks, step)
    if low is HINGE and isinstance(step.residual, float):
        return step
    x, multipliers, residual = step
    lost = np.asarray(~np.less_equal(residual, TOLERANCE))
    huge = low is not HINGE and np.abs(multipliers).max(initial=0.0) > MAX_MEANINGFUL_MULTIPLIER
    if not (lost.any() or huge):
        return step
    problem, infeasible = beside(slot, A, blocks), np.zeros(lost.shape, bool)
    for where, one in members(problem, lost):
        block = member(on_blocks, where, lost.shape)
        prices = prices_of_sums(block, x[where], multipliers[where])
        near = np.concatenate([multipliers[where], prices])
        found, infeasible[where] = solve_alone(one, Step(x[where], near, residual[where]))
        x[where], multipliers[where], residual[where] = found[0], found[1][:n], found[2]
    if lost.any():
        raise_if_failed(step, infeasible)
    if low is not HINGE and np.abs(multipliers).max(initial=0.0) > MAX_MEANINGFUL_MULTIPLIER:
        none = np.zeros((*multipliers.shape[:-1], problem.b.shape[-1] - n))
        whole = Step(x, np.concatenate([multipliers, none], axis=-1), residual)
        step = explained(problem, whole, n)
    residual = step.residual
    return Step(step[0], step[1][..., :n], residual if np.ndim(residual) else float(residual))


def beside(slot: Slot, A: Any, blocks: Blocks) -> AffineProblem:
    """The problem with the sums of blocks as rows among the others."""
    if not is_sparse(A):
        return slot.affine_problem()
    sparse = scipy_sparse()

    p, n, summed = A.shape[1], A.shape[0], blocks.summed
    first, count = blocks.start[summed].astype(np.int64), blocks.sizes(p)[summed]
    within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    both = sparse.csr_array(
        (
            np.concatenate([A.data, np.ones(count.sum())]),
            np.concatenate([A.indices, np.repeat(first, count) + within]),
            np.concatenate([A.indptr, A.indptr[-1] + np.cumsum(count)]),
        ),
        (n + summed.size, p),
    )
    box, kind = slot.domain.box, blocks.kind[summed]
    return AffineProblem(
        slot.center, slot.gradient, slot.alpha, append(slot.low, kind, 1),
        append(slot.multiplier_upper, np.full(summed.size, np.inf), 1),
        zeros_of(n + summed.size), both,
        append(slot.constraint.b, blocks.total[..., summed], 1), box.lower, box.upper,
    )  # fmt: skip


def solve_ball(slot: Slot) -> Step:
    """In a ball."""
    center, gradient, alpha, high, _, constraint, domain = slot
    problem = BallProblem(
        center, gradient, np.asarray(alpha), slot.low, high,
        zeros_of(constraint.n_constraints), constraint.A, constraint.b, domain.center,
        domain.radius,
    )  # fmt: skip
    return accepted(run_ball(problem), CURVED_TOLERANCE)


def solve_ball_product(slot: Slot) -> Step:
    """In a product with balls in it."""
    balls = [row for row, _ in slot.domain.enforced if isinstance(row, BallRow)]
    problem = slot.affine_problem()
    problem = problem._replace(alpha=np.asarray(problem.alpha))
    x, multipliers, residual = run_balls(problem, balls)
    own = np.ascontiguousarray(multipliers[..., : slot.constraint.n_constraints])
    return accepted(Step(x, own, residual), CURVED_TOLERANCE)


def solve_unconstrained(slot: Slot) -> Step:
    """A gradient step, projected: affine rows, none of them."""
    none = _no_rows(slot.domain.dim)
    return solve_rows(
        slot._replace(multiplier_upper=none.b, multiplier_lower=HINGE, constraint=none)
    )


def solve_sparse(slot: Slot) -> Step:
    """Sparse rows; small ones, and those beside a domain's own, are solved as dense ones."""
    constraint, domain = slot.constraint, slot.domain
    blocks = getattr(domain, "blocks", None)
    if math.prod(constraint.shape) <= MIN_SPARSE_ENTRIES or not (type(domain) is Box or blocks):
        rows = Affine(constraint.A.toarray(), constraint.b)
        return solve_rows(slot._replace(constraint=rows))
    return solve_on_blocks(slot, constraint.A, blocks) if blocks else solve_where_entered(slot)


def solve_where_entered(slot: Slot) -> Step:
    """On a box: coordinates that no row enters are known at once and left out."""
    center, gradient, alpha, _, _, constraint, box = slot
    A, whole = constraint.A, Blocks(*ONE_BOX)
    has_any = np.zeros(box.dim, bool)
    has_any[A.indices] = True
    entered = np.flatnonzero(has_any)
    if entered.size == box.dim:
        return solve_on_blocks(slot, A, whole)
    sparse = scipy_sparse()

    place = np.empty(box.dim, np.int64)
    place[entered] = np.arange(entered.size)
    inner = sparse.csr_array((A.data, place[A.indices], A.indptr), (A.shape[0], entered.size))
    center_in, gradient_in, lower, upper = (
        np.take(array, entered, axis=-1) for array in (center, gradient, box.lower, box.upper)
    )
    part = slot._replace(center=center_in, gradient=gradient_in, domain=Box(lower, upper))
    step = solve_on_blocks(part, inner, whole)
    try:
        x = box.project(center - gradient / (2.0 * np.asarray(alpha)[..., None]))
    except ValueError:
        raise DoNotFit from None
    x[..., entered] = step.x
    return Step(x, step.multipliers, step.residual)


@cache
def _no_rows(p: int) -> Affine:
    return Affine(np.zeros((0, p)), np.zeros(0))
