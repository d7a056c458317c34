"""Large and sparse affine rows: exact on any input, in passes over the matrix."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import coldq
from coldq.slot.step import solve
from coldq.slot.step.reference import reference_step
from coldq.solver import cascade
from coldq.solver.answer import TOLERANCE
from coldq.solver.api import active_set_extended
from coldq.solver.cascade import rescue_one
from coldq.solver.problem import AffineProblem
from coldq.solver.simplices import entries_of, solve_in_one_block
from tests.instances import CATEGORIES, Instance, draw_instance, make_instance, residual_of

INF = np.inf


def plan(rng: np.random.Generator, N: int, p: int, density: float | None = None):
    """Budget rows that cut off a part of the unit box, as a step's arguments."""
    A = rng.random((N, p))
    if density is not None:
        A *= rng.random((N, p)) < density
    b = 0.4 * A.sum(axis=1) * rng.uniform(0.8, 1.1, N)
    return A, b, (rng.random(p), 3.0 * rng.standard_normal(p), 1.0)


def residual(step: coldq.Step, arguments, weights, A, b) -> float:
    p, N = A.shape[1], len(b)
    instance = Instance(*arguments, np.zeros(N), np.full(N, weights), A, b, np.zeros(p), np.ones(p))
    return residual_of(instance, step.x, step.multipliers)


def solved(problem: AffineProblem) -> coldq.Step:
    """By Newton's method in all rows, dense or sparse, and by what comes after it."""
    found = solve_in_one_block(problem)
    return found if found.residual <= TOLERANCE else rescue_one(problem, found)[0]


def test_every_one_of_many_degenerate_steps_is_solved() -> None:
    rng = np.random.default_rng(0)
    for k in range(len(CATEGORIES) * 20):
        category, instance = draw_instance(rng, k, most=30)
        x, multipliers, _ = solved(instance.problem())
        assert residual_of(instance, x, multipliers) <= TOLERANCE, (k, category)


def test_more_rows_than_coordinates_are_solved() -> None:
    rng = np.random.default_rng(1)
    for k in range(120):
        category = CATEGORIES[k % len(CATEGORIES)]
        p = int(rng.integers(1, 10))
        instance = make_instance(rng, category, p + int(rng.integers(1, 20)), p)
        x, multipliers, _ = solved(instance.problem())
        assert residual_of(instance, x, multipliers) <= TOLERANCE, (k, category)


def test_what_the_fast_methods_miss_starts_where_the_way_from_inside_ended(monkeypatch) -> None:
    rng, N, p = np.random.default_rng(3), 120, 60
    lower, upper, weights = np.zeros(p), np.full(p, 5.0), np.full(N, 25.0)
    A, b, center = rng.standard_normal((N, p)), rng.uniform(-0.5, 1.0, N), np.full(p, 2.5)
    gradient, zeros = rng.standard_normal(p), np.zeros(N)
    one = AffineProblem(center, gradient, np.array(1e-3), zeros, weights, zeros, A, b, lower, upper)
    starts = []
    monkeypatch.setattr(
        cascade,
        "active_set_extended",
        lambda one, start: starts.append(start) or active_set_extended(one, start),
    )
    (x, _, residual), _ = rescue_one(one, coldq.Step(center, zeros, INF))
    g, terms = A @ x - b, np.abs(A) @ x + np.abs(b)
    above, below = g > 1e-7 * terms, g < -1e-7 * terms
    assert residual <= TOLERANCE
    assert above.any() and below.any()
    np.testing.assert_array_equal(starts[0][above], weights[above])
    np.testing.assert_array_equal(starts[0][below], 0.0)


@pytest.mark.parametrize(("least", "most", "rows"), [(20, 60, 15), (3, 15, 60)])
def test_every_one_of_many_degenerate_sparse_steps_is_solved(least, most, rows) -> None:
    rng = np.random.default_rng(rows)
    for k in range(len(CATEGORIES) * 6):
        category = CATEGORIES[k % len(CATEGORIES)]
        p, N = int(rng.integers(least, most)), int(rng.integers(rows, 2 * rows))
        instance = make_instance(rng, category, N, p)
        A = instance.A * (rng.random((N, p)) < 0.3)
        # What thinning took from enforced rows comes off their limits: they keep a common point.
        inside = np.clip(rng.standard_normal(p), instance.lower, instance.upper)
        hard = np.isinf(instance.multiplier_upper) | np.isinf(instance.multiplier_lower)
        instance = instance._replace(A=A, b=np.where(hard, A @ inside, instance.b))
        step = solved(instance.problem()._replace(A=sparse.csr_array(A)))
        assert residual_of(instance, step.x, step.multipliers) <= TOLERANCE, (k, category)


