"""Sums in lanes, Cholesky's factor and Gauss's method, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from coldq.compiled import batch_kernel, matrix, vector
from coldq.solver.kernels.factors import cholesky, cholesky_solve, product
from coldq.solver.kernels.max_affine import eliminate

RNG = np.random.default_rng(2)
LENGTHS = [1, 2, 7, 8, 9, 15, 16, 17, 24, 31, 40, 50]


@batch_kernel("(p),(p)->()")
def sums(sizes, at):
    vector(at[2], 1)[0] = product(at[0], at[1], sizes[0])
    return 0.0


@batch_kernel("(p,p),(k),(k)->(p,p),(k)")
def solution(sizes, at):
    """The factor over the coordinates of the second operand, and what solves for the third."""
    p, k = sizes[0], sizes[1]
    L, right, given = matrix(at[3], p, p), vector(at[4], k), vector(at[2], k)
    for a in range(k):
        right[a] = given[a]
    cholesky(matrix(at[0], p, p), L, vector(at[1], k), k, 1e-14)
    cholesky_solve(L, right, k)
    return 0.0


@batch_kernel("(p,p),(p)->()")
def elimination(sizes, at):
    """Both operands are overwritten."""
    found = eliminate(matrix(at[0], sizes[0], sizes[0]), vector(at[1], sizes[0]), sizes[0])
    vector(at[2], 1)[0] = 1.0 if found else 0.0
    return 0.0


@pytest.mark.parametrize("p", LENGTHS)
def test_sums_have_all_terms(p: int) -> None:
    a, b = RNG.normal(size=(2, p))
    total = np.empty(1)
    sums()(a, b, total)
    np.testing.assert_allclose(total[0], a @ b, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("p", LENGTHS)
def test_a_factor_over_some_coordinates_solves(p: int) -> None:
    order = np.sort(RNG.permutation(p)[: p - p // 4])
    F, right = RNG.normal(size=(p, p + 2)), RNG.normal(size=order.size)
    M, L, found = F @ F.T + np.eye(p), np.zeros((p, p)), np.empty(order.size)
    whole = M[np.ix_(order, order)]
    solution()(M, order.astype(float), right, L, found)
    k = order.size
    np.testing.assert_allclose(np.tril(L[:k, :k]), np.linalg.cholesky(whole), atol=1e-12)
    np.testing.assert_allclose(whole @ found, right, atol=1e-10)


@pytest.mark.parametrize("p", LENGTHS)
def test_elimination_pivots(p: int) -> None:
    K, right = RNG.normal(size=(p, p)), RNG.normal(size=p)
    K[0, 0] = 0.0 if p > 1 else 1.0
    found, there = right.copy(), np.empty(1)
    elimination()(K.copy(), found, there)
    assert there[0] == 1.0
    np.testing.assert_allclose(K @ found, right, atol=1e-9)


def test_elimination_says_that_there_is_not_one_answer() -> None:
    there = np.empty(1)
    elimination()(np.zeros((3, 3)), np.ones(3), there)
    assert there[0] == 0.0
