"""Run a suite that ``make test`` leaves out: ``python -m tests.check SUITE [ARGUMENTS]``.

Arguments go to the suite's last command. Without a name the suites are listed. A suite fails where
what it needs is not installed; ``--install`` lets pip install the extra first.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PYTHON = {"python": sys.executable, "mkdocs": str(Path(sys.executable).with_name("mkdocs"))}
PYTEST = "python -m pytest --override-ini addopts="
SANITIZED = (
    "tests/native tests/slot/step/test_lanes.py tests/solver/test_active_set.py "
    "tests/solver/test_interior_point.py tests/solver/test_working_set.py "
    "tests/learners/test_enforced_rows.py tests/learners/test_tuned_at_once.py"
)
# What each extra of pyproject.toml brings that a suite imports.
MODULES = {
    "": (),
    "browser": ("playwright",),
    "browser,docs": ("playwright", "mkdocs", "material", "mkdocstrings"),
    "cluster": ("distributed", "ray"),
    "http": ("schemathesis",),
    "jax,torch": ("jax", "torch"),
}


class Suite(NamedTuple):
    """What a suite checks, the extra it needs, and its commands, run until one fails."""

    purpose: str
    extra: str
    commands: tuple[str, ...]


SUITES = {
    "stress": Suite(
        "200,000 degenerate steps on boxes and 5,000 of every pair of constraint and domain; "
        "ARGS='quadratic convex': these rows alone, on every domain",
        "",
        (
            "python -W error -m tests.stress --steps 200000",
            "python -W error -m tests.stress --steps 5000 --pairs",
        ),
    ),
    "adversary": Suite(
        "steps drawn to break the solver, at moderate and extreme scales, and a backbone's",
        "",
        (
            "python -m tests.adversary --steps 7000",
            "python -m tests.adversary --steps 1500 --scale extreme",
            "python -m tests.adversary --traffic 20000",
        ),
    ),
    "memory": Suite(
        "ten million updates of each kind of learner, and steps of every pair: memory stays",
        "",
        ("python -m tests.memory",),
    ),
    "fuzz": Suite(
        "public entries with odd arguments, an agent beside its model, and odd tables",
        "",
        (
            "python -m tests.fuzz --calls 20000",
            "python -m tests.agent.stateful --cases 3000",
            "python -m tests.problems.fuzzed_tables --cases 5000",
        ),
    ),
    "fuzz-http": Suite(
        "requests drawn from the server's OpenAPI page: no 500, nothing without a token",
        "http",
        ("python -m tests.serve.drawn_requests --cases 300",),
    ),
    "kill-agent": Suite(
        "an agent on disk, killed 200 times: nothing acknowledged is lost or counts twice",
        "",
        ("python -m tests.agent.kills --kills 200",),
    ),
    "damage-logs": Suite(
        "the log of an agent, damaged 200 times: refused or right, never older",
        "",
        ("python -m tests.agent.damaged_logs --cases 200",),
    ),
    "backup-agent": Suite(
        "a served agent under load, backed up 50 times: each backup is of one moment",
        "",
        ("python -m tests.agent.backups --count 50",),
    ),
    "kill-sweep": Suite(
        "a sweep, killed 20 times: every result once, no process left behind",
        "",
        ("python -m tests.evaluation.sweeps.kills --kills 20",),
    ),
    "cluster": Suite(
        "a sweep on a Dask and a Ray cluster of two processes each, one of them killed",
        "cluster",
        (f"{PYTEST} tests/cluster",),
    ),
    "container": Suite(
        "the lines of the Containerfile as they are written, in a fresh folder and environment",
        "",
        ("python -m tests.serve.container",),
    ),
    "no-compiler": Suite(
        "`pip install .` with no compiler, cmake or ninja on the path, and the first example",
        "",
        ("python -m tests.no_compiler",),
    ),
    "adapters": Suite(
        "constraints from JAX and PyTorch functions, with both installed",
        "jax,torch",
        (f"{PYTEST} tests/adapters",),
    ),
    "growth": Suite(
        "regret and violation grow as claimed and every bound is kept: 20 seeds, some minutes",
        "",
        (f"{PYTEST} tests/statistical",),
    ),
    "browser": Suite(
        "the report in headless Chromium, on the path or named by CHROMIUM",
        "browser",
        (f"{PYTEST} tests/browser",),
    ),
    "site": Suite(
        "the site in headless Chromium, as wide as a desk and a phone, with and without scripts",
        "browser,docs",
        ("mkdocs build --strict", f"{PYTEST} tests/site"),
    ),
    "sanitize": Suite(
        "the native core with checks of addresses and undefined behaviour, with GCC",
        "",
        ("python native/compiler.py --sanitize", f"sanitized python -m pytest -n 0 {SANITIZED}"),
    ),
    "cpus": Suite(
        "the tests at every CPU level that this machine executes; ARGS='v2 v3': these alone",
        "",
        ("python native/compiler.py --all-levels", "python -m tests.cpus"),
    ),
    "arm": Suite(
        "the tests on 64-bit ARM, elsewhere emulated: root, debootstrap, qemu-user-static; "
        "ARGS='tests/rules': these alone",
        "",
        ("tests/elsewhere.sh arm64",),
    ),
    "x86": Suite("the tests on 64-bit x86, by the same means", "", ("tests/elsewhere.sh amd64",)),
}


def listing() -> str:
    """The suites by name, a line each."""
    return "\n".join(f"{name:13}{suite.purpose}" for name, suite in SUITES.items())


def absent(suite: Suite) -> list[str]:
    """The modules that a suite needs and this environment lacks."""
    return [name for name in MODULES[suite.extra] if find_spec(name) is None]


def run(suite: Suite, arguments: list[str]) -> int:
    """Run a suite's commands until one fails; the status of the last one run."""
    for place, command in enumerate(suite.commands, 1):
        words = shlex.split(command)
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        if words[0] == "sanitized":
            environment |= sanitizer()
            words = words[1:]
        words[0] = PYTHON.get(words[0], words[0])
        words += arguments if place == len(suite.commands) else []
        print("+", shlex.join(words), flush=True)
        status = subprocess.run(words, cwd=ROOT, env=environment, check=False).returncode
        if status:
            return status
    return 0


def sanitizer() -> dict[str, str]:
    """The environment in which Python loads the core that is built with sanitizers."""
    compiler = os.environ.get("CXX", "c++")
    asked = [compiler, "-print-file-name=libasan.so"]
    library = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return {
        "LD_PRELOAD": library,
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": "build/sanitized",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", action="store_true", help="install the extra if it is absent")
    parser.add_argument("suite", nargs="?", help="one of the suites; without it they are listed")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="for its last command")
    given = parser.parse_args()
    if given.suite is None:
        print(f"make check SUITE=name [ARGS='...'], where name is one of\n\n{listing()}")
        return 0
    if given.suite not in SUITES:
        parser.error(f"there is no suite {given.suite!r}; there are {', '.join(SUITES)}")
    suite = SUITES[given.suite]
    if absent(suite) and given.install:
        extra = f".[test,{suite.extra}]"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--editable", extra]
        subprocess.run(pip, cwd=ROOT, check=True)
    elif absent(suite):
        lacking = ", ".join(absent(suite))
        print(
            f"{given.suite} needs {lacking}, which this environment lacks: "
            f"pip install --editable '.[{suite.extra}]'",
            file=sys.stderr,
        )
        return 1
    return run(suite, given.arguments)


if __name__ == "__main__":
    sys.exit(main())
