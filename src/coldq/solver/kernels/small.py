"""Affine rows on a box, few of both: several instances side by side, or one alone.

The ordinary way of :mod:`~coldq.solver.kernels.affine`: hinges with finite weights, a handful of
Newton steps, nothing in doubt. It is written for one number or for one in each of the processor's
lanes, and nothing in it may be reordered: a sum of p terms has four partial sums, of every fourth
term, that are joined as (0 + 2) + (1 + 3), and the last p mod 4 terms one after another; a product
is fused with a sum where that is written. So an instance's bits do not depend on those beside it,
nor on the compiler. An instance out of the ordinary is left to the general kernel, from its start.

Loops go four terms a round, in which each partial sum stays in its register: a term a round, all of
them would change places after it, which took more instructions than the sums.
"""

import math

from coldq.compiled import (
    anywhere, chosen, exact, exact_inlined, four, fourfold, fused, gathered, gathered_2, gathered_4,
    gathered_8, hidden, joined, lane_at, larger, length, parts_from, put_lane, scattered,
    scattered_2, scattered_4, scattered_8, smaller, spread, turned, unless, width, without,
)  # fmt: skip
from coldq.compiled.calls import words
from coldq.solver.constants import (
    LEAST_SIZE, NOISE, REGULARISATION, ROW_TOLERANCE, SEARCH_TOLERANCE, TINY, X_FLOOR,
)  # fmt: skip

MOST_ROWS = 2
MOST_COLUMNS = 15  # with 16 and more the general kernel adds up in sixteen partial sums

# An instance's numbers, `wide` of each kind beside each other: lines of p, A, lines of n, and those
# that it has once.
Y, CENTER, LEAST, MOST, Z, W, X, MATRIX = range(8)
B, HI, WEIGHT, MU, G, SCALE, NORM, D, PIECE, ROWS = range(10)
STATE, START, OFFSET, LIMIT, ALPHA, RESIDUAL, BESIDE, SINGLES = range(8)
OPEN, SETTLED, LEFT = 0.0, 1.0, 2.0  # states: LEFT to the general kernel
# The addresses of an instance's arrays.
CENTER_AT, GRADIENT_AT, ALPHA_AT, WEIGHTS_AT, A_AT, B_AT, LOWER_AT, UPPER_AT = range(8)
X_AT, MULTIPLIERS_AT, RESIDUAL_AT, TABLE = range(8, 12)

MOST_STEPS = 6  # Newton steps; later ones of the general kernel look for flat rows
MOST_GUESSES = 6  # in a piece
MOST_PLACES = 12  # of a line search
EVENLY = 1e-12  # of a direction's squared length: with more curvature no stretch is flat
SURE = 0.5e-12  # a residual that needs no second look, with a margin for its own rounding
SOUND_NORM = 1e-200  # of a row


# Numbers that a single instance works in: its own, alpha and the residual, the table.
SINGLE = (MATRIX + MOST_ROWS) * MOST_COLUMNS + ROWS * MOST_ROWS + SINGLES + 2 + TABLE


@exact_inlined
def clipped(z, least, most):
    return smaller(larger(z, least), most)


