"""Products of simplices, as traffic, budgets and shares have them, against solvers of programs.

A network keeps its links; demands, prices and limits are new in every slot. A peer is set up once
and given the numbers that changed, where it can be, in arrays that are ready when the clock starts;
it is judged by the fastest of its forms (dense or sparse).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import piqp
from scipy import sparse

import coldq
from benchmarks.clock import timed
from benchmarks.families import Array, Slot
from coldq.slot.step import solve

clarabel: Any = import_module("clarabel")
highspy: Any = import_module("highspy")

DENSE = 150_000  # entries of the program's rows up to which PIQP's dense solver is tried too
PATIENCE = 10.0  # seconds that HiGHS gets for a step


class Size(NamedTuple):
    """So many simplices of q coordinates, N rows, and the share of entries that a row has."""

    blocks: int
    q: int
    N: int
    density: float
    met: bool = True  # whether the rows can all be met

    @property
    def name(self) -> str:
        words = "" if self.met else ", which clash"
        kind = "dense" if self.density == 1.0 else "sparse"
        return f"{self.blocks:,} of {self.q:,}, {self.N} {kind} rows{words}"


SIZES = (
    Size(30, 3, 30, 0.2), Size(30, 20, 100, 0.1), Size(10_000, 3, 50, 0.01), Size(1, 3000, 65, 1.0),
)  # fmt: skip
CLASHING = (Size(30, 3, 30, 1.0, met=False), Size(30, 20, 100, 1.0, met=False))


def draw(size: Size, count: int, seed: int = 0) -> list[Slot]:
    """Steps on one network: from a random decision, at new prices, with limits near the mean."""
    rng = np.random.default_rng(seed)
    blocks, q, N, density, _ = size
    p = blocks * q
    domain: Any = coldq.Simplex(q) if blocks == 1 else coldq.Product(*[coldq.Simplex(q)] * blocks)
    shape: Any = sparse.random_array((N, p), density=density, rng=rng, format="csr")
    slots = []
    for _ in range(count):
        if density == 1.0:
            A: Any = rng.random((N, p))
            use = A.sum(axis=1) / q
        else:
            shape = shape.copy()
            shape.data = rng.random(shape.nnz)
            A, use = shape, np.asarray(shape.sum(axis=1)).ravel() / q
        b = use * rng.uniform(0.8, 1.1, N)
        large = density < 1.0 and N * p > 50_000
        g = (
            coldq.SparseAffine(A, b)
            if large
            else coldq.Affine(A if density == 1.0 else A.toarray(), b)
        )
        center = rng.dirichlet(np.ones(q), blocks).ravel()
        prices = rng.normal(0.0, 2.0, p)
        slots.append(Slot(center, prices, np.array(1.0), np.full(N, 2500.0), g, domain))
    return slots


class Program(NamedTuple):
    """min z'P z / 2 + c'z of z = (x, s): E x = 1, A x - s <= b, z >= 0; all sparse, by columns."""

    P: Any
    c: Array
    E: Any
    rows: Any
    b: Array


def program(slot: Slot) -> Program:
    N, p = slot.constraint.n_constraints, slot.domain.dim
    A = sparse.csc_array(slot.constraint.A)
    E = slot.domain.blocks.start.size
    sums = sparse.kron(sparse.eye_array(E), np.ones((1, p // E)))
    return Program(
        sparse.csc_matrix(
            sparse.diags_array(np.concatenate([np.full(p, 2.0 * slot.alpha), np.zeros(N)]))
        ),
        np.concatenate([slot.gradient - 2.0 * slot.alpha * slot.center, slot.queue]),
        sparse.csc_matrix(sparse.hstack([sums, sparse.csc_array((E, N))])),
        sparse.csc_matrix(sparse.hstack([A, -sparse.eye_array(N)])),
        slot.constraint.b,
    )


class PIQP:
    """Its dense or its sparse solver, updated."""

    def __init__(self, first: Program, dense: bool) -> None:
        self.dense, self.solver = dense, piqp.DenseSolver() if dense else piqp.SparseSolver()
        self.solver.settings.verbose = False
        P, c, E, rows, b = self.form(first)
        high = np.full(c.size, np.inf)
        self.solver.setup(P, c, E, np.ones(E.shape[0]), rows, None, b, np.zeros(c.size), high)

    def form(self, one: Program) -> Any:
        if not self.dense:
            return one
        return one._replace(P=one.P.toarray(), E=one.E.toarray(), rows=one.rows.toarray())

    def __call__(self, one: Any) -> tuple[Array, bool]:
        self.solver.update(c=one.c, G=one.rows, h_u=one.b)
        status = self.solver.solve()
        return np.array(self.solver.result.x), status == piqp.PIQP_SOLVED


class Clarabel:
    """Set up once and updated, where its version can be."""

    def __init__(self, first: Program) -> None:
        self.settings = clarabel.DefaultSettings()
        self.settings.verbose = False
        self.settings.presolve_enable = False  # it forbids updates
        self.cones = [
            clarabel.ZeroConeT(first.E.shape[0]),
            clarabel.NonnegativeConeT(first.b.size + first.c.size),
        ]
        self.solver = self.fresh(self.form(first))
        self.updates = hasattr(self.solver, "update")

    def fresh(self, one: Any) -> Any:
        P, c, G, h = one
        return clarabel.DefaultSolver(P, c, G, h, self.cones, self.settings)

    def form(self, one: Program) -> Any:
        eye = sparse.eye_array(one.c.size, format="csc")
        G = sparse.csc_matrix(sparse.vstack([one.E, one.rows, -eye]))
        h = np.concatenate([np.ones(one.E.shape[0]), one.b, np.zeros(one.c.size)])
        return one.P, one.c, G, h

    def __call__(self, one: Any) -> tuple[Array, bool]:
        if self.updates:
            self.solver.update(q=one[1], A=one[2].data, b=one[3])
        else:
            self.solver = self.fresh(one)
        result = self.solver.solve()
        return np.array(result.x), result.status == clarabel.SolverStatus.Solved


class HiGHS:
    """Its active-set method for quadratic programs, which is given a model."""

    def __init__(self, first: Program) -> None:
        self.solver = highspy.Highs()
        self.solver.setOptionValue("output_flag", False)
        self.solver.setOptionValue("time_limit", PATIENCE)

    def form(self, one: Program) -> Any:
        M, inf = sparse.csc_matrix(sparse.vstack([one.E, one.rows])), highspy.kHighsInf
        model = highspy.HighsModel()
        lp, z, sums = model.lp_, one.c.size, np.ones(one.E.shape[0])
        lp.num_col_, lp.num_row_, lp.col_cost_ = z, M.shape[0], one.c
        lp.col_lower_, lp.col_upper_ = np.zeros(z), np.full(z, inf)
        lp.row_lower_ = np.concatenate([sums, np.full(one.b.size, -inf)])
        lp.row_upper_ = np.concatenate([sums, one.b])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = M.indptr, M.indices
        lp.a_matrix_.value_ = M.data
        P = sparse.csc_matrix(one.P)
        P.eliminate_zeros()
        hessian = model.hessian_
        hessian.dim_, hessian.format_ = z, highspy.HessianFormat.kTriangular
        hessian.start_, hessian.index_, hessian.value_ = P.indptr, P.indices, P.data
        return model

    def __call__(self, model: Any) -> tuple[Array, bool]:
        self.solver.passModel(model)
        self.solver.run()
        solved = self.solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return np.array(self.solver.getSolution().col_value), solved


@dataclass(frozen=True)
class Simplices:
    """Medians in milliseconds of one size, ours and the peers', and how good the answers are."""

    size: Size
    ours: float
    residual: float
    peers: dict[str, float]
    unsolved: dict[str, int]
    gap: float  # the largest of ours to the best

    @property
    def best(self) -> str:
        """The fastest of the peers that solved its steps."""
        solved = [name for name in self.peers if not self.unsolved[name]]
        return min(solved, key=lambda name: self.peers[name])

    @property
    def ratio(self) -> float:
        return self.peers[self.best] / self.ours


