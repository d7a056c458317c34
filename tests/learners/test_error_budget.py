"""No window of slots has more violations than the theorem allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import coldq
from coldq.learners.enforced_rows import margin_kept
from coldq.learners.error_budget import Budget, book, overdraft_bound, tighten
from tests.learners.demands import ALL, Run, Setting

RATES = (0.1, 0.05, 0.02, 0.01, 0.002)
TOLERANCE, LARGEST = 1e-8, 1e12
Player = Callable[[int, Any, Any], Any]  # (slot, margins, records) -> surprises, in (runs, rows)


def player(kind: str, runs: int, n: int, seed: int, T: int) -> Player:
    """Who chooses the surprises, with the margin in sight."""
    rng = np.random.default_rng([seed, len(kind)])
    share = np.exp(rng.uniform(-6.0, 0.0, (runs, 1)))
    sizes = np.exp(rng.normal(0.0, 3.0, (runs, n)))
    memory: dict[str, Any] = {}

    def just(margin: Any, by: Any = 1e-6) -> Any:
        return margin * (1.0 + by) + 1e-3 * by

    def spikes(t: int, margin: Any, record: Any) -> Any:
        hit = rng.random((runs, n)) < share
        return np.where(hit, sizes * rng.random((runs, n)), -1e-3)

    def heavy(t: int, margin: Any, record: Any) -> Any:
        return sizes * rng.standard_t(1.2, (runs, n))

    def above(t: int, margin: Any, record: Any) -> Any:
        hit = (rng.random((runs, 1)) < share) & (rng.random((runs, n)) < 0.7)
        return np.where(hit, just(margin), 0.0)

    def always(t: int, margin: Any, record: Any) -> Any:
        return just(margin, rng.choice([1e-6, 1e-3, 0.1], (runs, 1)))

    def one_row(t: int, margin: Any, record: Any) -> Any:
        return np.where(np.arange(n) == rng.integers(n), just(margin), -1.0)

    def least(t: int, margin: Any, record: Any) -> Any:
        """The record once, quiet slots in which M decays, then all out."""
        if t == 1:
            return sizes
        calm = t % 1000 < 700 if T > 1000 else t < T // 2
        return np.full((runs, n), -1.0) if calm else np.minimum(just(margin), 0.99 * sizes)

    def records(t: int, margin: Any, record: Any) -> Any:
        """A new record now and then, else as little above the margin as can be."""
        size = np.where(rng.random((runs, 1)) < 0.2, 3.0 * np.maximum(record, 1e-3), just(margin))
        return np.where(rng.random((runs, n)) < share, size, 0.0)

    def climbing(t: int, margin: Any, record: Any) -> Any:
        memory["size"] = memory.get("size", 1e-6 * sizes) * np.where(
            rng.random((runs, n)) < 0.1, 1.3, 1.0
        )
        memory["size"] = np.minimum(memory["size"], 1e9)
        return np.where(rng.random((runs, 1)) < 0.3, np.maximum(memory["size"], just(margin)), 0.0)

    def equal(t: int, margin: Any, record: Any) -> Any:
        """Spikes of one size, to the bit, and of half of it."""
        return np.where(rng.random((runs, n)) < share, sizes, np.where(t % 3, 0.0, 0.5 * sizes))

    def late_row(t: int, margin: Any, record: Any) -> Any:
        """Rows that never surprised before, one after the other, while others are violated."""
        seen = np.arange(n) * (T // (2 * n)) < t
        return np.where(seen, just(margin, 0.5), 0.0)

    return locals()[kind]


KINDS = ("spikes", "heavy", "above", "always", "one_row", "least", "records", "climbing", "equal",
         "late_row")  # fmt: skip


def run(kind: str, q: float, runs: int, n: int, T: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Flags (slots, runs) of violated slots, and the overdraft and its bound after each."""
    choose = player(kind, runs, n, seed, T)
    rng = np.random.default_rng(seed)
    budget, ordinary = Budget.first((runs,), n), np.zeros((runs, n))
    flags, overdrafts, bounds = (np.zeros((T, runs)) for _ in range(3))
    never = np.zeros(runs, bool)
    for t in range(1, T + 1):
        margin = tighten(budget, q, np.full(runs, t - 1.0), ordinary)
        surprise = np.minimum(choose(t, margin, budget.record), LARGEST)
        violated = surprise > margin
        slots, tolerance = np.full(runs, float(t)), np.full((runs, n), TOLERANCE)
        before = budget
        budget = book(
            budget, q, slots, violated, surprise, tolerance, infeasible=never, reduced=never
        )
        assert (budget.largest >= surprise).all()
        inside = (before.stretch > 0.0) & (budget.stretch > 0.0)
        assert (budget.largest[inside] >= before.largest[inside]).all()
        flags[t - 1] = violated.any(axis=-1)
        overdrafts[t - 1], bounds[t - 1] = budget.overdraft, overdraft_bound(budget, q, slots)
        # Anything at all, also nothing, as an ordinary margin.
        keep = rng.random((runs, 1)) < 0.9
        ordinary = np.where(keep, ordinary, rng.exponential(1.0, (runs, n)) * budget.largest)
        ordinary[: runs // 2] = 0.0
    return flags, overdrafts, bounds


def overdraft_of(flags: Any, q: float) -> Any:
    """D after each slot, from the violations alone."""
    found, D = np.empty(flags.shape), np.zeros(flags.shape[1:])
    for t, v in enumerate(flags):
        D = np.maximum(0.0, D + v - q)
        found[t] = D
    return found


def no_window_above(flags: Any, bounds: Any, q: float, windows: bool = False) -> None:
    """That violations of slots a to b are at most ``q W + bound_b - D_{a-1}``."""
    D = overdraft_of(flags, q)
    assert (bounds + 1e-9 >= D).all(), float((D - bounds).max())
    if windows:  # each one counted
        total = np.concatenate([np.zeros((1, flags.shape[1])), np.cumsum(flags, axis=0)])
        before = np.concatenate([np.zeros((1, flags.shape[1])), D])
        for b in range(1, len(total)):
            a = np.arange(b)  # slots a + 1 to b
            most = q * (b - a)[:, None] + bounds[b - 1] - before[:b]
            assert (total[b] - total[:b] <= most + 1e-9).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 5])
