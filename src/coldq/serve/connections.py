"""Connections: how many there are at most, and how long one may stay without a whole request."""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

Usual: Any = AutoHTTPProtocol
ACCEPTED = 16  # connections taken at once, and waiting to be; few, as the limit sees them later
SILENCE = 20.0  # seconds for a request to come, before the first one and between two


def limited(most: int, seconds: float = SILENCE) -> type[asyncio.Protocol]:
    """uvicorn's protocol, which anybody may talk to, for so many connections.

    One more takes the place of the one that has been without a request for longest.
    """
    known: dict[Any, asyncio.TimerHandle] = {}  # all connections, those answered last at the end

    class Limited(Usual):
        asked: Any = None  # the request that had not come whole when its time was over

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.expect()
            if len(known) > most:
                next((one for one in known if one.is_idle()), self).end()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self.expect()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self.forget()

        def is_idle(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def expect(self) -> None:
            """A whole request, in time."""
            self.forget()
            known[self] = self.loop.call_later(seconds, self.overdue)

        def overdue(self) -> None:
            if self.is_idle() or (self.cycle.more_body and self.cycle is self.asked):
                self.end()
            elif self.cycle.more_body:  # it has begun: the same time again for the rest
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


class OnceAMinute(logging.Filter):
    """For asyncio's log: a line for each connection that finds no descriptor is a flood."""

    said = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write it."""
        if not record.getMessage().startswith("socket.accept()"):
            return True
        now = monotonic()
        if now - self.said < 60.0:
            return False
        self.said = now
        return True
