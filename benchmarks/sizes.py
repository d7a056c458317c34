"""How cost grows with size: ``python -m benchmarks.sizes``, see ``--help``.

Every sweep goes through sizes in steps of 1.5. A cost is the median over several draws of the best
of several calls, in CPU time, because other work on the machine would show in the clock's; where
all cores share the work it is the clock's. A step that costs more than 2.5 times its neighbour is
measured again, both in turns, before it is believed. Beside it stand the limit, one pass over the
data at the bandwidth that the machine has, and the memory that the largest size takes.
"""

from __future__ import annotations

import argparse
import gc
import json
import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

import coldq
from benchmarks.batch import on_threads
from benchmarks.large import budgets, clashing
from coldq.learners.networks import metropolis, ring
from coldq.slot.step import solve

STEP = 1.5  # from one size to the next
MOST = 2.5  # times more that it may cost
SHORT = 3e-4  # seconds: shorter calls are timed several at once
PLAYED = 3  # slots that a learner plays from one timed step to the next


class Case(NamedTuple):
    """Something to be timed, and the bytes that it is given."""

    call: Callable[[], Any]
    data: int


@dataclass
class Sweep:
    """Cost against one size."""

    name: str
    panel: str
    first: float
    last: float
    make: Callable[[int, int], list[Case]]  # of a size and a number of draws
    clock: Callable[[], float] = process_time
    cost: dict[int, float] = field(default_factory=dict)
    data: dict[int, int] = field(default_factory=dict)
    memory: float = np.nan  # times the data, at the largest size
    again: list[tuple[int, int, float]] = field(default_factory=list)

    @property
    def sizes(self) -> list[int]:
        """Whole numbers in steps of 1.5 or a little less."""
        count = int(np.ceil(np.log(self.last / self.first) / np.log(STEP)))
        ladder = np.geomspace(self.first, self.last, count + 1)
        return sorted({int(np.floor(size + 1e-9)) for size in ladder})

    def kept(self) -> dict[str, Any]:
        """What was measured, as plain data."""
        return {
            "cost": list(self.cost.items()), "data": list(self.data.items()),
            "memory": self.memory, "again": self.again,
        }  # fmt: skip

    def recall(self, kept: dict[str, Any]) -> None:
        """The same back."""
        self.cost, self.data = dict(map(tuple, kept["cost"])), dict(map(tuple, kept["data"]))
        self.memory, self.again = kept["memory"], [tuple(pair) for pair in kept["again"]]

    def factor(self, before: int, after: int) -> float:
        """How many times more a size costs, as it was last measured."""
        known = {(first, second): factor for first, second, factor in self.again}
        return known.get(
            (before, after), per_step(before, after, self.cost[before], self.cost[after])
        )

    def steepest(self) -> tuple[float, int]:
        """The largest factor between neighbours, and the size that it leads to."""
        pairs = zip(self.sizes[:-1], self.sizes[1:], strict=True)
        return max((self.factor(a, b), b) for a, b in pairs)


def per_step(before: int, after: int, cost: float, more: float) -> float:
    """How many times more a step of 1.5 costs: the smallest whole numbers are further apart."""
    steps = max(1.0, np.log(after / before) / np.log(STEP))
    return float((more / cost) ** (1.0 / steps))


def nbytes(*arrays: Any) -> int:
    """Bytes of arrays, sparse ones included."""
    parts = ((a.data, a.indices, a.indptr) if sparse.issparse(a) else (a,) for a in arrays)
    return sum(np.asarray(part).nbytes for group in parts for part in group)


def steps(learner: coldq.COLDQ, N: int, reveal: Callable[[], Any], draws: int) -> list[Case]:
    """The steps of a learner that plays what is revealed, every third of them."""
    state, cases = learner.init(N), []
    for k in range(PLAYED * draws):
        feedback = reveal()
        following = learner.update(state, feedback)
        if k % PLAYED == PLAYED - 1:
            gradient, rows = feedback.loss.gradient(state.x), feedback.constraint
            given = state.x, gradient, learner.alpha(state.t), following.queue, rows, learner.domain
            cases.append(Case(lambda given=given: solve(*given), size_of(given)))
        state = following
    return cases


