"""Backups: whole, of one moment, and put back without what was there being lost."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import coldq
from tests.agent.backups import back_up_again_and_again
from tests.agent.feeds import LEARNER, bits, revealed
from tests.agent.test_durable import played
from tests.processes import HANGING
from tests.serve.running import client


def test_backups_under_load_are_of_one_moment() -> None:
    assert "each restores to an acknowledged round" in back_up_again_and_again(6)


def test_a_backup_that_is_restored_goes_on_and_what_was_there_is_kept(tmp_path: Path) -> None:
    path, saved = tmp_path / "agent.db", tmp_path / "saved.db"
    one = coldq.Agent(LEARNER, 2, path=path)
    played(one, range(5))
    one.decide(6), one.decide(7)
    one.observe(7, *revealed(7))
    assert coldq.agent.backup(path, saved).round == 7
    state = bits(one.state)
    played(one, range(4))
    with pytest.raises(coldq.InUse, match="is in use"):
        coldq.agent.restore(saved, path)
    one.close()
    for begin in ("agent.db-left", "agent.db-left2"):
        command = [sys.executable, "-m", "coldq", "agent", "restore", str(saved), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert f"kept: {tmp_path / begin}" in done.stdout and "after round 7" in done.stdout
        with coldq.Agent.open(path) as again:
            assert bits(again.state) == state
            assert (again.in_flight, again.waiting) == ((6,), (7,))
    with coldq.Agent.open(tmp_path / "agent.db-left") as before:
        assert bits(before.state) == bits(one.state)


def test_a_log_beside_the_file_is_not_applied_to_the_backup(tmp_path: Path) -> None:
    path, saved, killed = tmp_path / "agent.db", tmp_path / "saved.db", tmp_path / "killed.db"
    with coldq.Agent(LEARNER, 2, path=path) as one:
        played(one, range(5))
        coldq.agent.backup(path, saved)
        state = bits(one.state)
        played(one, range(5))
        for suffix in ("", "-wal"):
            Path(f"{killed}{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    done = coldq.agent.restore(saved, killed)
    assert [left.name for left in done.aside] == ["killed.db-wal-left", "killed.db-left"]
    with coldq.Agent.open(killed) as again:
        assert bits(again.state) == state


def test_what_cannot_be_backed_up_or_restored_is_a_sentence(tmp_path: Path) -> None:
    path, saved = tmp_path / "agent.db", tmp_path / "saved.db"
    with pytest.raises(coldq.InvalidInput, match="there is no file"):
        coldq.agent.backup(path, saved)
    with pytest.raises(coldq.InvalidInput, match="there is no backup"):
        coldq.agent.restore(saved, path)
    with pytest.raises(coldq.InvalidInput, match="lives in memory"):
        coldq.Agent(LEARNER, 2).backup()
    with coldq.Agent(LEARNER, 2, path=path) as one:
        played(one, range(30))
        coldq.agent.backup(path, saved)
        with pytest.raises(coldq.InvalidInput, match="is there already"):
            coldq.agent.backup(path, saved)
    whole = saved.read_bytes()
    for data in (b"", b"no database" * 500, whole[: len(whole) // 2], bytes(len(whole))):
        saved.write_bytes(data)
        with pytest.raises(coldq.NotReadable):
            coldq.agent.restore(saved, path)
    with coldq.Agent.open(path) as again:
        assert bits(again.state) == bits(one.state)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["agent.db", "saved.db"]


def test_who_works_on_an_agent_does_not_wait_for_its_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = import_module("coldq.agent.backups")
    door, at_work, check = threading.Event(), threading.Event(), home.checked

    def long(*given: Any) -> Any:
        at_work.set()
        assert door.wait(HANGING)
        return check(*given)

    monkeypatch.setattr(home, "checked", long)
    made = {"learner": coldq.describe(LEARNER), "n_constraints": 2}
    with client(tmp_path) as server, ThreadPoolExecutor(1) as pool:
        server.put("/agents/a", json=made)
        saved = pool.submit(server.get, "/agents/a/backup")
        assert at_work.wait(HANGING)
        assert server.post("/agents/a/decide").json()["round"] == 1
        assert server.put("/agents/a/rounds/1/skip").json()["status"] == "skipped"
        assert not saved.done()
        door.set()
        (tmp_path / "copy.db").write_bytes(saved.result().content)
    with coldq.Agent.open(tmp_path / "copy.db") as again:
        assert again.round == 0


def test_over_http_agents_in_memory_have_no_backup_and_those_evicted_do(tmp_path: Path) -> None:
    made = {"learner": coldq.describe(LEARNER), "n_constraints": 2}
    with client() as server:
        server.put("/agents/a", json=made)
        assert "lives in memory" in server.get("/agents/a/backup").json()["error"]
        assert server.get("/agents/b/backup").status_code == 404
    with client(tmp_path, resident=1) as server:
        for name in "ab":
            server.put(f"/agents/{name}", json=made)
        (tmp_path / "copy.db").write_bytes(server.get("/agents/a/backup").content)
    with coldq.Agent.open(tmp_path / "copy.db") as again:
        assert again.round == 0
