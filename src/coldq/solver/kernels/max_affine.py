"""Max-affine rows, compiled: hinges on a box, and the residual of all.

If just those pieces decide which an interior-point method finds, the answer is that of one linear
system.
"""

import math

from coldq.compiled import address_of, batch_kernel, compiled, inlined, kernel, matrix, vector
from coldq.solver.constants import DOUBT, LEAST_SIZE, TINY, X_FLOOR
from coldq.solver.kernels.factors import product
from coldq.solver.kernels.piece import memory_of, told
from coldq.solver.kernels.pieces_inside import is_by_rows, walk_inside

NEAR = 1e-11  # of a sum of multipliers: how far it may be from a cap that it is at


@inlined
def widest(m, p):
    """How large the linear system may be: pieces that do not depend on each other."""
    return min(m, p)


@inlined
def hinges_scratch_size(m, n, p):
    """How many numbers :func:`hinges_step` works on, for m pieces of n rows."""
    system = (m + n) * m + n * n if is_by_rows(m, p) else (p + n) * p
    wide = widest(m, p)
    return system + m * p + wide * (wide + 1) + 13 * p + 9 * m + 12 * n


@inlined
def power_above(size):
    """The power of two above a size, 1 for 0: a division by it is exact."""
    power = 1.0
    if 0.0 < size and size < 1e300:
        while power <= size:
            power *= 2.0
        while 0.5 * power > size:
            power *= 0.5
    return power


@compiled
def eliminate(K, right, size):
    """Solve ``K z = right`` in place by Gauss's method; whether there is one answer."""
    for c in range(size):
        best = c
        for a in range(c + 1, size):
            if abs(K[a, c]) > abs(K[best, c]):
                best = a
        if not abs(K[best, c]) > 0.0:
            return False
        if best != c:
            right[c], right[best] = right[best], right[c]
            for e in range(c, size):
                K[c, e], K[best, e] = K[best, e], K[c, e]
        for a in range(c + 1, size):
            share = K[a, c] / K[c, c]
            if share != 0.0:
                right[a] -= share * right[c]
                for e in range(c + 1, size):
                    K[a, e] -= share * K[c, e]
    for c in range(size - 1, -1, -1):
        right[c] /= K[c, c]
        for a in range(c):
            right[a] -= K[a, c] * right[c]
    return True


@compiled
def cross_over(
    y, A, b, group, cost, lower, upper, K, right, which, base, left, height, held, x, s, mu
):  # fmt: skip
    """Set the answer if exactly the pieces with multipliers decide, x is free where no bound holds
    it, and rows are above zero where s > 0.

    Of such a row the pieces are equal and their multipliers sum up to its cost: one of them, the
    `base`, has what the others leave, and these are relative to it. Of other rows the pieces are
    zero. Whether it is the answer: else all but A and b are as they were.
    """
    m, p = A.shape
    n = cost.size
    for k in range(n):
        base[k] = -1.0
    for r in range(m):
        k = int(group[r])
        if s[k] > 0.0 and mu[r] > 0.0 and (base[k] < 0.0 or mu[r] > mu[int(base[k])]):
            base[k] = r
    for i in range(p):
        held[i] = y[i] if lower[i] < x[i] and x[i] < upper[i] else x[i]
    for k in range(n):
        if s[k] > 0.0:
            if base[k] < 0.0:
                return False
            for i in range(p):
                if lower[i] < x[i] and x[i] < upper[i]:
                    held[i] -= cost[k] * A[int(base[k]), i]
    c = 0
    for r in range(m):
        first = int(base[int(group[r])])
        if mu[r] > 0.0 and first != r:
            if c == right.size:
                return False  # they depend on each other
            if first >= 0:
                b[r] -= b[first]
                for i in range(p):
                    A[r, i] -= A[first, i]
            which[c] = r
            right[c] = product(address_of(A, r * p), address_of(held, 0), p) - b[r]
            for i in range(p):
                A[r, i] = A[r, i] if lower[i] < x[i] and x[i] < upper[i] else 0.0
            c += 1
    for a in range(c):
        line = address_of(A, int(which[a]) * p)
        for e in range(a + 1):
            K[a, e] = K[e, a] = product(line, address_of(A, int(which[e]) * p), p)
    if not eliminate(K, right, c):
        return False
    for k in range(n):
        left[k] = cost[k]
    for a in range(c):
        r = int(which[a])
        if not right[a] >= 0.0:
            return False
        left[int(group[r])] -= right[a]
        for i in range(p):
            held[i] -= right[a] * A[r, i]
    for i in range(p):
        held[i] = min(max(held[i], lower[i]), upper[i])
    for k in range(n):
        height[k] = 0.0
        if base[k] >= 0.0:
            first = int(base[k])
            height[k] = product(address_of(A, first * p), address_of(held, 0), p) - b[first]
            if not (left[k] >= 0.0 and height[k] >= 0.0):
                return False
    for i in range(p):
        x[i] = held[i]
    for a in range(c):
        mu[int(which[a])] = right[a]
    for k in range(n):
        s[k] = height[k]
        if base[k] >= 0.0:
            mu[int(base[k])] = left[k]
    return True


