"""Affine rows on a box in double-double arithmetic: the dual, maximised face by face.

Rows which are nearly parallel, weights of 1e16 and corners where more meets than there are
coordinates leave digits to decide by.

The dual is that of :mod:`~coldq.solver.kernels.piece`, with a multiplier for each bound. A face
holds some coordinates at a bound and some multipliers of rows where they are. The rows of the
others, which are independent in the free coordinates, are met exactly, by one linear system; a
multiplier that gets to its bound on the way leaves the face, as does a bound whose multiplier gets
to zero. Then whatever is most violated, a row or a bound, joins. Where it depends on the rows of
the face, there is a direction along which no free coordinate moves: it is followed until something
leaves. If nothing ever does, the direction proves that the hard rows have no common point, and its
rise says by how much. Every step goes up, so that no face comes twice.
"""

import math

from coldq.compiled import address_of, exact, kernel, matrix, vector
from coldq.solver.constants import LEAST_SIZE
from coldq.solver.kernels.face import (
    BASIC, COLUMNS, DEPENDENT, D_LOW, END, FIXED, FREE, G_LOW, HI, HI_LOW, LEAST, LEFT, LENGTH, LO,
    LO_LOW, MORE_LINES, MU, MU_LOW, ORDER, POWER, RIGHT, ROOM, ROWS, SCALE, SHARE, SIDE, SOFT, SPAN,
    W_LOW, Y_LOW, ZERO, Z_LOW, D, G, W, X, Y, Z, back, drop, fill, first_face, form, join, leave,
    refresh, solve, turn,
)  # fmt: skip
from coldq.solver.kernels.pairs import add, divide, multiply, product, times

NOISE = 1e-28  # of the largest that it can be: what is nothing
LAST_DIGIT = 2.0**-52  # the same of a double
BOUND_ROOM = 1e-15  # of a bound: clipped away in the end
FAR = 1e-20  # of the terms of a row: what meets a gap only where no number is
FREE_PRICE = 1e-5  # of a hard row's multiplier, however long: what x may be relative to
WORN = 60  # changes, after which it is too
NO_END = -1.0


@exact
def set_direction(A, columns, rows, still, noise):
    """Set W to A'd, without what is but rounding; zero in free coordinates that stand still."""
    n, p = A.shape
    for i in range(p):
        w = w_low = size = 0.0
        for k in range(n):
            if rows[D, k] != 0.0 and A[k, i] != 0.0:
                t, t_low = times(rows[D, k], rows[D_LOW, k], A[k, i])
                w, w_low = add(w, w_low, t, t_low)
                size += abs(t)
        if abs(w) <= noise * size or (still and columns[SIDE, i] == FREE):
            w = w_low = 0.0
        columns[W, i], columns[W_LOW, i] = w, w_low


@exact
def rise_for_ever(A, b, lower, upper, columns, rows):
    """How much the dual rises along D in the end, relative to the terms that this is the sum of."""
    n, p = A.shape
    s = s_low = size = 0.0
    set_direction(A, columns, rows, False, FAR)  # what a free coordinate does move counts here
    for i in range(p):
        w, w_low = columns[W, i], columns[W_LOW, i]
        columns[END, i] = columns[X, i]
        if w != 0.0:
            if abs(lower[i] if w > 0.0 else upper[i]) == math.inf:
                return 0.0
            columns[END, i] = lower[i] if w > 0.0 else upper[i]
            t, t_low = times(w, w_low, columns[END, i])
            s, s_low = add(s, s_low, t, t_low)
    for k in range(n):
        d, d_low = rows[D, k], rows[D_LOW, k]
        if d != 0.0:
            t, t_low = times(d, d_low, b[k])
            s, s_low = add(s, s_low, -t, -t_low)
            size += abs(t)
            for i in range(p):
                size += abs(d * A[k, i] * columns[END, i])
    return s / size if size > 0.0 else 0.0


