"""The theorems, against their sums written out; closed forms of D and G against brute force."""

from __future__ import annotations

from itertools import product
from math import isclose, log, sqrt

import numpy as np
import pytest

import coldq
from coldq import bounds
from coldq.slot.schedules import Power

T, R, D, G, N, V = 60, 3.0, 2.0, 1.5, 4, 7.0
KNOWN = {"diameter": R, "gradient_bound": D, "constraint_bound": G, "n_constraints": N}
ALPHA = [0.7 * t**0.3 for t in range(1, T + 1)]
MOVES = [0.0] + [0.1 + 0.01 * t for t in range(2, T + 1)]


def lemma_3_summed(alpha: list[float], moves: list[float]) -> float:
    """What Lemma 3 adds up to over the slots, term by term."""
    total = 0.0
    for t in range(2, T + 1):
        total += 2.0 * R * alpha[t - 2] * moves[t - 1] + R * R * (alpha[t - 1] - alpha[t - 2])
    total += sum(D * D / (4.0 * a) for a in alpha)
    return total + alpha[0] * R * R


def test_theorem_1_is_its_sum_written_out() -> None:
    regret = bounds.theorem_1(np.array(ALPHA), T, diameter=R, gradient_bound=D, moves=MOVES)
    assert isclose(regret, lemma_3_summed(ALPHA, MOVES) + D * R)
    by_schedule = bounds.theorem_1(Power(0.3, 0.7), T, diameter=R, gradient_bound=D, moves=MOVES)
    assert isclose(by_schedule, regret)


@pytest.mark.parametrize("gamma", [1e-3, 20.0, 5000.0])
def test_theorem_2_is_its_sum_written_out(gamma: float) -> None:
    eta, known = 0.02, dict(KNOWN, constraint_variation=V, moves=MOVES)
    violation = bounds.theorem_2(np.array(ALPHA), T, eta=eta, gamma=gamma, **known)
    H = max(G, eta * gamma)
    expected = lemma_3_summed(ALPHA, MOVES) + (D * R + 2 * N * H * H) * T + H * sqrt(N) / eta * V
    assert isclose(violation, expected / gamma + N * G)
    # Of the queue only the floor counts: the same without its ceiling and its drift.
    by_floor = bounds.floor_violation(np.array(ALPHA), T, gamma=gamma, **known)
    expected = (lemma_3_summed(ALPHA, MOVES) + D * R * T) / gamma + sqrt(N) * V + N * G
    assert isclose(by_floor, expected)
    assert by_floor <= violation


def test_the_bound_by_weights_is_its_sum_written_out() -> None:
    weights = [0.0, np.inf] + [0.5 * t for t in range(3, T)]
    feasible = [t not in (7, 9, T) for t in range(1, T + 1)]
    total = N * G + sqrt(N) * V
    c = np.linspace(0.0, R, 200_001)
    for t in range(1, T):
        price = (D * c + 2.0 * ALPHA[t - 1] * c * (R - c)).max()
        own = N * G if weights[t - 1] == 0.0 or not feasible[t - 1] else price / weights[t - 1]
        total += min(N * G, own)
    known = dict(KNOWN, constraint_variation=V, weights=np.array(weights))
    bound = bounds.step_violation(np.array(ALPHA), T, feasible=feasible, **known)
    assert isclose(bound, total, rel_tol=1e-9)
    assert bounds.step_violation(np.array(ALPHA), T, **known) < bound  # no slot is infeasible
    by_rule = bounds.step_violation(3.0, T, **(known | {"weights": lambda t: 2.0 * t}))
    by_hand = bounds.step_violation(3.0, T, **(known | {"weights": 2.0 * np.arange(1.0, T)}))
    assert by_rule == by_hand


def test_the_price_of_a_slot_is_reached_by_a_step_of_any_slope() -> None:
    # On [0, R], from 0, the loss D x and the row s (R - x) <= 0 at the weight w.
    for alpha, D, R in ((0.1, 1.0, 2.0), (3.0, 0.5, 1.0), (1.0, 0.0, 5.0), (1e-6, 2.0, 1.0)):
        line, row = coldq.Box(0.0, R, dim=1), coldq.Affine([[-1.0]], [-R])
        w = np.linspace(D, D + 2.0 * alpha * R, 4001)[:, None]
        x = coldq.penalised_step(np.zeros_like(w), [D], alpha, np.maximum(w, 1e-9), row, line).x
        most = (w * (R - x)).max()
        bound = bounds.step_violation(
            alpha, 2, weights=1.0, diameter=R, gradient_bound=D, constraint_bound=100.0,
            n_constraints=1, constraint_variation=0.0,
        )  # fmt: skip
        assert isclose(bound - 100.0, most, rel_tol=1e-3)
        assert bound - 100.0 <= D * R + alpha * R * R / 2.0 + 1e-9


