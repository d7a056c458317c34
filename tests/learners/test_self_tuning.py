"""SelfTuning: its rule by hand, its units, and what has no unit yet."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import coldq
from coldq.learners.self_tuning import STEP_SIZES
from tests.learners.margin_rule import MarginRule, Row
from tests.learners.rescaled import Rescaled

P = coldq.problems
X = coldq.Box(0.0, [2.0, 1.0, 3.0])
FORECASTS = (coldq.forecasts.MovingAverage(0.5), coldq.forecasts.Trend(0.3))


class Transcription:
    """The pool's steps on rows tightened by a margin, in plain Python, one line after the other."""

    def __init__(self, domain: coldq.Box) -> None:
        self.domain, self.R = domain, float(domain.diameter)
        self.x = domain.start()
        self.points = [self.x for _ in STEP_SIZES]
        self.weights, self.losses, self.gap = (
            np.full(len(STEP_SIZES), 1 / len(STEP_SIZES)),
            np.zeros(8),
            0.0,
        )
        self.S = self.D = 0.0

    def update(self, c: np.ndarray, expected: list[Row], wanted: Any, kept: Any) -> None:
        """The next decision, for `expected` rows and a margin, `kept` where there is no room."""
        x = self.x
        self.S, self.D = self.S + c @ c, max(self.D, math.sqrt(c @ c))
        loss = np.array([c @ (point - x) for point in self.points])
        loss[np.abs(loss) < 1e-10 * self.R * math.sqrt(c @ c)] = 0.0
        h = self.weights @ loss
        if self.gap > 0.0:
            eta = math.log(8) / self.gap
            mixed = -math.log(self.weights @ np.exp(-eta * loss)) / eta
        else:
            mixed = (self.losses + loss).min() - self.losses.min()
        self.losses, self.gap = self.losses + loss, self.gap + max(0.0, h - mixed)
        over = self.losses - self.losses.min()
        self.weights = np.exp(-math.log(8) / self.gap * over) if self.gap else 1.0 * (over == 0.0)
        self.weights = self.weights / self.weights.sum()

        F, f = np.array([row[0] for row in expected]), np.array([row[1] for row in expected])
        rho = np.sqrt((F * F).sum(axis=1))
        before = self.points
        self._step(before, c, coldq.Affine(F / rho[:, None], (f - wanted) / rho), 100.0)
        if (F @ self.x - f + wanted > 1e-8).any():  # a price that does not keep its row
            self._step(before, c, coldq.Affine(F, f - kept), np.inf)

    def _step(self, points: list[Any], c: np.ndarray, rows: coldq.Affine, weight: float) -> None:
        self.points = []
        for point, size in zip(points, STEP_SIZES, strict=True):
            alpha = size * math.sqrt(self.S) / self.R
            scale = self.D + 2.0 * alpha * self.R
            step = coldq.penalised_step(point, c / scale, alpha / scale, weight, rows, self.domain)
            self.points.append(step.x)
        self.x = sum(w * point for w, point in zip(self.weights, self.points, strict=True))


@pytest.mark.parametrize("q", [None, 0.05, 0.3, 0.9])
def test_decisions_are_those_of_the_rule_that_is_written_down(q) -> None:
    rng, R = np.random.default_rng(5), float(X.diameter)
    learner, plain = coldq.SelfTuning(X, q, forecasts=FORECASTS), Transcription(X)
    rule = MarginRule(q or 0.5, 2, np.zeros(3), X.upper, R)
    state = learner.init(2)
    level, reduced = np.array([2.0, 1.0]), 0
    for t in range(120):
        c, A = rng.standard_normal(3), rng.uniform(0.2, 1.0, (2, 3))
        level = level + 0.05 * rng.standard_normal(2) + (0.01 if t > 60 else 0.0)
        b = np.maximum(level + 0.2 * rng.standard_normal(2), 0.3)
        rows: list[Row] = [(list(a), float(limit)) for a, limit in zip(A, b, strict=True)]
        rule.observe(list(state.x), rows, list(state.x))
        state = learner.update(state, coldq.Feedback(coldq.Linear(c), coldq.Affine(A, b)))
        wanted = np.array(rule.margin) if q else np.zeros(2)
        plain.update(c, rule.expected, wanted, state.margin)
        if state.reduced:
            reduced += 1
            rule.reduce([float(m) for m in state.margin])
        assert np.allclose(state.x, plain.x, rtol=0.0, atol=1e-7)
        plain.x, plain.points = state.x, list(state.points)
        in_use = plain.weights[STEP_SIZES.index(float(state.step_size))]  # experts may tie
        assert in_use >= plain.weights.max() * (1.0 - 1e-9)
    assert reduced < 20


