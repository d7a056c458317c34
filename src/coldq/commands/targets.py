"""``coldq compare --rate``: what it costs to keep a violation rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from coldq.commands.needs import require_report
from coldq.experiments.targets import Target, first_scored, measure_target, target_problem
from coldq.report.files import write_scores
from coldq.report.terminal import progress
from coldq.warmup import warmup


def run_targets(
    keys: Iterable[str],
    rates: Iterable[float],
    seeds: Iterable[int],
    out: str | Path,
    horizon: int | None = None,
    last: int | None = None,
    show: Callable[[Target], None] = lambda target: None,
) -> list[Target]:
    """Check first, play with a progress bar; show and write what each problem gave when it did."""
    keys, rates, out = tuple(keys), tuple(rates), Path(out)
    for key in keys:
        first_scored(target_problem(key, horizon).horizon, last)
    require_report(out)

    from coldq.report.targets import write_target_page

    targets: list[Target] = []
    with progress(1 + 6 * len(keys)) as done:
        warmup(everything=False)
        done("kernels compiled or loaded")
        for key in keys:
            found = measure_target(key, rates, seeds, horizon=horizon, last=last, done=done)
            targets += found
            for target in found:
                show(target)
            write_scores(targets, out / "compare-rates.parquet")
            for target in found:
                write_target_page(target, out / "index.html")
    return targets
