"""Rows that are the largest of affine pieces, and affine ones beside them, on polytopes too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coldq.base.arrays import Array, joined
from coldq.base.errors import InvalidInput
from coldq.slot.constraints import Affine, MaxAffine
from coldq.slot.step.residuals import accepted
from coldq.slot.step.slot import Slot, bounds_of
from coldq.solver.answer import Step
from coldq.solver.max_affine import (
    RIGHT_PIECES_RESIDUAL,
    MaxAffineProblem,
    plain_rows,
    solve_batch,
    solve_member,
)
from coldq.solver.problem import HINGE, members


def solve_max_affine(slot: Slot) -> Step:
    """The answers of a batch; raises if one has none."""
    return solve_max_affine_parts(slot, [slot.constraint])


def solve_max_affine_parts(slot: Slot, parts: Sequence[Any]) -> Step:
    """Solve a step whose constraint is a stack of affine and max-affine parts."""
    center, gradient, alpha, high, _, _, domain = slot
    lower, upper, enforced, _ = bounds_of(domain)
    low = slot.low
    if slot.multiplier_lower is not HINGE and ((low != 0.0) & (low != high)).any():
        raise InvalidInput(
            "a max-affine row, or one beside it, is a hinge (multiplier_lower 0) or linear "
            f"(multiplier_lower = multiplier_upper), but multiplier_lower is {low} against {high}"
        )
    slot.require_fit()
    problem = MaxAffineProblem(
        center, gradient, np.asarray(alpha), low, high, *pieces_of(parts),
        *plain_rows(enforced, domain.dim), lower, upper,
    )  # fmt: skip
    x, mu, nu, multipliers, worst = solve_batch(problem)
    for where, one in members(problem, ~(worst <= RIGHT_PIECES_RESIDUAL)):
        pieces = one.pieces()
        x[where], total, worst[where] = solve_member(pieces, x[where], mu[where], nu[where])
        multipliers[where] = np.where(
            total >= pieces.high, one.multiplier_upper, total * 2.0 * one.alpha
        )
    return accepted(Step(x, np.clip(multipliers, low, high), worst))


def pieces_of(parts: Sequence[Any]) -> tuple[Array, Array, Array]:
    """The pieces of all rows that have some as A and b, and to which row each belongs."""
    A: list[Array] = []
    b: list[Array] = []
    row: list[Array] = []
    first = 0
    for part in parts:
        n = part.n_constraints
        if isinstance(part, Affine | MaxAffine):
            A.append(part.A.reshape(*part.A.shape[: -part.cores["A"]], -1, part.dim))
            b.append(part.b.reshape(*part.b.shape[: -part.cores["b"]], -1))
            row.append(first + np.repeat(np.arange(n, dtype=float), A[-1].shape[-2] // max(n, 1)))
        first += n
    if len(A) == 1:  # without a copy
        return A[0], b[0], row[0]
    return joined(A, 2), joined(b, 1), np.concatenate(row)