@exact
def most_violated(lower, upper, columns, rows, first):
    """The row, or n and the coordinate, that is farthest from where it should be; -1 if none is.

    If asked, the first one that is. A coordinate that a bound holds from which it wants to go, as
    only rounding leaves it, is numbered from n + p on.
    """
    n, p = rows.shape[1], lower.size
    worst = 0.0
    pick = -1
    for k in range(n):
        g, room = rows[G, k], rows[ROOM, k]
        up, down = g > room and rows[MU, k] < rows[HI, k], g < -room and rows[MU, k] > rows[LO, k]
        if rows[BASIC, k] == 0.0 and (up or down):
            depth = abs(g) / max(rows[LENGTH, k], ZERO)
            if depth > worst:
                worst = depth
                pick = k
                # A multiplier between its bounds is that of a row that depended on others: with
                # these it has a way to go, and only then others have.
                if first or (rows[LO, k] < rows[MU, k] and rows[MU, k] < rows[HI, k]):
                    return pick
    for i in range(p):
        if columns[SIDE, i] == FREE:
            x = columns[X, i]
            bound = lower[i] if x < lower[i] else upper[i]
            depth = max(lower[i] - x, x - upper[i])
            if depth > worst and depth > BOUND_ROOM * abs(bound) + columns[LEAST, i]:
                worst = depth
                pick = n + i
                if first:
                    return pick
        elif columns[SIDE, i] != FIXED:
            z = columns[Z, i]
            left = columns[SIDE, i] == LEFT
            depth = z - lower[i] if left else upper[i] - z
            bound = lower[i] if left else upper[i]
            if depth > worst and depth > BOUND_ROOM * abs(bound) + columns[LEAST, i]:
                worst = depth
                pick = n + p + i
                if first:
                    return pick
    return pick


@exact
def quiet(rows, m):
    """Without what is but rounding, the direction D along which no free coordinate moves."""
    longest = 0.0
    for k in range(rows.shape[1]):
        longest = max(longest, abs(rows[D, k]))
    for a in range(m):
        k = int(rows[ORDER, a])
        if abs(rows[D, k]) <= NOISE * longest:
            rows[D, k] = rows[D_LOW, k] = 0.0


@exact
def to_bound(A, lower, columns, rows, factor, i, m):
    """The side at which coordinate i is to be held, and whether the rows leave it that freedom.

    If not, D is set to the direction along which only its multiplier and theirs move.
    """
    for a in range(m):
        k = int(rows[ORDER, a])
        rows[D, k], rows[D_LOW, k] = product(A[k, i], columns[SHARE, i])
    solve(rows, factor, m)
    own, own_low = 1.0, 0.0
    for a in range(m):
        k = int(rows[ORDER, a])
        t, t_low = times(rows[D, k], rows[D_LOW, k], A[k, i])
        own, own_low = add(own, own_low, -t, -t_low)
    side = LEFT if columns[X, i] < lower[i] else RIGHT
    if own > DEPENDENT:
        return side, True
    for a in range(m):
        k = int(rows[ORDER, a])
        rows[D, k], rows[D_LOW, k] = -side * rows[D, k], -side * rows[D_LOW, k]
    return side, False


@exact
def way_out(lower, upper, columns, rows, m, t):
    """How far along D nothing leaves the face, at most t, and what leaves it there, or -1."""
    n, p = rows.shape[1], lower.size
    t_low = 0.0
    leaves = -1
    for a in range(m):
        k = int(rows[ORDER, a])
        d = rows[D, k]
        if d != 0.0:
            bound = HI if d > 0.0 else LO
            if abs(rows[bound, k]) < math.inf:
                room, room_low = add(
                    rows[bound, k], rows[bound + 1, k], -rows[MU, k], -rows[MU_LOW, k]
                )
                way, way_low = divide(room, room_low, d, rows[D_LOW, k])
                if not way > 0.0:
                    way = way_low = 0.0
                if way < t or (way == t and way_low < t_low):
                    t, t_low = way, way_low
                    leaves = k
    for i in range(p):
        side, speed = columns[SIDE, i], -columns[W, i]
        if columns[SHARE, i] == 0.0:
            continue
        if (side == LEFT and speed > 0.0) or (side == RIGHT and speed < 0.0):
            bound = lower[i] if side == LEFT else upper[i]
            room, room_low = add(bound, 0.0, -columns[Z, i], -columns[Z_LOW, i])
            way, way_low = times(speed, -columns[W_LOW, i], columns[SHARE, i])
            way, way_low = divide(room, room_low, way, way_low)
            if not way > 0.0:
                way = way_low = 0.0
            if way < t or (way == t and way_low < t_low):
                t, t_low = way, way_low
                leaves = n + i
    return t, t_low, leaves


