"""coldq.compare: scored where nothing was tuned, paired, corrected, on problems of one's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from typer.testing import CliRunner

import coldq
from coldq.base.arrays import percent
from coldq.cli.app import app
from coldq.evaluation.intervals import brief

LAYOUT = """
decide = {grid = [0, 30], diesel = [0, 30]}
cost = {grid = "price", diesel = 3}
[[rows]]
sum = "all"
at_least = "load"
"""
MODULE = """
import coldq
import numpy as np

load = 10 + np.sin(np.arange(60) / 5)
problem = coldq.problems.from_table(
    {"load": load}, decide={"grid": [0, 30]}, cost=1.0, rows={"sum": "all", "at_least": "load"}
)
number = 7


def broken():
    raise KeyError("no such thing")
"""


def table(slots: int = 150) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    wave = np.sin(np.arange(slots) / 10.0)
    return {"price": 2.0 + wave, "load": 20.0 + 5.0 * wave + rng.standard_normal(slots)}


def problem_of(columns: dict[str, np.ndarray]) -> coldq.problems.FromTable:
    return coldq.problems.from_table(
        columns, decide={"grid": [0, 30], "diesel": [0, 30]}, cost={"grid": "price", "diesel": 3},
        rows={"sum": "all", "at_least": "load"},
    )  # fmt: skip


def test_too_few_slots_mark_no_difference() -> None:
    found = coldq.compare(problem_of(table(60)), ["COLDQ", "OGD"], 0.05, last=1)
    assert "*" not in "".join(cell for row in found.cells() for cell in row)
    assert "p-values need 288 scored slots, so no * is shown." in found.sentences[0]


@given(st.floats(0.0, 50.0))
def test_percentages_are_written_without_powers_of_ten(share) -> None:
    assert "e+" not in percent(share)
    assert float(percent(share)[:-1].replace(",", "")) == pytest.approx(100 * share, rel=0.051)


def test_costs_of_millions_are_written_with_their_digits() -> None:
    assert [brief(cost) for cost in (1_523_417.4, 1_525_001.0)] == ["1,523,417", "1,525,001"]
    assert brief(-38_000_123.0, "+") == "-38,000,123"
    assert brief(1.23456e12) == "1.235e+12"


def test_a_table_that_shows_every_seed_the_same_is_played_once() -> None:
    found = coldq.compare(problem_of(table()), ["COLDQ"], seeds=[4, 5, 6])
    assert found.seeds == (4,)
    assert "seeds" not in found.sentences[0]


def test_results_are_those_of_the_runs_on_the_scored_slots() -> None:
    problem = problem_of(table())
    found = coldq.compare(problem, ["COLDQ", coldq.SelfTuning], rate=0.1)
    assert found.begin == 50
    tuned = coldq.tune_safety_margin(problem, 0.1, (0.0, 1.0 / 3.0))
    h = tuned.safety_margin
    assert found.tuned == tuned
    assert f"violated {percent(tuned.share)}" in found.sentences[0]
    learners = {
        "COLDQ": coldq.COLDQ.for_problem(problem),
        "SelfTuning": coldq.SelfTuning(problem.domain, 0.1),
        found.reference: coldq.BestResponse.for_problem(problem, safety_margin=h),
    }
    assert {one.learner for one in found} == set(learners)
    runs = {name: coldq.simulate(one, problem, [0]) for name, one in learners.items()}
    base = runs[found.reference]
    for name, trace in runs.items():
        row, over = found[name], trace.constraint[0, 50:, 0] > 1e-6
        assert row.loss == pytest.approx(trace.loss[0, 50:].mean())
        assert row.share == pytest.approx(over.mean())
        assert row.violation == pytest.approx(trace.violation[0, 50:].sum() / 100.0)
        apart = trace.loss[0, 50:] - base.loss[0, 50:]
        assert row.loss_difference == pytest.approx(apart.mean())
        assert row.loss_low <= row.loss <= row.loss_high
        for kind, regret in (("dynamic", coldq.dynamic_regret), ("static", coldq.static_regret)):
            running = regret(trace, cumulative=True)[0]
            scored = (running[-1] - running[49]) / 100.0
            assert getattr(row, f"{kind}_regret") == pytest.approx(scored)


def test_those_within_a_fifth_of_the_rate_come_first_by_loss() -> None:
    problem = problem_of(table())
    shares = [0.02 + 0.01 * k for k in range(20)]
    learners = {f"margin {h:.2f}": coldq.BestResponse(problem.domain, h) for h in shares}
    found = coldq.compare(problem, learners, rate=0.1)
    kept = [one for one in found if one.share <= 0.12]
    others = [one for one in found if one.share > 0.12]
    assert kept and any(one.share_low <= 0.1 for one in others)  # an interval does not excuse
    assert list(found) == kept + others
    assert [one.loss for one in kept] == sorted(one.loss for one in kept)
    assert [one.share for one in others] == sorted(one.share for one in others)
    assert [found.keeps(one) for one in found] == [True] * len(kept) + [False] * len(others)
    assert "at most a fifth above the rate come first, by loss" in found.sentences[0]


def test_what_comes_in_the_scored_slots_tunes_nothing() -> None:
    columns = table()
    other = {name: column.copy() for name, column in columns.items()}
    other["load"][50:] = 40.0 - other["load"][50:]
    found = [coldq.compare(problem_of(one), ["COLDQ"], 0.05) for one in (columns, other)]
    assert found[0].reference == found[1].reference
    assert found[0]["COLDQ"].share != found[1]["COLDQ"].share


def test_a_comparison_is_a_table_a_text_latex_and_a_picture() -> None:
    problem = problem_of(table(60))
    coldq_own = coldq.COLDQ.for_problem(problem)
    found = coldq.compare(problem, {"a": coldq_own, "b_%": coldq_own})
    names = [one.learner for one in found]
    assert sorted(names)[:2] == ["a", "b_%"]
    assert found["a"][1:14] == found["b_%"][1:14]  # all but differences and times
    for frame in (found.to_pandas(), found.to_polars(), found.to_arrow().to_pandas()):
        assert list(frame["learner"]) == names
        assert list(frame["loss"]) == [one.loss for one in found]
    lines = str(found).splitlines()
    assert all(any(line.startswith(name) for line in lines) for name in names)
    latex = found.to_latex()
    assert r"b\_\%" in latex
    assert latex.count(r"\\") == 3
    axes = Figure().subplots(1, 2)
    assert found.plot(axes) is axes
    shown = [text.get_text() for text in axes[0].get_yticklabels()]
    assert shown == names
    with pytest.raises(coldq.InvalidInput, match="no learner 'c' played"):
        found["c"]


def test_a_dollar_in_a_name_is_a_dollar() -> None:
    problem = problem_of(table(30))
    found = coldq.compare(problem, {r"$\none$": coldq.COLDQ.for_problem(problem)})
    left, _ = found.plot().axes
    FigureCanvasAgg(left.figure).draw()  # which would raise over a formula


def test_a_class_is_left_out_for_what_it_needs_and_not_for_its_mistakes() -> None:
    problem = coldq.problems.OnlineLinear(horizon=30)
    plain = type("Plain", (), {"for_problem": lambda problem: coldq.OGD(problem.domain, eta=0.1)})
    empty = type("Empty", (), {"for_problem": lambda problem: 3})
    found = coldq.compare(problem, [coldq.PolyakFeasibility, plain, empty], seeds=[0])
    assert {one.learner for one in found} >= {"Plain"}
    assert "constants that the problem does not know" in found.left_out["PolyakFeasibility"]
    assert "a learner needs domain" in found.left_out["Empty"]
    wrong = type("Wrong", (), {"for_problem": lambda problem: 1.0 + None})
    with pytest.raises(TypeError, match="unsupported operand"):
        coldq.compare(problem, [wrong], seeds=[0])


def test_a_learner_that_cannot_play_is_left_out_with_its_reason() -> None:
    problem = problem_of(table(40))
    wrong = coldq.COLDQ(coldq.Box(0.0, 1.0, dim=2), horizon=40)
    found = coldq.compare(problem, {"wrong": wrong, "right": coldq.COLDQ.for_problem(problem)})
    assert "domain" in found.left_out["wrong"]
    assert str(found).endswith(f"wrong did not play: {found.left_out['wrong']}.")
    for learners, words in (
        (["nobody"], "no learner 'nobody'"),
        (7, "names, classes or learners"),
        ([7], "a learner needs"),
        ([type("Bare", (), {})], "Bare is a class without for_problem"),
    ):
        with pytest.raises(coldq.InvalidInput, match=words):
            coldq.compare(problem, learners)
    for other in (pd.DataFrame(table(40)), table(40)):
        with pytest.raises(coldq.InvalidInput, match=r"coldq\.problems\.from_table") as refused:
            coldq.compare(other)
        assert len(str(refused.value)) < 200
    for name in ("my-load.toml", Path("my-load.toml")):
        with pytest.raises(coldq.NotReadable, match=r"my-load\.toml"):
            coldq.compare(name)
    with pytest.raises(coldq.InvalidInput, match="violation_rate"):
        coldq.compare(problem, ["COLDQ"], rate=2.0)


def test_the_whole_catalogue_plays_a_table_or_says_why_not() -> None:
    found = coldq.compare(problem_of(table(30)))
    played = {one.learner for one in found}
    known = {learner.__name__ for learner in coldq.learners.CATALOGUE}
    assert known <= played | set(found.left_out)
    assert {"SelfTuning", "COLDQ", "COLDQ.scaled", "BestResponse"} <= played


def test_a_table_without_rows_is_played_by_all_whose_theory_knows_enough() -> None:
    heat = {"price": np.linspace(1.0, 3.0, 30), "wished": np.linspace(5.0, 20.0, 30)}
    problem = coldq.problems.from_table(
        heat, decide={"pump": [0, 5], "boiler": [0, 20]}, cost="price",
        least_squares={"sum": {"pump": 3, "boiler": 0.9}, "to": "wished"},
    )  # fmt: skip
    names = ["Yi2021", "Yi2021Expert", "Yi2023", "YuNeely2020", "Liu2022", "Wang2023"]
    found = coldq.compare(problem, names)
    assert not found.left_out
    assert all(one.share == 0.0 for one in found)


def test_the_command_takes_a_file_or_a_module(tmp_path, monkeypatch) -> None:
    columns = table(60)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    lines = [",".join(columns), *(f"{a!r},{b!r}" for a, b in rows)]
    (tmp_path / "my load.csv").write_text("\n".join(lines))
    (tmp_path / "my load.toml").write_text(LAYOUT)
    (tmp_path / "own_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def run(*words: str):
        return CliRunner().invoke(
            app, ["compare", *words, "--learners", "COLDQ", "--out", "results"]
        )

    done = run("my load.toml", "--rate", "0.1")
    assert done.exit_code == 0, done.output
    assert "safety margin" in done.output
    rows = pq.read_table("results/compare-my-load-0.1.parquet").to_pylist()
    assert {"COLDQ"} < {row["learner"] for row in rows}
    assert (tmp_path / "results/figures/compare-my-load-0.1.png").stat().st_size > 5_000
    assert "tabular" in (tmp_path / "results/compare-my-load-0.1.tex").read_text()
    before = (tmp_path / "results/compare-my-load-0.1.parquet").read_bytes()
    (tmp_path / "other.toml").write_text(f'table = "my load.csv"\n{LAYOUT}')
    assert run("other.toml", "--rate", "0.1").exit_code == 0
    assert (tmp_path / "results/compare-other-0.1.parquet").is_file()
    assert (tmp_path / "results/compare-my-load-0.1.parquet").read_bytes() == before
    done = run("own_module:problem", "--rate", "0.05", "--last", "20")
    assert done.exit_code == 0, done.output
    assert "slots 41 to 60" in " ".join(done.output.split())
    for name, title in (
        ("my-load", "my load"), ("other", "other"), ("own_module-problem", "own_module:problem")
    ):  # fmt: skip
        page = (tmp_path / f"results/compare-{name}.html").read_text(encoding="utf-8")
        assert f"<h1>{title}: learners side by side</h1>" in page
        assert "data:image/svg+xml" in page
        assert "<script" not in page
    picture = tmp_path / "results/figures/compare-own_module-problem-0.05.png"
    picture.unlink()
    picture.mkdir()
    unwritten = run("own_module:problem", "--rate", "0.05")
    assert isinstance(unwritten.exception, coldq.NotWritten)
    assert "COLDQ" in unwritten.output  # the table is shown all the same
    for words, sentence in (
        ("own_module:nothing", "has no nothing"),
        ("own_module:number", "could not be had"),
        ("own_module:broken", "KeyError"),
        ("no_module:problem", "could not be had"),
        ("own module:problem", "written as mine:problem"),
        ("none.toml", "cannot be read"),
        ("none", "module:problem"),
    ):
        refused = run(words)
        assert isinstance(refused.exception, coldq.Error), words
        assert sentence in str(refused.exception)


@pytest.mark.parametrize("nobody", [[], {}, ()])
def test_no_learners_are_not_all_of_them(nobody) -> None:
    with pytest.raises(coldq.InvalidInput, match="learners is empty; leave it out"):
        coldq.compare(problem_of(table()), nobody)
