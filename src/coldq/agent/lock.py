"""The lock of an agent's file, in a file beside it: reading the file itself drops SQLite's."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from coldq.errors import InUse


class Lock:
    """Taken as long as it is open; where there are no such locks it does nothing.

    The system forgets whoever was killed. A process that was forked holds its parent's lock too.
    """

    def __init__(self, path: Path) -> None:
        self._handle: int | None = None
        self._process, self._beside = os.getpid(), Path(f"{os.path.realpath(path)}-lock")
        try:
            import fcntl

            while self._handle is None:
                handle = os.open(self._beside, os.O_RDONLY | os.O_CREAT, 0o666)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if os.path.samestat(os.fstat(handle), self._beside.stat()):
                        self._handle = handle
                except FileNotFoundError:
                    pass  # whoever held it has just removed it
                finally:
                    if self._handle is None:
                        os.close(handle)
        except BlockingIOError:
            raise in_use(path) from None
        except (ImportError, OSError):
            return

    def close(self) -> None:
        """Let go of it; its name goes first, so that nobody takes a file without one.

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