def test_without_a_horizon_the_violation_beyond_the_variation_is_bounded() -> None:
    X, totals = coldq.Box(0.0, 1.0, dim=2), []
    for horizon in (10**3, 10**5):
        known = bounds.RunConstants(horizon, R, D, G, N, 0.0, path_length=0.0)
        anytime, clasp, recoo = (
            learner.guarantees(known)[2].bound
            for learner in (coldq.COLDQ.anytime(X), coldq.CLASP(X, eta=0.1), coldq.RECOO(X))
        )
        totals.append((anytime, recoo))
        assert clasp == N * G
    (soon, slow), (late, slower) = totals
    assert late < 1.01 * soon + R * R / 0.5 / sqrt(10**3)
    assert slower > 5.0 * slow  # RECOO's own weights grow as t^1.01, and alpha_t as t^0.5


def test_theorem_3_is_its_sum_written_out() -> None:
    mu, alpha = 0.05, [0.02 + 0.01 * t**1.5 for t in range(1, T + 1)]
    total = D * R + max(alpha[0] - mu, 0.0) * R * R + sum(D * D / (4.0 * a) for a in alpha)
    for t in range(2, T):
        total += max(alpha[t - 1] - alpha[t - 2] - mu, 0.0) * R * R
    bound = bounds.theorem_3(np.array(alpha), T, mu=mu, diameter=R, gradient_bound=D)
    assert isclose(bound, total)


def test_theorem_3_has_no_negative_terms_for_a_slow_alpha() -> None:
    # Printed, (alpha_1 - mu) R^2 would be -0.9 R^2 here, below what an adversary can do.
    bound = bounds.theorem_3(Power(0.0, 0.1), 2, mu=1.0, diameter=R, gradient_bound=D)
    assert isclose(bound, 2 * D * D / 0.4 + D * R)


@pytest.mark.parametrize("v", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 4.0])
def test_corollary_1_is_at_least_the_theorems_it_simplifies(v: float, epsilon: float) -> None:
    horizon, alpha = 5000, Power((1.0 - v) / 2.0)
    known = dict(KNOWN, path_length=9.0, constraint_variation=V)
    regret, violation = bounds.corollary_1(horizon, path_exponent=v, epsilon=epsilon, **known)
    exact = bounds.theorem_1(alpha, horizon, diameter=R, gradient_bound=D, path_length=9.0)
    assert exact <= regret <= 1.02 * exact
    exact = bounds.theorem_2(alpha, horizon, eta=1.0 / horizon, gamma=epsilon * horizon, **known)
    assert exact <= violation <= 1.02 * exact


def test_corollary_2_has_the_one_that_the_paper_forgot() -> None:
    horizon, mu = 400, 0.3
    assert sum(1.0 / t for t in range(1, horizon + 1)) > log(horizon)
    regret, violation = bounds.corollary_2(horizon, mu=mu, constraint_variation=V, **KNOWN)
    alpha = Power(1.0, mu)
    exact = bounds.theorem_3(alpha, horizon, mu=mu, diameter=R, gradient_bound=D)
    assert D * D / (4 * mu) * log(horizon) + D * R < exact <= regret
    assert isclose(regret, D * D / (4 * mu) * (1 + log(horizon)) + D * R)
    exact = bounds.theorem_2(
        alpha, horizon, eta=1 / horizon, gamma=horizon / 2, constraint_variation=V,
        path_length=0.0, **KNOWN,
    )  # fmt: skip
    assert exact <= violation <= 1.02 * exact


@pytest.mark.parametrize("path", [0.0, 5.0, 900.0, 3.0 * 4999])
def test_corollary_3_is_at_least_the_best_expert_and_its_hedge(path: float) -> None:
    horizon = 5000
    learner = coldq.COLDQExpert(coldq.Box(0.0, 1.0, dim=1), horizon)
    pool = [Power(0.5, 0.5**m) for m in range(learner.n_experts)]
    regret, violation = bounds.corollary_3(
        horizon, path_length=path, constraint_variation=V, **KNOWN
    )
    best = bounds.expert_regret(
        pool, horizon, kappa=learner.kappa, diameter=R, gradient_bound=D, path_length=path
    )
    assert best <= regret <= 3.0 * best
    exact = bounds.expert_violation(
        Power(0.5), horizon, gamma=0.5 * horizon**1.5, constraint_variation=V, **KNOWN
    )
    assert exact <= violation <= 1.02 * exact


