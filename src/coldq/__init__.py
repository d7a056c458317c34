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

if TYPE_CHECKING:
    from coldq import adapters, agent, bounds, checks, forecasts, networks, problems, schedules
    from coldq.agent import Agent
    from coldq.comparators import Comparator, dynamic_comparator, static_comparator
    from coldq.constraints import (
        Affine,
        Convex,
        LogCapacity,
        MaxAffine,
        QuadraticConstraint,
        SparseAffine,
        Stacked,
        Unconstrained,
    )
    from coldq.description import build, describe
    from coldq.domains import Ball, Box, CustomDomain, Polytope, Product, Simplex
    from coldq.errors import (
        Error,
        IgnoredFile,
        Inexact,
        Infeasible,
        InUse,
        InvalidInput,
        KeptAsText,
        NotReadable,
        NotRevealed,
        NotSaveable,
        NotWritten,
        PastHorizon,
        SharedGradient,
        StepFailed,
        UndefinedRegret,
        UnknownLearner,
        WeakPrice,
        WorkerLost,
        WrongState,
    )
    from coldq.feedback import Feedback, Forecast
    from coldq.headroom import tune_headroom
    from coldq.learners import (
        CLASP,
        COLDQ,
        MOSP,
        OGD,
        RECOO,
        Ader,
        BestResponse,
        CaoLiu2019,
        CaoZhangPoor2021,
        COLDQDoubling,
        COLDQExpert,
        Decentralised,
        Forecasting,
        Jenatton2016,
        Liu2022,
        Mahdavi2012,
        NestedProjections,
        PolyakFeasibility,
        RECOOExpert,
        SafetyMargin,
        SelfTuning,
        SinhaVaze,
        Switch,
        Wang2023,
        WeiYuNeely2020,
        Yi2021,
        Yi2021Expert,
        Yi2023,
        YuanLamperski2018,
        YuNeely2020,
        YuNeelyWei2017,
        citation,
    )
    from coldq.losses import GradientAt, LeastSquares, Linear, Quadratic, Smooth
    from coldq.metrics import (
        ConstraintVariation,
        accumulated_loss,
        constraint_variation,
        dynamic_regret,
        growth_exponent,
        hard_violation,
        infeasible_slots,
        path_length,
        soft_violation,
        static_regret,
    )
    from coldq.simulate import simulate
    from coldq.step import Step, penalised_step
    from coldq.theory.certificate import Certificate, certify
    from coldq.theory.promise import Promise, promised
    from coldq.theory.survey import Survey, survey
    from coldq.trace import Trace, plot_compare
    from coldq.warmup import warmup

__version__ = "0.2.0"

__all__ = [
    "CLASP",
    "COLDQ",
    "MOSP",
    "OGD",
    "RECOO",
    "Ader",
    "Affine",
    "Agent",
    "Ball",
    "BestResponse",
    "Box",
    "COLDQDoubling",
    "COLDQExpert",
    "CaoLiu2019",
    "CaoZhangPoor2021",
    "Certificate",
    "Comparator",
    "ConstraintVariation",
    "Convex",
    "CustomDomain",
    "Decentralised",
    "Error",
    "Feedback",
    "Forecast",
    "Forecasting",
    "GradientAt",
    "IgnoredFile",
    "InUse",
    "Inexact",
    "Infeasible",
    "InvalidInput",
    "Jenatton2016",
    "KeptAsText",
    "LeastSquares",
    "Linear",
    "Liu2022",
    "LogCapacity",
    "Mahdavi2012",
    "MaxAffine",
    "NestedProjections",
    "NotReadable",
    "NotRevealed",
    "NotSaveable",
    "NotWritten",
    "PastHorizon",
    "PolyakFeasibility",
    "Polytope",
    "Product",
    "Promise",
    "Quadratic",
    "QuadraticConstraint",
    "RECOOExpert",
    "SafetyMargin",
    "SelfTuning",
    "SharedGradient",
    "Simplex",
    "SinhaVaze",
    "Smooth",
    "SparseAffine",
    "Stacked",
    "Step",
    "StepFailed",
    "Survey",
    "Switch",
    "Trace",
    "Unconstrained",
    "UndefinedRegret",
    "UnknownLearner",
    "Wang2023",
    "WeakPrice",
    "WeiYuNeely2020",
    "WorkerLost",
    "WrongState",
    "Yi2021",
    "Yi2021Expert",
    "Yi2023",
    "YuNeely2020",
    "YuNeelyWei2017",
    "YuanLamperski2018",
    "__version__",
    "accumulated_loss",
    "adapters",
    "agent",
    "bounds",
    "build",
    "certify",
    "checks",
    "citation",
    "constraint_variation",
    "describe",
    "dynamic_comparator",
    "dynamic_regret",
    "forecasts",
    "growth_exponent",
    "hard_violation",
    "infeasible_slots",
    "networks",
    "path_length",
    "penalised_step",
    "plot_compare",
    "problems",
    "promised",
    "schedules",
    "simulate",
    "soft_violation",
    "static_comparator",
    "static_regret",
    "survey",
    "tune_headroom",
    "warmup",
]


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
            "Error IgnoredFile InUse Inexact Infeasible InvalidInput KeptAsText NotReadable "
            "NotRevealed NotSaveable NotWritten PastHorizon SharedGradient StepFailed "
            "UndefinedRegret UnknownLearner WeakPrice WorkerLost WrongState"
        ),
        "coldq.feedback": "Feedback Forecast",
        "coldq.headroom": "tune_headroom",
        "coldq.learners": (
            "CLASP COLDQ MOSP OGD RECOO Ader BestResponse CaoLiu2019 CaoZhangPoor2021 "
            "COLDQDoubling COLDQExpert Decentralised Forecasting Jenatton2016 Liu2022 "
            "Mahdavi2012 NestedProjections PolyakFeasibility RECOOExpert SafetyMargin "
            "SelfTuning SinhaVaze Switch Wang2023 WeiYuNeely2020 Yi2021 Yi2021Expert Yi2023 "
            "YuanLamperski2018 YuNeely2020 YuNeelyWei2017 citation"
        ),
        "coldq.losses": "GradientAt LeastSquares Linear Quadratic Smooth",
        "coldq.metrics": (
            "ConstraintVariation accumulated_loss constraint_variation dynamic_regret "
            "growth_exponent hard_violation infeasible_slots path_length soft_violation "
            "static_regret"
        ),
        "coldq.simulate": "simulate",
        "coldq.step": "Step penalised_step",
        "coldq.theory.certificate": "Certificate certify",
        "coldq.theory.promise": "Promise promised",
        "coldq.theory.survey": "Survey survey",
        "coldq.trace": "Trace plot_compare",
        "coldq.warmup": "warmup",
    }
)
_get = importer(__name__, _HOME_OF)


def __getattr__(name: str) -> Any:
    if name in __all__ and name not in _HOME_OF:
        return import_module(f"coldq.{name}")
    return _get(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
