"""Max-affine rows on a box in one compiled call: conditions of an answer, and what others solve."""

from __future__ import annotations

import numpy as np
import pytest

import coldq
from coldq.solver.answer import TOLERANCE
from coldq.solver.max_affine import CLEAR, MaxAffineProblem, solve_hinges
from coldq.step import solve

RNG = np.random.default_rng(2)


def hinges(p: int, rows: int, pieces: int, weight: float) -> MaxAffineProblem:
    group = np.repeat(np.arange(rows, dtype=float), pieces)
    return MaxAffineProblem(
        RNG.normal(size=p), RNG.normal(size=p), np.array(1.5), np.zeros(rows),
        np.full(rows, weight), RNG.normal(size=(group.size, p)), RNG.normal(size=group.size),
        group, np.full(p, -2.0), np.full(p, 2.0),
    )  # fmt: skip


@pytest.mark.parametrize(("p", "rows", "pieces"), [(1, 2, 3), (5, 3, 4), (12, 2, 3), (20, 1, 5)])
def test_hinges_on_a_box_are_solved_by_the_kernel_alone(p: int, rows: int, pieces: int) -> None:
    one = hinges(p, rows, pieces, 3.0)
    x, mu, above, multipliers, residual = solve_hinges(one)
    values = (one.A @ x - one.b).reshape(rows, pieces)
    largest = values.max(axis=1)
    assert residual <= CLEAR
    y = one.center - one.gradient / (2.0 * one.alpha)
    np.testing.assert_allclose(x, np.clip(y - one.A.T @ mu, -2.0, 2.0), atol=1e-10)
    np.testing.assert_allclose(above, np.maximum(largest, 0.0), atol=1e-10)
    sums = mu.reshape(rows, pieces).sum(axis=1)
    np.testing.assert_allclose(multipliers, 2.0 * one.alpha * sums, rtol=1e-10)
    assert (mu.reshape(rows, pieces) * (largest[:, None] - values) <= 1e-9).all()


def test_rows_that_are_no_hinges_are_left_to_others() -> None:
    one = hinges(4, 2, 3, 3.0)
    for change in (
        {"floor": one.weights},
        {"weights": np.array([3.0, np.inf])},
        {"weights": np.array([3.0, 0.0])},
        {"upper": one.lower},
    ):
        assert solve_hinges(one._replace(**change))[-1] == np.inf


def test_a_batch_of_max_affine_rows_some_of_them_hard_is_solved() -> None:
    A, b = RNG.normal(size=(6, 3, 4, 5)), RNG.normal(size=(6, 3, 4)) + 1.0
    weights = np.where(np.arange(6) % 3 == 0, np.inf, 2.0)[:, None] * np.ones(3)
    given = RNG.normal(size=(2, 6, 5))
    domain, rows = coldq.Box(-3.0, 3.0, dim=5), coldq.MaxAffine(A, b)
    step = solve(given[0], given[1], np.array(1.0), weights, rows, domain)
    assert (np.asarray(step.residual) <= TOLERANCE).all()
    for k in range(6):
        one = coldq.MaxAffine(A[k], b[k])
        alone = solve(given[0, k], given[1, k], np.array(1.0), weights[k], one, domain)
        np.testing.assert_array_equal(alone.x, step.x[k])
        np.testing.assert_array_equal(alone.multipliers, step.multipliers[k])
