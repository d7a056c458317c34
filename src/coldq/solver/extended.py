"""Whether hard rows have a common point in their box."""

from __future__ import annotations

import numpy as np

from coldq.solver.api import active_set_extended
from coldq.solver.constants import TOLERANCE
from coldq.solver.linear_programs import no_point
from coldq.solver.problem import AffineProblem

MANY = 400  # independent rows: beyond, double-double takes minutes


def hard_rows_clash(problem: AffineProblem) -> bool:
    """Whether no point of the box satisfies all hard rows: a combination of them proves it, or,
    where multipliers got so long that no digits were left, a linear program.

    That is asked only if it can be told how far x may go.
    """
    hard = problem.hard_rows()
    if hard is None:
        return False
    if min(hard.A.shape) <= MANY:
        answer, bounded = active_set_extended(hard), np.isfinite(hard.upper - hard.lower).all()
        if answer.infeasible or not (answer.residual > TOLERANCE and bounded):
            return answer.infeasible
    return no_point(hard.A, hard.b, hard.lower, hard.upper, hard.floor, hard.weights)
