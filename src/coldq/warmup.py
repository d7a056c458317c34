"""Compile kernels ahead of their first use, for images and services."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

from coldq.compiled import Kernel, cache
from coldq.compiled.kernel import no_collection


def warmup() -> None:
    """Compile the kernels, or load them from the cache.

    Affine rows on boxes need none.

    >>> import coldq
    >>> coldq.warmup()
    """
    build(kernels())


def build(wanted: list[Kernel], done: Callable[[str], object] = lambda name: None) -> None:
    """Build kernels one after the other, and say so of each."""
    with no_collection():
        for kernel in wanted:
            kernel()
            done(kernel.name)


def is_kept(kernel: Kernel) -> bool:
    """Whether a cache has a file of the kernel's code, so that it need not be compiled."""
    file = cache.file_name(kernel)
    return any((place / file).is_file() for place in cache.folders())


def kernels() -> list[Kernel]:
    """All kernels."""
    from coldq.solver import kernels as solver

    names = [name for _, name, _ in iter_modules(solver.__path__, f"{solver.__name__}.")]
    found = [value for name in names for value in vars(import_module(name)).values()]
    return list(dict.fromkeys(value for value in found if isinstance(value, Kernel)))
