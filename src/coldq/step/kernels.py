"""The compiled solvers of the per-slot problem on a box, and the residual that judges them.

Divide the per-slot problem by ``2 alpha`` and put ``y = center - gradient / (2 alpha)``. Its dual,

    max over mu in [lo, hi] of  min over x in X of  |x - y|^2 / 2 + mu' g(x) - c |mu|^2 / 2,

is concave and has as many variables as there are rows. With affine rows its gradient
``A x(mu) - b - c mu``, where ``x(mu) = clip(y - A'mu)``, is piecewise affine: each Newton step
maximises the quadratic piece at ``mu`` over the box [lo, hi] and is followed by a line search along
the whole piecewise quadratic. ``z = y - A'mu`` is carried along by increments and never formed
afresh: when ``y`` is huge (a small alpha) the increments shrink as the iteration converges, so that
``g(x)`` is driven to zero at the accuracy of ``x``, not of ``y``. With one capacity row x(mu) has a
closed form and the dual is a monotone root in one variable.

The compliance c turns a row's penalty into a quadratic one where its multiplier is not at a bound:
rows with infinite bounds and c = 1 / (2 alpha) add ``|A x - b|^2 / 2``, a least-squares loss.

"""

import math

from coldq.compiled import (
    address_of,
    batch_kernel,
    compiled,
    cube,
    inlined,
    kernel,
    matrix,
    vector,
)
from coldq.compiled.calls import STACK

ROW_TOLERANCE = 1e-13  # of a row's scale |b| + |a|'max(|x|, X_FLOOR): a few hundred roundings
X_FLOOR = 1e-3  # keeps a row's scale positive where x = 0 and b = 0
REGULARISATION = 1e-11  # of a row's squared norm: the piece has one maximiser, duplicates included
REFRESH_ABOVE = 1e-12  # the residual above which z is formed afresh before the answer is given
UNSETTLED = 1e-6  # at least the residual of what was given up on the way: others do better
SEARCH_TOLERANCE = 0.02  # of the slope at the start: looser searches cost more Newton steps
FLAT = 1e-16  # of the squared direction: less curvature is what REGULARISATION makes of none
LONG = 1e5  # times y: a multiplier that costs x five digits
SMALL_NORM = 1e-100  # below it a row is constant; no quotient by it overflows
DOUBT = 1e-6  # of y: x is known up to the rounding of what it is the difference of
TINY = 1e-300  # guards divisions that the compiler may run ahead of their condition
LEAST_SIZE = 1e-6  # of the largest coordinate: as what every coordinate counts where x is judged
NOISE = 4e-16  # of the terms that z is the sum of: its rounding

# Scratch memory comes in two blocks whose lines have names: `columns` (COLUMNS, p) and `rows`
# (HESSIAN + 2 n, n), with the piece's Hessian and its factor at the end.
Y, Z, W, FREE, COLUMNS = range(5)
MU, LO, HI, G, SCALE, NORM, SOFT, GAIN, DOWN, UP, D, RHS, SLOPE, STEP = range(14)
CHOSEN, SIDE, OPEN, HESSIAN = range(14, 18)


def scratch_size(n: int, p: int) -> int:
    """How many floats an instance needs to work in; instances solved in turn share them."""
    return COLUMNS * p + (HESSIAN + 2 * n) * n


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
    return worst if broken - broken == 0.0 else math.nan


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
        reach = max(reach, min(max(-lower[i], upper[i]), abs(columns[Y, i]) + abs(center[i])))
        z, own = columns[Z, i], abs(columns[Y, i])
        off = abs(x[i] - min(max(z, lower[i]), upper[i]))
        if lower[i] < z and z < upper[i]:
            off += NOISE * (columns[W, i] - own)
        size = max(own + abs(center[i]) + abs(x[i]), LEAST_SIZE * largest)
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


@compiled
def beyond_breakpoints(t, lower, upper, columns):
    """A place beyond t where the last coordinate has left its bounds; t if there is none."""
    far = t
    for i in range(lower.size):
        w = columns[W, i]
        if w != 0.0:
            enter, leave = (upper[i], lower[i]) if w > 0.0 else (lower[i], upper[i])
            if abs(leave) < math.inf:
                far = max(far, (columns[Z, i] - leave) / w)
            else:
                far = max(far, 2.0 * (columns[Z, i] - enter) / w)
    return far


@compiled
def start_of_rest(t, curvature, lower, upper, columns):
    """The first place from which on hardly any coordinate moves until t; t if they do.

    Of a direction without curvature the regularised piece returns a huge multiple, beside which
    the rest of d is small: coordinates that only this rest moves do not count.
    """
    steep = 0.0
    for i in range(lower.size):
        steep += columns[W, i] * columns[W, i]
    if curvature > FLAT * steep:
        return t
    first = 0.0
    for i in range(lower.size):
        w = columns[W, i]
        if w * w > FLAT * steep:
            leave = lower[i] if w > 0.0 else upper[i]
            if abs(leave) < math.inf and (columns[Z, i] - leave) / w <= t:
                first = max(first, (columns[Z, i] - leave) / w)
    return first if first > 0.0 else t


