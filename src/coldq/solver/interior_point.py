"""Rows that cannot all be met, from inside: a primal-dual interior-point method in x.

Where more rows pull than there are coordinates, most multipliers are at their weights, and methods
that go from piece to piece meet very many pieces. With ``g(x) = u - v`` and u, v >= 0, at the
optimum ``y - A'mu - x`` is normal to the box at x, and

    (hi - mu) u = 0,    (mu - lo) v = 0,

which treats hinge, equality and hard rows alike: an infinite bound has no u or v. Every Newton step
is a system of p by p, or N by N, and some ten tell which multipliers are at a bound. Multipliers
are taken for rows of unit length, so that they, u, v and x have the same units. With dense rows all
steps are one compiled call (:mod:`coldq.solver.kernels.inside`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs  # type: ignore[attr-defined]

from coldq._values import Array
from coldq.compiled.calls import STACK
from coldq.solver.constants import TINY
from coldq.solver.kernels import inside
from coldq.solver.kernels import interior_point as kernels
from coldq.solver.kernels.interior_point import (
    HI,
    LO,
    PULL,
    RIGHT,
    STIFF,
    WEIGHT,
    G,
    X,
    Y,
)
from coldq.solver.problem import ONE_BOX, Divided, zeros_of
from coldq.solver.threads import scratch

STEPS = 40
# Of the first gap: where what decides may be known.
CLEAR = (1e-6, 1e-8, 1e-11, 1e-14, 1e-17, 1e-20)


def from_inside(
    problem: Divided, norms: Array, x: Array | None = None, near: bool = False
) -> Iterator[Array]:
    """Multipliers that get ever nearer; those that are at a bound are so exactly.

    `x` is where it starts, away from its bounds; if left out, near y. Where rows are `near` to
    being met, it takes fewer steps to be told so.
    """
    y, A, b, lo, hi, lower, upper = problem
    if isinstance(A, np.ndarray):
        given = y, zeros_of(y.size), 1.0, lo, hi, A, b, lower, upper
        yield from beside_blocks(*given, ONE_BOX, near)
        return
    length = np.sqrt(norms)
    rows, columns = np.zeros((kernels.ROWS, b.size)), np.zeros((kernels.COLUMNS, y.size))
    rows[LO], rows[HI] = lo * length, hi * length
    columns[kernels.LOWER], columns[kernels.UPPER] = lower, upper
    columns[Y], columns[X] = y, well_inside(y, lower, upper) if x is None else x
    rows[G] = (A @ columns[X] - b) / length
    reach, unit = kernels.begin()(rows, columns, near)
    walk = step_by_step(problem, length, rows, columns, reach, unit)
    for _ in clear(walk, rows, columns):
        found = np.empty_like(lo)
        kernels.snap()(rows, length, lo, hi, reach, unit, 1.0, found)
        yield found


def beside_blocks(
    center: Array, gradient: Array, double: float, floor: Array, weights: Array, A: Array, b: Array,
    lower: Array, upper: Array, blocks: Any, near: bool,
) -> Iterator[Array]:  # fmt: skip
    """The same of dense rows beside the sums of blocks, given as a step is; `double` is 2 alpha.

    All arithmetic is compiled: what NumPy has not done for a while takes it tens of microseconds.
    """
    arrays = center, gradient, floor, weights, A, b, lower, upper
    center, gradient, floor, weights, A, b, lower, upper = map(np.ascontiguousarray, arrays)
    start, total, kind = blocks
    n, p, k = b.size, center.size, kind.size - kind.tolist().count(math.inf)
    rows, columns = np.zeros((kernels.ROWS, n + k)), np.zeros((kernels.COLUMNS, p))
    length, limits = np.empty(n + k), np.empty(n + k)
    first, place = np.empty(start.size + 1, np.int64), np.empty(start.size, np.int64)
    reach, unit = inside.set_out()(
        center, gradient, 1.0 / double, floor, weights, A, b, lower, upper, start, total, kind,
        near, first, place, length, limits, rows, columns,
    )  # fmt: skip
    if math.isnan(unit):
        return
    size = max(inside.inside_size(n, p, k, start.size), STACK + 1)  # less would be the kernel's own
    approach = inside.approach()
    given = A, limits, length, first, place, rows, columns

    def walk(target: float, steps: int) -> float:
        return approach(*given, target, reach, unit, steps, scratch(size))

    for _ in clear(walk, rows, columns):
        found = np.empty(n)
        kernels.snap()(rows, length, floor, weights, reach, unit, double, found)
        yield found


Walk = Callable[[float, int], float]  # to a gap, in so many steps: how many, or below 0


def clear(walk: Walk, rows: Array, columns: Array) -> Iterator[None]:
    """Go on until what decides may be known, and then again and again until it must be."""
    gap, left = kernels.gap(), STEPS
    now = first = gap(rows, columns, 0.0)
    for share in CLEAR:
        if now <= share * first and left < STEPS:
            continue
        taken = int(walk(share * first, left))
        left -= taken
        now = gap(rows, columns, 0.0)
        if taken < 0 or not now <= share * first:
            return
        yield


def step_by_step(
    problem: Divided, length: Array, rows: Array, columns: Array, reach: float, unit: float
) -> Walk:
    """How to go on until the gap is as small as is asked for, in so many steps at most; the number
    of steps, below 0 if there is no direction."""
    A, b, norms = problem.A, problem.b, length * length
    gap, weigh, aim = kernels.gap(), kernels.weigh(), kernels.aim()
    direct, move = kernels.direct(), kernels.go()

    def go(target: float, steps: int) -> int:
        for taken in range(steps):
            now = gap(rows, columns, 0.0)
            if now <= target:
                return taken
            weigh(rows, columns, reach, unit)
            solve = factored(problem, rows[WEIGHT] / norms, 1.0 + columns[STIFF])
            # First aim at zero, to see how far that leads; then at the little that it would leave.
            tau = 0.0
            for sure in (False, True):
                aim(rows, columns, tau)
                d, along = solve(columns[RIGHT] - (rows[PULL] / length) @ A)
                if not np.isfinite(d).all():
                    return -1
                t = min(inside.SHORT * direct(rows, columns, tau, d, along / length), 1.0)
                if sure:
                    move(rows, columns, t)
                else:
                    tau = now * (gap(rows, columns, t) / now) ** 3
            rows[G] = (A @ columns[X] - b) / length
        return steps

    return go


Solve = Callable[[Array], tuple[Array, Array]]  # a right side to d and A d


def factored(problem: Divided, weight: Array, stiff: Array) -> Solve:
    """How to solve with ``stiff + A' weight A``: by a factor of p by p, or of N by N if smaller.

    The latter has ``A d`` to all digits, which is what is left of large terms where weights are.
    """
    A = problem.A
    if hasattr(A, "factored"):  # rows beside sums
        return A.factored(weight, stiff)

    def by_columns(right: Array) -> tuple[Array, Array]:
        d = dpotrs(factor, right, lower=1)[0]
        return d, A @ d

    def by_rows(right: Array) -> tuple[Array, Array]:
        pull = dpotrs(factor, A @ (right / stiff), lower=1)[0]
        return (right - pull @ A) / stiff, give * pull

    if stiff.size <= weight.size:
        factor, _ = dpotrf(curvature(A, weight, stiff).T, lower=1)
        return by_columns
    give = 1.0 / (weight + TINY)
    factor, _ = dpotrf(curvature(A.T, 1.0 / stiff, give).T, lower=1)
    return by_rows


def curvature(A: Any, weight: Array, stiff: Array) -> Array:
    """``stiff + A' weight A`` of sparse rows."""
    p = A.shape[1]
    B = A.squares(np.arange(p), p, weight)
    B.ravel()[:: p + 1] += stiff
    return B


def well_inside(y: Array, lower: Array, upper: Array) -> Array:
    """The nearest point to y that keeps away from the bounds."""
    low, high = np.isfinite(lower), np.isfinite(upper)
    width = np.where(low & high, upper - lower, 1.0 + np.abs(np.where(low, lower, upper)))
    room = np.where(low | high, 0.1 * width, 0.0)
    return np.minimum(np.maximum(y, lower + room), upper - room)
