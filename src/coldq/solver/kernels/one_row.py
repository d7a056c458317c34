"""One quadratic row without mixed terms on a box: x is a formula of its multiplier.

The row is ``sum_i d_i x_i^2 / 2 + q_i x_i - limit``, or ball-shaped, ``d |x - c|^2 / 2 - limit``.
The latter is all relative to c, so that no digits are lost where c is far, and a pass reads three
arrays. g at x(mu) falls as mu grows, and above its bottom about like 1 / mu^2: Newton's method on
the inverse of the root is nearly exact.
"""

import math

from coldq.compiled import batch_kernel, compiled, inlined, matrix, vector
from coldq.solver.constants import DOUBT, TERMS, TINY, X_FLOOR
from coldq.solver.kernels.piece import known_size, memory_of, multiplier_of, told

TARGET, LEAST, MOST, LINES = range(4)  # y and the bounds, of a ball-shaped row relative to c
SHARP = 1e-10  # of a row's terms, by which a hard row is missed for certain
ROUNDED = 1e-15  # of a row's terms: a root to be found no closer
ROUNDED_SUM = 64.0  # terms: the rounding of a sum of more grows with the root of their number
FAR = 1e200  # a multiplier to stop at


@inlined
def one_row_scratch_size(p):
    """How many numbers an instance needs to work in."""
    return LINES * p


@compiled
def ball_at(s, target, least, most):
    """The sum of squares of x - c where it is ``s target`` clipped, and that of what is not."""
    total = 0.0
    free = 0.0
    for i in range(target.size):
        z = s * target[i]
        u = min(max(z, least[i]), most[i])
        total += u * u
        free += u * u if u == z else 0.0
    return total, free


@compiled
def diagonal_at(mu, d, q, target, least, most):
    """The row less its limit at x(mu), how fast it falls, and the size of its terms."""
    total = 0.0
    fall = 0.0
    size = 0.0
    for i in range(target.size):
        share = 1.0 / (1.0 + mu * d[i])
        z = (target[i] - mu * q[i]) * share
        u = min(max(z, least[i]), most[i])
        bent, line = 0.5 * d[i] * u * u, q[i] * u
        slope = d[i] * u + q[i]
        total += bent + line
        size += bent + abs(line)
        fall += slope * slope * share if u == z else 0.0
    return total, fall, size


@inlined
def row_at(mu, round_, d, q, limit, lines):
    """g at x(mu), how fast it falls as mu grows, and the size of its terms."""
    if round_:
        s = 1.0 / (1.0 + mu * d[0])
        total, free = ball_at(s, lines[TARGET], lines[LEAST], lines[MOST])
        height = 0.5 * d[0] * total
        return height - limit, d[0] * d[0] * s * free, height + abs(limit)
    total, fall, size = diagonal_at(mu, d, q, lines[TARGET], lines[LEAST], lines[MOST])
    return total - limit, fall, size + abs(limit)


@compiled
def bottom_of(round_, d, q, limit, lines):
    """The row's least value on the box, -inf if it has no end, and the size of its terms there."""
    target, least, most = lines[TARGET], lines[LEAST], lines[MOST]
    if round_:
        height = 0.5 * d[0] * ball_at(0.0, target, least, most)[0]
        return height - limit, height + abs(limit)
    total = 0.0
    size = abs(limit)
    for i in range(target.size):
        turn = -q[i] / d[i] if d[i] > 0.0 else math.copysign(math.inf, -q[i])
        u = min(max(turn, least[i]), most[i])
        if d[i] > 0.0 or q[i] != 0.0:
            total += (0.5 * d[i] * u + q[i]) * u
            size += (0.5 * d[i] * abs(u) + abs(q[i])) * abs(u)
    return total - limit, size


@compiled
def next_release(mu, round_, d, q, lines):
    """The least multiplier above mu at which a coordinate leaves its bound."""
    first = math.inf
    for i in range(lines.shape[1]):
        bend, line, y = d[0] if round_ else d[i], 0.0 if round_ else q[i], lines[TARGET, i]
        low, high = lines[LEAST, i], lines[MOST, i]
        z = (y - mu * line) / (1.0 + mu * bend)
        bound = high if z > high else low
        slope = bend * bound + line
        if (z > high or z < low) and slope != 0.0:
            there = (y - bound) / slope
            if there > mu:
                first = min(first, there)
    return first


@compiled
def largest_of(values):
    """The largest of some numbers that are not negative; four at a time, for each waits for the
    last."""
    a = b = c = d = 0.0
    whole = values.size - values.size % 4
    for i in range(0, whole, 4):
        a = max(a, values[i])
        b = max(b, values[i + 1])
        c = max(c, values[i + 2])
        d = max(d, values[i + 3])
    for i in range(whole, values.size):
        a = max(a, values[i])
    return max(max(a, b), max(c, d))


