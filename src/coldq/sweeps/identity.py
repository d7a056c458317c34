"""What a task's name stands for: everything that determines its result."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FORMAT = 1  # of the tables that tasks give
LETTERS = 32  # of a key: 128 bits, so that no two tasks ever share one
# What lies above sweeps in the layers of pyproject.toml: no result depends on it.
ABOVE = ("__main__.py", "cli.py", "catalogue.py", "commands", "serve", "report")


def canonical(value: Any) -> str:
    """Plain data as text, the same for equal data.

    >>> from coldq.sweeps.identity import canonical
    >>> canonical({"b": 1.0, "a": [True]})
    '{"a":[true],"b":1.0}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """A short name of plain data."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:LETTERS]


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


def module_digest(name: str) -> str:
    """A digest of the source of a user's module; what it imports is not looked at."""
    import_module(name)
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return ""
    return hashlib.sha256(Path(spec.origin).read_bytes()).hexdigest()[:LETTERS]
