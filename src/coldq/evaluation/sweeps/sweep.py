"""Run what is missing of a sweep."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any

from coldq.base.arrays import flag
from coldq.base.errors import FailedTasks, InvalidInput, warn
from coldq.evaluation.sweeps.config import read_config
from coldq.evaluation.sweeps.plan import Plan
from coldq.evaluation.sweeps.table import Sweep, read, write_index
from coldq.evaluation.sweeps.task import Task, run
from coldq.evaluation.tasks.executors import executor_of
from coldq.evaluation.tasks.store import DoneCallback, Store, complete


def sweep(
    config: str | PathLike[str] | Mapping[str, Any] | None = None,
    *,
    out: str | PathLike[str] | None = None,
    workers: int | Executor | None = None,
    dask: str | None = None,
    ray: str | None = None,
    retry_failed: bool = False,
    done: DoneCallback = lambda task, error: None,
    **keys: Any,
) -> Sweep:
    """Run every learner with every combination of parameters on every problem, all seeds.

    Parameters
    ----------
    config
        The path of a TOML file, or its keys; see docs/sweeps.md. Keys may also be given as further
        arguments, and go before: `problems` and `learners`, `seeds`, `seeds_a_task`, `title`,
        `budget`. Problems, learners and values of their parameters may be objects of Python:
        classes, functions of your own modules, and whatever can be described.
    out
        A folder for the results, one file a task; what lies there is not run again. Without it
        nothing is kept but the table.
    workers
        How many processes of this machine share the tasks, or any executor of
        ``concurrent.futures``. By default this process does them, or a fresh one where there are
        modules of your own, so that their files run as they are now.
    dask, ray
        The address of a cluster that does them instead; "local" lets Dask start processes here.
    retry_failed
        Whether tasks that failed before are tried again.
    done
        Hears of each task and, if it failed, why.

    Returns
    -------
    Sweep
        A table with a row a run. It is the same, bit for bit, whoever did the tasks. Where some
        failed, there is a :class:`~coldq.FailedTasks` warning.

    >>> import coldq
    >>> table = coldq.sweep(
    ...     problems=[coldq.problems.TimeVarying(horizon=50)], learners=["COLDQ", "RECOO"], seeds=4
    ... )
    >>> table
    Sweep(8 runs)
    >>> table.to_pandas().columns.tolist()[:4]
    ['problem', 'learner', 'seed', 'horizon']
    """
    plan, retry_failed = Plan(read_config(config, keys)), flag("retry_failed", retry_failed)
    if not callable(done):
        raise InvalidInput(f"done must be a function that hears of tasks, but is {done!r:.200}")
    with tempfile.TemporaryDirectory() if out is None else nullcontext(out) as folder:
        run_missing(plan, Path(folder), workers, dask, ray, retry_failed=retry_failed, done=done)
        table = read(Path(folder))
    if table.failures:
        first = table.failures[0]
        warn(
            f"the table lacks the runs of tasks that failed ({len(table.failures):,}, which "
            f"`failures` names): {first['learner']} {first['parameters']} on {first['problem']}: "
            f"{first['error']}",
            FailedTasks,
        )
    return table


def run_missing(
    plan: Plan,
    out: Path,
    workers: int | Executor | None = None,
    dask: str | None = None,
    ray: str | None = None,
    *,
    retry_failed: bool = False,
    done: DoneCallback = lambda task, error: None,
    begun: Callable[[list[Task]], None] = lambda missing: None,
) -> None:
    """Run what is missing, and keep each result as it comes; `begun` hears first what that is."""
    if workers is dask is ray is None and plan.config.own:
        workers = 1
    store = Store(out)

    def indexed(missing: list[Task]) -> None:
        write_index(store, plan)
        begun(missing)

    complete(
        store, plan.longest_first, run, executor_of(workers, dask, ray),
        retry_failed=retry_failed, done=done, begun=indexed,
    )  # fmt: skip