@inlined
def step_ahead(mu, g, fall, bottom):
    """Where Newton's method on the inverse root of ``g - bottom`` meets g = 0."""
    ratio = 1.0
    height = g - bottom
    if bottom < 0.0 and bottom > -math.inf and height > 0.0:
        ratio = 2.0 * (height / g) * (math.sqrt(height / -bottom) - 1.0)
    return mu + ratio * g / max(fall, TINY)


@compiled
def find_root(lo, hi, round_, d, q, limit, lines):
    """The multiplier at which the row's value changes its sign, or the bound where it does not;
    infinite if it is hard and cannot be met."""
    mu = lo
    g, fall, size = row_at(mu, round_, d, q, limit, lines)
    if not (g > 0.0 and lo < hi):
        return mu
    rounded = ROUNDED * max(1.0, math.sqrt(lines.shape[1] / ROUNDED_SUM))
    bottom, depth = bottom_of(round_, d, q, limit, lines)
    if bottom >= 0.0 and hi < math.inf:
        return hi
    if bottom > SHARP * depth:
        return math.inf
    left, right = lo, math.inf
    for k in range(200):
        if abs(g) <= rounded * size:
            break
        if g > 0.0:
            if mu >= hi:
                return hi
            left = mu
        else:
            right = mu
        if fall > 0.0:
            ahead = step_ahead(mu, g, fall, bottom)
        else:
            # All that the row moves is at a bound: on to where the first leaves it.
            ahead = next_release(mu, round_, d, q, lines) * (1.0 + 1e-12)
        late = k > 12 and k % 2 == 0
        if late or not (left < ahead and ahead < right):
            if right < math.inf:
                low = max(left, 1e-30 * right)
                ahead = math.sqrt(low) * math.sqrt(right)
                if right <= 4.0 * left:
                    ahead = left + 0.5 * (right - left)
            elif late and left > 0.0:
                ahead = max(10.0 * left, ahead)
        ahead = min(ahead, hi)
        if not (left < ahead and ahead < right) or not (ahead < FAR):
            break
        mu = ahead
        g, fall, size = row_at(mu, round_, d, q, limit, lines)
    return mu


@compiled
def set_round(mu, d, c, half, center, gradient, lower, upper, target, x):
    """x(mu) of a ball-shaped row: a share of the way from y to c, or back from c."""
    stiff = 1.0 + mu * d
    share, back = mu * d / stiff, 1.0 / stiff
    if share < 0.5:
        for i in range(x.size):
            z = center[i] - gradient[i] * half - share * target[i]
            x[i] = min(max(z, lower[i]), upper[i])
    else:
        for i in range(x.size):
            x[i] = min(max(c[i] + back * target[i], lower[i]), upper[i])


@compiled
def set_diagonal(mu, d, q, lower, upper, target, x):
    """x(mu) of a diagonal row."""
    for i in range(x.size):
        z = (target[i] - mu * q[i]) / (1.0 + mu * d[i])
        x[i] = min(max(z, lower[i]), upper[i])


@inlined
def off_by(x, y, slope, most, mu, lower, upper):
    """How far a coordinate is off: in its slope, relative to the terms of that, or in its way,
    relative to its size, if less. The rounding of x counts where the row magnifies it."""
    pull = mu * slope
    z = y - pull
    terms = abs(x) + abs(y) + abs(pull) + TERMS * mu * most
    way = abs(x - min(max(z, lower), upper))
    size = max(known_size(x, y, lower, upper), TINY)
    steep = abs(x - z)
    in_slope = steep * size < way * terms  # which fraction is less; one division costs less too
    return (steep if in_slope else way) / (max(terms, TINY) if in_slope else size)


@compiled
def round_residual(mu, d, c, limit, half, center, gradient, lower, upper, lines, x):
    """g at x, the size of its terms, how far coordinates are off, and NaN if anything is.

    Relative to c; the rounding of x counts in the terms.
    """
    off, known = lines[LEAST], lines[MOST]
    g = 0.0
    rounding = 0.0
    broken = 0.0
    for i in range(x.size):
        y = center[i] - gradient[i] * half
        u = x[i] - c[i]
        most = abs(x[i]) + abs(c[i])
        g += u * u
        rounding += abs(u) * most
        off[i] = off_by(x[i], y, d * u, d * most, mu, lower[i], upper[i])
        known[i] = max(abs(u), min(DOUBT * abs(lines[TARGET, i]), upper[i] - lower[i]))
        broken += off[i]
    least = X_FLOOR * largest_of(known)
    size = 0.0
    for i in range(x.size):
        at = max(abs(x[i] - c[i]), least)
        size += at * at
    size = 0.5 * d * size + TERMS * d * rounding + abs(limit)
    return 0.5 * d * g - limit, size, largest_of(off), broken


