"""Results in a folder: whole or not there, put aside and taken back."""

from __future__ import annotations

import json
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass

import pytest

import coldq
from coldq.evaluation.tasks.executors import ThisProcess, executor_of
from coldq.evaluation.tasks.store import Store, attempt, complete

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


@dataclass(frozen=True)
class Square:
    """A task whose result is its number's square; of no number, an error."""

    number: int | None

    @property
    def key(self) -> str:
        return f"{self.number}".rjust(4, "k")

    def about(self) -> dict:
        return {"number": self.number}


def square(task: Square) -> dict:
    if task.number is None:
        raise KeyError("there is no number")
    return {"square": [task.number**2]}


def squares(store: Store) -> list[int]:
    return [store.table(path.stem)["square"][0].as_py() for path in sorted(store.runs.glob("*/*"))]


@pytest.mark.parametrize("workers", [None, 2])
def test_what_is_missing_is_run_and_failures_are_kept_with_their_tracebacks(
    workers, tmp_path
) -> None:
    store, heard = Store(tmp_path), {}
    tasks = [Square(number) for number in (1, None, 2, 3)]
    for asked, retry, expected in (
        (tasks[:2], False, tasks[:2]), (tasks, False, tasks[2:]), (tasks, True, [tasks[1]]),
    ):  # fmt: skip
        heard.clear()
        complete(
            store, asked, square, executor_of(workers), retry_failed=retry,
            done=lambda task, error: heard.update({task: error}),
        )  # fmt: skip
        assert set(heard) == set(expected)
    assert heard == {Square(None): "KeyError: 'there is no number'"}
    assert squares(store) == [1, 4, 9]
    failure = store.why(Square(None).key)
    assert failure is not None
    assert failure["number"] is None and "in square" in failure["traceback"]
    said = [json.loads(line) for line in store.log.read_text().splitlines()]
    assert [one.get("failed", False) for one in said].count(True) == 2
    assert len(said) == 5 and all(one["seconds"] >= 0.0 for one in said)


def test_an_executor_that_breaks_ends_the_work_and_what_is_done_is_kept(tmp_path) -> None:
    class Breaking(ThisProcess):
        def submit(self, work, /, *args):
            future = super().submit(work, *args)
            if args[0].number == 3:
                future = Future()
                future.set_exception(BrokenExecutor("all workers are gone"))
            return future

    store, tasks = Store(tmp_path), [Square(number) for number in range(1, 6)]
    with pytest.raises(coldq.WorkerLost, match="all workers are gone"):
        complete(store, tasks, square, Breaking())
    assert squares(store) == [1, 4]
    complete(store, tasks, square, ThisProcess())
    assert squares(store) == [1, 4, 9, 16, 25]
    assert not store.failed.exists()


def test_a_worker_with_another_coldq_is_refused(tmp_path) -> None:
    outcome = attempt(square, "another", Square(2))
    assert outcome.result is None
    assert "another version of coldq" in str(outcome.error)
