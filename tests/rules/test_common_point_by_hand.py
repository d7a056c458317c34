"""Two or three slots of each rule for constraints that share a point, with pencil and paper."""

from __future__ import annotations

from math import exp, sqrt

import numpy as np

import coldq

from .test_by_hand import X, decisions, play, revealed


def test_coldq_anytime() -> None:
    # epsilon = 2, alpha_t = sqrt(t). x_1 = 0, Q_1 = gamma_1 = 2.
    learner = coldq.COLDQ.anytime(X, epsilon=2.0)
    states = play(
        learner,
        0.0,
        [revealed(-12.0, (1, 1)), revealed(-4.0, (1, 4)), revealed(-sqrt(3.0), (1, 9))],
    )
    # Slot 1: weight 2, capped: x_2 = 0 + (12 - 2)/2 = 5 > 1.
    # Slot 2: Q_2 = max{(1 - 1/4) 2 + [5 - 4]_+, 2 * 4} = max{2.5, 8} = 8. 2 alpha_2 = 2 sqrt(2).
    #   Free 5 + 4/2.83 = 6.41 > 4, capped 5 - 4/2.83 = 3.59 < 4: x_3 = 4.
    # Slot 3: Q_3 = max{(8/9) 8 + 0, 2 * 9} = 18. Free: x_4 = 4 + sqrt(3)/(2 sqrt(3)) = 4.5 < 9.
    np.testing.assert_allclose(decisions(states), [0.0, 5.0, 4.0, 4.5])
    np.testing.assert_allclose([state.queue[0] for state in states], [2.0, 2.0, 8.0, 18.0])


def test_coldq_anytime_counts_a_large_violation() -> None:
    # epsilon = 1/8. Slot 1: Q_1 = 1/8, capped: x_2 = 0 + (16 - 0.125)/2 = 7.9375.
    # Slot 2: Q_2 = max{(3/4)/8 + 6.9375, 4/8} = 7.03125: above the floor.
    learner = coldq.COLDQ.anytime(X, epsilon=0.125)
    states = play(learner, 0.0, [revealed(-16.0, (1, 1)), revealed(0.0, (1, 1))])
    np.testing.assert_allclose(states[1].x, [7.9375])
    np.testing.assert_allclose(states[2].queue, [7.03125])


def test_coldq_doubling() -> None:
    # epsilon = 1, alpha_s = sqrt(s). Epochs: slot 1; slots 2, 3 (T = 2); slots 4 .. 7 (T = 4).
    learner = coldq.COLDQDoubling(X, epsilon=1.0)
    states = play(
        learner,
        0.0,
        [
            revealed(-9.0, (1, 1)),
            revealed(-6.0, (1, 3)),
            revealed(-4.0, (1, 1)),
            revealed(-4.0, (1, 9)),
        ],
    )
    # Slot 1, s = 1: Q = 1, capped: x_2 = 0 + (9 - 1)/2 = 4 > 1.
    # Slot 2, s = 1: Q = 2, capped: x_3 = 4 + (6 - 2)/2 = 6 > 3.
    # Slot 3, s = 2: Q = max{(1 - 1/2) 2 + 5, 2} = 6. 2 alpha = 2 sqrt(2).
    #   Capped: x_4 = 6 + (4 - 6)/2.83 = 5.292893 > 1.
    # Slot 4, s = 1: Q = 4 whatever it was. Free: x_5 = 5.292893 + 4/2 = 7.292893 < 9.
    x_4 = 6.0 - 1.0 / sqrt(2.0)
    np.testing.assert_allclose(decisions(states), [0.0, 4.0, 6.0, x_4, x_4 + 2.0])
    np.testing.assert_allclose([state.queue[0] for state in states], [1.0, 1.0, 2.0, 6.0, 4.0])


def test_clasp() -> None:
    # R = 10, D = 5: eta_t = 2 / sqrt(t). x_1 = 0.
    learner = coldq.CLASP(X, gradient_bound=5.0)
    states = play(
        learner,
        0.0,
        [revealed(-3.0, (1, 4)), revealed(-sqrt(2.0), (1, 9)), revealed(0.0, (2, 3))],
    )
    # Slot 1: 0 + 2 * 3 = 6, and x <= 4: x_2 = 4. Slot 2: 4 + 2 = 6, which is allowed: x_3 = 6.
    # Slot 3: stays at 6, and 2 x <= 3: x_4 = 1.5.
    np.testing.assert_allclose(decisions(states), [0.0, 4.0, 6.0, 1.5])


