"""The paper's Tables 1 and 2 with a measured column beside each claimed one."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coldq._tables import console, table
from coldq._values import Array, whole_number
from coldq.experiments.rates.growth import Growth, claimed, growth, verdict
from coldq.experiments.rates.settings import (
    CONVEX,
    DYNAMIC,
    GRID,
    INTERRUPTED,
    QUEUE_LEARNERS,
    SMALL,
    STATIC,
    STRONG,
    VIOLATION,
    Column,
    columns,
)
from coldq.experiments.rates.store import Task, run_missing, stored, tasks
from coldq.files import require_writable, whole_file
from coldq.learners.card import Claim, Largest, Rate

HORIZONS, SEEDS = (256, 1024, 4096, 16384, 65536), 12
QUICK_HORIZONS, QUICK_SEEDS = (64, 256, 1024, 4096), 4
MEGABYTES = 20.0
VERDICTS = ("within", "better", "worse")
FROZEN = "COLDQ, Q frozen"
TABLES = {
    "time-varying": "Table 1: time-varying constraints",
    "fixed": "Table 2: fixed constraints",
}


@dataclass(frozen=True, eq=False)
class Cell:
    """One measure of one learner at one (V_x, V_g): totals (T, S), growth, claim and verdict."""

    column: Column
    measure: str
    path_exponent: float
    variation_exponent: float
    horizons: tuple[int, ...]
    totals: Array
    grown: Growth
    rate: Rate | Largest

    @property
    def constraints(self) -> str:
        """ "fixed" or "time-varying"."""
        return "time-varying" if self.variation_exponent > 0.0 else "fixed"

    @property
    def claim(self) -> float:
        """The claimed rate's own slope on these horizons."""
        vx, vg = self.path_exponent, self.variation_exponent
        return claimed(self.rate, self.horizons, vx, vg)

    @property
    def verdict(self) -> str:
        """ "within", "better" or "worse"."""
        return verdict(self.grown, self.claim)


def cells(out: Path, horizons: Sequence[int], n_seeds: int) -> list[Cell]:
    """Every measure that has a claim, from the stored runs."""
    found = []
    for column in columns():
        for vx in column.path_exponents:
            runs: list[Any] = [stored(out, Task(column.key, vx, T, n_seeds)) for T in horizons]
            for i, vg in enumerate(column.variation_exponents):
                constraints = "time-varying" if vg > 0.0 else "fixed"
                for measure, rate in _claims(column, constraints, vx):
                    name = "violation" if measure == VIOLATION else "regret"
                    totals = np.array([run[name][i] for run in runs])
                    grown = growth(horizons, totals)
                    found.append(
                        Cell(column, measure, vx, vg, tuple(horizons), totals, grown, rate)
                    )
    return found


def _claims(column: Column, constraints: str, vx: float) -> Iterator[tuple[str, Rate | Largest]]:
    """What is claimed of a column: static regret where x* does not move, dynamic everywhere."""
    claim = _claim(column, constraints)
    if claim is None:
        return
    if vx == 0.0 and STATIC in column.measures and claim.static_regret is not None:
        yield STATIC, claim.static_regret
    if DYNAMIC in column.measures and claim.dynamic_regret is not None:
        yield DYNAMIC, claim.dynamic_regret
    if VIOLATION in column.measures and claim.violation is not None:
        yield VIOLATION, claim.violation


def _claim(column: Column, constraints: str) -> Claim | None:
    for claim in column.claimant.card.claims:
        if (claim.losses, claim.constraints) == (column.losses, constraints):
            return claim
    return None


