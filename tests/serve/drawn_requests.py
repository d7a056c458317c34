"""Requests drawn by schemathesis from the server's own OpenAPI page: ``make fuzz-http``.

No crash and no 500 whatever is sent, answers as the page says, and nothing without the token.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance

import coldq
from tests.agent.feeds import LEARNER
from tests.serve.running import TOKEN, Client, client

MADE = {"learner": coldq.describe(LEARNER), "n_constraints": 2}
CASES = 300  # for each of the operations


@pytest.fixture(scope="module")
def server() -> Iterator[Client]:
    with client() as made:
        made.put("/agents/0", json=MADE)  # a name that is drawn soon
        yield made


@pytest.fixture(scope="module")
def interface(server: Client) -> Any:
    return schemathesis.openapi.from_dict(server.get("/openapi.json").json())


drawn = schemathesis.pytest.from_fixture("interface")


@drawn.parametrize()
@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_is_sent_gets_an_answer(case: Any, server: Client) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    answer = case.call(base_url=str(server.base_url), headers=headers)
    checks = [not_a_server_error, response_schema_conformance]
    case.validate_response(answer, checks=checks)
    if answer.status_code >= 400:
        assert answer.status_code in (400, 404, 405, 409, 413, 422), answer.text
    bare = case.call(base_url=str(server.base_url))
    assert bare.status_code == (200 if case.path == "/health" else 401)


def test_the_server_is_still_there(server: Client) -> None:
    logging.getLogger("coldq").debug("%s agents were made", len(server.get("/agents").json()))
    assert server.get("/health").json() == {"status": "ok"}
    assert isinstance(server.get("/agents/0"), httpx.Response)