def test_no_window_of_ten_thousand_short_runs_is_above_its_bound(kind: str, n: int) -> None:
    for k, q in enumerate(RATES):
        T = 60 if q > 0.01 else 40
        flags, overdrafts, bounds = run(kind, q, 1000, n, T, seed=k)
        assert np.allclose(overdrafts, overdraft_of(flags, q), rtol=0.0, atol=1e-9)
        no_window_above(flags, bounds, q, windows=k == 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 5])
def test_no_window_of_a_long_run_is_above_its_bound(kind: str, n: int) -> None:
    for q, T in ((0.1, 500), (0.02, 1500), (0.002, 1500)):
        flags, overdrafts, bounds = run(kind, q, 20, n, T)
        assert np.allclose(overdrafts, overdraft_of(flags, q), rtol=0.0, atol=1e-9)
        no_window_above(flags, bounds, q)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("delay", [0, 1, 3, 10])
def test_late_feedback_adds_its_delay_for_each_row(n: int, delay: int) -> None:
    # In a stretch each row in turn is violated by as little as can be, delay + 1 times.
    q, never, flags, bounds = 0.01, np.zeros((), bool), [], []
    made, rows = [Budget.first((), n)], iter(np.repeat(np.arange(n), delay + 1))
    for t in range(1, 150):
        seen, slots = made[-1], np.array(float(t))
        margin = tighten(made[max(0, t - 1 - delay)], q, slots - 1.0, np.zeros(n))
        surprise = np.full(n, 1.0 if t == 2 else -1.0)
        if t > 2 and not seen.stretch:
            surprise = margin + 1e-3
        elif seen.stretch and (k := next(rows, None)) is not None:
            surprise[k] = max(1.001 * seen.entry_record[k], 1.001 * margin[k])
        violated = surprise > margin
        tolerance = np.full(n, TOLERANCE)
        made.append(book(
            seen, q, slots, violated, surprise, tolerance, infeasible=never, reduced=never
        ))  # fmt: skip
        flags.append([violated.any()])
        bounds.append([overdraft_bound(made[-1], q, slots, delay)])
    assert next(rows, None) is None
    no_window_above(np.array(flags, float), np.array(bounds), q)
    D = overdraft_of(np.array(flags, float), q)
    assert delay == 0 or (D - np.array(bounds)).max() > -4.0  # it comes near its bound


