"""Metrics of agents for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from coldq.base.errors import installed

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
    while an agent decides and observes.

    >>> import coldq, prometheus_client
    >>> from coldq.agent.metrics import Collector
    >>> agent = coldq.Agent(coldq.OGD(coldq.Box(0.0, 1.0, dim=1), eta=0.1), 0)
    >>> _ = agent.observe(agent.decide().round, coldq.Linear([1.0]), None)
    >>> registry = prometheus_client.CollectorRegistry()
    >>> registry.register(Collector({"pump": agent}))
    >>> float(registry.get_sample_value("coldq_agent_applied_total", {"agent": "pump"}))
    1.0
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
        found = families()
        for name, agent in self._agents().items():
            for key, labels, value in samples(name, agent):
                found[key].add_metric(labels, value)
        yield from found.values()


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
    """Samples of an agent: the key of a family, labels and a value."""
    with agent._lock:  # all at one moment: what was skipped is what is left of them
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
        if len(array) and (column in LAST_GAUGES or key in ROW_GAUGES):
            value = float(np.mean(array))
            yield (column, [name], value) if column in LAST_GAUGES else (key, [name, row], value)
