"""SafetyMargin and Forecasting: the step looks ahead, everything else sees what happened."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coldq

X = coldq.Box(0.0, 10.0, dim=1)
F = coldq.forecasts


def demand(level: float) -> coldq.Affine:
    return coldq.Affine([[-1.0]], [-level])  # x >= level


def feedback(level: float, **more) -> coldq.Feedback:
    return coldq.Feedback(coldq.Linear([1.0]), demand(level), **more)


def test_without_surprises_a_margin_changes_nothing() -> None:
    inside = coldq.COLDQ(X, horizon=50)
    learner = coldq.SafetyMargin(inside, 0.05)
    plain, state = inside.init(1), learner.init(1)
    for _ in range(30):
        plain, state = inside.update(plain, feedback(4.0)), learner.update(state, feedback(4.0))
        assert np.array_equal(state.x, plain.x)
        assert np.array_equal(state.inner.queue, plain.queue)


def test_the_queue_sees_the_raw_violation_and_the_step_the_margin() -> None:
    rng, T, eta, gamma = np.random.default_rng(0), 60, 0.02, 30.0
    learner = coldq.SafetyMargin(coldq.COLDQ(X, alpha=0.01, eta=eta, gamma=gamma), 0.1)
    state, queue = learner.init(1), gamma
    for t in range(1, T):
        level = 4.0 + rng.uniform(-1.0, 1.0)
        violation = max(level - state.x[0], 0.0)
        if t > 1:
            queue = max((1.0 - eta) * queue + violation, gamma)
        state = learner.update(state, feedback(level))
        assert state.inner.queue[0] == pytest.approx(queue, rel=1e-12)
        assert state.x[0] == pytest.approx(level + state.margin[0], abs=1e-6)


@pytest.mark.parametrize("kind", ["affine", "capacity", "quadratic", "sparse", "stacked"])
def test_a_trend_is_followed_by_every_kind_that_is_linear_in_its_data(kind) -> None:
    def g(level):
        if kind == "affine":
            return demand(level)
        if kind == "capacity":
            return coldq.LogCapacity(np.log1p(level), [1.0], [1.0])
        if kind == "sparse":
            from scipy import sparse

            return coldq.SparseAffine(sparse.csr_array([[-1.0]]), [-level])
        if kind == "stacked":
            return coldq.Stacked(coldq.Affine([[1.0]], [9.5]), demand(level))
        return coldq.QuadraticConstraint.diagonal([[0.0]], [[-1.0]], [-level])

    rows = 2 if kind == "stacked" else 1
    learner = coldq.SelfTuning(X, forecasts=[F.Trend(0.5)])
    state = learner.init(rows)
    for t in range(60):
        level = 1.0 + 0.1 * t if kind != "capacity" else np.expm1(0.5 + 0.03 * t)
        state = learner.update(state, coldq.Feedback(coldq.Linear([1.0]), g(level)))
    following = 1.0 + 0.1 * 60 if kind != "capacity" else np.expm1(0.5 + 0.03 * 60)
    assert int(state.forecast) == 1
    assert state.x[0] == pytest.approx(following, rel=1e-3)


def test_a_season_is_found() -> None:
    learner = coldq.SelfTuning(X, forecasts=[F.Seasonal(5), F.MovingAverage(0.5)])
    state, season = learner.init(1), [2.0, 7.0, 3.0, 8.0, 5.0]
    for t in range(80):
        state = learner.update(state, feedback(season[t % 5]))
    assert int(state.forecast) == 1
    assert state.predicted[1, 0] == pytest.approx(season[80 % 5] - state.x[0])


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("around", [False, True])
def test_a_forecast_of_the_users_own_is_used_where_it_is_better(own, around) -> None:
    rng = np.random.default_rng(3)
    learner = coldq.SelfTuning(X, 0.1)
    if around:
        inside = coldq.COLDQ(X, alpha=0.01, eta=0.02, gamma=30.0)
        learner = coldq.SafetyMargin(inside, 0.1, forecasts=F.DEFAULT)
    levels = rng.uniform(2.0, 8.0, 101)
    state = learner.init(1)
    for t in range(100):
        told = levels[t + 1] if own else rng.uniform(2.0, 8.0)
        forecast = coldq.Forecast(constraint=demand(told))
        state = learner.update(state, feedback(levels[t], forecast=forecast))
    assert (int(state.forecast) == len(learner.forecasts)) is own
    if own:
        assert state.x[0] - state.margin[0] == pytest.approx(levels[100], abs=0.05)
        assert state.violated <= 20


def test_a_forecast_of_functions_is_taken_as_it_is() -> None:
    def g(level):
        return coldq.Convex(lambda x: [level - x[0]], lambda x: [[-1.0]], lambda x: [[[0.0]]])

    learner = coldq.SelfTuning(X)
    state = learner.init(1)
    for t in range(30):
        forecast = coldq.Forecast(constraint=g(1.0 + 0.2 * (t + 1)))
        told = coldq.Feedback(coldq.Linear([1.0]), g(1.0 + 0.2 * t), forecast=forecast)
        state = learner.update(state, told)
    assert state.x[0] == pytest.approx(7.0, abs=1e-3)


def test_a_forecast_of_another_kind_is_refused() -> None:
    learner = coldq.SelfTuning(X)
    capacity = coldq.LogCapacity(1.0, [1.0], [1.0])
    with pytest.raises(coldq.InvalidInput, match="kind"):
        learner.update(learner.init(1), feedback(1.0, forecast=coldq.Forecast(constraint=capacity)))
    with pytest.raises(coldq.InvalidInput, match="needs a loss"):
        coldq.Forecast()
    with pytest.raises(coldq.InvalidInput, match="Forecast"):
        feedback(1.0, forecast=demand(1.0))


def test_a_constraint_of_another_kind_begins_its_averages_anew() -> None:
    learner = coldq.SelfTuning(X, forecasts=[F.MovingAverage(0.1)])
    state = learner.init(1)
    for _ in range(20):
        state = learner.update(state, feedback(2.0))
    other = coldq.LogCapacity(np.log1p(5.0), [1.0], [1.0])
    for _ in range(20):
        state = learner.update(state, coldq.Feedback(coldq.Linear([1.0]), other))
    assert state.x[0] == pytest.approx(5.0, abs=1e-6)


def test_who_cannot_look_ahead_is_refused() -> None:
    for odd in (coldq.OGD(X, eta=0.1), coldq.COLDQ, 3):
        with pytest.raises(coldq.InvalidInput, match="whole constraint"):
            coldq.SafetyMargin(odd, 0.1)
    with pytest.raises(coldq.InvalidInput, match="look ahead"):
        coldq.SafetyMargin(coldq.Forecasting(coldq.COLDQ(X, horizon=9)), 0.1)


@pytest.mark.parametrize("batch", [(), (3,)])
def test_a_learner_that_enforces_rows_gets_as_much_of_the_margin_as_has_room(batch: Any) -> None:
    # x >= 1.5 and x <= 8.5 leave room, but with the surprises so far around them nothing does.
    domain, A = coldq.Box(0.0, 10.0, dim=1), np.array([[-1.0], [1.0]])
    learner = coldq.SafetyMargin(coldq.CLASP(domain, eta=0.1), 0.05)
    state, rng, less = learner.init(2, batch=batch), np.random.default_rng(0), 0
    for _ in range(60):
        ends = np.array([-rng.uniform(1.5, 4.9), rng.uniform(5.1, 8.5)])
        revealed = coldq.Feedback(coldq.Linear([rng.choice([-1.0, 1.0])]), coldq.Affine(A, ends))
        state = learner.update(state, revealed)
        less += int(np.sum((state.margin < state.ordinary).any(axis=-1)))
        assert domain.contains(state.x).all()
        assert not state.reduced.any()  # all limits so far are kept
    assert less
    found = learner.bound_report(state)
    assert not found["infeasible"].any()
    assert (found["overdraft"] <= found["overdraft_bound"]).all()
