"""Functions of many slots, checked once as a whole and handed out slot by slot."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.problems.problem import Constants, Problem
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
    """A function that gives the function of one slot from arrays that are known to be sound."""
    cores = CORES[kind]
    moving = [(name, array) for name, array in arrays.items() if array.ndim > cores[name]]
    shared = {name: array for name, array in arrays.items() if array.ndim == cores[name]}

    def of(k: int) -> Any:
        function = object.__new__(kind)
        attributes = function.__dict__
        attributes.update(shared)
        for name, array in moving:
            attributes[name] = array[k, ...]
        return function

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
        """The functions of as many slots, from t on."""
        return [self.reveal(slot, None) for slot in range(t, t + count)]


class WholeProblem(Problem):
    """A problem of which all slots are known at the start, and which shows every seed the same.

    Its `loss` and `constraint` hold all slots, as their leading axis.
    """

    loss: Any
    constraint: Any
    seeds_differ = False

    @property
    def constants(self) -> Constants:
        """R, D, G and the Lipschitz constant of these functions; `note` says which are bounds."""
        X, g, note = self.domain, self.constraint, dict[str, str]()
        if isinstance(self.loss, Linear):
            D = np.sqrt(np.square(self.loss.c).sum(axis=-1).max())
        else:
            slopes, exact = self.loss.gradient_bound(X)
            D = slopes.max()
            if not exact:
                note["gradient_bound"] = "an upper bound"
        if not X.diameter_exact:
            note["diameter"] = "an upper bound"
        heights, exact = (np.zeros(1), True) if g is None else g.largest(X)
        if not exact:
            note["constraint_bound"] = "an upper bound"
        return Constants(
            diameter=float(X.diameter),
            gradient_bound=float(D),
            constraint_bound=float(heights.max()),
            constraint_lipschitz=0.0 if g is None else steepest(g, X),
            note=note,
        )

    def start(self, seeds: Iterable[int]) -> WholeStream:
        """One stream; it is the same for all seeds."""
        return WholeStream(self.loss, self.constraint)


def steepest(g: Any, domain: Any) -> float:
    """The largest norm of a row's gradient on a domain."""
    if isinstance(g, Stacked):
        return max(steepest(part, domain) for part in g.parts)
    if isinstance(g, LogCapacity):
        slope = g.scale * g.rate / (1.0 + g.rate * domain.box.lower)
        return float(np.sqrt(np.square(slope).sum()))
    return float(np.sqrt(np.square(g.A).sum(axis=-1)).max())
