"""Compile kernels ahead of their first use, for images and services."""

from __future__ import annotations

from coldq.compiled import Kernel


def warmup(*, everything: bool = True) -> None:
    """Compile the kernels, or load them from the cache.

    Parameters
    ----------
    everything
        False for only those that affine rows and capacities on a box need.

    >>> import coldq
    >>> coldq.warmup()
    """
    for kernel in kernels(everything):
        kernel()


def kernels(everything: bool = True) -> list[Kernel]:
    """All kernels, or those of affine rows and capacities on a box."""
    from coldq import _tuning_kernels, contractions
    from coldq.step import (
        extended_kernels,
        interior_point_kernels,
        large_kernels,
        last_resort_kernels,
        max_affine_kernels,
    )
    from coldq.step import kernels as step

    found = [contraction.build for contraction in contractions.ALL]
    found += [step.affine_step, step.capacity_step]
    if everything:
        modules = (
            step, extended_kernels, max_affine_kernels, large_kernels, interior_point_kernels,
            last_resort_kernels, _tuning_kernels,
        )  # fmt: skip
        found += [k for m in modules for k in vars(m).values() if isinstance(k, Kernel)]
    return list(dict.fromkeys(found))
