"""Projection on a product of simplices, block by block, by thresholds.

Coordinates come in blocks, one after another. In each their sum is `total`, or at most that, or
anything, as `kind` says: below 0, 0 or above. ``x_i = clip(z_i - theta)`` with the threshold theta
at which the block's sum is right. Along ``z - t w`` thresholds move with t, and with them the slope
``w'x`` of a dual.
"""

import math

from coldq.compiled import (
    address_of, chosen, compiled, four, fourfold, fused, inlined, lane_at, larger, put_lane,
    put_thirds, smaller, thirds, vector, without,
)  # fmt: skip
from coldq.solver.constants import SEARCH_TOLERANCE, TINY

THIRD = 1.0 / 3.0
EXACT = 1e-15  # of the terms of a block's sum: how well it is met
Y, Z, W, OLD, OWN, LINES = range(6)  # lines of length p
THETA, SHIFT, FIRST, ROOF, RUN, BLOCK_LINES = range(6)  # lines with a number for each block


@inlined
def part(array, first, count):
    """Some entries of a vector."""
    return vector(address_of(array, first), count)


@inlined
def sum_of_plain(z, w, t, total, s):
    """Of a plain simplex what its sum is over the total at s, the size of the terms of that, and
    how many coordinates fall or rise there."""
    over = -total
    falls = 0.0
    rises = 0.0
    for i in range(z.size):
        v = z[i] - t * w[i] - s
        over += max(v, 0.0)
        falls += 1.0 if v > 0.0 else 0.0
        rises += 1.0 if v >= 0.0 else 0.0
    return over, over + 2.0 * total, falls, rises


@inlined
def sum_of_any(z, w, lower, upper, t, total, s):
    """The same of any block."""
    over = -total
    size = abs(total)
    falls = 0.0
    rises = 0.0
    for i in range(z.size):
        v = z[i] - t * w[i] - s
        inside = min(max(v, lower[i]), upper[i])
        over += inside
        size += abs(inside)
        falls += 1.0 if lower[i] < v and v <= upper[i] else 0.0
        rises += 1.0 if lower[i] <= v and v < upper[i] else 0.0
    return over, size, falls, rises


@compiled
def threshold(z, w, lower, upper, roof, t, total, least, s):
    """The shift s, at least `least`, at which ``sum of clip(z - t w - s)`` is the total.

    A safeguarded Newton iteration from the s given, on a sum that falls piece by piece. At an end
    of a piece the one counts that s goes to; where no coordinate moves, s goes to the middle of
    what is left. The `roof` is infinite where upper bounds say nothing that the sum does not: then
    some coordinate always moves, and the sum bends one way only.
    """
    left = -math.inf
    right = math.inf
    s = max(s, least)
    for _ in range(200):
        if roof == math.inf:
            over, size, falls, rises = sum_of_plain(z, w, t, total, s)
        else:
            over, size, falls, rises = sum_of_any(z, w, lower, upper, t, total, s)
        moving = falls if over > 0.0 else rises
        new = max(s + over / max(moving, 1.0), least)
        met = abs(over) <= EXACT * (size + moving * abs(s)) or (over <= 0.0 and s <= least)
        if met:
            return new if moving > 0.0 else s
        left = s if over > 0.0 else left
        right = right if over > 0.0 else s
        if moving == 0.0:
            gap = math.inf
            least_end = math.inf
            last_end = -math.inf
            for i in range(z.size):
                v = z[i] - t * w[i] - s
                high = max(upper[i], roof)
                beyond = v - high if over > 0.0 else lower[i] - v
                gap = min(gap, beyond if beyond > 0.0 else math.inf)
                least_end = min(least_end, v - high)
                last_end = max(last_end, v - lower[i])
            if gap == math.inf:
                return s
            left, right = max(left, s + least_end), min(right, s + last_end)
            new = 0.5 * (left + right)
            if not (abs(new) < math.inf):  # from the next end on, as far as one would go alone
                new = s + over + (gap if over > 0.0 else -gap)
            new = max(new, least)
        if not (left < new and new < right):
            new = 0.5 * (left + right)
            if not (left < new and new < right):
                return s
        s = new
    return s


