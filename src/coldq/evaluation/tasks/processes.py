"""Processes of this machine as an executor of concurrent.futures."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from coldq.base.arrays import whole_number
from coldq.base.errors import WorkerLost

MAX_ATTEMPTS = 3  # workers that a task is given to, one after another, where they are lost
TASKS_A_WORKER = 3  # of which it does one: the next one is there when that is done
WORKER_FILE = Path(__file__).with_name("worker.py")
# One thread a worker: of ours, and of the libraries that NumPy and SciPy multiply with.
SINGLE_THREAD_SETTINGS = dict.fromkeys(
    ("COLDQ_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)


class Processes(Executor):
    """Fresh processes of one thread each, which end with this one, however it ends.

    A task whose process ends without an answer is given to a new one, `tries` times in all; then
    its future has a :class:`~coldq.WorkerLost`. Left by an error, the block kills them at once.

    The standard library's ``ProcessPoolExecutor`` has processes that stay where their parent is
    killed outright, gives up all tasks where one process is lost, and imports the main module anew.

    >>> from coldq.evaluation.tasks.processes import Processes
    >>> with Processes(2) as executor:
    ...     print(*executor.map(abs, [-1, 2]))
    1 2
    """

    def __init__(self, count: int, tries: int = MAX_ATTEMPTS) -> None:
        self.width = TASKS_A_WORKER * whole_number("workers", count, 1)
        self._tries = tries
        self._threads = ThreadPoolExecutor(count)  # one asks one process
        self._mine = threading.local()
        self._lock, self._over = threading.Lock(), False
        self._workers: list[subprocess.Popen[bytes]] = []

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a process call `work`, which is pickled, and its arguments and result are."""
        # Bytes within bytes: what they need is imported by the process's main thread alone.
        return self._threads.submit(self._ask, pickle.dumps((work, args, kwargs)))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the processes end: when all tasks are done, or at once if those are cancelled."""
        if cancel_futures:
            with self._lock:
                self._over = True
                for worker in self._workers:
                    worker.kill()
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            for worker in self._workers:
                _close(worker)

    def __exit__(self, kind: Any, *_: object) -> None:
        self.shutdown(cancel_futures=kind is not None)

    def _ask(self, task: bytes) -> Any:
        words = ""
        for _ in range(self._tries):
            worker = self._worker()
            try:
                assert worker.stdin is not None and worker.stdout is not None
                pickle.dump(task, worker.stdin)
                worker.stdin.flush()
                result, error = pickle.load(worker.stdout)
            except (OSError, EOFError, pickle.UnpicklingError):
                words = f"a worker process ended with status {worker.wait()} before its answer"
                continue
            if isinstance(error, str):  # one that could not be sent
                raise WorkerLost(f"a worker process failed at its task: {error}")
            if error is not None:
                raise error
            return result
        raise WorkerLost(words)

    def _worker(self) -> subprocess.Popen[bytes]:
        """This thread's process; a new one if there is none or it has ended."""
        worker = getattr(self._mine, "worker", None)
        if worker is not None and worker.poll() is None:
            return worker
        with self._lock:
            if self._over:
                raise WorkerLost("the tasks that were left have been given up")
            if worker is not None:
                self._workers.remove(worker)
                _close(worker)
            self._mine.worker = _start()
            self._workers.append(self._mine.worker)
            return self._mine.worker


def _start() -> subprocess.Popen[bytes]:
    """A fresh process: a forked one would inherit threads that do not run in it."""
    options = [f"-W{option}" for option in sys.warnoptions]
    worker = subprocess.Popen(
        [sys.executable, "-P", *options, str(WORKER_FILE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **SINGLE_THREAD_SETTINGS},
        start_new_session=True,  # Ctrl-C reaches all of a terminal's; this is left to the parent
    )
    assert worker.stdin is not None
    with suppress(OSError):  # it has ended, which its first task shows
        pickle.dump(sys.path, worker.stdin)  # it must not find other modules
    return worker


def _close(worker: subprocess.Popen[bytes]) -> None:
    for pipe in (worker.stdin, worker.stdout):
        with suppress(OSError):  # what was still to be sent
            assert pipe is not None
            pipe.close()
    worker.wait()
