"""Functions of many slots, checked once as a whole and handed out slot by slot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coldq.base.arrays import Array
from coldq.slot.constraints import Affine, LogCapacity, Stacked
from coldq.slot.feedback import Feedback
from coldq.slot.losses import LeastSquares, Linear, Quadratic

CORES = {
    Linear: {"c": 1}, LeastSquares: {"H": 2, "y": 1}, Quadratic: {"P": 2, "q": 1, "r": 0},
    Affine: {"A": 2, "b": 1}, LogCapacity: {"demand": 0, "scale": 1, "rate": 1},
}  # fmt: skip


def slicer(whole: Any) -> Callable[[int], Any]:
    """A function that gives the function of one slot, whose axis is the first of a whole's arrays.

    What has no axis beside its own all slots share. Parts of what is sound are not checked again.
    """
    if whole is None:
        return lambda k: None
    if isinstance(whole, Stacked):
        parts = [slicer(part) for part in whole.parts]
        return lambda k: Stacked(*(part(k) for part in parts))
    kind = type(whole)
    return slices(kind, **{name: getattr(whole, name) for name in CORES[kind]})


def slices(kind: type, **arrays: Array) -> Callable[[int], Any]:
    """The same of read-only arrays that are known to be sound."""
    cores = CORES[kind]
    moving = [(name, array) for name, array in arrays.items() if array.ndim > cores[name]]
    shared = {name: array for name, array in arrays.items() if array.ndim == cores[name]}

    def of(k: int) -> Any:
        made = object.__new__(kind)
        own = made.__dict__
        own.update(shared)
        for name, array in moving:
            own[name] = array[k, ...]
        return made

    return of


class WholeStream:
    """The slots of functions that are all known at the start."""

    def __init__(self, loss: Any, constraint: Any) -> None:
        self.loss, self.constraint = loss, constraint
        self._loss, self._constraint = slicer(loss), slicer(constraint)

    def reveal(self, t: int, x: Any) -> Feedback:
        """The functions of slot t, whatever was played."""
        return Feedback(self._loss(t - 1), self._constraint(t - 1), slot=t)

    def reveal_block(self, t: int, count: int) -> list[Feedback]:
        """Those of as many slots from t on."""
        return [self.reveal(slot, None) for slot in range(t, t + count)]
