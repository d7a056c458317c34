"""The check of words finds what it should, and nothing else."""

from pathlib import Path

from tests.words import findings, first_sentence, words_of


def test_names_parameters_and_first_sentences_are_looked_at(tmp_path: Path) -> None:
    text = '"""Rows that clash."""\ndef tune(headroom):\n    """The same, tuned."""\n'
    (tmp_path / "one.py").write_text(text)
    lines = [line.removeprefix(str(tmp_path)) for line in findings(tmp_path)]
    assert lines == [
        "/one.py:1: 'clash'; write: conflict, infeasible",
        "/one.py:3: 'the same'; write: the subject of the sentence",
        "/one.py:2: 'headroom'; write: safety margin",
    ]


def test_private_names_later_sentences_and_parts_of_words_are_not(tmp_path: Path) -> None:
    text = '"""An interface. Rows may clash."""\ndef _headroom(kinkajou):\n    pass\n'
    (tmp_path / "one.py").write_text(text)
    assert list(findings(tmp_path)) == []


def test_a_name_is_split_into_words_and_a_docstring_into_sentences() -> None:
    assert words_of("tune_headroom") == "tune headroom"
    assert words_of("HardRows") == "hard rows"
    assert first_sentence("A row\n    of 1.5. Then more.\n\nMore.") == "a row of 1.5."
