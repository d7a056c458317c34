"""One capacity row on a box: a monotone root in one variable."""

from __future__ import annotations

from typing import Any

import numpy as np

from coldq.base.arrays import Array, first_index
from coldq.base.errors import InvalidInput
from coldq.slot.constraints import LogCapacity
from coldq.slot.domains import Box
from coldq.slot.step.residuals import accepted
from coldq.slot.step.slot import Slot
from coldq.solver.answer import Step
from coldq.solver.api import capacity_step
from coldq.solver.threads import run_batch

NO_INSTANCE = np.zeros((), bool)
CORES = (1, 1, 0, 0, 0, 0, 1, 1, 1, 1)
COORDINATE_PASSES = 24  # over p numbers: the work of an instance


def solve_log_capacity(slot: Slot) -> Step:
    """The answers of a batch; raises if any instance has none."""
    center, gradient, alpha, high, _, constraint, domain = slot
    if domain.enforced:
        raise InvalidInput(
            f"the step solves a LogCapacity on bounds alone, but a {type(domain).__name__} is "
            "more than that: wrap the capacity as coldq.Stacked(capacity), or use a learner that "
            "only projects"
        )
    slot.require_fit()
    low = slot.low
    if (low < 0.0).any():
        raise InvalidInput(
            f"a capacity is convex one way only: floor must not be negative, but is {low}"
        )
    x, multiplier, residual = run_log_capacity(
        center, gradient, alpha, low[..., 0], high[..., 0], constraint, domain.box
    )
    return accepted(Step(x, np.asarray(multiplier)[..., None], np.asarray(residual)))


def run_log_capacity(
    center: Array,
    gradient: Array,
    alpha: Array,
    low: Array,
    weight: Array,
    constraint: LogCapacity,
    domain: Box,
) -> tuple[Array, Any, Any]:
    """The root alone; infinite residuals mean that an enforced demand cannot be met."""
    outside = constraint.rate * domain.lower <= -1.0 if (domain.lower < 0.0).any() else NO_INSTANCE
    if outside.any():
        where = first_index(outside)
        raise InvalidInput(
            "the capacity is defined where rate x > -1, but the domain's lower bound makes "
            f"rate x = {(constraint.rate * domain.lower)[where]} at index {where}"
        )
    p = domain.dim
    inputs = (
        center, gradient, alpha, low, weight, constraint.demand, constraint.scale,
        constraint.rate, domain.lower, domain.upper,
    )  # fmt: skip
    return run_batch(  # type: ignore[return-value]
        capacity_step, inputs, CORES, ((p,), (), ()), COORDINATE_PASSES * p
    )
