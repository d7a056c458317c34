"""A load generator for servers on this machine: a few connections that stay open, each with one
request at a time, written out ahead, so that the client costs little beside what it measures.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import numpy as np

END = b"\r\n\r\n"


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """A request as it is sent."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Line(asyncio.Protocol):
    """A connection that sends its requests one after the other, and notes how long each took."""

    def __init__(self, requests: Sequence[bytes], done: asyncio.Future[None]) -> None:
        self.left, self.done = iter(requests), done
        self.seconds: list[float] = []
        self.got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.send()

    def send(self) -> None:
        following = next(self.left, None)
        if following is None:
            self.transport.close()
            self.done.set_result(None)
            return
        self.begun = perf_counter()
        self.transport.write(following)

    def data_received(self, data: bytes) -> None:
        self.got += data
        head, found, body = self.got.partition(END)
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        if len(body) < length:
            return
        self.seconds.append(perf_counter() - self.begun)
        self.got = b""
        if b" 20" not in head[:15]:
            self.done.set_exception(RuntimeError(body.decode()))
            self.transport.close()
        else:
            self.send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionResetError("the server has gone"))


async def _ask(port: int, lines: Sequence[Sequence[bytes]]) -> list[float]:
    loop = asyncio.get_running_loop()
    ends = [loop.create_future() for _ in lines]
    made = [
        await loop.create_connection(lambda r=r, e=e: Line(r, e), "127.0.0.1", port)
        for r, e in zip(lines, ends, strict=True)
    ]
    await asyncio.gather(*ends)
    return [second for _, line in made for second in line.seconds]


@dataclass
class Measured:
    """What was seen of some kind of request: their rate, by turns, and the time of each."""

    rates: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    busy: float = 0.0  # seconds of the server's processor time, for all of them

    def rate(self) -> float:
        """Requests a second, in the turn in the middle."""
        return float(np.median(self.rates))

    def row(self, name: str, against: float | None) -> str:
        """A line of a table."""
        half, rare = (1e3 * np.quantile(self.seconds, share) for share in (0.5, 0.99))
        share = "" if against is None else f"{self.rate() / against:8.2f}"
        busy = f"{1e6 * self.busy / len(self.seconds):8.0f}" if self.busy else " " * 8
        return f"{name:34} {self.rate():8,.0f} {half:8.2f} {rare:8.2f} {busy} {share}"


HEAD = f"{'':34} {'a second':>8} {'p50, ms':>8} {'p99, ms':>8} {'CPU, us':>8} {'of empty':>8}"


@dataclass
class Server:
    """A server in a process of its own."""

    port: int
    process: subprocess.Popen[str]

    def busy(self) -> float:
        """Seconds of processor time that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def take(self, lines: Sequence[Sequence[bytes]], into: Measured | None = None) -> None:
        """Answer these requests, on as many connections as there are lists of them."""
        count, before, begun = sum(map(len, lines)), self.busy(), perf_counter()
        seconds = asyncio.run(_ask(self.port, lines))
        if into is not None:
            into.rates.append(count / (perf_counter() - begun))
            into.busy += self.busy() - before
            into.seconds += seconds


@contextmanager
def serving(*command: str) -> Iterator[Server]:
    """A server, one of whose first lines ends with its port, or has it before a comma."""
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ends = (line.split(",")[0].rpartition(":")[2].strip() for line in process.stdout)
            yield Server(int(next(end for end in ends if end.isdigit())), process)
        finally:
            process.terminate()
            process.communicate()
