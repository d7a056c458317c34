"""No window of slots has more violations than the theorem allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coldq.learners.error_budget import Budget, book, overdraft_bound, tighten

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
        calm = t % 2000 < 1500 if T > 2000 else t < T // 2
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
    for q in RATES:
        flags, overdrafts, bounds = run(kind, q, 20, n, 2500)
        assert np.allclose(overdrafts, overdraft_of(flags, q), rtol=0.0, atol=1e-9)
        no_window_above(flags, bounds, q)


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
