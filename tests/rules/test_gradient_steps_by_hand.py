"""Three slots of each rule of gradient steps in one dimension, with pencil and paper.

A linear penalty w g on an affine row of slope a adds w a to the gradient, so that every step here
is a gradient step, clipped to the box.
"""

from __future__ import annotations

from math import exp, sqrt
from typing import Any

import numpy as np
import pytest

import coldq
from coldq.learners.contrib.wei_yu_neely2020 import entropic_step
from coldq.slot.schedules import Power

from .test_by_hand import X, decisions, play, revealed


def queues(states: list[Any]) -> list[float]:
    return [state.queue[0] for state in states]


def test_ader() -> None:
    # T = 14: N = ceil(log2(9) / 2) + 1 = 3, and eta_1 = (10 / 5) sqrt(7 / 28) = 1, then 2 and 4.
    # kappa = sqrt(2 / 14) / (5 * 10), w_1 = (4/3) (1/2, 1/6, 1/12) = 6/9, 2/9, 1/9.
    learner = coldq.Ader(X, horizon=14, gradient_bound=5.0)
    states = play(learner, 2.0, [revealed(-1.0, (1, 1)), revealed(2.0, (1, 1))])
    # Slot 1: all are at 2, so that w_2 = w_1. x_2[i] = 3, 4, 6, x_2 = (18 + 8 + 6) / 9 = 32/9.
    # Slot 2: w_3 in proportion to 6 exp(-6 kappa), 2 exp(-8 kappa), exp(-12 kappa), the played
    #   point being common to all. x_3[i] = 3 - 2 = 1, 4 - 4 = 0 and 6 - 8, which is clipped to 0.
    kappa = sqrt(2.0 / 14.0) / 50.0
    raw = np.array([6.0 * exp(-6.0 * kappa), 2.0 * exp(-8.0 * kappa), exp(-12.0 * kappa)])
    np.testing.assert_allclose(states[1].experts.x[:, 0], [3.0, 4.0, 6.0])
    np.testing.assert_allclose(states[2].experts.x[:, 0], [1.0, 0.0, 0.0])
    np.testing.assert_allclose(states[2].weights, raw / raw.sum())
    np.testing.assert_allclose(decisions(states), [2.0, 32.0 / 9.0, raw[0] / raw.sum()])


@pytest.mark.parametrize("rule", [coldq.Mahdavi2012, coldq.CaoLiu2019, coldq.CaoZhangPoor2021])
def test_saddle_points(rule: Any) -> None:
    # eta = 1/2, delta eta = 1. x_1 = 2, l_1 = 0.
    learner = rule(X, 100, eta=0.5, delta=2.0)
    states = play(
        learner, 2.0, [revealed(-3.0, (1, 1)), revealed(-1.0, (2, 3)), revealed(2.0, (1, 8))]
    )
    # Slot 1: g_1(2) = 1. x_2 = 2 - (-3 + 0)/2 = 3.5, l_2 = 0 + (1 - 0)/2 = 0.5.
    # Slot 2: g_2(3.5) = 4. x_3 = 3.5 - (-1 + 2 * 0.5)/2 = 3.5, l_3 = 0.5 + (4 - 0.5)/2 = 2.25.
    # Slot 3: g_3(3.5) = -4.5. x_4 = 3.5 - (2 + 2.25)/2 = 1.375.
    #   l_4 = [2.25 + (-4.5 - 2.25)/2]_+ = 0: slack lowers it.
    np.testing.assert_allclose(decisions(states), [2.0, 3.5, 3.5, 1.375])
    np.testing.assert_allclose(queues(states), [0.0, 0.5, 2.25, 0.0])


