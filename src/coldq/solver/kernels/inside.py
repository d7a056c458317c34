"""The interior-point method's steps on dense rows, beside sums of blocks, in one go.

A step's system is ``stiff + A' weight A`` over rows of unit length, the sums of blocks among them.
With no more rows than coordinates it is turned into one over the rows, the sums eliminated by
Woodbury's formula block by block; else it is one over the coordinates, and the sums come after it.

Either is a sum of squares of *lines*: a line has what a coordinate is in all rows, at unit length,
or what a row has of all coordinates. The former are put down, padded to whole tiles
(:mod:`~coldq.solver.kernels.tiles`); the latter are A itself, some of it at a time.
"""

import math

from coldq.compiled import (
    address_of, compiled, eight, inlined, kernel, lane_at, put_lane, vector, without,
)  # fmt: skip
from coldq.compiled.calls import words
from coldq.solver.constants import TINY
from coldq.solver.kernels.interior_point import (
    HI, HIGH, LO, LOW, LOWER, PULL, RIGHT, STIFF, UPPER, WEIGHT, G, X, Y, mean_product, move_along,
    set_aims, set_direction, set_start, set_weights,
)  # fmt: skip
from coldq.solver.kernels.tiles import (
    NEAR, add_squares, against, clear, combine, multiply, padded, solve_again, solve_tiles,
)  # fmt: skip

SHORT = 0.995  # of the way to the boundary
SHARE = 0.1  # of a coordinate's width: how far from its bounds it starts
LIGHT = 1e-8  # of a coordinate's own stiffness: rows that weigh less are left out
FEW_SUMS = 4  # coordinates for each sum, at least, where these come after the rows


@inlined
def part(array, first, count):
    """Some entries of a vector."""
    return vector(address_of(array, first), count)


@inlined
def is_turned(n, p, k):
    """Whether the system of n rows and k sums is one over the rows."""
    return n <= p or FEW_SUMS * k > p


@compiled
def inside_size(n, p, k, blocks):
    """How many numbers an instance needs to work in; k of the blocks have a sum."""
    turned = is_turned(n, p, k)
    m, lines, s = (n, 2 * p + k, 0) if turned else (p, NEAR, k)
    h, small = padded(m), padded(s)
    own = lines * h + 2 * h * h + s * h + 2 * small * small
    return own + 2 * (h + small) + 4 * p + 2 * n + k + blocks + m + s + 8


@inlined
def well_inside(y, lower, upper):
    """The nearest number to y that keeps away from the bounds."""
    if lower > -math.inf:
        width = upper - lower if upper < math.inf else 1.0 + abs(lower)
    else:
        width = 1.0 + abs(upper) if upper < math.inf else 0.0
    return min(max(y, lower + SHARE * width), upper - SHARE * width)


@compiled
def set_block(lower, upper, first, last, total, kind, columns):
    """Where x starts in a block: its sum is right, as far as bounds leave room for both."""
    spare = 0.0
    needed = total
    for i in range(first, last):
        spare += min(upper[i], max(lower[i], total)) - lower[i]
        needed -= lower[i]
    share = needed / max(spare, TINY)
    known = kind < math.inf and abs(share) < math.inf
    share = min(max(share, 0.01), 0.99)
    for i in range(first, last):
        columns[LOWER, i], columns[UPPER, i] = lower[i], upper[i]
        columns[LOW, i] = columns[HIGH, i] = 0.0
        room = min(upper[i], max(lower[i], total)) - lower[i]
        if known and 0.0 < room and room < math.inf:
            columns[X, i] = lower[i] + (0.5 * share if kind == 0.0 else share) * room
        else:
            columns[X, i] = well_inside(columns[Y, i], lower[i], upper[i])
        if kind < 0.0 and lower[i] == 0.0 and upper[i] >= total:
            columns[UPPER, i] = math.inf  # the sum keeps to that bound