@compiled
def set_hinges(
    center, gradient, alpha, weights, A, b, group, lower, upper,
    scaled, limit, steep, cost, y, low, high, x,
):  # fmt: skip
    """The problem divided by 2 alpha, in units in which x and slopes are of size 1.

    Powers of two: a group's, of which `steep` is set, and that of x, which is returned.
    """
    m, p = A.shape
    n = weights.size
    half = 0.5 / alpha
    size = 0.0
    for i in range(p):
        y[i] = center[i] - gradient[i] * half
        x[i] = min(max(y[i], lower[i]), upper[i])
        size = max(size, abs(x[i]), min(DOUBT * abs(y[i]), upper[i] - lower[i]))
    unit = power_above(size)
    for k in range(n):
        steep[k] = 0.0
    for r in range(m):
        k = int(group[r])
        for i in range(p):
            steep[k] = max(steep[k], abs(A[r, i]))
    for k in range(n):
        steep[k] = power_above(steep[k])
        cost[k] = weights[k] * half / unit * steep[k]
    for r in range(m):
        rise = steep[int(group[r])]
        limit[r] = b[r] / (rise * unit)
        for i in range(p):
            scaled[r, i] = A[r, i] / rise
    for i in range(p):
        y[i] /= unit
        x[i] /= unit
        low[i] = lower[i] / unit
        high[i] = upper[i] / unit
    return unit


@compiled
def is_met(A, b, x):
    """Whether no piece is above zero."""
    for r in range(b.size):
        if not product(address_of(A, r * x.size), address_of(x, 0), x.size) <= b[r]:
            return False
    return True


@compiled
def set_values(A, b, x, mu, known, pull, size, values, scales):
    """A x - b with the sizes of its terms; add A'mu to `pull`, and |A|'|mu| to `size`.

    In a row coordinates count at least with X_FLOOR of the largest size known in it.
    """
    for r in range(b.size):
        most = 0.0
        for i in range(x.size):
            most = max(most, known[i] if A[r, i] != 0.0 else 0.0)
        value, scale = -b[r], abs(b[r])
        for i in range(x.size):
            value += A[r, i] * x[i]
            scale += abs(A[r, i]) * max(abs(x[i]), X_FLOOR * most)
        values[r] = value
        scales[r] = scale if scale > 0.0 else 1.0
        if mu[r] != 0.0:
            for i in range(x.size):
                term = A[r, i] * mu[r]
                pull[i] += term
                size[i] += abs(term)


@compiled
def judge(
    y, A, b, group, low, high, plain, limit, lo, hi, lower, upper, x, mu, nu,
    columns, rows, groups, beside,
):  # fmt: skip
    n = high.size
    pull, size, values, scales = columns[0], columns[1], rows[0], rows[1]
    top, widest, sums = groups[0], groups[1], groups[2]
    known = columns[2]
    for i in range(y.size):
        known[i] = max(abs(x[i]), min(DOUBT * abs(y[i]), upper[i] - lower[i]))
        pull[i] = 0.0
        size[i] = max(abs(x[i]) + abs(y[i]), TINY)
    set_values(A, b, x, mu, known, pull, size, values, scales)
    set_values(plain, limit, x, nu, known, pull, size, beside[0], beside[1])
    for k in range(n):
        top[k] = -math.inf
        widest[k] = 0.0
        sums[k] = 0.0
    for r in range(b.size):
        k = int(group[r])
        top[k] = max(top[k], values[r])
        widest[k] = max(widest[k], scales[r])
        sums[k] += mu[r]
    least = TINY
    for i in range(y.size):
        least = max(least, LEAST_SIZE * abs(x[i]))
    worst = 0.0
    broken = 0.0
    for i in range(y.size):
        # Off by the least of two: in its slope, relative to the terms of that, or in its way to
        # where the slope would lead, relative to its own size.
        way = abs(x[i] - min(max(y[i] - pull[i], lower[i]), upper[i]))
        off = min(way / max(known[i], least), abs(x[i] - y[i] + pull[i]) / size[i])
        worst = max(worst, off)
        broken += off
    for r in range(b.size):
        broken += values[r] + 0.0 * mu[r]
        if mu[r] > 0.0:
            worst = max(worst, (top[int(group[r])] - values[r]) / widest[int(group[r])])
    for k in range(n):
        total = min(sums[k], high[k])
        if abs(sums[k] - high[k]) <= NEAR * sums[k]:
            total = high[k]
        if (total < high[k] and top[k] > 0.0) or (total > low[k] and top[k] < 0.0):
            worst = max(worst, abs(top[k]) / widest[k])
        off = max(abs(sums[k] - total), low[k] - total) / max(total, TINY)
        worst = max(worst, off)
        broken += off
    for r in range(limit.size):
        g = beside[0, r]
        broken += g + 0.0 * nu[r]
        if (nu[r] < hi[r] and g > 0.0) or (nu[r] > lo[r] and g < 0.0):
            worst = max(worst, abs(g) / beside[1, r])
    return worst if abs(broken) < math.inf else math.nan


