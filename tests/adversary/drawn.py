"""What a draw is: one step's numbers, and a judge of the answer that knows nothing of solvers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import coldq

MODERATE, EXTREME = "moderate", "extreme"


class Drawn(NamedTuple):
    """One step to solve.

    `arguments` are those of :func:`coldq.penalised_step`, `floor` its keyword. `judge` gives what
    is wrong with an answer (0 is perfect), `allowed` how much of it the docs allow. It may not be
    able to prove what is right; then `doubt` has what is known to be wrong. `feasible` says whether
    the enforced rows have a common point with the domain; None if nobody knows.
    """

    rows: str
    domain: str
    category: str
    arguments: tuple[Any, ...]
    multiplier_lower: Any
    judge: Callable[[coldq.Step], float]
    allowed: float
    feasible: bool | None
    doubt: Callable[[coldq.Step], float] | None = None

    def solve(self) -> coldq.Step:
        return coldq.penalised_step(*self.arguments, multiplier_lower=self.multiplier_lower)


# A kind of draw: from random numbers and MODERATE or EXTREME scales to a step.
Draw = Callable[[np.random.Generator, str], Drawn]
