"""The paper's first experiment: COLDQ under time-varying constraints."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from coldq._values import Array
from coldq.domains import Box
from coldq.learners import COLDQ
from coldq.metrics import accumulated_loss, hard_violation, soft_violation
from coldq.problems import TimeVarying
from coldq.simulate import Trace, seed_tuple, simulate

# The paper prints the first domain; its figure agrees with the second.
DOMAINS = {"[0, 5]^10": Box(0.0, 5.0, dim=10), "[-5, 5]^10": Box(-5.0, 5.0, dim=10)}


@dataclass(frozen=True)
class Row:
    """What one domain gave: the trace, and how long a slot of all seeds took."""

    domain: str
    trace: Trace
    seconds_per_slot: float


def run(seeds: Iterable[int] = range(20), horizon: int = 5000) -> Iterator[Row]:
    """COLDQ with the paper's parameters on both domains."""
    seeds = seed_tuple(seeds)
    for name, domain in DOMAINS.items():
        problem = TimeVarying(horizon, domain)
        learner = COLDQ.for_problem(problem)
        begun = time.perf_counter()
        trace = simulate(learner, problem, seeds, keep=["queue"])
        yield Row(name, trace, (time.perf_counter() - begun) / horizon)


def interval(samples: Array) -> str:
    """A mean with the half-width of its 95% interval over seeds (Student's t)."""
    mean = samples.mean()
    if samples.size < 2:
        return f"{mean:,.1f}"
    from scipy.special import stdtrit

    quantile = stdtrit(samples.size - 1, 0.975)
    return f"{mean:,.1f} ± {quantile * samples.std(ddof=1) / np.sqrt(samples.size):.1f}"


def print_table(seeds: Iterable[int] = range(20), horizon: int = 5000) -> None:
    """Run the experiment and print one row a domain."""
    from rich.console import Console
    from rich.table import Table

    from coldq.warmup import warmup

    seeds = seed_tuple(seeds)
    warmup()
    table = Table(
        title=f"COLDQ under time-varying constraints, T = {horizon}, "
        f"{len(seeds)} seed{'s' if len(seeds) != 1 else ''}",
        caption="means ± 95% over seeds; violations are summed over slots and constraints",
    )
    for heading in ("domain", "loss", "hard violation", "soft violation", "slots with Q > gamma",
                    "time a slot"):  # fmt: skip
        table.add_column(heading, justify="left" if heading == "domain" else "right")
    for row in run(seeds, horizon):
        queue = row.trace.queue
        assert queue is not None
        moved = (queue > row.trace.learner.gamma).any(axis=-1).sum(axis=-1)
        table.add_row(
            row.domain,
            interval(accumulated_loss(row.trace)),
            interval(hard_violation(row.trace)),
            interval(soft_violation(row.trace)),
            interval(moved.astype(float)),
            f"{1e6 * row.seconds_per_slot / len(seeds):.1f} µs",
        )
    Console().print(table)