def size_of(given: Sequence[Any]) -> int:
    """Bytes of a step's data."""
    center, gradient, _, weights, rows, _ = given
    names = {*rows.cores, "A"} if isinstance(rows, coldq.SparseAffine) else rows.cores
    return nbytes(center, gradient, weights, *(getattr(rows, name) for name in names))


def time_varying(N: int, p: int, draws: int) -> list[Case]:
    """Steps of the paper's experiment with other sizes; limits grow with the coordinates."""
    rng, domain = np.random.default_rng(N + p), coldq.Box(0.0, 5.0, dim=p)

    def reveal() -> coldq.Feedback:
        H = rng.uniform(-1.0, 1.0, (4, p))
        y = H.sum(axis=-1) + rng.standard_normal(4)
        rows = coldq.Affine(rng.random((N, p)), 0.1 * p * rng.random(N))
        return coldq.Feedback(coldq.LeastSquares(H, y), rows)

    return steps(coldq.COLDQ(domain, horizon=5000), N, reveal, draws)


def of_slots(slots: Sequence[Any]) -> list[Case]:
    return [Case(lambda slot=slot: solve(*slot), size_of(slot)) for slot in slots]


def curved(kind: str, N: int, p: int, draws: int) -> list[Case]:
    """Steps with rows that are not affine, as the paper's losses would move them."""
    rng = np.random.default_rng(N + p)
    domain = coldq.Box(-2.0, 2.0, dim=p)

    def rows() -> Any:
        if kind == "quadratic":
            F = rng.normal(size=(N, p, p)) / np.sqrt(p)
            P = F @ np.swapaxes(F, -1, -2) + 0.1 * np.eye(p)
            return coldq.QuadraticConstraint(P, rng.normal(size=(N, p)), 0.5 * p * rng.random(N))
        if kind == "max-affine":
            return coldq.MaxAffine(rng.normal(size=(N, 8, p)), np.sqrt(p) * rng.random((N, 8)))
        if kind == "ball":
            return coldq.QuadraticConstraint.ball(rng.normal(size=(1, p)), [0.5 * np.sqrt(p)])
        scale, rate = np.full(p, 4.0), np.full(p, 4.0)
        return coldq.LogCapacity(float(rng.poisson(25 * p)), scale, rate)

    def reveal() -> coldq.Feedback:
        H = rng.uniform(-1.0, 1.0, (4, p))
        return coldq.Feedback(coldq.LeastSquares(H, H.sum(axis=-1)), rows())

    if kind == "capacity":
        domain = coldq.Box(0.0, 1000.0, dim=p)
    return steps(coldq.COLDQ(domain, horizon=5000), N, reveal, draws)


def shares(N: int, p: int, draws: int) -> list[Case]:
    """Shares of p things that sum to one, under N rows."""
    rng = np.random.default_rng(N + p)
    domain: Any = coldq.Simplex(p)

    def reveal() -> coldq.Feedback:
        rows = coldq.Affine(rng.random((N, p)), rng.uniform(0.3, 0.7, N))
        return coldq.Feedback(coldq.Linear(rng.normal(size=p)), rows)

    return steps(coldq.COLDQ(domain, horizon=5000), N, reveal, draws)


def sparse_rows(N: int, p: int, each: int, draws: int) -> list[Case]:
    """Budgets over a few activities each, of p in [0, 1]."""
    rng, domain, cases = np.random.default_rng(N + p), coldq.Box(0.0, 1.0, dim=p), []
    for _ in range(draws):
        indices = np.sort(rng.integers(0, p, (N, each)), axis=1)
        line = np.arange(0, N * each + 1, each)
        A = sparse.csr_array((rng.random(N * each), indices.ravel(), line), (N, p))
        A.sum_duplicates()
        b = 0.4 * np.asarray(A.sum(axis=1)).ravel() * rng.uniform(0.8, 1.1, N)
        prices, weights = rng.normal(0.0, 2.0, p), np.full(N, 2500.0)
        given = rng.random(p), prices, np.array(1.0), weights, coldq.SparseAffine(A, b), domain
        cases.append(Case(lambda given=given: solve(*given), size_of(given)))
    return cases


