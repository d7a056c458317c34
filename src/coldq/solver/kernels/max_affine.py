"""Max-affine rows, compiled: an interior-point method to start from, and the residual.

    min |x - y|^2 / 2 + <cost, s>  over  <a_r, x> - s_group(r) <= b_r, s >= 0, lower <= x <= upper

An active-set method meets the pieces one by one; where no point satisfies the rows, dozens of them
hold x. Fifteen Newton steps from inside find which they are, and nearly how much each pulls.
"""

import math

from coldq.compiled import compiled, inlined, kernel
from coldq.solver.constants import DOUBT, LEAST_SIZE, TINY, X_FLOOR
from coldq.solver.kernels.factors import cholesky, cholesky_solve

STEPS = 40
LEAST, FIRST = 0.003, 0.3  # how much of the complementarity a step aims to leave
SHORT = 0.99  # of the way to the boundary
NEAR = 1e-11  # of a sum of multipliers: how far it may be from a cap that it is at
ENOUGH = 1e-12  # the complementarity left, relative to the multipliers, at which the set is clear


@inlined
def is_by_rows(m, p):
    """Whether a step's system is one over m pieces, and not over p coordinates."""
    return m < p


def shapes_inside(m: int, n: int, p: int) -> tuple[tuple[int, int], ...]:
    """The shapes of what :func:`from_inside` works in, for m pieces of n rows."""
    system = ((m, m), (n, m), (n, n)) if is_by_rows(m, p) else ((p, p), (n, p), (0, 0))
    return *system, (6, p), (4, m), (4, n)


@compiled
def add_squares(A, weight, M):
    """Add ``A' weight A`` to the lower half of M, four rows for each time that M is written."""
    m, p = A.shape
    whole = m - m % 4
    for r in range(0, whole, 4):
        for i in range(p):
            a, c = weight[r] * A[r, i], weight[r + 1] * A[r + 1, i]
            d, e = weight[r + 2] * A[r + 2, i], weight[r + 3] * A[r + 3, i]
            for j in range(i + 1):
                M[i, j] += a * A[r, j] + c * A[r + 1, j] + d * A[r + 2, j] + e * A[r + 3, j]
    for r in range(whole, m):
        for i in range(p):
            a = weight[r] * A[r, i]
            for j in range(i + 1):
                M[i, j] += a * A[r, j]


@compiled
def begin_inside(y, A, b, group, cost, lower, upper, lines, groups, x, s, mu, t):
    """Set a point well inside, and return how many products of a multiplier and its room it has."""
    m, p = A.shape
    n = cost.size
    zl, zu = lines[0], lines[1]
    nu, S = groups[0], groups[2]
    for i in range(p):
        low, high = lower[i], upper[i]
        if low > -math.inf and high < math.inf:
            x[i] = min(max(y[i], low + 0.1 * (high - low)), high - 0.1 * (high - low))
        else:
            x[i] = min(max(y[i], low + 0.1 * (1.0 + abs(low))), high - 0.1 * (1.0 + abs(high)))
    for k in range(n):
        s[k] = 1.0
        nu[k] = 0.5 * cost[k]
        S[k] = 0.0
    for r in range(m):
        value = -b[r]
        for i in range(p):
            value += A[r, i] * x[i]
        t[r] = value
        s[group[r]] = max(s[group[r]], 1.0 + value)
        S[group[r]] += 1.0
    total = 0.0
    for r in range(m):
        t[r] = s[group[r]] - t[r]
        mu[r] = 0.5 * cost[group[r]] / S[group[r]]
        total += mu[r] * t[r]
    for k in range(n):
        total += nu[k] * s[k]
    size = m + n
    tau = total / size
    for i in range(p):
        zl[i] = tau / (x[i] - lower[i]) if lower[i] > -math.inf else 0.0
        zu[i] = tau / (upper[i] - x[i]) if upper[i] < math.inf else 0.0
        size += (1 if lower[i] > -math.inf else 0) + (1 if upper[i] < math.inf else 0)
    return size


@compiled
def gap_inside(lower, upper, lines, groups, x, s, mu, t):
    """The sum of all products of a multiplier and its room."""
    zl, zu, nu = lines[0], lines[1], groups[0]
    gap = 0.0
    for r in range(mu.size):
        gap += mu[r] * t[r]
    for k in range(s.size):
        gap += nu[k] * s[k]
    for i in range(x.size):
        if lower[i] > -math.inf:
            gap += zl[i] * (x[i] - lower[i])
        if upper[i] < math.inf:
            gap += zu[i] * (upper[i] - x[i])
    return gap


