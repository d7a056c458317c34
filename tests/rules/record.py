"""The record of what the transcribed rules give, never of what the library gives.

``python -m tests.rules.record`` draws the data, runs every rule on it and writes both to
golden.json.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from . import related_work, transcriptions
from .transcriptions import Slot, T, draw_slots

GOLDEN = Path(__file__).with_name("golden.json")
RULES = transcriptions.RULES | related_work.RULES


def record() -> dict[str, Any]:
    """Data and results as plain lists; JSON writes floats by repr, so no digit is lost."""
    slots = draw_slots()
    content: dict[str, Any] = {
        "slots": [
            {name: value.tolist() for name, value in slots[t]._asdict().items()}
            for t in range(1, T + 1)
        ],
        "runs": {},
    }
    for name, rule in RULES.items():
        run = rule(slots)
        entry: dict[str, Any] = {"decisions": [x.tolist() for x in run.decisions]}
        if run.queue is not None:
            entry["queue"] = run.queue.tolist()
        if run.weights is not None:
            entry["weights"] = run.weights.tolist()
        content["runs"][name] = entry
    return content


def recorded_slots(content: dict[str, Any]) -> dict[int, Slot]:
    return {
        t: Slot(**{name: np.array(value) for name, value in slot.items()})
        for t, slot in enumerate(content["slots"], start=1)
    }


def write_golden() -> None:
    text = json.dumps(record(), indent=1) + "\n"
    temporary = GOLDEN.with_name(f"{GOLDEN.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="ascii")
        temporary.replace(GOLDEN)
    finally:
        temporary.unlink(missing_ok=True)


if __name__ == "__main__":
    write_golden()
