"""SelfTuning: its rule by hand, its units, its promise on every run, and what has no unit yet."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import coldq
from coldq.learners.self_tuning import POOL, _one_call
from coldq.step import Residuals
from tests.learners.rescaled import Rescaled

P = coldq.problems
X = coldq.Box(0.0, [2.0, 1.0, 3.0])
WEIGHTS, TRENDS = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03), (0.1, 0.3)


def slack(A: np.ndarray, b: np.ndarray, x: np.ndarray, R: float) -> np.ndarray:
    """Above what an affine row is violated: 1e-8 of its terms, within 1e-6 to 1 of R |A|."""
    widest = R * np.sqrt((A * A).sum(axis=-1))
    terms = np.abs(A * x[..., None, :]).sum(axis=-1) + np.abs(b)
    return 1e-8 * np.clip(terms, 1e-6 * widest, widest)


class Transcription:
    """The rule for affine rows on a box, in plain Python, one line after the other."""

    def __init__(self, domain: coldq.Box, q: float | None) -> None:
        self.domain, self.q, self.R = domain, q, float(domain.diameter)
        self.t, self.x = 1, domain.start()
        self.points = [self.x for _ in POOL]
        self.weights, self.losses, self.gap = np.full(len(POOL), 1 / len(POOL)), np.zeros(8), 0.0
        self.S = self.D = self.V = 0.0
        self.lam = 0.0 if q is None else max(0.0, math.log(1.0 / (2.0 * q)))
        self.saturated, self.chosen = False, 0
        self.averages = self.rises = self.ahead = None

    def update(self, c: np.ndarray, A: np.ndarray, b: np.ndarray) -> None:
        x, J = self.x, len(WEIGHTS) + len(TRENDS)
        self.S, self.D = self.S + c @ c, max(self.D, math.sqrt(c @ c))
        g = A @ x - b
        if self.t == 1:
            self.m, self.err = np.zeros((J, len(b))), np.zeros(J)
        else:
            violated = (g > slack(A, b, x, self.R)).any()
            if self.q is not None:
                e = (0.0 if self.saturated else 1.0 - self.q) if violated else -self.q
                self.V += e * e
                self.lam = max(0.0, self.lam + max(0.1, 1.0 / math.sqrt(1.0 + self.V)) * e)
            s = np.abs(g - np.array([F @ x - f for F, f in self.ahead]))
            k = self.t - 1
            if k > 10:
                self.m += 0.03 * (np.minimum(s, 4.0 * self.m / (1 - 0.97 ** (k - 1))) - self.m)
            else:
                self.m += 0.03 * (s - self.m)
            usual = self.m[0] / (1 - 0.97**k)
            self.err += max(0.02, 1.0 / k) * ((s / usual).mean(axis=1) - self.err)
            if self.err.min() < 0.98 * self.err[self.chosen]:
                self.chosen = int(self.err.argmin())
        sigma = self.m[self.chosen] / (1 - 0.97 ** (self.t - 1)) if self.t > 1 else 0.0 * g
        self.forecast(A, b)
        F, f = self.ahead[self.chosen]
        rho = np.sqrt((F * F).sum(axis=1))
        rows = coldq.Affine(F / rho[:, None], (f - self.lam * sigma) / rho)

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

        self.saturated = False
        for k, size in enumerate(POOL):
            alpha = size * math.sqrt(self.S) / self.R
            scale = self.D + 2.0 * alpha * self.R
            step = coldq.penalised_step(
                self.points[k], c / scale, alpha / scale, 100.0, rows, self.domain
            )
            self.points[k] = step.x
            if self.weights[k] > 1e-3 and (step.multipliers >= 100.0 * (1 - 1e-9)).any():
                self.saturated = True
        self.x = sum(w * point for w, point in zip(self.weights, self.points, strict=True))
        self.t += 1

    def forecast(self, A: np.ndarray, b: np.ndarray) -> None:
        now = (A, b)
        if self.averages is None:
            self.averages = [now for _ in WEIGHTS]
            self.rises = [(0.0 * A, 0.0 * b) for _ in TRENDS]
        else:
            self.averages = [
                tuple((1 - w) * old + w * new for old, new in zip(m, now, strict=True))
                for w, m in zip(WEIGHTS, self.averages, strict=True)
            ]
            self.rises = [
                tuple(
                    (1 - w) * old + w * (new - last)
                    for old, new, last in zip(m, now, self.last, strict=True)
                )
                for w, m in zip(TRENDS, self.rises, strict=True)
            ]
        self.last = now
        trends = [tuple(a + rise for a, rise in zip(now, m, strict=True)) for m in self.rises]
        self.ahead = [*self.averages, *trends]


@pytest.mark.parametrize("q", [None, 0.05, 0.3, 0.9])
def test_the_rule_is_the_one_that_is_written_down(q) -> None:
    rng = np.random.default_rng(5)
    learner, plain = coldq.SelfTuning(X, q), Transcription(X, q)
    state = learner.init(2)
    level = np.array([2.0, 1.0])
    for t in range(120):
        c, A = rng.standard_normal(3), rng.uniform(0.2, 1.0, (2, 3))
        level = level + 0.05 * rng.standard_normal(2) + (0.01 if t > 60 else 0.0)
        b = np.maximum(level + 0.2 * rng.standard_normal(2), -0.2)
        state = learner.update(state, coldq.Feedback(coldq.Linear(c), coldq.Affine(A, b)))
        plain.update(c, A, b)
        assert np.allclose(state.x, plain.x, rtol=0.0, atol=1e-8)
        assert state.factor == pytest.approx(plain.lam, abs=1e-12)
        assert bool(state.saturated) == plain.saturated
        assert int(state.forecast) == plain.chosen
        in_use = plain.weights[POOL.index(float(state.step_size))]  # experts may tie
        assert in_use >= plain.weights.max() * (1.0 - 1e-9)


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


def most(q: float, violated: np.ndarray, saturated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The counted violations and their bound, from flags (slots, runs) of the slots 2 to T."""
    first = lam = np.full(violated.shape[1], max(0.0, math.log(1.0 / (2.0 * q))))
    V, etas = 0.0, []
    for bad, full in zip(violated, saturated, strict=True):
        e = np.where(bad, np.where(full, 0.0, 1.0 - q), -q)
        V = V + e * e
        etas.append(np.maximum(0.1, 1.0 / np.sqrt(1.0 + V)))
        lam = np.maximum(0.0, lam + etas[-1] * e)
    excluded = (violated & saturated).sum(axis=0)
    bound = q * (len(violated) - excluded) + lam / etas[-1] - first / etas[0]
    return (violated & ~saturated).sum(axis=0), bound


