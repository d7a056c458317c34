"""A process that answers the tasks of its parent, and ends when the parent does.

Run as a file, with the standard library alone: it listens before a task imports anything large.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import traceback
from queue import SimpleQueue


def serve() -> None:
    """Answer tasks from the standard input until it ends."""
    try:
        sys.path[:] = pickle.load(sys.stdin.buffer)
    except EOFError:  # the parent has gone already
        return
    # What a task prints must not stand among the answers.
    outward = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    given: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(given,), daemon=True).start()
    while True:
        answer = _answer(given.get())
        try:
            outward.write(answer)
            outward.flush()
        except OSError:
            os._exit(0)  # the parent has gone meanwhile


def _listen(given: SimpleQueue[bytes]) -> None:
    """Take tasks in; the end of the pipe is the end of the parent, and then of this process."""
    try:
        while True:
            given.put(pickle.load(sys.stdin.buffer))
    finally:
        os._exit(0)


def _answer(task: bytes) -> bytes:
    """A result and no error, or no result and an error, in words if it cannot be sent."""
    try:
        work, args, kwargs = pickle.loads(task)
        return pickle.dumps((work(*args, **kwargs), None))
    except Exception as error:
        error.add_note(f"In a worker process:\n{traceback.format_exc()}")
        try:
            sent = pickle.dumps((None, error))
            pickle.loads(sent)  # some exceptions can be sent and not be read
        except Exception:
            sent = pickle.dumps((None, f"{type(error).__name__}: {error}"))
        return sent


if __name__ == "__main__":
    serve()
