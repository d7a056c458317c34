"""The page is joined from whole parts; anything else beside them is named and left out."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

import coldq
from coldq.base.files import whole_file
from coldq.cli.needs import require_report
from coldq.evaluation.report.parts import Part, join


def part(key: str) -> Part:
    return Part(key, f"Title {key}", "", [(key, f"Section {key}")], f"<p>Part {key}</p>")


def joined(path: Path) -> str:
    join(part("new"), path)
    return path.read_text(encoding="utf-8")


def broken_parts() -> dict[str, str]:
    """What may lie among the parts, and is none."""
    whole = asdict(part("old"))
    return {
        "empty": "",
        "cut off": json.dumps(whole)[:40],
        "another's": '{"name": "package", "version": "1.0"}',
        "a list": "[1]",
        "a text": '"<script>"',
        "less": json.dumps({key: whole[key] for key in whole if key != "html"}),
        "more": json.dumps({**whole, "author": "another"}),
        "no text": json.dumps({**whole, "html": 3}),
        "no contents": json.dumps({**whole, "contents": 3}),
        "no pairs": json.dumps({**whole, "contents": [["old", "Old", "older"]]}),
        "another's name": json.dumps({**whole, "key": "other"}),
    }


@pytest.mark.parametrize("kind", broken_parts())
def test_what_is_no_whole_part_is_named_and_left_out(kind: str, tmp_path: Path) -> None:
    path, folder = tmp_path / "index.html", tmp_path / "parts" / "index"
    join(part("first"), path)
    (folder / "old.json").write_text(broken_parts()[kind], encoding="utf-8")
    with pytest.warns(coldq.IgnoredFile, match=r"index.old\.json is not a whole part"):
        page = joined(path)
    assert "Part first" in page and "Part new" in page
    assert "Part old" not in page
    assert (folder / "old.json").exists()


def test_a_page_that_is_not_ours_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    path.write_text("<h1>My home page</h1>", encoding="utf-8")
    with pytest.raises(coldq.InvalidInput, match=r"index\.html was not written by coldq"):
        join(part("new"), path)
    assert path.read_text(encoding="utf-8") == "<h1>My home page</h1>"
    assert not (tmp_path / "parts").exists()
    with pytest.raises(coldq.InvalidInput, match="was not written by coldq"):  # before any work
        require_report(path, 1.0)


def test_a_page_is_joined_from_its_own_parts_alone(tmp_path: Path) -> None:
    join(part("reproduction"), tmp_path / "index.html")
    join(part("mine"), tmp_path / "compare-mine.html")
    own = (tmp_path / "compare-mine.html").read_text(encoding="utf-8")
    assert "<h1>Title mine</h1>" in own
    assert "Part reproduction" not in own
    assert "Part mine" not in joined(tmp_path / "index.html")


def test_a_page_carries_no_program(tmp_path: Path) -> None:
    join(part("still"), tmp_path / "still.html")
    assert "<script" not in (tmp_path / "still.html").read_text(encoding="utf-8")


def test_a_whole_part_is_joined(tmp_path: Path) -> None:
    join(part("old"), tmp_path / "index.html")
    assert "Part old" in joined(tmp_path / "index.html")


def test_bytes_that_are_no_text_and_a_folder_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "parts" / "index"
    (folder / "folder.json").mkdir(parents=True)
    (folder / "old.json").write_bytes(b"\x80\x81\xff")
    with pytest.warns(coldq.IgnoredFile) as ignored:
        joined(tmp_path / "index.html")
    assert [Path(str(each.message).split(" is not")[0]).name for each in ignored] == [
        "folder.json",
        "old.json",
    ]


def test_what_a_killed_run_left_is_no_part(tmp_path: Path) -> None:
    path, folder = tmp_path / "index.html", tmp_path / "parts" / "index"
    folder.mkdir(parents=True)
    # As an older version named it, and as this one does.
    (folder / ".compare-linear-ab12.json").write_text(json.dumps(asdict(part("old"))))
    with whole_file(folder / "old.json") as temporary:
        temporary.write_text(json.dumps(asdict(part("old")))[:40])
        with pytest.warns(coldq.IgnoredFile) as ignored:
            page = joined(path)
        temporary.write_text(json.dumps(asdict(part("old"))))
    assert [str(each.message).split(" is not")[0] for each in ignored] == [
        str(folder / ".compare-linear-ab12.json")
    ]
    assert "Part old" not in page


def test_a_broken_part_is_mended_by_the_command_that_makes_it(tmp_path: Path) -> None:
    folder = tmp_path / "parts" / "index"
    folder.mkdir(parents=True)
    (folder / "new.json").write_text("{")
    assert "Part new" in joined(tmp_path / "index.html")
    assert json.loads((folder / "new.json").read_text())["key"] == "new"
