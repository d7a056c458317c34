"""What a reproduction shows on the terminal: its progress, then its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from coldq.base.notebook import no_bars
from coldq.cli.tables import console, table
from coldq.evaluation.intervals import with_interval
from coldq.paper.claims import FAILS, HOLDS, IN_PART
from coldq.paper.figures import Setting
from coldq.paper.rates.settings import CONVEX, DYNAMIC, GRID, VIOLATION
from coldq.paper.rates.tables import TABLES, VERDICTS, Cell, counted, grouped, measured
from coldq.paper.reproduce import Reproduction
from coldq.paper.runs import FigureRuns

if TYPE_CHECKING:
    from rich.table import Table

    from coldq.evaluation.comparison import Comparison
    from coldq.evaluation.disturbed import Outcome

FULL_TABLE_COLUMNS = 100  # columns: where there are fewer, times are left to the page and the files
OUTCOME_STYLES = {HOLDS: "green", IN_PART: "yellow", FAILS: "red"}


@contextmanager
def progress(total: int, begun: str = "the first of them") -> Iterator[Callable[..., None]]:
    """A bar of `total` runs that hears what is done, and of how many; silent where nobody watches.

    `begun` stands there before anything is.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    watched = Console(stderr=True)
    said = TextColumn("{task.description}", markup=False)  # it may have a name that a user gave
    columns = (MofNCompleteColumn(), BarColumn(), Remaining(), said)
    shown = Progress(*columns, console=watched, transient=True, disable=not watched.is_terminal)
    with shown as bar, no_bars():
        task = bar.add_task(begun, total=total)
        yield lambda what, count=1: bar.update(task, advance=count, description=what)


def print_results(result: Reproduction) -> None:
    """One table a figure, the verdicts, and how long it took."""
    shown = console()
    for runs in result.figures:
        for setting in runs.figure.settings:
            shown.print(_setting_table(runs, setting))
            shown.print()
    shown.print(
        "Means ± 95% over seeds. Q > gamma: COLDQ's queue is above its floor. "
        "A slot: one seed alone, problem included."
    )
    shown.print()
    shown.print(_claims_table(result))
    shown.print()
    shown.print(time_sentence(result))


def _setting_table(runs: FigureRuns, setting: Setting) -> Table:
    figure, own = runs.figure, runs.of(setting)
    horizon, seeds = own[0].trace.horizon, len(own[0].trace.seeds)
    headings = (figure.loss_label, figure.violation_label, "slots with Q > gamma", "a slot")
    rows = table(
        f"Figure {figure.number}. {figure.title}: {setting.title}\n"
        f"T = {horizon}, {seeds} seed{'s' if seeds != 1 else ''}",
        ("learner",),
        ("\n".join(heading.rsplit(" ", 1)) for heading in headings),
    )
    slots = horizon + 1.0 if figure.averaged else 1.0
    for run in own:
        moved, alone = run.above_floor, runs.seconds_per_slot.get(run.entry.label)
        rows.add_row(
            run.entry.label,
            with_interval(run.loss / slots),
            with_interval(run.violation / slots),
            "" if moved is None else with_interval(moved.astype(float)),
            "" if alone is None else f"{1e6 * alone:.0f} µs",
        )
    return rows


def _claims_table(result: Reproduction) -> Table:
    from rich.text import Text

    rows = table("The paper's claims", ("figure", "claim", "verdict"))
    numbers = {runs.figure.key: runs.figure.number for runs in result.figures}
    for verdict in result.verdicts:
        lines = [f"{verdict.claim} ({verdict.where})", *(f"  {q}" for q in verdict.quantities)]
        outcome = Text(verdict.outcome, style=OUTCOME_STYLES[verdict.outcome])
        rows.add_row(str(numbers[verdict.figure]), Text("\n".join(lines)), outcome)
    return rows


def print_comparison(comparison: Comparison) -> None:
    """Learners side by side, those tuned in hindsight in a table of their own, and what to know."""
    shown = console()
    rate = "" if comparison.rate is None else f", at most {100 * comparison.rate:g}% of slots"
    titles = (comparison.title + rate, f"{comparison.title}{rate}: tuned in hindsight")
    headings = [heading.replace(" ", "\n", 1) for heading in comparison.headings[1:]]
    count = len(comparison.headings) - (2 if shown.width < FULL_TABLE_COLUMNS else 0)
    for title, cells in zip(titles, (comparison.cells(False), comparison.cells(True)), strict=True):
        rows = table(title, ("learner",), headings[: count - 1])
        for row in cells:
            rows.add_row(*row[:count])
        if cells:
            shown.print(rows)
            shown.print()
    for sentence in comparison.sentences:
        shown.print(sentence, highlight=False)


