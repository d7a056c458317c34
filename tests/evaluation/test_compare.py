"""``coldq compare``: who plays, who is on the front, and what is written."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import coldq
from coldq.cli.app import app
from coldq.cli.compare import keys_of, rates_of, run_compare
from coldq.cli.terminal import print_comparison
from coldq.evaluation.comparison import Comparison, log_floor
from coldq.evaluation.intervals import front
from coldq.evaluation.named import learners_of
from coldq.evaluation.report.comparison import write_comparison_page
from coldq.learners import CATALOGUE, CONTRIB
from tests.paper.test_page import Page


def test_the_front_is_whoever_is_beaten_by_nobody() -> None:
    means = [(10.0, 1.0), (7.0, 3.0), (8.0, 3.0), (7.0, 3.0), (1.0, 9.0), (11.0, 10.0)]
    assert sorted(front(np.array(means))) == [0, 1, 3, 4]


@pytest.fixture(scope="module")
def league() -> Comparison:
    return coldq.compare(coldq.problems.TimeVarying(horizon=100), seeds=range(2))


def test_the_whole_catalogue_plays_or_says_why_not(league) -> None:
    played = {one.learner for one in league}
    known = {learner.__name__ for learner in CATALOGUE}
    assert played | set(league.left_out) == known | {"COLDQ.scaled"}
    assert not known & {learner.__name__ for learner in CONTRIB}
    assert not played & set(league.left_out)
    growing = {c.__name__ for c in CATALOGUE if c.card.memory == "grows"}
    assert growing <= set(league.left_out)
    assert all(league.left_out.values())


def test_a_learner_outside_the_catalogue_plays_by_name() -> None:
    problem = coldq.problems.TimeVarying(horizon=40)
    names = [learner.__name__ for learner in CONTRIB]
    found = coldq.compare(problem, names, seeds=[0])
    assert {one.learner for one in found} | set(found.left_out) == set(names)
    assert {"MOSP", "Yi2021Expert"} <= {one.learner for one in found}


def test_means_and_regrets_are_those_of_a_simulation(league) -> None:
    problem = coldq.problems.TimeVarying(horizon=100)
    trace = coldq.simulate(coldq.RECOO.for_problem(problem), problem, range(2))
    row = league["RECOO"]
    assert row.loss == pytest.approx(trace.loss.mean())
    assert row.violation == pytest.approx(trace.violation.sum(axis=2).mean())
    assert row.soft_violation == pytest.approx(coldq.soft_violation(trace).mean() / 100.0)
    assert row.dynamic_regret == pytest.approx(coldq.dynamic_regret(trace).mean() / 100.0)
    assert row.static_regret == pytest.approx(coldq.static_regret(trace).mean() / 100.0)
    # Two seeds: Student's t with one degree of freedom is 12.706 at 97.5%.
    half = 12.706 * abs(np.diff(trace.loss.mean(axis=1))[0]) / 2.0
    assert row.loss_high - row.loss == pytest.approx(half, rel=1e-4)
    ends = [one.violation for one in league]
    assert ends == sorted(ends)
    assert league.rate is None and league.begin == 0


def test_numbers_of_each_seed_are_kept(league) -> None:
    problem = coldq.problems.TimeVarying(horizon=100)
    trace = coldq.simulate(coldq.RECOO.for_problem(problem), problem, range(2))
    rows = [k for k, name in enumerate(league.by_seed["learner"]) if name == "RECOO"]
    assert [league.by_seed["seed"][k] for k in rows] == [0, 1]
    for name, totals in (
        ("loss", trace.loss.sum(axis=1)),
        ("violation", coldq.hard_violation(trace)),
        ("dynamic_regret", coldq.dynamic_regret(trace)),
    ):
        assert [league.by_seed[name][k] for k in rows] == pytest.approx(totals / 100.0)


def test_slots_without_a_feasible_decision_are_left_out_of_the_dynamic_regret() -> None:
    jobs = coldq.problems.JobScheduling(horizon=150, arrivals="requests")
    found = coldq.compare(jobs, ["COLDQ"])
    run = coldq.simulate(coldq.COLDQ.for_problem(jobs), jobs, seeds=[0])
    lost = len(coldq.infeasible_slots(run)[0])
    assert lost > 0
    regret = coldq.dynamic_regret(run, skip_infeasible=True)[0] / (150 - lost)
    assert found["COLDQ"].dynamic_regret == pytest.approx(regret)
    assert any(f"In {lost} of the scored slots nothing is feasible" in one for one in found.notes)
    assert np.isnan(found["COLDQ"].static_regret)
    assert "No decision is feasible in all slots: no static regret." in found.notes
    assert [row[5] for row in found.cells()] == ["-"]


def test_the_time_until_the_second_decision_is_told_apart_from_that_of_a_slot(league) -> None:
    for one in league:
        assert one.start_seconds > 0.0
        assert one.seconds_per_slot > 0.0


def test_growing_memory_plays_when_it_is_named() -> None:
    found = coldq.compare("linear", ["nestedprojections"], seeds=[0], last=None)
    assert [one.learner for one in found] == ["NestedProjections"]


def test_everything_is_written_and_joined_to_the_page(tmp_path, capsys) -> None:
    keys = ("linear", "quadratic")
    run_compare(
        keys, ["COLDQ", "OGD"], (None,), range(3), tmp_path, horizon=40, show=print_comparison
    )
    assert "linear: 40 slots, 3 seeds" in " ".join(capsys.readouterr().out.split())
    table = pq.read_table(tmp_path / "compare-linear.parquet")
    assert table["learner"].to_pylist() == ["COLDQ", "OGD"]
    seeds = pq.read_table(tmp_path / "compare-linear-seeds.parquet")
    assert seeds["learner"].to_pylist() == ["COLDQ"] * 3 + ["OGD"] * 3
    assert seeds["seed"].to_pylist() == [0, 1, 2] * 2
    for suffix in (".png", ".pdf"):
        assert (tmp_path / "figures" / f"compare-linear{suffix}").stat().st_size > 1000
    for key in keys:
        page = (tmp_path / f"compare-{key}.html").read_text(encoding="utf-8")
        assert f"<h1>{key}: learners side by side</h1>" in page


def test_a_comparison_is_shown_whether_it_can_be_written_or_not(tmp_path, capsys) -> None:
    (tmp_path / "figures" / "compare-linear.png").mkdir(parents=True)
    with pytest.raises(coldq.NotWritten, match=r"compare-linear\.png could not be written"):
        run_compare(
            ["linear"], ["COLDQ", "OGD"], (None,), [0], tmp_path, horizon=20, show=print_comparison
        )
    assert "linear: 20 slots, 1 seed" in " ".join(capsys.readouterr().out.split())


def test_a_comparison_is_written_whether_it_can_be_shown_or_not(tmp_path) -> None:
    def closed(found: Comparison) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run_compare(["linear"], ["COLDQ"], (None,), [0], tmp_path, horizon=20, show=closed)
    assert (tmp_path / "compare-linear.parquet").is_file()
    page = (tmp_path / "compare-linear.html").read_text(encoding="utf-8")
    assert "linear: learners side by side" in page


def test_a_comparison_is_printed_where_no_page_can_be_written(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("coldq.cli.needs.find_spec", lambda name: None)
    words = ["linear", "--learners", "COLDQ,OGD", "--seeds", "2", "--horizon", "20"]
    done = CliRunner().invoke(app, ["compare", *words, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    lines = " ".join(done.output.split())
    assert "linear: 20 slots, 2 seeds" in lines
    assert "No report was written: it needs jinja2, matplotlib, pyarrow" in lines
    assert "pip install 'coldq[report]'" in lines
    assert not (tmp_path / "out").exists()


def test_the_page_and_its_picture_show_every_learner(league, tmp_path) -> None:
    write_comparison_page(league, tmp_path / "index.html")
    page = Page((tmp_path / "index.html").read_text(encoding="utf-8"))
    (source,) = page.values("src")  # without scripts
    assert source.startswith("data:image/svg+xml;base64,")
    picture = next(attributes for tag, attributes in page.elements if tag == "img")
    best = league.results[0]
    assert f"{best.learner} ★: {best.loss:.4g} " in picture["alt"]
    content = (tmp_path / "figures" / "compare-TimeVarying.png").read_bytes()
    width, height = struct.unpack(">II", content[16:24])
    assert width == 2100
    assert height == pytest.approx(300 * (1.0 + 0.16 * len(league)), abs=1.0)


def test_a_logarithmic_axis_is_taken_where_violations_span_magnitudes() -> None:
    assert log_floor([0.0, 0.02, 3.0]) == 0.01
    assert log_floor([1.0, 2.0, 3.0]) is None
    assert log_floor([0.0, 0.0]) is None
    assert log_floor([1e-15, 0.5, 30.0]) == 0.1  # what rounding leaves is nothing


@pytest.mark.parametrize(
    ("key", "names", "words"),
    [
        ("chess", [], "no problem 'chess'; there are time-varying"),
        ("linear", ["deep blue"], "no learner 'deep blue'; there are SelfTuning"),
        ("linear", ["polyakfeasibility"], "no learner can play this problem: PolyakFeasibility: "),
    ],
)
def test_what_is_not_known_is_refused(key, names, words, tmp_path) -> None:
    with pytest.raises(coldq.InvalidInput, match=words):
        run_compare([key], names, (None,), range(1), tmp_path / "out", horizon=20)


def test_a_name_given_twice_plays_once() -> None:
    assert learners_of(["COLDQ", "coldq"]) == (coldq.COLDQ,)


def test_of_a_problem_that_shows_every_seed_the_same_one_is_played() -> None:
    for problem in (coldq.problems.Autoscale(30), coldq.problems.Dispatch(30)):
        found = coldq.compare(problem, ["COLDQ"], seeds=range(4))
        assert found.seeds == (0,)
        assert "1 seed." in found.sentences[0]


def test_rates_share_the_learners_that_are_not_told_them(tmp_path) -> None:
    done = CliRunner().invoke(
        app,
        ["compare", "autoscale", "--rate", "0.1,0.3", "--horizon", "60", "--out", str(tmp_path)],
    )
    assert done.exit_code == 0, done.output
    one, other = (
        {row["learner"]: row for row in pq.read_table(path).to_pylist()}
        for path in (tmp_path / f"compare-autoscale-{rate}.parquet" for rate in (0.1, 0.3))
    )
    told = {"SelfTuning", "SafetyMargin(COLDQ)", "SafetyMargin(RECOO)"}
    assert told | {"COLDQ", "COLDQ.scaled"} < one.keys()
    assert one["COLDQ"]["seconds_per_slot"] == other["COLDQ"]["seconds_per_slot"]
    assert all(one[name]["loss"] != other[name]["loss"] for name in told)
    chosen = [row["tuned"] for row in one.values()]
    assert chosen.count("tuned before") == 16  # a safety margin among them
    assert chosen.count("in hindsight") == 16
    assert chosen.count("in hindsight at the rate") == 1
    words = " ".join(done.output.split())
    assert "conformal PID" in words
    assert "Over 2 problems and rates SelfTuning's loss is" in words
    assert (tmp_path / "figures" / "compare-autoscale-0.1.png").stat().st_size > 5_000
    page = (tmp_path / "compare-autoscale.html").read_text(encoding="utf-8")
    assert "At most 10% of slots violated" in page and "At most 30% of slots violated" in page


@pytest.mark.parametrize("name", ["", ",", " , "])
def test_no_problem_to_compare_is_refused(name, tmp_path) -> None:
    refused = CliRunner().invoke(app, ["compare", name, "--out", str(tmp_path)])
    assert isinstance(refused.exception, coldq.InvalidInput)
    assert "names no problem to compare" in str(refused.exception)


def test_odd_rates_and_slots_are_refused() -> None:
    for last in (0, 90):
        with pytest.raises(coldq.InvalidInput, match="last"):
            coldq.compare(coldq.problems.Autoscale(90), ["COLDQ"], 0.1, last=last)
    with pytest.raises(coldq.InvalidInput, match="at a rate, and needs one"):
        coldq.compare(coldq.problems.Autoscale(90), ["COLDQ"], last=20)
    refused = CliRunner().invoke(app, ["compare", "autoscale", "--last", "20"])
    assert "--last says which slots are scored, and requires --rate" in str(refused.exception)
    with pytest.raises(coldq.InvalidInput, match=r"less than the 90 slots there are, .* 5,000"):
        coldq.compare(coldq.problems.Autoscale(90), ["COLDQ"], 0.1, last=5000)
    with pytest.raises(coldq.InvalidInput, match="violation_rate"):
        rates_of("0.01,2")
    for text in ("0,01", "0.05, 0,01"):
        with pytest.raises(coldq.InvalidInput, match="commas separate rates, and decimals take a"):
            rates_of(text)
    with pytest.raises(coldq.InvalidInput, match="share"):
        rates_of("often")
    assert keys_of("all")[0] == "time-varying"
    assert keys_of("a,b.toml") == ("a,b.toml",)
