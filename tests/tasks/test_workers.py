"""Tasks shared among processes: all answered, errors told, lost workers named."""

import os
import signal
import sys

import numpy as np
import pytest

import coldq
from coldq.tasks.workers import ONE_THREAD, share


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


def never(task, result):
    raise AssertionError(task, result)


def test_every_task_is_answered_once_with_its_own_result():
    answers = {}
    share(np.square, range(20), 3, lambda task, result: answers.setdefault(task, int(result)))
    assert answers == {task: task**2 for task in range(20)}
    share(np.square, [], 3, never)


def test_an_error_comes_back_as_it_was_with_its_place():
    with pytest.raises(coldq.StepFailed, match="no answer to 4") as failed:
        share(fail, [4], 2, never)
    assert failed.value.indices == [(4,)]
    assert "in fail" in failed.value.__notes__[0]


def test_an_error_that_cannot_be_sent_comes_back_in_words():
    with pytest.raises(coldq.WorkerLost, match="Odd: of a kind that no other process knows"):
        share(fail_oddly, [4], 2, never)


def test_a_task_that_cannot_be_sent_is_an_error_and_no_hang():
    with pytest.raises(Exception, match="pickle"):
        share(lambda task: task, [4], 2, never)


def test_a_worker_that_is_killed_is_an_error_and_no_hang():
    with pytest.raises(coldq.WorkerLost, match="ended with status -9 before its answer"):
        share(end_oneself, [1, 2, 3], 2, never)


def test_what_a_task_prints_does_not_disturb_its_answer(capfd):
    answers = []
    share(chatter, [1, 2], 2, lambda task, result: answers.append(result))
    assert sorted(answers) == [(1, "1"), (2, "1")]
    assert "nor this" in capfd.readouterr().err


def test_an_error_of_the_listener_ends_the_workers():
    with pytest.raises(AssertionError, match=r"\d, .*\d"):  # whichever answer came first
        share(np.square, range(9), 2, never)


def test_what_a_lost_worker_leaves_undone_is_given_to_another(tmp_path):
    answers = []
    tasks = [tmp_path / f"{k}" for k in range(3)]
    share(end_oneself_once, tasks, 2, lambda task, result: answers.append(result), tries=2)
    assert sorted(answers) == ["0", "1", "2"]


def test_a_task_that_ends_every_worker_is_told_and_stops_no_other():
    answers, lost = [], []
    share(
        end_if_odd, range(3), 2, lambda task, result: answers.append(result), tries=2,
        lost=lambda task, error: lost.append((task, str(error))),
    )  # fmt: skip
    assert sorted(answers) == [0, 2]
    assert [task for task, _ in lost] == [1]
    assert "ended with status -9" in lost[0][1]


def test_workers_have_one_thread_of_every_library():
    answers = []
    share(os.getenv, sorted(ONE_THREAD), 1, lambda task, result: answers.append(result))
    assert answers == ["1"] * len(ONE_THREAD)
