"""Metrics of agents for Prometheus."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from time import monotonic
from typing import Any

import numpy as np

from coldq.base.errors import installed

LOCK_TIMEOUT_SECONDS = 0.25  # for agents at work, all together
MAX_COLLECT_SECONDS = 0.6  # Prometheus waits ten
MAX_SERIES = 10_000  # of all agents together
MAX_ROWS_OF_AGENT = 20  # constraints of an agent that have series of their own
log = logging.getLogger("coldq.agent")

COUNTERS = {
    "applied": "Rounds whose feedback was applied.",
    "skipped": "Rounds that were skipped.",
}
GAUGES = {
    "round": "The latest round.",
    "in_flight": "Rounds without feedback.",
    "waiting": "Rounds whose feedback waits for earlier ones.",
}
LAST_GAUGES = {
    "loss": "The loss of the last settled round, at the decision played.",
    "violation": "The sum of its rows' violations.",
    "residual": "The KKT residual of its step.",
    "seconds": "What its update took.",
}
BUDGET_GAUGES = {
    "overdraft": "Violated rounds beyond what the violation rate allows, of the worst member.",
    "violated": "Rounds that were booked as violated, of the worst member.",
    "infeasible": "Rounds in which no decision kept what was revealed, of the worst member.",
}
ROW_GAUGES = {
    "queue": "The queue of a constraint after the last settled round.",
    "multipliers": "The multiplier of a constraint in its step.",
    "margin": "The margin that a constraint is tightened by.",
}


class Collector:
    """A collector of prometheus_client that looks at agents when it is asked, never before.

    `agents` is a mapping of names to agents, or a function that gives one. So nothing is counted
    while an agent decides and observes. They are looked at by name, as long as there is time and
    there are not too many series. An agent that fails, or is at work for long, as where its disk
    hangs, is logged and left out, the others are shown.

    >>> import coldq, prometheus_client
    >>> from coldq.agent.metrics import Collector
    >>> agent = coldq.Agent(coldq.OGD(coldq.Box(0.0, 1.0, dim=1), eta=0.1), 0)
    >>> _ = agent.observe(agent.decide().round, coldq.Linear([1.0]), None)
    >>> registry = prometheus_client.CollectorRegistry()
    >>> registry.register(Collector({"pump": agent}))
    >>> float(registry.get_sample_value("coldq_agent_applied_total", {"agent": "pump"}))
    1.0
    >>> registry.get_sample_value("coldq_agents_left_out")
    0
    """

    def __init__(self, agents: Mapping[str, Any] | Callable[[], Mapping[str, Any]]) -> None:
        installed(
            "prometheus_client",
            "metrics need prometheus-client: install it with pip install 'coldq[metrics]'",
        )
        self._agents = agents if callable(agents) else lambda: agents

    def describe(self) -> list[Any]:
        """No families yet: no agent is looked at before somebody asks."""
        return []

    def collect(self) -> Iterator[Any]:
        """All metrics, each with the name of its agent."""
        from prometheus_client.core import GaugeMetricFamily

        found = families()
        agents, begun = self._agents(), monotonic()
        shown, series, busy = 0, 0, ""
        for name in sorted(agents):
            gone, agent = monotonic() - begun, agents[name]
            if series >= MAX_SERIES or gone > MAX_COLLECT_SECONDS:
                break
            if not agent._lock.acquire(timeout=max(0.0, LOCK_TIMEOUT_SECONDS - gone)):
                busy = busy or name
                continue
            try:
                values = list(samples(name, agent))
            except Exception as error:
                log.error("agent %s has no metrics: %r", name, error)
                continue
            finally:
                agent._lock.release()
            shown, series = shown + 1, series + len(values)
            for key, labels, value in values:
                found[key].add_metric(labels, value)
        if busy:
            log.warning("agent %s is at work, and left out of the metrics", busy)
        yield from found.values()
        yield GaugeMetricFamily("coldq_agents_resident", "Agents that are open.", len(agents))
        words = "Those of them that are not shown here."
        yield GaugeMetricFamily("coldq_agents_left_out", words, len(agents) - shown)


def families() -> dict[str, Any]:
    """Families of metrics, without a sample yet."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    def each(kind: Any, words: dict[str, str], before: str, *labels: str) -> dict[str, Any]:
        return {
            key: kind(f"coldq_agent_{before}{key}", words[key], labels=["agent", *labels])
            for key in words
        }

    return {
        **each(CounterMetricFamily, COUNTERS, ""),
        **each(GaugeMetricFamily, GAUGES | BUDGET_GAUGES, ""),
        **each(GaugeMetricFamily, LAST_GAUGES, "last_"),
        **each(GaugeMetricFamily, ROW_GAUGES, "last_", "row"),
    }


def samples(name: str, agent: Any) -> Iterator[tuple[str, list[str], float]]:
    """Samples of an agent, whose lock is held: the key of a family, labels and a value."""
    latest, state = agent._latest, agent._state
    flying, waiting = len(agent._open), len(agent._held)
    applied = int(np.max(state.t, initial=1)) - 1
    yield "applied", [name], applied
    yield "skipped", [name], latest - applied - flying - waiting
    yield "round", [name], latest
    yield "in_flight", [name], flying
    yield "waiting", [name], waiting
    if hasattr(state, "overdraft"):
        for key in BUDGET_GAUGES:
            yield key, [name], float(np.max(getattr(state, key), initial=0.0))
    for column, array in agent.history(last=1).columns.items():
        key, _, row = column.rpartition("_")
        if len(array) and column in LAST_GAUGES:
            yield column, [name], float(np.mean(array))
        elif len(array) and key in ROW_GAUGES and int(row) <= MAX_ROWS_OF_AGENT:
            yield key, [name, row], float(np.mean(array))
