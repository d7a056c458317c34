"""A share of the fuzzed tables: an answer or a sentence."""

from __future__ import annotations

from tests.problems.fuzzed_tables import check, check_texts


def test_odd_tables_and_layouts_get_an_answer_or_a_sentence() -> None:
    counts = check(150, same=True)
    assert min(counts.values()) > 0


def test_files_of_anything_get_a_sentence() -> None:
    assert check_texts(100, same=True)["a sentence"] > 50
