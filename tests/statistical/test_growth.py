"""Do regret and violation grow as claimed? 20 seeds, T = 500 against T = 8000: ``make growth``."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import coldq
from coldq.learners.card import Claim, Rate
from coldq.problems import OnlineLinear, OnlineQuadratic, TimeVarying
from tests.statistical.problems import Corner, Tracking

SHORT, LONG, SEEDS = 500, 8000, range(20)

# A problem of each setting on which every assumption of the claims holds (the origin is feasible
# in every slot), with its V_x and V_g.
PROBLEMS: dict[tuple[str, str], tuple[Any, float, float]] = {
    ("convex", "fixed"): (OnlineLinear, 1.0, 0.0),
    ("convex", "time-varying"): (TimeVarying, 1.0, 1.0),
    ("strongly convex", "fixed"): (OnlineQuadratic, 1.0, 0.0),
    # The target hardly moves, but the best feasible decision jumps with the rows: V_x = 1.
    ("strongly convex", "time-varying"): (lambda T: Tracking(T, 0.5, 1.0), 1.0, 1.0),
}
# Their constants are cautious: on the problems above they violate without end for longer than T.
CAUTIOUS = (coldq.SinhaVaze, coldq.Yi2023)


def coldq_for(problem: Any, losses: str) -> Any:
    if losses == "convex":
        return coldq.COLDQ.for_problem(problem)
    mu = problem.constants.strong_convexity
    return coldq.COLDQ.strongly_convex(problem.domain, problem.horizon, mu)


def recoo_for(problem: Any, losses: str) -> Any:
    if losses == "convex":
        return coldq.RECOO.for_problem(problem)
    return coldq.RECOO.strongly_convex(problem.domain, problem.constants.strong_convexity)


def yi2021_for(problem: Any, losses: str) -> Any:
    if losses == "convex":
        return coldq.Yi2021(problem.domain, problem.horizon, alpha0=2.0, gamma0=1.0)
    mu = problem.constants.strong_convexity
    return coldq.Yi2021.strongly_convex(problem.domain, problem.horizon, mu, gamma0=1.0)


BUILD = {
    coldq.COLDQ: coldq_for,
    coldq.COLDQExpert: lambda problem, losses: coldq.COLDQExpert.for_problem(problem),
    coldq.RECOO: recoo_for,
    coldq.RECOOExpert: lambda problem, losses: coldq.RECOOExpert.for_problem(problem),
    coldq.Yi2021: yi2021_for,
    coldq.Yi2021Expert: lambda problem, losses: coldq.Yi2021Expert.for_problem(problem),
    coldq.Yi2023: lambda problem, losses: coldq.Yi2023.for_problem(problem),
    coldq.SinhaVaze: lambda problem, losses: coldq.SinhaVaze.for_problem(
        problem, strongly_convex=losses == "strongly convex"
    ),
    coldq.OGD: lambda problem, losses: coldq.OGD.for_problem(
        problem, strongly_convex=losses == "strongly convex"
    ),
}


@cache
def run(learner: type, losses: str, constraints: str, horizon: int, tuned: bool) -> coldq.Trace:
    build, vx, _ = PROBLEMS[losses, constraints]
    cautious = learner in CAUTIOUS
    problem = Corner(horizon, losses, constraints) if cautious else build(horizon)
    player = BUILD[learner](problem, losses)
    if tuned and learner is coldq.COLDQ:
        # Corollary 1's alpha_t for the dynamic bound, also where losses are strongly convex.
        player = coldq.COLDQ.for_problem(problem, path_exponent=vx)
    return coldq.simulate(player, problem, SEEDS, progress=False)


CLAIMS = [
    pytest.param(learner, claim, id=f"{learner.__name__}, {claim.losses}, {claim.constraints}")
    for learner in BUILD
    for claim in learner.card.claims
]


@pytest.mark.parametrize(("learner", "claim"), CLAIMS)
def test_regret_and_violation_grow_no_faster_than_claimed(learner: type, claim: Claim) -> None:
    _, vx, vg = PROBLEMS[claim.losses, claim.constraints]
    for name, rate, measure, tuned in (
        ("violation", claim.violation, coldq.hard_violation, False),
        ("static regret", claim.static_regret, coldq.static_regret, False),
        ("dynamic regret", claim.dynamic_regret, coldq.dynamic_regret, True),
    ):
        if rate is None:
            continue
        short, long = (
            run(learner, claim.losses, claim.constraints, T, tuned) for T in (SHORT, LONG)
        )
        before, after = float(measure(short).mean()), float(measure(long).mean())
        limit = bound(rate, vx, vg)
        print(
            f"{name}: {before:.4g} -> {after:.4g}, ratio {after / before:.3g}, at most {limit:.3g}"
        )
        if after > 1e-9 * LONG:
            assert before > 1e-9 * SHORT, f"{name} grew from nothing to {after:.3g}"
            assert after / before <= limit, name


def bound(rate: Rate, vx: float, vg: float) -> float:
    growth = (LONG / SHORT) ** (rate.exponent(vx, vg) + 0.1)
    return growth * (np.log(LONG) / np.log(SHORT)) ** rate.log


@pytest.mark.parametrize("path_exponent", [0.0, 0.5, 0.9])
def test_coldq_expert_tracks_its_best_expert_without_being_told(path_exponent: float) -> None:
    problem = Tracking(5000, path_exponent, 5.0)
    learner = coldq.COLDQExpert.for_problem(problem)
    total = coldq.accumulated_loss(coldq.simulate(learner, problem, SEEDS, progress=False)).mean()
    singles = []
    for m in range(learner.n_experts):
        alpha = coldq.schedules.Power(0.5, 0.5**m)
        single = coldq.COLDQ(problem.domain, 5000, alpha=alpha, eta=5000.0**-1.5,
                             gamma=0.5 * 5000.0**1.5)  # fmt: skip
        trace = coldq.simulate(single, problem, SEEDS, progress=False)
        singles.append(coldq.accumulated_loss(trace).mean())
    print(f"V_x = {path_exponent}: {total:.1f}, best expert {min(singles):.1f} of {singles}")
    assert total <= 1.05 * min(singles)