@exact
def least_sharp(columns, rows, pick, m):
    """Of rows that clash by rounding alone one that the others tell less sharply, or -1."""
    size = rows[SCALE, pick] if pick < rows.shape[1] else abs(columns[X, pick - rows.shape[1]])
    leaves = -1
    for a in range(m):
        k = int(rows[ORDER, a])
        if abs(rows[D, k]) * rows[SCALE, k] > size and k != pick:
            size = abs(rows[D, k]) * rows[SCALE, k]
            leaves = k
    return leaves


@exact
def go(columns, rows, m, t, t_low):
    """Move multipliers and z by t along D."""
    for a in range(m):
        k = int(rows[ORDER, a])
        move, move_low = multiply(rows[D, k], rows[D_LOW, k], t, t_low)
        rows[MU, k], rows[MU_LOW, k] = add(rows[MU, k], rows[MU_LOW, k], move, move_low)
    # z goes along by increments: where y is huge, x is found to the digits of x, not of y.
    for i in range(columns.shape[1]):
        if columns[W, i] != 0.0:
            move, move_low = times(columns[W, i], columns[W_LOW, i], -columns[SHARE, i])
            move, move_low = multiply(move, move_low, t, t_low)
            z, z_low = columns[Z, i], columns[Z_LOW, i]
            columns[Z, i], columns[Z_LOW, i] = add(z, z_low, move, move_low)


@exact
def climb(A, b, lower, upper, columns, rows, factor, tolerance, steps):
    """Maximise the dual from the multipliers in MU: 0, a proof's rise, or NO_END."""
    n, p = A.shape
    m = first_face(A, lower, upper, columns, rows)
    still = whole = 0
    kept = 0  # how many rows the factor holds
    worn = 0  # how often it was adjusted
    formed = 0  # how often z was formed afresh
    for _ in range(steps):
        refresh(A, b, lower, upper, columns, rows, tolerance)
        if worn > WORN:
            kept = 0
        if kept == 0:
            worn = 0
        if kept != m:
            m = kept = fill(A, columns, rows, factor, kept, m)
        met = True
        for a in range(m):
            k = int(rows[ORDER, a])
            met = met and abs(rows[G, k]) <= 0.1 * rows[ROOM, k]
        for k in range(n):
            rows[D, k] = rows[D_LOW, k] = 0.0
        pick = -1
        held = -1  # a coordinate that the rows of the face leave no freedom: held in the end
        free_rise = False  # along D no free coordinate moves
        if met or whole > 3:
            pick = most_violated(lower, upper, columns, rows, still > 20)
            if pick < 0:
                formed += 1
                if formed > 3 or not form(A, columns, rows):
                    return 0.0
                whole = 0
                continue
        if pick >= n:
            i, side, free = pick - n, FREE, True
            if pick >= n + p:
                i -= p
            else:
                side, free = to_bound(A, lower, columns, rows, factor, i, m)
            if free:
                worn += 1
                whole = 0
                if not turn(A, columns, rows, factor, i, side, m):
                    kept = 0
                continue
            free_rise = True
            columns[SIDE, i] = side
            held = i
        elif pick >= 0 and rows[LENGTH, pick] <= ZERO:  # constant on the box, and violated
            bound = HI if rows[G, pick] > 0.0 else LO
            if abs(rows[bound, pick]) == math.inf:
                return abs(rows[G, pick]) / rows[SCALE, pick]
            rows[MU, pick], rows[MU_LOW, pick] = rows[bound, pick], rows[bound + 1, pick]
            continue
        elif pick >= 0 and not join(A, columns, rows, factor, pick, m):
            sign = 1.0 if rows[G, pick] > 0.0 else -1.0
            for a in range(m):
                k = int(rows[ORDER, a])
                rows[D, k] = -sign * factor[m, a]
                rows[D_LOW, k] = -sign * factor[a, m]
            back(rows, factor, m)
            rows[D, pick] = sign
            free_rise = True
        if free_rise:
            quiet(rows, m)
        if pick >= 0 and pick < n:
            rows[ORDER, m] = pick
            rows[BASIC, pick] = 1.0
            m += 1
            kept = m - 1 if free_rise else m
        if not free_rise:
            for a in range(m):
                k = int(rows[ORDER, a])
                rows[D, k], rows[D_LOW, k] = rows[G, k], rows[G_LOW, k]
            solve(rows, factor, m)

        set_direction(A, columns, rows, free_rise, DEPENDENT)
        most = math.inf if free_rise else 1.0
        t, t_low, leaves = way_out(lower, upper, columns, rows, m, most)
        if t == math.inf:
            rise = rise_for_ever(A, b, lower, upper, columns, rows)
            leaves = least_sharp(columns, rows, pick, m)
            if rise > tolerance or leaves < 0:
                return max(rise, tolerance)
            t = t_low = 0.0
        still = still + 1 if t == 0.0 else 0
        whole = whole + 1 if leaves < 0 and pick < 0 else 0
        go(columns, rows, m, t, t_low)
        if leaves >= n:
            worn += 1
            if not turn(A, columns, rows, factor, leaves - n, FREE, kept):
                kept = 0
        elif leaves >= 0:
            place = leave(A, columns, rows, leaves, m)
            m -= 1
            if place < kept:
                worn += 1
                kept = kept - 1 if drop(factor, place, kept) else 0
        if held >= 0:
            worn += 1
            if not turn(A, columns, rows, factor, held, columns[SIDE, held], kept):
                kept = 0
    return NO_END


