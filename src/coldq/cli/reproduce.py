"""``coldq reproduce``: the paper's figures and claims, and the report of them."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable
from itertools import repeat
from pathlib import Path

from coldq.base.system import thread_count
from coldq.cli.needs import require_report
from coldq.cli.terminal import progress
from coldq.evaluation.tasks.processes import Processes
from coldq.paper.figures import FIGURES, Figure
from coldq.paper.report.files import write_claims, write_traces
from coldq.paper.reproduce import Reproduction, count_steps
from coldq.paper.reproduce import reproduce as run_all
from coldq.paper.runs import FigureRuns
from coldq.simulation.loop import seed_tuple

REPORT_MEGABYTES = 200.0  # of results for 20 seeds of all figures, with room to spare


def reproduce(
    figures: Iterable[Figure] = FIGURES,
    seeds: Iterable[int] = range(20),
    out: str | Path = "results",
    *,
    quick: bool = False,
    show: Callable[[Reproduction], None] = lambda result: None,
) -> Reproduction:
    """Run figures of the paper over many seeds, check its claims, and write everything to `out`.

    Written are ``index.html``, ``claims.json``, every figure as PNG and PDF, and the traces as
    parquet: each file whole or not at all. A `quick` look tries few alphas where RECOO is tuned.
    """
    figures, seeds, out = tuple(figures), seed_tuple(seeds), Path(out)
    require_report(out / "index.html", REPORT_MEGABYTES)

    from coldq.paper.report.page import write_page

    with progress(count_steps(figures)) as done:
        result = run_all(figures, seeds, quick=quick, done=done, processes=thread_count())
    try:
        with Processes(thread_count()) as executor:
            pictures = ChainMap(*executor.map(_write_figure, result.figures, repeat(out)))
        write_claims(result, out / "claims.json")
        write_page(result, out / "index.html", pictures)
    finally:  # whether it can be written or not
        show(result)
    return result


def _write_figure(runs: FigureRuns, out: Path) -> dict[str, str]:
    """Write a figure's pictures and traces; the pictures' addresses by name."""
    from coldq.paper.report.pictures import write_pictures

    pictures = write_pictures(runs, out / "figures")
    write_traces(runs, out / "traces" / f"{runs.figure.key}.parquet")
    return pictures
