"""Affine rows on a product of simplices: the dual Newton method, the sums eliminated.

Coordinates come in blocks, one after another. In each their sum is `total`, or at most that, or
anything. Given the multipliers mu of the rows, x is the projection of ``y - A'mu``, block by block:
``x_i = clip(z_i - theta)`` with the threshold theta at which the block's sum is right. So the dual
has a variable for each row and none for a block, and its curvature is ``A_F (I - 11'/f) A_F'`` over
the f free coordinates F of each block.

``z = y - A'mu - theta`` is carried along by increments, thresholds included, for the same reason as
on a box: where y is huge, x and its sums have the digits of x and not those of y.

A comes dense, or sparse by rows; that is turned once, and the curvature then costs its nonzeros.
"""

import math

from coldq.compiled import address_of, batch_kernel, compiled, inlined, matrix, vector
from coldq.compiled.calls import words
from coldq.solver.constants import (
    LEAST_SIZE, NOISE, REGULARISATION, ROW_TOLERANCE, SEARCH_TOLERANCE, TINY, X_FLOOR,
)  # fmt: skip
from coldq.solver.kernels.piece import (
    CHOSEN, DOWN, GAIN, HESSIAN, HI, LO, MU, NORM, OPEN, RHS, SCALE, SIDE, SLOPE, STEP, UP,
    D, G, give_multipliers, list_moving, memory_of,
)  # fmt: skip

REFRESH_ABOVE = 1e-12  # the residual above which z is formed afresh before the answer is given
EXACT = 1e-15  # of the terms of a block's sum: how well it is met
FLAT = 1e-9  # of a row's squared length: with less curvature the piece does not say how far to go
EASE = 1e-3  # of the worst row's share: how much curvature is added to the piece
ROUNDS = 6  # of pivoting, most of which end after two
LOOKS = 5  # at the slope, that a Newton step may take on average
SMALL = 8  # coordinates up to which a block's columns are centred before they are multiplied
Y, Z, W, NTH, SHARE, LINES = range(6)  # lines of length p
THETA, SHIFT, FIRST, ROOF, RUN, BLOCK_LINES = range(6)  # lines with a number for each block


def scratch_size(n: int, p: int, k: int, entries: int, sparse: bool) -> int:
    """How many numbers an instance needs to work in; `entries` of A, or of its nonzeros."""
    own = 2 * entries + p + 1 if sparse else n * (p + 1)
    return (LINES + 1) * p + BLOCK_LINES * (k + 1) + (HESSIAN + 2 * n) * n + own


@inlined
def part(array, first, count):
    """Some entries of a vector."""
    return vector(address_of(array, first), count)


@inlined
def threes(array, first, count):
    """So many times three entries of a vector, as a matrix."""
    return matrix(address_of(array, first), count, 3)


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
        over = -total
        size = abs(total)
        falls = 0.0
        rises = 0.0
        for i in range(z.size):
            v = z[i] - t * w[i] - s
            high = max(upper[i], roof)
            inside = min(max(v, lower[i]), high)
            over += inside
            size += abs(inside)
            falls += 1.0 if lower[i] < v and v <= high else 0.0
            rises += 1.0 if lower[i] <= v and v < high else 0.0
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
    low, high = min(a, b), max(a, b)
    top = max(high, c)
    two = top + max(low, min(high, c))
    return max(max(top - total, 0.5 * (two - total)), (a + b + c - total) / 3.0)


@compiled
def place_threes(z, w, total, theta, shift, t, x):
    """:func:`place` for a run of plain simplices of three coordinates."""
    for j in range(total.size):
        a, b, c = z[j, 0] - t * w[j, 0], z[j, 1] - t * w[j, 1], z[j, 2] - t * w[j, 2]
        s = threshold_of_three(a, b, c, total[j])
        a, b, c = a - s, b - s, c - s
        more = threshold_of_three(a, b, c, total[j])
        a, b, c = a - more, b - more, c - more
        theta[j] += s + more
        shift[j] = 0.0
        z[j, 0] = a
        z[j, 1] = b
        z[j, 2] = c
        x[j, 0] = min(max(a, 0.0), total[j])
        x[j, 1] = min(max(b, 0.0), total[j])
        x[j, 2] = min(max(c, 0.0), total[j])