PROBLEMS = {
    "time-varying": P.TimeVarying(80),
    "quadratic": P.OnlineQuadratic(80),
    "linear": P.OnlineLinear(80),
    "drifting": P.Drifting(0.5, 0.5, horizon=80),
    "autoscale": P.Autoscale(80),
    "dispatch": P.Dispatch(80),
    "jobs": P.JobScheduling(40),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_decisions_do_not_depend_on_units(name) -> None:
    problem = PROBLEMS[name]
    learner, n = coldq.SelfTuning(problem.domain, 0.05), problem.n_constraints
    first = coldq.simulate(learner, problem, [3], keep=["decisions"]).decisions
    for factor, rows in ((1e-3, [1e-6]), (1e6, [1e6]), (1000.0, [1e-6, 1e6, 0.3]), (1 / 7, [7.0])):
        other = Rescaled(problem, factor, tuple(np.resize(rows, n)))
        second = coldq.simulate(learner, other, [3], keep=["decisions"]).decisions
        assert np.abs(first - second).max() <= 1e-10 * problem.domain.diameter


@pytest.mark.parametrize("q", [0.1, 0.05])
def test_the_rate_is_met_where_volatility_changes(q) -> None:
    rng, runs, slots = np.random.default_rng(2), 40, int(100 / q)
    learner = coldq.SelfTuning(coldq.Box(0.0, 40.0, dim=1), q)
    state, violated = learner.init(1, batch=(runs,)), 0
    level = np.full((runs, 1), 10.0)
    for t in range(slots):
        noise = np.where((t // 200) % 2, 1.0, 0.2) * rng.standard_normal((runs, 1))
        level = np.clip(level + 0.3 * noise, 5.0, 15.0)
        demand = level + noise
        g = coldq.Affine([[-1.0]], -demand)
        violated = violated + (g.value(state.x)[:, 0] > 1e-6)
        state = learner.update(state, coldq.Feedback(coldq.Linear([1.0]), g))
    assert (state.reduced_slots <= 0.01 * slots).all()
    share = (violated / slots).mean()
    assert 0.8 * q <= share <= 1.2 * q


@pytest.mark.parametrize("still", [11, 60])
@pytest.mark.parametrize("kind", ["SelfTuning", "SafetyMargin"])
def test_a_row_that_stood_still_at_first_has_a_margin_once_it_moves(kind: str, still: int) -> None:
    rng, X, cap = np.random.default_rng(0), coldq.Box(0.0, [20.0, 60.0, 100.0]), [8.0, 10.0, 12.0]
    learner: Any = coldq.SelfTuning(X, 0.05)
    if kind == "SafetyMargin":
        learner = coldq.SafetyMargin(coldq.COLDQ(X, horizon=1000), 0.05)
    state, violated = learner.init(1), 0
    for t in range(1000):
        moved = 0.0 if t < still else 50.0 * np.sin(t / 40) + 10.0 * rng.standard_normal()
        g = coldq.Affine([np.negative(cap)], [-300.0 - moved])
        violated += bool(g.value(state.x)[0] > 1e-6)
        state = learner.update(state, coldq.Feedback(coldq.Linear([6.0, 12.0, 14.0]), g))
    assert violated <= 60 and state.margin[0] > 5.0


@pytest.mark.parametrize("top", [1e4, 1e6, 1e9])
@pytest.mark.parametrize("kind", ["rows", "any"])
def test_a_bound_meant_as_no_limit_hides_no_violation(kind: str, top: float) -> None:
    # Loads of 100 that vary by 1 in a box that ends at `top`: all violations are of that size.
    rng, domain, q = np.random.default_rng(3), coldq.Box(0.0, top, dim=2), 0.1
    learner = coldq.SelfTuning(domain, q)
    if kind == "any":
        learner = coldq.SafetyMargin(coldq.COLDQ(domain, 600), q)
    state, found = learner.init(1, start=[50.0, 50.0]), []
    for _ in range(600):
        g = coldq.Affine([[1.0, 1.0]], [100.0 + rng.normal()])
        found.append(float(g.value(state.x)[0]))
        state = learner.update(state, coldq.Feedback(coldq.Linear([-1.0, -1.5]), g))
    counted = learner.bound_report(state)
    real = sum(over > 0.05 for over in found)
    assert 0 < real <= counted["violated"] <= real + 10
    assert counted["infeasible"] == 0
    assert counted["overdraft"] <= counted["overdraft_bound"]


def test_a_decision_on_the_boundary_is_no_violation_beside_a_bound_meant_as_no_limit() -> None:
    domain = coldq.Box(0.0, 1e9, dim=3)
    learner = coldq.SelfTuning(domain, 0.1)
    state = learner.init(2, start=[30.0, 30.0, 30.0])
    rows = coldq.Affine([[0.3, 0.7, 1.1], [1.3, 0.1, 0.7]], [100.0 / 3.0, 70.0 / 3.0])
    revealed = coldq.Feedback(coldq.Linear([-0.7, -1.1, -0.9]), rows)
    for _ in range(100):
        state = learner.update(state, revealed)
    assert (np.abs(rows.value(state.x)) < 1e-6).any()
    assert learner.bound_report(state)["violated"] <= 1  # where it started


def rows_of(kind: str, u: np.ndarray, b: float):
    """The same row of x / u, whatever the units u are, as a constraint on x."""
    A = np.array([[-1.0, -1.0, -0.5]]) / u
    if kind in ("affine", "forecast", "played", "batch"):
        return coldq.Affine(A, [-b])
    if kind == "sparse":
        return coldq.SparseAffine(sparse.csr_array(A), [-b])
    if kind == "pieces":
        return coldq.MaxAffine(np.stack([A[0], 0.5 * A[0]])[None], [[-b, -b]])
    P, q = np.diag([0.1, 0.2, 0.1]) / np.outer(u, u), A
    if kind == "quadratic":
        return coldq.QuadraticConstraint(P[None], q, [-b])
    if kind == "diagonal":
        return coldq.QuadraticConstraint.diagonal(np.diag(P)[None], q, [-b])
    if kind == "low rank":
        return coldq.QuadraticConstraint.low_rank(
            np.diag(P)[None], (np.array([0.1, 0.1, 0.2]) / u)[None, :, None], q, [-b]
        )
    if kind == "capacity":
        return coldq.LogCapacity(b, np.ones(3), np.array([2.0, 4.0, 2.0]) / u)
    if kind == "stack":
        return coldq.Stacked(coldq.Affine(A, [-b]), coldq.Affine(-A, [4.0]))
    return coldq.Convex(lambda x: A @ x + b, lambda x: A, lambda x: np.zeros((1, 3, 3)))


@pytest.mark.parametrize(
    "kind",
    ["affine", "forecast", "played", "batch", "sparse", "pieces", "quadratic", "diagonal",
     "low rank", "capacity", "stack", "function"],
)  # fmt: skip
def test_units_of_single_coordinates_make_no_difference_in_a_box(kind: str) -> None:
    decisions = []
    for far in (2.0**9, 2.0**40):
        u, rng, found = np.array([far, 1.0, 1.0 / far]), np.random.default_rng(1), []
        learner = coldq.SelfTuning(coldq.Box(0.0, 3.0 * u), 0.05)
        n = 2 if kind == "stack" else 1
        state = learner.init(n, batch=(2,) if kind == "batch" else ())
        for _ in range(120):
            g = rows_of(kind, u, 2.0 + 0.2 * rng.normal())
            ahead = coldq.Forecast(constraint=g) if kind == "forecast" else None
            played = 0.5 * state.x + 0.5 * u if kind == "played" else None
            loss = coldq.Linear(np.array([4.0, 2.0, 1.5]) / u)
            state = learner.update(state, coldq.Feedback(loss, g, forecast=ahead), played)
            found.append(state.x / u)
        decisions.append(np.array(found))
        if kind == "affine":
            counted = learner.bound_report(state)
            assert counted["overdraft"] <= counted["overdraft_bound"]
            assert counted["infeasible"] == 0
    assert np.array_equal(*decisions)
    assert decisions[0].std(axis=0).max() > 0.01


def test_the_regret_bound_counts_a_path_in_the_units_of_the_step() -> None:
    far = coldq.SelfTuning(coldq.Box(0.0, [1024.0, 1.0]))
    state = far.init(1)
    for _ in range(5):
        revealed = coldq.Feedback(coldq.Linear([1.0, 1.0]), coldq.Affine([[1.0, 1.0]], [1.0]))
        state = far.update(state, revealed)
    # A move of 1 in the narrow coordinate is one of 1,024 there.
    assert far.regret_bound(state, 1.0) > far.regret_bound(state, 0.0)
    alike = coldq.SelfTuning(coldq.Box(0.0, 1024.0, dim=2))
    there = alike.init(1)
    for _ in range(5):
        revealed = coldq.Feedback(
            coldq.Linear([1.0, 1.0 / 1024.0]), coldq.Affine([[1.0, 1.0 / 1024.0]], [1.0])
        )
        there = alike.update(there, revealed)
    assert np.isclose(far.regret_bound(state, 1.0), alike.regret_bound(there, 1024.0))


def test_coordinates_of_unlike_units_are_warned_about_where_nothing_is_done() -> None:
    wide = coldq.Polytope(np.ones((1, 2)), [3e8], 0.0, [6e8, 0.6])
    with pytest.warns(coldq.UnlikelyUnits, match="coordinate 0 is 3e.08 wide and coordinate 1 0.6"):
        coldq.SelfTuning(wide, 0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coldq.SelfTuning(coldq.Box(0.0, [6e8, 0.6, 0.0]), 0.05)


def test_a_fixed_constraint_is_kept_from_slot_3_on_without_a_margin() -> None:
    for problem in (P.OnlineLinear(60), P.OnlineQuadratic(60)):
        for q in (None, 0.1):
            trace = coldq.simulate(coldq.SelfTuning(problem.domain, q), problem, range(3))
            steepest = problem.constants.constraint_lipschitz
            assert trace.violation[:, 2:].sum() <= 1e-6 * problem.domain.diameter * steepest
            assert not trace.state.margin.any()


def test_no_gradient_no_slope_no_surprise() -> None:
    learner = coldq.SelfTuning(coldq.Box(0.0, 2.0, dim=2), 0.1)
    state = learner.init(2, start=[2.0, 2.0])
    g = coldq.Affine([[1.0, 1.0], [0.0, 0.0]], [2.0, 1.0])  # the second row is padding
    for _ in range(5):
        state = learner.update(state, coldq.Feedback(coldq.Linear([0.0, 0.0]), g))
    assert np.allclose(state.x, [1.0, 1.0], rtol=0.0, atol=1e-9)  # the nearest that keeps the row
    before = learner.bound_report(state)
    assert not state.reduced and not before["infeasible"]
    g = coldq.Affine([[1.0, 1.0], [0.0, 0.0]], [2.0, -1e-9])  # and now nothing can keep it
    state = learner.update(state, coldq.Feedback(coldq.Linear([0.0, 0.0]), g))
    after = learner.bound_report(state)
    assert after["infeasible"] == 1 and after["violated"] == before["violated"]
    assert after["overdraft"] == before["overdraft"]


def test_a_row_that_is_flat_where_it_is_first_seen_is_kept() -> None:
    ball = coldq.QuadraticConstraint.ball([[0.0, 0.0]], [1.0])  # no slope at its center
    learner = coldq.SelfTuning(coldq.Box(-3.0, 3.0, dim=2))
    state = learner.init(1, start=[0.0, 0.0])
    for _ in range(30):
        state = learner.update(state, coldq.Feedback(coldq.Linear([-3.0, -4.0]), ball))
    assert np.allclose(state.x, [0.6, 0.8], rtol=0.0, atol=1e-3)
    assert ball.value(state.x)[0] <= 1e-9


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, 1.5, float("nan"), "low", [0.1, 0.2]])
def test_a_rate_outside_zero_and_one_is_refused(rate) -> None:
    with pytest.raises(coldq.InvalidInput, match="violation_rate"):
        coldq.SelfTuning(X, rate)
    with pytest.raises(coldq.InvalidInput, match="violation_rate"):
        coldq.SafetyMargin(coldq.COLDQ(X, horizon=10), rate)


def test_an_unbounded_domain_and_odd_options_are_refused() -> None:
    with pytest.raises(coldq.InvalidInput, match="bounded"):
        coldq.SelfTuning(coldq.Box(0.0, np.inf, dim=2))
    with pytest.raises(coldq.InvalidInput, match="pool"):
        coldq.SelfTuning(X, pool=[1.0, -1.0])
    with pytest.raises(coldq.InvalidInput, match="forecasts"):
        coldq.SelfTuning(X, forecasts=["last"])
    with pytest.raises(coldq.InvalidInput, match="weight"):
        coldq.forecasts.MovingAverage(1.5)


@pytest.mark.parametrize("problem", [P.Drifting(0.5, 0.5, horizon=300), P.TimeVarying(300)])
def test_the_regret_bound_holds_against_the_best_decision_of_every_slot(problem) -> None:
    learner = coldq.SelfTuning(problem.domain, forecasts=[coldq.forecasts.Last()])
    trace = coldq.simulate(learner, problem, range(4), keep=["decisions"])
    best = coldq.dynamic_comparator(problem, range(4))
    regret = (trace.loss - best.loss).sum(axis=1)
    path = np.sqrt(np.square(np.diff(best.x, axis=1)).sum(axis=-1)).sum(axis=1)
    stream, squares, steepest = problem.start(range(4)), 0.0, 0.0
    for t in range(1, 301):
        x = trace.decisions[:, t - 1]
        size = np.square(stream.reveal(t, x).loss.gradient(x)).sum(axis=-1)
        squares, steepest = squares + size, np.maximum(steepest, np.sqrt(size))
    R, log = problem.domain.diameter, math.log(8)
    spans = [4.0 / 4**k * (1 + 2 * path / R) + 4**k / 8.0 for k in range(8)]
    least = np.min(spans, axis=0)
    by_hand = R * np.sqrt(squares) * (least + math.sqrt(log)) + R * steepest * (4 / 3 * log + 2)
    assert np.allclose(learner.regret_bound(trace.state, path), by_hand, rtol=1e-6)
    assert (regret <= by_hand).all()
    check = coldq.bound_report(trace).check("dynamic regret")
    assert np.allclose(check.bound, by_hand, rtol=1e-6)
    assert not check.exceeded.any()


def test_a_measured_constraint_serves_where_it_was_measured() -> None:
    learner = coldq.SelfTuning(coldq.Box(0.0, 4.0, dim=1), 0.1)
    state = learner.init(1, start=[3.0])
    for _ in range(30):  # x^2 <= 4, known by its value and slope at x_t
        x = state.x
        model = coldq.Affine.from_measurement(x, x * x - 4.0, 2.0 * x[:, None])
        state = learner.update(state, coldq.Feedback(coldq.Linear([-1.0]), model))
    assert abs(float(state.x[0]) - 2.0) < 0.05
    stale = coldq.Affine.from_measurement([1.0], [-3.0], [[2.0]])
    with pytest.raises(coldq.NotRevealed):
        learner.update(state, coldq.Feedback(coldq.Linear([-1.0]), stale))


@pytest.mark.parametrize("sparse_rows", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda X: coldq.SelfTuning(X, 0.1),
        lambda X: coldq.SafetyMargin(coldq.Yi2021(X, 600, alpha0=5.0, gamma0=3.0), 0.1),
    ],
    ids=["SelfTuning", "SafetyMargin"],
)
def test_a_row_that_comes_and_goes_leaves_the_rate_kept(make, sparse_rows: bool) -> None:
    # Where there is none, 0'x <= 0 fills up; a margin to it would be out of reach.
    rng, learner = np.random.default_rng(0), make(coldq.Box(0.0, 10.0, dim=2))
    state, violated = learner.init(2), 0
    for t in range(600):
        A = np.array([[-1.0, -1.0], [0.0, -1.0 if t % 20 == 0 else 0.0]])
        b = A @ [5.0, 3.0] - rng.normal(0.0, [1.0, 0.5]) * A.any(axis=1)
        violated += (A @ state.x > b + 1e-9).any()
        g = coldq.SparseAffine(sparse.csr_array(A), b) if sparse_rows else coldq.Affine(A, b)
        state = learner.update(state, coldq.Feedback(coldq.Linear([1.0, 2.0]), g))
    assert state.infeasible == 0
    assert state.violated == violated < 80


@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
def test_without_rows_there_is_nothing_to_violate(batch: tuple[int, ...]) -> None:
    learner = coldq.SelfTuning(coldq.Box(0.0, 1.0, dim=2), 0.1)
    state = learner.init(0, batch=batch)
    for _ in range(30):
        state = learner.update(
            state, coldq.Feedback(coldq.Linear([1.0, -1.0]), coldq.Unconstrained())
        )
    np.testing.assert_allclose(state.x, np.broadcast_to([0.0, 1.0], (*batch, 2)), atol=1e-9)
    assert not learner.bound_report(state)["violated"].any()
