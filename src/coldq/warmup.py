"""Compile every kernel ahead of its first use, for images and services."""

from __future__ import annotations


def warmup() -> None:
    """Compile all kernels, or load them from the cache.

    >>> import coldq
    >>> coldq.warmup()
    """
    from coldq import contractions
    from coldq.step import interior_kernels, kernels, sparse_kernels

    for contraction in contractions.ALL:
        contraction.build()
    for build in (
        kernels.affine_single,
        kernels.affine_step,
        kernels.affine_check,
        kernels.capacity_step,
        kernels.ball_step,
        kernels.curved_step,
        kernels.dual_search,
        interior_kernels.from_inside,
        sparse_kernels.chosen_gram,
        sparse_kernels.residual_terms,
    ):
        build()
