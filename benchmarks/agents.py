"""Live use, as ratios measured in one run: ``python -m benchmarks.agents``.

An agent against the bare learner, its file against bare SQLite commits on the same disk, the server
against an empty endpoint of the same framework, and what ten thousand agents weigh.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import coldq

P, N = 10, 2
BLOCK = 20  # calls in a row before the next competitor's turn
EMPTY = """
import sys, uvicorn
from fastapi import FastAPI
from coldq.commands.serve import bound
app = FastAPI()
@app.put("/empty")
async def empty() -> dict[str, int]:
    return {"round": 1}
listening = bound("127.0.0.1", 0)
print(listening.getsockname()[1], flush=True)
settings = uvicorn.Config(app, access_log=False, log_level="warning")
uvicorn.Server(settings).run(sockets=[listening])
"""


def learner() -> coldq.COLDQ:
    return coldq.COLDQ(coldq.Box(0.0, 5.0, dim=P), horizon=1_000_000)


def feedback(rng: np.random.Generator) -> tuple[coldq.LeastSquares, coldq.Affine]:
    loss = coldq.LeastSquares(rng.normal(size=(3, P)), rng.normal(size=3))
    return loss, coldq.Affine(rng.normal(size=(N, P)), rng.uniform(0.0, 1.0, N))


def in_turns(calls: dict[str, Callable[[], Any]], count: int) -> dict[str, np.ndarray]:
    """Seconds of every call, `count` of each, in blocks that take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(max(count // BLOCK, 1)):
        for name, call in calls.items():
            call()
            for _ in range(BLOCK):
                begun = perf_counter()
                call()
                seconds[name].append(perf_counter() - begun)
    return {name: np.array(values) for name, values in seconds.items()}


class Bare:
    """What one writes without an agent."""

    def __init__(self, given: list[Any]) -> None:
        self.learner, self.given, self.k = learner(), given, 0
        self.state = self.learner.init(N)

    def __call__(self) -> None:
        loss, rows = self.given[self.k % len(self.given)]
        self.k += 1
        self.state = self.learner.update(self.state, coldq.Feedback(loss, rows))


class Live:
    """The same with one, in memory or on disk."""

    def __init__(self, given: list[Any], path: Path | None = None) -> None:
        self.agent, self.given = coldq.Agent(learner(), N, path=path), given

    def __call__(self) -> None:
        decision = self.agent.decide()
        loss, rows = self.given[decision.round % len(self.given)]
        self.agent.observe(decision.round, loss, rows)


class Commit:
    """One row a transaction, as long as a feedback is, as durable as an agent's."""

    def __init__(self, path: Path, given: list[Any]) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA locking_mode=EXCLUSIVE")
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=FULL")
        self.db.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)")
        self.text = json.dumps([coldq.describe(part) for part in given[0]])

    def __call__(self) -> None:
        self.db.execute("INSERT INTO rows (text) VALUES (?)", (self.text,))


@contextmanager
def serving(*command: str) -> Iterator[int]:
    """The port of a server in a process of its own."""
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield int(line.split(",")[0].rpartition(":")[2])
        finally:
            process.terminate()
            process.communicate()


class Connection:
    """A connection that stays open, and requests written out ahead: the client costs little."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connect()

    def connect(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        """An answer; a server closes what was idle for seconds, and any request may come again."""
        try:
            return self.once(method, path, body)
        except ConnectionError:
            self.connect()
            return self.once(method, path, body)

    def received(self) -> bytes:
        some = self.socket.recv(65536)
        if not some:
            raise ConnectionResetError
        return some

    def once(self, method: str, path: str, body: bytes) -> bytes:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.socket.sendall(head.encode() + body)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.received()
        start, _, rest = answer.partition(b"\r\n\r\n")
        lower = start.lower()
        length = int(lower.partition(b"content-length:")[2].split(b"\r\n")[0])
        while len(rest) < length:
            rest += self.received()
        if b" 20" not in start.split(b"\r\n")[0]:
            raise RuntimeError(rest.decode())
        return rest


class Remote:
    """An agent of a server: its next decision, and the feedback of the last one."""

    def __init__(self, port: int, given: list[Any]) -> None:
        self.line, self.round = Connection(port), 0
        self.bodies = [
            json.dumps({"loss": coldq.describe(f), "constraint": coldq.describe(g)}).encode()
            for f, g in given
        ]
        made = {"learner": coldq.describe(learner()), "n_constraints": N, "limit": None}
        self.line.ask("PUT", "/agents/a", json.dumps(made).encode())
        self.told = 0

    def decide(self) -> None:
        self.round += 1
        self.line.ask("PUT", f"/agents/a/rounds/{self.round}")

    def observe(self) -> None:
        self.told += 1
        body = self.bodies[self.told % len(self.bodies)]
        self.line.ask("PUT", f"/agents/a/rounds/{self.told}/feedback", body)


def resident() -> int:
    """Bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def weigh(count: int, rounds: int, given: list[Any]) -> float:
    """Kilobytes of an agent in memory, with some rounds behind it."""
    made, before = learner(), resident()
    agents = [coldq.Agent(made, N, remember=rounds) for _ in range(count)]
    for agent in agents:
        for k in range(rounds):
            agent.observe(agent.decide().round, *given[k % len(given)])
    return (resident() - before) / count / 1024.0


def wake(folder: Path, given: list[Any]) -> Callable[[], None]:
    """Open an agent that sleeps on disk, and close it."""
    path = folder / "sleeping.db"
    with coldq.Agent(learner(), N, path=path, remember=100) as agent:
        for k in range(100):
            agent.observe(agent.decide().round, *given[k % len(given)])
    return lambda: coldq.Agent.open(path).close()


def main() -> None:
    """Measure all of it, a line for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agents", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer calls, for a first look")
    quick = parser.parse_args().quick
    count = 200 if quick else 2000
    rng = np.random.default_rng(0)
    given = [feedback(rng) for _ in range(50)]
    print(f"p = {P}, N = {N}: medians of calls that take turns, p99 in brackets", flush=True)

    def add(what: str, mine: np.ndarray, against: str, base: np.ndarray, target: str) -> None:
        median, rare = np.median(mine), np.quantile(mine, 0.99)
        took, ratio = f"{1e6 * median:.1f} us [{1e6 * rare:.0f}]", median / np.median(base)
        print(f"{what:28} {took:>22}  {ratio:6.2f} of {against} (target {target})", flush=True)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        calls = {"bare": Bare(given), "agent": Live(given)}
        found = in_turns(calls, count)
        add(
            "decide + observe, in memory", found["agent"], "Feedback + update", found["bare"], "1.5"
        )
        disk = {
            "commit": Commit(folder / "bare.db", given),
            "agent": Live(given, folder / "agent.db"),
        }
        found = in_turns(disk, count // 5)
        add("decide + observe, on disk", found["agent"], "a commit", found["commit"], "2")
        found = in_turns({"wake": wake(folder, given), "commit": disk["commit"]}, count // 50)
        add("wake an idle agent", found["wake"], "a commit", found["commit"], "-")
        serve = "-m", "coldq", "serve", "--port", "0", "--token", "t"
        with (
            serving("-c", EMPTY) as empty,
            serving(*serve) as memory,
            serving(*serve, "--folder", str(folder / "agents")) as durable,
        ):
            nothing, one, kept = Connection(empty), Remote(memory, given), Remote(durable, given)
            found = in_turns(
                {
                    "empty": lambda: nothing.ask("PUT", "/empty"),
                    "decide": one.decide,
                    "observe": one.observe,
                    "decide on disk": kept.decide,
                    "observe on disk": kept.observe,
                    "commit": disk["commit"],
                },
                count // 4,
            )
        base = found["empty"]
        add("HTTP, the empty endpoint", base, "itself", base, "-")
        add("HTTP, decide", found["decide"], "the empty endpoint", base, "2")
        add("HTTP, observe", found["observe"], "the empty endpoint", base, "2")
        both = base + found["commit"]
        add(
            "HTTP, observe on disk", found["observe on disk"], "both, empty and a commit", both, "-"
        )
    agents, rounds = (500, 10) if quick else (10_000, 10)
    rates = ", ".join(
        f"{name} {1.0 / np.mean(found[name]):,.0f}" for name in ("empty", "decide", "observe")
    )
    print(f"Requests a second over one connection: {rates}.")
    kilobytes = weigh(agents, rounds, given)
    print(f"{agents:,} agents, {rounds} rounds remembered: {kilobytes:.1f} kB each.")


if __name__ == "__main__":
    main()
