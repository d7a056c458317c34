"""Run tests at every level of the native core that this machine has: ``make check SUITE=cpus``.

The core is built with all levels first; those that this machine cannot execute are named.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from coldq import _native


def can_run(level: str) -> bool:
    """Whether the core starts at the level; it refuses one that the machine does not have."""
    command = [sys.executable, "-c", "import coldq._native"]
    environment = {**os.environ, "COLDQ_CPU": level}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("levels", nargs="*", help=f"of {', '.join(_native.levels)}; all of them")
    parser.add_argument("--tests", nargs="+", default=[], help="instead of the whole suite")
    given = parser.parse_args()
    if unknown := set(given.levels) - set(_native.levels):
        parser.error(f"there is no level {', '.join(sorted(unknown))}")
    failed = []
    for level in given.levels or _native.levels:
        if not can_run(level):
            print(f"{level}: this machine cannot execute it", flush=True)
            continue
        print(f"{level}:", flush=True)
        command = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "worksteal"]
        environment = {**os.environ, "COLDQ_CPU": level}
        if subprocess.run([*command, *given.tests], env=environment, check=False).returncode:
            failed.append(level)
    print(f"failed at {', '.join(failed)}" if failed else "passed at all levels")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