def kept_on_every_run(learner, runs: int, slots: int, reveal) -> None:
    state, violated, saturated = learner.init(2, batch=(runs,)), [], []
    domain = learner.domain
    for t in range(1, slots + 1):
        loss, g = reveal(t, state.x)
        over = g.value(state.x) > slack(g.A, g.b, state.x, float(domain.diameter))
        if t > 1:
            violated.append(over.any(axis=-1))
            saturated.append(np.array(state.saturated))
        state = learner.update(state, coldq.Feedback(loss, g))
    counted, bound = most(learner.violation_rate, np.array(violated), np.array(saturated))
    assert (counted <= bound + 1e-9).all()
    found = learner.certificate(state)
    assert np.array_equal(found["violated"], counted)
    assert np.allclose(found["bound"], bound, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("q", [0.01, 0.05, 0.2, 0.5, 0.9])
def test_the_count_is_bounded_on_ten_thousand_random_runs(q) -> None:
    rng, runs = np.random.default_rng(int(1000 * q)), 2000
    box = coldq.Box(0.0, 1.0, dim=2)

    def reveal(t, x):
        A = rng.standard_normal((runs, 2, 2)) * (rng.random((runs, 2, 1)) < 0.95)
        b = rng.standard_t(1.5, (runs, 2)) * np.exp(rng.standard_normal((runs, 1)))
        return coldq.Linear(rng.standard_normal((runs, 2))), coldq.Affine(A, b + 0.5)

    kept_on_every_run(coldq.SelfTuning(box, q), runs, 25, reveal)


@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize("q", [0.02, 0.3])
def test_adversaries_that_violate_whenever_they_can_do_not_exceed_it(q, around) -> None:
    rng, runs = np.random.default_rng(1), 200
    box = coldq.Box(0.0, 1.0, dim=2)
    learner = coldq.SelfTuning(box, q)
    if around:
        learner = coldq.SafetyMargin(coldq.COLDQ(box, horizon=200), q)
    how = rng.integers(0, 3, runs)[:, None]

    def reveal(t, x):
        A = rng.uniform(0.0, 1.0, (runs, 2, 2))
        at = (A * x[:, None, :]).sum(axis=-1)
        greedy = at - 0.01 * rng.random((runs, 2))  # just below what was played
        jumps = np.where(t % 7 == 0, at - 0.3, at + 0.1)
        impossible = np.where(rng.random((runs, 2)) < 0.3, -0.1, 0.5)
        b = np.where(how == 0, greedy, np.where(how == 1, jumps, impossible))
        return coldq.Linear(-rng.random((runs, 2))), coldq.Affine(A, b)

    kept_on_every_run(learner, runs, 120, reveal)


@pytest.mark.parametrize("q", [0.1, 0.05])
def test_the_rate_is_met_where_volatility_changes(q) -> None:
    rng, runs, slots = np.random.default_rng(2), 40, int(100 / q)
    learner = coldq.SelfTuning(coldq.Box(0.0, 40.0, dim=1), q)
    state, violated, saturated = learner.init(1, batch=(runs,)), 0, 0
    level = np.full((runs, 1), 10.0)
    for t in range(slots):
        noise = np.where((t // 200) % 2, 1.0, 0.2) * rng.standard_normal((runs, 1))
        level = np.clip(level + 0.3 * noise, 5.0, 15.0)
        demand = level + noise
        g = coldq.Affine([[-1.0]], -demand)
        violated = violated + (g.value(state.x)[:, 0] > 1e-6)
        saturated = saturated + state.saturated.mean() / slots
        state = learner.update(state, coldq.Feedback(coldq.Linear([1.0]), g))
    assert saturated < 0.05
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
    counted = learner.certificate(state)
    real = sum(over > 0.05 for over in found[1:])
    assert 0 < real <= counted["violated"] + counted["excluded"] <= real + 10
    assert counted["violated"] <= counted["bound"]


def test_a_decision_on_the_boundary_is_no_violation_beside_a_bound_meant_as_no_limit() -> None:
    domain = coldq.Box(0.0, 1e9, dim=3)
    learner = coldq.SelfTuning(domain, 0.1)
    state = learner.init(2, start=[30.0, 30.0, 30.0])
    rows = coldq.Affine([[0.3, 0.7, 1.1], [1.3, 0.1, 0.7]], [100.0 / 3.0, 70.0 / 3.0])
    revealed = coldq.Feedback(coldq.Linear([-0.7, -1.1, -0.9]), rows)
    for _ in range(100):
        state = learner.update(state, revealed)
    assert (np.abs(rows.value(state.x)) < 1e-6).any()
    assert learner.certificate(state)["violated"] <= 1  # where it started


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
            counted = learner.certificate(state)
            assert counted["violated"] <= counted["bound"] and counted["excluded"] <= 1
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
    with pytest.warns(coldq.UnlikelyUnits, match="coordinate 0 is 6e.08 wide and coordinate 1 0.6"):
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
    assert not state.saturated
    g = coldq.Affine([[1.0, 1.0], [0.0, 0.0]], [2.0, -1e-9])  # and now nothing can keep it
    state = learner.update(state, coldq.Feedback(coldq.Linear([0.0, 0.0]), g))
    assert state.saturated


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


def test_the_certificate_of_a_run_counts_and_names_saturated_slots() -> None:
    problem = P.TimeVarying(120)
    trace = coldq.simulate(coldq.SelfTuning(problem.domain, 0.1), problem, range(3))
    certificate = coldq.certify(trace)
    check = certificate.check("violated slots")
    raw = (trace.constraint[:, 1:] > 1e-9).any(axis=-1)
    full = trace.saturated[:, 1:]
    assert np.array_equal(check.realised, (raw & ~full).sum(axis=1))
    _, bound = most(0.1, raw.T, full.T)
    assert np.allclose(check.bound, bound)
    assert certificate.holds
    assert str(int(np.flatnonzero(trace.saturated[0])[0]) + 1) in str(certificate)


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
    check = coldq.certify(trace).check("dynamic regret")
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
    # Where there is none, 0'x <= 0 fills up; a margin to it would be out of reach, and what is
    # violated after a step that cannot be held is not counted.
    rng, learner = np.random.default_rng(0), make(coldq.Box(0.0, 10.0, dim=2))
    state, violated = learner.init(2), 0
    for t in range(600):
        A = np.array([[-1.0, -1.0], [0.0, -1.0 if t % 20 == 0 else 0.0]])
        b = A @ [5.0, 3.0] - rng.normal(0.0, [1.0, 0.5]) * A.any(axis=1)
        violated += (A @ state.x > b + 1e-9).any()
        g = coldq.SparseAffine(sparse.csr_array(A), b) if sparse_rows else coldq.Affine(A, b)
        state = learner.update(state, coldq.Feedback(coldq.Linear([1.0, 2.0]), g))
    assert state.excluded <= 3
    assert violated < 80


@pytest.mark.parametrize(
    ("p", "n", "options"),
    [(10, 2, {}), (3, 0, {"pool": [1.0]}), (1, 1, {}), (6, 16, {"pool": [1.0, 0.1, 0.01]}),
     (20, 5, {"forecasts": (coldq.forecasts.Trend(0.3), coldq.forecasts.Seasonal(4))}),
     (6, 17, {}), (2, 1, {"domain": coldq.Box(0.0, [1.0, 1000.0])})],
)  # fmt: skip
def test_one_call_gives_the_bits_and_residuals_of_the_plain_path(
    p: int, n: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"domain": coldq.Box(-1.0, 4.0, dim=p), "violation_rate": 0.1} | options
    learner, rng, done = coldq.SelfTuning(**given), np.random.default_rng(p), []
    at_once = coldq.SelfTuning._update_at_once
    state = learner.init(n)
    for t in range(30):
        A, b = rng.normal(size=(n, p)), rng.uniform(-0.5, 1.0, n)
        A[: t % 3 == 0] = 0.0  # a row without a slope
        told = coldq.Feedback(coldq.Linear(rng.normal(size=p)), coldq.Affine(A, b))
        where = rng.uniform(0.0, 1.0, p) if t % 4 == 1 else None  # late
        monkeypatch.setattr(coldq.SelfTuning, "_update_at_once", lambda *_: None)
        with Residuals() as plain:
            expected = learner.update(state, told, where)
        monkeypatch.setattr(
            coldq.SelfTuning, "_update_at_once", lambda *a: done.append(at_once(*a)) or done[-1]
        )
        before = state.to_arrays()
        with Residuals() as heard:
            found = learner.update(state, told, where)
        assert heard.worst == plain.worst and len(heard.heard) == 1
        for one, other in ((found, expected.to_arrays()), (state, before)):
            assert all(a.tobytes() == other[k].tobytes() for k, a in one.to_arrays().items())
        state = found
    assert len(done) == 30 and done.count(None) == (30 if n > 16 else 0)


def test_what_one_call_cannot_solve_is_left_to_the_plain_path(monkeypatch) -> None:
    learner = coldq.SelfTuning(coldq.Box(0.0, 1.0, dim=2))
    told = coldq.Feedback(coldq.Linear([-1.0, -2.0]), coldq.Affine([[1.0, 1.0]], [1.0]))
    expected = learner.update(learner.init(1), told).x
    for wrong in (1e-3, math.nan):
        monkeypatch.setattr(
            "coldq.learners.self_tuning._one_call",
            lambda *shape, wrong=wrong: (lambda *_: wrong, None, 1),
        )
        assert learner.update(learner.init(1), told).x.tobytes() == expected.tobytes()


def test_steps_that_threads_share_are_not_taken_in_one_call() -> None:
    assert _one_call(8, 2, 10) is not None
    assert _one_call(8, 2, 100_000) is None
