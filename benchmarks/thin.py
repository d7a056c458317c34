"""Quadratic rows without matrices, in ratios: ``python -m benchmarks.thin``.

A ball-shaped row against the same row with a matrix and against Clarabel through CVXPY, and a step
of a million coordinates against one pass over its data: reading every array once, writing x.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import coldq
from coldq.slot.step import solve
from coldq.slot.step.reference import reference_step


def best(call: Callable[[], Any], count: int) -> float:
    """The least seconds of a call."""
    call()
    seconds = []
    for _ in range(count):
        begun = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


def instance(p: int, diagonal: bool = False) -> tuple[Any, ...]:
    """A step whose row binds and where a part of the bounds does."""
    rng = np.random.default_rng(p)
    c, x0 = rng.uniform(-1.0, 1.0, p), 2.0 * rng.standard_normal(p)
    g = coldq.QuadraticConstraint.ball(c[None], [0.1 * p**0.5])
    if diagonal:
        d, q = rng.uniform(1.0, 3.0, (1, p)), -2.0 * c[None]
        g = coldq.QuadraticConstraint.diagonal(d, q, [0.01 * p - float(c @ c)])
    return x0, np.ones(p), 1.0, 100.0, g, coldq.Box(-1.0, 1.0, dim=p)


def passes(diagonal: bool) -> float:
    """How many passes over its data a step of a million coordinates takes."""
    x0, gradient, alpha, weight, g, X = instance(1_000_000, diagonal)
    arrays = (x0, gradient, X.lower, X.upper, *(getattr(g, name) for name in type(g).cores))
    out, weights, curvature = np.empty(x0.shape), np.array([weight]), np.array(alpha)

    def one_pass() -> None:
        for array in arrays:
            array.sum()
        out[:] = x0

    return best(lambda: solve(x0, gradient, curvature, weights, g, X), 5) / best(one_pass, 5)


def main() -> None:
    """Print one line a comparison."""
    x0, gradient, alpha, weight, g, X = arguments = instance(500)
    matrix = coldq.QuadraticConstraint(g.P, g.q, g.r)
    ours = best(lambda: coldq.penalised_step(*arguments), 200)
    dense = best(lambda: coldq.penalised_step(x0, gradient, alpha, weight, matrix, X), 3)
    print(f"p = 500: {1e6 * ours:.0f} us; with a matrix {dense / ours:,.0f} times (1,000)")
    small = instance(50)
    ours = best(lambda: coldq.penalised_step(*small), 200)
    theirs = best(lambda: reference_step(*small[:3], [weight], *small[4:]), 3)
    print(f"p = 50: {1e6 * ours:.0f} us; CVXPY with Clarabel {theirs / ours:,.0f} times")
    for kind in ("ball-shaped", "diagonal"):
        diagonal = kind == "diagonal"
        step = instance(7840, diagonal)
        arrays = *step[:2], np.array(step[2]), np.array([step[3]]), *step[4:]
        whole = best(partial(coldq.penalised_step, *step), 300)
        inner = best(partial(solve, *arrays), 300)
        print(f"p = 7,840, {kind}: {1e6 * whole:.0f} us, a learner's {1e6 * inner:.0f} us (200)")
        print(f"p = 1,000,000, {kind}: {passes(diagonal):.1f} passes over the data (20)")


if __name__ == "__main__":
    main()
