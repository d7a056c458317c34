"""Files are written whole or not at all."""

import pytest

import coldq
from coldq.files import require_writable, whole_file


def test_a_failure_keeps_the_old_file_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "deep" / "result.txt"
    with whole_file(path) as temporary:
        temporary.write_text("first")
    with pytest.raises(KeyboardInterrupt), whole_file(path) as temporary:
        temporary.write_text("half of the sec")
        raise KeyboardInterrupt
    assert path.read_text() == "first"
    assert [p.name for p in path.parent.iterdir()] == ["result.txt"]


def test_the_file_is_as_readable_as_any_other(tmp_path):
    with whole_file(tmp_path / "result.txt") as temporary:
        temporary.write_text("x")
    (tmp_path / "plain.txt").write_text("x")
    modes = [(tmp_path / name).stat().st_mode for name in ("result.txt", "plain.txt")]
    assert modes[0] == modes[1]


def test_a_folder_is_made_and_nothing_is_left_in_it(tmp_path):
    require_writable(tmp_path / "a" / "b", megabytes=0.001)
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(coldq.InvalidInput, match=r"cannot write to .*a"):
        require_writable(tmp_path / "a", megabytes=1.0)
