"""ForecastWithMargin against plain loops, least squares and BestResponse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import coldq
from coldq.learners.limit_forecasts import (
    AutoRegressive,
    ExponentialSmoothing,
    LastValue,
    SeasonalValue,
)
from coldq.learners.margins import AdaptiveConformal, ConformalPID, RollingQuantile, ShareOfLimit

T = 160
rng = np.random.default_rng(3)
DEMAND = np.stack(
    [
        20.0 + 5.0 * np.sin(np.arange(T) * 2.0 * np.pi / 12.0) + rng.standard_normal(T),
        8.0 + 2.0 * rng.standard_t(3, T),
    ],
    axis=1,
)
COLUMNS = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])  # what each of three units gives to a row
X = coldq.Box(0.0, [50.0, 50.0, 4.0])
PRICES = rng.uniform(1.0, 3.0, (T, 3))
TOP = X.upper


def runs(forecast: Any, margin: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decisions, what was expected of the demands and the margins, for slots 2 to T + 1."""
    learner = coldq.ForecastWithMargin(X, forecast, margin)
    state, x, expected, margins = learner.init(2), [], [], []
    for t in range(T):
        rows = coldq.Affine(-COLUMNS, -DEMAND[t])
        state = learner.update(state, coldq.Feedback(coldq.Linear(PRICES[t]), rows))
        x.append(state.x)
        expected.append(state.expected + COLUMNS @ state.x)
        margins.append(state.margin)
    return np.array(x), np.array(expected), np.array(margins)


def slow_forecasts(forecast: Any) -> np.ndarray:
    """What is expected of the demand of slots 2 to T + 1, a row at a time."""
    made = np.empty((T, 2))
    for n in range(2):
        d = [float(value) for value in DEMAND[:, n]]
        average = d[0]
        for t in range(1, T + 1):
            if isinstance(forecast, LastValue):
                made[t - 1, n] = d[t - 1]
            elif isinstance(forecast, SeasonalValue):
                p = forecast.period
                made[t - 1, n] = d[t - p] if t >= p else d[t - 1]
            else:
                w = float(forecast.weight)
                average = d[0] if t == 1 else (1.0 - w) * average + w * d[t - 1]
                made[t - 1, n] = average
    return made


def slow_margins(margin: Any, expected: np.ndarray, violated: np.ndarray) -> np.ndarray:
    """The margins of slots 2 to T + 1 for given forecasts and violations."""
    made = np.zeros((T, 2))
    for n in range(2):
        alpha, tracker, total, size = math.nan, 0.0, 0.0, 0.0
        errors: list[float] = []
        scaled: list[float] = []
        for t in range(1, T + 1):
            if t > 1:
                error = DEMAND[t - 1, n] - expected[t - 2, n]
                errors.append(error)
                before = abs(error) if t == 2 else size
                scaled.append(error / before)
                size = abs(error) if t == 2 else size + 0.1 * (abs(error) - size)
            if isinstance(margin, ShareOfLimit):
                made[t - 1, n] = float(margin.share) * abs(expected[t - 1, n])
            elif isinstance(margin, ConformalPID):
                q, step = float(margin.level), float(margin.step)
                if t == 1:
                    continue
                e = float(violated[t - 1]) - q
                largest = max(abs(one) for one in errors[-100:])
                tracker += step * largest * e
                total += e
                angle = total * math.log(t) / (5.0 * t)
                made[t - 1, n] = tracker + largest * math.tan(min(max(angle, -1.5), 1.5))
            else:
                level = float(margin.level)
                if isinstance(margin, AdaptiveConformal):
                    moved = 0.0 if t == 1 else float(margin.step) * (level - violated[t - 1])
                    alpha = level if t == 1 else alpha + moved
                    level = alpha
                if not errors:
                    continue
                is_scaled = getattr(margin, "weight", None) is not None
                ordered = sorted((scaled if is_scaled else errors)[-margin.window :])
                place = math.ceil((len(ordered) + 1) * (1.0 - level))
                found = ordered[min(max(place, 1), len(ordered)) - 1]
                made[t - 1, n] = found * (size if is_scaled else 1.0)
    return made


def cheapest(price: np.ndarray, demand: np.ndarray) -> float:
    """The least cost of both demands: the third unit serves half of itself to each row."""
    least = math.inf
    corners = {0.0, 4.0, *(min(max(2.0 * one, 0.0), 4.0) for one in demand)}
    for third in corners:
        rest = np.maximum(demand - 0.5 * third, 0.0)
        least = min(least, float(price[:2] @ rest + price[2] * third))
    return least


FORECASTS = [LastValue(), ExponentialSmoothing(0.3), SeasonalValue(12)]
MARGINS = [
    ShareOfLimit(0.15),
    RollingQuantile(0.1, window=40),
    RollingQuantile(0.1, window=40, weight=0.1),
    AdaptiveConformal(0.1, step=0.03, window=50),
    ConformalPID(0.1, step=0.1),
]


