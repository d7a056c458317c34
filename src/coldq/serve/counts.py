"""Counts of what a server answered and wrote, and a line in the log for what it refused."""

from __future__ import annotations

import json
import logging
from time import monotonic
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram

log = logging.getLogger("coldq.serve")

BUCKET_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
METHODS = frozenset(("GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH"))
MAX_LINES_A_MINUTE = 20  # of refusals with the same status
MAX_REASON_CHARACTERS = 300


class Counts:
    """Counts of requests by route and status, their times, and the commits of all agents.

    >>> from coldq.serve.counts import Counts
    >>> counts = Counts()
    >>> counts.committed(0.002, whole=True)
    >>> counts.registry.get_sample_value("coldq_commit_seconds_count")
    1.0
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "coldq_http_requests", "Requests that were answered.", ("method", "route", "code"),
            registry=registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "coldq_http_seconds", "From a request's head to the end of its answer.", ("route",),
            buckets=BUCKET_SECONDS, registry=registry,
        )  # fmt: skip
        self.commits = Histogram(
            "coldq_commit_seconds", "What transactions took.",
            buckets=BUCKET_SECONDS, registry=registry,
        )  # fmt: skip
        self.failed = Counter(
            "coldq_commits_failed", "Transactions that failed.", registry=registry
        )
        self._said: dict[int, list[float]] = {}  # by status: since when, lines written, left out

    def answered(self, scope: Any, method: str, code: int, seconds: float, body: bytes) -> None:
        """Count a request that is over; a refusal or a failure leaves a line in the log."""
        route = getattr(scope.get("route"), "path", "none")
        named = method if method in METHODS else "other"
        self.requests.labels(named, route, str(code)).inc()
        self.seconds.labels(route).observe(seconds)
        if code >= 400 and self.may_say(code):
            level = logging.ERROR if code >= 500 else logging.WARNING
            words = "%.10s %.200r was refused with %s: %s"
            log.log(level, words, method, scope["path"], code, _reason(body))

    def may_say(self, code: int) -> bool:
        """Whether one more line of this status is written: anybody can cause any number of them."""
        now = monotonic()
        said = self._said.setdefault(code, [now, 0, 0])
        if now - said[0] >= 60.0:
            if said[2]:
                log.warning("%d more requests were refused with %s", said[2], code)
            said[:] = now, 0, 0
        said[1] += 1
        if said[1] > MAX_LINES_A_MINUTE:
            said[2] += 1
        return said[1] <= MAX_LINES_A_MINUTE

    def committed(self, seconds: float, whole: bool) -> None:
        """Count a transaction of an agent, which is on disk or failed."""
        if whole:
            self.commits.observe(seconds)
        else:
            self.failed.inc()


def _reason(body: bytes) -> str:
    """The words of a refusal, on one line."""
    try:
        words = str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        words = body.decode(errors="replace")
    short = words if len(words) <= MAX_REASON_CHARACTERS else f"{words[:MAX_REASON_CHARACTERS]} ..."
    return " ".join(short.split()).encode(errors="backslashreplace").decode()
