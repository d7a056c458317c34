"""Affine rows on a product of simplices: the dual Newton method, the sums eliminated.

Given the multipliers mu of the rows, x is the projection of ``y - A'mu``, block by block, by
thresholds theta. So the dual has a variable for each row and none for a block.

``z = y - A'mu - theta`` is carried along by increments, thresholds included, for the same reason as
on a box: where y is huge, x and its sums have the digits of x and not those of y.
"""

import math

from coldq.compiled import batch_kernel, compiled, inlined, matrix, vector
from coldq.compiled.calls import words
from coldq.solver.constants import (
    LEAST_SIZE, NOISE, REGULARISATION, ROW_TOLERANCE, TINY, TOLERANCE, X_FLOOR,
)  # fmt: skip
from coldq.solver.kernels.block_pieces import (
    FEW, LEAST, ROUNDS, add_rows, curvature_of_dense, curvature_of_sparse, near_lines, pivot,
    set_values, turn,
)  # fmt: skip
from coldq.solver.kernels.downhill import FEW_FOR_FACES, descend, downhill_size
from coldq.solver.kernels.piece import (
    CHOSEN, DOWN, GAIN, HESSIAN, HI, LO, MU, NORM, OPEN, SCALE, SOFT, STEP, UP,
    D, G, give_multipliers, list_moving, memory_of, move_chosen, set_room, told,
)  # fmt: skip
from coldq.solver.kernels.thresholds import (
    BLOCK_LINES, FIRST, LINES, ROOF, RUN, SHIFT, THETA, W, Y, Z, go_far, part, place,
)  # fmt: skip
from coldq.solver.kernels.tiles import padded

REFRESH_ABOVE = 1e-12  # the residual above which z is formed afresh before the answer is given
FLAT = 1e-9  # of a row's squared length: with less curvature the piece does not say how far to go
EASE = 1e-3  # of the worst row's share: how much curvature is added to the piece
HASTY = 8  # rows: with more, the first step is one that costs little
HASTIER = 15  # dense rows: the same of a second such step
HURRIED = 30  # steps: of no more, half must bring the worst row halfway, and few may be short
SHORT = 0.1  # of the way that the piece says: where steps are shorter, its neighbours are many
FEW_SHORT = 3
FEW_SUMS, FEW_NUMBERS = 8, 60_000  # blocks, and numbers of dense rows, with which faces are small
MANY = 64  # rows that move at once in any case
SINGLE = 8  # rows that move at once even if they depend on each other
HALVINGS = 30
LOOKS = 5  # at the slope, that a Newton step may take on average


@inlined
def most_of(n, p):
    """How many rows move at once: no more of them are independent than there are coordinates."""
    return min(n, max(p, MANY))


@compiled
def scratch_size(n, p, k, entries, sparse):
    """How many numbers an instance needs to work in; `entries` of A, or of its nonzeros."""
    h = padded(most_of(n, p))
    own = 2 * entries + p + 9 if sparse else h * (near_lines(p) + 1) + 8
    own += (2 * h + 2) * h + 2 * FEW
    if fit_downhill(n, p, k, sparse):
        own = max(own, downhill_size(n, p, k) + 8)
    return (LINES + 1) * p + BLOCK_LINES * (k + 1) + HESSIAN * n + own


@inlined
def fit_downhill(n, p, k, sparse):
    """Whether dense rows may go from face to face, as far as their memory is concerned."""
    return not sparse and k <= FEW_SUMS and n * p <= FEW_NUMBERS and p <= 8 * n


@inlined
def go_downhill(n, p, kind, sparse):
    """Whether they do so where they clash: in few coordinates, or in blocks with sums, of whose
    coordinates few are free."""
    summed = p <= FEW_FOR_FACES
    for j in range(kind.size):
        summed = summed or kind[j] < math.inf
    return summed and fit_downhill(n, p, kind.size, sparse)