def measure_tables(
    out: Path | str,
    *,
    quick: bool = False,
    horizons: Sequence[int] | None = None,
    n_seeds: int | None = None,
    processes: int = 2,
) -> list[Cell]:
    """Run what is missing, print both tables, and write tables, pictures and numbers to `out`.

    Parameters
    ----------
    out
        A folder. Runs are stored in it one by one, so that an interrupted run resumes.
    quick
        Short horizons and few seeds: a look, not a measurement.
    horizons, n_seeds, processes
        A geometric range of horizons, how many seeds, and how many processes share the work.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from coldq.experiments.reproduce import require_report

    horizons = tuple(horizons or (QUICK_HORIZONS if quick else HORIZONS))
    n_seeds = whole_number("n_seeds", n_seeds or (QUICK_SEEDS if quick else SEEDS), 2)
    out, shown = Path(out), console()
    require_report()
    require_writable(out, MEGABYTES)
    whole = tasks(horizons, n_seeds)
    bar = Progress(
        TextColumn("slots"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=Console(stderr=True), transient=True, disable=not shown.is_terminal,
    )  # fmt: skip
    with bar:
        slots = bar.add_task("slots", total=sum(task.horizon for task in whole))
        run_missing(out, whole, processes, lambda task: bar.advance(slots, task.horizon))
    from coldq.report import write_rates_page

    found = cells(out, horizons, n_seeds)
    for line in report(found, out, horizons, n_seeds):
        shown.print(line)
    write(found, out)
    write_rates_page(found, difference_lines(found, out, horizons, n_seeds), out / "index.html")
    return found


def report(found: list[Cell], out: Path, horizons: Sequence[int], n_seeds: int) -> Iterator[Any]:
    """What is printed: both tables, the grid of COLDQ's columns, and what makes the difference."""
    for constraints, title in TABLES.items():
        chosen = [cell for cell in found if cell.constraints == constraints]
        yield _table(chosen, f"\n{title}")
    yield (
        f"T = {horizons[0]:,} to {horizons[-1]:,}, {n_seeds} seeds. Exponents of T, fitted on the "
        "upper half, as their range over V_x and V_g. Cells are within the claim, better or worse "
        "by a 95% interval over seeds and a margin of 0.05.\n"
        "* COLDQ's claim, which nobody made for this variant.\n"
    )
    yield _grid(found)
    yield "\n".join(difference_lines(found, out, horizons, n_seeds))


def difference_lines(
    found: list[Cell], out: Path, horizons: Sequence[int], n_seeds: int
) -> list[str]:
    """What makes the difference: knowledge, the algorithm, the queue."""
    return [*differences(found), *queue_matters(out, horizons, n_seeds).splitlines()]


def _table(chosen: list[Cell], title: str) -> Any:
    rows = table(title, ("algorithm", "measure", "claimed", "measured"), VERDICTS)
    above: tuple[str, str] = ("", "")
    for losses, column, measure, group in grouped(chosen):
        if losses != above[0]:
            rows.add_row(f"[italic]{losses}")
        rate = str(group[0].rate) + ("" if column.own else " *")
        name = column.title if (losses, column.title) != above else ""
        rows.add_row(name, measure, rate, measured(group), *counted(group))
        above = (losses, column.title)
    return rows


def grouped(chosen: list[Cell]) -> Iterator[tuple[str, Column, str, list[Cell]]]:
    """The cells of each kind of loss, column and measure, in the order of the tables."""
    for losses in (CONVEX, STRONG):
        for column in (each for each in columns() if each.losses == losses):
            for measure in (STATIC, DYNAMIC, VIOLATION):
                group = [c for c in chosen if c.column.key == column.key and c.measure == measure]
                if group:
                    yield losses, column, measure, group


def measured(group: list[Cell]) -> str:
    """The range of the exponents of several cells, and names where there are none."""
    kinds = {c.grown.kind for c in group}
    if len(kinds) == 1 and kinds != {"power"}:
        return kinds.pop()
    slopes = [c.grown.slope for c in group if np.isfinite(c.grown.slope)]
    names = sorted(kinds & {"zero", "not positive"})
    if slopes:
        low, high = f"{min(slopes):.2f}", f"{max(slopes):.2f}"
        names.insert(0, low if low == high else f"{low} to {high}")
    return ", ".join(names)


def counted(group: list[Cell]) -> list[str]:
    """How many cells are within the claim, better and worse."""
    verdicts = [cell.verdict for cell in group]
    return [str(verdicts.count(kind) or "") for kind in VERDICTS]


def _grid(found: list[Cell]) -> Any:
    rows = table(
        "Convex losses, cell by cell: measured exponent / claim",
        ("measure", "V_x", *(f"V_g = {vg:g}" for vg in GRID)),
    )
    for title in ("COLDQ told V_x", "COLDQ-Expert"):
        rows.add_row(f"[italic]{title}")
        for measure in (DYNAMIC, VIOLATION):
            for vx in GRID:
                row = [
                    c for c in found
                    if (c.column.title, c.column.losses, c.measure, c.path_exponent)
                    == (title, CONVEX, measure, vx)
                ]  # fmt: skip
                rows.add_row(measure if vx == 0.0 else "", f"{vx:g}", *map(_shown, row))
    return rows


