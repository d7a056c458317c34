"""Whether enforced rows have a common point in their box."""

from __future__ import annotations

import numpy as np

from coldq.solver.api import active_set_extended
from coldq.solver.constants import TOLERANCE
from coldq.solver.linear_programs import no_point
from coldq.solver.problem import AffineProblem

MAX_EXTENDED_ROWS = 400  # independent rows: beyond, double-double takes minutes


def enforced_rows_conflict(problem: AffineProblem) -> bool:
    """Whether no point of the box satisfies all enforced rows: a combination of them proves it, or,
    where multipliers got so long that no digits were left, a linear program.

    That is asked only if it can be told how far x may go.
    """
    enforced = problem.enforced_rows()
    if enforced is None:
        return False
    if min(enforced.A.shape) <= MAX_EXTENDED_ROWS:
        answer, bounded = (
            active_set_extended(enforced),
            np.isfinite(enforced.upper - enforced.lower).all(),
        )
        if answer.infeasible or not (answer.residual > TOLERANCE and bounded):
            return answer.infeasible
    return no_point(
        enforced.A,
        enforced.b,
        enforced.lower,
        enforced.upper,
        enforced.multiplier_lower,
        enforced.multiplier_upper,
    )
