"""The whole reproduction on short horizons: its files, its numbers, and what stops it early."""

import json
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import coldq
from coldq.base import files
from coldq.cli.app import app
from coldq.cli.reproduce import reproduce
from coldq.cli.terminal import print_results
from coldq.paper.figures import FIGURES, find
from coldq.paper.runs import run_figures
from coldq.problems import JobScheduling, OnlineLinear, TimeVarying
from tests.processes import end, started, wait_for

SHORT = {
    "time-varying": lambda old: TimeVarying(40, old.domain),
    "linear": lambda old: OnlineLinear(40),
    "jobs": lambda old: JobScheduling(30, price_unit=old.price_unit, arrivals=old.arrivals),
}


def shortened(key, settings=1):
    """A figure in its first settings, on a short horizon."""
    figure = find(key)
    chosen = figure.settings[:settings]
    chosen = (replace(each, problem=SHORT[key](each.problem)) for each in chosen)
    return replace(figure, settings=tuple(chosen))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLDQ_THREADS", "1")
        return out, reproduce([shortened(key) for key in SHORT], seeds=range(3), out=out)


def test_everything_is_written(report):
    out, _ = report
    names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert {"index.html", "claims.json"} <= names
    assert {f"traces/{key}.parquet" for key in SHORT} <= names
    assert sum(name.endswith(".png") for name in names) >= len(SHORT)
    assert sum(name.endswith(".pdf") for name in names) >= len(SHORT)
    assert not [name for name in names if Path(name).name.startswith(".")]


def test_the_traces_hold_what_was_run(report):
    out, result = report
    table = pq.read_table(out / "traces/time-varying.parquet")
    columns = {name: np.array(table[name].to_pylist()) for name in table.column_names}
    run = result.figures[0].runs[1]
    own = (columns["setting"] == run.setting.key) & (columns["learner"] == run.entry.label)
    assert (columns["loss"][own].reshape(3, 40) == run.trace.loss).all()
    assert columns["violation"][own].sum() == pytest.approx(run.violation.sum())
    assert columns["t"][own & (columns["seed"] == 2)].tolist() == list(range(1, 41))
    has_queue = np.array([value is not None for value in columns["queue"]])
    assert (has_queue == (columns["learner"] == "COLDQ")).all()


def test_the_claims_file_holds_the_verdicts(report):
    out, result = report
    document = json.loads((out / "claims.json").read_text())
    assert [v["outcome"] for v in document["verdicts"]] == [v.outcome for v in result.verdicts]
    assert document["seeds"] == [0, 1, 2]


def test_one_seed_is_enough_where_nothing_is_random():
    (figure,) = run_figures([shortened("jobs", settings=3)], (0, 1, 2), alphas=(1.0,))
    runs = figure.runs
    counts = {run.setting.key: len(run.trace.seeds) for run in runs}
    assert counts == {"mwh": 3, "kwh": 3, "requests": 1}


def test_the_tuned_rival_has_no_higher_loss_or_the_lowest(report):
    _, result = report
    for runs in (result.figures[0], result.figures[2]):
        for setting in (each for each in runs.figure.settings if each.claimed):
            ours = runs.find(setting, "COLDQ").loss.mean()
            tuned = runs.find(setting, "RECOO (tuned)").loss.mean()
            printed = runs.find(setting, "RECOO").loss.mean()
            assert tuned <= max(ours + 0.001 * abs(ours), printed)


def test_the_tuned_rival_ran_beside_others_as_it_runs_alone(report):
    _, result = report
    for runs in (result.figures[0], result.figures[2]):
        run = next(each for each in runs.runs if each.entry.label == "RECOO (tuned)")
        trace, problem = run.trace, run.setting.problem
        alone = coldq.simulate(run.entry.make(problem), problem, trace.seeds)
        np.testing.assert_array_equal(trace.loss, alone.loss)
        np.testing.assert_array_equal(trace.constraint, alone.constraint)


def test_the_command_gives_the_same_numbers_on_two_threads(report, tmp_path, monkeypatch):
    first, _ = report
    monkeypatch.setenv("COLDQ_THREADS", "2")
    figures = tuple(shortened(key) for key in SHORT)
    monkeypatch.setattr("coldq.paper.figures.FIGURES", figures)
    asked = ["reproduce", "--figure", "3", "--seeds", "3", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, asked, env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert "Figure 3. Online linear programming" in done.output
    assert "does not violate" in done.output
    assert f"The report: {tmp_path / 'index.html'}" in done.output
    assert (tmp_path / "index.html").exists()
    assert [path.name for path in (tmp_path / "traces").iterdir()] == ["linear.parquet"]
    traces = [out / "traces/linear.parquet" for out in (first, tmp_path)]
    assert traces[0].read_bytes() == traces[1].read_bytes()
    documents = [json.loads((out / "claims.json").read_text()) for out in (first, tmp_path)]
    figure = documents[1]["verdicts"][0]["figure"]
    found = [
        [each for each in document["verdicts"]
         if each["figure"] == figure and each["key"] != "fast-enough"]
        for document in documents
    ]  # fmt: skip
    assert found[0] == found[1] != []


def test_the_terminal_shows_every_verdict(report, capsys):
    _, result = report
    print_results(result)
    shown = capsys.readouterr().out
    assert shown.count("holds") + shown.count("not hold") >= len(result.verdicts)
    assert "Figure 4" in shown and "CVXPY" in shown


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    occupied = tmp_path / "file"
    occupied.write_text("here already")
    monkeypatch.setattr("coldq.paper.reproduce.run_figures", None)
    with pytest.raises(coldq.InvalidInput, match="cannot write to"):
        reproduce(FIGURES, out=occupied / "results")
    assert occupied.read_text() == "here already"


def test_a_full_disk_is_refused_before_the_work(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(files.shutil, "disk_usage", lambda path: usage._replace(free=1_000_000))
    monkeypatch.setattr("coldq.paper.reproduce.run_figures", None)
    with pytest.raises(coldq.InvalidInput, match="has 1 MB free"):
        reproduce(FIGURES, out=tmp_path)


def test_a_missing_package_is_named_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("coldq.cli.needs.find_spec", lambda name: None)
    with pytest.raises(coldq.InvalidInput, match=r"matplotlib.*pip install 'coldq\[report\]'"):
        reproduce(FIGURES, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_packages_of_the_report_are_enough(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)  # as if it were not installed
    assert reproduce([shortened("linear")], seeds=[0], out=tmp_path).stepping is None
    assert "CVXPY" not in (tmp_path / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seeds", "0"], "--seeds must be at least 1, but is 0"),
        (["--figure", "nine"], "there is no figure 'nine'"),
    ],
)
def test_wrong_arguments_are_refused_with_a_sentence(arguments, words, tmp_path):
    command = ["reproduce", "--out", str(tmp_path / "out")]
    ended = CliRunner().invoke(app, [*command, *arguments])
    assert isinstance(ended.exception, coldq.InvalidInput)
    assert words in str(ended.exception)
    assert not (tmp_path / "out").exists()


def test_an_interrupt_leaves_no_file_behind(tmp_path):
    out = tmp_path / "out"
    with started("-m", "coldq", "reproduce", "--quick", "--out", str(out)) as running:
        wait_for(out.exists, running)  # it is made just before the runs begin
        status, _, errors = end(running, signal.SIGINT)
    assert status == 130
    assert errors.startswith("coldq: stopped by Ctrl-C")
    assert not list(out.rglob("*.*"))