def test_no_ratio_of_doubles_takes_more_than_eleven_lifts() -> None:
    q, ones, never = 0.1, np.ones(1), np.zeros((), bool)
    budget = Budget.first((), 1)._replace(
        overdraft=np.array(50.0), stretch=np.array(1.0), largest=1e-323 * ones,
        entry_largest=1e-323 * ones, record=1e300 * ones, entry_record=1e300 * ones,
    )  # fmt: skip
    for t in range(1, 12):
        budget = book(
            budget, q, np.array(float(t)), np.array([True]), budget.largest, 0.0 * ones,
            infeasible=never, reduced=never,
        )  # fmt: skip
    assert budget.largest == budget.record


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_rows_that_are_first_seen_in_a_stretch_cost_one_violation_more_each(unit: float) -> None:
    # A row 0'x <= 0 has no terms and so no tolerance: nothing is known of it until it is there.
    q, n, T, runs = 0.02, 4, 400, 50
    rng, zeros = np.random.default_rng(0), np.zeros((runs, n))
    budget, never, flags, bounds = Budget.first((runs,), n), np.zeros(runs, bool), [], []
    appears = np.where(np.arange(n) == 0, 0, rng.integers(2, 60, (runs, n)))
    for t in range(1, T + 1):
        margin = tighten(budget, q, np.full(runs, t - 1.0), zeros)
        there = appears < t
        surprise = np.where(there, 1.3 * margin + unit * rng.random((runs, n)), 0.0)
        surprise = np.where(rng.random((runs, n)) < 0.7, np.minimum(surprise, 1e3 * unit), 0.0)
        slots, tolerance = np.full(runs, float(t)), np.where(there, 1e-8 * unit, 0.0)
        violated = surprise > np.maximum(margin, tolerance)
        budget = book(
            budget, q, slots, violated, surprise, tolerance, infeasible=never, reduced=never
        )
        flags.append(violated.any(axis=-1))
        bounds.append(overdraft_bound(budget, q, slots))
    no_window_above(np.array(flags, float), np.array(bounds), q)


def around(kind: str, domain: Any, q: float) -> Any:
    """A learner that keeps q."""
    if kind == "SelfTuning":
        return coldq.SelfTuning(domain, q, forecasts=coldq.forecasts.SMALL_MEMORY)
    if kind == "BestResponse":
        return coldq.SafetyMargin(coldq.BestResponse(domain), q)
    return coldq.SafetyMargin(coldq.COLDQ(domain, horizon=1000), q)


def kept(run: Run, q: float) -> None:
    """No window of a run is above its bound, by the violations alone and by what was booked."""
    flags = run.flags.astype(np.float64)
    no_window_above(flags, run.bounds, q)
    found = run.learner.bound_report(run.state)
    assert (run.overdrafts(q)[-1] <= run.overdraft + 1e-6).all()  # no violation was overlooked
    assert (run.overdraft <= run.bounds[-1] + 1e-9).all()
    assert (found["violated"] >= flags.sum(axis=0)).all()
    assert not found["infeasible"].any()


@pytest.mark.parametrize("q", RATES)
def test_no_stream_or_adversary_is_above_the_bound(q: float) -> None:
    setting, slots = Setting("box"), 400
    run = Run(around("SelfTuning", setting.domain, q), setting, ALL, 20, slots)
    kept(run, q)
    assert not run.reduced.any()  # one row that is feasible has room for its margin
    if q == 0.05:
        assert (run.flags[:300].sum(axis=0) <= 2.5 * q * 300).all()


@pytest.mark.parametrize("learner", ["SelfTuning", "COLDQ", "BestResponse"])
@pytest.mark.parametrize("kind", ["boxes", "simplex", "polytope"])
def test_nor_with_five_rows(kind: str, learner: str) -> None:
    for q, slots in ((0.1, 80), (0.02, 120)):
        setting = Setting(kind)
        run = Run(around(learner, setting.domain, q), setting, ALL, 3, slots)
        kept(run, q)


