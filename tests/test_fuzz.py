"""A share of the calls that ``python -m tests.fuzz`` makes with odd arguments."""

from __future__ import annotations

import coldq
from tests import fuzz


def test_odd_arguments_get_an_answer_or_a_sentence() -> None:
    assert fuzz.run(600, seed=1) == {}


def test_what_is_no_sentence_is_complained_about(monkeypatch) -> None:
    def short() -> None:
        raise coldq.InvalidInput("bad")

    def raw() -> None:
        raise KeyError("x")

    def typed() -> None:
        len(3)  # type: ignore[arg-type]

    for broken, words in ((short, "no sentence"), (raw, "KeyError"), (typed, "TypeError")):
        monkeypatch.setitem(fuzz.ENTRIES, "broken", broken)
        complaint = fuzz.complaint("broken", [], {})
        assert complaint is not None and words in complaint
    assert fuzz.complaint("broken", [1], {}) is None  # a wrong call, as Python says it


def test_every_learner_and_measure_is_among_the_entries() -> None:
    called = set(fuzz.ENTRIES)
    assert {kind.__name__ for kind in coldq.learners.ALGORITHMS} <= called
    functions = {"simulate", "bound_report", "dynamic_regret", "estimate_constants"}
    assert functions | {"penalised_step"} <= called
