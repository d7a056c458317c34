"""What is proved: COLDQ's theorems and corollaries as functions that return the bound.

They live in :mod:`coldq.theory.bounds` and :mod:`coldq.theory.corollaries`.
"""

from coldq.theory.bounds import (
    expert_regret,
    expert_violation,
    floor_violation,
    queue_ceiling,
    step_violation,
    theorem_1,
    theorem_2,
    theorem_3,
)
from coldq.theory.constants import Guarantee, RunConstants
from coldq.theory.corollaries import Bounds, corollary_1, corollary_2, corollary_3

__all__ = [
    "Bounds",
    "Guarantee",
    "RunConstants",
    "corollary_1",
    "corollary_2",
    "corollary_3",
    "expert_regret",
    "expert_violation",
    "floor_violation",
    "queue_ceiling",
    "step_violation",
    "theorem_1",
    "theorem_2",
    "theorem_3",
]
