"""Constrained online learning: decide now, learn the cost and the constraints after.

>>> import coldq
>>> problem = coldq.problems.TimeVarying(horizon=100)
>>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=range(3))
>>> coldq.hard_violation(trace).shape
(3,)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from coldq.base.lazy import homes_of, importer
from coldq.learners import HOMES

if TYPE_CHECKING:
    from coldq import agent as agent
    from coldq import problems as problems
    from coldq import theory as bounds  # noqa: F401
    from coldq.agent import Agent as Agent
    from coldq.base import errors as errors
    from coldq.base.describe import build as build
    from coldq.base.describe import describe as describe
    from coldq.base.errors import Error as Error
    from coldq.base.errors import FailedTasks as FailedTasks
    from coldq.base.errors import IgnoredFile as IgnoredFile
    from coldq.base.errors import Inexact as Inexact
    from coldq.base.errors import Infeasible as Infeasible
    from coldq.base.errors import InUse as InUse
    from coldq.base.errors import InvalidInput as InvalidInput
    from coldq.base.errors import KeptAsText as KeptAsText
    from coldq.base.errors import NotReadable as NotReadable
    from coldq.base.errors import NotRevealed as NotRevealed
    from coldq.base.errors import NotSaveable as NotSaveable
    from coldq.base.errors import NotWritten as NotWritten
    from coldq.base.errors import PastHorizon as PastHorizon
    from coldq.base.errors import SharedGradient as SharedGradient
    from coldq.base.errors import StepFailed as StepFailed
    from coldq.base.errors import UndefinedRegret as UndefinedRegret
    from coldq.base.errors import UnknownLearner as UnknownLearner
    from coldq.base.errors import UnlikelyUnits as UnlikelyUnits
    from coldq.base.errors import WeakPrice as WeakPrice
    from coldq.base.errors import WorkerLost as WorkerLost
    from coldq.base.errors import WrongState as WrongState
    from coldq.evaluation.compare import compare as compare
    from coldq.evaluation.comparison import Comparison as Comparison
    from coldq.evaluation.safety_margins import tune_safety_margin as tune_safety_margin
    from coldq.evaluation.sweeps import Sweep as Sweep
    from coldq.evaluation.sweeps import sweep as sweep
    from coldq.learners import *  # noqa: F403
    from coldq.learners import checks as checks
    from coldq.learners import forecasts as forecasts
    from coldq.learners import limit_forecasts as limit_forecasts
    from coldq.learners import margins as margins
    from coldq.learners import networks as networks
    from coldq.simulation.bound_reports import BoundReport as BoundReport
    from coldq.simulation.bound_reports import bound_report as bound_report
    from coldq.simulation.comparators import Comparator as Comparator
    from coldq.simulation.comparators import dynamic_comparator as dynamic_comparator
    from coldq.simulation.comparators import static_comparator as static_comparator
    from coldq.simulation.estimated_constants import EstimatedConstants as EstimatedConstants
    from coldq.simulation.estimated_constants import estimate_constants as estimate_constants
    from coldq.simulation.loop import simulate as simulate
    from coldq.simulation.metrics import ConstraintVariation as ConstraintVariation
    from coldq.simulation.metrics import accumulated_loss as accumulated_loss
    from coldq.simulation.metrics import constraint_variation as constraint_variation
    from coldq.simulation.metrics import dynamic_regret as dynamic_regret
    from coldq.simulation.metrics import growth_exponent as growth_exponent
    from coldq.simulation.metrics import hard_violation as hard_violation
    from coldq.simulation.metrics import infeasible_slots as infeasible_slots
    from coldq.simulation.metrics import path_length as path_length
    from coldq.simulation.metrics import soft_violation as soft_violation
    from coldq.simulation.metrics import static_regret as static_regret
    from coldq.simulation.trace import Trace as Trace
    from coldq.simulation.trace import plot_compare as plot_compare
    from coldq.slot import adapters as adapters
    from coldq.slot import schedules as schedules
    from coldq.slot.constraints import Affine as Affine
    from coldq.slot.constraints import Convex as Convex
    from coldq.slot.constraints import LogCapacity as LogCapacity
    from coldq.slot.constraints import MaxAffine as MaxAffine
    from coldq.slot.constraints import QuadraticConstraint as QuadraticConstraint
    from coldq.slot.constraints import SparseAffine as SparseAffine
    from coldq.slot.constraints import Stacked as Stacked
    from coldq.slot.constraints import Unconstrained as Unconstrained
    from coldq.slot.domains import Ball as Ball
    from coldq.slot.domains import Box as Box
    from coldq.slot.domains import CustomDomain as CustomDomain
    from coldq.slot.domains import Polytope as Polytope
    from coldq.slot.domains import Product as Product
    from coldq.slot.domains import Simplex as Simplex
    from coldq.slot.feedback import Feedback as Feedback
    from coldq.slot.feedback import Forecast as Forecast
    from coldq.slot.losses import GradientAt as GradientAt
    from coldq.slot.losses import LeastSquares as LeastSquares
    from coldq.slot.losses import Linear as Linear
    from coldq.slot.losses import Quadratic as Quadratic
    from coldq.slot.losses import Smooth as Smooth
    from coldq.slot.losses import ValueAt as ValueAt
    from coldq.slot.step import Step as Step
    from coldq.slot.step import penalised_step as penalised_step
    from coldq.theory.a_priori import APrioriBounds as APrioriBounds
    from coldq.theory.a_priori import a_priori_bounds as a_priori_bounds

__version__ = "0.3.0"

# A name is imported when it is first asked for: nobody waits for 26 learners who wants one. The
# imports above say the same to readers and tools.
_HOME_OF = homes_of(
    {
        "coldq.agent": "Agent",
        "coldq.simulation.comparators": "Comparator dynamic_comparator static_comparator",
        "coldq.slot.constraints": (
            "Affine Convex LogCapacity MaxAffine QuadraticConstraint SparseAffine Stacked "
            "Unconstrained"
        ),
        "coldq.base.describe": "build describe",
        "coldq.slot.domains": "Ball Box CustomDomain Polytope Product Simplex",
        "coldq.base.errors": (
            "Error IgnoredFile InUse Inexact Infeasible InvalidInput NotReadable NotRevealed "
            "NotSaveable NotWritten PastHorizon SharedGradient StepFailed UndefinedRegret "
            "UnknownLearner WeakPrice WorkerLost WrongState KeptAsText UnlikelyUnits FailedTasks"
        ),
        "coldq.slot.feedback": "Feedback Forecast",
        "coldq.evaluation.safety_margins": "tune_safety_margin",
        "coldq.learners": " ".join(HOMES),
        "coldq.slot.losses": "GradientAt LeastSquares Linear Quadratic Smooth ValueAt",
        "coldq.simulation.metrics": (
            "ConstraintVariation accumulated_loss constraint_variation dynamic_regret "
            "growth_exponent hard_violation path_length soft_violation static_regret "
            "infeasible_slots"
        ),
        "coldq.simulation.loop": "simulate",
        "coldq.slot.step": "Step penalised_step",
        "coldq.evaluation.sweeps": "Sweep sweep",
        "coldq.simulation.bound_reports": "BoundReport bound_report",
        "coldq.theory.a_priori": "APrioriBounds a_priori_bounds",
        "coldq.simulation.estimated_constants": "EstimatedConstants estimate_constants",
        "coldq.simulation.trace": "Trace plot_compare",
        "coldq.evaluation.compare": "compare",
        "coldq.evaluation.comparison": "Comparison",
    }
)
_MODULES = {
    "adapters": "coldq.slot.adapters",
    "agent": "coldq.agent",
    "bounds": "coldq.theory",
    "checks": "coldq.learners.checks",
    "errors": "coldq.base.errors",
    "forecasts": "coldq.learners.forecasts",
    "limit_forecasts": "coldq.learners.limit_forecasts",
    "margins": "coldq.learners.margins",
    "networks": "coldq.learners.networks",
    "problems": "coldq.problems",
    "schedules": "coldq.slot.schedules",
}
__all__ = ["__version__", *_HOME_OF, *_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]
_get = importer(__name__, _HOME_OF)


def __getattr__(name: str) -> Any:
    return import_module(_MODULES[name]) if name in _MODULES else _get(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