def _shown(cell: Cell) -> str:
    grown = f"{cell.grown.slope:.2f}" if np.isfinite(cell.grown.slope) else cell.grown.kind
    return f"{grown} / {cell.claim:.2f}"


def differences(found: list[Cell]) -> Iterator[str]:
    """Which difference is knowledge of V_x, and which is the algorithm."""

    def slopes(title: str) -> dict[tuple[float, float], float]:
        return {
            (c.path_exponent, c.variation_exponent): c.grown.slope
            for c in found
            if (c.column.title, c.column.losses, c.measure) == (title, CONVEX, DYNAMIC)
        }

    def apart(one: str, other: str) -> str:
        a, b = slopes(one), slopes(other)
        gaps = [a[cell] - b[cell] for cell in a if cell in b and cell[0] > 0.0]
        return f"{np.mean(gaps):+.2f} ({min(gaps):+.2f} to {max(gaps):+.2f})"

    told, untold, same = "COLDQ told V_x", "COLDQ not told", "RECOO, same alpha"
    yield "Exponents of dynamic regret where V_x > 0, convex losses. Knowledge of V_x:"
    yield f"  COLDQ told it, less COLDQ not told: {apart(told, untold)}"
    yield f"  RECOO with COLDQ's alpha_t, less RECOO as published: {apart(same, 'RECOO')}"
    yield "The algorithm, with the same knowledge:"
    yield f"  COLDQ told V_x, less RECOO with its alpha_t: {apart(told, same)}"
    yield f"  COLDQ not told, less RECOO as published: {apart(untold, 'RECOO')}"
    yield f"  COLDQ-Expert, told nothing, less COLDQ told V_x: {apart('COLDQ-Expert', told)}"
    yield f"  COLDQ told V_x, less the same with its queue frozen: {apart(told, FROZEN)}"


def queue_matters(out: Path, horizons: Sequence[int], n_seeds: int) -> str:
    """The setting with a low floor and interrupted slots, in words."""
    grown = {}
    for name in QUEUE_LEARNERS:
        runs: list[Any] = [stored(out, Task(f"queue {name}", 0.0, T, n_seeds)) for T in horizons]
        totals = np.array([run["violation"][0] for run in runs])
        last = f"{totals[-1].mean():,.1f} at T = {horizons[-1]:,}"
        grown[name] = f"{growth(horizons, totals)}, {last}"
    return (
        f"Where the queue matters (epsilon = {SMALL:g}, {100 * INTERRUPTED:g}% of slots without a "
        "feasible decision), the violation of all other slots:\n"
        f"  COLDQ: {grown['COLDQ']}\n"
        f"  with its queue frozen: {grown['queue frozen']}"
    )


def write(found: list[Cell], out: Path) -> None:
    """rates.csv and rates.json with every cell."""
    rows = [
        {
            "algorithm": c.column.title,
            "losses": c.column.losses,
            "constraints": c.constraints,
            "measure": c.measure,
            "V_x": c.path_exponent,
            "V_g": c.variation_exponent,
            "claimed": str(c.rate),
            "claim_is_own": c.column.own,
            "claimed_slope": c.claim,
            "growth": c.grown.kind,
            "slope": c.grown.slope,
            "low": c.grown.low,
            "high": c.grown.high,
            "verdict": c.verdict,
        }
        for c in found
    ]
    with whole_file(out / "rates.csv") as path, path.open("w", newline="") as file:
        sheet = csv.DictWriter(file, list(rows[0]))
        sheet.writeheader()
        sheet.writerows(rows)
    for row, c in zip(rows, found, strict=True):
        row |= {"horizons": c.horizons, "mean_totals": c.totals.mean(axis=1).tolist()}
        row |= {key: None for key in ("slope", "low", "high") if np.isnan(row[key])}
    with whole_file(out / "rates.json") as path:
        path.write_text(json.dumps(rows, indent=1))
