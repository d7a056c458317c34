"""The per-slot problem with affine rows: exact on any input, the same bits in any batch."""

from __future__ import annotations

import warnings
from contextlib import suppress

import cvxpy as cp
import numpy as np
import pytest

import coldq
from coldq.base.system import thread_count
from coldq.slot.step.reference import reference_step
from coldq.solver.answer import TOLERANCE, raise_if_failed
from coldq.solver.api import active_set_extended
from coldq.solver.extended import enforced_rows_conflict
from coldq.solver.problem import AffineProblem
from coldq.solver.threads import run_batch
from tests.instances import CATEGORIES, draw_instance, make_instance, residual_of
from tests.stress import stress

INF = np.inf
LINE = coldq.Box(-10.0, 10.0, dim=1)
AT_MOST_1 = coldq.Affine([[1.0]], [1.0])


def test_every_one_of_many_degenerate_steps_is_solved() -> None:
    worst, failed, slow = stress(3_000, seed=5)
    assert not failed
    assert worst <= TOLERANCE
    assert slow.total() <= 3  # the slow path is a safety net, not the way


@pytest.mark.parametrize("category", CATEGORIES)
def test_no_answer_is_worse_than_the_oracles(category: str) -> None:
    rng = np.random.default_rng(CATEGORIES.index(category))
    for _ in range(8):
        N, p = rng.integers(1, 9, 2)
        instance = make_instance(rng, category, int(N), int(p))
        if category in ("alpha 1e-8", "row scales"):
            # Beyond the oracle's own accuracy: a milder version of the same.
            instance = instance._replace(alpha=max(instance.alpha, 1e-2))
        step = instance.solve()
        x, _ = reference_step(
            instance.center, instance.gradient, instance.alpha, instance.multiplier_upper,
            coldq.Affine(instance.A, instance.b), coldq.Box(instance.lower, instance.upper),
            multiplier_lower=instance.multiplier_lower,
        )  # fmt: skip
        ours, theirs = instance.objective(step.x), instance.objective(x)
        size = 1.0 + abs(theirs) + instance.alpha * np.square(x - instance.center).sum()
        hard = np.isinf(instance.multiplier_upper) | np.isinf(instance.multiplier_lower)
        slack = 1e-6 * size
        if (
            hard.any()
        ):  # the oracle may cut an enforced row a little; weigh that with the multiplier
            slack += 1e-7 * np.abs(step.multipliers[hard]).sum()
        assert ours <= theirs + slack
        # Strong convexity turns the oracle's objective error into a distance.
        assert instance.alpha * np.square(step.x - x).sum() <= 10.0 * slack


# One coordinate, center 0, alpha 1: x minimises d x + x^2 + penalty(x - 1).
@pytest.mark.parametrize(
    ("d", "floor", "weight", "x", "multiplier"),
    [
        (4.0, 0.0, 1.0, -2.0, 0.0),  # inside: a plain gradient step
        (-8.0, 0.0, 2.0, 3.0, 2.0),  # hinge too weak: the multiplier reaches its weight
        (-8.0, 0.0, 9.0, 1.0, 6.0),  # hinge strong enough: it stops at the row
        (-8.0, 0.0, 0.0, 4.0, 0.0),  # no weight
        (-8.0, 2.0, 2.0, 3.0, 2.0),  # linear, over the row
        (4.0, 2.0, 2.0, -3.0, 2.0),  # linear, below it: pulled all the same
        (4.0, -9.0, 9.0, 1.0, -6.0),  # equality penalty from below
        (4.0, -3.0, 3.0, -0.5, -3.0),  # equality penalty too weak
        (-8.0, 0.0, INF, 1.0, 6.0),  # enforced row
        (4.0, 0.0, INF, -2.0, 0.0),  # enforced row, inactive
        (4.0, -INF, INF, 1.0, -6.0),  # hard equality
    ],
)
def test_a_row_of_each_kind_by_hand(
    d: float, floor: float, weight: float, x: float, multiplier: float
) -> None:
    step = coldq.penalised_step([0.0], [d], 1.0, weight, AT_MOST_1, LINE, multiplier_lower=floor)
    np.testing.assert_allclose(step.x, [x], atol=1e-12)
    np.testing.assert_allclose(step.multipliers, [multiplier], atol=1e-12)


