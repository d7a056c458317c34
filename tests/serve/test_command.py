"""``coldq serve`` as it is started, in a container and by hand, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

import coldq
from coldq.cli.serve import bound, serve
from tests.agent.feeds import LEARNER, measured
from tests.processes import HANGING, end, read_line, started, wait_for

ROOT = Path(__file__).parents[2]
CONTAINER = (ROOT / "Containerfile").read_text()
MADE = {"learner": coldq.describe(LEARNER), "n_constraints": 2}


def instructions(kind: str) -> list[str]:
    """What follows a word in the container file, line by line."""
    return re.findall(rf"^{kind} (.*)$", CONTAINER, re.MULTILINE)


def address(running: subprocess.Popen[str]) -> str:
    line = read_line(running, "coldq serves")
    return line.split()[2].rstrip(",").replace("0.0.0.0", "127.0.0.1")


def test_the_containers_command_serves_and_ends_in_order(tmp_path: Path) -> None:
    name, *arguments = json.loads(instructions("CMD")[0])
    assert name == "coldq"
    settings = {"COLDQ_FOLDER": str(tmp_path), "COLDQ_PORT": "0", "COLDQ_TOKEN": "secret\n"}
    assert {"COLDQ_FOLDER", "COLDQ_PORT"} <= set(re.findall(r"(\w+)=", instructions("ENV")[0]))
    with started("-m", "coldq", *arguments, **settings) as running:
        headers = {"Authorization": "Bearer secret"}
        with httpx.Client(
            base_url=address(running), headers=headers, timeout=HANGING, trust_env=False
        ) as client:
            assert client.put("/agents/pump", json=MADE).status_code == 201
            x = client.post("/agents/pump/decide").json()["x"]
            loss, rows = measured(1, x)
            told = {"loss": coldq.describe(loss), "constraint": coldq.describe(rows)}
            answer = client.put("/agents/pump/rounds/1/feedback", json=told)
            assert answer.json()["status"] == "applied"
            client.put("/agents/lossy", json=MADE | {"limit": 0})
            for round in (1, 2):
                assert client.put(f"/agents/lossy/rounds/{round}").status_code == 200
        status, _, errors = end(running, signal.SIGTERM)
    assert status == 0 and "stopped by SIGTERM" in errors
    assert f"coldq.agent: rounds [1] of {tmp_path / 'lossy.db'} had no feedback" in errors
    assert not (tmp_path / "pump.db-wal").exists()  # closed in order
    with coldq.Agent.open(tmp_path / "pump.db") as agent:
        assert agent.state.t == 2


def test_a_request_that_has_begun_is_answered_after_ctrl_c(tmp_path: Path) -> None:
    body = json.dumps(MADE).encode()
    head = f"PUT /agents/a HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n"
    command = ("serve", "--port", "0", "--no-token", "--folder", str(tmp_path))
    with started("-m", "coldq", *command) as running:
        host, _, port = address(running).removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=HANGING) as asking:
            asking.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body[:9])
            # What is answered later came later: half of the request is there.
            assert httpx.get(f"http://{host}:{port}/health", trust_env=False).status_code == 200
            running.send_signal(signal.SIGINT)
            wait_for(lambda: not _listens(host, int(port)), running)
            asking.sendall(body[9:])
            assert asking.recv(100).startswith(b"HTTP/1.1 201 ")
        _, errors = running.communicate(timeout=HANGING)
    assert running.returncode == 0 and "stopped by Ctrl-C" in errors
    with coldq.Agent.open(tmp_path / "a.db") as agent:
        assert agent.round == 0


def _listens(host: str, port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex((host, port)) == 0


def test_a_port_that_is_taken_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    usual: dict[str, Any] = {"no_token": True, "resident": 1, "largest_body": 1000, "rate": None}
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        pytest.raises(coldq.InvalidInput, match="cannot listen on"),
    ):
        serve(None, "127.0.0.1", other.getsockname()[1], None, **usual)
    assert capsys.readouterr().out == ""


def test_nobody_is_let_in_before_the_server_listens() -> None:
    with bound("127.0.0.1", 0) as taken:
        assert not _listens(*taken.getsockname())


ONE_AFTER_THE_OTHER = """
import sys
from coldq.cli.app import run
for arguments in sys.argv[1:]:
    sys.argv = ["coldq", "serve", *arguments.split()]
    try:
        run()
    except SystemExit as ended:
        print(ended.code)
"""


def test_a_token_is_drawn_unless_it_is_given_and_needed_beyond_this_machine() -> None:
    with started("-m", "coldq", "serve", "--port", "0") as running:
        where = address(running)
        assert running.stdout is not None
        token = running.stdout.readline().removeprefix("token: ").strip()
        assert where.startswith("http://127.0.0.1:") and len(token) >= 32
        for sent, code in ((token, 200), ("other", 401)):
            headers = {"Authorization": f"Bearer {sent}"}
            answer = httpx.get(f"{where}/agents", headers=headers, trust_env=False, timeout=HANGING)
            assert answer.status_code == code
        refused = {
            "--no-token --host 0.0.0.0": "--no-token is for this machine alone",
            "--no-token --token x": "contradict each other",
            f"--port {where.rpartition(':')[2]}": "cannot listen on 127.0.0.1",
            "--token \u00e9": "--token must be letters, digits and signs of ASCII",
            "--rate 0": "--rate must be at least 1",
        }
        command = [sys.executable, "-c", ONE_AFTER_THE_OTHER, *refused]
        bare = {name: v for name, v in os.environ.items() if not name.startswith("COLDQ_T")}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=bare)
    assert done.stdout == "1\n" * len(refused), done.stderr
    for words, said in zip(refused.values(), done.stderr.splitlines(), strict=True):
        assert said.startswith("coldq: ") and words in said


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no ::1")
def test_an_address_of_ipv6_is_said_as_urls_have_it() -> None:
    with started("-m", "coldq", "serve", "--host", "::1", "--port", "0", "--no-token") as running:
        where = address(running)
        assert where.startswith("http://[::1]:")
        assert httpx.get(f"{where}/health", trust_env=False, timeout=HANGING).status_code == 200


def test_small_answers_are_sent_at_once() -> None:
    with bound("127.0.0.1", 0) as listening:
        listening.listen()
        with socket.create_connection(listening.getsockname()):
            taken, _ = listening.accept()
            with taken:  # asyncio asks for this before it turns Nagle's algorithm off
                assert taken.proto == socket.IPPROTO_TCP
    with pytest.raises(coldq.InvalidInput, match="--port must be from 0 to 65535"):
        bound("127.0.0.1", 70_000)


@pytest.mark.parametrize("word", ["USER nobody", "VOLUME /data"])
def test_the_container_runs_as_nobody_special_and_keeps_its_agents(word: str) -> None:
    assert f"\n{word}\n" in CONTAINER
