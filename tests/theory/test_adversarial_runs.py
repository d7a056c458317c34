"""A small share of the adversarial runs, and runs that come close to each bound by the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coldq
from coldq.problems import Problem
from coldq.slot.schedules import Power
from tests.theory.adversarial_runs import Tally, a_run, play


def test_no_adversary_exceeds_a_bound_report_whose_assumptions_are_kept() -> None:
    tally = play(20, seed=1)
    assert tally.complaints == []
    assert tally.counts["certified"] >= 5
    assert tally.counts["fails: a feasible decision in every slot"] >= 2


def test_a_bound_that_is_exceeded_is_a_complaint() -> None:
    name, found = a_run(1, 0)
    assert isinstance(found, coldq.BoundReport)
    check = found.checks[-1]
    worse = [coldq.simulation.bound_reports.Check("m", "s", check.bound + 1.0, check.bound)]
    tally = Tally()
    tally.add(0, name, coldq.BoundReport("run", (0, 1), None, tuple(worse), ()))
    assert len(tally.complaints) == 1


class Line(Problem):
    """On [0, 1]: the loss push x, the row slope (1 - x) <= 0; in slot 1, if asked, -`lax` <= 0.

    Where the weight times the slope is below the push a learner stays at 0, as far from the only
    feasible decision as can be, and what is said of a step there holds with equality.
    """

    domain, n_constraints = coldq.Box(0.0, 1.0, dim=1), 1
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, horizon: int, slope: float, lax: float = 0.0, push: float = 1.0) -> None:
        self.horizon, self.slope, self.lax, self.push = horizon, slope, lax, push

    def start(self, seeds: Any) -> Any:
        return self

    def reveal(self, t: int, x: Any) -> coldq.Feedback:
        slope, limit = (0.0, self.lax) if self.lax and t == 1 else (self.slope, -self.slope)
        return coldq.Feedback(coldq.Linear([self.push]), coldq.Affine([[-slope]], [limit]), slot=t)


def share(learner: Any, problem: Problem, measure: str, start: float = 0.0, **keep: Any) -> float:
    """How much of its least bound a run had."""
    trace = coldq.simulate(learner, problem, seeds=[0], start=[start], progress=False, **keep)
    report = coldq.bound_report(trace)
    assert report.holds, str(report)
    check = report.least(measure)
    return float((check.realised / check.bound).max())


X, T, SLOPE, LAX = Line.domain, 150, 0.99, 4.0
# The price of a slot is D R = 1 at alpha = 0.1, so that a row of slope 0.99 at weight 1 does not
# hold, and costs 0.99 of what it may. One lax slot raises G to 4, so that N G is no help.
HELD = {
    "COLDQ": coldq.COLDQ(X, alpha=0.1, eta=0.99, gamma=1.0),
    "COLDQ with gamma_t": coldq.COLDQ(X, alpha=0.1, eta=0.99, gamma=lambda t: 1.0),
    "RECOO by drift": coldq.RECOO(X, alpha=0.1, gamma=1e-3, eta=1e3),
    "RECOO as compared": coldq.RECOO(X, alpha=0.1, gamma=1e-3, eta=1e3, reading="comparison"),
}


@pytest.mark.parametrize("name", HELD)
def test_a_weight_that_does_not_hold_a_row_has_all_of_its_bound(name: str) -> None:
    assert share(HELD[name], Line(T, SLOPE, LAX), "hard violation") > 0.9


def test_without_a_horizon_half_of_the_bound_is_had() -> None:
    # Up to slot 20 the weight 2.5 t^2 does not hold a row of slope 0.1 against a push of 100, and
    # what it may cost after that, a sum of 1 / t^2, is as much again.
    learner, problem = coldq.COLDQ.anytime(X, epsilon=2.5), Line(T, 0.1, push=100.0)
    assert share(learner, problem, "hard violation") > 0.4
    assert share(learner, problem, "soft violation") > 0.4


def test_weights_made_of_violations_have_a_third_of_their_bound() -> None:
    # The weight is the violation so far times 1 / T: it begins to hold in the last slot.
    learner = coldq.Yi2021(X, alpha=10.0, gamma=T**-0.5)
    assert share(learner, Line(T, 1.0), "hard violation") > 0.9
    assert share(learner, Line(T, 1.0, 3.0), "hard violation") > 1.0 / 3.0


class Falling(Line):
    """The row x <= b_t falls from 1 to 0 in every slot, and the loss pulls up."""

    def reveal(self, t: int, x: Any) -> coldq.Feedback:
        limit = (self.horizon - t) / (self.horizon - 1.0)
        return coldq.Feedback(coldq.Linear([-1.0]), coldq.Affine([[1.0]], [limit]), slot=t)


def test_projections_have_half_of_the_variation_and_all_of_the_first_slot() -> None:
    learner = coldq.CLASP(X, eta=10.0)
    assert share(learner, Falling(T, 0.0), "hard violation", start=1.0) > 0.49
    assert share(learner, Line(T, 1.0), "hard violation") > 0.999


@pytest.mark.parametrize(
    "learner",
    [
        coldq.RECOO(X, alpha=500.0),
        coldq.CLASP(X, eta=0.5 / 500.0),
        coldq.Yi2021(X, alpha=1 / 500.0, gamma=1.0),
        coldq.COLDQ(X, alpha=500.0, eta=Power(-2.0), gamma=Power(2.0)),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_theorem_1_is_nearly_reached_by_all_of_them(learner: Any) -> None:
    class Walk(Line):
        """Nothing binds, and the best decision is at the other end."""

        def reveal(self, t: int, x: Any) -> coldq.Feedback:
            return coldq.Feedback(coldq.Linear([1.0]), coldq.Affine([[1.0]], [2.0]), slot=t)

    assert share(learner, Walk(1000, 0.0), "static regret", start=1.0) > 0.98


def test_a_falling_alpha_voids_what_adds_up_over_slots() -> None:
    for learner in (coldq.CLASP(X, eta=Power(1.0)), coldq.Yi2021(X, alpha=Power(1.0), gamma=1.0)):
        trace = coldq.simulate(learner, Line(20, 1.0), seeds=[0], progress=False)
        report = coldq.bound_report(trace)
        assert not report.holds
        assert np.isnan(report.check("dynamic regret").bound).all()
