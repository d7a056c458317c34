"""SelfTuning over many slots: its rate, COLDQ's own ground in any unit, and growth with T.

Every test prints what it found: ``python -m pytest tests/statistical/test_self_tuning.py -rP
--override-ini addopts=``. ``make check SUITE=growth`` runs them with the others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coldq
from coldq.evaluation import scores
from coldq.evaluation.compare import first_scored
from coldq.learners.forecast_state import OVERDRAFT, STRETCH
from coldq.paper.rates.growth import growth
from coldq.paper.rates.settings import GRID, SQUARE, Row
from coldq.problems import (
    Autoscale,
    Dispatch,
    Drifting,
    JobScheduling,
    OnlineLinear,
    OnlineQuadratic,
    TimeVarying,
)
from tests.learners.demands import ADVERSARIES, STREAMS, Run, Setting
from tests.learners.rescaled import Rescaled

RATES = (0.1, 0.05, 0.02, 0.01, 0.005)
KINDS, RUNS = ("regimes", "garch", "heavy tails", "waves"), 10
FACTORS = (1.0, 1e-3, 1e3)
SEEDS = tuple(range(5))


def score(name: str, learner: Any, problem: Any, seeds: tuple[int, ...], begin: int) -> Any:
    """A run's losses and violated slots, without regrets."""
    return scores.Setting(problem, seeds, begin, regrets=()).score(name, learner)


