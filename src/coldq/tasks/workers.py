"""Share tasks among processes that never outlive the one that started them."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from coldq.errors import WorkerLost

Task = TypeVar("Task")
Result = TypeVar("Result")
Answer = tuple[Any, Any, Exception | None]  # a task, what came of it, or why nothing did

WORKER = Path(__file__).with_name("worker.py")
# One thread a worker: of ours, and of the libraries that NumPy and SciPy multiply with.
ONE_THREAD = dict.fromkeys(
    ("COLDQ_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)


def share(
    work: Callable[[Task], Result],
    tasks: Iterable[Task],
    processes: int,
    done: Callable[[Task, Result], None],
    *,
    tries: int = 1,
    lost: Callable[[Task, WorkerLost], None] | None = None,
) -> None:
    """Call `work` with every task, in fresh processes of one thread each.

    `done` is called here with each task and its result, in the order in which they come. `work` and
    the tasks are pickled. An exception of `work` or of `done`, or a signal, ends all processes at
    once. Where this process is killed outright, they notice and end.

    A task whose process ends without an answer is given to a new one, `tries` times in all. Then
    `lost` hears of it, or if there is none, it is an error.

    >>> from coldq.tasks.workers import share
    >>> answers = {}
    >>> share(abs, [-1, 2], processes=2, done=answers.__setitem__)
    >>> answers[-1], answers[2]
    (1, 2)
    """
    waiting, answers = deque(tasks), SimpleQueue[Answer]()
    count, seats = len(waiting), list[_Seat]()
    try:
        for _ in range(min(processes, count)):
            seats.append(_Seat(work, waiting, answers, tries))
            seats[-1].start()
        for _ in range(count):
            task, answer, error = answers.get()
            if lost is not None and isinstance(error, _Lost):
                lost(task, WorkerLost(str(error)))
            elif error is not None:
                raise error
            else:
                done(task, answer)
    finally:
        for seat in seats:
            seat.end()  # they keep nothing
        for seat in seats:
            seat.leave()


class _Lost(WorkerLost):
    """A worker ended before its answer; one that says what went wrong does not raise this."""


class _Seat(threading.Thread):
    """A thread that gives a worker one task after another, and starts another where one is lost."""

    def __init__(
        self,
        work: Callable[[Any], Any],
        waiting: deque[Any],
        answers: SimpleQueue[Answer],
        tries: int,
    ) -> None:
        super().__init__()
        self.work, self.waiting, self.answers, self.tries = work, waiting, answers, tries
        self.lock, self.over = threading.Lock(), False
        self.worker = _start()

    def run(self) -> None:
        """Work until no task is left."""
        while not self.over and (task := _next(self.waiting)) is not None:
            for k in range(self.tries):
                try:
                    self.answers.put((*task, *self._ask(*task)))
                    break
                except (OSError, EOFError, pickle.UnpicklingError):
                    words = f"a worker process ended with status {self.worker.wait()} before its"
                    if not self._replace():
                        return
                    if k + 1 == self.tries:
                        self.answers.put((*task, None, _Lost(f"{words} answer")))
                except Exception as error:  # what cannot be pickled, say: the caller must hear
                    self.answers.put((*task, None, error))
                    return

    def _ask(self, task: Any) -> tuple[Any, Exception | None]:
        """A worker's answer to a task."""
        # Bytes within: what they need is imported by the worker's main thread alone.
        given, worker = pickle.dumps((self.work, task)), self.worker
        assert worker.stdin is not None and worker.stdout is not None
        pickle.dump(given, worker.stdin)
        worker.stdin.flush()
        result, error = pickle.load(worker.stdout)
        if isinstance(error, str):  # one that could not be sent
            error = WorkerLost(f"a worker process failed at its task: {error}")
        return result, error

    def _replace(self) -> bool:
        """A new worker in the place of a lost one, unless all is over."""
        with self.lock:
            if not self.over:
                _close(self.worker)
                self.worker = _start()
            return not self.over

    def end(self) -> None:
        """Kill the worker, and start no other."""
        with self.lock:
            self.over = True
            self.worker.kill()

    def leave(self) -> None:
        """Wait until nothing is left of it."""
        if self.ident is not None:
            self.join()  # it reads that its worker is gone
        _close(self.worker)


def _start() -> subprocess.Popen[bytes]:
    """A fresh process: a forked one would inherit threads that do not run in it."""
    options = [f"-W{option}" for option in sys.warnoptions]
    with _deaf_to_interrupts():
        worker = subprocess.Popen(
            [sys.executable, "-P", *options, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ONE_THREAD},
        )
    assert worker.stdin is not None
    pickle.dump(sys.path, worker.stdin)  # a worker must not find other modules
    return worker


def _close(worker: subprocess.Popen[bytes]) -> None:
    for pipe in (worker.stdin, worker.stdout):
        with suppress(OSError):  # what was still to be sent
            assert pipe is not None
            pipe.close()
    worker.wait()


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


def _next(waiting: deque[Any]) -> tuple[Any] | None:
    """A task that no other feeder has, if there is one: to ask first would be too late."""
    try:
        return (waiting.popleft(),)
    except IndexError:
        return None