@compiled
def slope_of_threes(z, w, total, t):
    """:func:`slope_at` for a run of plain simplices of three coordinates."""
    slope = 0.0
    curvature = 0.0
    for j in range(total.size):
        d, e, f = w[j, 0], w[j, 1], w[j, 2]
        a, b, c = z[j, 0] - t * d, z[j, 1] - t * e, z[j, 2] - t * f
        s = threshold_of_three(a, b, c, total[j])
        a, b, c = a - s, b - s, c - s
        slope += d * max(a, 0.0) + e * max(b, 0.0) + f * max(c, 0.0)
        d, e, f = d if a > 0.0 else 0.0, e if b > 0.0 else 0.0, f if c > 0.0 else 0.0
        count = (1.0 if a > 0.0 else 0.0) + (1.0 if b > 0.0 else 0.0) + (1.0 if c > 0.0 else 0.0)
        squares = d * d + e * e + f * f
        whole = d + e + f
        bend = squares - whole * whole / max(count, 1.0)
        curvature += bend if bend > 1e-13 * squares else 0.0
    return slope, curvature


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
                threes(columns[Z], first, skip + 1), threes(columns[W], first, skip + 1),
                part(total, j, skip + 1), part(blocks[THETA], j, skip + 1),
                part(blocks[SHIFT], j, skip + 1), t, threes(x_, first, skip + 1),
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
                threes(columns[Z], first, skip + 1), threes(columns[W], first, skip + 1),
                part(total, j, skip + 1), t,
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


@compiled
def add_row(data, indices, indptr, k, by, out):
    """Add a multiple of a row of A."""
    if indptr.size == 0:
        row = part(data, k * out.size, out.size)
        for i in range(row.size):
            out[i] += by * row[i]
    else:
        for e in range(indptr[k], indptr[k + 1]):
            out[indices[e]] += by * data[e]


@compiled
def set_values(data, indices, indptr, b, x, rows):
    """The dual's gradient, and the size of the terms that each of its entries is the sum of."""
    p = x.size
    for k in range(b.size):
        value = 0.0
        size = 0.0
        if indptr.size == 0:
            row = part(data, k * p, p)
            for i in range(p):
                value += row[i] * x[i]
                size += abs(row[i]) * max(abs(x[i]), X_FLOOR)
        else:
            for e in range(indptr[k], indptr[k + 1]):
                value += data[e] * x[indices[e]]
                size += abs(data[e]) * max(abs(x[indices[e]]), X_FLOOR)
        rows[G, k] = value - b[k]
        rows[SCALE, k] = size + abs(b[k])


@compiled
def turn(data, indices, indptr, data_to, index_to, pointer_to):
    """The same matrix by columns."""
    p = pointer_to.size - 1
    for i in range(p + 1):
        pointer_to[i] = 0
    for e in range(indices.size):
        pointer_to[indices[e] + 1] += 1
    for i in range(p):
        pointer_to[i + 1] += pointer_to[i]
    for k in range(indptr.size - 1):
        for e in range(indptr[k], indptr[k + 1]):
            to = pointer_to[indices[e]]
            data_to[to] = data[e]
            index_to[to] = k
            pointer_to[indices[e]] = to + 1
    for i in range(p, 0, -1):
        pointer_to[i] = pointer_to[i - 1]
    pointer_to[0] = 0


