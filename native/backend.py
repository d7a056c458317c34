"""The build backend: scikit-build-core, with a compiler from PyPI where there is none."""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path
from typing import Any

import compiler
from scikit_build_core import build as core
from scikit_build_core.build import (  # noqa: F401
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)


def get_requires_for_build_wheel(settings: Any = None) -> list[str]:
    needed = core.get_requires_for_build_wheel(settings)
    return needed if compiler.is_there() else [*needed, compiler.ZIG]


get_requires_for_build_editable = get_requires_for_build_wheel


def build_wheel(folder: str, settings: Any = None, metadata: str | None = None) -> str:
    given = os.environ.get("CMAKE_ARGS", "")
    os.environ["CMAKE_ARGS"] = shlex.join([*shlex.split(given), *compiler.arguments()])
    return core.build_wheel(folder, settings, metadata)


def build_editable(folder: str, settings: Any = None, metadata: str | None = None) -> str:
    """What makes ``src`` importable; the extension is built there."""
    with tempfile.TemporaryDirectory() as scratch:
        compiler.build_in_place(Path(scratch))
    return core.build_editable(folder, settings, metadata)
