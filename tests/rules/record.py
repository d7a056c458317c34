"""The record of what the transcribed rules give, never of what the library gives.

``python -m tests.rules.record NAME`` runs that rule on the recorded data and adds or replaces its
run. Without a name the data are drawn, and every rule is recorded anew, with the last bits of this
machine.
"""

from __future__ import annotations

import json
import sys
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


def main(names: list[str]) -> None:
    """Record the rules of these names, or all of them."""
    for path, module, rules in (
        (GOLDEN, transcriptions, RULES),
        (GOLDEN_COMMON_POINT, common_point, common_point.RULES),
    ):
        if names:
            content = json.loads(path.read_text(encoding="ascii"))
            chosen = {name: rule for name, rule in rules.items() if name in names}
            content["runs"] |= record(recorded_slots(content), chosen)["runs"]
        else:
            content = record(module.draw_slots(), rules)
        with whole_file(path) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1:])
