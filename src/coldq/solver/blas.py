"""BLAS on one thread, where matrices are neither tiny nor large.

A product of two matrices of 100 by 100 takes BLAS a tenth of a millisecond, on one thread or on
several. But several wait for each other, and on cores that are busy with other work each wait is
as long as that work's turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

# Numbers of the largest matrix that is given, or that vectors may make: with fewer BLAS takes one
# thread anyway, with more several pay.
SMALL, LARGE = 2_000, 1_000_000

_local = threading.local()


@cache
def _libraries() -> Any:
    """NumPy's BLAS and SciPy's, which need not be the same."""
    import scipy.linalg  # noqa: F401 (brings its BLAS along)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def size_of(part: Any) -> int:
    """How many numbers a matrix has; of a vector, what a system of as many unknowns has, up to what
    is large: rows may be sparse, or functions. 0 of anything else."""
    if not isinstance(part, np.ndarray):
        return 0
    return part.size if part.ndim > 1 else max(part.size, min(part.size**2, LARGE))


def on_one_thread(solve: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Let a solver of one instance, given first as a tuple of arrays, run on one thread of BLAS."""

    @wraps(solve)
    def alone(*given: Given.args, **named: Given.kwargs) -> Answer:
        instance: Any = given[0]
        sizes = map(size_of, instance)
        inside = getattr(_local, "inside", False)
        if inside or not SMALL <= max(sizes, default=0) <= LARGE:
            return solve(*given, **named)
        _local.inside = True
        try:
            with _libraries().limit(limits=1):
                return solve(*given, **named)
        finally:
            _local.inside = False

    return alone
