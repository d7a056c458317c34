"""The quadratic piece of the dual of affine rows on a product of simplices, and its maximum.

Its curvature is ``A_F (I - 11'/f) A_F'`` over the f free coordinates F of each block. A is dense,
or sparse by rows; that is turned once, and the curvature then costs its nonzeros.
"""

import math

from coldq.compiled import compiled, matrix
from coldq.solver.constants import X_FLOOR
from coldq.solver.kernels.piece import (
    CHOSEN, DOWN, GAIN, HESSIAN, OPEN, RHS, SCALE, SIDE, SLOPE, STEP, UP, D, G,
)  # fmt: skip
from coldq.solver.kernels.thresholds import FIRST, NTH, SHARE, THETA, Z, part

ROUNDS = 6  # of pivoting, most of which end after two
SMALL = 8  # coordinates up to which a block's columns are centred before they are multiplied


@compiled
def add_row(data, indices, indptr, k, by, out):
    """Add a multiple of a row of A."""
    if indptr.size == 0:
        row = part(data, k * out.size, out.size)
        for i in range(row.size):
            out[i] += by * row[i]
    else:
        for e in range(indptr[k], indptr[k + 1]):
            out[indices[e]] += by * data[e]


@compiled
def set_values(data, indices, indptr, b, x, rows):
    """The dual's gradient, and the size of the terms that each of its entries is the sum of."""
    p = x.size
    for k in range(b.size):
        value = 0.0
        size = 0.0
        if indptr.size == 0:
            row = part(data, k * p, p)
            for i in range(p):
                value += row[i] * x[i]
                size += abs(row[i]) * max(abs(x[i]), X_FLOOR)
        else:
            for e in range(indptr[k], indptr[k + 1]):
                value += data[e] * x[indices[e]]
                size += abs(data[e]) * max(abs(x[indices[e]]), X_FLOOR)
        rows[G, k] = value - b[k]
        rows[SCALE, k] = size + abs(b[k])


@compiled
def turn(data, indices, indptr, data_to, index_to, pointer_to):
    """The same matrix by columns."""
    p = pointer_to.size - 1
    for i in range(p + 1):
        pointer_to[i] = 0
    for e in range(indices.size):
        pointer_to[indices[e] + 1] += 1
    for i in range(p):
        pointer_to[i + 1] += pointer_to[i]
    for k in range(indptr.size - 1):
        for e in range(indptr[k], indptr[k + 1]):
            to = pointer_to[indices[e]]
            data_to[to] = data[e]
            index_to[to] = k
            pointer_to[indices[e]] = to + 1
    for i in range(p, 0, -1):
        pointer_to[i] = pointer_to[i - 1]
    pointer_to[0] = 0


