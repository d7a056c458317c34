"""Live use, as ratios measured in one run: ``python -m benchmarks.agents``.

An agent against the bare learner, its file against bare SQLite commits on the same disk, the server
against an empty endpoint of the same framework, and what ten thousand agents weigh.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import coldq
from benchmarks.load import HEAD, Measured, Server, request, serving
from coldq.agent.encoding import encode

P, N = 10, 2
CONNECTIONS = 8
BLOCK = 20  # calls in a row before the next competitor's turn
EMPTY = """
import uvicorn
from typing import Any
from fastapi import FastAPI
from coldq.cli.serve import bound
app = FastAPI()
@app.put("/empty")
async def empty() -> dict[str, int]:
    return {"round": 1}
@app.put("/parsed")
async def parsed(told: dict[str, Any]) -> dict[str, int]:
    return {"round": 1}
listening = bound("127.0.0.1", 0)
listening.listen()
print(listening.getsockname()[1], flush=True)
settings = uvicorn.Config(app, access_log=False, log_level="warning")
uvicorn.Server(settings).run(sockets=[listening])
"""


def learner() -> coldq.COLDQ:
    return coldq.COLDQ(coldq.Box(0.0, 5.0, dim=P), horizon=1_000_000)


def feedback(rng: np.random.Generator) -> tuple[coldq.LeastSquares, coldq.Affine]:
    loss = coldq.LeastSquares(rng.normal(size=(3, P)), rng.normal(size=3))
    return loss, coldq.Affine(rng.normal(size=(N, P)), rng.uniform(0.0, 1.0, N))


def in_turns(
    calls: dict[str, Callable[[], Any]], count: int, block: int = BLOCK
) -> dict[str, np.ndarray]:
    """Seconds of every call, `count` of each, in blocks that take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(max(count // block, 1)):
        for name, call in calls.items():
            call()
            for _ in range(block):
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
    """One row a transaction, as long as an agent's is and as durable."""

    def __init__(self, path: Path, given: list[Any]) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA locking_mode=EXCLUSIVE")
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=FULL")
        self.db.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, data BLOB)")
        self.data = bytes(8 * P) + (encode(coldq.Feedback(*given[0])) or b"")

    def __call__(self) -> None:
        self.db.execute("INSERT INTO rows (data) VALUES (?)", (self.data,))


class Remote:
    """Agents of a server, one for each connection: their next decisions, and feedback for them."""

    def __init__(self, server: Server, given: list[Any]) -> None:
        self.server, self.decided, self.told = server, 0, 0
        self.bodies = [body(*each) for each in given]
        made = {"learner": coldq.describe(learner()), "n_constraints": N, "limit": None}
        text = json.dumps(made).encode()
        server.take([[request("PUT", f"/agents/a{k}", text)] for k in range(CONNECTIONS)])

    def decide(self, count: int, into: Measured) -> None:
        first, self.decided = self.decided + 1, self.decided + count
        self.server.take(
            [
                [request("PUT", f"/agents/a{k}/rounds/{n}") for n in range(first, first + count)]
                for k in range(CONNECTIONS)
            ],
            into,
        )

    def observe(self, count: int, into: Measured) -> None:
        first, self.told = self.told + 1, self.told + count
        self.server.take(
            [
                [
                    request(
                        "PUT",
                        f"/agents/a{k}/rounds/{n}/feedback",
                        self.bodies[(n + k) % len(self.bodies)],
                    )
                    for n in range(first, first + count)
                ]
                for k in range(CONNECTIONS)
            ],
            into,
        )


def body(loss: Any, rows: Any) -> bytes:
    """A feedback as a client sends it."""
    return json.dumps({"loss": coldq.describe(loss), "constraint": coldq.describe(rows)}).encode()


def over_http(folder: Path, given: list[Any], turns: int) -> None:
    """Requests a second of decide and observe, beside empty endpoints and bare commits."""
    serve = "-m", "coldq", "serve", "--port", "0", "--token", "t"
    names = "empty", "parsed", "decide", "observe", "decide on disk", "observe on disk", "commit"
    seen = {name: Measured() for name in names}
    commit, count = Commit(folder / "beside.db", given), 50
    with (
        serving("-c", EMPTY) as empty,
        serving(*serve) as memory,
        serving(*serve, "--folder", str(folder / "agents")) as disk,
    ):
        nothing = [[request("PUT", "/empty")] * count] * CONNECTIONS
        parsed = [[request("PUT", "/parsed", body(*given[0]))] * count] * CONNECTIONS
        one, kept = Remote(memory, given), Remote(disk, given)
        for turn in range(turns + 1):
            if turn == 1:  # all is compiled and warm
                seen = {name: Measured() for name in names}
            empty.take(nothing, seen["empty"])
            empty.take(parsed, seen["parsed"])
            one.decide(count, seen["decide"])
            one.observe(count, seen["observe"])
            kept.decide(count, seen["decide on disk"])
            kept.observe(count, seen["observe on disk"])
            begun = perf_counter()
            for _ in range(count * CONNECTIONS):
                before = perf_counter()
                commit()
                seen["commit"].seconds.append(perf_counter() - before)
            seen["commit"].rates.append(count * CONNECTIONS / (perf_counter() - begun))
    print(f"\nOver HTTP, {CONNECTIONS} connections, {turns} turns of {count} requests on each:")
    print(HEAD)
    base, commits = seen["empty"].rate(), seen["commit"].rate()
    print(seen["empty"].row("empty endpoint", None))
    print(seen["parsed"].row("empty endpoint that takes the JSON", base))
    print(seen["decide"].row("decide (target 0.9)", base))
    print(seen["observe"].row("observe (target 0.6)", base))
    print(seen["decide on disk"].row("decide, on disk", base))
    print(seen["observe on disk"].row("observe, on disk", base))
    print(seen["commit"].row("bare commits, one after the other", None))
    ratio = 1.0 / seen["observe on disk"].rate() / (1.0 / base + 2.5 / commits)
    beside = "the time of the empty endpoint and 2.5 commits"
    print(f"observe, on disk: {ratio:.2f} of {beside} (target 1)", flush=True)


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


def reopened(folder: Path, given: list[Any]) -> Callable[[], None]:
    """Open an agent that was evicted to disk, and close it."""
    path = folder / "evicted.db"
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
        found = in_turns(disk, count // 2, block=2)  # a disk changes its pace within milliseconds
        add("decide + observe, on disk", found["agent"], "a commit", found["commit"], "2")
        found = in_turns({"open": reopened(folder, given), "commit": disk["commit"]}, count // 50)
        add("open an evicted agent", found["open"], "a commit", found["commit"], "-")
        over_http(folder, given, 2 if quick else 10)
    agents, rounds = (500, 10) if quick else (10_000, 10)
    kilobytes = weigh(agents, rounds, given)
    print(f"{agents:,} agents, {rounds} rounds remembered: {kilobytes:.1f} kB each.")


if __name__ == "__main__":
    main()
