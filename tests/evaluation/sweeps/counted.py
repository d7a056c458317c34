"""A problem that writes down whenever a task begins to play it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import coldq

STARTS = "COLDQ_TEST_STARTS"  # names the file
HELD = "COLDQ_TEST_HELD"  # names one that holds tasks back


class Counted:
    """Another problem, whose starts are counted."""

    def __init__(self, horizon: int = 150) -> None:
        self.inner = coldq.problems.TimeVarying(horizon=horizon)
        self.domain, self.horizon = self.inner.domain, self.inner.horizon
        self.n_constraints, self.constants = self.inner.n_constraints, self.inner.constants

    def start(self, seeds: Iterable[int]) -> Any:
        seeds = tuple(seeds)
        if STARTS in os.environ:
            out = os.open(os.environ[STARTS], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(out, f"{seeds[0]}\n".encode())
            os.close(out)
        return self.inner.start(seeds)


problem = Counted()


class Poisoned(Counted):
    """One whose seed 3 fails, and whose seed 5 ends the process that plays it."""

    def start(self, seeds: Iterable[int]) -> Any:
        seeds = tuple(seeds)
        if 3 in seeds:
            raise RuntimeError("seed 3 is not to be played")
        if 5 in seeds and "COLDQ_TEST_PARENT" in os.environ:
            os.kill(os.getpid(), 9)
        return super().start(seeds)


poisoned = Poisoned(horizon=20)


class Held(Counted):
    """One whose seeds from 4 on are not played as long as a file is there."""

    def start(self, seeds: Iterable[int]) -> Any:
        seeds = tuple(seeds)
        while max(seeds) >= 4 and Path(os.environ.get(HELD, "")).is_file():
            time.sleep(0.02)
        return super().start(seeds)


held = Held(horizon=20)


def odd(problem: Any, seed: int, loss: float, within: coldq.Box) -> coldq.COLDQ:
    """A learner whose parameters are called as columns are, or are no numbers."""
    return coldq.COLDQ.for_problem(problem, epsilon=seed * loss * float(within.upper.max()))