@pytest.mark.parametrize("learner", ["COLDQ", "BestResponse"])
def test_nor_around_a_learner_with_finite_prices(learner: str) -> None:
    setting = Setting("box")
    for q in (0.05, 0.01):
        kept(Run(around(learner, setting.domain, q), setting, ALL, 8, 300), q)


@pytest.mark.parametrize("learner", ["SelfTuning", "COLDQ"])
@pytest.mark.parametrize(("kind", "delay"), [("box", 1), ("box", 3), ("box", 10), ("boxes", 4)])
def test_late_feedback_adds_its_delay_to_the_bound(kind: str, delay: int, learner: str) -> None:
    q, setting = 0.05, Setting(kind)
    runs, slots = (8, 300) if kind == "box" else (2, 150)
    kept(Run(around(learner, setting.domain, q), setting, ALL, runs, slots, delay), q)


def opposing(low: Any, high: Any) -> coldq.Affine:
    """low <= x <= high."""
    ends = np.stack(np.broadcast_arrays(-np.asarray(low), high), axis=-1)
    return coldq.Affine(np.broadcast_to([[-1.0], [1.0]], (*ends.shape[:-1], 2, 1)), ends)


def test_where_the_margin_has_no_room_all_limits_so_far_are_kept() -> None:
    # 25 <= x <= 75 is expected, and 60 and 40 are asked for: 85 <= x <= 35.
    X, near = coldq.Box(0.0, 100.0, dim=1), np.array([3.0])

    def found(worst: list[float]) -> Any:
        margin = np.array([60.0, 40.0])
        return margin_kept(opposing(25.0, 75.0), margin, np.array(worst), X, near, TOLERANCE)

    margin, whole, reduced, x = found([24.5, 23.5])  # 49.5 <= x <= 51.5 so far: its middle
    assert (whole, reduced) == (False, False)
    np.testing.assert_allclose((*margin, *x), [25.5, 24.5, 50.5], rtol=1e-6)
    margin, whole, reduced, x = found([26.0, 26.0])  # no decision has kept all so far
    assert (whole, reduced) == (False, True)
    np.testing.assert_allclose((*margin, *x), [25.0, 25.0, 50.0], rtol=1e-6)
    margin, whole, reduced, x = found([30.0, -24.0])  # 55 <= x <= 99: 40 above has no room
    assert (whole, reduced) == (False, False)
    np.testing.assert_allclose((*margin, *x), [52.0, -2.0, 77.0], rtol=1e-6)


def nearer(x: Any, low: Any, high: Any) -> Any:
    """Just beyond what is played, of the end that is nearer to where it must not go."""
    return np.where(x < 50.0, np.minimum(x + 0.01, 49.5), low), np.where(
        x < 50.0, high, np.maximum(x - 0.01, 50.5)
    )


@pytest.mark.parametrize(
    ("kind", "learner", "slots"),
    [("at random", "SelfTuning", 120), ("nearer", "SelfTuning", 200), ("either", "SelfTuning", 120),
     ("either", "COLDQ", 120), ("nearer", "BestResponse", 120)],
)  # fmt: skip
def test_rows_that_oppose_each_other_reduce_no_decision(
    kind: str, learner: str, slots: int
) -> None:
    # 50 keeps all: each new limit halves what can still be asked for.
    q, runs, rng = 0.05, 3, np.random.default_rng(3)
    made = around(learner, coldq.Box(0.0, 100.0, dim=1), q)
    state, flags, bounds = made.init(2, batch=(runs,)), [], []
    for _ in range(slots):
        x = state.x[:, 0]
        low, high = 50.0 * rng.random(runs) - 0.5, 50.5 + 49.0 * rng.random(runs)
        if kind == "nearer":
            low, high = nearer(x, 0.0 * x, 100.0 + 0.0 * x)
        elif kind == "either":
            on = rng.random(runs) < 0.5
            closer = nearer(x, low, high)
            low, high = np.where(on, closer[0], low), np.where(on, closer[1], high)
        flags.append((x < low - 2e-6) | (x > high + 2e-6))
        state = made.update(state, coldq.Feedback(coldq.Linear([1.0]), opposing(low, high)))
        assert not state.reduced.any()
        bounds.append(made.bound_report(state)["overdraft_bound"])
    no_window_above(np.array(flags, float), np.array(bounds), q)
    found = made.bound_report(state)
    assert not found["infeasible"].any()
    assert (found["reduced"] <= np.log2(100.0 / 1.0) + 2.0).all()  # of 100, 1 is always kept


