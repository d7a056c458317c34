"""What agents do, as Prometheus asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from coldq.errors import installed

LAST = {
    "loss": "The loss of the last settled round, at the decision played.",
    "violation": "The sum of its rows' violations.",
    "residual": "The KKT residual of its step.",
    "seconds": "What its update took.",
}
BUDGET = {
    "overdraft": "Violated rounds beyond what the violation rate allows, of the worst member.",
    "violated": "Rounds that were booked as violated, of the worst member.",
    "infeasible": "Rounds in which no decision kept what was revealed, of the worst member.",
}
BY_ROW = {
    "queue": "The queue of a constraint after the last settled round.",
    "multipliers": "The multiplier of a constraint in its step.",
    "margin": "The margin that a constraint is tightened by.",
}


class Collector:
    """A collector of prometheus_client: it looks at the agents when it is asked, never before.

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
        """Nothing yet: no agent is looked at before somebody asks."""
        return []

    def collect(self) -> Iterator[Any]:
        """All numbers, each with the name of its agent."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        def gauge(name: str, words: str, *labels: str) -> Any:
            return GaugeMetricFamily(f"coldq_agent_{name}", words, labels=["agent", *labels])

        counters = {
            "applied": "Rounds whose feedback was applied.",
            "skipped": "Rounds that were skipped.",
        }
        counts = {
            name: CounterMetricFamily(f"coldq_agent_{name}", words, labels=["agent"])
            for name, words in counters.items()
        }
        now = {
            "round": gauge("round", "The latest round."),
            "in_flight": gauge("in_flight", "Rounds without feedback."),
            "waiting": gauge("waiting", "Rounds whose feedback waits for earlier ones."),
        }
        last = {name: gauge(f"last_{name}", words) for name, words in LAST.items()}
        budget = {name: gauge(name, words) for name, words in BUDGET.items()}
        rows = {name: gauge(f"last_{name}", words, "row") for name, words in BY_ROW.items()}
        for name, agent in self._agents().items():
            with agent._lock:  # all at one moment: what was skipped is what is left of them
                latest, state = agent._latest, agent._state
                flying, waiting = len(agent._open), len(agent._held)
            applied = int(np.max(state.t, initial=1)) - 1
            counts["applied"].add_metric([name], applied)
            counts["skipped"].add_metric([name], latest - applied - flying - waiting)
            values = {"round": latest, "in_flight": flying, "waiting": waiting}
            for key, value in values.items():
                now[key].add_metric([name], value)
            if hasattr(state, "overdraft"):
                for key, metric in budget.items():
                    metric.add_metric([name], float(np.max(getattr(state, key), initial=0.0)))
            columns = agent.history(last=1).columns
            for key, metric in last.items():
                if len(columns[key]):
                    metric.add_metric([name], float(np.mean(columns[key])))
            for column, array in columns.items():
                key, _, row = column.rpartition("_")
                if key in rows and len(array):
                    rows[key].add_metric([name, row], float(np.mean(array)))
        yield from (
            *counts.values(), *now.values(), *budget.values(), *last.values(), *rows.values()
        )  # fmt: skip
