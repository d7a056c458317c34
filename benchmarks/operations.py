"""What operators wait for: ``python -m benchmarks.operations``.

Connections opened at once, a burst of requests, /live while a long feedback is at work, and
/metrics with ten thousand agents; the best and the middle of some attempts each.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from time import perf_counter

import numpy as np

import coldq
from benchmarks.load import Line, Server, request, serving

AGENTS, DIM = 10_000, 75_000


async def _opened(port: int, count: int) -> None:
    pairs = [asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
    for _, writer in await asyncio.gather(*pairs):
        writer.close()


async def _burst(port: int, count: int) -> None:
    loop = asyncio.get_running_loop()
    ends = [loop.create_future() for _ in range(count)]
    live = [request("GET", "/live")]
    made = (loop.create_connection(lambda e=e: Line(live, e), "127.0.0.1", port) for e in ends)
    await asyncio.gather(*made)
    await asyncio.gather(*ends)


def show(what: str, target: float, attempts: int, act: Callable[[], float]) -> None:
    """Seconds of some attempts."""
    seconds = [act() for _ in range(attempts)]
    words = f"best {1e3 * min(seconds):7.1f} ms, median {1e3 * float(np.median(seconds)):7.1f} ms"
    print(f"{what:44} {words} (target {1e3 * target:.0f} ms)", flush=True)


def timed(act: Callable[[], object]) -> float:
    """Seconds of a call."""
    begun = perf_counter()
    act()
    return perf_counter() - begun


class Long:
    """An agent of many coordinates, and feedback for it of a megabyte."""

    def __init__(self, server: Server) -> None:
        self.server, self.round = server, 0
        box = {"type": "Box", "lower": 0.0, "upper": 1.0, "dim": DIM}
        learner = {"type": "COLDQ", "domain": box, "horizon": 1000}
        made = json.dumps({"learner": learner, "n_constraints": 1}).encode()
        server.take([[request("PUT", "/agents/long", made)]])
        slopes = np.random.default_rng(0).normal(size=DIM).round(4).tolist()
        rows = {"type": "Affine", "A": [np.full(DIM, 1.0).tolist()], "b": [10.0]}
        self.body = json.dumps({"loss": {"type": "Linear", "c": slopes}, "constraint": rows})

    def slowest(self) -> float:
        """Seconds of the slowest /live while the feedback is at work."""
        self.round += 1
        self.server.take([[request("PUT", f"/agents/long/rounds/{self.round}")]])
        path = f"/agents/long/rounds/{self.round}/feedback"
        told = [[request("PUT", path, self.body.encode())]]
        telling = threading.Thread(target=self.server.take, args=(told,))
        telling.start()
        worst = 0.0
        while telling.is_alive():
            worst = max(worst, timed(lambda: self.server.take([[request("GET", "/live")]])))
        return worst


def main() -> None:
    """Measure all of it, a line for each."""
    large = "--largest-body", "2000000"
    with serving("-m", "coldq", "serve", "--port", "0", "--token", "t", *large) as server:
        port = server.port
        for count, target in ((64, 0.05), (500, 0.5)):
            opened = lambda n=count: timed(lambda: asyncio.run(_opened(port, n)))  # noqa: E731
            show(f"{count} connections opened", target, 9, opened)
        show(
            "a burst of 500 requests", 0.5, 9, lambda: timed(lambda: asyncio.run(_burst(port, 500)))
        )
        long = Long(server)
        what = f"/live under a feedback of {len(long.body) / 1e6:.2f} MB"
        show(what, 0.05, 9, long.slowest)
    with serving("-m", "coldq", "serve", "--port", "0", "--token", "t") as server:
        learner = coldq.COLDQ(coldq.Box(0.0, 5.0, dim=10), horizon=1000)
        made = json.dumps({"learner": coldq.describe(learner), "n_constraints": 2}).encode()
        server.take(
            [[request("PUT", f"/agents/a{k}", made) for k in range(j, AGENTS, 8)] for j in range(8)]
        )
        looked = lambda: timed(lambda: server.take([[request("GET", "/metrics")]]))  # noqa: E731
        show(f"/metrics with {AGENTS:,} agents", 1.0, 5, looked)


if __name__ == "__main__":
    main()
