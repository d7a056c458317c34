"""Sums over the core axes, in one order whatever the batch.

BLAS, ``@``, ``einsum`` and ``sum(axis)`` may round one instance differently from the same instance
inside a batch. These generalised ufuncs run the same scalar loop for both, so a seed run alone and
a seed run among a thousand give the same bits.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from coldq._values import Array
from coldq.errors import InvalidInput


@cache
def _kernels() -> Any:
    from coldq import _contraction_kernels

    return _contraction_kernels


def _run(kernel: Any, *arrays: Array) -> Array:
    try:
        return kernel.ufunc(*arrays)
    except ValueError:
        shapes = " and ".join(str(array.shape) for array in arrays)
        raise InvalidInput(f"arrays of shapes {shapes} do not fit together") from None


def dot(a: Array, b: Array) -> Array:
    """``sum_i a_i b_i`` over the last axis."""
    return _run(_kernels().dot, a, b)


def matvec(A: Array, x: Array) -> Array:
    """``A x``."""
    return _run(_kernels().matvec, A, x)


def affine_value(A: Array, x: Array, b: Array) -> Array:
    """``A x - b``."""
    return _run(_kernels().affine_value, A, x, b)


def least_squares_gradient(H: Array, x: Array, y: Array) -> Array:
    """``H'(H x - y)``."""
    return _run(_kernels().least_squares_gradient, H, x, y)


def vecmat(A: Array, v: Array) -> Array:
    """``A' v``."""
    return _run(_kernels().vecmat, A, v)


def log_capacity(scale: Array, rate: Array, x: Array) -> Array:
    """``sum_i scale_i log(1 + rate_i x_i)``."""
    return _run(_kernels().log_capacity, scale, rate, x)
