"""Connections: how many there are at most, and how long one may wait for its client."""

from __future__ import annotations

import asyncio
import logging
import socket
from time import monotonic
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

Usual: Any = AutoHTTPProtocol
MAX_ACCEPTED_CONNECTIONS = 16  # taken at once; few, as the limit sees them later
CONNECTION_BACKLOG = 2048  # kept by the system until they are taken, as uvicorn's default
# Of a connection without a descriptor, one that is no HTTP, one that would be a web socket.
REPEATED_MESSAGES = (
    "socket.accept()", "Invalid HTTP request", "Unsupported upgrade", "No supported WebSocket",
)  # fmt: skip
MAX_HEAD_BYTES = 65_536  # of a request; one of uvicorn's two parsers takes any number
CLIENT_TIMEOUT_SECONDS = 20.0  # for a whole request to come, and for some of an answer to be taken


def limited(most: int, seconds: float = CLIENT_TIMEOUT_SECONDS) -> type[asyncio.Protocol]:
    """uvicorn's protocol with a limit of connections, and with time-outs for their clients.

    One more takes the place of the one answered longest ago among those that give way.
    """
    known: dict[Any, asyncio.TimerHandle] = {}  # all connections, those answered last at the end

    class Limited(Usual):
        asked: Any = None  # the request that had not come whole when its time was over
        in_head, head = False, 0  # whether one is being read, and its bytes so far
        unsent = 0  # bytes of answers that the client had still to take when its time began

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.expect()
            if len(known) > most:
                next((one for one in known if one.gives_way()), self).end()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.head += len(data)
            if self.in_head and self.head > MAX_HEAD_BYTES:
                self.end()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.in_head, self.head = True, 0

        def on_headers_complete(self) -> None:
            self.in_head = False
            super().on_headers_complete()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self.expect()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self.forget()

        def is_idle(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def gives_way(self) -> bool:
            """Whether the connection waits for its client, to send or to take something."""
            flow = self.flow
            return self.is_idle() or self.cycle.more_body or flow.write_paused or flow.read_paused

        def expect(self) -> None:
            """Expect something of the client, in time."""
            self.forget()
            self.unsent = self.transport.get_write_buffer_size()
            known[self] = self.loop.call_later(seconds, self.overdue)

        def overdue(self) -> None:
            unsent = self.transport.get_write_buffer_size()
            if unsent:
                stuck = unsent == self.unsent
            else:
                stuck = self.is_idle() or (self.cycle.more_body and self.cycle is self.asked)
            if stuck:
                self.end()
            else:  # an answer is being made or taken, or a request has begun: the same time again
                self.asked = self.cycle
                self.expect()

        def end(self) -> None:
            self.forget()
            self.transport.abort()

        def forget(self) -> None:
            timer = known.pop(self, None)
            if timer is not None:
                timer.cancel()

    return Limited


class Server(uvicorn.Server):
    """uvicorn's server with a long queue of connections, of which it takes a few at once."""

    def __init__(self, config: uvicorn.Config) -> None:
        config.backlog = MAX_ACCEPTED_CONNECTIONS
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen; asyncio takes at once as many as it lets wait."""
        await super().startup(sockets=sockets)
        for listening in sockets or []:
            listening.listen(CONNECTION_BACKLOG)


class OnceAMinute(logging.Filter):
    """A filter for the logs of asyncio and uvicorn, where anybody can cause a flood."""

    def __init__(self) -> None:
        super().__init__()
        self.said = dict.fromkeys(REPEATED_MESSAGES, float("-inf"))

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        words, now = record.getMessage(), monotonic()
        for begin, last in self.said.items():
            if words.startswith(begin):
                if now - last < 60.0:
                    return False
                self.said[begin] = now
        return True
