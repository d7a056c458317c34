"""Rows that cannot all be met, from inside: which multipliers are at a bound.

Where more rows pull than there are coordinates, most multipliers are at their weights, and methods
that go from piece to piece meet very many pieces. The primal-dual interior-point method
(``native/interior_point``) knows none: some ten systems of p by p, or N by N, tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.solver.api import interior_point
from coldq.solver.constants import MAX_DENSE_ENTRIES
from coldq.solver.problem import ONE_BOX

# Of the first mean product of a room and its price: where what decides may be known.
BARRIER_STOPS = (1e-6, 1e-8, 1e-11, 1e-14, 1e-17, 1e-20)


def from_inside(
    center: Array, gradient: Array, alpha: float | Array, low: Array, high: Array, A: Any,
    b: Array, lower: Array, upper: Array, blocks: Any = ONE_BOX, near: bool = False,
) -> Iterator[Array]:  # fmt: skip
    """Multipliers that get ever nearer; those that are at a bound are so exactly.

    Where rows are `near` to being met, it takes fewer steps to be told so.
    """
    if not isinstance(A, np.ndarray):
        if A.shape[0] * A.shape[1] > MAX_DENSE_ENTRIES:
            return
        A = A.toarray()
    given = center, gradient, alpha, low, high, A, b, lower, upper, *blocks, float(near)
    given = [np.asarray(array, np.float64, order="C") for array in given]
    state, reached = np.zeros(4 + 3 * (A.shape[0] + len(blocks[0]) + A.shape[1])), 1.0
    for share in BARRIER_STOPS:
        if reached <= share:
            continue
        found, state, reached = interior_point(*given, share, state)
        if not reached <= share:
            return
        yield found
