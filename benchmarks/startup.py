"""How long a fresh process takes: to import, to print its help, to decide for the first time."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks import SINGLE_THREAD

FIRST_DECISION = """
from time import perf_counter
import coldq
begun = perf_counter()
learner = coldq.COLDQ(coldq.Box(0.0, 5.0, dim=10), horizon=5000)
loss = coldq.LeastSquares([[1.0] * 10] * 4, [1.0] * 4)
constraint = coldq.Affine([[1.0] * 10] * 2, [1.0] * 2)
learner.update(learner.init(2), coldq.Feedback(loss, constraint))
print(perf_counter() - begun)
"""


@dataclass(frozen=True)
class StartUp:
    """The median seconds, and what they should stay below.

    Of whole processes, but for the first decision: that counts from after the import, which has a
    line of its own.
    """

    what: str
    seconds: float
    target: float
    repeats: int


def measure(repeats: int) -> list[StartUp]:
    """Start every kind of process `repeats` times, in turns."""
    python = sys.executable
    command = str(Path(python).with_name("coldq"))
    seconds: dict[str, list[float]] = {}
    for _ in range(repeats):
        with TemporaryDirectory() as cache:
            for what, arguments in (
                ("import coldq", [python, "-c", "import coldq"]),
                ("coldq --help", [command, "--help"]),
                ("first decision, empty cache", [python, "-c", FIRST_DECISION]),
                ("first decision, warm cache", [python, "-c", FIRST_DECISION]),
            ):
                seconds.setdefault(what, []).append(_wall_time(arguments, cache))
    targets = (0.3, 0.4, 12.0, 1.0)
    return [
        StartUp(what, median(times), target, repeats)
        for (what, times), target in zip(seconds.items(), targets, strict=True)
    ]


def _wall_time(arguments: list[str], cache: str) -> float:
    environment = {k: v for k, v in os.environ.items() if k not in SINGLE_THREAD}
    environment["COLDQ_CACHE_DIR"] = cache
    # pip compiles what it installs: bytecode from the first run on is what a user has.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begun = perf_counter()
    done = subprocess.run(arguments, env=environment, stdout=subprocess.PIPE, check=True)
    if FIRST_DECISION in arguments:
        return float(done.stdout)
    return perf_counter() - begun
