"""`pip install .` where there is no compiler, cmake or ninja, and the README's first example.

``python -m tests.no_compiler``, as ``make check SUITE=no-compiler`` does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import tomllib
import venv
from pathlib import Path

from tests.installed import ROOT, SCRIPT, first_example

ABSENT = ("cc", "c++", "gcc", "g++", "clang", "clang++", "ar", "ld", "cmake", "ninja", "make")


def main() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        path = str(Path(folder) / "bin")
        for name in ABSENT:
            assert shutil.which(name, path=path) is None, name
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        settings = {**kept, "PATH": path, "HOME": folder}
        python = str(Path(folder) / "bin" / "python")
        begun = time.monotonic()
        subprocess.run([python, "-m", "pip", "install", "--quiet", ROOT], env=settings, check=True)
        print(f"installed in {time.monotonic() - begun:.0f} s")
        example = first_example((ROOT / "README.md").read_text(encoding="utf-8"))
        command = [python, "-c", SCRIPT, version, example]
        subprocess.run(command, cwd=folder, env=settings, check=True)


if __name__ == "__main__":
    main()
