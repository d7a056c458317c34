"""A learner or problem of which a file has no more than words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class Text:
    """The name of a class, its repr when it was saved, and why there is no more.

    >>> from coldq.simulation.trace.text import Text
    >>> Text("Mine", "Mine(rate=0.1)", "it is not one of coldq's own")
    <Mine(rate=0.1), as text>
    """

    name: str
    words: str
    reason: str

    def __repr__(self) -> str:
        return f"<{self.words}, as text>"
