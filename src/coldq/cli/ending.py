"""How a command ends: by a signal in one line, or by an error with a sentence."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from types import FrameType
from typing import Any, NoReturn

from coldq.base.errors import Error, IgnoredFile, UnlikelyUnits

SIGNAL_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}
NO_SPACE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # disk, quota, file size
GRACE_SECONDS = 0.6  # to leave in order
SHOW_CURSOR = "\x1b[?25h"  # a progress bar hides it


class Stopped(BaseException):
    """A signal asked us to end; not an Exception, so that nothing takes it for a failure."""


@contextmanager
def command(kept: str = "no file is half written") -> Iterator[None]:
    """A whole command: `stoppable`, and an error of ours is a sentence, not a traceback.

    What the terminal's encoding does not have is printed as ``?``.

    >>> import coldq
    >>> from coldq.cli import command
    >>> with command():
    ...     print("done")
    done
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    with stoppable(kept), _notes():
        try:
            yield
            sys.stdout.flush()
        except Error as error:
            _fail(str(error))
        except ImportError as error:
            if error.name != "coldq._native":  # the core, which this processor does not execute
                raise
            _fail(str(error))
        except OSError as error:
            if error.errno not in (*NO_SPACE_ERRORS, errno.EPIPE):
                raise
            # What is still to be printed fails as well, and nobody would catch that.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            if error.errno == errno.EPIPE:  # nobody reads on, as after | head
                raise SystemExit(1) from None
            _fail(f"the output could not be written: {error.strerror}")


@contextmanager
def _notes() -> Iterator[None]:
    """What is said of a user's files is a sentence, without a line of code."""
    usual = warnings.formatwarning

    def formatted(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> str:
        if issubclass(category, IgnoredFile | UnlikelyUnits):
            return f"coldq: {message}\n"
        return usual(message, category, *where, **more)

    warnings.formatwarning = formatted
    try:
        yield
    finally:
        warnings.formatwarning = usual


def _fail(sentence: str) -> NoReturn:
    print(f"coldq: {sentence}", file=sys.stderr)
    raise SystemExit(1) from None


@contextmanager
def stoppable(kept: str = "no file is half written", status: int | None = None) -> Iterator[None]:
    """End the process on Ctrl-C or SIGTERM, and say in one line what was `kept`.

    The block is left by an exception, so that what it has begun is put away; where that takes
    longer than `GRACE_SECONDS`, the process ends all the same. The status is 128 and the signal's
    number, 130 or 143, unless another one is given: 0 for what has no other end than a signal. A
    signal that the process was started to ignore stays ignored. Outside the main thread nothing is
    done: signals are not heard there.

    >>> from coldq.cli import stoppable
    >>> with stoppable("nothing was begun"):
    ...     print("no signal, no difference")
    no signal, no difference
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stop = _Stop(kept, status)
    before = {number: signal.getsignal(number) for number in SIGNAL_NAMES}
    heard = [number for number in SIGNAL_NAMES if before[number] != signal.SIG_IGN]
    complain = sys.unraisablehook
    try:
        sys.unraisablehook = lambda lost: None if stop.number else complain(lost)
        for number in heard:
            signal.signal(number, stop.hear)
        yield
    finally:
        if stop.number:  # whatever became of `Stopped` on its way here
            stop.end()
        sys.unraisablehook = complain
        for number in heard:
            signal.signal(number, before[number])


class _Stop:
    """What a signal does, and the end of the process."""

    def __init__(self, kept: str, status: int | None) -> None:
        self.kept, self.status = kept, status
        self.number = 0
        self.unsaid = threading.Lock()

    def hear(self, number: int, frame: FrameType | None) -> NoReturn:
        """Leave the block; code that C calls swallows this, so that it is also written down."""
        for each in SIGNAL_NAMES:  # a second one must not disturb what the first one began
            signal.signal(each, signal.SIG_IGN)
        self.number = number
        late = threading.Timer(GRACE_SECONDS, self.end)
        late.daemon = True
        late.start()
        raise Stopped

    def end(self) -> NoReturn:
        """Say what was kept, and end at once."""
        if self.unsaid.acquire(blocking=False):
            name = SIGNAL_NAMES[signal.Signals(self.number)]
            line = f"{SHOW_CURSOR if os.isatty(2) else ''}coldq: stopped by {name}; {self.kept}\n"
            with suppress(OSError, ValueError):  # nobody may be there to read it
                os.write(2, line.encode())
                sys.stdout.flush()
        os._exit(128 + self.number if self.status is None else self.status)
