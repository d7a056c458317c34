"""The metrics of a server's agents, each looked at apart from the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from time import monotonic
from typing import Any

from coldq.agent.metrics import Collector, families, samples

log = logging.getLogger("coldq.serve")

LOCK_TIMEOUT_SECONDS = 0.25  # for agents at work, all together
MAX_COLLECT_SECONDS = 0.6  # Prometheus waits ten
MAX_SERIES = 10_000  # of all agents together
MAX_ROWS_OF_AGENT = 20  # constraints of an agent that have series of their own


class AgentsCollector(Collector):
    """A collector of prometheus_client: an agent that fails, or is at work for long, as where its
    disk hangs, is logged and left out, the others are shown.

    They are looked at by name, as long as there is time and there are not too many series: so the
    series stay the same from one look to the next.

    >>> import coldq
    >>> from coldq.serve.metrics import AgentsCollector
    >>> agent = coldq.Agent(coldq.OGD(coldq.Box(0.0, 1.0, dim=1), eta=0.1), 0)
    >>> families = list(AgentsCollector(lambda: {"a": agent, "b": agent}).collect())
    >>> [sample.labels["agent"] for sample in families[0].samples]
    ['a', 'b']
    >>> [(family.name, family.samples[0].value) for family in families[-2:]]
    [('coldq_agents_resident', 2), ('coldq_agents_left_out', 0)]
    """

    def collect(self) -> Iterator[Any]:
        """All metrics, each with the name of its agent."""
        from prometheus_client.core import GaugeMetricFamily

        kinds = families()
        agents, begun = self._agents(), monotonic()
        shown, series, busy = 0, 0, ""
        for name in sorted(agents):
            gone = monotonic() - begun
            if series >= MAX_SERIES or gone > MAX_COLLECT_SECONDS:
                break
            agent = agents[name]
            if not agent._lock.acquire(timeout=max(0.0, LOCK_TIMEOUT_SECONDS - gone)):
                busy = busy or name
                continue
            try:
                found = [one for one in samples(name, agent) if _is_shown(one[1])]
            except Exception as error:
                log.error("agent %s has no metrics: %r", name, error)
                continue
            finally:
                agent._lock.release()
            shown, series = shown + 1, series + len(found)
            for key, labels, value in found:
                kinds[key].add_metric(labels, value)
        if busy:
            log.warning("agent %s is at work, and left out of the metrics", busy)
        yield from kinds.values()
        resident = GaugeMetricFamily("coldq_agents_resident", "Agents that are open.")
        resident.add_metric([], len(agents))
        out = GaugeMetricFamily("coldq_agents_left_out", "Those of them that are not shown here.")
        out.add_metric([], len(agents) - shown)
        yield from (resident, out)


def _is_shown(labels: list[str]) -> bool:
    """Whether labels are of the agent itself or of one of its first rows."""
    return len(labels) == 1 or int(labels[1]) <= MAX_ROWS_OF_AGENT
