"""Names of the files that hold results."""

from __future__ import annotations

from coldq.evaluation.report.files import plain


def test_names_in_any_language_stay_apart() -> None:
    titles = ["负载", "电价", "нагрузка", "цена", "Süd", "Sud", "my load", "mine:problem"]
    names = [plain(title, "own") for title in titles]
    assert len(set(names)) == len(titles)
    assert names[-2:] == ["my-load", "mine-problem"]


def test_a_name_of_a_file_has_no_more_than_letters_digits_and_dashes() -> None:
    assert plain("../a/b c&d\udcff%", "own") == "a-b-c-d"
    assert plain("??", "own") == "own"