def test_jenatton2016() -> None:
    # R = 1, L = 1/6: eta_t = 6/sqrt(t), theta_t = 1/sqrt(t), mu_t = sqrt(t)/(t + 1). x_1 = 0.5.
    learner = coldq.Jenatton2016(coldq.Box(0.0, 1.0, dim=1), lipschitz=1.0 / 6.0)
    states = play(
        learner,
        0.5,
        [
            revealed(-0.05, (1, 0.25), (1, 0.75)),
            revealed(-0.2, (1, 0.5), (2, 1)),
            revealed(-0.3, (1, 1), (1, 2)),
        ],
        n_constraints=2,
    )
    # Slot 1: g = max{0.25, -0.25}. x_2 = 0.5 + 6 * 0.05 = 0.8, l_2 = 0.25/2 = 0.125.
    # Slot 2: g = max{0.3, 0.6} = 0.6 with slope 2.
    #   x_3 = 0.8 - (6/sqrt(2)) (-0.2 + 0.125 * 2) = 0.587868.
    #   l_3 = 0.125 + (sqrt(2)/3) (0.6 - 0.125/sqrt(2)) = 0.366176.
    x_3 = 0.8 - 0.3 / sqrt(2.0)
    l_3 = 0.125 + (0.6 * sqrt(2.0) - 0.125) / 3.0
    # Slot 3: g = x_3 - 1 = -0.412132 with slope 1. x_4 = x_3 - (6/sqrt(3)) (-0.3 + l_3) = 0.358627.
    #   l_4 = l_3 + (sqrt(3)/4) (g - l_3/sqrt(3)) = 0.366176 - 0.270002 = 0.096174.
    x_4 = x_3 - 6.0 * (l_3 - 0.3) / sqrt(3.0)
    l_4 = l_3 + (sqrt(3.0) * (x_3 - 1.0) - l_3) / 4.0
    np.testing.assert_allclose(decisions(states), [0.5, 0.8, x_3, x_4])
    np.testing.assert_allclose([state.dual for state in states], [0.0, 0.125, l_3, l_4])
    np.testing.assert_allclose([x_3, x_4, l_3, l_4], [0.587868, 0.358627, 0.366176, 0.096174], 1e-5)


def test_yuan_lamperski2018() -> None:
    # eta = 1/2, sigma eta = 1. x_1 = 3.
    learner = coldq.YuanLamperski2018(X, 100, eta=0.5, sigma=2.0)
    states = play(
        learner, 3.0, [revealed(-3.0, (2, 4)), revealed(-7.0, (1, 5)), revealed(0.0, (1, 4))]
    )
    # Slot 1: g_1(3) = 2, l_1 = 2. x_2 = 3 - (-3 + 2 * 2)/2 = 2.5.
    # Slot 2: g_2(2.5) = -2.5, l_2 = 0: the multiplier forgets. x_3 = 2.5 + 7/2 = 6.
    # Slot 3: g_3(6) = 2, l_3 = 2. x_4 = 6 - 2/2 = 5.
    np.testing.assert_allclose(decisions(states), [3.0, 2.5, 6.0, 5.0])
    np.testing.assert_allclose(queues(states), [0.0, 2.0, 0.0, 2.0])


@pytest.mark.parametrize("rule", [coldq.YuNeelyWei2017, coldq.WeiYuNeely2020])
def test_drift_plus_penalty(rule: Any) -> None:
    # T = 4: V = 2, alpha = 4. x_1 = 1, Q_1 = 0.
    states = play(
        rule(X, horizon=4),
        1.0,
        [revealed(-12.0, (1, 2)), revealed(1.0, (2, 6)), revealed(0.0, (1, 10))],
    )
    # Slot 1: d = -24, x_2 = 1 + 24/8 = 4. Q_2 = 0 + (1 - 2) + (4 - 1) = 2.
    # Slot 2: d = 2 * 1 + 2 * 2 = 6, x_3 = 4 - 6/8 = 3.25. Q_3 = 2 + 2 + 2 (-0.75) = 2.5.
    # Slot 3: d = 2.5, x_4 = 3.25 - 2.5/8 = 2.9375. Q_4 = [2.5 - 6.75 - 0.3125]_+ = 0.
    np.testing.assert_allclose(decisions(states), [1.0, 4.0, 3.25, 2.9375])
    np.testing.assert_allclose(queues(states), [0.0, 2.0, 2.5, 0.0])


def test_entropic_step_in_closed_form() -> None:
    # Half of (1, 0) and half of uniform is z = (3/4, 1/4). With d/alpha = (log 3, 0) the step is
    # in proportion to (3/4 / 3, 1/4): both are one half. A constant added to d changes nothing.
    x, alpha = np.array([1.0, 0.0]), np.array(2.0)
    for shift in (0.0, -700.0, 1e6):
        d = np.array([2.0 * np.log(3.0), 0.0]) + shift
        np.testing.assert_allclose(entropic_step(x, d, alpha, 0.5), [0.5, 0.5], rtol=1e-9)


