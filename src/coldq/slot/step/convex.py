"""Any convex rows, and stacks of several kinds.

With hessians, quadratic models do; without, models from differences of the jacobian are tried. If
those do not come with a bound on their gap, as there may be breakpoints; cutting planes do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import InvalidInput
from coldq.slot.constraints import Affine, Unconstrained
from coldq.slot.constraints.max_affine import MaxAffine
from coldq.slot.constraints.quadratic import QuadraticConstraint, ThinQuadratic
from coldq.slot.constraints.sparse_affine import SparseAffine
from coldq.slot.constraints.stacked import Stacked
from coldq.slot.step.max_affine import pieces_of, solve_max_affine_parts
from coldq.slot.step.quadratic import solve_parts
from coldq.slot.step.residuals import accepted
from coldq.slot.step.slot import Slot, bounds_of, one_way
from coldq.slot.step.thin_quadratic import solve_thin_parts
from coldq.solver.answer import CURVED_TOLERANCE, GAP_TOLERANCE, Step
from coldq.solver.blas import on_one_thread
from coldq.solver.cutting_planes import Bundle, cutting_planes, relative_gap
from coldq.solver.models import Member, Moved, newton
from coldq.solver.problem import members

MAX_DIFFERENCED_COORDINATES = (
    200  # coordinates up to which hessians are taken from differences of the jacobian
)


class Data(NamedTuple):
    """The arrays of a step with rows of any kind, the domain's own box last."""

    center: Array
    gradient: Array
    alpha: Array
    low: Array
    high: Array
    lower: Array
    upper: Array
    origin: Array
    least: Array
    most: Array

    cores = (1, 1, 0, 1, 1, 1, 1, 1, 1, 1)


def solve_convex(slot: Slot) -> Step:
    """The answers of a batch, one by one; raises if any instance has none."""
    center, gradient, alpha, high, _, constraint, domain = slot
    batch, p, n = center.shape[:-1], domain.dim, constraint.n_constraints
    if ((slot.low < 0.0) & ~constraint.is_affine).any():
        raise one_way("convex", slot.low)
    slot.require_fit()
    lower, upper, enforced, shift = bounds = bounds_of(domain)
    origin = np.zeros(p) if shift is None else shift
    data = Data(
        center - origin, gradient, alpha, slot.low, high, lower, upper, origin, domain.box.lower,
        domain.box.upper,
    )  # fmt: skip
    exact = constraint.has_hessian
    tolerance = CURVED_TOLERANCE if exact else GAP_TOLERANCE
    x, multipliers, worst = np.empty(center.shape), np.empty((*batch, n)), np.empty(batch)
    for where, one in members(data, np.ones(batch, bool)):
        rows = constraint.member(where, batch)
        if shift is not None:
            rows = Moved(rows, one.origin, one.least, one.most)
        beside = tuple((part.member(where, batch), least) for part, least in enforced)
        member = Member(
            one.center, one.gradient, float(one.alpha), one.low, one.high, rows, one.lower,
            one.upper, beside,
        )  # fmt: skip
        x[where], multipliers[where], worst[where] = solve_member(member, rows, exact)
    return accepted(Step(bounds.from_shift(x, domain), multipliers, worst), tolerance)


@on_one_thread
def solve_member(member: Member, constraint: Any, exact: bool) -> tuple[Array, Array, float]:
    """x, multipliers, and their residual or gap; infinite if enforced rows have no common point."""
    if not np.isfinite(member.center - member.gradient / member.alpha).all():
        return member.center, 0.0 * member.low, np.nan
    if exact:
        return newton(member, exact)
    if ((member.low != 0.0) & (member.low != member.high)).any():
        raise InvalidInput(
            "a row beside or without a hessian is a hinge (multiplier_lower 0) or linear "
            f"but floor is {member.low} against {member.high}"
        )
    p, x = member.center.size, np.clip(member.center, member.lower, member.upper)
    if p <= MAX_DIFFERENCED_COORDINATES and not isinstance(constraint, MaxAffine):
        x, multipliers, _ = newton(member, exact)
        gap = relative_gap(member, x)
        if gap <= GAP_TOLERANCE:
            return x, multipliers, gap
    return cutting_planes(member, known_pieces(constraint, p), x)


def known_pieces(constraint: Any, p: int) -> Bundle:
    """The pieces of all rows that are nothing else."""
    parts = constraint.parts if isinstance(constraint, Stacked) else (constraint,)
    A, b, row = pieces_of([Affine(np.zeros((0, p)), np.zeros(0)), *parts])
    known, group = np.zeros(constraint.n_constraints, bool), row.astype(int)
    known[group] = True
    return Bundle(A, b, group, known)


def solve_stacked(slot: Slot) -> Step:
    """Affine parts go with quadratic ones, or with max-affine ones, to what solves these; all else
    to the models."""
    parts = [
        part.dense() if isinstance(part, SparseAffine) else part
        for part in slot.constraint.parts
        if not isinstance(part, Unconstrained)
    ]
    if parts and all(isinstance(part, Affine | QuadraticConstraint) for part in parts):
        thin = [isinstance(part, ThinQuadratic) for part in parts]
        alike = all(isinstance(part, Affine | ThinQuadratic) for part in parts)
        return (solve_thin_parts if any(thin) and alike else solve_parts)(slot, parts)
    if parts and all(isinstance(part, Affine | MaxAffine) for part in parts):
        return solve_max_affine_parts(slot, parts)
    return solve_convex(slot)
