"""Digests: of plain data, and of the coldq that computes, which a version would not tell apart."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

DIGEST_LENGTH = 32  # of a digest: 128 bits, so that no two ever share one
# What lies above sweeps in the layers of pyproject.toml: no result depends on it.
PRESENTATION_PATHS = ("__main__.py", "cli/", "serve/", "evaluation/report/", "paper/report/")


@cache
def library_digest() -> str:
    """A digest of the library's sources and data, but for what only shows results."""
    home = Path(__file__).parents[2]
    seen = hashlib.sha256()
    for path in sorted(home.rglob("*")):
        inner = path.relative_to(home).as_posix()
        if (
            inner.startswith(PRESENTATION_PATHS)
            or "__pycache__" in path.parts
            or not path.is_file()
        ):
            continue
        seen.update(f"{inner}\0{path.stat().st_size}\0".encode())
        seen.update(path.read_bytes())
    return seen.hexdigest()[:DIGEST_LENGTH]


def canonical(value: Any) -> str:
    """Plain data as text, the same for equal data.

    >>> from coldq.evaluation.tasks.library import canonical
    >>> canonical({"b": 1.0, "a": [True]})
    '{"a":[true],"b":1.0}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """A short name of plain data."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:DIGEST_LENGTH]