@compiled
def curvature_of_dense(data, lower, upper, columns, blocks, kind, rows, m, free, B_):
    """The piece's Hessian of the chosen rows, by their free entries, centred in every block.

    Of f free coordinates with a fixed sum f - 1 differences are left, Helmert's: that of the j-th
    to the mean of those before it, times the root of j / (j + 1). NTH has j, and -1 where no sum is
    fixed; SHARE that root over j.
    """
    z, p = columns[Z], lower.size
    nth, share = columns[NTH], columns[SHARE]
    f = 0
    width = 0
    for j in range(kind.size):
        held = kind[j] < 0.0 or (kind[j] == 0.0 and blocks[THETA, j] > 0.0)
        count = 0.0
        for i in range(int(blocks[FIRST, j]), int(blocks[FIRST, j + 1])):
            if lower[i] < z[i] and z[i] < upper[i]:
                free[f] = i
                nth[f] = count if held else -1.0
                share[f] = 1.0 / math.sqrt(count * (count + 1.0)) if held and count > 0.0 else 1.0
                width += 0 if held and count == 0.0 else 1
                f += 1
                count += 1.0
    B = matrix(B_, m, width + 1)
    for a in range(0, m, 2):  # two at a time, the last one perhaps twice
        row = part(data, int(rows[CHOSEN, a]) * p, p)
        next_row = part(data, int(rows[CHOSEN, min(a + 1, m - 1)]) * p, p)
        own, next_own = B[a], B[min(a + 1, m - 1)]
        at = 0
        total = 0.0
        next_total = 0.0
        for c in range(f):
            i, j = free[c], nth[c]
            total = total if j > 0.0 else 0.0
            next_total = next_total if j > 0.0 else 0.0
            own[at] = (total - j * row[i]) * share[c]
            next_own[at] = (next_total - j * next_row[i]) * share[c]
            total += row[i]
            next_total += next_row[i]
            at += 1 if j != 0.0 else 0
    for a in range(m):
        own = B[a]
        for c in range(0, a + 1, 4):  # four at a time, with the last ones again at the end
            first = max(min(c, a - 3), 0)
            one, two = B[first], B[min(first + 1, a)]
            three, four = B[min(first + 2, a)], B[min(first + 3, a)]
            s1 = s2 = s3 = s4 = 0.0
            for e in range(width):
                s1 += own[e] * one[e]
                s2 += own[e] * two[e]
                s3 += own[e] * three[e]
                s4 += own[e] * four[e]
            line = rows[HESSIAN + a]
            line[first] = s1
            line[min(first + 1, a)] = s2
            line[min(first + 2, a)] = s3
            line[min(first + 3, a)] = s4
        for c in range(a):
            rows[HESSIAN + c, a] = rows[HESSIAN + a, c]


@compiled
def curvature_of_sparse(data, index, pointer, lower, upper, columns, blocks, kind, rows, n, m):
    """The same of a matrix by columns: STEP has a row's place or -1, OPEN a list of places, RHS
    sums over a block, SLOPE a centred column."""
    z = columns[Z]
    for k in range(n):
        rows[STEP, k] = -1.0
    for a in range(m):
        rows[STEP, int(rows[CHOSEN, a])] = a
        rows[SIDE, a] = 0.0
        rows[RHS, a] = 0.0
        for c in range(m):
            rows[HESSIAN + a, c] = 0.0
    for j in range(kind.size):
        held = kind[j] < 0.0 or (kind[j] == 0.0 and blocks[THETA, j] > 0.0)
        first, last = int(blocks[FIRST, j]), int(blocks[FIRST, j + 1])
        free = 0
        for i in range(first, last):
            free += 1 if lower[i] < z[i] and z[i] < upper[i] else 0
        if free < (2 if held else 1) or pointer[first] == pointer[last]:
            continue
        listed = 0
        for i in range(first, last):
            if lower[i] < z[i] and z[i] < upper[i]:
                for e in range(pointer[i], pointer[i + 1]):
                    a = int(rows[STEP, index[e]])
                    if a >= 0:
                        if rows[SIDE, a] == 0.0:
                            rows[SIDE, a] = 1.0
                            rows[OPEN, listed] = a
                            listed += 1
                        rows[RHS, a] += data[e]
        if listed == 0:
            continue
        centred = held and free <= SMALL
        for i in range(first, last):
            if not (lower[i] < z[i] and z[i] < upper[i]):
                continue
            if centred:
                for u in range(listed):
                    rows[SLOPE, u] = -rows[RHS, int(rows[OPEN, u])] / free
                for e in range(pointer[i], pointer[i + 1]):
                    for u in range(listed):
                        if rows[OPEN, u] == rows[STEP, index[e]]:
                            rows[SLOPE, u] += data[e]
                for u in range(listed):
                    for v in range(listed):
                        rows[HESSIAN + int(rows[OPEN, u]), int(rows[OPEN, v])] += (
                            rows[SLOPE, u] * rows[SLOPE, v]
                        )
            else:
                for e in range(pointer[i], pointer[i + 1]):
                    a = int(rows[STEP, index[e]])
                    if a >= 0:
                        for h in range(pointer[i], pointer[i + 1]):
                            c = int(rows[STEP, index[h]])
                            if c >= 0:
                                rows[HESSIAN + a, c] += data[e] * data[h]
        if held and not centred:
            for u in range(listed):
                a = int(rows[OPEN, u])
                for v in range(listed):
                    c = int(rows[OPEN, v])
                    rows[HESSIAN + a, c] -= rows[RHS, a] * rows[RHS, c] / free
        for u in range(listed):
            a = int(rows[OPEN, u])
            rows[SIDE, a] = 0.0
            rows[RHS, a] = 0.0


