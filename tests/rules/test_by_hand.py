"""Two or three slots of each rule in one dimension, worked out with pencil and paper.

In one dimension the step  min over x of  d (x - c) + a (x - c)^2 + w [x - b]_+  has three cases:
free, x = c - d / (2 a), if that is at most b; capped, x = c - (d + w) / (2 a), if that is at
least b; else x = b, on the kink.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import e, exp, log, sqrt
from typing import Any

import numpy as np
import pytest

import coldq
from coldq.slot.schedules import Power

X = coldq.Box(0.0, 10.0, dim=1)


def revealed(slope: float, *rows: tuple[float, float]) -> coldq.Feedback:
    """f(x) = slope x, and one row g(x) = a x - b for each (a, b)."""
    constraint = coldq.Affine([[a] for a, _ in rows], [b for _, b in rows])
    return coldq.Feedback(coldq.Linear([slope]), constraint)


def play(
    learner: Any, start: float, feedbacks: Sequence[coldq.Feedback], n_constraints: int = 1
) -> list[Any]:
    """The states before slot 1, 2, ..."""
    states = [learner.init(n_constraints, start=[start])]
    for feedback in feedbacks:
        states.append(learner.update(states[-1], feedback))
    return states


def decisions(states: Sequence[Any]) -> np.ndarray:
    return np.array([state.x[0] for state in states])


def test_recoo_drift() -> None:
    # alpha = 1, gamma_t = t, eta_t = t. x_1 = 0, Q_1 = 0.
    learner = coldq.RECOO(X, alpha=1.0, gamma=Power(1.0), eta=Power(1.0), reading="drift")
    states = play(
        learner, 0.0, [revealed(-4.0, (1, 1.5)), revealed(-10.0, (1, 3)), revealed(-10.0, (1, 6))]
    )
    # Slot 1: weight gamma_1 Q_1 = 0, free: x_2 = 0 + 4/2 = 2. [g_1(2)]_+ = 0.5.
    #   Q_2 = max{0 + gamma_1 0.5, eta_2} = max{0.5, 2} = 2, the floor.
    # Slot 2: weight gamma_2 Q_2 = 4, capped: x_3 = 2 + (10 - 4)/2 = 5. [g_2(5)]_+ = 2.
    #   Q_3 = max{2 + gamma_2 2, eta_3} = max{6, 3} = 6.
    # Slot 3: weight gamma_3 Q_3 = 18. Free 5 + 10/2 = 10 > 6, capped 5 - 8/2 = 1 < 6: x_4 = 6.
    #   Q_4 = max{6 + 0, 4} = 6.
    np.testing.assert_allclose(decisions(states), [0.0, 2.0, 5.0, 6.0])
    np.testing.assert_allclose([state.queue[0] for state in states], [0.0, 2.0, 6.0, 6.0])


def test_recoo_comparison() -> None:
    # alpha = 1, gamma_t = t, eta_t = t. x_1 = 0, Q_1 = 0.
    learner = coldq.RECOO(X, alpha=1.0, gamma=Power(1.0), eta=Power(1.0), reading="comparison")
    states = play(
        learner, 0.0, [revealed(-4.0, (1, 1.5)), revealed(-10.0, (1, 0.5)), revealed(-10.0, (1, 3))]
    )
    # Slot 1: weight gamma_1 Q_1 = 0, free: x_2 = 0 + 4/2 = 2.
    # Slot 2: [g_2(x_2)]_+ = 1.5, Q_2 = max{0 + gamma_2 1.5, eta_2} = max{3, 2} = 3.
    #   Weight gamma_2 Q_2 = 6, capped: x_3 = 2 + (10 - 6)/2 = 4 > 0.5.
    # Slot 3: [g_3(x_3)]_+ = 1, Q_3 = max{3 + gamma_3 1, eta_3} = max{6, 3} = 6.
    #   Weight gamma_3 Q_3 = 18. Free 4 + 10/2 = 9 > 3, capped 4 - 8/2 = 0 < 3: x_4 = 3.
    np.testing.assert_allclose(decisions(states), [0.0, 2.0, 4.0, 3.0])
    # The state before slot t has Q_{t-1}: Q_1 = 0 before slots 1 and 2.
    np.testing.assert_allclose([state.queue[0] for state in states], [0.0, 0.0, 3.0, 6.0])


def test_yi2021() -> None:
    # T = 16, c = 1/2: alpha = 2 / 16^(1/2) = 1/2 and gamma = 16^(1/4) = 2. Divided by alpha, the
    # step has a = 1/alpha = 2 and w = gamma qhat. x_1 = 2, q_0 = 0.
    learner = coldq.Yi2021(X, 16, alpha0=2.0, gamma0=1.0, c=0.5)
    states = play(
        learner, 2.0, [revealed(-20.0, (1, 1)), revealed(-4.0, (1, 4)), revealed(-16.0, (1, 5))]
    )
    # Slot 1: v = 2 [2 - 1]_+ = 2, q_1 = 0 + 2 = 2, qhat_1 = 2 + 2 = 4, w = 8.
    #   Capped: x_2 = 2 + (20 - 8)/4 = 5 > 1.
    # Slot 2: v = 2 [5 - 4]_+ = 2, q_2 = 2 + 2 = 4, qhat_2 = 4 + 2 = 6, w = 12.
    #   Free 5 + 4/4 = 6 > 4, capped 5 - 8/4 = 3 < 4: x_3 = 4.
    # Slot 3: v = 2 [4 - 5]_+ = 0, q_3 = 4, qhat_3 = 4, w = 8.
    #   Capped: x_4 = 4 + (16 - 8)/4 = 6 > 5.
    np.testing.assert_allclose(decisions(states), [2.0, 5.0, 4.0, 6.0])
    np.testing.assert_allclose([state.queue[0] for state in states], [0.0, 2.0, 4.0, 4.0])


def test_yi2021_with_gamma_as_printed() -> None:
    # As above, but gamma = 1 / 16^(1/4) = 1/2.
    learner = coldq.Yi2021(X, 16, alpha0=2.0, gamma0=1.0, c=0.5, printed_gamma=True)
    states = play(learner, 2.0, [revealed(-20.0, (1, 1)), revealed(-4.0, (1, 4))])
    # Slot 1: v = 0.5 [2 - 1]_+ = 0.5, q_1 = 0.5, qhat_1 = 1, w = 0.5.
    #   Capped: x_2 = 2 + (20 - 0.5)/4 = 6.875.
    # Slot 2: v = 0.5 [6.875 - 4]_+ = 1.4375, q_2 = 1.9375, qhat_2 = 3.375, w = 1.6875.
    #   Capped: x_3 = 6.875 + (4 - 1.6875)/4 = 7.453125.
    np.testing.assert_allclose(decisions(states), [2.0, 6.875, 7.453125])
    np.testing.assert_allclose([state.queue[0] for state in states], [0.0, 0.5, 1.9375])


def test_yi2023() -> None:
    # alpha_t = 1/t, beta = 1/4, gamma = 2, so that q is halved each time. x_1 = 2, q_1 = 0.
    learner = coldq.Yi2023(X, alpha=Power(-1.0), beta=0.25, gamma=2.0)
    states = play(
        learner, 2.0, [revealed(-3.0, (2, 2)), revealed(-30.0, (2, 8)), revealed(-6.0, (1, 9))]
    )
    # Slot 1: g_1(2) = 2, J = 2. w = -3 + 2 * 0 = -3, x_2 = 2 + 3 = 5.
    #   q_2 = 0/2 + 2 (2 + 2 (5 - 2)) = 16.
    # Slot 2: g_2(5) = 2, J = 2. w = -30 + 2 * 16 = 2, x_3 = 5 - 2/2 = 4.
    #   q_3 = 16/2 + 2 (2 + 2 (4 - 5)) = 8.
    # Slot 3: g_3(4) = -5, J = 0. w = -6, x_4 = 4 + 6/3 = 6. q_4 = 8/2 + 0 = 4.
    np.testing.assert_allclose(decisions(states), [2.0, 5.0, 4.0, 6.0])
    np.testing.assert_allclose([state.queue[0] for state in states], [0.0, 16.0, 8.0, 4.0])


def test_yi2023_dual_variable_is_not_negative() -> None:
    # alpha = 1, beta = 1/4, gamma = 2. x_1 = 5, q_1 = 0.
    learner = coldq.Yi2023(X, alpha=1.0, beta=0.25, gamma=2.0)
    states = play(learner, 5.0, [revealed(4.0, (1, 3))])
    # g_1(5) = 2, J = 1, x_2 = 5 - 4 = 1. q_2 = [0 + 2 (2 + (1 - 5))]_+ = [-4]_+ = 0.
    np.testing.assert_allclose(states[-1].x, [1.0])
    np.testing.assert_allclose(states[-1].queue, [0.0])


def test_sinha_vaze_convex() -> None:
    # R = 8, G = 1, T = 4: b = 1 / (2 * 1 * 8) = 1/16, lambda = 1 / (2 * 2) = 1/4, and
    # eta_t = sqrt(2) 8 / (2 sqrt(S_t)) = 4 sqrt(2) / sqrt(S_t). x_1 = 1, Q(0) = 0.
    learner = coldq.SinhaVaze(coldq.Box(0.0, 8.0, dim=1), horizon=4, lipschitz=1.0)
    far = (1.0, 100.0)
    states = play(
        learner,
        1.0,
        [
            revealed(-16.0, (16, 0), far),
            revealed(16.0, (16, 96), (8, 48)),
            revealed(-8.0, (1, 7), far),
        ],
        n_constraints=2,
    )
    # Slot 1: g_1(1) = 16, Q(1) = 16/16 = 1. Phi'(1) = exp(1/4)/4 = 0.321006.
    #   nabla_1 = -16/16 + 0.321006 * 16/16 = -0.678994.
    #   S_1 = nabla_1^2, so |eta_1 nabla_1| = 4 sqrt(2): x_2 = 1 + 5.656854 = 6.656854.
    nabla_1 = -1.0 + exp(0.25) / 4.0
    x_2 = 1.0 + 4.0 * sqrt(2.0)
    # Slot 2: g_2(x_2) = max{16, 8} (x_2 - 6) = 16 * 0.656854, Q(2) = 1 + 0.656854 = 1.656854.
    #   Phi'(Q(2)) = exp(1.656854/4)/4 = 0.378295, nabla_2 = 16/16 + 0.378295 * 1 = 1.378295.
    #   S_2 = 0.461032 + 1.899697 = 2.360730, eta_2 = 5.656854/1.536467 = 3.681729.
    #   x_3 = 6.656854 - 3.681729 * 1.378295 = 1.582345.
    q_2 = 1.0 + (x_2 - 6.0)
    nabla_2 = 1.0 + exp(q_2 / 4.0) / 4.0
    x_3 = x_2 - 4.0 * sqrt(2.0) * nabla_2 / sqrt(nabla_1**2 + nabla_2**2)
    # Slot 3: g_3(x_3) < 0, Q(3) = Q(2). nabla_3 = -8/16 = -0.5, S_3 = 2.360730 + 0.25 = 2.610730.
    #   eta_3 = 5.656854/1.615775 = 3.501016, x_4 = 1.582345 + 3.501016/2 = 3.332853.
    x_4 = x_3 + 4.0 * sqrt(2.0) * 0.5 / sqrt(nabla_1**2 + nabla_2**2 + 0.25)
    np.testing.assert_allclose(decisions(states), [1.0, x_2, x_3, x_4])
    np.testing.assert_allclose([state.violation for state in states], [0.0, 1.0, q_2, q_2])
    np.testing.assert_allclose([x_2, x_3, x_4], [6.656854, 1.582345, 3.332853], rtol=1e-6)


def test_sinha_vaze_strongly_convex() -> None:
    # T = 3, a = 2, and G with G^2 ln(3 e) = 1, so that V = 8/a = 4 and eta_t = 1 / (8 t).
    # b = 1, Phi'(Q) = 2 Q. x_1 = 1, Q(0) = 0.
    G = 1.0 / sqrt(log(3.0 * e))
    learner = coldq.SinhaVaze(coldq.Box(0.0, 8.0, dim=1), horizon=3, lipschitz=G, modulus=2.0)
    far = (1.0, 100.0)
    states = play(
        learner,
        1.0,
        [
            revealed(-8.0, (1, 0), far),
            revealed(1.0, (1, 4.65), (2, 9.25)),
            revealed(6.0, (1, 5), far),
        ],
        n_constraints=2,
    )
    # Slot 1: g_1(1) = 1, Q(1) = 1. nabla_1 = 4 (-8) + 2 * 1 = -30, x_2 = 1 + 30/8 = 4.75.
    # Slot 2: g_2(4.75) = max{0.1, 0.25} = 0.25 with slope 2, Q(2) = 1.25.
    #   nabla_2 = 4 * 1 + 2 * 1.25 * 2 = 9, x_3 = 4.75 - 9/16 = 4.1875.
    # Slot 3: g_3(4.1875) < 0, Q(3) = 1.25. nabla_3 = 4 * 6 = 24, x_4 = 4.1875 - 24/24 = 3.1875.
    np.testing.assert_allclose(decisions(states), [1.0, 4.75, 4.1875, 3.1875])
    np.testing.assert_allclose([state.violation for state in states], [0.0, 1.0, 1.25, 1.25])


def test_ogd() -> None:
    # R = 10, D = 5: eta_t = 2 / sqrt(t). x_1 = 0. The constraint is never looked at.
    learner = coldq.OGD(X, gradient_bound=5.0)
    slopes = (-3.0, sqrt(2.0), -9.0)
    states = play(learner, 0.0, [revealed(slope, (1, 1)) for slope in slopes])
    # Slot 1: x_2 = 0 + 2 * 3 = 6.
    # Slot 2: x_3 = 6 - (2 / sqrt(2)) sqrt(2) = 4.
    # Slot 3: 4 + (2 / sqrt(3)) 9 = 14.4, beyond the upper bound: x_4 = 10.
    np.testing.assert_allclose(decisions(states), [0.0, 6.0, 4.0, 10.0])


def test_ogd_strongly_convex() -> None:
    # mu = 1, H = 2: eta_t = 1 / (2 t). x_1 = 0.
    learner = coldq.OGD.strongly_convex(X, mu=1.0)
    states = play(learner, 0.0, [revealed(slope, (1, 1)) for slope in (-2.0, -4.0, 6.0)])
    # x_2 = 0 + 2/2 = 1, x_3 = 1 + 4/4 = 2, x_4 = 2 - 6/6 = 1.
    np.testing.assert_allclose(decisions(states), [0.0, 1.0, 2.0, 1.0])


@pytest.mark.parametrize("gradient", ["own", "shared"])
def test_coldq_expert(gradient: str) -> None:
    # T = 4: M = floor(log2(5) / 2) + 1 = 2, kappa = 1/2, eta = 1/8, gamma = 8 epsilon = 1.
    # w_1 = 3/(1 * 2 * 2), 3/(2 * 3 * 2) = 3/4, 1/4. All start at 2; Q_1 = 1.
    # f_t(x) = (x - y_t)^2 / 2 with y_1 = 8, y_2 = 1.125; g_1 = x - 3, g_2 = x - 2.
    learner = coldq.COLDQExpert(X, horizon=4, epsilon=0.125, gradient=gradient)
    state = learner.init(1, start=[2.0])
    np.testing.assert_allclose(state.weights, [0.75, 0.25])

    # Slot 1: the gradient is 2 - 8 = -6 at all points. Q = 1, alpha_1 = 1, 1/2. Both are capped:
    #   x_2[1] = 2 + (6 - 1)/2 = 4.5, x_2[2] = 2 + (6 - 1)/1 = 7. All losses l_1 = 0: w_2 = w_1.
    #   x_2 = 0.75 * 4.5 + 0.25 * 7 = 5.125.
    state = learner.update(
        state, coldq.Feedback(coldq.LeastSquares([[1.0]], [8.0]), coldq.Affine([[1.0]], [3.0]))
    )
    np.testing.assert_allclose(state.experts.x[:, 0], [4.5, 7.0])
    np.testing.assert_allclose(state.experts.queue[:, 0], [1.0, 1.0])
    np.testing.assert_allclose(state.weights, [0.75, 0.25])
    np.testing.assert_allclose(state.x, [5.125])

    # Slot 2: Q_2 = max{7/8 + 2.5, 1} = 3.375 and max{7/8 + 5, 1} = 5.875.
    #   The gradient at x_2 is 5.125 - 1.125 = 4: l_2 = 4 (4.5 - 5.125) = -2.5, 4 (7 - 5.125) = 7.5.
    #   w_3 in proportion to 0.75 exp(1.25), 0.25 exp(-3.75), that is 3 exp(5) to 1.
    state = learner.update(
        state, coldq.Feedback(coldq.LeastSquares([[1.0]], [1.125]), coldq.Affine([[1.0]], [2.0]))
    )
    weight = 3.0 * exp(5.0) / (3.0 * exp(5.0) + 1.0)
    np.testing.assert_allclose(state.experts.queue[:, 0], [3.375, 5.875])
    np.testing.assert_allclose(state.weights, [weight, 1.0 - weight])
    #   2 alpha_2 = 2 sqrt(2) and sqrt(2).
    experts = {
        # Expert 1, gradient 3.375: capped at 4.5 - 6.75/2.828427 = 2.113515 > 2.
        # Expert 2, gradient 5.875: free 7 - 5.875/1.414214 = 2.845748 > 2, and capped
        #   7 - 11.75/1.414214 = -1.308505 < 2, so it is 2.
        "own": [4.5 - 6.75 / (2.0 * sqrt(2.0)), 2.0],
        # Expert 1, gradient 4: free 4.5 - 4/2.828427 = 3.085786 > 2, and capped
        #   4.5 - 7.375/2.828427 = 1.892544 < 2, so it is 2.
        # Expert 2: free 7 - 4/1.414214 = 4.171573 > 2, and capped 7 - 9.875/1.414214 = 0.017321
        #   < 2, so it is 2.
        "shared": [2.0, 2.0],
    }[gradient]
    np.testing.assert_allclose(state.experts.x[:, 0], experts)
    np.testing.assert_allclose(state.x, [weight * experts[0] + (1.0 - weight) * experts[1]])