def many(size: int, draws: int, cores: int | None) -> list[Case]:
    """One update of COLDQ for a batch of tenants, p = 10, N = 2."""
    rng, domain = np.random.default_rng(size), coldq.Box(0.0, 5.0, dim=10)
    learner, cases = coldq.COLDQ(domain, horizon=5000), []
    state = learner.init(2, batch=(size,))
    for _ in range(draws):
        H = rng.uniform(-1.0, 1.0, (size, 4, 10))
        y = H.sum(axis=-1) + rng.standard_normal((size, 4))
        A, b = rng.random((size, 2, 10)), rng.random((size, 2))
        feedback = coldq.Feedback(coldq.LeastSquares(H, y), coldq.Affine(A, b))

        def update(state: Any = state, feedback: coldq.Feedback = feedback) -> Any:
            with on_threads(None if cores is None else str(cores)):
                return learner.update(state, feedback)

        cases.append(Case(update, nbytes(H, y, A, b, state.x, state.queue)))
        state = update()
    return cases


def runs(horizon: int, draws: int) -> list[Case]:
    """A whole run of one seed."""
    problem = coldq.problems.TimeVarying(horizon)
    learner = coldq.COLDQ.for_problem(problem)
    data = 8 * horizon * (4 * 10 + 4 + 2 * 10 + 2)
    return [
        Case(lambda k=k: coldq.simulate(learner, problem, seeds=[k], progress=False), data)
        for k in range(draws)
    ]


def networks(agents: int, draws: int) -> list[Case]:
    """A slot of a network in a ring."""
    problem = coldq.problems.TimeVarying(horizon=draws + 1, agents=agents)
    learner = coldq.Decentralised(coldq.COLDQ.for_problem(problem), metropolis(ring(agents)))
    stream, state, cases = problem.start([0]), learner.init(2, batch=(1,)), []
    for t in range(1, draws + 1):
        feedback = stream.reveal(t, state.x)
        data = 8 * agents * (4 * 10 + 4 + 2 * 10 + 2 + 10 + 2) + 8 * agents**2
        cases.append(Case(lambda s=state, f=feedback: learner.update(s, f), data))
        state = cases[-1].call()
    return cases


def live(agents: int, draws: int) -> list[Case]:
    """A round of so many agents of their own, in memory."""
    rng = np.random.default_rng(agents)
    loss = coldq.LeastSquares(rng.normal(size=(3, 10)), rng.normal(size=3))
    rows = coldq.Affine(rng.normal(size=(2, 10)), rng.uniform(0.0, 1.0, 2))
    learner = coldq.COLDQ(coldq.Box(0.0, 5.0, dim=10), horizon=1_000_000)

    def a_round(every: list[coldq.Agent]) -> None:
        for agent in every:
            agent.observe(agent.decide().round, loss, rows)

    data = agents * nbytes(loss.H, loss.y, rows.A, rows.b, np.zeros(12))
    made = [[coldq.Agent(learner, 2, remember=4) for _ in range(agents)] for _ in range(draws)]
    return [Case(lambda every=every: a_round(every), data) for every in made]