def test_nested_projections() -> None:
    # R = 10, G = 5: eta_t = 2 / sqrt(t). x_1 = 0.
    learner = coldq.NestedProjections(X, lipschitz=5.0)
    feedbacks = [revealed(-3.0, (1, 4)), revealed(-9.0, (1, 9)), revealed(sqrt(3.0), (1, 3))]
    states = play(learner, 0.0, feedbacks)
    # Slot 1: S_0 = [0, 10], y = 6. S_1 = [0, 4], x_2 = 4.
    # Slot 2: y = P_[0,4](4 + (2 / sqrt(2)) 9) = 4, S_2 = S_1: x_3 = 4, where CLASP would go to 9.
    # Slot 3: y = 4 - 2 = 2, S_3 = [0, 3]: x_4 = 2.
    np.testing.assert_allclose(decisions(states), [0.0, 4.0, 4.0, 2.0])
    assert [state.b.tolist() for state in states] == [[], [4.0], [4.0], [3.0]]


def test_the_first_of_the_two_projections_matters() -> None:
    # In the plane: S_0 = X = [0, 10]^2, then x_1 + x_2 <= 4, then x_1 <= 1. eta = 1.
    box = coldq.Box(0.0, 10.0, dim=2)
    learner = coldq.NestedProjections(box, eta=1.0)
    state = learner.init(1, start=[2.0, 2.0])
    zero, pull = coldq.Linear([0.0, 0.0]), coldq.Linear([-3.0, -1.0])
    state = learner.update(state, coldq.Feedback(zero, coldq.Affine([[1.0, 1.0]], [4.0])))
    state = learner.update(state, coldq.Feedback(pull, coldq.Affine([[1.0, 0.0]], [1.0])))
    # (5, 3) goes to y = (3, 1) in S_1, and from there to (1, 1) in S_2. In one projection it would
    # have gone to the corner (1, 3).
    np.testing.assert_allclose(state.x, [1.0, 1.0])


def test_switch() -> None:
    # R = 8, G = 1, T = 4: limit = 2 log(4) = 2.77; eta_t = 8 / sqrt(t) before the switch. After:
    # b = 1/16, lambda = 1/4, eta = 4 sqrt(2) / sqrt(S). x_1 = 4.
    learner = coldq.Switch(coldq.Box(0.0, 8.0, dim=1), horizon=4, lipschitz=1.0)
    states = play(
        learner,
        4.0,
        [revealed(-0.25, (1, 3)), revealed(0.0, (1, 1)), revealed(-16.0, (1, 2))],
    )
    # Slot 1: [g_1(4)]_+ = 1, CCV = 1. y = 4 + 2 = 6, S_1 = [0, 3]: x_2 = 3.
    # Slot 2: [g_2(3)]_+ = 2, CCV = 3 > 2.77: switched. Q = 2/16, nabla = Phi'(Q)/16 > 0, and
    #   S = nabla^2, so that x_3 = 3 - 4 sqrt(2) < 0: x_3 = 0.
    # Slot 3: g_3(0) < 0, Q stays. nabla = -16/16 = -1, S = (exp(1/32)/64)^2 + 1.
    #   x_4 = 0 + 4 sqrt(2) / sqrt(S) = 5.656.
    first = exp(0.125 / 4.0) / 4.0 / 16.0
    x_4 = 4.0 * sqrt(2.0) / sqrt(first**2 + 1.0)
    np.testing.assert_allclose(decisions(states), [4.0, 3.0, 0.0, x_4])
    np.testing.assert_allclose([state.ccv for state in states], [0.0, 1.0, 3.0, 3.0])
    np.testing.assert_allclose([state.violation for state in states], [0.0, 0.0, 0.125, 0.125])
    assert [state.b.size for state in states] == [0, 1, 0, 0]


