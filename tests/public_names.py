"""The public names of coldq and their signatures, as text: one line for each.

``python -m tests.public_names`` writes them to tests/data/public-names.txt, which a test compares
with what is there. Annotations are left out: they may become sharper.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import coldq
from coldq.base.arrays import arguments_of

RECORDED = Path(__file__).parent / "data" / "public-names.txt"
COMMAND = "python -m tests.public_names"
MODULES = (
    "",
    ".adapters",
    ".bounds",
    ".checks",
    ".learners",
    ".networks",
    ".problems",
    ".schedules",
)


def public_names() -> list[str]:
    """All lines, in order."""
    found: set[str] = set()
    first: dict[int, str] = {}
    for module in MODULES:
        home = getattr(coldq, module[1:]) if module else coldq
        for name in _names(home):
            path, value = f"coldq{module}.{name}", getattr(home, name)
            known = first.setdefault(id(value), path)
            found.update(_lines(path, value) if known == path else [f"{path} is {known}"])
    return sorted(found)


def _names(module: ModuleType) -> list[str]:
    """The names that a module declares, or those that it defines."""
    declared = getattr(module, "__all__", None)
    if declared is not None:
        return list(declared)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def _lines(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, ModuleType):
        yield f"{path}: a module"
    elif isinstance(value, type):
        bases = [base.__name__ for base in value.__bases__]
        yield path + (f"({', '.join(bases)})" if issubclass(value, BaseException) else "")
        if not issubclass(value, BaseException):
            yield _called(path, value)
        yield from _members(path, value)
    elif callable(value):
        yield _called(path, value)
    else:
        yield path


def _members(path: str, cls: type) -> Iterator[str]:
    """What a class and its bases within coldq have to offer."""
    for base in cls.__mro__:
        if not base.__module__.startswith("coldq"):
            continue
        own = {*vars(base), *vars(base).get("__annotations__", ())}
        for name in own:
            if name.startswith("_"):
                continue
            value = inspect.getattr_static(cls, name, None)
            if isinstance(value, classmethod | staticmethod):
                yield _called(f"{path}.{name}", getattr(cls, name))
            elif inspect.isfunction(value):
                yield _called(f"{path}.{name}", value)
            else:
                yield f"{path}.{name}"


def _called(path: str, function: Any) -> str:
    try:
        known = arguments_of(function).values()
    except (TypeError, ValueError):
        return path
    bare = inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in known])
    return path + re.sub(r" at 0x[0-9a-f]+", "", str(bare))


def changes(recorded: list[str], now: list[str]) -> str:
    """What is gone and what is new, in words; none if nothing changed."""
    gone, new = sorted(set(recorded) - set(now)), sorted(set(now) - set(recorded))
    words = [f"gone: {line}" for line in gone] + [f"new: {line}" for line in new]
    return "\n".join(words)


def main() -> None:
    """Write the lines down."""
    RECORDED.write_text("\n".join(public_names()) + "\n")
    print(f"{len(public_names())} public names and signatures are written down")


if __name__ == "__main__":
    main()
