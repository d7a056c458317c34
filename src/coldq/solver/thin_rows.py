"""Quadratic rows without matrices.

One of them on a box, without factors, is a root in its multiplier. Several, or beside affine rows,
are a dual Newton method that needs nothing of p by p numbers. What that misses is solved with
matrices, where they are small.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coldq._values import Array
from coldq.solver.answer import CURVED_TOLERANCE
from coldq.solver.cascade import HUGE
from coldq.solver.constants import TERMS, X_FLOOR
from coldq.solver.curved import NEAR, SHARP, known_size, residual_of, solve_curved, tangents_clash
from coldq.solver.kernels.thin_rows import thin_scratch_size, thin_step
from coldq.solver.problem import QuadraticProblem, Thin, append, members
from coldq.solver.threads import run_batch

CERTAIN = 1e-12  # of the size of its terms: by how much a row's least value is surely above zero
SMALL = 200  # coordinates up to which matrices are made of rows that have none


class ThinProblem(NamedTuple):
    """Rows ``sum_i d_i (x_i - middle_i)^2 / 2 + <q, x> - b`` on a box, and ``(f'x)^2 / 2`` for
    every row f of F, added to the row that `owner` names."""

    center: Array
    gradient: Array
    alpha: Array
    floor: Array
    weights: Array
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
            self.center - origin, self.gradient, self.alpha, self.floor[order],
            self.weights[order], P[curved], J[order], -g[order], self.lower - origin,
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
        unmet = self.d.any(axis=1) & (least >= CERTAIN * size) & np.isfinite(self.weights)
        return self._replace(floor=np.where(unmet, self.weights, self.floor))

    def values(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """g at x, its jacobian, the sizes of the terms of g, and of those of the jacobian that x
        moves; of one instance, as the kernel has them."""
        away, owner = x - self.middle, self.owner.astype(int)
        own, sums = known_size(self, x), self.F @ x
        unit = np.where(self.d != 0.0, np.maximum(np.abs(away), own - np.abs(x)), 0.0)
        unit = np.maximum(unit, np.where(self.q != 0.0, own, 0.0)).max(axis=1, initial=0.0)
        np.maximum.at(unit, owner, np.where(self.F != 0.0, own, 0.0).max(axis=1, initial=0.0))
        least = X_FLOOR * unit[:, None]
        at, most = np.maximum(np.abs(away), least), self.d * (np.abs(x) + np.abs(self.middle))
        g = (0.5 * self.d * away * away + self.q * x).sum(axis=1) - self.b
        size = (0.5 * self.d * at * at + np.abs(self.q) * np.maximum(np.abs(x), least)).sum(axis=1)
        rounding = np.where(self.middle != 0.0, TERMS * most * np.abs(away), 0.0)
        size += rounding.sum(axis=1) + np.abs(self.b)
        J = self.d * away + self.q
        for f, k, total in zip(self.F, owner, sums, strict=True):
            terms = np.abs(f) @ np.maximum(np.abs(x), least[k])
            g[k] += 0.5 * total**2
            size[k] += 0.5 * terms**2
            J[k] += f * total
            most[k] += np.abs(f) * terms
        return g, J, size, most


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
    """The kernel alone: answers whose residual may be large, infinite or NaN."""
    n, p = problem.d.shape[-2:]
    size = thin_scratch_size(n, p, problem.F.shape[-2])
    shapes = ((p,), (n,), ())
    return run_batch(thin_step(), problem, problem.cores, shapes, size)  # type: ignore[return-value]


def solve_thin_rows(problem: ThinProblem) -> tuple[Array, Array, Array, np.ndarray]:
    """The answers of a batch, their residuals, and where hard rows have no common point."""
    x, found, residual = run_thin(problem)
    clash = np.zeros(residual.shape, bool)
    doubtful = ~(residual <= SHARP) | (np.abs(found).max(axis=-1, initial=0.0) > HUGE)
    for where, one in members(problem, doubtful):
        *best, clash[where] = better(one, x[where], found[where], float(residual[where]))
        x[where], found[where], residual[where] = best
    return x, found, residual, clash


def better(
    one: ThinProblem, x: Array, lam: Array, worst: float
) -> tuple[Array, Array, float, bool]:
    """The best answer of one instance, and whether its hard rows have no common point.

    Where p is small, with matrices: as functions of the way from an answer that is near, as they
    are, from the best so far, and from the center of a row. A clash that not all see is none.
    """
    if not np.isfinite(one.center - one.gradient / one.alpha).all():
        return x, lam, np.nan, False
    clip, one = np.clip(one.center, one.lower, one.upper), one.decided()
    lam = np.maximum(lam, one.floor)
    if not (np.isfinite(x).all() and np.isfinite(lam).all()):
        # Multipliers that ran away until x was lost may still prove that hard rows clash.
        x, worst = clip, np.inf
        lam = lam if np.isfinite(lam).all() else np.clip(0.0, one.floor, one.weights)
    g, J, size, most = one.values(x)
    if np.isfinite(worst):
        worst = residual_of(one, x, lam, known=(g, J, size, most))
    if worst <= SHARP or tangents_clash(one, x, lam, g, J, size, one.d):
        return x, lam, worst, not worst <= SHARP
    best: tuple[Array, Array, float] = x, lam, worst
    clashes = []
    for attempt in range(4 if x.size <= SMALL else 0):
        if attempt in (0, 2) and not best[2] <= NEAR:
            continue
        if attempt == 3 and not one.middle.any():
            break
        middle = one.middle[np.argmax(np.abs(one.d * one.middle).max(axis=1, initial=0.0))]
        origin = (x, 0.0 * x, best[0], middle)[attempt]
        dense, order = one.with_matrices(origin)
        moved, of_rows, left, clashing = solve_curved(dense)
        clashes.append(bool(clashing))
        there, own = np.clip(origin + moved, one.lower, one.upper), np.empty_like(of_rows)
        own[order] = of_rows
        if np.isfinite(left) and np.isfinite(there).all():
            known, rounded = one.values(there), bool(left <= CURVED_TOLERANCE)
            left = residual_of(one, there, own, rounded=rounded, known=known)
            best = (there, own, left) if not best[2] <= left else best
            if clashing and tangents_clash(one, there, own, *known[:3], one.d):
                return *best, True
        if best[2] <= SHARP:
            break
    return *best, bool(clashes) and all(clashes)