def test_polyak_feasibility() -> None:
    # eta = 1, rho = 1/2. g = max{2 x - 6, x - 100}: feasible below 3. x_1 = 0.
    learner = coldq.PolyakFeasibility(X, eta=1.0, rho=0.5)
    rows = (2, 6), (1, 100)
    states = play(
        learner, 0.0, [revealed(-2.0, *rows), revealed(-4.0, *rows), revealed(-1.0, *rows)], 2
    )
    # Slot 1: y = 2. g(0) + 2 (2 - 0) + 0.5 = -1.5: x_2 = 2.
    # Slot 2: y = 6. g(2) + 2 (6 - 2) + 0.5 = -2 + 8.5 = 6.5: x_3 = 6 - 6.5 * 2/4 = 2.75.
    # Slot 3: y = 3.75. g(2.75) + 2 + 0.5 = 2: x_4 = 3.75 - 2 * 2/4 = 2.75, where g = -rho.
    np.testing.assert_allclose(decisions(states), [0.0, 2.0, 2.75, 2.75])


def test_polyak_feasibility_asks_for_the_constraint_at_the_old_point() -> None:
    # g = max{x - 4, 5 x - 40}, the second steeper from 9 on. x_1 = 2, y = 10, rho = 1.
    # At x_1 the first row is the larger: g(2) + (10 - 2) + 1 = 7, x_2 = 10 - 7 = 3. At y it would
    # have been the second: 10 - (10 + 1)/5 = 7.8.
    learner = coldq.PolyakFeasibility(X, eta=1.0, rho=1.0)
    states = play(learner, 2.0, [revealed(-8.0, (1, 4), (5, 40))], 2)
    np.testing.assert_allclose(states[-1].x, [3.0])


def test_two_agents() -> None:
    # W = [[3/4, 1/4], [1/4, 3/4]]. COLDQ with alpha = 1, gamma = 4. x_1 = (0, 4).
    W = [[0.75, 0.25], [0.25, 0.75]]
    learner = coldq.Decentralised(coldq.COLDQ(X, alpha=1.0, eta=0.5, gamma=4.0), W)
    losses = coldq.LeastSquares([[[1.0]], [[1.0]]], [[8.0], [4.0]])  # (x - 8)^2 / 2, (x - 4)^2 / 2
    rows = coldq.Affine([[[1.0]], [[1.0]]], [[2.0], [1.0]])
    state = learner.init(1, start=[[0.0], [4.0]])
    state = learner.update(state, coldq.Feedback(losses, rows))
    # z = (1, 3). Agent 1: gradient -8 at its own x = 0. Capped: 1 + (8 - 4)/2 = 3 > 2.
    # Agent 2: gradient 0 at x = 4. Free 3 > 1, capped 3 - 4/2 = 1, so it is 1.
    np.testing.assert_allclose(state.x[:, 0], [3.0, 1.0])
    state = learner.update(state, coldq.Feedback(losses, rows))
    # Q = max{2 + 1, 4} = 4 and max{2 + 0, 4} = 4. z = (2.5, 1.5).
    # Agent 1: gradient 3 - 8 = -5. Capped 2.5 + (5 - 4)/2 = 3 > 2.
    # Agent 2: gradient 1 - 4 = -3. Free 1.5 + 1.5 = 3, capped 1.5 - 0.5 = 1: it is 1.
    np.testing.assert_allclose(state.x[:, 0], [3.0, 1.0])
    np.testing.assert_allclose(state.queue[:, 0], [4.0, 4.0])


def test_yi2023_with_two_agents_moves_the_dual_by_its_own_step() -> None:
    # W all 1/2. alpha = 1, beta = 1/4, gamma = 2. x_1 = (2, 6), q_1 = 0.
    learner = coldq.Decentralised(
        coldq.Yi2023(X, alpha=1.0, beta=0.25, gamma=2.0), [[0.5, 0.5], [0.5, 0.5]]
    )
    state = learner.init(1, start=[[2.0], [6.0]])
    rows = coldq.Affine([[[2.0]], [[1.0]]], [[2.0], [9.0]])
    state = learner.update(state, coldq.Feedback(coldq.Linear([[-1.0], [1.0]]), rows))
    # z = 4 for both: x_2 = (5, 3). Agent 1: g = 2, J = 2, q_2 = 2 (2 + 2 (5 - 2)) = 16.
    # Agent 2: g < 0, q_2 = 0.
    np.testing.assert_allclose(state.x[:, 0], [5.0, 3.0])
    np.testing.assert_allclose(state.queue[:, 0], [16.0, 0.0])
