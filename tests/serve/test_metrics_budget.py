"""Metrics of an agent that keeps a violation rate."""

from __future__ import annotations

import prometheus_client

import coldq
from coldq.agent.metrics import Collector


def test_the_error_budget_of_an_agent_is_among_its_metrics() -> None:
    domain = coldq.Box(0.0, 10.0, dim=1)
    agents = {
        "kept": coldq.Agent(coldq.SelfTuning(domain, violation_rate=0.1), 1),
        "none": coldq.Agent(coldq.COLDQ(domain, horizon=9), 1),
    }
    for demand in (4.0, 4.0, 9.0, 20.0):  # slots 1 and 3 come as a surprise, none keeps the last
        for agent in agents.values():
            feedback = coldq.Linear([1.0]), coldq.Affine([[-1.0]], [-demand])
            agent.observe(agent.decide().round, *feedback)
    registry = prometheus_client.CollectorRegistry()
    registry.register(Collector(agents))

    def shown(name: str, agent: str) -> float | None:
        return registry.get_sample_value(f"coldq_agent_{name}", {"agent": agent})

    assert shown("violated", "kept") == 2.0 and shown("infeasible", "kept") == 1.0
    assert abs(shown("overdraft", "kept") - 1.7) < 1e-12  # 0.9, 0.8 and 1.7
    assert shown("overdraft", "none") is None
