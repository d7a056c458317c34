"""Cholesky's factor, and how to solve with it."""

import math

from coldq.compiled import compiled
from coldq.solver.constants import TINY


@compiled
def cholesky(M, L, order, count, least):
    """The factor of M over the coordinates in `order`, in the lower half of L, which may be M.

    A pivot is at least this share of the diagonal entry.
    """
    for a in range(count):
        i = int(order[a])
        for c in range(a):
            s = M[i, int(order[c])]
            for e in range(c):
                s -= L[a, e] * L[c, e]
            L[a, c] = s / L[c, c]
        s = M[i, i]
        least_s = max(least * s, TINY)
        for e in range(a):
            s -= L[a, e] * L[a, e]
        L[a, a] = math.sqrt(max(s, least_s))


@compiled
def cholesky_solve(L, right, count):
    """Solve with the factor, in place in the first entries of `right`."""
    for a in range(count):
        s = right[a]
        for e in range(a):
            s -= L[a, e] * right[e]
        right[a] = s / L[a, a]
    for a in range(count - 1, -1, -1):
        s = right[a]
        for e in range(a + 1, count):
            s -= L[e, a] * right[e]
        right[a] = s / L[a, a]
