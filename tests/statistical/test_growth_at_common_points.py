"""Do regret and violation grow as claimed where constraints share a point, and on networks?

As in test_growth.py.
Those whose memory grows run as long as the others: on [0, 5]^10 few of their rows are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import coldq
from coldq import networks
from coldq.learners import ALGORITHMS
from coldq.learners.card import Claim
from coldq.slot.schedules import Power
from tests.statistical import test_growth
from tests.statistical.problems import Corner, Hexagon, NetworkCorner
from tests.statistical.test_growth import LONG, PROBLEMS, SEEDS, SHORT, bound

GRAPH = networks.metropolis(networks.path(3))


def clasp_for(problem: Any, losses: str, vx: float | None) -> Any:
    return coldq.CLASP.for_problem(problem, strongly_convex=losses == "strongly convex")


def polyak_for(problem: Any, losses: str, vx: float | None) -> Any:
    return coldq.PolyakFeasibility.for_problem(
        problem, slack=problem.slack, steepness=problem.steepness
    )


def one_point_for(problem: Any, losses: str, vx: float | None) -> Any:
    # Steps against estimates of the size d |f| / delta_t; |f| is at most about 1 there.
    scale = 0.5 / problem.domain.dim
    return coldq.OnePoint(coldq.OGD(problem.domain, eta=Power(-0.75, scale)))


def two_point_for(problem: Any, losses: str, vx: float | None) -> Any:
    slopes = problem.domain.dim * problem.constants.gradient_bound
    return coldq.TwoPoint(coldq.OGD(problem.domain, gradient_bound=slopes))


def two_point_yi2023_for(problem: Any, losses: str, vx: float | None) -> Any:
    return coldq.TwoPoint(coldq.Yi2023.for_problem(problem))


def published(build: Callable[[Any, str, float | None], Any]) -> tuple[Claim, ...]:
    """What a pair of a wrapper and a learner claims, on whatever problem."""
    return build(Corner(SHORT, "convex", "fixed"), "convex", None).card.claims


# What builds a learner for a problem; vx is given for the dynamic bound alone.
BUILD: dict[str, tuple[tuple[Claim, ...], Callable[[Any, str, float | None], Any]]] = {
    "COLDQ.anytime": (
        tuple(claim for claim in coldq.COLDQ.card.claims if claim.losses == "convex"),
        lambda problem, losses, vx: coldq.COLDQ.anytime(problem.domain, path_exponent=vx),
    ),
    "SelfTuning": (
        coldq.SelfTuning.card.claims,
        lambda problem, losses, vx: coldq.SelfTuning(problem.domain),
    ),
    "COLDQDoubling": (
        coldq.COLDQDoubling.card.claims,
        lambda problem, losses, vx: coldq.COLDQDoubling(problem.domain, path_exponent=vx),
    ),
    "CLASP": (coldq.CLASP.card.claims, clasp_for),
    "NestedProjections": (
        coldq.NestedProjections.card.claims,
        lambda problem, losses, vx: coldq.NestedProjections.for_problem(problem),
    ),
    "Switch": (
        coldq.Switch.card.claims,
        lambda problem, losses, vx: coldq.Switch.for_problem(problem),
    ),
    "PolyakFeasibility": (coldq.PolyakFeasibility.card.claims, polyak_for),
    "OnePoint(OGD)": (published(one_point_for), one_point_for),
    "TwoPoint(OGD)": (published(two_point_for), two_point_for),
    "TwoPoint(Yi2023)": (published(two_point_yi2023_for), two_point_yi2023_for),
    "Yi2023 on a network": (
        coldq.Yi2023.card.claims,
        lambda problem, losses, vx: coldq.Decentralised(coldq.Yi2023.for_problem(problem), GRAPH),
    ),
}


@cache
def run(name: str, losses: str, constraints: str, horizon: int, vx: float | None) -> coldq.Trace:
    if name == "PolyakFeasibility":
        problem: Any = Hexagon(horizon)
    elif name == "TwoPoint(Yi2023)":
        problem = Corner(horizon, losses, constraints)
    elif name == "Yi2023 on a network":  # with the cautious constants of Yi2023 in test_growth
        problem = NetworkCorner(horizon, losses, constraints)
    else:
        problem = PROBLEMS[losses, constraints][0](horizon)
    return coldq.simulate(BUILD[name][1](problem, losses, vx), problem, SEEDS, progress=False)


CLAIMS = [
    pytest.param(name, claim, id=f"{name}, {claim.losses}, {claim.constraints}")
    for name, (claims, _) in BUILD.items()
    for claim in claims
]


@pytest.mark.parametrize(("name", "claim"), CLAIMS)
def test_regret_and_violation_grow_no_faster_than_claimed(name: str, claim: Claim) -> None:
    _, vx, vg = PROBLEMS[claim.losses, claim.constraints]
    for what, rate, measure, told in (
        ("violation", claim.violation, coldq.hard_violation, None),
        ("static regret", claim.static_regret, coldq.static_regret, None),
        ("dynamic regret", claim.dynamic_regret, coldq.dynamic_regret, vx),
    ):
        if rate is None:
            continue
        before, after = (
            float(measure(run(name, claim.losses, claim.constraints, T, told)).mean())
            for T in (SHORT, LONG)
        )
        limit = bound(rate, vx, vg)
        print(f"{what}: {before:.4g} -> {after:.4g}, at most {limit:.3g} times")
        if after > 1e-9 * LONG:
            assert before > 1e-9 * SHORT, f"{what} grew from nothing to {after:.3g}"
            assert after / before <= limit, what


def test_polyak_s_steps_never_leave_the_feasible_set() -> None:
    for horizon in (SHORT, LONG):
        assert run("PolyakFeasibility", "convex", "fixed", horizon, None).violation.max() <= 1e-12


def test_every_learner_with_a_claim_is_in_one_of_the_two_files() -> None:
    claiming = {learner.__name__ for learner in ALGORITHMS if learner.card.claims}
    assert claiming == {learner.__name__ for learner in test_growth.BUILD} | (claiming & set(BUILD))
