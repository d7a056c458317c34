"""A problem that writes down whenever a task begins to play it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import coldq

STARTS = "COLDQ_TEST_STARTS"  # names the file


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