@compiled
def count_free(lower, upper, x):
    """How many coordinates are between their bounds: no more rows are independent of each other."""
    free = 0
    for i in range(x.size):
        free += 1 if lower[i] < x[i] and x[i] < upper[i] else 0
    return free


@compiled
def keep_deepest(rows, m, most):
    """Keep so many of the m rows that should move: first those that hold x back, then those that x
    violates most, for the length that they have, and if these tie the first ones."""
    deepest = 0.0
    for a in range(m):
        k = int(rows[CHOSEN, a])
        rows[STEP, a] = abs(rows[G, k]) / math.sqrt(rows[NORM, k])
        deepest = max(deepest, rows[STEP, a])
    for a in range(m):
        k = int(rows[CHOSEN, a])
        held = rows[LO, k] < rows[MU, k] and rows[MU, k] < rows[HI, k]
        rows[STEP, a] += deepest if held else 0.0
    least, enough = 0.0, 2.0 * deepest
    for _ in range(HALVINGS):
        middle = 0.5 * (least + enough)
        count = 0
        for a in range(m):
            count += 1 if rows[STEP, a] > middle else 0
        if count > most:
            least = middle
        else:
            enough = middle
    room, kept = most, 0
    for a in range(m):
        room -= 1 if rows[STEP, a] > enough else 0
    for a in range(m):
        deep = rows[STEP, a] > enough
        if deep or room > 0:
            rows[CHOSEN, kept] = rows[CHOSEN, a]
            kept += 1
            room -= 0 if deep else 1
    return kept


@compiled
def size_of_terms(data, indices, indptr, k, size, x, reach):
    """What a row's value is judged by: the size given, of b, and of the terms of the row."""
    p = x.size
    own = 0.0
    if indptr.size == 0:
        row = part(data, k * p, p)
        for i in range(p):
            own = max(own, abs(x[i]) if row[i] != 0.0 else 0.0)
        least = LEAST_SIZE * (own if size > 0.0 else max(own, reach))
        for i in range(p):
            size += abs(row[i]) * max(abs(x[i]), least)
    else:
        for e in range(indptr[k], indptr[k + 1]):
            own = max(own, abs(x[indices[e]]) if data[e] != 0.0 else 0.0)
        least = LEAST_SIZE * (own if size > 0.0 else max(own, reach))
        for e in range(indptr[k], indptr[k + 1]):
            size += abs(data[e]) * max(abs(x[indices[e]]), least)
    return size