@pytest.mark.parametrize("forecast", FORECASTS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("margin", MARGINS, ids=repr)
def test_decisions_are_the_cheapest_for_forecasts_and_margins_by_hand(forecast, margin) -> None:
    x, expected, margins = runs(forecast, margin)
    np.testing.assert_allclose(expected, slow_forecasts(forecast), rtol=1e-9)
    short = DEMAND[1:] - x[:-1] @ COLUMNS.T
    violated = np.concatenate([[False], (short > 1e-6).any(axis=1)])
    assert 0.02 < violated.mean() < 0.6
    np.testing.assert_allclose(
        margins, slow_margins(margin, slow_forecasts(forecast), violated), rtol=1e-8, atol=1e-8
    )
    for t in range(T):
        needed = expected[t] + margins[t]
        assert (x[t] @ COLUMNS.T >= needed - 1e-6).all()
        assert PRICES[t] @ x[t] == pytest.approx(cheapest(PRICES[t], needed), abs=1e-6)


def test_the_regression_is_the_weighted_least_squares_with_its_start_as_a_prior() -> None:
    lags, forgetting = (1, 2, 12, 13), 0.97
    _, expected, _ = runs(AutoRegressive(lags, forgetting), ShareOfLimit(0.0))
    for n in range(2):
        d = DEMAND[:, n] / abs(DEMAND[0, n])

        def regressors(t: int, d: np.ndarray = d) -> list[float]:
            return [1.0, *(d[t - 1 - lag] if t - 1 - lag >= 0 else 0.0 for lag in lags)]

        for t in (2, 5, 30, 100, T):
            age = [forgetting ** (0.5 * (t - s)) for s in range(2, t + 1)]
            A = [np.multiply(age[s - 2], regressors(s)) for s in range(2, t + 1)]
            y = [age[s - 2] * d[s - 1] for s in range(2, t + 1)]
            prior = forgetting ** (0.5 * (t - 1)) / 10.0 * np.eye(5)  # variance 100 at first
            start = np.array([0.0, 1.0, 0.0, 0.0, 0.0])
            w = np.linalg.lstsq(
                np.vstack([*A, prior]), np.concatenate([y, prior @ start]), rcond=None
            )[0]
            made = w @ regressors(t + 1) * abs(DEMAND[0, n])
            assert expected[t - 1, n] == pytest.approx(made, rel=1e-6)


def test_a_share_of_the_last_value_is_the_best_response_with_a_safety_margin() -> None:
    problem = coldq.problems.Autoscale(60)
    mine = coldq.ForecastWithMargin(problem.domain, LastValue(), ShareOfLimit(0.4))
    theirs = coldq.BestResponse(problem.domain, safety_margin=0.4)
    a, b = (coldq.simulate(one, problem, [0]) for one in (mine, theirs))
    np.testing.assert_allclose(a.loss, b.loss, rtol=1e-9)


def test_a_regression_stays_finite_where_nothing_varies() -> None:
    learner = coldq.ForecastWithMargin(
        coldq.Box(0.0, 9.0, dim=1), AutoRegressive((1, 2), 0.5), RollingQuantile(0.1)
    )
    state, rows = learner.init(1), coldq.Affine([[-1.0]], [-3.0])
    for _ in range(1500):  # 0.5^1500 is no number
        state = learner.update(state, coldq.Feedback(coldq.Linear([1.0]), rows))
    assert state.x == pytest.approx([3.0])
    state = learner.update(
        state, coldq.Feedback(coldq.Linear([1.0]), coldq.Affine([[-1.0]], [-4.0]))
    )
    assert 0.0 < state.x < 9.0


def test_levels_side_by_side_are_what_runs_of_their_own_give() -> None:
    levels = np.array([[0.02], [0.1], [0.3]])
    problem = coldq.problems.JobScheduling(40)
    stream, seeds = problem.start([0, 1]), 2
    both = coldq.ForecastWithMargin(problem.domain, LastValue(), AdaptiveConformal(levels, 0.1))
    alone = [
        coldq.ForecastWithMargin(problem.domain, LastValue(), AdaptiveConformal(level, 0.1))
        for level in levels[:, 0]
    ]
    together, apart = both.init(1, batch=(3, seeds)), [one.init(1, batch=(2,)) for one in alone]
    for t in range(1, 41):
        revealed = stream.reveal(t, None)
        together = both.update(together, revealed)
        apart = [one.update(s, revealed) for one, s in zip(alone, apart, strict=True)]
        np.testing.assert_array_equal(together.x, [state.x for state in apart])


def test_odd_parameters_are_refused() -> None:
    for make, words in (
        (lambda: coldq.ForecastWithMargin(X, ShareOfLimit(0.1)), "forecast must be one of"),
        (lambda: coldq.ForecastWithMargin(X, LastValue(), 0.1), "margin must be one of"),
        (lambda: AutoRegressive(()), "at least one lag"),
        (lambda: AutoRegressive(3), "several"),
        (lambda: AutoRegressive((0, 1)), "a lag"),
        (lambda: AutoRegressive((1,), 1.5), "forgetting"),
        (lambda: ExponentialSmoothing(0.0), "weight"),
        (lambda: SeasonalValue(1), "period"),
        (lambda: RollingQuantile(1.0), "level"),
        (lambda: RollingQuantile(0.1, window=0), "window"),
        (lambda: AdaptiveConformal(0.1, step=-1.0), "step"),
        (lambda: ConformalPID(0.1, saturation=0.0), "saturation"),
    ):
        with pytest.raises(coldq.InvalidInput, match=words):
            make()
    learner = coldq.ForecastWithMargin(X, SeasonalValue(4))
    shorter = coldq.ForecastWithMargin(X, SeasonalValue(3)).init(2).to_arrays()
    with pytest.raises(coldq.InvalidInput, match="past must have the shape"):
        learner.from_arrays(shorter, strict=False)