def test_entropic_step_beats_a_grid_on_the_simplex() -> None:
    rng = np.random.default_rng(3)
    cells = [(i, j, 40 - i - j) for i in range(1, 40) for j in range(1, 40 - i)]
    grid = np.array(cells) / 40.0

    def objective(y, d, alpha, z):
        return y @ d + alpha * (y * np.log(y / z)).sum(axis=-1)

    for _ in range(20):
        x, d = rng.dirichlet(np.ones(3)), rng.uniform(-3.0, 3.0, 3)
        alpha, mixing = rng.uniform(0.5, 3.0), rng.uniform(0.01, 0.5)
        z = (1.0 - mixing) * x + mixing / 3.0
        y = entropic_step(x, d, np.array(alpha), mixing)
        assert abs(y.sum() - 1.0) < 1e-14
        best = objective(y, d, alpha, z)
        assert (objective(grid, d, alpha, z) >= best).all()
        # At the minimum the gradient is the same in every coordinate.
        assert np.ptp(d + alpha * np.log(y / z)) < 1e-10


def test_the_entropy_needs_a_simplex() -> None:
    with pytest.raises(coldq.InvalidInput, match="the entropy needs the unit simplex as domain"):
        coldq.WeiYuNeely2020(X, 10, divergence="entropy")
    with pytest.raises(coldq.InvalidInput, match="divergence must be one of"):
        coldq.WeiYuNeely2020(X, 10, divergence="bregman")


def test_yu_neely2020() -> None:
    # T = 16, L = 1: gamma = 2, alpha = (1 + 1) 4/2 = 4. x_1 = 3, Q_0 = 0.
    learner = coldq.YuNeely2020(X, horizon=16, lipschitz=1.0)
    states = play(
        learner, 3.0, [revealed(-24.0, (1, 2)), revealed(-8.0, (1, 7)), revealed(12.0, (1, 6.5))]
    )
    # Slot 1: v = 2 * 1, Q_1 = max{-2, 0 + 2} = 2, w = 2 (2 + 2) = 8. x_2 = 3 + (24 - 8)/8 = 5.
    # Slot 2: v = 2 (-2), Q_2 = max{4, 2 - 4} = 4, w = 2 (4 - 4) = 0. x_3 = 5 + 8/8 = 6.
    # Slot 3: v = 2 (-0.5), Q_3 = max{1, 4 - 1} = 3, w = 2 (3 - 1) = 4, though g < 0.
    #   x_4 = 6 - (12 + 4)/8 = 4.
    np.testing.assert_allclose(decisions(states), [3.0, 5.0, 6.0, 4.0])
    np.testing.assert_allclose(queues(states), [0.0, 2.0, 4.0, 3.0])


def test_liu2022() -> None:
    # alpha_t = gamma_t = t. x_1 = 3, Q_0 = 0.
    learner = coldq.Liu2022(X, alpha=Power(1.0), gamma=Power(1.0))
    states = play(
        learner, 3.0, [revealed(-6.0, (1, 2)), revealed(-4.0, (1, 6)), revealed(-3.0, (1, 5.5))]
    )
    # Slot 1: v = 1, Q_1 = 1, w = 1 (1 + 1) = 2. x_2 = 3 + (6 - 2)/2 = 5.
    # Slot 2: v = 2 (-1), Q_2 = max{2, 1 - 2} = 2, w = 2 (2 - 2) = 0. x_3 = 5 + 4/4 = 6.
    # Slot 3: v = 3 * 0.5, Q_3 = 2 + 1.5 = 3.5, w = 3 (3.5 + 1.5) = 15. x_4 = 6 + (3 - 15)/6 = 4.
    np.testing.assert_allclose(decisions(states), [3.0, 5.0, 6.0, 4.0])
    np.testing.assert_allclose(queues(states), [0.0, 1.0, 2.0, 3.5])


def test_mosp() -> None:
    # T = 8: alpha = mu = 1/2. x_1 = 2, l_1 = 0.
    learner = coldq.MOSP(X, horizon=8)
    states = play(
        learner, 2.0, [revealed(-3.0, (1, 1)), revealed(0.0, (2, 4)), revealed(-1.0, (1, 6))]
    )
    # Slot 1: l_2 = 0 + 1/2. x_2 = 2 - (-3 + 0.5)/2 = 3.25: the dual moves first.
    # Slot 2: g_2(3.25) = 2.5, l_3 = 0.5 + 1.25 = 1.75. x_3 = 3.25 - (2 * 1.75)/2 = 1.5.
    # Slot 3: g_3(1.5) = -4.5, l_4 = [1.75 - 2.25]_+ = 0. x_4 = 1.5 + 1/2 = 2.
    np.testing.assert_allclose(decisions(states), [2.0, 3.25, 1.5, 2.0])
    np.testing.assert_allclose(queues(states), [0.0, 0.5, 1.75, 0.0])


