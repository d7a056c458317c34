"""Affine rows in all of space, as the kernel of balls calls them: the dual Newton method.

The dual's gradient ``A x(mu) - b - c mu``, where ``x(mu) = clip(y - A'mu)``, is piecewise affine:
each Newton step maximises the quadratic piece at ``mu`` over the box [lo, hi] and is followed by a
line search along the whole piecewise quadratic. ``z = y - A'mu`` is carried along by increments and
never formed afresh: when ``y`` is huge (a small alpha) the increments shrink as the iteration
converges, so that ``g(x)`` is driven to zero at the accuracy of ``x``, not of ``y``.
"""

import math

from coldq.compiled import compiled, inlined, matrix, vector
from coldq.solver.constants import REGULARISATION, ROW_TOLERANCE, SEARCH_TOLERANCE, TINY
from coldq.solver.kernels.piece import (
    CHOSEN, COLUMNS, DOWN, FREE, GAIN, HESSIAN, HI, LO, MU, NORM, OPEN, SCALE, SOFT, UP, D, G, W, Y,
    Z, affine_residual, give_multipliers, judged, list_moving, maximise, move_chosen,
    set_room, set_row_values, set_target,
)  # fmt: skip

REFRESH_ABOVE = 1e-12  # the residual above which z is formed afresh before the answer is given
UNSETTLED = 1e-6  # at least the residual of what was given up on the way: others do better
FLAT = 1e-16  # of the squared direction: less curvature is what REGULARISATION makes of none
LONG = 1e5  # times y: a multiplier that costs x five digits
SMALL_NORM = 1e-100  # below it a row is constant; no quotient by it overflows


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


@inlined
def is_quiet(center, gradient, half, floor, weights, A, b, lower, upper, columns, rows, x):
    """Set y, and x and g without multipliers: 1 if that is the answer, 0 if not, -1 without y."""
    n, p = A.shape
    if not set_target(center, gradient, half, lower, upper, columns, x):
        return -1
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
    return 1 if quiet else 0


@inlined
def begin(alpha, half, floor, weights, compliance, A, b, lower, upper, columns, rows, x):
    """Set what the iteration starts from; False if a row that is constant on X cannot hold."""
    n, p = A.shape
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
                return False
        rows[MU, k] = mu
        if mu != 0.0:
            for i in range(p):
                columns[Z, i] -= mu * A[k, i]
    for i in range(p):
        x[i] = min(max(columns[Z, i], lower[i]), upper[i])
    set_row_values(A, b, x, rows)
    return True


@inlined
def set_piece(A, rows, columns, m):
    """Set the quadratic piece that holds here, for the chosen rows: x moves where it is free."""
    p = A.shape[1]
    for a in range(m):
        k = int(rows[CHOSEN, a])
        set_room(rows, a, k)
        for c in range(a + 1):
            j = int(rows[CHOSEN, c])
            s = 0.0
            for i in range(p):
                s += columns[FREE, i] * A[k, i] * A[j, i]
            if j == k:
                s += rows[SOFT, k] + REGULARISATION * rows[NORM, k]
            rows[HESSIAN + a, c] = s
            rows[HESSIAN + c, a] = s


@inlined
def go_along(A, b, lower, upper, columns, rows, x, m):
    """Go along d as far as the dual rises: how far, 0 if it does not, infinity if for ever."""
    p = A.shape[1]
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
        return 0.0
    t = line_search(lower, upper, columns, start, offset, bend, max(limit, 1.0))
    if t == math.inf:
        return t
    move_chosen(rows, m, t)
    for i in range(p):
        z = columns[Z, i] - t * columns[W, i]
        columns[Z, i] = z
        x[i] = min(max(z, lower[i]), upper[i])
    set_row_values(A, b, x, rows)
    return 1.0


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
    quiet = is_quiet(
        center, gradient, half, floor, weights, A, b, lower, upper, columns, rows, x
    )  # fmt: skip
    if quiet < 0:
        return math.nan
    if quiet > 0:
        for k in range(n):
            multipliers[k] = 0.0
        return 0.0
    if not begin(alpha, half, floor, weights, compliance, A, b, lower, upper, columns, rows, x):
        return math.inf
    residual = math.inf
    refreshed = 0
    spent = 0.0
    for iteration in range(40 + 10 * n):
        m, settled = list_moving(rows, n)
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
        for i in range(p):
            z = columns[Z, i]
            columns[FREE, i] = 1.0 if lower[i] < z and z < upper[i] else 0.0
        if iteration > 5:
            m = keep_flat_rows(A, columns, rows, m)
        set_piece(A, rows, columns, m)
        spent += maximise(rows, n, m, rounds)
        went = go_along(A, b, lower, upper, columns, rows, x, m)
        if went == math.inf:
            return math.inf
        if went == 0.0:
            residual = affine_residual(x, A, lower, upper, columns, rows)
            break
    else:
        residual = affine_residual(x, A, lower, upper, columns, rows)
    give_multipliers(alpha, floor, weights, rows, multipliers)
    residual = judged(residual, x, A, b, center, lower, upper, columns, rows, rounds < math.inf)
    return max(residual, UNSETTLED) if spent > rounds and residual > REFRESH_ABOVE else residual
