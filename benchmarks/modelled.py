"""The per-slot problem written in CVXPY and solved by Clarabel: what papers in this field do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import cvxpy as cp
import numpy as np

import coldq
from benchmarks.families import Array, Slot
from benchmarks.peers import Answer
from coldq.learners import queue_learner
from coldq.slot.step import Step


def _violation(x: cp.Variable, constraint: Any) -> Any:
    """g(x) for constant data."""
    if isinstance(constraint, coldq.Affine):
        return constraint.A @ x - constraint.b
    return constraint.demand - constraint.scale @ cp.log(1.0 + cp.multiply(constraint.rate, x))


class RebuiltEachSlot:
    """A new CVXPY problem in every slot, as one writes it down."""

    name = "CVXPY, rebuilt each slot"

    def __call__(self, slot: Slot) -> Answer:
        center, gradient, alpha, queue, constraint, domain = slot
        x = cp.Variable(domain.dim)
        cost = gradient @ (x - center) + alpha * cp.sum_squares(x - center)
        cost += queue @ cp.pos(cp.reshape(_violation(x, constraint), (queue.size,), order="C"))
        problem = cp.Problem(cp.Minimize(cost), [x >= domain.lower, x <= domain.upper])
        problem.solve(solver=cp.CLARABEL)
        return np.asarray(x.value, float), problem.status == cp.OPTIMAL


class WithParameters:
    """One CVXPY problem whose parameters change: compiled once, by disciplined parametrisation."""

    name = "CVXPY with parameters"

    def __init__(self, slot: Slot) -> None:
        constraint, domain = slot.constraint, slot.domain
        p, N = domain.dim, slot.queue.size
        self.x = x = cp.Variable(p)
        slack = cp.Variable(N, nonneg=True)
        self.alpha = cp.Parameter(nonneg=True)
        self.q = cp.Parameter(p)
        self.queue = cp.Parameter(N, nonneg=True)
        self.data: dict[str, cp.Parameter]
        if isinstance(constraint, coldq.Affine):
            self.data = {"A": cp.Parameter((N, p)), "b": cp.Parameter(N)}
            g = self.data["A"] @ x - self.data["b"]
        else:
            self.data = {"demand": cp.Parameter()}
            capacity = constraint.scale @ cp.log(1.0 + cp.multiply(constraint.rate, x))
            g = self.data["demand"] - capacity
        cost = self.alpha * cp.sum_squares(x) + self.q @ x + self.queue @ slack
        self.row = g <= slack
        self.problem = cp.Problem(
            cp.Minimize(cost), [self.row, x >= domain.lower, x <= domain.upper]
        )

    def __call__(self, slot: Slot) -> Answer:
        center, gradient, alpha, queue, constraint, _ = slot
        self.alpha.value = alpha
        self.q.value = gradient - 2.0 * alpha * center
        self.queue.value = queue
        for name, parameter in self.data.items():
            parameter.value = getattr(constraint, name).reshape(parameter.shape)
        self.problem.solve(solver=cp.CLARABEL)
        return np.asarray(self.x.value, float), self.problem.status == cp.OPTIMAL


class LearnersStep:
    """CVXPY with parameters behind the signature of ``coldq.slot.step.solve``."""

    def __init__(self, slot: Slot) -> None:
        self.peer = WithParameters(slot)
        self.taken = 0

    def __call__(
        self, center: Array, gradient: Array, alpha: Array, weights: Array, g: Any, domain: Any
    ) -> Step:
        # A simulated seed comes as a batch of one.
        alone = Slot(
            center.reshape(-1), gradient.reshape(-1), np.reshape(alpha, ()), weights.reshape(-1),
            g, domain,
        )  # fmt: skip
        x, _ = self.peer(alone)
        self.taken += 1
        x = np.clip(x, domain.lower, domain.upper).reshape(center.shape)
        multipliers = np.asarray(self.peer.row.dual_value, float).reshape(weights.shape)
        return Step(x, multipliers, np.zeros(center.shape[:-1]))


@contextmanager
def stepping_with(step: LearnersStep) -> Iterator[None]:
    """COLDQ steps with `step` in here, and is otherwise what it is."""
    own = queue_learner.solve, queue_learner.at_once
    queue_learner.solve, queue_learner.at_once = step, lambda *_: None  # on its plain path
    try:
        yield
    finally:
        queue_learner.solve, queue_learner.at_once = own
