"""Stacks of rows: as one constraint where that is one, and as exact as their parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import coldq
from coldq.slot.step.reference import reference_step

P = 6
DOMAINS = {
    "box": coldq.Box(-1.0, 2.0, dim=P),
    "simplex": coldq.Simplex(P),
    "ball": coldq.Ball(np.zeros(P), 1.5),
    "product": coldq.Product(coldq.Simplex(3), coldq.Box(0.0, 1.0, dim=3)),
}


def drawn(seed: int, parts: str) -> Iterator[Any]:
    """A part for each letter: a dense rows, s sparse ones, m max-affine ones, u none."""
    rng = np.random.default_rng(seed)
    for letter in parts:
        A, b = rng.normal(size=(3, P)), 0.3 * rng.normal(size=3)
        if letter == "m":
            yield coldq.MaxAffine(rng.normal(size=(3, 4, P)), 0.3 * rng.normal(size=(3, 4)))
        elif letter == "u":
            yield coldq.Unconstrained()
        else:
            thin = sparse.csr_array(A * (rng.random(A.shape) < 0.5))
            yield coldq.Affine(A, b) if letter == "a" else coldq.SparseAffine(thin, b)


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("parts", ["a", "aa", "aua", "aaa", "ss", "sa", "us"])
def test_affine_rows_on_top_of_one_another_have_the_bits_of_one_constraint(parts, domain) -> None:
    rows = [row for row in drawn(1, parts) if row.n_constraints]
    dense = [row.dense() if isinstance(row, coldq.SparseAffine) else row for row in rows]
    A, b = (np.concatenate([getattr(row, name) for row in dense]) for name in ("A", "b"))
    one: Any = coldq.Affine(A, b)
    if "s" in parts:
        one = coldq.SparseAffine(sparse.csr_array(A), b)
    rng = np.random.default_rng(2)
    center, gradient = DOMAINS[domain].project(rng.normal(size=(4, P))), rng.normal(size=(4, P))
    weights = rng.uniform(0.1, 9.0, b.size)
    given = center, 5.0 * gradient, 1.0, weights
    stacked = coldq.penalised_step(*given, coldq.Stacked(*drawn(1, parts)), DOMAINS[domain])
    whole = coldq.penalised_step(*given, one, DOMAINS[domain])
    assert stacked.x.tobytes() == whole.x.tobytes()
    assert stacked.multipliers.tobytes() == whole.multipliers.tobytes()


def test_leading_axes_of_affine_parts_broadcast() -> None:
    rng = np.random.default_rng(3)
    many = coldq.Affine(rng.normal(size=(5, 2, P)), rng.normal(size=(5, 2)))
    (thin,) = drawn(4, "s")
    center, gradient = np.zeros(P), rng.normal(size=(5, P))
    stack = coldq.Stacked(many, thin)
    step = coldq.penalised_step(center, gradient, 1.0, 3.0, stack, DOMAINS["box"])
    for k in range(5):
        own = coldq.Stacked(many.member((k,), (5,)), thin.dense())
        alone = coldq.penalised_step(center, gradient[k], 1.0, 3.0, own, DOMAINS["box"])
        assert alone.x.tobytes() == step.x[k].tobytes()


@pytest.mark.parametrize("domain", ["box", "simplex", "product"])
@pytest.mark.parametrize("parts", ["am", "ma", "mm", "sma", "mua"])
def test_affine_rows_beside_max_affine_ones_are_exact(parts: str, domain: str) -> None:
    rng = np.random.default_rng(5)
    g, X = coldq.Stacked(*drawn(6, parts)), DOMAINS[domain]
    for k in range(3):
        center, gradient = X.project(rng.normal(size=P)), 5.0 * rng.normal(size=P)
        weights = rng.uniform(0.1, 9.0, g.n_constraints)
        step = coldq.penalised_step(center, gradient, 1.0, weights, g, X)
        best, least = reference_step(center, gradient, 1.0, weights, g, X)
        move = step.x - center
        value = gradient @ move + move @ move + weights @ np.maximum(g.value(step.x), 0.0)
        assert step.residual <= 1e-9
        assert value <= least + 1e-8 * abs(least), k
        np.testing.assert_allclose(step.x, best, atol=1e-4)


def test_a_price_below_zero_beside_max_affine_rows_is_refused_with_a_sentence() -> None:
    g = coldq.Stacked(*drawn(7, "am"))
    with pytest.raises(coldq.InvalidInput, match="or one beside it, is a hinge"):
        coldq.penalised_step(
            np.zeros(P), np.ones(P), 1.0, 2.0, g, DOMAINS["box"], multiplier_lower=-1.0
        )
