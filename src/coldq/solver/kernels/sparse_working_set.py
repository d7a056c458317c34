"""Many sparse rows on a box, of which few hold x back: as :mod:`~.working_set` has dense ones.

A round's step has the coordinates that its rows enter, and no others. So a round costs one pass
over the nonzeros beside a small dense step, however many coordinates there are.
"""

import math

from coldq.compiled import address_of, compiled, kernel, matrix, vector
from coldq.solver.constants import X_FLOOR
from coldq.solver.kernels.affine import UNSETTLED
from coldq.solver.kernels.by_address import CALL, run_affine
from coldq.solver.kernels.piece import (
    CHOSEN, FIRST_LINES, HI, LO, MU, NORM, SCALE, SIDE, SOFT, G, scratch_size,
)  # fmt: skip
from coldq.solver.kernels.working_set import (
    ALL, FIRST, ITS_B, ITS_D, ITS_HI, ITS_LO, ITS_ROWS, ITS_SOFT, LOOK, MOST, NUMBERS, ROUNDS,
    WORK, change, choose, clash, violated,
)  # fmt: skip

ITS_Y, ITS_GRADIENT, ITS_LOWER, ITS_UPPER, ITS_X, ITS_COLUMNS = range(6)
LEAST = 20_000  # numbers that a round's step may have in any case
ALONE = 2  # entries of a column: with fewer on average, rows hardly touch each other
HEAD = CALL + NUMBERS + ITS_ROWS * MOST


def sparse_working_size(n: int, p: int, entries: int) -> int:
    """How many numbers a step may work in: about as many as it is given."""
    return HEAD + FIRST_LINES * n + p + 2 * entries + LEAST


@compiled
def set_sparse_values(data, indices, indptr, b, x, rows):
    """The rows' values at x, and the size of their terms."""
    for k in range(b.size):
        value = 0.0
        size = 0.0
        for e in range(indptr[k], indptr[k + 1]):
            at = x[indices[e]]
            value += data[e] * at
            size += abs(data[e]) * max(abs(at), X_FLOOR)
        rows[G, k] = value - b[k]
        rows[SCALE, k] = size + abs(b[k])


@compiled
def begin_sparse(data, indices, indptr, y, b, lo, hi, lower, upper, x, z, rows):
    """Set the multipliers nearest to zero, and z, x and g that belong to them; whether all can."""
    finite = 0.0
    for i in range(y.size):
        z[i] = y[i]
        finite += 0.0 * y[i]
    if not (finite == 0.0):
        return False
    for k in range(b.size):
        rows[LO, k] = lo[k]
        rows[HI, k] = hi[k]
        rows[SOFT, k] = 0.0
        rows[SIDE, k] = 0.0
        rows[MU, k] = min(max(0.0, lo[k]), hi[k])
        norm = 0.0
        for e in range(indptr[k], indptr[k + 1]):
            i = indices[e]
            z[i] -= rows[MU, k] * data[e]
            norm += data[e] * data[e] if lower[i] < upper[i] else 0.0
        rows[NORM, k] = norm
    for i in range(y.size):
        x[i] = min(max(z[i], lower[i]), upper[i])
    set_sparse_values(data, indices, indptr, b, x, rows)
    for k in range(b.size):
        if rows[NORM, k] == 0.0 and rows[G, k] != 0.0:
            # The row is constant on X: its multiplier is at a bound, once and for all.
            rows[MU, k] = hi[k] if rows[G, k] > 0.0 else lo[k]
            if abs(rows[MU, k]) == math.inf:
                return False
    return True


@compiled
def list_columns(indices, indptr, rows, m, places, room):
    """Number the coordinates that the chosen rows enter; how many, or -1 if there is no room."""
    q = 0
    for a in range(m):
        k = int(rows[CHOSEN, a])
        for e in range(indptr[k], indptr[k + 1]):
            if places[indices[e]] < 0:
                places[indices[e]] = q
                q += 1
    needed = (ITS_COLUMNS + m) * q + scratch_size(m, q)
    return q if needed <= room else -1