@compiled
def newton_inside(
    tau, y, A, b, group, cost, lower, upper, M, V, T, lines, rows, groups, x, s, mu, t
):  # fmt: skip
    """Set the step of x and of s towards products of tau, and what each row is off by."""
    m, p = A.shape
    n = cost.size
    zl, zu, right, stiff = lines[0], lines[1], lines[3], lines[5]
    weight, pull = rows[0], rows[1]
    nu, S, push = groups[0], groups[2], groups[3]
    for k in range(n):
        S[k] = nu[k] / s[k]
        push[k] = -cost[k] + tau / s[k]  # minus the residual, and the centring
    for i in range(p):
        right[i] = y[i] - x[i]
        stiff[i] = 1.0
        if lower[i] > -math.inf:
            stiff[i] += zl[i] / (x[i] - lower[i])
            right[i] += tau / (x[i] - lower[i])
        if upper[i] < math.inf:
            stiff[i] += zu[i] / (upper[i] - x[i])
            right[i] -= tau / (upper[i] - x[i])
    for r in range(m):
        k = group[r]
        off = t[r] - s[k] - b[r]
        for i in range(p):
            off += A[r, i] * x[i]
        weight[r] = mu[r] / t[r]
        pull[r] = tau / t[r] + weight[r] * off
        push[k] += pull[r]
        rows[2, r] = off
        for i in range(p):
            right[i] -= pull[r] * A[r, i]
    if is_by_rows(m, p):
        solve_by_rows(A, group, M, V, T, lines, rows, groups)
    else:
        solve_by_columns(A, group, M, V, lines, rows, groups)


@compiled
def solve_by_columns(A, group, M, V, lines, rows, groups):
    """Solve for dx and ds: ``stiff dx + A' z = right`` and ``S ds - E' z = push``, where
    ``z = weight (A dx - E ds)`` and E has a row's group. Here z and ds are eliminated."""
    m, p = A.shape
    n = V.shape[0]
    dx, right, order, stiff = lines[2], lines[3], lines[4], lines[5]
    weight, ds, S, push = rows[0], groups[1], groups[2], groups[3]
    for i in range(p):
        for j in range(p):
            M[i, j] = 0.0
        M[i, i] = stiff[i]
        for k in range(n):
            V[k, i] = 0.0
    for r in range(m):
        k = group[r]
        S[k] += weight[r]
        for i in range(p):
            V[k, i] += weight[r] * A[r, i]
    add_squares(A, weight, M)
    # Eliminate s: S ds = V dx + push.
    for k in range(n):
        for i in range(p):
            d = V[k, i] / S[k]
            right[i] += d * push[k]
            for j in range(i + 1):
                M[i, j] -= d * V[k, j]
    for i in range(p):
        dx[i] = right[i]
        order[i] = i
    cholesky(M, M, order, p, 0.0)
    cholesky_solve(M, dx, p)
    for k in range(n):
        move = push[k]
        for i in range(p):
            move += V[k, i] * dx[i]
        ds[k] = move / S[k]


@compiled
def solve_by_rows(A, group, M, V, T, lines, rows, groups):
    """The same where pieces are fewer than coordinates: dx is eliminated, then z.

    ``M = A A' / stiff + 1 / weight``, V has ``M^-1 E`` and ``T = S + E' M^-1 E``.
    """
    m, p = A.shape
    n = V.shape[0]
    dx, right, order, stiff = lines[2], lines[3], lines[4], lines[5]
    weight, z, ds, S, push = rows[0], rows[3], groups[1], groups[2], groups[3]
    for r in range(m):
        order[r] = r
        for i in range(p):
            dx[i] = A[r, i] / stiff[i]
        for c in range(r + 1):
            total = 0.0
            for i in range(p):
                total += dx[i] * A[c, i]
            M[r, c] = total
        M[r, r] += 1.0 / weight[r]
        z[r] = 0.0
        for i in range(p):
            z[r] += dx[i] * right[i]
        for k in range(n):
            V[k, r] = 1.0 if group[r] == k else 0.0
    cholesky(M, M, order, m, 0.0)
    cholesky_solve(M, z, m)
    for k in range(n):
        cholesky_solve(M, V[k], m)
        ds[k] = push[k]
        for c in range(n):
            T[k, c] = S[k] if c == k else 0.0
    for r in range(m):
        ds[group[r]] += z[r]
        for k in range(n):
            T[k, group[r]] += V[k, r]
    cholesky(T, T, order, n, 0.0)
    cholesky_solve(T, ds, n)
    for i in range(p):
        dx[i] = right[i]
    for r in range(m):
        for k in range(n):
            z[r] -= ds[k] * V[k, r]
        for i in range(p):
            dx[i] -= z[r] * A[r, i]
    for i in range(p):
        dx[i] /= stiff[i]


