"""Affine rows on a box: the compiled dual Newton method, and what happens if it ever fails."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from coldq._values import Array
from coldq.constraints import Affine
from coldq.domains import Box
from coldq.errors import Infeasible, InvalidInput, StepFailed, name_indices
from coldq.step.threads import run_batch, scratch

TOLERANCE = 1e-9  # the relative KKT residual above which no answer passes silently
CORES = (1, 1, 0, 1, 1, 1, 2, 1, 1, 1, 0)
FAST, STRICT = np.array(0.0), np.array(1.0)
HINGE = 0.0  # the floor that needs no array


@cache
def _kernel() -> tuple[Any, Callable[[int, int], int]]:
    from coldq.step import kernels

    return kernels.affine_step(), cache(kernels.scratch_size)


@cache
def _zeros(n: int) -> Array:
    zeros = np.zeros(n)
    zeros.flags.writeable = False
    return zeros


def solve_affine(
    center: Array,
    gradient: Array,
    alpha: Array,
    weights: Array,
    floor: Any,
    constraint: Affine,
    domain: Box,
) -> tuple[Array, Array, Array]:
    """``(x, multipliers, residual)``; raises if any instance of the batch has no answer."""
    A = constraint.A
    zeros = _zeros(A.shape[-2])
    if floor is HINGE:
        floor = zeros
    problem = (
        center, gradient, alpha, floor, weights, zeros,
        A, constraint.b, domain.lower, domain.upper,
    )  # fmt: skip
    answer = run_affine(problem)
    residual = answer[2]
    if residual.ndim == 0:
        if residual <= TOLERANCE:
            return answer
    elif (residual <= TOLERANCE).all():
        return answer
    answer, clash = rescue(problem, answer)
    raise_if_failed(answer, clash)
    return answer


def run_affine(problem: tuple[Any, ...], strict: Array = FAST) -> tuple[Array, Array, Array]:
    """The kernel alone: an answer whose residual may be large, infinite (hard rows without a
    common point) or NaN. `problem` holds the kernel's arguments up to the bounds of the box."""
    kernel, scratch_size = _kernel()
    n, p = problem[6].shape[-2:]
    size = scratch_size(n, p)
    if problem[0].ndim == 1:
        return kernel(*problem, strict, scratch(size))
    return run_batch(kernel, (*problem, strict), CORES, ((p,), (n,), ()), size)  # type: ignore[return-value]


def rescue(
    problem: tuple[Any, ...], answer: tuple[Array, Array, Array]
) -> tuple[tuple[Array, Array, Array], np.ndarray]:
    """Solve again what the kernel did not; also, where hard rows have no common point.

    In order: strict faces, Clarabel polished on its active set, and for hard rows a linear
    program that decides whether they have a common point at all.
    """
    from coldq.step.rescue import hard_rows_clash, solve_slowly

    x, multipliers, residual = (np.array(a) for a in answer)
    batch = residual.shape
    spread = [
        np.broadcast_to(a, batch + a.shape[a.ndim - c :])
        for a, c in zip(problem, CORES[:-1], strict=True)
    ]
    clash = np.zeros(batch, bool)
    for where in np.ndindex(*batch):
        if residual[where] <= TOLERANCE or np.isnan(residual[where]):
            continue
        one = tuple(np.array(a[where]) for a in spread)
        if np.isinf(residual[where]) and hard_rows_clash(one):
            clash[where] = True
            continue
        x[where], multipliers[where], residual[where] = solve_slowly(one)
        clash[where] = not (residual[where] <= TOLERANCE) and hard_rows_clash(one)
    return (x, multipliers, residual), clash


def raise_if_failed(answer: tuple[Array, Array, Array], clash: np.ndarray) -> None:
    """Raise an error that names the instances without an answer and carries the others."""
    from coldq.step import Step

    residual = answer[2]
    if clash.any():
        words, indices = name_indices(clash)
        message = f"the hard rows have no common point in the domain{words}"
        raise Infeasible(message, indices, Step(*answer))
    if np.isnan(residual).any():
        words, _ = name_indices(np.isnan(residual))
        raise InvalidInput(
            "center, gradient, alpha, weights and the constraint must be finite, but the step "
            f"came out as NaN{words}"
        )
    bad = ~(residual <= TOLERANCE)
    if bad.any():
        words, indices = name_indices(bad)
        raise StepFailed(
            f"no solver reached a relative KKT residual of {TOLERANCE:g}{words}; "
            f"the largest is {residual[bad].max():.3g}",
            indices,
            Step(*answer),
        )