@compiled
def pose_sparse(data, indices, indptr, b, lower, upper, z, rows, m, places, its_rows, its, its_A):
    """Put down the problem of how the chosen multipliers change, in its own coordinates."""
    for a in range(m):
        for c in range(its_A.shape[1]):
            its_A[a, c] = 0.0
    for a in range(m):
        k = int(rows[CHOSEN, a])
        its_rows[ITS_B, a] = b[k]
        its_rows[ITS_LO, a] = rows[LO, k] - rows[MU, k]
        its_rows[ITS_HI, a] = rows[HI, k] - rows[MU, k]
        its_rows[ITS_SOFT, a] = 0.0
        for e in range(indptr[k], indptr[k + 1]):
            i = indices[e]
            c = places[i]
            its_A[a, c] += data[e]
            its[ITS_Y, c] = z[i]
            its[ITS_GRADIENT, c] = 0.0
            its[ITS_LOWER, c] = lower[i]
            its[ITS_UPPER, c] = upper[i]


@compiled
def take_back(data, indices, indptr, rows, m, places, its, its_rows, x, z):
    """Bring z, x and the multipliers up to date with what was found, and forget the numbering."""
    for a in range(m):
        k = int(rows[CHOSEN, a])
        its_rows[ITS_B, a] = rows[MU, k]
    change(rows, its_rows, m)
    for a in range(m):
        k = int(rows[CHOSEN, a])
        moved = rows[MU, k] - its_rows[ITS_B, a]
        for e in range(indptr[k], indptr[k + 1]):
            i = indices[e]
            z[i] -= moved * data[e]
            if places[i] >= 0:
                x[i] = its[ITS_X, places[i]]
                places[i] = -1


@kernel("VIIVVVVVVVVVIVi")
def sparse_working_set(
    data, indices, indptr, y, b, lo, hi, lower, upper, x, mu, memory, places, code, at_once
):  # fmt: skip
    """Set x and mu of a problem divided by 2 alpha; whether these should be the answer.

    `places` comes as -1 for every coordinate; `code` is the address of the affine step's. If rows
    may be taken `at_once`, it is told soon that most of them matter.
    """
    n, p = b.size, y.size
    at = address_of(memory, 0)
    half_at = at + 8 * CALL
    its_rows_at = half_at + 8 * NUMBERS
    rows_at = its_rows_at + 8 * ITS_ROWS * MOST
    z_at = rows_at + 8 * FIRST_LINES * n
    its_columns_at = z_at + 8 * p
    room = memory.size - HEAD - FIRST_LINES * n - p
    numbers, its_rows = vector(half_at, NUMBERS), matrix(its_rows_at, ITS_ROWS, MOST)
    rows, z = matrix(rows_at, FIRST_LINES, n), vector(z_at, p)
    if not begin_sparse(data, indices, indptr, y, b, lo, hi, lower, upper, x, z, rows):
        return 0
    numbers[0] = 0.5
    look = 0 if data.size < ALONE * p else LOOK
    first = 0
    for count in range(2 * ROUNDS):
        wrong = violated(rows, n)
        first = wrong if count == 0 else first
        if at_once and clash(n, p, first, wrong, count):
            return 0
        if wrong == 0:
            for k in range(n):
                mu[k] = rows[MU, k]
            return 1
        if count == look and wrong > MOST and 2 * wrong > first:
            return 0  # those put right did not help the others: more decide than a set can hold
        m = choose(rows, n, p, ALL if wrong <= ALL else FIRST)
        if m < 0:
            return 0
        q = list_columns(indices, indptr, rows, m, places, room)
        if q < 0:
            return 0
        its_columns = matrix(its_columns_at, ITS_COLUMNS, q)
        its_A_at = its_columns_at + 8 * ITS_COLUMNS * q
        pose_sparse(
            data, indices, indptr, b, lower, upper, z, rows, m, places, its_rows, its_columns,
            matrix(its_A_at, m, q),
        )  # fmt: skip
        numbers[1] = WORK / (m * m * m)
        found = run_affine(
            address_of(code, 0), at, q, m, its_columns_at, its_columns_at + 8 * ITS_GRADIENT * q,
            half_at, its_rows_at + 8 * ITS_LO * MOST, its_rows_at + 8 * ITS_HI * MOST,
            its_rows_at + 8 * ITS_SOFT * MOST, its_A_at, its_rows_at + 8 * ITS_B * MOST,
            its_columns_at + 8 * ITS_LOWER * q, its_columns_at + 8 * ITS_UPPER * q, half_at + 8,
            its_A_at + 8 * m * q, its_columns_at + 8 * ITS_X * q, its_rows_at + 8 * ITS_D * MOST,
            0, 0,
        )  # fmt: skip
        if not (found < UNSETTLED):
            return 0
        take_back(data, indices, indptr, rows, m, places, its_columns, its_rows, x, z)
        set_sparse_values(data, indices, indptr, b, x, rows)
    return 0
