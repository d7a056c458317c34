"""Affine rows in a ball: a monotone root in the ball's multiplier."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from coldq._values import Array
from coldq.constraints import Affine
from coldq.domains import Ball
from coldq.errors import InvalidInput
from coldq.step.affine import FAST, HINGE, STRICT, TOLERANCE, misfit, raise_if_failed
from coldq.step.answer import Step
from coldq.step.threads import run_batch, scratch

CORES = (1, 1, 0, 1, 1, 2, 1, 1, 0, 0)


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
    low = np.zeros(constraint.n_constraints) if floor is HINGE else floor
    problem = (
        center, gradient, alpha, low, weights, constraint.A, constraint.b, domain.center,
        domain.radius,
    )  # fmt: skip
    try:
        answer = run_ball(problem)
        if not (answer.residual <= TOLERANCE).all():
            strict = run_ball(problem, STRICT)
            better = strict.residual < answer.residual
            answer = Step(*(_choose(better, *pair) for pair in zip(strict, answer, strict=True)))
    except InvalidInput:
        raise
    except ValueError:
        raise misfit(center, gradient, weights, constraint, domain) from None
    raise_if_failed(answer, np.isinf(answer.residual))
    return answer


def _choose(better: np.ndarray, one: Any, other: Any) -> Any:
    one = np.asarray(one)
    return np.where(better.reshape(better.shape + (1,) * (one.ndim - better.ndim)), one, other)


def run_ball(problem: tuple[Any, ...], strict: Array = FAST) -> Step:
    """The kernel alone; infinite residuals mean that hard rows have no point in the ball."""
    from coldq.step import kernels

    n, p = problem[5].shape[-2:]
    memory = partial(scratch, n, p, kernels.ball_scratch_size)
    cores = ((p,), (n,), (), ())
    x, multipliers, _, residual = run_batch(
        kernels.ball_step(), (*problem, strict), CORES, cores, memory
    )
    return Step(x, multipliers, np.asarray(residual))
