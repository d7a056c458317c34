"""The league table: who plays, who is on the front, and what is written."""

import json
import struct

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import coldq
from coldq.cli import app
from coldq.commands.compare import run_compare
from coldq.experiments.compare import League, Standing, compare
from coldq.experiments.named import learners_of
from coldq.learners import CATALOGUE
from coldq.report.league import Place, log_floor, placed, spans_magnitudes, write_league_page
from coldq.report.terminal import print_league
from tests.report.test_page import Page


def standing(name: str, loss: float, violation: float) -> Standing:
    ends = np.array([-0.5, 0.5])
    return Standing(name, coldq.COLDQ.card, loss + ends, violation + ends, ends, 1e-4)


def test_the_front_is_whoever_is_beaten_by_nobody():
    rows = (
        standing("low violation", 10.0, 1.0),
        standing("between", 7.0, 3.0),
        standing("beaten", 8.0, 3.0),
        standing("twin of between", 7.0, 3.0),
        standing("low loss", 1.0, 9.0),
        standing("worst", 11.0, 10.0),
    )
    league = League("x", None, (0, 1), rows, {})
    assert league.front == ("low violation", "between", "twin of between", "low loss")


@pytest.fixture(scope="module")
def league() -> League:
    return compare("time-varying", seeds=range(2), horizon=100)


def test_the_whole_catalogue_plays_or_says_why_not(league):
    played = {one.name for one in league.standings}
    assert played | set(league.left_out) == {learner.__name__ for learner in CATALOGUE}
    assert not played & set(league.left_out)
    growing = {c.__name__ for c in CATALOGUE if c.card.memory == "grows"}
    assert growing <= set(league.left_out)
    assert all(league.left_out.values())


def test_totals_are_those_of_a_simulation(league):
    problem = coldq.problems.TimeVarying(horizon=100)
    trace = coldq.simulate(coldq.RECOO.for_problem(problem), problem, range(2))
    row = next(one for one in league.standings if one.name == "RECOO")
    assert (row.loss == trace.loss.cumsum(axis=1)[:, -1]).all()
    assert row.violation == pytest.approx(np.maximum(trace.constraint, 0.0).sum(axis=(1, 2)))
    ends = [one.violation.mean() for one in league.standings]
    assert ends == sorted(ends)


def test_growing_memory_plays_when_it_is_named():
    league = compare("time-varying", ["nestedprojections"], seeds=[0], horizon=20)
    assert [one.name for one in league.standings] == ["NestedProjections"]


def test_everything_is_written_and_joined_to_the_page(tmp_path, capsys):
    for key in ("linear", "quadratic"):
        print_league(run_compare(key, ["COLDQ", "OGD"], range(3), tmp_path, horizon=40))
    assert "OnlineLinear, T = 40, 3 seeds" in capsys.readouterr().out
    table = pq.read_table(tmp_path / "compare-linear.parquet")
    assert table["learner"].to_pylist() == ["COLDQ"] * 3 + ["OGD"] * 3
    assert table["seed"].to_pylist() == [0, 1, 2] * 2
    for suffix in (".png", ".pdf"):
        assert (tmp_path / "figures" / f"compare-linear{suffix}").stat().st_size > 1000
    for key, words in (("linear", "OnlineLinear"), ("quadratic", "OnlineQuadratic")):
        page = (tmp_path / f"compare-{key}.html").read_text(encoding="utf-8")
        assert f"<h1>{words}: learners side by side</h1>" in page


def test_a_league_is_shown_whether_it_can_be_written_or_not(tmp_path, capsys):
    (tmp_path / "figures" / "compare-linear.png").mkdir(parents=True)
    with pytest.raises(coldq.NotWritten, match=r"compare-linear\.png could not be written"):
        run_compare("linear", ["COLDQ", "OGD"], [0], tmp_path, horizon=20, show=print_league)
    assert "OnlineLinear, T = 20, 1 seed" in capsys.readouterr().out


def test_a_league_is_written_whether_it_can_be_shown_or_not(tmp_path):
    def closed(league):
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run_compare("linear", ["COLDQ", "OGD"], [0], tmp_path, horizon=20, show=closed)
    assert (tmp_path / "compare-linear.parquet").is_file()
    page = (tmp_path / "compare-linear.html").read_text(encoding="utf-8")
    assert "OnlineLinear: learners side by side" in page