@compiled
def solve_open(rows, n, count):
    """Solve ``H d = RHS`` over the open rows of the piece by Cholesky's method, row by row."""
    factor = HESSIAN + n
    for a in range(count):
        i = int(rows[OPEN, a])
        for c in range(a + 1):
            s = 0.0
            for e in range(c):
                s += rows[factor + a, e] * rows[factor + c, e]
            s = rows[HESSIAN + i, int(rows[OPEN, c])] - s
            if c < a:
                rows[factor + a, c] = s * rows[factor + c, c]
            else:
                rows[factor + a, a] = 1.0 / math.sqrt(max(s, 1e-14 * rows[HESSIAN + i, i]))
        s = 0.0
        for e in range(a):
            s += rows[factor + a, e] * rows[STEP, e]
        rows[STEP, a] = (rows[RHS, i] - s) * rows[factor + a, a]
    for a in range(count - 1, -1, -1):
        x = rows[STEP, a] * rows[factor + a, a]
        for e in range(a):
            rows[STEP, e] -= rows[factor + a, e] * x
        rows[D, int(rows[OPEN, a])] = x


@compiled
def pivot(rows, n, m):
    """Maximise ``GAIN'd - d'Hd / 2`` over ``DOWN <= d <= UP`` by block principal pivoting.

    That guesses which entries are at a bound and corrects all wrong guesses at once. Where it does
    not end soon, more curvature is added: a shorter step, but up. Returns how many systems it took.
    """
    for attempt in range(3 * ROUNDS):
        if attempt % ROUNDS == 0:
            for k in range(m):
                rows[SIDE, k] = 0.0
                if attempt > 0:
                    rows[HESSIAN + k, k] *= 1.001 if attempt == ROUNDS else 2.0
        count = 0
        for k in range(m):
            rows[STEP, k] = 0.0
            if rows[SIDE, k] == 0.0:
                rows[OPEN, count] = k
                count += 1
            else:
                rows[STEP, k] = rows[DOWN, k] if rows[SIDE, k] < 0.0 else rows[UP, k]
        for k in range(m):
            s = 0.0
            if count < m:
                for c in range(m):
                    s += rows[HESSIAN + k, c] * rows[STEP, c]
            rows[RHS, k] = rows[GAIN, k] - s
            rows[D, k] = rows[STEP, k]
        solve_open(rows, n, count)
        ended = True
        for k in range(m):
            side = rows[SIDE, k]
            if side == 0.0:
                if rows[D, k] < rows[DOWN, k]:
                    rows[SIDE, k] = -1.0
                    ended = False
                elif rows[D, k] > rows[UP, k]:
                    rows[SIDE, k] = 1.0
                    ended = False
            else:
                slope = rows[GAIN, k]
                for a in range(m):
                    slope -= rows[HESSIAN + k, a] * rows[D, a]
                if side * slope < 0.0:
                    rows[SIDE, k] = 0.0
                    ended = False
        if ended:
            return 1 + attempt
    for k in range(m):
        d = rows[GAIN, k] / rows[HESSIAN + k, k]
        rows[D, k] = min(max(d, rows[DOWN, k]), rows[UP, k])
    return 3 * ROUNDS


