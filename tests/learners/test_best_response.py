"""BestResponse against a linear-programming solver, and the tuning of its safety margin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar

import coldq
from coldq.evaluation import safety_margins


def test_the_best_response_to_affine_rows_is_the_linear_programs() -> None:
    rng = np.random.default_rng(0)
    top = rng.uniform(1.0, 3.0, 6)
    for h in (0.0, 0.1, 0.4):
        learner = coldq.BestResponse(coldq.Box(0.0, top), safety_margin=h)
        for _ in range(20):
            c, A = rng.standard_normal(6), -rng.uniform(0.0, 1.0, (2, 6))
            b = -rng.uniform(0.2, 0.5, 2) * (-A @ top)
            g = coldq.Affine(A, b)
            x = learner.update(learner.init(2), coldq.Feedback(coldq.Linear(c), g)).x
            best = linprog(c, A, b - h * np.abs(b), bounds=list(zip(0.0 * top, top, strict=True)))
            assert c @ x == pytest.approx(best.fun, abs=1e-7)
            assert (A @ x <= b - h * np.abs(b) + 1e-7).all()


def test_where_nothing_keeps_all_rows_the_total_violation_is_least() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        A, b = rng.standard_normal((3, 4)), -rng.uniform(3.0, 6.0, 3)
        learner = coldq.BestResponse(coldq.Box(-1.0, 1.0, dim=4), safety_margin=0.1)
        x = learner.update(
            learner.init(3), coldq.Feedback(coldq.Linear(np.ones(4)), coldq.Affine(A, b))
        ).x
        tight = b - 0.1 * np.abs(b)
        # min 1's over A x - s <= tight, s >= 0
        rows = np.hstack([A, -np.eye(3)])
        least = linprog([0.0] * 4 + [1.0] * 3, rows, tight, bounds=[(-1, 1)] * 4 + [(0, None)] * 3)
        assert least.fun > 0.0
        assert np.maximum(A @ x - tight, 0.0).sum() == pytest.approx(least.fun, rel=1e-6)


def test_a_capacitys_demand_is_met_with_its_safety_margin_at_least_cost() -> None:
    g = coldq.LogCapacity(2.0, [1.0, 2.0], [1.0, 1.0])
    learner = coldq.BestResponse(coldq.Box(0.0, 50.0, dim=2), safety_margin=0.25)
    x = learner.update(learner.init(1), coldq.Feedback(coldq.Linear([1.0, 1.0]), g)).x

    def cost(one: float) -> float:
        return one + np.exp((2.5 - np.log1p(one)) / 2.0) - 1.0

    best = minimize_scalar(cost, bounds=(0.0, 5.0), method="bounded", options={"xatol": 1e-10})
    assert x.sum() == pytest.approx(best.fun, abs=1e-6)
    assert np.log1p(x[0]) + 2.0 * np.log1p(x[1]) == pytest.approx(2.5, abs=1e-9)


@pytest.mark.parametrize("problem", [coldq.problems.Dispatch(60), coldq.problems.JobScheduling(60)])
def test_safety_margins_side_by_side_are_what_runs_of_their_own_give(problem) -> None:
    found = safety_margins.try_safety_margins(problem, [(0.5, 1.0)], [0], [0.0, 0.02])[0]
    for one in found:
        learner = coldq.BestResponse.for_problem(problem, safety_margin=one.safety_margin)
        trace = coldq.simulate(learner, problem, [0])
        assert one.cost == pytest.approx(trace.loss[0, 30:].mean(), rel=1e-12)
        assert one.violation == pytest.approx(trace.violation[0, 30:].sum(), rel=1e-9)
        assert one.share == pytest.approx((trace.constraint[0, 30:] > 0.01).any(axis=-1).mean())


def test_the_cheapest_safety_margin_that_keeps_the_rate_is_chosen() -> None:
    MarginScore = safety_margins.MarginScore
    tried = [
        MarginScore(0.0, 1.0, 0.5, 9.0),
        MarginScore(0.1, 2.0, 0.1, 1.0),
        MarginScore(0.2, 3.0, 0.02, 0),
    ]
    choose = safety_margins.choose_safety_margin
    assert choose(tried, 0.1).safety_margin == 0.1
    assert choose(tried, 0.05).safety_margin == 0.2
    assert choose(tried, 0.001).safety_margin == 0.2  # none keeps it: the least share
    same = [MarginScore(0.9, 3.0 - 1e-14, 0.0, 0.0), *tried]  # as dear, but for rounding
    assert choose(same, 0.05).safety_margin == 0.2


def test_the_slot_before_anything_is_known_is_not_held_against_a_safety_margin() -> None:
    problem = coldq.problems.from_table(
        {"load": np.full(30, 5.0)}, decide={"grid": [0.0, 9.0]}, cost=1.0,
        rows={"sum": "all", "at_least": "load"},
    )  # fmt: skip
    for part in ((0.0, 1.0 / 3.0), (0.0, 0.01)):
        found = coldq.tune_safety_margin(problem, 0.01, part)
        assert (found.safety_margin, found.share, found.cost) == (0.0, 0.0, 5.0)
    assert coldq.tune_safety_margin(problem, 0.01, (0.999, 1.0)).cost == 5.0


@pytest.mark.parametrize(("leap", "kept"), [(2.0, True), (8.0, True), (1000.0, False)])
def test_demand_that_leaps_gets_the_least_safety_margin_that_keeps_the_rate(leap, kept) -> None:
    load = np.where(np.arange(40) % 2, 1.0 + leap, 1.0)  # half of the slots need h = leap
    problem = coldq.problems.from_table(
        {"load": load}, decide={"grid": [0.0, 2e3]}, cost=1.0,
        rows={"sum": "all", "at_least": "load"},
    )  # fmt: skip
    found = coldq.tune_safety_margin(problem, 0.1, (0.0, 0.9))
    assert (found.share <= 0.1) == kept
    if kept:
        assert leap <= found.safety_margin < 1.02 * leap
    assert (
        coldq.tune_safety_margin(problem, 0.1, safety_margins=[0.0, 0.5]).share > 0.1
    )  # one's own stay
    about = coldq.compare(problem, ["OGD"], rate=0.1).sentences[0]
    assert ("the least of all safety margins tried" in about) == (not kept)


def test_what_has_no_limit_has_no_safety_margin() -> None:
    g = coldq.Convex(lambda x: [x @ x - 1.0], lambda x: [2.0 * x])
    learner = coldq.BestResponse(coldq.Box(0.0, 1.0, dim=2), safety_margin=0.1)
    with pytest.raises(coldq.InvalidInput, match="limit"):
        learner.update(learner.init(1), coldq.Feedback(coldq.Linear([1.0, 1.0]), g))
    with pytest.raises(coldq.InvalidInput, match="safety_margin"):
        coldq.BestResponse(coldq.Box(0.0, 1.0, dim=2), safety_margin=-0.1)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize("cost", [1e-11, 1e11])
def test_the_best_response_to_a_smooth_loss_is_the_same_in_any_units(cost, unit) -> None:
    rng = np.random.default_rng(2)
    P, q = np.diag([1.0, 3.0, 9.0, 27.0]), rng.standard_normal(4)

    def best(cost: float, unit: float) -> np.ndarray:
        loss = coldq.Smooth(
            lambda x: cost * (0.5 * (x / unit) @ P @ (x / unit) + q @ (x / unit)),
            lambda x: cost / unit * (P @ (x / unit) + q),
        )
        learner = coldq.BestResponse(coldq.Box(-unit, unit, dim=4))
        row = coldq.Affine(np.ones((1, 4)) / unit, [-0.5])
        return learner.update(learner.init(1), coldq.Feedback(loss, row)).x / unit

    np.testing.assert_allclose(best(cost, unit), best(1.0, 1.0), atol=1e-7)


def test_the_search_for_a_best_response_stays_where_the_loss_is_defined() -> None:
    w, seen = np.array([1e-4, 0.3]), []

    def value(x: np.ndarray) -> float:
        seen.append(x.min())
        return (x - w * np.log(x)).sum()

    learner = coldq.BestResponse(coldq.Box(1e-3, 1.0, dim=2))
    state = learner.init(0, start=[1.0, 0.01])
    x = learner.update(state, coldq.Feedback(coldq.Smooth(value, lambda x: 1.0 - w / x), None)).x
    np.testing.assert_allclose(x, [1e-3, 0.3], rtol=1e-7)
    assert min(seen) >= 1e-3


class Undefined:
    """A loss of one's own whose gradient is not known on the way to its minimum."""

    def value(self, x: np.ndarray) -> np.ndarray:
        return 0.5 * np.square(x - 0.5).sum(axis=-1)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return np.where(x > 0.2, np.nan, x - 0.5)


