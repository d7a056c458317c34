"""A clock that jumps, by hours and years, forth and back, at every look: nothing depends on it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import httpx
import pytest

import coldq
from tests.agent.feeds import LEARNER, bits, measured, revealed
from tests.processes import HANGING, end, started

# Before anything else is imported. What SQLite and the logging module are told jumps too.
JUMPS = """
import itertools, sys, time
true = time.time
by = itertools.cycle([0.0, 7200.0, -7200.0, 3.2e7, -3.2e7, -1.7e9, 4e9])
time.time = lambda: true() + next(by)
time.time_ns = lambda: int(1e9 * time.time())
assert abs(time.time() - time.time()) > 3600.0
"""
ROUNDS = 30
AGENT = """
import json, logging, os
from pathlib import Path
import coldq
from tests.agent.feeds import LEARNER, bits
from tests.agent.test_clock import disturbed
logging.basicConfig(level=logging.DEBUG)
path = Path(sys.argv[1])
agent = disturbed(path, between=lambda: os.utime(path, (time.time() % 2e9, time.time() % 2e9)))
seconds = agent.history().columns["seconds"]
print(json.dumps({
    "state": {name: data.hex() for name, data in bits(agent.state).items()},
    "flying": [list(agent.in_flight), list(agent.waiting), agent.round],
    "seconds": [float(seconds.min()), float(seconds.max())],
}), flush=True)
agent.close()
"""


def disturbed(path: Path, between=lambda: None) -> coldq.Agent:
    """Rounds on disk with feedback that is late, doubled and lost, and a restart after each ten."""
    agent = coldq.Agent(LEARNER, 2, path=path, limit=6)
    for round in range(1, ROUNDS + 1):
        agent.decide(round)
        late = round - 3 if round % 4 else round - 1
        if late % 7 and late in agent.in_flight:
            told = measured(late, agent.decide(late).x)
            assert agent.observe(late, *told).accepted
            assert agent.observe(late, *told).status == "repeated"
        if round % 10 == 0:
            agent.close()
            between()
            agent = coldq.Agent.open(path)
    for round in agent.in_flight:
        agent.observe(round, *revealed(round))
    return agent


def test_an_agent_does_the_same_whatever_the_clock_says(tmp_path: Path) -> None:
    with disturbed(tmp_path / "steady.db") as steady:
        state = {name: data.hex() for name, data in bits(steady.state).items()}
        flying = [list(steady.in_flight), list(steady.waiting), steady.round]
    with started("-c", JUMPS + AGENT, str(tmp_path / "jumps.db")) as process:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
    seen = json.loads(line)
    assert seen["state"] == state and seen["flying"] == flying
    least, most = seen["seconds"]  # what updates took is not measured by that clock
    assert 0.0 <= least <= most < 3600.0
    with coldq.Agent.open(tmp_path / "jumps.db") as again:  # and by a clock that is right
        assert {name: data.hex() for name, data in bits(again.state).items()} == state


@pytest.mark.parametrize("folder", [False, True], ids=["memory", "disk"])
def test_a_server_does_the_same_whatever_the_clock_says(tmp_path: Path, folder: bool) -> None:
    words = ["coldq", "serve", "--port", "0", "--token", "secret", "--rate", "1000"]
    words += ["--folder", str(tmp_path)] * folder
    script = f"{JUMPS}\nsys.argv = {words!r}\nfrom coldq.cli.app import run\nrun()\n"
    one = coldq.Agent(LEARNER, 2)
    with started("-c", script) as process:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "http://" in line)  # it may compile first
        where = line.split()[2].rstrip(",")
        headers = {"Authorization": "Bearer secret"}
        with httpx.Client(
            base_url=where, headers=headers, timeout=HANGING, trust_env=False
        ) as client:
            made = {"learner": coldq.describe(LEARNER), "n_constraints": 2}
            assert client.put("/agents/pump", json=made).status_code == 201
            for round in range(1, 8):
                answer = client.put(f"/agents/pump/rounds/{round}")
                assert answer.json()["x"] == one.decide(round).x.tolist()
                told = measured(round, one.decide(round).x)
                sent = dict(zip(("loss", "constraint"), map(coldq.describe, told), strict=True))
                answer = client.put(f"/agents/pump/rounds/{round}/feedback", json=sent)
                assert answer.json() == {"round": round, "status": "applied"}
                one.observe(round, *told)
            shown = client.get("/agents/pump").json()
            history = client.get("/agents/pump/history").json()
        end(process, signal.SIGTERM)
    assert shown["x"] == one.state.x.tolist() and shown["round"] == 7
    assert all(0.0 <= seconds < 3600.0 for seconds in history["seconds"])
