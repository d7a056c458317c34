"""Affine rows on any domain that the step can read."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from coldq.constraints import Affine
from coldq.domains import Ball, Box
from coldq.errors import StepFailed
from coldq.solver.answer import CURVED_TOLERANCE, TOLERANCE, Step, new_tuple, raise_if_failed
from coldq.solver.ball import run_ball, run_balls
from coldq.solver.cascade import (
    HASTY,
    HUGE,
    MANY_ROWS,
    explained,
    solve_affine,
    solve_alone,
    solve_large,
)
from coldq.solver.problem import (
    HINGE,
    AffineProblem,
    BallProblem,
    BallRow,
    DoNotFit,
    append,
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
from coldq.solver.sparse import SparseRows
from coldq.step.residuals import accepted
from coldq.step.slot import Slot

MUCH_SPARSE = 40_000  # N p above which sparse rows cost less as such than as dense ones


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
    center, gradient, alpha, weights, floor, constraint, domain = slot
    n, box, blocks = constraint.A.shape[-2], domain.box, domain.blocks
    if blocks is not None:
        return solve_on_blocks(slot, constraint.A, blocks)
    if domain.rows.floor.size == 0:
        return solve_affine(
            center, gradient, alpha, weights, floor, constraint.A, constraint.b, box.lower,
            box.upper,
        )  # fmt: skip
    problem = slot.affine_problem()
    try:
        step = solve_affine(
            center, gradient, alpha, problem.weights, problem.floor, problem.A, problem.b,
            box.lower, box.upper, HASTY,
        )  # fmt: skip
        # By weights multipliers are priced, which bounds them.
        if floor is not HINGE and np.abs(step.multipliers[..., :n]).max(initial=0.0) > HUGE:
            step = explained(problem, step, n)
    except StepFailed as failed:
        if failed.step is not None:
            failed.step = failed.step._replace(multipliers=failed.step.multipliers[..., :n])
        raise
    return new_tuple(Step, (step[0], step[1][..., :n], step[2]))


def solve_on_blocks(slot: tuple[Any, ...], A: Any, blocks: Blocks) -> Step:
    """On a product of simplices, budgets and boxes; what needs more goes beside its rows."""
    center, gradient, alpha, weights, floor, constraint, domain = slot
    (n, p), box = A.shape[-2:], domain.box
    if p != domain.dim or weights.shape[-1:] != (n,):
        raise DoNotFit
    zeros = zeros_of(n)
    low = zeros if floor is HINGE else np.asarray(floor)
    on_blocks = new_tuple(BlockProblem, (
        center, gradient, alpha, low, weights, zeros, *entries_of(A), constraint.b, box.lower,
        box.upper, *blocks,
    ))  # fmt: skip
    step = run_blocks(on_blocks)
    if floor is HINGE and isinstance(step[2], float) and step[2] <= TOLERANCE:
        return step
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return better_on_blocks(Slot(*slot), A, blocks, on_blocks, step)


def better_on_blocks(
    slot: Slot, A: Any, blocks: Blocks, on_blocks: BlockProblem, step: Step
) -> Step:
    """What the kernel found, and more where that is not enough."""
    n, floor = A.shape[-2], slot.floor
    step = improve_blocks(on_blocks, step)
    if floor is HINGE and isinstance(step.residual, float):
        return step
    x, multipliers, residual = step
    lost = np.asarray(~np.less_equal(residual, TOLERANCE))
    huge = floor is not HINGE and np.abs(multipliers).max(initial=0.0) > HUGE
    if not (lost.any() or huge):
        return step
    problem, clash = beside(slot, A, blocks), np.zeros(lost.shape, bool)
    for where, one in members(problem, lost):
        block = member(on_blocks, where, lost.shape)
        prices = prices_of_sums(block, x[where], multipliers[where])
        near = np.concatenate([multipliers[where], prices])
        found, clash[where] = solve_alone(one, Step(x[where], near, residual[where]))
        x[where], multipliers[where], residual[where] = found[0], found[1][:n], found[2]
    if lost.any():
        raise_if_failed(step, clash)
    if floor is not HINGE and np.abs(multipliers).max(initial=0.0) > HUGE:
        none = np.zeros((*multipliers.shape[:-1], problem.b.shape[-1] - n))
        whole = Step(x, np.concatenate([multipliers, none], axis=-1), residual)
        step = explained(problem, whole, n)
    residual = step.residual
    return Step(step[0], step[1][..., :n], residual if np.ndim(residual) else float(residual))


def beside(slot: Slot, A: Any, blocks: Blocks) -> AffineProblem:
    """The same with the sums of blocks as rows among the others."""
    if not isinstance(A, SparseRows):
        return slot.affine_problem()
    p, n, summed = A.shape[1], A.shape[0], blocks.summed
    data, indices, indptr = A.parts
    first, count = blocks.start[summed].astype(np.int64), blocks.sizes(p)[summed]
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    both = SparseRows(
        (
            np.concatenate([data, np.ones(count.sum())]),
            np.concatenate([indices, np.repeat(first, count) + within]),
            np.concatenate([indptr, indptr[-1] + np.cumsum(count)]),
        ),
        p,
    )
    box, kind = slot.domain.box, blocks.kind[summed]
    return AffineProblem(
        slot.center, slot.gradient, slot.alpha, append(slot.low, kind, 1),
        append(slot.weights, np.full(summed.size, np.inf), 1), zeros_of(n + summed.size), both,
        append(slot.constraint.b, blocks.total[..., summed], 1), box.lower, box.upper,
    )  # fmt: skip


def solve_ball(slot: Slot) -> Step:
    """In a ball."""
    center, gradient, alpha, weights, _, constraint, domain = slot
    problem = BallProblem(
        center, gradient, np.asarray(alpha), slot.low, weights,
        zeros_of(constraint.n_constraints), constraint.A, constraint.b, domain.center,
        domain.radius,
    )  # fmt: skip
    return accepted(run_ball(problem), CURVED_TOLERANCE)


def solve_ball_product(slot: Slot) -> Step:
    """In a product with balls in it."""
    balls = [row for row, _ in slot.domain.hard if isinstance(row, BallRow)]
    problem = slot.affine_problem()
    problem = problem._replace(alpha=np.asarray(problem.alpha))
    x, multipliers, residual = run_balls(problem, balls)
    own = np.ascontiguousarray(multipliers[..., : slot.constraint.n_constraints])
    return accepted(Step(x, own, residual), CURVED_TOLERANCE)


def solve_unconstrained(slot: Slot) -> Step:
    """A gradient step, projected: affine rows, none of them."""
    none = _no_rows(slot.domain.dim)
    return solve_rows(slot._replace(weights=none.b, floor=HINGE, constraint=none))


def solve_sparse(slot: Slot) -> Step:
    """Sparse rows; small ones, and those beside a domain's own, are solved as dense ones."""
    center, gradient, alpha, weights, _, constraint, domain = slot
    n, p = constraint.shape
    blocks = getattr(domain, "blocks", None)
    if blocks is not None and (n > MANY_ROWS or n * p > MUCH_SPARSE):
        return solve_on_blocks(slot, SparseRows.of(constraint.A), blocks)
    if n * p <= MUCH_SPARSE or type(domain) is not Box:
        rows = Affine(constraint.A.toarray(), constraint.b)
        return solve_rows(slot._replace(constraint=rows))
    return solve_large(
        AffineProblem(
            center, gradient, alpha, slot.low, weights, zeros_of(n), SparseRows.of(constraint.A),
            constraint.b, domain.lower, domain.upper,
        )
    )  # fmt: skip


@cache
def _no_rows(p: int) -> Affine:
    return Affine(np.zeros((0, p)), np.zeros(0))
