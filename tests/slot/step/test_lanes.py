"""Small affine steps in lanes: the bits of one by one, whoever else is in the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coldq
from coldq.solver.api import newton_step
from coldq.solver.cascade import UNLIMITED_SYSTEMS, run_affine
from coldq.solver.problem import AffineProblem, zeros_of
from tests.instances import CATEGORIES, Instance, make_instance, residual_of

WIDEST = 8  # lanes, on any processor
ROWS, COLUMNS = 10, 20  # more rows than go in lanes, and coordinates beyond two rounds of a sum

HINGES = [name for name in CATEGORIES if name not in ("equality rows", "linear rows", "mixed rows",
                                                       "hard equalities")]  # fmt: skip


def stacked(parts: list[Instance]) -> AffineProblem:
    """Hinges as a batch."""
    center, gradient, alpha, _, weights, A, b, lower, upper = (
        np.stack([np.asarray(part[k]) for part in parts]) for k in range(9)
    )
    zeros = zeros_of(b.shape[-1])
    return AffineProblem(center, gradient, alpha, zeros, weights, zeros, A, b, lower, upper)


def one_by_one(problem: AffineProblem) -> list[tuple[np.ndarray, ...]]:
    """Every member by a call of its own, in which nothing is beside it."""
    batch = problem.center.shape[:-1]
    full = [
        np.broadcast_to(a, batch + np.shape(a)[np.ndim(a) - c :])
        for a, c in zip(problem, problem.cores, strict=True)
    ]
    answers = []
    for where in np.ndindex(*batch):
        alone = newton_step(*(np.array(a[where]) for a in full), UNLIMITED_SYSTEMS)
        answers.append(tuple(np.asarray(part) for part in alone))
    return answers


def require_same_bits(problem: AffineProblem) -> Any:
    together = run_affine(problem)
    p, n = problem.center.shape[-1], problem.b.shape[-1]
    x, multipliers = together.x.reshape(-1, p), together.multipliers.reshape(-1, n)
    residual = together.residual.ravel()
    for k, one in enumerate(one_by_one(problem)):
        assert residual[k].tobytes() == one[2].tobytes()
        if np.isfinite(one[2]):  # else x and multipliers are nobody's answer
            assert x[k].tobytes() == one[0].tobytes()
            assert multipliers[k].tobytes() == one[1].tobytes()
    return together


@settings(max_examples=60)
@given(
    n=st.integers(1, ROWS + 1),
    p=st.integers(1, COLUMNS + 2),
    count=st.sampled_from([1, 7, 8, 9, 33, 64, 65, 71, 129]),
    seed=st.integers(0, 10**6),
)
def test_easy_hard_and_clashing_members_beside_each_other(n, p, count, seed) -> None:
    rng = np.random.default_rng(seed)
    parts = [make_instance(rng, str(rng.choice(HINGES)), n, p) for _ in range(count)]
    require_same_bits(stacked(parts))


@pytest.mark.parametrize("category", HINGES)
def test_a_batch_of_one_kind(category: str) -> None:
    rng = np.random.default_rng(len(category))
    parts = [make_instance(rng, category, 2, 10) for _ in range(200)]
    require_same_bits(stacked(parts))


def test_answers_hold_by_a_residual_that_shares_no_code() -> None:
    rng = np.random.default_rng(3)
    for n, p in ((1, 1), (1, 7), (2, 3), (2, 10), (2, 15)):
        parts = [make_instance(rng, "regular", n, p) for _ in range(5 * WIDEST + 3)]
        found = run_affine(stacked(parts))
        for k, part in enumerate(parts):
            assert residual_of(part, found.x[k], found.multipliers[k]) <= 1e-9


def test_members_may_share_arrays_and_lie_apart() -> None:
    rng = np.random.default_rng(4)
    zeros = zeros_of(2)
    center, gradient = rng.normal(size=(3, 70, 6)), 5.0 * rng.normal(size=(70, 6))
    A, b = rng.normal(size=(3, 70, 2, 6)), rng.normal(size=(3, 70, 2))
    alpha, weights = rng.uniform(0.1, 2.0, (3, 70)), rng.uniform(0.0, 50.0, (3, 70, 2))
    low, high = -np.ones(6), np.ones(6)
    wide = rng.uniform(0.5, 2.0, (70, 6))
    for problem in (
        AffineProblem(center, gradient, alpha, zeros, weights, zeros, A, b, low, high),
        AffineProblem(center, gradient[0], alpha[:, :1], zeros, weights[0, 0], zeros, A[0, 0],
                      b[0, 0], low, high),
        AffineProblem(center, gradient, alpha[0, 0], zeros, weights[:, :1], zeros, A[:, :1],
                      b[:1], -wide, wide),
        AffineProblem(center[:, ::2], gradient[::2], alpha[:, ::2], zeros, weights[:, 1::2], zeros,
                      A[:, ::-2], b[:, ::2], low, high),
        AffineProblem(np.swapaxes(center, 0, 1)[:, [0, 1, 2] * 20], gradient[:, None], alpha[0, 0],
                      zeros, weights[0, :, None], zeros, A[0, :, None], b[0, :, None], low, high),
    ):  # fmt: skip
        require_same_bits(problem)


@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_on_any_number_of_threads(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    parts = [make_instance(rng, HINGES[k % len(HINGES)], 2, 10) for k in range(2003)]
    monkeypatch.setenv("COLDQ_THREADS", threads)
    require_same_bits(stacked(parts))


def test_what_overflows_is_told_of_that_member_alone() -> None:
    rng = np.random.default_rng(6)
    parts = [make_instance(rng, "regular", 2, 5) for _ in range(50)]
    parts[7] = parts[7]._replace(gradient=np.full(5, 1e305), alpha=1e-8)  # y is infinite
    parts[20] = parts[20]._replace(A=np.full((2, 5), 1e308), b=np.full(2, -1e308))
    parts[33] = parts[33]._replace(
        A=np.array([[1.0, 0, 0, 0, 0], [-1.0, 0, 0, 0, 0]]), b=-np.ones(2),
        multiplier_upper=np.full(2, np.inf),
    )  # fmt: skip
    found = require_same_bits(stacked(parts))
    assert np.isnan(found.residual[7])
    assert found.residual[33] == np.inf  # enforced rows without a common point
    others = np.delete(found.residual, [7, 20, 33])
    assert (others <= 1e-9).all()


def test_arrays_that_do_not_fit_are_refused_as_one_by_one() -> None:
    X, rows = coldq.Box(0.0, 1.0, dim=4), coldq.Affine(np.ones((40, 2, 4)), np.ones((40, 2)))
    with pytest.raises(coldq.InvalidInput):
        coldq.penalised_step(np.zeros((50, 4)), np.ones(4), 1.0, 1.0, rows, X)
