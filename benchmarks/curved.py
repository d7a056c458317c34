"""F5: quadratic and max-affine rows, p = 20, N = 5, against CVXPY with parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

import coldq
from benchmarks.clock import in_turns
from benchmarks.families import Array, Slot, objective
from benchmarks.peers import Answer
from coldq.slot.step import solve

P, N, K = 20, 5, 8
WEIGHT = 2500.0
DOMAIN = coldq.Box(-2.0, 2.0, dim=P)


def quadratic(feasible: bool, count: int, seed: int = 0) -> list[Slot]:
    """Steps with ellipsoids that hold the origin, or that no point satisfies."""
    rng, slots = np.random.default_rng(seed), []
    for _ in range(count):
        roots = rng.standard_normal((N, P, P)) / np.sqrt(P)
        curvature = np.swapaxes(roots, -1, -2) @ roots
        curvature = 0.5 * (curvature + np.swapaxes(curvature, -1, -2))
        r = rng.uniform(0.5, 2.0, N) if feasible else -rng.uniform(2.0, 10.0, N)
        g = coldq.QuadraticConstraint(curvature, rng.standard_normal((N, P)), r)
        slots.append(_slot(rng, g))
    return slots


def max_affine(feasible: bool, count: int, seed: int = 0) -> list[Slot]:
    """Steps with rows of eight pieces that hold at the origin, or that no point satisfies."""
    rng, slots = np.random.default_rng(seed), []
    for _ in range(count):
        b = rng.uniform(0.2, 2.0, (N, K)) if feasible else -rng.uniform(2.0, 10.0, (N, K))
        slots.append(_slot(rng, coldq.MaxAffine(rng.standard_normal((N, K, P)), b)))
    return slots


def _slot(rng: np.random.Generator, g: Any) -> Slot:
    alpha = np.array(rng.uniform(0.5, 5.0))
    center, gradient = rng.uniform(-2.0, 2.0, P), 5.0 * rng.standard_normal(P)
    return Slot(center, gradient, alpha, np.full(N, WEIGHT), g, DOMAIN)


class WithParameters:
    """One CVXPY problem whose parameters change; a quadratic row enters by a root of P_n."""

    def __init__(self, slot: Slot) -> None:
        self.x = x = cp.Variable(P)
        slack = cp.Variable(N, nonneg=True)
        self.alpha, self.q = cp.Parameter(nonneg=True), cp.Parameter(P)
        self.b = cp.Parameter((N, K) if isinstance(slot.constraint, coldq.MaxAffine) else N)
        self.curved = isinstance(slot.constraint, coldq.QuadraticConstraint)
        rows: list[Any] = [x >= DOMAIN.lower, x <= DOMAIN.upper]
        if self.curved:
            self.A = [cp.Parameter(P) for _ in range(N)]
            self.roots = [cp.Parameter((P, P)) for _ in range(N)]
            for n in range(N):
                g = 0.5 * cp.sum_squares(self.roots[n] @ x) + self.A[n] @ x - self.b[n]
                rows.append(g <= slack[n])
        else:
            self.A = [cp.Parameter((K, P)) for _ in range(N)]
            rows += [self.A[n] @ x - self.b[n] <= slack[n] for n in range(N)]
        cost = self.alpha * cp.sum_squares(x) + self.q @ x + WEIGHT * cp.sum(slack)
        self.problem = cp.Problem(cp.Minimize(cost), rows)

    def __call__(self, slot: Slot) -> Answer:
        center, gradient, alpha, _, g, _ = slot
        self.alpha.value, self.q.value = alpha, gradient - 2.0 * alpha * center
        self.b.value = g.r if self.curved else g.b
        for n in range(N):
            self.A[n].value = g.q[n] if self.curved else g.A[n]
            if self.curved:
                values, vectors = np.linalg.eigh(g.P[n])
                self.roots[n].value = (vectors * np.sqrt(np.maximum(values, 0.0))).T
        self.problem.solve(solver=cp.CLARABEL)
        return np.asarray(self.x.value, float), self.problem.status == cp.OPTIMAL


@dataclass(frozen=True)
class Curved:
    """Medians in microseconds of one kind of rows, and the largest gap of ours to the best."""

    name: str
    smooth: bool
    ours: float
    cvxpy: float
    gap: float

    @property
    def ratio(self) -> float:
        return self.cvxpy / self.ours


def measure(count: int) -> list[Curved]:
    """Both kinds of rows, feasible and infeasible."""
    found = []
    for kind, build in (("quadratic", quadratic), ("max-affine", max_affine)):
        for feasible in (True, False):
            slots = build(feasible, count)
            peer = WithParameters(slots[0])
            methods: list[Callable[[Slot], Any]] = [_ours, peer]
            ours, theirs = in_turns(methods, slots)
            gaps = [
                _gap(slot, a, b) for slot, (_, a), (_, b) in zip(slots, ours, theirs, strict=True)
            ]
            name = f"{kind} rows, {'feasible' if feasible else 'infeasible'}"
            times = (1e6 * float(np.median([t for t, _ in runs])) for runs in (ours, theirs))
            found.append(Curved(name, kind == "quadratic", *times, gap=max(gaps)))
    return found


def _ours(slot: Slot) -> Answer:
    return solve(*slot).x, True


def _gap(slot: Slot, ours: tuple[Array, bool], theirs: tuple[Array, bool]) -> float:
    a, b = objective(slot, ours[0]), objective(slot, theirs[0])
    return (a - min(a, b)) / max(1.0, abs(min(a, b)))
