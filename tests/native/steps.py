"""Arguments of the native steps and whole updates."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from coldq import _native

ROOTS = ("capacity_step", "ball_row_step", "diagonal_row_step", "ball_step")
NAMES = (
    "affine_step", "working_set_step", "queue_step", "experts_step", "least_violation",
    "margin_kept", *ROOTS,
)  # fmt: skip


def cores(name: str) -> list[list[str]]:
    """The letters of each input's and each output's core axes."""
    sides = getattr(_native, name).__doc__.split("->")
    return [[re.sub(r"\W", "", core) for core in re.findall(r"\((.*?)\)", s)] for s in sides]


INPUTS = {name: cores(name)[0] for name in NAMES}
OUTPUTS = {name: cores(name)[1] for name in NAMES}
# Where a box, numbers that are positive, a loss (a vector, a matrix, its levels), and what is set.
BOX = {"affine_step": 8, "working_set_step": 8, "queue_step": 15, "experts_step": 17}
BOX |= {"least_violation": 3, "margin_kept": 5}
BOX |= dict.fromkeys(ROOTS[:3], 8)
POSITIVE = {
    "affine_step": (2, 4), "working_set_step": (2, 4), "queue_step": (8, 9, 10, 12, 13),
    "experts_step": (1, 2, 5, 12, 14, 15), "least_violation": (9,), "margin_kept": (3, 11, 12),
    "capacity_step": (2, 4, 5, 6, 7),
    "ball_row_step": (2, 4, 5), "diagonal_row_step": (2, 4, 5), "ball_step": (2, 4, 9),
}  # fmt: skip
LOSS = {"queue_step": 2, "experts_step": 7}
SET = {
    "affine_step": {3: 0.0, 5: 0.0, 10: np.inf}, "working_set_step": {3: 0.0, 5: 0.0, 10: np.inf},
    "capacity_step": {3: 0.0, 8: 0.0}, "ball_row_step": {3: 0.0}, "diagonal_row_step": {3: 0.0},
    "ball_step": {3: 0.0, 5: 0.0},
}  # fmt: skip


def shape(core: str, sizes: dict[str, int], batch: tuple[int, ...] = ()) -> tuple[int, ...]:
    return (*batch, *(sizes[axis] for axis in core))


def blocks(rng: np.random.Generator, p: int, k: int) -> tuple[Any, Any, Any]:
    """Where k blocks of p coordinates begin, sums that they can have, and what these are."""
    if not k:
        return None, None, None
    start = np.arange(k) * p // k
    total = 0.5 * rng.uniform(-1.0, 1.0, k) * np.diff(start, append=p)
    return start.astype(float), total, rng.choice([-np.inf, 0.0, np.inf], k)


def drawn(
    name: str, rng: np.random.Generator, batch: tuple[int, ...] = (), **sizes: int
) -> list[Any]:
    """Arguments that make sense: a box or k blocks in it, positive weights, least squares."""
    sizes = {"m": 4, "e": 3, "k": 0, **sizes}
    given: list[Any] = [rng.normal(size=shape(core, sizes, batch)) for core in INPUTS[name]]
    for which in POSITIVE[name]:
        given[which] = np.asarray(np.abs(given[which]) + 0.1)
    if name in BOX:
        box = BOX[name]
        given[box], given[box + 1] = np.full(sizes["p"], -1.0), np.full(sizes["p"], 1.0)
        if INPUTS[name][box + 2 : box + 3] == ["k"]:
            given[box + 2 : box + 6] = *blocks(rng, sizes["p"], sizes["k"]), np.array(np.inf)
    if name in LOSS:
        given[LOSS[name]] = None
        given[BOX[name] - 1] = np.asarray(rng.integers(0, 3, batch), float)  # when the queue moves
    for which, number in SET.get(name, {}).items():
        given[which] = np.full_like(given[which], number)
    return given
