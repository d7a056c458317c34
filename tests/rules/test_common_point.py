"""Learners for constraints that share a point, and networks, against their rules transcribed."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import coldq
from coldq import networks
from coldq.learners import ALGORITHMS
from coldq.slot.schedules import Power

from . import common_point, test_transcriptions
from .common_point import AGENTS, RULES
from .record import GOLDEN_COMMON_POINT, recorded_slots
from .transcriptions import LOWER, UPPER, Run, Slot, T

CONTENT: dict[str, Any] = json.loads(GOLDEN_COMMON_POINT.read_text(encoding="ascii"))
SLOTS: dict[int, Slot] = recorded_slots(CONTENT)
X = coldq.Box(LOWER, UPPER)
W = networks.Alternating(networks.uniform(networks.path(AGENTS)), np.eye(AGENTS))

LEARNERS: dict[str, Any] = {
    "coldq-anytime": coldq.COLDQ.anytime(X, epsilon=0.005),
    "coldq-doubling": coldq.COLDQDoubling(X, epsilon=0.02, path_exponent=0.5),
    "clasp": coldq.CLASP(X, gradient_bound=5.0),
    "clasp-strongly-convex": coldq.CLASP.strongly_convex(X, mu=0.5),
    "nested": coldq.NestedProjections(X, lipschitz=3.0),
    "switch": coldq.Switch(X, horizon=T, lipschitz=3.0, limit=0.5),
    "polyak": coldq.PolyakFeasibility(X, eta=0.3, rho=0.05),
    "supantha-sinha2026": coldq.SupanthaSinha2026(X, horizon=T, lipschitz=1.5),
    "decentralised-coldq": coldq.Decentralised(coldq.COLDQ(X, horizon=T, epsilon=0.01), W),
    "decentralised-recoo": coldq.Decentralised(
        coldq.RECOO(X, epsilon=0.01, alpha=Power(0.5, 0.5), reading="drift"), W
    ),
    "decentralised-yi2023": coldq.Decentralised(
        coldq.Yi2023(X, alpha=Power(-0.5), beta=Power(-0.5, 0.5), gamma=Power(-0.5, 2.0)), W
    ),
}


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    return {name: rule(SLOTS) for name, rule in RULES.items()}


def feedback(t: int, network: bool) -> coldq.Feedback:
    H, y, A, b = SLOTS[t] if network else common_point.agent(SLOTS)[t]
    return coldq.Feedback(coldq.LeastSquares(H, y), coldq.Affine(A, b), slot=t)


def test_every_rule_is_recorded_and_has_a_learner() -> None:
    assert list(CONTENT["runs"]) == list(RULES) == list(LEARNERS)
    everywhere = {*LEARNERS.values(), *test_transcriptions.LEARNERS.values()}
    by_hand = {coldq.SelfTuning, coldq.BestResponse, coldq.ForecastWithMargin}  # in tests/learners
    found = {type(learner) for learner in everywhere} | by_hand
    assert found == {*ALGORITHMS, coldq.Decentralised}


@pytest.mark.parametrize("name", RULES)
def test_transcription_gives_what_is_recorded(name: str, runs: dict[str, Run]) -> None:
    golden, run = CONTENT["runs"][name], runs[name]
    np.testing.assert_allclose(run.decisions, golden["decisions"], rtol=1e-12, atol=1e-14)
    assert (run.queue is not None) == ("queue" in golden)
    if run.queue is not None:
        np.testing.assert_allclose(run.queue, golden["queue"], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", RULES)
def test_learner_gives_what_is_recorded(name: str) -> None:
    golden, learner = CONTENT["runs"][name], LEARNERS[name]
    network = name.startswith("decentralised")
    state = learner.init(2)
    decisions = [state.x]
    for t in range(1, T + 1):
        state = learner.update(state, feedback(t, network))
        decisions.append(state.x)
    for t, (ours, theirs) in enumerate(zip(decisions, golden["decisions"], strict=True), start=1):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11, err_msg=f"x_{t}")
    if "queue" in golden:
        queue = state.violation if name == "switch" else state.queue
        np.testing.assert_allclose(queue, golden["queue"], rtol=1e-9, atol=1e-11)


def test_the_projection_that_is_tried_out_agrees_with_a_conic_solver() -> None:
    rng = np.random.default_rng(3)
    for _ in range(12):
        A = rng.uniform(-1.0, 1.0, (5, 2))
        b = A @ common_point.COMMON + rng.uniform(0.0, 0.3, 5)
        y = rng.uniform(-4.0, 4.0, 2)
        ours = common_point.nearest(y, [(a, float(limit)) for a, limit in zip(A, b, strict=True)])
        x = cp.Variable(2)
        problem = cp.Problem(
            cp.Minimize(cp.sum_squares(x - y)), [A @ x <= b, x >= LOWER, x <= UPPER]
        )
        problem.solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(ours, x.value, atol=1e-5)


# -- The data puts the rules to work -----------------------------------------------------------


def test_projections_move_and_the_rules_differ(runs: dict[str, Run]) -> None:
    single = [name for name in RULES if not name.startswith("decentralised")]
    paths = [np.array(runs[name].decisions) for name in single]
    for i, one in enumerate(paths):
        for other in paths[:i]:
            assert np.abs(one - other).max() > 1e-3
    for name in ("clasp", "nested"):
        decisions, slots = runs[name].decisions, common_point.agent(SLOTS)
        at_a_row = [
            np.abs(slots[t].A @ decisions[t] - slots[t].b).min() < 1e-9 for t in range(1, T + 1)
        ]
        assert sum(at_a_row) >= 3


def test_queues_move_above_their_floors_and_the_switch_happens(runs: dict[str, Run]) -> None:
    for name, floor in (("coldq-anytime", 0.005), ("coldq-doubling", 0.02)):
        queues = runs[name].queues
        assert queues is not None
        assert sum(np.abs(b - a).max() > 1e-3 for a, b in pairwise(queues)) >= 8
        above = [
            queue.max() > 1.01 * floor * (t**2 if name == "coldq-anytime" else 2 ** int(np.log2(t)))
            for t, queue in enumerate(queues, start=1)
        ]
        assert sum(above) >= 4
    ccv = runs["switch"].queues
    assert ccv is not None
    switched = [value > 0.5 for value in ccv]
    assert 3 <= sum(switched) <= T - 3


@pytest.mark.parametrize("name", [name for name in RULES if name.startswith("decentralised")])
def test_agents_differ_and_mixing_matters(name: str, runs: dict[str, Run]) -> None:
    decisions = np.array(runs[name].decisions)
    assert np.abs(decisions[-1][0] - decisions[-1][1]).max() > 1e-3
    learner = coldq.Decentralised(LEARNERS[name].learner, np.eye(AGENTS))
    state = learner.init(2)
    for t in range(1, T + 1):
        state = learner.update(state, feedback(t, network=True))
    assert np.abs(state.x - decisions[-1]).max() > 1e-3
