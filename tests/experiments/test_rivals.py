"""Rivals: played together as alone, tuned as their author would, chosen in hindsight."""

from __future__ import annotations

import numpy as np
import pytest

import coldq
from coldq.experiments.rivals import Choice, play, rivals_of, tune
from coldq.experiments.targets import cheapest_at, measure_target, overall

PROBLEM = coldq.problems.Autoscale(150)


@pytest.mark.parametrize("problem", [coldq.problems.Dispatch(40), coldq.problems.JobScheduling(40)])
def test_rivals_played_together_do_what_each_does_alone(problem) -> None:
    rivals = rivals_of((12,))
    choices = [[rival.grid[0], rival.grid[-1]] for rival in rivals]
    found = play(problem, (0, 1), 10, rivals, choices)
    for rival, some, played in zip(rivals, choices, found, strict=True):
        for choice in some:
            level, weight, step = map(np.array, choice)
            learner = coldq.ForecastWithMargin(
                problem.domain, rival.forecast(weight), rival.margin(level, step)
            )
            trace = coldq.simulate(learner, problem, [0, 1])
            np.testing.assert_array_equal(played[choice].cost, trace.loss)
            over = np.maximum(trace.constraint, 0.0).sum(axis=-1)
            np.testing.assert_array_equal(played[choice].bad, over > 0.01)
            assert played[choice].violation == pytest.approx(over[:, 10:].sum(axis=1).mean())


def test_a_rival_is_tuned_on_the_first_part_and_its_level_in_hindsight_on_the_rest() -> None:
    before, after = slice(1, 50), slice(50, None)
    for tuned in tune(PROBLEM, (0,), 50, [(0.1, 0.07)])[0]:
        cost = {choice: one.cost[0] for choice, one in tuned.played.items()}
        bad = {choice: one.bad[0] for choice, one in tuned.played.items()}
        assert len(cost) > len(tuned.rival.grid)  # and some between
        alike = [choice for choice in cost if choice[1:] == tuned.before[1:]]
        assert tuned.at_share in alike
        for chosen, among, limit, part in (
            (tuned.before, list(cost), 0.1, before),
            (tuned.at_share, alike, 0.07, after),
        ):
            shares = {choice: bad[choice][part].mean() for choice in among}
            kept = [choice for choice in among if shares[choice] <= limit]
            least = min(cost[choice][part].mean() for choice in kept) if kept else np.nan
            if kept:
                assert cost[chosen][part].mean() == pytest.approx(least)
            assert shares[chosen] <= (limit if kept else min(shares.values()))


def test_every_forecast_meets_every_margin_with_the_periods_of_the_problem() -> None:
    assert len(rivals_of(())) == 15
    names = {rival.name for rival in rivals_of(coldq.problems.Dispatch().periods)}
    assert len(names) == 25
    assert "season of 2016 + conformal PID" in names
    assert coldq.problems.TimeVarying(10).periods == ()


def test_the_words_of_a_rival_have_its_parameters() -> None:
    words = {rival.words(Choice(0.25, 0.3, 0.0)) for rival in rivals_of(())}
    assert "exponential smoothing + headroom (share 0.25, weight 0.3)" in words


def test_selftuning_is_held_against_the_cheapest_rival_at_its_share() -> None:
    targets = measure_target("autoscale", [0.1, 0.2], [0], horizon=120, curves=False)
    for target in targets:
        ours = target.scores[0]
        rivals = [one.at_share for one in target.rivals]
        rivals += [one for one in target.scores if "at SelfTuning's share" in one.name]
        assert len(rivals) == 16  # the day is longer than the run: no seasons
        kept = [one.cost[0] for one in rivals if one.share[0] <= ours.share[0]]
        assert target.best.cost[0] == min(kept)
        assert target.saved[0] == pytest.approx(1.0 - ours.cost[0] / min(kept))
        assert target.saved[1] <= target.saved[0] <= target.saved[2]
        assert f"{100 * target.saved[0]:.2f}%" in target.verdict
    ratio, low, high = overall(targets)
    mean = np.mean([np.log(one.scores[0].cost[0] / one.best.cost[0]) for one in targets])
    assert ratio == pytest.approx(np.exp(mean))
    assert low < ratio < high


def test_rivals_meet_selftuning_on_the_first_seed() -> None:
    (target,) = measure_target("jobs", [0.2], [3, 4], horizon=60, curves=False)
    problem = coldq.problems.JobScheduling(60)
    trace = coldq.simulate(coldq.SelfTuning(problem.domain, 0.2), problem, [3, 4])
    assert target.met.cost[0] == pytest.approx(trace.loss[0, 20:].mean())
    assert target.scores[0].cost[0] == pytest.approx(trace.loss[:, 20:].mean())
    assert target.saved[0] == pytest.approx(1.0 - target.met.cost[0] / target.best.cost[0])
    assert "with seed 3" in target.verdict


def test_where_no_rival_keeps_the_share_the_nearest_is_named() -> None:
    (target,) = measure_target("autoscale", [0.1], [0], horizon=60, curves=False)
    ours = target.scores[0]
    rivals = [one.at_share for one in target.rivals]
    never = type(ours)("never", ours.cost, (-1.0, -1.0, -1.0), 0.0, 0.0, ours.cost_series,
                       ours.share_series)  # fmt: skip
    worse = [one for one in rivals if one.share[0] > 0.0]
    assert cheapest_at(worse, never) in worse