@inlined
def threshold_of_three(a, b, c, total):
    """The threshold of a plain simplex: of those that its largest one, two or three coordinates
    would have alone, the highest. Without a branch, so that several go side by side."""
    low, high = smaller(a, b), larger(a, b)
    top = larger(high, c)
    two = top + larger(low, smaller(high, c))
    return larger(larger(top - total, 0.5 * (two - total)), (a + b + c - total) * THIRD)


@inlined
def place_some(z, w, total, theta, x, t, like):
    """:func:`place` for as many plain simplices of three coordinates as `like` has lanes."""
    (a, b, c), (d, e, f) = thirds(z, like), thirds(w, like)
    a, b, c, sum_ = without(t, d, a), without(t, e, b), without(t, f, c), lane_at(total, 0, like)
    s = threshold_of_three(a, b, c, sum_)
    a, b, c = a - s, b - s, c - s
    more = threshold_of_three(a, b, c, sum_)
    a, b, c = a - more, b - more, c - more
    put_lane(theta, 0, lane_at(theta, 0, like) + (s + more))
    put_thirds(z, a, b, c)
    a, b, c = larger(a, 0.0), larger(b, 0.0), larger(c, 0.0)
    put_thirds(x, smaller(a, sum_), smaller(b, sum_), smaller(c, sum_))