@compiled
def kkt(data, indices, indptr, center, b, lower, upper, columns, blocks, total, kind, rows, x):
    """The relative KKT residual of (x, mu, theta) as the iteration has it, then as it is judged.

    Both as the affine kernel has them, a block's sum being a row. z is formed afresh in Z, the
    sizes of its terms in W.
    """
    n, p = b.size, x.size
    z, w = columns[Z], columns[W]
    largest = 0.0
    reach = 0.0
    for i in range(p):
        z[i] = columns[Y, i]
        w[i] = abs(columns[Y, i])
        largest = max(largest, abs(x[i]))
        reach = max(reach, min(max(-lower[i], upper[i]), abs(columns[Y, i]) + abs(center[i])))
    for k in range(n):
        mu = rows[MU, k]
        if mu != 0.0:
            add_row(data, indices, indptr, k, -mu, z)
            if indptr.size == 0:
                row = part(data, k * p, p)
                for i in range(p):
                    w[i] += abs(mu * row[i])
            else:
                for e in range(indptr[k], indptr[k + 1]):
                    w[indices[e]] += abs(mu * data[e])
    worst = 0.0
    judged = 0.0
    broken = 0.0
    for j in range(kind.size):
        first, last = int(blocks[FIRST, j]), int(blocks[FIRST, j + 1])
        theta = blocks[THETA, j]
        over = -total[j]
        size = abs(total[j])
        scale = size
        own = 0.0
        for i in range(first, last):
            z[i] -= theta
            w[i] += abs(theta)
            off = abs(x[i] - min(max(z[i], lower[i]), upper[i]))
            worst = max(worst, off / (w[i] + 1.0))
            broken += off
            y = abs(columns[Y, i])
            noise = NOISE * (w[i] - y) if lower[i] < z[i] and z[i] < upper[i] else 0.0
            least = max(y + abs(center[i]) + abs(x[i]), LEAST_SIZE * largest)
            judged = max(judged, (off + noise) / max(least, TINY))
            over += x[i]
            own = max(own, abs(x[i]))
        if kind[j] < math.inf and (over > 0.0 or (over < 0.0 and theta > kind[j])):
            least = LEAST_SIZE * (own if size > 0.0 else max(own, reach))
            for i in range(first, last):
                scale += max(abs(x[i]), X_FLOOR)
                size += max(abs(x[i]), least)
            worst = max(worst, abs(over) / max(scale, TINY))
            judged = max(judged, abs(over) / max(size, TINY))
    for k in range(n):
        mu, lo, hi, g = rows[MU, k], rows[LO, k], rows[HI, k], rows[G, k]
        r = max(lo - mu, mu - hi) / (1.0 + abs(mu))
        if (mu > lo and g < 0.0) or (mu < hi and g > 0.0):
            r = max(r, abs(g) / max(rows[SCALE, k], TINY))
            size = abs(b[k])
            own = 0.0
            row = part(data, k * p if indptr.size == 0 else 0, p)
            if indptr.size == 0:
                for i in range(p):
                    own = max(own, abs(x[i]) if row[i] != 0.0 else 0.0)
            else:
                for e in range(indptr[k], indptr[k + 1]):
                    own = max(own, abs(x[indices[e]]) if data[e] != 0.0 else 0.0)
            least = LEAST_SIZE * (own if size > 0.0 else max(own, reach))
            if indptr.size == 0:
                for i in range(p):
                    size += abs(row[i]) * max(abs(x[i]), least)
            else:
                for e in range(indptr[k], indptr[k + 1]):
                    size += abs(data[e]) * max(abs(x[indices[e]]), least)
            judged = max(judged, abs(g) / max(size, TINY))
        worst = max(worst, r)
        broken += r + g
    if not (broken - broken == 0.0):
        return math.nan, math.nan
    return worst, judged


@compiled
def begin(center, gradient, half, floor, weights, start, data, indices, indptr, lower, upper,
          columns, blocks, starts, total, kind, rows):  # fmt: skip
    """Set what the iteration starts from; whether that is finite."""
    n, p, k = floor.size, lower.size, starts.size
    finite = 0.0
    for i in range(p):
        y = center[i] - gradient[i] * half
        columns[Y, i] = y
        columns[Z, i] = y
        columns[W, i] = 0.0
        finite += 0.0 * y
    for j in range(k):
        blocks[FIRST, j] = starts[j]
        blocks[THETA, j] = 0.0
        blocks[SHIFT, j] = 0.0
    blocks[FIRST, k] = p
    blocks[RUN, k] = 0.0
    for j in range(k - 1, -1, -1):
        first, last = int(starts[j]), int(blocks[FIRST, j + 1])
        plain = kind[j] < 0.0
        for i in range(first, last):
            plain = plain and lower[i] == 0.0 and upper[i] >= total[j]
        blocks[ROOF, j] = math.inf if plain else -math.inf
        # How many plain simplices of three coordinates come from here on.
        blocks[RUN, j] = blocks[RUN, j + 1] + 1.0 if plain and last - first == 3 else 0.0
    blocks[SHIFT, k] = 0.0  # how often the slope was asked for, and pivoting did not end
    for r in range(n):
        rows[LO, r] = floor[r] * half
        rows[HI, r] = weights[r] * half
        norm = 0.0
        if indptr.size == 0:
            row = part(data, r * p, p)
            for i in range(p):
                norm += row[i] * row[i] if lower[i] < upper[i] else 0.0
        else:
            for e in range(indptr[r], indptr[r + 1]):
                i = indices[e]
                norm += data[e] * data[e] if lower[i] < upper[i] else 0.0
        rows[NORM, r] = norm
        mu = min(max(start[r] * half, rows[LO, r]), rows[HI, r])
        rows[MU, r] = mu
        finite += 0.0 * mu + 0.0 * norm
        if mu != 0.0:
            add_row(data, indices, indptr, r, -mu, columns[Z])
    return finite == 0.0


