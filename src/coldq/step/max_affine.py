"""Rows that are the largest of several affine pieces, on boxes and polytopes."""

from __future__ import annotations

import numpy as np

from coldq._values import Array
from coldq.constraints import MaxAffine
from coldq.errors import InvalidInput
from coldq.solver.answer import Step
from coldq.solver.max_affine import (
    CLEAR,
    MaxAffineProblem,
    Pieces,
    plain_rows,
    solve_hinges,
    solve_member,
)
from coldq.solver.problem import HINGE, members
from coldq.step.residuals import accepted
from coldq.step.slot import Slot, bounds_of


def solve_max_affine(slot: Slot) -> Step:
    """The answers of a batch, one by one where no box or no hinge; raises if one has none."""
    center, gradient, alpha, weights, _, constraint, domain = slot
    n, _, p = constraint.A.shape[-3:]
    lower, upper, hard, _ = bounds_of(domain)
    low, batch = slot.low, center.shape[:-1]
    if slot.floor is not HINGE and ((low != 0.0) & (low != weights)).any():
        raise InvalidInput(
            "a max-affine row is a hinge (floor 0) or linear (floor = weights), but floor is "
            f"{low} against {weights}"
        )
    slot.require_fit()
    problem = MaxAffineProblem(
        center, gradient, np.asarray(alpha), low, weights, *flat(constraint), lower, upper
    )
    if not hard:
        x, _, _, multipliers, worst = solve_hinges(problem)
        left = ~(worst <= CLEAR)
    else:
        x, multipliers, worst = np.empty(center.shape), np.empty((*batch, n)), np.empty(batch)
        left = np.ones(batch, bool)
    for where, one in members(problem, left):
        half = 0.5 / float(one.alpha)
        own = tuple((part.member(where, batch), least) for part, least in hard)
        pieces = Pieces(
            one.center - one.gradient * half, one.A, one.b, one.group.astype(int),
            one.floor * half, one.weights * half, *plain_rows(own, p), one.lower, one.upper,
        )  # fmt: skip
        x[where], total, worst[where] = solve_member(pieces)
        multipliers[where] = np.where(total >= pieces.high, one.weights, total / half)
    return accepted(Step(x, np.clip(multipliers, low, weights), worst))


def flat(constraint: MaxAffine) -> tuple[Array, Array, Array]:
    """The pieces of all rows as A and b, and to which row each belongs."""
    *batch, n, k, p = constraint.A.shape
    A = np.ascontiguousarray(constraint.A).reshape(*batch, n * k, p)
    b = np.ascontiguousarray(constraint.b)
    return A, b.reshape(*b.shape[:-2], n * k), np.repeat(np.arange(n, dtype=float), k)
