"""What a task's name stands for: everything that determines its result."""

from __future__ import annotations

import ast
import hashlib
import json
import marshal
import os
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from coldq.errors import InvalidInput
from coldq.tasks.library import LETTERS

FORMAT = 1  # of the tables that tasks give
INSTALLED = ("site-packages", "dist-packages")  # the folders that all packages share
HEADER = 16  # bytes of a file of bytecode before the code
NOTED = "_source_for_coldq"  # where an imported module's spec keeps the digest of its source


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


def module_digest(name: str) -> str:
    """A digest of the sources of a user's module and of all that it imports from beside it.

    Raise where one of them was changed since this process imported it: the old code would run under
    the new one's name.
    """
    import_module(name)
    spec = find_spec(name)
    if spec is None or spec.origin is None or not spec.has_location:  # it has no source
        return ""
    origin = Path(spec.origin)
    root = (origin.parent if origin.stem == "__init__" else origin).parents[name.count(".")]
    # Where packages share a folder, all but its own are other people's.
    inner = f"{name.partition('.')[0]}." if root.name in INSTALLED else ""
    seen: dict[str, str] = {}
    waiting = [origin, *_files(root, name)]
    while waiting:
        path = waiting.pop()
        place = path.relative_to(root)
        if place.as_posix() in seen:
            continue
        source = path.read_bytes()
        seen[place.as_posix()] = hashlib.sha256(source).hexdigest()
        _require_as_imported(path, place, source, seen[place.as_posix()])
        for dots, word in _imports(source):
            if dots:
                above = place.parts[: max(len(place.parts) - dots, 0)]
                waiting += _files(root.joinpath(*above), word)
            elif f"{word}.".startswith(inner):
                waiting += _files(root, word)
    return digest(seen)


def _require_as_imported(path: Path, place: Path, source: bytes, now: str) -> None:
    """Raise unless the file, if it was imported, still has the source that it had then."""
    parts = place.with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    spec = getattr(sys.modules.get(name), "__spec__", None)
    if spec is None or spec.origin != str(path):
        return
    # A module that is reloaded has a new spec.
    if _is_newer_than_imported(spec, source) or vars(spec).setdefault(NOTED, now) != now:
        raise InvalidInput(
            f"{path} has changed since this process imported it, so that the old code would run: "
            "start a new process (in a notebook, restart the kernel)"
        )


def _is_newer_than_imported(spec: ModuleSpec, source: bytes) -> bool:
    """Whether a module's bytecode, which its import has left beside it, is that of another source.

    Where an import leaves none, nobody knows.
    """
    if type(spec.loader) is not SourceFileLoader or sys.dont_write_bytecode or not spec.cached:
        return False
    kept = Path(spec.cached)
    if not os.access(kept.parent, os.W_OK):  # what lies there may be older than the import
        return False
    try:
        imported = marshal.loads(kept.read_bytes()[HEADER:])
        return imported != spec.loader.source_to_code(source, str(spec.origin))
    except (OSError, EOFError, ValueError, TypeError, SyntaxError):
        return False


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
