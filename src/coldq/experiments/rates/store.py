"""Run what is not stored yet, one small file a run, so that an interrupted run resumes."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coldq._values import Array
from coldq.errors import IgnoredFile, NotWritten, warn
from coldq.experiments.rates.settings import QUEUE_LEARNERS, Column, Interrupted, Row, columns
from coldq.files import whole_file
from coldq.metrics import accumulated_loss, hard_violation
from coldq.problems import Drifting
from coldq.simulate import simulate
from coldq.tasks.engines import here
from coldq.tasks.library import library_digest
from coldq.tasks.workers import share

FORMAT = 2  # of the stored files; another number is run again
QUEUE = "queue "  # what a task of QUEUE_LEARNERS begins with


@dataclass(frozen=True)
class Task:
    """One learner at one V_x and one horizon, for all V_g and seeds."""

    column: str
    path_exponent: float
    horizon: int
    n_seeds: int

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.column}_vx{self.path_exponent:g}_T{self.horizon}_seeds{self.n_seeds}.json"


def tasks(horizons: Sequence[int], n_seeds: int) -> list[Task]:
    """Everything to run, the longest first: then no worker is left alone with it at the end."""
    whole = [
        Task(column.key, vx, T, n_seeds)
        for column in columns()
        for vx in column.path_exponents
        for T in horizons
    ]
    whole += [Task(f"{QUEUE}{name}", 0.0, T, n_seeds) for name in QUEUE_LEARNERS for T in horizons]
    return sorted(whole, key=lambda task: -task.horizon)


def run_task(task: Task) -> dict[str, Any]:
    """Totals of regret and violation, one list of seeds for each V_g."""
    begun = time.perf_counter()
    regret, violation = (_run_queue if task.column.startswith(QUEUE) else _run_row)(task)
    return {
        "format": FORMAT,
        "library": library_digest(),
        "regret": regret.tolist(),
        "violation": violation.tolist(),
        "seconds": round(time.perf_counter() - begun, 3),
    }


def _column(task: Task) -> Column:
    return next(column for column in columns() if column.key == task.column)


def _run_row(task: Task) -> tuple[Array, Array]:
    column = _column(task)
    row = column.row(task.path_exponent, task.horizon, task.n_seeds)
    members = range(len(row.cells) * task.n_seeds)
    trace = simulate(column.build(row), row, members, progress=False)
    shape = len(row.cells), task.n_seeds
    # f_t(x*_t) = 0 in every slot, so that the loss is the dynamic regret.
    return accumulated_loss(trace).reshape(shape), hard_violation(trace).reshape(shape)


def _run_queue(task: Task) -> tuple[Array, Array]:
    """Violation of the slots in which there was a feasible decision; regret is undefined."""
    row = Row((Drifting(0.0, 0.0, horizon=task.horizon),), task.n_seeds)
    problem = Interrupted(row)
    learner = QUEUE_LEARNERS[task.column.removeprefix(QUEUE)](row)
    trace = simulate(learner, problem, range(task.n_seeds), progress=False)
    kept = np.where(problem.interruptions(), 0.0, trace.violation[..., 0])
    return np.full((1, task.n_seeds), np.nan), kept.sum(axis=1)[None]


def stored(out: Path, task: Task) -> dict[str, Any] | None:
    """What was stored of a task by this library, if it is whole; a file that is not is named."""
    path = out / "runs" / task.file
    try:
        found: Any = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        found = None
    if _is_whole(found, task):
        return found if found["library"] == library_digest() else None
    warn(f"{path} is not a whole run of this version, so it is run again", IgnoredFile)
    return None


def _is_whole(found: Any, task: Task) -> bool:
    """Whether this is what `run_task` gives for the task: finite totals for each V_g and seed."""
    queue = task.column.startswith(QUEUE)
    shape = 1 if queue else len(_column(task).variation_exponents), task.n_seeds
    try:
        totals = {name: np.array(found[name], float) for name in ("regret", "violation")}
        known = totals["violation"] if queue else np.stack(list(totals.values()))
        right = all(each.shape == shape for each in totals.values())
        ours = found["format"] == FORMAT and isinstance(found["library"], str)
        return right and ours and bool(np.isfinite(known).all())
    except (KeyError, TypeError, ValueError):
        return False


def store(out: Path, task: Task, result: dict[str, Any]) -> None:
    """Write a result in one go: a file is whole or not there."""
    with whole_file(out / "runs" / task.file) as temporary:
        temporary.write_text(json.dumps(result))


def run_missing(out: Path, whole: list[Task], processes: int, progress: Any) -> None:
    """Run what is not stored yet; `progress` is called with each task that is done."""
    missing = []
    for task in whole:
        if stored(out, task) is None:
            missing.append(task)
        else:
            progress(task)
    if not missing:
        return

    def keep(task: Task, result: dict[str, Any]) -> None:
        store(out, task, result)
        progress(task)

    if processes < 2:
        here(run_task, missing, keep)
    else:
        share(run_task, missing, processes, keep)
    lost = [task for task in missing if stored(out, task) is None]
    if lost:
        raise NotWritten(
            f"{len(lost):,} of {len(missing):,} runs are done, but {out / 'runs'} has no such run "
            f"of this coldq, the first of them {lost[0].file}: something removed them meanwhile, "
            "or changed coldq's own files. The same command runs them again"
        )