def value(slot: Slot, x: Array) -> float:
    """The hinge objective of the nearest decision."""
    x = slot.domain.project(x)
    move, over = x - slot.center, np.maximum(slot.constraint.value(x), 0.0)
    return float(slot.gradient @ move + slot.alpha * (move @ move) + slot.queue @ over)


def measure(quick: bool, sizes: Sequence[Size] = (*SIZES, *CLASHING)) -> list[Simplices]:
    """All sizes, step by step in turns, so that a busy moment of the machine hits all alike."""
    found = []
    for size in sizes:
        slots = draw(size, 3 if quick or size.blocks * size.q > 1000 else 12)
        programs = [program(slot) for slot in slots]
        first = programs[0]
        peers: dict[str, Any] = {"PIQP": PIQP(first, False), "Clarabel": Clarabel(first)}
        if first.rows.shape[0] * first.rows.shape[1] <= DENSE:
            peers["PIQP, dense"] = PIQP(first, True)
        peers["HiGHS"] = HiGHS(first)
        forms = {name: [peer.form(one) for one in programs] for name, peer in peers.items()}
        solve(*slots[0])
        ours, residuals, gaps = list[float](), list[float](), list[float]()
        times: dict[str, list[float]] = {name: [] for name in peers}
        unsolved = dict.fromkeys(peers, 0)
        for k, slot in enumerate(slots):
            again = [timed(lambda s=slot: solve(*s)) for _ in range(7)]
            ours.append(min(seconds for seconds, _ in again))
            step = again[0][1]
            residuals.append(float(step.residual))
            values = [value(slot, step.x)]
            for name, peer in peers.items():
                if name == "HiGHS" and k:  # minutes, at some sizes: one step is enough
                    continue
                seconds, x, good = best_of(peer, forms[name][k])
                times[name].append(seconds)
                unsolved[name] += not good
                values += [value(slot, x[: slot.domain.dim])] if good else []
            gaps.append((values[0] - min(values)) / max(1.0, abs(min(values))))
        medians = {name: 1e3 * float(np.median(some)) for name, some in times.items()}
        mine = 1e3 * float(np.median(ours))
        found.append(Simplices(size, mine, max(residuals), medians, unsolved, max(gaps)))
    return found


def best_of(peer: Callable[[Any], tuple[Array, bool]], form: Any) -> tuple[float, Array, bool]:
    """The best time of a step, its answer and whether it is one; what takes long is done once."""
    best, (x, good) = timed(peer, form)
    for _ in range(2):
        if best < 1.0:
            best = min(best, timed(peer, form)[0])
    return best, x, good
