"""Adversaries: their dials, what no learner escapes, and those that do not say what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coldq
from coldq.problems import Adversary, LowerBound

LEARNERS = (
    coldq.COLDQ, coldq.COLDQExpert, coldq.RECOO, coldq.CLASP, coldq.Yi2021, coldq.Yi2023,
    coldq.SinhaVaze, coldq.NestedProjections, coldq.OGD, coldq.MOSP,
)  # fmt: skip


def play(learner: Any, problem: Any, seeds: Any = (0,)) -> coldq.Trace:
    return coldq.simulate(learner, problem, seeds=seeds, progress=False)


@pytest.mark.parametrize(
    ("dial", "path"),
    [
        ({"switches": 3}, 3 * 0.5),
        ({"period": 50}, 4 * 4 * 0.25),  # four quarters a turn, four turns
        ({"drift": 1.0}, 0.5),
        ({}, 0.0),
    ],
)
def test_each_dial_moves_the_best_decision_by_its_own_path(dial: dict, path: float) -> None:
    problem = Adversary(**dial, horizon=200, dim=3)
    best = coldq.dynamic_comparator(problem, range(3))
    np.testing.assert_allclose(coldq.path_length(best), path, rtol=0.02, atol=1e-9)
    # Without greed the row holds the best decision at the target.
    np.testing.assert_allclose(best.x, problem.targets(range(3)), atol=1e-7)
    np.testing.assert_allclose(best.loss, 0.125, atol=1e-7)  # pull^2 / 2


@pytest.mark.parametrize("greed", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("dim", [1, 4])
def test_the_target_is_feasible_and_the_constants_hold_whatever_is_played(greed, dim) -> None:
    problem = Adversary(greed, 3, 20, 0.5, margin=0.1, dim=dim, horizon=40)
    seeds, rng = (0, 3), np.random.default_rng(0)
    stream, targets, known = problem.start(seeds), problem.targets(seeds), problem.constants
    for t in range(1, 41):
        x = rng.uniform(-1.0, 1.0, (2, dim))
        if t == 7:
            x = targets[:, 6]  # where there is no direction away from it
        revealed = stream.reveal(t, x)
        g = revealed.constraint.value(targets[:, t - 1])
        np.testing.assert_allclose(g, -0.1, atol=1e-12)
        far = rng.choice([-1.0, 1.0], (50, 2, dim))
        assert np.abs(revealed.constraint.value(far)).max() <= known.constraint_bound
        slopes = np.linalg.norm(revealed.loss.gradient(far), axis=-1)
        assert slopes.max() <= known.gradient_bound
        if greed == 1.0 and t != 7:
            # The row cuts as far as a slope of one can, and the loss is best on the other side.
            apart = np.linalg.norm(x - targets[:, t - 1], axis=-1)
            np.testing.assert_allclose(revealed.constraint.value(x)[:, 0], apart - 0.1)
            np.testing.assert_allclose(revealed.loss.value(x), (apart + 0.5) ** 2 / 2.0)


def test_greed_makes_violations_of_those_that_had_none() -> None:
    for kind in (coldq.COLDQ, coldq.RECOO, coldq.CLASP):
        shares = []
        for greed in (0.0, 1.0):
            problem = Adversary(greed, horizon=150)
            trace = play(kind.for_problem(problem), problem, range(3))
            assert coldq.bound_report(trace).holds
            shares.append((trace.violation > 1e-6).mean())
        assert shares[0] < 0.1 < shares[1]


def test_a_seed_stays_itself_and_adversaries_are_values() -> None:
    problem = Adversary(0.7, 2, 10, horizon=30)
    learner = coldq.COLDQ.for_problem(problem)
    three, alone = play(learner, problem, range(3)), play(learner, problem, [2])
    np.testing.assert_array_equal(three.loss[2], alone.loss[0])
    for one in (problem, LowerBound("chase", 0.2, 30), LowerBound("price", horizon=30)):
        assert coldq.build(coldq.describe(one)) == one
    assert problem != Adversary(0.7, 2, 11, horizon=30)
    assert problem.adaptive
    assert not Adversary(switches=2).adaptive


@pytest.mark.parametrize("kind", LEARNERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("step", [0.02, 0.1, 0.3])
def test_nobody_escapes_the_chase(kind: Any, step: float) -> None:
    T = 80
    problem = LowerBound("chase", step, T)
    try:
        trace = play(kind.for_problem(problem), problem)
    except coldq.Infeasible:  # no decision is below all limits, which one learner wants
        assert kind is coldq.NestedProjections
        return
    violation = coldq.hard_violation(trace)[0]
    variation = coldq.constraint_variation(problem, [0], trace.decisions).total[0]
    assert violation >= variation / 6.0 - 1e-9
    assert coldq.dynamic_regret(trace)[0] + 2.0 * violation >= step * T / 2.0 - 1e-9


def test_a_price_that_grows_from_nothing_is_paid_for() -> None:
    # While lambda exp(lambda Q) < 1 the surrogate pulls up, and Q is a quarter of the violation.
    for T in (3000, 2000):
        problem, root = LowerBound("price", horizon=T), np.sqrt(T)
        trace = play(coldq.SinhaVaze.for_problem(problem), problem)
        assert coldq.hard_violation(trace)[0] >= 8.0 * root * np.log(2.0 * root) - 1.0
    for kind in (coldq.COLDQ, coldq.CLASP):
        trace = play(kind.for_problem(problem), problem)
        assert coldq.hard_violation(trace)[0] <= 1.0


def test_no_learner_is_better_than_a_coin() -> None:
    # The mean static regret of any learner is that of |sum of T signs|: C(T, T/2) T / 2^T.
    T, seeds = 64, range(400)
    problem = LowerBound("signs", horizon=T)
    expected = T * float(np.prod(np.arange(T // 2 + 1.0, T + 1.0) / np.arange(1.0, T // 2 + 1.0)))
    expected /= 2.0**T
    assert expected == pytest.approx(np.sqrt(2.0 * T / np.pi), rel=0.01)
    for kind in (coldq.COLDQ, coldq.OGD, coldq.RECOO):
        regret = coldq.static_regret(play(kind.for_problem(problem), problem, seeds))
        assert abs(regret.mean() - expected) < 4.0 * regret.std() / np.sqrt(len(seeds))


def test_bad_dials_get_a_sentence() -> None:
    for wrong, words in (
        ({"greed": 1.5}, r"greed must lie in \[0, 1\]"),
        ({"drift": -0.5}, r"drift must lie in \[0, 1\]"),
        ({"switches": 10}, "switches must be fewer than the 10 slots"),
        ({"pull": -1.0}, "pull must not be negative"),
        ({"period": 0.5}, "period must be a whole number"),
    ):
        with pytest.raises(coldq.InvalidInput, match=words):
            Adversary(**wrong, horizon=10)
    with pytest.raises(coldq.InvalidInput, match="kind must be"):
        LowerBound("worst")
    with pytest.raises(coldq.InvalidInput, match="must be left out for"):
        LowerBound("price", 0.1)
    with pytest.raises(coldq.InvalidInput, match="step must be at most 1"):
        LowerBound("chase", 1.5)


class Silent:
    """An adversary that compares x, which no NaN shows, and does not say so."""

    domain, horizon, n_constraints = coldq.Box(-1.0, 1.0, dim=1), 60, 1

    def start(self, seeds: Any) -> Any:
        return self

    def reveal(self, t: int, x: Any) -> coldq.Feedback:
        above = np.asarray(x)[..., 0] > 0.3
        loss = coldq.Linear(np.where(above, 1.0, -1.0)[..., None])
        rows = np.where(above, 1.0, 0.5)[..., None, None]
        return coldq.Feedback(loss, coldq.Affine(rows, [0.2]), slot=t)


class Said(Silent):
    adaptive = True


def test_what_is_asked_without_decisions_is_refused() -> None:
    problem = Silent()
    for ask in (
        coldq.dynamic_comparator,
        coldq.static_comparator,
        coldq.constraint_variation,
        coldq.estimate_constants,
        lambda problem, seeds: coldq.tune_safety_margin(problem, 0.1, seeds=seeds),
    ):
        with pytest.raises(coldq.InvalidInput, match="shown another decision: if it answers"):
            ask(problem, [0])


def test_of_a_run_everything_is_as_if_it_had_said_so() -> None:
    silent, said = (play(coldq.COLDQ(one.domain, 60), one) for one in (Silent(), Said()))
    for measure in (coldq.dynamic_regret, coldq.static_regret, coldq.hard_violation):
        np.testing.assert_array_equal(measure(silent), measure(said))
    one, two = (coldq.bound_report(trace) for trace in (silent, said))
    assert one.holds
    assert str(one).splitlines()[1:] == str(two).splitlines()[1:]


def test_a_comparison_judges_each_learner_by_the_functions_that_it_met() -> None:
    learners = {"COLDQ": coldq.COLDQ(Silent.domain, 60), "OGD": coldq.OGD(Silent.domain, eta=0.1)}
    for problem in (Silent(), Said()):
        table = coldq.compare(problem, learners, 0.05, seeds=[0])
        for name, learner in learners.items():
            trace = play(learner, problem)
            scored = trace.violation[0, table.begin :, 0] > 1e-6
            assert table[name].share == pytest.approx(scored.mean())
            assert table[name].loss == pytest.approx(trace.loss[0, table.begin :].mean())
            regret = coldq.dynamic_regret(trace, cumulative=True)[0]
            scored = (regret[-1] - regret[table.begin - 1]) / (60 - table.begin)
            assert table[name].dynamic_regret == pytest.approx(scored)
        assert list(table.left_out) == ["safety margin, tuned"]
        assert "Nothing was tuned" in table.sentences[0]
    assert "The problem answers to decisions" in table.sentences[0]


def test_a_problem_that_looks_at_nothing_is_replayed_without_decisions() -> None:
    class Blind(Silent):
        def reveal(self, t: int, x: Any) -> coldq.Feedback:
            return super().reveal(t, np.full((1, 1), np.sin(t)))

    assert coldq.dynamic_comparator(Blind(), [0]).feasible.all()
