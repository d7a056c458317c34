"""The margin that leaves rows a common point, against linear programs and the plain search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import coldq
from coldq.learners import enforced_rows
from coldq.learners.best_response import least_violation
from coldq.learners.enforced_rows import TOLERANCE, margin_kept


def instance(rng: np.random.Generator) -> tuple[Any, ...]:
    """Rows of unlike units, their slopes, margins that may be too wide, and the domain."""
    n, p = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    A = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-2.0, 2.0, (n, 1))
    slopes = np.linalg.norm(A, axis=1)
    b = A @ rng.random(p) + 0.3 * rng.uniform(-0.3, 1.0, n) * slopes
    margin = 2.0 * rng.random(n) * slopes
    worst = margin * rng.uniform(-0.5, 1.2, n) * rng.choice([0.1, 1.0])
    return A, b, slopes, margin, worst, coldq.Box(0.0, 1.0, dim=p), rng.random(p)


def violation(A: Any, b: Any, slopes: Any) -> float:
    """The least largest violation on the unit box, in units of x, by a linear program."""
    columns = np.column_stack([A / slopes[:, None], -np.ones(b.size)])
    cost = np.eye(columns.shape[1])[-1]
    bounds = [(0.0, 1.0)] * A.shape[1] + [(None, None)]
    return float(linprog(cost, columns, b / slopes, bounds=bounds).fun)


def without_an_answer(*arrays: Any) -> Any:
    """What the native search says where a step failed."""
    return np.zeros(arrays[3].shape), 0.0, 0.0, np.full(arrays[0].shape, np.nan)


@pytest.mark.parametrize("native", [True, False])
def test_the_margin_kept_is_the_largest_with_a_common_point(
    native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not native:
        monkeypatch.setattr(enforced_rows, "at_once", without_an_answer)
    rng, found = np.random.default_rng(5), []
    for _ in range(200):
        A, b, slopes, margin, worst, X, near = instance(rng)
        kept, whole, reduced, x = margin_kept(coldq.Affine(A, b), margin, worst, X, near, TOLERANCE)
        found.append((bool(whole), bool(reduced)))
        asked, least = np.minimum(margin, np.maximum(worst, 0.0)), np.minimum(margin, worst)
        rest = slopes * ((margin - least) / slopes).max()
        assert whole == (violation(A, b - margin, slopes) <= 1e-7)
        if whole:
            np.testing.assert_array_equal(kept, margin)
            continue
        assert reduced == (violation(A, b - least, slopes) > 1e-7)
        if reduced:
            share = kept[asked > 0.0] / asked[asked > 0.0]
            np.testing.assert_allclose(share, share[:1].repeat(share.size), rtol=1e-12)
            more = kept + 1e-6 * asked if share.size else kept
        else:
            more = np.minimum(margin, kept + 1e-6 * rest)
        if kept.any() or not reduced:  # else not even the rows without a margin meet, perhaps
            assert violation(A, b - kept, slopes) <= 1e-7
            np.testing.assert_array_less((A @ x - b + kept) / slopes, 1e-5)
        if (more > kept).any():
            assert violation(A, b - more, slopes) > 0.0
    assert min(found.count(kind) for kind in set(found)) > 5 and len(set(found)) == 3


def test_both_searches_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    given = [instance(rng) for _ in range(100)]

    def all_of_them() -> list[Any]:
        return [
            margin_kept(coldq.Affine(A, b), margin, worst, X, near, TOLERANCE)
            for A, b, _, margin, worst, X, near in given
        ]

    one = all_of_them()
    monkeypatch.setattr(enforced_rows, "at_once", without_an_answer)
    for (_, _, slopes, *_), mine, other in zip(given, one, all_of_them(), strict=True):
        assert (mine[1], mine[2]) == (other[1], other[2])
        np.testing.assert_allclose(mine[0] / slopes, other[0] / slopes, atol=1e-7)
        np.testing.assert_allclose(mine[3], other[3], atol=1e-5)


@pytest.mark.parametrize("domain", [coldq.Box(-1.0, 2.0, dim=4), coldq.Simplex(4, 1.5)])
def test_rows_at_a_small_angle_are_broken_by_as_little_as_can_be(domain: Any) -> None:
    rng = np.random.default_rng(3)
    is_box = isinstance(domain, coldq.Box)
    sums: Any = {} if is_box else {"A_eq": [[1.0] * 4 + [0.0] * 3], "b_eq": [1.5]}
    ends = [(-1.0, 2.0)] if is_box else [(0.0, None)]
    for angle in np.repeat([1e-3, 1e-6], 200):
        A = rng.normal(size=4) * rng.choice([-1.0, 1.0], (3, 1)) + angle * rng.normal(size=(3, 4))
        A *= 10.0 ** rng.uniform(-3.0, 3.0, (3, 1))
        slopes = np.sqrt((A * A).sum(axis=1))
        b = rng.choice([0.3, angle]) * rng.normal(size=3) * slopes
        x = least_violation(
            coldq.Affine(A, b), domain, domain.project(rng.normal(size=4)), by_slope=True
        )
        found = (np.maximum(A @ x - b, 0.0) / slopes).sum()
        columns, bounds = np.hstack([A / slopes[:, None], -np.eye(3)]), ends * 4 + [(0.0, None)] * 3
        least = linprog(
            [0.0] * 4 + [1.0] * 3, columns, b / slopes, **sums, bounds=bounds,
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )  # fmt: skip
        assert found <= least.fun + 1e-9


@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_curved_rows_without_a_hessian_get_an_answer_in_every_slot(seed: int, p: int) -> None:
    rng = np.random.default_rng(seed)
    learner = coldq.SelfTuning(coldq.Box(0.0, 3.0, dim=p), 0.05)
    state, center = learner.init(1), 1.5 + 0.3 * rng.normal(size=p)
    for _ in range(40):  # balls about one point, in which that is always
        r = max(1.5 + 0.3 * rng.normal(), 0.5)
        rows = coldq.Convex(
            lambda x, r=r: ((x - center) ** 2).sum(keepdims=True) - r,
            lambda x: 2.0 * (x - center)[None, :],
        )
        state = learner.update(state, coldq.Feedback(coldq.Linear(rng.normal(size=p)), rows))
    assert int(learner.bound_report(state)["infeasible"]) == 0


def test_stacked_rows_keep_their_lowest_limits_as_one_block_does() -> None:
    learner = coldq.SelfTuning(coldq.Box(0.0, 100.0, dim=1), 0.05)
    rng, whole, stacked = np.random.default_rng(3), learner.init(2), learner.init(2)
    loss = coldq.Linear([1.0])
    for _ in range(200):  # 50 keeps all of them
        low, high = 49.0 * rng.random(), 51.0 + 49.0 * rng.random()
        parts = coldq.Affine([[-1.0]], [-low]), coldq.Affine([[1.0]], [high])
        block = coldq.Affine([[-1.0], [1.0]], [-low, high])
        whole = learner.update(whole, coldq.Feedback(loss, block))
        stacked = learner.update(stacked, coldq.Feedback(loss, coldq.Stacked(*parts)))
    found = [int(learner.bound_report(state)["reduced"]) for state in (whole, stacked)]
    assert found == [0, 0]
