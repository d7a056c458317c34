"""Calling a user's own function at one point at a time, and checking what it returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coldq.base.arrays import Array, as_array
from coldq.base.errors import InvalidInput


def call_at(
    name: str, function: Callable[[Array], Any], x: Array, core: tuple[int, ...], vectorised: bool
) -> Array:
    """``function`` at every point of `x`; each answer must be finite and of shape `core`.

    A function that was not declared vectorised gets points of shape ``(p,)``, each its own copy.
    """
    batch = x.shape[:-1]
    if vectorised:
        return _checked(name, function(x.copy()), batch + core, x)
    out = np.empty(batch + core)
    for index in np.ndindex(*batch):
        out[index] = _checked(name, function(x[index].copy()), core, x[index])
    return out


def _checked(name: str, answer: Any, shape: tuple[int, ...], x: Array) -> Array:
    array = as_array(f"what {name} returns", answer)
    if array.dtype.kind not in "fiub":
        raise InvalidInput(
            f"{name} must return real numbers, but returned {answer!r:.200} at x = {x}"
        )
    array = array.astype(np.float64)
    if array.shape != shape:
        raise InvalidInput(
            f"{name} must return shape {shape}, but returned {array.shape} at x = {x}"
        )
    if not np.isfinite(array).all():
        raise InvalidInput(f"{name} must return finite numbers, but returned {array} at x = {x}")
    return array