@inlined
def line_search(lower, upper, columns, start, offset, bend, limit):
    """Where the dual stops rising along d: a safeguarded Newton iteration on its slope.

    The slope at t is ``w'clip(z - t w) - offset - bend t`` and falls from `start`. Infinity is
    returned when the dual rises for ever, that is when hard rows have no common point.
    """
    left = 0.0
    right = math.inf
    t = 1.0
    for _ in range(100):
        slope = 0.0
        curvature = bend
        for i in range(lower.size):
            w = columns[W, i]
            s = columns[Z, i] - t * w
            inside = min(max(s, lower[i]), upper[i])
            slope += w * inside
            curvature += w * w if s == inside else 0.0
        slope -= offset + bend * t
        if not (abs(slope) > SEARCH_TOLERANCE * start):
            if abs(slope) <= 1e-6 * start:
                # Every place of a flat stretch will do. Large multipliers would cost x its digits.
                t = start_of_rest(t, curvature, lower, upper, columns)
            return t
        if slope > 0.0:
            if t >= limit:
                return limit
            left = t
            t = t + slope / max(curvature, TINY) if curvature > 0.0 else math.inf
            if t >= right:
                t = 0.5 * (left + right)
            t = min(t, limit)
            if t == math.inf:
                t = beyond_breakpoints(left, lower, upper, columns)
                if t <= left:
                    return math.inf
        else:
            right = t
            t = t + slope / max(curvature, TINY) if curvature > 0.0 else left
            if t <= left:
                t = 0.5 * (left + right)
        if not (left < t):
            return t
    return t


@compiled
def keep_flat_rows(A, columns, rows, m):
    """Choose only the rows that no free coordinate enters, if such a row should move.

    The dual is linear along them up to a breakpoint that may be very far. Moved together with
    the others they would share one step length with them, and creep.
    """
    flat = 0
    for a in range(m):
        k = int(rows[CHOSEN, a])
        curvature = rows[SOFT, k]
        for i in range(A.shape[1]):
            curvature += columns[FREE, i] * A[k, i] * A[k, i]
        moves = abs(rows[G, k]) > ROW_TOLERANCE * rows[SCALE, k]
        if moves and curvature <= 1e-14 * rows[NORM, k]:
            rows[OPEN, flat] = k
            flat += 1
    for a in range(flat):
        rows[CHOSEN, a] = rows[OPEN, a]
    return flat if flat > 0 else m


@compiled
def cut_back(A, columns, rows):
    """Shorten multipliers of hard rows that are far longer than y; whether there were any.

    Where hard rows tie, no multiplier is too large to be optimal, but ``y - A'mu`` loses as many
    digits as mu has more than y. Z gets that of the shorter ones.
    """
    n, p = A.shape
    size = 1.0
    for i in range(p):
        size = max(size, 1.0 + abs(columns[Y, i]))
    found = False
    for k in range(n):
        most = LONG * size / max(math.sqrt(rows[NORM, k]), SMALL_NORM)
        mu = rows[MU, k]
        if (rows[HI, k] == math.inf and mu > most) or (rows[LO, k] == -math.inf and mu < -most):
            rows[MU, k] = min(max(mu, -most), most)
            found = True
    if found:
        for i in range(p):
            columns[Z, i] = columns[Y, i]
        for k in range(n):
            for i in range(p):
                columns[Z, i] -= A[k, i] * rows[MU, k]
    return found