def test_slopes_that_differ_by_rounding_are_the_same() -> None:
    learner, rng = coldq.SelfTuning(coldq.Box(0.0, 100.0, dim=2), 0.05), np.random.default_rng(5)
    state = learner.init(2)
    for _ in range(100):
        A = np.array([[-1.0, -0.1], [1.0, 0.1]]) * (1.0 + 1e-15 * rng.integers(-2, 3, (2, 2)))
        b = np.array([0.5 - 50.0 * rng.random(), 50.5 + 49.0 * rng.random()])
        g = coldq.Affine(A, b)
        state = learner.update(state, coldq.Feedback(coldq.Linear([1.0, 0.7]), g))
    assert state.reduced == 0


@pytest.mark.parametrize("change", [None, 60])
@pytest.mark.parametrize("apart", [False, True])
def test_sparse_rows_are_kept_as_dense_ones(apart: bool, change: int | None) -> None:
    learner, rng = coldq.SelfTuning(coldq.Box(0.0, 100.0, dim=2), 0.05), np.random.default_rng(4)
    dense = thin = learner.init(2)
    for t in range(150):
        A = np.array([[-1.0, -0.5], [1.0, 0.5 if t != change else 0.6]])
        b = np.array([0.5 - 50.0 * rng.random(), 50.5 + 49.0 * rng.random()])
        rows: Any = coldq.SparseAffine(sparse.csr_array(A), b)
        if apart:
            rows = coldq.Stacked(*(coldq.SparseAffine(rows.A[[k]], b[[k]]) for k in range(2)))
        loss = coldq.Linear([1.0, 0.7])
        dense = learner.update(dense, coldq.Feedback(loss, coldq.Affine(A, b)))
        thin = learner.update(thin, coldq.Feedback(loss, rows))
        if change is None or t < change:  # averages of slopes are of dense rows alone
            np.testing.assert_allclose(thin.x, dense.x, atol=1e-6)
    # Limits of other slopes say nothing.
    assert (dense.reduced > 0) == (thin.reduced > 0) == (change is not None)


def test_where_one_decision_keeps_all_rows_no_slot_is_reduced() -> None:
    for kind in ("boxes", "simplex", "polytope"):
        setting = Setting(kind)
        run = Run(around("SelfTuning", setting.domain, 0.05), setting, ALL, 1, slots=250)
        assert not run.reduced.any(), set(run.names[run.reduced.any(axis=0)])


def all_finite(state: Any) -> bool:
    arrays = [np.asarray(a) for a in state.to_arrays().values()]
    return all(np.isfinite(a).all() for a in arrays if a.dtype.kind == "f")


@pytest.mark.parametrize("intervals", [2, 5])
@pytest.mark.parametrize("learner", ["SelfTuning", "COLDQ"])
def test_where_no_player_can_keep_a_rate_nothing_runs_away(learner: str, intervals: int) -> None:
    # One of several disjoint intervals is drawn; every player misses all but one of them.
    q, runs, slots, rng = 0.05, 4, 100, np.random.default_rng(intervals)
    domain = coldq.Box(0.0, 100.0, dim=1)
    made = around(learner, domain, q)
    state, flags = made.init(2, batch=(runs,)), np.zeros((slots, runs))
    width = 100.0 / (2 * intervals)
    A = np.broadcast_to([[-1.0], [1.0]], (runs, 2, 1))
    impossible = np.zeros(runs)
    for t in range(1, slots + 1):
        low = 2.0 * width * rng.integers(0, intervals, runs)
        high = low + width
        odd = rng.random(runs) < 0.1
        low, high = np.where(odd, high, low), np.where(odd, low, high)  # none at all
        x, before = state.x[:, 0], made.bound_report(state)
        flags[t - 1] = ((x < low - 2e-6) | (x > high + 2e-6)) & ~odd
        impossible += odd
        g = coldq.Affine(A, np.stack([-low, high], axis=-1))
        state = made.update(state, coldq.Feedback(coldq.Linear([1.0]), g))
        found = made.bound_report(state)
        assert (found["overdraft"][odd] == before["overdraft"][odd]).all()
        assert (found["overdraft"] <= found["overdraft_bound"] + 1e-9).all()
    assert np.array_equal(found["infeasible"], impossible)
    assert np.array_equal(found["violated"], flags.sum(axis=0))
    assert all_finite(state)
    assert (state.largest < 100.0 * np.e**2).all() and (state.factor < 1e3).all()
    share = found["violated"].sum() / found["slots"].sum()
    assert share > 0.5 * (1.0 - 1.0 / intervals)  # as it must be
    level = np.full((runs, 1), 30.0)  # and when what cannot be kept has gone, the rate is kept
    late = np.zeros(runs)
    for _ in range(200):
        g = coldq.Affine(A, np.concatenate([-level - rng.random((runs, 1)), 99.0 + 0.0 * level], 1))
        late += g.value(state.x).max(axis=-1) > 2e-6
        state = made.update(state, coldq.Feedback(coldq.Linear([1.0]), g))
    assert late.max() <= 0.15 * 200