def test_a_step_takes_sparse_rows_as_they_are_kept() -> None:
    given = sparse.csr_array(np.eye(3))
    rows = coldq.SparseAffine(given, np.ones(3))
    assert given.indices.dtype == np.int32  # as SciPy has them
    kept = rows.data, rows.indices, rows.indptr
    for part, own in zip(entries_of(rows.A), kept, strict=True):
        assert np.shares_memory(part, own)


@pytest.mark.parametrize("of", [np.asarray, sparse.csr_array])
def test_no_price_is_so_large_that_any_x_in_a_small_box_will_do(of) -> None:
    # Two rows pull by 1e12 each way, both unmet, one a millionth less: x is where the other pulls.
    zeros, weights = np.zeros(2), np.array([1e6, 1e6 - 1.0])
    given = np.zeros(1), np.zeros(1), np.array(0.5), zeros, weights, zeros
    rows = of(np.array([[1e6], [-1e6]])), np.array([-1e6 - 1.0, 1e6 - 1.0])
    step = solved(AffineProblem(*given, *rows, -np.ones(1), np.ones(1)))
    assert step.x == -1.0
    assert step.residual <= TOLERANCE


@pytest.mark.parametrize("weights", [2500.0, INF])
def test_many_sparse_rows_that_hardly_share_a_coordinate_are_solved(weights: float) -> None:
    rng = np.random.default_rng(9)
    N, p = 500, 20_000
    A = np.zeros((N, p))
    A[np.arange(N)[:, None], rng.integers(0, p, (N, 6))] = rng.random((N, 6))
    b, arguments = 0.4 * A.sum(axis=1), (rng.random(p), 2.0 * rng.standard_normal(p), 1.0)
    rows, box = coldq.SparseAffine(sparse.csr_array(A), b), coldq.Box(0.0, 1.0, dim=p)
    step = coldq.penalised_step(*arguments, weights, rows, box)
    assert (step.multipliers > 0.0).sum() > 200  # in many parts
    assert residual(step, arguments, weights, A, b) <= TOLERANCE


@pytest.mark.parametrize(
    ("N", "p", "weights"),
    [(100, 2000, 2500.0), (100, 2000, 1e-3), (100, 2000, INF), (1500, 20, 2500.0),
     (1500, 20, 1e-3), (300, 300, 50.0)],
)  # fmt: skip
def test_dense_and_sparse_rows_have_one_exact_answer(N: int, p: int, weights: float) -> None:
    rng = np.random.default_rng(N)
    box = coldq.Box(0.0, 1.0, dim=p)
    A, b, arguments = plan(rng, N, p, density=0.1)
    dense = coldq.penalised_step(*arguments, weights, coldq.Affine(A, b), box)
    rows = coldq.SparseAffine(sparse.csc_array(A), b)
    thin = coldq.penalised_step(*arguments, weights, rows, box)
    for step in (dense, thin):
        assert residual(step, arguments, weights, A, b) <= TOLERANCE
    np.testing.assert_allclose(dense.x, thin.x, atol=1e-9)


@pytest.mark.parametrize(("N", "p"), [(70, 60), (110, 100), (180, 300), (400, 300), (700, 300)])
@pytest.mark.parametrize("weights", [0.3, 2500.0])
def test_more_rows_than_free_coordinates_are_solved(N: int, p: int, weights: float) -> None:
    # They point anywhere: half of the coordinates end at a bound, and rows pull that depend on the
    # others in the rest.
    rng, box = np.random.default_rng(N), coldq.Box(0.0, 1.0, dim=p)
    A = rng.normal(size=(N, p)) * (rng.random((N, p)) < 0.1)
    b, arguments = rng.uniform(-0.1, 0.6, N), (rng.random(p), rng.normal(size=p), 1.0)
    for rows in (coldq.Affine(A, b), coldq.SparseAffine(sparse.csr_array(A), b)):
        step = coldq.penalised_step(*arguments, weights, rows, box)
        assert residual(step, arguments, weights, A, b) <= TOLERANCE


