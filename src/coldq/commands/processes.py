"""Work shared among processes, one for each core."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from coldq.errors import Error
from coldq.solver.threads import thread_count


@contextmanager
def several_processes() -> Iterator[Callable[..., Iterable[Any]]]:
    """What does as ``map`` does, in as many processes as there are cores; ``map`` itself on one.

    Results come in order, and all work is begun at once. Left by an exception, the work ends.
    """
    count = thread_count()
    if count < 2:
        yield map
        return
    # Fresh processes, each with a pipe and a thread that waits for it: a copy of this one would
    # have the locks of its threads, and no threads.
    spawning = multiprocessing.get_context("spawn")
    idle: SimpleQueue[Any] = SimpleQueue()
    processes = []
    for _ in range(count):
        ours, theirs = spawning.Pipe()
        processes.append(spawning.Process(target=_work, args=(theirs,), daemon=True))
        processes[-1].start()
        theirs.close()
        idle.put(ours)
    waiting = ThreadPoolExecutor(count)

    def done_elsewhere(function: Callable[[Any], Any], task: Any) -> Any:
        pipe = idle.get()
        try:
            pipe.send((function, task))
            found, error = pipe.recv()
        except (EOFError, OSError):
            raise Error("a process that shared the work has died: was it out of memory?") from None
        finally:
            idle.put(pipe)
        if error is not None:
            raise error
        return found

    def each(function: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterable[Any]:
        return waiting.map(lambda task: done_elsewhere(function, task), tasks)

    try:
        yield each
    finally:
        for process in processes:
            process.terminate()
        waiting.shutdown(wait=False, cancel_futures=True)


def _work(pipe: Any) -> None:
    """Do what is asked for until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the other's to hear
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            function, task = pipe.recv()
        except EOFError:
            return
        try:
            answer = function(task), None
        except Exception as error:
            answer = None, error
        pipe.send(answer)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
