"""The record of what the transcribed rules give, never of what the library gives.

``python -m tests.rules.record`` draws the data, runs every rule on it and writes both to
golden.json and golden-common-point.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from coldq.base.files import whole_file

from . import common_point, gradient_steps, transcriptions
from .transcriptions import Slot, T

GOLDEN = Path(__file__).with_name("golden.json")
GOLDEN_COMMON_POINT = Path(__file__).with_name("golden-common-point.json")
RULES = transcriptions.RULES | gradient_steps.RULES


def record(slots: dict[int, Slot], rules: dict[str, Any]) -> dict[str, Any]:
    """Data and results as plain lists; JSON writes floats by repr, so no digit is lost."""
    content: dict[str, Any] = {
        "slots": [
            {name: value.tolist() for name, value in slots[t]._asdict().items()}
            for t in range(1, T + 1)
        ],
        "runs": {},
    }
    for name, rule in rules.items():
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


if __name__ == "__main__":
    for path, module, rules in (
        (GOLDEN, transcriptions, RULES),
        (GOLDEN_COMMON_POINT, common_point, common_point.RULES),
    ):
        text = json.dumps(record(module.draw_slots(), rules), indent=1) + "\n"
        with whole_file(path) as temporary:
            temporary.write_text(text, encoding="ascii")
