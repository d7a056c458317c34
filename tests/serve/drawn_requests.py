"""Requests drawn by schemathesis from the OpenAPI page: ``make check SUITE=fuzz-http``.

No crash and no 500 whatever is sent, answers as the page says, and nothing without the token.
"""

from __future__ import annotations

import argparse
import logging
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance

import coldq
from coldq.serve.guard import OPEN_TO_ALL
from tests.agent.feeds import LEARNER
from tests.serve.running import TOKEN, Client, client

MADE = {"learner": coldq.describe(LEARNER), "n_constraints": 2}
REFUSED = (400, 404, 405, 409, 413, 422)


def send(operation: Any, server: Client, cases: int) -> None:
    """Draw requests for one operation, and judge what comes back."""

    @settings(
        max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(case=operation.as_strategy())
    def sent(case: Any) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        answer = case.call(base_url=str(server.base_url), headers=headers)
        case.validate_response(answer, checks=[not_a_server_error, response_schema_conformance])
        assert answer.status_code < 400 or answer.status_code in REFUSED, answer.text
        if case.path not in OPEN_TO_ALL:
            bare = case.call(base_url=str(server.base_url), headers={"Authorization": "Bearer no"})
            assert bare.status_code == 401, bare.status_code

    sent()


def main(cases: int) -> str:
    """All operations of the page."""
    logging.disable()  # of what is refused, which is most of it
    with client() as server:
        server.put("/agents/0", json=MADE)  # a name that is drawn soon
        page = schemathesis.openapi.from_dict(server.get("/openapi.json").json())
        operations = [found.ok() for found in page.get_all_operations()]
        for operation in operations:
            send(operation, server, cases)
        assert server.get("/health").json() == {"status": "ok"}
    return f"{len(operations)} operations, {cases} requests each: no crash, no way in"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=300)
    print(main(parser.parse_args().cases))
