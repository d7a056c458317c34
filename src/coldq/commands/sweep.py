"""``coldq sweep``: show the plan, run what is missing, and say what failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from coldq._system import cores
from coldq._tables import console, table
from coldq.commands.needs import MEGABYTES, require_report
from coldq.errors import InvalidInput
from coldq.experiments.comparison import MET_OTHERS
from coldq.experiments.intervals import duration, with_interval
from coldq.files import require_writable
from coldq.report.numbers import percentage
from coldq.report.terminal import progress
from coldq.sweeps.answers import Answers, answers
from coldq.sweeps.config import asked
from coldq.sweeps.plan import Plan, estimate
from coldq.sweeps.sweep import missing_of, run_missing
from coldq.sweeps.table import read
from coldq.sweeps.task import Task
from coldq.tasks.engines import engine_of
from coldq.tasks.store import Store

NAMED = 3  # failures whose sentence is printed


def show_plan(config: Path, out: Path, workers: int | None = None) -> None:
    """Print what would be run, and about how long it would take."""
    plan, shown = Plan(asked(config, {})), console()
    engine_of(workers)
    seconds, workers = estimate(plan), workers or cores()
    rows = table(
        f"{plan.asked.title}: {plan.runs:,} runs in {len(plan.tasks):,} tasks",
        ("problem", "learner"),
        ("T", "parameters", "seeds", "tasks", "one core"),
    )
    for played in plan.asked.problems:
        for label in dict.fromkeys(player.label for player in plan.asked.learners):
            count = sum(player.label == label for player in plan.asked.learners)
            batches, took = plan.batches(played), seconds[played.title, label]
            rows.add_row(
                played.title, label, f"{played.problem.horizon:,}", f"{count:,}",
                f"{sum(map(len, batches)):,}", f"{count * len(batches):,}",
                took if isinstance(took, str) else duration(took),
            )  # fmt: skip
    shown.print(rows)
    store = Store(out)
    there = len(plan.tasks) - len(missing_of(plan, store, retry_failed=True))
    whole = sum(took for took in seconds.values() if isinstance(took, float))
    shown.print(
        f"\nAbout {duration(whole)} on one core, {duration(whole / workers)} on {workers} workers, "
        f"from a look at each pair. {there:,} of {len(plan.tasks):,} tasks lie in {out} already.",
        highlight=False,
    )


def run_sweep(
    config: Path,
    out: Path,
    *,
    workers: int | None = None,
    dask: str | None = None,
    ray: str | None = None,
    retry_failed: bool = False,
) -> int:
    """Run what is missing with a progress bar, and say what came of it; how many tasks failed."""
    alone = workers is None and dask is None and ray is None
    engine = engine_of(cores() if alone else workers, dask, ray)
    plan, shown = Plan(asked(config, {})), console()
    require_writable(out, MEGABYTES)
    store = Store(out)
    with _bar(plan) as heard:
        known = {task.key for task in missing_of(plan, store, retry_failed)}
        for task in plan.tasks:
            if task.key not in known:
                heard(task, None)
        run_missing(plan, out, engine, retry_failed=retry_failed, done=heard)
    failed = [why for task in plan.tasks if (why := store.why(task.key)) is not None]
    shown.print(
        f"{plan.runs:,} runs in {len(plan.tasks):,} tasks: {len(known):,} tasks were run now, "
        f"{len(plan.tasks) - len(known):,} were there; {len(failed):,} failed.",
        highlight=False,
    )
    for why in failed[:NAMED]:
        shown.print(
            f"{why['learner']} {why['parameters']} on {why['problem']}: {why['error']}",
            highlight=False,
        )
    if failed:
        shown.print(
            f"Their tracebacks lie in {store.failed}; --retry-failed runs them again.",
            highlight=False,
        )
    return len(failed)


def report_sweep(folder: Path | None, out: Path | None = None) -> Path:
    """Write the page of a sweep and print what it says; where that is."""
    if folder is None:
        raise InvalidInput("coldq sweep report needs the folder of a sweep's results")
    found = read(folder)
    page = (folder if out is None else out) / "sweep.html"
    require_report(page)
    from coldq.report.sweeps import write_sweep_page

    said, shown = answers(found), console()
    try:
        write_sweep_page(found, said, page)
    finally:  # whether it can be written or not
        for one in said:
            for part in _tables(one):
                shown.print(part, highlight=False)
        if found.failures:
            shown.print(f"{len(found.failures):,} tasks failed; the page names them.")
        if found.missing:
            shown.print(
                f"Tasks that are not done yet: {found.missing:,}. So this is about a part of the "
                "sweep; the same coldq sweep goes on with them.",
                highlight=False,
            )
    return page


def _tables(one: Answers) -> Iterator[Any]:
    """The front of a problem, who is tuned to equal loss, and what is recommended."""
    rows = table(
        f"{one.problem}, T = {one.horizon:,}, {len(one.seeds)} seeds: the Pareto front of "
        f"{len(one.settings)} settings",
        ("learner", "parameters"),
        ("loss", "hard\nviolation", "rank\nby loss", "rank by\nviolation"),
    )
    for k in one.front:
        setting = one.settings[k]
        rows.add_row(
            setting.learner, setting.words, with_interval(setting.loss),
            with_interval(setting.violation), *(f"{rank[0]:.1f}" for rank in one.ranks[:, k]),
        )  # fmt: skip
    yield rows
    yield ""
    if one.adaptive:
        yield MET_OTHERS
    sure = "" if len(one.seeds) < 2 else f" ({100 * one.chosen_again:.0f}% of samples of seeds)"
    yield f"Recommended, the knee of the front: {one.settings[one.recommended].name}{sure}."
    target = one.settings[one.reference].name
    for k, loss, violation, as_low in one.tuned():
        name, apart = (
            one.settings[k].name,
            f"loss {percentage(loss)}, violation {percentage(violation)}",
        )
        if as_low:
            yield f"{name}, tuned to the loss of {target}: {apart}."
        else:
            yield (
                f"No setting of {one.settings[k].learner} has as low a loss as {target}; the "
                f"nearest is {name}: {apart}."
            )
    for each in one.sensitivities():
        yield (
            f"{each.learner}'s {each.parameter} explains {100 * each.explains[0]:.0f}% of the "
            f"variation of its loss and {100 * each.explains[1]:.0f}% of its violation's."
        )
    yield ""


@contextmanager
def _bar(plan: Plan) -> Iterator[Callable[[Task, str | None], None]]:
    """One bar for all runs, with the failed tasks counted; silent where nobody watches."""
    failed = 0
    with progress(plan.runs, "runs") as done:

        def heard(task: Task, error: str | None) -> None:
            nonlocal failed
            failed += error is not None
            done(f"runs, {failed} tasks failed" if failed else "runs", len(task.seeds))

        yield heard