@pytest.mark.parametrize(("N", "p"), [(60, 200), (80, 30)])
@pytest.mark.parametrize("of", [np.asarray, sparse.csr_array])
def test_the_unit_of_x_makes_no_difference(N: int, p: int, of) -> None:
    A, b, (center, gradient, alpha) = plan(np.random.default_rng(7), N, p, density=0.3)
    A *= 10.0 ** np.random.default_rng(8).uniform(-3.0, 3.0, (N, 1))
    b = 0.4 * A.sum(axis=1)
    kind = coldq.Affine if of is np.asarray else coldq.SparseAffine
    first, *others = (
        coldq.penalised_step(
            unit * center, unit * gradient, alpha, unit * 7.0, kind(of(A), unit * b),
            coldq.Box(0.0, unit, dim=p),
        )
        for unit in (1.0, 2.0**-40, 2.0**-70, 2.0**40)
    )  # fmt: skip
    for unit, step in zip((2.0**-40, 2.0**-70, 2.0**40), others, strict=True):
        np.testing.assert_allclose(step.x / unit, first.x, rtol=0.0, atol=1e-9)


def test_no_answer_is_worse_than_the_oracles() -> None:
    rng = np.random.default_rng(2)
    for N, p, shift in ((80, 30, 0.0), (80, 30, 20.0), (80, 200, 0.0)):
        box = coldq.Box(0.0, 1.0, dim=p)
        A, b, (center, gradient, alpha) = plan(rng, N, p)
        rows = coldq.Affine(A, b - shift)
        step = coldq.penalised_step(center, gradient, alpha, 7.0, rows, box)
        x, value = reference_step(center, gradient, alpha, 7.0, rows, box)
        np.testing.assert_allclose(step.x, x, atol=1e-5)
        move = step.x - center
        ours = gradient @ move + alpha * move @ move
        ours += 7.0 * np.maximum(rows.value(step.x), 0.0).sum()
        assert ours <= value + 1e-7 * (1.0 + abs(value))


def test_a_batch_gives_the_bits_of_one_by_one() -> None:
    rng = np.random.default_rng(3)
    parts = [plan(rng, 80, 40) for _ in range(3)]
    box = coldq.Box(0.0, 1.0, dim=40)
    rows = coldq.Affine(np.stack([a for a, _, _ in parts]), np.stack([b for _, b, _ in parts]))
    center, gradient = (np.stack([part[2][k] for part in parts]) for k in (0, 1))
    together = coldq.penalised_step(center, gradient, [1.0, 2.0, 3.0], 9.0, rows, box)
    for k, (A, b, (c, d, _)) in enumerate(parts):
        alone = coldq.penalised_step(c, d, k + 1.0, 9.0, coldq.Affine(A, b), box)
        assert alone.x.tobytes() == together.x[k].tobytes()
        assert alone.multipliers.tobytes() == together.multipliers[k].tobytes()


@pytest.mark.parametrize(
    ("kind", "N", "p"),
    [("budgets", 100, 5000), ("budgets", 5000, 100), ("clashing", 1000, 10), ("clashing", 200, 100),
     ("on a simplex", 200, 100), ("on a simplex", 2, 10_000), ("sparse", 1000, 100_000),
     ("max-affine", 2, 300), ("max-affine", 50, 10)],
)  # fmt: skip
def test_a_step_takes_a_few_times_its_data_or_half_a_megabyte(kind: str, N: int, p: int) -> None:
    rng = np.random.default_rng(4)
    X: Any = coldq.Simplex(p) if kind == "on a simplex" else coldq.Box(0.0, 1.0, dim=p)
    if kind == "sparse":
        line = np.arange(0, 10 * N + 1, 10)
        A = sparse.csr_array((rng.random(10 * N), rng.integers(0, p, 10 * N), line), (N, p))
        A.sum_duplicates()
        rows, data = coldq.SparseAffine(A, 0.4 * A.sum(axis=1)), 2 * A.data.nbytes
    elif kind == "max-affine":
        rows = coldq.MaxAffine(rng.normal(size=(N, 8, p)), rng.random((N, 8)))
        data = rows.A.nbytes
    else:
        A, b, _ = plan(rng, N, p)
        b = rng.uniform(-0.1, 0.2, N) * A.sum(axis=1) if kind == "clashing" else b
        b = rng.uniform(0.3, 0.6, N) if kind == "on a simplex" else b
        rows, data = coldq.Affine(A, b), A.nbytes
    center, gradient, weights = X.project(rng.random(p)), 3.0 * rng.normal(size=p), np.full(N, 50.0)
    given, data = (center, gradient, np.array(1.0), weights, rows, X), data + 16 * (N + p)
    solve(*given)
    tracemalloc.start()
    with ThreadPoolExecutor(1) as fresh:  # a thread that has no memory from the call before
        fresh.submit(solve, *given).result()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    conflict = kind == "clashing" or (kind == "on a simplex" and N > 2)
    assert peak <= max((7 if conflict else 3) * data, 500_000)


