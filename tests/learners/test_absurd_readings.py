"""A limit beyond all that its row can be counts as the nearest that it can, whatever its size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import coldq

SERVERS, CAPACITY = coldq.Box(0.0, [20.0, 60.0, 100.0]), np.array([8.0, 10.0, 12.0])
MOST, SLOTS = float(CAPACITY @ [20.0, 60.0, 100.0]), 150


def affine(load: float) -> Any:
    return coldq.Affine([-CAPACITY], [-load])


def thin(load: float) -> Any:
    return coldq.SparseAffine(sparse.csr_array([-CAPACITY]), [-load])


def stacked(load: float) -> Any:
    return coldq.Stacked(affine(load), coldq.Affine([[1.0, 0.0, 0.0]], [20.0]))


def falling_returns(load: float) -> Any:
    return coldq.LogCapacity(load / 100.0, CAPACITY, np.full(3, 0.01))


def decisions(learner: Any, rows: Any, reading: float, slot: int) -> np.ndarray:
    """What is decided where one load among usual ones is this reading."""
    rng, state, played = np.random.default_rng(0), learner.init(rows(1.0).n_constraints), []
    for t in range(SLOTS):
        load = reading if t == slot else 300.0 + 10.0 * rng.standard_normal()
        played.append(state.x)
        state = learner.update(state, coldq.Feedback(coldq.Linear([6.0, 12.0, 14.0]), rows(load)))
    assert int(learner.bound_report(state)["infeasible"]) == (reading > MOST)
    return np.array(played)


@pytest.mark.parametrize("slot", [1, 9, 100])
@pytest.mark.parametrize("rows", [affine, thin, stacked, falling_returns])
def test_a_reading_out_of_reach_is_as_one_at_the_end_of_it(rows: Any, slot: int) -> None:
    learner = coldq.SelfTuning(SERVERS, 0.05)
    few, many = (decisions(learner, rows, reading, slot) for reading in (1e5, 1e300))
    np.testing.assert_array_equal(few, many)
    cost, usual = (x @ [6.0, 12.0, 14.0] for x in (few, decisions(learner, rows, 300.0, slot)))
    assert cost.sum() <= 1.5 * usual.sum()


@pytest.mark.parametrize(
    ("X", "rows"),
    [(SERVERS, affine), (SERVERS, thin), (SERVERS, stacked), (SERVERS, falling_returns),
     (coldq.Simplex(3, 100.0, cap=60.0), affine), (coldq.Simplex(3, 100.0, cap=60.0), thin)],
)  # fmt: skip
def test_a_limit_that_says_nothing_is_as_the_loosest_that_may(X: Any, rows: Any) -> None:
    ends, learner = [], coldq.SelfTuning(X, 0.05)
    for far in (-1e6, -1e9):  # far below no load at all
        state, rng = learner.init(rows(1.0).n_constraints), np.random.default_rng(2)
        for t in range(120):
            load = far if t % 10 == 4 else 300.0 + 10.0 * rng.standard_normal()
            state = learner.update(
                state, coldq.Feedback(coldq.Linear([6.0, 12.0, 14.0]), rows(load))
            )
        ends.append(state.x)
    np.testing.assert_allclose(*ends, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("sparse_rows", [False, True])
@pytest.mark.parametrize("slot", [0, 30])
def test_limits_of_an_infeasible_slot_are_none_to_be_kept(slot: int, sparse_rows: bool) -> None:
    p, rng, violated = 20, np.random.default_rng(0), 0
    A = np.linspace(0.5, 1.5, p) * [[1.0], [-1.0]]
    learner = coldq.SelfTuning(coldq.Simplex(p, float(p)), 0.05)
    state, loss = learner.init(2), coldq.Linear(np.linspace(-1.0, -2.0, p))
    for t in range(300):
        b = A @ np.ones(p) + 0.02 + rng.exponential(0.3, 2)
        violated += (A @ state.x > b + 1e-6).any()
        b[0] = -1e6 if t == slot else b[0]
        g = coldq.SparseAffine(sparse.csr_array(A), b) if sparse_rows else coldq.Affine(A, b)
        state = learner.update(state, coldq.Feedback(loss, g))
    assert int(learner.bound_report(state)["infeasible"]) == 1
    assert int(learner.bound_report(state)["reduced"]) <= 2
    assert violated <= 25


def test_no_limit_in_some_slots_costs_little() -> None:
    learner, rng, played = (
        coldq.SelfTuning(coldq.Box(0.0, 100.0, dim=1), 0.05),
        np.random.default_rng(0),
        [],
    )
    state = learner.init(1)
    for _ in range(600):
        limit = 1e9 if rng.random() < 0.1 else 50.0 + 2.0 * rng.standard_normal()
        played.append(float(state.x[0]))
        g = coldq.Affine([[1.0]], [limit])
        state = learner.update(state, coldq.Feedback(coldq.Linear([-1.0]), g))
    assert np.mean(played[200:]) >= 45.0  # 47 would keep the rate


def test_a_function_of_the_users_own_is_told_the_limits_that_count() -> None:
    told: list[np.ndarray] = []

    def last(limits: np.ndarray) -> np.ndarray:
        told.append(limits[-1])
        return limits[-1]

    learner = coldq.SelfTuning(SERVERS, 0.05, forecasts=(*coldq.forecasts.SMALL_MEMORY, last))
    state = learner.init(1)
    for load in (300.0, -1e9, 300.0, 1e9):
        state = learner.update(state, coldq.Feedback(coldq.Linear(np.ones(3)), affine(load)))
        assert told[-1] == -min(max(load, -MOST), MOST)


def test_a_margin_around_another_learner_takes_no_harm_either() -> None:
    learner = coldq.SafetyMargin(coldq.BestResponse(SERVERS), 0.05)
    few, many = (decisions(learner, affine, reading, 9) for reading in (1e5, 1e100))
    np.testing.assert_array_equal(few, many)


def test_sparse_rows_that_a_batch_shares_are_as_dense_ones() -> None:
    learner, rng = coldq.SelfTuning(SERVERS, 0.05), np.random.default_rng(3)
    dense = shared = learner.init(1, batch=(2,))
    for t in range(80):
        load = 1e6 if t == 20 else 300.0 + 10.0 * rng.standard_normal()
        loss = coldq.Linear(rng.uniform([[6.0, 12.0, 14.0]], 15.0, (2, 3)))
        given = [coldq.Forecast(constraint=rows(load + 5.0)) for rows in (affine, thin)]
        dense = learner.update(dense, coldq.Feedback(loss, affine(load), forecast=given[0]))
        shared = learner.update(shared, coldq.Feedback(loss, thin(load), forecast=given[1]))
        np.testing.assert_allclose(shared.x, dense.x, atol=1e-6)
    assert shared.violated.tolist() == dense.violated.tolist()


def test_in_a_batch_each_member_is_as_alone() -> None:
    learner, rng = coldq.SelfTuning(SERVERS, 0.05), np.random.default_rng(1)
    together, alone = learner.init(1, batch=(5,)), [learner.init(1) for _ in range(5)]
    loss = coldq.Linear([6.0, 12.0, 14.0])
    for t in range(80):
        load = 300.0 + 10.0 * rng.standard_normal(5)
        load[t % 5] = 10.0 ** rng.integers(2, 12)
        A = np.broadcast_to(-CAPACITY, (5, 1, 3))
        together = learner.update(together, coldq.Feedback(loss, coldq.Affine(A, -load[:, None])))
        alone = [
            learner.update(state, coldq.Feedback(loss, affine(its)))
            for state, its in zip(alone, load, strict=True)
        ]
    for k, state in enumerate(alone):
        for name, array in state.to_arrays().items():
            assert (
                name == "learner" or together.take(k).to_arrays()[name].tobytes() == array.tobytes()
            )


@pytest.mark.parametrize(
    ("feedback", "message"),
    [
        (coldq.Feedback(coldq.Linear(np.ones(3)), coldq.Affine(np.full((1, 3), 1e200), [1.0])),
         "slope of the constraint is too large"),
        (coldq.Feedback(coldq.Linear(np.full(3, 1e200)), affine(300.0)),
         "gradient of the loss is too large"),
    ],
)  # fmt: skip
def test_numbers_whose_squares_overflow_are_refused(feedback: Any, message: str) -> None:
    learner = coldq.SelfTuning(SERVERS, 0.05)
    with pytest.raises(coldq.InvalidInput, match=message):
        learner.update(learner.init(1), feedback)


def test_limits_beyond_any_forecast_are_refused() -> None:
    learner = coldq.SelfTuning(SERVERS, 0.05)
    state, none = learner.init(1), np.finfo(float).max
    with pytest.raises(coldq.InvalidInput, match=r"too large|must be finite"):
        for t in range(9):  # no limit, and one, in turns
            limit = none if t % 2 else 300.0
            rows = coldq.QuadraticConstraint(np.eye(3)[None], [CAPACITY], [limit])
            state = learner.update(state, coldq.Feedback(coldq.Linear(np.ones(3)), rows))
            assert np.isfinite(state.predicted).all()


@pytest.mark.parametrize(
    "X", [SERVERS, coldq.Box(0.0, [1.0, 1.0, 1e4]), coldq.Ball(np.zeros(3), 9.0)]
)
@pytest.mark.parametrize("shape", [(4, 1, 3), (1, 2), (2, 3)])
def test_a_forecast_of_another_shape_is_refused(X: Any, shape: tuple[int, ...]) -> None:
    learner = coldq.SelfTuning(X, 0.05)
    given = coldq.Forecast(constraint=coldq.Affine(np.ones(shape), np.ones(shape[-2])))
    with pytest.raises(coldq.InvalidInput, match="forecast's constraint must"):
        learner.update(
            learner.init(1), coldq.Feedback(coldq.Linear(np.ones(3)), affine(3.0), forecast=given)
        )
