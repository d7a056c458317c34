"""Names that are imported when they are first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def homes_of(homes: Mapping[str, str]) -> dict[str, str]:
    """The module of each name, from the names, with spaces between, that each module has."""
    return {name: home for home, names in homes.items() for name in names.split()}


def importer(package: str, home_of: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package whose names live in other modules.

    No module of the package may bear one of these names: importing it would set it.
    """

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get


def scipy_sparse() -> Any:
    """``scipy.sparse``, imported when it is first needed: it takes longer than all of coldq."""
    return import_module("scipy.sparse")
