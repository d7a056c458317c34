"""Compile a kernel as a NumPy generalised ufunc, cached on disk where that is possible."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from coldq.errors import warn

_building = threading.RLock()


@cache
def _warn_uncached() -> None:
    warn(
        "coldq found no writable folder for its compiled kernels, so they are compiled anew in "
        "every process (some seconds). Set NUMBA_CACHE_DIR to a writable folder to keep them.",
        RuntimeWarning,
    )


def gufunc(signatures: list[Any], layout: str) -> Callable[[Any], Any]:
    """Decorate a function as a serial generalised ufunc that releases the GIL.

    Core arrays are declared contiguous (``float64[::1]``), which Numba takes at its word: callers
    pass contiguous core axes. Leading axes broadcast with any strides.
    """
    from numba import guvectorize

    def compile_kernel(kernel: Any) -> Any:
        return _cached(
            lambda **cache: guvectorize(signatures, layout, nopython=True, **cache)(kernel)
        )

    return compile_kernel


def function(signature: Any) -> Callable[[Any], Any]:
    """Decorate a function as a compiled one for exactly this signature.

    What is returned skips Numba's inspection of the arguments: they must be what it says.
    """
    from numba import njit

    def compile_kernel(kernel: Any) -> Any:
        compiled = _cached(lambda **cache: njit(signature, error_model="numpy", **cache)(kernel))
        return compiled.get_overload(signature)

    return compile_kernel


def _cached(compile_with: Callable[..., Any]) -> Any:
    try:
        return compile_with(cache=True)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        _warn_uncached()
        return compile_with()


def build_once(build: Callable[[], Any]) -> Callable[[], Any]:
    """A function that builds a kernel on its first call, whichever thread makes it."""
    built: list[Any] = []

    @wraps(build)
    def get() -> Any:
        if not built:
            with _building:
                if not built:
                    built.append(build())
        return built[0]

    return get