def test_the_queue_s_ceiling_is_never_below_its_floor() -> None:
    for gamma in (0.1, 10.0, 1000.0):
        ceiling = bounds.queue_ceiling(constraint_bound=G, eta=0.01, gamma=gamma)
        assert ceiling == max(G / 0.01, gamma)


def test_bounds_are_arrays_over_seeds() -> None:
    moves = np.array([MOVES, np.zeros(T)])
    two = bounds.theorem_1(Power(0.5), T, diameter=R, gradient_bound=[D, 1.0], moves=moves)
    assert two.shape == (2,)
    alone = bounds.theorem_1(Power(0.5), T, diameter=R, gradient_bound=1.0, path_length=0.0)
    assert two[1] == alone


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"alpha": lambda t: 1.0 / t}, "alpha must not decrease, but does from slot 1 to slot 2"),
        ({"alpha": [1.0, 2.0]}, "alpha must have 60 entries on its last axis"),
        ({"diameter": -1.0}, "diameter must not be negative"),
        ({"gradient_bound": np.inf}, "gradient_bound must be finite"),
        ({"constraint_bound": -2.0}, "constraint_bound must not be negative"),
        ({"n_constraints": 1.5}, "n_constraints must be a whole number"),
        ({"eta": 1.0}, "eta must lie strictly between 0 and 1"),
        ({"gamma": 0.0}, "gamma must be positive"),
        ({"path_length": -1.0}, "path_length must not be negative"),
        ({"path_length": None}, "give either path_length or moves"),
        ({"moves": np.zeros(3), "path_length": None}, "moves must have 60 entries"),
        ({"constraint_variation": -1.0}, "constraint_variation must not be negative"),
        ({"horizon": 1}, "horizon must be a whole number, at least 2"),
    ],
)
def test_bad_arguments_get_a_sentence(change: dict, words: str) -> None:
    given = dict(KNOWN, alpha=Power(0.5), horizon=T, eta=0.1, gamma=1.0, path_length=0.0,
                 constraint_variation=0.0) | change  # fmt: skip
    with pytest.raises(coldq.InvalidInput, match=words):
        bounds.theorem_2(given.pop("alpha"), given.pop("horizon"), **given)
    with pytest.raises(coldq.InvalidInput, match=r"path_exponent must lie in \[0, 1\]"):
        bounds.corollary_1(T, path_exponent=1.2, **KNOWN)
    with pytest.raises(coldq.InvalidInput, match="a list of schedules, one an expert"):
        bounds.expert_regret(1.0, T, kappa=1.0, diameter=R, gradient_bound=D, path_length=0.0)


def corners(box: coldq.Box) -> np.ndarray:
    return np.array(list(product(*zip(box.lower, box.upper, strict=True))))


def test_gradient_bounds_hold_at_every_corner_and_are_reached_where_exact() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = int(rng.integers(1, 5))
        box = coldq.Box(-rng.uniform(0.0, 2.0, p), rng.uniform(0.0, 2.0, p))
        H = rng.standard_normal((3, p))
        for loss in (
            coldq.Linear(rng.standard_normal(p)),
            coldq.LeastSquares(H, rng.standard_normal(3)),
            coldq.Quadratic(H.T @ H, rng.standard_normal(p)),
            coldq.Quadratic(np.diag(rng.uniform(0.0, 2.0, p)), rng.standard_normal(p)),
        ):
            # The norm of an affine map is convex, so that its maximum is at a corner.
            largest = np.linalg.norm(loss.gradient(corners(box)), axis=-1).max()
            bound, exact = loss.gradient_bound(box)
            assert largest <= bound * (1.0 + 1e-12)
            assert bound <= np.sqrt(p) * 3.0 * largest + 1e-9
            if exact:
                np.testing.assert_allclose(bound, largest)
            assert exact or (p > 1 and not isinstance(loss, coldq.Linear))


def test_constraint_bounds_are_the_largest_corner() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        box = coldq.Box(-rng.uniform(0.0, 0.5, 3), rng.uniform(0.0, 4.0, 3))
        for g in (
            coldq.Affine(rng.standard_normal((4, 3)), rng.standard_normal(4)),
            coldq.LogCapacity(
                rng.uniform(0.0, 9.0), rng.uniform(0.0, 4.0, 3), rng.uniform(0, 1, 3)
            ),
        ):
            bound, exact = g.largest(box)
            assert exact
            np.testing.assert_allclose(bound, np.abs(g.value(corners(box))).max())
    assert coldq.Unconstrained().largest(box) == (0.0, True)
