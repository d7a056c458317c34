"""The page on sweeps: its commands work as printed, with its TOML."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from coldq.cli.app import app
from tests.evaluation.sweeps.pages import blocks, commands


def test_the_commands_of_the_page_work(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tune.toml").write_text(blocks("toml")[0])
    shown, run, report = (
        CliRunner().invoke(app, words[1:]) for words in commands("coldq sweep tune.toml --show")
    )
    for done in (shown, run, report):
        assert done.exit_code == 0, done.output
    assert "120 runs in 10 tasks" in shown.output
    assert "10 tasks were run now, 0 were there; 0 failed" in run.output
    assert (tmp_path / "tune-results" / "sweep.html").is_file()
