"""The HTTP interface: what may be asked, in what words, and what is refused."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Annotated, Any, Literal
from weakref import WeakValueDictionary

import numpy as np
from fastapi import FastAPI, Request
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from prometheus_client import generate_latest
from pydantic import BaseModel, BeforeValidator, Field
from pydantic_core import to_json
from starlette.exceptions import HTTPException

from coldq.agent import Agent, OtherFeedback
from coldq.agent.metrics import Collector
from coldq.base.errors import Error, InUse, NotReadable, NotWritten, hearing
from coldq.serve.agents import (
    MAX_CONSTRAINTS,
    NAME_PATTERN,
    WORKER_THREADS,
    Agents,
    NoSuchAgent,
    OtherAgent,
)
from coldq.serve.counts import Counts
from coldq.serve.direct import DirectRoute, Message
from coldq.serve.guard import OPEN_TO_ALL, Guard
from coldq.serve.readiness import Readiness
from coldq.serve.requested import part_of_feedback
from coldq.slot.feedback import Forecast

FOLDER = Path(__file__).parent
MAX_ROUNDS = 10_000  # rounds remembered, or shown at once
PAGE_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def _plain_number(value: Any) -> Any:
    """A number in a path or a query, as it is written: digits alone."""
    if isinstance(value, str) and not (value.isascii() and value.isdigit()):
        raise ValueError(f"a number must be written in digits alone, but is {value!r:.100}")
    return value


Name = Annotated[str, InPath(pattern=f"^{NAME_PATTERN.pattern}$")]
DIGITS_ALONE = BeforeValidator(_plain_number)
Round = Annotated[int, InPath(ge=1, le=2**53), DIGITS_ALONE]
Last = Annotated[int, Field(ge=1, le=MAX_ROUNDS), DIGITS_ALONE]
Whole = Annotated[int, Field(strict=True)]  # which true is not
Description = dict[str, Any]
Beside = Callable[[Callable[[], Any]], Awaitable[Any]]  # the loop, in a thread
InTurn = Callable[[str, Callable[[], Any]], Awaitable[Any]]  # on an agent, by its name
Use = Callable[..., Awaitable[Any]]  # of it: its name, what to do, and whether that is quick


class AgentMessage(Message):
    """A new agent: the description of a learner, as coldq.describe gives it, and its options."""

    learner: Description
    n_constraints: Whole = Field(ge=0, le=MAX_CONSTRAINTS)
    limit: Whole | None = Field(1000, ge=0, le=1_000_000)
    late: Literal["played", "held"] | None = None
    order: Literal["round", "arrival"] = "round"
    remember: Whole = Field(100, ge=1, le=MAX_ROUNDS)


class ForecastMessage(Message):
    """A forecast of the loss and the constraint of the next round."""

    loss: Description | None = None
    constraint: Description | None = None


class FeedbackMessage(Message):
    """The feedback of a round: descriptions of its loss and of its constraint."""

    loss: Description
    constraint: Description | None = None
    forecast: ForecastMessage | None = None


class DecisionAnswer(BaseModel):
    """The decision of a round."""

    round: int
    x: list[Any]


class ReceiptAnswer(BaseModel):
    """The receipt for a message about a round, see coldq.agent.Receipt."""

    round: int
    status: Literal["applied", "waiting", "repeated", "skipped", "past"]


class Refusal(BaseModel):
    """The reason why nothing was done."""

    error: str


class JSONAnswer(Response):
    """A JSON response, written by pydantic's own code: twice as fast as Python's."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return to_json(content)


