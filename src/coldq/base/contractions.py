"""Sums over the core axes, and the queue, computed in one order whatever the batch.

BLAS, ``@``, ``einsum`` and ``sum(axis)`` may round one instance differently from the same instance
inside a batch. These add up in the same order in both, so a seed run alone and a seed run among a
thousand give the same bits: term i goes to the partial sum i mod 8, and these are joined as a tree.
Products are never fused with sums, so that every processor gives these bits too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import coldq._native as native
from coldq.base.arrays import Array
from coldq.base.errors import InvalidInput


class Contraction:
    """A native function of whatever is an array of real numbers."""

    def __init__(self, name: str, doc: str) -> None:
        self.native = getattr(native, name)
        self.name, self.__doc__ = name, doc

    def __call__(self, *arrays: Any) -> Any:
        try:
            return self.native(*arrays)
        except TypeError:  # of another kind, or not as the core wants it in memory
            sound: list[Any] = [None if a is None else self._sound(a) for a in arrays]
        try:
            return self.native(*sound)
        except TypeError:
            shapes = " and ".join(str(np.shape(array)) for array in sound)
            raise InvalidInput(f"arrays of shapes {shapes} do not fit together") from None

    def _sound(self, array: Any) -> Array:
        given = np.asarray(array)
        if given.dtype.kind not in "fiub":
            raise InvalidInput(f"{self.name} takes real numbers, but was given {given.dtype}")
        return np.require(given, np.float64, ["C", "A"])


dot = Contraction("dot", "``sum_i a_i b_i`` over the last axis.")
matvec = Contraction("matvec", "``A x``.")
vecmat = Contraction("vecmat", "``A' v``.")
affine_value = Contraction("affine_value", "``A x - b`` of (A, x, b).")
least_squares_gradient = Contraction("least_squares_gradient", "``H'(H x - y)`` of (H, x, y).")
log_capacity = Contraction(
    "log_capacity", "``sum_i scale_i log(1 + rate_i x_i)`` of (scale, rate, x)."
)
bounded_queue = Contraction(
    "bounded_queue", "``max{(1 - eta) Q + gain [g]_+, floor}`` of (Q, g, gain, eta, floor)."
)
least_on_blocks = Contraction(
    "least_on_blocks",
    "The least ``a x`` over blocks with sums, of (a, lower, upper, start, total, kind).",
)
implied = Contraction(
    "implied",
    "1 where ``a x <= b`` follows from one of the rows ``A x <= B`` on a box, else 0, of "
    "(a, b, A, B, lower, upper); 0 in doubt, that is within rounding.",
)
mix = Contraction("mix", "``sum_j W_ij x_j`` of (W, x): one weighted mean of points a row of W.")
into_ball = Contraction("into_ball", "The point nearest to x of a ball, of (x, center, radius).")
hedge = Contraction(
    "hedge",
    "``log w - kappa <gradient, points - played>``, less its largest entry, of the five.",
)
weighted_mean = Contraction(
    "weighted_mean", "The mean of points (m, p) under weights given by their logarithms (m)."
)
