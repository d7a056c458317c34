"""The named lines of a kernel's memory, the residual that judges an answer, the quadratic piece.

Divide the per-slot problem by ``2 alpha`` and put ``y = center - gradient / (2 alpha)``. Its dual,

    max over mu in [lo, hi] of  min over x in X of  |x - y|^2 / 2 + mu' g(x) - c |mu|^2 / 2,

is concave and has as many variables as there are rows. What all kernels of it share is here: how
good (x, mu) is, which multipliers should move, and the maximiser of a quadratic over their bounds.

The compliance c turns a row's penalty into a quadratic one where its multiplier is not at a bound:
rows with infinite bounds and c = 1 / (2 alpha) add ``|A x - b|^2 / 2``, a least-squares loss.
"""

import math

from coldq.compiled import compiled, inlined, vector
from coldq.compiled.calls import STACK
from coldq.solver.constants import DOUBT, LEAST_SIZE, NOISE, ROW_TOLERANCE, TINY, X_FLOOR

# Scratch memory comes in two blocks whose lines have names: `columns` (COLUMNS, p) and `rows`
# (HESSIAN + 2 n, n), with the piece's Hessian and its factor at the end. Who only chooses among
# rows needs the first lines of them.
Y, Z, W, FREE, COLUMNS = range(5)
MU, LO, HI, G, SCALE, NORM, SOFT, GAIN, CHOSEN, SIDE, FIRST_LINES = range(11)
DOWN, UP, D, RHS, SLOPE, STEP, OPEN, HESSIAN = range(10, 18)


@inlined
def scratch_size(n, p):
    """How many floats an instance needs to work in; instances solved in turn share them."""
    return COLUMNS * p + (HESSIAN + 2 * n) * n


# Every kernel works in memory that comes as its last input, or on the stack where that is empty.


@inlined
def memory_of(given, size, own, needed):
    """Where a kernel works; 0 if there is too little memory."""
    if size == 0 and needed <= STACK:
        return own
    return given if size >= needed else 0


@inlined
def told(at, residual):
    """Put down the residual at an address, if it is wanted there, and return it."""
    if at != 0:
        vector(at, 1)[0] = residual
    return residual


@inlined
def set_target(center, gradient, half, lower, upper, columns, x):
    """Set y, and x to the point nearest to it; whether y is finite."""
    finite = 0.0
    for i in range(x.size):
        y = center[i] - gradient[i] * half
        columns[Y, i] = y
        x[i] = min(max(y, lower[i]), upper[i])
        finite += 0.0 * y
    return finite == 0.0


@inlined
def set_row_values(A, b, x, rows):
    """The dual's gradient, and the size of the terms that each of its entries is the sum of."""
    n, p = A.shape
    for k in range(n):
        value = 0.0
        size = 0.0
        for i in range(p):
            value += A[k, i] * x[i]
            size += abs(A[k, i]) * max(abs(x[i]), X_FLOOR)
        soft = rows[SOFT, k] * rows[MU, k]
        rows[G, k] = value - b[k] - soft
        rows[SCALE, k] = size + abs(b[k]) + abs(soft)


@inlined
def kkt_residual(n, p, x, lower, upper, columns, rows, unit=0.0):
    """The relative KKT residual of (x, mu); NaN where anything is NaN.

    Stationarity: ``|x - clip(y - J'mu)| / (1 + |y| + |J|'|mu|)``, coordinate by coordinate, for
    the jacobian J of g at x; the caller leaves ``y - J'mu`` in Z and the divisor, less the unit
    given, in W.
    Complementarity, relative to the row's scale: ``|g|`` strictly between the bounds, the wrong
    sign of g at a bound. A multiplier outside its bounds counts relative to itself.
    """
    worst = 0.0
    broken = 0.0
    for i in range(p):
        r = abs(x[i] - min(max(columns[Z, i], lower[i]), upper[i])) / (columns[W, i] + unit)
        worst = max(worst, r)
        broken += r
    for k in range(n):
        mu, lo, hi, g = rows[MU, k], rows[LO, k], rows[HI, k], rows[G, k]
        r = 0.0
        if (mu > lo and g < 0.0) or (mu < hi and g > 0.0):
            r = abs(g) / max(rows[SCALE, k], TINY)
        r = max(r, max(lo - mu, mu - hi) / (1.0 + abs(mu)))
        worst = max(worst, r)
        broken += r + g
    return worst if abs(broken) < math.inf else math.nan


