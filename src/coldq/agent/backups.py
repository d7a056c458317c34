"""A copy of an agent's file while the agent is at work, and its way back."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from coldq.agent.acknowledged import Acknowledged
from coldq.agent.lock import Lock
from coldq.agent.paths import file_and_log, path_of
from coldq.agent.schema import require_agent
from coldq.agent.wal import HEADER_BYTES, Log
from coldq.base.errors import InvalidInput, NotReadable, NotWritten
from coldq.base.files import whole_file

MAX_ATTEMPTS = 100  # to read a file between two of the moments at which its log begins anew


class Saved(NamedTuple):
    """A file that was written, the `round` up to which it goes, and files that were put aside."""

    path: Path
    round: int
    aside: tuple[Path, ...] = ()


def backup(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> Saved:
    """Copy an agent's file as of one moment, though another process may be writing to it.

    Nobody waits for this. The copy has every round that was acknowledged before it began, and needs
    no log beside it. :func:`restore` puts it back, and :meth:`coldq.Agent.open` opens it.

    >>> import coldq, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with coldq.Agent(coldq.OGD(coldq.Simplex(3), eta=0.1), 0, path=folder / "a.db") as agent:
    ...     _ = agent.observe(agent.decide().round, coldq.Linear([1.0, 2.0, 3.0]), None)
    ...     coldq.agent.backup(folder / "a.db", folder / "copy.db").round
    1
    """
    path, out = path_of(path), path_of(out)
    if not path.is_file():
        raise InvalidInput(f"there is no file {path} to back up")
    if out.exists():
        raise InvalidInput(f"{out} is there already: a backup is a new file")
    whole, latest = checked(path, *_at_one_moment(path))
    with whole_file(out) as new:
        _write(new, whole)
    return Saved(out, latest)


def restore(saved: str | os.PathLike[str], path: str | os.PathLike[str]) -> Saved:
    """Put a backup where an agent's file is, or was; what is there now is kept beside it.

    The file must not be open. Its log goes with it, which would be applied to the backup else.

    >>> import coldq, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> coldq.Agent(coldq.OGD(coldq.Simplex(3), eta=0.1), 0, path=folder / "a.db").close()
    >>> _ = coldq.agent.backup(folder / "a.db", folder / "copy.db")
    >>> [left.name for left in coldq.agent.restore(folder / "copy.db", folder / "a.db").aside]
    ['a.db-left']
    """
    saved, path = path_of(saved), path_of(path)
    if not saved.is_file():
        raise InvalidInput(f"there is no backup {saved}")
    whole, latest = checked(saved, *_at_one_moment(saved))
    aside: list[Path] = []
    with closing(Lock(path)), whole_file(path) as new:
        _write(new, whole)
        for there in reversed(file_and_log(path)):  # the log first
            if there.exists():
                left = _unused(there)
                there.rename(left)
                aside.append(left)
    return Saved(path, latest, tuple(aside))


def checked(path: Path, file: bytes, log: bytes) -> tuple[bytes, int]:
    """A database file with its log applied, and its latest round; raise unless it is whole."""
    found, told = Log.read(log), Acknowledged.found(file)
    if found.damage:
        raise NotReadable(f"{path} is damaged: in its log {found.damage}")
    whole = found.over(file)
    with closing(sqlite3.connect(":memory:")) as db:
        try:
            db.deserialize(whole)
            run = db.execute
            require_agent(path, run)
            words = run("PRAGMA quick_check(1)").fetchone()[0]
            if words == "ok" and told is not None and not told.is_in(run):
                words = f"round {told.round} was acknowledged and is not in it"
            if words != "ok":
                raise NotReadable(f"{path} is damaged: {words}")
            latest = run("SELECT max(round) FROM rounds").fetchone()[0]
        except sqlite3.Error as error:
            raise NotReadable(f"{path} cannot be read: {error}") from None
    return whole, latest or 0


def _at_one_moment(path: Path) -> tuple[bytes, bytes]:
    """A database file and the log that was beside it at the same time.

    Between two beginnings of a log all that is written to the file is in the log too. So the file
    may be read while it is written to, and the log after it.
    """
    file, log = file_and_log(path)
    try:
        for _ in range(MAX_ATTEMPTS):
            with suppress(FileNotFoundError):  # the log was dropped meanwhile
                before = _moment(file, log)
                found = file.read_bytes(), log.read_bytes() if log.exists() else b""
                if _moment(file, log) == before:
                    return found
    except OSError as error:
        raise NotReadable(f"{path} cannot be read: {error.strerror or error}") from None
    raise NotReadable(f"{path} is opened and closed all the time: try again")


def _moment(file: Path, log: Path) -> tuple[object, ...]:
    """A mark that changes when a log begins anew or is dropped, or when a file is another one."""
    head, status = b"", file.stat()
    which = status.st_dev, status.st_ino
    with suppress(FileNotFoundError), log.open("rb") as opened:
        head = opened.read(HEADER_BYTES)
    if head:
        return which, head
    status = file.stat()  # without a log, the file is written to
    return which, head, status.st_size, status.st_mtime_ns


def _write(path: Path, whole: bytes) -> None:
    with path.open("wb") as file:
        file.write(whole)
        file.flush()
        os.fsync(file.fileno())


def _unused(path: Path) -> Path:
    """A name for a file that is put aside."""
    for number in range(1, 10_000):
        left = path.with_name(f"{path.name}-left{number if number > 1 else ''}")
        if not left.exists():
            return left
    raise NotWritten(f"{path} was put aside too often: remove some of {path.name}-left*")
