"""How long a fresh process takes: to import, to print its help, to decide for the first time."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

FIRST_DECISION = """
import coldq
learner = coldq.COLDQ(coldq.Box(0.0, 5.0, dim=10), horizon=5000)
loss = coldq.LeastSquares([[1.0] * 10] * 4, [1.0] * 4)
constraint = coldq.Affine([[1.0] * 10] * 2, [1.0] * 2)
learner.update(learner.init(2), coldq.Feedback(loss, constraint))
"""
AGAINST_NUMPY = 4.0  # times `import numpy`, what a first decision may take


@dataclass(frozen=True)
class StartUp:
    """The median CPU seconds of whole processes, and what they should stay below."""

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
        with TemporaryDirectory() as home:
            for what, arguments in (
                ("import numpy", [python, "-c", "import numpy"]),
                ("import coldq", [python, "-c", "import coldq"]),
                ("coldq --help", [command, "--help"]),
                ("a first decision on a box, empty home", [python, "-c", FIRST_DECISION]),
            ):
                seconds.setdefault(what, []).append(_cpu_time(arguments, home))
    numpy, *medians = (median(times) for times in seconds.values())
    targets = (0.3, 0.4, AGAINST_NUMPY * numpy)
    return [
        StartUp(what, took, target, repeats)
        for what, took, target in zip(list(seconds)[1:], medians, targets, strict=True)
    ]


def _cpu_time(arguments: list[str], home: str) -> float:
    environment = {**os.environ, "HOME": home}
    # pip compiles what it installs: bytecode from the first run on is what a user has.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begun = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(arguments, env=environment, stdout=subprocess.PIPE, check=True)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime
