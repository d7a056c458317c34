"""Products and factors of small matrices, a tile of four lines and eight numbers at a time.

What does most of the arithmetic of a Newton step with dozens of rows. Every number of a tile is a
sum in the order in which it is written, whatever else is in the tile. Matrices are given by their
addresses; their lines are `padded` to whole tiles, and so is how many lines they have.
"""

import math

from coldq.compiled import (
    compiled, eight, four, fourfold, fused, hidden, inlined, lane_at, put_lane, without,
)  # fmt: skip

LEAST_PIVOT = 1e-14  # of the diagonal entry
NEAR = 48  # lines that are read again and again before the next ones, from the nearest cache


@inlined
def padded(n):
    """How long the lines are of a matrix of n rows: with a place for a right side, and zeros."""
    return (n + 15) // 8 * 8


@compiled
def add_tile(B, H, h, a, c, first, last):
    """Add to a tile of ``B'B``, that at line a and column c, what these lines of B have."""
    to = H + 8 * (a * h + c)
    s = lane_at(to, 0, eight())
    t, u, v = lane_at(to + 8 * h, 0, s), lane_at(to + 16 * h, 0, s), lane_at(to + 24 * h, 0, s)
    at = B + 8 * h * first
    for _ in range(last - first):
        right = lane_at(at + 8 * c, 0, s)
        s = fused(lane_at(at + 8 * a, 0, 0.0), right, s)
        t = fused(lane_at(at + 8 * a, 1, 0.0), right, t)
        u = fused(lane_at(at + 8 * a, 2, 0.0), right, u)
        v = fused(lane_at(at + 8 * a, 3, 0.0), right, v)
        at += 8 * h
    put_lane(to, 0, s)
    put_lane(to + 8 * h, 0, t)
    put_lane(to + 16 * h, 0, u)
    put_lane(to + 24 * h, 0, v)


@compiled
def add_two_tiles(B, H, h, a, c, first, last):
    """The same of two tiles side by side: half as much is read for each product."""
    to = H + 8 * (a * h + c)
    s = lane_at(to, 0, eight())
    t, u, v = lane_at(to + 8 * h, 0, s), lane_at(to + 16 * h, 0, s), lane_at(to + 24 * h, 0, s)
    w, x = lane_at(to, 1, s), lane_at(to + 8 * h, 1, s)
    y, z = lane_at(to + 16 * h, 1, s), lane_at(to + 24 * h, 1, s)
    at = B + 8 * h * first
    for _ in range(last - first):
        right, more = lane_at(at + 8 * c, 0, s), lane_at(at + 8 * c, 1, s)
        one, two = lane_at(at + 8 * a, 0, 0.0), lane_at(at + 8 * a, 1, 0.0)
        three, four = lane_at(at + 8 * a, 2, 0.0), lane_at(at + 8 * a, 3, 0.0)
        s, t = fused(one, right, s), fused(two, right, t)
        u, v = fused(three, right, u), fused(four, right, v)
        w, x = fused(one, more, w), fused(two, more, x)
        y, z = fused(three, more, y), fused(four, more, z)
        at += 8 * h
    put_lane(to, 0, s)
    put_lane(to + 8 * h, 0, t)
    put_lane(to + 16 * h, 0, u)
    put_lane(to + 24 * h, 0, v)
    put_lane(to, 1, w)
    put_lane(to + 8 * h, 1, x)
    put_lane(to + 16 * h, 1, y)
    put_lane(to + 24 * h, 1, z)


@compiled
def clear(H, h, m):
    """Make the tiles zero of which ``B'B`` will be the sum, those up to the diagonal."""
    for a in range(0, m, 4):
        for c in range((a + 11) // 8):
            for line in range(4):
                put_lane(H + 8 * (a + line) * h, c, eight())


@compiled
def add_squares(B, H, h, first, last, m):
    """Add what some lines of B have of ``B'B``, to its tiles."""
    for a in range(0, m, 4):
        for c in range(0, a - 4, 16):
            add_two_tiles(B, H, h, a, c, first, last)
        if a % 16 < 8:
            add_tile(B, H, h, a, a // 16 * 16, first, last)


@compiled
def mirror(H, h, m):
    """Put down what is above the diagonal."""
    for a in range(m):
        for c in range(a):
            put_lane(H + 8 * (hidden(c) * h + a), 0, lane_at(H + 8 * a * h, c, 0.0))


@compiled
def multiply(B, H, h, width, m):
    """``H = B'B`` of the first m columns of B, which has so many lines; both have lines of h."""
    clear(H, h, m)
    for first in range(0, width, NEAR):
        add_squares(B, H, h, first, min(first + NEAR, width), m)
    mirror(H, h, m)


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
            i = order[c]
            row = H + 8 * i * h
            if count == m:
                for r in range(c // 8, last):
                    put_lane(line, r, lane_at(row, r, eight()))
                put_lane(line + 8 * count, 0, eight())  # beyond is anything, and slow if tiny
            else:
                for r in range(c, count):
                    # One by one: processors gather slowly.
                    put_lane(line, r, lane_at(row, hidden(order[r]), 0.0))
            put_lane(line, count, right[i])


@inlined
def pivot_at(s, H, h, order, c, count):
    """A pivot, bounded from below; 1 where there is no such row."""
    if c >= count:
        return 1.0
    i = order[c]
    return max(s, LEAST_PIVOT * lane_at(H + 8 * (i * h + i), 0, 0.0))


@compiled
def solve_tiles(H, L, h, order, count, m, right, d):
    """Solve ``H d = right`` over the rows in `order`, by Cholesky's method, four columns at a time.

    L has the factor by columns, and the right side is one more row of it. The diagonal has inverse
    roots of pivots. d is as long as a line.
    """
    begin_factor(H, L, h, order, count, m, right)
    for c in range(0, count, 4):
        at = L + 8 * (c * h + c)
        for r in range(c // 8 * 8, count + 1, 8):
            to = L + 8 * (c * h + r)
            s, t = lane_at(to, 0, eight()), lane_at(to + 8 * h, 0, eight())
            u, v = lane_at(to + 16 * h, 0, eight()), lane_at(to + 24 * h, 0, eight())
            up = L
            for _ in range(c):
                over = lane_at(up + 8 * r, 0, s)
                s = without(lane_at(up + 8 * c, 0, 0.0), over, s)
                t = without(lane_at(up + 8 * c, 1, 0.0), over, t)
                u = without(lane_at(up + 8 * c, 2, 0.0), over, u)
                v = without(lane_at(up + 8 * c, 3, 0.0), over, v)
                up += 8 * h
            put_lane(to, 0, s)
            put_lane(to + 8 * h, 0, t)
            put_lane(to + 16 * h, 0, u)
            put_lane(to + 24 * h, 0, v)
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
def combine(lines, h, m, count, share, out):
    """The sum of so many lines of length h, each times its share: of their first m numbers, and of
    those after them that fill up a tile."""
    whole = min((m + 7) // 8, h // 8)
    for c in range(whole):
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