def extended_size(n: int, p: int, most: int) -> int:
    """How many numbers :func:`extended_step` needs to work in."""
    return COLUMNS * p + ROWS * n + n * p + n + (most + MORE_LINES) * most


@exact
def set_rows(
    A_, b_, floor, weights, compliance, lower, upper, two, multipliers, A, b, columns, rows
):  # fmt: skip
    """Rows of one size, by powers of two, so that nothing is rounded, and their multipliers."""
    n, p = A.shape
    for k in range(n):
        size = 0.0
        for i in range(p):
            size = max(size, abs(A_[k, i]))
        power = 2.0 ** -math.floor(math.log2(size)) if size > ZERO else 1.0
        rows[POWER, k] = power
        b[k] = b_[k] * power
        square = 0.0
        span = 0.0
        for i in range(p):
            A[k, i] = A_[k, i] * power
            square += A[k, i] * A[k, i] if lower[i] < upper[i] else 0.0
            span += columns[SHARE, i] * A[k, i] * A[k, i]
        rows[SPAN, k] = span
        rows[LENGTH, k] = math.sqrt(square)
        rows[SOFT, k] = compliance[k] * two * power * power
        if rows[SOFT, k] > 0.0:
            rows[LENGTH, k] = math.sqrt(square + rows[SOFT, k])
        for bound, value in ((LO, floor[k]), (HI, weights[k])):
            rows[bound, k], rows[bound + 1, k] = value, 0.0
            if abs(value) < math.inf:
                v, v_low = divide(value, 0.0, two, 0.0)
                rows[bound, k], rows[bound + 1, k] = v / power, v_low / power
        mu, mu_low = divide(multipliers[k], 0.0, two, 0.0)
        mu, mu_low = mu / power, mu_low / power
        if not mu > rows[LO, k]:
            mu, mu_low = rows[LO, k], rows[LO_LOW, k]
        if not mu < rows[HI, k]:
            mu, mu_low = rows[HI, k], rows[HI_LOW, k]
        rows[MU, k], rows[MU_LOW, k] = mu, mu_low


