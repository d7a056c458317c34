"""The last resort: its answers meet the conditions of the general problem."""

from __future__ import annotations

import numpy as np
import pytest

from coldq.solver.interior_point import EXTENDED_TOLERANCE, Problem, answers

GROUPS = np.array(
    [0, 1, 2, 3, 3, 4, 4, 5, 5]
)  # two with a matrix; hinges, a linear one, enforced ones
COST = np.array([0.3, 2.0, 0.0, 1.5, 0.7, np.inf])
FREE = np.arange(6) == 4


def drawn(rng: np.random.Generator, p: int, scale: float, bent: int) -> Problem:
    """Rows of all kinds on a box, of which one coordinate is fixed; a point has room in all."""
    inside, roots = rng.uniform(-0.5, 0.5, p), rng.normal(size=(bent, p, p))
    inside[-1] = 1.0
    P = roots @ np.swapaxes(roots, 1, 2)
    A, E = rng.normal(size=(9, p)), rng.normal(size=(1, p))
    b = A @ inside + rng.uniform(-1.0, 1.0, 9)
    b[:bent] += 0.5 * (P @ inside) @ inside
    b[GROUPS == 5] = (A @ inside)[GROUPS == 5] + 0.2
    lower, upper = np.full(p, -1.0), np.full(p, 2.0)
    upper[-1] = lower[-1] = 1.0
    lean = np.where(GROUPS < 3, rng.uniform(0.0, 0.5, 9), 0.0)
    twice = np.concatenate([E, 2.0 * E])  # the second one says nothing new
    return Problem(
        rng.normal(size=p), scale * rng.normal(size=p), 0.5, P, A, b, GROUPS, lean, scale * COST,
        FREE, twice, twice @ inside, lower, upper,
    )  # fmt: skip


@pytest.mark.parametrize("p", [3, 12])
@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("bent", "seed"), [(2, 0), *((0, seed) for seed in range(10))])
def test_an_answer_meets_the_optimality_conditions(
    p: int, scale: float, known: bool, bent: int, seed: int
) -> None:
    one = drawn(np.random.default_rng(p + 100 * seed), p, scale, bent)
    guess = np.zeros(p), np.zeros(9), np.zeros(2)
    if known:
        guess, _ = next(answers(one, guess, known=False))
    (x, mu, nu), left = next(answers(one, guess, known))
    assert left <= EXTENDED_TOLERANCE
    J = one.A.copy()
    J[:bent] += one.P @ x
    g = one.A @ x - one.b
    g[:bent] += 0.5 * (one.P @ x) @ x
    pulled = one.center - one.gradient - J.T @ (mu + one.lean) - one.E.T @ nu
    np.testing.assert_allclose(x, np.clip(pulled, one.lower, one.upper), atol=1e-9 * scale)
    np.testing.assert_allclose(one.E @ x, one.e, atol=1e-12)
    assert (mu >= 0.0).all()
    for k in range(6):
        own, total, cost = g[one.group == k], mu[one.group == k].sum(), scale * COST[k]
        assert (mu[one.group == k] * (own.max() - own) <= 1e-9 * scale).all()
        if np.isinf(cost):
            assert own.max() <= 1e-9 and total * -own.max() <= 1e-9 * scale
        elif FREE[k]:
            assert total == pytest.approx(cost, rel=1e-12)
        else:
            assert total <= cost * (1.0 + 1e-12)
            assert own.max() <= 1e-9 or total == pytest.approx(cost, rel=1e-12)
            assert own.max() >= -1e-9 or total == 0.0