@kernel("VMVVVVMVVVVVVVVMMMM")
def pieces_residual(
    y, A, b, group, low, high, plain, limit, lo, hi, lower, upper, x, mu, nu,
    columns, rows, groups, beside,
):  # fmt: skip
    """The relative KKT residual of x, mu and nu; the last arguments are memory to work in."""
    return judge(
        y, A, b, group, low, high, plain, limit, lo, hi, lower, upper, x, mu, nu,
        columns, rows, groups, beside,
    )  # fmt: skip


@compiled
def solve_hinges(
    center, gradient, alpha, floor, weights, A, b, group, lower, upper, memory,
    x, mu, s, multipliers,
):  # fmt: skip
    """Set the answer and its residual; an infinite one if these are not rows for this method.

    Where the residual is large, all but the multipliers are nearly the answer, or x is NaN.
    """
    m, p = A.shape
    n = weights.size
    plain = m > n
    for k in range(n):
        plain = plain and floor[k] == 0.0 and 0.0 < weights[k] and weights[k] < math.inf
        s[k] = multipliers[k] = 0.0
    for r in range(m):
        mu[r] = 0.0
    for i in range(p):
        plain = plain and lower[i] < upper[i]
        x[i] = math.nan
    if not plain:
        return math.inf
    by_rows = is_by_rows(m, p)
    size = m if by_rows else p
    system = matrix(memory, size, size)
    memory += 8 * size * size
    V = matrix(memory, n, size)
    memory += 8 * n * size
    T = matrix(memory, n if by_rows else 0, n)
    memory += 8 * (n * n if by_rows else 0)
    scaled = matrix(memory, m, p)
    memory += 8 * m * p
    wide = widest(m, p)
    right = vector(memory, wide)
    K = matrix(memory + 8 * wide, wide, wide)
    memory += 8 * wide * (wide + 1)
    lines = matrix(memory, 6, p)
    columns = matrix(memory + 48 * p, 7, p)
    memory += 8 * 13 * p
    rows = matrix(memory, 4, m)
    pieces = matrix(memory + 32 * m, 5, m)
    groups = matrix(memory + 72 * m, 4, n)
    own = matrix(memory + 72 * m + 32 * n, 8, n)
    y, low, high, held = columns[3], columns[4], columns[5], columns[6]
    limit, room, which = pieces[2], pieces[3], pieces[4]
    steep, cost = own[3], own[4]
    unit = set_hinges(
        center, gradient, alpha, weights, A, b, group, lower, upper,
        scaled, limit, steep, cost, y, low, high, x,
    )  # fmt: skip
    found = is_met(scaled, limit, x)
    if not found:
        walk_inside(
            y, scaled, limit, group, cost, low, high, system, V, T, lines, rows, groups,
            x, s, mu, room,
        )  # fmt: skip
        found = cross_over(
            y, scaled, limit, group, cost, low, high, K, right, which, own[5], own[6], own[7], held,
            x, s, mu,
        )  # fmt: skip
    half = 0.5 / alpha
    for i in range(p):
        y[i] = center[i] - gradient[i] * half
        x[i] = min(max(x[i] * unit, lower[i]), upper[i])
    for k in range(n):
        s[k] *= steep[k] * unit
        own[6, k] = 0.0
        own[7, k] = weights[k] * half
    for r in range(m):
        k = int(group[r])
        mu[r] *= unit / steep[k]
        multipliers[k] += mu[r]
    for k in range(n):
        total, cap = multipliers[k], own[7, k]
        at_cap = abs(total - cap) <= NEAR * total or total >= cap
        multipliers[k] = weights[k] if at_cap else total / half
    if not found:
        return math.inf
    none, nothing = vector(memory, 0), matrix(memory, 0, p)
    return judge(
        y, A, b, group, own[6], own[7], nothing, none, none, none, lower, upper, x, mu, none,
        columns, pieces, own, matrix(memory, 2, 0),
    )  # fmt: skip


@batch_kernel("(p),(p),(),(n),(n),(m,p),(m),(m),(p),(p),(s)->(p),(m),(n),(n),()")
def hinges_step(sizes, at):
    """Rows n that are the largest of the pieces m, on a box: center, gradient, alpha, floor,
    weights, A, b, the row of each piece, lower, upper, memory; x, the pieces' multipliers over
    2 alpha, what rows are above zero, the rows' multipliers, residual."""
    p, n, m, size = sizes[0], sizes[1], sizes[2], sizes[3]
    memory = memory_of(at[10], size, at[16], hinges_scratch_size(m, n, p))
    if memory == 0:
        return math.nan
    residual = solve_hinges(
        vector(at[0], p), vector(at[1], p), vector(at[2], 1)[0], vector(at[3], n),
        vector(at[4], n), matrix(at[5], m, p), vector(at[6], m), vector(at[7], m),
        vector(at[8], p), vector(at[9], p), memory,
        vector(at[11], p), vector(at[12], m), vector(at[13], n), vector(at[14], n),
    )  # fmt: skip
    return told(at[15], residual)