def create_app(
    folder: Path | None = None,
    *,
    token: str | None,
    resident: int = 1000,
    largest_body: int = 1_000_000,
    rate: float | None = None,
) -> FastAPI:
    """The server as an ASGI application, for uvicorn or another server.

    Parameters
    ----------
    folder
        Where agents live; None: in memory, and they end with the process.
    token
        What a client must send as ``Authorization: Bearer``; None: anybody may do anything.
    resident
        How many agents are open at once; the others are evicted to the folder.
    largest_body
        In bytes.
    rate
        Requests a second, of all clients together, beyond which they are told to wait.

    >>> from coldq.serve import create_app
    >>> create_app(token="secret").title
    'coldq'
    """
    counts = Counts()
    agents = Agents(folder, resident, committed=counts.committed)
    counts.registry.register(Collector(agents.resident_agents))

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        yield
        agents.close()

    refusals: dict[int | str, dict[str, Any]] = {
        code: {"model": Refusal} for code in (400, 401, 404, 409, 413, 422, 429, 500, 503, 507)
    }
    app = FastAPI(title="coldq", docs_url=None, redoc_url=None, lifespan=life, responses=refusals)
    app.state.agents, app.state.counts = agents, counts
    app.state.ending = lambda: False  # whoever runs it knows better
    app.add_middleware(Guard, token=token, largest_body=largest_body, rate=rate, counts=counts)
    app.add_exception_handler(Error, _refused)
    app.add_exception_handler(MemoryError, _refused)
    app.add_exception_handler(HTTPException, _not_here)
    app.add_exception_handler(RequestValidationError, _invalid)

    pool = ThreadPoolExecutor(WORKER_THREADS)  # the loop's own waits at its end for what is at work
    turns = WeakValueDictionary[str, asyncio.Lock]()

    async def beside(work: Callable[[], Any]) -> Any:
        loop, context = asyncio.get_running_loop(), copy_context()
        return await loop.run_in_executor(pool, context.run, work)

    async def in_turn(name: str, work: Callable[[], Any], quick: bool = False) -> Any:
        """Work on an agent: at once if it is in memory and quick, else beside the loop.

        An agent does one thing after the other: more than one thread would only wait for it, and
        be missed by other agents.
        """
        if quick and folder is None and name not in turns and agents.is_quick(name):
            return work()
        turn = turns.setdefault(name, asyncio.Lock())
        async with turn:
            return await beside(work)

    async def use(name: str, act: Callable[[Agent], Any], quick: bool = False) -> Any:
        def done() -> Any:
            with agents.get(name) as agent:
                return act(agent)

        return await in_turn(name, done, quick)

    _add_rounds(app, use)  # asked for all the time: first, where it is found first
    _add_agents(app, agents, beside, in_turn, use)
    _add_server(app, agents, beside, Readiness(folder, lambda: app.state.ending()))
    return app


def _add_rounds(app: FastAPI, use: Use) -> None:
    """Add the requests of every round."""
    app.router.route_class = DirectRoute

    @app.put("/agents/{name}/rounds/{round}/feedback", response_model=ReceiptAnswer)
    async def observe(name: Name, round: Round, told: FeedbackMessage) -> JSONAnswer:
        """Tell the feedback of a round; the same again changes nothing."""

        def observed(agent: Agent) -> JSONAnswer:
            loss, constraint = part_of_feedback(told.loss), part_of_feedback(told.constraint)
            forecast = None
            if told.forecast is not None:
                expected = told.forecast.loss, told.forecast.constraint
                forecast = Forecast(*map(part_of_feedback, expected))
            return JSONAnswer(agent.observe(round, loss, constraint, forecast)._asdict())

        return await use(name, observed, told._is_small)

    @app.post("/agents/{name}/decide", response_model=DecisionAnswer)
    async def decide(name: Name) -> JSONAnswer:
        """The latest decision as long as its round has no feedback, then that of a new round."""
        return await use(name, lambda agent: _decision(agent.decide()), True)

    @app.put("/agents/{name}/rounds/{round}", response_model=DecisionAnswer)
    async def decide_round(name: Name, round: Round) -> JSONAnswer:
        """The decision of a round: the same, however often it is asked for."""
        return await use(name, lambda agent: _decision(agent.decide(round)), True)

    app.router.route_class = APIRoute


def _add_agents(app: FastAPI, agents: Agents, beside: Beside, in_turn: InTurn, use: Use) -> None:
    """Add the requests that make agents and look at them."""

    @app.put("/agents/{name}", status_code=201, responses={200: {"description": "As it was"}})
    async def create(name: Name, wanted: AgentMessage) -> JSONAnswer:
        """Make an agent; the same again changes nothing. `warnings` is what is odd about it."""
        options = wanted.model_dump(exclude={"learner", "n_constraints"})
        if options["late"] is None:
            del options["late"]

        def made() -> bool:
            return agents.create(name, wanted.learner, wanted.n_constraints, options)

        with hearing() as heard:
            new = await in_turn(name, made)
        more, code = {"warnings": heard}, 201 if new else 200
        return await use(name, lambda agent: JSONAnswer(_shown(agent) | more, code))

    @app.get("/agents")
    async def names() -> list[str]:
        """The names of all agents."""
        return await asyncio.to_thread(agents.names)

    @app.get("/agents/{name}")
    async def inspect(name: Name) -> JSONAnswer:
        """An agent: its learner, its rounds, and the decision of its state."""
        return await use(name, lambda agent: JSONAnswer(_shown(agent)))

    @app.put("/agents/{name}/rounds/{round}/skip", response_model=ReceiptAnswer)
    async def skip(name: Name, round: Round) -> JSONAnswer:
        """Go on without the feedback of a round; again changes nothing."""
        return await use(name, lambda agent: JSONAnswer(agent.skip(round)._asdict()), True)

    @app.get("/agents/{name}/backup", response_class=Response)
    async def backup(name: Name) -> Response:
        """The agent's file as of now, for `coldq agent restore`."""

        def saved() -> bytes:
            with agents.get(name) as agent:
                return agent.backup()

        kind, place = "application/vnd.sqlite3", f'attachment; filename="{name}.db"'
        data = await beside(saved)  # in no turn: who works on the agent does not wait for it
        return Response(data, media_type=kind, headers={"Content-Disposition": place})

    @app.get("/agents/{name}/history")
    async def history(name: Name, last: Last = 100) -> JSONAnswer:
        """The last rounds since the agent was opened, column by column."""

        def shown(agent: Agent) -> JSONAnswer:
            columns = agent.history(last).columns
            return JSONAnswer({key: _plain(column) for key, column in columns.items()})

        return await use(name, shown)


