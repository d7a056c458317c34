"""Steps with quadratic rows, with matrices and without: the core beside NumPy and theory."""

from __future__ import annotations

import numpy as np
import pytest

from coldq import _native
from tests.native.instances import curved_drawn

NAMES = ("quadratic_step", "thin_step")
SIZES = ((1, 1), (1, 4), (3, 7), (4, 19), (9, 5), (12, 30))


def rows_at(name: str, given: list[np.ndarray], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and slopes of the rows of one instance, from their formulas."""
    if name == "quadratic_step":
        P, A, b = given[5:8]
        g, J = A @ x - b, A.copy()
        g[: len(P)] += 0.5 * np.einsum("mij,i,j->m", P, x, x)
        J[: len(P)] += P @ x
        return g, J
    d, middle, q, b, F = given[5:10]
    g = 0.5 * (d * np.square(x - middle)).sum(axis=1) + q @ x - b + 0.5 * np.square(F @ x)
    return g, d * (x - middle) + q + F * (F @ x)[:, None]


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_answers_satisfy_the_optimality_conditions(name: str, hard: bool) -> None:
    """Of a convex problem these are the answers: a normal step at x, and signs of rows."""
    for n, p in SIZES:
        given = curved_drawn(name, n, p, 20, seed=3, hard=hard)
        together = getattr(_native, name)(*given)
        for i in range(20):
            one = [array[i] for array in given]
            center, gradient, alpha, low, high = one[:5]
            lower, upper, x, lam = *one[-3:-1], together[0][i], together[1][i]
            g, J = rows_at(name, one, x)
            pull = gradient + 2.0 * alpha * (x - center) + J.T @ lam
            size = 1.0 + np.abs(gradient) + np.abs(J).T @ lam
            assert together[2][i] <= 1e-10
            assert ((lower <= x) & (x <= upper) & (pull >= -1e-9 * size))[x < upper].all()
            assert (pull <= 1e-9 * size)[x > lower].all()
            assert ((low <= lam) & (lam <= high)).all()
            assert (g <= 1e-8 * (1.0 + np.abs(J).sum(axis=1)))[lam < high].all()
            assert (g >= -1e-8 * (1.0 + np.abs(J).sum(axis=1)))[lam > low].all()


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_has_the_bits_of_one_by_one_and_a_guess_does_no_harm(name: str) -> None:
    for n, p in SIZES:
        given = curved_drawn(name, n, p, 9)
        step = getattr(_native, name)
        together = step(*given)
        for i in range(9):
            alone = step(*(array[i] for array in given))
            for whole, own in zip(together, alone, strict=True):
                assert whole[i].tobytes() == own.tobytes()
        guessed = step(*given[:-1], together[1])
        assert (guessed[2] <= 1e-10).all()
        np.testing.assert_allclose(guessed[0], together[0], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_values_slopes_and_sizes_are_those_of_the_formulas(name: str) -> None:
    rng = np.random.default_rng(2)
    for n, p in SIZES:
        given = curved_drawn(name, n, p, 4)
        x = rng.normal(size=(4, p))
        values = getattr(_native, name.replace("step", "values"))
        g, J, size, terms = values(*given[:-1], x)
        for i in range(4):
            g_there, J_there = rows_at(name, [array[i] for array in given], x[i])
            np.testing.assert_allclose(g[i], g_there, rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(J[i], J_there, rtol=1e-11, atol=1e-11)
        assert (size >= np.abs(g)).all()
        linear = given[6] if name == "quadratic_step" else given[7]
        assert (terms >= np.abs(J - linear) * (1.0 - 1e-12)).all()


def test_a_residual_says_how_far_an_answer_is_off() -> None:
    """The unit disc from (3, 4): x = (0.6, 0.8) with the multiplier 4."""
    given = [
        [3.0, 4.0], [0.0, 0.0], 1.0, [0.0], [np.inf], 2.0 * np.eye(2)[None], [[0.0, 0.0]], [1.0],
        [-9.0, -9.0], [9.0, 9.0],
    ]  # fmt: skip
    problem = [np.array(each) for each in given]

    def residual(x: list[float], multiplier: float) -> float:
        at = np.array(x)
        of_rows = _native.quadratic_values(*problem, at)
        own = (*problem[:5], *problem[8:], *of_rows, at, np.array([multiplier]))
        return float(_native.curved_residual(*own, 0.0))

    assert residual([0.6, 0.8], 4.0) <= 1e-15
    assert residual([0.6, 0.8], 4.4) == pytest.approx(0.4 * 1.2 / 2.0 / 3.6, rel=1e-6)
    assert residual([0.66, 0.88], 4.0) == pytest.approx(0.21 / 2.21, rel=1e-6)  # of the row
    assert np.isnan(residual([np.nan, 0.8], 4.0))


def test_more_matrices_than_rows_and_factors_of_no_row_are_refused() -> None:
    matrices, thin = (curved_drawn(name, 2, 3, 1) for name in NAMES)
    matrices[5] = np.zeros((1, 3, 3, 3))
    with pytest.raises(TypeError):
        _native.quadratic_step(*matrices)
    thin[10] = np.array([[0.0, np.nan]])  # counts as the first row
    as_first = [*thin[:10], np.zeros((1, 2)), *thin[11:]]
    for odd, own in zip(_native.thin_step(*thin), _native.thin_step(*as_first), strict=True):
        assert odd.tobytes() == own.tobytes()
