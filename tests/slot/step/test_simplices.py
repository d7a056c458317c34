"""Affine rows on products of simplices, budgets and boxes: exact, the same bits in any batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import coldq
from coldq.slot.domains import Domain
from coldq.slot.step.reference import reference_step
from coldq.solver.answer import TOLERANCE
from coldq.solver.simplices import BlockProblem, entries_of, guessed, run_blocks
from tests.adversary.affine_rows import judged

INF = np.inf


def budget(total: float, caps: list[float], equal: bool = False) -> coldq.Polytope:
    """Coordinates in [0, cap] whose sum is the total, or at most that."""
    ones, b = np.ones((1, len(caps))), [total]
    if equal:
        return coldq.Polytope(A_eq=ones, b_eq=b, lower=0.0, upper=caps)
    return coldq.Polytope(ones, b, 0.0, caps)


def products() -> list[Any]:
    """Domains made of sums of blocks."""
    return [
        coldq.Simplex(7),
        coldq.Simplex(6, total=2.0, cap=0.5),
        coldq.Product(*[coldq.Simplex(3)] * 4),
        coldq.Product(coldq.Simplex(3), coldq.Simplex(3, total=5.0), coldq.Box(-1.0, 2.0, dim=2)),
        coldq.Product(coldq.Simplex(1), coldq.Simplex(2, cap=0.5), coldq.Simplex(4, cap=0.25)),
        coldq.Product(budget(1.0, [0.3, 0.9, 2.0]), coldq.Simplex(3), coldq.Ball([1.0], 2.0)),
        coldq.Product(coldq.Simplex(3), budget(2.0, [1.0, 0.5, 1.5], equal=True)),
        coldq.Polytope(
            [[0.0, 1.0, 1.0, 0.0, 0.0, 0.0]], [1.0], [-1.0] * 6, [1.0, 1.0, 2.0, 1.0, 1.0, 3.0],
            A_eq=[[0.0, 0.0, 0.0, 0.0, 1.0, 1.0]], b_eq=[0.5],
        ),
    ]  # fmt: skip


def draw(rng: np.random.Generator, X: Domain, N: int, alpha: float = 1.0) -> tuple[Any, ...]:
    """A step whose rows meet in the domain, hinge, equality, linear and enforced ones."""
    p = X.dim
    A, inside = rng.standard_normal((N, p)), X.project(rng.standard_normal(p))
    if N > 2:
        A[1] = A[0] * rng.choice([1.0, -2.0])  # the same row, and one that is constant on sums
        A[2] = 1.0
    b = A @ inside + rng.choice([0.0, 0.3], N)
    weights = 10.0 ** rng.uniform(-1.0, 3.0, N)
    floor = np.zeros(N)
    kind = rng.integers(0, 5, N)
    weights[kind == 1] = INF
    floor[kind == 2] = -weights[kind == 2]
    floor[kind == 3] = np.where(np.isinf(weights), 0.0, weights)[kind == 3]
    center = X.project(rng.standard_normal(p))
    gradient = 3.0 * alpha * rng.standard_normal(p)
    return center, gradient, alpha, weights, coldq.Affine(A, b), X, floor


@pytest.mark.parametrize("X", products(), ids=str)
def test_a_step_is_no_worse_than_the_oracles_and_passes_the_judge(X: Any) -> None:
    assert X.blocks is not None
    rng = np.random.default_rng(X.dim)
    for k in range(24):
        *given, floor = draw(rng, X, int(rng.integers(0, 8)), alpha=10.0 ** rng.uniform(-1.0, 1.0))
        center, gradient, alpha, weights, g, _ = given
        step = coldq.penalised_step(*given, multiplier_lower=floor)
        assert step.residual <= TOLERANCE
        if k < 8:
            x, _ = reference_step(*given, multiplier_lower=floor)
            np.testing.assert_allclose(step.x, x, atol=1e-5 * (1.0 + np.abs(x).max()))
        assert judged(center, gradient, alpha, weights, floor, g.A, g.b, X)(step) <= TOLERANCE


@pytest.mark.parametrize("X", products(), ids=str)
def test_a_batch_has_the_bits_of_one_by_one(X: Any) -> None:
    rng, alone = np.random.default_rng(3), []
    for _ in range(40):
        center, gradient, alpha, weights, g, _, _ = draw(rng, X, 4)
        alone.append((center, gradient, alpha, weights, g.A, g.b))
    center, gradient, alpha, weights, A, b = map(np.array, zip(*alone, strict=True))
    together = coldq.penalised_step(center, gradient, alpha, weights, coldq.Affine(A, b), X)
    projected = X.project(gradient)
    for k, (c, d, a, w, rows, limits) in enumerate(alone):
        step = coldq.penalised_step(c, d, a, w, coldq.Affine(rows, limits), X)
        for one, all_ in zip(step, together, strict=True):
            assert np.asarray(one).tobytes() == np.asarray(all_)[k].tobytes()
        assert X.project(d).tobytes() == projected[k].tobytes()


def nearest(y: np.ndarray, total: float) -> np.ndarray:
    """The projection on a simplex by sorting, as textbooks have it."""
    down = np.sort(y)[::-1]
    mean = (np.cumsum(down) - total) / np.arange(1, y.size + 1)
    return np.maximum(y - mean[down > mean][-1], 0.0)


@pytest.mark.parametrize("p", [1, 2, 3, 4, 17, 3000])
@pytest.mark.parametrize("far", [1e-6, 1.0, 1e6])
def test_a_projection_on_a_simplex_is_that_by_sorting(p: int, far: float) -> None:
    y = far * np.random.default_rng(p).standard_normal((5, p))
    y[1] = np.round(y[1] / far) * far  # ties
    X = coldq.Simplex(p, total=2.0)
    for x, aim in zip(X.project(y), y, strict=True):
        np.testing.assert_allclose(x, nearest(aim, 2.0), atol=2e-15 * (2.0 + np.abs(aim).max()))
        assert abs(x.sum() - 2.0) <= 1e-14 + 1e-17 * p  # sums one after the other lose more
        assert X.contains(x)


def test_a_projection_on_a_budget_is_the_clip_where_that_is_within_it() -> None:
    X = coldq.Product(budget(1.0, [0.5, 0.5, 3.0]), coldq.Simplex(2))
    np.testing.assert_array_equal(X.project([0.1, -1.0, 0.2, 0.5, 0.5])[:3], [0.1, 0.0, 0.2])
    np.testing.assert_allclose(X.project([0.9, 0.2, 0.5, 4.0, 0.0]), [0.5, 0.1, 0.4, 1.0, 0.0])


def test_sums_hold_to_the_digits_of_x_where_the_aim_is_far_away() -> None:
    X = coldq.Product(coldq.Simplex(3), coldq.Simplex(5), coldq.Simplex(3, cap=0.5))
    rng = np.random.default_rng(0)
    g = coldq.Affine(rng.random((2, 11)), [0.9, 1.1])
    for alpha in (1e-10, 1e-6, 1e6):
        step = coldq.penalised_step(X.start(), rng.standard_normal(11), alpha, 50.0, g, X)
        sums = [step.x[:3].sum(), step.x[3:8].sum(), step.x[8:].sum()]
        np.testing.assert_allclose(sums, 1.0, atol=1e-14)
        assert step.residual <= TOLERANCE


def traffic(blocks: int, q: int, N: int, seed: int = 0) -> tuple[Any, ...]:
    """Dense rows whose limits are below what any decision uses: they clash."""
    rng = np.random.default_rng(seed)
    A = rng.random((N, blocks * q))
    b = A.sum(axis=1) / q * rng.uniform(0.8, 1.1, N)
    X = coldq.Product(*[coldq.Simplex(q)] * blocks)
    center = rng.dirichlet(np.ones(q), blocks).ravel()
    return center, rng.normal(0.0, 2.0, A.shape[1]), 1.0, np.full(N, 2500.0), coldq.Affine(A, b), X


def test_rows_that_cannot_all_be_met_are_solved_as_the_oracle_does() -> None:
    given = traffic(20, 5, 40)
    step = coldq.penalised_step(*given)
    center, gradient, alpha, weights, g, X = given
    assert step.residual <= TOLERANCE
    floor = np.zeros(weights.size)
    assert judged(center, gradient, alpha, weights, floor, g.A, g.b, X)(step) <= TOLERANCE
    np.testing.assert_allclose(step.x, reference_step(*given)[0], atol=1e-4)
    assert (step.multipliers == weights).any()


@pytest.mark.parametrize("thin", [False, True])
def test_an_interior_point_method_that_knows_the_sums_finds_the_piece(thin: bool) -> None:
    center, gradient, alpha, weights, g, X = traffic(30, 3, 30)
    A, n = g.A, weights.size
    if thin:
        A = sparse.csr_array(g.A)
    one = BlockProblem(
        center, gradient, np.array(alpha), np.zeros(n), weights, np.zeros(n), *entries_of(A), g.b,
        X.box.lower, X.box.upper, *X.blocks,
    )  # fmt: skip
    first = guessed(one)
    assert first is not None
    assert run_blocks(one._replace(guess=first)).residual <= TOLERANCE
    x = coldq.penalised_step(center, gradient, alpha, weights, g, X).x
    np.testing.assert_allclose(run_blocks(one._replace(guess=first)).x, x, atol=1e-8)


def test_many_simplices_with_sparse_rows_need_no_dense_array() -> None:
    blocks, q, N = 4000, 3, 40
    rng = np.random.default_rng(1)
    p = blocks * q
    A = sparse.random_array((N, p), density=0.01, rng=rng, format="csr")
    b = np.asarray(A.sum(axis=1)).ravel() / q * rng.uniform(0.8, 1.1, N)
    X = coldq.Product(*[coldq.Simplex(q)] * blocks)
    center, gradient = X.project(rng.standard_normal(p)), rng.normal(0.0, 2.0, p)
    step = coldq.penalised_step(center, gradient, 1.0, 2500.0, coldq.SparseAffine(A, b), X)
    assert step.residual <= TOLERANCE
    assert X.contains(step.x)
    # x is the projection of what its multipliers aim at, by sorting, and these are where rows hold.
    aim = center - 0.5 * (gradient + step.multipliers @ A)
    parts = np.concatenate([nearest(part, 1.0) for part in aim.reshape(-1, q)])
    np.testing.assert_allclose(step.x, parts, atol=1e-11)
    over = A @ step.x - b
    assert (over <= 1e-9).all()
    assert ((step.multipliers == 0.0) | (np.abs(over) <= 1e-9)).all()
    assert not {"hard", "rows"} & X.__dict__.keys()


@pytest.mark.parametrize(("total", "cap"), [(1.0, INF), (3.0, 0.25)])
def test_dense_rows_on_a_simplex_where_most_of_x_is_zero(total: float, cap: float) -> None:
    p, N, rng = 600, 12, np.random.default_rng(5)
    X, A = coldq.Simplex(p, total=total, cap=min(cap, total)), rng.random((4, N, p))
    b = 0.8 * total * A.mean(axis=2)
    center, gradient = X.project(rng.standard_normal((4, p))), rng.normal(0.0, 2.0, (4, p))
    steps = coldq.penalised_step(center, gradient, 1.0, 2500.0, coldq.Affine(A, b), X)
    for k in range(4):
        x, multipliers, over = steps.x[k], steps.multipliers[k], A[k] @ steps.x[k] - b[k]
        assert 0 < np.count_nonzero(x) < p / 8
        assert (over <= 1e-9).all()
        assert ((multipliers == 0.0) | (np.abs(over) <= 1e-9)).all()
        assert multipliers.any()
        aim = center[k] - 0.5 * (gradient[k] + multipliers @ A[k])
        if cap == INF:
            np.testing.assert_allclose(x, nearest(aim, total), atol=1e-11)
        given = center[k], gradient[k], 1.0, np.full(N, 2500.0)
        alone = coldq.penalised_step(*given, coldq.Affine(A[k], b[k]), X)
        assert judged(*given, np.zeros(N), A[k], b[k], X)(alone) <= TOLERANCE
        assert alone.x.tobytes() == x.tobytes()
        assert alone.multipliers.tobytes() == multipliers.tobytes()


def test_hard_rows_that_clash_are_told_and_those_that_meet_are_not() -> None:
    X = coldq.Product(coldq.Simplex(3), coldq.Simplex(3))
    at_most = coldq.Affine([[1.0, 1.0, 1.0, 0.0, 0.0, 0.0]], [1.0])  # met with equality everywhere
    start = X.start()
    step = coldq.penalised_step(start, np.arange(6.0), 1.0, INF, at_most, X)
    np.testing.assert_allclose(step.x, [0.75, 0.25, 0.0, 0.75, 0.25, 0.0], atol=1e-12)
    with pytest.raises(coldq.Infeasible):
        coldq.penalised_step(start, np.arange(6.0), 1.0, INF, at_most.tightened(1e-3), X)


def test_what_is_not_a_sum_of_blocks_is_none() -> None:
    weighted = coldq.Polytope([[1.0, 2.0]], [1.0], 0.0, 1.0)
    overlapping = coldq.Polytope([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]], [1.0, 1.0], 0.0, 1.0)
    apart = coldq.Polytope([[1.0, 0.0, 1.0]], [1.0], 0.0, 1.0)
    for X in (weighted, overlapping, apart, coldq.Ball([0.0, 0.0], 1.0)):
        assert X.blocks is None
        assert coldq.Product(X, coldq.Simplex(2)).blocks is None
    assert coldq.Box(0.0, 1.0, dim=2).blocks is None


def test_sparse_hard_rows_have_the_price_that_a_steep_loss_makes() -> None:
    p, steep = 3, 1e10
    A, b = sparse.csr_array(np.tile(np.eye(p), (20, 1))), np.full(60, 2.0)
    b[0] = 0.1  # x_0 <= 0.1, where the loss would have it 1; the others say nothing
    g, center = coldq.SparseAffine(A, b), np.full(p, 1.0 / p)
    loss, X = [-steep, 0.0, 0.0], coldq.Simplex(p)
    step = coldq.penalised_step(center, loss, 1.0, INF, g, X, multiplier_lower=np.zeros(60))
    np.testing.assert_allclose(step.x, [0.1, 0.45, 0.45], rtol=1e-9)
    price = steep + 2.0 * (1.0 / p - 0.1) + 2.0 * (0.45 - 1.0 / p)
    np.testing.assert_allclose(step.multipliers[0], price, rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_from_inside_prices_far_beyond_a_simplex_are_told_apart(seed: int) -> None:
    """Rows in raw units that cannot all be met: whose multipliers are at their weights."""
    rng, p, N, X = np.random.default_rng(seed), 120, 80, coldq.Simplex(120)
    A, center = 500.0 * rng.normal(size=(N, p)), X.start()
    rows = coldq.Affine(A, A @ X.project(rng.random(p)) - rng.uniform(50.0, 150.0, N))
    weights, gradient = np.full(N, 2e6), 0.2 * rng.normal(size=p)
    step = coldq.penalised_step(center, gradient, 0.09, weights, rows, X)
    g, terms = rows.value(step.x), np.abs(A) @ step.x + np.abs(rows.b)
    above, below = g > 1e-7 * terms, g < -1e-7 * terms
    assert step.residual <= TOLERANCE
    assert above.sum() > 20
    one = BlockProblem(
        center, gradient, np.array(0.09), np.zeros(N), weights, np.zeros(N), *entries_of(A), rows.b,
        X.box.lower, X.box.upper, *X.blocks,
    )  # fmt: skip
    found = guessed(one)
    assert found is not None
    np.testing.assert_array_equal(found[above], weights[above])
    np.testing.assert_array_equal(found[below], 0.0)


def in_blocks(kind: str) -> Any:
    """Many small simplices, few large ones, or all kinds of blocks."""
    if kind == "small":
        return coldq.Product(*[coldq.Simplex(3)] * 20)
    if kind == "large":
        return coldq.Product(coldq.Simplex(30), coldq.Simplex(30, cap=0.2))
    box = coldq.Box(-1.0, [*[1.0] * 9, -1.0])  # one coordinate cannot move
    return coldq.Product(box, budget(1.5, [1.0] * 25), coldq.Simplex(25))


@pytest.mark.parametrize("kind", ["small", "large", "all"])
@pytest.mark.parametrize("N", [25, 50, 150])  # by systems over the rows and over the coordinates
def test_dense_rows_that_clash_are_solved_in_every_kind_of_block(kind: str, N: int) -> None:
    X, rng = in_blocks(kind), np.random.default_rng(N)
    A = rng.normal(size=(N, X.dim))
    b = A @ X.project(rng.normal(size=X.dim)) - rng.uniform(0.0, 1.0, N)
    weights = 10.0 ** rng.uniform(0.0, 3.0, N)
    floor = np.where(rng.random(N) < 0.2, -weights, 0.0)
    given = X.start(), rng.normal(size=X.dim), 1.0, weights, coldq.Affine(A, b), X
    step = coldq.penalised_step(*given, multiplier_lower=floor)
    assert step.residual <= TOLERANCE
    assert judged(*given[:4], floor, A, b, X)(step) <= TOLERANCE
    np.testing.assert_allclose(step.x, reference_step(*given, multiplier_lower=floor)[0], atol=1e-4)


@pytest.mark.parametrize("N", [25, 150])
def test_dense_rows_and_sparse_ones_have_the_same_way_from_inside(N: int) -> None:
    X, rng = in_blocks("all"), np.random.default_rng(N)
    A, n = rng.normal(size=(N, X.dim)), N
    b = A @ X.project(rng.normal(size=X.dim)) - rng.uniform(0.0, 1.0, N)
    center, gradient, weights = X.start(), rng.normal(size=X.dim), np.full(N, 100.0)
    found = []
    for rows in (A, sparse.csr_array(A)):
        one = BlockProblem(
            center, gradient, np.array(1.0), np.zeros(n), weights, np.zeros(n), *entries_of(rows),
            b, X.box.lower, X.box.upper, *X.blocks,
        )  # fmt: skip
        found.append(guessed(one))
    np.testing.assert_allclose(*found, atol=1e-5 * weights[0])  # guesses, but for bounds
