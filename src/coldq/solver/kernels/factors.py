"""Products of lines of numbers, Cholesky's factor, and how to solve with it.

A sum is taken in eight lanes, of every eighth term each, and the rest after them: its bits follow
from its length alone.
"""

import math

from coldq.compiled import (
    address_of, compiled, eight, fourfold, fused, inlined, lane_at,
)  # fmt: skip
from coldq.solver.constants import TINY


@inlined
def product(left, right, count):
    """The sum of the products of so many numbers at two places."""
    total = 0.0
    if count >= 8:
        s = t = eight()
        for r in range(0, count // 8 - 1, 2):
            s = fused(lane_at(left, r, s), lane_at(right, r, s), s)
            t = fused(lane_at(left, r + 1, s), lane_at(right, r + 1, s), t)
        if count // 8 % 2 == 1:
            r = count // 8 - 1
            s = fused(lane_at(left, r, s), lane_at(right, r, s), s)
        total = fourfold(s + t)
    for r in range(count // 8 * 8, count):
        total = fused(lane_at(left, r, total), lane_at(right, r, total), total)
    return total


@compiled
def cholesky(M, L, order, count, least):
    """The factor of M over the coordinates in `order`, in the lower half of L, which may be M.

    A pivot is at least this share of the diagonal entry.
    """
    for c in range(count):
        j = int(order[c])
        line = address_of(L, c * L.shape[1])
        pivot = M[j, j]
        least_pivot = max(least * pivot, TINY)
        root = math.sqrt(max(pivot - product(line, line, c), least_pivot))
        L[c, c] = root
        for a in range(c + 1, count):
            known = product(address_of(L, a * L.shape[1]), line, c)
            L[a, c] = (M[int(order[a]), j] - known) / root


@compiled
def cholesky_solve(L, right, count):
    """Solve with the factor, in place in the first entries of `right`."""
    for a in range(count):
        known = product(address_of(L, a * L.shape[1]), address_of(right, 0), a)
        right[a] = (right[a] - known) / L[a, a]
    for a in range(count - 1, -1, -1):
        right[a] /= L[a, a]
        for e in range(a):
            right[e] -= L[a, e] * right[a]
