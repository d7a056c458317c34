"""A write-ahead log is read as SQLite reads it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from coldq.agent.wal import Log, checksums


@pytest.mark.parametrize("count", [2, 6, 130, 1026])
def test_checksums_are_those_that_the_format_says_step_by_step(count: int) -> None:
    rng = np.random.default_rng(count)
    words, before = (
        rng.integers(0, 2**32, (3, size), dtype=np.uint64).astype(np.uint32) for size in (count, 2)
    )
    for row, begin, found in zip(words, before, checksums(words, before), strict=True):
        s0, s1 = begin.tolist()
        for a, b in row.reshape(-1, 2).tolist():
            s0 = (s0 + a + s1) % 2**32
            s1 = (s1 + b + s0) % 2**32
        assert found.tolist() == [s0, s1]


@pytest.mark.parametrize("page_size", [512, 4096, 65536])
@pytest.mark.parametrize("rows", [1, 40, 2500])
def test_a_log_applied_to_its_file_is_what_sqlite_sees(
    tmp_path: Path, page_size: int, rows: int
) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for words in (f"page_size={page_size}", "journal_mode=WAL", "synchronous=OFF"):
            db.execute(f"PRAGMA {words}")
        db.execute("CREATE TABLE a (x)")
        for _ in range(rows):  # the longest of these begin their log anew
            db.execute("INSERT INTO a VALUES (?)", (os.urandom(200),))
        seen = db.execute("SELECT x FROM a").fetchall()
        log = Log.read(Path(f"{path}-wal").read_bytes())
        assert (log.damage, log.torn) == ("", False)
        with closing(sqlite3.connect(":memory:")) as copy:
            copy.deserialize(log.over(path.read_bytes()))
            assert copy.execute("PRAGMA quick_check").fetchone() == ("ok",)
            assert copy.execute("SELECT x FROM a").fetchall() == seen


def test_a_torn_frame_with_the_mark_of_an_older_one_is_no_damage(tmp_path: Path) -> None:
    """Its size of the database and its salts may be in two sectors, of which one was written."""
    path = tmp_path / "a.db"
    log = Path(f"{path}-wal")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for words in ("page_size=4096", "journal_mode=WAL", "wal_autocheckpoint=60"):
            db.execute(f"PRAGMA {words}")
        db.execute("CREATE TABLE a (x)")
        salts, rows = log.read_bytes()[16:24], 0
        while log.read_bytes()[16:24] == salts:  # until it begins anew, over older frames
            rows += 1
            db.execute("INSERT INTO a VALUES (?)", (os.urandom(200),))
        before = log.read_bytes()
        db.execute("INSERT INTO a VALUES (?)", (os.urandom(4096 * 50),))
        torn = bytearray(log.read_bytes())
        file = path.read_bytes()
    (frame,) = (k for k in range(10, 52) if (32 + 4120 * k + 8) % 512 == 0)
    mark = 32 + 4120 * frame + 8
    assert before[mark - 4 : mark] != bytes(4) and before[mark : mark + 8] != torn[mark : mark + 8]
    torn[mark - 512 : mark] = before[mark - 512 : mark]
    found = Log.read(bytes(torn))
    assert (found.damage, found.torn) == ("", True)
    path.write_bytes(file)
    log.write_bytes(torn)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM a").fetchone() == (rows,)


def test_a_flipped_bit_is_damage_where_two_transactions_follow(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE a (x)")
        for _ in range(60):
            db.execute("INSERT INTO a VALUES (?)", (os.urandom(200),))
        log = Path(f"{path}-wal").read_bytes()
    for frame in range(len(log) // 4120 - 8):
        for place in (0, 7, 9, 17, 24, 4119):  # numbers, salts, sums, and the page
            broken = bytearray(log)
            broken[32 + 4120 * frame + place] ^= 1
            assert f"frame {frame + 1} is not whole" in Log.read(bytes(broken)).damage
