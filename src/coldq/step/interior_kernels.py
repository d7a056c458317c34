"""A compiled interior-point method for max-affine rows: where to start the exact one.

    min |x - y|^2 / 2 + <cost, s>  over  <a_r, x> - s_group(r) <= b_r, s >= 0, lower <= x <= upper

An active-set method meets the pieces one by one; where no point satisfies the rows, dozens of them
hold x. Fifteen Newton steps from inside find which they are, and nearly how much each pulls. All
compiled callees live here, because Numba's cache does not notice changes in other files.
"""

import math

from numba import float64, int64, njit

from coldq._compile import build_once, function

STEPS = 40
LEAST, FIRST = 0.003, 0.3  # how much of the complementarity a step aims to leave
SHORT = 0.99  # of the way to the boundary
ENOUGH = 1e-10  # the complementarity left, relative to the costs, at which the set is clear

_vector, _matrix = float64[::1], float64[:, ::1]
compiled = njit(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")


@compiled
def cholesky_solve(M, right):
    """Overwrite `right` with ``M^-1 right``, and M with its factor; M is positive definite."""
    p = right.size
    for a in range(p):
        for c in range(a):
            s = M[a, c]
            for e in range(c):
                s -= M[a, e] * M[c, e]
            M[a, c] = s / M[c, c]
        s = M[a, a]
        for e in range(a):
            s -= M[a, e] * M[a, e]
        M[a, a] = math.sqrt(max(s, 1e-300))
        s = right[a]
        for e in range(a):
            s -= M[a, e] * right[e]
        right[a] = s / M[a, a]
    for a in range(p - 1, -1, -1):
        s = right[a]
        for e in range(a + 1, p):
            s -= M[e, a] * right[e]
        right[a] = s / M[a, a]


@build_once
def from_inside():
    """Set x, s, mu, and each row's room t, to nearly an answer; return how many steps it took.

    `work` holds 6 lines of p and then p by p numbers; `rows` 3 lines of m, `groups` 4 lines of n.
    """
    signature = int64(
        _vector, _matrix, _vector, int64[::1], _vector, _vector, _vector, _matrix, _matrix,
        _matrix, _matrix, _matrix, _vector, _vector, _vector, _vector,
    )  # fmt: skip

    @function(signature)
    def kernel(y, A, b, group, cost, lower, upper, M, V, lines, rows, groups, x, s, mu, t):
        m, p = A.shape
        n = cost.size
        zl, zu, dx, right = lines[0], lines[1], lines[2], lines[3]
        weight, pull = rows[0], rows[1]
        nu, ds, S, push = groups[0], groups[1], groups[2], groups[3]
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
        expense = 0.0
        for k in range(n):
            expense = max(expense, cost[k])

        aim = FIRST
        for step in range(STEPS):
            gap = 0.0
            for r in range(m):
                gap += mu[r] * t[r]
            for k in range(n):
                gap += nu[k] * s[k]
            for i in range(p):
                if lower[i] > -math.inf:
                    gap += zl[i] * (x[i] - lower[i])
                if upper[i] < math.inf:
                    gap += zu[i] * (upper[i] - x[i])
            gap /= size
            if gap <= ENOUGH * expense:
                return step
            # Aim low where the last step could go far.
            tau = max(LEAST, aim) * gap
            for k in range(n):
                S[k] = nu[k] / s[k]
                push[k] = -cost[k] + tau / s[k]  # minus the residual, and the centring
            for i in range(p):
                right[i] = y[i] - x[i]
                for j in range(p):
                    M[i, j] = 0.0
                M[i, i] = 1.0
                if lower[i] > -math.inf:
                    M[i, i] += zl[i] / (x[i] - lower[i])
                    right[i] += tau / (x[i] - lower[i])
                if upper[i] < math.inf:
                    M[i, i] += zu[i] / (upper[i] - x[i])
                    right[i] -= tau / (upper[i] - x[i])
                for k in range(n):
                    V[k, i] = 0.0
            for r in range(m):
                k = group[r]
                off = t[r] - s[k] - b[r]
                for i in range(p):
                    off += A[r, i] * x[i]
                weight[r] = mu[r] / t[r]
                pull[r] = tau / t[r] + weight[r] * off
                S[k] += weight[r]
                push[k] += pull[r]
                rows[2, r] = off
                for i in range(p):
                    right[i] -= pull[r] * A[r, i]
                    d = weight[r] * A[r, i]
                    V[k, i] += d
                    for j in range(i + 1):
                        M[i, j] += d * A[r, j]
            # Eliminate s: S ds = V dx + push.
            for k in range(n):
                for i in range(p):
                    d = V[k, i] / S[k]
                    right[i] += d * push[k]
                    for j in range(i + 1):
                        M[i, j] -= d * V[k, j]
            for i in range(p):
                dx[i] = right[i]
            cholesky_solve(M, dx)
            for k in range(n):
                move = push[k]
                for i in range(p):
                    move += V[k, i] * dx[i]
                ds[k] = move / S[k]
            # How far may all go?
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
            for k in range(n):
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
            length = min(primal, dual)
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
        return STEPS

    return kernel