@compiled
def curvature_of_dense(data, lower, upper, columns, blocks, kind, rows, m, free, B_):
    """The piece's Hessian of the chosen rows, by their free entries, centred in every block.

    Of f free coordinates with a fixed sum f - 1 differences are left, Helmert's: that of the j-th
    to the mean of those before it, times the root of j / (j + 1). NTH has j, and -1 where no sum is
    fixed; SHARE that root over j.
    """
    z, p = columns[Z], lower.size
    nth, share = columns[NTH], columns[SHARE]
    f = 0
    width = 0
    for j in range(kind.size):
        held = kind[j] < 0.0 or (kind[j] == 0.0 and blocks[THETA, j] > 0.0)
        count = 0.0
        for i in range(int(blocks[FIRST, j]), int(blocks[FIRST, j + 1])):
            if lower[i] < z[i] and z[i] < upper[i]:
                free[f] = i
                nth[f] = count if held else -1.0
                share[f] = 1.0 / math.sqrt(count * (count + 1.0)) if held and count > 0.0 else 1.0
                width += 0 if held and count == 0.0 else 1
                f += 1
                count += 1.0
    B = matrix(B_, m, width + 1)
    for a in range(0, m, 2):  # two at a time, the last one perhaps twice
        row = part(data, int(rows[CHOSEN, a]) * p, p)
        next_row = part(data, int(rows[CHOSEN, min(a + 1, m - 1)]) * p, p)
        own, next_own = B[a], B[min(a + 1, m - 1)]
        at = 0
        total = 0.0
        next_total = 0.0
        for c in range(f):
            i, j = free[c], nth[c]
            total = total if j > 0.0 else 0.0
            next_total = next_total if j > 0.0 else 0.0
            own[at] = (total - j * row[i]) * share[c]
            next_own[at] = (next_total - j * next_row[i]) * share[c]
            total += row[i]
            next_total += next_row[i]
            at += 1 if j != 0.0 else 0
    for a in range(m):
        own = B[a]
        for c in range(0, a + 1, 4):  # four at a time, with the last ones again at the end
            first = max(min(c, a - 3), 0)
            one, two = B[first], B[min(first + 1, a)]
            three, four = B[min(first + 2, a)], B[min(first + 3, a)]
            s1 = s2 = s3 = s4 = 0.0
            for e in range(width):
                s1 += own[e] * one[e]
                s2 += own[e] * two[e]
                s3 += own[e] * three[e]
                s4 += own[e] * four[e]
            line = rows[HESSIAN + a]
            line[first] = s1
            line[min(first + 1, a)] = s2
            line[min(first + 2, a)] = s3
            line[min(first + 3, a)] = s4
        for c in range(a):
            rows[HESSIAN + c, a] = rows[HESSIAN + a, c]


@compiled
def curvature_of_sparse(data, index, pointer, lower, upper, columns, blocks, kind, rows, n, m):
    """The same of a matrix by columns: STEP has a row's place or -1, OPEN a list of places, RHS
    sums over a block, SLOPE a centred column."""
    z = columns[Z]
    for k in range(n):
        rows[STEP, k] = -1.0
    for a in range(m):
        rows[STEP, int(rows[CHOSEN, a])] = a
        rows[SIDE, a] = 0.0
        rows[RHS, a] = 0.0
        for c in range(m):
            rows[HESSIAN + a, c] = 0.0
    for j in range(kind.size):
        held = kind[j] < 0.0 or (kind[j] == 0.0 and blocks[THETA, j] > 0.0)
        first, last = int(blocks[FIRST, j]), int(blocks[FIRST, j + 1])
        free = 0
        for i in range(first, last):
            free += 1 if lower[i] < z[i] and z[i] < upper[i] else 0
        if free < (2 if held else 1) or pointer[first] == pointer[last]:
            continue
        listed = 0
        for i in range(first, last):
            if lower[i] < z[i] and z[i] < upper[i]:
                for e in range(pointer[i], pointer[i + 1]):
                    a = int(rows[STEP, index[e]])
                    if a >= 0:
                        if rows[SIDE, a] == 0.0:
                            rows[SIDE, a] = 1.0
                            rows[OPEN, listed] = a
                            listed += 1
                        rows[RHS, a] += data[e]
        if listed == 0:
            continue
        centred = held and free <= SMALL
        for i in range(first, last):
            if not (lower[i] < z[i] and z[i] < upper[i]):
                continue
            if centred:
                for u in range(listed):
                    rows[SLOPE, u] = -rows[RHS, int(rows[OPEN, u])] / free
                for e in range(pointer[i], pointer[i + 1]):
                    for u in range(listed):
                        if rows[OPEN, u] == rows[STEP, index[e]]:
                            rows[SLOPE, u] += data[e]
                for u in range(listed):
                    for v in range(listed):
                        rows[HESSIAN + int(rows[OPEN, u]), int(rows[OPEN, v])] += (
                            rows[SLOPE, u] * rows[SLOPE, v]
                        )
            else:
                for e in range(pointer[i], pointer[i + 1]):
                    a = int(rows[STEP, index[e]])
                    if a >= 0:
                        for h in range(pointer[i], pointer[i + 1]):
                            c = int(rows[STEP, index[h]])
                            if c >= 0:
                                rows[HESSIAN + a, c] += data[e] * data[h]
        if held and not centred:
            for u in range(listed):
                a = int(rows[OPEN, u])
                for v in range(listed):
                    c = int(rows[OPEN, v])
                    rows[HESSIAN + a, c] -= rows[RHS, a] * rows[RHS, c] / free
        for u in range(listed):
            a = int(rows[OPEN, u])
            rows[SIDE, a] = 0.0
            rows[RHS, a] = 0.0


