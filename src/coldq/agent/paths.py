"""Paths of agents' files, and of the logs beside them."""

from __future__ import annotations

import os
from errno import ENAMETOOLONG
from pathlib import Path

from coldq.base.errors import InvalidInput
from coldq.base.files import named_file


def path_of(path: str | os.PathLike[str]) -> Path:
    """The path of an agent's file; raise unless it can name one, and those that SQLite has beside.

    >>> from coldq.agent.paths import path_of
    >>> path_of("a" * 1000)
    Traceback (most recent call last):
    ...
    coldq.InvalidInput: path must name a file that can be kept, but this name is too ...
    """
    named, words = named_file(path), "path must name a file that can be kept, but"
    if str(path) == ":memory:" or "\0" in str(path):
        raise InvalidInput(f"{words} is {str(path)!r:.200}")
    try:
        Path(f"{named}-journal").lstat()
    except OSError as error:
        if error.errno == ENAMETOOLONG:
            raise InvalidInput(f"{words} this name is too long: {str(path)!r:.200}") from None
    return named


def file_and_log(path: Path) -> tuple[Path, Path]:
    """An agent's file and the log beside it, by names that neither links nor a new folder change.

    SQLite has the log beside what a link leads to, and keeps their whole names.
    """
    real = os.path.realpath(path)
    return Path(real), Path(f"{real}-wal")
