"""Files are written whole or not at all."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import coldq
from coldq.base.files import STALE_SECONDS, is_unfinished, require_writable, whole_file
from coldq.base.tabular import read_parquet, write_parquet
from coldq.evaluation.report.files import write_text


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


def test_nobody_else_meets_another_umask_meanwhile(tmp_path, monkeypatch):
    def asked(mask):
        raise AssertionError("all threads have one umask")

    monkeypatch.setattr(os, "umask", asked)
    with whole_file(tmp_path / "result.txt") as temporary:
        temporary.write_text("x")


def test_tables_are_written_to_and_read_from_any_name(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    path, table = tmp_path / os.fsdecode(b"l\xff.parquet"), arrow.table({"load": [1.0, 2.0]})
    write_parquet(table, path)
    assert read_parquet(path) == table
    keys = {"decide": {"grid": [0, 9]}, "cost": 1, "rows": {"sum": "all", "at_least": "load"}}
    assert coldq.problems.from_table(path, keys).horizon == 2
    write_text(tmp_path / "page.html", f"of {path.name}")
    assert (tmp_path / "page.html").read_text() == "of l?.parquet"


def test_a_folder_is_made_and_nothing_is_left_in_it(tmp_path):
    require_writable(tmp_path / "a" / "b", megabytes=0.001)
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(coldq.InvalidInput, match=r"cannot write to .*a"):
        require_writable(tmp_path / "a", megabytes=1.0)


def test_what_is_being_written_is_known_by_its_name(tmp_path):
    for name in ("result.json", "a.b.tar.gz", "plain", ".hidden"):
        with whole_file(tmp_path / name) as temporary:
            assert temporary.suffix == Path(name).suffix or not Path(name).suffix
            assert is_unfinished(temporary)
        assert not is_unfinished(tmp_path / name)


def test_what_a_killed_process_left_is_removed_once_it_is_old_and_only_that(tmp_path):
    path = tmp_path / "result[1].json"
    script = (
        "import os, pathlib, sys; from coldq.base.files import whole_file\n"
        "with whole_file(pathlib.Path(sys.argv[1])) as file: file.write_text('half'); os._exit(9)"
    )
    for _ in range(2):
        subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    old, fresh = tmp_path.iterdir()  # names are random: either may be the older one
    assert is_unfinished(old) and is_unfinished(fresh)
    others = [tmp_path / name for name in (".result[1].json", "notes.json", ".other.unfinished.x")]
    for other in others:
        other.write_text("not ours")
    past = time.time() - STALE_SECONDS - 10.0
    for each in (old, *others):
        os.utime(each, (past, past))
    with whole_file(path) as temporary:
        temporary.write_text("whole")
    assert set(tmp_path.iterdir()) == {fresh, path, *others}
    assert path.read_text() == "whole"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
def test_what_cannot_be_written_is_a_sentence_and_the_old_file_stays(tmp_path, number):
    path = tmp_path / "result.txt"
    path.write_text("first")
    with pytest.raises(coldq.NotWritten) as failed, whole_file(path) as temporary:
        temporary.write_text("half of the sec")
        raise OSError(number, os.strerror(number))
    assert str(failed.value) == (
        f"{path} could not be written: {os.strerror(number)}. What was there before is unchanged"
    )
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_in_the_place_of_the_file_is_a_sentence(tmp_path):
    (tmp_path / "result.txt").mkdir()
    with pytest.raises(coldq.NotWritten, match=r"result\.txt could not be written"), \
            whole_file(tmp_path / "result.txt") as temporary:  # fmt: skip
        temporary.write_text("x")
    assert [p.name for p in tmp_path.iterdir()] == ["result.txt"]


# No file may grow beyond the limit: writing fails in the middle, as on a full disk.
FULL = """
import resource, sys
import coldq, coldq.evaluation.report  # the list of fonts is kept in a file, too
from coldq.cli import command
from coldq.cli.compare import run_compare
from coldq.cli.rates import measure_tables
what, out, *limits = sys.argv[1:]
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
for limit in limits:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), most))
    try:
        with command():
            if what == "rates":
                measure_tables(f"{out}/{limit}", horizons=(8, 16, 32), n_seeds=2, processes=1)
            else:
                run_compare(
                    ["linear"], ["COLDQ", "OGD"], (None,), range(2), f"{out}/{limit}", horizon=40
                )
    except SystemExit as ended:
        assert ended.code == 1
"""


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("rates", {200: ".parquet"}),
        (
            "compare",
            {
                200: "compare-linear.parquet",
                9_000: "compare-linear.png",
                52_000: "compare-linear.html",
            },
        ),
    ],
)
def test_a_disk_that_is_full_half_way_is_a_sentence(what, names, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL, what, str(tmp_path), *map(str, names)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for (limit, name), said in zip(names.items(), done.stderr.splitlines(), strict=True):
        assert said.startswith(f"coldq: {tmp_path / str(limit)}"), said
        assert f"{name} could not be written: " in said
        assert "File too large" in said
        files = [path for path in (tmp_path / str(limit)).rglob("*") if path.is_file()]
        assert not [path for path in files if is_unfinished(path)]
        assert all(path.stat().st_size < limit for path in files)