@inlined
def affine_residual(x, A, lower, upper, columns, rows):
    """The residual for affine rows; rows[G] and rows[SCALE] belong to x already."""
    n, p = A.shape
    for i in range(p):
        columns[Z, i] = columns[Y, i]
        columns[W, i] = abs(columns[Y, i])
    for k in range(n):
        mu = rows[MU, k]
        if mu != 0.0:
            for i in range(p):
                term = A[k, i] * mu
                columns[Z, i] -= term
                columns[W, i] += abs(term)
    return kkt_residual(n, p, x, lower, upper, columns, rows, 1.0)


@inlined
def known_size(x, y, lower, upper):
    """The size of a coordinate: of itself, or if more of the rounding that it may have."""
    return max(abs(x), min(DOUBT * abs(y), upper - lower))


@inlined
def width_of(x, z, y, terms, lower, upper):
    """What ``|x - clip(z)|`` is relative to, so that a coordinate is off by the least of two: its
    slope x - z relative to the terms of that, or its way to clip(z) relative to its own size.

    In a box that is small beside the terms, no way is long beside them.
    """
    way = abs(x - min(max(z, lower), upper))
    share = way / max(abs(x - z), TINY)
    return max(max(share * terms, known_size(x, y, lower, upper)), TINY)


@inlined
def judged(residual, x, A, b, center, lower, upper, columns, rows, apart):
    """The same residual relative to the instance alone, at any scale: what the answer is worth.

    The iteration needs floors under what it is relative to, lest it never ends where x = 0 and
    b = 0. And multipliers, where rows tie or nearly do, may be so long that x is what rounding
    leaves of ``y - A'mu``: here that counts. Rows are relative to the largest coordinate that they
    have if they stand `apart`, as those of a product's parts do, else to the largest of all. Z and
    W are as :func:`affine_residual` left them.
    """
    n, p = A.shape
    if not (residual < math.inf):
        return residual
    worst = 0.0
    largest = 0.0
    reach = 0.0
    for i in range(p):
        largest = max(largest, abs(x[i]))
    for i in range(p):
        reach = max(reach, min(max(-lower[i], upper[i]), max(abs(columns[Y, i]), abs(center[i]))))
        z, own = columns[Z, i], abs(columns[Y, i])
        off = abs(x[i] - min(max(z, lower[i]), upper[i]))
        size = max(own + abs(center[i]) + abs(x[i]), LEAST_SIZE * largest)
        if lower[i] < z and z < upper[i]:
            off += NOISE * (columns[W, i] - own)
        elif off > 0.0:
            size = width_of(x[i], z, columns[Y, i], size, lower[i], upper[i])
        worst = max(worst, off / max(size, TINY))
    for k in range(n):
        mu, g = rows[MU, k], rows[G, k]
        if (mu > rows[LO, k] and g < 0.0) or (mu < rows[HI, k] and g > 0.0):
            size = abs(b[k]) + abs(rows[SOFT, k] * mu)
            own = largest
            if apart:
                own = 0.0
                for i in range(p):
                    own = max(own, abs(x[i]) if A[k, i] != 0.0 else 0.0)
            least = LEAST_SIZE * (own if size > 0.0 else max(own, reach))
            for i in range(p):
                size += abs(A[k, i]) * max(abs(x[i]), least)
            worst = max(worst, abs(g) / max(size, TINY))
    return worst


