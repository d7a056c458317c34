"""A route that reads its path and its body by itself.

FastAPI's way through dependencies costs as much as deciding and observing do. A route of this class
takes none, and is described on the interface page like any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from inspect import signature
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, PrivateAttr, TypeAdapter, ValidationError

MAX_QUICK_BODY_BYTES = 16_384  # such a body is read in less than a millisecond


class Message(BaseModel):
    """A model of a body that a client sends; a word that is not known is refused."""

    model_config = ConfigDict(extra="forbid")
    _is_small: bool = PrivateAttr(True)


class DirectRoute(APIRoute):
    """A route for an endpoint that takes parts of the path and perhaps a model of the body.

    >>> from fastapi import FastAPI
    >>> from coldq.serve.direct import DirectRoute
    >>> app = FastAPI()
    >>> app.router.route_class = DirectRoute
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The function that answers a request."""
        endpoint: Any = self.endpoint
        parts, models = {}, {}
        for name, one in signature(endpoint, eval_str=True).parameters.items():
            kind = one.annotation
            if isinstance(kind, type) and issubclass(kind, Message):
                models[name] = kind.__pydantic_validator__.validate_json
            else:
                parts[name] = TypeAdapter(kind).validator.validate_python

        async def answer(request: Request) -> Response:
            values, given = {}, request.scope["path_params"]
            place: tuple[str, ...] = ()
            try:
                for name, read in parts.items():
                    place = "path", name
                    values[name] = read(given[name])
                for name, read in models.items():
                    place, body = ("body",), await _json(request)
                    if len(body) <= MAX_QUICK_BODY_BYTES:
                        values[name] = read(body)
                    else:  # the others need not wait for it
                        values[name] = await asyncio.to_thread(read, body)
                        values[name]._is_small = False
            except ValidationError as error:
                found = [one | {"loc": (*place, *one["loc"])} for one in error.errors()]
                raise RequestValidationError(found) from None
            return await endpoint(**values)

        return answer


async def _json(request: Request) -> bytes | bytearray:
    """The body of a request; what does not say that it is JSON is none."""
    body, more = bytearray(), True
    while more:
        message = await request.receive()
        if message["type"] != "http.request":
            return b""  # the client has gone, perhaps in the middle
        body += message.get("body", b"")
        more = message.get("more_body", False)
    kinds = [value for name, value in request.scope["headers"] if name == b"content-type"]
    return body if len(kinds) == 1 and b"json" in kinds[0] else b'"something else than JSON"'
