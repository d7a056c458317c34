"""What coldq raises, so that callers can tell its errors from everything else's."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from inspect import currentframe
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # --help needs no arrays
    import numpy as np

    from coldq.solver.answer import Step

_heard: ContextVar[list[str] | None] = ContextVar("_heard", default=None)


class Error(Exception):
    """The base of every error that coldq raises on purpose.

    >>> import coldq
    >>> try:
    ...     coldq.Box(1.0, 0.0, dim=2)
    ... except coldq.Error as error:
    ...     print(error)
    the domain is empty: lower = 1.0 is above upper = 0.0 at index (0,)
    """


class InvalidInput(Error, ValueError):
    """An argument cannot be used; nothing has changed.

    >>> import coldq
    >>> coldq.Linear([1.0, float("nan")])
    Traceback (most recent call last):
    ...
    coldq.InvalidInput: c must be finite, but is nan at index (1,)
    """


class WrongState(InvalidInput, AttributeError):
    """A learner was given a state that another kind of learner made.

    >>> import coldq
    >>> X = coldq.Box(0.0, 1.0, dim=1)
    >>> state = coldq.OGD(X, eta=0.1).init(0)
    >>> coldq.COLDQ(X, horizon=10).update(state, coldq.Feedback(coldq.Linear([1.0]), None))
    Traceback (most recent call last):
    ...
    coldq.WrongState: this state was made by OGD, but this is COLDQ
    """


class NotRevealed(Error):
    """A loss or constraint was asked for at a point where nothing is known about it.

    >>> import coldq
    >>> coldq.GradientAt(x=[0.0], gradient=[1.0]).gradient([2.0])
    Traceback (most recent call last):
    ...
    coldq.NotRevealed: the gradient of this loss is known only at x = [0.], ...
    """


class NotSaveable(Error):
    """A value holds a plain Python function, which cannot be written down.

    >>> import pickle, coldq
    >>> pickle.dumps(coldq.schedules.Custom(lambda t: t))
    Traceback (most recent call last):
    ...
    coldq.NotSaveable: a schedule that is a plain function cannot be saved; ...
    """


class NotWritten(Error, OSError):
    """A file could not be written; what was there before is unchanged.

    >>> import coldq
    >>> issubclass(coldq.NotWritten, coldq.Error)
    True
    """


class NotReadable(Error):
    """A file is damaged, or none of ours; it was left as it is, and nothing in it was executed.

    >>> import coldq
    >>> issubclass(coldq.NotReadable, coldq.Error)
    True
    """


class InUse(Error):
    """A file belongs to an agent that is still open, here or in another process.

    >>> import coldq
    >>> issubclass(coldq.InUse, coldq.Error)
    True
    """


class WorkerLost(Error):
    """A process that shares the work ended in the middle of it, or failed in a way of its own.

    >>> import coldq
    >>> issubclass(coldq.WorkerLost, coldq.Error)
    True
    """


class IgnoredFile(UserWarning):
    """A file lies where one of ours is expected, but is not whole or not ours; it was left out.

    >>> issubclass(IgnoredFile, UserWarning)
    True
    """


class FailedTasks(UserWarning):
    """Tasks of a sweep failed, so that its table has no rows of their runs.

    >>> issubclass(FailedTasks, UserWarning)
    True
    """


class PastHorizon(UserWarning):
    """A learner goes on beyond the horizon it was tuned for: its guarantee has ended.

    >>> issubclass(PastHorizon, UserWarning)
    True
    """


class WeakPrice(UserWarning):
    """The least price of a violation is small against the loss: constraints may be ignored.

    >>> issubclass(WeakPrice, UserWarning)
    True
    """


class SharedGradient(UserWarning):
    """Experts that want gradients at their own points got the one at the decision played.

    >>> issubclass(SharedGradient, UserWarning)
    True
    """


class UnknownLearner(UserWarning):
    """Arrays of a state do not say which learner saved them, so that nothing is compared.

    >>> issubclass(UnknownLearner, UserWarning)
    True
    """


class KeptAsText(UserWarning):
    """A learner or problem cannot be described, so that a trace's file has it as text only.

    >>> issubclass(KeptAsText, UserWarning)
    True
    """


class UndefinedRegret(UserWarning):
    """A slot has no feasible decision to compare with, so that the regret of its seed is NaN.

    >>> issubclass(UndefinedRegret, UserWarning)
    True
    """


class UnlikelyUnits(UserWarning):
    """A unit may be wrong: of a table's columns or rows one is a million times another.

    Or nearly all limits of a row are beyond what the bounds of the decisions allow, or one
    coordinate is 10,000 times as wide as another where a learner goes as far in both.

    >>> issubclass(UnlikelyUnits, UserWarning)
    True
    """


class Inexact(UserWarning):
    """A per-slot problem was solved to fewer digits than its method guarantees, but at least six.

    The best answer is taken, and `Step.residual` says what it is worth. Below six digits it is an
    error, :class:`StepFailed`.

    >>> import warnings, coldq
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", coldq.Inexact)  # whoever wants to stop all the same
    ...     step = coldq.penalised_step([0.0], [-1.0], 1.0, 0.0, None, coldq.Box(0.0, 9.0, dim=1))
    >>> float(step.residual)
    0.0
    """


class StepFailed(Error):
    """Some per-slot problems of a batch have no answer that passes its own check.

    `indices` names them within the batch, `step` carries all answers, the good ones included.

    >>> import coldq
    >>> issubclass(coldq.StepFailed, coldq.Error)
    True
    """

    def __init__(self, message: str, indices: list[tuple[int, ...]], step: Step | None) -> None:
        super().__init__(message)
        self.indices = indices
        self.step = step

    def __reduce__(self) -> tuple[Any, ...]:
        """An exception is pickled by its message alone if it does not say otherwise."""
        return type(self), (str(self), self.indices, self.step), vars(self)


class Infeasible(StepFailed):
    """Enforced rows (infinite weight) have no common point in the domain.

    >>> import coldq
    >>> hard = coldq.Affine([[1.0]], [-1.0])  # x <= -1, on [0, 1]
    >>> coldq.penalised_step([0.5], [0.0], 1.0, float("inf"), hard, coldq.Box(0.0, 1.0, dim=1))
    Traceback (most recent call last):
    ...
    coldq.Infeasible: the enforced rows have no common point in the domain
    """


# They are named as users import them: coldq.InvalidInput.
for _kind in list(vars().values()):
    if isinstance(_kind, type) and issubclass(_kind, Exception) and _kind.__module__ == __name__:
        _kind.__module__ = "coldq"


def installed(module: str, sentence: str) -> Any:
    """A library that only some need; `sentence` says so where it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        raise InvalidInput(sentence) from None


def warn(message: str, category: type[Warning]) -> None:
    """A warning that names the user's line: the nearest one outside the library."""
    level, frame = 1, currentframe()
    while frame is not None and _is_ours(frame):
        level, frame = level + 1, frame.f_back
    heard = _heard.get()
    if heard is not None:
        heard.append(message)
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def hearing() -> Generator[list[str]]:
    """The sentences of what is warned of in a block, and by no other thread or task meanwhile.

    They are warnings all the same. Python's own way to record these is one for all threads.
    """
    heard: list[str] = []
    before = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(before)


def _is_ours(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] == "coldq"


def name_indices(bad: np.ndarray) -> tuple[str, list[tuple[int, ...]]]:
    """Words for the places where `bad` is true, and the places; no words without a batch."""
    if bad.ndim == 0:
        return "", [()] * bool(bad)
    indices = [tuple(int(i) for i in index) for index in zip(*bad.nonzero(), strict=True)]
    shown = ", ".join(str(i[0] if len(i) == 1 else i) for i in indices[:8])
    more = f" and {len(indices) - 8} more" if len(indices) > 8 else ""
    return f" in instance{'s' if len(indices) > 1 else ''} {shown}{more} of the batch", indices
