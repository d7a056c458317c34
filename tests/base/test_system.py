"""What systems give: a container's limit, which file is which, those without forks or locks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from coldq.base import system as _system

AS_IF_WINDOWS = """
import os, sys
for name in ("fork", "register_at_fork", "sched_getaffinity"):
    delattr(os, name)
sys.modules["fcntl"] = sys.modules["resource"] = None
import coldq
learner = coldq.COLDQ(coldq.Box(0.0, 5.0, dim=2), horizon=10)
with coldq.Agent(learner, 1, path=sys.argv[1]) as agent:
    for _ in range(3):
        rows = coldq.Affine([[1.0, 1.0]], [1.0])
        agent.observe(agent.decide().round, coldq.Linear([-1.0, 1.0]), rows)
with coldq.Agent.open(sys.argv[1]) as agent:
    print(agent.round)
"""


def test_a_system_without_forks_and_locks_decides_and_keeps(tmp_path: Path) -> None:
    given = [sys.executable, "-c", AS_IF_WINDOWS, str(tmp_path / "a.db")]
    ended = subprocess.run(given, capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == ("3\n", "")


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine of 64 cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)), raising=False)
    _system._quota.cache_clear()
    yield
    _system._quota.cache_clear()


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    ("said", "expected"),
    [("200000 100000\n", 2), ("150000 100000", 2), ("5000 100000", 1), ("max 100000", 64),
     ("", 64), ("odd", 64), ("0 0", 64)],
)  # fmt: skip
def test_a_containers_limit_counts_as_cores(
    said: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_system, "QUOTA", tmp_path / "cpu.max")
    (tmp_path / "cpu.max").write_text(said)
    assert _system.cores() == expected


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(("time", "expected"), [("300000", 3), ("-1", 64)])
def test_so_does_one_of_older_control_groups(
    time: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = tmp_path / "quota", tmp_path / "period"
    monkeypatch.setattr(_system, "QUOTA", tmp_path / "none")
    monkeypatch.setattr(_system, "OLDER_QUOTA", older)
    older[0].write_text(f"{time}\n")
    older[1].write_text("100000\n")
    assert _system.cores() == expected
