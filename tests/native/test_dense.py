"""Weighted products, factors and solutions of dense systems, beside NumPy's and exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from coldq import _native
from coldq.base.arrays import Array

SIZES = [(1, 1), (2, 3), (5, 4), (7, 19), (16, 33), (49, 48), (60, 101), (130, 65)]


def given(n: int, p: int, columns: bool) -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng(n + 1000 * p)
    m, terms = (p, n) if columns else (n, p)
    return (
        rng.normal(size=(n, p)),
        rng.uniform(0.1, 10.0, terms),
        rng.uniform(0.1, 1.0, m),
        rng.normal(size=m),
    )


@pytest.mark.parametrize("extended", ["", "_extended"])
@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize(("n", "p"), SIZES)
def test_they_are_those_of_numpy(n: int, p: int, columns: bool, extended: str) -> None:
    A, w, diagonal, right = given(n, p, columns)
    system = getattr(_native, ("column" if columns else "row") + "_system" + extended)
    H, U, d, sound = system(A, w, diagonal, right)
    whole = np.diag(diagonal) + (A.T * w @ A if columns else A * w @ A.T)
    np.testing.assert_allclose(H, np.triu(whole), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(U, np.linalg.cholesky(whole).T, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(whole @ d, right, rtol=1e-9, atol=1e-9)
    assert sound == 1.0


def test_every_entry_adds_its_terms_one_after_the_other() -> None:
    A, w, diagonal, right = given(60, 21, True)
    H = _native.column_system(A, w, diagonal, right)[0]
    expected = np.diag(diagonal)
    for k in range(60):
        expected += np.outer(w[k] * A[k], A[k])
    assert H.tobytes() == np.triu(expected).tobytes()
    turned = _native.row_system(np.ascontiguousarray(A.T), w, diagonal, right)[0]
    assert turned.tobytes() == H.tobytes()


def test_twice_the_digits_solve_what_loses_all_of_a_double() -> None:
    m = 6
    A = np.array([[1.0 / (i + j + 1) for j in range(m)] for i in range(m)])  # condition 1e7
    w, right = np.ones(m), np.ones(m)
    diagonal = np.full(m, 1e-300)
    H = [[sum(Fraction(A[k, i]) * Fraction(A[k, j]) for k in range(m)) for j in range(m)]
         for i in range(m)]  # fmt: skip
    rows = [[*line, Fraction(1)] for line in H]
    for c in range(m):  # Gauss and Jordan's elimination, without rounding
        rows[c] = [number / rows[c][c] for number in rows[c]]
        for r in set(range(m)) - {c}:
            rows[r] = [x - rows[r][c] * y for x, y in zip(rows[r], rows[c], strict=True)]
    exact = np.array([float(line[-1]) for line in rows])
    near, far = (
        np.abs(system(A, w, diagonal, right)[2] / exact - 1.0).max()
        for system in (_native.column_system_extended, _native.column_system)
    )
    assert near <= 1e-14 < 1e-6 <= far


@pytest.mark.parametrize("extended", ["", "_extended"])
def test_a_pivot_that_is_lost_is_raised_and_told(extended: str) -> None:
    A = np.array([[1.0, 2.0], [2.0, 4.0], [0.0, 1.0]])
    w, nothing, right = np.ones(2), np.zeros(3), np.array([1.0, 2.0, 0.0])
    _, U, _, sound = getattr(_native, "row_system" + extended)(A, w, nothing, right)
    assert sound == 0.0
    assert np.isfinite(U).all() and U[1, 1] == pytest.approx(np.sqrt(20.0 * 1e-14))
    zero = getattr(_native, "row_system" + extended)(np.zeros((1, 2)), w, np.zeros(1), right[:1])
    assert [float(part.item()) for part in zero[1:]] == [1.0, 1.0, 0.0]
