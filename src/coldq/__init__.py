"""Constrained online learning: decide now, learn the cost and the constraints after.

>>> import coldq
>>> problem = coldq.problems.TimeVarying(horizon=100)
>>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=range(3))
>>> coldq.hard_violation(trace).shape
(3,)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from coldq._lazy import homes_of, importer
from coldq.learners import HOMES

if TYPE_CHECKING:
    from coldq import adapters as adapters
    from coldq import agent as agent
    from coldq import bounds as bounds
    from coldq import checks as checks
    from coldq import forecasts as forecasts
    from coldq import limit_forecasts as limit_forecasts
    from coldq import margins as margins
    from coldq import networks as networks
    from coldq import problems as problems
    from coldq import schedules as schedules
    from coldq.agent import Agent as Agent
    from coldq.comparators import Comparator as Comparator
    from coldq.comparators import dynamic_comparator as dynamic_comparator
    from coldq.comparators import static_comparator as static_comparator
    from coldq.constraints import Affine as Affine
    from coldq.constraints import Convex as Convex
    from coldq.constraints import LogCapacity as LogCapacity
    from coldq.constraints import MaxAffine as MaxAffine
    from coldq.constraints import QuadraticConstraint as QuadraticConstraint
    from coldq.constraints import SparseAffine as SparseAffine
    from coldq.constraints import Stacked as Stacked
    from coldq.constraints import Unconstrained as Unconstrained
    from coldq.description import build as build
    from coldq.description import describe as describe
    from coldq.domains import Ball as Ball
    from coldq.domains import Box as Box
    from coldq.domains import CustomDomain as CustomDomain
    from coldq.domains import Polytope as Polytope
    from coldq.domains import Product as Product
    from coldq.domains import Simplex as Simplex
    from coldq.errors import Error as Error
    from coldq.errors import FailedTasks as FailedTasks
    from coldq.errors import IgnoredFile as IgnoredFile
    from coldq.errors import Inexact as Inexact
    from coldq.errors import Infeasible as Infeasible
    from coldq.errors import InUse as InUse
    from coldq.errors import InvalidInput as InvalidInput
    from coldq.errors import KeptAsText as KeptAsText
    from coldq.errors import NotReadable as NotReadable
    from coldq.errors import NotRevealed as NotRevealed
    from coldq.errors import NotSaveable as NotSaveable
    from coldq.errors import NotWritten as NotWritten
    from coldq.errors import PastHorizon as PastHorizon
    from coldq.errors import SharedGradient as SharedGradient
    from coldq.errors import StepFailed as StepFailed
    from coldq.errors import UndefinedRegret as UndefinedRegret
    from coldq.errors import UnknownLearner as UnknownLearner
    from coldq.errors import UnlikelyUnits as UnlikelyUnits
    from coldq.errors import WeakPrice as WeakPrice
    from coldq.errors import WorkerLost as WorkerLost
    from coldq.errors import WrongState as WrongState
    from coldq.experiments.compare import compare as compare
    from coldq.experiments.comparison import Comparison as Comparison
    from coldq.feedback import Feedback as Feedback
    from coldq.feedback import Forecast as Forecast
    from coldq.headroom import tune_headroom as tune_headroom
    from coldq.learners import CLASP as CLASP
    from coldq.learners import COLDQ as COLDQ
    from coldq.learners import MOSP as MOSP
    from coldq.learners import OGD as OGD
    from coldq.learners import RECOO as RECOO
    from coldq.learners import Ader as Ader
    from coldq.learners import BestResponse as BestResponse
    from coldq.learners import CaoLiu2019 as CaoLiu2019
    from coldq.learners import CaoZhangPoor2021 as CaoZhangPoor2021
    from coldq.learners import COLDQDoubling as COLDQDoubling
    from coldq.learners import COLDQExpert as COLDQExpert
    from coldq.learners import Decentralised as Decentralised
    from coldq.learners import Forecasting as Forecasting
    from coldq.learners import ForecastWithMargin as ForecastWithMargin
    from coldq.learners import Jenatton2016 as Jenatton2016
    from coldq.learners import LekeufackJordan2024 as LekeufackJordan2024
    from coldq.learners import Liu2022 as Liu2022
    from coldq.learners import Mahdavi2012 as Mahdavi2012
    from coldq.learners import NestedProjections as NestedProjections
    from coldq.learners import OnePoint as OnePoint
    from coldq.learners import PolyakFeasibility as PolyakFeasibility
    from coldq.learners import RECOOExpert as RECOOExpert
    from coldq.learners import SafetyMargin as SafetyMargin
    from coldq.learners import SarkarSinha2025 as SarkarSinha2025
    from coldq.learners import SelfTuning as SelfTuning
    from coldq.learners import SinhaVaze as SinhaVaze
    from coldq.learners import SupanthaSinha2026 as SupanthaSinha2026
    from coldq.learners import SupanthaSinha2026ProjectionFree as SupanthaSinha2026ProjectionFree
    from coldq.learners import Switch as Switch
    from coldq.learners import TwoPoint as TwoPoint
    from coldq.learners import Wang2023 as Wang2023
    from coldq.learners import WeiYuNeely2020 as WeiYuNeely2020
    from coldq.learners import Yi2021 as Yi2021
    from coldq.learners import Yi2021Expert as Yi2021Expert
    from coldq.learners import Yi2023 as Yi2023
    from coldq.learners import YuanLamperski2018 as YuanLamperski2018
    from coldq.learners import YuNeely2020 as YuNeely2020
    from coldq.learners import YuNeelyWei2017 as YuNeelyWei2017
    from coldq.learners import citation as citation
    from coldq.losses import GradientAt as GradientAt
    from coldq.losses import LeastSquares as LeastSquares
    from coldq.losses import Linear as Linear
    from coldq.losses import Quadratic as Quadratic
    from coldq.losses import Smooth as Smooth
    from coldq.losses import ValueAt as ValueAt
    from coldq.metrics import ConstraintVariation as ConstraintVariation
    from coldq.metrics import accumulated_loss as accumulated_loss
    from coldq.metrics import constraint_variation as constraint_variation
    from coldq.metrics import dynamic_regret as dynamic_regret
    from coldq.metrics import growth_exponent as growth_exponent
    from coldq.metrics import hard_violation as hard_violation
    from coldq.metrics import infeasible_slots as infeasible_slots
    from coldq.metrics import path_length as path_length
    from coldq.metrics import soft_violation as soft_violation
    from coldq.metrics import static_regret as static_regret
    from coldq.simulate import simulate as simulate
    from coldq.step import Step as Step
    from coldq.step import penalised_step as penalised_step
    from coldq.sweeps import Sweep as Sweep
    from coldq.sweeps import sweep as sweep
    from coldq.theory.certificate import Certificate as Certificate
    from coldq.theory.certificate import certify as certify
    from coldq.theory.promise import Promise as Promise
    from coldq.theory.promise import promised as promised
    from coldq.theory.survey import Survey as Survey
    from coldq.theory.survey import survey as survey
    from coldq.trace import Trace as Trace
    from coldq.trace import plot_compare as plot_compare

__version__ = "0.2.0"

# A name is imported when it is first asked for: nobody waits for 26 learners who wants one. The
# imports above say the same to readers and tools.
_HOME_OF = homes_of(
    {
        "coldq.agent": "Agent",
        "coldq.comparators": "Comparator dynamic_comparator static_comparator",
        "coldq.constraints": (
            "Affine Convex LogCapacity MaxAffine QuadraticConstraint SparseAffine Stacked "
            "Unconstrained"
        ),
        "coldq.description": "build describe",
        "coldq.domains": "Ball Box CustomDomain Polytope Product Simplex",
        "coldq.errors": (
            "Error IgnoredFile InUse Inexact Infeasible InvalidInput NotReadable NotRevealed "
            "NotSaveable NotWritten PastHorizon SharedGradient StepFailed UndefinedRegret "
            "UnknownLearner WeakPrice WorkerLost WrongState KeptAsText UnlikelyUnits FailedTasks"
        ),
        "coldq.feedback": "Feedback Forecast",
        "coldq.headroom": "tune_headroom",
        "coldq.learners": " ".join(HOMES),
        "coldq.losses": "GradientAt LeastSquares Linear Quadratic Smooth ValueAt",
        "coldq.metrics": (
            "ConstraintVariation accumulated_loss constraint_variation dynamic_regret "
            "growth_exponent hard_violation path_length soft_violation static_regret "
            "infeasible_slots"
        ),
        "coldq.simulate": "simulate",
        "coldq.step": "Step penalised_step",
        "coldq.sweeps": "Sweep sweep",
        "coldq.theory.certificate": "Certificate certify",
        "coldq.theory.promise": "Promise promised",
        "coldq.theory.survey": "Survey survey",
        "coldq.trace": "Trace plot_compare",
        "coldq.experiments.compare": "compare",
        "coldq.experiments.comparison": "Comparison",
    }
)
_MODULES = homes_of(
    {
        "coldq": (
            "adapters agent bounds checks forecasts limit_forecasts margins networks problems "
            "schedules"
        )
    }
)
__all__ = ["__version__", *_HOME_OF, *_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]
_get = importer(__name__, _HOME_OF)


def __getattr__(name: str) -> Any:
    return import_module(f"coldq.{name}") if name in _MODULES else _get(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
