"""More than a few affine rows, taken a few at a time: the same answers, and no fewer of them."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import numpy as np
import pytest
from scipy import sparse

import coldq
from coldq.slot.step.affine import MIN_SPARSE_ENTRIES
from coldq.slot.step.reference import reference_step
from coldq.solver.answer import TOLERANCE, Step
from coldq.solver.api import working_set_step
from coldq.solver.cascade import MAX_NEWTON_ROWS, UNLIMITED_SYSTEMS, rescue, rescue_one, run_affine
from coldq.solver.problem import AffineProblem
from coldq.solver.simplices import solve_in_one_block
from tests.instances import CATEGORIES, Instance, make_instance, residual_of

N_MANY = 17  # the least that are many


def budgets(rng: np.random.Generator, N: int, p: int) -> tuple[coldq.Affine, coldq.Box]:
    A = rng.random((N, p))
    return coldq.Affine(A, 0.4 * A.sum(axis=1) * rng.uniform(0.8, 1.1, N)), coldq.Box(0, 1, dim=p)


def test_sixteen_rows_are_few_and_seventeen_many() -> None:
    assert MAX_NEWTON_ROWS == N_MANY - 1


@pytest.mark.parametrize("least", [N_MANY, 40, 80])
def test_every_one_of_many_degenerate_steps_is_solved(least: int) -> None:
    rng = np.random.default_rng(least)
    for k in range(len(CATEGORIES) * 8):
        category = CATEGORIES[k % len(CATEGORIES)]
        N, p = least + int(rng.integers(0, 40)), int(rng.integers(1, 40))
        p += N if k % 3 == 0 else 0  # as many rows as are taken at once
        instance = make_instance(rng, category, N, p)
        step = instance.solve()
        assert residual_of(instance, step.x, step.multipliers) <= TOLERANCE, (k, category)


@pytest.mark.parametrize(("N", "p"), [(17, 3), (40, 10), (60, 100), (200, 20), (300, 300)])
def test_no_answer_is_worse_than_the_oracles(N: int, p: int) -> None:
    rng = np.random.default_rng(N)
    rows, box = budgets(rng, N, p)
    center, gradient = rng.random(p), 3.0 * rng.standard_normal(p)
    for weight in (0.05, 2500.0):
        step = coldq.penalised_step(center, gradient, 1.0, weight, rows, box)
        _, value = reference_step(center, gradient, 1.0, weight, rows, box)
        move = step.x - center
        ours = gradient @ move + move @ move
        ours += weight * np.maximum(rows.value(step.x), 0.0).sum()
        assert ours <= value + 1e-7 * (1.0 + abs(value))


def test_budgets_never_need_another_method() -> None:
    """The other methods would answer too, some hundred times later: here the first one must."""
    rng = np.random.default_rng(4)
    for N, p in ((50, 30), (100, 1000), (400, 30), (1000, 100)):
        rows, box = budgets(rng, N, p)
        zeros = np.zeros(N)
        problem = AffineProblem(
            rng.random(p), rng.normal(0.0, 2.0, p), np.array(1.0), zeros, np.full(N, 2500.0),
            zeros, rows.A, rows.b, box.lower, box.upper,
        )  # fmt: skip
        answer = Step(*working_set_step(*problem, UNLIMITED_SYSTEMS))
        instance = Instance(
            problem.center, problem.gradient, 1.0, zeros, problem.multiplier_upper, rows.A, rows.b,
            box.lower, box.upper,
        )  # fmt: skip
        assert residual_of(instance, answer.x, answer.multipliers) <= TOLERANCE


def test_a_batch_gives_the_bits_of_one_by_one_also_where_some_need_another_method() -> None:
    rng = np.random.default_rng(5)
    A, b = rng.normal(size=(6, 60, 30)), rng.uniform(-0.5, 1.0, (6, 60))
    A[::2], b[::2] = np.abs(A[::2]), 5.0
    box, prices = coldq.Box(0.0, 5.0, dim=30), 3.0 * rng.normal(size=(6, 30))
    center = np.broadcast_to(box.start(), (6, 30))
    together = coldq.penalised_step(center, prices, 1.0, 25.0, coldq.Affine(A, b), box)
    assert together.residual.max() <= TOLERANCE
    for k in range(6):
        alone = coldq.penalised_step(center[k], prices[k], 1.0, 25.0, coldq.Affine(A[k], b[k]), box)
        assert alone.x.tobytes() == together.x[k].tobytes()
        assert alone.multipliers.tobytes() == together.multipliers[k].tobytes()


@pytest.mark.parametrize(("N", "p"), [(30, 60), (40, 40), (70, 100), (200, 300)])
def test_rows_that_all_matter_are_taken_at_once_if_they_leave_coordinates_free(N, p) -> None:
    rng = np.random.default_rng(N)
    A, b = rng.normal(size=(3, N, p)), rng.uniform(-0.5, 1.0, (3, N))
    box, prices = coldq.Box(0.0, 5.0, dim=p), rng.normal(size=(3, p))
    center, zeros, weights = np.broadcast_to(box.start(), (3, p)), np.zeros(N), np.full(N, 25.0)
    together = coldq.penalised_step(center, prices, 1.0, 25.0, coldq.Affine(A, b), box)
    for k in range(3):
        given = center[k], prices[k], np.array(1.0), zeros, weights, zeros, A[k], b[k]
        problem = AffineProblem(*given, box.lower, box.upper)
        answer = run_affine(problem)  # those that go from piece to piece are not asked
        instance = Instance(*given[:2], 1.0, *given[3:5], *given[6:], box.lower, box.upper)
        assert residual_of(instance, answer.x, answer.multipliers) <= TOLERANCE
        alone = coldq.penalised_step(center[k], prices[k], 1.0, 25.0, coldq.Affine(A[k], b[k]), box)
        assert alone.x.tobytes() == together.x[k].tobytes() == answer.x.tobytes()
        assert alone.multipliers.tobytes() == together.multipliers[k].tobytes()


@pytest.mark.parametrize(("N", "p"), [(30, 60), (60, 15), (200, 400)])
def test_sparse_rows_of_every_kind_are_solved(N: int, p: int) -> None:
    rng, seen = np.random.default_rng(N), Counter()
    for k in range(len(CATEGORIES) * 3):
        category = CATEGORIES[k % len(CATEGORIES)]
        instance = make_instance(rng, category, N, p)
        A = instance.A * (rng.random((N, p)) < 4.0 / p)
        A[:, rng.random(p) < 0.3] = 0.0  # coordinates that no row enters
        # What thinning took from enforced rows comes off their limits: they keep a common point.
        inside = np.clip(rng.standard_normal(p), instance.lower, instance.upper)
        hard = np.isinf(instance.multiplier_upper) | np.isinf(instance.multiplier_lower)
        instance = instance._replace(A=A, b=np.where(hard, A @ inside, instance.b))
        thin = instance.problem()._replace(A=sparse.csr_array(A))
        step = solve_in_one_block(thin)
        if not step.residual <= TOLERANCE:
            step, _ = rescue_one(thin, step)
        assert residual_of(instance, step.x, step.multipliers) <= TOLERANCE, (k, category)
        seen[category] += 1
    assert len(seen) == len(CATEGORIES)


@pytest.mark.parametrize("N", [90, 100, 300])
def test_rows_that_share_no_coordinate_are_solved_as_each_alone(N: int) -> None:
    # More of them than a working set holds leave it soon; which of them hold is no different then.
    rng, each = np.random.default_rng(N), 6
    p = N * each
    parts, limits = rng.random((N, each)), rng.uniform(0.2, 2.0, N)
    A = sparse.csr_array((parts.ravel(), np.arange(p), np.arange(0, p + 1, each)), (N, p))
    center, gradient = rng.random(p), 2.0 * rng.normal(size=p)
    assert N * p > MIN_SPARSE_ENTRIES
    step = coldq.penalised_step(
        center, gradient, 1.0, 2500.0, coldq.SparseAffine(A, limits), coldq.Box(0, 1, dim=p)
    )
    assert step.residual <= TOLERANCE
    assert 0.2 * N < np.count_nonzero(step.multipliers) < N
    for k in range(N):
        own, row = (
            slice(k * each, (k + 1) * each),
            coldq.Affine(parts[k : k + 1], limits[k : k + 1]),
        )
        box = coldq.Box(0, 1, dim=each)
        alone = coldq.penalised_step(center[own], gradient[own], 1.0, 2500.0, row, box)
        np.testing.assert_allclose(step.x[own], alone.x, atol=1e-10)
        np.testing.assert_allclose(step.multipliers[k], alone.multipliers[0], atol=1e-9)


def test_a_coordinate_that_no_row_enters_is_clipped() -> None:
    rng, p = np.random.default_rng(1), 20_000
    A = sparse.csr_array(([1.0, 1.0, 2.0, 1.0], [1, 4, 1, 4], [0, 2, 3, 4]), (3, p))
    y = rng.normal(size=(2, p))  # a batch of two
    y[:, 1], y[:, 4] = 0.9, 0.8
    rows, box = coldq.SparseAffine(A, np.ones(3)), coldq.Box(0.0, 1.0, dim=p)
    step = coldq.penalised_step(y, np.zeros((2, p)), 0.5, 1e3, rows, box)
    # x_2 + x_5 = 1 and 2 x_2 <= 1 both bind: x_2 = 1/2, x_5 = 1/2.
    expected = np.clip(y, 0.0, 1.0)
    expected[:, [1, 4]] = 0.5
    np.testing.assert_allclose(step.x, expected, atol=1e-12)
    np.testing.assert_allclose(step.multipliers, [[0.3, 0.05, 0.0]] * 2, atol=1e-12)
    assert (step.residual <= TOLERANCE).all()


def test_the_memory_of_a_step_is_a_small_part_of_its_data() -> None:
    for N, p in ((1000, 1000), (300, 10_000), (10_000, 100)):
        rows, box = budgets(np.random.default_rng(N), N, p)
        given = np.ones(p), -np.ones(p), np.array(1.0), np.zeros(N), np.full(N, 50.0), np.zeros(N)
        tracemalloc.start()
        working_set_step(*given, rows.A, rows.b, box.lower, box.upper, UNLIMITED_SYSTEMS)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 8 * p < most <= 0.3 * rows.A.nbytes


def test_many_rows_through_one_point_of_a_line_are_solved_by_whoever_gets_them() -> None:
    # Which of them the kernel hands over depends on the processor: the others get them all.
    rng, N = np.random.default_rng(0), 60
    for _ in range(10):
        A, weights = rng.standard_normal((N, 1)), 10.0 ** rng.uniform(-1.0, 2.0, N)
        floor = np.where(rng.random(N) < 0.3, weights, 0.0)
        center, gradient = np.ones(1), 10.0 * rng.standard_normal(1)
        rows, X = coldq.Affine(A, A @ rng.uniform(-1.0, 1.0, 1)), coldq.Box(-2.0, 2.0, dim=1)
        problem = AffineProblem(
            center, gradient, np.array(35.0), floor, weights, np.zeros(N), A, rows.b, X.lower,
            X.upper,
        )  # fmt: skip
        step = coldq.penalised_step(
            center, gradient, 35.0, weights, rows, X, multiplier_lower=floor
        )
        best = min(np.linspace(-2.0, 2.0, 401), key=lambda x: value_of(problem, x))
        handed, clash = rescue(problem, Step(np.zeros(1), np.zeros(N), np.array(np.inf)))
        assert handed.residual <= TOLERANCE and not clash
        for x in (step.x[0], handed.x[0]):
            assert value_of(problem, x) <= value_of(problem, best) + 1e-9


def value_of(problem: AffineProblem, x: float) -> float:
    """The penalised objective of one coordinate."""
    g = problem.A[:, 0] * x - problem.b
    penalty = np.where(g > 0.0, problem.multiplier_upper * g, problem.multiplier_lower * g).sum()
    move = x - problem.center[0]
    return float(problem.gradient[0] * move + problem.alpha * move * move + penalty)
