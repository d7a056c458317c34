"""The residuals of steps, judged, and told to whoever listens: a state has no room for them."""

from __future__ import annotations

import math
from threading import get_ident
from typing import Any

import numpy as np

from coldq.solver.answer import TOLERANCE, Step, raise_if_failed

listening: dict[int, list[Any]] = {}  # by thread; empty nearly always, which costs a step nothing


class Residuals:
    """The residuals of the steps that this thread's learners take within the block.

    A learner's state has no room for them. `heard` has one entry for each step, of a batch an array
    or the largest; `worst` is the largest of all, NaN if there was none.

    >>> import coldq
    >>> from coldq.slot.step import Residuals
    >>> learner = coldq.COLDQ(coldq.Box(0.0, 1.0, dim=2), horizon=10)
    >>> with Residuals() as told:
    ...     state = learner.update(learner.init(0), coldq.Feedback(coldq.Linear([1.0, 2.0]), None))
    >>> told.worst <= 1e-9
    True
    """

    __slots__ = ("_before", "_thread", "heard")

    def __enter__(self) -> Residuals:
        self._thread = thread = get_ident()
        self._before = listening.get(thread)
        self.heard: list[Any] = []
        listening[thread] = self.heard
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is None:
            del listening[self._thread]
        else:
            listening[self._thread] = self._before

    @property
    def worst(self) -> float:
        """The largest residual."""
        return worst_of(self.heard)


def worst_of(residuals: list[Any]) -> float:
    """The largest of some residuals, NaN if there is none."""
    return max((float(np.max(each, initial=0.0)) for each in residuals), default=math.nan)


def accepted(
    answer: Step, tolerance: float = TOLERANCE, infeasible: np.ndarray | None = None
) -> Step:
    """An answer whose residuals are within the tolerance; of others see `raise_if_failed`.

    Unless `infeasible` is given, an infinite residual says that enforced rows have no common point.
    """
    residual = np.asarray(answer.residual)
    if not residual.max(initial=0.0) <= tolerance:  # true for NaN as well
        raise_if_failed(answer, np.isinf(residual) if infeasible is None else infeasible, tolerance)
    return answer


def tell(residual: Any) -> None:
    heard = listening.get(get_ident())
    if heard is not None:
        heard.append(residual)
