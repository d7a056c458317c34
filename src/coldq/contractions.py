"""Sums over the core axes, in one order whatever the batch.

BLAS, ``@``, ``einsum`` and ``sum(axis)`` may round one instance differently from the same instance
inside a batch. These generalised ufuncs run the same scalar loop for both, so a seed run alone and
a seed run among a thousand give the same bits.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from coldq._values import Array


@cache
def _kernels() -> Any:
    from coldq import _contraction_kernels

    return _contraction_kernels


def dot(a: Array, b: Array) -> Array:
    """``sum_i a_i b_i`` over the last axis."""
    return _kernels().dot.ufunc(a, b)


def matvec(A: Array, x: Array) -> Array:
    """``A x``."""
    return _kernels().matvec.ufunc(A, x)


def vecmat(A: Array, v: Array) -> Array:
    """``A' v``."""
    return _kernels().vecmat.ufunc(A, v)


def log_capacity(scale: Array, rate: Array, x: Array) -> Array:
    """``sum_i scale_i log(1 + rate_i x_i)``."""
    return _kernels().log_capacity.ufunc(scale, rate, x)
