"""``coldq serve``: agents over HTTP until a signal comes."""

from __future__ import annotations

import gc
import ipaddress
import logging
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coldq.base.errors import InvalidInput
from coldq.cli.needs import require

# For requests that are still being answered when a signal comes. Containers are killed
# after 10, by default, and agents are to be closed by then.
SHUTDOWN_SECONDS = 5


def serve(
    folder: Path | None,
    host: str,
    port: int,
    token: str | None,
    *,
    no_token: bool,
    resident: int,
    largest_body: int,
    rate: float | None,
) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that came before are answered."""
    require("serving", "serve", "fastapi", "uvicorn", "prometheus_client")
    token = token and token.strip()  # a file's last line ends, and no header can
    if token and not (token.isascii() and token.isprintable()):
        raise InvalidInput("--token must be letters, digits and signs of ASCII, but has others")
    if no_token and token:
        raise InvalidInput("--no-token and a token contradict each other: give one of them")
    if no_token and not is_loopback(host):
        raise InvalidInput(f"--no-token is for this machine alone, but --host is {host}")
    for name, value in (("--resident", resident), ("--largest-body", largest_body)):
        if value < 1:
            raise InvalidInput(f"{name} must be at least 1, but is {value}")
    if rate is not None and not rate >= 1.0:
        raise InvalidInput(f"--rate must be at least 1 request a second, but is {rate}")
    drawn_token = None if no_token or token else secrets.token_urlsafe(24)
    import uvicorn

    from coldq.serve import create_app
    from coldq.serve.connections import OnceAMinute, Server, limited
    from coldq.serve.descriptors import shared

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    resident, connections = shared(
        0 if folder is None else resident
    )  # in memory they open no files
    app = create_app(
        folder, token=token or drawn_token, resident=resident, largest_body=largest_body, rate=rate
    )
    with bound(host, port) as listening:
        with _in_words(host, port):
            listening.listen()
        name = f"[{host}]" if ":" in host else host  # an address of IPv6
        where = f"http://{name}:{listening.getsockname()[1]}"
        kept = "in memory, until it ends" if folder is None else f"in {folder}"
        print(f"coldq serves {where}, agents {kept}", flush=True)
        if drawn_token is not None:
            print(f"token: {drawn_token}", flush=True)
        settings = uvicorn.Config(
            app,
            access_log=False,
            log_level="warning",
            server_header=False,
            http=limited(connections),
            ws="none",
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        for speaker in ("asyncio", "uvicorn.error"):
            logging.getLogger(speaker).addFilter(OnceAMinute())
        gc.freeze()  # what is loaded by now stays, and is not searched for garbage again
        server = Server(settings)
        app.state.ending = lambda: server.should_exit
        server.run(sockets=[listening])


def is_loopback(host: str) -> bool:
    """Whether nobody outside this machine reaches it.

    >>> from coldq.cli.serve import is_loopback
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bound(host: str, port: int) -> socket.socket:
    """A socket that has this port, and does not listen yet."""
    if not 0 <= port <= 65535:
        raise InvalidInput(f"--port must be from 0 to 65535, but is {port}")
    with _in_words(host, port):
        family, *_, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # asyncio sends at once what is small only if the protocol is named, see TCP_NODELAY.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            if os.name == "posix":  # elsewhere it would let two servers share a port
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(where)
        except BaseException:
            listening.close()
            raise
    return listening


@contextmanager
def _in_words(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except (OSError, OverflowError) as error:
        raise InvalidInput(f"cannot listen on {host}, port {port}: {error}") from None