def print_overall(comparisons: Sequence[Comparison]) -> None:
    """The geometric mean over problems and rates, if there are several with rivals."""
    held = [one for one in comparisons if one.rivalry is not None]
    if len(held) < 2:
        return
    from coldq.evaluation.comparison import overall

    ratio, low, high = overall(held)
    console().print(
        f"Over {len(held)} problems and rates SelfTuning's loss is {ratio:.4f} "
        f"[{low:.4f}, {high:.4f}] times the best rival's at its own share, in geometric mean."
    )


def print_disturbed(outcomes: Sequence[Outcome]) -> None:
    """What late, lost and doubled feedback costs, beside the undisturbed run."""
    shown = console()
    for problem in dict.fromkeys(one.problem for one in outcomes):
        rows = table(
            problem,
            ("learner", "feedback"),
            (
                "loss",
                "against\nundisturbed",
                "violation\nin all",
                "slots\nviolated",
                "rounds\nskipped",
            ),
        )
        calm = 0.0
        for one in (one for one in outcomes if one.problem == problem):
            words = one.disturbance.words
            calm = one.loss if words == "undisturbed" else calm
            rows.add_row(
                one.learner if words == "undisturbed" else "",
                words,
                f"{one.loss:,.6g}",
                f"{100 * (one.loss - calm) / abs(calm):+.2f}%",
                f"{one.violation:,.5g}",
                f"{100 * one.share:.1f}%",
                f"{one.skipped:,.0f}",
            )
        shown.print(rows)
        shown.print()


def time_sentence(result: Reproduction) -> str:
    """How long the runs took, and how long they would take through CVXPY."""
    spent = f"{result.seconds:.0f} s for all runs"
    if result.stepping is None:
        return f"{spent}; CVXPY is not installed, so its time is not estimated."
    stepping = result.stepping
    return (
        f"{spent}. The same {stepping.steps:,} steps through CVXPY would take about "
        f"{stepping.seconds / 3600.0:.1f} hours, {stepping.seconds / stepping.ours:,.0f} times the "
        f"{stepping.ours:.0f} s that these runs took, estimated from steps measured here."
    )


def rate_tables(cells: list[Cell], differences: list[str]) -> Iterator[Any]:
    """Both measured tables, the grid of COLDQ's columns, and what makes the difference."""
    horizons, n_seeds = cells[0].horizons, cells[0].totals.shape[1]
    for constraints, title in TABLES.items():
        chosen = [cell for cell in cells if cell.constraints == constraints]
        yield _rates_table(chosen, f"\n{title}")
    yield (
        f"T = {horizons[0]:,} to {horizons[-1]:,}, {n_seeds} seeds. Exponents of T, fitted on the "
        "upper half, as their range over V_x and V_g. Cells are within the claim, better or worse "
        "by a 95% interval over seeds and a margin of 0.05.\n"
        "* COLDQ's claim, which nobody made for this variant.\n"
    )
    yield _rates_grid(cells)
    yield "\n".join(differences)


def _rates_table(chosen: list[Cell], title: str) -> Any:
    from rich.text import Text

    rows = table(title, ("algorithm", "measure", "claimed", "measured"), VERDICTS)
    above: tuple[str, str] = ("", "")
    for losses, column, measure, group in grouped(chosen):
        if losses != above[0]:
            rows.add_row(Text(losses, style="italic"))
        rate = str(group[0].rate) + ("" if column.own else " *")
        name = column.title if (losses, column.title) != above else ""
        rows.add_row(name, measure, rate, measured(group), *counted(group))
        above = (losses, column.title)
    return rows


def _rates_grid(cells: list[Cell]) -> Any:
    from rich.text import Text

    rows = table(
        "Convex losses, cell by cell: measured exponent / claim",
        ("measure", "V_x", *(f"V_g = {vg:g}" for vg in GRID)),
    )
    for title in ("COLDQ told V_x", "COLDQ-Expert"):
        rows.add_row(Text(title, style="italic"))
        for measure in (DYNAMIC, VIOLATION):
            for vx in GRID:
                row = [
                    c for c in cells
                    if (c.column.title, c.column.losses, c.measure, c.path_exponent)
                    == (title, CONVEX, measure, vx)
                ]  # fmt: skip
                rows.add_row(measure if vx == 0.0 else "", f"{vx:g}", *map(_shown, row))
    return rows


def _shown(cell: Cell) -> str:
    grown = f"{cell.grown.slope:.2f}" if np.isfinite(cell.grown.slope) else cell.grown.kind
    return f"{grown} / {cell.claim:.2f}"