@compiled
def solve_instance(
    n, p, center_, gradient_, alpha, floor_, weights_, compliance_, A_, b_, lower_, upper_, rounds,
    columns_, rows_, x_, multipliers_,
):  # fmt: skip
    # By their addresses: passing some fifteen descriptors of arrays costs several times the quiet
    # path itself.
    center, gradient = vector(center_, p), vector(gradient_, p)
    lower, upper, x = vector(lower_, p), vector(upper_, p), vector(x_, p)
    floor, weights, compliance = vector(floor_, n), vector(weights_, n), vector(compliance_, n)
    A, b, multipliers = matrix(A_, n, p), vector(b_, n), vector(multipliers_, n)
    columns, rows = matrix(columns_, COLUMNS, p), matrix(rows_, HESSIAN + 2 * n, n)

    half = 0.5 / alpha
    finite = 0.0
    for i in range(p):
        y = center[i] - gradient[i] * half
        columns[Y, i] = y
        x[i] = min(max(y, lower[i]), upper[i])
        finite += 0.0 * y
    if not (finite == 0.0):
        return math.nan
    quiet = True
    for k in range(n):
        g = 0.0
        for i in range(p):
            g += A[k, i] * x[i]
        g -= b[k]
        rows[G, k] = g
        quiet = quiet and (
            (g <= 0.0 and floor[k] == 0.0)
            or (g >= 0.0 and weights[k] == 0.0)
            or (g == 0.0 and floor[k] <= 0.0 and weights[k] >= 0.0)
        )
    if quiet:
        for k in range(n):
            multipliers[k] = 0.0
        return 0.0

    for i in range(p):
        columns[Z, i] = columns[Y, i]
        columns[FREE, i] = 1.0 if lower[i] < upper[i] else 0.0
    for k in range(n):
        rows[LO, k] = floor[k] * half
        rows[HI, k] = weights[k] * half
        rows[SOFT, k] = compliance[k] * (2.0 * alpha)
        norm = 0.0
        for i in range(p):
            norm += columns[FREE, i] * A[k, i] * A[k, i]
        rows[NORM, k] = norm + rows[SOFT, k]
        mu = min(max(0.0, rows[LO, k]), rows[HI, k])
        if rows[NORM, k] == 0.0:
            # The row is constant on X: its multiplier is at a bound, once and for all.
            if rows[G, k] != 0.0:
                mu = rows[HI, k] if rows[G, k] > 0.0 else rows[LO, k]
            if abs(mu) == math.inf:
                return math.inf
        rows[MU, k] = mu
        if mu != 0.0:
            for i in range(p):
                columns[Z, i] -= mu * A[k, i]
    for i in range(p):
        x[i] = min(max(columns[Z, i], lower[i]), upper[i])
    set_row_values(A, b, x, rows)

    residual = math.inf
    refreshed = 0
    spent = 0.0
    for iteration in range(40 + 10 * n):
        m = 0
        settled = True
        for k in range(n):  # the rows whose multiplier should move
            mu, g = rows[MU, k], rows[G, k]
            tolerance = ROW_TOLERANCE * rows[SCALE, k]
            at_lo = mu <= rows[LO, k]
            at_hi = mu >= rows[HI, k]
            if (at_lo and g <= tolerance) or (at_hi and g >= -tolerance) or rows[NORM, k] == 0.0:
                continue
            rows[CHOSEN, m] = k
            m += 1
            settled = settled and abs(g) <= tolerance
        if settled:
            # Long detours leave rounding in z. Form it afresh (the residual just did), and go on.
            residual = affine_residual(x, A, lower, upper, columns, rows)
            shortened = refreshed == 0 and cut_back(A, columns, rows)
            if (residual <= REFRESH_ABOVE and not shortened) or refreshed == 2:
                break
            refreshed += 1
            for i in range(p):
                x[i] = min(max(columns[Z, i], lower[i]), upper[i])
            set_row_values(A, b, x, rows)
            continue
        if spent > rounds:
            residual = affine_residual(x, A, lower, upper, columns, rows)
            break

        # Maximise the quadratic piece that holds here: x moves in its free coordinates.
        for i in range(p):
            z = columns[Z, i]
            columns[FREE, i] = 1.0 if lower[i] < z and z < upper[i] else 0.0
        if iteration > 5:
            m = keep_flat_rows(A, columns, rows, m)
        for a in range(m):
            k = int(rows[CHOSEN, a])
            rows[GAIN, a] = rows[G, k]
            rows[DOWN, a] = rows[LO, k] - rows[MU, k]
            rows[UP, a] = rows[HI, k] - rows[MU, k]
            for c in range(a + 1):
                j = int(rows[CHOSEN, c])
                s = 0.0
                for i in range(p):
                    s += columns[FREE, i] * A[k, i] * A[j, i]
                if j == k:
                    s += rows[SOFT, k] + REGULARISATION * rows[NORM, k]
                rows[HESSIAN + a, c] = s
                rows[HESSIAN + c, a] = s
        if m == 1:
            d = rows[GAIN, 0] / rows[HESSIAN, 0]
            rows[D, 0] = min(max(d, rows[DOWN, 0]), rows[UP, 0])
            spent += 1.0
        else:
            spent += maximise_piece(rows, n, m, rounds)

        # Go along d as far as the dual rises.
        start = 0.0
        offset = 0.0
        bend = 0.0
        limit = math.inf
        for a in range(m):
            k = int(rows[CHOSEN, a])
            d = rows[D, a]
            start += d * rows[GAIN, a]
            offset += d * (b[k] + rows[SOFT, k] * rows[MU, k])
            bend += rows[SOFT, k] * d * d
            if d > 0.0:
                limit = min(limit, rows[UP, a] / max(d, TINY))
            elif d < 0.0:
                limit = min(limit, rows[DOWN, a] / min(d, -TINY))
            if a == 0:
                for i in range(p):
                    columns[W, i] = d * A[k, i]
            else:
                for i in range(p):
                    columns[W, i] += d * A[k, i]
        if not (start > 0.0):
            residual = affine_residual(x, A, lower, upper, columns, rows)
            break
        t = line_search(lower, upper, columns, start, offset, bend, max(limit, 1.0))
        if t == math.inf:
            return math.inf
        for a in range(m):
            k = int(rows[CHOSEN, a])
            step = t * rows[D, a]
            if step >= rows[UP, a]:
                rows[MU, k] = rows[HI, k]
            elif step <= rows[DOWN, a]:
                rows[MU, k] = rows[LO, k]
            else:
                rows[MU, k] += step
        for i in range(p):
            z = columns[Z, i] - t * columns[W, i]
            columns[Z, i] = z
            x[i] = min(max(z, lower[i]), upper[i])
        set_row_values(A, b, x, rows)

    else:
        residual = affine_residual(x, A, lower, upper, columns, rows)
    for k in range(n):
        if rows[MU, k] >= rows[HI, k]:
            multipliers[k] = weights[k]
        elif rows[MU, k] <= rows[LO, k]:
            multipliers[k] = floor[k]
        else:
            multipliers[k] = min(max(rows[MU, k] * (2.0 * alpha), floor[k]), weights[k])
    residual = judged(residual, x, A, b, center, lower, upper, columns, rows, rounds < math.inf)
    return max(residual, UNSETTLED) if spent > rounds and residual > REFRESH_ABOVE else residual


