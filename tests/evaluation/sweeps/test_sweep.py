"""Sweeps: each task once, the same bytes whoever does it, failures kept beside the rest."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
from pathlib import Path
from signal import SIGTERM

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import coldq
from coldq.cli.app import app
from coldq.evaluation.sweeps import identity
from coldq.evaluation.sweeps.answers import answers
from coldq.evaluation.sweeps.config import read_config
from coldq.evaluation.sweeps.plan import Plan, estimate
from coldq.evaluation.sweeps.table import read
from coldq.evaluation.tasks.store import Store
from tests.evaluation.sweeps import counted
from tests.evaluation.sweeps.kept import results
from tests.processes import end, started, wait_for

ASKED = {
    "problems": [{"problem": "time-varying", "horizon": 25}, {"problem": "linear", "horizon": 30}],
    "learners": [{"learner": "COLDQ", "epsilon": [0.1, 1.0]}, "RECOO"],
    "seeds": 6,
    "seeds_a_task": 4,
    "regret": False,
}


def log(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def keys(**change) -> set[str]:
    return {task.key for task in Plan(read_config({**ASKED, **change}, {})).tasks}


def test_the_table_has_every_run_once_with_what_simulate_gives(tmp_path) -> None:
    found = coldq.sweep(ASKED, out=tmp_path).to_pandas()
    assert len(found) == 2 * 3 * 6
    assert not found.duplicated(["problem", "learner", "epsilon", "seed"]).any()
    problem = coldq.problems.TimeVarying(horizon=25)
    for epsilon in (0.1, 1.0):
        trace = coldq.simulate(coldq.COLDQ.for_problem(problem, epsilon=epsilon), problem, range(6))
        here = found[(found["problem"] == "time-varying") & (found["epsilon"] == epsilon)]
        here = here.sort_values("seed")
        assert np.array_equal(here["loss"], coldq.accumulated_loss(trace))
        assert np.array_equal(here["violation"], coldq.hard_violation(trace))
        assert np.array_equal(here["soft_violation"], coldq.soft_violation(trace))
        assert np.array_equal(here["largest_violation"], trace.violation.max(axis=(1, 2)))
    assert found[found["learner"] == "RECOO"]["epsilon"].isna().all()


def test_regrets_are_those_of_the_metrics_and_comparators_are_found_once(tmp_path) -> None:
    problems = [{"problem": "linear", "horizon": 30}, coldq.problems.Adversary(1.0, horizon=20)]
    asked_for = {**ASKED, "problems": problems, "regret": True}
    labels = []
    found = coldq.sweep(asked_for, out=tmp_path, done=lambda task, error: labels.append(task.label))
    assert labels.count("best decisions") == labels.count("best fixed decision") == 2  # batches
    assert len(labels) == 2 * 2 + 2 * 3 * 2  # none of the problem that answers to decisions
    assert not found.notes
    table = found.to_pandas()
    assert len(table) == 2 * 3 * 6
    for played in (coldq.problems.OnlineLinear(horizon=30), problems[1]):
        learner = coldq.RECOO.for_problem(played)
        trace = coldq.simulate(learner, played, range(6), keep=["decisions"])
        title = "linear" if played.horizon == 30 else "Adversary"
        here = table[(table["problem"] == title) & (table["learner"] == "RECOO")]
        for kind, metric in (("dynamic", coldq.dynamic_regret), ("static", coldq.static_regret)):
            assert here.sort_values("seed")[f"{kind}_regret"].to_numpy() == pytest.approx(
                metric(trace), rel=1e-9, abs=1e-9
            )
    assert "dynamic regret" in found._repr_html_()


def test_where_there_is_no_comparator_it_is_said_why(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = {"problem": "jobs", "horizon": 150, "arrivals": "requests"}
    found = coldq.sweep(problems=[jobs], learners=["COLDQ"], out="out")
    assert np.isnan(found.to_pandas()["dynamic_regret"]).all()
    (said,) = answers(found)
    assert said.settings[0].measures[2:] == ["-", "-"]
    words = "No dynamic regret where no decision is feasible: seed 0 in slots 6, 8,"
    assert said.notes[0].startswith(words)
    shown = CliRunner().invoke(app, ["sweep", "report", "out"])
    assert words in shown.output.replace("\n", " ")
    assert words in Path("out", "sweep.html").read_text(encoding="utf-8")


def test_a_learner_is_not_called_as_a_comparator() -> None:
    with pytest.raises(coldq.InvalidInput, match="'best decisions' is a comparator's name"):
        coldq.sweep(problems=["linear"], learners=[{"learner": "OGD", "name": "best decisions"}])


def test_one_process_and_two_workers_give_the_same_bytes(tmp_path) -> None:
    coldq.sweep(ASKED, out=tmp_path / "here")
    coldq.sweep(ASKED, out=tmp_path / "two", workers=2)
    assert results(tmp_path / "here") == results(tmp_path / "two")
    assert len(results(tmp_path / "two")) == 12


def test_a_second_sweep_runs_nothing_and_a_larger_one_what_is_missing(tmp_path) -> None:
    heard = []
    coldq.sweep(ASKED, out=tmp_path, done=lambda task, error: heard.append(task.key))
    assert len(heard) == 12
    coldq.sweep(ASKED, out=tmp_path, done=lambda task, error: heard.append(task.key))
    assert len(heard) == 12
    larger = {**ASKED, "learners": [*ASKED["learners"], "OGD"]}
    coldq.sweep(larger, out=tmp_path, done=lambda task, error: heard.append(task.label))
    assert heard[12:] == ["OGD"] * 4
    assert len(log(tmp_path)) == 16


def test_results_of_another_plan_are_put_aside_and_come_back(tmp_path) -> None:
    whole = len(coldq.sweep(ASKED, out=tmp_path))
    few = {**ASKED, "learners": ["RECOO"]}
    assert len(coldq.sweep(few, out=tmp_path)) == 12
    assert sum(pq.read_table(path).num_rows for path in tmp_path.glob("runs/*/*")) == 12
    assert len(coldq.sweep(ASKED, out=tmp_path)) == whole
    assert len(log(tmp_path)) == 12


def test_a_file_that_is_not_whole_is_named_and_made_again(tmp_path) -> None:
    coldq.sweep(ASKED, out=tmp_path)
    before = results(tmp_path)
    path = next(tmp_path.glob("runs/*/*"))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.warns(coldq.IgnoredFile, match=path.name):
        coldq.sweep(ASKED, out=tmp_path)
    assert results(tmp_path) == before


def test_everything_that_determines_a_result_is_in_its_name(monkeypatch) -> None:
    usual = keys()
    assert len(usual) == 12
    assert keys() == usual
    assert not usual & keys(seeds={"from": 6, "to": 11})
    assert len(usual & keys(seeds=5)) == 6  # the first four seeds of each are the same task
    assert len(usual & keys(learners=["RECOO", {"learner": "COLDQ", "epsilon": [0.1, 2.0]}])) == 8
    assert len(usual & keys(problems=[{"problem": "linear", "horizon": 30}])) == 6
    assert not usual & keys(problems=[{"problem": "linear", "horizon": 31}])
    table = {"load": np.arange(1.0, 9.0)}
    layout = {"decide": {"grid": [0, 9]}, "cost": 2.0, "rows": [{"sum": "all", "at_least": "load"}]}
    data = []
    for change in (0.0, 1e-12):
        table["load"][3] += change
        data.append(keys(problems=[coldq.problems.from_table(table, layout)]))
    assert not data[0] & data[1]
    monkeypatch.setattr("coldq.evaluation.sweeps.plan.library_digest", lambda: "another version")
    assert not usual & keys()


@pytest.mark.parametrize(
    ("folder", "name", "sources"),  # the module, and all that it imports
    [
        ("", "own_a", {"own_a.py": "import own_b", "own_b.py": "import own_c", "own_c.py": ""}),
        ("", "own_d", {"own_d.py": "def later():\n    from own_e import x", "own_e.py": "x = 1"}),
        ("", "own_f.g", {"own_f/__init__.py": "", "own_f/g.py": "from . import h",
                         "own_f/h.py": "def never():\n    from ... import x"}),
        ("", "own_i.j.k", {"own_i/j/k.py": "from ..m import x", "own_i/j/__init__.py": "",
                           "own_i/__init__.py": "import own_n", "own_i/m.py": "x = 1",
                           "own_n.py": ""}),
        ("site-packages", "own_o", {"own_o/__init__.py": "import own_o.q, other",
                                    "own_o/q.py": "", "other.py": ""}),
    ],
)  # fmt: skip
def test_the_digest_of_a_module_is_that_of_all_it_imports_from_beside_it(
    folder, name, sources, tmp_path, monkeypatch
) -> None:
    home = tmp_path / folder
    monkeypatch.syspath_prepend(home)
    for path, source in {**sources, "stranger.py": ""}.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(f"{source}\nimport numpy, coldq\n")

    def digest() -> str:
        for loaded in [one for one in sys.modules if one.startswith(("own_", "other"))]:
            del sys.modules[loaded]
        return identity.module_digest(name)

    first = digest()
    for path in sources:
        source = (home / path).read_text()
        (home / path).write_text(f"{source}# changed\n")
        assert (digest() == first) == (path == "other.py"), path
        (home / path).write_text(source)
        assert digest() == first, path
    (home / "stranger.py").write_text("# changed, and no matter")
    assert digest() == first


def test_a_module_that_was_changed_between_its_import_and_the_first_sweep_runs_as_it_is_now(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    made = "import coldq\ndef learner(problem, epsilon=0.1):\n"
    made += "    return coldq.COLDQ.for_problem(problem, epsilon=epsilon)\n"
    (tmp_path / "hasty.py").write_text(made)
    importlib.import_module("hasty")
    said = {"problems": ["linear"], "seeds": 1}
    (tmp_path / "hasty.py").write_text(made.replace("0.1", "0.001"))
    own = coldq.sweep(said, learners=["hasty:learner"]).to_pandas()
    new, old = (
        coldq.sweep(said, learners=[{"learner": "COLDQ", "epsilon": one}]).to_pandas()
        for one in (0.001, 0.1)
    )
    assert own["violation"].tolist() == new["violation"].tolist() != old["violation"].tolist()
    del sys.modules["hasty"]


@pytest.mark.parametrize("changed", ["stale.py", "stale_part.py"])
def test_a_module_that_was_changed_since_its_import_does_not_run_as_the_new_one(
    changed, tmp_path, monkeypatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "stale_part.py").write_text("EPSILON = 0.1\n")
    (tmp_path / "stale.py").write_text(
        "import coldq, stale_part\n"
        "def learner(problem):\n"
        "    return coldq.COLDQ.for_problem(problem, epsilon=stale_part.EPSILON)\n"
    )
    said = {**ASKED, "learners": ["stale:learner"], "seeds": 1}
    coldq.sweep(said, out=tmp_path / "out")
    (tmp_path / changed).write_text((tmp_path / changed).read_text() + "\n# or another number\n")
    with pytest.raises(coldq.InvalidInput, match=f"{changed} has changed since this process"):
        coldq.sweep(said, out=tmp_path / "out")
    importlib.reload(sys.modules[changed.removesuffix(".py")])
    coldq.sweep(said, out=tmp_path / "out")
    for name in ("stale", "stale_part"):
        del sys.modules[name]


def test_failed_tasks_are_kept_with_their_tracebacks_and_stop_no_other(tmp_path) -> None:
    said = {
        "problems": ["tests.evaluation.sweeps.counted:poisoned"], "learners": ["COLDQ"], "seeds": 5,
        "seeds_a_task": 1, "regret": False,
    }  # fmt: skip
    heard = {}

    def swept(**how) -> coldq.Sweep:
        with pytest.warns(
            coldq.FailedTasks, match=r"lacks the runs .*1, .*COLDQ {} on .*poisoned: R"
        ):
            return coldq.sweep(
                said, out=tmp_path, done=lambda task, error: heard.update({task.seeds[0]: error}),
                **how,
            )  # fmt: skip

    found = swept()
    assert sorted(found.to_pandas()["seed"]) == [0, 1, 2, 4]
    (failure,) = found.failures
    assert failure["seeds"] == [3]
    assert failure["error"] == heard[3] == "RuntimeError: seed 3 is not to be played"
    assert "in start" in failure["traceback"]
    heard.clear()
    swept()
    assert heard == {}
    swept(retry_failed=True)
    assert list(heard) == [3]


def test_a_task_that_ends_its_worker_is_sent_again_then_recorded(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COLDQ_TEST_PARENT", str(os.getpid()))
    said = {
        "problems": ["tests.evaluation.sweeps.counted:poisoned"], "learners": ["COLDQ"],
        "seeds": [4, 5, 6, 7], "seeds_a_task": 1, "regret": False,
    }  # fmt: skip
    with pytest.warns(coldq.FailedTasks):
        found = coldq.sweep(said, out=tmp_path, workers=1)
    assert sorted(found.to_pandas()["seed"]) == [4, 6, 7]
    assert "ended with status -9" in found.failures[0]["error"]


def test_results_that_are_removed_meanwhile_are_missed(tmp_path) -> None:
    out, heard = tmp_path / "out", []

    def removed_once(task, error) -> None:
        heard.append(task.key)
        if len(heard) == 5:
            shutil.rmtree(out)

    with pytest.raises(coldq.NotWritten, match=r"5 of 12 tasks are done, but .* are not in"):
        coldq.sweep(ASKED, out=out, done=removed_once)
    assert len(heard) == 12
    assert len(coldq.sweep(ASKED, out=out, done=removed_once)) == 36
    assert sorted(heard[12:]) == sorted(heard[:5])


def test_two_sweeps_do_not_work_in_one_folder(tmp_path) -> None:
    with (
        Store(tmp_path).mine(),
        pytest.raises(coldq.InUse, match="another sweep is at work"),
    ):
        coldq.sweep(ASKED, out=tmp_path)


def test_the_index_has_every_task_and_its_file(tmp_path) -> None:
    coldq.sweep(ASKED, out=tmp_path)
    index = pq.read_table(tmp_path / "index.parquet").to_pandas()
    assert len(index) == 12
    assert {line["task"] for line in log(tmp_path)} == set(index["task"])
    assert all(line["seconds"] > 0.0 for line in log(tmp_path))
    assert {Path(file).name for file in index["file"]} == set(results(tmp_path))
    assert len(read(tmp_path)) == index["seeds"].sum() == 36


def test_a_part_of_a_sweep_is_said_to_be_one(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert coldq.sweep(ASKED, out="out").missing == 0
    done = sorted(Path("out").glob("runs/*/*.parquet"))
    done[0].unlink()
    found = read("out")
    assert (found.missing, repr(found)[-18:]) == (1, ", 1 tasks missing)")
    report = CliRunner().invoke(app, ["sweep", "report", "out"])
    assert report.exit_code == 0, report.output
    page = Path("out", "sweep.html").read_text(encoding="utf-8")
    for said in (report.output, page):
        assert "Tasks that are not done yet: 1. So this " in said


def test_a_damaged_result_is_named(tmp_path) -> None:
    coldq.sweep(ASKED, out=tmp_path)
    damaged = next(tmp_path.glob("runs/*/*.parquet"))
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:40] + bytes(len(whole) - 60) + whole[-20:])
    with pytest.raises(coldq.NotReadable, match=f"{damaged.name} is damaged: remove it, and"):
        read(tmp_path)
    damaged.unlink()
    assert len(coldq.sweep(ASKED, out=tmp_path)) == 36


def test_parameters_of_any_name_and_described_values_have_columns_of_their_own() -> None:
    box = {"type": "Box", "lower": [0.0, 0.0], "upper": [1.0, 2.0]}
    asked_for = {
        "learner": "tests.evaluation.sweeps.counted:odd",
        "seed": [5, 6],
        "loss": 0.5,
        "within": box,
    }
    found = coldq.sweep(problems=["linear"], learners=[asked_for], seeds=2)
    table = found.to_pandas()
    assert table["seed"].tolist() == [0, 1, 0, 1]
    assert table["learner.seed"].tolist() == [5.0, 5.0, 6.0, 6.0]
    assert (table["learner.loss"] == 0.5).all() and (table["loss"] != 0.5).all()
    assert set(table["within.upper"]) == {"[1.0, 2.0]"}
    (said,) = answers(found)
    assert [one.parameter for one in said.sensitivities()] == ["seed"]


def test_engines_contradict_each_other_in_a_sentence() -> None:
    with pytest.raises(coldq.InvalidInput, match="workers and dask contradict each other"):
        coldq.sweep(ASKED, workers=2, dask="local")
    with pytest.raises(coldq.InvalidInput, match="workers must be a whole number, at least 1"):
        coldq.sweep(ASKED, workers=0)


def test_the_command_shows_runs_resumes_and_fails_with_its_failures(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tune.toml").write_text(
        'problems = ["linear", "tests.evaluation.sweeps.counted:poisoned"]\n'
        'learners = ["COLDQ"]\nseeds = 4\n'
        "seeds_a_task = 2\nregret = false\n"
    )
    shown = CliRunner().invoke(app, ["sweep", "tune.toml", "--show"])
    assert shown.exit_code == 0, shown.output
    assert "8 runs in 4 tasks" in shown.output
    assert not Path("tune-results").exists()
    done = CliRunner().invoke(app, ["sweep", "tune.toml", "--workers", "1"])
    assert done.exit_code == 1
    assert "4 tasks were run now, 0 were there; 1 failed" in done.output
    assert "seed 3 is not to be played" in done.output
    again = CliRunner().invoke(app, ["sweep", "tune.toml", "--workers", "1"])
    assert "0 tasks were run now, 4 were there; 1 failed" in again.output


def test_the_budget_of_the_command_is_that_of_its_report(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tune.toml").write_text('problems = ["linear"]\nlearners = ["COLDQ", "OGD"]\nseeds = 2\n')
    done = CliRunner().invoke(app, ["sweep", "tune.toml", "--workers", "1", "--budget", "1e6"])
    assert done.exit_code == 0, done.output
    assert answers(read("tune-results"))[0].budget == 1e6
    for columns, ranked in (("200", True), ("80", False)):
        monkeypatch.setenv("COLUMNS", columns)
        monkeypatch.setattr("coldq.cli.tables.PIPE_COLUMNS", int(columns))
        report = CliRunner().invoke(app, ["sweep", "report", "tune-results"])
        assert ("rank" in report.output, "regret" in report.output) == (ranked, True)
    assert "a violation of at most 1e+06, as given" in report.output.replace("\n", " ")


def test_names_are_printed_as_they_are_given(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("named.toml").write_text(
        'seeds = 2\n[[problems]]\nproblem = "linear"\nhorizon = 20\nname = "lin [/x] :dog:"\n'
        '[[learners]]\nlearner = "COLDQ"\nname = "mine [kW] $\\\\foo$"\n'
        '[[learners]]\nlearner = "OGD"\nname = "[bold] none"\neta = -1.0\n'
    )
    for words, names in (
        (["named.toml", "--show"], ["lin [/x] :dog:", "mine [kW]", "[bold] none"]),
        (["named.toml"], ["lin [/x] :dog:", "[bold] none"]),  # which failed
        (["report", "named-results"], ["lin [/x] :dog:", "mine [kW]"]),
    ):
        done = CliRunner().invoke(app, ["sweep", *words])
        for name in names:
            assert name in done.output


def test_what_is_no_file_or_no_folder_is_refused_in_a_sentence(tmp_path) -> None:
    for name in (".", "", "/"):
        for more in ((), ("--show",), ("--out", str(tmp_path))):
            refused = CliRunner().invoke(app, ["sweep", name, *more])
            assert isinstance(refused.exception, coldq.InvalidInput), name
            assert "takes a TOML file" in str(refused.exception)
    (tmp_path / "a-file").touch()
    with pytest.raises(coldq.InvalidInput, match=r"cannot write to .*a-file: File exists"):
        coldq.sweep(ASKED, out=tmp_path / "a-file")


def test_an_estimate_names_what_cannot_be_made() -> None:
    plan = Plan(
        read_config({**ASKED, "learners": [{"learner": "COLDQ", "epsilon": -1.0}, "RECOO"]}, {})
    )
    found = estimate(plan)
    assert "epsilon must be positive" in found.seconds["linear", "COLDQ"]  # type: ignore[operator]
    assert 0.0 < found.seconds["linear", "RECOO"] < 60.0  # type: ignore[operator]
    work = sum(took for took in found.seconds.values() if isinstance(took, float))
    assert found.start > 0.0
    assert found.on(2) == pytest.approx(2.0 * found.start + work / 2)


def test_an_estimate_has_the_comparators_that_regret_needs() -> None:
    drifting = {"problem": "drifting", "horizon": 64}  # which knows its best decisions
    problems = [*ASKED["problems"], drifting]
    plan = Plan(read_config({**ASKED, "problems": problems, "regret": True}, {}))
    seconds = estimate(plan).seconds
    assert len(seconds) == 3 * 4
    assert 0.0 < seconds["time-varying", "best decisions"] < 60.0  # type: ignore[operator]
    assert 0.0 < seconds["drifting", "best fixed decision"] < 60.0  # type: ignore[operator]
    assert seconds["drifting", "best decisions"] == 0.0


def test_a_problem_of_ones_own_is_played_by_its_module(tmp_path) -> None:
    found = coldq.sweep(
        problems=["tests.evaluation.sweeps.counted:problem"], learners=["COLDQ"], seeds=3
    )
    trace = coldq.simulate(coldq.COLDQ.for_problem(counted.problem), counted.problem, range(3))
    assert np.array_equal(found.to_pandas()["loss"], coldq.accumulated_loss(trace))


def test_a_sweep_that_is_stopped_says_so_in_a_line_and_goes_on_later(tmp_path) -> None:
    config, out, gate = tmp_path / "tune.toml", tmp_path / "out", tmp_path / "gate"
    config.write_text(
        'problems = ["tests.evaluation.sweeps.counted:held"]\nlearners = ["COLDQ"]\nseeds = 8\n'
        "seeds_a_task = 1\nregret = false\n"
    )
    gate.touch()  # as long as it is there, half of the tasks are never finished
    command = ("-m", "coldq", "sweep", str(config), "--out", str(out), "--workers", "2")
    with started(*command, **{counted.HELD: str(gate)}) as running:
        wait_for(lambda: list(out.glob("runs/*/*")), running)
        status, printed, errors = end(running, SIGTERM)  # waits for the workers' end, too
    assert (status, printed) == (128 + SIGTERM, "")
    assert errors.count("\n") == 1
    assert f"finished tasks are kept in {out}, and the same command goes on there" in errors
    kept = results(out)
    assert 0 < len(kept) <= 4
    gate.unlink()
    heard = []
    coldq.sweep(config, out=out, done=lambda task, error: heard.append(task.key))
    assert len(heard) == 8 - len(kept)
    assert kept.items() <= results(out).items()
