"""Compiled passes over the rows, coordinates and pieces of large problems, and their residual.

NumPy would build a matrix of absolute values for the residual, which costs more than the pass.
"""

import math

from coldq.compiled import compiled, kernel
from coldq.solver.constants import ROW_TOLERANCE, TINY, X_FLOOR
from coldq.solver.kernels.piece import width_of


@compiled
def row_terms(row, x):
    value = 0.0
    scale = 0.0
    for i in range(x.size):
        value += row[i] * x[i]
        scale += abs(row[i]) * max(abs(x[i]), X_FLOOR)
    return value, scale


@compiled
def row_residual(g, scale, mu, lo, hi):
    r = max(lo - mu, mu - hi) / (1.0 + abs(mu))
    if (mu > lo and g < 0.0) or (mu < hi and g > 0.0):
        r = max(r, abs(g) / max(scale, TINY))
    return r


@compiled
def stationarity(y, lower, upper, x, pull, size):
    worst = 0.0
    broken = 0.0
    for i in range(x.size):
        z = y[i] - pull[i]
        off = abs(x[i] - min(max(z, lower[i]), upper[i]))
        off /= width_of(x[i], z, y[i], 1.0 + abs(y[i]) + size[i], lower[i], upper[i])
        worst = max(worst, off)
        broken += off
    return worst if abs(broken) < math.inf else math.nan


@kernel("VIIVVVVVVVVVV")
def sparse_residual(data, indices, indptr, y, b, lo, hi, lower, upper, x, mu, pull, size):
    """The relative KKT residual, as the affine kernel defines it, in one pass over A by rows.

    `pull` and `size` come as zeros, for ``A'mu`` and ``|A|'|mu|``. NaN where anything is, or a
    multiplier is infinite.
    """
    worst = 0.0
    broken = 0.0
    for k in range(mu.size):
        value = -b[k]
        scale = abs(b[k])
        for e in range(indptr[k], indptr[k + 1]):
            i = indices[e]
            term = data[e] * mu[k]
            pull[i] += term
            size[i] += abs(term)
            value += data[e] * x[i]
            scale += abs(data[e]) * max(abs(x[i]), X_FLOOR)
        worst = max(worst, row_residual(value, scale, mu[k], lo[k], hi[k]))
        broken += value + 0.0 * mu[k]
    off = stationarity(y, lower, upper, x, pull, size)
    return max(worst, off) if (broken - broken) + (off - off) == 0.0 else math.nan


@kernel("MVVVVVVVVVV")
def dense_residual(A, y, b, lo, hi, lower, upper, x, mu, pull, size):
    """The same of a dense A."""
    worst = 0.0
    broken = 0.0
    for k in range(mu.size):
        value, scale = row_terms(A[k], x)
        r = row_residual(value - b[k], scale + abs(b[k]), mu[k], lo[k], hi[k])
        worst = max(worst, r)
        broken += value - b[k] + 0.0 * mu[k]
        if mu[k] != 0.0:
            for i in range(x.size):
                term = A[k, i] * mu[k]
                pull[i] += term
                size[i] += abs(term)
    off = stationarity(y, lower, upper, x, pull, size)
    return max(worst, off) if (broken - broken) + (off - off) == 0.0 else math.nan


@kernel("VVfVVVV")
def advance(z, w, t, lower, upper, x, free):
    """Move z by -t w; set x to its clip and `free` to 1 where that changes nothing; return |x|."""
    total = 0.0
    for i in range(z.size):
        z[i] -= t * w[i]
        x[i] = min(max(z[i], lower[i]), upper[i])
        free[i] = 1.0 if (lower[i] < z[i]) & (z[i] < upper[i]) else 0.0  # no guess to miss
        total += x[i] * x[i]
    return math.sqrt(total)


