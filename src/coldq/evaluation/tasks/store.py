"""Results of tasks in a folder: one file a task, whole or not there, and why others failed."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

from coldq.base.errors import (
    IgnoredFile,
    InUse,
    InvalidInput,
    NotReadable,
    NotWritten,
    WorkerLost,
    warn,
)
from coldq.base.files import locked, require_writable, whole_file
from coldq.base.tabular import read_parquet
from coldq.evaluation.tasks.executors import do_all, needed
from coldq.evaluation.tasks.library import library_digest

PARQUET_MARK = b"PAR1"  # that a parquet file begins and ends with
PARQUET_SUFFIX = ".parquet"


class Task(Protocol):
    """What a store asks of a task: plain data, so that any machine can be told it."""

    @property
    def key(self) -> str:
        """A digest of all that determines the result."""
        ...

    def about(self) -> Mapping[str, Any]:
        """What is kept of a task that failed, as JSON has it."""
        ...


Work = Callable[[Any], Mapping[str, Any]]  # the columns of a task's result
DoneCallback = Callable[[Any, str | None], None]  # a task that is done, or why it failed


class Store:
    """A folder with a parquet file for every task that is done, named by the task's key.

    ``runs`` has the results of the tasks that were asked for last, ``older`` those of others, which
    come back when they are asked for again; ``failed`` says why a task gave none, ``log.jsonl``
    when each was done and how long it took. A killed process leaves nothing half written there:
    files arrive in ``arriving`` and are moved.

    >>> import pathlib, tempfile
    >>> from coldq.evaluation.tasks.store import Store
    >>> store = Store(pathlib.Path(tempfile.mkdtemp()))
    >>> store.put("ab12", b"PAR1 all of it PAR1")
    >>> store.has("ab12"), store.has("cd34"), store.path("ab12").parent.name
    (True, False, 'ab')
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs, self.older = folder / "runs", folder / "older"
        self.failed, self.arriving = folder / "failed", folder / "arriving"
        self.log = folder / "log.jsonl"

    def path(self, key: str) -> Path:
        """Where a task's result is, or would be; folders by two letters stay readable."""
        return self.runs / key[:2] / f"{key}{PARQUET_SUFFIX}"

    @contextmanager
    def mine(self) -> Iterator[None]:
        """Nobody else works in this folder meanwhile; the system forgets whoever was killed."""
        require_writable(self.folder, megabytes=0.0)
        handle = None
        try:
            handle = locked(self.folder / ".lock")
        except BlockingIOError:
            raise InUse(f"another sweep is at work in {self.folder}") from None
        except (ImportError, OSError):  # where there are no such locks, two do the same work twice
            pass
        try:
            yield
        finally:
            if handle is not None:
                os.close(handle)

    def settle(self, keys: Iterable[str]) -> None:
        """Let ``runs`` hold the results of these tasks and no others."""
        wanted = set(keys)
        for left in self.arriving.glob("*"):
            left.unlink(missing_ok=True)
        for path in self.runs.glob(f"*/*{PARQUET_SUFFIX}"):
            if path.stem not in wanted:
                _move(path, self.older / path.parent.name / path.name)
        for path in self.older.glob(f"*/*{PARQUET_SUFFIX}"):
            if path.stem in wanted:
                _move(path, self.path(path.stem))

    def has(self, key: str) -> bool:
        """Whether a whole result is there; another file is named, and replaced."""
        path = self.path(key)
        try:
            with path.open("rb") as file:
                first = file.read(len(PARQUET_MARK))
                file.seek(-len(PARQUET_MARK), os.SEEK_END)
                if first == PARQUET_MARK == file.read() and file.tell() >= 2 * len(PARQUET_MARK):
                    return True
        except FileNotFoundError:
            return False
        except OSError:
            pass
        warn(f"{path} is not a whole result, so it is run again", IgnoredFile)
        return False

    def missing(self, tasks: Iterable[Task], retry_failed: bool = False) -> list[Any]:
        """The tasks that have left no result, nor a failure that counts."""
        return [
            task
            for task in tasks
            if not self.has(task.key) and (retry_failed or self.why(task.key) is None)
        ]

    def put(self, key: str, result: bytes) -> None:
        """Keep a result, which ends a failure."""
        with self._arriving(self.path(key)) as temporary:
            temporary.write_bytes(result)
        self._failure(key).unlink(missing_ok=True)

    def fail(self, key: str, **why: Any) -> None:
        """Keep why there is no result."""
        with self._arriving(self._failure(key)) as temporary:
            temporary.write_text(json.dumps({"task": key, **why}, indent=1), encoding="utf-8")

    def why(self, key: str) -> dict[str, Any] | None:
        """What was kept of a failure."""
        try:
            return json.loads(self._failure(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def table(self, key: str) -> Any:
        """The result of a task that is done, as Arrow's table."""
        path = self.path(key)
        try:
            return read_parquet(path)
        except (OSError, ValueError) as error:
            raise NotReadable(
                f"{path} is damaged: remove it, and the same command runs that task again ({error})"
            ) from None

    def note(self, **what: Any) -> None:
        """Add a line to the log."""
        line = json.dumps({"at": round(time.time(), 3), **what}) + "\n"
        try:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:  # a folder that is removed meanwhile, a full disk
            raise NotWritten(f"{self.log} could not be written: {error.strerror}") from error

    def _failure(self, key: str) -> Path:
        return self.failed / f"{key}.json"

    def _arriving(self, path: Path) -> AbstractContextManager[Path]:
        return whole_file(path, through=self.arriving)


def _move(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    path.replace(to)


@dataclass(frozen=True)
class Outcome:
    """What came of a task: a result, as the bytes of a parquet file, or why there is none."""

    seconds: float
    result: bytes | None = None
    error: str | None = None
    traceback: str | None = None


def attempt(work: Work, library: str, task: Task) -> Outcome:
    """Do a task by the same coldq as whoever sent it; an error is an outcome, too."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    begun, file = time.perf_counter(), BytesIO()
    try:
        if library != library_digest():
            raise InvalidInput(
                "this worker has another version of coldq than the one that sent the task: install "
                "the same on all machines, and leave its files as they are meanwhile"
            )
        pq.write_table(pa.table(dict(work(task))), file)
    except Exception as error:
        return _failed(error, time.perf_counter() - begun)
    return Outcome(time.perf_counter() - begun, file.getvalue())


def _failed(error: BaseException, seconds: float = 0.0) -> Outcome:
    words = "".join(traceback.format_exception(error))
    return Outcome(seconds, None, f"{type(error).__name__}: {error}", words)


def complete(
    store: Store,
    tasks: Iterable[Task],
    work: Work,
    executor: AbstractContextManager[Executor],
    *,
    retry_failed: bool = False,
    done: DoneCallback = lambda task, error: None,
    begun: Callable[[list[Any]], None] = lambda missing: None,
) -> None:
    """Run what is missing, in the order of the tasks, and keep each result as it comes.

    `begun` hears first of what is missing, when the folder is ours. `executor` is entered if
    anything is.
    """
    needed("pyarrow", "tables", "to keep results")
    tasks = list(tasks)
    with store.mine():
        store.settle(task.key for task in tasks)
        missing = store.missing(tasks, retry_failed)
        begun(missing)
        if not missing:
            return
        with executor as given:
            for task, future in do_all(partial(attempt, work, library_digest()), missing, given):
                error = future.exception()
                if isinstance(error, BrokenExecutor):
                    raise WorkerLost(f"the executor has ended: {error}") from error
                outcome = future.result() if error is None else _failed(error)
                _keep(store, task, outcome)
                done(task, outcome.error)
        lost = store.missing(tasks)
    if lost:
        raise NotWritten(
            f"{len(lost):,} of {len(tasks):,} tasks are done, but their results are not in "
            f"{store.folder} any more, the first of them {dict(lost[0].about())}: something "
            "removed them meanwhile. The same command runs them again"
        )


def _keep(store: Store, task: Task, outcome: Outcome) -> None:
    if outcome.result is not None:
        store.put(task.key, outcome.result)
    else:
        why = {"error": outcome.error, "traceback": outcome.traceback}
        store.fail(task.key, **task.about(), **why)
    failed = {"failed": True} if outcome.result is None else {}
    store.note(task=task.key, seconds=round(outcome.seconds, 4), **failed)