@exact_inlined
def is_loud(n, p, center, gradient, half, weights, A, b, lower, upper, x):
    """Set x without multipliers; 0 if that is the answer, 1 if not, or if y is not finite."""
    whole = p - p % 4
    last = A + 8 * (n - 1) * p  # of one or two rows
    finite, firsts, lasts = four(), four(), four()
    for i in range(0, whole, 4):
        at = 8 * i
        new = without(lane_at(gradient + at, 0, finite), half, lane_at(center + at, 0, finite))
        finite = finite + 0.0 * new
        new = clipped(new, lane_at(lower + at, 0, finite), lane_at(upper + at, 0, finite))
        put_lane(x + at, 0, new)
        firsts = fused(lane_at(A + at, 0, finite), new, firsts)
        lasts = fused(lane_at(last + at, 0, finite), new, lasts)
    g, h, total = fourfold(firsts), fourfold(lasts), 0.0
    for i in range(whole, p):
        new = without(lane_at(gradient, i, 0.0), half, lane_at(center, i, 0.0))
        total += 0.0 * new
        new = clipped(new, lane_at(lower, i, 0.0), lane_at(upper, i, 0.0))
        put_lane(x, i, new)
        g = fused(lane_at(A, i, 0.0), new, g)
        h = fused(lane_at(last, i, 0.0), new, h)
    g -= lane_at(b, 0, 0.0)
    h -= lane_at(b, n - 1, 0.0)
    # Flags are joined, not asked in turn: no branch here could be predicted.
    quiet = (g <= 0.0) | ((g >= 0.0) & (lane_at(weights, 0, 0.0) == 0.0))
    quiet = quiet & ((h <= 0.0) | ((h >= 0.0) & (lane_at(weights, n - 1, 0.0) == 0.0)))
    endless = anywhere(unless(four() == 0.0, finite == 0.0))
    return 0 if unless(quiet & (total == 0.0), endless) else 1


@exact_inlined
def lines_in(like, p, table, into):
    """Put p numbers of each instance side by side."""
    for i in range(0, p - p % 8, 8):
        gathered_8(table, i, into + 8 * width(like) * i, like)
    i = p - p % 8
    if p & 4:
        gathered_4(table, i, into + 8 * width(like) * i, like)
        i += 4
    if p & 2:
        gathered_2(table, i, into + 8 * width(like) * i, like)
        i += 2
    if p & 1:
        put_lane(into, i, gathered(table, i, like))


@exact_inlined
def lines_out(like, p, table, source):
    """Put p numbers of each instance where they belong."""
    for i in range(0, p - p % 8, 8):
        scattered_8(table, i, source + 8 * width(like) * i, like)
    i = p - p % 8
    if p & 4:
        scattered_4(table, i, source + 8 * width(like) * i, like)
        i += 4
    if p & 2:
        scattered_2(table, i, source + 8 * width(like) * i, like)
        i += 2
    if p & 1:
        scattered(table, i, lane_at(source, i, like))


@exact_inlined
def take(like, wide, n, p, table, columns, A, rows, singles, bounds):
    """Put instances into their lanes; the bounds if these are not there already. Y gets the
    gradient."""
    line = 8 * wide
    lines_in(like, p, table + line * CENTER_AT, columns + line * CENTER * p)
    lines_in(like, p, table + line * GRADIENT_AT, columns + line * Y * p)
    if bounds:
        lines_in(like, p, table + line * LOWER_AT, columns + line * LEAST * p)
        lines_in(like, p, table + line * UPPER_AT, columns + line * MOST * p)
    lines_in(like, n * p, table + line * A_AT, A)
    lines_in(like, n, table + line * B_AT, rows + line * B * n)
    lines_in(like, n, table + line * WEIGHTS_AT, rows + line * WEIGHT * n)
    put_lane(singles, ALPHA, gathered(table + line * ALPHA_AT, 0, like))


@exact_inlined
def give(like, wide, n, p, table, columns, rows, singles):
    """Put answers where they belong; those of lanes that were left mean nothing."""
    line = 8 * wide
    lines_out(like, p, table + line * X_AT, columns + line * X * p)
    lines_out(like, n, table + line * MULTIPLIERS_AT, rows + line * D * n)
    residual = lane_at(singles, RESIDUAL, like)
    residual = chosen(lane_at(singles, STATE, like) == SETTLED, residual, -1.0)
    scattered(table + line * RESIDUAL_AT, 0, residual)


