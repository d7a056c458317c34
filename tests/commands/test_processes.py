"""Work shared among processes: as ``map`` does it, errors included."""

from __future__ import annotations

import os
from typing import Any

import pytest

import coldq
from coldq.commands.processes import several_processes


def third(x: float) -> tuple[float, int]:
    return x / 3.0, os.getpid()


def refuse(x: Any) -> None:
    raise coldq.InvalidInput(f"x must not be {x}")


def die(x: Any) -> None:
    os._exit(3)


def test_results_come_in_order_from_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLDQ_THREADS", "2")
    with several_processes() as each:
        found = list(each(third, range(20)))
    assert [value for value, _ in found] == [x / 3.0 for x in range(20)]
    assert os.getpid() not in {pid for _, pid in found}


def test_errors_arrive_as_they_were_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLDQ_THREADS", "2")
    with pytest.raises(coldq.InvalidInput, match="x must not be 1"), several_processes() as each:
        list(each(refuse, [1]))


def test_a_process_that_dies_is_said_to_have_died(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLDQ_THREADS", "2")
    with pytest.raises(coldq.Error, match="has died"), several_processes() as each:
        list(each(die, [1]))


def test_one_core_needs_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLDQ_THREADS", "1")
    with several_processes() as each:
        assert each is map
