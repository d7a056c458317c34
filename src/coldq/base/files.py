"""Files that are written whole or not at all."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from coldq.base.errors import InvalidInput, NotWritten

UNFINISHED_MARK = ".unfinished"  # in the name of a temporary file, before its suffix
STALE_SECONDS = 3600.0  # without a change


@contextmanager
def whole_file(path: Path, through: Path | None = None) -> Generator[Path]:
    """A temporary path to write to; it becomes `path` if nothing goes wrong, else it is removed.

    What cannot be written is a `NotWritten`. The temporary name begins with a dot and ends as
    `path` does (`is_unfinished`); what a killed process has left is removed when its file is
    written again. With `through` it lies in that folder, of the same disk, and not beside `path`.

    >>> import tempfile, pathlib
    >>> from coldq.base.files import whole_file
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "note.txt"
    >>> with whole_file(path) as temporary:
    ...     _ = temporary.write_text("all of it")
    >>> path.read_text()
    'all of it'
    """
    begin, end = f".{path.name}.", f"{UNFINISHED_MARK}{path.suffix}"
    temporary: Path | None = None
    try:
        folder = path.parent if through is None else through
        for each in {path.parent, folder}:
            each.mkdir(parents=True, exist_ok=True)
        _remove_stale(folder, begin, end)
        unused = folder / f"{begin}{os.urandom(4).hex()}{end}"
        unused.touch(exist_ok=False)
        temporary = unused
        yield temporary
        temporary.replace(path)
    except OSError as error:
        words = f"{path} could not be written: {error.strerror or error}"
        raise NotWritten(f"{words}. What was there before is unchanged") from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def named_file(path: Any) -> Path:
    """The path itself; raise unless it can name a file.

    >>> from coldq.base.files import named_file
    >>> named_file("run.npz").suffix
    '.npz'
    """
    given: Any = path
    if not isinstance(path, str | os.PathLike) or not str(given):
        raise InvalidInput(f"path must name a file, but is {path!r:.200}")
    return Path(given)


def is_unfinished(path: Path) -> bool:
    """Whether this is a temporary file of `whole_file`, being written or left by a killed process.

    >>> from pathlib import Path
    >>> from coldq.base.files import is_unfinished
    >>> is_unfinished(Path(".rates.csv.ab12cd34.unfinished.csv")), is_unfinished(Path("rates.csv"))
    (True, False)
    """
    return path.name.startswith(".") and UNFINISHED_MARK in (path.suffix, Path(path.stem).suffix)


def _remove_stale(folder: Path, begin: str, end: str) -> None:
    """Remove what killed processes have left: what nobody has written to for an hour."""
    for left in folder.glob(f"{glob.escape(begin)}*{glob.escape(end)}"):
        with suppress(OSError):  # another process may be faster
            if time.time() - left.stat().st_mtime > STALE_SECONDS:
                left.unlink()


def locked(path: Path) -> int | None:
    """The handle of a file that is made if need be, locked until it is closed or its process ends.

    None if it lost its name meanwhile, to whoever held it. Raises BlockingIOError while another
    holds it, ImportError or another OSError where there are no such locks.
    """
    import fcntl

    try:  # network file systems lock nothing that may not be written
        handle, ours = os.open(path, os.O_RDWR | os.O_CREAT, 0o666), False
    except PermissionError:  # another user's
        handle, ours = os.open(path, os.O_RDONLY), False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(FileNotFoundError):
            ours = os.path.samestat(os.fstat(handle), path.stat())
    finally:
        if not ours:
            os.close(handle)
    return handle if ours else None


def require_writable(folder: Path, megabytes: float) -> None:
    """Make the folder, and raise unless that much can be written: before long work, not after.

    >>> import tempfile, pathlib
    >>> from coldq.base.files import require_writable
    >>> require_writable(pathlib.Path(tempfile.mkdtemp()) / "results", megabytes=1.0)
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free / 1e6
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"written to see whether it can be")
            probe.flush()
    except OSError as error:
        raise InvalidInput(f"cannot write to {folder}: {error.strerror or error}") from None
    if free < megabytes:
        raise InvalidInput(
            f"{folder} has {free:.0f} MB free, but the results need {megabytes:.0f} MB"
        )
