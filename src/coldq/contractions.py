"""Sums over the core axes, and the queue, computed in one order whatever the batch.

BLAS, ``@``, ``einsum`` and ``sum(axis)`` may round one instance differently from the same instance
inside a batch. These generalised ufuncs run the same scalar loop for both, so a seed run alone and
a seed run among a thousand give the same bits.
"""

from __future__ import annotations

from typing import Any

from coldq._compile import build_once, gufunc
from coldq._values import Array
from coldq.errors import InvalidInput


class Contraction:
    """A generalised ufunc that is compiled, or loaded from the cache, on its first call."""

    def __init__(self, name: str, doc: str) -> None:
        self.name, self.__doc__ = name, doc
        self.build = build_once(self._build)
        self.kernel = lambda *arrays: self.build()(*arrays)

    def _build(self) -> Any:
        from coldq import _contraction_kernels as kernels

        signature, layout = kernels.SIGNATURES[self.name]
        self.kernel = gufunc([signature], layout)(getattr(kernels, self.name)).ufunc
        return self.kernel

    def __call__(self, *arrays: Array) -> Array:
        try:
            return self.kernel(*arrays)
        except ValueError:
            shapes = " and ".join(str(getattr(array, "shape", ())) for array in arrays)
            raise InvalidInput(f"arrays of shapes {shapes} do not fit together") from None


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

ALL = (
    dot,
    matvec,
    vecmat,
    affine_value,
    least_squares_gradient,
    log_capacity,
    bounded_queue,
    implied,
    mix,
    into_ball,
    hedge,
    weighted_mean,
)
