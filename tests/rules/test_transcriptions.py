"""Every learner against an independent transcription of its rule, decision by decision."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import coldq
from coldq.learners import ALGORITHMS
from coldq.slot.schedules import Power
from coldq.slot.step.reference import reference_step

from . import transcriptions
from .record import GOLDEN, RULES, recorded_slots
from .transcriptions import LOWER, UPPER, Run, Slot, T

CONTENT: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="ascii"))
SLOTS: dict[int, Slot] = recorded_slots(CONTENT)
X = coldq.Box(LOWER, UPPER)

LEARNERS: dict[str, Any] = {
    "coldq": coldq.COLDQ(X, horizon=T, epsilon=0.01, path_exponent=0.0),
    "coldq-strongly-convex": coldq.COLDQ.strongly_convex(X, horizon=T, mu=0.4, epsilon=0.01),
    "coldq-expert-own": coldq.COLDQExpert(X, horizon=T, epsilon=0.01, gradient="own"),
    "coldq-expert-shared": coldq.COLDQExpert(X, horizon=T, epsilon=0.01, gradient="shared"),
    "recoo-drift": coldq.RECOO(X, epsilon=0.01, alpha=Power(0.5, 0.5), reading="drift"),
    "recoo-comparison": coldq.RECOO(X, epsilon=0.01, alpha=Power(0.5, 0.5), reading="comparison"),
    "recoo-expert": coldq.RECOOExpert(X, horizon=T, epsilon=0.01, gradient="shared"),
    "yi2021": coldq.Yi2021(X, horizon=T, alpha0=2.0, gamma0=1.0, c=0.5),
    "yi2021-printed-gamma": coldq.Yi2021(
        X, horizon=T, alpha0=2.0, gamma0=1.0, c=0.5, printed_gamma=True
    ),
    "yi2021-expert": coldq.Yi2021Expert(X, horizon=T, alpha0=1.0, gamma0=1.0),
    "yi2023": coldq.Yi2023(X, alpha=Power(-0.5), beta=Power(-0.5, 0.5), gamma=Power(-0.5, 2.0)),
    "yi2023-next-index": coldq.Yi2023(
        X, alpha=Power(-0.5), beta=Power(-0.5, 0.5), gamma=Power(-0.5, 2.0), index="t+1"
    ),
    "sinha-vaze-convex": coldq.SinhaVaze(X, horizon=T, lipschitz=3.0),
    "sinha-vaze-strongly-convex": coldq.SinhaVaze(X, horizon=T, lipschitz=3.0, modulus=0.5),
    "ogd": coldq.OGD(X, gradient_bound=5.0),
    "ogd-strongly-convex": coldq.OGD.strongly_convex(X, mu=0.5),
    "ader": coldq.Ader(X, horizon=T, gradient_bound=5.0),
    "mahdavi2012": coldq.Mahdavi2012(X, horizon=T, eta=0.4, delta=0.5),
    "cao-liu2019": coldq.CaoLiu2019(X, horizon=T, eta=0.3, delta=1.0),
    "cao-zhang-poor2021": coldq.CaoZhangPoor2021(X, horizon=T, eta=0.5, delta=0.2),
    "jenatton2016": coldq.Jenatton2016(X, lipschitz=0.4),
    "yuan-lamperski2018": coldq.YuanLamperski2018(X, horizon=T, eta=0.2, sigma=2.0),
    "yuan-proutiere-shi2022": coldq.YuanLamperski2018.from_penalty(X, T, beta=0.3, penalty=0.7),
    "yu-neely-wei2017": coldq.YuNeelyWei2017(X, horizon=T),
    "wei-yu-neely2020": coldq.WeiYuNeely2020(X, horizon=T, V=1.0, alpha=2.0),
    "mosp": coldq.MOSP(X, horizon=T),
    "yu-neely2020": coldq.YuNeely2020(X, horizon=T, lipschitz=0.5),
    "liu2022": coldq.Liu2022(X, lipschitz=0.5, path_exponent=0.2),
    "liu2022-parameter-free": coldq.Liu2022(X, reading="parameter-free"),
    "wang2023": coldq.Wang2023(X, T, delay=0, alpha=1.0, eta=0.5, gamma=0.8),
    "wang2023-late": coldq.Wang2023(X, T, delay=3, alpha=1.0, eta=0.5, gamma=0.8),
    "sarkar-sinha2025": coldq.SarkarSinha2025(X, lipschitz=3.0),
    "lekeufack-jordan2024": coldq.LekeufackJordan2024(X, lipschitz=0.6),
    "supantha-sinha2026-projection-free": coldq.SupanthaSinha2026ProjectionFree(X, T, V=2.0),
}

# Rules with dual variables or an accumulated violation; those that solve a step with a hinge.
QUEUED = [name for name in RULES if not name.startswith(("ogd", "ader"))]
STEPPED = [name for name in transcriptions.RULES if name.startswith(("coldq", "recoo", "yi2021"))]


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    return {name: rule(SLOTS) for name, rule in RULES.items()}


def feedback(t: int) -> coldq.Feedback:
    slot = SLOTS[t]
    return coldq.Feedback(coldq.LeastSquares(slot.H, slot.y), coldq.Affine(slot.A, slot.b), slot=t)


# -- (a) The transcription against its record --------------------------------------------------


def test_every_rule_is_recorded_and_has_a_learner() -> None:
    assert list(CONTENT["runs"]) == list(RULES) == list(LEARNERS)
    assert {type(learner) for learner in LEARNERS.values()} <= set(ALGORITHMS)
    assert len(SLOTS) == T


@pytest.mark.parametrize("name", RULES)
def test_transcription_gives_what_is_recorded(name: str, runs: dict[str, Run]) -> None:
    golden, run = CONTENT["runs"][name], runs[name]
    assert len(golden["decisions"]) == T + 1
    # The atol is for numbers that are zero but for rounding.
    np.testing.assert_allclose(run.decisions, golden["decisions"], rtol=1e-12, atol=1e-14)
    for part in ("queue", "weights"):
        value = getattr(run, part)
        assert (value is not None) == (part in golden)
        if value is not None:
            np.testing.assert_allclose(value, golden[part], rtol=1e-12, atol=1e-14)


# -- (b) The library against the record --------------------------------------------------------


@pytest.mark.parametrize("name", RULES)
def test_learner_gives_what_is_recorded(name: str) -> None:
    golden, learner = CONTENT["runs"][name], LEARNERS[name]
    state = learner.init(2)
    decisions = [state.x]
    for t in range(1, T + 1):
        state = learner.update(state, feedback(t))
        decisions.append(state.x)
    for t, (ours, theirs) in enumerate(zip(decisions, golden["decisions"], strict=True), start=1):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11, err_msg=f"x_{t}")
    if "queue" in golden:
        holder = state.experts if "weights" in golden else state
        names = (n for n in ("queue", "violation", "dual") if n in type(holder).names())
        queue = getattr(holder, next(names))
        np.testing.assert_allclose(queue, golden["queue"], rtol=1e-9, atol=1e-11)
    if "weights" in golden:
        np.testing.assert_allclose(state.weights, golden["weights"], rtol=1e-9, atol=1e-11)


# -- (c) The brute force against a solver ------------------------------------------------------


def test_brute_force_agrees_with_a_conic_solver() -> None:
    rng = np.random.default_rng(7)
    statuses = set()
    for _ in range(60):
        d, c = rng.uniform(-4.0, 4.0, 2), rng.uniform(LOWER, UPPER)
        a, w = rng.uniform(0.3, 3.0), rng.choice([0.0, 0.3, 1.0, 4.0, 30.0], 2)
        A, b = rng.uniform(-1.0, 1.0, (2, 2)), rng.uniform(-0.5, 0.5, 2)
        x, multipliers, _ = transcriptions.solve_step(d, a, c, w, A, b)
        other, value = reference_step(c, d, a, w, coldq.Affine(A, b), X)
        np.testing.assert_allclose(x, other, atol=1e-5)
        assert transcriptions.objective(x, d, a, c, w, A, b) <= value + 1e-7
        statuses |= share_kinds(multipliers, w)
    assert statuses == {"zero", "between", "cap"}


def test_brute_force_beats_a_grid() -> None:
    # Needs no solver: no point of a fine grid has a smaller objective.
    rng = np.random.default_rng(8)
    axes = [np.linspace(LOWER[j], UPPER[j], 41) for j in range(2)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    for _ in range(10):
        d, c = rng.uniform(-4.0, 4.0, 2), rng.uniform(LOWER, UPPER)
        a, w = rng.uniform(0.3, 3.0), rng.uniform(0.0, 4.0, 2)
        A, b = rng.uniform(-1.0, 1.0, (2, 2)), rng.uniform(-0.5, 0.5, 2)
        best = transcriptions.objective(
            transcriptions.solve_step(d, a, c, w, A, b).x, d, a, c, w, A, b
        )
        assert all(transcriptions.objective(x, d, a, c, w, A, b) >= best - 1e-10 for x in grid)


# -- (d) The data puts the rules to work -------------------------------------------------------


def share_kinds(multipliers: np.ndarray, caps: np.ndarray) -> set[str]:
    """Where the multipliers are in [0, cap]; a cap of zero says nothing."""
    kinds = set()
    for multiplier, cap in zip(multipliers, caps, strict=True):
        if cap > 0.0:
            share = multiplier / cap
            kinds.add("zero" if share < 1e-9 else "cap" if share > 1.0 - 1e-9 else "between")
    return kinds


@pytest.mark.parametrize("name", RULES)
def test_constraints_are_often_violated_and_often_kept(name: str, runs: dict[str, Run]) -> None:
    worst = [transcriptions.violation(SLOTS[t], runs[name].decisions[t - 1]).max() for t in SLOTS]
    assert sum(value > 0.01 for value in worst) >= 8
    assert sum(value == 0.0 for value in worst) >= 2


@pytest.mark.parametrize("name", QUEUED)
def test_queues_move(name: str, runs: dict[str, Run]) -> None:
    queues = runs[name].queues
    assert queues is not None
    moves = [np.abs(b - a).max() for a, b in pairwise(queues)]
    assert sum(move > 1e-3 for move in moves) >= 8


@pytest.mark.parametrize("name", STEPPED)
def test_multipliers_are_at_zero_between_and_at_the_cap(name: str, runs: dict[str, Run]) -> None:
    steps = runs[name].steps
    assert steps is not None
    kinds = [share_kinds(step.multipliers, step.caps) for step in steps]
    for kind in ("zero", "between", "cap"):
        assert sum(kind in each for each in kinds) >= 2, kind


def test_bounds_of_the_box_are_reached(runs: dict[str, Run]) -> None:
    reached = [
        x for run in runs.values() for x in run.decisions if np.any((x <= LOWER) | (x >= UPPER))
    ]
    assert len(reached) >= 10


def test_rules_give_different_decisions(runs: dict[str, Run]) -> None:
    # Otherwise a mixed-up pair of readings could go unnoticed.
    paths = [np.array(runs[name].decisions) for name in RULES]
    for i, one in enumerate(paths):
        for other in paths[:i]:
            assert np.abs(one - other).max() > 1e-3