# Every kernel below works in memory that comes as its last input, or on the stack where that is
# empty; `memory_of` says where, and 0 if there is too little.


@inlined
def memory_of(given, size, own, needed):
    if size == 0 and needed <= STACK:
        return own
    return given if size >= needed else 0


@batch_kernel("(p),(p),(),(n),(n),(n),(n,p),(n),(p),(p),(),(s)->(p),(n),()?")
def affine_step(sizes, at):
    """Affine rows on a box: center, gradient, alpha, floor, weights, compliance, A, b, lower,
    upper, rounds, memory; x, multipliers, residual. The largest residual is returned. After so
    many systems solved it gives up."""
    p, n, s = sizes[0], sizes[1], sizes[2]
    memory = memory_of(at[11], s, at[15], COLUMNS * p + (HESSIAN + 2 * n) * n)
    if memory == 0:
        return math.nan
    residual = solve_instance(
        n, p, at[0], at[1], vector(at[2], 1)[0], at[3], at[4], at[5], at[6], at[7], at[8], at[9],
        vector(at[10], 1)[0], memory, memory + 8 * COLUMNS * p, at[12], at[13],
    )  # fmt: skip
    if at[14] != 0:
        vector(at[14], 1)[0] = residual
    return residual


@kernel("VVMfff")
def dual_search(lower, upper, columns, start, offset, limit):
    """The line search alone, along columns[W] from columns[Z], for rows without compliance."""
    return line_search(lower, upper, columns, start, offset, 0.0, limit)


# One capacity row. Its few numbers sit in the same named lines, for the same residual.


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
    memory = memory_of(at[10], s, at[14], COLUMNS * p + HESSIAN + 2)
    if memory == 0:
        return math.nan
    alpha, floor, weight = vector(at[2], 1)[0], vector(at[3], 1)[0], vector(at[4], 1)[0]
    columns, rows = matrix(memory, COLUMNS, p), matrix(memory + 8 * COLUMNS * p, HESSIAN + 2, 1)
    multiplier = vector(at[12], 1)
    mu, residual = solve_capacity(
        vector(at[0], p), vector(at[1], p), alpha, floor, weight, vector(at[5], 1)[0],
        vector(at[6], p), vector(at[7], p), vector(at[8], p), vector(at[9], p), columns, rows,
        vector(at[11], p),
    )  # fmt: skip
    if mu >= rows[HI, 0]:
        multiplier[0] = weight
    elif mu <= rows[LO, 0]:
        multiplier[0] = floor
    else:
        multiplier[0] = min(max(mu * (2.0 * alpha), floor), weight)
    vector(at[13], 1)[0] = residual
    return residual


# Affine rows in a ball. Its multiplier nu adds ``nu (|x - c|^2 - r^2)`` to the objective, which is
# the same problem without a ball, around c and with the curvature alpha + nu. As a function of
# s = 1 / (alpha + nu) its answer x(s) is piecewise affine and its distance from c never falls, so
# that a line through two points of x(s) gives the root of ``|x(s) - c| = r`` once both lie on the
# root's own piece.
DESCENT, LEAST, MOST, STILL, INNER, OUTER, BEFORE, BALL_COLUMNS = range(8)


@inlined
def distance(x, middle):
    total = 0.0
    for i in range(x.size):
        total += (x[i] - middle[i]) * (x[i] - middle[i])
    return math.sqrt(total)


@inlined
def to_sphere(point, s, other, t, middle, radius):
    """How far from s the line through x(s) and x(t) meets the sphere; NaN if it does not."""
    vv = 0.0
    ev = 0.0
    ee = 0.0
    for i in range(point.size):
        e = point[i] - middle[i]
        v = (other[i] - point[i]) / (t - s)
        vv += v * v
        ev += e * v
        ee += e * e
    gap = radius * radius - ee
    root = ev * ev + vv * gap
    if not (root > 0.0 and vv > 0.0):
        return math.nan
    root = math.sqrt(root)
    return gap / (ev + root) if ev > 0.0 else (root - ev) / vv


