"""Tables of an agent's file, and the marks that say whose they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from coldq.base.errors import NotReadable

APPLICATION_ID = 0x434F4C44  # "COLD": SQLite says so whose file it is
FORMAT_VERSION = 2
STATUSES = OPEN, HELD, APPLIED, SKIPPED = range(4)
TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE state (name TEXT PRIMARY KEY, array BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE rounds (
    round INTEGER PRIMARY KEY, status INTEGER NOT NULL, turn INTEGER, x BLOB NOT NULL,
    feedback BLOB, outcome BLOB
);
"""


INSERT = "INSERT INTO rounds (round, status, turn, x, feedback, outcome) VALUES (?, ?, ?, ?, ?, ?)"
UPDATE = "UPDATE rounds SET status=?, turn=?, feedback=?, outcome=? WHERE round=?"


class Row(NamedTuple):
    """A round as it is on disk; `turn` counts the feedbacks that were applied.

    `outcome` is the state after it, or a digest of that (:mod:`coldq.agent.outcome`); rounds
    written by older versions have none.
    """

    round: int
    status: int
    turn: int | None
    x: bytes
    feedback: bytes | None
    outcome: bytes | None = None


def after(rows: Sequence[Row], saved: int) -> tuple[list[Row], list[Row]]:
    """Rounds applied after the snapshot, in their turn as long as none is missing, and the rest."""
    later = [row for row in rows if row.status == APPLIED and row.turn not in range(saved + 1)]
    later.sort(key=lambda row: row.turn if isinstance(row.turn, int) else inf)
    whole = 0
    while whole < len(later) and later[whole].turn == saved + whole + 1:
        whole += 1
    return later[:whole], later[whole:]


def make_tables(run: Callable[[str], Any]) -> None:
    """The tables of a new file, and whose it is."""
    for command in TABLES.split(";"):
        run(command)
    run(f"PRAGMA application_id={APPLICATION_ID}")
    run(f"PRAGMA user_version={FORMAT_VERSION}")


def with_outcomes(run: Callable[[str], Any]) -> None:
    """Add the column of outcomes to the table of rounds, which older files lack."""
    if "outcome" not in {column[1] for column in run("PRAGMA table_info(rounds)")}:
        run("ALTER TABLE rounds ADD COLUMN outcome BLOB")


def require_agent(path: Path, run: Callable[[str], Any]) -> None:
    """Raise unless a database is an agent's, in the format of this version of coldq."""
    owner, version = (run(f"PRAGMA {n}").fetchone()[0] for n in ("application_id", "user_version"))
    if owner != APPLICATION_ID:
        raise NotReadable(f"{path} is not the file of an agent")
    if version != FORMAT_VERSION:
        raise NotReadable(
            f"{path} has the format {version}, but this version of coldq has {FORMAT_VERSION}"
        )
