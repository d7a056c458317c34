"""Quadratic rows without matrices: ball-shaped, diagonal, low-rank plus diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.slot.constraints import Affine
from coldq.slot.constraints.quadratic import BallRows, DiagonalQuadratic, ThinQuadratic
from coldq.slot.step.residuals import accepted
from coldq.slot.step.slot import Slot
from coldq.solver.answer import CURVED_TOLERANCE, Step
from coldq.solver.api import ball_row_step, diagonal_row_step
from coldq.solver.problem import BallRow, Thin, append
from coldq.solver.thin_rows import ThinProblem, joined, solve_thin_rows
from coldq.solver.threads import run_batch

TWO = np.array(2.0)  # |x - c|^2 as d |x - c|^2 / 2
COORDINATE_PASSES = 16  # over p numbers: the work of an instance


def solve_thin(slot: Slot) -> Step:
    """One row without factors on a box has one multiplier, of which x is a formula."""
    g, domain = slot.constraint, slot.domain
    if g.n_constraints == 1 and not domain.enforced and isinstance(g, BallRows | DiagonalQuadratic):
        slot.require_one_way([g])
        slot.require_fit()
        return one_row(slot)
    return solve_thin_parts(slot, [g])


def one_row(slot: Slot) -> Step:
    """The answers of a batch with one row on a box."""
    center, gradient, alpha, high, _, g, domain = slot
    p: int = center.shape[-1]
    if isinstance(g, BallRows):
        step, cores, rows = ball_row_step, (0, 1, 0), (TWO, g.center[..., 0, :], g.limit[..., 0])
    else:
        step, cores = diagonal_row_step, (1, 1, 0)
        rows = g.d[..., 0, :], g.q[..., 0, :], g.r[..., 0]
    prices = np.asarray(alpha), slot.low[..., 0], high[..., 0]
    x, multiplier, residual = run_batch(
        step, (center, gradient, *prices, *rows, domain.box.lower, domain.box.upper),
        (1, 1, 0, 0, 0, *cores, 1, 1), ((p,), (), ()), COORDINATE_PASSES * p,
    )  # fmt: skip
    return accepted(Step(x, multiplier[..., None], residual[()]), CURVED_TOLERANCE)


def solve_thin_parts(slot: Slot, parts: list[Any]) -> Step:
    """A stack of rows without matrices and of affine ones, on any domain."""
    n, p, low, high = (
        slot.constraint.n_constraints,
        slot.domain.dim,
        slot.low,
        slot.multiplier_upper,
    )
    slot.require_one_way(parts)
    slot.require_fit()
    rows = [thin_of(part, p) for part in parts]
    for part, least in slot.domain.enforced:
        rows.append(thin_of(part, p))
        low = append(low, np.full(rows[-1].n_constraints, least), 1)
        high = append(high, np.full(rows[-1].n_constraints, np.inf), 1)
    box = slot.domain.box
    problem = ThinProblem(
        slot.center,
        slot.gradient,
        np.asarray(slot.alpha),
        low,
        high,
        *joined(rows),
        box.lower,
        box.upper,
    )
    x, found, residual, infeasible = solve_thin_rows(problem)
    answer = Step(x, np.ascontiguousarray(found[..., :n]), residual[()])
    return accepted(answer, CURVED_TOLERANCE, infeasible)


def thin_of(part: Affine | ThinQuadratic | BallRow, p: int) -> Thin:
    """The arrays of rows; a ball's own in units of its radius."""
    if isinstance(part, ThinQuadratic):
        return part.thin
    if isinstance(part, Affine):
        none = np.zeros(part.A.shape[-2:])
        return Thin(none, none, np.zeros((*none.shape, 0)), part.A, part.b)
    last = part.first + part.center.shape[-1]
    batch = np.broadcast_shapes(part.radius.shape, part.center.shape[:-1])
    d, middle = np.zeros((*batch, 1, p)), np.zeros((*batch, 1, p))
    d[..., 0, part.first : last] = (2.0 / part.radius)[..., None]
    middle[..., 0, part.first : last] = part.center
    limit: Array = np.broadcast_to(part.radius, batch)[..., None]
    none = np.zeros((1, p))
    return Thin(d, middle, np.zeros((1, p, 0)), none, np.ascontiguousarray(limit))
