"""Affine rows on a product of simplices, of budgets and of boxes, from the first attempt on.

1. The compiled kernel, for a single step or a batch: :mod:`coldq.solver.kernels.simplices`.
2. Where rows that cannot all be met leave it very many pieces to go through, an interior-point
   method, which knows none, tells which multipliers are at a bound; the kernel goes on from there.
   A block's sum is a row of its own there, but one that is solved for without a system.
3. What is left is for the methods that know nothing of blocks (:mod:`coldq.solver.cascade`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs  # type: ignore[attr-defined]

from coldq._values import Array
from coldq.solver.answer import TOLERANCE, Step
from coldq.solver.constants import TINY
from coldq.solver.kernels.simplices import scratch_size, simplices_step
from coldq.solver.problem import Divided, members
from coldq.solver.sparse import SparseRows
from coldq.solver.threads import run_batch

STEPS = np.array(40.0)  # Newton steps of the kernel
MUCH = 20_000_000  # numbers in a table of rows by blocks: with more there is no way from inside
NONE = np.zeros(0)


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
        """The sums of all blocks, along the last axis."""
        return np.add.reduceat(x, self.start.astype(np.int64), axis=-1)

    def sizes(self, p: int) -> np.ndarray:
        """How many coordinates each block has."""
        return np.diff(np.append(self.start, p)).astype(np.int64)


class BlockProblem(NamedTuple):
    """Rows ``A x - b`` on blocks, in the order of the kernel's arguments; A dense or sparse, the
    latter as whole numbers seen as floats."""

    center: Array
    gradient: Array
    alpha: Array
    floor: Array
    weights: Array
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
        return SparseRows((self.data, self.indices.view(np.int64), self.indptr.view(np.int64)), p)


def entries_of(A: Any) -> tuple[Array, Array, Array]:
    """The entries of rows as the kernel takes them."""
    if isinstance(A, SparseRows):
        data, indices, indptr = A.parts
        return data, indices.view(np.float64), indptr.view(np.float64)
    return A.reshape(*A.shape[:-2], A.shape[-2] * A.shape[-1]), NONE, NONE


def run_blocks(problem: BlockProblem) -> Step:
    """The kernel alone: an answer whose residual may be large, infinite or NaN."""
    p, n, k = problem.lower.shape[-1], problem.b.shape[-1], problem.start.size
    size = scratch_size(n, p, k, problem.data.shape[-1], problem.sparse)
    cores, shapes = (*problem.cores, 0), ((p,), (n,), ())
    return Step(*run_batch(simplices_step(), (*problem, STEPS), cores, shapes, size))


def solve_blocks(problem: BlockProblem) -> Step:
    """The answers of a batch; where there is none yet, the residual is above the tolerance."""
    answer = run_blocks(problem)
    if not answer.residual.size or answer.residual.max() <= TOLERANCE:
        return answer
    x, multipliers, residual = answer
    for where, one in members(problem, residual > TOLERANCE):
        for guess in guesses(one):
            again = run_blocks(one._replace(guess=guess))
            if again.residual <= TOLERANCE:
                x[where], multipliers[where], residual[where] = again
                break
    return Step(x, multipliers, residual)


def guesses(one: BlockProblem) -> Iterator[Array]:
    """Multipliers to start from, ever nearer, from an interior-point method."""
    from coldq.solver.interior_point import from_inside

    A, n, blocks = one.rows(), one.b.size, Blocks(one.start, one.total, one.kind)
    both = RowsAndSums(A, blocks, one.lower.size)
    half, summed = 0.5 / float(one.alpha), blocks.summed
    if n * one.start.size > MUCH:
        return
    y = one.center - one.gradient * half
    lo = np.concatenate([one.floor * half, one.kind[summed]])
    hi = np.concatenate([one.weights * half, np.full(summed.size, np.inf)])
    b = np.concatenate([one.b, one.total[summed]])
    problem = Divided(y, both, b, lo, hi, one.lower, one.upper)
    norms = both.norms()
    if not (np.isfinite(y).all() and norms.all()):
        return
    with np.errstate(all="ignore"):
        for mu in from_inside(problem, norms):
            yield np.ascontiguousarray(mu[:n] / half)


class RowsAndSums:
    """Rows, and then the sums of blocks, with what an array of rows has: ``A @ x``, ``mu @ A``."""

    __array_ufunc__ = None  # so that ``mu @ A`` comes here

    def __init__(self, A: Any, blocks: Blocks, p: int) -> None:
        self.A, self.n, self.p = A, A.shape[0], p
        self.start, self.summed = blocks.start.astype(np.int64), blocks.summed
        self.block = np.repeat(np.arange(self.start.size), blocks.sizes(p))

    def __matmul__(self, x: Array) -> Array:
        sums = np.add.reduceat(x, self.start)
        return np.concatenate([self.A @ x, sums[self.summed]])

    def __rmatmul__(self, mu: Array) -> Array:
        return mu[: self.n] @ self.A + self._spread(mu[self.n :])

    def _spread(self, each: Array) -> Array:
        """A number of each sum, at all of its coordinates."""
        whole = np.zeros(self.start.size)
        whole[self.summed] = each
        return whole[self.block]

    def norms(self) -> Array:
        """The squared lengths of all rows."""
        if isinstance(self.A, SparseRows):
            own = self.A.square_lengths(np.ones(self.p))
        else:
            own = np.einsum("ni,ni->n", self.A, self.A)
        return np.concatenate([own, np.bincount(self.block)[self.summed].astype(float)])

    def factored(self, weight: Array, stiff: Array) -> Callable[[Array], Array]:
        """How to solve with ``stiff + A' weight A``, the sums among the rows: by Woodbury's formula
        for each block, and then for the rows by a factor of N by N."""
        A, n, flow = self.A, self.n, 1.0 / stiff
        through = np.add.reduceat(flow, self.start)
        share = np.zeros(self.start.size)
        share[self.summed] = 1.0 / (1.0 / (weight[n:] + TINY) + through[self.summed])

        def inner(right: Array) -> Array:
            """That without the rows."""
            pulled = flow * right
            sums = share * np.add.reduceat(pulled, self.start)
            return pulled - flow * sums[self.block]

        if isinstance(A, SparseRows):
            data, indices, indptr = A.parts
            M = A.T.squares(np.arange(n), n, flow)
            line = np.repeat(np.arange(n), np.diff(indptr))
            at, size = line * self.start.size + self.block[indices], n * self.start.size
            sums = np.bincount(at, data * flow[indices], size).reshape(n, -1)
        else:
            scaled = A * flow
            M, sums = scaled @ A.T, np.add.reduceat(scaled, self.start, axis=1)
        M = M - (sums * share) @ sums.T
        M.ravel()[:: n + 1] += 1.0 / (weight[:n] + TINY)
        factor, _ = dpotrf(M.T, lower=1)

        def solve(right: Array) -> Array:
            first = inner(right)
            if n == 0:
                return first
            return first - inner(dpotrs(factor, A @ first, lower=1)[0] @ A)

        return solve
