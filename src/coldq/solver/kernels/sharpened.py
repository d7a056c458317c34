"""An answer of rows that clash, made sharp and judged.

Where weights are heavy, what pulls at x is the little that is left of large terms. It is summed up
in pairs of floats, and so are the multipliers of the rows held.
"""

import math

from coldq.compiled import compiled, exact
from coldq.solver.constants import LEAST_SIZE, TINY
from coldq.solver.kernels.held_rows import (
    ALONG, G, HELD_BY, PULL, PULL_LOW, REST, STEP, TIME, UPPER, entry, set_step, set_values,
)  # fmt: skip
from coldq.solver.kernels.pairs import add, times
from coldq.solver.kernels.piece import width_of

PRICE, PRICE_LOW = TIME, ALONG  # lines of the way there, now multipliers as they were asked for
SHARPER = 3  # corrections
SHARP = 1e-14  # of x: with less than that left there is none


@exact
def set_pull(A, first, center, gradient, double, x, rows, columns):
    """Set what pulls at x, times `double`, in pairs of floats."""
    high, low = columns[PULL], columns[PULL_LOW]
    n = A.shape[0]
    for i in range(x.size):
        s, s_low = add(center[i], 0.0, -x[i], 0.0)
        s, s_low = times(s, s_low, double)
        high[i], low[i] = add(s, s_low, -gradient[i], 0.0)
    for r in range(rows.shape[1]):
        price, price_low = -rows[PRICE, r], -rows[PRICE_LOW, r]
        if price == 0.0:
            continue
        if r < n:
            row = A[r]
            for i in range(x.size):
                t, t_low = times(price, price_low, row[i])
                high[i], low[i] = add(high[i], low[i], t, t_low)
        else:
            for i in range(int(first[r - n]), int(first[r - n + 1])):
                high[i], low[i] = add(high[i], low[i], price, price_low)


@exact
def add_price(rows, r, by):
    """Add to a multiplier, in pairs."""
    rows[PRICE, r], rows[PRICE_LOW, r] = add(rows[PRICE, r], rows[PRICE_LOW, r], by, 0.0)


@compiled
def sharpen(A, first, center, gradient, alpha, x, rows, columns, order, free, B, H, L, plain, m, f,
            face, moves):  # fmt: skip
    """Correct x and the multipliers of the rows held by what pulls at x; whether nothing does."""
    double, largest = 2.0 * alpha, 0.0
    for i in range(x.size):
        largest = max(largest, abs(x[i]))
    for _ in range(SHARPER):
        set_pull(A, first, center, gradient, double, x, rows, columns)
        most = 0.0
        for c in range(f):
            columns[REST, free[c]] = columns[PULL, free[c]] / double
            most = max(most, abs(columns[REST, free[c]]))
        if most <= SHARP * largest:
            return True
        set_step(columns, free, B, H, L, plain, m, f, face, moves, True)
        for a in range(m):
            add_price(rows, order[a], face[HELD_BY, a] * double)
        if m < f:
            for c in range(f):
                x[free[c]] += moves[STEP, c]
    return False


@compiled
def keep_within(floor, weights, lower, upper, x, rows):
    """Put x and the multipliers within their bounds; whether they were."""
    within = True
    for i in range(x.size):
        inside = min(max(x[i], lower[i]), upper[i])
        within = within and x[i] == inside
        x[i] = inside
    for r in range(floor.size):
        price = rows[PRICE, r]
        inside = min(max(price, floor[r]), weights[r])
        if price != inside:
            rows[PRICE, r], rows[PRICE_LOW, r], within = inside, 0.0, False
    return within


@compiled
def judged_face(A, b, center, gradient, alpha, floor, weights, lower, upper, first, total, kind, x,
                rows, columns):  # fmt: skip
    """The relative KKT residual, as the other kernels judge it, with what pulls at x as it was
    summed up in pairs."""
    n, p = A.shape
    worst = largest = reach = finite = 0.0
    for i in range(p):
        largest = max(largest, abs(x[i]))
    for i in range(p):
        y = center[i] - gradient[i] * (0.5 / alpha)
        reach = max(reach, min(max(-lower[i], upper[i]), max(abs(y), abs(center[i]))))
        z = x[i] + columns[PULL, i] * (0.5 / alpha)
        off = abs(x[i] - min(max(z, lower[i]), columns[UPPER, i]))
        size = max(abs(y) + abs(center[i]) + abs(x[i]), LEAST_SIZE * largest)
        if off > 0.0 and (z <= lower[i] or z >= columns[UPPER, i]):
            size = width_of(x[i], z, y, size, lower[i], columns[UPPER, i])
        worst = max(worst, off / max(size, TINY))
        finite += 0.0 * z
    set_values(A, b, first, total, x, rows)
    for r in range(n + kind.size):
        least, most = (floor[r], weights[r]) if r < n else (kind[r - n], math.inf)
        if least == math.inf:
            continue  # no such row
        price, g = rows[PRICE, r], rows[G, r]
        finite += 0.0 * price + 0.0 * g
        over = max(least - price, price - most) / (abs(price) + TINY)
        worst = max(worst, over if price != 0.0 else 0.0)
        if (price > least and g < 0.0) or (price < most and g > 0.0):
            size = abs(b[r]) if r < n else abs(total[r - n])
            own = 0.0
            for i in range(p):
                own = max(own, abs(x[i]) if entry(A, first, r, i) != 0.0 else 0.0)
            own = LEAST_SIZE * (own if size > 0.0 else max(own, reach))
            for i in range(p):
                size += abs(entry(A, first, r, i)) * max(abs(x[i]), own)
            worst = max(worst, abs(g) / max(size, TINY))
    return worst if finite == 0.0 else math.inf
