"""Nothing is refused where a file system knows no locks."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import coldq
from coldq.evaluation.tasks.store import Store

fcntl = pytest.importorskip("fcntl")


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_not_one_in_use(number, tmp_path, monkeypatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refused)
    before = open_files()
    with Store(tmp_path).mine():
        pass
    learner = coldq.OGD(coldq.Simplex(3), eta=0.1)
    with coldq.Agent(learner, 0, path=tmp_path / "agent.db") as agent:
        agent.decide()
    assert open_files() == before
