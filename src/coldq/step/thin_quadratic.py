"""Quadratic rows without matrices: ball-shaped, diagonal, low-rank plus diagonal."""

from __future__ import annotations

import numpy as np

from coldq._values import Array
from coldq.constraints.thin_quadratic import BallRows, DiagonalQuadratic
from coldq.solver.answer import CURVED_TOLERANCE, Step, raise_if_failed
from coldq.solver.thin_rows import OneRow, run_one_row
from coldq.step.quadratic import solve_quadratic
from coldq.step.slot import Slot, one_way

ROUND, FLAT = np.array(1.0), np.array(0.0)
TWO = np.array([2.0])  # |x - c|^2 as d |x - c|^2 / 2


def solve_thin(slot: Slot) -> Step:
    """One row without factors on a box has one multiplier, of which x is a formula."""
    low = slot.low
    if (low < 0.0).any():
        raise one_way("quadratic", low)
    slot.require_fit()
    g, domain = slot.constraint, slot.domain
    if g.n_constraints == 1 and not domain.hard and isinstance(g, BallRows | DiagonalQuadratic):
        return one_row(slot, low)
    return solve_quadratic(slot)


def one_row(slot: Slot, low: Array) -> Step:
    """The answers of a batch with one row on a box."""
    center, gradient, alpha, weights, _, g, domain = slot
    round_ = isinstance(g, BallRows)
    rows = (ROUND, TWO, g.center, g.limit) if round_ else (FLAT, g.d[..., 0, :], g.q, g.r)
    x, multiplier, residual = run_one_row(
        OneRow(
            center, gradient, np.asarray(alpha), low[..., 0], weights[..., 0], rows[0], rows[1],
            rows[2][..., 0, :], rows[3][..., 0], domain.box.lower, domain.box.upper,
        )
    )  # fmt: skip
    answer = Step(x, multiplier[..., None], residual[()])
    if not (residual <= CURVED_TOLERANCE).all():
        raise_if_failed(answer, np.isinf(residual), CURVED_TOLERANCE)
    return answer
