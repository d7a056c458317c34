"""Run what is not stored yet, one small file a run, so that an interrupted run resumes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import NotReadable, WorkerLost
from coldq.evaluation.tasks.executors import executor_of
from coldq.evaluation.tasks.library import digest, library_digest
from coldq.evaluation.tasks.store import Store, complete
from coldq.paper.rates.settings import QUEUE_LEARNERS, Column, Interrupted, Row, columns
from coldq.problems import Drifting
from coldq.simulation.loop import simulate
from coldq.simulation.metrics import accumulated_loss, hard_violation

FILE_FORMAT = 3  # of the stored files
QUEUE_PREFIX = "queue "  # what a task of QUEUE_LEARNERS begins with


@dataclass(frozen=True)
class Task:
    """One learner at one V_x and one horizon, for all V_g and seeds."""

    column: str
    path_exponent: float
    horizon: int
    n_seeds: int

    @property
    def key(self) -> str:
        """A digest of all that determines its result."""
        return digest([FILE_FORMAT, library_digest(), self.about()])

    def about(self) -> dict[str, Any]:
        """What it is, in plain data."""
        return asdict(self)

    @property
    def shape(self) -> tuple[int, int]:
        """How many V_g it has, and how many seeds."""
        queue = self.column.startswith(QUEUE_PREFIX)
        return 1 if queue else len(_column(self).variation_exponents), self.n_seeds


def tasks(horizons: Sequence[int], n_seeds: int) -> list[Task]:
    """Everything to run, the longest first: then no worker is left alone with it at the end."""
    whole = [
        Task(column.key, vx, T, n_seeds)
        for column in columns()
        for vx in column.path_exponents
        for T in horizons
    ]
    whole += [
        Task(f"{QUEUE_PREFIX}{name}", 0.0, T, n_seeds) for name in QUEUE_LEARNERS for T in horizons
    ]
    return sorted(whole, key=lambda task: -task.horizon)


def run_task(task: Task) -> dict[str, Array]:
    """Totals of regret and violation, a row for each V_g and seed."""
    regret, violation = (_run_queue if task.column.startswith(QUEUE_PREFIX) else _run_row)(task)
    return {"regret": regret.ravel(), "violation": violation.ravel()}


def _column(task: Task) -> Column:
    return next(column for column in columns() if column.key == task.column)


def _run_row(task: Task) -> tuple[Array, Array]:
    row = _column(task).row(task.path_exponent, task.horizon, task.n_seeds)
    members = range(len(row.cells) * task.n_seeds)
    trace = simulate(_column(task).build(row), row, members, progress=False)
    # f_t(x*_t) = 0 in every slot, so that the loss is the dynamic regret.
    return accumulated_loss(trace), hard_violation(trace)


def _run_queue(task: Task) -> tuple[Array, Array]:
    """Violation of the slots in which there was a feasible decision; regret is undefined."""
    row = Row((Drifting(0.0, 0.0, horizon=task.horizon),), task.n_seeds)
    problem = Interrupted(row)
    learner = QUEUE_LEARNERS[task.column.removeprefix(QUEUE_PREFIX)](row)
    trace = simulate(learner, problem, range(task.n_seeds), progress=False)
    kept = np.where(problem.interruptions(), 0.0, trace.violation[..., 0])
    return np.full(task.n_seeds, np.nan), kept.sum(axis=1)


def store_of(out: Path) -> Store:
    """Where the runs of a report's folder are kept."""
    return Store(out / "rates")


def stored(out: Path, task: Task) -> dict[str, Array]:
    """Totals of regret and violation of a task that is done, of shape (V_g, seeds)."""
    store = store_of(out)
    table = store.table(task.key)
    try:
        return {
            name: table[name].to_numpy().astype(float).reshape(task.shape)
            for name in ("regret", "violation")
        }
    except (KeyError, ValueError) as error:
        raise NotReadable(
            f"{store.path(task.key)} is no run of coldq rates: remove it, and the same command "
            f"runs it again ({error})"
        ) from None


def run_missing(
    out: Path, whole: Sequence[Task], processes: int, done: Callable[[Task], None]
) -> None:
    """Run what is not stored yet; `done` is called with each task that is there."""
    store = store_of(out)

    def begun(missing: list[Task]) -> None:
        for task in set(whole).difference(missing):
            done(task)

    complete(
        store, whole, run_task, executor_of(processes if processes > 1 else None),
        retry_failed=True, done=lambda task, error: done(task), begun=begun,
    )  # fmt: skip
    failed = [(task, why) for task in whole if (why := store.why(task.key)) is not None]
    if failed:
        task, why = failed[0]
        raise WorkerLost(
            f"{len(failed):,} of {len(whole):,} runs failed, the first of them {task.about()}: "
            f"{why['error']}. Their tracebacks lie in {store.failed}, and the same command runs "
            "them again"
        )