@compiled
def room_inside(tau, A, group, lower, upper, lines, rows, groups, x, s, mu, t):
    """How far all may go; sets the steps of the rows' multipliers and rooms."""
    m, p = A.shape
    zl, zu, dx = lines[0], lines[1], lines[2]
    weight, pull = rows[0], rows[1]
    nu, ds = groups[0], groups[1]
    primal = 1.0
    dual = 1.0
    for i in range(p):
        if lower[i] > -math.inf:
            room = x[i] - lower[i]
            if dx[i] < 0.0:
                primal = min(primal, -SHORT * room / dx[i])
            move = (tau - zl[i] * dx[i]) / room - zl[i]
            if move < 0.0:
                dual = min(dual, -SHORT * zl[i] / move)
        if upper[i] < math.inf:
            room = upper[i] - x[i]
            if dx[i] > 0.0:
                primal = min(primal, SHORT * room / dx[i])
            move = (tau + zu[i] * dx[i]) / room - zu[i]
            if move < 0.0:
                dual = min(dual, -SHORT * zu[i] / move)
    for k in range(s.size):
        if ds[k] < 0.0:
            primal = min(primal, -SHORT * s[k] / ds[k])
        move = (tau - nu[k] * ds[k]) / s[k] - nu[k]
        if move < 0.0:
            dual = min(dual, -SHORT * nu[k] / move)
    for r in range(m):
        along = -ds[group[r]]
        for i in range(p):
            along += A[r, i] * dx[i]
        pull[r] = tau / t[r] - mu[r] + weight[r] * (rows[2, r] + along)  # of mu
        weight[r] = -rows[2, r] - along  # of t
        if weight[r] < 0.0:
            primal = min(primal, -SHORT * t[r] / weight[r])
        if pull[r] < 0.0:
            dual = min(dual, -SHORT * mu[r] / pull[r])
    return min(primal, dual)


@compiled
def walk_inside(y, A, b, group, cost, lower, upper, M, V, T, lines, rows, groups, x, s, mu, t):
    m, p = A.shape
    n = cost.size
    zl, zu, dx = lines[0], lines[1], lines[2]
    weight, pull = rows[0], rows[1]
    nu, ds = groups[0], groups[1]
    size = begin_inside(y, A, b, group, cost, lower, upper, lines, groups, x, s, mu, t)
    expense = 0.0
    for k in range(n):
        expense = max(expense, cost[k])
    aim = FIRST
    for _ in range(STEPS):
        gap = gap_inside(lower, upper, lines, groups, x, s, mu, t) / size
        pulled = 1.0
        for r in range(m):
            pulled = max(pulled, mu[r])
        if gap <= ENOUGH * min(expense, pulled):
            break
        # Aim low where the last step could go far.
        tau = max(LEAST, aim) * gap
        newton_inside(
            tau, y, A, b, group, cost, lower, upper, M, V, T, lines, rows, groups, x, s, mu, t
        )
        length = room_inside(tau, A, group, lower, upper, lines, rows, groups, x, s, mu, t)
        aim = (1.0 - length) * (1.0 - length)
        for i in range(p):
            if lower[i] > -math.inf:
                zl[i] += length * ((tau - zl[i] * dx[i]) / (x[i] - lower[i]) - zl[i])
            if upper[i] < math.inf:
                zu[i] += length * ((tau + zu[i] * dx[i]) / (upper[i] - x[i]) - zu[i])
            x[i] += length * dx[i]
        for k in range(n):
            nu[k] += length * ((tau - nu[k] * ds[k]) / s[k] - nu[k])
            s[k] += length * ds[k]
        for r in range(m):
            mu[r] += length * pull[r]
            t[r] += length * weight[r]
    # What is small, a multiplier or the room that it has? Sizes of x and of rows are around 1, so
    # that both are lengths; a multiplier is small beside those that pull and its cost.
    pulled = 1.0
    for r in range(m):
        pulled = max(pulled, mu[r])
    for i in range(p):
        if zl[i] > x[i] - lower[i]:
            x[i] = lower[i]
        elif zu[i] > upper[i] - x[i]:
            x[i] = upper[i]
    for r in range(m):
        if not mu[r] > t[r] * min(cost[group[r]], pulled):
            mu[r] = 0.0
    for k in range(n):
        if nu[k] > s[k] * min(cost[k], pulled):
            s[k] = 0.0


@kernel("VMVIVVVMMMMMMVVVV")
def from_inside(y, A, b, group, cost, lower, upper, M, V, T, lines, rows, groups, x, s, mu, t):
    """Set x, s and mu to nearly an answer, and to a bound what is at one.

    The others are memory to work in; t gets the room that each row leaves.
    """
    walk_inside(y, A, b, group, cost, lower, upper, M, V, T, lines, rows, groups, x, s, mu, t)


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
        k = group[r]
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
            worst = max(worst, (top[group[r]] - values[r]) / widest[group[r]])
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
    return worst if broken - broken == 0.0 else math.nan


@kernel("VMVIVVMVVVVVVVVMMMM")
def pieces_residual(
    y, A, b, group, low, high, plain, limit, lo, hi, lower, upper, x, mu, nu,
    columns, rows, groups, beside,
):  # fmt: skip
    """The relative KKT residual of x, mu and nu; the last arguments are memory to work in."""
    return judge(
        y, A, b, group, low, high, plain, limit, lo, hi, lower, upper, x, mu, nu,
        columns, rows, groups, beside,
    )  # fmt: skip
