"""coldq compare --rate: intervals, who plays, and what is written."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import coldq
from coldq.cli import app
from coldq.experiments.targets import block_interval, block_means, keys_of, measure_target, rates_of


def test_the_block_interval_is_wider_where_slots_that_follow_each_other_are_alike() -> None:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(4800)
    apart = block_interval(noise)
    width = apart[2] - apart[1]
    assert width == pytest.approx(2 * 1.96 / np.sqrt(4800), rel=0.15)  # as if independent
    alike = block_interval(np.repeat(noise[::12], 12))
    assert (alike[2] - alike[1]) > 2.5 * width  # about sqrt(12) times as wide
    assert block_interval(noise) == apart


@pytest.mark.parametrize("slots", [3, 60, 224, 1920])
def test_slots_at_the_ends_count_in_an_interval_as_much_as_any(slots) -> None:
    late = np.zeros(slots)
    late[-slots // 20 :] = 1.0
    assert block_means(late).mean() == pytest.approx(late.mean(), rel=0.05)
    mean, low, high = block_interval(late)
    assert low <= mean <= high
    assert block_interval(late[::-1]) == pytest.approx((mean, low, high), abs=0.02)


def test_the_command_writes_the_table_and_the_picture(tmp_path) -> None:
    done = CliRunner().invoke(
        app,
        ["compare", "autoscale", "--rate", "0.1", "--seeds", "1", "--horizon", "60",
         "--out", str(tmp_path)],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "SelfTuning" in done.output
    table = pq.read_table(tmp_path / "compare-rates.parquet").to_pylist()
    assert {"SelfTuning", "SafetyMargin(COLDQ)", "SafetyMargin(RECOO)", "COLDQ", "COLDQ.scaled"} < {
        row["learner"] for row in table
    }
    assert sum("headroom" in row["learner"] and not row["chosen"] for row in table) == 3
    rivals = [row["chosen"] for row in table if row["chosen"]]
    assert rivals.count("at SelfTuning's share") == rivals.count("on the slots before") == 15
    assert "autoregressive + conformal PID" in " ".join(done.output.split())
    assert (tmp_path / "figures" / "rate-autoscale-0.1.png").stat().st_size > 5_000
    assert "rate-autoscale-0.1" in (tmp_path / "compare-autoscale.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["", ",", " , "])
def test_no_problem_to_compare_is_refused(name, tmp_path) -> None:
    refused = CliRunner().invoke(app, ["compare", name, "--rate", "0.1", "--out", str(tmp_path)])
    assert isinstance(refused.exception, coldq.InvalidInput)
    assert "names no problem to compare at a rate" in str(refused.exception)


def test_a_score_is_that_of_the_run() -> None:
    (target,) = measure_target("autoscale", [0.1], [0], horizon=90, curves=False)
    problem = coldq.problems.Autoscale(90)
    trace = coldq.simulate(coldq.SelfTuning(problem.domain, 0.1), problem, [0])
    first = target.scores[0]
    assert first.cost[0] == pytest.approx(trace.loss[0, 30:].mean())
    assert first.share[0] == pytest.approx((trace.constraint[0, 30:, 0] > 1e-4).mean())
    assert first.violation == pytest.approx(trace.violation[0, 30:].sum())


def test_the_last_slots_alone_can_be_scored_and_headroom_is_tuned_on_those_before() -> None:
    found = measure_target("autoscale", [0.1, 0.3], [0], horizon=90, last=20, curves=False)
    problem = coldq.problems.Autoscale(90)
    for target in found:
        trace = coldq.simulate(coldq.SelfTuning(problem.domain, target.rate), problem, [0])
        assert target.begin == 70
        assert target.scores[0].cost[0] == pytest.approx(trace.loss[0, 70:].mean())
        tuned = next(one for one in target.scores if "before" in one.name)
        h = float(tuned.name.split("(")[1][:-1])
        before = coldq.simulate(coldq.BestResponse.for_problem(problem, headroom=h), problem, [0])
        assert (before.constraint[0, :70, 0] > 1e-4).mean() <= target.rate + 1 / 70  # h is rounded
    assert "30%" in found[0].others


def test_odd_rates_and_problems_are_refused() -> None:
    for last in (0, 90):
        with pytest.raises(coldq.InvalidInput, match="last"):
            measure_target("autoscale", [0.1], [0], horizon=90, last=last)
    refused = CliRunner().invoke(app, ["compare", "autoscale", "--last", "20"])
    assert refused.exit_code != 0
    with pytest.raises(coldq.InvalidInput, match="violation_rate"):
        rates_of("0.01,2")
    with pytest.raises(coldq.InvalidInput, match="share"):
        rates_of("often")
    with pytest.raises(coldq.InvalidInput, match="no problem"):
        measure_target("linear", [0.1])
    assert keys_of("all")[0] == "autoscale"
