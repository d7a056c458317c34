"""Live use: an object that remembers what it played, hears late, and survives on disk."""

from coldq._lazy import homes_of, importer

__all__ = ["Agent", "Decision", "History", "Receipt", "recover"]

__getattr__ = importer(
    __name__,
    homes_of(
        {
            "coldq.agent.agent": "Agent Decision Receipt",
            "coldq.agent.history": "History",
            "coldq.agent.recovery": "recover",
        }
    ),
)