@compiled
def solve_ball(
    n, p, center, gradient, alpha, floor, weights, compliance, A_, b_, middle, radius, rounds,
    scratch_, x, multipliers,
):  # fmt: skip
    """Set x and the multipliers; return the residual, infinite if hard rows miss the ball.

    The residual is that of the problem with curvature alpha + nu, or the ball's own: how far x is
    outside, and where nu > 0 inside, relative to the radius and the size of the ball's center.
    """
    end = BALL_COLUMNS * p
    work = matrix(scratch_, BALL_COLUMNS, p)
    limits = matrix(scratch_ + 8 * end, 2, n)
    columns_ = scratch_ + 8 * (end + 2 * n)
    rows_ = scratch_ + 8 * (end + 2 * n + COLUMNS * p)
    size = radius
    for i in range(p):
        work[DESCENT, i] = gradient[i] + 2.0 * alpha * (middle[i] - center[i])
        work[LEAST, i] = -math.inf
        work[MOST, i] = math.inf
        work[STILL, i] = 0.0
        size = max(size, radius + abs(middle[i]))
    hard = False
    for k in range(n):
        stiff = compliance[k] == 0.0
        limits[0, k] = -math.inf if floor[k] == -math.inf and stiff else 0.0
        limits[1, k] = math.inf if weights[k] == math.inf and stiff else 0.0
        hard = hard or limits[0, k] < limits[1, k]
    middle_ = address_of(middle, 0)
    descent_, least_ = scratch_ + 8 * DESCENT * p, scratch_ + 8 * LEAST * p
    most_, compliance_ = scratch_ + 8 * MOST * p, address_of(compliance, 0)

    s_inner, s_outer = 0.0, 1.0 / alpha
    s = s_outer
    t = 0.0
    reach = 0.0
    residual = math.inf
    for iteration in range(120):
        residual = solve_instance(
            n, p, middle_, descent_, 1.0 / s, address_of(floor, 0), address_of(weights, 0),
            compliance_, A_, b_, least_, most_, rounds, columns_, rows_, address_of(x, 0),
            address_of(multipliers, 0),
        )  # fmt: skip
        reach = distance(x, middle)
        if rounds < math.inf and residual >= UNSETTLED:
            return residual
        if not (residual < math.inf and reach < math.inf):
            return residual if residual == math.inf else math.nan
        if iteration == 0:
            if reach <= radius:
                return residual
            for i in range(p):
                work[INNER, i] = middle[i]
                work[OUTER, i] = x[i]
            if hard:
                # Where nu grows for ever only hard rows count: the point of theirs nearest to c.
                blocked = solve_instance(
                    n, p, middle_, scratch_ + 8 * STILL * p, 0.5,
                    scratch_ + 8 * end, scratch_ + 8 * (end + n), compliance_,
                    A_, b_, least_, most_, rounds, columns_, rows_,
                    scratch_ + 8 * INNER * p, address_of(multipliers, 0),
                )  # fmt: skip
                if distance(work[INNER], middle) > radius + 1e-9 * size:
                    return math.inf
                if not (blocked < math.inf):
                    return blocked
        elif abs(reach - radius) <= 1e-15 * size:
            break
        elif reach > radius:
            s_before, s_outer = s_outer, s
            for i in range(p):
                work[BEFORE, i] = work[OUTER, i]
                work[OUTER, i] = x[i]
            # Two points of the same side are often on one piece already.
            t = s_outer + to_sphere(work[OUTER], s_outer, work[BEFORE], s_before, middle, radius)
        else:
            s_before, s_inner = s_inner, s
            for i in range(p):
                work[BEFORE, i] = work[INNER, i]
                work[INNER, i] = x[i]
            t = s_inner + to_sphere(work[INNER], s_inner, work[BEFORE], s_before, middle, radius)
        if iteration == 0 or iteration % 3 == 2 or not (s_inner < t and t < s_outer):
            t = s_inner + to_sphere(work[INNER], s_inner, work[OUTER], s_outer, middle, radius)
        if iteration % 4 == 3 or not (s_inner < t and t < s_outer):
            t = 0.5 * (s_inner + s_outer) if s_inner > 0.01 * s_outer else 0.03 * s_outer
        if not (s_inner < t and t < s_outer):
            break
        s = t
    return max(residual, abs(reach - radius) / size)


@batch_kernel("(p),(p),(),(n),(n),(n),(n,p),(n),(p),(),(),(s)->(p),(n),()")
def ball_step(sizes, at):
    """Affine rows in a ball: as :func:`affine_step`, its center and radius for bounds."""
    p, n, s = sizes[0], sizes[1], sizes[2]
    needed = BALL_COLUMNS * p + 2 * n + COLUMNS * p + (HESSIAN + 2 * n) * n
    memory = memory_of(at[11], s, at[15], needed)
    if memory == 0:
        return math.nan
    residual = solve_ball(
        n, p, vector(at[0], p), vector(at[1], p), vector(at[2], 1)[0], vector(at[3], n),
        vector(at[4], n), vector(at[5], n), at[6], at[7], vector(at[8], p), vector(at[9], 1)[0],
        vector(at[10], 1)[0], memory, vector(at[12], p), vector(at[13], n),
    )  # fmt: skip
    vector(at[14], 1)[0] = residual
    return residual


def ball_scratch_size(n: int, p: int) -> int:
    """How many floats an instance in a ball needs to work in."""
    return BALL_COLUMNS * p + 2 * n + scratch_size(n, p)


# Quadratic rows. The dual is the same, but x(mu) minimises a quadratic over the box and the pieces
# of the dual are no longer quadratic: Newton's method with a line search on the slope.

CURVED_TOLERANCE = 1e-13  # of a row's scale, as ROW_TOLERANCE
CURVED_SEARCH = 0.2  # of the slope at the start: a closer search costs more than a Newton step
TERMS = 1e-7  # of the terms of a slope: a last digit of x moves them by as much as promised of W
C, TRIAL, R, MOVE, LIST, CURVED_COLUMNS = range(4, 10)
UNIT = SOFT  # quadratic rows have no compliance
JAC, BACK = range(2)  # blocks of n by p: the jacobian; what x moves of it, or it through the factor


