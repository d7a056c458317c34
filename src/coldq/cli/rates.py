"""``coldq rates``: the paper's Tables 1 and 2, measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from coldq.base.arrays import whole_number
from coldq.cli.needs import require_report
from coldq.cli.tables import console
from coldq.cli.terminal import progress, rate_tables
from coldq.paper.rates.store import run_missing, tasks
from coldq.paper.rates.tables import Cell, cells, differences, queue_matters
from coldq.paper.report.files import write_rates

HORIZONS, SEED_COUNT = (256, 1024, 4096, 16384, 65536), 12
QUICK_HORIZONS, QUICK_SEED_COUNT = (64, 256, 1024, 4096), 4


def measure_tables(
    out: Path | str,
    *,
    quick: bool = False,
    horizons: Sequence[int] | None = None,
    n_seeds: int | None = None,
    processes: int = 2,
) -> list[Cell]:
    """Run what is missing, write tables, pictures and numbers to `out`, and print both tables.

    Parameters
    ----------
    out
        A folder. Runs are stored in it one by one, so that an interrupted run resumes.
    quick
        Short horizons and few seeds: a look, not a measurement.
    horizons, n_seeds, processes
        A geometric range of horizons, how many seeds, and how many processes share the work.
    """
    horizons = tuple(horizons or (QUICK_HORIZONS if quick else HORIZONS))
    n_seeds = whole_number("n_seeds", n_seeds or (QUICK_SEED_COUNT if quick else SEED_COUNT), 2)
    out, shown = Path(out), console()
    require_report(out / "index.html")
    whole = tasks(horizons, n_seeds)
    with progress(sum(task.horizon for task in whole), "slots") as done:
        run_missing(out, whole, processes, lambda task: done("slots", task.horizon))
    from coldq.paper.report.rates import write_rates_page

    measured = cells(out, horizons, n_seeds)
    lines = [*differences(measured), *queue_matters(out, horizons, n_seeds)]
    try:
        write_rates(measured, out)
        write_rates_page(measured, lines, out / "index.html")
    finally:  # whether they can be written or not
        for line in rate_tables(measured, lines):
            shown.print(line)
    return measured
