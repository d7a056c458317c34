"""The guard of a server: token, size and rate are looked at before anything else is."""

from __future__ import annotations

import asyncio
import logging
from secrets import compare_digest
from time import monotonic, perf_counter
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from coldq.serve.counts import Counts

log = logging.getLogger("coldq.serve")

# By path, the file that is served there. What is not here needs the token.
OPEN_TO_ALL: dict[str, tuple[str | None, str]] = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/health": (None, ""),
    "/live": (None, ""),
    "/ready": (None, ""),
}


class Guard:
    """ASGI middleware: a token, a largest body, and a rate for all clients together.

    >>> from coldq.serve.guard import Guard
    >>> guard = Guard(None, token="secret", largest_body=10, rate=None)
    >>> guard.knows([(b"authorization", b"Bearer secret")]), guard.knows([])
    (True, False)
    """

    def __init__(
        self,
        app: Any,
        *,
        token: str | None,
        largest_body: int,
        rate: float | None,
        counts: Counts | None = None,
    ) -> None:
        self.app, self.largest_body, self.rate = app, largest_body, rate
        self.counts = Counts() if counts is None else counts
        self.token = None if token is None else f"Bearer {token}".encode()
        self.left, self.seen = rate or 0.0, monotonic()

    def knows(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Whether a request carries the token."""
        if self.token is None:
            return True
        given = [value for name, value in headers if name == b"authorization"]
        return len(given) == 1 and compare_digest(given[0], self.token)

    def has_room(self) -> bool:
        """Whether one more request is within the rate; a second's worth may come at once."""
        if self.rate is None:
            return True
        now = monotonic()
        self.left = min(self.rate, self.left + self.rate * (now - self.seen))
        self.seen = now
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Let a request in, or say why not."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        method, begun, code, body = scope["method"], perf_counter(), 0, b""
        if method == "HEAD":  # whoever serves this leaves the body out
            scope = scope | {"method": "GET"}

        async def heard(message: Any) -> None:
            nonlocal code, body
            if message["type"] == "http.response.start":
                code = message["status"]
            elif code >= 400:
                body = body or message.get("body", b"")
            await send(message)

        try:
            await self._admit(scope, receive, heard)
        except asyncio.CancelledError:  # the server ends; an error would be logged with its trace
            log.warning("a request was given up: its client took longer than the server's end")
        except Exception as error:  # what nobody foresaw; uvicorn would log each with its trace
            if self.counts.may_say(500):
                log.exception("%.10s %.200r failed", method, scope["path"])
            if not code:
                words = f"the server failed, and its log says where: {type(error).__name__}"
                await _refusal(500, words, connection="close")(scope, receive, heard)
        if code:
            self.counts.answered(scope, method, code, perf_counter() - begun, body)

    async def _admit(self, scope: Any, receive: Any, send: Any) -> None:
        """Let a request in unless it lacks the token or there is no room for it.

        Nothing that a stranger sends is read, and no stranger spends of the rate. A body is read
        by the application, as far as it may go.
        """
        if not (scope["method"] == "GET" and scope["path"] in OPEN_TO_ALL):
            if not self.knows(scope["headers"]):
                words = "this needs the token: Authorization: Bearer ..."
                await _refusal(401, words, www_authenticate="Bearer")(scope, receive, send)
                return
            if not self.has_room():
                words = "too many requests: wait a second"
                await _refusal(429, words, retry_after="1")(scope, receive, send)
                return
        size = 0

        async def bounded() -> Any:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self.largest_body:
                raise HTTPException(413, f"a body has at most {self.largest_body} bytes")
            return message

        await self.app(scope, bounded, send)


def _refusal(code: int, words: str, **headers: str) -> JSONResponse:
    """A response that says why, with headers by their names in Python."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return JSONResponse({"error": words}, code, named)