def test_no_rows_is_a_projected_gradient_step() -> None:
    box = coldq.Box(0.0, 1.0, dim=3)
    for constraint in (None, coldq.Unconstrained(), coldq.Affine(np.zeros((0, 3)), [])):
        step = coldq.penalised_step([0.5, 0.5, 0.5], [1.0, -2.0, 0.5], 0.5, 1.0, constraint, box)
        np.testing.assert_array_equal(step.x, [0.0, 1.0, 0.0])
        assert step.multipliers.shape == (0,)


def test_an_empty_feasible_set_only_pushes_multipliers_to_their_weights() -> None:
    rows = coldq.Affine([[1.0], [-1.0]], [-1.0, -1.0])  # x <= -1 and x >= 1
    step = coldq.penalised_step([0.0], [0.5], 1.0, [3.0, 2.0], rows, LINE)
    np.testing.assert_allclose(step.x, [-0.75])  # 2 x + 0.5 + 3 - 2 = 0
    np.testing.assert_array_equal(step.multipliers, [3.0, 2.0])


def test_hard_rows_without_a_common_point_are_named_and_the_others_answered() -> None:
    rows = coldq.Affine([[[1.0]]] * 3, [[1.0], [-99.0], [0.5]])
    with pytest.raises(coldq.Infeasible, match="in instance 1 of the batch") as caught:
        coldq.penalised_step(np.zeros((3, 1)), [-8.0], 1.0, INF, rows, LINE)
    assert caught.value.indices == [(1,)]
    assert caught.value.step is not None
    np.testing.assert_allclose(caught.value.step.x[[0, 2], 0], [1.0, 0.5])


def test_hard_rows_that_meet_in_one_point_are_feasible() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        p = int(rng.integers(1, 6))
        vertex = rng.integers(0, 2, p) * 1.0
        A = rng.standard_normal((2 * p, p))
        A = np.concatenate([A, -A])
        instance = make_instance(rng, "regular", 4 * p, p)._replace(
            A=A,
            b=A @ vertex,
            multiplier_upper=np.full(4 * p, INF),
            lower=np.zeros(p),
            upper=np.ones(p),
        )
        step = instance.solve()
        np.testing.assert_allclose(step.x, vertex, atol=1e-9)


def test_infeasibility_agrees_with_a_linear_program() -> None:
    from scipy.optimize import linprog

    rng = np.random.default_rng(4)
    seen = set()
    for _ in range(200):
        N, p = (int(k) for k in rng.integers(1, 8, 2))
        instance = make_instance(rng, "regular", N, p)
        instance = instance._replace(multiplier_upper=np.full(N, INF), b=instance.b - 0.5)
        bounds = list(zip(instance.lower, instance.upper, strict=True))
        result = linprog(np.zeros(p), instance.A, instance.b, bounds=bounds)
        seen.add(result.status)
        if result.status == 2:
            with pytest.raises(coldq.Infeasible):
                instance.solve()
        else:
            step = instance.solve()
            assert residual_of(instance, step.x, step.multipliers) <= TOLERANCE
    assert seen == {0, 2}


def test_a_batch_gives_the_bits_of_one_by_one_on_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(6)
    N, p, count = 3, 7, 600
    parts = [make_instance(rng, CATEGORIES[k % 12], N, p) for k in range(count)]
    box = coldq.Box(np.stack([i.lower for i in parts]), np.stack([i.upper for i in parts]))
    arguments = [np.stack([getattr(i, name) for i in parts]) for name in
                 ("center", "gradient", "alpha", "multiplier_upper")]  # fmt: skip
    rows = coldq.Affine(np.stack([i.A for i in parts]), np.stack([i.b for i in parts]))
    alone = [i.solve() for i in parts]
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("COLDQ_THREADS", threads)
        assert thread_count() == int(threads)
        together = coldq.penalised_step(*arguments, rows, box)
        for name in ("x", "multipliers", "residual"):
            expected = np.stack([getattr(step, name) for step in alone])
            assert getattr(together, name).tobytes() == expected.tobytes()


