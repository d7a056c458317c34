"""Connections whose clients say or take nothing: they end, and nobody else waits for them."""

from __future__ import annotations

import asyncio
import logging
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from coldq.serve.connections import OnceAMinute
from tests.processes import HANGING, end, started
from tests.serve.running import TOKEN, client, running
from tests.serve.test_command import MADE, address

FEW = 128  # descriptors


@contextmanager
def serving_with_few(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server that may open few files."""
    code = (
        "import resource, sys; from coldq.cli.app import run; "
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({FEW}, {FEW})); "
        "sys.argv = ['coldq', 'serve', '--port', '0', *sys.argv[1:]]; run()"
    )
    with started("-c", code, *arguments, COLDQ_TOKEN=TOKEN) as running:
        yield address(running), running


def connect(where: str) -> socket.socket:
    host, port = where.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=HANGING)


def test_more_silent_connections_than_descriptors_keep_nobody_out() -> None:
    with serving_with_few() as (where, running), ExitStack() as held:
        for _ in range(FEW + 12):
            held.enter_context(connect(where))
        for _ in range(3):
            answer = httpx.get(f"{where}/health", trust_env=False, timeout=HANGING)
            assert answer.status_code == 200
        _, _, errors = end(running, signal.SIGTERM)
    assert len(errors) < 1000, errors[:1000]


def test_a_burst_waits_in_the_queue_of_a_server_that_is_busy() -> None:
    door, busy = threading.Event(), threading.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            busy.set()
            door.wait(HANGING)  # on the loop: nobody is accepted meanwhile
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body"})

    with running(app, 1000, HANGING) as (where, _), ExitStack() as held:
        first = held.enter_context(connect(where))
        first.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        assert busy.wait(HANGING)
        try:
            for _ in range(100):  # fewer than any system lets wait
                one = held.enter_context(socket.socket())
                one.setblocking(False)
                one.connect_ex(first.getpeername())
                assert select.select([], [one], [], 5.0)[1], "not connected"
        finally:
            door.set()


def test_more_agents_than_descriptors_are_served_and_the_lower_limit_is_said(
    tmp_path: Path,
) -> None:
    with serving_with_few("--folder", str(tmp_path)) as (where, running):
        auth = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(
            base_url=where, headers=auth, timeout=HANGING, trust_env=False
        ) as talking:
            for k in range(FEW // 2):
                answer = talking.put(f"/agents/a{k}", json=MADE)
                assert answer.status_code == 201, answer.text
            assert talking.post("/agents/a0/decide").status_code == 200
            assert talking.get("/metrics").status_code == 200
        _, _, errors = end(running, signal.SIGTERM)
    assert errors.count("agents are resident at once at most, not 1000") == 1


HEAD = f"Host: a\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
ASKED = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "GET /heal",
        ASKED,
        ASKED + "G",
        f"PUT /agents/a HTTP/1.1\r\n{HEAD}Content-Length: 9\r\n\r\n{{",
        f"POST /health HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n",
    ],
    ids=["nothing", "half a head", "answered", "half another", "half a body", "a piece of it"],
)
def test_a_connection_without_a_whole_request_is_closed(sent: str) -> None:
    with client(seconds=0.05) as server, connect(str(server.base_url)) as silent:
        silent.sendall(sent.encode())
        while _received(silent):
            pass


def _received(silent: socket.socket) -> bytes:
    try:
        return silent.recv(10_000)
    except ConnectionResetError:
        return b""


def test_a_head_without_an_end_is_not_kept() -> None:
    with client() as server, connect(str(server.base_url)) as endless:
        endless.sendall(b"GET /live HTTP/1.1\r\n")
        with suppress(ConnectionError):
            for _ in range(10_000):  # 20 MB
                endless.sendall(b"x-more: " + b"x" * 2000 + b"\r\n")
            raise AssertionError("all of it was taken")


LARGE = b"x" * 2**25  # far more than a system keeps of what nobody takes


class Application:
    """/large is much, and /slow is not answered before it is over."""

    def __init__(self) -> None:
        self.over = threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] == "/slow":
            await asyncio.to_thread(self.over.wait)
        body = LARGE if scope["path"] == "/large" else b"ok"
        length = b"content-length", str(len(body)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": body})


def until(happened: Callable[[], object]) -> None:
    while not happened():
        time.sleep(0.005)


def test_a_connection_whose_answers_are_not_taken_is_closed() -> None:
    asked = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n"
    with running(Application(), 10, 0.05) as (where, server):
        known = server.server_state.connections
        with connect(where) as deaf:
            deaf.sendall(asked.encode() * 3)
            until(lambda: server.server_state.total_requests and not known)


def test_an_answer_that_is_taken_slowly_has_time() -> None:
    with running(Application(), 10, HANGING) as (where, server), connect(where) as slow:
        slow.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        until(lambda: server.server_state.total_requests)
        one: Any = next(iter(server.server_state.connections))
        taken = 0
        while taken < len(LARGE) // 2:
            taken += len(slow.recv(2**20))
        one.loop.call_soon_threadsafe(one.overdue)  # some was taken since
        while taken < len(LARGE):
            more = len(slow.recv(2**20))
            assert more > 0
            taken += more


@pytest.mark.parametrize(
    ("sent", "gives_way"),
    [
        ("GET /large HTTP/1.1\r\nHost: a\r\n\r\n" * 2, True),
        ("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n" * 2, True),
        ("PUT /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{", True),
        ("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n", False),
    ],
    ids=["takes no answer", "asks ahead", "half a body", "waits for an answer"],
)
def test_who_keeps_the_server_waiting_makes_room_for_others(sent: str, gives_way: bool) -> None:
    app = Application()
    with running(app, 3, HANGING) as (where, server), ExitStack() as held:
        held.callback(app.over.set)
        known: Any = server.server_state.connections
        for _ in range(3):
            held.enter_context(connect(where)).sendall(sent.encode())
        until(
            lambda: [one.gives_way() for one in list(known) if not one.is_idle()] == [gives_way] * 3
        )
        try:
            assert httpx.get(where, trust_env=False, timeout=HANGING).text == "ok"
        except httpx.TransportError:
            assert not gives_way
        else:
            assert gives_way


def test_connections_that_are_no_http_do_not_fill_the_log() -> None:
    with serving_with_few() as (where, running):
        for _ in range(5):
            with connect(where) as stranger:
                stranger.sendall(b"\x16\x03\x01\r\n\r\n")
                while _received(stranger):
                    pass
        _, _, errors = end(running, signal.SIGTERM)
    assert errors.count("Invalid HTTP request") == 1


def test_only_the_first_of_many_failed_connections_is_logged() -> None:
    lines: list[str] = []
    log = logging.Logger("asyncio")
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    log.addHandler(handler)
    log.addFilter(OnceAMinute())
    for _ in range(100):
        log.error("socket.accept() out of system resource\nsocket: ...")
    log.error("something else")
    assert len(lines) == 2