@exact_inlined
def set_values(like, n, p, columns, A, rows):
    """The dual's gradient, and the size of the terms that each of its entries is the sum of."""
    whole, last = p - p % 4, (n - 1) * p  # of one or two rows
    zero = spread(0.0, like)
    v0, s0, v1, s1 = parts_from(zero), parts_from(zero), parts_from(zero), parts_from(zero)
    for quad in range(0, whole, 4):
        for i in range(quad, quad + 4):
            x = lane_at(columns, X * p + i, like)
            own = larger(length(x), X_FLOOR)
            one, other = lane_at(A, i, like), lane_at(A, last + i, like)
            v0, s0 = turned(v0, one, x), turned(s0, length(one), own)
            v1, s1 = turned(v1, other, x), turned(s1, length(other), own)
    value, size, value1, size1 = joined(v0), joined(s0), joined(v1), joined(s1)
    for i in range(whole, p):
        x = lane_at(columns, X * p + i, like)
        own = larger(length(x), X_FLOOR)
        one, other = lane_at(A, i, like), lane_at(A, last + i, like)
        value, size = fused(one, x, value), fused(length(one), own, size)
        value1, size1 = fused(other, x, value1), fused(length(other), own, size1)
    b = lane_at(rows, B * n, like)
    put_lane(rows, G * n, value - b)
    put_lane(rows, SCALE * n, size + length(b))
    b = lane_at(rows, B * n + n - 1, like)
    put_lane(rows, G * n + n - 1, value1 - b)
    put_lane(rows, SCALE * n + n - 1, size1 + length(b))


@exact_inlined
def begin(like, wide, n, p, columns, A, rows, singles):
    """Set what the iteration starts from."""
    whole = p - p % 4
    zero = spread(0.0, like)
    half = 0.5 / lane_at(singles, ALPHA, like)
    finite = zero
    for i in range(p):
        center = lane_at(columns, CENTER * p + i, like)
        y = without(lane_at(columns, Y * p + i, like), half, center)
        least, most = lane_at(columns, LEAST * p + i, like), lane_at(columns, MOST * p + i, like)
        put_lane(columns, Y * p + i, y)
        put_lane(columns, Z * p + i, y)
        put_lane(columns, X * p + i, clipped(y, least, most))
        finite = finite + 0.0 * y
    state = chosen(finite == 0.0, spread(OPEN, like), LEFT)
    for k in range(n):
        weight = lane_at(rows, WEIGHT * n + k, like)
        put_lane(rows, HI * n + k, weight * half)
        state = chosen((weight >= 0.0) & (weight < math.inf), state, LEFT)
        parts = parts_from(zero)
        for quad in range(0, whole, 4):
            for i in range(quad, quad + 4):
                free, a = entry_on_box(like, n, p, columns, A, k, i)
                parts = turned(parts, free, a)
        norm = joined(parts)
        for i in range(whole, p):
            free, a = entry_on_box(like, n, p, columns, A, k, i)
            norm = fused(free, a, norm)
        put_lane(rows, NORM * n + k, norm)
        put_lane(rows, MU * n + k, zero)
        state = chosen(norm > SOUND_NORM, state, LEFT)
    put_lane(singles, STATE, state)
    set_values(like, n, p, columns, A, rows)


@exact_inlined
def entry_on_box(like, n, p, columns, A, k, i):
    """An entry of A, and once more where its coordinate can move at all."""
    a = lane_at(A, k * p + i, like)
    least, most = lane_at(columns, LEAST * p + i, like), lane_at(columns, MOST * p + i, like)
    return chosen(least < most, a, 0.0), a


@exact_inlined
def is_free(like, p, columns, i):
    z = lane_at(columns, Z * p + i, like)
    least, most = lane_at(columns, LEAST * p + i, like), lane_at(columns, MOST * p + i, like)
    return (least < z) & (z < most)


