"""Solvers that a user could call for the per-slot problem, each set up as well as it can be.

Affine rows become a quadratic program in (x, s) with one slack a row:

    min  alpha |x|^2 + <gradient - 2 alpha center, x> + <queue, s>
    s.t. A x - s <= b,  s >= 0,  lower <= x <= upper

A peer is built once for a family; what does not change is assembled there. A call fills in the
numbers of one slot, solves, and returns the decision and whether the solver calls it solved.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import daqp
import numpy as np
import piqp
import quadprog
from scipy import sparse
from scipy.optimize import minimize

import coldq
from benchmarks.families import Array, Slot
from coldq.slot.step import solve

Answer = tuple[Array, bool]

# Modules whose names are made at import time, out of a type checker's sight.
clarabel: Any = import_module("clarabel")
osqp: Any = import_module("osqp")


class OurStep:
    """The step as a learner makes it."""

    name = "coldq, as a learner steps"

    def __call__(self, slot: Slot) -> Answer:
        return solve(*slot).x, True


class OurPublicStep:
    """The same with all arguments checked."""

    name = "coldq.penalised_step"

    def __call__(self, slot: Slot) -> Answer:
        return coldq.penalised_step(*slot).x, True


def _diagonal(matrix: Array, count: int) -> Array:
    """A view of the first `count` diagonal entries."""
    return np.einsum("ii->i", matrix)[:count]


class DenseProgram:
    """The quadratic program in dense arrays."""

    def __init__(self, slot: Slot) -> None:
        self.N, self.p = N, p = slot.constraint.A.shape
        self.P = np.zeros((p + N, p + N), order="F")
        self.curvature = _diagonal(self.P, p)
        self.q = np.zeros(p + N)
        self.rows = np.zeros((N, p + N), order="F")
        self.rows[:, p:] = -np.eye(N)
        self.lower = np.concatenate([slot.domain.lower, np.zeros(N)])
        self.upper = np.concatenate([slot.domain.upper, np.full(N, np.inf)])

    def fill(self, slot: Slot) -> None:
        center, gradient, alpha, queue, constraint, _ = slot
        self.curvature[:] = 2.0 * alpha
        self.q[: self.p] = gradient - 2.0 * alpha * center
        self.q[self.p :] = queue
        self.rows[:, : self.p] = constraint.A


class DAQPRefilled(DenseProgram):
    """Dual active sets, with proximal steps because the slacks have no curvature.

    A fresh solve: the update interface saves a microsecond and loses several digits.
    """

    name = "DAQP, eps_prox, refilled in place"

    def __init__(self, slot: Slot) -> None:
        super().__init__(slot)
        self.rows = np.ascontiguousarray(self.rows)
        self.at_least = np.concatenate([self.lower, np.full(self.N, -np.inf)])
        self.at_most = np.concatenate([self.upper, np.zeros(self.N)])

    def __call__(self, slot: Slot) -> Answer:
        self.fill(slot)
        self.at_most[-self.N :] = slot.constraint.b
        x, _, flag, _ = daqp.solve(
            self.P, self.q, self.rows, self.at_most, self.at_least, eps_prox=1e-6
        )
        return x[: self.p], flag == 1


class DAQP:
    """The same with its program assembled from what the slot revealed, as most people would."""

    name = "DAQP, eps_prox"

    def __init__(self, slot: Slot) -> None:
        pass

    def __call__(self, slot: Slot) -> Answer:
        center, gradient, alpha, queue, constraint, domain = slot
        N, p = constraint.A.shape
        P = np.diag(np.concatenate([np.full(p, 2.0 * alpha), np.zeros(N)]))
        q = np.concatenate([gradient - 2.0 * alpha * center, queue])
        rows = np.hstack([constraint.A, -np.eye(N)])
        at_least = np.concatenate([domain.lower, np.zeros(N), np.full(N, -np.inf)])
        at_most = np.concatenate([domain.upper, np.full(N, np.inf), constraint.b])
        x, _, flag, _ = daqp.solve(P, q, rows, at_most, at_least, eps_prox=1e-6)
        return x[:p], flag == 1


class PIQP(DenseProgram):
    """A proximal interior-point method, set up once and updated."""

    name = "PIQP dense, update"

    def __init__(self, slot: Slot) -> None:
        super().__init__(slot)
        self.fill(slot)
        self.solver = piqp.DenseSolver()
        self.solver.settings.verbose = False
        self.solver.setup(
            self.P, self.q, None, None, self.rows, None, slot.constraint.b, self.lower, self.upper
        )

    def __call__(self, slot: Slot) -> Answer:
        self.fill(slot)
        self.solver.update(P=self.P, c=self.q, G=self.rows, h_u=slot.constraint.b)
        status = self.solver.solve()
        return np.array(self.solver.result.x[: self.p]), status == piqp.PIQP_SOLVED


class Quadprog:
    """Goldfarb and Idnani's dual method; it needs some curvature in the slacks."""

    name = "quadprog, slacks + 1e-8"

    def __init__(self, slot: Slot) -> None:
        self.N, self.p = N, p = slot.constraint.A.shape
        self.P = 1e-8 * np.eye(p + N)
        self.curvature = _diagonal(self.P, p)
        self.q = np.zeros(p + N)
        # The columns of C are the rows of C'z >= c: the constraint, the slacks, the box.
        self.C = np.zeros((p + N, 2 * N + 2 * p))
        self.C[p:, : 2 * N] = np.tile(np.eye(N), 2)
        self.C[:p, 2 * N :] = np.hstack([np.eye(p), -np.eye(p)])
        self.c = np.concatenate([np.zeros(2 * N), slot.domain.lower, -slot.domain.upper])

    def __call__(self, slot: Slot) -> Answer:
        center, gradient, alpha, queue, constraint, _ = slot
        self.curvature[:] = 2.0 * alpha
        self.q[: self.p] = 2.0 * alpha * center - gradient
        self.q[self.p :] = -queue
        self.C[: self.p, : self.N] = -constraint.A.T
        self.c[: self.N] = -constraint.b
        return quadprog.solve_qp(self.P, self.q, self.C, self.c)[0][: self.p], True


