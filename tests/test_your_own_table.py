"""The page on tables of one's own: its TOML and its commands work as printed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import coldq
from coldq.base.keys import keys_table
from coldq.cli.app import app
from coldq.problems.layout import Capacity, Layout, Row, Squares, layout_of

PAGE = (Path(__file__).parent.parent / "docs" / "your-own-table.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", blocks("toml"))
def test_every_layout_of_the_page_plays_and_is_at_most_ten_lines(text) -> None:
    assert len([line for line in text.splitlines() if line.strip()]) <= 10
    keys = tomllib.loads(text)
    rng = np.random.default_rng(0)
    table = {name: rng.uniform(0.01, 1.0, 30) for name in layout_of(keys, "the page").columns()}
    if "time" in keys:
        table[keys["time"]] = np.arange(30.0)
    problem = coldq.problems.from_table(table, keys)
    found = coldq.compare(problem, ["SelfTuning"], rate=0.05)
    assert len(found) == 2


def test_the_commands_of_the_page_work(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [line for text in blocks("sh") for line in text.splitlines() if line]
    assert len(commands) >= 2
    for command in commands:
        first, *words = command.split()
        assert first == "coldq"
        short = ["--horizon", "30"] if words[0] == "compare" else []
        done = CliRunner().invoke(app, [*words, *short])
        assert done.exit_code == 0, done.output
    assert (tmp_path / "results" / "compare-my-load.html").is_file()


@pytest.mark.parametrize("kind", [Layout, Row, Capacity, Squares])
def test_every_key_is_on_the_page_as_it_is_declared(kind) -> None:
    assert f"\n\n{keys_table(kind)}\n\n" in PAGE
