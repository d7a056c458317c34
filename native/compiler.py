"""Which compiler builds the extension; run as a script, it is built into ``src/coldq``.

With ``--sanitize`` it is built into a copy of the package in ``build/sanitized``, with checks of
addresses and of undefined behaviour; with ``--all-levels`` for every CPU level; with ``--for
aarch64 FOLDER`` into a folder for Linux on another kind of processor, by ziglang.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "coldq"
ZIG = "ziglang>=0.13"  # a C++ compiler from PyPI


def is_there() -> bool:
    """Whether this machine has a C++ compiler, or somebody named one."""
    names = ("c++", "g++", "clang++")
    return bool(os.environ.get("CXX")) or any(shutil.which(name) for name in names)


def arguments(machine: str = "") -> list[str]:
    """What CMake is told; for another machine, or with no compiler here, also to take zig, which is
    not on the path."""
    if is_there() and not machine:
        return []
    package = find_spec("ziglang")
    if package is None or package.origin is None:
        raise SystemExit("coldq is built by a C++ compiler: install g++ or clang, or ziglang")
    zig = Path(package.origin).parent / ("zig.exe" if os.name == "nt" else "zig")
    tools = {"C_COMPILER": "cc", "CXX_COMPILER": "c++", "AR": "ar", "RANLIB": "ranlib"}
    found = [f"-DCMAKE_{name}={_script(zig, tool, machine)}" for name, tool in tools.items()]
    if machine:  # Python is asked for its headers here, so nothing is emulated
        found += ["-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={machine}"]
        found += [f"-DCMAKE_CROSSCOMPILING_EMULATOR={shutil.which('env')}"]
    # A check that links C++ would first compile the whole C++ library, which nothing here needs.
    return [*found, "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY", "-DCOLDQ_ZIG=ON"]


def _script(zig: Path, tool: str, machine: str) -> Path:
    """One tool of zig as a program, as CMake wants it."""
    script = ROOT / "build" / f"zig{machine}" / tool
    script.parent.mkdir(parents=True, exist_ok=True)
    target = f"-target {machine}-linux-gnu " if machine and tool in ("cc", "c++") else ""
    script.write_text(f'#!/bin/sh\nexec "{zig}" {tool} {target}"$@"\n')
    script.chmod(0o755)
    return script


def build_in_place(folder: Path, package: Path = PACKAGE, *more: str, machine: str = "") -> None:
    """Build the extension into the package, with what is not the result in `folder`."""
    scripts = sysconfig.get_path("scripts")
    path = os.pathsep.join([scripts, os.environ.get("PATH", "")])
    cmake = shutil.which("cmake", path=path) or "cmake"
    settings = ["-G", "Ninja", f"-DPython_EXECUTABLE={sys.executable}"]
    settings.append(f"-DCMAKE_LIBRARY_OUTPUT_DIRECTORY={package}")
    commands = [
        [
            cmake,
            "-S",
            str(ROOT / "native"),
            "-B",
            str(folder),
            *settings,
            *more,
            *arguments(machine),
        ],
        [cmake, "--build", str(folder)],
    ]
    for command in commands:
        done = subprocess.run(
            command,
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode != 0:
            raise SystemExit(done.stdout)


def build_sanitized() -> None:
    """Build the extension with checks into a copy of the package, in ``build/sanitized``."""
    package = ROOT / "build" / "sanitized" / "coldq"
    shutil.copytree(
        PACKAGE, package, dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("*.so", "__pycache__"),
    )  # fmt: skip
    build_in_place(ROOT / "build" / "sanitizing", package, "-DCOLDQ_SANITIZE=ON")


if __name__ == "__main__":
    if "--sanitize" in sys.argv:
        build_sanitized()
    elif "--all-levels" in sys.argv:
        build_in_place(ROOT / "build" / "all-levels", PACKAGE, "-DCOLDQ_ALL_LEVELS=ON")
    elif "--for" in sys.argv:
        kind, where = sys.argv[-2:]
        build_in_place(ROOT / "build" / f"native-{kind}", Path(where).absolute(), machine=kind)
    else:
        build_in_place(ROOT / "build" / "native")
