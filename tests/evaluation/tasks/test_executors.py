"""Who does the tasks: any executor, fed by one loop, and sentences for what cannot be asked for."""

from __future__ import annotations

import socket
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from operator import neg

import pytest

import coldq
from coldq.evaluation.tasks.executors import (
    ThisProcess,
    do_all,
    executor_of,
    needed,
    require_answer,
)
from coldq.evaluation.tasks.processes import Processes

EXECUTORS = (
    ThisProcess, lambda: Processes(2), lambda: ThreadPoolExecutor(3), lambda: ProcessPoolExecutor(1)
)  # fmt: skip


@pytest.mark.parametrize("make", EXECUTORS)
def test_every_executor_answers_each_task_once_with_its_own_result(make) -> None:
    with make() as executor:
        found = [(task, future.result()) for task, future in do_all(neg, range(20), executor)]
    assert sorted(found) == [(task, -task) for task in range(20)]


def test_no_more_tasks_are_underway_than_an_executor_takes() -> None:
    class Watched(ThreadPoolExecutor):
        width, given = 3, 0

        def submit(self, *args, **kwargs):
            self.given += 1
            return super().submit(*args, **kwargs)

    with Watched(1) as executor:
        for done, _ in enumerate(do_all(neg, range(30), executor)):
            assert executor.given - done <= 3


def test_an_error_is_the_futures_and_ends_no_other_task() -> None:
    found = {
        task: future.exception()
        for task, future in do_all(range(1, 4).index, range(5), ThisProcess())
    }
    assert [task for task, error in found.items() if error is not None] == [0, 4]
    assert isinstance(found[0], ValueError)


def test_an_executor_of_ones_own_is_taken_as_it_is_and_left_open() -> None:
    with ThreadPoolExecutor(1) as own:
        with executor_of(own) as executor:
            assert executor is own
        assert own.submit(neg, 1).result() == -1
    with executor_of() as executor:
        assert isinstance(executor, ThisProcess) and isinstance(executor, Executor)


def test_nobody_at_an_address_is_a_sentence_at_once() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    with pytest.raises(coldq.InvalidInput, match=f"no cluster answers at tcp://127.0.0.1:{free}"):
        require_answer(f"tcp://127.0.0.1:{free}", "cluster")
    for address in ("nowhere", ":8786", "host:port"):
        with pytest.raises(coldq.InvalidInput, match="is host:port, but is"):
            require_answer(address, "cluster")


def test_somebody_at_an_address_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        require_answer(f"127.0.0.1:{listening.getsockname()[1]}", "cluster")


def test_a_library_that_is_not_there_is_named_with_its_extra() -> None:
    with pytest.raises(coldq.InvalidInput, match=r"needs no_such_library: .*coldq\[odd\]"):
        needed("no_such_library", "odd", "this")


@pytest.mark.parametrize("given", [{"dask": ""}, {"ray": 3}, {"workers": 2, "ray": "a:1"}])
def test_what_cannot_be_asked_for_is_a_sentence(given) -> None:
    with pytest.raises(coldq.InvalidInput, match=r"must be an address|contradict each other"):
        executor_of(**given)
