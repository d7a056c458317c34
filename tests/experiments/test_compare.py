"""The league table: who plays, who is on the front, and what is written."""

import numpy as np
import pyarrow.parquet as pq
import pytest

import coldq
from coldq.experiments.compare import League, Standing, compare, learners_of, run_compare
from coldq.experiments.terminal import print_league
from coldq.learners import CATALOGUE


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
    return compare("time-varying", seeds=range(2), horizon=200)


def test_the_whole_catalogue_plays_or_says_why_not(league):
    played = {one.name for one in league.standings}
    assert played | set(league.left_out) == {learner.__name__ for learner in CATALOGUE}
    assert not played & set(league.left_out)
    growing = {c.__name__ for c in CATALOGUE if c.card.memory == "grows"}
    assert growing <= set(league.left_out)
    assert all(league.left_out.values())


def test_totals_are_those_of_a_simulation(league):
    problem = coldq.problems.TimeVarying(horizon=200)
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
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    for words in ("OnlineLinear: all learners", "OnlineQuadratic: all learners", "data:image/svg"):
        assert words in page


@pytest.mark.parametrize(
    ("key", "names", "words"),
    [
        ("chess", [], "no problem 'chess'; there are time-varying"),
        ("linear", ["deep blue"], "no learner 'deep blue'; there are COLDQ"),
        ("linear", ["polyakfeasibility"], "no learner can play linear: PolyakFeasibility: its"),
    ],
)
def test_what_is_not_known_is_refused(key, names, words, tmp_path):
    with pytest.raises(coldq.InvalidInput, match=words):
        run_compare(key, names, range(1), tmp_path / "out", horizon=20)


def test_a_name_given_twice_plays_once():
    assert learners_of(["COLDQ", "coldq"]) == (coldq.COLDQ,)