@compiled
def diagonal_residual(mu, d, q, limit, lower, upper, lines, x):
    """The same of a diagonal row."""
    off, known = lines[LEAST], lines[MOST]
    g = 0.0
    broken = 0.0
    for i in range(x.size):
        y = lines[TARGET, i]
        most = d[i] * abs(x[i]) + abs(q[i])
        g += (0.5 * d[i] * x[i] + q[i]) * x[i]
        off[i] = off_by(x[i], y, d[i] * x[i] + q[i], most, mu, lower[i], upper[i])
        size = known_size(x[i], y, lower[i], upper[i])
        known[i] = size if d[i] > 0.0 or q[i] != 0.0 else 0.0
        broken += off[i]
    least = X_FLOOR * largest_of(known)
    total = abs(limit)
    for i in range(x.size):
        at = max(abs(x[i]), least)
        total += (0.5 * d[i] * at + abs(q[i])) * at
    return g - limit, total, largest_of(off), broken


@compiled
def set_round_lines(center, gradient, half, c, lower, upper, lines):
    """The target and the bounds relative to c; NaN unless the target is finite."""
    finite = 0.0
    for i in range(c.size):
        target = (center[i] - c[i]) - gradient[i] * half
        lines[TARGET, i] = target
        lines[LEAST, i] = lower[i] - c[i]
        lines[MOST, i] = upper[i] - c[i]
        finite += 0.0 * target
    return finite


@compiled
def set_lines(center, gradient, half, lower, upper, lines):
    """The target and the bounds; NaN unless the target is finite."""
    finite = 0.0
    for i in range(center.size):
        target = center[i] - gradient[i] * half
        lines[TARGET, i] = target
        lines[LEAST, i] = lower[i]
        lines[MOST, i] = upper[i]
        finite += 0.0 * target
    return finite


@compiled
def solve_one_row(
    center, gradient, alpha, lo, hi, round_, d, q, limit, lower, upper, lines, x
):  # fmt: skip
    """Set x; its multiplier and the relative KKT residual, infinite if a hard row cannot be met."""
    half = 0.5 / alpha
    if round_:
        finite = set_round_lines(center, gradient, half, q, lower, upper, lines)
    else:
        finite = set_lines(center, gradient, half, lower, upper, lines)
    mu = lo
    if finite == 0.0:
        mu = find_root(lo, hi, round_, d, q, limit, lines)
    clash = mu == math.inf
    at = min(mu, FAR)
    if round_:
        set_round(at, d[0], q, half, center, gradient, lower, upper, lines[TARGET], x)
        g, size, worst, broken = round_residual(
            at, d[0], q, limit, half, center, gradient, lower, upper, lines, x
        )
    else:
        set_diagonal(at, d, q, lower, upper, lines[TARGET], x)
        g, size, worst, broken = diagonal_residual(at, d, q, limit, lower, upper, lines, x)
    if clash:
        # What the row misses may be rounding of x.
        if g > SHARP * size:
            return mu, math.inf
        mu = at
    if (mu > lo and g < 0.0) or (mu < hi and g > 0.0):
        worst = max(worst, abs(g) / max(size, TINY))
    broken += g
    return mu, worst if abs(broken) < math.inf else math.nan


@batch_kernel("(p),(p),(),(),(),(),(e),(p),(),(p),(p),(s)->(p),(),()")
def one_row_step(sizes, at):
    """One quadratic row on a box: center, gradient, alpha, floor, weight, whether it is
    ball-shaped, d (p numbers, or one of a ball-shaped row), its slope q or its center c, limit,
    lower, upper, memory; x, multiplier, residual."""
    p, e, s = sizes[0], sizes[1], sizes[2]
    memory = memory_of(at[11], s, at[15], one_row_scratch_size(p))
    round_ = vector(at[5], 1)[0] != 0.0
    if memory == 0 or e != (1 if round_ else p):
        return math.nan
    alpha, floor, weight = vector(at[2], 1)[0], vector(at[3], 1)[0], vector(at[4], 1)[0]
    lo, hi = floor * (0.5 / alpha), weight * (0.5 / alpha)
    mu, residual = solve_one_row(
        vector(at[0], p), vector(at[1], p), alpha, lo, hi, round_, vector(at[6], e),
        vector(at[7], p), vector(at[8], 1)[0], vector(at[9], p), vector(at[10], p),
        matrix(memory, LINES, p), vector(at[12], p),
    )  # fmt: skip
    vector(at[13], 1)[0] = multiplier_of(mu, lo, hi, alpha, floor, weight)
    return told(at[14], residual)