def curved_scratch_size(n: int, p: int) -> int:
    """As :func:`scratch_size`, for quadratic rows."""
    return (CURVED_COLUMNS + 2 * p + 2 * n) * p + (HESSIAN + 2 * n) * n


@compiled
def factor_free(B, L, columns, count):
    """Cholesky's factor of B over the listed coordinates."""
    for a in range(count):
        i = int(columns[LIST, a])
        for c in range(a):
            s = B[i, int(columns[LIST, c])]
            for e in range(c):
                s -= L[a, e] * L[c, e]
            L[a, c] = s / L[c, c]
        s = B[i, i]
        for e in range(a):
            s -= L[a, e] * L[a, e]
        L[a, a] = math.sqrt(max(s, 1e-14 * B[i, i]))


@compiled
def list_free(x, lower, upper, columns):
    """List the coordinates strictly between their bounds, and say how many there are."""
    count = 0
    for i in range(x.size):
        if lower[i] < x[i] and x[i] < upper[i]:
            columns[LIST, count] = i
            count += 1
    return count


@compiled
def minimise_lagrangian(mu, P, A, lower, upper, columns, B, L, x):
    """Set x to the minimiser of ``|x - y|^2 / 2 + mu'g(x)`` over the box, from x; return B's kind.

    The projected Newton method: solve for the coordinates that are not held at a bound, and
    shorten the step where the box cuts it until the value falls. Returns whether B is not I.
    """
    n, p = A.shape
    m = P.shape[0]
    curved = False
    for i in range(p):
        columns[C, i] = columns[Y, i]
    for k in range(n):
        if mu[k] != 0.0:
            curved = curved or k < m
            for i in range(p):
                columns[C, i] -= mu[k] * A[k, i]
    if not curved:
        for i in range(p):
            x[i] = min(max(columns[C, i], lower[i]), upper[i])
        return False
    for i in range(p):
        for j in range(p):
            B[i, j] = 0.0
        B[i, i] = 1.0
    for k in range(m):
        if mu[k] != 0.0:
            for i in range(p):
                for j in range(p):
                    B[i, j] += mu[k] * P[k, i, j]
    for i in range(p):
        x[i] = min(max(x[i], lower[i]), upper[i])
    careful = False
    for attempt in range(80 + 4 * p):
        # At first all coordinates that a bound does not hold back are solved for, and the step is
        # shortened where the box cuts it. That may creep; then bounds are met one by one and left
        # one by one, of which every full step goes down.
        careful = careful or attempt == 20
        count = 0
        done = True
        worst = 0.0
        pick = -1
        for i in range(p):
            s = 0.0
            size = abs(columns[C, i])
            for j in range(p):
                s += B[i, j] * x[j]
                size += abs(B[i, j] * x[j])
            r = s - columns[C, i]
            columns[R, i] = r
            wrong = abs(r) > 1e-15 * size
            at_bound = x[i] <= lower[i] or x[i] >= upper[i]
            if (x[i] <= lower[i] and r >= 0.0) or (x[i] >= upper[i] and r <= 0.0):
                columns[FREE, i] = 0.0
                continue
            if not careful or not at_bound:
                columns[FREE, i] = 1.0
            elif columns[FREE, i] == 0.0:
                if wrong and abs(r) > worst * size:
                    worst = abs(r) / size
                    pick = i
                continue
            columns[LIST, count] = i
            count += 1
            done = done and not wrong
        if done and pick >= 0:
            columns[FREE, pick] = 1.0
            columns[LIST, count] = pick
            count += 1
        elif done:
            break
        factor_free(B, L, columns, count)
        for a in range(count):
            s = -columns[R, int(columns[LIST, a])]
            for e in range(a):
                s -= L[a, e] * columns[MOVE, e]
            columns[MOVE, a] = s / L[a, a]
        for a in range(count - 1, -1, -1):
            s = columns[MOVE, a]
            for e in range(a + 1, count):
                s -= L[e, a] * columns[MOVE, e]
            columns[MOVE, a] = s / L[a, a]
        t = 1.0
        if careful:
            for a in range(count):
                i = int(columns[LIST, a])
                move = columns[MOVE, a]
                room = upper[i] - x[i] if move > 0.0 else lower[i] - x[i]
                if abs(move) * t > abs(room):
                    t = abs(room) / max(abs(move), TINY)
        settled = True
        inside = True
        for _ in range(30):
            inside = True
            first = 0.0
            for a in range(count):
                i = int(columns[LIST, a])
                wish = x[i] + t * columns[MOVE, a]
                there = min(max(wish, lower[i]), upper[i])
                inside = inside and wish == there
                columns[TRIAL, a] = there - x[i]
                first += columns[R, i] * (there - x[i])
            if inside or careful:
                break
            second = 0.0
            for a in range(count):
                i = int(columns[LIST, a])
                s = 0.0
                for c in range(count):
                    s += B[i, int(columns[LIST, c])] * columns[TRIAL, c]
                second += s * columns[TRIAL, a]
            if first + 0.5 * second <= 0.1 * first:
                break
            t *= 0.5
        for a in range(count):
            i = int(columns[LIST, a])
            there = min(max(x[i] + columns[TRIAL, a], lower[i]), upper[i])
            settled = settled and abs(columns[TRIAL, a]) <= 4e-16 * abs(x[i])
            if careful and t < 1.0:
                move = columns[MOVE, a]
                room = upper[i] - x[i] if move > 0.0 else lower[i] - x[i]
                if t * abs(move) >= abs(room) * (1.0 - 1e-15):
                    there = upper[i] if move > 0.0 else lower[i]
                    columns[FREE, i] = 0.0
            x[i] = there
        if settled and not careful:
            if inside:
                break
            careful = True
    return True


