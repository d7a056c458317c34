"""Learners that decide the same are named, with the reason."""

from __future__ import annotations

import numpy as np

import coldq
from coldq.evaluation.coinciding import coinciding


def test_one_rule_under_two_names_is_said_to_be_one() -> None:
    names = ["YuNeelyWei2017", "WeiYuNeely2020", "COLDQ"]
    (sentence,) = coldq.compare(coldq.problems.OnlineLinear(60), names, seeds=range(3)).notes
    assert sentence.startswith("YuNeelyWei2017 and WeiYuNeely2020 decide the same here: ")
    assert "squared distance" in sentence


def test_a_price_above_every_multiplier_is_the_reason_where_it_is_one() -> None:
    problem = coldq.problems.Drifting(0.5, 0.5, horizon=200)
    (sentence,) = coldq.compare(problem, ["COLDQ", "RECOO"], seeds=range(2)).notes
    assert "price of a violation" in sentence
    # As it says: with the same step and a weight of infinity, the decisions are the same.
    learner = coldq.COLDQ.for_problem(problem)
    clasp = coldq.CLASP(
        problem.domain, eta=coldq.schedules.Custom(lambda t: 0.5 / learner.alpha(t))
    )
    ours, theirs = (
        coldq.simulate(one, problem, range(2), keep=["decisions"]).decisions
        for one in (learner, clasp)
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_who_never_moves_is_said_to_stay() -> None:
    problem = coldq.problems.Autoscale(60)
    kinds = coldq.OGD, coldq.Ader
    found = coldq.compare(problem, [*kinds, coldq.COLDQ])
    (sentence,) = found.notes
    assert sentence.startswith("OGD and Ader decide the same here: they never leave")
    assert sentence in str(found)
    assert sentence in found._repr_html_()


def test_learners_that_differ_are_not_said_to_coincide() -> None:
    problem = coldq.problems.OnlineLinear(horizon=20)
    learners = {"a": coldq.COLDQ.for_problem(problem), "b": coldq.RECOO.for_problem(problem)}
    assert coinciding(problem, learners, {"a": np.ones(3), "b": np.array([1.0, 1.0, 1.1])}) == ()