@compiled
def set_constants(rows, n):
    """Set the multipliers of rows without a coordinate that can move; False if one cannot hold."""
    for k in range(n):
        if rows[NORM, k] == 0.0 and rows[G, k] != 0.0:
            rows[MU, k] = rows[HI, k] if rows[G, k] > 0.0 else rows[LO, k]
            if abs(rows[MU, k]) == math.inf:
                return False
    return True


@compiled
def choose(rows, n, iteration, m):
    """Choose among the rows that should move, and set the piece that they have."""
    off = 0.0
    for a in range(m):
        k = int(rows[CHOSEN, a])
        off = max(off, abs(rows[G, k]) / max(rows[SCALE, k], TINY))
    # Far from the end some more curvature keeps the piece's maximiser near, and easy to find.
    share = max(REGULARISATION, EASE * off)
    flat = 0
    for a in range(m):
        k = int(rows[CHOSEN, a])
        norm = rows[NORM, k]
        if rows[HESSIAN + a, a] > FLAT * norm:
            rows[HESSIAN + a, a] += share * norm
            continue
        # The piece does not say how far to go: as far as if all coordinates were free, at first.
        rows[HESSIAN + a, a] += norm
        if abs(rows[G, k]) > ROW_TOLERANCE * rows[SCALE, k]:
            rows[OPEN, flat] = a
            flat += 1
    if iteration > 5 and 0 < flat and flat < m:
        # The dual is linear along these rows up to a breakpoint that may be very far. Moved
        # together with the others they would share one step length with them, and creep.
        m = flat
        for u in range(m):
            a = int(rows[OPEN, u])
            rows[CHOSEN, u] = rows[CHOSEN, a]
            for v in range(m):
                rows[HESSIAN + u, v] = rows[HESSIAN + a, int(rows[OPEN, v])]
    for a in range(m):
        k = int(rows[CHOSEN, a])
        rows[GAIN, a] = rows[G, k]
        rows[DOWN, a] = rows[LO, k] - rows[MU, k]
        rows[UP, a] = rows[HI, k] - rows[MU, k]
    return m


@compiled
def advance(data, indices, indptr, b, lower, upper, total, kind, columns, blocks, rows, m):
    """How far to go along d: as far as the dual rises; 0 if it does not, infinity if for ever.

    W is set to ``A'd``, and the multipliers move.
    """
    start = 0.0
    offset = 0.0
    noise = 0.0
    limit = math.inf
    w = columns[W]
    for i in range(lower.size):
        w[i] = 0.0
    for a in range(m):
        k = int(rows[CHOSEN, a])
        d = rows[D, a]
        start += d * rows[GAIN, a]
        offset += d * b[k]
        noise += NOISE * abs(d) * rows[SCALE, k]
        if d > 0.0:
            limit = min(limit, rows[UP, a] / max(d, TINY))
        elif d < 0.0:
            limit = min(limit, rows[DOWN, a] / min(d, -TINY))
        if d != 0.0:
            add_row(data, indices, indptr, k, d, w)
    if not (start > 0.0):
        return 0.0
    t = go_far(columns, blocks, lower, upper, total, kind, start, offset, noise, max(limit, 1.0))
    if t < math.inf:
        for a in range(m):
            k = int(rows[CHOSEN, a])
            step = t * rows[D, a]
            if step >= rows[UP, a]:
                rows[MU, k] = rows[HI, k]
            elif step <= rows[DOWN, a]:
                rows[MU, k] = rows[LO, k]
            else:
                rows[MU, k] += step
    return t