@compiled
def set_curved_values(P, A, b, x, lower, upper, columns, rows, blocks):
    """g and its jacobian, the sizes of the terms that g is the sum of, and of those of the jacobian
    that x moves.

    In a row coordinates count at least with X_FLOOR of the largest that is in it.
    """
    n, p = A.shape
    m = P.shape[0]
    for k in range(n):
        most = 0.0
        for i in range(p):
            if A[k, i] != 0.0 or (k < m and P[k, i, i] != 0.0):
                most = max(most, known_size(x[i], columns[Y, i], lower[i], upper[i]))
        least = X_FLOOR * most
        value = 0.0
        size = 0.0
        for i in range(p):
            s = 0.0
            t = 0.0
            if k < m:
                for j in range(p):
                    s += P[k, i, j] * x[j]
                    t += abs(P[k, i, j]) * max(abs(x[j]), least)
            value += (0.5 * s + A[k, i]) * x[i]
            size += (0.5 * t + abs(A[k, i])) * max(abs(x[i]), least)
            blocks[JAC, k, i] = s + A[k, i]
            blocks[BACK, k, i] = t
        rows[G, k] = value - b[k]
        rows[SCALE, k] = size + abs(b[k])
        rows[UNIT, k] = most


@compiled
def curved_residual(x, lower, upper, columns, rows, blocks):
    """The residual for quadratic rows; G, SCALE and both blocks belong to x already.

    Nothing is relative to 1: a coordinate is relative to all that it is the sum of.
    """
    n, p = blocks.shape[1], blocks.shape[2]
    for i in range(p):
        y = columns[Y, i]
        columns[Z, i] = y
        terms = abs(x[i]) + abs(y)
        for k in range(n):
            term = blocks[JAC, k, i] * rows[MU, k]
            columns[Z, i] -= term
            terms += abs(term) + TERMS * blocks[BACK, k, i] * abs(rows[MU, k])
        columns[W, i] = width_of(x[i], columns[Z, i], y, terms, lower[i], upper[i])
    return kkt_residual(n, p, x, lower, upper, columns, rows)