@kernel("VVfVVMVVVVVViIIVVMM")
def set_out(
    center, gradient, half, floor, weights, A, b, lower, upper, starts, total, kind, near, start,
    place, length, limits, rows, columns,
):  # fmt: skip
    """Set what steps start from: the blocks and their sums, which come after the rows, all rows'
    lengths and limits, and rows and coordinates. Return how large rooms are, and that beside
    prices; NaN if y is not finite."""
    (n, p), blocks = A.shape, starts.size
    finite = 0.0
    for i in range(p):
        columns[Y, i] = center[i] - gradient[i] * half
        finite += 0.0 * columns[Y, i]
    if not (finite == 0.0):
        return math.nan, math.nan
    for k in range(n):
        row, norm = A[k], 0.0
        for i in range(p):
            norm += row[i] * row[i]
        length[k] = math.sqrt(norm) if norm > 0.0 else 1.0
        limits[k] = b[k]
        rows[LO, k], rows[HI, k] = floor[k] * half * length[k], weights[k] * half * length[k]
    r = n
    start[blocks] = p
    for j in range(blocks):
        start[j] = int(starts[j])
        last = int(starts[j + 1]) if j + 1 < blocks else p
        set_block(lower, upper, start[j], last, total[j], kind[j], columns)
        place[j] = -1
        if kind[j] < math.inf:
            place[j] = r - n
            length[r], limits[r] = math.sqrt(last - start[j]), total[j]
            rows[LO, r], rows[HI, r] = kind[j] * length[r], math.inf
            r += 1
    against(address_of(A[0], 0), p, n, address_of(columns[X], 0), address_of(rows[G], 0))
    for k in range(n):
        rows[G, k] = (rows[G, k] - b[k]) / length[k]
    add_sums(n, start, place, length, columns[X], rows[G])
    for k in range(n, r):
        rows[G, k] -= limits[k] / length[k]
    return set_start(rows, columns, near)


@inlined
def line_of(at, h, i):
    return vector(at + 8 * h * i, h)


@compiled
def lay_out(A, length, h, lines):
    """Put down what each coordinate is in the rows at unit length."""
    n, p = A.shape
    for i in range(p):
        line = line_of(lines, h, i)
        for c in range(h):
            line[c] = 0.0
        for k in range(n):
            line[k] = A[k, i] / length[k]


@compiled
def put(given, count, out):
    """A vector, with zeros after it."""
    for c in range(out.size):
        out[c] = given[c] if c < count else 0.0


@compiled
def times(lines, h, turned, n, p, length, x, wide, out):
    """``A x`` of rows of unit length."""
    if turned:
        combine(lines, h, h, p, address_of(x, 0), address_of(wide, 0))
        for k in range(n):
            out[k] = wide[k]
    else:
        against(lines, p, n, address_of(x, 0), address_of(out, 0))
        for k in range(n):
            out[k] /= length[k]


@compiled
def times_across(lines, h, turned, n, p, length, mu, wide, scaled, out):
    """``A' mu`` of the same."""
    if turned:
        put(mu, n, wide)
        against(lines, h, p, address_of(wide, 0), address_of(out, 0))
    else:
        for k in range(n):
            scaled[k] = mu[k] / length[k]
        combine(lines, p, p, n, address_of(scaled, 0), address_of(out, 0))


@compiled
def add_sums(n, start, place, scale, x, out):
    """Each block's sum, at unit length, after the rows."""
    for j in range(place.size):
        if place[j] >= 0:
            total, its = 0.0, part(x, start[j], start[j + 1] - start[j])
            for i in range(its.size):
                total += its[i]
            out[n + place[j]] = total / scale[n + place[j]]


@compiled
def add_across(n, start, place, scale, mu, out):
    """What the multipliers of sums add to each coordinate."""
    for j in range(place.size):
        if place[j] >= 0:
            own = mu[n + place[j]] / scale[n + place[j]]
            its = part(out, start[j], start[j + 1] - start[j])
            for i in range(its.size):
                its[i] += own


@compiled
def set_values(lines, h, turned, n, p, b, length, start, place, rows, columns, wide):
    """The values of all rows at x."""
    times(lines, h, turned, n, p, length, columns[X], wide, rows[G])
    add_sums(n, start, place, length, columns[X], rows[G])
    for k in range(b.size):
        rows[G, k] -= b[k] / length[k]


