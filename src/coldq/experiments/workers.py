"""Share tasks among processes that never outlive the one that started them."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from coldq.errors import WorkerLost

Task = TypeVar("Task")
Result = TypeVar("Result")
Answer = tuple[Any, Any, Exception | None]  # a task, what came of it, or why nothing did

WORKER = Path(__file__).with_name("worker.py")


def share(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    processes: int,
    done: Callable[[Task, Result], None],
) -> None:
    """Call `work` with every task, in fresh processes of one thread each.

    `done` is called here with each task and its result, in the order in which they come. `work` and
    the tasks are pickled. An exception of `work` or of `done`, or a signal, ends all processes at
    once. Where this process is killed outright, they notice and end.

    >>> from coldq.experiments.workers import share
    >>> answers = {}
    >>> share(abs, [-1, 2], processes=2, done=answers.__setitem__)
    >>> answers[-1], answers[2]
    (1, 2)
    """
    waiting, answers = deque(tasks), SimpleQueue[Answer]()
    started: list[tuple[subprocess.Popen[bytes], threading.Thread]] = []
    try:
        for _ in range(min(processes, len(tasks))):
            worker = _start()
            feeder = threading.Thread(target=_feed, args=(worker, work, waiting, answers))
            started.append((worker, feeder))
            feeder.start()
        for _ in tasks:
            task, answer, error = answers.get()
            if error is not None:
                raise error
            done(task, answer)
    finally:
        for worker, _ in started:
            worker.kill()  # they keep nothing
        for worker, feeder in started:
            if feeder.ident is not None:
                feeder.join()  # it reads that its worker is gone
            for pipe in (worker.stdin, worker.stdout):
                with suppress(OSError):  # what was still to be sent
                    assert pipe is not None
                    pipe.close()
            worker.wait()


def _start() -> subprocess.Popen[bytes]:
    """A fresh process: a forked one would inherit threads that do not run in it."""
    options = [f"-W{option}" for option in sys.warnoptions]
    with _deaf_to_interrupts():
        return subprocess.Popen(
            [sys.executable, "-P", *options, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "COLDQ_THREADS": "1"},
        )


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Ctrl-C reaches all processes of a terminal; what is started here leaves it to its parent."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _feed(
    worker: subprocess.Popen[bytes],
    work: Callable[[Any], Any],
    waiting: deque[Any],
    answers: SimpleQueue[Answer],
) -> None:
    """Give a worker one task after another until none is left."""
    assert worker.stdin is not None and worker.stdout is not None
    try:
        pickle.dump(sys.path, worker.stdin)  # a worker must not find other modules
        while (task := _next(waiting)) is not None:
            # Bytes within: what they need is imported by the worker's main thread alone.
            pickle.dump(pickle.dumps((work, *task)), worker.stdin)
            worker.stdin.flush()
            result, error = pickle.load(worker.stdout)
            if isinstance(error, str):  # one that could not be sent
                error = WorkerLost(f"a worker process failed at its task: {error}")
            answers.put((*task, result, error))
    except (OSError, EOFError):
        lost = WorkerLost(f"a worker process ended with status {worker.wait()} before its answer")
        answers.put((None, None, lost))
    except Exception as error:  # what cannot be pickled, say: the caller must hear of it
        answers.put((None, None, error))


def _next(waiting: deque[Any]) -> tuple[Any] | None:
    """A task that no other feeder has, if there is one: to ask first would be too late."""
    try:
        return (waiting.popleft(),)
    except IndexError:
        return None
