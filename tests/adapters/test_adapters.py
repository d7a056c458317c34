"""Constraints from JAX and PyTorch functions; `make check SUITE=adapters` runs these with both."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import coldq

A = np.random.default_rng(0).standard_normal((2, 3, 4))
X = coldq.Box(-1.0, 1.0, dim=4)


def by_hand() -> coldq.Convex:
    def shares(x: np.ndarray) -> np.ndarray:
        e = np.exp(A @ x)
        return e / e.sum(axis=1, keepdims=True)

    def hessian(x: np.ndarray) -> np.ndarray:
        w = shares(x)
        mean = np.einsum("nk,nki->ni", w, A)
        return np.einsum("nk,nki,nkj->nij", w, A, A) - mean[:, :, None] * mean[:, None, :]

    return coldq.Convex(
        lambda x: np.log(np.exp(A @ x).sum(axis=1)) - 0.5,
        lambda x: np.einsum("nk,nki->ni", shares(x), A),
        hessian,
        n_constraints=2,
    )


def log_sum_exp_jax(x):
    return jax.nn.logsumexp(jnp.asarray(A) @ x, axis=1) - 0.5


def log_sum_exp_torch(x):
    return torch.logsumexp(torch.tensor(A) @ x, dim=1) - 0.5


BOTH = [
    lambda **how: coldq.adapters.from_jax(log_sum_exp_jax, 2, **how),
    lambda **how: coldq.adapters.from_torch(log_sum_exp_torch, 2, **how),
]


@pytest.mark.parametrize("adapt", BOTH)
def test_derivatives_are_those_by_hand_in_float64(adapt) -> None:
    g, x = adapt(), np.array([0.3, -0.2, 0.1, 0.7])
    for name in ("value", "jacobian", "hessian"):
        ours = getattr(g, name)(x)
        assert ours.dtype == np.float64
        np.testing.assert_allclose(ours, getattr(by_hand(), name)(x), rtol=1e-12, atol=1e-14)
    assert g.value(np.zeros((5, 4))).shape == (5, 2)


@pytest.mark.parametrize("adapt", BOTH)
@pytest.mark.parametrize("hessian", [True, False])
def test_a_step_is_the_one_by_hand(adapt, hessian: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        arguments = rng.uniform(-1, 1, 4), 3.0 * rng.standard_normal(4), 1.0, 50.0
        ours = coldq.penalised_step(*arguments, adapt(hessian=hessian), X)
        expected = coldq.penalised_step(*arguments, by_hand(), X)
        np.testing.assert_allclose(ours.x, expected.x, atol=1e-8 if hessian else 1e-3)


@pytest.mark.parametrize("adapt", BOTH)
def test_a_learner_takes_them(adapt) -> None:
    learner = coldq.COLDQ(X, horizon=20)
    state, other = learner.init(2), learner.init(2)
    for k in range(5):
        loss = coldq.Linear(np.sin(np.arange(4.0) + k))
        state = learner.update(state, coldq.Feedback(loss, adapt()))
        other = learner.update(other, coldq.Feedback(loss, by_hand()))
    np.testing.assert_allclose(state.x, other.x, atol=1e-8)


def test_one_number_is_one_row() -> None:
    g = coldq.adapters.from_jax(lambda x: jnp.sum(x * x) - 1.0)
    h = coldq.adapters.from_torch(lambda x: (x * x).sum() - 1.0)
    for constraint in (g, h):
        np.testing.assert_allclose(constraint.value([2.0, 0.0]), [3.0])
        np.testing.assert_allclose(constraint.hessian([2.0, 0.0]), 2.0 * np.eye(2)[None])


def test_a_wrong_number_of_rows_is_reported_with_the_point() -> None:
    g = coldq.adapters.from_jax(log_sum_exp_jax, 3)
    with pytest.raises(coldq.InvalidInput, match=r"must return shape \(3,\).*at x = "):
        g.value(np.zeros(4))
