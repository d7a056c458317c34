"""F4: many rows or coordinates, dense and sparse, against solvers set up for every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import piqp
from scipy import sparse

import coldq
from benchmarks.clock import timed
from benchmarks.families import Array, Slot, objective
from benchmarks.peers import Answer
from coldq.slot.step import solve
from coldq.solver.problem import HALF, AffineProblem
from coldq.solver.simplices import solve_in_one_block

clarabel: Any = import_module("clarabel")

SIZES = (("dense", 50, 1000), ("dense", 100, 10_000), ("dense", 10_000, 100),
         ("sparse", 50, 1000), ("sparse", 100, 10_000), ("sparse", 10_000, 100),
         ("clashing", 200, 30))  # fmt: skip
DENSITY = 0.01


def budgets(kind: str, N: int, p: int, count: int, seed: int = 0) -> list[Slot]:
    """Steps with N budget rows over p activities in [0, 1], new in every slot."""
    rng = np.random.default_rng(seed)
    domain, slots = coldq.Box(0.0, 1.0, dim=p), []
    for _ in range(count):
        if kind == "dense":
            A: Any = rng.random((N, p))
        else:
            A = sparse.random_array((N, p), density=DENSITY, rng=rng, format="csr")
        b = 0.4 * np.asarray(A.sum(axis=1)).ravel() * rng.uniform(0.8, 1.1, N)
        g = coldq.Affine(A, b) if kind == "dense" else coldq.SparseAffine(A, b)
        prices = rng.normal(0.0, 2.0, p)
        slots.append(Slot(rng.random(p), prices, np.array(1.0), np.full(N, 2500.0), g, domain))
    return slots


def clashing(N: int, p: int, count: int, weight: float = 25.0, seed: int = 0) -> list[Slot]:
    """Steps with N rows that point anywhere and cannot all be met: more pull than p at the end."""
    rng = np.random.default_rng(seed)
    domain, slots = coldq.Box(0.0, 5.0, dim=p), []
    for _ in range(count):
        g = coldq.Affine(rng.normal(size=(N, p)), rng.uniform(-0.5, 1.0, N))
        prices, weights = rng.normal(size=p), np.full(N, float(weight))
        slots.append(Slot(domain.start(), prices, np.array(1.0), weights, g, domain))
    return slots


def program(slot: Slot) -> tuple[Any, Array, Any, Array]:
    """P, q and the rows ``A x - s <= b`` of the quadratic program in (x, s), sparse."""
    N, p = slot.constraint.n_constraints, slot.domain.dim
    P = sparse.diags_array(np.concatenate([np.full(p, 2.0 * slot.alpha), np.zeros(N)]))
    q = np.concatenate([slot.gradient - 2.0 * slot.alpha * slot.center, slot.queue])
    rows = sparse.hstack([sparse.csc_array(slot.constraint.A), -sparse.eye_array(N)], format="csc")
    return sparse.csc_matrix(P), q, sparse.csc_matrix(rows), slot.constraint.b


def with_piqp(slot: Slot) -> Answer:
    """PIQP's sparse solver, set up afresh."""
    P, q, rows, b = program(slot)
    N, p = slot.constraint.n_constraints, slot.domain.dim
    solver = piqp.SparseSolver()
    solver.settings.verbose = False
    lower = np.concatenate([slot.domain.lower, np.zeros(N)])
    upper = np.concatenate([slot.domain.upper, np.full(N, np.inf)])
    solver.setup(P, q, None, None, rows, None, b, lower, upper)
    status = solver.solve()
    return np.array(solver.result.x[:p]), status == piqp.PIQP_SOLVED


def with_clarabel(slot: Slot) -> Answer:
    """Clarabel, set up afresh."""
    P, q, rows, b = program(slot)
    N, p = slot.constraint.n_constraints, slot.domain.dim
    eye = sparse.eye_array(p + N, format="csc")
    G = sparse.csc_matrix(sparse.vstack([rows, -eye, eye[:p]]))
    h = np.concatenate([b, -slot.domain.lower, np.zeros(N), slot.domain.upper])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.NonnegativeConeT(h.size)]
    result = clarabel.DefaultSolver(sparse.csc_matrix(P), q, G, h, cones, settings).solve()
    return np.array(result.x[:p]), result.status == clarabel.SolverStatus.Solved