def noise(kind: str, slots: int, rng: Any) -> np.ndarray:
    """Shocks (slots, RUNS) whose size changes."""
    shocks = rng.standard_normal((slots, RUNS))
    t = np.arange(slots)[:, None]
    if kind == "regimes":
        return np.where((t // 200) % 2, 1.0, 0.2) * shocks
    if kind == "heavy tails":
        return 0.5 * rng.standard_t(3.0, (slots, RUNS))
    if kind == "waves":
        return (0.6 + 0.5 * np.sin(t / 150.0)) * shocks
    size = np.full(RUNS, 0.5)
    for k in range(slots):  # the variance follows the last shock
        shocks[k] *= np.sqrt(size)
        size = 0.025 + 0.1 * shocks[k] ** 2 + 0.85 * size
    return shocks


@pytest.mark.parametrize("q", RATES)
def test_the_rate_is_kept_where_volatility_changes(q: float) -> None:
    rng, slots = np.random.default_rng(6), round(100 / q)
    shocks = np.concatenate([noise(kind, slots, rng) for kind in KINDS], axis=1)
    learner = coldq.SelfTuning(coldq.Box(0.0, 60.0, dim=1), q)
    state = learner.init(1, batch=(shocks.shape[1],))
    level = np.full(shocks.shape[1], 20.0)
    violated = np.zeros(level.size)
    for now in shocks:
        level = np.clip(level + 0.3 * now, 15.0, 25.0)
        g = coldq.Affine([[-1.0]], -(level + now)[:, None])
        violated += g.value(state.x)[:, 0] > 1e-6
        state = learner.update(state, coldq.Feedback(coldq.Linear([1.0]), g))
    found = learner.bound_report(state)
    assert (found["overdraft"] <= found["overdraft_bound"]).all()
    times = (violated / slots / q).reshape(len(KINDS), RUNS)
    for kind, each in zip(KINDS, times, strict=True):
        print(f"q = {q}, {kind}: {each.mean():.2f} times q, {each.min():.2f} to {each.max():.2f}")
    assert (found["reduced"] <= 0.01 * slots).all()
    assert (times.mean(axis=1) <= 1.2).all()
    assert (times.mean(axis=1) >= 0.8).all()


@pytest.mark.parametrize("kind", ["box", "boxes", "simplex", "polytope"])
@pytest.mark.parametrize("q", [0.1, 0.05, 0.02, 0.01])
def test_the_second_half_of_a_long_run_keeps_the_rate(q: float, kind: str) -> None:
    setting, slots = Setting(kind), 50_000
    learner = coldq.SelfTuning(setting.domain, q, forecasts=coldq.forecasts.SMALL_MEMORY)
    late = []
    for demands, most in ((STREAMS, 1.15), (ADVERSARIES, 1.3)):
        run = Run(learner, setting, demands, 4 if kind == "box" else 1, slots)
        assert (run.overdrafts(q) <= run.bounds + 1e-9).all()
        for name in demands:
            mine = run.names == name
            share, reduced = run.flags[slots // 2 :, mine].mean() / q, run.reduced[:, mine].mean()
            print(f"q = {q}, {kind}, {name}: {share:.3f} times q, {reduced:.2%} reduced")
            late.append((name, share, share <= most and not reduced))
    assert all(kept for *_, kept in late), [one for one in late if not one[-1]]


@pytest.mark.parametrize("q", RATES[:-1])
@pytest.mark.parametrize("problem", [Autoscale(), Dispatch(), JobScheduling()])
def test_the_rate_is_kept_on_real_traces(problem: Any, q: float) -> None:
    begin = first_scored(problem.horizon, None)
    found = score("SelfTuning", coldq.SelfTuning(problem.domain, q), problem, (0,), begin)
    print(
        f"{type(problem).__name__}, q = {q}: {found.share / q:.2f} times q, "
        f"{found.reduced:.1%} reduced"
    )
    assert found.reduced > 0.05 or found.share <= 1.2 * q


class WithoutBudget(coldq.SelfTuning):
    """SelfTuning whose overdraft is forgiven in every slot, so that its margins are ordinary."""

    def update(self, state: Any, feedback: Any, played: Any = None) -> Any:
        following = super().update(state, feedback, played)
        tally = np.array(following.tally)
        tally[..., [OVERDRAFT, STRETCH]] = 0.0
        return replace(following, tally=tally)


@pytest.mark.parametrize("q", [0.05, 0.01])
@pytest.mark.parametrize("problem", [Autoscale(), Dispatch(), JobScheduling()])
def test_the_error_budget_costs_next_to_nothing_on_real_traces(problem: Any, q: float) -> None:
    begin = first_scored(problem.horizon, None)

    def cost(kind: Any) -> float:
        found = score("SelfTuning", kind(problem.domain, q), problem, (0,), begin)
        return float(found.loss.mean())

    ours, free = cost(coldq.SelfTuning), cost(WithoutBudget)
    print(f"{type(problem).__name__}, q = {q}: {ours / free:.4f} times the cost without a budget")
    assert ours <= 1.01 * free


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("problem", [TimeVarying(), JobScheduling()])
def test_told_coldqs_own_share_it_costs_and_violates_no_more(problem: Any, factor: float) -> None:
    paper = score("COLDQ", coldq.COLDQ.for_problem(problem), problem, SEEDS, 0)
    copy = Rescaled(problem, factor, (factor,) * problem.n_constraints)
    ours = score("SelfTuning", coldq.SelfTuning(problem.domain, paper.share), copy, SEEDS, 0)
    loss, violation = ours.loss.mean() / factor, ours.violation.mean() / factor
    print(
        f"{type(problem).__name__} times {factor:g}, COLDQ's share {paper.share:.1%}: loss "
        f"{loss / paper.loss.mean():.3f} times COLDQ's, violation "
        f"{violation / paper.violation.mean():.3f}"
    )
    assert loss <= 1.1 * paper.loss.mean()
    assert violation <= 1.1 * paper.violation.mean()


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("problem", [OnlineLinear(), OnlineQuadratic()])
def test_a_fixed_constraint_is_kept_and_tracked_as_by_coldq(problem: Any, factor: float) -> None:
    best = coldq.dynamic_comparator(problem, SEEDS).loss.sum(axis=1)
    paper = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, SEEDS, progress=False)
    copy: Any = Rescaled(problem, factor, (factor,) * problem.n_constraints)
    ours = coldq.simulate(coldq.SelfTuning(problem.domain), copy, SEEDS, progress=False)
    regret = float((ours.loss.sum(axis=1) / factor - best).mean())
    told = float((paper.loss.sum(axis=1) - best).mean())
    slope = factor * problem.constants.constraint_lipschitz
    violation = ours.violation[:, 2:].sum(axis=(1, 2)).max() / (problem.domain.diameter * slope)
    print(
        f"{type(problem).__name__} times {factor:g}: dynamic regret {regret / told:.3f} "
        f"times COLDQ's, violation {violation:.1e} R |grad g| in all from slot 3 on"
    )
    assert violation <= 1e-6
    assert regret <= 1.1 * told


HORIZONS, DRIFTS = (512, 2048, 8192, 32768), 40


@pytest.mark.parametrize("vx", GRID)
def test_regret_grows_as_that_of_coldq_which_is_told_the_path(vx: float) -> None:
    def slope(build: Any) -> Any:
        totals = []
        for T in HORIZONS:
            row = Row((Drifting(vx, 0.5, False, T),), DRIFTS)
            trace = coldq.simulate(build(row), row, range(DRIFTS), progress=False)
            totals.append(trace.loss.sum(axis=1))  # the best decisions lose nothing
        return growth(HORIZONS, np.array(totals))

    told = slope(lambda row: coldq.COLDQ(SQUARE, row.horizon, path_exponent=vx))
    ours = slope(lambda row: coldq.SelfTuning(SQUARE))
    print(
        f"V_x = {vx}: {ours.slope:.3f} [{ours.low:.3f}, {ours.high:.3f}], COLDQ told V_x "
        f"{told.slope:.3f} [{told.low:.3f}, {told.high:.3f}]"
    )
    assert ours.slope <= told.slope + 0.05
