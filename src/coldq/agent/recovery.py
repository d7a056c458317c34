"""Recovery: the readable part of an agent's damaged file, in a new one."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from coldq.agent.acknowledged import Acknowledged
from coldq.agent.agent import Agent
from coldq.agent.encoding import decode
from coldq.agent.lock import Lock
from coldq.agent.paths import file_and_log, path_of
from coldq.agent.schema import (
    HELD,
    INSERT,
    Row,
    after,
    make_tables,
    require_agent,
    with_outcomes,
)
from coldq.base.errors import InvalidInput, NotReadable, NotWritten
from coldq.base.files import whole_file


class Recovered(NamedTuple):
    """A new file, the `round` up to which it goes, and what was `lost`, in words."""

    path: Path
    round: int
    lost: tuple[str, ...]


def recover(
    path: str | os.PathLike[str], out: str | os.PathLike[str], learner: Any = None
) -> Recovered:
    """Write what is readable of an agent's file to a new one, which can be opened.

    Needed are its description and its last snapshot. Feedback after that is taken as far as it is
    whole and without a gap. The damaged file stays as it is, and nothing in it is executed.

    >>> import coldq, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with coldq.Agent(coldq.OGD(coldq.Simplex(3), eta=0.1), 0, path=folder / "old.db") as agent:
    ...     _ = agent.observe(agent.decide().round, coldq.Linear([1.0, 2.0, 3.0]), None)
    >>> coldq.agent.recover(folder / "old.db", folder / "new.db").lost
    ()
    """
    path, out = path_of(path), path_of(out)
    if not path.is_file():
        raise InvalidInput(f"there is no file {path} to recover")
    if out.exists():
        raise InvalidInput(f"{out} is there already: recover writes a new file")
    lost: list[str] = []
    with _copied(path) as copy:
        with copy.open("rb") as file:
            told = Acknowledged.found(file.read(100))
        meta, state, rows = _readable(path, copy, lost, told)
        with whole_file(out) as new:
            new.unlink()
            _written(new, meta, state, rows)
            with Agent.open(new, learner) as agent:
                latest = agent.round
    return Recovered(out, latest, tuple(lost))


@contextmanager
def _copied(path: Path) -> Iterator[Path]:
    """A copy of a file and its log, as long as it is needed."""
    with ExitStack() as needed:
        try:
            folder = needed.enter_context(tempfile.TemporaryDirectory())
            copy = Path(folder) / "copy.db"
            with closing(Lock(path)):  # nobody writes meanwhile
                for real, suffix in zip(file_and_log(path), ("", "-wal"), strict=True):
                    with suppress(FileNotFoundError):
                        shutil.copyfile(real, f"{copy}{suffix}")
            _say_its_length(copy)
        except OSError as error:
            raise NotWritten(
                f"to recover {path} it is copied to a temporary folder first, which failed: "
                f"{error.strerror or error}"
            ) from error
        yield copy


def _say_its_length(path: Path) -> None:
    """Let the header of a file that was cut off say how long it is, or nothing in it is read."""
    with path.open("r+b") as file:
        head = file.read(100)
        size = int.from_bytes(head[16:18], "big") if len(head) == 100 else 0
        pages = path.stat().st_size // (65536 if size == 1 else max(size, 512))
        if pages < int.from_bytes(head[28:32], "big"):
            file.seek(28)
            file.write(pages.to_bytes(4, "big"))


def _readable(
    path: Path, copy: Path, lost: list[str], told: Acknowledged | None
) -> tuple[Any, Any, list[Row]]:
    """The description, the snapshot and the rounds of a file, as far as they go."""
    with closing(sqlite3.connect(copy, isolation_level=None)) as db:
        try:
            db.execute("PRAGMA trusted_schema=OFF")
            require_agent(path, db.execute)
            meta = db.execute("SELECT name, value FROM meta").fetchall()
            state = db.execute("SELECT name, array FROM state").fetchall()
            with_outcomes(db.execute)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise NotReadable(
                f"of {path} neither the learner nor its state is readable: {error}"
            ) from None
        found = _rounds(db, lost)
        if told is not None and not lost and not told.is_in(db.execute):
            latest = max((row.round for row in found), default=0)
            lost.append(
                f"what was told after round {latest}, up to round {told.round} at least: its log "
                "is damaged, cut off or gone, and it can be told again"
            )
    try:
        saved = int(dict(meta)["turn"])
    except (KeyError, TypeError, ValueError):
        raise NotReadable(f"{path} does not say which feedback its state has") from None
    return meta, state, _without_gaps(found, saved, lost)


def _rounds(db: sqlite3.Connection, lost: list[str]) -> list[Row]:
    """All readable rounds, read from both ends towards what cannot be read."""
    columns, found = ", ".join(Row._fields), {}
    for order in ("ASC", "DESC"):
        try:
            for row in db.execute(f"SELECT {columns} FROM rounds ORDER BY round {order}"):
                found[row[0]] = Row(*row)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if order == "ASC":
                after = f" after {max(found)}" if found else ""
                lost.append(f"some rounds{after} are not readable: {error}")
        else:
            break
    return [found[number] for number in sorted(found)]


def _without_gaps(found: list[Row], saved: int, lost: list[str]) -> list[Row]:
    """Rounds whose feedback was applied after the snapshot, as long as none is missing."""
    whole, rest = after(found, saved)
    good = set()
    for row in whole:
        if not _whole(row):
            break
        good.add(row.round)
    dropped = {row.round for row in whole + rest if row.round not in good}
    kept = []
    for row in found:
        if row.round in dropped or (row.status == HELD and not _whole(row)):
            lost.append(f"the feedback of round {row.round}: it can be told again")
            row = row._replace(status=0, turn=None, feedback=None, outcome=None)
        kept.append(row)
    return kept


def _whole(row: Row) -> bool:
    try:
        decode(row.feedback)
    except Exception:  # whatever odd bytes lead to
        return False
    return True


def _written(path: Path, meta: Any, state: Any, rows: list[Row]) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN")
        make_tables(db.execute)
        db.executemany("INSERT INTO meta VALUES (?, ?)", meta)
        db.executemany("INSERT INTO state VALUES (?, ?)", state)
        db.executemany(INSERT, rows)
        db.execute("COMMIT")