@compiled
def kkt(data, indices, indptr, center, b, lower, upper, columns, blocks, total, kind, rows, x):
    """The relative KKT residual of (x, mu, theta) as the iteration has it, then as it is judged.

    Both as the affine kernel has them, a block's sum being a row. z is formed afresh in Z, the
    sizes of its terms in W.
    """
    n, p = b.size, x.size
    z, w, y = columns[Z], columns[W], columns[Y]
    largest = 0.0
    reach = 0.0
    for i in range(p):
        z[i] = y[i]
        w[i] = abs(y[i])
        largest = max(largest, abs(x[i]))
        reach = max(reach, min(max(-lower[i], upper[i]), max(abs(y[i]), abs(center[i]))))
    add_rows(data, indices, indptr, rows, MU, -1.0, z, w, True)
    worst = 0.0
    judged = 0.0
    broken = 0.0
    for j in range(kind.size):
        first = int(blocks[FIRST, j])
        count = int(blocks[FIRST, j + 1]) - first
        its_z, its_w, its_x = part(z, first, count), part(w, first, count), part(x, first, count)
        low, high = part(lower, first, count), part(upper, first, count)
        its_y, its_center = part(y, first, count), part(center, first, count)
        theta = blocks[THETA, j]
        over = -total[j]
        size = abs(total[j])
        scale = size
        own = 0.0
        for i in range(count):
            v = its_z[i] - theta
            terms = its_w[i] + abs(theta)
            off = abs(its_x[i] - min(max(v, low[i]), high[i]))
            worst = max(worst, off / (terms + 1.0))
            broken += off
            y_size = abs(its_y[i])
            noise = NOISE * (terms - y_size) if low[i] < v and v < high[i] else 0.0
            least = max(y_size + abs(its_center[i]) + abs(its_x[i]), LEAST_SIZE * largest)
            judged = max(judged, (off + noise) / max(least, TINY))
            over += its_x[i]
            own = max(own, abs(its_x[i]))
            its_z[i] = v
            its_w[i] = terms
        if kind[j] < math.inf and (over > 0.0 or (over < 0.0 and theta > kind[j])):
            least = LEAST_SIZE * (own if size > 0.0 else max(own, reach))
            for i in range(count):
                scale += max(abs(its_x[i]), X_FLOOR)
                size += max(abs(its_x[i]), least)
            worst = max(worst, abs(over) / max(scale, TINY))
            judged = max(judged, abs(over) / max(size, TINY))
    for k in range(n):
        mu, lo, hi, g = rows[MU, k], rows[LO, k], rows[HI, k], rows[G, k]
        r = max(lo - mu, mu - hi) / (1.0 + abs(mu))
        if (mu > lo and g < 0.0) or (mu < hi and g > 0.0):
            r = max(r, abs(g) / max(rows[SCALE, k], TINY))
            size = abs(b[k])
            # Its share is no larger than that of b alone: if that says nothing new, nor does it.
            if not (abs(g) <= judged * size):
                size = size_of_terms(data, indices, indptr, k, size, x, reach)
                judged = max(judged, abs(g) / max(size, TINY))
        worst = max(worst, r)
        broken += r + g
    if not (abs(broken) < math.inf):
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
            row, size = part(data, r * p, p), 0.0
            for i in range(p):
                entry, least, most = row[i], lower[i], upper[i]  # all at once: no branch
                norm += entry * entry if least < most else 0.0
                size += abs(entry)
            rows[LEAST, r] = X_FLOOR * size
        else:
            for e in range(indptr[r], indptr[r + 1]):
                i = indices[e]
                norm += data[e] * data[e] if lower[i] < upper[i] else 0.0
        rows[NORM, r] = norm
        mu = min(max(start[r] * half, rows[LO, r]), rows[HI, r])
        rows[MU, r] = mu
        finite += 0.0 * mu + 0.0 * norm
    add_rows(data, indices, indptr, rows, MU, -1.0, columns[Z], columns[Z], False)
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
def hurry(rows, m):
    """Set the first step, from multipliers that nobody chose: each row's as if it were alone.

    A piece so far away says little of where to go; its curvature would cost more than that.
    """
    for a in range(m):
        k = int(rows[CHOSEN, a])
        set_room(rows, a, k)
        d = rows[G, k] / rows[NORM, k]
        rows[D, a] = min(max(d, rows[DOWN, a]), rows[UP, a])


