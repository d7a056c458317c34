"""One capacity row on a box: x(mu) has a closed form, and the dual is a root in one variable.

Its few numbers sit in the same named lines as those of other rows, for the same residual.
"""

import math

from coldq.compiled import batch_kernel, compiled, matrix, vector
from coldq.solver.constants import TINY, X_FLOOR
from coldq.solver.kernels.piece import (
    COLUMNS, HESSIAN, HI, LO, MU, SCALE, G, W, Y, Z, kkt_residual, known_size, memory_of,
    multiplier_of, scratch_size, told, width_of,
)  # fmt: skip


@compiled
def capacity_at(mu, scale, rate, lower, upper, columns, x):
    """Set x(mu); return the capacity there and its derivative in mu.

    Where x_i is free, ``x - y = mu s r / (1 + r x)``, a quadratic whose larger root is meant.
    Equal neighbouring scales share one logarithm: a sum of logs is the log of a product, of which
    only what exceeds 1 is kept, because small rates live in its last digits.
    """
    total = 0.0
    rise = 0.0
    excess = 0.0
    weight = 0.0
    for i in range(x.size):
        s, r, y = scale[i], rate[i], columns[Y, i]
        base = 1.0 + r * y
        push = mu * s * r
        root = math.sqrt(base * base + 4.0 * push * r)
        if base > 0.0:
            value = y + 2.0 * push / (base + root)
        elif r > 0.0:
            # The divisor is that of the other branch where the compiler runs ahead of this one.
            value = (2.0 * push * r / max(root + abs(base), TINY) - 1.0) / r
        else:
            value = y
        inside = min(max(value, lower[i]), upper[i])
        x[i] = inside
        gain = r * inside
        level = 1.0 + gain
        if s != weight or not (excess < 1e150 and gain < 1e150):
            total += weight * math.log1p(excess)
            excess = 0.0
            weight = s
        excess += gain * (1.0 + excess)
        if lower[i] < value and value < upper[i]:
            slope = s * r / level
            rise += slope * slope / (1.0 + mu * slope * r / level)
    return total + weight * math.log1p(excess), rise


@compiled
def solve_capacity(
    center, gradient, alpha, floor, weight, demand, scale, rate, lower, upper, columns, rows, x
):
    p = x.size
    half = 0.5 / alpha
    lo, hi = floor * half, weight * half
    finite = 0.0
    for i in range(p):
        columns[Y, i] = center[i] - gradient[i] * half
        finite += 1.0 if abs(columns[Y, i]) < math.inf else 0.0
    if finite < p:
        return math.nan, math.nan
    mu = lo
    capacity, rise = capacity_at(mu, scale, rate, lower, upper, columns, x)
    if capacity < demand and lo < hi:
        # g falls as mu grows; look for its root between left (g > 0) and right (g <= 0).
        limit = hi
        if hi == math.inf:
            # Beyond `limit` every x_i is at its upper bound, and a gap that is left is rounding.
            limit = lo
            reachable = 0.0
            for i in range(p):
                slope = scale[i] * rate[i]
                if slope > 0.0:
                    reachable += scale[i] * math.log1p(rate[i] * upper[i])
                    level = 1.0 + rate[i] * upper[i]
                    limit = max(limit, 2.0 * (upper[i] - columns[Y, i]) * level / slope)
            if reachable < demand:
                return math.inf, math.inf
        left, right = lo, limit
        at_limit = False
        mu = lo + (demand - capacity) / rise if rise > 0.0 else max(2.0 * lo, 1.0)
        for _ in range(200):
            mu = min(mu, limit)
            capacity, rise = capacity_at(mu, scale, rate, lower, upper, columns, x)
            gap = demand - capacity
            if abs(gap) <= 1e-14 * (abs(demand) + abs(capacity)):
                break
            if gap > 0.0:
                if mu >= limit:
                    break
                left = mu
            else:
                right = mu
            # Capacity grows like the logarithm of mu, so Newton's method runs in log(mu).
            ratio = gap / max(rise * mu, max(0.02 * abs(gap), TINY))  # at most 50 either way
            proposal = mu * math.exp(ratio)
            if left < proposal and proposal < right:
                mu = proposal
            elif gap > 0.0 and right == limit and not at_limit:
                mu = limit  # where the weight may be too small to meet the demand
                at_limit = True
            elif right < math.inf:
                mu = math.sqrt(left * right) if left > 0.0 else 0.5 * right
            else:
                mu = 1e3 * mu
            if not (left < mu and mu < right):
                if right >= limit and limit < math.inf and gap > 0.0:
                    mu = limit
                else:
                    break
    rows[MU, 0], rows[LO, 0], rows[HI, 0] = mu, lo, hi
    return mu, capacity_residual(demand, scale, rate, lower, upper, columns, rows, x)


@compiled
def capacity_residual(demand, scale, rate, lower, upper, columns, rows, x):
    """The residual for the capacity row, from x and rows[MU], rows[LO], rows[HI]."""
    total = 0.0
    size = abs(demand)
    most = 0.0
    for i in range(x.size):
        if scale[i] * rate[i] > 0.0:
            most = max(most, known_size(x[i], columns[Y, i], lower[i], upper[i]))
    for i in range(x.size):
        y = columns[Y, i]
        pull = rows[MU, 0] * scale[i] * rate[i] / (1.0 + rate[i] * x[i])
        terms = abs(x[i]) + abs(y) + abs(pull)
        columns[Z, i] = y + pull
        columns[W, i] = width_of(x[i], y + pull, y, terms, lower[i], upper[i])
        total += scale[i] * math.log1p(rate[i] * x[i])
        size += scale[i] * math.log1p(rate[i] * max(abs(x[i]), X_FLOOR * most))
    rows[G, 0] = demand - total
    rows[SCALE, 0] = size
    return kkt_residual(1, x.size, x, lower, upper, columns, rows)


@batch_kernel("(p),(p),(),(),(),(),(p),(p),(p),(p),(s)->(p),(),()")
def capacity_step(sizes, at):
    """One capacity row on a box: center, gradient, alpha, floor, weight, demand, scale, rate,
    lower, upper, memory; x, multiplier, residual."""
    p, s = sizes[0], sizes[1]
    memory = memory_of(at[10], s, at[14], scratch_size(1, p))
    if memory == 0:
        return math.nan
    alpha, floor, weight = vector(at[2], 1)[0], vector(at[3], 1)[0], vector(at[4], 1)[0]
    columns, rows = matrix(memory, COLUMNS, p), matrix(memory + 8 * COLUMNS * p, HESSIAN + 2, 1)
    mu, residual = solve_capacity(
        vector(at[0], p), vector(at[1], p), alpha, floor, weight, vector(at[5], 1)[0],
        vector(at[6], p), vector(at[7], p), vector(at[8], p), vector(at[9], p), columns, rows,
        vector(at[11], p),
    )  # fmt: skip
    vector(at[12], 1)[0] = multiplier_of(mu, rows[LO, 0], rows[HI, 0], alpha, floor, weight)
    return told(at[13], residual)
