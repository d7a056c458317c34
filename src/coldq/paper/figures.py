"""The paper's four experiments as data: problems, learners, and the parameters of its appendix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coldq.base.errors import InvalidInput
from coldq.base.protocols import Problem
from coldq.learners import COLDQ, RECOO, COLDQExpert, SinhaVaze, Yi2021, Yi2023
from coldq.problems import JobScheduling, OnlineLinear, OnlineQuadratic, TimeVarying
from coldq.slot.domains import Box
from coldq.slot.schedules import Power


@dataclass(frozen=True)
class Entry:
    """A learner in a figure, with its parameters as its ``for_problem`` takes them.

    `printed` is how the paper's appendix writes the parameters; `published` is the name of its
    curve in the paper's figure, None for a learner that the paper does not plot.
    """

    label: str
    learner: type
    parameters: Mapping[str, Any] = field(default_factory=dict)
    printed: str = ""
    published: str | None = None

    def make(self, problem: Problem) -> Any:
        """The learner for this problem."""
        return self.learner.for_problem(problem, **self.parameters)


@dataclass(frozen=True)
class Setting:
    """One reading of an experiment: a problem that the paper's words allow, or a variant of it.

    `claimed` is False for a variant of ours that the paper claims nothing about, and `drawn` is
    False where the published curves cannot have been drawn from it.
    """

    key: str
    title: str
    problem: Any
    claimed: bool = True
    drawn: bool = True


@dataclass(frozen=True)
class Figure:
    """One figure of the paper.

    `averaged` figures show running averages, as the paper does: the total up to slot t divided by
    t + 1. `curves` is the prefix of its curves among the published ones. In a `tuned` figure RECOO
    is also run with an alpha tuned to COLDQ's loss.
    """

    key: str
    number: int
    title: str
    settings: tuple[Setting, ...]
    entries: tuple[Entry, ...]
    curves: str
    tuned: bool = False
    loss_label: str = "accumulated loss"
    violation_label: str = "hard constraint violation"
    averaged: bool = False


# The appendix gives COLDQ the same parameters in all four experiments. The paper plots neither of
# the last two; both take what their theory says.
COLDQ_ENTRY = Entry(
    "COLDQ",
    COLDQ,
    {"epsilon": 0.5},
    "alpha_t = t^(1/2), gamma = epsilon T, eta = 1/T, epsilon = 0.5",
    published="COLDQ",
)
EXPERT = Entry(
    "COLDQ-Expert",
    COLDQExpert,
    printed="Corollary 3: alpha_t[m] = t^(1/2) / 2^(m-1), eta = T^(-3/2), gamma = epsilon T^(3/2)",
)
SINHA_VAZE = Entry("Sinha-Vaze", SinhaVaze, printed="as its theorem has them, from R, D and L")


def recoo(alpha: float = 1.0, gamma: float = 1.0) -> Entry:
    """RECOO with alpha_t = alpha t^(1/2) and gamma_t = gamma t^(1/2 + 0.01)."""
    return Entry(
        "RECOO",
        RECOO,
        {"alpha": Power(0.5, alpha), "gamma": Power(0.51, gamma)},
        f"alpha_t = {_times(alpha)}t^(1/2), gamma_t = {_times(gamma)}t^(1/2 + epsilon), "
        "eta_t = t^(1/2), epsilon = 0.01",
        published="RECOO",
    )


def yi2021(alpha0: float, gamma0: float) -> tuple[Entry, Entry]:
    """Yi 2021 in two readings of gamma: as the algorithm has it, and as the appendix prints it."""
    given = {"alpha0": alpha0, "gamma0": gamma0, "c": 0.5}
    sizes = f"alpha_t = {alpha0:g} / T^(1/2), c = 0.5"
    return (
        Entry(
            "Yi 2021",
            Yi2021,
            given,
            f"{sizes}, gamma_t = {_times(gamma0)}T^(c/2)",
            published="Yi et al. 2021",
        ),
        Entry(
            "Yi 2021, printed gamma",
            Yi2021,
            given | {"printed_gamma": True},
            f"{sizes}, gamma_t = {gamma0:g} / T^(c/2)",
        ),
    )


def yi2023(alpha: float, gamma: float, beta: float) -> Entry:
    """Yi 2023 with all three schedules proportional to t^(-1/2)."""
    return Entry(
        "Yi 2023",
        Yi2023,
        {"a": alpha, "b": beta, "g": gamma},
        f"alpha_t = {alpha:g} / t^(1/2), gamma_t = {gamma:g} / t^(1/2), "
        f"beta_t = {beta:g} / t^(1/2)",
        published="Yi et al. 2023",
    )


def _times(scale: float) -> str:
    return "" if scale == 1.0 else f"{scale:g} "


FIGURES = (
    Figure(
        "time-varying",
        1,
        "Time-varying constraints",
        (
            Setting("printed", "X = [0, 5]^10, as printed", TimeVarying()),
            Setting(
                "plotted",
                "X = [-5, 5]^10, as the figure suggests",
                TimeVarying(domain=Box(-5.0, 5.0, dim=10)),
            ),
        ),
        (COLDQ_ENTRY, recoo(alpha=0.5), yi2023(alpha=3.0, gamma=0.1, beta=5.0), EXPERT, SINHA_VAZE),
        curves="tv",
        tuned=True,
    ),
    Figure(
        "quadratic",
        2,
        "Online quadratic programming",
        (Setting("printed", "X = [0, 1]^2", OnlineQuadratic()),),
        (COLDQ_ENTRY, recoo(gamma=7.0), *yi2021(alpha0=100.0, gamma0=2.5), EXPERT, SINHA_VAZE),
        curves="qp",
    ),
    Figure(
        "linear",
        3,
        "Online linear programming",
        (Setting("printed", "X = [0, 1]^2", OnlineLinear()),),
        (COLDQ_ENTRY, recoo(), *yi2021(alpha0=2.0, gamma0=1.0), EXPERT, SINHA_VAZE),
        curves="lp",
    ),
    Figure(
        "jobs",
        4,
        "Online job scheduling",
        (
            Setting("mwh", "prices in $/MWh, as published", JobScheduling()),
            # The plotted costs are of the size of $/MWh.
            Setting("kwh", "prices in $/kWh", JobScheduling(price_unit="$/kWh"), drawn=False),
            Setting(
                "requests",
                "prices in $/MWh, arrivals from a real request trace",
                JobScheduling(arrivals="requests"),
                claimed=False,
                drawn=False,
            ),
        ),
        (
            COLDQ_ENTRY,
            recoo(alpha=0.7),
            yi2023(alpha=100.0, gamma=1.0, beta=1.0),
            EXPERT,
            SINHA_VAZE,
        ),
        curves="js",
        tuned=True,
        loss_label="average energy cost",
        violation_label="average delayed jobs",
        averaged=True,
    ),
)


def find(key: str) -> Figure:
    """The figure of this name or number.

    >>> from coldq.paper.figures import find
    >>> find("linear").number, find("1").title
    (3, 'Time-varying constraints')
    """
    for figure in FIGURES:
        if key.lower() in (figure.key, str(figure.number)):
            return figure
    known = ", ".join(f"{figure.key} ({figure.number})" for figure in FIGURES)
    raise InvalidInput(f"there is no figure {key!r}; there are {known}")