def test_a_hard_row_far_out_of_reach_has_no_answer() -> None:
    far = coldq.Affine([[1.0, 1.0, 1.0]], [-1e308])  # its multiplier would be infinite
    with pytest.raises(coldq.Infeasible, match="no common point"):
        coldq.penalised_step(np.zeros(3), np.ones(3), 1.0, INF, far, coldq.Box(0.0, 2.0, dim=3))


def test_hard_rows_without_a_common_point_are_named() -> None:
    A = np.ones((80, 5))
    b = np.full((2, 80), 3.0)
    b[1, 79] = -1.0
    box = coldq.Box(0.0, 1.0, dim=5)
    with pytest.raises(coldq.Infeasible, match="in instance 1 of the batch") as caught:
        coldq.penalised_step(np.ones((2, 5)), np.zeros(5), 1.0, INF, coldq.Affine(A, b), box)
    assert caught.value.step is not None
    np.testing.assert_allclose(caught.value.step.x[0], np.full(5, 0.6))
    thin = coldq.SparseAffine(sparse.csr_array(A), b[1])
    with pytest.raises(coldq.Infeasible):
        coldq.penalised_step(np.ones(5), np.zeros(5), 1.0, INF, thin, box)


def test_sparse_rows_are_a_constraint_like_any_other() -> None:
    rng = np.random.default_rng(5)
    A = rng.random((6, 4)) * (rng.random((6, 4)) < 0.5)
    g, dense = coldq.SparseAffine(sparse.coo_array(A), np.ones(6)), coldq.Affine(A, np.ones(6))
    x = rng.random((3, 4))
    np.testing.assert_allclose(g.value(x), dense.value(x))
    np.testing.assert_array_equal(g.jacobian(x), dense.jacobian(x))
    assert g.value(x)[1].tobytes() == g.value(x[1]).tobytes()
    assert g == coldq.SparseAffine(sparse.csr_array(A), np.ones(6))
    assert g != coldq.SparseAffine(sparse.csr_array(A), np.zeros(6))
    assert (g.dim, g.n_constraints, g.batch) == (4, 6, ())
    learner = coldq.COLDQ(coldq.Box(0.0, 1.0, dim=4), horizon=50)
    state, other = learner.init(6), learner.init(6)
    for _ in range(5):
        loss = coldq.Linear(rng.standard_normal(4))
        state = learner.update(state, coldq.Feedback(loss, g))
        other = learner.update(other, coldq.Feedback(loss, dense))
        np.testing.assert_allclose(state.x, other.x, atol=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: coldq.SparseAffine(np.ones((2, 3)), [1.0, 1.0]), "needs a two-dimensional scipy"),
        (lambda: coldq.SparseAffine(sparse.eye_array(3), [1.0]), r"needs b of shape \(3,\)"),
        (lambda: coldq.SparseAffine(INF * sparse.eye_array(2), [1.0, 1.0]), "A must be finite"),
        (lambda: coldq.Affine(sparse.eye_array(2), [1.0, 1.0]), "coldq.SparseAffine takes it"),
    ],
)
def test_bad_data_gets_a_sentence(call, words: str) -> None:
    with pytest.raises(coldq.InvalidInput, match=words):
        call()


def test_a_nan_on_the_way_is_diagnosed() -> None:
    rows, box = coldq.Affine(np.ones((80, 2)), np.ones(80)), coldq.Box(0.0, 1.0, dim=2)
    with pytest.raises(coldq.InvalidInput, match="gradient must be finite, but is nan"):
        coldq.slot.step.solve(
            np.zeros(2), np.array([np.nan, 0.0]), np.array(1.0), np.ones(80), rows, box
        )