@compiled
def choose(rows, H, iteration, m):
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
        rows[SOFT, a] = 0.0
        if H[a, a] > FLAT * norm:
            H[a, a] += share * norm
            rows[SOFT, a] = share * norm
            continue
        # The piece does not say how far to go: as far as if all coordinates were free, at first.
        H[a, a] += norm
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
            rows[SOFT, u] = rows[SOFT, a]
            for v in range(m):
                H[u, v] = H[a, int(rows[OPEN, v])]
    for a in range(m):
        set_room(rows, a, int(rows[CHOSEN, a]))
    return m, off


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
    for k in range(b.size):
        rows[STEP, k] = 0.0
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
        rows[STEP, k] = d
    if not (start > 0.0):
        return 0.0
    add_rows(data, indices, indptr, rows, STEP, 1.0, w, w, False)
    t = go_far(columns, blocks, lower, upper, total, kind, start, offset, noise, max(limit, 1.0))
    if t < math.inf:
        move_chosen(rows, m, t)
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
    rows, h = matrix(own, HESSIAN, n), padded(most_of(n, p))
    own = (own + 8 * HESSIAN * n + 63) // 64 * 64  # no tile in two of the cache's lines
    aside = own
    H, factor, answer = matrix(own, h, h), own + 8 * h * h, vector(own + 16 * h * h, h)
    more = vector(own + 16 * h * h + 8 * h, h)
    own += 8 * (2 * h + 2) * h
    table = words(own, 2 * FEW)
    own += 16 * FEW
    turned, index = vector(own, m), words(own + 8 * m, m)
    pointer = words(own + 16 * m, p + 1 if q > 0 else 0)
    if not begin(
        center, gradient, 0.5 / alpha, floor, weights, start, data, indices, indptr, lower, upper,
        columns, blocks, starts, total, kind, rows,
    ):  # fmt: skip
        return math.nan
    started = False
    for r in range(n):
        started = started or start[r] != 0.0
    t = 0.0
    fresh = 0
    judged = math.inf
    iteration = -1
    first = 0.0
    short = 0
    stuck = False
    downhill = not started and go_downhill(n, p, kind, q > 0)
    patience = 1 if downhill else FEW_SHORT
    while True:
        place(columns, blocks, lower, upper, total, kind, t, x)
        set_values(data, indices, indptr, b, x, rows, free)
        if iteration < 1 and not set_constants(rows, n):
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
        if iteration == -1 and q > 0:
            turn(data, indices, indptr, turned, index, pointer)
        hasty = count > HASTY if iteration < 0 else iteration == 0 and count > HASTIER and q == 0
        if hasty and not started:
            hurry(rows, count)
        else:
            most = most_of(n, p)
            if not started:
                most = min(most, max(count_free(lower, upper, x), SINGLE))
            if count > most:
                count = keep_deepest(rows, count, most)
            if q == 0:
                curvature_of_dense(
                    data, lower, upper, columns, blocks, kind, rows, count, free,
                    table, own, H,
                )  # fmt: skip
            else:
                curvature_of_sparse(
                    turned, index, pointer, lower, upper, columns, blocks, kind, rows, n, count,
                    table, factor, H,
                )  # fmt: skip
            count, off = choose(rows, H, iteration, count)
            first = off if iteration <= 1 else first
            half = iteration == int(steps) // 2
            if half and steps <= HURRIED and not started and off > 0.5 * first:
                steps = 0.0
            systems = pivot(rows, count, H, factor, answer, more, off)
            blocks[SHIFT, k] += 0.25 * max(systems - ROUNDS, 0)
        t = advance(
            data, indices, indptr, b, lower, upper, total, kind, columns, blocks, rows, count
        )
        if t == math.inf:
            return math.inf
        stuck = t == 0.0
        short += 1 if t < SHORT and iteration > 0 else 0
        if short == patience and (downhill or steps <= HURRIED) and not started:
            steps = 0.0  # the end is not near, and others are waiting
        iteration += 1
    kept = settled or started
    if (downhill or kept) and fit_downhill(n, p, k, q > 0) and not (judged <= TOLERANCE):
        found = descend(
            matrix(data_, n, p), b, center, gradient, alpha, floor, weights, rows[LO], rows[HI],
            columns[Y], lower, upper, blocks[FIRST], total, kind, x, rows[MU], kept, multipliers,
            aside,
        )  # fmt: skip
        if found <= TOLERANCE:
            return found
        place(columns, blocks, lower, upper, total, kind, 0.0, x)
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
    memory = memory_of(at[16], s, at[20], scratch_size(n, p, k, m, q > 0))
    if memory == 0 or (q == 0 and m != n * p) or (q > 0 and (q != n + 1 or e != m)):
        return math.nan
    residual = solve_instance(
        n, p, k, m, q, at[0], at[1], vector(at[2], 1)[0], at[3], at[4], at[5], at[6], at[7],
        at[8], at[9], at[10], at[11], at[12], at[13], at[14], vector(at[15], 1)[0], memory,
        at[17], at[18],
    )  # fmt: skip
    return told(at[19], residual)