class SparseProgram:
    """The quadratic program in compressed columns, whose numbers alone change."""

    def __init__(self, slot: Slot, box_rows: Array) -> None:
        self.N, self.p = N, p = slot.constraint.A.shape
        self.P = sparse.csc_matrix(np.diag(np.concatenate([np.ones(p), np.zeros(N)])))
        self.q = np.zeros(p + N)
        rows = np.vstack([np.hstack([np.ones((N, p)), -np.eye(N)]), box_rows])
        self.rows = sparse.csc_matrix(rows)
        places = self.rows.copy()
        places.data = np.arange(1.0, places.nnz + 1.0)
        self.places = places.toarray()[:N, :p].astype(int) - 1

    def fill(self, slot: Slot) -> None:
        center, gradient, alpha, queue, constraint, _ = slot
        self.P.data[:] = 2.0 * alpha
        self.q[: self.p] = gradient - 2.0 * alpha * center
        self.q[self.p :] = queue
        self.rows.data[self.places] = constraint.A


class OSQP(SparseProgram):
    """Operator splitting, set up once and updated, warm-started as it is by default."""

    def __init__(self, slot: Slot, tolerance: float) -> None:
        N, p = slot.constraint.A.shape
        super().__init__(slot, np.eye(p + N))
        self.name = f"OSQP, update, eps {tolerance:.0e}"
        domain = slot.domain
        self.at_least = np.concatenate([np.full(N, -np.inf), domain.lower, np.zeros(N)])
        self.at_most = np.concatenate([np.zeros(N), domain.upper, np.full(N, np.inf)])
        self.solver = osqp.OSQP()
        self.solver.setup(
            self.P, self.q, self.rows, self.at_least, self.at_most,
            eps_abs=tolerance, eps_rel=tolerance, verbose=False,
        )  # fmt: skip

    def __call__(self, slot: Slot) -> Answer:
        self.fill(slot)
        self.at_most[: self.N] = slot.constraint.b
        self.solver.update(q=self.q, Px=self.P.data, Ax=self.rows.data, u=self.at_most)
        result = self.solver.solve(raise_error=False)
        return result.x[: self.p], result.info.status_val == osqp.SolverStatus.OSQP_SOLVED


