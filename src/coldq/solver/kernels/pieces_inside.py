"""An interior-point method for rows that are the largest of several affine pieces.

    min |x - y|^2 / 2 + <cost, s>  over  <a_r, x> - s_group(r) <= b_r, s >= 0, lower <= x <= upper

An active-set method meets the pieces one by one; where no point satisfies the rows, dozens of them
hold x. Fifteen Newton steps from inside find which they are, and nearly how much each pulls.
"""

import math

from coldq.compiled import address_of, compiled, inlined
from coldq.solver.kernels.factors import cholesky, cholesky_solve, product

STEPS = 40
LEAST, FIRST = 0.003, 0.3  # how much of the complementarity a step aims to leave
SHORT = 0.99  # of the way to the boundary
ENOUGH = 1e-12  # the complementarity left, relative to the multipliers, at which the set is clear


@inlined
def is_by_rows(m, p):
    """Whether a step's system is one over m pieces, and not over p coordinates."""
    return m < p


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
        value = product(address_of(A, r * p), address_of(x, 0), p) - b[r]
        t[r] = value
        k = int(group[r])
        s[k] = max(s[k], 1.0 + value)
        S[k] += 1.0
    total = 0.0
    for r in range(m):
        k = int(group[r])
        t[r] = s[k] - t[r]
        mu[r] = 0.5 * cost[k] / S[k]
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
        k = int(group[r])
        off = t[r] - s[k] - b[r] + product(address_of(A, r * p), address_of(x, 0), p)
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
        k = int(group[r])
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
        ds[k] = (push[k] + product(address_of(V, k * p), address_of(dx, 0), p)) / S[k]


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
            M[r, c] = product(address_of(dx, 0), address_of(A, c * p), p)
        M[r, r] += 1.0 / weight[r]
        z[r] = product(address_of(dx, 0), address_of(right, 0), p)
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
        ds[int(group[r])] += z[r]
        for k in range(n):
            T[k, int(group[r])] += V[k, r]
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
        along = product(address_of(A, r * p), address_of(dx, 0), p) - ds[int(group[r])]
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
        if not mu[r] > t[r] * min(cost[int(group[r])], pulled):
            mu[r] = 0.0
    for k in range(n):
        if nu[k] > s[k] * min(cost[k], pulled):
            s[k] = 0.0
