"""What a sweep has left in its folder."""

from __future__ import annotations

from pathlib import Path


def results(out: Path) -> dict[str, bytes]:
    """The bytes of every result, by its file's name."""
    return {path.name: path.read_bytes() for path in (out / "runs").rglob("*") if path.is_file()}
