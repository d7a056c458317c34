"""Affine rows on a product of simplices, of budgets and of boxes, from the first attempt on.

1. The native dual Newton method, for a single step or a batch.
2. Where rows that cannot all be met leave it very many pieces to go through, an interior-point
   method, which knows none, tells which multipliers are at a bound; Newton goes on from there.
   A block's sum is a row of its own there.
3. What is left is for the methods that know nothing of blocks (:mod:`coldq.solver.cascade`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array
from coldq.solver.answer import TOLERANCE, Step, new_tuple
from coldq.solver.api import blocks_step
from coldq.solver.constants import LARGE_DATA_ENTRIES
from coldq.solver.interior_point import guess_multipliers
from coldq.solver.problem import (
    HALF,
    ONE_BOX,
    AffineProblem,
    DoNotFit,
    is_sparse,
    members,
    zeros_of,
)
from coldq.solver.threads import fill_batch

MAX_NEWTON_STEPS = np.array(200.0)  # of Newton's method
MAX_WARM_STEPS = np.array(24.0)  # from a guess, or where others may follow
# Rows and coordinates: up to as many, methods that know nothing of blocks are soon done.
SMALL_SUM_EXPONENT = 30
MAX_NEAR_RESIDUAL = 1e-5  # the residual of an answer on the right piece
NO_ENTRIES = np.zeros(0)
NO_ROWS = (NO_ENTRIES,) * 7


class Blocks(NamedTuple):
    """Blocks of coordinates, one after another, and what their sums are.

    `start` has each block's first coordinate, `total` its sum; `kind` is minus infinity where the
    sum is the total, 0 where it is at most that, infinity where it may be anything.
    """

    start: Array
    total: Array
    kind: Array

    cores = (1, 1, 1)

    @property
    def summed(self) -> np.ndarray:
        """Which blocks have a sum."""
        return np.flatnonzero(self.kind < np.inf)

    def sums(self, x: Array) -> Array:
        """The sums of all blocks, along the last axis; infinite where they overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.add.reduceat(x, self.start.astype(np.int64), axis=-1)

    def sizes(self, p: int) -> np.ndarray:
        """How many coordinates each block has."""
        return np.diff(np.append(self.start, p)).astype(np.int64)


class BlockProblem(NamedTuple):
    """Rows ``A x - b`` on blocks, in the order of the core's arguments; A dense or sparse, the
    latter as whole numbers seen as floats."""

    center: Array
    gradient: Array
    alpha: Array
    multiplier_lower: Array
    multiplier_upper: Array
    guess: Array  # multipliers to start from
    data: Array
    indices: Array
    indptr: Array
    b: Array
    lower: Array
    upper: Array
    start: Array
    total: Array
    kind: Array

    cores = (1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)

    @property
    def sparse(self) -> bool:
        return self.indptr.size > 0

    def rows(self) -> Any:
        """A of one instance."""
        n, p = self.b.size, self.lower.size
        if not self.sparse:
            return self.data.reshape(n, p)
        from scipy import sparse

        indices, indptr = self.indices.view(np.int64), self.indptr.view(np.int64)
        return sparse.csr_array((self.data, indices, indptr), (n, p))


def blocks_of(p: int, A: Array, b: Array, low: Array) -> Blocks | None:
    """Rows of a domain as blocks, if each is the sum of coordinates that follow one another and
    that no other row has; None if they are not."""
    if A.size == 0 and 0 in A.shape[:-2]:
        return None
    alone = A[(0,) * (A.ndim - 2)]
    if not ((alone == 0.0) | (alone == 1.0)).all():
        return None
    counts = alone.sum(axis=1).astype(np.int64)
    firsts = alone.argmax(axis=1)
    order = np.argsort(firsts, kind="stable")
    found, reached = list[tuple[float, float, int]](), 0  # first coordinate, kind and row
    for row in order.tolist():
        first, count = int(firsts[row]), int(counts[row])
        if count == 0 or first < reached or not alone[row, first : first + count].all():
            return None
        if first > reached:
            found.append((reached, np.inf, -1))
        found.append((first, float(low[row]), row))
        reached = first + count
    if reached < p:
        found.append((reached, np.inf, -1))
    if A.ndim > 2 and not (alone == A).all():
        return None
    start, kind, row = (np.array(part) for part in zip(*found, strict=True))
    total = np.where(row >= 0, b[..., row], 0.0) if b.shape[-1] else np.zeros(row.size)
    return Blocks(start.astype(float), total, kind.astype(float))


def entries_of(A: Any) -> tuple[Array, Array, Array]:
    """The entries of rows as the core takes them."""
    if is_sparse(A):
        indices, indptr = (part.astype(np.int64, copy=False) for part in (A.indices, A.indptr))
        return A.data, indices.view(np.float64), indptr.view(np.float64)
    if A.ndim == 2:
        return A.ravel(), NO_ENTRIES, NO_ENTRIES
    return A.reshape(*A.shape[:-2], A.shape[-2] * A.shape[-1]), NO_ENTRIES, NO_ENTRIES


def steps_for(n: int, p: int, sparse: bool) -> Array:
    """How many Newton steps may be taken from nothing: few where an interior-point method,
    which knows no pieces, costs no more."""
    return (
        MAX_NEWTON_STEPS
        if sparse or n + p <= SMALL_SUM_EXPONENT or n * p > LARGE_DATA_ENTRIES
        else MAX_WARM_STEPS
    )


