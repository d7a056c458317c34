"""COLDQ: its rule by hand, its parameters, and what a state promises."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import coldq
from coldq.learners.state import QueueState
from coldq.slot.schedules import Power
from coldq.slot.step.reference import reference_step

X = coldq.Box(0.0, 5.0, dim=2)


def feedback(rng: np.random.Generator, slot: int | None = None) -> coldq.Feedback:
    H, y = rng.uniform(-1.0, 1.0, (3, 2)), rng.standard_normal(3)
    A, b = rng.uniform(0.0, 1.0, (2, 2)), rng.uniform(-0.5, 0.5, 2)
    return coldq.Feedback(coldq.LeastSquares(H, y), coldq.Affine(A, b), slot)


def test_three_slots_by_hand() -> None:
    # One coordinate on [0, 4], x_1 = 0, alpha_t = t, eta = 1/2, gamma = 1. Loss -8 x always.
    learner = coldq.COLDQ(coldq.Box(0.0, 4.0, dim=1), alpha=Power(1.0), eta=0.5, gamma=1.0)
    state = learner.init(1)
    assert (state.t, state.x, state.queue) == (1, [0.0], [1.0])
    push = coldq.Linear([-8.0])
    # Slot 1: g = x - 1 is kept at 0. Q_1 = gamma. min -8 x + x^2 + [x - 1]_+ at x = 3.5.
    state = learner.update(state, coldq.Feedback(push, coldq.Affine([[1.0]], [1.0])))
    np.testing.assert_allclose([state.t, *state.x, *state.queue], [2, 3.5, 1.0])
    # Slot 2: g(3.5) = 2.5, Q_2 = max(0.5 + 2.5, 1) = 3. 2 (2)(x - 3.5) - 8 + 3 = 0 at 4.75 -> 4.
    state = learner.update(state, coldq.Feedback(push, coldq.Affine([[1.0]], [1.0])))
    np.testing.assert_allclose([state.t, *state.x, *state.queue], [3, 4.0, 3.0])
    # Slot 3: g = 2 x - 2 = 6, Q_3 = 1.5 + 6 = 7.5. 6 (x - 4) - 8 + 15 = 0 at x = 17/6.
    state = learner.update(state, coldq.Feedback(push, coldq.Affine([[2.0]], [2.0])))
    np.testing.assert_allclose([state.t, *state.x, *state.queue], [4, 17.0 / 6.0, 7.5])
    np.testing.assert_allclose(state.multipliers, [7.5])


def test_a_run_equals_a_plain_transcription_with_cvxpy() -> None:
    rng, T, eps = np.random.default_rng(0), 25, 0.01
    learner, state = coldq.COLDQ(X, horizon=T, epsilon=eps), None
    state = learner.init(2)
    x, Q = np.zeros(2), np.full(2, eps * T)
    for t in range(1, T + 1):
        revealed = feedback(rng)
        loss, g = revealed.loss, revealed.constraint
        assert isinstance(loss, coldq.LeastSquares)
        assert isinstance(g, coldq.Affine)
        if t > 1:
            Q = np.maximum((1.0 - 1.0 / T) * Q + np.maximum(g.A @ x - g.b, 0.0), eps * T)
        gradient = loss.H.T @ (loss.H @ x - loss.y)
        x, _ = reference_step(x, gradient, np.sqrt(t), Q, g, X)
        state = learner.update(state, revealed)
        np.testing.assert_allclose(state.x, x, atol=1e-4)
        np.testing.assert_allclose(state.queue, Q, atol=1e-4)
        x, Q = np.array(state.x), np.array(state.queue)  # do not let the oracle's error build up
    assert np.any(eps * T < Q)  # the queue did move


def test_corollary_1_and_2_and_scaled_parameters() -> None:
    learner = coldq.COLDQ(X, horizon=100, epsilon=0.25, path_exponent=0.5)
    assert (learner.eta, learner.gamma, learner.horizon) == (0.01, 25.0, 100)
    assert learner.alpha(np.array(16.0)) == 16.0**0.25
    strong = coldq.COLDQ.strongly_convex(X, horizon=100, mu=3.0)
    assert strong.alpha(np.array(7.0)) == 21.0
    assert strong.gamma == 50.0
    R, D, P, T = X.diameter, 8.0, 3.0, 100
    scaled = coldq.COLDQ.scaled(X, T, gradient_bound=D, constraint_bound=4.0, path_length=P)
    assert scaled.gamma == 2.0 * T
    # Theorem 1 for alpha_t = c sqrt(t): no other c has a smaller bound.
    bound = {c: 2 * R * c * T**0.5 * P + D * D / 4 * 2 * T**0.5 / c + R * R * c * T**0.5
             for c in np.geomspace(1e-3, 1e3, 20001)}  # fmt: skip
    best = min(bound, key=bound.__getitem__)
    np.testing.assert_allclose(scaled.alpha(np.array(1.0)), best, rtol=1e-3)
    still = coldq.COLDQ.scaled(X, T, gradient_bound=D, constraint_bound=4.0)
    np.testing.assert_allclose(still.alpha(np.array(1.0)), D / (np.sqrt(2.0) * R))


def test_for_problem_fills_what_the_theory_needs() -> None:
    problem = coldq.problems.TimeVarying(horizon=50)
    learner = coldq.COLDQ.for_problem(problem, epsilon=0.1)
    assert (learner.domain, learner.horizon) == (problem.domain, 50)
    scaled = coldq.COLDQ.for_problem(problem, scaled=True)
    assert scaled.gamma == 0.5 * problem.constants.constraint_bound * 50


def test_an_epsilon_above_the_exact_bound_of_g_is_not_refused() -> None:
    learner = coldq.COLDQ(X, horizon=10, epsilon=1e6)
    revealed = coldq.Feedback(coldq.Linear([1.0, 1.0]), coldq.Affine([[0.0, 0.0]], [0.1]))
    state = learner.update(learner.init(1), revealed)
    assert state.queue == 1e7


def test_update_is_pure_and_states_are_not_aliased() -> None:
    rng = np.random.default_rng(1)
    learner = coldq.COLDQ(X, horizon=50)
    state = learner.init(2, batch=(3,))
    for slot in range(1, 6):
        before = {name: array.tobytes() for name, array in state.to_arrays().items()}
        revealed = feedback(rng, slot)
        new = learner.update(state, revealed)
        again = learner.update(state, revealed)
        assert before == {name: array.tobytes() for name, array in state.to_arrays().items()}
        for name in ("t", "x", "queue", "multipliers"):
            assert getattr(new, name).tobytes() == getattr(again, name).tobytes()
            assert not np.shares_memory(getattr(new, name), getattr(state, name))
        state = new


@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
def test_a_state_saved_and_restored_goes_on_with_the_same_bits(batch: tuple[int, ...]) -> None:
    learner = coldq.COLDQ(X, horizon=60, epsilon=0.01)
    straight, rng = learner.init(2, batch=batch), np.random.default_rng(2)
    for _ in range(60):
        straight = learner.update(straight, feedback(rng))
    resumed, rng = learner.init(2, batch=batch), np.random.default_rng(2)
    for _ in range(60):
        resumed = learner.update(resumed, feedback(rng))
        arrays = pickle.loads(pickle.dumps(resumed.to_arrays()))
        same = pickle.loads(pickle.dumps(learner))
        resumed = same.from_arrays(arrays)
        assert resumed.t.dtype == np.int64
        assert resumed.t.shape == batch
    for name, array in straight.to_arrays().items():
        assert array.tobytes() == resumed.to_arrays()[name].tobytes()


def test_arrays_that_are_not_a_state_are_refused() -> None:
    learner = coldq.COLDQ(X, horizon=10)
    good = learner.init(2).to_arrays()
    for change, words in [
        ({"x": np.array([9.0, 0.0])}, "x must lie in the domain"),
        ({"x": np.array([np.nan, 0.0])}, "x must be finite"),
        ({"t": np.array(0)}, "t must be at least 1"),
        ({"t": np.array(1.5)}, "t must be whole numbers"),
        ({"queue": np.array([0.0, 9.0])}, "queue must be at least gamma"),
        ({"queue": np.array([9.0])}, "queue and multipliers must have the same shape"),
        ({"queue": np.ones((4, 2))}, "belong to different batches"),
    ]:
        with pytest.raises(coldq.InvalidInput, match=words):
            learner.from_arrays({**good, **change})
    del good["queue"]
    with pytest.raises(coldq.InvalidInput, match="the arrays must be"):
        learner.from_arrays(good)


def test_parameters_with_leading_axes_are_a_batch_of_learners() -> None:
    rng = np.random.default_rng(3)
    scales, epsilons = np.array([0.5, 1.0, 4.0]), np.array([0.1, 0.2, 0.3])
    many = coldq.COLDQ(X, horizon=20, alpha=Power(0.5, scales), gamma=20.0 * epsilons)
    state = many.init(2)
    assert state.x.shape == (3, 2)
    alone = [coldq.COLDQ(X, horizon=20, alpha=Power(0.5, s), gamma=20.0 * e)
             for s, e in zip(scales, epsilons, strict=True)]  # fmt: skip
    states = [learner.init(2) for learner in alone]
    for _ in range(20):
        revealed = feedback(rng)
        state = many.update(state, revealed)
        states = [a.update(s, revealed) for a, s in zip(alone, states, strict=True)]
    assert state.x.tobytes() == np.stack([s.x for s in states]).tobytes()
    boxes = coldq.Box(np.zeros(2), [[1.0, 1.0], [2.0, 2.0]])
    assert coldq.COLDQ(boxes, horizon=20).init(1).x.shape == (2, 2)


def test_learners_compare_and_hash_by_content() -> None:
    one, same = coldq.COLDQ(X, horizon=10), coldq.COLDQ(coldq.Box(0.0, 5.0, dim=2), horizon=10)
    assert one == same
    assert hash(one) == hash(same)
    assert one != coldq.COLDQ(X, horizon=11)
    assert one != coldq.COLDQ(X, horizon=10, epsilon=0.4)
    assert one != "COLDQ"
    assert "gamma=5.0" in repr(one)
    assert len({one, same}) == 1


def test_going_past_the_horizon_is_flagged_once_and_goes_on() -> None:
    learner, rng = coldq.COLDQ(X, horizon=2), np.random.default_rng(4)
    state = learner.init(2)
    for _ in range(2):
        state = learner.update(state, feedback(rng))
    with pytest.warns(coldq.PastHorizon, match="slot 3 is past the horizon 2"):
        state = learner.update(state, feedback(rng))
    state = learner.update(state, feedback(rng))  # warnings are errors here: none is issued
    assert state.t == 5


def test_without_constraints_it_is_projected_gradient_descent() -> None:
    learner = coldq.COLDQ(X, horizon=9)
    state, x = learner.init(0), np.zeros(2)
    for t in range(1, 10):
        c = np.array([-1.0, 2.0]) * t
        state = learner.update(state, coldq.Feedback(coldq.Linear(c), None))
        x = np.clip(x - c / (2.0 * np.sqrt(t)), 0.0, 5.0)
        np.testing.assert_allclose(state.x, x, rtol=1e-15)
    assert state.queue.shape == (0,)


def test_measured_feedback_at_the_played_point_is_enough() -> None:
    learner, rng = coldq.COLDQ(X, horizon=30), np.random.default_rng(5)
    whole = measured = learner.init(2)
    for slot in range(1, 31):
        revealed = feedback(rng, slot)
        x = measured.x
        loss = coldq.GradientAt(x, revealed.loss.gradient(x), revealed.loss.value(x))
        rows = coldq.Affine.from_measurement(
            x, revealed.constraint.value(x), revealed.constraint.jacobian(x)
        )
        measured = learner.update(measured, coldq.Feedback(loss, rows, slot))
        whole = learner.update(whole, revealed)
        np.testing.assert_allclose(measured.x, whole.x, atol=1e-9)  # an affine g is its own model
        if not np.array_equal(x, measured.x):
            with pytest.raises(coldq.NotRevealed, match="gradient of this loss is known only at"):
                loss.gradient(measured.x)
            with pytest.raises(coldq.NotRevealed, match="value of this constraint is known only"):
                rows.value(measured.x)
        measured = whole


def test_capacity_constraints_work_in_the_learner() -> None:
    box = coldq.Box(0.0, 1000.0, dim=5)
    learner, rng = coldq.COLDQ(box, horizon=200), np.random.default_rng(6)
    state = learner.init(1)
    for _ in range(200):
        g = coldq.LogCapacity(rng.poisson(60), np.full(5, 4.0), np.full(5, 4.0))
        state = learner.update(state, coldq.Feedback(coldq.Linear(rng.uniform(10, 50, 5)), g))
    served = 4.0 * np.log1p(4.0 * state.x).sum()
    assert 40.0 < served < 90.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"horizon": 1}, "horizon must be a whole number, at least 2, but is 1"),
        ({"horizon": 10.5}, "horizon must be a whole number"),
        ({"horizon": True}, "horizon must be a whole number"),
        ({}, "needs a horizon, or all of alpha, eta and gamma"),
        ({"horizon": 10, "epsilon": 0.0}, "epsilon must be positive, but is 0.0"),
        ({"horizon": 10, "epsilon": np.nan}, "epsilon must be finite"),
        ({"horizon": 10, "path_exponent": 1.5}, r"path_exponent must lie in \[0, 1\]"),
        ({"horizon": 10, "path_exponent": 0.0, "alpha": 1.0}, "give one of them, not both"),
        ({"horizon": 10, "epsilon": 0.5, "gamma": 1.0}, "give one of them, not both"),
        ({"horizon": 10, "eta": 1.0}, "eta must lie strictly between 0 and 1, but is 1.0"),
        ({"horizon": 10, "eta": 0.0}, "eta must lie strictly between 0 and 1"),
        ({"horizon": 10, "gamma": -1.0}, "gamma must be positive, but is -1.0"),
        ({"horizon": 10, "alpha": 0.0}, "alpha must be a positive number or a function of t"),
        ({"horizon": 10, "alpha": "fast"}, "alpha must be a positive number or a function of t"),
    ],
)
def test_bad_parameters_get_a_sentence(arguments: dict, words: str) -> None:
    with pytest.raises(coldq.InvalidInput, match=words):
        coldq.COLDQ(X, **arguments)


def test_bad_starts_batches_and_constants_get_a_sentence() -> None:
    learner = coldq.COLDQ(X, horizon=10)
    for call, words in [
        (lambda: coldq.COLDQ("box", horizon=10), "domain must be a domain such as coldq.Box"),  # type: ignore[arg-type]
        (lambda: learner.init(-1), "n_constraints must be a whole number, at least 0"),
        (lambda: learner.init(1, start=[9.0, 0.0]), "start must lie in the domain"),
        (lambda: learner.init(1, start=[1.0]), "start must have 2 coordinates"),
        (lambda: learner.init(1, start=[[1.0, 1.0]] * 3, batch=(2,)), "does not fit the batch"),
        (lambda: coldq.COLDQ.strongly_convex(X, 10, mu=0.0), "mu must be positive"),
        (lambda: coldq.COLDQ.scaled(coldq.Box(0.0, np.inf, dim=1), 10, 1.0, 1.0), "bounded domain"),
        (lambda: coldq.COLDQ.scaled(X, 10, 1.0, 1.0, path_length=-1.0), "must not be negative"),
        (lambda: coldq.COLDQ.scaled(X, 10, -1.0, 1.0), "gradient_bound must be positive"),
    ]:
        with pytest.raises(coldq.InvalidInput, match=words):
            call()


def test_feedback_that_does_not_fit_is_refused_and_the_state_stays() -> None:
    learner = coldq.COLDQ(X, horizon=10)
    state = learner.init(2, batch=(3,))
    before = {name: array.tobytes() for name, array in state.to_arrays().items()}
    loss, g = coldq.Linear([1.0, 1.0]), coldq.Affine(np.ones((2, 2)), np.ones(2))
    cases = [
        (coldq.Feedback(loss, g, slot=2), "about slot 2, but the learner is in slot"),
        (coldq.Feedback(loss, coldq.Affine(np.ones((1, 2)), [1.0])), "started for 2 constraints"),
        (coldq.Feedback(loss, None), "started for 2 constraints"),
        (coldq.Feedback(coldq.Linear([1.0] * 3), g), "the loss has 3 coordinates, but"),
        (coldq.Feedback(coldq.Linear(np.ones((5, 3, 2))), g), "not enlarge it"),
        (coldq.Feedback(loss, coldq.Affine(np.ones((5, 1, 2, 2)), np.ones(2))), "not enlarge it"),
        (coldq.Feedback(coldq.Linear(np.ones((4, 2))), g), "do not fit together"),
        (coldq.Feedback(coldq.LeastSquares(np.ones((4, 1, 2)), [1.0]), g), "do not fit together"),
        (coldq.Feedback(coldq.Smooth(lambda x: 0.0, lambda x: x * np.nan), g), "finite numbers"),
        (coldq.Feedback(coldq.Smooth(lambda x: 0.0, lambda x: x[:1]), g), r"return shape \(2,\)"),
    ]  # fmt: skip
    for revealed, words in cases:
        with pytest.raises(coldq.InvalidInput, match=words):
            learner.update(state, revealed)
        assert before == {name: array.tobytes() for name, array in state.to_arrays().items()}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_overflow_inside_the_loop_is_diagnosed() -> None:
    learner = coldq.COLDQ(X, alpha=1e-300, eta=0.5, gamma=1.0)
    state = learner.init(1)
    assert isinstance(state, QueueState)
    revealed = coldq.Feedback(coldq.Linear([1e300, 1.0]), coldq.Affine([[1.0, 1.0]], [1.0]))
    with pytest.raises(coldq.InvalidInput, match="came out as NaN"):
        learner.update(state, revealed)


def test_a_plain_function_is_a_schedule_and_says_that_it_cannot_be_saved() -> None:
    learner = coldq.COLDQ(X, horizon=10, alpha=lambda t: 1.0 + t)
    assert (
        learner.update(learner.init(0), coldq.Feedback(coldq.Linear([-4.0, 0.0]), None)).x[0] == 1.0
    )
    with pytest.raises(coldq.NotSaveable, match="cannot be saved"):
        pickle.dumps(learner)
    negative = coldq.COLDQ(X, horizon=10, alpha=lambda t: 1.5 - t)
    state = negative.update(negative.init(0), coldq.Feedback(coldq.Linear([1.0, 1.0]), None))
    with pytest.raises(coldq.InvalidInput, match="a schedule must be positive and finite"):
        negative.update(state, coldq.Feedback(coldq.Linear([1.0, 1.0]), None))


def play_in_units(loss_unit: float, row_unit: float) -> np.ndarray:
    """A run at prices and demands in some units, its constraint in the unit that `scaled` wants."""
    domain, T, rng = coldq.Box(0.0, 1.0, dim=5), 60, np.random.default_rng(0)
    D, G, R = 3.0 * loss_unit * 5**0.5, 5.0 * row_unit, 5**0.5
    unit = row_unit * (D * R) ** 0.5 / G
    learner = coldq.COLDQ.scaled(domain, T, D, G * unit / row_unit)
    state, played = learner.init(1), []
    for _ in range(T):
        price, demand = rng.uniform(1.0, 3.0, 5) * loss_unit, rng.uniform(2.0, 2.2)
        rows = coldq.Affine(-unit * np.ones((1, 5)), [-unit * demand])
        state = learner.update(state, coldq.Feedback(coldq.Linear(price), rows))
        played.append(state.x)
    return np.array(played)


def test_scaled_does_not_depend_on_units_once_the_constraint_has_the_right_one() -> None:
    known = play_in_units(1.0, 1.0)
    assert (known[5:].sum(axis=1) > 1.9).all()
    for loss_unit, row_unit in ((300.0, 1.0), (1e6, 1e-3), (1e-6, 1e3)):
        np.testing.assert_allclose(play_in_units(loss_unit, row_unit), known, atol=1e-9)


def test_a_price_too_low_to_hold_a_constraint_is_reported() -> None:
    domain = coldq.Box(0.0, 1.0, dim=5)
    with pytest.warns(coldq.WeakPrice, match=r"multiply them \(A, b and G\) by .* = 24\.5"):
        coldq.COLDQ.scaled(domain, 200, gradient_bound=3000.0 * 5**0.5, constraint_bound=5.0)