def test_leading_axes_broadcast_and_memory_order_does_not_matter() -> None:
    rng = np.random.default_rng(7)
    center, A, b = rng.random((5, 1, 4)), rng.random((3, 2, 4)), rng.random((3, 2))
    gradient, alpha = rng.standard_normal(4), rng.random((5, 3)) + 0.1
    box = coldq.Box(0.0, 1.0, dim=4)
    step = coldq.penalised_step(center, gradient, alpha, 50.0, coldq.Affine(A, b), box)
    assert step.x.shape == (5, 3, 4)
    assert step.multipliers.shape == (5, 3, 2)
    for i in range(5):
        for j in range(3):
            one = coldq.penalised_step(
                center[i, 0], gradient, alpha[i, j], 50.0, coldq.Affine(A[j], b[j]), box
            )
            assert one.x.tobytes() == step.x[i, j].tobytes()
    scattered = coldq.Affine(np.asfortranarray(A), np.repeat(b, 2, axis=-1)[..., ::2])
    again = coldq.penalised_step(
        np.repeat(center, 2, axis=-1)[..., ::2], gradient, alpha, 50.0, scattered, box
    )
    assert again.x.tobytes() == step.x.tobytes()


def test_inputs_are_not_touched_and_not_kept() -> None:
    rng = np.random.default_rng(8)
    instance = make_instance(rng, "regular", 2, 3)
    before = [np.array(part) for part in instance]
    rows = coldq.Affine(instance.A, instance.b)
    step = instance.solve()
    for part, copy in zip(instance, before, strict=True):
        np.testing.assert_array_equal(part, copy)
    instance.A[:] = 0.0
    assert (rows.A != 0.0).all()
    assert not np.shares_memory(step.x, instance.center)


def test_the_slow_path_solves_ordinary_and_degenerate_steps() -> None:
    rng = np.random.default_rng(9)
    for k in range(150):
        category, instance = draw_instance(rng, k, most=12)
        arguments = instance.problem()
        x, multipliers, residual, _ = active_set_extended(arguments)
        assert residual <= TOLERANCE, category
        assert residual_of(instance, x, multipliers) <= TOLERANCE
        assert not enforced_rows_conflict(arguments)