class Clarabel(SparseProgram):
    """An interior-point method, set up once and updated where its version can be."""

    def __init__(self, slot: Slot) -> None:
        N, p = slot.constraint.A.shape
        super().__init__(slot, np.vstack([-np.eye(p + N), np.eye(p, p + N)]))
        domain = slot.domain
        self.at_most = np.concatenate([np.zeros(N), -domain.lower, np.zeros(N), domain.upper])
        self.cones = [clarabel.NonnegativeConeT(self.at_most.size)]
        self.settings = clarabel.DefaultSettings()
        self.settings.verbose = False
        self.settings.presolve_enable = False  # it forbids updates
        self.solver = self._fresh()
        self.updates = hasattr(self.solver, "update")
        self.name = "Clarabel, update" if self.updates else "Clarabel, fresh (no update here)"

    def _fresh(self) -> Any:
        return clarabel.DefaultSolver(
            self.P, self.q, self.rows, self.at_most, self.cones, self.settings
        )

    def __call__(self, slot: Slot) -> Answer:
        self.fill(slot)
        self.at_most[: self.N] = slot.constraint.b
        if self.updates:
            self.solver.update(P=self.P.data, q=self.q, A=self.rows.data, b=self.at_most)
        else:
            self.solver = self._fresh()
        result = self.solver.solve()
        return np.array(result.x[: self.p]), result.status == clarabel.SolverStatus.Solved


class CapacityDual:
    """L-BFGS-B on the dual of one capacity row, whose x has a closed form."""

    name = "SciPy L-BFGS-B on the dual"

    def __call__(self, slot: Slot) -> Answer:
        center, gradient, alpha, queue, constraint, domain = slot
        scale, rate, demand = constraint.scale, constraint.rate, constraint.demand
        y, weight = center - gradient / (2.0 * alpha), queue[0]
        base, push = 1.0 + rate * y, 4.0 * rate * scale * rate / (2.0 * alpha)

        def decision(multiplier: float) -> Array:
            # The larger root of (x - y) (1 + rate x) = multiplier scale rate / (2 alpha).
            root = np.sqrt(base * base + push * multiplier)
            free = (rate * y - 1.0 + root) / (2.0 * rate)
            return np.minimum(np.maximum(free, domain.lower), domain.upper)

        def minus_dual(share: Array) -> tuple[float, Array]:
            multiplier = weight * share[0]
            x = decision(multiplier)
            g = demand - scale @ np.log1p(rate * x)
            move = x - center
            value = gradient @ move + alpha * (move @ move) + multiplier * g
            return -value, np.array([-weight * g])

        best = minimize(
            minus_dual, np.array([0.5]), jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)],
            options={"ftol": 1e-12, "gtol": 1e-8},
        )  # fmt: skip
        return decision(weight * best.x[0]), bool(best.success)


AFFINE_PEERS: tuple[Callable[[Slot], Any], ...] = (
    lambda slot: OSQP(slot, 1e-3),
    lambda slot: OSQP(slot, 1e-9),
    Clarabel,
    PIQP,
    Quadprog,
    DAQP,
    DAQPRefilled,
)
# Named by the targets as the ones to beat: they solve the program exactly. DAQP counts with its
# program assembled each step; refilled in place it takes half as long, and is shown for comparison.
EXACT = (Clarabel, PIQP, Quadprog, DAQP)
