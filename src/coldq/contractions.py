"""Sums over the core axes, and the queue, computed in one order whatever the batch.

BLAS, ``@``, ``einsum`` and ``sum(axis)`` may round one instance differently from the same instance
inside a batch. These kernels run the same scalar loop for both, so a seed run alone and a seed run
among a thousand give the same bits.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy import empty

from coldq import _contraction_kernels as kernels
from coldq._values import Array
from coldq.errors import InvalidInput

MOST_SHAPES = 1000  # of arguments that are remembered


class Contraction:
    """A kernel over a batch with one output, compiled or found in the cache on its first call."""

    def __init__(self, name: str, doc: str) -> None:
        self.build = getattr(kernels, name)
        self.name, self.__doc__ = name, doc
        inputs, output = (
            [operand.replace("*", "").split(",") if operand else [] for operand in found]
            for found in (re.findall(r"\((.*?)\)", side) for side in self.build.layout.split("->"))
        )
        self.inputs, (self.output,) = inputs, output
        self.shapes: dict[tuple[tuple[int, ...], ...], tuple[int, ...]] = {}
        self.kernel: Any = self._first

    def _first(self, *arrays: Any) -> Any:
        self.kernel = self.build()
        return self.kernel(*arrays)

    def __call__(self, *arrays: Any) -> Any:
        try:
            shapes = tuple([array.shape for array in arrays])
            out = empty(self.shapes[shapes])
            self.kernel(*arrays, out)
        except (AttributeError, KeyError, TypeError):
            out = self._slowly(arrays)
        return out if out.ndim else out[()]

    def _slowly(self, arrays: tuple[Any, ...]) -> Array:
        """The same for arguments of new shapes, and for numbers and arrays of other kinds."""
        sound = [self._sound(array) for array in arrays]
        try:
            shape = self._shape(sound)
            out = empty(shape)
            self.kernel(*sound, out)
        except (KeyError, TypeError, ValueError):
            shapes = " and ".join(str(np.shape(array)) for array in sound)
            raise InvalidInput(f"arrays of shapes {shapes} do not fit together") from None
        if len(self.shapes) >= MOST_SHAPES:
            self.shapes.clear()
        self.shapes[tuple([array.shape for array in sound])] = shape
        return out

    def _sound(self, array: Any) -> Array:
        given = np.asarray(array)
        if given.dtype.kind not in "fiub":
            raise InvalidInput(f"{self.name} takes real numbers, but was given {given.dtype}")
        return np.asarray(given, np.float64, order="C")

    def _shape(self, arrays: list[Array]) -> tuple[int, ...]:
        """The shape of the output."""
        lengths, batches = dict[str, int](), list[tuple[int, ...]]()
        for array, axes in zip(arrays, self.inputs, strict=True):
            start = array.ndim - len(axes)
            batches.append(array.shape[:start])
            lengths.update(zip(axes, array.shape[start:], strict=True))
        return *np.broadcast_shapes(*batches), *(lengths[axis] for axis in self.output)


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
