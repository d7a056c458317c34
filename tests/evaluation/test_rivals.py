"""Rivals: played together as alone, tuned as their author would, chosen in hindsight."""

from __future__ import annotations

import numpy as np
import pytest

import coldq
from coldq.evaluation.compare import best_rival, comparisons
from coldq.evaluation.comparison import IN_HINDSIGHT, overall
from coldq.evaluation.rivals import Choice, play, rivals_of, tune
from coldq.evaluation.scores import Score

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
    assert "exponential smoothing + share of the limit (share 0.25, weight 0.3)" in words


def test_selftuning_is_held_against_the_cheapest_rival_at_its_share() -> None:
    tables = comparisons(coldq.problems.Autoscale(120), None, [0.1, 0.2])
    for table in tables:
        ours, rivalry = table["SelfTuning"], table.rivalry
        rivals = [one for one in table if one.tuned == IN_HINDSIGHT]
        assert len(rivals) == 16  # the day is longer than the run: no seasons
        kept = [one.loss for one in rivals if one.share <= ours.share]
        assert rivalry.rival_loss.mean() == pytest.approx(min(kept))
        saved, low, high = rivalry.saved
        assert saved == pytest.approx(1.0 - ours.loss / min(kept))
        assert low <= saved <= high
        words, more = table.sentences[1], "more" if saved < 0.0 else "less"
        assert words.startswith(f"SelfTuning costs {abs(100 * saved):.2f}% [")
        assert f"] {more} than the best rival at its own share" in words
        assert [one.tuned for one in table][-17:].count("") == 0  # hindsight comes last
        assert all(not table[name].tuned.startswith(IN_HINDSIGHT) for name in table.front)
    ratio, low, high = overall(tables)
    logs = [np.log(1.0 - table.rivalry.saved[0]) for table in tables]
    assert ratio == pytest.approx(np.exp(np.mean(logs)))
    assert low < ratio < high


def test_rivals_meet_selftuning_on_the_first_seed() -> None:
    problem = coldq.problems.JobScheduling(60)
    table = coldq.compare(problem, rate=0.2, seeds=[3, 4])
    trace = coldq.simulate(coldq.SelfTuning(problem.domain, 0.2), problem, [3, 4])
    assert table["SelfTuning"].loss == pytest.approx(trace.loss[:, 20:].mean())
    np.testing.assert_array_equal(table.rivalry.loss, trace.loss[0, 20:])
    assert "have the first seed, 3." in table.notes[0]
    rows = zip(table.by_seed["learner"], table.by_seed["seed"], strict=True)
    alone = [seed for name, seed in rows if name.endswith(", in hindsight")]
    assert len(alone) == 16
    assert set(alone) == {3}


def scored(name: str, loss: float, share: float) -> Score:
    bad = np.arange(10)[None] < 10 * share
    return Score(name, np.full((1, 10), loss), bad, np.zeros((1, 1)), np.zeros(1), {})


def test_where_no_rival_keeps_the_share_the_nearest_is_named() -> None:
    ours = scored("ours", 3.0, 0.1)
    cheap, near = scored("cheap", 1.0, 0.5), scored("near", 2.0, 0.2)
    assert best_rival(ours, [cheap, near]).rival == "near"
    words = best_rival(ours, [cheap, near]).words
    assert words.startswith("SelfTuning costs 50.00% [50.00, 50.00] more than the rival nearest to")
    kept = scored("kept", 9.0, 0.1)
    assert best_rival(ours, [cheap, near, kept]).rival == "kept"
    assert best_rival(ours, [kept]).words.startswith("SelfTuning costs 66.67% [66.67, 66.67] less ")
    assert best_rival(ours, [kept]).saved[0] == pytest.approx(1.0 - 3.0 / 9.0)