def sweeps() -> list[Sweep]:
    """All of them, by the picture's panels."""
    dense, flat, other = "rows N", "coordinates p", "other rows and domains"
    thin, crowd = "sparse rows", "many at once"
    return [
        Sweep("2 rows, as TimeVarying's", flat, 2, 1e6, lambda p, k: time_varying(2, p, k)),
        Sweep("16 rows, as TimeVarying's", flat, 2, 1e5, lambda p, k: time_varying(16, p, k)),
        Sweep("50 budgets", flat, 2, 2e4, lambda p, k: of_slots(budgets("dense", 50, p, k))),
        *(
            Sweep(f"as TimeVarying's, p = {p:,}", dense, 1, 1000,
                  lambda N, k, p=p: time_varying(N, p, k))
            for p in (10, 100, 1000)
        ),
        *(
            Sweep(f"budgets, p = {p:,}", dense, 1, 1000,
                  lambda N, k, p=p: of_slots(budgets("dense", N, p, k)))
            for p in (10, 100, 1000)
        ),
        *(
            Sweep(f"that clash, p = {p}", dense, 1, 1000,
                  lambda N, k, p=p: of_slots(clashing(N, p, k)))
            for p in (10, 100)
        ),
        *(
            Sweep(f"of {N} rows that clash, p = {p}", "weights", 1, 1e8,
                  lambda w, k, N=N, p=p: of_slots(clashing(N, p, k, w)))
            for N, p in ((30, 10), (100, 10), (60, 30))
        ),
        Sweep("p, 100 rows of 10 entries", thin, 10, 1e6, lambda p, k: sparse_rows(100, p, 10, k)),
        Sweep("N, of 10 entries, p = 1,000", thin, 1, 1e4,
              lambda N, k: sparse_rows(N, 1000, 10, k)),
        Sweep("N, of 10 entries, p = 100,000", thin, 1, 1000,
              lambda N, k: sparse_rows(N, 100_000, 10, k)),
        Sweep("p, 2 quadratic rows", other, 2, 300, lambda p, k: curved("quadratic", 2, p, k)),
        Sweep("N quadratic rows, p = 10", other, 1, 50,
              lambda N, k: curved("quadratic", N, 10, k)),
        Sweep("p, 2 max-affine rows", other, 2, 300, lambda p, k: curved("max-affine", 2, p, k)),
        Sweep("N max-affine rows, p = 10", other, 1, 50,
              lambda N, k: curved("max-affine", N, 10, k)),
        Sweep("p, a ball-shaped row", other, 2, 1e6, lambda p, k: curved("ball", 1, p, k)),
        Sweep("p, a capacity", other, 2, 1e6, lambda p, k: curved("capacity", 1, p, k)),
        Sweep("p, 2 rows on a simplex", other, 2, 1e4, lambda p, k: shares(2, p, k)),
        Sweep("N rows on a simplex, p = 100", other, 1, 200, lambda N, k: shares(N, 100, k)),
        Sweep("tenants, one core", crowd, 1, 1e6, lambda B, k: many(B, k, 1)),
        Sweep("tenants, all cores", crowd, 1, 1e6, lambda B, k: many(B, k, None), perf_counter),
        Sweep("agents of a network", crowd, 2, 1000, networks),
        Sweep("live agents", crowd, 1, 1e4, live),
        Sweep("slots of a run", crowd, 10, 1e5, runs),
    ]  # fmt: skip


def bandwidth() -> float:
    """Bytes a second of one pass over a matrix that no cache holds: A x."""
    A, x = np.ones((1000, 32_000)), np.ones(32_000)
    return A.nbytes / min(best([Case(lambda: A @ x, A.nbytes)], 7, process_time))


def best(cases: Sequence[Case], repeats: int, clock: Callable[[], float]) -> list[float]:
    """The least seconds of each; short calls are timed several at once."""
    found = []
    for case in cases:
        least, calls = np.inf, 1
        for _ in range(repeats):
            begun = clock()
            for _ in range(calls):
                case.call()
            least = min(least, (clock() - begun) / calls)
            calls = max(1, int(SHORT / max(least, 1e-7)))
        found.append(least)
    return found


def measure(sweep: Sweep, draws: int, repeats: int, seconds: float) -> None:
    """Time all sizes, measure doubtful neighbours again in turns, and weigh the largest."""
    gc.disable()
    for size in sweep.sizes:
        took = min(best(sweep.make(size, 1), 2, sweep.clock))
        count = int(np.clip(seconds / (took * repeats), 1 if took > seconds else 2, draws))
        cases = sweep.make(size, count)
        sweep.cost[size] = float(np.median(best(cases, repeats, sweep.clock)))
        sweep.data[size] = cases[0].data
        gc.collect()
    for before, after in zip(sweep.sizes[:-1], sweep.sizes[1:], strict=True):
        if sweep.factor(before, after) > MOST:
            pair = [
                sweep.make(size, 2 * draws if sweep.cost[size] < 0.02 else 2)
                for size in (before, after)
            ]
            rounds = [[best(cases, 2, sweep.clock) for cases in pair] for _ in range(3)]
            least, more = (float(np.median(np.min([r[k] for r in rounds], axis=0))) for k in (0, 1))
            sweep.again.append((before, after, per_step(before, after, least, more)))
    gc.enable()
    sweep.memory = weigh(sweep.make(sweep.sizes[-1], 1)[0])


def weigh(case: Case) -> float:
    """The most memory that a call takes, its answer included, as a multiple of its data.

    In a thread of its own, which has none kept from calls before.
    """
    tracemalloc.start()
    with ThreadPoolExecutor(1) as fresh:
        fresh.submit(case.call).result()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / case.data


