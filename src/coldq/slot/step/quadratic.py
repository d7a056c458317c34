"""Quadratic rows, with affine rows beside them, on every domain that the step can read."""

from __future__ import annotations

import numpy as np

from coldq.slot.constraints import Affine
from coldq.slot.constraints.quadratic import QuadraticConstraint
from coldq.slot.domains import Box
from coldq.slot.step.residuals import accepted
from coldq.slot.step.slot import Slot, bounds_of, part_of
from coldq.solver.answer import CURVED_TOLERANCE, Step
from coldq.solver.curved import assemble, single_answer, solve_curved
from coldq.solver.problem import HINGE, QuadraticProblem


def solve_quadratic(slot: Slot) -> Step:
    """The answers of a batch; raises if any instance has none."""
    center, gradient, alpha, high, low, g, domain = slot
    if center.ndim == 1 and low is HINGE and type(domain) is Box:
        slot.require_fit()
        given = center, gradient, alpha, slot.low, high, g.P, g.q, g.r
        found = single_answer(QuadraticProblem(*given, domain.lower, domain.upper))
        if found is not None:
            return found
    return solve_parts(slot, [g])


def solve_parts(slot: Slot, parts: list[Affine | QuadraticConstraint]) -> Step:
    """Solve a step whose constraint is a stack of affine and quadratic parts."""
    lower, upper, enforced, shift = bounds = bounds_of(slot.domain)
    slot.require_one_way(parts)
    slot.require_fit()
    rows = assemble(
        [part_of(part).moved(shift) for part in parts], slot.low, slot.multiplier_upper, enforced
    )
    problem = QuadraticProblem(
        slot.center if shift is None else slot.center - shift, slot.gradient,
        np.asarray(slot.alpha), rows.low, rows.high, rows.P, rows.A, rows.b, lower, upper,
    )  # fmt: skip
    x, found, residual, infeasible = solve_curved(problem)
    if len(parts) > 1 or enforced:  # else in order
        multipliers = np.empty_like(found)
        multipliers[..., rows.order] = found
        found = np.ascontiguousarray(multipliers[..., : slot.constraint.n_constraints])
    answer = Step(bounds.from_shift(x, slot.domain), found, residual)
    return accepted(answer, CURVED_TOLERANCE, infeasible)