@exact_inlined
def set_piece(like, n, p, columns, A, rows, singles):
    """Set the quadratic pieces that hold here: x moves where it is free. Of one row the diagonal,
    of two what is beside it as well."""
    whole, last = p - p % 4, (n - 1) * p
    zero = spread(0.0, like)
    firsts, lasts, beside = parts_from(zero), parts_from(zero), parts_from(zero)
    for quad in range(0, whole, 4):
        for i in range(quad, quad + 4):
            free = is_free(like, p, columns, i)
            one, other = lane_at(A, i, like), lane_at(A, last + i, like)
            moved = chosen(free, other, zero)
            firsts = turned(firsts, chosen(free, one, zero), one)
            lasts = turned(lasts, moved, other)
            beside = turned(beside, moved, one)
    first, final, both = joined(firsts), joined(lasts), joined(beside)
    for i in range(whole, p):
        free = is_free(like, p, columns, i)
        one, other = lane_at(A, i, like), lane_at(A, last + i, like)
        moved = chosen(free, other, zero)
        first = fused(chosen(free, one, zero), one, first)
        final = fused(moved, other, final)
        both = fused(moved, one, both)
    norm = lane_at(rows, NORM * n, like)
    put_lane(rows, PIECE * n, fused(REGULARISATION, norm, first))
    norm = lane_at(rows, NORM * n + n - 1, like)
    put_lane(rows, PIECE * n + n - 1, fused(REGULARISATION, norm, final))
    put_lane(singles, BESIDE, both)


@exact_inlined
def stays(like, n, k, rows):
    """Where a row's multiplier should not move, and where it need not do so by much."""
    mu, g = lane_at(rows, MU * n + k, like), lane_at(rows, G * n + k, like)
    tolerance = ROW_TOLERANCE * lane_at(rows, SCALE * n + k, like)
    held = (g <= tolerance) & (mu <= 0.0)
    held = held | ((g >= 0.0 - tolerance) & (mu >= lane_at(rows, HI * n + k, like)))
    return held, held | (length(g) <= tolerance)


@exact_inlined
def settle(like, n, rows, singles):
    """Settle the open lanes in which no multiplier need move by much; whether any are left."""
    state = lane_at(singles, STATE, like)
    calm = state == OPEN
    for k in range(n):
        calm = calm & stays(like, n, k, rows)[1]
    state = chosen(calm, SETTLED, state)
    put_lane(singles, STATE, state)
    return anywhere(state == OPEN)


@exact_inlined
def at_bound(side, down, up):
    return chosen(side < 0.0, down, up)


@exact_inlined
def next_side(side, d, down, up, slope):
    """Where an entry belongs: at its bound below (-1) or above (1), or between them (0)."""
    free = chosen(d < down, -1.0, chosen(d > up, 1.0, side))
    return chosen(side == 0.0, free, chosen(side * slope < 0.0, 0.0, side))


@exact_inlined
def set_pair(like, rows, h10, several):
    """Maximise the pieces of lanes in which both of two rows move; 0 where that did not end. The
    piece's Hessian has h10 beside its diagonal.

    Block principal pivoting: it guesses which entries are at a bound and corrects all wrong guesses
    at once. Without any, d is the solution of the whole system, by LDL'.
    """
    zero, unit = spread(0.0, like), spread(1.0, like)
    g0, g1 = lane_at(rows, G * 2, like), lane_at(rows, G * 2 + 1, like)
    mu0, mu1 = lane_at(rows, MU * 2, like), lane_at(rows, MU * 2 + 1, like)
    down0, up0 = 0.0 - mu0, lane_at(rows, HI * 2, like) - mu0
    down1, up1 = 0.0 - mu1, lane_at(rows, HI * 2 + 1, like) - mu1
    h00, h11 = lane_at(rows, PIECE * 2, like), lane_at(rows, PIECE * 2 + 1, like)
    factor = h10 / h00
    whole1 = without(factor, g0, g1) / larger(without(factor * factor, h00, h11), 1e-14 * h11)
    whole0 = without(factor, whole1, g0 / h00)
    d0, d1, side0, side1 = whole0, whole1, zero, zero
    ended = zero
    for _ in range(hidden(MOST_GUESSES)):
        slope0 = without(h10, d1, without(h00, d0, g0))
        slope1 = without(h11, d1, without(h10, d0, g1))
        new0 = next_side(side0, d0, down0, up0, slope0)
        new1 = next_side(side1, d1, down1, up1, slope1)
        ended = chosen((new0 == side0) & (new1 == side1), unit, zero)
        if not anywhere(chosen(several, ended, unit) == 0.0):
            break
        side0, side1 = new0, new1  # those that ended stay as they are
        bound0, bound1 = at_bound(side0, down0, up0), at_bound(side1, down1, up1)
        alone0 = chosen(side1 == 0.0, whole0, without(h10, bound1, g0) / h00)
        alone1 = chosen(side0 == 0.0, whole1, without(h10, bound0, g1) / h11)
        d0 = chosen(side0 == 0.0, alone0, bound0)
        d1 = chosen(side1 == 0.0, alone1, bound1)
    put_lane(rows, D * 2, chosen(several, d0, lane_at(rows, D * 2, like)))
    put_lane(rows, D * 2 + 1, chosen(several, d1, lane_at(rows, D * 2 + 1, like)))
    return chosen(several, ended, unit)