@compiled
def scale_lines(lines, h, first, last, flow, by, mean, to):
    """Put down lines less so many means, each times the root of its flow."""
    for i in range(first, last):
        root = math.sqrt(flow[i])
        line, own, less = lines + 8 * h * i, to + 8 * h * i, root * by
        for c in range(h // 8):
            scaled = root * lane_at(line, c, eight())
            put_lane(own, c, without(less, lane_at(mean, c, eight()), scaled))


@compiled
def weigh_lines(lines, h, n, p, length, start, place, rows, columns, flow, share, to):
    """Put down lines whose squares are the system over the rows, about the mean of each block, so
    that nothing is left of a difference; how many.

    `flow` is what a coordinate gives way, and `share` what a block's sum takes back of that.
    """
    for i in range(p):
        flow[i] = 1.0 / (1.0 + columns[STIFF, i])
    count = p
    for j in range(place.size):
        share[j] = 0.0
        first, last = start[j], start[j + 1]
        at = lines + 8 * h * first
        if place[j] < 0:
            scale_lines(lines, h, first, last, flow, 0.0, at, to)
            continue
        r = n + place[j]
        give = length[r] * length[r] / (rows[WEIGHT, r] + TINY)
        its_flow, through = part(flow, first, last - first), 0.0
        for i in range(last - first):
            through += its_flow[i]
        mean = line_of(to, h, count)
        combine(at, h, h, last - first, address_of(its_flow, 0), address_of(mean, 0))
        share[j] = 1.0 / (give + through)
        scale_lines(lines, h, first, last, flow, 1.0 / through, address_of(mean, 0), to)
        left = math.sqrt(give * share[j] / through)
        for c in range(h):
            mean[c] *= left
        count += 1
    return count


@compiled
def eased(start, flow, share, right, out):
    """The solution without the rows."""
    for i in range(flow.size):
        out[i] = flow[i] * right[i]
    for j in range(share.size):
        if share[j] > 0.0:
            first, count, total = start[j], start[j + 1] - start[j], 0.0
            its, its_flow = part(out, first, count), part(flow, first, count)
            for i in range(count):
                total += its[i]
            total *= share[j]
            for i in range(count):
                its[i] -= its_flow[i] * total


@compiled
def factor(H, L, h, m, order, zeros, answer):
    """Factor the system, for right sides to come."""
    for c in range(m):
        order[c] = c
    for c in range(h):
        zeros[c] = 0.0
    solve_tiles(H, L, h, order, m, m, zeros, address_of(answer, 0))


@compiled
def begin_by_rows(n, h, rows, B, count, H, L, order, wide, answer):
    """Factor the system over the rows."""
    multiply(B, H, h, count, n)
    for k in range(n):
        line_of(H, h, k)[k] += 1.0 / (rows[WEIGHT, k] + TINY)
    factor(H, L, h, n, order, wide, answer)


@compiled
def begin_by_columns(
    lines, h, n, p, length, start, place, rows, columns, B, H, L, order, wide, answer, pulled, S,
    its_L, s, small, its_order, its_wide, its_answer, root,
):  # fmt: skip
    """Factor the system over the coordinates, and that of the sums after it."""
    for k in range(n):  # a loop of its own, or each number of a row would be divided
        root[k] = math.sqrt(rows[WEIGHT, k]) / length[k]
    clear(H, h, p)
    for a in range(NEAR):
        put(wide, 0, line_of(B, h, a))
    width = 0
    for k in range(n):
        if rows[WEIGHT, k] > LIGHT:
            line, own = vector(lines + 8 * p * k, p), line_of(B, h, width)
            for c in range(p):
                own[c] = line[c] * root[k]
            width += 1
        if width == NEAR or k == n - 1:
            add_squares(B, H, h, 0, width, p)
            width = 0
    for i in range(p):
        line_of(H, h, i)[i] += 1.0 + columns[STIFF, i]
    factor(H, L, h, p, order, wide, answer)
    if s == 0:
        return
    for j in range(place.size):
        if place[j] >= 0:
            for c in range(h):
                wide[c] = 1.0 if start[j] <= c and c < start[j + 1] else 0.0
            own = line_of(pulled, h, place[j])
            solve_again(L, h, p, address_of(wide, 0), address_of(own, 0))
    for j in range(place.size):
        if place[j] >= 0:
            line = line_of(S, small, place[j])
            for a in range(s):
                own, total = line_of(pulled, h, a), 0.0
                for i in range(start[j], start[j + 1]):
                    total += own[i]
                line[a] = total
            r = n + place[j]
            line[place[j]] += length[r] * length[r] / (rows[WEIGHT, r] + TINY)
    factor(S, its_L, small, s, its_order, its_wide, its_answer)


@compiled
def after_sums(h, p, start, place, pulled, its_L, s, small, its_wide, its_answer, d):
    """Take from d what the sums hold back."""
    put(its_wide, 0, its_wide)
    for j in range(place.size):
        if place[j] >= 0:
            total = 0.0
            for i in range(start[j], start[j + 1]):
                total += d[i]
            its_wide[place[j]] = total
    solve_again(its_L, small, s, address_of(its_wide, 0), address_of(its_answer, 0))
    for a in range(s):
        own, held = line_of(pulled, h, a), its_answer[a]
        for i in range(p):
            d[i] -= held * own[i]


@kernel("MVVIIMMfffiV")
def approach(A, b, length, start, place, rows, columns, target, reach, unit, steps, memory):
    """Take steps until the gap is the target; how many, or -1 if there is no direction.

    `place` has each block's place among the sums, which come after A's rows, or -1.
    """
    n, p = A.shape
    k = b.size - n
    if memory.size < inside_size(n, p, k, place.size):
        return -1
    turned = is_turned(n, p, k)
    m, s = (n, 0) if turned else (p, k)
    h, small = padded(m), padded(s)
    B = (address_of(memory, 0) + 63) // 64 * 64  # no tile in two of the cache's lines
    H = B + 8 * h * (p + k if turned else NEAR)
    lines = address_of(A[0], 0)
    if turned:
        lines, H = H, H + 8 * h * p
        lay_out(A, length, h, lines)
    L = H + 8 * h * h
    pulled = L + 8 * h * h
    S = pulled + 8 * h * s
    its_L = S + 8 * small * small
    at = its_L + 8 * small * small
    wide, answer = vector(at, h), vector(at + 8 * h, h)
    at += 16 * h
    its_wide, its_answer = vector(at, small), vector(at + 8 * small, small)
    at += 16 * small
    d, right, flow = vector(at, p), vector(at + 8 * p, p), vector(at + 16 * p, p)
    other = vector(at + 24 * p, p)
    at += 32 * p
    along, share = vector(at, n + k), vector(at + 8 * (n + k), place.size)
    at += 8 * (n + k + place.size)
    order, its_order, scaled = words(at, m), words(at + 8 * m, s), vector(at + 8 * (m + s), n)

    for taken in range(steps):
        now = mean_product(rows, columns, 0.0)
        if now <= target:
            return taken
        set_weights(rows, columns, reach, unit)
        if turned:
            width = weigh_lines(lines, h, n, p, length, start, place, rows, columns, flow, share, B)
            begin_by_rows(n, h, rows, B, width, H, L, order, wide, answer)
        else:
            begin_by_columns(
                lines, h, n, p, length, start, place, rows, columns, B, H, L, order, wide, answer,
                pulled, S, its_L, s, small, its_order, its_wide, its_answer, scaled,
            )  # fmt: skip
        # First aim at zero, to see how far that leads; then at the little that it would leave.
        tau = 0.0
        for sure in range(2):
            set_aims(rows, columns, tau)
            times_across(lines, h, turned, n, p, length, rows[PULL], wide, scaled, right)
            add_across(n, start, place, length, rows[PULL], right)
            for i in range(p):
                right[i] = columns[RIGHT, i] - right[i]
            if turned:
                eased(start, flow, share, right, d)
                times(lines, h, turned, n, p, length, d, wide, along)
                put(along, n, wide)
                solve_again(L, h, n, address_of(wide, 0), address_of(answer, 0))
                times_across(lines, h, turned, n, p, length, answer, wide, scaled, other)
                for i in range(p):
                    right[i] -= other[i]
                eased(start, flow, share, right, d)
                for r in range(n):
                    along[r] = answer[r] / (rows[WEIGHT, r] + TINY)
            else:
                put(right, p, wide)
                solve_again(L, h, p, address_of(wide, 0), address_of(answer, 0))
                for i in range(p):
                    d[i] = answer[i]
                if s > 0:
                    after_sums(h, p, start, place, pulled, its_L, s, small, its_wide, its_answer, d)
            finite = 0.0
            for i in range(p):
                finite += 0.0 * d[i]
            if not (finite == 0.0):
                return -1
            if not turned:
                times(lines, h, turned, n, p, length, d, wide, along)
            add_sums(n, start, place, length, d, along)
            t = min(SHORT * set_direction(rows, columns, tau, d, along), 1.0)
            if sure == 1:
                move_along(rows, columns, t)
            else:
                ratio = mean_product(rows, columns, t) / now
                tau = now * ratio * ratio * ratio
        set_values(lines, h, turned, n, p, b, length, start, place, rows, columns, wide)
    return steps
