"""Processes as an executor: all tasks answered, errors told, lost workers replaced or named."""

import os
import signal
import sys
from concurrent.futures import CancelledError

import numpy as np
import pytest

import coldq
from coldq.evaluation.tasks.processes import SINGLE_THREAD_SETTINGS, Processes


def fail(task):
    raise coldq.StepFailed(f"no answer to {task}", [(task,)], None)


def fail_oddly(task):
    class Odd(Exception):
        pass

    raise Odd("of a kind that no other process knows")


def end_oneself(task):
    os.kill(os.getpid(), signal.SIGKILL)


def end_oneself_once(path):
    if not path.exists():
        path.touch()
        end_oneself(path)
    return path.name


def end_if_odd(task):
    return end_oneself(task) if task % 2 else task


def chatter(task):
    print("this must not stand among the answers")
    sys.stdout.flush()
    os.write(1, b"nor this")
    return task, os.environ["COLDQ_THREADS"]


def test_every_task_is_answered_once_with_its_own_result():
    with Processes(3) as executor:
        assert list(executor.map(np.square, range(20))) == [task**2 for task in range(20)]
        assert list(executor.map(np.square, [])) == []


def test_arguments_have_their_names():
    with Processes(1) as executor:
        assert executor.submit(sorted, [1, 3, 2], reverse=True).result() == [3, 2, 1]


def test_an_error_comes_back_as_it_was_with_its_place():
    with Processes(2) as executor:
        error = executor.submit(fail, 4).exception()
    assert isinstance(error, coldq.StepFailed) and "no answer to 4" in str(error)
    assert error.indices == [(4,)]
    assert "in fail" in error.__notes__[0]


def test_an_error_that_cannot_be_sent_comes_back_in_words():
    with (
        Processes(2) as executor,
        pytest.raises(coldq.WorkerLost, match="Odd: of a kind that no other process knows"),
    ):
        executor.submit(fail_oddly, 4).result()


def test_a_task_that_cannot_be_sent_is_an_error_and_no_hang():
    with Processes(2) as executor, pytest.raises(Exception, match="pickle"):
        executor.submit(lambda task: task, 4)


def test_what_a_task_prints_does_not_disturb_its_answer(capfd):
    with Processes(2) as executor:
        assert list(executor.map(chatter, [1, 2])) == [(1, "1"), (2, "1")]
    assert "nor this" in capfd.readouterr().err


def test_a_block_that_is_left_by_an_error_ends_its_workers_at_once():
    with pytest.raises(KeyError), Processes(2) as executor:
        underway = [executor.submit(signal.pause) for _ in range(5)]
        raise KeyError
    for future in underway:
        assert future.cancelled() or isinstance(future.exception(), coldq.WorkerLost)
    with pytest.raises(CancelledError):
        underway[-1].result()


def test_what_a_lost_worker_leaves_undone_is_given_to_another(tmp_path):
    with Processes(2, tries=2) as executor:
        tasks = [tmp_path / f"{k}" for k in range(3)]
        assert list(executor.map(end_oneself_once, tasks)) == ["0", "1", "2"]


def test_a_task_that_ends_every_worker_is_told_and_stops_no_other():
    with Processes(2, tries=2) as executor:
        first, second, third = [executor.submit(end_if_odd, k) for k in range(3)]
        assert (first.result(), third.result()) == (0, 2)
        with pytest.raises(coldq.WorkerLost, match="ended with status -9 before its answer"):
            second.result()


def test_workers_have_one_thread_of_every_library():
    with Processes(1) as executor:
        assert set(executor.map(os.getenv, sorted(SINGLE_THREAD_SETTINGS))) == {"1"}
