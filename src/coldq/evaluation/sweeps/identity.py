"""A user's module as part of what a task's name stands for: its source, and what it imports."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from coldq.base.errors import InvalidInput
from coldq.evaluation.tasks.library import digest

SHARED_FOLDERS = ("site-packages", "dist-packages")  # the folders that all packages share
SOURCE_DIGEST = "_source_for_coldq"  # what an imported module's spec keeps


def module_digest(name: str) -> str:
    """A digest of the sources of a user's module and of all that it imports from beside it.

    Raise where one of them has changed since this process first asked: the old code would run under
    the new one's name.
    """
    import_module(name)
    spec = find_spec(name)
    if spec is None or spec.origin is None or not spec.has_location:  # it has no source
        return ""
    origin = Path(spec.origin)
    root = (origin.parent if origin.stem == "__init__" else origin).parents[name.count(".")]
    # Where packages share a folder, all but its own are other people's.
    inner = f"{name.partition('.')[0]}." if root.name in SHARED_FOLDERS else ""
    seen: dict[str, str] = {}
    waiting = [origin, *_files(root, name)]
    while waiting:
        path = waiting.pop()
        place = path.relative_to(root)
        if place.as_posix() in seen:
            continue
        source = path.read_bytes()
        seen[place.as_posix()] = hashlib.sha256(source).hexdigest()
        _require_unchanged(path, place, seen[place.as_posix()])
        for dots, word in _imports(source):
            if dots:
                above = place.parts[: max(len(place.parts) - dots, 0)]
                waiting += _files(root.joinpath(*above), word)
            elif f"{word}.".startswith(inner):
                waiting += _files(root, word)
    return digest(seen)


def _require_unchanged(path: Path, place: Path, now: str) -> None:
    """Raise unless the file, if it was imported, has the source that was seen here first."""
    parts = place.with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    spec = getattr(sys.modules.get(name), "__spec__", None)  # a module that is reloaded has a new
    if (
        spec is not None
        and spec.origin == str(path)
        and vars(spec).setdefault(SOURCE_DIGEST, now) != now
    ):
        raise InvalidInput(
            f"{path} has changed since this process imported it, so that the old code would run: "
            "start a new process (in a notebook, restart the kernel)"
        )


def _files(folder: Path, name: str) -> Iterator[Path]:
    """The files of a module in a folder and of the packages that it is in, as many as there are."""
    for part in name.split("."):
        folder /= part
        for path in (folder / "__init__.py", folder.with_suffix(".py")):
            if path.is_file():
                yield path
                break


@cache
def _imports(source: bytes) -> tuple[tuple[int, str], ...]:
    """The names that a source imports, anywhere in it, each with the dots before it."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):  # a compiled module
        return ()
    plain = [(0, one.name) for node in nodes if isinstance(node, ast.Import) for one in node.names]
    return *plain, *(
        (node.level, f"{node.module}.{one.name}" if node.module else one.name)
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for one in node.names
    )
