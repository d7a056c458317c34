"""The learners' margins are those of the rule as it is written down, slot after slot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import coldq
from tests.learners.margin_rule import MarginRule

LOWER, UPPER = np.zeros(2), np.array([1000.0, 800.0])
X = coldq.Box(LOWER, UPPER)
FORECASTS = (coldq.forecasts.MovingAverage(0.5), coldq.forecasts.Trend(0.3))
SLOTS = 300


def streams(kind: str, n: int) -> Iterator[Any]:
    """Rows, each `(A, b)` with n of them, given the decision and the margin that they meet."""
    rng = np.random.default_rng(len(kind) + n)
    A = -rng.uniform(0.3, 1.0, (n, 2)) * np.logspace(0, 3, n)[:, None]  # of unlike sizes
    x = yield None
    t = 0
    while True:
        t += 1
        level = A @ [3.0, 2.0]
        noise = 0.05 * np.abs(level) * rng.standard_normal(n)
        b = level + noise
        rows = np.array(A)
        if kind == "spikes" and t % 9 == 0:
            b = b + 0.6 * level * rng.random()
        if kind == "greedy" and t % 3:
            b = A @ x - 1e-3 * np.abs(level) * rng.random()  # just below what was played
            b = np.maximum(b, (0.9 + 0.1 * rng.random()) * A @ UPPER)
        if kind == "climbing" and t % 100 < 30:
            size = 1.2 ** (t % 100) * 1e-3 * np.abs(level)
            b = np.where(rng.random(n) < 0.8, A @ x - size, b)
            b = np.maximum(b, (0.9 + 0.1 * rng.random()) * A @ UPPER)
        if kind == "opposing":  # [300, 200] keeps all
            rows[1::2] *= -1.0
            middle = rows @ [300.0, 200.0]
            b = middle + 0.3 * np.abs(middle) * rng.random(n)
        if kind == "odd":
            if t % 11 == 0:
                rows[t % n] = 0.0  # a row without a slope: kept or not by all
                b[t % n] = 1.0
            if t % 13 == 0:
                b = 1.2 * A @ UPPER  # no decision keeps it
            if t % 17 == 0:
                b = 3.0 * level
            if t > 150:
                rows = rows * (1.0 + 0.2 * np.sin(t / 5.0))
        x = yield rows, b


def learners(kind: str) -> Any:
    if kind == "SelfTuning":
        return coldq.SelfTuning
    return lambda X, q, forecasts: coldq.SafetyMargin(
        coldq.COLDQ(X, horizon=SLOTS), q, forecasts=forecasts
    )


@pytest.mark.parametrize("make", ["SelfTuning", "SafetyMargin"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("kind", ["noise", "spikes", "greedy", "climbing", "odd", "opposing"])
def test_margins_are_those_of_the_rule(kind: str, n: int, late: bool, make: str) -> None:
    q, rng = 0.02, np.random.default_rng(1)
    learner = learners(make)(X, q, forecasts=FORECASTS)
    rule = MarginRule(q, n, LOWER, UPPER, float(X.diameter))
    state, stream, decisions, stretches = learner.init(n), streams(kind, n), [], 0
    next(stream)
    for t in range(1, SLOTS + 1):
        decisions.append(state.x)
        played = decisions[max(0, t - 3)] if late else state.x
        A, b = stream.send(played)
        feedback = coldq.Feedback(coldq.Linear(rng.uniform(0.5, 1.0, 2)), coldq.Affine(A, b))
        x = state.x
        state = learner.update(state, feedback, played if late else None)
        rows = [(list(map(float, a)), float(limit)) for a, limit in zip(A, b, strict=True)]
        rule.observe(list(map(float, x)), rows, list(map(float, played)))
        scale = max(1.0, float(np.abs(b).max()))
        near = {"rtol": 1e-7, "atol": 1e-9 * scale}
        whole = np.array(rule.margin)
        cut = state.margin < whole - near["rtol"] * np.abs(whole) - near["atol"]
        if cut.any() or bool(state.reduced):
            assert not rule.has_point(rule.margin)
            share, first, some = rule.largest_share(), rule.less(0.0), rule.less(1e-3)
            moved = np.where(cut, some - first, 0.0)
            row = int(np.abs(moved).argmax())
            got = 1e-3 * (state.margin - first)[row] / moved[row] if moved[row] else share
            assert share - 2.0**-11 <= got <= share + 2.0**-13
            np.testing.assert_allclose(state.margin, rule.less(got), **near)
            rule.take([float(m) for m in state.margin])
        else:
            np.testing.assert_allclose(state.margin, rule.margin, **near)
        assert bool(state.reduced) == rule.reduced
        assert int(state.forecast) == rule.chosen
        assert float(state.factor) == pytest.approx(rule.factor, rel=1e-9, abs=1e-12)
        assert float(state.overdraft) == pytest.approx(rule.overdraft, rel=1e-9, abs=1e-12)
        assert bool(state.safe) == rule.stretch
        np.testing.assert_allclose(state.largest, rule.largest, **near)
        np.testing.assert_allclose(state.record, rule.record, **near)
        stretches += rule.stretch
    found = learner.bound_report(state)
    assert int(found["slots"]) == rule.booked
    assert int(found["violated"]) == rule.violated
    assert int(found["infeasible"]) == rule.infeasible
    assert (rule.infeasible > 0) == (kind == "odd")
    if kind in ("greedy", "climbing"):
        assert 0 < stretches < SLOTS