def run_blocks(problem: BlockProblem, steps: Array | None = None) -> Step:
    """The native method alone: an answer whose residual may be large, infinite or NaN."""
    center, b = problem[0], problem[9]
    n, p = b.shape[-1], center.shape[-1]
    steps = steps_for(n, p, len(problem[8]) > 0) if steps is None else steps
    try:
        if center.ndim == 1:  # a single decision costs mostly Python: there is little of it here
            answer = new_tuple(Step, blocks_step(*problem, steps))
            if answer[0].shape != center.shape:
                raise DoNotFit
            return answer
        batch, work = center.shape[:-1], (n + 8) * p + 2 * n * n
        answer = Step(np.empty((*batch, p)), np.empty((*batch, n)), np.empty(batch))
        fill_batch(blocks_step, (*problem, steps), (*problem.cores, 0), answer, batch, work)
        return answer
    except TypeError:
        raise DoNotFit from None


def project_on_blocks(y: Array, blocks: Blocks, lower: Array, upper: Array) -> Step:
    """The nearest points: a step without a gradient and without rows."""
    p = y.shape[-1]
    given = (y, zeros_of(p), HALF, *NO_ROWS, lower, upper, *blocks)
    return run_blocks(BlockProblem._make(given), MAX_NEWTON_STEPS)


def improve_blocks(problem: BlockProblem, answer: Step) -> Step:
    """Newton's answers, and others where theirs have a residual above the tolerance.

    A single step within the tolerance stays one whose residual is a float; what is left of those
    that are not goes on as arrays.
    """
    if isinstance(answer[2], float):  # its own and only member, and mostly NumPy is not asked again
        answer = from_guess(problem, answer) if answer[2] > TOLERANCE else answer
        if answer[2] <= TOLERANCE:
            return answer
    x, multipliers, residual = (np.asarray(part) for part in answer)
    if residual.max(initial=0.0) <= TOLERANCE:
        return answer
    for where, one in members(problem, residual > TOLERANCE) if residual.ndim else ():
        found = Step(x[where], multipliers[where], residual[where])
        x[where], multipliers[where], residual[where] = from_guess(one, found)
    return Step(x, multipliers, residual)


def from_guess(one: BlockProblem, best: Step) -> Step:
    """Newton's best answer of one instance: from a guess, and if that is no good in more steps.

    Where enforced rows conflict the dual rises for ever, and more steps would be no good either.
    """
    n, p, enforced = one.b.size, one.center.size, np.isinf(one.multiplier_upper).any()
    start = guessed(one)
    if start is not None:
        again = run_blocks(one._replace(guess=start), MAX_WARM_STEPS)
        best = again if again.residual < best.residual else best
        near = again.residual <= MAX_NEAR_RESIDUAL  # what is left then is rounding
        if near or enforced or np.isinf(one.multiplier_lower).any():
            return best
    if steps_for(n, p, one.sparse) is MAX_NEWTON_STEPS:
        return best
    again = run_blocks(one, MAX_NEWTON_STEPS)
    return again if again.residual < best.residual else best


def solve_in_one_block(one: AffineProblem) -> Step:
    """One instance with dense or sparse rows on a box: one block, whose sum may be anything."""
    center, gradient, alpha, low, high, _, A, b, lower, upper = one
    given = center, gradient, alpha, low, high, zeros_of(b.size), *entries_of(A), b
    problem = new_tuple(BlockProblem, (*given, lower, upper, *ONE_BOX))
    with np.errstate(all="ignore"):
        return improve_blocks(problem, run_blocks(problem))


def prices_of_sums(one: BlockProblem, x: Array, multipliers: Array) -> Array:
    """The multipliers of the sums that x and those of the rows leave room for."""
    double, blocks = 2.0 * float(one.alpha), Blocks(one.start, one.total, one.kind)
    z = one.center - (one.gradient + multipliers @ one.rows()) / double
    first = blocks.start.astype(np.int64)
    least = np.maximum.reduceat(np.where(x > one.lower, -np.inf, z - one.lower), first)
    most = np.minimum.reduceat(np.where(x < one.upper, np.inf, z - one.upper), first)
    free = (one.lower < x) & (x < one.upper)
    count = np.add.reduceat(free.astype(float), first)
    inner = np.add.reduceat(np.where(free, z - x, 0.0), first) / np.maximum(count, 1.0)
    ends = np.where(np.isinf(least), most, np.where(np.isinf(most), least, 0.5 * (least + most)))
    theta = np.where(count > 0.0, inner, np.where(np.isfinite(ends), ends, 0.0))
    return double * np.maximum(theta, one.kind)[blocks.summed]


def guessed(one: BlockProblem) -> Array | None:
    """Multipliers to start from, by an interior-point method."""
    n, blocks = one.b.size, Blocks(one.start, one.total, one.kind)
    if n + one.lower.size <= SMALL_SUM_EXPONENT:
        return None
    given = one.center, one.gradient, one.alpha, one.multiplier_lower, one.multiplier_upper
    return guess_multipliers(*given, one.rows(), one.b, one.lower, one.upper, blocks)