def test_a_row_that_comes_back_is_judged_by_what_was_kept_of_it() -> None:
    q, runs, slots, rng = 0.02, 10, 480, np.random.default_rng(4)
    made = around("SelfTuning", coldq.Box(0.0, 100.0, dim=2), q)
    state, flags, bounds = made.init(2, batch=(runs,)), [], []
    for t in range(1, slots + 1):
        A = -np.broadcast_to(np.eye(2), (runs, 2, 2)).copy()
        b = -np.clip(20.0 + 5.0 * rng.standard_t(2.0, (runs, 2)), 0.0, 95.0)
        gone = (t % 120) > 60
        if gone:  # the second row is not there: 0'x <= 0
            A[:, 1], b[:, 1] = 0.0, 0.0
        elif t % 120 == 0 or t < 15:
            b = np.maximum(-state.x - 1.0, -95.0)
        over = (A @ state.x[..., None])[..., 0] - b
        flags.append((over > 2e-6).any(axis=-1))
        state = made.update(state, coldq.Feedback(coldq.Linear([1.0, 1.0]), coldq.Affine(A, b)))
        bounds.append(made.bound_report(state)["overdraft_bound"])
    no_window_above(np.array(flags, float), np.array(bounds), q)
    assert all_finite(state)
    assert (state.largest <= 100.0 * np.e).all()


STEEP = {
    "steep": ([[1000.0, 1.0]], [1000.5]),
    "thin": ([[1e6, -1e6], [-1e6, 1e6]], [1e-3, 1e-3]),
    "far apart": ([[1e6, 1.0], [1.0, 1e-3]], [1000.0, 0.4]),
    "one point": ([[1e3, 1e-3], [-1.0, 1e3]], [0.5, 0.25]),
}


@pytest.mark.parametrize("kind", STEEP)
@pytest.mark.parametrize("domain", ["box", "simplex"])
def test_a_fixed_constraint_is_kept_without_a_margin(kind: str, domain: str) -> None:
    A, b = (np.array(a) for a in STEEP[kind])
    if kind == "steep":
        A, b = -A, -b
    X: Any = coldq.Box(0.0, 1.0, dim=2)
    if domain == "simplex":  # x3 = 2 - x1 - x2
        X, A = coldq.Simplex(3, total=2.0), np.column_stack([A, 0.0 * A[:, 0]])
    learner = coldq.SelfTuning(X, forecasts=coldq.forecasts.Last())
    rng, p = np.random.default_rng(0), A.shape[1]
    state, g, found = learner.init(len(b)), coldq.Affine(A, b), []
    for t in range(300):
        found.append(float(np.maximum(g.value(state.x), 0.0).max() / np.abs(A).max()))
        price = np.ones(p) if t < 150 else rng.standard_normal(p)
        state = learner.update(state, coldq.Feedback(coldq.Linear(price * (t + 1.0)), g))
    assert sum(found[1:]) <= 1e-6
    assert learner.bound_report(state)["violated"] <= 1
    assert not learner.bound_report(state)["infeasible"]
