"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coldq.errors import InvalidInput


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path to write to; it becomes `path` if nothing goes wrong, else it is removed.

    >>> import tempfile, pathlib
    >>> from coldq.files import whole_file
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "note.txt"
    >>> with whole_file(path) as temporary:
    ...     _ = temporary.write_text("all of it")
    >>> path.read_text()
    'all of it'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def require_writable(folder: Path, megabytes: float) -> None:
    """Make the folder, and raise unless that much can be written to it: before long work, not
    after.

    >>> import tempfile, pathlib
    >>> from coldq.files import require_writable
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
