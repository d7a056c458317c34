"""Run what is not stored yet, one small file a run, so that an interrupted run resumes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import coldq
from coldq._values import Array
from coldq.experiments.rates.settings import QUEUE_LEARNERS, Column, Interrupted, Row, columns
from coldq.files import whole_file
from coldq.metrics import accumulated_loss, hard_violation
from coldq.problems import Drifting
from coldq.simulate import simulate

FORMAT = 1  # of the stored files; another number is run again


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
    whole += [Task(f"queue {name}", 0.0, T, n_seeds) for name in QUEUE_LEARNERS for T in horizons]
    return sorted(whole, key=lambda task: -task.horizon)


def run_task(task: Task) -> dict[str, Any]:
    """Totals of regret and violation, one list of seeds for each V_g."""
    begun = time.perf_counter()
    if task.column.startswith("queue "):
        regret, violation = _run_queue(task)
    else:
        column = next(c for c in columns() if c.key == task.column)
        regret, violation = _run_row(column, task)
    return {
        "format": FORMAT,
        "version": coldq.__version__,
        "regret": regret.tolist(),
        "violation": violation.tolist(),
        "seconds": round(time.perf_counter() - begun, 3),
    }


def _run_row(column: Column, task: Task) -> tuple[Array, Array]:
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
    learner = QUEUE_LEARNERS[task.column.removeprefix("queue ")](row)
    trace = simulate(learner, problem, range(task.n_seeds), progress=False)
    kept = np.where(problem.interruptions(), 0.0, trace.violation[..., 0])
    return np.full((1, task.n_seeds), np.nan), kept.sum(axis=1)[None]


def stored(out: Path, task: Task) -> dict[str, Any] | None:
    """What was stored of a task, if it is whole and of this format."""
    try:
        found = json.loads((out / "runs" / task.file).read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("format") == FORMAT else None


def store(out: Path, task: Task, result: dict[str, Any]) -> None:
    """Write a result in one go: a file is whole or not there."""
    with whole_file(out / "runs" / task.file) as temporary:
        temporary.write_text(json.dumps(result))


def run_and_store(out: Path, task: Task) -> Task:
    """One task of a worker."""
    store(out, task, run_task(task))
    return task


def _one_thread() -> None:
    os.environ["COLDQ_THREADS"] = "1"


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
    coldq.warmup(everything=False)
    if processes < 2:
        for task in missing:
            progress(run_and_store(out, task))
        return
    # Fresh processes: a forked one would inherit threads that do not run in it.
    with ProcessPoolExecutor(processes, get_context("spawn"), _one_thread) as pool:
        futures = [pool.submit(run_and_store, out, task) for task in missing]
        try:
            for future in as_completed(futures):
                progress(future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