@compiled
def place_threes(z, w, total, theta, x, t, count):
    """The same for a run of them, at these addresses."""
    for j in range(0, count - 3, 4):
        place_some(z + 24 * j, w + 24 * j, total + 8 * j, theta + 8 * j, x + 24 * j, t, four())
    for j in range(count // 4 * 4, count):
        place_some(z + 24 * j, w + 24 * j, total + 8 * j, theta + 8 * j, x + 24 * j, t, 0.0)


@inlined
def slope_of_some(z, w, total, t, like):
    """:func:`slope_at` for as many plain simplices of three coordinates as `like` has lanes."""
    (a, b, c), (d, e, f) = thirds(z, like), thirds(w, like)
    a, b, c = without(t, d, a), without(t, e, b), without(t, f, c)
    s = threshold_of_three(a, b, c, lane_at(total, 0, like))
    a, b, c = a - s, b - s, c - s
    slope = fused(d, larger(a, 0.0), fused(e, larger(b, 0.0), f * larger(c, 0.0)))
    d, e, f = chosen(a > 0.0, d, 0.0), chosen(b > 0.0, e, 0.0), chosen(c > 0.0, f, 0.0)
    moving = chosen(a > 0.0, 1.0, 0.0) + chosen(b > 0.0, 1.0, 0.0) + chosen(c > 0.0, 1.0, 0.0)
    squares = fused(d, d, fused(e, e, f * f))
    whole = d + e + f
    bend = squares - whole * whole / larger(moving, 1.0)
    return slope, chosen(bend > 1e-13 * squares, bend, 0.0)


@compiled
def slope_of_threes(z, w, total, t, count):
    """The same for a run of them, at these addresses."""
    slopes = four()
    bends = four()
    for j in range(0, count - 3, 4):
        slope, bend = slope_of_some(z + 24 * j, w + 24 * j, total + 8 * j, t, four())
        slopes = slopes + slope
        bends = bends + bend
    all_slopes, all_bends = fourfold(slopes), fourfold(bends)
    for j in range(count // 4 * 4, count):
        slope, bend = slope_of_some(z + 24 * j, w + 24 * j, total + 8 * j, t, 0.0)
        all_slopes += slope
        all_bends += bend
    return all_slopes, all_bends


@compiled
def place(columns, blocks, lower_, upper_, total, kind, t, x_):
    """Go to z - t w, from there to the thresholds at which the sums are right, and set x."""
    skip = 0
    for j in range(total.size):
        if skip > 0:
            skip -= 1
            continue
        if blocks[RUN, j] > 0.0:
            skip, first = int(blocks[RUN, j]) - 1, int(blocks[FIRST, j])
            place_threes(
                address_of(columns[Z], first), address_of(columns[W], first), address_of(total, j),
                address_of(blocks[THETA], j), address_of(x_, first), t, skip + 1,
            )  # fmt: skip
            continue
        first = int(blocks[FIRST, j])
        count = int(blocks[FIRST, j + 1]) - first
        z, w = part(columns[Z], first, count), part(columns[W], first, count)
        lower, upper = part(lower_, first, count), part(upper_, first, count)
        x = part(x_, first, count)
        s = blocks[SHIFT, j]
        blocks[SHIFT, j] = 0.0
        # What is left of a difference of large numbers has their rounding: once more, without them.
        for _ in range(2):
            if kind[j] < math.inf:
                least = -math.inf if kind[j] < 0.0 else -blocks[THETA, j]
                s = threshold(z, w, lower, upper, blocks[ROOF, j], t, total[j], least, s)
                blocks[THETA, j] += s
            largest = 0.0
            for i in range(count):
                v = z[i] - t * w[i] - s
                z[i] = v
                w[i] = 0.0
                x[i] = min(max(v, lower[i]), upper[i])
                largest = max(largest, abs(x[i]))
            if not (abs(s) > 4.0 * largest):
                break
            s = 0.0


@compiled
def slope_at(columns, blocks, lower_, upper_, total, kind, t):
    """``w'x`` where z is z - t w, and how fast it falls there."""
    slope = 0.0
    curvature = 0.0
    skip = 0
    for j in range(total.size):
        if skip > 0:
            skip -= 1
            continue
        if blocks[RUN, j] > 0.0:
            skip, first = int(blocks[RUN, j]) - 1, int(blocks[FIRST, j])
            own, bend = slope_of_threes(
                address_of(columns[Z], first), address_of(columns[W], first), address_of(total, j),
                t, skip + 1,
            )  # fmt: skip
            slope += own
            curvature += bend
            continue
        first = int(blocks[FIRST, j])
        count = int(blocks[FIRST, j + 1]) - first
        z, w = part(columns[Z], first, count), part(columns[W], first, count)
        lower, upper = part(lower_, first, count), part(upper_, first, count)
        s = 0.0
        least = 0.0
        if kind[j] < math.inf:
            least = -math.inf if kind[j] < 0.0 else -blocks[THETA, j]
            s = threshold(z, w, lower, upper, blocks[ROOF, j], t, total[j], least, blocks[SHIFT, j])
            blocks[SHIFT, j] = s
        squares = 0.0
        whole = 0.0
        moving = 0.0
        for i in range(count):
            v = z[i] - t * w[i] - s
            slope += w[i] * min(max(v, lower[i]), upper[i])
            free = 1.0 if lower[i] < v and v < upper[i] else 0.0
            squares += free * w[i] * w[i]
            whole += free * w[i]
            moving += free
        if s > least and moving > 0.0:
            bend = squares - whole * whole / moving
            squares = bend if bend > 1e-13 * squares else 0.0
        curvature += squares
    return slope, curvature


@compiled
def go_far(columns, blocks, lower, upper, total, kind, start, offset, noise, limit):
    """Where the dual stops rising along d: a safeguarded Newton iteration on its slope.

    Infinity where it rises for ever, as far as can be seen.
    """
    left = 0.0
    right = math.inf
    t = min(1.0, limit)
    for _ in range(100):
        blocks[SHIFT, total.size] += 1.0
        slope, curvature = slope_at(columns, blocks, lower, upper, total, kind, t)
        slope -= offset
        if not (abs(slope) > SEARCH_TOLERANCE * start + noise):
            return t
        if slope > 0.0:
            if t >= limit:
                return limit
            left = t
            far = 4.0 * t if right == math.inf else 0.5 * (left + right)
            t = t + slope / curvature if curvature * far > 0.01 * slope else far
            t = min(t if t < right else far, limit)
        else:
            right = t
            t = t + slope / max(curvature, TINY)
            if t <= left:
                t = 0.5 * (left + right)
        if not (left < t):
            return t
    return math.inf if right == math.inf else t
