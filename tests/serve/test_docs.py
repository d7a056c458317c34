"""What docs/live-use.md says to type is typed; its dashboard asks for metrics that there are."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import prometheus_client
import pytest

import coldq
from coldq.agent.metrics import Collector
from coldq.serve.counts import Counts
from tests.agent.feeds import LEARNER, revealed
from tests.processes import HANGING
from tests.serve import curl

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("own", [True, False], ids=["curl", "stand-in for curl"])
def test_the_commands_of_the_page_do_what_it_says(
    tmp_path: Path, own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not own:
        monkeypatch.setattr(shutil, "which", lambda name: None)
    text = (DOCS / "live-use.md").read_text()
    (script,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    folders = [curl.place(tmp_path), Path(sys.executable).parent, os.environ["PATH"]]
    beside = os.pathsep.join(str(folder) for folder in folders if folder is not None)
    done = subprocess.run(
        ["bash", "-e", "-m", "-c", script], cwd=tmp_path, text=True, capture_output=True,
        check=False, timeout=HANGING,
        env={**os.environ, "PATH": beside, "COLDQ_PORT": port, "COLDQ_TOKEN": "x"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert answers[1] == {"round": 1, "x": [0.0, 0.0, 0.0]}
    assert answers[2] == {"round": 1, "status": "applied"}
    assert answers[3]["round"] == 2 and answers[4] == {"round": 2, "status": "skipped"}
    assert answers[5]["x"] == answers[3]["x"] and "stopped by SIGTERM" in done.stderr
    with coldq.Agent.open(tmp_path / "agents" / "servers.db") as agent:
        assert agent.state.t == 2 and agent.round == 2


def test_the_dashboard_asks_for_what_there_is() -> None:
    agent = coldq.Agent(coldq.SafetyMargin(LEARNER, 0.1), 2)
    agent.observe(agent.decide().round, *revealed(1))
    other = coldq.Agent(LEARNER, 2)
    other.observe(other.decide().round, *revealed(1))
    counts = Counts()
    counts.answered({"path": "/live"}, "GET", 200, 0.001, b"")
    counts.committed(0.001, False)
    counts.registry.register(Collector({"margin": agent, "queue": other}))
    text = prometheus_client.generate_latest(counts.registry).decode()
    there = set(re.findall(r"^(\w+)[ {]", text, re.MULTILINE))
    board = json.loads((DOCS / "grafana-agents.json").read_text())
    asked = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"coldq_\w+", target["expr"])
    }
    assert len(asked) == 14 and asked <= there


def test_counts_are_of_one_moment_while_rounds_go_on() -> None:
    agent, done = coldq.Agent(coldq.OGD(coldq.Box(0.0, 1.0, dim=1), eta=0.1), 0), threading.Event()

    def play() -> None:
        for _ in range(500):
            agent.observe(agent.decide().round, coldq.Linear([1.0]), None)
        done.set()

    playing = threading.Thread(target=play)
    playing.start()
    skipped = set()
    while not done.is_set():
        found = {family.name: family for family in Collector({"one": agent}).collect()}
        skipped |= {sample.value for sample in found["coldq_agent_skipped"].samples}
    playing.join()
    assert skipped == {0.0}
