"""Live use: an object that remembers what it played, hears late, and survives on disk."""

from typing import TYPE_CHECKING

from coldq.base.lazy import homes_of, importer

if TYPE_CHECKING:
    from coldq.agent.agent import Agent
    from coldq.agent.backups import Saved, backup, restore
    from coldq.agent.history import History
    from coldq.agent.recovery import Recovered, recover
    from coldq.agent.restored import OtherBits
    from coldq.agent.rounds import Decision, OtherFeedback, Receipt

__all__ = [
    "Agent", "Decision", "History", "OtherBits", "OtherFeedback", "Receipt", "Recovered", "Saved",
    "backup", "recover", "restore",
]  # fmt: skip

__getattr__ = importer(
    __name__,
    homes_of(
        {
            "coldq.agent.agent": "Agent",
            "coldq.agent.backups": "Saved backup restore",
            "coldq.agent.history": "History",
            "coldq.agent.recovery": "Recovered recover",
            "coldq.agent.restored": "OtherBits",
            "coldq.agent.rounds": "Decision OtherFeedback Receipt",
        }
    ),
)
