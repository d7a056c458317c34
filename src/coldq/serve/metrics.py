"""The metrics of a server's agents, each looked at apart from the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from coldq.agent.metrics import Collector

log = logging.getLogger("coldq.serve")


class Apart(Collector):
    """A collector of prometheus_client: an agent that fails is logged, the others are shown.

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
        for name, agent in self._agents().items():
            try:
                found = list(Collector({name: agent}).collect())
            except Exception as error:
                log.error("agent %s has no metrics: %r", name, error)
                continue
            for family in found:
                families[family.name].samples.extend(family.samples)
        yield from families.values()
