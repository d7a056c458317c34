"""Quadratic rows without matrices.

One of them on a box, without factors, is a root in its multiplier. Several, or beside affine rows,
are a dual Newton method that needs nothing of p by p numbers. What that misses is solved with
matrices, where they are small.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array
from coldq.solver.answer import CURVED_TOLERANCE
from coldq.solver.api import thin_step, thin_values
from coldq.solver.curved import (
    MAX_START_RESIDUAL,
    POLISH_RESIDUAL,
    Values,
    finite,
    is_finite,
    is_infeasible,
    residual_of,
    solve_curved,
)  # fmt: skip
from coldq.solver.problem import QuadraticProblem, Thin, append, members
from coldq.solver.threads import run_batch

PROOF_MARGIN = (
    1e-12  # of the size of its terms: by how much a row's least value is surely above zero
)
MAX_MATRIX_COORDINATES = 200  # coordinates up to which matrices are made of rows that have none


class ThinProblem(NamedTuple):
    """Rows ``sum_i d_i (x_i - middle_i)^2 / 2 + <q, x> - b`` on a box, and ``(f'x)^2 / 2`` for
    every row f of F, added to the row that `owner` names."""

    center: Array
    gradient: Array
    alpha: Array
    multiplier_lower: Array
    multiplier_upper: Array
    d: Array
    middle: Array
    q: Array
    b: Array
    F: Array
    owner: Array
    lower: Array
    upper: Array

    cores = (1, 1, 0, 1, 1, 2, 2, 2, 1, 2, 1, 1, 1)

    def with_matrices(self, origin: Array) -> tuple[QuadraticProblem, np.ndarray]:
        """One instance, with a matrix for every curved row, as functions of ``x - origin``; these
        rows come first, and the order is given.

        With an answer that is near for the origin, the terms that rows are expanded into are small.
        """
        P = self.d[:, :, None] * np.eye(self.center.size)
        for f, k in zip(self.F, self.owner.astype(int), strict=True):
            P[k] += f[:, None] * f
        g, J, *_ = self.values(origin)
        curved = P.any(axis=(1, 2))
        order = np.argsort(~curved, kind="stable")
        problem = QuadraticProblem(
            self.center - origin, self.gradient, self.alpha, self.multiplier_lower[order],
            self.multiplier_upper[order], P[curved], J[order], -g[order], self.lower - origin,
            self.upper - origin,
        )  # fmt: skip
        return problem, order

    def decided(self) -> ThinProblem:
        """One instance, with the floors of curved rows that no point of the box meets at their
        weights.

        Next to the center of a row without room its value is rounding, whatever its multiplier.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            far = np.where(self.q > 0.0, self.lower, self.upper)
            turn = np.where(self.d > 0.0, self.middle - self.q / self.d, far)
            at = np.clip(turn, self.lower, self.upper)
            bent = np.where(self.d > 0.0, 0.5 * self.d * np.square(at - self.middle), 0.0)
            line = np.where(self.q != 0.0, self.q * at, 0.0)
        least = (bent + line).sum(axis=1) - self.b
        size = (bent + np.abs(line)).sum(axis=1) + np.abs(self.b)
        unmet = (
            self.d.any(axis=1) & (least >= PROOF_MARGIN * size) & np.isfinite(self.multiplier_upper)
        )
        return self._replace(
            multiplier_lower=np.where(unmet, self.multiplier_upper, self.multiplier_lower)
        )

    def values(self, x: Array) -> Values:
        """g at x, its jacobian, the sizes of the terms of g, and of those of the jacobian that x
        moves; of one instance."""
        return thin_values(*self, x)


def joined(parts: list[Thin]) -> tuple[Array, Array, Array, Array, Array, Array]:
    """d, middle, q, b, F and owner of all rows, in order."""
    first, *others = parts
    d, middle, q, b, F = first.d, first.center, first.q, first.limit, first.factors()
    owner = [np.repeat(np.arange(first.n_constraints), first.F.shape[-1])]
    n = first.n_constraints
    for part in others:
        d, middle = append(d, part.d, 2), append(middle, part.center, 2)
        q, b = append(q, part.q, 2), append(b, part.limit, 1)
        F = append(F, part.factors(), 2)
        owner.append(n + np.repeat(np.arange(part.n_constraints), part.F.shape[-1]))
        n += part.n_constraints
    return d, middle, q, b, np.ascontiguousarray(F), np.concatenate(owner).astype(float)


def run_thin(problem: ThinProblem) -> tuple[Array, Array, Array]:
    """Newton's method alone: answers whose residual may be large, infinite or NaN."""
    n, p = problem.d.shape[-2:]
    work = (n + problem.F.shape[-2]) * p
    return run_batch(  # type: ignore[return-value]
        thin_step, (*problem, np.zeros(n)), (*problem.cores, 1), ((p,), (n,), ()), work
    )


def solve_thin_rows(problem: ThinProblem) -> tuple[Array, Array, Array, np.ndarray]:
    """The answers of a batch, their residuals, and where enforced rows are proved infeasible."""
    x, found, residual = run_thin(problem)
    infeasible = np.zeros(residual.shape, bool)
    for where, one in members(problem, ~(residual <= POLISH_RESIDUAL)):
        *best, infeasible[where] = better(one, x[where], found[where], residual[where])
        x[where], found[where], residual[where] = best
    return x, found, residual, infeasible


def better(one: ThinProblem, x: Array, lam: Array, worst: Any) -> tuple[Array, Array, float, bool]:
    """The best answer of one instance, and whether its enforced rows are proved infeasible.

    Where p is small, with matrices: as functions of the way from an answer that is near, as they
    are, and from the best so far.
    """
    if np.isnan(worst) and not is_finite(one):
        return x, lam, worst, False
    one = one.decided()
    x, lam = finite(one, x, np.maximum(lam, one.multiplier_lower))
    known = one.values(x)
    best = x, lam, residual_of(one, x, lam, known)
    if best[2] <= POLISH_RESIDUAL or is_infeasible(one, x, lam, known, one.d):
        return *best, not best[2] <= POLISH_RESIDUAL
    for attempt in range(3 if x.size <= MAX_MATRIX_COORDINATES else 0):
        if attempt != 1 and not best[2] <= MAX_START_RESIDUAL:
            continue
        origin = (x, 0.0 * x, best[0])[attempt]
        dense, order = one.with_matrices(origin)
        moved, of_rows, left, infeasible = solve_curved(dense)
        there, own = np.clip(origin + moved, one.lower, one.upper), np.empty_like(of_rows)
        own[order] = of_rows
        if np.isfinite(left) and np.isfinite(there).all():
            known = one.values(there)
            left = residual_of(one, there, own, known, bool(left <= CURVED_TOLERANCE))
            best = (there, own, left) if not best[2] <= left else best
            if infeasible and is_infeasible(one, there, own, known, one.d):
                return *best, True
        if best[2] <= POLISH_RESIDUAL:
            break
    return *best, False
