"""The build backend: scikit-build-core, with a compiler from PyPI where there is none."""

from __future__ import annotations

import os
import shlex
import tempfile
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import compiler
from scikit_build_core import build as core  # type: ignore[import-not-found]

build_sdist = core.build_sdist
get_requires_for_build_sdist = core.get_requires_for_build_sdist
prepare_metadata_for_build_editable = core.prepare_metadata_for_build_editable
prepare_metadata_for_build_wheel = core.prepare_metadata_for_build_wheel


def get_requires_for_build_wheel(settings: Any = None) -> list[str]:
    needed = core.get_requires_for_build_wheel(settings)
    return needed if compiler.is_there() else [*needed, compiler.ZIG]


def get_requires_for_build_editable(settings: Any = None) -> list[str]:
    return get_requires_for_build_wheel(settings)


def build_wheel(folder: str, settings: Any = None, metadata: str | None = None) -> str:
    given = shlex.split(os.environ.get("CMAKE_ARGS", ""))
    os.environ["CMAKE_ARGS"] = shlex.join([*given, *compiler.arguments()])
    return core.build_wheel(folder, settings, metadata)


def build_editable(folder: str, settings: Any = None, metadata: str | None = None) -> str:
    """A wheel that puts ``src`` on the path, after PYTHONPATH; the extension is built there.

    scikit-build-core's own comes before PYTHONPATH, and with code that every Python runs.
    """
    with tempfile.TemporaryDirectory() as scratch:
        compiler.build_in_place(Path(scratch))
    with tempfile.TemporaryDirectory() as scratch:
        info = core.prepare_metadata_for_build_editable(scratch, settings)
        root, name = Path(scratch), f"{info.removesuffix('.dist-info')}-py3-none-any.whl"
        (root / "coldq.pth").write_text(f"{compiler.ROOT / 'src'}\n", encoding="utf-8")
        record = f"{info}/RECORD"
        with zipfile.ZipFile(Path(folder) / name, "w") as wheel:
            lines = [f"{record},,"]
            for path in sorted(path for path in root.rglob("*") if path.is_file()):
                data, inside = path.read_bytes(), path.relative_to(root).as_posix()
                digest = urlsafe_b64encode(sha256(data).digest()).decode().rstrip("=")
                lines.append(f"{inside},sha256={digest},{len(data)}")
                wheel.writestr(inside, data)
            wheel.writestr(record, "\n".join(lines) + "\n")
    return name
