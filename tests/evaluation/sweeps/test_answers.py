"""What a sweep says, beside what is computed from its table in another way."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import coldq
from coldq.cli.app import app
from coldq.cli.sweep import _parts
from coldq.evaluation.intervals import front, tuned_to
from coldq.evaluation.report.sweeps import latex
from coldq.evaluation.sweeps.answers import Answers, Setting, answers


def drawn(rng: np.random.Generator, settings: int, seeds: int) -> Answers:
    """Made-up results of two learners, one with two parameters."""
    made = []
    for k in range(settings):
        learner = "COLDQ" if k < settings // 2 else "RECOO"
        parameters = {"epsilon": k % 3, "scale": k // 3} if learner == "COLDQ" else {"alpha": k}
        made.append(Setting(learner, parameters, *rng.gamma(2.0, 1.0, (2, seeds))))
    return Answers("made up", 100, tuple(range(seeds)), tuple(made))


@pytest.mark.parametrize("seed", range(20))
def test_the_front_is_what_no_other_setting_beats(seed) -> None:
    rng = np.random.default_rng(seed)
    means = rng.integers(0, 6, (12, 2)).astype(float)  # with ties
    beaten = [any((other <= one).all() and (other < one).any() for other in means) for one in means]
    assert sorted(front(means)) == [k for k in range(12) if not beaten[k]]


@pytest.mark.parametrize("seed", range(5))
def test_ranks_count_who_is_better_and_their_intervals_hold_them(seed) -> None:
    found = drawn(np.random.default_rng(seed), 8, 30)
    for k, name in enumerate(("loss", "violation")):
        values = np.array([getattr(one, name) for one in found.settings])
        others = values[:, None] - values
        expected = 1.0 + (others > 0).sum(axis=1) + 0.5 * ((others == 0).sum(axis=1) - 1)
        assert np.allclose(found.ranks[k, :, 0], expected.mean(axis=1))
        assert (found.ranks[k, :, 1] <= found.ranks[k, :, 0]).all()
        assert (found.ranks[k, :, 0] <= found.ranks[k, :, 2]).all()
        # A percentile interval is about as wide as that of a normal distribution.
        wide = 2 * 1.96 * expected.std(axis=1, ddof=1) / np.sqrt(30)
        assert np.allclose(found.ranks[k, :, 2] - found.ranks[k, :, 1], wide, rtol=0.25)


def test_a_parameter_that_does_everything_explains_everything() -> None:
    settings = [
        Setting("COLDQ", {"a": a, "b": b}, np.full(4, 10.0 * a), np.full(4, 1.0 + a + 3.0 * b))
        for a in (0, 1, 2)
        for b in (0, 1)
    ]
    of_a, of_b = Answers("p", 9, (0, 1, 2, 3), tuple(settings)).sensitivities()
    assert (of_a.parameter, of_a.values, of_a.loss) == ("a", (0, 1, 2), (0.0, 10.0, 20.0))
    assert of_a.violation == (2.5, 3.5, 4.5)
    assert of_a.explains[0] == pytest.approx(1.0)
    assert of_b.explains[0] == pytest.approx(0.0)
    # Of a sum of two effects each has its share of the variance, and together they have all.
    assert of_a.explains[1] == pytest.approx((2 / 3) / (2 / 3 + 9 / 4))
    assert of_a.explains[1] + of_b.explains[1] == pytest.approx(1.0)


def test_a_learner_is_tuned_to_the_least_violation_at_equal_loss() -> None:
    loss, violation = np.array([9.0, 10.009, 10.011, 12.0]), np.array([5.0, 3.0, 1.0, 0.0])
    assert tuned_to(10.0, loss, violation) == 1
    assert tuned_to(8.0, loss, violation) == 0  # none is as low
    assert tuned_to(100.0, loss, violation) == 3


def test_where_no_loss_is_as_low_it_is_said() -> None:
    seeds = np.zeros(3)
    settings = (
        Setting("COLDQ", {}, seeds + 100.0, seeds + 1.0),
        Setting("RECOO", {"a": 1}, seeds + 100.09, seeds + 2.0),
        Setting("OGD", {"a": 1}, seeds + 108.2, seeds + 3.0),
        Setting("OGD", {"a": 2}, seeds + 120.0, seeds + 2.0),
    )
    one = Answers("made up", 100, (0, 1, 2), settings)
    assert [(place, low) for place, _, _, low in one.tuned()] == [(1, True), (2, False)]
    said = "\n".join(part for part in _parts(one) if isinstance(part, str))
    assert "RECOO (a = 1), tuned to the loss of COLDQ: loss +0.1%, violation +100.0%." in said
    assert (
        "No setting of OGD has as low a loss as COLDQ; the nearest is OGD (a = 1): loss +8.2%, "
        "violation +200.0%."
    ) in said
    assert "OGD (a = 1), tuned" not in said


def of_points(points: dict[str, list[tuple[float, float]]], **more) -> Answers:
    """Settings of each learner at these losses and violations, with values 0, 1, ... of a."""
    rng = np.random.default_rng(0)
    settings = [
        Setting(name, {"a": k}, loss + 0.01 * rng.random(10), violation + 0.01 * rng.random(10))
        for name, several in points.items()
        for k, (loss, violation) in enumerate(several)
    ]
    return Answers("p", 9, tuple(range(10)), tuple(settings), **more)


@pytest.mark.parametrize("seed", range(20))
def test_recommended_is_the_least_loss_within_the_budget(seed) -> None:
    rng = np.random.default_rng(seed)
    found, budget = drawn(rng, 12, 4), float(rng.uniform(1.0, 3.0))
    given = Answers("p", 9, found.seeds, found.settings, budget=budget)
    within = [one for one in given.settings if one.violation.mean() <= budget]
    if not within:
        assert given.recommended is None
        assert "None is recommended: no setting has a viol" in given.recommendation()
    else:
        assert given.recommended is not None
        best = given.settings[given.recommended]
        assert best.violation.mean() <= budget
        assert best.loss.mean() == min(one.loss.mean() for one in within)


def test_without_a_budget_it_is_coldqs_own() -> None:
    points = {"RECOO": [(1.0, 50.0), (4.0, 4.0), (9.0, 1.0)], "COLDQ": [(5.0, 5.0)]}
    found = of_points(points)
    assert found.settings[found.reference].learner == "COLDQ"
    assert found.allowed == pytest.approx(5.0, abs=0.01)
    best = found.settings[found.recommended]
    assert (best.learner, best.parameters) == ("RECOO", {"a": 1})
    assert found.chosen_again == 1.0
    words = ", as COLDQ (a = 0) has: RECOO (a = 1), in 100% of samples of the seeds."
    assert words in found.recommendation()


@pytest.mark.parametrize("far", [(0.9, 1e9), (1e9, 0.0), (0.0, 1e9), (1e9, 1e9)])
def test_the_far_end_of_a_bad_grid_is_not_recommended(far) -> None:
    points = {"COLDQ": [(1.0, 9.0), (1.2, 1.2), (9.0, 1.0), far], "RECOO": [far, (2.0, 2.0)]}
    found = of_points(points)
    assert found.recommended is not None
    best = found.settings[found.recommended]
    assert best.learner == "COLDQ" and best.parameters["a"] in (0, 1, 2)


def test_a_recommendation_at_the_end_of_its_grid_is_said_to_be_one() -> None:
    points = {"COLDQ": [(3.0, 3.0), (2.0, 2.0), (1.0, 1.0)], "RECOO": [(0.5, 9.0), (2.0, 2.0)]}
    found = of_points(points, budget=5.0)
    assert list(found.ends()) == ["the largest a"]
    words = "That is the largest a that was tried: widen the grid there, and look again."
    assert found.recommendation().endswith(words)
    inside = of_points({"COLDQ": [(3.0, 3.0), (1.0, 1.0), (2.0, 2.0)]}, budget=5.0)
    assert not list(inside.ends())
    assert "widen" not in inside.recommendation()


def test_a_budget_is_that_of_the_sweep_or_another_and_never_negative() -> None:
    found = coldq.sweep(problems=["linear"], learners=["OGD", "COLDQ"], seeds=3, budget=1e9)
    (one,), (other,) = answers(found), answers(found, budget=0.5)
    assert (one.budget, one.allowed, other.budget) == (1e9, 1e9, 0.5)
    assert one.recommended == int(one.means[:, 0].argmin())
    for given in (-1.0, float("nan"), "much"):
        with pytest.raises(coldq.InvalidInput, match="budget must"):
            answers(found, budget=given)
        with pytest.raises(coldq.InvalidInput, match="the sweep: budget must"):
            coldq.sweep(problems=["linear"], learners=["OGD"], budget=given)


def test_answers_pair_the_seeds_of_a_sweep() -> None:
    sweep = coldq.sweep(
        problems=[{"problem": "time-varying", "horizon": 30}, {"problem": "linear", "horizon": 20}],
        learners=[{"learner": "COLDQ", "epsilon": [0.1, 1.0]}, "RECOO"],
        seeds=[7, 3, 5], seeds_a_task=2,
    )  # fmt: skip
    first, second = answers(sweep)
    assert (first.problem, second.problem) == ("time-varying", "linear")
    assert first.seeds == (3, 5, 7)
    table = sweep.to_pandas()
    for one in (first, second):
        for setting in one.settings:
            here = table[(table["problem"] == one.problem) & (table["learner"] == setting.learner)]
            if setting.parameters:
                here = here[here["epsilon"] == setting.parameters["epsilon"]]
            here = here.sort_values("seed")
            assert np.array_equal(here["loss"], setting.loss)
            assert np.array_equal(here["violation"], setting.violation)


def test_latex_has_the_front_first_and_escapes_what_it_must() -> None:
    found = drawn(np.random.default_rng(1), 30, 5)
    named = Answers("50% & more", 9, found.seeds, (
        *found.settings, Setting("mine_too", {"a_b": 1}, np.zeros(5), np.zeros(5)),
    ))  # fmt: skip
    lines = latex(named).splitlines()
    assert lines[4].startswith(r"mine\_too$^*$ & a\_b = 1 & 0 $\pm$ 0 &")
    assert sum(line.endswith(r" \\") for line in lines) == 1 + 12
    assert latex(found).count(r"\begin{tabular}") == latex(found).count(r"\end{tabular}") == 1
    assert "[" in latex(found) and "[" not in latex(drawn(np.random.default_rng(1), 3, 1))


def test_the_report_says_of_which_problems_each_learner_met_functions_of_its_own(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    adversary = coldq.problems.Adversary(greed=1.0, horizon=20)
    found = coldq.sweep(
        problems=["linear", adversary], learners=["COLDQ", "RECOO"], seeds=2, out="results"
    )
    assert found.adaptive == ("Adversary",)
    done = CliRunner().invoke(app, ["sweep", "report", "results"])
    words = "The problem answers to decisions, so that each met functions of its own."
    assert done.output.count(words) == 1
    assert done.output.index("linear, T = ") < done.output.index(words)
    assert (tmp_path / "results" / "sweep.html").read_text(encoding="utf-8").count(words) == 1
    latex = [path.read_text() for path in sorted((tmp_path / "results").glob("*.tex"))]
    assert [words in one for one in latex] == [False, True]


def test_the_report_names_what_was_found_and_what_failed(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.warns(coldq.FailedTasks):
        coldq.sweep(
            problems=["linear"], seeds=4, out="results",
            learners=[{"learner": "COLDQ", "epsilon": [-1.0, 0.5]}, {"learner": "RECOO"}, "OGD"],
        )  # fmt: skip
    done = CliRunner().invoke(app, ["sweep", "report", "results"])
    assert done.exit_code == 0, done.output
    assert "Recommended, the least loss with a violation of at most" in done.output
    assert "1 tasks failed" in done.output
    page = (tmp_path / "results" / "sweep.html").read_text(encoding="utf-8")
    assert "Tuned to equal loss" in page
    assert "epsilon must be positive" in page
    for suffix in ("png", "pdf"):
        assert (tmp_path / "results" / "figures" / f"sweep-1-linear.{suffix}").is_file()
    assert (tmp_path / "results" / "sweep-1-linear.tex").is_file()
    (tmp_path / "results" / "sweep.html").unlink()
    unprinted = CliRunner(charset="ascii").invoke(app, ["sweep", "report", "results"])
    assert isinstance(unprinted.exception, UnicodeEncodeError)  # which a command does not raise
    assert (tmp_path / "results" / "sweep.html").is_file()
    (tmp_path / "results" / "sweep-1-linear.tex").unlink()
    (tmp_path / "results" / "sweep-1-linear.tex").mkdir()
    unwritten = CliRunner().invoke(app, ["sweep", "report", "results"])
    assert isinstance(unwritten.exception, coldq.NotWritten)
    assert "Recommended, the least loss with a violation of at most" in unwritten.output
    missing = CliRunner().invoke(app, ["sweep", "report"])
    assert "needs the folder of a sweep's results" in str(missing.exception)
    nothing = CliRunner().invoke(app, ["sweep", "report", "nowhere"])
    assert str(nothing.exception) == "nowhere: there is no such folder"
    (tmp_path / "empty").mkdir()
    empty = CliRunner().invoke(app, ["sweep", "report", "empty"])
    assert str(empty.exception) == "empty: there is no sweep here (it has no index.parquet)"
