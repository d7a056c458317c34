"""The last round that was acknowledged, noted where a damaged log cannot take it away.

It stands in the header of the database file, in 20 bytes that SQLite keeps for later versions of
its format and does not look at. A note is written when its round is on disk and does not wait for
the disk itself, so that it is never ahead: after a kill it is exact, after a power cut perhaps some
rounds older.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

OFFSET_BYTES = 72  # in the file
NOTE = struct.Struct("<4sqi")  # whose it is, the round and its status; its checksum follows
CHECKSUM = struct.Struct("<I")
NOTE_MARK = b"told"


class Acknowledged(NamedTuple):
    """The last acknowledged round, and the status that its receipt had."""

    round: int
    status: int

    @classmethod
    def found(cls, file: bytes) -> Acknowledged | None:
        """The note in the beginning of a database file, or None."""
        end = OFFSET_BYTES + NOTE.size
        note = file[OFFSET_BYTES:end]
        checksum = file[end : end + CHECKSUM.size]
        if not note.startswith(NOTE_MARK) or checksum != CHECKSUM.pack(crc32(note)):
            return None
        return cls(*NOTE.unpack(note)[1:])

    def is_in(self, run: Callable[..., Any]) -> bool:
        """Whether a database has the round. A status only rises; the oldest rounds are dropped."""
        found = "SELECT (SELECT status FROM rounds WHERE round=?), (SELECT max(round) FROM rounds)"
        try:
            status, latest = run(found, (self.round,)).fetchone()
        except sqlite3.DatabaseError:  # there is no such table, or none that can be read
            return False
        if status is None:
            return self.round == 0 or (latest or 0) > self.round
        return status >= self.status


class Notes:
    """The note of the last acknowledged round, in an open database file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("r+b", buffering=0)

    def write(self, round: int, status: int) -> None:
        """Note a round that is on disk; where that fails, damage to the log is found later."""
        note = NOTE.pack(NOTE_MARK, round, status)
        with suppress(OSError):
            self._file.seek(OFFSET_BYTES)
            self._file.write(note + CHECKSUM.pack(crc32(note)))

    def read(self) -> bytes:
        """All bytes of the database file."""
        self._file.seek(0)
        return self._file.readall()

    def close(self) -> None:
        """Close the handle, after SQLite has closed its own: locks go with any of the process."""
        self._file.close()

    def __del__(self) -> None:
        """Close the handle: an agent that nobody has any more is no leak to be warned of."""
        with suppress(AttributeError, OSError):
            self.close()