@compiled
def solve_instance(
    n, p, k, m, q, center_, gradient_, alpha, floor_, weights_, start_, data_, indices_, indptr_,
    b_, lower_, upper_, starts_, total_, kind_, steps, memory, x_, multipliers_,
):  # fmt: skip
    center, gradient = vector(center_, p), vector(gradient_, p)
    lower, upper, x = vector(lower_, p), vector(upper_, p), vector(x_, p)
    floor, weights, b = vector(floor_, n), vector(weights_, n), vector(b_, n)
    multipliers, start, starts = vector(multipliers_, n), vector(start_, n), vector(starts_, k)
    total, kind = vector(total_, k), vector(kind_, k)
    data, indices, indptr = vector(data_, m), words(indices_, m if q > 0 else 0), words(indptr_, q)
    columns, free = matrix(memory, LINES, p), words(memory + 8 * LINES * p, p)
    own = memory + 8 * (LINES + 1) * p
    blocks = matrix(own, BLOCK_LINES, k + 1)
    own += 8 * BLOCK_LINES * (k + 1)
    rows = matrix(own, HESSIAN + 2 * n, n)
    own += 8 * (HESSIAN + 2 * n) * n
    turned, index = vector(own, m), words(own + 8 * m, m)
    pointer = words(own + 16 * m, p + 1 if q > 0 else 0)
    if not begin(
        center, gradient, 0.5 / alpha, floor, weights, start, data, indices, indptr, lower, upper,
        columns, blocks, starts, total, kind, rows,
    ):  # fmt: skip
        return math.nan
    t = 0.0
    fresh = 0
    judged = math.inf
    iteration = 0
    stuck = False
    while True:
        place(columns, blocks, lower, upper, total, kind, t, x)
        set_values(data, indices, indptr, b, x, rows)
        if iteration == 0 and not set_constants(rows, n):
            return math.inf
        count, settled = list_moving(rows, n)
        spent = max(1.0 * iteration, blocks[SHIFT, k] / LOOKS)
        if settled or stuck or spent >= steps:
            residual, judged = kkt(
                data, indices, indptr, center, b, lower, upper, columns, blocks, total, kind,
                rows, x,
            )  # fmt: skip
            if residual <= REFRESH_ABOVE or fresh == 2 or not settled:
                break
            # Long detours leave rounding in z. It was just formed afresh: on from there.
            fresh += 1
            t = 0.0
            continue
        if q == 0:
            curvature_of_dense(data, lower, upper, columns, blocks, kind, rows, count, free, own)
        else:
            if iteration == 0:
                turn(data, indices, indptr, turned, index, pointer)
            curvature_of_sparse(
                turned, index, pointer, lower, upper, columns, blocks, kind, rows, n, count
            )
        count = choose(rows, n, iteration, count)
        blocks[SHIFT, k] += 0.25 * max(pivot(rows, n, count) - ROUNDS, 0)
        t = advance(
            data, indices, indptr, b, lower, upper, total, kind, columns, blocks, rows, count
        )
        if t == math.inf:
            return math.inf
        stuck = t == 0.0
        iteration += 1
    give_multipliers(alpha, floor, weights, rows, multipliers)
    return judged


@batch_kernel("(p),(p),(),(n),(n),(n),(m),(e),(q),(n),(p),(p),(k),(k),(k),(),(s)->(p),(n),()?")
def simplices_step(sizes, at):
    """Affine rows on blocks of coordinates: center, gradient, alpha, floor, weights, multipliers
    to start from, A's entries, b, lower, upper, the blocks' first coordinates, totals and kinds,
    Newton steps, memory; x, multipliers, residual. The largest residual is returned.

    Of a sparse A the entries by rows, their indices and pointers, which are whole numbers seen as
    floats; of a dense one there are none of these. A block's kind is the least multiplier of its
    sum: minus infinity for an equality, 0 for at most, infinity where there is no such row.
    """
    p, n, m, e, q, k, s = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6]
    own = 2 * m + p + 1 if q > 0 else n * (p + 1)
    needed = (LINES + 1) * p + BLOCK_LINES * (k + 1) + (HESSIAN + 2 * n) * n + own
    memory = memory_of(at[16], s, at[20], needed)
    if memory == 0 or (q == 0 and m != n * p) or (q > 0 and (q != n + 1 or e != m)):
        return math.nan
    residual = solve_instance(
        n, p, k, m, q, at[0], at[1], vector(at[2], 1)[0], at[3], at[4], at[5], at[6], at[7],
        at[8], at[9], at[10], at[11], at[12], at[13], at[14], vector(at[15], 1)[0], memory,
        at[17], at[18],
    )  # fmt: skip
    if at[19] != 0:
        vector(at[19], 1)[0] = residual
    return residual
