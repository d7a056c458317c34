"""Max-affine rows in one native call: the conditions of an answer."""

from __future__ import annotations

import numpy as np
import pytest

import coldq
from coldq.slot.step import solve
from coldq.solver.answer import TOLERANCE
from coldq.solver.max_affine import MaxAffineProblem, solve_batch

RNG = np.random.default_rng(2)


def drawn(p: int, rows: int, pieces: int, plain: int = 0, equal: int = 0) -> MaxAffineProblem:
    """Hinges, a linear row and a hard one on a box, beside plain rows; a point has room in all."""
    group = np.repeat(np.arange(rows, dtype=float), pieces)
    floor, weights = np.zeros(rows), np.full(rows, 3.0)
    floor[1:2], weights[2:3] = 3.0, np.inf
    inside, b = RNG.uniform(-1.0, 1.0, size=p), RNG.normal(size=group.size)
    A, beside = RNG.normal(size=(group.size, p)), RNG.normal(size=(plain + equal, p))
    b[group == 2.0] = (A @ inside)[group == 2.0] + 0.1
    limit = beside @ inside + np.repeat([0.1, 0.0], [plain, equal])
    return MaxAffineProblem(
        RNG.normal(size=p), 5.0 * RNG.normal(size=p), np.array(1.5), floor, weights, A, b, group,
        beside, limit, np.repeat([0.0, -np.inf], [plain, equal]), np.full(p, -2.0), np.full(p, 2.0),
    )  # fmt: skip


SIZES = [(1, 2, 3, 0, 0), (5, 3, 4, 0, 0), (12, 2, 3, 2, 1), (20, 1, 5, 0, 2), (4, 4, 6, 1, 2)]


@pytest.mark.parametrize("sizes", SIZES)
def test_an_answer_meets_the_optimality_conditions(sizes: tuple[int, ...]) -> None:
    one = drawn(*sizes)
    rows, pieces = sizes[1:3]
    x, mu, nu, multipliers, residual = solve_batch(one)
    assert residual <= TOLERANCE
    y = one.center - one.gradient / (2.0 * one.alpha)
    pulled = y - one.A.T @ mu - one.plain.T @ nu
    np.testing.assert_allclose(x, np.clip(pulled, -2.0, 2.0), atol=1e-8)
    values = (one.A @ x - one.b).reshape(rows, pieces)
    largest, shares = values.max(axis=1), mu.reshape(rows, pieces)
    assert (mu >= 0.0).all()
    assert (shares * (largest[:, None] - values) <= 1e-8).all()
    np.testing.assert_allclose(multipliers, 2.0 * one.alpha * shares.sum(axis=1), atol=1e-8)
    assert (one.multiplier_lower <= multipliers).all() and (
        multipliers <= one.multiplier_upper
    ).all()
    assert (largest[multipliers < one.multiplier_upper] <= 1e-8).all()
    assert (largest[multipliers > one.multiplier_lower] >= -1e-8).all()
    over = one.plain @ x - one.limit
    equal = np.isinf(one.least)
    assert (over <= 1e-8).all() and (np.abs(over[equal]) <= 1e-8).all()
    assert (nu[~equal] >= 0.0).all() and (nu[~equal] * over[~equal] >= -1e-8).all()


def test_what_depends_on_others_changes_nothing() -> None:
    one = drawn(5, 3, 4, 1, 2)
    twice = one._replace(
        plain=np.concatenate([one.plain, one.plain]), limit=np.concatenate([one.limit, one.limit]),
        least=np.concatenate([one.least, one.least]), A=np.concatenate([one.A, one.A]),
        b=np.concatenate([one.b, one.b]), group=np.concatenate([one.group, one.group]),
    )  # fmt: skip
    x, _, _, multipliers, residual = solve_batch(twice)
    assert residual <= TOLERANCE
    np.testing.assert_allclose(x, solve_batch(one)[0], atol=1e-8)
    np.testing.assert_allclose(multipliers, solve_batch(one)[3], atol=1e-8)


def test_a_batch_of_max_affine_rows_some_of_them_hard_is_solved() -> None:
    rng = np.random.default_rng(7)
    A, inside = rng.normal(size=(6, 3, 4, 5)), rng.uniform(-1.0, 1.0, size=5)
    b = A @ inside + rng.uniform(0.1, 1.0, size=(6, 3, 4))  # a point that keeps all rows
    weights = np.where(np.arange(6) % 3 == 0, np.inf, 2.0)[:, None] * np.ones(3)
    given = rng.normal(size=(2, 6, 5))
    domain, rows = coldq.Box(-3.0, 3.0, dim=5), coldq.MaxAffine(A, b)
    step = solve(given[0], given[1], np.array(1.0), weights, rows, domain)
    assert (np.asarray(step.residual) <= TOLERANCE).all()
    for k in range(6):
        one = coldq.MaxAffine(A[k], b[k])
        alone = solve(given[0, k], given[1, k], np.array(1.0), weights[k], one, domain)
        np.testing.assert_array_equal(alone.x, step.x[k])
        np.testing.assert_array_equal(alone.multipliers, step.multipliers[k])


@pytest.mark.parametrize("integer", [False, True])
def test_rows_without_a_limit_that_meet_at_zero_have_multipliers(integer: bool) -> None:
    """More rows than coordinates hold x at zero: there is no size of x to tell them apart by."""
    rng = np.random.default_rng(11)
    for _ in range(200):
        p, rows = int(rng.integers(1, 5)), int(rng.integers(3, 7))
        slopes = rng.normal(size=(rows, p)) if not integer else rng.integers(-2, 3, (rows, p))
        A = np.asarray(slopes, float)
        pieces = rng.normal(size=(2, 3, p))
        room = np.array([rng.uniform(0.1, 1.0, 3), -rng.uniform(0.1, 1.0, 3)])  # below, above zero
        weights = rng.uniform(0.1, 1e3, size=rows + 2)
        g = coldq.Stacked(coldq.Affine(A, np.zeros(rows)), coldq.MaxAffine(pieces, room))
        # Zero is the answer: y is what multipliers within their bounds pull.
        steep = pieces[1, room[1].argmin()]
        y = (rng.random(rows) * weights[:rows]) @ A + weights[-1] * steep
        step = coldq.penalised_step(y, np.zeros(p), 0.5, weights, g, coldq.Box(-1.0, 2.0, dim=p))
        assert np.abs(step.x).max() <= 1e-9
        lam = step.multipliers
        assert ((lam >= 0.0) & (lam <= weights)).all() and lam[rows] == 0.0
        pulled = lam[:rows] @ A + lam[-1] * steep
        np.testing.assert_allclose(
            pulled, y, atol=1e-9 * (1.0 + weights @ np.abs(np.vstack([A, steep, steep]))).max()
        )