class Late:
    """f_t(x) = (x - y_t)^2 / 2 and g_t(x) = x - b_t, the same whatever is played."""

    domain, horizon, n_constraints = X, 4, 1

    def start(self, seeds: Any) -> Late:
        return self

    def reveal(self, t: int, x: Any) -> coldq.Feedback:
        y, b = {1: (8.0, 1.0), 2: (7.0, 4.0), 3: (5.0, 3.5), 4: (0.0, 0.0)}[t]
        return coldq.Feedback(coldq.LeastSquares([[1.0]], [y]), coldq.Affine([[1.0]], [b]), slot=t)


def test_wang2023_with_feedback_one_slot_late() -> None:
    # alpha = eta = gamma = 1, delay 1: the step is min of d x + w x + 2 |x - c|^2 for c the mean of
    # x_t and x_{t+1}. x_1 = x_2 = 2 are played before anything is known.
    learner = coldq.Wang2023(X, 4, 1, alpha=1.0, eta=1.0, gamma=1.0)
    # Feedback 1: d = 2 - 8 = -6. g_1(x_2) = 1, Q_1 = 1, w = 1 + 1 = 2. c = 2.
    #   x_3 = 2 + (6 - 2)/4 = 3.
    # Feedback 2: d = x_2 - 7 = -5, not x_3 - 7. g_2(x_3) = -1, Q_2 = max{1, 1 - 1} = 1,
    #   w = 1 - 1 = 0. c = (2 + 3)/2. x_4 = 2.5 + 5/4 = 3.75.
    # Feedback 3: d = x_3 - 5 = -2. g_3(x_4) = 0.25, Q_3 = 1.25, w = 1.25 + 0.25 = 1.5.
    #   c = (3 + 3.75)/2. x_5 = 3.375 + (2 - 1.5)/4 = 3.5.
    trace = coldq.simulate(
        learner, Late(), seeds=[0], delay=1, keep=["decisions", "queue"], start=[2.0]
    )
    assert trace.decisions is not None
    assert trace.queue is not None
    np.testing.assert_allclose(trace.decisions[0, :, 0], [2.0, 2.0, 3.0, 3.75])
    np.testing.assert_allclose(trace.queue[0, :, 0], [0.0, 0.0, 1.0, 1.0])
    np.testing.assert_allclose(trace.state.past[0, :, 0], [3.75, 3.5])
    np.testing.assert_allclose(trace.state.queue[0], [1.25])


def test_simulate_refuses_another_delay_than_the_learners() -> None:
    learner = coldq.Wang2023(X, 4, 1, alpha=1.0, eta=1.0, gamma=1.0)
    with pytest.raises(coldq.InvalidInput, match="the learner's delay is 1, but the run's is 0"):
        coldq.simulate(learner, Late(), seeds=[0])


def test_a_delayed_state_that_does_not_fit_is_refused() -> None:
    learner = coldq.Wang2023(X, 4, 1, alpha=1.0, eta=1.0, gamma=1.0)
    arrays = learner.init(1, start=[2.0]).to_arrays()
    for change, words in [
        ({"past": np.full((3, 1), 2.0)}, "past must hold the 2 latest decisions"),
        ({"past": np.array([[2.0], [3.0]])}, "past must hold the 2 latest decisions"),
        ({"past": np.array([[-1.0], [2.0]])}, "past must lie in the domain"),
        ({"queue": np.array([-1.0])}, "queue must not be negative"),
    ]:
        with pytest.raises(coldq.InvalidInput, match=words):
            learner.from_arrays(arrays | change)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: coldq.YuNeely2020(X, 10), "needs either lipschitz or alpha"),
        (lambda: coldq.Liu2022(X), "needs either lipschitz or alpha"),
        (lambda: coldq.Liu2022(X, lipschitz=1.0, path_exponent=2.0), "path_exponent must lie in"),
        (lambda: coldq.Jenatton2016(X, lipschitz=1.0, b=1.0), "b must lie strictly between"),
        (lambda: coldq.Ader(X, 10, gradient_bound=[1.0, 2.0]), "must be one number"),
        (lambda: coldq.Wang2023(X, 10, -1, alpha=1.0, eta=1.0, gamma=1.0), "delay must be a whole"),
        (lambda: coldq.Mahdavi2012(X, 10, eta=np.ones(2), delta=np.ones(3)), "do not fit together"),
        (
            lambda: coldq.Mahdavi2012.for_problem(coldq.problems.TimeVarying(horizon=100)),
            "no delta satisfies for the horizon 100: it must be longer by a factor of",
        ),
    ],
)
def test_parameters_without_a_theory_are_refused(call: Any, words: str) -> None:
    with pytest.raises(coldq.InvalidInput, match=words):
        call()


