"""Quadratic rows without matrices: one on a box is a root in its multiplier."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coldq._values import Array
from coldq.solver.kernels.one_row import one_row_scratch_size, one_row_step
from coldq.solver.threads import run_batch


class OneRow(NamedTuple):
    """``sum_i d_i x_i^2 / 2 + <slope, x> - limit`` on a box; or if it is `round`, with one d and
    the center in place of the slope, ``d |x - slope|^2 / 2 - limit``."""

    center: Array
    gradient: Array
    alpha: Array
    floor: Array
    weight: Array
    round: Array
    d: Array
    slope: Array
    limit: Array
    lower: Array
    upper: Array

    cores = (1, 1, 0, 0, 0, 0, 1, 1, 0, 1, 1)


def run_one_row(problem: OneRow) -> tuple[Array, Array, Array]:
    """x, multipliers and residuals of a batch; infinite where a hard row cannot be met."""
    p = problem.center.shape[-1]
    return run_batch(  # type: ignore[return-value]
        one_row_step(), problem, problem.cores, ((p,), (), ()), one_row_scratch_size(p)
    )
