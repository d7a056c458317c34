"""Speed is held against stored ratios, which are numbers of this repository."""

import json
from pathlib import Path

from benchmarks.ratios import SLACK, worse

STORED = Path(__file__).parents[1] / "benchmarks" / "ratios.json"


def test_a_ratio_that_grew_beyond_the_slack_is_named_and_no_other() -> None:
    stored = {"a step": 2.0, "an update": 4.0, "not measured": 1.0}
    assert worse({"a step": 2.0 * SLACK, "an update": 4.0, "new": 9.0}, stored) == []
    (line,) = worse({"a step": 2.2 * SLACK, "an update": 3.0}, stored)
    assert line.startswith("a step: 1.65 times")


def test_the_stored_ratios_are_positive_numbers() -> None:
    assert all(0.0 < ratio < 100.0 for ratio in json.loads(STORED.read_text()).values())
