"""Compile kernels ahead of their first use, for images and services."""

from __future__ import annotations


def warmup(*, everything: bool = True) -> None:
    """Compile the kernels, or load them from the cache.

    Parameters
    ----------
    everything
        False for only those that affine rows and capacities on a box need.

    >>> import coldq
    >>> coldq.warmup()
    """
    from coldq import contractions
    from coldq.step import interior_point_kernels, kernels, large_kernels, max_affine_kernels

    for contraction in contractions.ALL:
        contraction.build()
    builds = [kernels.affine_single, kernels.affine_step, kernels.capacity_step]
    if everything:
        builds += [
            kernels.affine_check,
            kernels.ball_step,
            kernels.curved_step,
            kernels.dual_search,
            max_affine_kernels.from_inside,
            max_affine_kernels.pieces_residual,
            *large_kernels.KERNELS,
            *interior_point_kernels.KERNELS,
        ]
    for build in builds:
        build()
