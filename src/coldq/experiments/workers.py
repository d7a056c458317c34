"""Share tasks among processes that never outlive the one that started them."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from coldq.errors import WorkerLost

Task = TypeVar("Task")
Result = TypeVar("Result")
Answer = tuple[Any, Any, Exception | None]  # a task, what came of it, or why nothing did

# The first message is where the parent finds modules: a worker must not find others.
BOOT = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from coldq.experiments.workers import serve; serve()"
)


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
            [sys.executable, "-P", *options, "-c", BOOT],
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
        pickle.dump(sys.path, worker.stdin)
        with suppress(IndexError):  # none is left
            while True:
                task = waiting.popleft()
                # Bytes within: what they need is imported by the worker's main thread alone.
                pickle.dump(pickle.dumps((work, task)), worker.stdin)
                worker.stdin.flush()
                answers.put((task, *pickle.load(worker.stdout)))
    except (OSError, EOFError):
        lost = WorkerLost(f"a worker process ended with status {worker.wait()} before its answer")
        answers.put((None, None, lost))
    except Exception as error:  # what cannot be pickled, say: the caller must hear of it
        answers.put((None, None, error))


def serve() -> None:
    """What a worker does: answer its parent's tasks until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What a task prints must not stand among the answers.
    outward = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    given: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(given,), daemon=True).start()
    while True:
        outward.write(_answer(given.get()))
        outward.flush()


def _listen(given: SimpleQueue[bytes]) -> None:
    """Take tasks in; the end of the pipe is the end of the parent, and then of this process."""
    try:
        while True:
            given.put(pickle.load(sys.stdin.buffer))
    finally:
        os._exit(0)


def _answer(task: bytes) -> bytes:
    try:
        work, argument = pickle.loads(task)
        return pickle.dumps((work(argument), None))
    except Exception as error:
        error.add_note(f"In a worker process:\n{traceback.format_exc()}")
        try:
            sent = pickle.dumps((None, error))
            pickle.loads(sent)  # some exceptions can be sent and not be read
        except Exception:
            words = f"a worker process failed at its task: {type(error).__name__}: {error}"
            sent = pickle.dumps((None, WorkerLost(words)))
        return sent