@compiled
def solve_open(rows, n, count):
    """Solve ``H d = RHS`` over the open rows of the piece by LDL'; H is positive definite."""
    factor = HESSIAN + n
    for a in range(count):
        i = int(rows[OPEN, a])
        for c in range(a + 1):
            s = rows[HESSIAN + i, int(rows[OPEN, c])]
            for e in range(c):
                s -= rows[factor + a, e] * rows[factor + c, e] * rows[factor + e, e]
            if c < a:
                rows[factor + a, c] = s / rows[factor + c, c]
            else:
                rows[factor + a, a] = max(s, 1e-14 * rows[HESSIAN + i, i])
        s = rows[RHS, i]
        for e in range(a):
            s -= rows[factor + a, e] * rows[D, int(rows[OPEN, e])]
        rows[D, i] = s
    for a in range(count - 1, -1, -1):
        i = int(rows[OPEN, a])
        s = rows[D, i] / rows[factor + a, a]
        for e in range(a + 1, count):
            s -= rows[factor + e, a] * rows[D, int(rows[OPEN, e])]
        rows[D, i] = s


@compiled
def climb_piece(rows, n, m, most):
    """The same maximum by the primal active-set method from d = 0: every step goes up.

    RHS holds the slope GAIN - H d, STEP the Newton step over the open entries. Returns how many
    systems it solved.
    """
    for k in range(m):
        rows[D, k] = 0.0
        rows[SLOPE, k] = rows[GAIN, k]
        rows[SIDE, k] = 0
        if rows[UP, k] <= 0.0 and rows[GAIN, k] >= 0.0:
            rows[SIDE, k] = 1
        elif rows[DOWN, k] >= 0.0 and rows[GAIN, k] <= 0.0:
            rows[SIDE, k] = -1
    for attempt in range(30 + 6 * m):
        if attempt > most:
            break
        count = 0
        for k in range(m):
            rows[STEP, k] = rows[D, k]
            if rows[SIDE, k] == 0:
                rows[OPEN, count] = k
                count += 1
                rows[RHS, k] = rows[SLOPE, k]
        solve_open(rows, n, count)
        reach = 1.0
        block = -1
        for a in range(count):
            k = int(rows[OPEN, a])
            step = rows[D, k]
            rows[D, k] = rows[STEP, k]
            rows[STEP, k] = step
            room = rows[UP, k] - rows[D, k] if step > 0.0 else rows[DOWN, k] - rows[D, k]
            if abs(step) * reach > abs(room):
                reach = abs(room) / max(abs(step), TINY)
                block = k
        for a in range(count):
            k = int(rows[OPEN, a])
            move = reach * rows[STEP, k]
            rows[D, k] = min(max(rows[D, k] + move, rows[DOWN, k]), rows[UP, k])
            for j in range(m):
                rows[SLOPE, j] -= rows[HESSIAN + j, k] * move
        if block >= 0:
            rows[SIDE, block] = 1 if rows[STEP, block] > 0.0 else -1
            rows[D, block] = rows[UP, block] if rows[STEP, block] > 0.0 else rows[DOWN, block]
            continue
        worst = 0.0
        for k in range(m):
            if rows[SIDE, k] != 0 and rows[DOWN, k] < rows[UP, k]:
                size = abs(rows[GAIN, k])
                for j in range(m):
                    size += abs(rows[HESSIAN + k, j] * rows[D, j])
                wrong = -rows[SIDE, k] * rows[SLOPE, k]
                if wrong > 1e-14 * size and wrong > worst * size:
                    worst = wrong / max(size, TINY)
                    block = k
        if block < 0:
            return attempt
        rows[SIDE, block] = 0
    return 30 + 6 * m


