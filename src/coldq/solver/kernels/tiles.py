"""Products and factors of small matrices, a tile of four lines and eight numbers at a time.

What does most of the arithmetic of a Newton step with dozens of rows. Every number of a tile is a
sum in the order in which it is written, whatever else is in the tile. Matrices are given by their
addresses; their lines are `padded` to whole tiles, and so is how many lines they have.
"""

import math

from coldq.compiled import (
    compiled, eight, four, fourfold, fused, hidden, inlined, lane_at, put_lane, room, without,
)  # fmt: skip

LEAST_PIVOT = 1e-14  # of the diagonal entry
TWO_TILES = 80  # numbers that two tiles and what is multiplied into them take
LONG = 256  # numbers of a line: longer ones are added up as they lie in memory
NEAR = 48  # lines that are read again and again before the next ones, from the nearest cache


@inlined
def padded(n):
    """How long the lines are of a matrix of n rows: with a place for a right side, and zeros."""
    return (n + 15) // 8 * 8


@inlined
def moved(a, b, s, back):
    """``s + a b``, or ``s - a b`` if it goes back, rounded once."""
    return without(a, b, s) if back else fused(a, b, s)


@inlined
def add_tile(to, h, left, right, count, back):
    """Add to a tile the products of four numbers at `left` with eight at `right`, in so many lines
    of length h; or take them from it."""
    s = lane_at(to, 0, eight())
    t, u, v = lane_at(to + 8 * h, 0, s), lane_at(to + 16 * h, 0, s), lane_at(to + 24 * h, 0, s)
    for _ in range(count):
        over = lane_at(right, 0, s)
        s = moved(lane_at(left, 0, 0.0), over, s, back)
        t = moved(lane_at(left, 1, 0.0), over, t, back)
        u = moved(lane_at(left, 2, 0.0), over, u, back)
        v = moved(lane_at(left, 3, 0.0), over, v, back)
        left += 8 * h
        right += 8 * h
    put_lane(to, 0, s)
    put_lane(to + 8 * h, 0, t)
    put_lane(to + 16 * h, 0, u)
    put_lane(to + 24 * h, 0, v)


@inlined
def add_two_tiles(to, h, left, right, count, back):
    """The same of two tiles side by side: half as much is read for each product."""
    s = lane_at(to, 0, eight())
    t, u, v = lane_at(to + 8 * h, 0, s), lane_at(to + 16 * h, 0, s), lane_at(to + 24 * h, 0, s)
    w, x = lane_at(to, 1, s), lane_at(to + 8 * h, 1, s)
    y, z = lane_at(to + 16 * h, 1, s), lane_at(to + 24 * h, 1, s)
    for _ in range(count):
        over, more = lane_at(right, 0, s), lane_at(right, 1, s)
        one, two = lane_at(left, 0, 0.0), lane_at(left, 1, 0.0)
        three, four = lane_at(left, 2, 0.0), lane_at(left, 3, 0.0)
        s, t = moved(one, over, s, back), moved(two, over, t, back)
        u, v = moved(three, over, u, back), moved(four, over, v, back)
        w, x = moved(one, more, w, back), moved(two, more, x, back)
        y, z = moved(three, more, y, back), moved(four, more, z, back)
        left += 8 * h
        right += 8 * h
    put_lane(to, 0, s)
    put_lane(to + 8 * h, 0, t)
    put_lane(to + 16 * h, 0, u)
    put_lane(to + 24 * h, 0, v)
    put_lane(to, 1, w)
    put_lane(to + 8 * h, 1, x)
    put_lane(to + 16 * h, 1, y)
    put_lane(to + 24 * h, 1, z)


