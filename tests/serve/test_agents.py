"""Agents that are opened and evicted: who waits for that, and who does not."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier, Event, Thread
from typing import Any

import httpx
import pytest
import uvicorn

import coldq
from coldq.agent.store import Store
from coldq.cli.serve import bound
from coldq.serve import create_app
from coldq.serve.agents import WORKER_THREADS, Agents
from tests.processes import HANGING
from tests.serve.running import Client, client
from tests.serve.test_app import MADE, told

LONG = 20.0  # seconds that nobody waits for unless something is wrong


class Door:
    """What stands before the opening or closing of one agent's file, until it is opened."""

    def __init__(self) -> None:
        self.reached, self.opened = Event(), Event()

    def pass_through(self) -> None:
        self.reached.set()
        assert self.opened.wait(HANGING)


@contextmanager
def held_up(monkeypatch: pytest.MonkeyPatch, act: str, stem: str) -> Iterator[Door]:
    """A door before Agent.open, or Agent.close, of the file of this name."""
    door, usual = Door(), getattr(coldq.Agent, act)

    def opens(path: Path) -> coldq.Agent:
        if path.stem == stem:
            door.pass_through()
        return usual(path)

    def closes(agent: coldq.Agent) -> None:
        assert agent._store is not None
        if agent._store.path.stem == stem:
            door.pass_through()
        usual(agent)

    monkeypatch.setattr(coldq.Agent, act, {"open": opens, "close": closes}[act])
    try:
        yield door
    finally:
        door.opened.set()


def made_in(folder: Path, *names: str) -> None:
    agents = Agents(folder)
    for name in names:
        assert agents.create(name, MADE["learner"], 2, {})
    agents.close()


def test_an_agent_that_is_long_to_open_holds_up_its_own_callers_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_in(tmp_path, "slow", "quick")
    callers = 2 * WORKER_THREADS  # more than the threads that there are for all agents
    with client(tmp_path) as server, ThreadPoolExecutor(callers) as pool:

        def asked() -> httpx.Response:
            return server.post("/agents/slow/decide")

        with held_up(monkeypatch, "open", "slow") as door:
            waiting = [pool.submit(asked) for _ in range(callers)]
            assert door.reached.wait(HANGING)
            for _ in range(3):
                assert server.post("/agents/quick/decide", timeout=LONG).status_code == 200
            for path in ("/agents", "/metrics", "/health", "/agents/quick"):
                assert server.get(path, timeout=LONG).status_code == 200
            assert not any(one.done() for one in waiting)
        assert [one.result().json()["round"] for one in waiting] == [1] * callers


def test_an_agent_that_is_long_to_close_holds_up_its_own_callers_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_in(tmp_path, "slow", "other", "quick")
    agents = Agents(tmp_path, resident=2)

    def round_of(name: str) -> int:
        with agents.get(name) as agent:
            return agent.decide().round

    with ThreadPoolExecutor(3) as pool:
        for name in ("slow", "other"):
            assert round_of(name) == 1
        with held_up(monkeypatch, "close", "slow") as door:
            third = pool.submit(round_of, "quick")  # one too many: the first one is evicted
            assert door.reached.wait(HANGING)
            again = pool.submit(round_of, "slow")
            assert pool.submit(round_of, "other").result(LONG) == 1
            assert not again.done() and not third.done()
        assert (third.result(), again.result()) == (1, 1)
    agents.close()


def test_agents_opened_and_evicted_under_many_callers_are_never_in_use(tmp_path: Path) -> None:
    names = [f"a{k}" for k in range(5)]
    made_in(tmp_path, *names)
    agents = Agents(tmp_path, resident=2)

    def used(k: int) -> int:
        with agents.get(names[k % 5]) as agent:
            return agent.decide().round

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(used, range(200))) == {1}
    assert len(agents.resident_agents()) <= 2 and agents._uses == {}
    agents.close()


def test_at_the_end_agents_are_closed_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents, meeting, usual = Agents(tmp_path), Barrier(3, timeout=LONG), coldq.Agent.close

    def closes(agent: coldq.Agent) -> None:
        meeting.wait()
        usual(agent)

    for name in "abc":
        assert agents.create(name, MADE["learner"], 2, {})
    monkeypatch.setattr(coldq.Agent, "close", closes)
    agents.close()
    assert not meeting.broken and not list(tmp_path.glob("*-wal"))


def test_a_server_ends_though_an_agent_is_long_to_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_in(tmp_path, "slow")
    app = create_app(tmp_path, token=None)
    settings = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=0)
    server = uvicorn.Server(settings)
    with bound("127.0.0.1", 0) as listening, held_up(monkeypatch, "open", "slow") as door:
        listening.listen()
        serving = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        serving.start()
        with socket.create_connection(listening.getsockname()) as asking:
            asking.sendall(b"GET /agents/slow HTTP/1.1\r\nHost: a\r\n\r\n")
            assert door.reached.wait(HANGING)
            server.should_exit = True
            serving.join(LONG)
            assert not serving.is_alive()


def play(server: Client, name: str, rounds: int) -> None:
    for _ in range(rounds):
        decision = server.post(f"/agents/{name}/decide").json()
        path = f"/agents/{name}/rounds/{decision['round']}/feedback"
        assert server.put(path, json=told(1, decision["x"])).json()["status"] == "applied"


def test_an_agent_whose_file_was_removed_is_no_more_and_may_be_made_again(tmp_path: Path) -> None:
    with client(tmp_path) as server:
        server.put("/agents/a", json=MADE)
        play(server, "a", 3)
        for file in tmp_path.glob("a.db*"):
            file.unlink()
        assert server.post("/agents/a/decide").status_code == 404
        assert server.get("/agents").json() == []
        assert server.put("/agents/a", json=MADE).status_code == 201
        play(server, "a", 1)
        assert server.get("/agents/a").json()["round"] == 1


@pytest.mark.parametrize("while_open", [True, False], ids=["with its log", "whole"])
def test_an_agent_whose_file_was_replaced_goes_on_where_that_one_stood(
    tmp_path: Path, while_open: bool
) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    with client(tmp_path) as server:
        server.put("/agents/a", json=MADE)
        play(server, "a", 1)
        for suffix in ("", "-wal"):  # what is new is in the second one alone
            shutil.copyfile(tmp_path / f"a.db{suffix}", saved / f"a.db{suffix}")
        if not while_open:
            coldq.Agent.open(saved / "a.db").close()
        play(server, "a", 2)
        for file in saved.iterdir():
            file.replace(tmp_path / file.name)
        assert server.get("/agents/a").json()["round"] == 1
        play(server, "a", 1)
    with coldq.Agent.open(tmp_path / "a.db") as agent:
        assert agent.round == 2


def test_an_agent_that_fell_behind_its_file_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Store.settle

    def interrupted(store: Store, *arguments: Any) -> None:
        usual(store, *arguments)
        monkeypatch.undo()
        raise MemoryError

    with client(tmp_path) as server:
        server.put("/agents/a", json=MADE)
        play(server, "a", 1)
        body = told(2, server.post("/agents/a/decide").json()["x"])
        monkeypatch.setattr(Store, "settle", interrupted)
        path = "/agents/a/rounds/2/feedback"
        assert server.put(path, json=body).status_code == 413
        assert server.put(path, json=body).json() == {"round": 2, "status": "repeated"}
        play(server, "a", 1)
