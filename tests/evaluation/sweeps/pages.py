"""What docs/sweeps.md says, so that tests do exactly that."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[3] / "docs" / "sweeps.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    """The blocks of code of a kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def commands(word: str) -> list[list[str]]:
    """The commands of the first block in which a word stands, each as its arguments."""
    block = next(block for block in blocks("sh") if word in block)
    return [line.partition("#")[0].split() for line in block.splitlines() if line.strip()]