@exact_inlined
def set_directions(like, n, rows, singles):
    """Maximise the pieces of open lanes; a lane in which that is not sure to go up is left."""
    zero = spread(0.0, like)
    state = lane_at(singles, STATE, like)
    count = zero
    for k in range(n):
        mu, hi = lane_at(rows, MU * n + k, like), lane_at(rows, HI * n + k, like)
        held = stays(like, n, k, rows)[0]
        d = lane_at(rows, G * n + k, like) / lane_at(rows, PIECE * n + k, like)
        d = clipped(d, 0.0 - mu, hi - mu)
        put_lane(rows, D * n + k, chosen(held, zero, d))
        count = count + chosen(held, zero, 1.0)
    count = chosen(state == OPEN, count, zero)
    if anywhere(count > 1.0):
        ended = set_pair(like, rows, lane_at(singles, BESIDE, like), count > 1.0)
        state = chosen(ended == 0.0, LEFT, state)
    start, offset, limit = zero, zero, spread(math.inf, like)
    for k in range(n):
        mu, d = lane_at(rows, MU * n + k, like), lane_at(rows, D * n + k, like)
        start = fused(d, lane_at(rows, G * n + k, like), start)
        offset = fused(d, lane_at(rows, B * n + k, like), offset)
        room = chosen(d > 0.0, lane_at(rows, HI * n + k, like) - mu, 0.0 - mu)
        room = room / chosen(d > 0.0, larger(d, TINY), smaller(d, -TINY))
        limit = smaller(limit, chosen(d == 0.0, limit, room))
    put_lane(singles, START, start)
    put_lane(singles, OFFSET, offset)
    put_lane(singles, LIMIT, larger(limit, 1.0))
    put_lane(singles, STATE, chosen(start > 0.0, state, chosen(state == OPEN, LEFT, state)))


@exact_inlined
def inside_at(like, p, columns, t, i):
    """A coordinate's W and its place at t along it; W again where that is within the bounds."""
    w = lane_at(columns, W * p + i, like)
    s = without(t, w, lane_at(columns, Z * p + i, like))
    x = clipped(s, lane_at(columns, LEAST * p + i, like), lane_at(columns, MOST * p + i, like))
    return w, x, chosen(s == x, w, 0.0)


@exact_inlined
def slope_at(like, p, columns, t):
    """The dual's slope along W at t, less its offset, and its curvature."""
    whole = p - p % 4
    zero = spread(0.0, like)
    slopes, curvatures = parts_from(zero), parts_from(zero)
    for quad in range(0, whole, 4):
        for i in range(quad, quad + 4):
            w, x, free = inside_at(like, p, columns, t, i)
            slopes = turned(slopes, w, x)
            curvatures = turned(curvatures, free, w)
    slope, curvature = joined(slopes), joined(curvatures)
    for i in range(whole, p):
        w, x, free = inside_at(like, p, columns, t, i)
        slope = fused(w, x, slope)
        curvature = curvature + free * w
    return slope, curvature


