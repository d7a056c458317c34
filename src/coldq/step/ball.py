"""Affine rows in a ball: a monotone root in the ball's multiplier."""

from __future__ import annotations

from typing import Any

import numpy as np

from coldq._values import Array
from coldq.constraints import Affine
from coldq.domains import Ball
from coldq.errors import InvalidInput
from coldq.step.affine import FAST, HINGE, STRICT, TOLERANCE, misfit, raise_if_failed
from coldq.step.answer import Step
from coldq.step.kernels import ball_scratch_size, ball_step
from coldq.step.threads import run_batch

CORES = (1, 1, 0, 1, 1, 1, 2, 1, 1, 0, 0)


def solve_ball(
    center: Array,
    gradient: Array,
    alpha: Array,
    weights: Array,
    floor: Any,
    constraint: Affine,
    domain: Ball,
) -> Step:
    """The answers of a batch; raises if any instance has none."""
    zeros = np.zeros(constraint.n_constraints)
    problem = (
        center, gradient, alpha, zeros if floor is HINGE else floor, weights, zeros, constraint.A,
        constraint.b, domain.center, domain.radius,
    )  # fmt: skip
    try:
        answer = run_ball(problem)
    except InvalidInput:
        raise
    except ValueError:
        raise misfit(center, gradient, weights, constraint, domain) from None
    if not (answer.residual <= TOLERANCE).all():
        raise_if_failed(answer, np.isinf(answer.residual))
    return answer


def run_ball(problem: tuple[Any, ...]) -> Step:
    """The kernel alone, on strict faces where it fails; an infinite residual means that hard rows
    have no point in the ball. `problem` holds its arguments up to the ball's center and radius."""
    answer = _run(problem, FAST)
    if (answer.residual <= TOLERANCE).all():
        return answer
    strict = _run(problem, STRICT)
    better = strict.residual < answer.residual
    return Step(
        np.where(better[..., None], strict.x, answer.x),
        np.where(better[..., None], strict.multipliers, answer.multipliers),
        np.where(better, strict.residual, answer.residual),
    )


def _run(problem: tuple[Any, ...], strict: Array) -> Step:
    n, p = problem[6].shape[-2:]
    cores, size = ((p,), (n,), ()), ball_scratch_size(n, p)
    return Step(*run_batch(ball_step(), (*problem, strict), CORES, cores, size))
