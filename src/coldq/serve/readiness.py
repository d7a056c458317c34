"""Readiness of a server: it is not ending, and what it is told can be written."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

PROBE_BYTES = 65_536  # written to see whether they can be: more than a file has to spare
MAX_AGE_SECONDS = 1.0  # of an answer: anybody may ask
DISK_TIMEOUT_SECONDS = 2.0  # for a disk to answer


class Readiness:
    """The readiness of a server: what stands in its way, in words, or nothing.

    >>> import asyncio
    >>> from coldq.serve.readiness import Readiness
    >>> asyncio.run(Readiness(None, lambda: False).obstacle())
    ''
    >>> asyncio.run(Readiness(None, lambda: True).obstacle())
    'the server is ending'
    """

    def __init__(self, folder: Path | None, ending: Callable[[], bool]) -> None:
        self.folder, self.ending = folder, ending
        self._pool = ThreadPoolExecutor(1)  # one probe at a time, however long a disk hangs
        self._probe: asyncio.Future[str] | None = None
        self._begun = float("-inf")

    async def obstacle(self) -> str:
        """What stands in the way now, or did a moment ago."""
        if self.ending():
            return "the server is ending"
        if self.folder is None:
            return ""
        if self._probe is None or (
            self._probe.done() and monotonic() - self._begun > MAX_AGE_SECONDS
        ):
            self._begun = monotonic()
            loop = asyncio.get_running_loop()
            self._probe = loop.run_in_executor(self._pool, _written, self.folder)
        await asyncio.wait([self._probe], timeout=DISK_TIMEOUT_SECONDS)
        if not self._probe.done():
            waited = monotonic() - self._begun
            return f"{self.folder} has not taken a file for {waited:.0f} seconds"
        return self._probe.result()


def _written(folder: Path) -> str:
    """Why a file cannot be written there, or nothing."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return f"{folder} cannot be written to: {error.strerror or error}"
    return ""
