"""Results in a folder: whole or not there, put aside and taken back."""

from __future__ import annotations

import pytest

import coldq
from coldq.tasks.store import Store

WHOLE = b"PAR1 some numbers PAR1"


def test_a_result_ends_a_failure(tmp_path) -> None:
    store = Store(tmp_path)
    store.fail("ab", error="too bad")
    assert store.why("ab") == {"task": "ab", "error": "too bad"}
    store.put("ab", WHOLE)
    assert store.why("ab") is None


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1 half", b"other bytes PAR1"])
def test_what_is_not_whole_is_not_there(content, tmp_path) -> None:
    store = Store(tmp_path)
    store.path("ab").parent.mkdir(parents=True)
    store.path("ab").write_bytes(content)
    with pytest.warns(coldq.IgnoredFile, match="is not a whole result"):
        assert not store.has("ab")


def test_results_are_put_aside_and_come_back_and_what_was_arriving_goes(tmp_path) -> None:
    store = Store(tmp_path)
    for key in ("ab", "cd"):
        store.put(key, WHOLE)
    (store.arriving / ".ab.parquet.x.unfinished.parquet").write_bytes(b"PAR1 ha")
    store.settle(["cd", "ef"])
    assert (store.has("ab"), store.has("cd"), store.has("ef")) == (False, True, False)
    assert not list(store.arriving.iterdir())
    store.settle(["ab"])
    assert (store.has("ab"), store.has("cd")) == (True, False)
    assert store.path("ab").read_bytes() == WHOLE


def test_a_log_that_cannot_be_written_is_a_sentence(tmp_path) -> None:
    (tmp_path / "log.jsonl").mkdir()
    with pytest.raises(coldq.NotWritten, match=r"log\.jsonl could not be written"):
        Store(tmp_path).note(task="ab")
