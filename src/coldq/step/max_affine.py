"""Rows that are the largest of several affine pieces, on boxes and polytopes."""

from __future__ import annotations

import numpy as np

from coldq.errors import InvalidInput
from coldq.solver.answer import TOLERANCE, Step, raise_if_failed
from coldq.solver.max_affine import MaxAffineProblem, Pieces, plain_rows, solve_member
from coldq.solver.problem import members
from coldq.step.slot import Slot, bounds_of


def solve_max_affine(slot: Slot) -> Step:
    """The answers of a batch, one by one; raises if any instance has none."""
    center, gradient, alpha, weights, _, constraint, domain = slot
    n, k, p = constraint.A.shape[-3:]
    lower, upper, hard, _ = bounds_of(domain)
    low, batch = slot.low, center.shape[:-1]
    if ((low != 0.0) & (low != weights)).any():
        raise InvalidInput(
            "a max-affine row is a hinge (floor 0) or linear (floor = weights), but floor is "
            f"{low} against {weights}"
        )
    slot.require_fit()
    group = np.repeat(np.arange(n), k)
    x, multipliers, worst = np.empty(center.shape), np.empty((*batch, n)), np.empty(batch)
    problem = MaxAffineProblem(
        center, gradient, alpha, low, weights, constraint.A, constraint.b, lower, upper
    )
    for where, one in members(problem, np.ones(batch, bool)):
        half = 0.5 / float(one.alpha)
        own = tuple((part.member(where, batch), least) for part, least in hard)
        pieces = Pieces(
            one.center - one.gradient * half, one.A.reshape(n * k, p), one.b.reshape(n * k), group,
            one.floor * half, one.weights * half, *plain_rows(own, p), one.lower, one.upper,
        )  # fmt: skip
        x[where], total, worst[where] = solve_member(pieces)
        multipliers[where] = np.where(total >= pieces.high, one.weights, total / half)
    answer = Step(x, np.clip(multipliers, low, weights), worst)
    if not (worst <= TOLERANCE).all():
        raise_if_failed(answer, np.isinf(worst))
    return answer