@compiled
def maximise_piece(rows, n, m, most):
    """Maximise ``GAIN'd - d'Hd / 2`` over ``DOWN <= d <= UP``.

    Block principal pivoting guesses which entries are at a bound and corrects all wrong guesses
    at once: a few rounds are nearly always enough. It is not monotone, so where it does not end
    soon (more rows than coordinates, say) the slower climb takes over. Returns how many systems
    were solved.
    """
    for k in range(m):
        rows[SIDE, k] = 0
    for attempt in range(6):
        count = 0
        for k in range(m):
            if rows[SIDE, k] == 0:
                rows[OPEN, count] = k
                count += 1
            else:
                rows[D, k] = rows[DOWN, k] if rows[SIDE, k] < 0 else rows[UP, k]
        for a in range(count):
            i = int(rows[OPEN, a])
            s = rows[GAIN, i]
            for k in range(m):
                if rows[SIDE, k] != 0:
                    s -= rows[HESSIAN + i, k] * rows[D, k]
            rows[RHS, i] = s
        solve_open(rows, n, count)
        ended = True
        for k in range(m):
            side = rows[SIDE, k]
            rows[RHS, k] = side
            if side == 0:
                if rows[D, k] < rows[DOWN, k]:
                    rows[RHS, k] = -1.0
                elif rows[D, k] > rows[UP, k]:
                    rows[RHS, k] = 1.0
            else:
                slope = rows[GAIN, k]
                for a in range(m):
                    slope -= rows[HESSIAN + k, a] * rows[D, a]
                if side * slope < 0.0:
                    rows[RHS, k] = 0.0
            ended = ended and rows[RHS, k] == side
        if ended:
            return 1 + attempt
        for k in range(m):
            rows[SIDE, k] = rows[RHS, k]
    return 6 + climb_piece(rows, n, m, most)


@inlined
def maximise(rows, n, m, most):
    """The same, of a single row without all that."""
    if m > 1:
        return maximise_piece(rows, n, m, most)
    d = rows[GAIN, 0] / rows[HESSIAN, 0]
    rows[D, 0] = min(max(d, rows[DOWN, 0]), rows[UP, 0])
    return 1


@inlined
def list_moving(rows, n):
    """List the rows whose multiplier should move; how many, and whether none need do so by much."""
    m = 0
    settled = True
    for k in range(n):
        mu, g = rows[MU, k], rows[G, k]
        tolerance = ROW_TOLERANCE * rows[SCALE, k]
        at_lo = mu <= rows[LO, k]
        at_hi = mu >= rows[HI, k]
        if (at_lo and g <= tolerance) or (at_hi and g >= -tolerance) or rows[NORM, k] == 0.0:
            continue
        rows[CHOSEN, m] = k
        m += 1
        settled = settled and abs(g) <= tolerance
    return m, settled


@inlined
def set_room(rows, a, k):
    """What the a-th of the chosen rows, row k, gains by its multiplier, and how far that may go."""
    rows[GAIN, a] = rows[G, k]
    rows[DOWN, a] = rows[LO, k] - rows[MU, k]
    rows[UP, a] = rows[HI, k] - rows[MU, k]


@inlined
def move_chosen(rows, m, t, start=MU):
    """Move the multipliers of the chosen rows by t d from where a line has them; those that meet a
    bound are at it exactly."""
    for a in range(m):
        k = int(rows[CHOSEN, a])
        step = t * rows[D, a]
        if step >= rows[UP, a]:
            rows[MU, k] = rows[HI, k]
        elif step <= rows[DOWN, a]:
            rows[MU, k] = rows[LO, k]
        else:
            rows[MU, k] = rows[start, k] + step


@inlined
def multiplier_of(mu, lo, hi, alpha, floor, weight):
    """A multiplier of the problem as it was given; what is at a bound is so exactly."""
    if mu >= hi:
        return weight
    if mu <= lo:
        return floor
    return min(max(mu * (2.0 * alpha), floor), weight)


@inlined
def give_multipliers(alpha, floor, weights, rows, multipliers):
    """The same of all rows."""
    for k in range(multipliers.size):
        multipliers[k] = multiplier_of(
            rows[MU, k], rows[LO, k], rows[HI, k], alpha, floor[k], weights[k]
        )