@pytest.mark.parametrize("seed", [2318, 4333, 5054, 5382, 9912])
def test_no_more_rows_are_independent_than_coordinates_are_free(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, n = int(rng.integers(3, 6)), int(rng.integers(4, 8))
    A = np.round(rng.uniform(-1.0, 1.0, (n, p)), 2)
    # Row 2 nearly depends on two equalities: beside it, rounding makes others look independent.
    A[2] = A[0] * rng.integers(1, 3) - A[1]
    A[2] += 10.0 ** -rng.integers(4, 7) * np.round(rng.uniform(-1.0, 1.0, p), 1)
    b, order = np.round(rng.uniform(-1.0, 0.5, n), 1), rng.permutation(n)
    A, b, equal = A[order], b[order], order < 2
    box, zeros = coldq.Box(-0.25, 0.25, dim=p), np.zeros(n)
    rows = (
        np.round(rng.uniform(-0.25, 0.25, p), 2), np.zeros(p), np.array(0.5),
        np.where(equal, -INF, 0.0), zeros + INF, zeros, A, b, box.lower, box.upper,
    )  # fmt: skip
    x = cp.Variable(p)
    worst = cp.norm_inf(cp.hstack([cp.pos(A @ x - b), cp.abs(A[equal] @ x - b[equal])]))
    assert cp.Problem(cp.Minimize(worst), [cp.abs(x) <= 0.25]).solve() > 1e-3
    assert active_set_extended(AffineProblem(*rows)).infeasible


@pytest.mark.parametrize("seed", [23, 26, 27, 131, 139])
def test_rows_that_differ_by_rounding_and_contradict_each_other_are_infeasible(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = int(rng.integers(3, 8))
    a = np.round(rng.uniform(-1.0, 1.0, p), 2)
    nearly = a + 10.0 ** -rng.integers(6, 11) * rng.uniform(-1.0, 1.0, p)
    rows, box = coldq.Affine([a, nearly], [0.3, -0.3]), coldq.Box(-0.25, 0.25, dim=p)
    center, gradient = rng.uniform(-1.0, 1.0, p), rng.normal(size=p)
    with pytest.raises(coldq.Infeasible, match="no common point"):
        coldq.penalised_step(center, gradient, 0.5, INF, rows, box, multiplier_lower=[-INF, 0.0])


@pytest.mark.parametrize("limit", [-1e100, -1e300])
def test_a_price_of_any_size_on_a_ball_gets_an_answer_or_a_sentence(limit: float) -> None:
    rng, ball = np.random.default_rng(0), coldq.Ball(np.zeros(4), 1.0)
    learner = coldq.COLDQ(ball, horizon=50)
    state = learner.init(2)
    with suppress(coldq.StepFailed):
        for _ in range(6):
            loss = coldq.Linear(rng.normal(size=4))
            rows = coldq.Affine(rng.normal(size=(2, 4)), [limit, 1.0])
            state = learner.update(state, coldq.Feedback(loss, rows))
    assert state.t == 7 or limit == -1e300
    assert np.linalg.norm(state.x) <= 1.0 + 1e-9


def test_a_step_that_no_solver_finds_is_an_error_with_the_other_answers() -> None:
    answer = coldq.Step(np.zeros((3, 2)), np.zeros((3, 1)), np.array([0.0, 0.5, 1e-12]))
    with pytest.raises(coldq.StepFailed, match=r"instance 1 of the batch.*0\.5") as caught:
        raise_if_failed(answer, np.zeros(3, bool))
    assert caught.value.indices == [(1,)]
    assert caught.value.step is not None
    assert caught.value.step.residual[2] == 1e-12


def test_an_answer_of_six_digits_is_taken_with_one_warning_that_names_the_members() -> None:
    answer = coldq.Step(np.zeros((3, 2)), np.zeros((3, 1)), np.array([2e-7, 1e-12, 3e-9]))
    with pytest.warns(coldq.Inexact, match=r"instances 0, 2 of the batch.*2e-07") as caught:
        raise_if_failed(answer, np.zeros(3, bool))
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_one_answer_of_fewer_digits_is_an_error_that_names_it_alone() -> None:
    answer = coldq.Step(np.zeros((2, 2)), np.zeros((2, 1)), np.array([2e-7, 2e-6]))
    with pytest.raises(coldq.StepFailed, match=r"1e-06 in instance 1 of the batch") as caught:
        raise_if_failed(answer, np.zeros(2, bool))
    assert caught.value.indices == [(1,)]


def test_a_promise_of_six_digits_leaves_nothing_to_warn_of() -> None:
    answer = coldq.Step(np.zeros(2), np.zeros(1), np.array(9e-7))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        raise_if_failed(answer, np.array(False), 1e-6)


def test_the_thread_count_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLDQ_THREADS", "none")
    with pytest.raises(coldq.InvalidInput, match="COLDQ_THREADS must be a whole number"):
        thread_count()


def test_an_empty_thread_count_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLDQ_THREADS", raising=False)
    own = thread_count()
    monkeypatch.setenv("COLDQ_THREADS", "")
    assert thread_count() == own


def test_an_error_in_a_worker_thread_reaches_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLDQ_THREADS", "4")

    def entry(x: np.ndarray, out: np.ndarray) -> None:
        if x[0, 0] > 0.0:
            raise ValueError("worker")

    with pytest.raises(ValueError, match="worker"):
        data = np.arange(4000.0).reshape(400, 10)
        run_batch(entry, [data], [1], [(10,)], 1000)


@pytest.mark.parametrize("left", [1e-20, 2.4e-26, 1e-30, 1e-300])
def test_what_rounding_left_of_a_zero_is_no_failed_step(left: float) -> None:
    rows = coldq.Affine([[3.4427201566357094e8, 6.003773333669025e8]], [0.0])
    box = coldq.Box(0.0, [357504.210747663, 8579.478770238553])
    step = coldq.penalised_step([left, 0.0], [0.0, 0.0], 2.8e-12, 1.444917495294823e-9, rows, box)
    np.testing.assert_allclose(step.x, 0.0, atol=1e-24)