@kernel("VVVVVVfI")
def mark_wrong(mu, lo, hi, g, b, norms, far, wrong):
    """Mark the rows whose multiplier has room to go where g pushes it; `far` is |x|."""
    for k in range(mu.size):
        tolerance = ROW_TOLERANCE * (math.sqrt(norms[k]) * (far + X_FLOOR) + abs(b[k]))
        rises = g[k] > tolerance and mu[k] < hi[k]
        wrong[k] = 1 if rises or (g[k] < -tolerance and mu[k] > lo[k]) else 0


@kernel("VVVVVVfIVVV")
def to_move(mu, lo, hi, g, b, length, far, moving, gain, down, up):
    """List the rows that do not rest at a bound: their gain g and their room; return how many.

    None, if no g is left to be driven to zero.
    """
    count = 0
    settled = True
    for k in range(mu.size):
        # |a||x| bounds the size |a|'|x| of a row's terms without another pass over A.
        tolerance = ROW_TOLERANCE * (length[k] * (far + X_FLOOR) + abs(b[k]))
        if not ((mu[k] <= lo[k] and g[k] <= tolerance) or (mu[k] >= hi[k] and g[k] >= -tolerance)):
            moving[count] = k
            gain[count] = g[k]
            down[count] = lo[k] - mu[k]
            up[count] = hi[k] - mu[k]
            count += 1
            settled = settled and not abs(g[k]) > tolerance
    return 0 if settled else count


@kernel("VIVVVV")
def how_far(d, moving, b, gain, down, up):
    """The dual's slope along d, b's part of it, and how far the bounds let it go, at least 1."""
    slope = 0.0
    offset = 0.0
    limit = math.inf
    for a in range(d.size):
        slope += d[a] * gain[a]
        offset += d[a] * b[moving[a]]
        if d[a] > 0.0:
            limit = min(limit, up[a] / d[a])
        elif d[a] < 0.0:
            limit = min(limit, down[a] / d[a])
    return slope, offset, max(limit, 1.0)


@kernel("VVVIVVVf")
def move(mu, lo, hi, moving, down, up, d, t):
    """Add t d to the multipliers that move, none beyond a bound."""
    for a in range(d.size):
        k = moving[a]
        if t * d[a] >= up[a]:
            mu[k] = hi[k]
        elif t * d[a] <= down[a]:
            mu[k] = lo[k]
        else:
            mu[k] += t * d[a]


@kernel("iMVVVIVVV")
def reduced(first, H, gain, down, up, side, d, M, right):
    """Set up the system of the entries that are at no bound (side 0); return how many they are.

    d gets the bounds of the others, the first entries of M and `right` the system. At `first`, the
    entries are at a bound that have no room to go where they gain.
    """
    n = gain.size
    count = 0
    for k in range(n):
        if first:
            side[k] = 1 if up[k] <= 0.0 and gain[k] > 0.0 else 0
            side[k] = -1 if down[k] >= 0.0 and gain[k] < 0.0 else side[k]
        d[k] = 0.0 if side[k] == 0 else (down[k] if side[k] < 0 else up[k])
        count += 1 if side[k] == 0 else 0
    a = 0
    for k in range(n):
        if side[k] == 0:
            right[a] = gain[k]
            c = 0
            for j in range(n):
                if side[j] == 0:
                    M[a * count + c] = H[k, j]
                    c += 1
                else:
                    right[a] -= H[k, j] * d[j]
            a += 1
    return count


@kernel("MVVVVIV")
def corrected(H, gain, down, up, answer, side, d):
    """Complete d by the system's answer and correct wrong sides; return whether none was."""
    n = gain.size
    a = 0
    settled = 1
    for k in range(n):
        if side[k] == 0:
            d[k] = answer[a]
            a += 1
    for k in range(n):
        guess = side[k]
        if guess == 0:
            guess = -1 if d[k] < down[k] else (1 if d[k] > up[k] else 0)
        else:
            slope = gain[k]
            for j in range(n):
                slope -= H[k, j] * d[j]
            if guess * slope < 0.0:
                guess = 0
        if guess != side[k]:
            settled = 0
            side[k] = guess
    return settled
