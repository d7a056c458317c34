"""No bound of COLDQ's is exceeded on the paper's problems and on Drifting, over 20 seeds."""

from __future__ import annotations

from typing import Any

import pytest

import coldq
from coldq.problems import Drifting, JobScheduling, OnlineLinear, OnlineQuadratic, TimeVarying

SEEDS, T = range(20), 1000
GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
PROBLEMS: list[Any] = [
    TimeVarying(T),
    TimeVarying(T, coldq.Box(-5.0, 5.0, dim=10)),
    OnlineQuadratic(T),
    OnlineLinear(T),
    JobScheduling(),
    JobScheduling(price_unit="$/kWh"),
    *(Drifting(vx, vg, strong, T) for vx in GRID for vg in GRID for strong in (False, True)),
]


def name(problem: Any) -> str:
    """Its repr, without a page on prices."""
    return repr(problem).replace(repr(getattr(problem, "prices", None)), "...")


@pytest.mark.parametrize("problem", PROBLEMS, ids=name)
def test_every_bound_is_kept_for_every_seed(problem: Any) -> None:
    mu = problem.constants.strong_convexity
    learners = [
        coldq.COLDQ.for_problem(problem, path_exponent=getattr(problem, "path_exponent", 1.0)),
        coldq.COLDQ.for_problem(problem, epsilon=1e-3),
        coldq.COLDQ.for_problem(problem, scaled=True),
        coldq.COLDQExpert.for_problem(problem),
    ]
    if mu > 0.0:
        learners.append(coldq.COLDQ.strongly_convex(problem.domain, problem.horizon, mu))
    for learner in learners:
        trace = coldq.simulate(learner, problem, SEEDS, progress=False)
        report = coldq.bound_report(trace)
        assert report.holds, str(report)
        for check in report.checks:
            assert (check.slack > 0.0).all(), str(report)