def test_a_horizon_longer_by_the_factor_named_has_a_delta() -> None:
    for rule, parameters in (
        (coldq.Mahdavi2012, {}),
        (coldq.CaoLiu2019, {"path_exponent": 0.5}),
    ):
        with pytest.raises(coldq.InvalidInput, match="longer by a factor") as refused:
            rule.for_problem(coldq.problems.TimeVarying(horizon=100), **parameters)
        factor = float(str(refused.value).split("factor of ")[1].split(",")[0])
        enough = coldq.problems.TimeVarying(horizon=int(101 * factor))
        learner = rule.for_problem(enough, **parameters)
        L = max(enough.constants.gradient_bound, enough.constants.constraint_lipschitz)
        # What the theory asks for; D grows a little with T, so it is not met by much.
        assert learner.delta >= 3.0 * L**2 + 2.0 * learner.delta**2 * learner.eta**2


PAIR = np.array([0.2, 0.7])
SQUARE = coldq.Box(-1.0, 1.0, dim=2)


def random_feedback(seed: int) -> list[coldq.Feedback]:
    rng = np.random.default_rng(seed)
    return [
        coldq.Feedback(
            coldq.LeastSquares(rng.standard_normal((2, 2)), rng.standard_normal(2)),
            coldq.Affine(rng.standard_normal((2, 2)), rng.uniform(-0.3, 0.3, 2)),
        )
        for _ in range(8)
    ]


@pytest.mark.parametrize(
    "make",
    [
        lambda a: coldq.Mahdavi2012(SQUARE, 50, eta=0.3 * a, delta=a),
        lambda a: coldq.Jenatton2016(SQUARE, lipschitz=a),
        lambda a: coldq.YuanLamperski2018(SQUARE, 50, eta=0.5 * a, sigma=1.0),
        lambda a: coldq.YuNeelyWei2017(SQUARE, 50, V=a, alpha=2.0),
        lambda a: coldq.YuNeely2020(SQUARE, 50, lipschitz=a),
        lambda a: coldq.MOSP(SQUARE, 50, alpha=0.5, mu=a),
        lambda a: coldq.Liu2022(SQUARE, lipschitz=2.0, gamma=a),
        lambda a: coldq.Wang2023(SQUARE, 50, 2, alpha=a, eta=1.0, gamma=a),
    ],
)
def test_parameters_with_leading_axes_are_learners_side_by_side(make: Any) -> None:
    together, alone = make(PAIR), [make(a) for a in PAIR]
    state, states = together.init(2), [learner.init(2) for learner in alone]
    for feedback in random_feedback(5):
        state = together.update(state, feedback)
        states = [a.update(s, feedback) for a, s in zip(alone, states, strict=True)]
        for k in range(2):
            assert state.x[k].tobytes() == states[k].x.tobytes()
    assert np.abs(state.x[0] - state.x[1]).max() > 1e-3


