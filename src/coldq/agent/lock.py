"""The lock of an agent's file, in a file beside it: reading the file itself drops SQLite's."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from coldq.base.errors import InUse
from coldq.base.files import locked


class Lock:
    """The lock of a file, taken until it is closed; without locks in the system it does nothing.

    The system forgets whoever was killed. A process that was forked holds its parent's lock too.
    """

    def __init__(self, path: Path) -> None:
        self._handle: int | None = None
        self._process, self._beside = os.getpid(), Path(f"{os.path.realpath(path)}-lock")
        try:
            while self._handle is None:
                self._handle = locked(self._beside)
        except BlockingIOError:
            raise in_use(path) from None
        except (ImportError, OSError):
            return

    def close(self) -> None:
        """Release the lock; its name goes first, so that nobody takes a file without one.

        In a fork the name stays: it is the parent's.
        """
        if self._handle is not None:
            if os.getpid() == self._process:
                with suppress(OSError):
                    self._beside.unlink()
            os.close(self._handle)
            self._handle = None

    def __del__(self) -> None:
        self.close()  # of an agent that nobody has closed, or has any more


def in_use(path: Path) -> InUse:
    """The error that another agent has a file."""
    return InUse(
        f"{path} is in use: an agent's file belongs to one agent at a time, which "
        "lets go of it when it is closed or its process ends"
    )
