"""Feedback about a decision played before: evaluated there, while the step starts from here."""

from __future__ import annotations

import numpy as np
import pytest

import coldq
from coldq.slot.step.reference import reference_step

X = coldq.Box(0.0, 5.0, dim=3)
RNG = np.random.default_rng(3)
LOSS = coldq.LeastSquares(RNG.normal(size=(4, 3)), RNG.normal(size=4))
ROWS = coldq.Affine(RNG.normal(size=(2, 3)), [0.5, -0.25])
HERE, THERE = np.array([1.0, 2.0, 0.5]), np.array([4.0, 0.25, 3.0])


def measured(x: np.ndarray) -> coldq.Feedback:
    """What a system measures at the decision that it played."""
    loss = coldq.GradientAt(x, LOSS.gradient(x))
    return coldq.Feedback(loss, coldq.Affine.from_measurement(x, ROWS.value(x), ROWS.jacobian(x)))


def test_coldq_takes_its_queue_there_and_its_step_from_here() -> None:
    learner = coldq.COLDQ(X, alpha=0.7, eta=0.25, gamma=0.5)
    state = learner.update(learner.init(2, start=HERE), coldq.Feedback(LOSS, ROWS))
    late = learner.update(state, coldq.Feedback(LOSS, ROWS), played=THERE)
    g = ROWS.A @ THERE - ROWS.b
    queue = np.maximum(0.75 * state.queue + np.maximum(g, 0.0), 0.5)
    gradient = LOSS.H.T @ (LOSS.H @ THERE - LOSS.y)
    best, _ = reference_step(state.x, gradient, 0.7, queue, ROWS, X)
    assert np.allclose(late.queue, queue, rtol=1e-14, atol=0.0)
    assert np.allclose(late.x, best, rtol=0.0, atol=1e-6)
    assert late.t == 3


def test_the_linear_model_of_a_queue_is_the_one_at_the_decision_played() -> None:
    learner = coldq.YuNeelyWei2017(X, horizon=50)
    state = learner.init(2, start=HERE)
    late = learner.update(state, coldq.Feedback(LOSS, ROWS), played=THERE)
    # Of affine rows the linear model is the same wherever it is taken.
    assert np.allclose(late.queue, np.maximum(ROWS.A @ late.x - ROWS.b, 0.0), atol=1e-12)


@pytest.mark.parametrize(
    "learner",
    [
        coldq.COLDQ(X, horizon=50),
        coldq.SelfTuning(X, violation_rate=0.1),
        coldq.SafetyMargin(coldq.COLDQ(X, horizon=50), 0.1),
        coldq.Yi2021(X, horizon=50, alpha0=1.0, gamma0=2.0),
        coldq.MOSP(X, horizon=50),
        coldq.Yi2023.from_exponents(X, a=1.0, b=1.0, g=1.0),
        coldq.SinhaVaze(X, horizon=50, lipschitz=3.0),
        coldq.Switch(X, horizon=50, lipschitz=3.0),
        coldq.PolyakFeasibility(X, eta=0.2, rho=0.05),
        coldq.OGD(X, eta=0.1),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_what_was_measured_elsewhere_needs_the_decision_it_was_measured_at(learner) -> None:
    state = learner.update(learner.init(2, start=HERE), coldq.Feedback(LOSS, ROWS))
    with pytest.raises(coldq.NotRevealed, match="known only at"):
        learner.update(state, measured(THERE))
    late = learner.update(state, measured(THERE), played=THERE)
    whole = learner.update(state, coldq.Feedback(LOSS, ROWS), played=THERE)
    assert np.allclose(late.x, whole.x, rtol=0.0, atol=1e-9)  # affine rows are their own model
    assert np.abs(late.x - learner.update(state, coldq.Feedback(LOSS, ROWS)).x).max() > 1e-3


def test_a_violation_is_counted_where_it_was_played_and_a_surprise_where_it_was_expected() -> None:
    learner = coldq.SelfTuning(coldq.Box(0.0, 2.0, dim=1), violation_rate=0.1)
    still = coldq.Feedback(coldq.Linear([-1.0]), coldq.Affine([[1.0]], [1.0]))  # x <= 1, always
    state = learner.update(learner.init(1), still)
    kept = learner.update(state, still, played=[0.5])
    broken = learner.update(state, still, played=[1.5])
    assert (kept.violated, broken.violated) == (0, 1)
    assert not kept.moments[:-1].any() and not broken.moments[:-1].any()  # nothing surprised it


def test_wang2023_says_that_it_remembers_what_it_played() -> None:
    learner = coldq.Wang2023(X, horizon=50, delay=2, alpha=1.0, eta=0.5, gamma=0.8)
    with pytest.raises(coldq.InvalidInput, match="remembers what it played"):
        learner.update(learner.init(2), coldq.Feedback(LOSS, ROWS), played=THERE)
    assert learner.card.played == "remembered"


def test_agents_of_a_network_each_have_a_decision_that_they_played() -> None:
    network = coldq.Decentralised(coldq.COLDQ(X, horizon=50), np.full((2, 2), 0.5))
    state, played = network.init(2), np.stack([HERE, THERE])
    late = network.update(state, coldq.Feedback(LOSS, ROWS), played=played)
    alone = coldq.COLDQ(X, horizon=50)
    for k, x in enumerate((HERE, THERE)):  # from the same start mixing changes nothing
        one = alone.update(alone.init(2), coldq.Feedback(LOSS, ROWS), played=x)
        assert one.x.tobytes() == late.x[k].tobytes()
