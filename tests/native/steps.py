"""Arguments of the native steps and whole updates."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from coldq import _native

NAMES = ("affine_step", "working_set_step", "queue_step", "experts_step")


def cores(name: str) -> list[list[str]]:
    """The letters of each input's and each output's core axes."""
    sides = getattr(_native, name).__doc__.split("->")
    return [[re.sub(r"\W", "", core) for core in re.findall(r"\((.*?)\)", s)] for s in sides]


INPUTS = {name: cores(name)[0] for name in NAMES}
OUTPUTS = {name: cores(name)[1] for name in NAMES}
# Where a box, numbers that are positive, and a loss (a vector, a matrix, its levels) are.
BOX = {"affine_step": 8, "working_set_step": 8, "queue_step": 15, "experts_step": 17}
POSITIVE = {
    "affine_step": (2, 4), "working_set_step": (2, 4), "queue_step": (8, 9, 10, 12, 13),
    "experts_step": (1, 2, 5, 12, 14, 15),
}  # fmt: skip
LOSS = {"queue_step": 2, "experts_step": 7}


def shape(core: str, sizes: dict[str, int], batch: tuple[int, ...] = ()) -> tuple[int, ...]:
    return (*batch, *(sizes[axis] for axis in core))


def drawn(
    name: str, rng: np.random.Generator, batch: tuple[int, ...] = (), **sizes: int
) -> list[Any]:
    """Arguments that make sense: a box, positive weights, a loss of least squares."""
    sizes = {"m": 4, "e": 3, **sizes}
    given: list[Any] = [rng.normal(size=shape(core, sizes, batch)) for core in INPUTS[name]]
    for which in POSITIVE[name]:
        given[which] = np.asarray(np.abs(given[which]) + 0.1)
    box = BOX[name]
    given[box], given[box + 1] = np.full(sizes["p"], -1.0), np.full(sizes["p"], 1.0)
    if name in LOSS:
        given[LOSS[name]] = None
        given[box - 1] = np.asarray(rng.integers(0, 3, batch), float)  # when the queue moves
    else:
        given[3], given[5], given[10] = 0.0 * given[3], 0.0 * given[5], np.array(np.inf)
    return given
