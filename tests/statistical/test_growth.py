"""Do regret and violation grow as claimed? T = 500 and 8000: ``make check SUITE=growth``."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import coldq
from coldq.learners.card import Claim, Largest, Rate
from coldq.problems import OnlineLinear, OnlineQuadratic, TimeVarying
from tests.statistical.problems import Corner, Drifting, Settling, Tracking

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
CAUTIOUS = (coldq.SinhaVaze, coldq.Yi2023, coldq.SarkarSinha2025, coldq.LekeufackJordan2024)
RIVALS = (
    coldq.SarkarSinha2025,
    coldq.LekeufackJordan2024,
    coldq.SupanthaSinha2026,
    coldq.SupanthaSinha2026ProjectionFree,
)


def corner(constraints: str) -> tuple[Any, float, float]:
    return lambda T: Corner(T, "convex", constraints), 0.0, 1.0


def drifting(v: float | None) -> tuple[Any, float, float]:
    return lambda T: Drifting(T, v), v or 0.0, v or 0.0


def settling(v: float | None, constraints: str = "drifting") -> tuple[Any, float, float]:
    vg = 1.0 if constraints == "i.i.d." else v or 0.0
    return lambda T: Settling(T, v, constraints), v or 0.0, vg


# The related work: where violation grows, then where regret does. On the first, loss and constraint
# pull against each other, which makes regret negative; on the second the best decision is feasible
# and nothing is won by violation. Claims that need a Slater point get one, claims on i.i.d.
# constraints get those, and dynamic claims a best decision and a constraint that move by T^(1/2).
PLACES: dict[type, tuple[Any, Any]] = {
    coldq.YuanLamperski2018: (corner("fixed"), settling(None)),
    coldq.Mahdavi2012: (corner("fixed"), settling(None)),
    coldq.Jenatton2016: (corner("fixed"), settling(None)),
    coldq.YuNeely2020: (drifting(None), settling(None)),
    coldq.YuNeelyWei2017: ((TimeVarying, 1.0, 1.0), settling(None, "i.i.d.")),
    coldq.WeiYuNeely2020: ((TimeVarying, 1.0, 1.0), settling(None, "i.i.d.")),
    coldq.MOSP: (drifting(0.5), settling(0.5)),
    coldq.CaoLiu2019: (drifting(0.5), settling(0.5)),
    coldq.CaoZhangPoor2021: (corner("time-varying"), settling(None, "i.i.d.")),
    coldq.Liu2022: (drifting(0.5), settling(0.5)),
    coldq.Wang2023: (drifting(0.5), settling(0.5)),
}
DELAY = 5


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
    coldq.SarkarSinha2025: lambda problem, losses: coldq.SarkarSinha2025.for_problem(problem),
    coldq.LekeufackJordan2024: lambda problem, losses: coldq.LekeufackJordan2024.for_problem(
        problem
    ),
    coldq.SupanthaSinha2026: lambda problem, losses: coldq.SupanthaSinha2026.for_problem(problem),
    coldq.SupanthaSinha2026ProjectionFree: lambda problem, losses: (
        coldq.SupanthaSinha2026ProjectionFree.for_problem(problem)
    ),
    coldq.OGD: lambda problem, losses: coldq.OGD.for_problem(
        problem, strongly_convex=losses == "strongly convex"
    ),
    coldq.Ader: lambda problem, losses: coldq.Ader.for_problem(problem),
    coldq.CaoLiu2019: lambda problem, losses: coldq.CaoLiu2019.for_problem(problem, 0.5),
    coldq.Liu2022: lambda problem, losses: coldq.Liu2022.for_problem(problem, path_exponent=0.5),
    coldq.Wang2023: lambda problem, losses: coldq.Wang2023.for_problem(problem, DELAY, 0.5),
}
for related in PLACES:
    BUILD.setdefault(related, lambda problem, losses, cls=related: cls.for_problem(problem))


def place(learner: type, claim: Claim, name: str) -> tuple[Any, float, float]:
    """A problem for one part of a claim, with its V_x and V_g."""
    if learner in PLACES:
        return PLACES[learner][name != "violation"]
    if learner is coldq.Ader:  # it ignores constraints, so regret is all there is
        return settling(0.5) if name == "dynamic regret" else settling(None)
    if learner in RIVALS and name == "static regret":  # below zero where violation pays
        return settling(None)
    build, vx, vg = PROBLEMS[claim.losses, claim.constraints]
    if learner in CAUTIOUS:
        return lambda T: Corner(T, claim.losses, claim.constraints), vx, vg
    return build, vx, vg


@cache
def run(learner: type, losses: str, problem: Any, vx: float | None) -> coldq.Trace:
    player = BUILD[learner](problem, losses)
    if vx is not None and learner is coldq.COLDQ:
        # Corollary 1's alpha_t for the dynamic bound, also where losses are strongly convex.
        player = coldq.COLDQ.for_problem(problem, path_exponent=vx)
    delay = getattr(player, "delay", 0)
    return coldq.simulate(player, problem, SEEDS, delay, progress=False)


@cache
def best(comparator: Any, problem: Any) -> coldq.Comparator:
    """The best decisions of a problem, found once for all learners."""
    return comparator(problem, SEEDS)


def static_regret(trace: coldq.Trace) -> np.ndarray:
    return coldq.static_regret(trace, best(coldq.static_comparator, trace.problem))


def dynamic_regret(trace: coldq.Trace) -> np.ndarray:
    return coldq.dynamic_regret(trace, best(coldq.dynamic_comparator, trace.problem))


CLAIMS = [
    pytest.param(learner, claim, id=f"{learner.__name__}, {claim.losses}, {claim.constraints}")
    for learner in BUILD
    for claim in learner.card.claims
]


@pytest.mark.parametrize(("learner", "claim"), CLAIMS)
def test_regret_and_violation_grow_no_faster_than_claimed(learner: type, claim: Claim) -> None:
    violation = coldq.soft_violation if claim.measure == "soft" else coldq.hard_violation
    for name, rate, measure in (
        ("violation", claim.violation, violation),
        ("static regret", claim.static_regret, static_regret),
        ("dynamic regret", claim.dynamic_regret, dynamic_regret),
    ):
        if rate is None:
            continue
        build, vx, vg = place(learner, claim, name)
        tuned = vx if name == "dynamic regret" else None
        short, long = (run(learner, claim.losses, build(T), tuned) for T in (SHORT, LONG))
        before, after = float(measure(short).mean()), float(measure(long).mean())
        limit = bound(rate, vx, vg)
        print(
            f"{claim.measure if name == 'violation' else ''} {name}: {before:.4g} -> {after:.4g}, "
            f"ratio {after / before if before else np.nan:.3g}, at most {limit:.3g}"
        )
        if after > 1e-9 * LONG:
            assert before > 1e-9 * SHORT, f"{name} grew from nothing to {after:.3g}"
            assert after / before <= limit, name


def bound(rate: Rate | Largest, vx: float, vg: float) -> float:
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
