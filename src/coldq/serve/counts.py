"""What a server has answered and written, counted, and a line in the log of what it refused."""

from __future__ import annotations

import json
import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from threading import Lock
from time import monotonic
from typing import Any

log = logging.getLogger("coldq.serve")

BUCKET_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)  # seconds
METHODS = frozenset(("GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH"))
MAX_LINES_A_MINUTE = 20  # a minute, of refusals with the same status
MAX_REASON_CHARACTERS = 300  # characters of a line


class Times:
    """How many took how long.

    >>> from coldq.serve.counts import Times
    >>> times = Times()
    >>> times.add(0.002), times.add(7.0)
    (None, None)
    >>> times.buckets()[0], times.buckets()[-1], times.total
    (('0.001', 0), ('+Inf', 2), 7.002)
    """

    def __init__(self) -> None:
        self.counts, self.total = [0] * (len(BUCKET_SECONDS) + 1), 0.0

    def add(self, seconds: float) -> None:
        """One more."""
        self.counts[bisect_left(BUCKET_SECONDS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """As Prometheus has them: each with all that took less."""
        so_far, found = 0, []
        for bound, count in zip((*BUCKET_SECONDS, "+Inf"), self.counts, strict=True):
            so_far += count
            found.append((str(bound), so_far))
        return found


class Counts:
    """Requests by route and status, their times, and the commits of all agents.

    Requests are counted on the event loop, commits in threads.
    """

    def __init__(self) -> None:
        self.requests = Counter[tuple[str, str, str]]()
        self.seconds: dict[str, Times] = {}
        self.commits, self.failed = Times(), 0
        self._committing = Lock()
        self._said: dict[int, list[float]] = {}  # by status: since when, lines written, left out

    def answered(self, scope: Any, method: str, code: int, seconds: float, body: bytes) -> None:
        """A request is over; what was refused or failed leaves a line in the log."""
        route = getattr(scope.get("route"), "path", "none")
        named = method if method in METHODS else "other"
        self.requests[named, route, str(code)] += 1
        times = self.seconds.get(route)
        if times is None:
            times = self.seconds[route] = Times()
        times.add(seconds)
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
        """A transaction of an agent's is on disk, or failed."""
        with self._committing:
            if whole:
                self.commits.add(seconds)
            else:
                self.failed += 1

    def describe(self) -> list[Any]:
        """Nothing yet: it is asked for when it is needed."""
        return []

    def collect(self) -> Iterator[Any]:
        """All of it for Prometheus."""
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        labels = "method", "route", "code"
        requests = CounterMetricFamily(
            "coldq_http_requests", "Requests that were answered.", labels=labels
        )
        for key, count in list(self.requests.items()):
            requests.add_metric(key, count)
        seconds = HistogramMetricFamily(
            "coldq_http_seconds", "From a request's head to the end of its answer.",
            labels=["route"],
        )  # fmt: skip
        for route, times in list(self.seconds.items()):
            seconds.add_metric([route], times.buckets(), times.total)
        commits = HistogramMetricFamily("coldq_commit_seconds", "What transactions took.")
        commits.add_metric([], self.commits.buckets(), self.commits.total)
        failed = CounterMetricFamily("coldq_commits_failed", "Transactions that failed.")
        failed.add_metric([], self.failed)
        yield from (requests, seconds, commits, failed)


def _reason(body: bytes) -> str:
    """What a refusal said, on one line."""
    try:
        words = str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        words = body.decode(errors="replace")
    short = words if len(words) <= MAX_REASON_CHARACTERS else f"{words[:MAX_REASON_CHARACTERS]} ..."
    return " ".join(short.split()).encode(errors="backslashreplace").decode()