@dataclass(frozen=True)
class Large:
    """Medians in milliseconds of one size, and the worst gap of each method to the best."""

    kind: str
    N: int
    p: int
    ours: float
    one_pass: float  # one A x
    piqp: float
    clarabel: float
    gaps: tuple[float, float, float]

    @property
    def name(self) -> str:
        return f"{self.kind}, p = {self.p:,}, N = {self.N:,}"


def measure(quick: bool) -> list[Large]:
    """All sizes: ours on several steps, the peers on the first one or two."""
    found = []
    for kind, N, p in SIZES:
        count = 3 if quick else 8
        slots = clashing(N, p, count) if kind == "clashing" else budgets(kind, N, p, count)
        few = slots[: 1 if quick else 2]
        solve(*slots[0])
        ours = [timed(lambda s=slot: solve(*s)) for slot in slots]
        one_pass = [timed(lambda s=slot: s.constraint.A @ s.center)[0] for slot in slots]
        peers = [[timed(peer, slot) for slot in few] for peer in (with_piqp, with_clarabel)]
        values = np.array(
            [[objective(s, step.x) for s, (_, step) in zip(few, ours, strict=False)]]
            + [
                [objective(s, x) for s, (_, (x, _)) in zip(few, runs, strict=True)]
                for runs in peers
            ]
        )
        gaps = ((values - values.min(axis=0)) / np.maximum(1.0, np.abs(values.min(axis=0)))).max(1)
        times = [1e3 * float(np.median([t for t, _ in runs])) for runs in (ours, *peers)]
        own_pass = 1e3 * float(np.median(one_pass))
        found.append(
            Large(kind, N, p, times[0], own_pass, times[1], times[2], tuple(map(float, gaps)))  # type: ignore[arg-type]
        )
    return found


@dataclass(frozen=True)
class Warm:
    """Medians in milliseconds over a drifting sequence, from zero and from the last multipliers."""

    name: str
    cold: float
    warm: float


def warm_starts(quick: bool) -> list[Warm]:
    """Steps whose limits change by a percent and prices by a third, each from the last decision.

    A step takes no multipliers to start from; the same instance shifted by them starts there.
    """
    found = []
    for kind, N, p in (("dense", 100, 10_000), ("sparse", 100, 10_000), ("sparse", 10_000, 100)):
        slot = budgets(kind, N, p, 1)[0]
        rng, x, price, A = np.random.default_rng(1), slot.center, slot.gradient, slot.constraint.A
        lower, upper, lo, hi = np.zeros(p), np.ones(p), np.zeros(N), 0.5 * slot.queue
        mu, times, still, soft = lo, [], np.zeros(p), np.zeros(N)
        for _ in range(5 if quick else 20):
            scale, price = rng.uniform(0.99, 1.01, N), 0.9 * price + rng.normal(0.0, 0.6, p)
            b, y = slot.constraint.b * scale, x - 0.5 * price
            starts = (
                AffineProblem(y, still, HALF, lo, hi, soft, A, b, lower, upper),
                AffineProblem(y - mu @ A, still, HALF, lo - mu, hi - mu, soft, A, b, lower, upper),
            )
            times.append([min(timed(solve_in_one_block, s)[0] for _ in range(3)) for s in starts])
            x, mu, _ = solve_in_one_block(starts[0])
        cold, warm = 1e3 * np.median(times, axis=0)
        found.append(Warm(f"{kind}, p = {p:,}, N = {N:,}", float(cold), float(warm)))
    return found


def picture(path: Path, quick: bool = False) -> None:
    """Cost against p and against N, on logarithmic axes."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), sharey=True, layout="constrained")
    sizes = np.unique(np.logspace(2, 4, 4 if quick else 7).astype(int))
    lines: tuple[tuple[Any, str, Callable[[int], tuple[int, int]]], ...] = (
        (axes[0], "coordinates p, with N = 100 rows", lambda s: (100, int(s))),
        (axes[1], "rows N, with p = 100 coordinates", lambda s: (int(s), 100)),
    )
    for axis, label, shape in lines:
        for kind in ("dense", "sparse"):
            cost = []
            for size in sizes:
                slots = budgets(kind, *shape(size), 3)
                solve(*slots[0])
                cost.append(min(timed(lambda s=slot: solve(*s))[0] for slot in slots))
            axis.loglog(sizes, 1e3 * np.array(cost), "o-", label=f"{kind} A")
        base = 1e3 * cost[0]
        axis.loglog(sizes, base * sizes / sizes[0], "k:", label="linear")
        axis.set_xlabel(label)
        axis.grid(True, which="both", alpha=0.3)
    axes[0].set_ylabel("ms a step")
    axes[0].legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)
