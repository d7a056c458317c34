"""Tables show every word that they were given, in a terminal of any width and in a pipe."""

from __future__ import annotations

import json
import re

import pytest

import coldq
from coldq.cli.catalogue import print_catalogue, print_json, rows
from coldq.cli.terminal import print_comparison

COLUMNS = [None, "80", "100", "60"]


@pytest.fixture(params=COLUMNS, ids=lambda width: f"columns {width}")
def width(request, monkeypatch):
    """A terminal of some width, or none."""
    if request.param is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", request.param)
        monkeypatch.setenv("FORCE_COLOR", "1")  # Rich then takes it for a terminal
        monkeypatch.setenv("TERM", "xterm")
    return request.param


def printed(capsys) -> str:
    """What was printed, without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)


def test_the_list_is_never_cut(width, capsys) -> None:
    print_catalogue()
    out = printed(capsys)
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 120
    words = set(out.split())
    for row in rows():
        for word in " ".join(row).split():
            assert word in words


def test_the_list_for_programs(capsys) -> None:
    print_json()
    found = json.loads(capsys.readouterr().out)
    assert [tuple(claim.values()) for claim in found] == rows()
    assert found[0]["learner"] == "SelfTuning"


def test_brackets_in_names_are_printed(width, capsys) -> None:
    problem = coldq.problems.Autoscale(40)
    mine = {
        "mine [kW] [/x]": coldq.COLDQ.for_problem(problem),
        "no [b]": coldq.COLDQ(problem.domain, 9),
    }
    print_comparison(coldq.compare(problem, mine, 0.05, title="load [MW]"))
    out = " ".join(printed(capsys).split())
    for words in ("load [MW], at most", "mine [kW] [/x]", "no [b] did not play"):
        assert words in out


def test_a_comparison_is_never_cut(width, capsys) -> None:
    found = coldq.compare(coldq.problems.JobScheduling(40), ["COLDQ", "RECOO"], seeds=range(2))
    print_comparison(found)
    out = printed(capsys)
    assert "…" not in out
    narrow = width in ("80", "60")
    assert ("start-up" in out.split("Means")[0]) != narrow
    for row in found.cells():
        for word in " ".join(row[:6] if narrow else row).split():
            assert word in out.split()