def test_a_gradient_that_is_no_number_within_the_domain_is_named() -> None:
    learner = coldq.BestResponse(coldq.Box(0.0, 1.0, dim=2))
    with pytest.raises(coldq.Error, match="gradient must be finite"):
        loss: Any = Undefined()
        learner.update(learner.init(0), coldq.Feedback(loss, None))


def test_a_batch_of_domains_is_refused_where_each_takes_a_search_of_its_own() -> None:
    loss = coldq.Smooth(lambda x: x @ x, lambda x: 2.0 * x)
    learner = coldq.BestResponse(coldq.Box(0.0, [[1.0], [2.0]]))
    with pytest.raises(coldq.InvalidInput, match="takes one domain, but this one"):
        learner.update(learner.init(0), coldq.Feedback(loss, None))


def test_a_batch_of_curved_rows_out_of_reach_has_the_bits_of_one_by_one() -> None:
    rng = np.random.default_rng(1)
    M, q = rng.standard_normal((12, 2, 3, 3)), rng.standard_normal((12, 2, 3))
    P, r = M @ np.swapaxes(M, -1, -2), -rng.uniform(-0.5, 2.0, (12, 2))
    learner, loss = coldq.BestResponse(coldq.Box(-1.0, 1.0, dim=3)), coldq.Linear([1.0, 2.0, -1.0])

    def best(batch: tuple[int, ...], *data: np.ndarray) -> np.ndarray:
        rows = coldq.QuadraticConstraint(*data)
        return learner.update(learner.init(2, batch=batch), coldq.Feedback(loss, rows)).x

    one_by_one = [best((), P[k], q[k], r[k]) for k in range(12)]
    np.testing.assert_array_equal(best((12,), P, q, r), one_by_one)
