"""Quadratic rows, with affine rows beside them, on every domain that the step can read."""

from __future__ import annotations

import numpy as np

from coldq.constraints import Affine
from coldq.constraints.quadratic import QuadraticConstraint
from coldq.solver.answer import CURVED_TOLERANCE, Step, raise_if_failed
from coldq.solver.curved import assemble, solve_curved
from coldq.solver.problem import HINGE, QuadraticProblem
from coldq.step.slot import Slot, bounds_of, one_way, part_of


def solve_quadratic(slot: Slot) -> Step:
    """The answers of a batch; raises if any instance has none."""
    return solve_parts(slot, [slot.constraint])


def solve_parts(slot: Slot, parts: list[Affine | QuadraticConstraint]) -> Step:
    """The same for a constraint that is a stack of affine and quadratic parts."""
    lower, upper, hard, shift = bounds = bounds_of(slot.domain)
    n, low, begin = slot.constraint.n_constraints, slot.low, 0
    for part in parts if slot.floor is not HINGE else ():
        own = low[..., begin : begin + part.n_constraints]
        begin += part.n_constraints
        if isinstance(part, QuadraticConstraint) and (own < 0.0).any():
            raise one_way("quadratic", own)
    slot.require_fit()
    rows = assemble([part_of(part).moved(shift) for part in parts], low, slot.weights, hard)
    problem = QuadraticProblem(
        slot.center if shift is None else slot.center - shift, slot.gradient,
        np.asarray(slot.alpha), rows.low, rows.high, rows.P, rows.A, rows.b, lower, upper,
    )  # fmt: skip
    x, found, residual, clash = solve_curved(problem)
    if len(parts) > 1 or hard:  # else in order
        multipliers = np.empty_like(found)
        multipliers[..., rows.order] = found
        found = np.ascontiguousarray(multipliers[..., :n])
    answer = Step(bounds.from_shift(x, slot.domain), found, residual)
    if residual.size and not residual.max() <= CURVED_TOLERANCE:
        raise_if_failed(answer, clash, CURVED_TOLERANCE)
    return answer