def test_a_league_is_printed_where_no_page_can_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr("coldq.commands.needs.find_spec", lambda name: None)
    words = ["linear", "--learners", "COLDQ,OGD", "--seeds", "2", "--horizon", "20"]
    done = CliRunner().invoke(app, ["compare", *words, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "OnlineLinear, T = 20, 2 seeds" in done.output
    lines = " ".join(done.output.split())
    assert "No report was written: it needs jinja2, matplotlib, plotly, pyarrow" in lines
    assert "pip install 'coldq[report]'" in lines
    assert not (tmp_path / "out").exists()


def test_the_plot_on_the_page_and_the_picture_show_means_a_slot(league, tmp_path):
    write_league_page(league, tmp_path / "index.html")
    page = Page((tmp_path / "index.html").read_text(encoding="utf-8"))
    shown = json.loads(page.data)["compare-time-varying"]["learners"]
    assert [each["label"] for each in shown] == [one.name for one in league.standings]
    assert [each["label"] for each in shown if each["front"]] == list(league.front)
    for each, place, one in zip(shown, placed(league), league.standings, strict=True):
        for measure, totals in (("loss", one.loss), ("violation", one.violation)):
            # Two seeds: Student's t with one degree of freedom is 12.706 at 97.5%.
            expected = [totals.mean() / 100.0, 12.706 * abs(np.diff(totals)[0]) / 2.0 / 100.0]
            assert each[measure] == pytest.approx(expected, rel=1e-4, abs=1e-9)
            assert getattr(place, measure) == pytest.approx(expected, rel=1e-4, abs=1e-9)
    plot = next(attributes for _, attributes in page.elements if "data-league" in attributes)
    assert plot["role"] == "img"
    best = league.standings[0]
    assert f"{best.name} at loss {best.loss.mean() / 100.0:.4g} " in plot["aria-label"]
    (source,) = page.values("src")  # without scripts
    assert source.startswith("data:image/svg+xml;base64,")
    # A row for every learner.
    content = (tmp_path / "figures" / "compare-time-varying.png").read_bytes()
    width, height = struct.unpack(">II", content[16:24])
    assert width == 2100
    assert height == pytest.approx(300 * (0.95 + 0.155 * len(league.standings)), abs=1.0)


def test_one_seed_has_no_interval(tmp_path):
    run_compare("linear", ["COLDQ", "OGD"], [0], tmp_path, horizon=20)
    page = Page((tmp_path / "compare-linear.html").read_text(encoding="utf-8"))
    for each in json.loads(page.data)["compare-linear"]["learners"]:
        assert each["loss"][1] is None and each["violation"][1] is None
    assert "intervals" not in page.values("name")


def at(*violations: float) -> list[Place]:
    return [Place(f"learner {v}", False, (0.0, 0.0), (v, 0.0)) for v in violations]


def test_a_logarithmic_axis_is_taken_where_violations_span_magnitudes():
    assert spans_magnitudes(at(0.0, 0.02, 3.0)) and log_floor(at(0.0, 0.02, 3.0)) == 0.01
    assert not spans_magnitudes(at(1.0, 2.0, 3.0))
    assert log_floor(at(0.0, 0.0)) is None and not spans_magnitudes(at(0.0, 0.0))
    # What rounding leaves is nothing.
    assert log_floor(at(1e-15, 0.5, 30.0)) == 0.1


@pytest.mark.parametrize(
    ("key", "names", "words"),
    [
        ("chess", [], "no problem 'chess'; there are time-varying"),
        ("linear", ["deep blue"], "no learner 'deep blue'; there are SelfTuning"),
        (
            "linear",
            ["polyakfeasibility"],
            "no learner can play linear: PolyakFeasibility: the theory",
        ),
    ],
)
def test_what_is_not_known_is_refused(key, names, words, tmp_path):
    with pytest.raises(coldq.InvalidInput, match=words):
        run_compare(key, names, range(1), tmp_path / "out", horizon=20)


def test_a_name_given_twice_plays_once():
    assert learners_of(["COLDQ", "coldq"]) == (coldq.COLDQ,)


@pytest.mark.parametrize("key", ["autoscale", "dispatch"])
def test_of_a_problem_that_shows_every_seed_the_same_one_is_played(key, capsys) -> None:
    league = compare(key, ["COLDQ"], seeds=range(4), horizon=30)
    assert league.seeds == (0,)
    print_league(league)
    assert "±" not in capsys.readouterr().out.split("Means")[0]
