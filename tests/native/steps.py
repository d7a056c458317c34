"""Arguments of the native steps and whole updates."""

from __future__ import annotations

import numpy as np

STEP = "p p _ n n n np n p p _".split()
QUEUE = "p p mp m np n n n _ _ _ _ _ _ p p".split()
EXPERTS = "ep en e p e _ _ p mp m np n e e e e _ p p".split()
INPUTS = {
    "affine_step": STEP, "working_set_step": STEP, "queue_step": QUEUE, "experts_step": EXPERTS,
}  # fmt: skip
OUTPUTS = {
    "affine_step": "p n _".split(),
    "working_set_step": "p n _".split(),
    "queue_step": "p n n _".split(),
    "experts_step": "p e ep en en e".split(),
}
# Where a box, numbers that are positive, and a loss (a vector, a matrix, its levels) are.
BOX = {"affine_step": 8, "working_set_step": 8, "queue_step": 14, "experts_step": 17}
POSITIVE = {
    "affine_step": (2, 4), "working_set_step": (2, 4), "queue_step": (7, 8, 9, 11, 12),
    "experts_step": (1, 2, 5, 12, 14, 15),
}  # fmt: skip
LOSS = {"queue_step": 1, "experts_step": 7}


def shape(core: str, sizes: dict[str, int], batch: tuple[int, ...] = ()) -> tuple[int, ...]:
    return (*batch, *(sizes[axis] for axis in core.replace("_", "")))


def drawn(
    name: str, rng: np.random.Generator, batch: tuple[int, ...] = (), **sizes: int
) -> list[np.ndarray | None]:
    """Arguments that make sense: a box, positive weights, a loss of least squares."""
    sizes = {"m": 4, "e": 3, **sizes}
    given: list = [rng.normal(size=shape(core, sizes, batch)) for core in INPUTS[name]]
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
