"""The metrics of a server's agents, each looked at apart from the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from time import monotonic
from typing import Any

from coldq.agent.metrics import Collector

log = logging.getLogger("coldq.serve")


PATIENCE = 1.0  # seconds to wait for agents at work, all together: Prometheus waits ten


class Apart(Collector):
    """A collector of prometheus_client: an agent that fails, or is at work for long, as where its
    disk hangs, is logged and left out, the others are shown.

    >>> import coldq
    >>> from coldq.serve.metrics import Apart
    >>> agent = coldq.Agent(coldq.OGD(coldq.Box(0.0, 1.0, dim=1), eta=0.1), 0)
    >>> families = Apart(lambda: {"a": agent, "b": agent}).collect()
    >>> [sample.labels["agent"] for sample in next(families).samples]
    ['a', 'b']
    """

    def collect(self) -> Iterator[Any]:
        """All numbers, each with the name of its agent."""
        families = {family.name: family for family in Collector({}).collect()}
        until = monotonic() + PATIENCE
        for name, agent in self._agents().items():
            if not agent._lock.acquire(timeout=max(0.0, until - monotonic())):
                log.warning("agent %s is at work, and left out of the metrics", name)
                continue
            try:
                found = list(Collector({name: agent}).collect())
            except Exception as error:
                log.error("agent %s has no metrics: %r", name, error)
                continue
            finally:
                agent._lock.release()
            for family in found:
                families[family.name].samples.extend(family.samples)
        yield from families.values()
