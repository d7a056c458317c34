"""Every kind of constraint can be tightened: g + margin, a margin for each row, over a batch."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import coldq

X = coldq.Box(-3.0, 3.0, dim=2)
KINDS = {
    "affine": coldq.Affine([[1.0, 2.0], [-1.0, 0.5]], [1.0, 2.0]),
    "sparse": coldq.SparseAffine(sparse.csr_array([[1.0, 0.0], [-1.0, 0.5]]), [1.0, 2.0]),
    "capacity": coldq.LogCapacity(1.0, [1.0, 2.0], [0.3, 0.2]),
    "quadratic": coldq.QuadraticConstraint(
        [[[2.0, 0.0], [0.0, 1.0]], [[1.0, 0.5], [0.5, 1.0]]], [[0.0, 1.0], [1.0, 0.0]], [4.0, 3.0]
    ),
    "low rank": coldq.QuadraticConstraint.low_rank(
        [[1.0, 0.5]], [[[1.0], [2.0]]], [[0.5, 0.0]], [3.0]
    ),
    "diagonal": coldq.QuadraticConstraint.ball([[0.5, 0.0]], [2.0]),
    "max-affine": coldq.MaxAffine([[[1.0, 0.0], [-1.0, 1.0]]], [[2.0, 1.0]]),
    "convex": coldq.Convex(
        lambda x: [np.exp(x[0]) + x[1] - 3.0],
        lambda x: [[np.exp(x[0]), 1.0]],
        lambda x: [[[np.exp(x[0]), 0.0], [0.0, 0.0]]],
    ),
    "vectorised": coldq.Convex(
        lambda x: (x * x).sum(-1)[..., None] - 4.0,
        lambda x: 2.0 * x[..., None, :],
        vectorised=True,
    ),
}
KINDS["stacked"] = coldq.Stacked(KINDS["affine"], KINDS["convex"], KINDS["diagonal"])
AT = np.array([[0.5, -1.0], [1.0, 2.0], [-0.2, 0.3]])


@pytest.mark.parametrize("kind", KINDS)
def test_the_margin_is_added_to_every_row_and_the_jacobian_stays(kind) -> None:
    g = KINDS[kind]
    n = g.n_constraints
    for margin in (0.25, np.arange(1.0, n + 1.0), np.linspace(0.0, 1.0, 3 * n).reshape(3, n)):
        tight = g.tightened(margin)
        assert np.allclose(tight.value(AT), g.value(AT) + margin, rtol=0.0, atol=1e-14)
        assert np.array_equal(tight.jacobian(AT), g.jacobian(AT))
        assert tight.n_constraints == n
    twice = g.tightened(0.25).tightened(0.5)
    assert np.allclose(twice.value(AT), g.value(AT) + 0.75, rtol=0.0, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_of_margins_steps_as_one_by_one(kind) -> None:
    g = KINDS[kind]
    margins = np.linspace(0.0, 0.5, 3)[:, None] * np.ones(g.n_constraints)
    cost = [-1.0, -0.7] if kind != "capacity" else [1.0, 0.7]
    together = coldq.penalised_step(AT, cost, 0.01, 1e3, g.tightened(margins), X)
    for k, margin in enumerate(margins):
        alone = coldq.penalised_step(AT[k], cost, 0.01, 1e3, g.tightened(margin), X)
        assert np.array_equal(together.x[k], alone.x)
        worst = g.value(alone.x).max()
        assert worst <= -margin[0] + 1e-6  # the raw rows keep their distance
    assert g.value(together.x[0]).max() == pytest.approx(0.0, abs=1e-6)  # and reach zero without


def test_a_measured_constraint_moves_with_its_measurement() -> None:
    g = coldq.Affine.from_measurement([2.0], [4.0], [[4.0]]).tightened([0.5])
    assert g.value([2.0]) == [4.5]
    assert g.b == [3.5]
    with pytest.raises(coldq.NotRevealed):
        g.value([1.0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_margin_for_other_rows_or_a_batch_that_does_not_fit_is_refused(kind) -> None:
    g = KINDS[kind]
    for bad in (np.ones(g.n_constraints + 1), [np.nan] * g.n_constraints, "wide"):
        with pytest.raises(coldq.InvalidInput, match="margin"):
            g.tightened(bad)
    if kind != "sparse":
        batched = g.tightened(np.ones((3, g.n_constraints)))
        with pytest.raises(coldq.InvalidInput, match=r"margin|fit"):
            batched.tightened(np.ones((2, g.n_constraints)))


def test_nothing_to_tighten_stays_nothing() -> None:
    g = coldq.Unconstrained()
    assert g.tightened(1.0) is g