@inlined
def add_tiles(to, h, left, right, count, tiles, back):
    """The same of so many tiles side by side, two at a time where registers hold them."""
    if room() >= TWO_TILES:
        for _ in range(tiles // 2):
            add_two_tiles(to, h, left, right, count, back)
            to += 128
            right += 128
        tiles %= 2
    for _ in range(tiles):
        add_tile(to, h, left, right, count, back)
        to += 64
        right += 64


@compiled
def clear(H, h, m):
    """Make the tiles zero of which ``B'B`` will be the sum, those from the diagonal on."""
    for a in range(0, m, 4):
        for c in range(a // 8, (m + 7) // 8):
            for line in range(4):
                put_lane(H + 8 * (a + line) * h, c, eight())


@compiled
def add_squares(B, H, h, first, last, m):
    """Add what some lines of B have of ``B'B``, to its tiles."""
    B += 8 * h * first
    for a in range(0, m, 4):
        c = a // 8 * 8
        to, tiles = H + 8 * (a * h + c), (m - c + 7) // 8
        add_tiles(to, h, B + 8 * a, B + 8 * c, last - first, tiles, False)


@compiled
def multiply(B, H, h, width, m):
    """``H = B'B`` of the first m columns of B, which has so many lines; both have lines of h. What
    is below the diagonal is left as it was."""
    clear(H, h, m)
    for first in range(0, width, NEAR):
        add_squares(B, H, h, first, min(first + NEAR, width), m)


@compiled
def begin_factor(H, L, h, order, count, m, right):
    """Put what is to be factored into L: H over the rows in `order`, and the right side."""
    last = (count + 8) // 8
    for c in range((count + 3) // 4 * 4):
        line = L + 8 * c * h
        if c >= count or count < m:
            for r in range(c // 8, last):
                put_lane(line, r, eight())
        if c < count:
            i = int(order[c])
            row = H + 8 * i * h
            if count == m:
                for r in range(c // 8, last):
                    put_lane(line, r, lane_at(row, r, eight()))
                put_lane(line + 8 * count, 0, eight())  # beyond is anything, and slow if tiny
            else:
                for r in range(c, count):
                    # One by one: processors gather slowly.
                    put_lane(line, r, lane_at(row, hidden(int(order[r])), 0.0))
            put_lane(line, count, right[i])


@inlined
def pivot_at(s, H, h, order, c, count):
    """A pivot, bounded from below; 1 where there is no such row."""
    if c >= count:
        return 1.0
    i = int(order[c])
    return max(s, LEAST_PIVOT * lane_at(H + 8 * (i * h + i), 0, 0.0))


@compiled
def take_columns(L, h, first, some, c, count):
    """Take from the four columns at c what some of those before them have."""
    r = c // 8 * 8
    to, before, tiles = L + 8 * (c * h + r), L + 8 * first * h, (count - r + 8) // 8
    add_tiles(to, h, before + 8 * c, before + 8 * r, some, tiles, True)


@compiled
def solve_tiles(H, L, h, order, count, m, right, d):
    """Solve ``H d = right`` over the rows in `order`, by Cholesky's method, four columns at a time.

    `order` ascends, and of H only what is from the diagonal on is asked for.
    L has the factor by columns, and the right side is one more row of it. The diagonal has inverse
    roots of pivots. d is as long as a line.
    """
    begin_factor(H, L, h, order, count, m, right)
    for c in range(0, count, 4):
        at = L + 8 * (c * h + c)
        if c % NEAR == 0:
            for first in range(0, c, NEAR):
                for near in range(c, min(c + NEAR, count), 4):
                    take_columns(L, h, first, NEAR, near, count)
        take_columns(L, h, c // NEAR * NEAR, c % NEAR, c, count)
        # The four on the diagonal, by numbers: LDL', whose roots nothing waits for.
        w10, w20, w30 = lane_at(at, 1, 0.0), lane_at(at, 2, 0.0), lane_at(at, 3, 0.0)
        w21, w31 = lane_at(at + 8 * h, 2, 0.0), lane_at(at + 8 * h, 3, 0.0)
        w32 = lane_at(at + 16 * h, 3, 0.0)
        i0 = 1.0 / pivot_at(lane_at(at, 0, 0.0), H, h, order, c, count)
        l10, l20, l30 = w10 * i0, w20 * i0, w30 * i0
        s1 = lane_at(at + 8 * h, 1, 0.0) - l10 * w10
        i1 = 1.0 / pivot_at(s1, H, h, order, c + 1, count)
        w21, w31 = w21 - l20 * w10, w31 - l30 * w10
        l21, l31 = w21 * i1, w31 * i1
        s2 = lane_at(at + 16 * h, 2, 0.0) - l20 * w20 - l21 * w21
        i2 = 1.0 / pivot_at(s2, H, h, order, c + 2, count)
        w32 = w32 - l30 * w20 - l31 * w21
        l32 = w32 * i2
        s3 = lane_at(at + 24 * h, 3, 0.0) - l30 * w30 - l31 * w31 - l32 * w32
        i3 = 1.0 / pivot_at(s3, H, h, order, c + 3, count)
        r0, r1, r2, r3 = math.sqrt(i0), math.sqrt(i1), math.sqrt(i2), math.sqrt(i3)
        for r in range(c // 8 * 8, count + 1, 8):
            to = L + 8 * (c * h + r)
            s = lane_at(to, 0, eight())
            t = without(l10, s, lane_at(to + 8 * h, 0, s))
            u = without(l21, t, without(l20, s, lane_at(to + 16 * h, 0, s)))
            v = without(l31, t, without(l30, s, lane_at(to + 24 * h, 0, s)))
            v = without(l32, u, v)
            put_lane(to, 0, s * r0)
            put_lane(to + 8 * h, 0, t * r1)
            put_lane(to + 16 * h, 0, u * r2)
            put_lane(to + 24 * h, 0, v * r3)
        for j in range(4):
            for r in range(j):
                put_lane(at + 8 * (j * h + r), 0, 0.0)
        put_lane(at, 0, r0)
        put_lane(at + 8 * (h + 1), 0, r1)
        put_lane(at + 16 * (h + 1), 0, r2)
        put_lane(at + 24 * (h + 1), 0, r3)
    go_back(L, h, count, d)


@compiled
def go_back(L, h, count, d):
    """The second half of a solution with the factor: by its rows, from the last one on."""
    for r in range((count + 4) // 4):
        put_lane(d, r, four())
    put_lane(d, count, -1.0)
    for c in range((count - 1) // 4 * 4, -1, -4):
        line = L + 8 * c * h
        s = t = u = v = four()
        for r in range(c // 4, (count + 4) // 4):
            known = lane_at(d, r, s)
            s = fused(lane_at(line, r, s), known, s)
            t = fused(lane_at(line + 8 * h, r, s), known, t)
            u = fused(lane_at(line + 16 * h, r, s), known, u)
            v = fused(lane_at(line + 24 * h, r, s), known, v)
        at = line + 8 * c
        d3 = -fourfold(v) * lane_at(at + 24 * h, 3, 0.0) if c + 3 < count else 0.0
        s2 = fourfold(u) + lane_at(at + 16 * h, 3, 0.0) * d3
        d2 = -s2 * lane_at(at + 16 * h, 2, 0.0) if c + 2 < count else 0.0
        s1 = fourfold(t) + lane_at(at + 8 * h, 2, 0.0) * d2 + lane_at(at + 8 * h, 3, 0.0) * d3
        d1 = -s1 * lane_at(at + 8 * h, 1, 0.0) if c + 1 < count else 0.0
        s0 = fourfold(s) + lane_at(at, 1, 0.0) * d1 + lane_at(at, 2, 0.0) * d2
        s0 += lane_at(at, 3, 0.0) * d3
        put_lane(d, c, -s0 * lane_at(at, 0, 0.0))
        if c + 1 < count:
            put_lane(d, c + 1, d1)
        if c + 2 < count:
            put_lane(d, c + 2, d2)
        if c + 3 < count:
            put_lane(d, c + 3, d3)


@compiled
def solve_again(L, h, count, right, d):
    """The same with another right side, as long as a line, and the factor as it was left."""
    last = (count + 8) // 8
    for c in range(count):
        line = L + 8 * c * h
        s = lane_at(right, c, 0.0) * lane_at(line, c, 0.0)
        for r in range(c // 8, last):
            put_lane(right, r, without(s, lane_at(line, r, eight()), lane_at(right, r, eight())))
        put_lane(line, count, s)
    go_back(L, h, count, d)


@compiled
def combine_long(lines, h, whole, count, share, out):
    """The sum of so many lines, each times its share, in whole tiles: line by line, as they lie in
    memory."""
    for c in range(whole):
        put_lane(out, c, eight())
    for i in range(0, count, 4):
        some, one = min(count - i, 4), lines + 8 * h * i
        two, three = one + 8 * h * min(1, some - 1), one + 8 * h * min(2, some - 1)
        last = one + 8 * h * (some - 1)
        s1, s2 = lane_at(share, i, 0.0), lane_at(share, i + 1, 0.0) if some > 1 else 0.0
        s3 = lane_at(share, i + 2, 0.0) if some > 2 else 0.0
        s4 = lane_at(share, i + 3, 0.0) if some > 3 else 0.0
        for c in range(whole):
            s = lane_at(out, c, eight())
            s = fused(s2, lane_at(two, c, s), fused(s1, lane_at(one, c, s), s))
            put_lane(out, c, fused(s4, lane_at(last, c, s), fused(s3, lane_at(three, c, s), s)))


@compiled
def combine(lines, h, m, count, share, out):
    """The sum of so many lines of length h, each times its share: of their first m numbers, and of
    those after them that fill up a tile."""
    whole = min((m + 7) // 8, h // 8)
    if m > LONG:
        combine_long(lines, h, whole, count, share, out)
    for c in range(whole if m <= LONG else 0):
        s = t = u = v = eight()
        at = lines
        for i in range(0, count - 3, 4):
            s = fused(lane_at(share, i, 0.0), lane_at(at, c, s), s)
            t = fused(lane_at(share, i + 1, 0.0), lane_at(at + 8 * h, c, s), t)
            u = fused(lane_at(share, i + 2, 0.0), lane_at(at + 16 * h, c, s), u)
            v = fused(lane_at(share, i + 3, 0.0), lane_at(at + 24 * h, c, s), v)
            at += 32 * h
        for i in range(count // 4 * 4, count):
            s = fused(lane_at(share, i, 0.0), lane_at(at, c, s), s)
            at += 8 * h
        put_lane(out, c, (s + t) + (u + v))
    for c in range(8 * whole, m):
        s = 0.0
        for i in range(count):
            s = fused(lane_at(share, i, 0.0), lane_at(lines + 8 * i * h, c, s), s)
        put_lane(out, c, s)


@inlined
def products(lines, h, i, count, given, first, last, like):
    """The products of four lines from i on, or of the last one again, with a vector."""
    s = t = u = v = like
    one, two = lines + 8 * h * i, lines + 8 * h * min(i + 1, count - 1)
    three, last_one = lines + 8 * h * min(i + 2, count - 1), lines + 8 * h * min(i + 3, count - 1)
    for r in range(first, last):
        known = lane_at(given, r, like)
        s, t = fused(lane_at(one, r, like), known, s), fused(lane_at(two, r, like), known, t)
        u, v = fused(lane_at(three, r, like), known, u), fused(lane_at(last_one, r, like), known, v)
    return s, t, u, v


@compiled
def against(lines, h, count, given, out):
    """The product of each of so many lines with a vector."""
    for i in range(0, count, 4):
        s, t, u, v = products(lines, h, i, count, given, 0, h // 8, eight())
        a, b, c, d = products(lines, h, i, count, given, h // 8 * 8, h, 0.0)
        put_lane(out, min(i + 3, count - 1), fourfold(v) + d)
        put_lane(out, min(i + 2, count - 1), fourfold(u) + c)
        put_lane(out, min(i + 1, count - 1), fourfold(t) + b)
        put_lane(out, i, fourfold(s) + a)