def spell(seconds: float) -> str:
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{1e9 * seconds:.0f} ns"


def row(sweep: Sweep, rate: float) -> tuple[str, ...]:
    """A line of the table."""
    first, last = sweep.sizes[0], sweep.sizes[-1]
    factor, at = sweep.steepest()
    limit = sweep.data[last] / rate
    return (
        sweep.panel, sweep.name, f"{first:,} to {last:,}", spell(sweep.cost[first]),
        spell(sweep.cost[last]), f"{factor:.2f} at {at:,}", f"{sweep.cost[last] / limit:.3g}",
        f"{sweep.memory:.2g}",
    )  # fmt: skip


def picture(found: Sequence[Sweep], rate: float, to: Path) -> None:
    """Cost against size on logarithmic axes, a panel a kind, with the limit of each dotted."""
    from matplotlib.figure import Figure

    panels = list(dict.fromkeys(sweep.panel for sweep in found))
    lines = -(-len(panels) // 2)
    figure = Figure(figsize=(9.0, 3.3 * lines), layout="constrained")
    for axis, panel in zip(figure.subplots(lines, 2, squeeze=False).flat, panels, strict=False):
        for sweep in found:
            if sweep.panel == panel:
                sizes = sweep.sizes
                (line,) = axis.loglog(sizes, [sweep.cost[s] for s in sizes], label=sweep.name)
                limit = [sweep.data[s] / rate for s in sizes]
                axis.loglog(sizes, limit, ":", color=line.get_color(), linewidth=0.9)
        axis.set_title(panel, fontsize=9)
        axis.tick_params(labelsize=7)
        axis.grid(True, alpha=0.3)
        axis.legend(fontsize=6)
        axis.set_ylabel("seconds (dotted: one pass)", fontsize=7)
    for axis in figure.axes[len(panels) :]:
        axis.set_axis_off()
    with to.open("wb") as file:
        figure.savefig(file, dpi=110, format=to.suffix[1:] or "png")


def main() -> None:
    """Print a line a sweep as soon as it is measured; draw all of them at the end."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizes", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer draws, for a first look")
    parser.add_argument("--only", metavar="TEXT", default="", help="sweeps with TEXT in their name")
    parser.add_argument("--curves", action="store_true", help="print the cost of every size")
    parser.add_argument("--keep", type=Path, metavar="JSON", help="keep results, and go on there")
    parser.add_argument("--picture", type=Path, metavar="PNG", help="draw cost against size")
    arguments = parser.parse_args()
    draws, repeats, seconds = (3, 3, 0.1) if arguments.quick else (5, 4, 0.25)
    chosen = [s for s in sweeps() if arguments.only in f"{s.panel}: {s.name}"]

    console, rate = Console(), bandwidth()
    console.width = max(console.width, 130)
    table = Table(
        "panel", "sweep", "sizes", "smallest", "largest", "largest factor", "passes", "memory",
        title=f"Cost against size, steps of {STEP}; one pass at {rate / 1e9:.1f} GB/s",
        caption="factor: between neighbours; passes and memory: of the largest, in its data",
    )  # fmt: skip
    kept: dict[str, Any] = {}
    if arguments.keep is not None and arguments.keep.exists():
        kept = json.loads(arguments.keep.read_text())
    for sweep in chosen:
        name = f"{sweep.panel}: {sweep.name}"
        if name in kept:
            sweep.recall(kept[name])
        else:
            with Console(stderr=True).status(sweep.name):
                measure(sweep, draws, repeats, seconds)
            kept[name] = sweep.kept()
            if arguments.keep is not None:
                arguments.keep.write_text(json.dumps(kept))
        table.add_row(*row(sweep, rate))
        if arguments.curves:
            curve = " ".join(f"{size}:{1e6 * sweep.cost[size]:.0f}" for size in sweep.sizes)
            print(f"{name}, us: {curve}", flush=True)
            for before, after, factor in sweep.again:
                print(f"    again {before} to {after}: {factor:.2f}", flush=True)
    console.print(table)
    if arguments.picture is not None:
        picture(chosen, rate, arguments.picture)


if __name__ == "__main__":
    main()
