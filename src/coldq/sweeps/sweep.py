"""Run what is missing of a sweep."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from coldq._values import flag
from coldq.errors import FailedTasks, InvalidInput, NotWritten, warn
from coldq.sweeps.config import asked
from coldq.sweeps.plan import Plan
from coldq.sweeps.table import Sweep, read, write_index
from coldq.sweeps.task import Answer, Task, answer
from coldq.tasks.engines import Engine, engine_of, needed
from coldq.tasks.store import Store

INDEXED = 60.0  # seconds between two writings of the index

Heard = Callable[[Task, str | None], None]  # a task that is done, or why it failed


def sweep(
    config: str | PathLike[str] | Mapping[str, Any] | None = None,
    *,
    out: str | PathLike[str] | None = None,
    workers: int | None = None,
    dask: str | None = None,
    ray: str | None = None,
    retry_failed: bool = False,
    done: Heard = lambda task, error: None,
    **keys: Any,
) -> Sweep:
    """Run every learner with every combination of parameters on every problem, all seeds.

    Parameters
    ----------
    config
        The path of a TOML file, or its keys; see docs/sweeps.md. Keys may also be given as further
        arguments, and go before: `problems` and `learners`, `seeds`, `seeds_a_task`, `title`.
        Among the problems and learners there may be those of Python, if they can be described.
    out
        A folder for the results, one file a task; what lies there is not run again. Without it
        nothing is kept but the table.
    workers
        How many processes of this machine share the tasks; by default this one does them.
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
    >>> found = coldq.sweep(
    ...     problems=[coldq.problems.TimeVarying(horizon=50)], learners=["COLDQ", "RECOO"], seeds=4
    ... )
    >>> found
    Sweep(8 runs)
    >>> found.to_pandas().columns.tolist()[:4]
    ['problem', 'learner', 'seed', 'horizon']
    """
    engine, plan = engine_of(workers, dask, ray), Plan(asked(config, keys))
    retry_failed = flag("retry_failed", retry_failed)
    if not callable(done):
        raise InvalidInput(f"done must be a function that hears of tasks, but is {done!r:.200}")
    if out is not None:
        run_missing(plan, Path(out), engine, retry_failed=retry_failed, done=done)
        return _with_failures_said(read(Path(out)))
    with tempfile.TemporaryDirectory() as folder:
        run_missing(plan, Path(folder), engine, done=done)
        return _with_failures_said(read(Path(folder)))


def _with_failures_said(found: Sweep) -> Sweep:
    """The same, with a warning if runs are not in its table."""
    if found.failures:
        first = found.failures[0]
        warn(
            f"the table lacks the runs of tasks that failed ({len(found.failures):,}, which "
            f"`failures` names): {first['learner']} {first['parameters']} on {first['problem']}: "
            f"{first['error']}",
            FailedTasks,
        )
    return found


def missing_of(plan: Plan, store: Store, retry_failed: bool = False) -> list[Task]:
    """The tasks whose results are not there."""
    return [
        task
        for task in plan.tasks
        if not store.has(task.key) and (retry_failed or store.why(task.key) is None)
    ]


def run_missing(
    plan: Plan,
    out: Path,
    engine: Engine,
    *,
    retry_failed: bool = False,
    done: Heard = lambda task, error: None,
) -> None:
    """Run what is missing, and keep each result as it comes."""
    needed("pyarrow", "tables", "a sweep")
    store = Store(out)
    with store.mine():
        store.settle(task.key for task in plan.tasks)
        missing = missing_of(plan, store, retry_failed)
        write_index(store, plan)
        if not missing:
            return
        written = time.monotonic()

        def keep(task: Task, given: Answer | Exception) -> None:
            nonlocal written
            came = given if isinstance(given, Answer) else Answer(0.0, error=str(given))
            if came.table is not None:
                store.put(task.key, came.table, came.seconds)
            else:
                store.fail(
                    task.key, came.seconds, problem=task.title, learner=task.label,
                    parameters=task.parameters, seeds=list(task.seeds), error=came.error,
                    traceback=came.traceback,
                )  # fmt: skip
            done(task, came.error)
            if time.monotonic() - written > INDEXED:
                write_index(store, plan)
                written = time.monotonic()

        engine(answer, plan.longest_first(missing), keep)
        write_index(store, plan)
        _require_kept(plan, store)


def _require_kept(plan: Plan, store: Store) -> None:
    """Raise unless every task has left a result or a failure: a folder may be removed meanwhile."""
    lost = missing_of(plan, store)
    if lost:
        first = lost[0]
        raise NotWritten(
            f"{len(lost):,} of {len(plan.tasks):,} tasks are done, but their results are not in "
            f"{store.folder} any more, the first of them {first.label} {first.parameters} on "
            f"{first.title}: something removed them meanwhile. The same sweep runs them again"
        )
