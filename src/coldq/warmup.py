"""Compile every kernel ahead of its first use, for images and services."""

from __future__ import annotations


def warmup() -> None:
    """Compile all kernels, or load them from the cache.

    >>> import coldq
    >>> coldq.warmup()
    """
    from coldq import _contraction_kernels
    from coldq.step import kernels

    assert _contraction_kernels.dot is not None
    for build in (kernels.affine_step, kernels.affine_check, kernels.capacity_step):
        build()
