"""Rows that clash: down the cost itself, from face to face.

Divided by ``2 alpha``, the cost is ``|x - y|^2 / 2`` and the penalties of the rows, each with slope
hi above its kink and lo below. A *face* holds some rows at their kinks and some coordinates at
their bounds; on it, and between the kinks of the others, the cost is one quadratic. Its lowest
point needs a system as large as the rows held, which are no more than the coordinates that are
free. The way there goes on beyond kinks for as long as the cost falls, and ends at a kink or a
bound that the face then holds as well; from a lowest point, it lets go of what pulls x the other
way most.

In few coordinates, or where few are free as on a simplex, faces are small and some dozens lead to
the answer, however many rows cannot be met: methods in the rows meet singular systems there.

x is where the rows held have their kinks, and not the little that is left of large terms, so that
heavy weights cost it no digits; :mod:`~coldq.solver.kernels.sharpened` judges it accordingly.
"""

import math

from coldq.compiled import compiled, inlined, matrix
from coldq.compiled.calls import words
from coldq.solver.kernels.held_rows import (
    ABOVE, ALONG, BELOW, COLUMNS, FACE, FREE, HELD, HELD_BY, HI, LO, MU, PULL, REST, ROWS, SIZE,
    STATE, STEP, TIME, UPPER, G, add_line, add_lines, add_row, drop, fix_one, form, free_one,
    gather, hold, put_right, set_step, set_values,
)  # fmt: skip
from coldq.solver.kernels.sharpened import (
    PRICE, PRICE_LOW, judged_face, keep_within, set_pull, sharpen,
)  # fmt: skip
from coldq.solver.kernels.tiles import padded

SHARE = 0.4  # of the pull of a row, beside that of a coordinate
LEVEL = 1e-11  # of what pulls at x: less than that is none
BESIDE = 1e-12  # of a row's length and the way: with less it does not come nearer to its kink
SHORT_LIST = 16  # kinks, of which the next is looked for one after another
FEW_FOR_FACES = 48  # coordinates, in which faces are small whatever the rows
MOST_HELD = 64  # rows that a face may hold: with more, others do better
STEPS = 12  # of an interior-point method: as much work as these would be is spent here
LEAST_WORK = 20_000
LONG = 24  # changes of the face, after which its system is formed afresh
NEAR = 8  # times less is spent where the rows held are known


@inlined
def most_held(n, p, k):
    return min(min(n + k, p), MOST_HELD)


