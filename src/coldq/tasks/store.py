"""Results of tasks in a folder: one file a task, whole or not there, and why others failed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from coldq.errors import IgnoredFile, InUse, NotWritten, warn
from coldq.files import locked, require_writable, whole_file

MAGIC = b"PAR1"  # that a parquet file begins and ends with
SUFFIX = ".parquet"


class Store:
    """A folder with a file for every task that is done, named by the task's key.

    ``runs`` has the results of the tasks that were asked for last, ``older`` those of others, which
    come back when they are asked for again; ``failed`` says why a task gave none, ``log.jsonl``
    when each was done and how long it took. A killed process leaves nothing half written there:
    files arrive in ``arriving`` and are moved.

    >>> import pathlib, tempfile
    >>> from coldq.tasks.store import Store
    >>> store = Store(pathlib.Path(tempfile.mkdtemp()))
    >>> store.put("ab12", b"PAR1 all of it PAR1", 0.5)
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
        return self.runs / key[:2] / f"{key}{SUFFIX}"

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
        for path in self.runs.glob(f"*/*{SUFFIX}"):
            if path.stem not in wanted:
                _move(path, self.older / path.parent.name / path.name)
        for path in self.older.glob(f"*/*{SUFFIX}"):
            if path.stem in wanted:
                _move(path, self.path(path.stem))

    def has(self, key: str) -> bool:
        """Whether a whole result is there; another file is named, and replaced."""
        path = self.path(key)
        try:
            with path.open("rb") as file:
                first = file.read(len(MAGIC))
                file.seek(-len(MAGIC), os.SEEK_END)
                if first == MAGIC == file.read() and file.tell() >= 2 * len(MAGIC):
                    return True
        except FileNotFoundError:
            return False
        except OSError:
            pass
        warn(f"{path} is not a whole result, so it is run again", IgnoredFile)
        return False

    def put(self, key: str, result: bytes, seconds: float) -> None:
        """Keep a result, which ends a failure."""
        with whole_file(self.path(key), through=self.arriving) as temporary:
            temporary.write_bytes(result)
        self._say(task=key, seconds=round(seconds, 4))
        self._failure(key).unlink(missing_ok=True)

    def fail(self, key: str, seconds: float, **why: Any) -> None:
        """Keep why there is no result."""
        with whole_file(self._failure(key), through=self.arriving) as temporary:
            temporary.write_text(json.dumps({"task": key, **why}, indent=1), encoding="utf-8")
        self._say(task=key, seconds=round(seconds, 4), failed=True)

    def why(self, key: str) -> dict[str, Any] | None:
        """What was kept of a failure."""
        try:
            return json.loads(self._failure(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def seconds(self) -> dict[str, float]:
        """How long each task took, as far as the log is whole."""
        found = {}
        with suppress(OSError):
            for line in self.log.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError, KeyError, TypeError):
                    said = json.loads(line)
                    found[said["task"]] = float(said["seconds"])
        return found

    def _failure(self, key: str) -> Path:
        return self.failed / f"{key}.json"

    def _say(self, **what: Any) -> None:
        line = json.dumps({"at": round(time.time(), 3), **what}) + "\n"
        try:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:  # a folder that is removed meanwhile, a full disk
            raise NotWritten(f"{self.log} could not be written: {error.strerror}") from error


def _move(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    path.replace(to)
