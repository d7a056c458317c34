"""The paper's first experiment: time-varying constraints."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from coldq._values import Array
from coldq.domains import Box
from coldq.learners import COLDQ, RECOO, COLDQExpert, Yi2023
from coldq.metrics import accumulated_loss, hard_violation
from coldq.problems import TimeVarying
from coldq.schedules import Power
from coldq.simulate import Trace, seed_tuple, simulate

# The paper prints the first domain; its figure agrees with the second.
DOMAINS = {"[0, 5]^10": Box(0.0, 5.0, dim=10), "[-5, 5]^10": Box(-5.0, 5.0, dim=10)}


def learners(problem: TimeVarying) -> dict[str, Any]:
    """The paper's algorithms with the parameters of its appendix, and COLDQ-Expert beside them."""
    X = problem.domain
    return {
        "COLDQ": COLDQ.for_problem(problem, epsilon=0.5),
        "RECOO": RECOO(X, epsilon=0.01, alpha=Power(0.5, 0.5)),
        "Yi 2023": Yi2023(X, alpha=Power(-0.5, 3.0), gamma=Power(-0.5, 0.1), beta=Power(-0.5, 5.0)),
        "COLDQ-Expert": COLDQExpert.for_problem(problem),
    }


@dataclass(frozen=True)
class Row:
    """What one learner did on one domain, and how long a slot took, for all seeds together."""

    domain: str
    learner: str
    trace: Trace
    seconds_per_slot: float


def run(seeds: Iterable[int] = range(20), horizon: int = 5000) -> Iterator[Row]:
    """Every learner on both domains."""
    seeds = seed_tuple(seeds)
    for name, domain in DOMAINS.items():
        problem = TimeVarying(horizon, domain)
        for title, learner in learners(problem).items():
            begun = time.perf_counter()
            keep = ["queue"] if isinstance(learner, COLDQ) else []
            trace = simulate(learner, problem, seeds, keep=keep)
            yield Row(name, title, trace, (time.perf_counter() - begun) / horizon)


def interval(samples: Array, digits: int = 1) -> str:
    """A mean with the half-width of its 95% interval over seeds (Student's t)."""
    mean = samples.mean()
    if samples.size < 2:
        return f"{mean:,.{digits}f}"
    from scipy.special import stdtrit

    quantile = stdtrit(samples.size - 1, 0.975)
    half = quantile * samples.std(ddof=1) / np.sqrt(samples.size)
    return f"{mean:,.{digits}f} ± {half:.{digits}f}"


def print_table(seeds: Iterable[int] = range(20), horizon: int = 5000) -> None:
    """Run the experiment and print one row a learner and domain."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from coldq.warmup import warmup

    seeds = seed_tuple(seeds)
    console = Console()
    if console.is_terminal:
        console.print("compiling, or loading compiled kernels ...")
    warmup()
    table = Table(
        title=f"Time-varying constraints, T = {horizon}, "
        f"{len(seeds)} seed{'s' if len(seeds) != 1 else ''}",
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        caption="Means ± 95% over seeds. Violation: hard, summed over slots and constraints. "
        "Q > gamma: in how many slots the queue was above its floor. A slot: for one seed.",
    )
    for heading in ("domain", "learner", "loss", "violation", "Q > gamma", "a slot"):
        side = "left" if heading in ("domain", "learner") else "right"
        table.add_column(heading, justify=side, no_wrap=True)
    previous = ""
    for row in run(seeds, horizon):
        queue = row.trace.queue
        moved = "-"
        if queue is not None:
            above = (queue > row.trace.learner.gamma).any(axis=-1).sum(axis=-1)
            moved = interval(above.astype(float))
        table.add_row(
            row.domain if row.domain != previous else "",
            row.learner,
            interval(accumulated_loss(row.trace), digits=0),
            interval(hard_violation(row.trace)),
            moved,
            f"{1e6 * row.seconds_per_slot / len(seeds):.1f} µs",
        )
        previous = row.domain
    console.print(table)
