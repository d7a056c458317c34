"""Rows that cannot all be met, from inside: a primal-dual interior-point method in x.

Where more rows pull than there are coordinates, most multipliers are at their weights, and methods
that go from piece to piece meet very many pieces. With ``g(x) = u - v`` and u, v >= 0, at the
optimum ``y - A'mu - x`` is normal to the box at x, and

    (hi - mu) u = 0,    (mu - lo) v = 0,

which treats hinge, equality and hard rows alike: an infinite bound has no u or v. Every Newton step
is a system of p by p, and some ten tell which multipliers are at a bound. Multipliers are taken
for rows of unit length, so that they, u, v and x have the same units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs  # type: ignore[attr-defined]

from coldq._values import Array
from coldq.solver.constants import TINY
from coldq.solver.kernels import interior_point as kernels
from coldq.solver.kernels.interior_point import (
    HI,
    LO,
    MU,
    PULL,
    RIGHT,
    STIFF,
    WEIGHT,
    G,
    U,
    V,
    X,
    Y,
)
from coldq.solver.problem import Divided

STEPS = 40
SHORT = 0.995  # of the way to the boundary
SOFT = 1e-10  # the least that a row gives way in a step, relative to rooms and prices
CLEAR = (1e-8, 1e-11, 1e-14, 1e-17, 1e-20)  # of the first gap: where what decides may be known


def from_inside(
    problem: Divided, norms: Array, inside: Array | None = None, alike: bool = False
) -> Iterator[Array]:
    """Multipliers that get ever nearer; those that are at a bound are so exactly.

    `inside` is where x starts, away from its bounds; if left out, near y. Where rows can just be
    met, few steps are short if products start `alike`; where they cannot, if they do not.
    """
    y, A, b, lo, hi, lower, upper = problem
    gap, weigh, aim = kernels.gap(), kernels.weigh(), kernels.aim()
    direct, go = kernels.direct(), kernels.go()
    length = np.sqrt(norms)
    rows, columns = np.zeros((kernels.ROWS, b.size)), np.zeros((kernels.COLUMNS, y.size))
    rows[LO], rows[HI] = lo * length, hi * length
    columns[kernels.LOWER], columns[kernels.UPPER] = lower, upper
    columns[Y], columns[X] = y, well_inside(y, lower, upper) if inside is None else inside
    rows[G] = (A @ columns[X] - b) / length
    unit = kernels.begin()(rows, columns)
    if alike:
        centre(rows, columns)
    first, clear = gap(rows, columns, 0.0), CLEAR
    for _ in range(STEPS):
        now = gap(rows, columns, 0.0)
        if now <= clear[0] * first:
            yield snapped(rows, lo, hi, length, unit)
            clear = tuple(share for share in clear if share * first < now)
            if not clear:
                return
        weigh(rows, columns, SOFT * unit)
        solve = factored(problem, rows[WEIGHT] / norms, 1.0 + columns[STIFF])
        # First aim at zero, to see how far that leads; then at the little that it would leave.
        tau = 0.0
        for sure in (False, True):
            aim(rows, columns, tau)
            d = solve(columns[RIGHT] - (rows[PULL] / length) @ A)
            if not np.isfinite(d).all():
                return
            t = min(SHORT * direct(rows, columns, tau, d, A @ d / length), 1.0)
            if sure:
                go(rows, columns, t)
            else:
                tau = now * (gap(rows, columns, t) / now) ** 3
        rows[G] = (A @ columns[X] - b) / length


def centre(rows: Array, columns: Array) -> None:
    """Set the rooms of rows, and the prices of bounds, so that their products are alike."""
    low, high = columns[kernels.LOW] > 0.0, columns[kernels.HIGH] > 0.0
    to_low, to_high = columns[X] - columns[kernels.LOWER], columns[kernels.UPPER] - columns[X]
    products = np.concatenate([(columns[kernels.LOW] * to_low)[low],
                               (columns[kernels.HIGH] * to_high)[high]])  # fmt: skip
    if not products.size:
        return
    aim = products.mean()
    columns[kernels.LOW][low] = aim / to_low[low]
    columns[kernels.HIGH][high] = aim / to_high[high]
    for room, price in ((U, rows[HI] - rows[MU]), (V, rows[MU] - rows[LO])):
        some = rows[room] > 0.0
        rows[room][some] = aim / price[some]


def factored(problem: Divided, weight: Array, stiff: Array) -> Callable[[Array], Array]:
    """How to solve with ``stiff + A' weight A``: by a factor of p by p, or of N by N if smaller."""
    A = problem.A
    if hasattr(A, "factored"):  # rows that have a way of their own
        return A.factored(weight, stiff)
    if stiff.size <= weight.size:
        factor, _ = dpotrf(curvature(A, weight, stiff).T, lower=1)
        return lambda right: dpotrs(factor, right, lower=1)[0]
    factor, _ = dpotrf(curvature(A.T, 1.0 / stiff, 1.0 / (weight + TINY)).T, lower=1)
    return lambda right: (right - dpotrs(factor, A @ (right / stiff), lower=1)[0] @ A) / stiff


def curvature(A: Any, weight: Array, stiff: Any = 1.0) -> Array:
    """``stiff + A' weight A``; the dense rows without weight are left out."""
    p = A.shape[1]
    if not isinstance(A, np.ndarray):
        B = A.squares(np.arange(p), p, weight)
    else:
        inner = np.flatnonzero(weight)
        rows = A[inner] * np.sqrt(weight[inner])[:, None]
        B = rows.T @ rows
    B.ravel()[:: p + 1] += stiff
    return B


def well_inside(y: Array, lower: Array, upper: Array) -> Array:
    """The nearest point to y that keeps away from the bounds."""
    low, high = np.isfinite(lower), np.isfinite(upper)
    width = np.where(low & high, upper - lower, 1.0 + np.abs(np.where(low, lower, upper)))
    room = np.where(low | high, 0.1 * width, 0.0)
    return np.minimum(np.maximum(y, lower + room), upper - room)


def snapped(rows: Array, lo: Array, hi: Array, length: Array, unit: float) -> Array:
    """The multipliers, at a bound where the room is larger than its price."""
    mu = np.where(rows[U] > unit * (rows[HI] - rows[MU]), hi, rows[MU] / length)
    mu = np.where(rows[V] > unit * (rows[MU] - rows[LO]), lo, mu)
    return np.minimum(np.maximum(mu, lo), hi)