def test_without_a_delay_two_regularisers_are_one() -> None:
    double = coldq.Wang2023(SQUARE, 50, 0, alpha=0.7, eta=0.4, gamma=0.9)
    single = coldq.YuNeely2020(SQUARE, 50, alpha=1.1, gamma=0.9)
    one, other = double.init(2), single.init(2)
    for feedback in random_feedback(6):
        one, other = double.update(one, feedback), single.update(other, feedback)
        np.testing.assert_allclose(one.x, other.x, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(one.queue, other.queue, rtol=1e-12, atol=1e-14)


def test_a_linear_penalty_on_a_curved_constraint_is_minimised() -> None:
    # 1-d: the capacity 2 - 3 log(1 + x), at a fine grid no point of [0, 10] is better.
    g = coldq.LogCapacity(2.0, [3.0], [1.0])
    learner = coldq.YuNeely2020(X, 16, alpha=0.5, gamma=1.5)
    state = learner.init(1, start=[0.4])
    grid = np.linspace(0.0, 10.0, 100_001)[:, None]
    for slope in (1.0, 0.2, -0.3):
        before = state
        state = learner.update(before, coldq.Feedback(coldq.Linear([slope]), g))
        # Q_t and g_t(x_t) as the rule says, from the state before.
        v = 1.5 * (2.0 - 3.0 * np.log1p(before.x[0]))
        Q = max(-v, before.queue[0] + v)
        np.testing.assert_allclose(state.queue, [Q])

        def objective(x, x_t=before.x[0], slope=slope, weight=1.5 * (Q + v)):
            return slope * (x - x_t) + weight * (2.0 - 3.0 * np.log1p(x)) + 0.5 * (x - x_t) ** 2

        assert objective(state.x[0]) <= objective(grid[:, 0]).min() + 1e-9
        assert 0.0 < state.x[0] < 10.0


def test_sarkar_sinha2025() -> None:
    # As Sinha and Vaze's in test_by_hand.py, but lambda_t = 1 / (2 sqrt(t)). R = 8, G = 1, so that
    # b = 1/16 and eta_t = 4 sqrt(2) / sqrt(S_t). x_1 = 1, Q(0) = 0.
    learner = coldq.SarkarSinha2025(coldq.Box(0.0, 8.0, dim=1), lipschitz=1.0)
    far = (1.0, 100.0)
    states = play(
        learner,
        1.0,
        [revealed(-16.0, (16, 0), far), revealed(16.0, (16, 96), (8, 48))],
        n_constraints=2,
    )
    # Slot 1: Q(1) = 1, Phi_1' = exp(1/2)/2. nabla_1 = -1 + 0.824361: x_2 = 1 + 4 sqrt(2).
    nabla_1, x_2 = -1.0 + exp(0.5) / 2.0, 1.0 + 4.0 * sqrt(2.0)
    # Slot 2: Q(2) = 1 + (x_2 - 6) = 1.656854, lambda_2 = 0.353553, nabla_2 = 1 + Phi_2'(Q(2)).
    q_2, rate = 1.0 + (x_2 - 6.0), 1.0 / (2.0 * sqrt(2.0))
    nabla_2 = 1.0 + rate * exp(rate * q_2)
    x_3 = x_2 - 4.0 * sqrt(2.0) * nabla_2 / sqrt(nabla_1**2 + nabla_2**2)
    np.testing.assert_allclose(decisions(states), [1.0, x_2, x_3])
    np.testing.assert_allclose([state.violation for state in states], [0.0, 1.0, q_2])


def test_lekeufack_jordan2024() -> None:
    # R = 8, G = 2: b = 1/32 and eta_t = 8 / sqrt(4 + S_{t-1}). z_1 = x_1 = 2, lambda = 1/2.
    learner = coldq.LekeufackJordan2024(coldq.Box(0.0, 8.0, dim=1), lipschitz=2.0)
    ahead = coldq.Forecast(coldq.Linear([-2.0]), coldq.Affine([[3.0]], [0.0]))
    second = revealed(0.25, (4, 100))
    second = coldq.Feedback(second.loss, second.constraint, forecast=ahead)
    states = play(learner, 2.0, [revealed(-0.5, (1, 0)), second, revealed(-6.0, (9, 0))])
    # Slot 1: g = 2, Q = 2/32, Phi' = exp(1/32)/2. nabla_1 = -1/2 + Phi' = 0.015872.
    #   S_1 = nabla_1^2, E_1 = 1/4. z_2 = 2 - 4 nabla_1, and nabla_1 is foreseen once more.
    price = exp(1.0 / 32.0) / 2.0
    nabla_1 = -0.5 + price
    z_2, eta_2 = 2.0 - 4.0 * nabla_1, 8.0 / sqrt(4.0 + nabla_1**2)
    x_2 = z_2 - eta_2 * nabla_1
    # Slot 2: g < 0, nabla_2 = 1/4. S_2 = S_1 + (1/4 - nabla_1)^2, E_2 = 1/4 + 1/4. z_3 = 0.936598.
    #   The forecast at z_3: -2 and the slope 3 of a row that is violated there.
    s_2 = nabla_1**2 + (0.25 - nabla_1) ** 2
    z_3, eta_3 = z_2 - eta_2 * 0.25, 8.0 / sqrt(4.0 + s_2)
    x_3 = z_3 - eta_3 * (-2.0 + 3.0 * price)
    # Slot 3: Q = 1/16 + 9 x_3 / 32, nabla_3 = -6 + 9 exp(Q/2)/2. E_3 = 1/2 + 6^2/4 = 9.5, so that
    #   lambda is 1 / (2 sqrt(9.5)) from now on, and the surrogate of slot 4 is foreseen with it.
    q_3 = 1.0 / 16.0 + 9.0 * x_3 / 32.0
    nabla_3 = -6.0 + 4.5 * exp(0.5 * q_3)
    z_4 = z_3 - eta_3 * nabla_3
    s_3 = s_2 + (nabla_3 - (-2.0 + 3.0 * price)) ** 2
    rate = 1.0 / (2.0 * sqrt(9.5))
    x_4 = z_4 - 8.0 / sqrt(4.0 + s_3) * (-6.0 + 9.0 * rate * exp(rate * q_3))
    np.testing.assert_allclose(decisions(states), [2.0, x_2, x_3, np.clip(x_4, 0.0, 8.0)])
    np.testing.assert_allclose(
        [state.centre[0] for state in states], [2.0, z_2, z_3, np.clip(z_4, 0.0, 8.0)]
    )
    np.testing.assert_allclose(
        [state.violation for state in states], [0.0, 1.0 / 16.0, 1.0 / 16.0, q_3]
    )
    np.testing.assert_allclose([state.surprise for state in states], [0.0, 0.25, 0.5, 9.5])


def test_supantha_sinha2026() -> None:
    # G = 5/4, so that 4 G = 5 and Ader is that of test_ader: steps 1, 2, 4 and w_1 = 6, 2, 1 in 9.
    learner = coldq.SupanthaSinha2026(X, horizon=14, lipschitz=1.25)
    states = play(learner, 2.0, [revealed(-3.0, (1, 1)), revealed(-2.0, (1, 3))])
    # Slot 1: g_1(2) = 1, and 2 lies 1 to the right of X_1: nabla = -3 + 1 + 2 G = 1/2.
    #   x_2[i] = 1.5, 1, 0 and x_2 = (9 + 2) / 9.
    # Slot 2: g_2 < 0: nabla = -2. w_3 in proportion to 6 exp(3 kappa), 2 exp(2 kappa), 1.
    #   x_3[i] = 3.5, 5, 8.
    kappa = sqrt(2.0 / 14.0) / 50.0
    raw = np.array([6.0 * exp(3.0 * kappa), 2.0 * exp(2.0 * kappa), 1.0])
    np.testing.assert_allclose(states[1].ader.experts.x[:, 0], [1.5, 1.0, 0.0])
    np.testing.assert_allclose(states[2].ader.experts.x[:, 0], [3.5, 5.0, 8.0])
    x_3 = raw @ [3.5, 5.0, 8.0] / raw.sum()
    np.testing.assert_allclose(decisions(states), [2.0, 11.0 / 9.0, x_3])


def test_supantha_sinha2026_measures_the_distance_to_all_rows_together() -> None:
    # In the plane, from (2, 2): x <= 1 and x + y <= 0 within [-9, 9]^2. The nearest point of X_1 is
    # (0, 0), at the distance 2 sqrt(2), though the worst row is x + y, of value 4 and slope (1, 1).
    box = coldq.Box(-9.0, 9.0, dim=2)
    learner = coldq.SupanthaSinha2026(box, horizon=14, lipschitz=1.0)
    rows = coldq.Affine([[1.0, 0.0], [1.0, 1.0]], [1.0, 0.0])
    state = learner.update(
        learner.init(2, start=[2.0, 2.0]), coldq.Feedback(coldq.Linear([0.0, 0.0]), rows)
    )
    # nabla = (1, 1) + 2 (1, 1) / sqrt(2). R = 18 sqrt(2), eta_1 = (R / 4) / 2.
    nabla = 1.0 + sqrt(2.0)
    first = max(2.0 - 18.0 * sqrt(2.0) / 8.0 * nabla, -9.0)
    np.testing.assert_allclose(state.ader.experts.x[0], [first, first])


def test_supantha_sinha2026_projection_free() -> None:
    # V = 1, T = 3: M = log2(4)/2 + 1 = 2. R = 10. x_1 = 0.
    learner = coldq.SupanthaSinha2026ProjectionFree(X, horizon=3, V=1.0)
    states = play(learner, 0.0, [revealed(-1.0, (1, 100)), revealed(1.0, (1, 8))])
    # Slot 1: nabla = -1, S = 1. x_2[i] = 10/sqrt(2), and 20/sqrt(2), clipped to 10. Nothing tells
    #   the two apart yet: x_2 = 8.535534 is their mean.
    a = 10.0 / sqrt(2.0)
    x_2 = (a + 10.0) / 2.0
    # Slot 2: Q = x_2 - 8, nabla = 1 + 2 Q = 2.071068. Losses -l and l with l = nabla (10 - x_2).
    #   The leader's, -l, is what follows the leader: the gap is 0 - (-l) = l, eta = ln(2) / l, and
    #   the weights are as exp(0) to exp(-2 l eta) = 1/4: 4/5 and 1/5.
    nabla = 1.0 + 2.0 * (x_2 - 8.0)
    step = 10.0 / sqrt(2.0 * (1.0 + nabla**2))
    x_3 = [a - step * nabla, 0.0]  # 10 - 2 step nabla is below 0
    np.testing.assert_allclose(states[1].points[:, 0], [a, 10.0])
    np.testing.assert_allclose(states[2].points[:, 0], x_3)
    np.testing.assert_allclose(decisions(states), [0.0, x_2, 0.8 * x_3[0]])
    np.testing.assert_allclose(states[2].gap, nabla * (10.0 - x_2))


# -- Readings that the sources leave open, and what each changes ---------------------------------


def test_yi2021_takes_the_lipschitz_constant_of_the_vector_as_the_proof_does() -> None:
    problem = coldq.problems.OnlineQuadratic(horizon=100)  # of three rows
    L = np.sqrt(3.0) * problem.constants.constraint_lipschitz
    for kind in (coldq.Yi2021, coldq.Yi2021Expert):
        proved, rows = (kind.for_problem(problem, reading=name) for name in ("vector", "rows"))
        assert kind.for_problem(problem) == proved
        pool = [one if kind is coldq.Yi2021 else one._pool_of(0) for one in (proved, rows)]
        kept, more = (one.alpha(4.0) * one.gamma(4.0) ** 2 * L**2 for one in pool)
        np.testing.assert_allclose(kept, 0.5)
        np.testing.assert_allclose(more, 1.5)
        with pytest.raises(coldq.InvalidInput, match="reading must be"):
            kind.for_problem(problem, reading="row")


def test_yi2023_with_the_next_index_has_the_steps_of_a_run_one_slot_on() -> None:
    X = coldq.Box(0.0, 4.0, dim=1)
    revealed = coldq.Feedback(coldq.Linear([-2.0]), coldq.Affine([[1.0]], [1.0]))
    steps = {"alpha": Power(-1.0), "beta": 0.5, "gamma": Power(-1.0, 2.0)}
    learner = coldq.Yi2023(X, **steps, index="t+1")
    # alpha_2 = 1/2 moves 0 by 1; there g = 0, and alpha_3 = 1/3 moves it by 2/3.
    state = learner.update(learner.init(1), revealed)
    np.testing.assert_allclose(state.x, 1.0)
    state = learner.update(state, revealed)
    np.testing.assert_allclose(state.x, 5.0 / 3.0)
    np.testing.assert_allclose(state.queue, 0.0)
    # g = 2/3 is active: alpha_4 = 1/4 moves by 1/2, gamma_4 = 1/2 and the model is 2/3 + 1/2.
    state = learner.update(state, revealed)
    np.testing.assert_allclose(state.x, 13.0 / 6.0)
    np.testing.assert_allclose(state.queue, 0.5 * (2.0 / 3.0 + 0.5))
    coldq.checks.check_learner(learner)
    constant = {"alpha": 0.3, "beta": 0.5, "gamma": 2.0}
    ends = []
    for index in ("t", "t+1"):
        learner = coldq.Yi2023(X, **constant, index=index)
        state = learner.init(1)
        for _ in range(5):
            state = learner.update(state, revealed)
        ends.append((state.x, state.queue))
    np.testing.assert_array_equal(*(np.concatenate(end) for end in ends))
    with pytest.raises(coldq.InvalidInput, match="index must be"):
        coldq.Yi2023(X, **constant, index="t-1")


def test_liu2022_without_parameters_steps_by_the_slopes_that_were_revealed() -> None:
    X = coldq.Box(-9.0, 9.0, dim=2)
    learner = coldq.Liu2022(X, reading="parameter-free")
    rows = coldq.Affine([[3.0, 0.0], [0.0, 4.0]], [9.0, 9.0])  # |J|^2 = 25, g(0) = -9
    state = learner.update(learner.init(2), coldq.Feedback(coldq.Linear([26.0, 0.0]), rows))
    # Q_1 = 9 and Q_1 + g = 0: the gradient alone moves x, by 26 / (2 * 26 / 2).
    np.testing.assert_allclose(state.x, [-1.0, 0.0])
    told = coldq.Liu2022(X, lipschitz=5.0)
    again = told.update(told.init(2), coldq.Feedback(coldq.Linear([26.0, 0.0]), rows))
    np.testing.assert_array_equal(state.x, again.x)
    for wrong in ({"lipschitz": 2.0}, {"path_exponent": 0.5}):
        with pytest.raises(
            coldq.InvalidInput, match="lipschitz and path_exponent must be left out"
        ):
            coldq.Liu2022(X, reading="parameter-free", **wrong)
    assert coldq.build(coldq.describe(learner)) == learner != told
    coldq.checks.check_learner(learner)
