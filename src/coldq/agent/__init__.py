"""Live use: an object that remembers what it played, hears late, and survives on disk."""

from typing import TYPE_CHECKING

from coldq._lazy import homes_of, importer

if TYPE_CHECKING:
    from coldq.agent.agent import Agent, Decision, Receipt
    from coldq.agent.history import History
    from coldq.agent.recovery import Recovered, recover

__all__ = ["Agent", "Decision", "History", "Receipt", "Recovered", "recover"]

__getattr__ = importer(
    __name__,
    homes_of(
        {
            "coldq.agent.agent": "Agent Decision Receipt",
            "coldq.agent.history": "History",
            "coldq.agent.recovery": "Recovered recover",
        }
    ),
)