@compiled
def solve_open(rows, n, count):
    """Solve ``H d = RHS`` over the open rows of the piece by Cholesky's method, row by row."""
    factor = HESSIAN + n
    for a in range(count):
        i = int(rows[OPEN, a])
        for c in range(a + 1):
            s = 0.0
            for e in range(c):
                s += rows[factor + a, e] * rows[factor + c, e]
            s = rows[HESSIAN + i, int(rows[OPEN, c])] - s
            if c < a:
                rows[factor + a, c] = s * rows[factor + c, c]
            else:
                rows[factor + a, a] = 1.0 / math.sqrt(max(s, 1e-14 * rows[HESSIAN + i, i]))
        s = 0.0
        for e in range(a):
            s += rows[factor + a, e] * rows[STEP, e]
        rows[STEP, a] = (rows[RHS, i] - s) * rows[factor + a, a]
    for a in range(count - 1, -1, -1):
        x = rows[STEP, a] * rows[factor + a, a]
        for e in range(a):
            rows[STEP, e] -= rows[factor + a, e] * x
        rows[D, int(rows[OPEN, a])] = x


@compiled
def pivot(rows, n, m):
    """Maximise ``GAIN'd - d'Hd / 2`` over ``DOWN <= d <= UP`` by block principal pivoting.

    That guesses which entries are at a bound and corrects all wrong guesses at once. Where it does
    not end soon, more curvature is added: a shorter step, but up. Returns how many systems it took.
    """
    for attempt in range(3 * ROUNDS):
        if attempt % ROUNDS == 0:
            for k in range(m):
                rows[SIDE, k] = 0.0
                if attempt > 0:
                    rows[HESSIAN + k, k] *= 1.001 if attempt == ROUNDS else 2.0
        count = 0
        for k in range(m):
            rows[STEP, k] = 0.0
            if rows[SIDE, k] == 0.0:
                rows[OPEN, count] = k
                count += 1
            else:
                rows[STEP, k] = rows[DOWN, k] if rows[SIDE, k] < 0.0 else rows[UP, k]
        for k in range(m):
            s = 0.0
            if count < m:
                for c in range(m):
                    s += rows[HESSIAN + k, c] * rows[STEP, c]
            rows[RHS, k] = rows[GAIN, k] - s
            rows[D, k] = rows[STEP, k]
        solve_open(rows, n, count)
        ended = True
        for k in range(m):
            side = rows[SIDE, k]
            if side == 0.0:
                if rows[D, k] < rows[DOWN, k]:
                    rows[SIDE, k] = -1.0
                    ended = False
                elif rows[D, k] > rows[UP, k]:
                    rows[SIDE, k] = 1.0
                    ended = False
            else:
                slope = rows[GAIN, k]
                for a in range(m):
                    slope -= rows[HESSIAN + k, a] * rows[D, a]
                if side * slope < 0.0:
                    rows[SIDE, k] = 0.0
                    ended = False
        if ended:
            return 1 + attempt
    for k in range(m):
        d = rows[GAIN, k] / rows[HESSIAN + k, k]
        rows[D, k] = min(max(d, rows[DOWN, k]), rows[UP, k])
    return 3 * ROUNDS