def _add_server(app: FastAPI, agents: Agents, beside: Beside, readiness: Readiness) -> None:
    """Add the requests about the server itself, and its page."""

    @app.get("/live")
    @app.get("/health")
    async def live() -> dict[str, str]:
        """Whether the server is there, and answers."""
        return {"status": "ok"}

    @app.get("/ready")
    async def ready() -> JSONAnswer:
        """Whether the server is not ending, and can write to its folder."""
        obstacle = await readiness.obstacle()
        return _said(obstacle, 503) if obstacle else JSONAnswer({"status": "ready"})

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Metrics of the server and of resident agents, for Prometheus."""
        text = await beside(lambda: generate_latest(app.state.counts.registry))
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    for path, (file, kind) in OPEN_TO_ALL.items():
        if file is not None:
            _serve_file(app, path, file, kind)


def _serve_file(app: FastAPI, path: str, file: str, kind: str) -> None:
    text = (FOLDER / file).read_bytes()

    async def page() -> Response:
        return Response(
            text, media_type=kind, headers={"Content-Security-Policy": PAGE_SECURITY_POLICY}
        )

    app.add_api_route(path, page, include_in_schema=False)


def _decision(decision: Any) -> JSONAnswer:
    return JSONAnswer({"round": decision.round, "x": decision.x.tolist()})


def _shown(agent: Agent) -> dict[str, Any]:
    points = getattr(agent.state, "points", None)  # where a learner of values alone wants them
    return {
        "learner": type(agent.learner).__name__,
        "n_constraints": agent.n_constraints,
        "late": agent.late,
        "order": agent.order,
        "limit": agent.limit,
        "round": agent.round,
        "in_flight": list(agent.in_flight),
        "waiting": list(agent.waiting),
        "t": np.asarray(agent.state.t).tolist(),
        "x": np.asarray(agent.state.x).tolist(),
        **({} if points is None else {"points": points.tolist()}),
    }


def _plain(column: np.ndarray) -> list[Any]:
    """Numbers as JSON has them; what is not known is null."""
    values = column.tolist()
    if column.dtype.kind != "f":
        return values
    return [value if math.isfinite(value) else None for value in values]


STATUS_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (NoSuchAgent, 404),
    (OtherAgent, 409),
    (OtherFeedback, 409),
    (InUse, 503),
    (NotReadable, 503),
    (NotWritten, 507),
    (MemoryError, 413),
    (Error, 422),
)


async def _refused(request: Request, error: Exception) -> JSONAnswer:
    """Answer an error of coldq, in its own words."""
    code = next(code for kind, code in STATUS_CODES if isinstance(error, kind))
    return _said(str(error) or "this is too large", code)


async def _not_here(request: Request, error: Exception) -> JSONAnswer:
    """Answer what the framework refuses, as a path or a method that is not there."""
    assert isinstance(error, HTTPException)
    return _said(error.detail, error.status_code, error.headers)


async def _invalid(request: Request, error: Exception) -> JSONAnswer:
    """Answer what does not fit the interface: where, and why."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    kind = request.headers.get("content-type")
    if any(each["loc"] == ("body",) for each in found) and "json" not in (kind or ""):
        given = "there is none" if kind is None else f"it is {kind!r:.80}"
        return _said(f"body: the Content-Type must be application/json, but {given}", 422)
    words = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found[:5]]
    return _said("; ".join(words), 422)


def _said(words: str, code: int, headers: Mapping[str, str] | None = None) -> JSONAnswer:
    """An error response, whose words may quote what was sent and UTF-8 cannot write."""
    plain = words.encode(errors="backslashreplace").decode()
    return JSONAnswer({"error": plain}, code, headers)
