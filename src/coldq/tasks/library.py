"""Which coldq computed a result: a version would not tell of a line that was changed."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

LETTERS = 32  # of a digest: 128 bits, so that no two ever share one
# What lies above sweeps in the layers of pyproject.toml: no result depends on it.
ABOVE = ("__main__.py", "cli.py", "catalogue.py", "commands", "serve", "report")


@cache
def library_digest() -> str:
    """A digest of the library's sources and data, but for what only shows results."""
    home = Path(__file__).parents[1]
    seen = hashlib.sha256()
    for path in sorted(home.rglob("*")):
        inner = path.relative_to(home)
        if inner.parts[0] in ABOVE or "__pycache__" in inner.parts or not path.is_file():
            continue
        seen.update(f"{inner.as_posix()}\0{path.stat().st_size}\0".encode())
        seen.update(path.read_bytes())
    return seen.hexdigest()[:LETTERS]
