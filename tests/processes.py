"""Start Python as a user would, and hear when it listens to signals: no wait is for a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# A limit that only ends what hangs for good: no machine is so slow.
HANGING = 3600.0

# Runs a module or a file as Python would, and prints a line whenever SIGTERM gets a handler.
LISTENS = """
import runpy, signal, sys
usual = signal.signal
def told(number, handler):
    before = usual(number, handler)
    if number == signal.SIGTERM and callable(handler):
        print("listening", flush=True)
    return before
signal.signal = told
kind, name, *sys.argv[1:] = sys.argv[1:]
sys.argv[0] = name
(runpy.run_path if kind == "path" else runpy.run_module)(name, run_name="__main__", **(
    {} if kind == "path" else {"alter_sys": True}))
"""


def _hear_interrupts() -> None:  # a shell's background jobs are started deaf to them
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def started(*command: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Python with these arguments; whatever happens it does not outlive the block."""
    with subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **environment}, preexec_fn=_hear_interrupts,
    ) as running:  # fmt: skip
        try:
            yield running
        finally:
            running.kill()


def read_line(running: subprocess.Popen[str], words: str) -> str:
    """Read up to a line with these words, and return it."""
    assert running.stdout is not None and running.stderr is not None
    for line in running.stdout:
        if words in line:
            return line
    raise AssertionError(f"it ended before {words!r}: {running.stderr.read()}")


def wait_for(happened: Callable[[], object], running: subprocess.Popen[str]) -> None:
    """Wait until something has happened, as long as the process runs."""
    while not happened():
        assert running.poll() is None
        time.sleep(0.02)


def end(running: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str, str]:
    """Send the signal; the status and what was printed, once every process has let go of both.

    Workers inherit the standard error, so that it is open as long as one of them lives.
    """
    running.send_signal(number)
    out, errors = running.communicate(timeout=HANGING)
    return running.returncode, out, errors