@exact_inlined
def search(like, p, columns, singles, steep):
    """Where the dual stops rising along W, in each open lane; 0 in the others.

    The safeguarded Newton iteration of the general kernel; a lane whose search meets anything
    beside it is left to that.
    """
    start, offset = lane_at(singles, START, like), lane_at(singles, OFFSET, like)
    limit, state = lane_at(singles, LIMIT, like), lane_at(singles, STATE, like)
    zero, endless = spread(0.0, like), spread(math.inf, like)
    left, right, t = zero, endless, spread(1.0, like)
    going = state == OPEN
    found = zero
    for _ in range(hidden(MOST_PLACES)):
        slope, curvature = slope_at(like, p, columns, t)
        slope = slope - offset
        high = length(slope) > SEARCH_TOLERANCE * start
        # Every place of a flat stretch would do, and the general kernel chooses.
        flat = unless(length(slope) <= 1e-6 * start, curvature > EVENLY * steep)
        up, curved = slope > 0.0, curvature > 0.0
        ahead = t + slope / larger(curvature, TINY)
        above, below = chosen(up, t, left), chosen(up, right, t)
        middle = 0.5 * (above + below)
        rising = chosen(curved, ahead, endless)
        rising = smaller(chosen(rising >= below, middle, rising), limit)
        falling = chosen(curved, ahead, above)
        falling = chosen(falling <= above, middle, falling)
        new = chosen(up, rising, falling)
        # In doubt, NaN included: left to the general kernel.
        within = unless(going & high, up & (t >= limit))
        goes_on = within & (above < new) & (new < endless)
        state = chosen(unless(within, goes_on) | unless(going & flat, high), LEFT, state)
        found = chosen(unless(going, goes_on), chosen(high, limit, t), found)
        going = goes_on
        left, right, t = above, below, new
        if not anywhere(going):
            break
    state = chosen(going, LEFT, state)
    put_lane(singles, STATE, state)
    return chosen(state == OPEN, found, zero)


@exact_inlined
def go_along(like, n, p, columns, A, rows, singles):
    """Go along d as far as the dual rises."""
    steep = spread(0.0, like)
    one, other = lane_at(rows, D * n, like), lane_at(rows, D * n + n - 1, like)
    for i in range(p):
        w = one * lane_at(A, i, like)
        if n > 1:
            w = fused(other, lane_at(A, p + i, like), w)
        put_lane(columns, W * p + i, w)
        steep = fused(w, w, steep)
    t = search(like, p, columns, singles, steep)
    for k in range(n):
        mu, hi = lane_at(rows, MU * n + k, like), lane_at(rows, HI * n + k, like)
        step = t * lane_at(rows, D * n + k, like)
        moved = chosen(step <= 0.0 - mu, 0.0, mu + step)
        put_lane(rows, MU * n + k, chosen(step >= hi - mu, hi, moved))
    for i in range(p):
        z = without(t, lane_at(columns, W * p + i, like), lane_at(columns, Z * p + i, like))
        put_lane(columns, Z * p + i, z)
        least, most = lane_at(columns, LEAST * p + i, like), lane_at(columns, MOST * p + i, like)
        put_lane(columns, X * p + i, clipped(z, least, most))
    set_values(like, n, p, columns, A, rows)


