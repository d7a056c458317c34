"""A constraint of one slot that is stepped on as the next is expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Anticipated:
    """A constraint whose values are those of slot t, and which steps as the next is expected."""

    now: Any
    for_step: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "now":
            raise AttributeError(name)
        return getattr(self.now, name)
