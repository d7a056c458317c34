"""``coldq sweep``: show the plan, run what is missing, and say what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coldq.base.arrays import whole_number
from coldq.base.errors import InvalidInput
from coldq.base.files import require_writable
from coldq.base.system import cores
from coldq.cli.needs import RESULT_MEGABYTES, require_report
from coldq.cli.tables import console, table
from coldq.cli.terminal import FULL_TABLE_COLUMNS, progress
from coldq.evaluation.intervals import duration
from coldq.evaluation.report.numbers import percentage
from coldq.evaluation.sweeps.answers import Answers, answers
from coldq.evaluation.sweeps.config import read_config
from coldq.evaluation.sweeps.plan import Plan, estimate
from coldq.evaluation.sweeps.sweep import run_missing
from coldq.evaluation.sweeps.table import read
from coldq.evaluation.sweeps.task import Task
from coldq.evaluation.tasks.store import Store

SHOWN_FAILURES = 3  # failures whose sentence is printed


def show_plan(config: Path, out: Path, workers: int | None = None) -> None:
    """Print what would be run, and about how long it would take."""
    plan = Plan(read_config(config, {}))
    workers = cores() if workers is None else whole_number("workers", workers, 1)
    expected = estimate(plan)
    rows = table(
        f"{plan.config.title}: {plan.runs:,} runs in {len(plan.tasks):,} tasks",
        ("problem", "learner"),
        ("T", "parameters", "seeds", "tasks", "one core"),
    )
    for played in plan.config.problems:
        counts = Counter(player.title for player in plan.players(played))
        for label, count in counts.items():
            batches, took = plan.batches(played), expected.seconds[played.title, label]
            rows.add_row(
                played.title, label, f"{played.problem.horizon:,}", f"{count:,}",
                f"{sum(map(len, batches)):,}", f"{count * len(batches):,}",
                took if isinstance(took, str) else duration(took),
            )  # fmt: skip
    _say(rows)
    there = len(plan.tasks) - len(Store(out).missing(plan.tasks, retry_failed=True))
    _say(
        f"\nAbout {duration(expected.on(1))} on one core, {duration(expected.on(workers))} on "
        f"{workers} workers, from a look at each pair and the start of a process "
        f"({duration(expected.start)}, for the first and for its workers). {there:,} of "
        f"{len(plan.tasks):,} tasks lie in {out} already."
    )


def run_sweep(
    config: Path,
    out: Path,
    *,
    workers: int | None = None,
    dask: str | None = None,
    ray: str | None = None,
    retry_failed: bool = False,
    budget: float | None = None,
) -> int:
    """Run what is missing with a progress bar, and say what came of it; how many tasks failed."""
    workers = cores() if workers is dask is ray is None else workers
    plan, store = (
        Plan(read_config(config, {} if budget is None else {"budget": budget})),
        Store(out),
    )
    require_writable(out, RESULT_MEGABYTES)
    ran, errors = 0, 0
    with progress(plan.runs, "runs") as bar:

        def heard(task: Task, error: str | None) -> None:
            nonlocal ran, errors
            ran, errors = ran + 1, errors + (error is not None)
            bar(f"runs, {errors} tasks failed" if errors else "runs", len(task.seeds))

        def begun(missing: list[Task]) -> None:
            bar("runs", plan.runs - sum(len(task.seeds) for task in missing))

        run_missing(
            plan, out, workers, dask, ray, retry_failed=retry_failed, done=heard, begun=begun
        )
    failed = [why for task in plan.tasks if (why := store.why(task.key)) is not None]
    _say(
        f"{plan.runs:,} runs in {len(plan.tasks):,} tasks: {ran:,} tasks were run now, "
        f"{len(plan.tasks) - ran:,} were there; {len(failed):,} failed."
    )
    for why in failed[:SHOWN_FAILURES]:
        _say(f"{why['learner']} {why['parameters']} on {why['problem']}: {why['error']}")
    if failed:
        _say(f"Their tracebacks lie in {store.failed}; --retry-failed runs them again.")
    return len(failed)


def report_sweep(folder: Path | None, out: Path | None = None, budget: float | None = None) -> Path:
    """Write the page of a sweep and print what it says; where that is."""
    if folder is None:
        raise InvalidInput("coldq sweep report needs the folder of a sweep's results")
    sweep = read(folder)
    page = (folder if out is None else out) / "sweep.html"
    require_report(page)
    from coldq.evaluation.report.sweeps import write_sweep_page

    answered = answers(sweep, budget)
    try:
        write_sweep_page(sweep, answered, page)
    finally:  # whether it can be written or not
        for one in answered:
            for part in _parts(one):
                _say(part)
        if sweep.failures:
            _say(f"{len(sweep.failures):,} tasks failed; the page names them.")
        if sweep.missing:
            _say(
                f"Tasks that are not done yet: {sweep.missing:,}. So this is about a part of the "
                "sweep; the same coldq sweep goes on with them."
            )
    return page


def _say(part: Any) -> None:
    console().print(part, highlight=False)


def _parts(one: Answers) -> Iterator[Any]:
    """The front of a problem, what is recommended, and who is tuned to equal loss.

    A narrow terminal has no room for the ranks: these are left to the page.
    """
    shown = 4 if console().width < FULL_TABLE_COLUMNS else 6
    headings = (
        "loss", "hard\nviolation", "dynamic\nregret", "static\nregret", "rank\nby loss",
        "rank by\nviolation",
    )  # fmt: skip
    rows = table(
        f"{one.problem}, T = {one.horizon:,}, {len(one.seeds)} seeds: the Pareto front of "
        f"{len(one.settings)} settings",
        ("learner", "parameters"),
        headings[:shown],
    )
    for k in one.front:
        setting = one.settings[k]
        cells = [*setting.measures, *(f"{rank[0]:.1f}" for rank in one.ranks[:, k])]
        rows.add_row(setting.learner, setting.words, *cells[:shown])
    yield rows
    yield ""
    yield from one.notes
    yield one.recommendation()
    target = one.settings[one.reference].name
    for k, loss, violation, as_low in one.tuned():
        setting, apart = one.settings[k], f"{percentage(loss)}, violation {percentage(violation)}"
        if as_low:
            yield f"{setting.name}, tuned to the loss of {target}: loss {apart}."
        else:
            yield (
                f"No setting of {setting.learner} has as low a loss as {target}; the nearest is "
                f"{setting.name}: loss {apart}."
            )
    for each in one.sensitivities():
        yield (
            f"{each.learner}'s {each.parameter} explains {100 * each.explains[0]:.0f}% of the "
            f"variation of its loss and {100 * each.explains[1]:.0f}% of its violation's."
        )
    yield ""
