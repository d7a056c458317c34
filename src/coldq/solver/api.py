"""The door to the native core: a problem in arrays goes in, a solution with a status comes out."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

import coldq._native as native
from coldq.base.arrays import Array
from coldq.solver.answer import MAX_RESIDUAL, TOLERANCE
from coldq.solver.problem import AffineProblem

# Whole batches, in arrays: x, the multipliers and the residuals, in which no status is told yet.
newton_step = native.affine_step
working_set_step = native.working_set_step
blocks_step = native.blocks_step
# The root in one multiplier: of a capacity, of a quadratic row without mixed terms, of a ball.
capacity_step = native.capacity_step
ball_row_step = native.ball_row_step
diagonal_row_step = native.diagonal_row_step
ball_step = native.ball_step
# A learner's whole update and that of experts. The queue moves before the step, after it, or before
# it with one more gain counting in the step.
BEFORE, AFTER, AHEAD = 0.0, 1.0, 2.0
queue_step = native.queue_step
experts_step = native.experts_step
# One instance of the general problem of `interior_point`: a guess in double, an answer in
# double-double.
grouped_guess, grouped_step = native.grouped_guess, native.grouped_step
# Rows that are the largest of several affine pieces, and the residual of an answer.
pieces_step = native.pieces_step
pieces_residual = native.pieces_residual
# Quadratic rows, with matrices and without: steps; values, slopes and the sizes of their terms at
# a point; and the residual of an answer from anywhere, from these.
quadratic_step, thin_step = native.quadratic_step, native.thin_step
quadratic_values, thin_values = native.quadratic_values, native.thin_values
curved_residual = native.curved_residual
# SelfTuning's whole update, and what its forecasts ask of the last slots.
self_tuning_step = native.self_tuning_step
recall = native.recall


class Status(IntEnum):
    """What a solution is worth."""

    OPTIMAL = 0  #: its residual is at most 1e-9
    INEXACT = 1  #: at most 1e-6
    INFEASIBLE = 2  #: the enforced rows have no common point in the box
    FAILED = 3

    @classmethod
    def of(cls, residual: float) -> Status:
        """The status of an answer which proves nothing, by its residual."""
        if residual <= TOLERANCE:
            return cls.OPTIMAL
        return cls.INEXACT if residual <= MAX_RESIDUAL else cls.FAILED


class Solution(NamedTuple):
    """x, the multipliers and the relative residual of the optimality conditions.

    Where the status is ``INFEASIBLE``, the multipliers are a combination of the enforced rows that
    no point of the box satisfies.
    """

    x: Array
    multipliers: Array
    residual: float
    status: Status

    @property
    def infeasible(self) -> bool:
        """Whether the enforced rows have no common point in the box."""
        return self.status is Status.INFEASIBLE


def active_set(problem: AffineProblem, start: Array | None = None) -> Solution:
    """One instance whose rows conflict in few coordinates, from a guess of its multipliers or none.

    It has no answer where rows have compliance, or where enforced ones are broken at the start.
    """
    center, gradient, alpha, low, high, soft, *rest = in_order(problem)
    if soft.size:
        raise ValueError("rows with compliance need active_set_extended")
    return _told(native.active_set_double(center, gradient, alpha, low, high, *rest, start))


def active_set_extended(
    problem: AffineProblem,
    start: Array | None = None,
    share: Array | None = None,
    middle: Array | None = None,
) -> Solution:
    """One instance in double-double arithmetic, from a guess of its multipliers or from none.

    With a `share` and a `middle` each coordinate moves by this share of what it would, from there.
    """
    center, gradient, alpha, low, high, soft, *rest = in_order(problem)
    given = center, gradient, alpha, low, high, *rest, soft, share, middle, start
    return _told(native.active_set_extended(*given))


def affine_residual(
    problem: AffineProblem,
    x: Array,
    multipliers: Array,
    share: Array | None = None,
    middle: Array | None = None,
) -> float:
    """The relative residual of an answer from anywhere, relative to the instance alone."""
    center, gradient, alpha, low, high, soft, *rest = in_order(problem)
    given = center, gradient, alpha, low, high, *rest, soft, share, middle
    return float(native.affine_residual(*given, x, multipliers))


def in_order(problem: AffineProblem) -> list[Array]:
    """The arrays of an instance as the core reads them: compliance up to the last row with any."""
    given = [np.asarray(array, np.float64, order="C") for array in problem]
    given[5] = given[5][: np.max(np.flatnonzero(given[5]), initial=-1) + 1]
    return given


def _told(found: tuple[Array, Array, Array, Array]) -> Solution:
    x, multipliers, residual, status = found
    return Solution(x, multipliers, float(residual), Status(int(status)))
