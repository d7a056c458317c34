"""A server on loopback for as long as a block lasts, and a client with its token."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from coldq.cli.serve import bound
from coldq.serve import create_app
from coldq.serve.connections import Server, limited
from tests.processes import HANGING

TOKEN = "a token"


class Client(httpx.Client):
    """A client, and the application behind the server that it talks to."""

    app: Any


@contextmanager
def running(app: Any, most: int, seconds: float) -> Iterator[tuple[str, Server]]:
    """A server with so many connections at most, which wait so long for their clients."""
    http = limited(most, seconds)
    settings = uvicorn.Config(app, log_level="error", access_log=False, http=http)
    server, listening = Server(settings), bound("127.0.0.1", 0)
    listening.listen()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", server
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@contextmanager
def client(
    folder: Path | None = None, seconds: float = HANGING, **options: Any
) -> Iterator[Client]:
    """A client of a server of its own, which ends silent connections after some seconds."""
    app = create_app(folder, **({"token": TOKEN} | options))
    auth = {"Authorization": f"Bearer {TOKEN}"}
    with (
        running(app, 1000, seconds) as (address, _),
        Client(base_url=address, headers=auth, timeout=HANGING, trust_env=False) as made,
    ):
        made.app = app
        yield made
