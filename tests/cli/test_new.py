"""coldq new: an example that runs, and nothing overwritten."""

from __future__ import annotations

import tomllib

import pytest
from typer.testing import CliRunner

import coldq
from coldq.cli.app import app
from coldq.cli.new import write_example


def test_the_example_runs_and_is_short(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["new", "my-load"])
    assert done.exit_code == 0, done.output
    assert "coldq compare my-load/my-load.toml" in done.output
    layout = tmp_path / "my-load" / "my-load.toml"
    text = layout.read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", "[["))]
    assert len(lines) <= 10
    assert tomllib.loads(text)["rows"][1]["at_most"] == "line_limit"
    problem = coldq.problems.from_table(layout)
    assert (problem.horizon, problem.domain.dim, problem.n_constraints) == (336, 3, 2)
    some = ["--learners", "SelfTuning", "--out", "results"]
    done = CliRunner().invoke(app, ["compare", "my-load/my-load.toml", *some])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "results" / "compare-my-load.html").is_file()


def test_the_command_to_try_next_can_be_pasted(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["new", "last month/load"])
    assert done.output.splitlines()[-1] == "  coldq compare 'last month/load/load.toml' --rate 0.05"


def test_nothing_is_overwritten_and_odd_names_are_refused(tmp_path) -> None:
    made = write_example(tmp_path / "one")
    made.write_text("mine")
    with pytest.raises(coldq.InvalidInput, match="is there already"):
        write_example(tmp_path / "one")
    assert made.read_text() == "mine"
    (tmp_path / "file").write_text("")
    for name in ("file", "two words", ".hidden", "a:b", "a" * 300):
        with pytest.raises(coldq.InvalidInput):
            write_example(tmp_path / name)
    (tmp_path / "empty").mkdir()
    assert write_example(tmp_path / "empty").is_file()