@compiled
def solve_curved(
    center, gradient, alpha, floor, weights, P, A, b, lower, upper, start, columns, B, L, blocks,
    rows, x, multipliers,
):  # fmt: skip
    n, p = A.shape
    rounds = start[n] if start.size > n else math.inf
    half = 0.5 / alpha
    finite = 0.0
    for i in range(p):
        y = center[i] - gradient[i] * half
        columns[Y, i] = y
        x[i] = min(max(y, lower[i]), upper[i])
        finite += 0.0 * y
    if not (finite == 0.0):
        return math.nan
    for k in range(n):
        rows[LO, k] = floor[k] * half
        rows[HI, k] = weights[k] * half
        rows[MU, k] = min(max(start[k] * half, rows[LO, k]), rows[HI, k])
    minimise_lagrangian(rows[MU], P, A, lower, upper, columns, B, L, x)
    set_curved_values(P, A, b, x, lower, upper, columns, rows, blocks)
    best = math.inf
    stuck = 0
    spent = 0.0
    for _ in range(60 + 10 * n):
        m = 0
        settled = True
        for k in range(n):
            mu, g = rows[MU, k], rows[G, k]
            tolerance = CURVED_TOLERANCE * rows[SCALE, k]
            if (mu <= rows[LO, k] and g <= tolerance) or (mu >= rows[HI, k] and g >= -tolerance):
                continue
            rows[CHOSEN, m] = k
            m += 1
            settled = settled and abs(g) <= tolerance
        if settled or spent > rounds:
            break
        # The dual's curvature: how g at x(mu) falls, through the free coordinates.
        curved = False
        for k in range(P.shape[0]):
            curved = curved or rows[MU, k] != 0.0
        count = list_free(x, lower, upper, columns)
        if curved:
            factor_free(B, L, columns, count)
        for a in range(m):
            k = int(rows[CHOSEN, a])
            norm = 0.0
            for i in range(p):
                norm += blocks[JAC, k, i] * blocks[JAC, k, i] if lower[i] < upper[i] else 0.0
            rows[NORM, k] = norm
            for c in range(count):
                s = blocks[JAC, k, int(columns[LIST, c])]
                if curved:
                    for e in range(c):
                        s -= L[c, e] * blocks[BACK, k, e]
                    s /= L[c, c]
                blocks[BACK, k, c] = s
            rows[GAIN, a] = rows[G, k]
            rows[DOWN, a] = rows[LO, k] - rows[MU, k]
            rows[UP, a] = rows[HI, k] - rows[MU, k]
            for c in range(a + 1):
                j = int(rows[CHOSEN, c])
                s = 0.0
                for e in range(count):
                    s += blocks[BACK, k, e] * blocks[BACK, j, e]
                if j == k:
                    unit = rows[UNIT, k]
                    steep = X_FLOOR * rows[SCALE, k] / (unit if unit > 0.0 else math.inf)
                    s += REGULARISATION * (norm + steep * steep) + TINY
                rows[HESSIAN + a, c] = s
                rows[HESSIAN + c, a] = s
        if m == 1:
            d = rows[GAIN, 0] / rows[HESSIAN, 0]
            rows[D, 0] = min(max(d, rows[DOWN, 0]), rows[UP, 0])
        else:
            maximise_piece(rows, n, m, math.inf)

        # Go along d until the dual's slope has nearly vanished.
        first = 0.0
        limit = math.inf
        for a in range(m):
            d = rows[D, a]
            first += d * rows[GAIN, a]
            if d > 0.0:
                limit = min(limit, rows[UP, a] / max(d, TINY))
            elif d < 0.0:
                limit = min(limit, rows[DOWN, a] / min(d, -TINY))
        if not (first > 0.0):
            break
        limit = max(limit, 1.0)
        left = 0.0
        left_slope = first
        right = math.inf
        right_slope = 0.0
        t = 1.0
        for k in range(n):
            rows[STEP, k] = rows[MU, k]
        for _ in range(60):
            spent += 1.0
            for a in range(m):
                k = int(rows[CHOSEN, a])
                move = t * rows[D, a]
                if move >= rows[UP, a]:
                    rows[MU, k] = rows[HI, k]
                elif move <= rows[DOWN, a]:
                    rows[MU, k] = rows[LO, k]
                else:
                    rows[MU, k] = rows[STEP, k] + move
            minimise_lagrangian(rows[MU], P, A, lower, upper, columns, B, L, x)
            set_curved_values(P, A, b, x, lower, upper, columns, rows, blocks)
            slope = 0.0
            for a in range(m):
                slope += rows[D, a] * rows[G, int(rows[CHOSEN, a])]
            if abs(slope) <= CURVED_SEARCH * first or (slope > 0.0 and t >= limit):
                break
            if slope > 0.0:
                # Where the slope hardly falls, go ten times as far.
                ahead = t + (t - left) * slope / max(left_slope - slope, 0.11 * slope)
                left = t
                left_slope = slope
                t = min(ahead, limit) if ahead < right else 0.5 * (left + right)
                if right < math.inf:
                    t = left + (right - left) * min(max(slope / (slope - right_slope), 0.1), 0.9)
                if t > 1e100:
                    return math.inf
            else:
                right = t
                right_slope = slope
                share = left_slope / (left_slope - slope)
                t = left + (right - left) * min(max(share, 0.05), 0.95)
            if not (left < t and t < right):
                break
        residual = curved_residual(x, lower, upper, columns, rows, blocks)
        if residual < 0.5 * best:
            best = residual
            stuck = 0
        else:
            stuck += 1
        if not (best > 1e-13) or (stuck > 8 and best <= 1e-11) or stuck > 40:
            break
    residual = curved_residual(x, lower, upper, columns, rows, blocks)
    for k in range(n):
        if rows[MU, k] >= rows[HI, k]:
            multipliers[k] = weights[k]
        elif rows[MU, k] <= rows[LO, k]:
            multipliers[k] = floor[k]
        else:
            multipliers[k] = min(max(rows[MU, k] * (2.0 * alpha), floor[k]), weights[k])
    return residual


@batch_kernel("(p),(p),(),(n),(n),(m,p,p),(n,p),(n),(p),(p),(k),(s)->(p),(n),()")
def curved_step(sizes, at):
    """Quadratic rows, of which the first m of n have a P, and all have a and b: center, gradient,
    alpha, floor, weights, P, A, b, lower, upper, start, memory; x, multipliers, residual. Behind
    the n multipliers to start from may stand after how many minima of the Lagrangian to give up."""
    p, n, m, k, s = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]
    end = CURVED_COLUMNS * p
    needed = end + 2 * p * p + 2 * n * p + (HESSIAN + 2 * n) * n
    memory = memory_of(at[11], s, at[15], needed)
    if memory == 0:
        return math.nan
    residual = solve_curved(
        vector(at[0], p), vector(at[1], p), vector(at[2], 1)[0], vector(at[3], n),
        vector(at[4], n), cube(at[5], m, p, p), matrix(at[6], n, p), vector(at[7], n),
        vector(at[8], p), vector(at[9], p), vector(at[10], k),
        matrix(memory, CURVED_COLUMNS, p), matrix(memory + 8 * end, p, p),
        matrix(memory + 8 * (end + p * p), p, p), cube(memory + 8 * (end + 2 * p * p), 2, n, p),
        matrix(memory + 8 * (end + 2 * p * p + 2 * n * p), HESSIAN + 2 * n, n),
        vector(at[12], p), vector(at[13], n),
    )  # fmt: skip
    vector(at[14], 1)[0] = residual
    return residual
