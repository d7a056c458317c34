"""SQLite as an agent uses it: a connection that forks leave alone, and errors as sentences."""

from __future__ import annotations

import ctypes
import sqlite3
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from coldq.agent.lock import in_use
from coldq.base.errors import Error, NotReadable, NotWritten
from coldq.base.system import in_every_fork


class Connection(sqlite3.Connection):
    """A connection of SQLite that a fork of the process leaves to the process.

    If the fork closed it, even as it ends, SQLite would take itself for the last to use the file,
    and remove the log that the parent goes on to write.
    """

    ours: ClassVar = weakref.WeakSet["Connection"]()

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.ours.add(self)

    def __del__(self) -> None:
        """Close the connection: an agent that nobody has any more is no leak to be warned of."""
        with suppress(sqlite3.Error):
            self.close()

    def leave_open(self) -> None:
        """Never close this connection in this process, not even at its end."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    @classmethod
    def leave_all_open(cls) -> None:
        """Leave all connections of the parent of this fork to the parent."""
        for connection in cls.ours:
            connection.leave_open()


in_every_fork(Connection.leave_all_open)


class ErrorsAsSentences:
    """A block in which errors of SQLite and of the system become errors of coldq.

    It is a class, as every round enters it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened = False  # and whole by then: what SQLite finds wrong may be the disk's failure

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, UnicodeDecodeError):
            raise self.damaged(str(error)) from None
        if isinstance(error, Error) or not isinstance(error, sqlite3.Error | OSError):
            return
        code = getattr(error, "sqlite_errorname", "")
        if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise in_use(self.path) from None
        if code.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")) and self.opened:
            raise NotWritten(
                f"{self.path} could not be written: {error}. Its disk may have failed: opening it "
                "again says whether it is damaged"
            ) from error
        if code.startswith("SQLITE_NOTADB"):
            raise NotReadable(f"{self.path} is not the file of an agent: {error}") from None
        if code.startswith("SQLITE_CORRUPT"):
            raise self.damaged(str(error)) from None
        raise NotWritten(
            f"{self.path} could not be written: {error}. What was there before is unchanged"
        ) from error

    def damaged(self, words: str) -> NotReadable:
        """The error that a file is not whole."""
        short = " ".join(words.replace("*** in database main ***", "").split())
        return NotReadable(
            f"{self.path} is damaged ({short}): `coldq agent recover` saves what is readable"
        )