@kernel("VVfVVVMVVVVVfiiVVV")
def extended_step(
    center, gradient, alpha, floor, weights, compliance, A_, b_, lower, upper, share, middle,
    tolerance, steps, most, memory, x, multipliers,
):  # fmt: skip
    """Solve one instance; return 0, the rise that proves that there is no point, or NO_END.

    x_i moves by `share` times what it would in the plain problem, from `middle`: 1 in a plain one.
    Of the multipliers given the search starts. `tolerance` is what a row may be off by, relative
    to the size of its terms, `most` how many rows and one can be independent.
    """
    n, p = A_.shape
    columns = matrix(address_of(memory, 0), COLUMNS, p)
    end = COLUMNS * p
    rows = matrix(address_of(memory, end), ROWS, n)
    end += ROWS * n
    A, b = matrix(address_of(memory, end), n, p), vector(address_of(memory, end + n * p), n)
    end += n * p + n
    factor = matrix(address_of(memory, end), most + MORE_LINES, most)
    two = 2.0 * alpha
    for i in range(p):
        y, y_low = divide(-gradient[i], 0.0, two, 0.0)
        y, y_low = add(y, y_low, center[i], 0.0)
        columns[SHARE, i] = share[i] if lower[i] < upper[i] else 0.0
        if share[i] != 1.0:
            y, y_low = add(y, y_low, -middle[i], 0.0)
            y, y_low = times(y, y_low, share[i])
            y, y_low = add(y, y_low, middle[i], 0.0)
        columns[Y, i], columns[Y_LOW, i] = y, y_low
    set_rows(
        A_, b_, floor, weights, compliance, lower, upper, two, multipliers, A, b, columns, rows
    )
    # What x can be: where bounds do not say it, limits of rows and y do.
    reach = 0.0
    for k in range(n):
        reach = max(reach, abs(b[k]) if rows[LENGTH, k] > ZERO else 0.0)
    for i in range(p):
        far = max(abs(lower[i]), abs(upper[i]))
        if far == math.inf:
            far = min(abs(columns[Y, i]), reach) if reach > 0.0 else abs(columns[Y, i])
        columns[LEAST, i] = NOISE * far
    status = climb(A, b, lower, upper, columns, rows, factor, tolerance, steps)
    for i in range(p):
        x[i] = min(max(columns[X, i], lower[i]), upper[i])
    for k in range(n):
        if rows[MU, k] == rows[HI, k] and rows[MU_LOW, k] == rows[HI_LOW, k]:
            multipliers[k] = weights[k]
        elif rows[MU, k] == rows[LO, k] and rows[MU_LOW, k] == rows[LO_LOW, k]:
            multipliers[k] = floor[k]
        else:
            power = rows[POWER, k]
            v, _ = times(rows[MU, k] * power, rows[MU_LOW, k] * power, two)
            multipliers[k] = min(max(v, floor[k]), weights[k])
    return status


@kernel("VVfVVVMVVVVVVV")
def extended_residual(
    center, gradient, alpha, floor, weights, compliance, A, b, lower, upper, share, middle, x,
    multipliers,
):  # fmt: skip
    """The relative KKT residual of an answer from anywhere, relative to the instance alone."""
    n, p = A.shape
    half = 0.5 / alpha
    longest = 0.0
    for i in range(p):
        longest = max(longest, abs(x[i]))
    reach = row_reach(A, b)
    worst = 0.0
    for i in range(p):
        z = center[i] - gradient[i] * half
        size = abs(center[i]) + abs(gradient[i] * half)
        for k in range(n):
            pull = multipliers[k] * half * A[k, i]
            z -= pull
            hard = abs(floor[k]) == math.inf or abs(weights[k]) == math.inf
            size += FREE_PRICE * abs(pull) if hard else abs(pull)
        if share[i] != 1.0:
            z = middle[i] + share[i] * (z - middle[i])
            size = abs(middle[i]) + share[i] * size
        size = max(size, LEAST_SIZE * longest)
        worst = larger(worst, abs(x[i] - min(max(z, lower[i]), upper[i])), size)
    for k in range(n):
        own = compliance[k] * multipliers[k]
        g, size, least = -b[k] - own, abs(b[k]) + abs(own), 0.0
        for i in range(p):
            if A[k, i] != 0.0:
                least = max(least, LEAST_SIZE * abs(x[i]))
        for i in range(p):
            g += A[k, i] * x[i]
            # Where all terms vanish, so that no rounding of them has a size, the box has one, or
            # what x is the difference of.
            far = max(abs(lower[i]), abs(upper[i]))
            if far == math.inf:
                far = min(abs(center[i]) + abs(gradient[i] * half), reach)
            some = (NOISE if b[k] != 0.0 else LAST_DIGIT) * far
            size += abs(A[k, i]) * max(abs(x[i]), least, some)
        if (multipliers[k] > floor[k] and g < 0.0) or (multipliers[k] < weights[k] and g > 0.0):
            worst = larger(worst, abs(g), size)
    return worst


@exact
def row_reach(A, b):
    """How far the rows' limits are, at most, in the coordinate that each depends on most."""
    reach = 0.0
    for k in range(A.shape[0]):
        steep = 0.0
        for i in range(A.shape[1]):
            steep = max(steep, abs(A[k, i]))
        reach = max(reach, abs(b[k]) / steep if steep > 0.0 else 0.0)
    return reach


@exact
def larger(worst, off, size):
    """The worse of the two, the second relative to its size; NaN stays."""
    off = off / size if size > 0.0 else off
    return off if off > worst or off != off else worst