@exact_inlined
def judge(like, n, p, columns, A, rows, singles):
    """What the answers of settled lanes are worth, and their multipliers."""
    whole = p - p % 4
    zero = spread(0.0, like)
    largest, reach, worst = zero, zero, zero
    for i in range(p):
        largest = larger(largest, length(lane_at(columns, X * p + i, like)))
    state = lane_at(singles, STATE, like)
    one, other = lane_at(rows, MU * n, like), lane_at(rows, MU * n + n - 1, like)
    for i in range(p):
        y, x = lane_at(columns, Y * p + i, like), lane_at(columns, X * p + i, like)
        least, most = lane_at(columns, LEAST * p + i, like), lane_at(columns, MOST * p + i, like)
        own, far = length(y), length(lane_at(columns, CENTER * p + i, like))
        term = lane_at(A, i, like) * one
        z, terms = y - term, own + length(term)
        if n > 1:
            term = lane_at(A, p + i, like) * other
            z, terms = z - term, terms + length(term)
        off = length(x - clipped(z, least, most))
        state = chosen(off <= SURE * (terms + 1.0), state, LEFT)
        reach = larger(reach, smaller(larger(0.0 - least, most), larger(own, far)))
        off = chosen((least < z) & (z < most), fused(NOISE, terms - own, off), off)
        size = larger((own + far) + length(x), LEAST_SIZE * largest)
        worst = larger(worst, off / larger(size, TINY))
    for k in range(n):
        mu, g = lane_at(rows, MU * n + k, like), lane_at(rows, G * n + k, like)
        b, hi = length(lane_at(rows, B * n + k, like)), lane_at(rows, HI * n + k, like)
        least = LEAST_SIZE * chosen(b > 0.0, largest, larger(largest, reach))
        sizes = parts_from(b)
        for quad in range(0, whole, 4):
            for i in range(quad, quad + 4):
                x = larger(length(lane_at(columns, X * p + i, like)), least)
                sizes = turned(sizes, length(lane_at(A, k * p + i, like)), x)
        size = joined(sizes)
        for i in range(whole, p):
            x = larger(length(lane_at(columns, X * p + i, like)), least)
            size = fused(length(lane_at(A, k * p + i, like)), x, size)
        off = larger(worst, length(g) / larger(size, TINY))
        worst = chosen(((mu > 0.0) & (g < 0.0)) | ((mu < hi) & (g > 0.0)), off, worst)
        weight = lane_at(rows, WEIGHT * n + k, like)
        given = smaller(larger(mu * (2.0 * lane_at(singles, ALPHA, like)), 0.0), weight)
        given = chosen(mu <= 0.0, 0.0, given)
        put_lane(rows, D * n + k, chosen(mu >= hi, weight, given))
    put_lane(singles, RESIDUAL, worst)
    put_lane(singles, STATE, chosen(worst < math.inf, state, LEFT))


@exact
def solve_lanes(like, n, p, table, memory, bounds):
    """Solve the instances of a table; the residual of one that is left is -1."""
    wide = width(like)
    columns, A = memory, memory + 8 * wide * MATRIX * p
    rows = A + 8 * wide * n * p
    singles = rows + 8 * wide * ROWS * n
    take(like, wide, n, p, table, columns, A, rows, singles, bounds)
    begin(like, wide, n, p, columns, A, rows, singles)
    for _ in range(hidden(MOST_STEPS)):
        if not settle(like, n, rows, singles):
            break
        set_piece(like, n, p, columns, A, rows, singles)
        set_directions(like, n, rows, singles)
        go_along(like, n, p, columns, A, rows, singles)
    settle(like, n, rows, singles)
    judge(like, n, p, columns, A, rows, singles)
    give(like, wide, n, p, table, columns, rows, singles)


@exact
def solve_single(
    n, p, center, gradient, alpha, floor, weights, compliance, A, b, lower, upper, memory, x,
    multipliers,
):  # fmt: skip
    """Solve one instance, by the same lines; its residual, or -1 if it is out of the ordinary."""
    for k in range(n):
        if lane_at(floor, k, 0.0) != 0.0 or lane_at(compliance, k, 0.0) != 0.0:
            return -1.0
    half = 0.5 / alpha
    if is_loud(n, p, center, gradient, half, weights, A, b, lower, upper, x) == 0:
        for k in range(n):
            put_lane(multipliers, k, 0.0)
        return 0.0
    singles = memory + 8 * ((MATRIX + n) * p + ROWS * n + SINGLES)
    put_lane(singles, 0, alpha)
    table = words(singles + 16, TABLE)
    table[CENTER_AT], table[GRADIENT_AT], table[ALPHA_AT] = center, gradient, singles
    table[WEIGHTS_AT], table[A_AT], table[B_AT] = weights, A, b
    table[LOWER_AT], table[UPPER_AT] = lower, upper
    table[X_AT], table[MULTIPLIERS_AT], table[RESIDUAL_AT] = x, multipliers, singles + 8
    solve_lanes(0.0, n, p, singles + 16, memory, True)
    return lane_at(singles, 1, 0.0)