@inlined
def downhill_work(n, p):
    """How many products may be spent on the way."""
    few, many = min(n, p), max(n, p)
    return LEAST_WORK + STEPS * few * few * (many // 2 + few // 6)


@inlined
def downhill_size(n, p, k):
    """How many numbers an instance needs to work in."""
    h, q = padded(most_held(n, p, k)), n + k
    return (ROWS + 1 + p) * q + (COLUMNS + h + FREE + 1) * p + h * (2 * h + 2 + FACE) + 8


@compiled
def set_sums(first, total, kind, lower, upper, x, n, rows, columns, turned, order, most, held):
    """Set what belongs to the blocks' sums; how many rows are held then, below 0 if x breaks a
    sum."""
    for j in range(kind.size):
        start, last = int(first[j]), int(first[j + 1])
        plain, size, r = kind[j] < 0.0, abs(total[j]), n + j
        for i in range(start, last):
            plain = plain and lower[i] == 0.0 and upper[i] >= total[j]
            size += abs(x[i])
            turned[i, r] = 1.0
        if plain:  # the sum keeps to that bound
            for i in range(start, last):
                columns[UPPER, i] = math.inf
        rows[LO, r], rows[HI, r], rows[MU, r] = kind[j], math.inf, 0.0
        rows[STATE, r], rows[SIZE, r] = BELOW, math.sqrt(last - start)
        if kind[j] < math.inf and abs(rows[G, r]) <= LEVEL * size:
            if held == most:
                return -1
            rows[STATE, r] = HELD
            order[held] = r
            held += 1
        elif kind[j] < 0.0 or (kind[j] == 0.0 and rows[G, r] > 0.0):
            return -1
    return held


@compiled
def set_rest(A, first, y, x, rows, columns):
    """Set what pulls at x beside the rows held."""
    rest = columns[REST]
    for i in range(x.size):
        rest[i] = y[i] - x[i]
    for r in range(A.shape[0]):
        if rows[STATE, r] != HELD and rows[MU, r] != 0.0:
            add_row(A, first, r, -rows[MU, r], rest)


@compiled
def set_out(A, b, lo, hi, y, lower, upper, first, total, kind, x, mu, kept, rows, columns, turned,
            order, most):  # fmt: skip
    """Set what the way starts from, if `kept` with those rows held whose multipliers are between
    their bounds; how many are, below 0 if there is no such start."""
    n, p = A.shape
    for i in range(p):
        x[i] = min(max(x[i], lower[i]), upper[i])
        columns[UPPER, i] = upper[i]
        line = turned[i]
        for r in range(n):
            line[r] = A[r, i]
        for r in range(n, line.size):
            line[r] = 0.0
    set_values(A, b, first, total, x, rows)
    finite, held = 0.0, 0
    for r in range(n):
        row, norm = A[r], 0.0
        for i in range(p):
            norm += row[i] * row[i]
        above = rows[G, r] > 0.0
        rows[LO, r], rows[HI, r], rows[SIZE, r] = lo[r], hi[r], math.sqrt(norm)
        rows[STATE, r] = ABOVE if above else BELOW
        rows[MU, r] = hi[r] if above else lo[r]
        if kept and lo[r] < mu[r] and mu[r] < hi[r]:
            if held == most:
                return -1
            rows[STATE, r], rows[MU, r], order[held] = HELD, 0.0, r
            held += 1
        finite += 0.0 * rows[MU, r] + 0.0 * rows[G, r]
    set_rest(A, first, y, x, rows, columns)
    for i in range(p):
        finite += 0.0 * columns[REST, i]
    if not (finite == 0.0):
        return -1
    return set_sums(
        first, total, kind, lower, upper, x, n, rows, columns, turned, order, most, held
    )


@compiled
def list_free(first, lower, upper, x, n, order, m, free):
    """List the coordinates between their bounds, and where a sum held has none, one at a bound; how
    many."""
    f = 0
    for i in range(x.size):
        if lower[i] < x[i] and x[i] < upper[i]:
            free[f] = i
            f += 1
    for a in range(m):
        j, some = order[a] - n, -1
        if j < 0:
            continue
        for i in range(int(first[j]), int(first[j + 1])):
            if lower[i] < x[i] and x[i] < upper[i]:
                some = -1
                break
            some = i if lower[i] < upper[i] else some
        if some >= 0:
            free[f] = some
            f += 1
    return f


@compiled
def to_release(A, first, rows, columns, lower, x, order, free, m, f, face):
    """What pulls x away from the face most: a place among the rows held, or -2 - i for coordinate
    i; -1 if nothing does."""
    found, most, size = -1, 0.0, 0.0
    pull, upper = columns[PULL], columns[UPPER]
    for i in range(x.size):
        pull[i] = columns[REST, i]
        size = max(size, abs(pull[i]))
    for a in range(m):
        add_row(A, first, order[a], -face[HELD_BY, a], pull)
    for c in range(f):
        pull[free[c]] = 0.0
    for a in range(m):
        r, mu = order[a], face[HELD_BY, a]
        over = max(rows[LO, r] - mu, mu - rows[HI, r])
        its = SHARE * over * rows[SIZE, r]
        if over > LEVEL * abs(mu) and its > LEVEL * size and its > most:
            found, most = a, its
    most = max(most, LEVEL * size)
    for i in range(x.size):
        if lower[i] < upper[i] and (
            (x[i] <= lower[i] and pull[i] > most) or (x[i] >= upper[i] and -pull[i] > most)
        ):
            found, most = -2 - i, abs(pull[i])
    return found


@inlined
def kink_of(rows, r):
    """How far row r is from its kink, and how fast it comes nearer along the step."""
    return max(rows[STATE, r] * rows[G, r], 0.0), -rows[STATE, r] * rows[ALONG, r]


@compiled
def set_times(rows, columns, turned, lower, x, free, f, moves):
    """Set how fast all rows change along the step, and a number that is below 0 for those that are
    at their kinks before its end. The square of the step, when it meets a bound, and the place of
    that coordinate."""
    along, step, square = rows[ALONG], moves[STEP], 0.0
    soon, which = math.inf, -1
    for r in range(along.size):
        along[r] = 0.0
    add_lines(turned, free, f, step, along)
    for c in range(f):
        i, d = free[c], step[c]
        square += d * d
        room = columns[UPPER, i] - x[i] if d > 0.0 else lower[i] - x[i]
        if d != 0.0 and room < soon * abs(d) and -room < soon * abs(d):
            soon, which = abs(room / d), c
    beside, end = BESIDE * math.sqrt(square), min(1.0, soon)
    for r in range(along.size):
        near, toward = kink_of(rows, r)
        size, least, most = rows[SIZE, r], rows[LO, r], rows[HI, r]  # all at once: no branch
        comes = toward > beside * size and least < most
        rows[TIME, r] = near - end * toward if comes else math.inf
    return square, soon, which


@inlined
def jump(rows, r):
    """By how much the cost's slope along the step rises at the kink of row r."""
    return (rows[HI, r] - rows[LO, r]) * abs(rows[ALONG, r])


@compiled
def cross(A, first, rows, columns, r):
    """Go beyond the kink of a row."""
    before = rows[MU, r]
    rows[STATE, r] = -rows[STATE, r]
    rows[MU, r] = rows[HI, r] if rows[STATE, r] > 0.0 else rows[LO, r]
    add_row(A, first, r, before - rows[MU, r], columns[REST])


@compiled
def search(A, first, rows, columns, square, bound, listed):
    """Go beyond kinks while the cost falls: how far, and the row whose kink is the end, or -1."""
    slope, count = -square, 0
    times = rows[TIME]
    for r in range(times.size):
        listed[count] = r
        count += 1 if times[r] < 0.0 else 0
    for e in range(count):
        near, toward = kink_of(rows, listed[e])
        times[listed[e]] = near / toward
    while count > SHORT_LIST:
        # Half of them at a time: either all before the middle are crossed, or none after it.
        middle, there, kept = times[listed[count // 2]], slope, 0
        for e in range(count):
            there += jump(rows, listed[e]) if times[listed[e]] < middle else 0.0
        beyond = there + square * middle < 0.0
        for e in range(count):
            r = listed[e]
            before = times[r] < middle
            if before and beyond:
                cross(A, first, rows, columns, r)
            listed[kept] = r
            kept += 1 if before != beyond else 0
        slope = there if beyond else slope
        if kept == count:
            break
        count = kept
    while True:
        soon, at = math.inf, -1
        for e in range(count):
            if times[listed[e]] < soon:
                soon, at = times[listed[e]], e
        lowest = -slope / square
        if at < 0 or soon >= min(lowest, bound):
            return min(lowest, bound), -1
        r = listed[at]
        if not (slope + square * soon + jump(rows, r) < 0.0):
            return soon, r
        slope += jump(rows, r)
        cross(A, first, rows, columns, r)
        count -= 1
        listed[at] = listed[count]


@inlined
def release(A, first, rows, columns, order, place, held):
    """Let go of a row held, to the side that its multiplier is on."""
    r = order[place]
    above = held > rows[HI, r]
    rows[STATE, r] = ABOVE if above else BELOW
    rows[MU, r] = rows[HI, r] if above else rows[LO, r]
    rows[G, r] = 0.0
    add_row(A, first, r, -rows[MU, r], columns[REST])


@compiled
def descend(A, b, center, gradient, alpha, floor, weights, lo, hi, y, lower, upper, first, total,
            kind, x, mu, kept, multipliers, memory):  # fmt: skip
    """Go down from x to the lowest point: its residual, infinite if it was not found soon enough.

    `lo`, `hi`, y and mu are what the others are in units of ``2 alpha``; `first` has where each
    block begins, and the end. Where `mu` says which rows are held, these are `kept`.
    """
    (n, p), k = A.shape, kind.size
    most, q = most_held(n, p, k), n + k
    h = padded(most)
    at = (memory + 63) // 64 * 64  # no tile in two of the cache's lines
    B, H, L = matrix(at, p, h), matrix(at + 8 * p * h, h, h), matrix(at + 8 * (p + h) * h, h, h)
    at += 8 * (p + 2 * h) * h
    order, plain, face = words(at, h), words(at + 8 * h, h), matrix(at + 16 * h, FACE, h)
    at += 8 * (2 + FACE) * h
    rows, turned = matrix(at, ROWS, q), matrix(at + 8 * ROWS * q, p, q)
    at += 8 * (ROWS + p) * q
    listed, at = words(at, q), at + 8 * q
    columns, moves = matrix(at, COLUMNS, p), matrix(at + 8 * COLUMNS * p, FREE, p)
    free = words(at + 8 * (COLUMNS + FREE) * p, p)
    for a in range(h):
        plain[a] = a
        face[HELD_BY, a] = 0.0
    m = set_out(
        A, b, lo, hi, y, lower, upper, first, total, kind, x, mu, kept, rows, columns, turned,
        order, most,
    )  # fmt: skip
    if m < 0:
        return math.inf
    f = list_free(first, lower, columns[UPPER], x, n, order, m, free)
    gather(turned, order, free, m, f, B)
    if kept:
        if not put_right(rows, columns, x, order, free, B, H, L, plain, m, f, face, moves):
            return math.inf
        set_values(A, b, first, total, x, rows)
    spent, sure = 0, False
    known = 0  # for how many changes of the face the system has been known
    work = downhill_work(n, p) // (NEAR if kept else 1)
    while spent < work:
        if known == 0:
            form(B, H, m, f)
            spent += m * m * (f // 2)
        known = known + 1 if known < LONG else 0
        length = set_step(columns, free, B, H, L, plain, m, f, face, moves, False)
        if not (length >= 0.0):
            return math.inf
        spent += m * m * (m // 6)
        if length > LEVEL:
            square, bound, c = set_times(rows, columns, turned, lower, x, free, f, moves)
            t, r = search(A, first, rows, columns, square, bound, listed)
            for e in range(f):
                x[free[e]] += t * moves[STEP, e]
                columns[REST, free[e]] -= t * moves[STEP, e]
            for e in range(q):
                rows[G, e] += t * rows[ALONG, e]
            spent += q * f
            if r >= 0:
                if m == most:
                    return math.inf
                add_row(A, first, r, rows[MU, r], columns[REST])
                rows[STATE, r], rows[G, r] = HELD, 0.0
                hold(turned, order, free, m, f, B, H, r, face, moves)
                m += 1
                continue
            if t == bound:
                i = free[c]
                x[i] = lower[i] if moves[STEP, c] < 0.0 else columns[UPPER, i]
                known = known if fix_one(rows, order, free, m, f, B, H, c) else 0
                f -= 1
                continue
            if t < 1.0:
                continue
        found = to_release(A, first, rows, columns, lower, x, order, free, m, f, face)
        spent += m * p
        if found == -1:
            if sure:
                break
            # Crossing kinks of heavy rows leaves their rounding behind. Once more, without it.
            sure = True
            set_values(A, b, first, total, x, rows)
            set_rest(A, first, y, x, rows, columns)
            if not put_right(rows, columns, x, order, free, B, H, L, plain, m, f, face, moves):
                return math.inf
        elif found < -1:
            free_one(turned, order, free, m, f, B, -2 - found)
            add_line(B, H, m, f)
            f += 1
        else:
            release(A, first, rows, columns, order, found, face[HELD_BY, found])
            drop(order, m, f, B, H, found)
            m -= 1
    else:
        return math.inf
    for r in range(q):
        rows[PRICE_LOW, r] = rows[PRICE, r] = 0.0
        if r < n and rows[STATE, r] != HELD:
            rows[PRICE, r] = weights[r] if rows[STATE, r] > 0.0 else floor[r]
    for a in range(m):
        rows[PRICE, order[a]] = face[HELD_BY, a] * (2.0 * alpha)
    exact = sharpen(
        A, first, center, gradient, alpha, x, rows, columns, order, free, B, H, L, plain, m, f,
        face, moves,
    )  # fmt: skip
    if not (keep_within(floor, weights, lower, upper, x, rows) and exact):
        set_pull(A, first, center, gradient, 2.0 * alpha, x, rows, columns)
    for r in range(n):
        multipliers[r] = rows[PRICE, r]
    return judged_face(
        A, b, center, gradient, alpha, floor, weights, lower, upper, first, total, kind, x, rows,
        columns,
    )  # fmt: skip
