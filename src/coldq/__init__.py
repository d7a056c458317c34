"""Constrained online learning: decide now, learn the cost and the constraints after.

>>> import coldq
>>> problem = coldq.problems.TimeVarying(horizon=100)
>>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=range(3))
>>> coldq.hard_violation(trace).shape
(3,)
"""

from coldq import adapters, checks, problems, schedules
from coldq.comparators import Comparator, dynamic_comparator, static_comparator
from coldq.constraints import Affine, LogCapacity, Unconstrained
from coldq.convex import Convex
from coldq.domains import Box
from coldq.errors import (
    Error,
    Infeasible,
    InvalidInput,
    NotRevealed,
    NotSaveable,
    PastHorizon,
    SharedGradient,
    StepFailed,
)
from coldq.feedback import Feedback
from coldq.learners import (
    COLDQ,
    OGD,
    RECOO,
    COLDQExpert,
    RECOOExpert,
    SinhaVaze,
    Yi2021,
    Yi2021Expert,
    Yi2023,
    citation,
)
from coldq.losses import GradientAt, LeastSquares, Linear, Quadratic, Smooth
from coldq.max_affine import MaxAffine
from coldq.metrics import (
    ConstraintVariation,
    accumulated_loss,
    constraint_variation,
    dynamic_regret,
    growth_exponent,
    hard_violation,
    path_length,
    soft_violation,
    static_regret,
)
from coldq.quadratic_constraint import QuadraticConstraint
from coldq.simulate import Trace, simulate
from coldq.sparse_affine import SparseAffine
from coldq.stacked import Stacked
from coldq.step import Step, penalised_step
from coldq.warmup import warmup

__version__ = "0.1.0"

__all__ = [
    "COLDQ",
    "OGD",
    "RECOO",
    "Affine",
    "Box",
    "COLDQExpert",
    "Comparator",
    "ConstraintVariation",
    "Convex",
    "Error",
    "Feedback",
    "GradientAt",
    "Infeasible",
    "InvalidInput",
    "LeastSquares",
    "Linear",
    "LogCapacity",
    "MaxAffine",
    "NotRevealed",
    "NotSaveable",
    "PastHorizon",
    "Quadratic",
    "QuadraticConstraint",
    "RECOOExpert",
    "SharedGradient",
    "SinhaVaze",
    "Smooth",
    "SparseAffine",
    "Stacked",
    "Step",
    "StepFailed",
    "Trace",
    "Unconstrained",
    "Yi2021",
    "Yi2021Expert",
    "Yi2023",
    "__version__",
    "accumulated_loss",
    "adapters",
    "checks",
    "citation",
    "constraint_variation",
    "dynamic_comparator",
    "dynamic_regret",
    "growth_exponent",
    "hard_violation",
    "path_length",
    "penalised_step",
    "problems",
    "schedules",
    "simulate",
    "soft_violation",
    "static_comparator",
    "static_regret",
    "warmup",
]
