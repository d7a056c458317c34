"""The quadratic piece of the dual of affine rows on a product of simplices, and its maximum.

Its curvature is ``A_F (I - 11'/f) A_F'`` over the f free coordinates F of each block. A is dense,
or sparse by rows; that is turned once, and the curvature then costs its nonzeros.
"""

import math

from coldq.compiled import (
    address_of, compiled, eight, fourfold, fused, gathered, hidden, inlined, lane_at, larger,
    length, put_lane, room, vector,
)  # fmt: skip
from coldq.compiled.calls import LOW_32, words
from coldq.solver.constants import ROW_TOLERANCE, TINY, X_FLOOR
from coldq.solver.kernels.piece import (
    CHOSEN, DOWN, GAIN, OPEN, RHS, SCALE, SIDE, SLOPE, SOFT, STEP, UP, D, G,
)  # fmt: skip
from coldq.solver.kernels.thresholds import FIRST, OLD, OWN, THETA, Z, part
from coldq.solver.kernels.tiles import (
    NEAR, add_squares, clear, combine, mirror, solve_again, solve_tiles, take_squares,
)  # fmt: skip

NEARBY = 0.2  # of the terms of a row: no farther away is a step likely to be the last
SURE = 2  # systems: nor where pivoting takes more
REFINEMENTS = 3
ROUNDS = 6  # of pivoting, most of which end after two
FEW = 8  # entries of a block that are listed, and the rows that go side by side
SELDOM = 8  # times the coordinates that are not zero: with more there are, only those are read
LEAST = SLOPE  # of dense rows: the size of a row's terms where x is zero
FOUR_ROWS = 104  # numbers that the sums of four rows and their terms take
SOME = 3  # a block that is in one of so many of the moving rows has its mean taken by tiles


@compiled
def add_rows(data, indices, indptr, rows, line, by, out, sizes, sized):
    """Add the rows of A to `out`, each times a number in that line and `by`; and the sizes of all
    terms to `sizes`, if they are wanted."""
    n, p = rows.shape[1], out.size
    if indptr.size > 0:
        for k in range(n):
            c = by * rows[line, k]
            if c != 0.0:
                for e in range(indptr[k], indptr[k + 1]):
                    out[indices[e]] += c * data[e]
                if sized:
                    for e in range(indptr[k], indptr[k + 1]):
                        sizes[indices[e]] += abs(c * data[e])
        return
    listed = words(address_of(rows[OPEN], 0), n)
    count = 0
    for k in range(n):
        listed[count] = k
        count += 1 if rows[line, k] != 0.0 else 0
    for a in range(0, count, 4):
        k1, k2 = listed[a], listed[min(a + 1, count - 1)]
        k3, k4 = listed[min(a + 2, count - 1)], listed[min(a + 3, count - 1)]
        c1, c2 = by * rows[line, k1], by * rows[line, k2] if a + 1 < count else 0.0
        c3 = by * rows[line, k3] if a + 2 < count else 0.0
        c4 = by * rows[line, k4] if a + 3 < count else 0.0
        one, two, three, four = (
            part(data, k1 * p, p), part(data, k2 * p, p), part(data, k3 * p, p),
            part(data, k4 * p, p),
        )  # fmt: skip
        for i in range(p):
            out[i] += (c1 * one[i] + c2 * two[i]) + (c3 * three[i] + c4 * four[i])
        if sized:
            for i in range(p):
                s = abs(c1 * one[i]) + abs(c2 * two[i])
                sizes[i] += s + (abs(c3 * three[i]) + abs(c4 * four[i]))


@compiled
def set_values(data, indices, indptr, b, x, rows, used):
    """The dual's gradient, and the size of the terms that each of its entries is the sum of."""
    n, p = b.size, x.size
    if indptr.size > 0:
        for k in range(n):
            value = 0.0
            size = 0.0
            for e in range(indptr[k], indptr[k + 1]):
                own = x[hidden(indices[e])]  # one by one: processors gather slowly
                value += data[e] * own
                size += abs(data[e]) * max(abs(own), X_FLOOR)
            rows[G, k] = value - b[k]
            rows[SCALE, k] = size + abs(b[k])
        return
    nonzero = 0.0
    for i in range(p):
        nonzero += 1.0 if x[i] != 0.0 else 0.0
    if SELDOM * nonzero < p:
        set_from_few(data, b, x, rows, used)
        return
    for k in range(0, n, 4):  # four at a time, with the last ones again at the end
        first = max(min(k, n - 4), 0)
        second, third, fourth = min(first + 1, n - 1), min(first + 2, n - 1), min(first + 3, n - 1)
        at = (
            address_of(data, first * p), address_of(data, second * p), address_of(data, third * p),
            address_of(data, fourth * p),
        )  # fmt: skip
        if room() >= FOUR_ROWS:
            g1, g2, g3, g4, s1, s2, s3, s4 = row_sums(at, address_of(x, 0), 0, p // 8, eight())
        else:
            g1, g2, s1, s2 = two_sums(at[0], at[1], address_of(x, 0), p // 8, eight())
            g3, g4, s3, s4 = two_sums(at[2], at[3], address_of(x, 0), p // 8, eight())
        h1, h2, h3, h4, t1, t2, t3, t4 = row_sums(at, address_of(x, 0), p // 8 * 8, p, 0.0)
        put_row(rows, first, fourfold(g1) + h1, fourfold(s1) + t1, b)
        put_row(rows, second, fourfold(g2) + h2, fourfold(s2) + t2, b)
        put_row(rows, third, fourfold(g3) + h3, fourfold(s3) + t3, b)
        put_row(rows, fourth, fourfold(g4) + h4, fourfold(s4) + t4, b)


@compiled
def set_from_few(data, b, x, rows, used):
    """The same of dense rows and an x that is mostly zero."""
    n, p, count = b.size, x.size, 0
    for i in range(p):
        used[count] = i
        count += 1 if x[i] != 0.0 else 0
    for k in range(n):
        row, value, size = part(data, k * p, p), 0.0, rows[LEAST, k]
        for c in range(count):
            i = hidden(used[c])
            value += row[i] * x[i]
            size += abs(row[i]) * max(abs(x[i]) - X_FLOOR, 0.0)
        put_row(rows, k, value, size, b)


@inlined
def row_sums(at, x, begin, end, like):
    """Of four rows the sums of some terms, and those of their sizes."""
    g1 = g2 = g3 = g4 = s1 = s2 = s3 = s4 = like
    for r in range(begin, end):
        own = lane_at(x, r, like)
        size = larger(length(own), X_FLOOR)
        one, two = lane_at(at[0], r, like), lane_at(at[1], r, like)
        three, last_one = lane_at(at[2], r, like), lane_at(at[3], r, like)
        g1, g2 = fused(one, own, g1), fused(two, own, g2)
        g3, g4 = fused(three, own, g3), fused(last_one, own, g4)
        s1, s2 = fused(length(one), size, s1), fused(length(two), size, s2)
        s3, s4 = fused(length(three), size, s3), fused(length(last_one), size, s4)
    return g1, g2, g3, g4, s1, s2, s3, s4


@inlined
def two_sums(first, second, x, end, like):
    """The same of two rows."""
    g1 = g2 = s1 = s2 = like
    for r in range(end):
        own = lane_at(x, r, like)
        size = larger(length(own), X_FLOOR)
        one, two = lane_at(first, r, like), lane_at(second, r, like)
        g1, g2 = fused(one, own, g1), fused(two, own, g2)
        s1, s2 = fused(length(one), size, s1), fused(length(two), size, s2)
    return g1, g2, s1, s2


@inlined
def put_row(rows, k, value, size, b):
    rows[G, k], rows[SCALE, k] = value - b[k], size + abs(b[k])


@compiled
def turn(data, indices, indptr, data_to, index_to, pointer_to):
    """The same matrix by columns; with each row comes its column, above the lowest 32 bits."""
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
            index_to[to] = k + (indices[e] << 32)
            pointer_to[indices[e]] = to + 1
    for i in range(p, 0, -1):
        pointer_to[i] = pointer_to[i - 1]
    pointer_to[0] = 0


@inlined
def near_lines(p):
    """How many lines of differences there are at a time."""
    return min(p, NEAR)


@compiled
def curvature_of_dense(data, lower, upper, columns, blocks, kind, rows, m, free, table, B, H):
    """The piece's Hessian of the chosen rows, by their free entries, centred in every block.

    Of f free coordinates with a fixed sum f - 1 differences are left, Helmert's: that of the j-th
    to the mean of those before it, times the root of j / (j + 1). OWN has what the j-th counts in
    that and OLD what those before it count, OWN being 0 where there is none before it. B has a
    difference in each line, of all chosen rows, and in one more the sums so far.
    """
    z, p = columns[Z], lower.size
    old, own = columns[OLD], columns[OWN]
    f = 0
    for j in range(kind.size):
        held = kind[j] < 0.0 or (kind[j] == 0.0 and blocks[THETA, j] > 0.0)
        count = 0.0 if held else -1.0
        more = 1.0 if held else 0.0
        first = int(blocks[FIRST, j])
        size = int(blocks[FIRST, j + 1]) - first
        at, low, high = part(z, first, size), part(lower, first, size), part(upper, first, size)
        for i in range(size):
            free[f] = first + i
            own[f] = count
            here, least, most = at[i], low[i], high[i]  # all at once: nothing to be foretold
            inside = least < here and here < most
            count += more if inside else 0.0
            f += 1 if inside else 0
        f -= 1 if count == 1.0 else 0  # one alone has no difference to any
    for c in range(f):
        nth = own[c]
        root = 1.0 / math.sqrt(max(nth * (nth + 1.0), 1.0))
        old[c] = root if nth > 0.0 else 0.0
        own[c] = -nth * root
    to_H, h = address_of(H[0], 0), H.shape[1]
    sums = B + 8 * h * near_lines(p)
    for c in range(h // 8):
        put_lane(sums, c, eight())
    clear(to_H, h, m)
    last = 0
    while last < f:  # some lines at a time, which stay near
        first, width = last, 0
        while last < f and width < NEAR:
            width += 1 if own[last] != 0.0 else 0
            last += 1
        for a in range(0, m, 8):  # eight rows at a time, the last one perhaps again and again
            for lane in range(8):
                k = int(rows[CHOSEN, min(a + lane, m - 1)])
                table[lane] = address_of(data, k * p)
            total = lane_at(sums + 8 * a, 0, eight())
            to = B + 8 * a
            for c in range(first, last):
                entry = gathered(address_of(table, 0), free[c], total)
                put_lane(to, 0, fused(old[c], total, own[c] * entry))
                total = fused(1.0 if old[c] > 0.0 else 0.0, total, entry)
                to += 8 * h if own[c] != 0.0 else 0
            put_lane(sums + 8 * a, 0, total)
        add_squares(B, to_H, h, 0, width, m)
    mirror(to_H, h, m)


@compiled
def curvature_of_sparse(
    data, index, pointer, lower, upper, columns, blocks, kind, rows, n, m, table, B, H
):  # fmt: skip
    """The same of a matrix by columns; B has room for as many lines as H."""
    z, free, place = columns[Z], columns[OLD], words(address_of(rows[STEP], 0), n)
    to_H, h = address_of(H[0], 0), H.shape[1]
    for i in range(lower.size):
        free[i] = 1.0 if lower[i] < z[i] and z[i] < upper[i] else 0.0
    for k in range(n):
        place[k] = -1
    for a in range(m):
        place[int(rows[CHOSEN, a])] = a
        rows[SIDE, a] = 0.0
        rows[RHS, a] = 0.0
    clear(to_H, h, m)
    width = 0
    for j in range(kind.size):
        held = kind[j] < 0.0 or (kind[j] == 0.0 and blocks[THETA, j] > 0.0)
        first = int(blocks[FIRST, j])
        size = int(blocks[FIRST, j + 1]) - first
        begin, end = pointer[first], pointer[first + size]
        if begin == end:
            continue
        its_free = part(free, first, size)
        count = 0.0
        for i in range(size):
            count += its_free[i]
        if count < (2.0 if held else 1.0):
            continue
        if end - begin <= FEW and add_few(
            data, index, place, free, begin, end, 1.0 / count if held else 0.0, table, H
        ):
            continue
        listed = add_block(data, index, pointer, first, size, its_free, place, rows, m, H)
        if held and SOME * listed > m:
            put_mean(rows, m, count, h, B + 8 * h * width)
            width += 1
            if width == min(NEAR, h):
                take_squares(B, to_H, h, width, m)
                width = 0
        elif held:
            take_mean(rows, listed, count, H)
        for u in range(listed):
            a = int(rows[OPEN, u])
            rows[SIDE, a] = 0.0
            rows[RHS, a] = 0.0
    take_squares(B, to_H, h, width, m)
    mirror(to_H, h, m)


@inlined
def add_few(data, index, place, free, begin, end, share, table, H):
    """Add to H what a block has with few entries; False if two of them are in the same row.

    Of these only a difference counts, which may be small.
    """
    few = 0
    for e in range(begin, end):
        own = words(address_of(index, e), 1)[0]
        a = place[own & LOW_32]
        table[few] = a
        table[FEW + few] = e
        few += 1 if a >= 0 and free[own >> 32] > 0.0 else 0
    if few == 1:
        entry = data[table[FEW]]
        H[table[0], table[0]] += entry * entry * (1.0 - share)
        return True
    for u in range(few):
        for v in range(u):
            if table[u] == table[v]:
                return False
    for u in range(few):
        entry, column, line = data[table[FEW + u]], index[table[FEW + u]] >> 32, H[table[u]]
        for v in range(few):
            same = 1.0 if index[table[FEW + v]] >> 32 == column else 0.0
            if table[v] >= table[u]:
                line[table[v]] += entry * data[table[FEW + v]] * (same - share)
    return True


@compiled
def add_block(data, index, pointer, first, size, free, place, rows, m, H):
    """Add to the upper half of H what the columns of any block have, and list in OPEN the rows that
    they are in: how many. RHS has their sums."""
    listed, column = 0, words(address_of(rows[SLOPE], 0), m)
    for i in range(size):
        if not (free[i] > 0.0):
            continue
        count = 0
        for e in range(pointer[first + i], pointer[first + i + 1]):
            a = place[index[e] & LOW_32]
            if a >= 0:
                column[count] = e
                count += 1
                if rows[SIDE, a] == 0.0:
                    rows[SIDE, a] = 1.0
                    rows[OPEN, listed] = a
                    listed += 1
                rows[RHS, a] += data[e]
        for u in range(count):  # in the order of rows, and so of places
            line, entry = H[place[index[column[u]] & LOW_32]], data[column[u]]
            for v in range(u, count):
                line[place[index[column[v]] & LOW_32]] += entry * data[column[v]]
    return listed


@compiled
def take_mean(rows, listed, count, H):
    """Take from it what the mean of the block's columns has."""
    for u in range(listed):
        a = int(rows[OPEN, u])
        line, share = H[a], rows[RHS, a] / count
        for v in range(listed):
            c = int(rows[OPEN, v])
            if c >= a:
                line[c] -= share * rows[RHS, c]


@compiled
def put_mean(rows, m, count, h, to):
    """Put down a line whose squares are the same."""
    root, line = 1.0 / math.sqrt(count), vector(to, h)
    for a in range(m):
        line[a] = root * rows[RHS, a]
    for a in range(m, h):
        line[a] = 0.0


@compiled
def refine(rows, h, m, order, count, H, L, answer, more, off):
    """Take back from d what the curvature that was added changed, where that is little.

    Once more with the factor costs far less than the Newton step that would be needed.
    """
    for _ in range(REFINEMENTS):
        left = 0.0
        for c in range((count + 8) // 8 * 8):
            more[c] = 0.0
        combine(address_of(H[0], 0), h, m, m, address_of(rows[D], 0), address_of(answer, 0))
        for c in range(count):
            k = order[c]
            s = rows[GAIN, k] + rows[SOFT, k] * rows[D, k] - answer[k]
            more[c] = s
            left = max(left, abs(s) / max(rows[SCALE, int(rows[CHOSEN, k])], TINY))
        if not (left < 0.01 * off) or left < 0.1 * ROW_TOLERANCE:
            return
        off = left
        solve_again(L, h, count, address_of(more, 0), address_of(answer, 0))
        for c in range(count):
            k = order[c]
            rows[D, k] = min(max(rows[D, k] + answer[c], rows[DOWN, k]), rows[UP, k])


@compiled
def pivot(rows, m, H, L, answer, more, off):
    """Maximise ``GAIN'd - d'Hd / 2`` over ``DOWN <= d <= UP`` by block principal pivoting.

    That guesses which entries are at a bound and corrects all wrong guesses at once. Where it does
    not end soon, more curvature is added: a shorter step, but up. Returns how many systems it took.
    """
    h, order = H.shape[1], words(address_of(rows[OPEN], 0), m)
    for attempt in range(3 * ROUNDS):
        if attempt % ROUNDS == 0:
            for k in range(m):
                # At first those are at a bound that would get there alone: most of them do.
                alone = attempt == 0 and rows[GAIN, k] < rows[DOWN, k] * H[k, k]
                rows[SIDE, k] = -1.0 if alone else 0.0
                if attempt > 0:
                    H[k, k] *= 1.001 if attempt == ROUNDS else 2.0
        count = 0
        for k in range(m):
            rows[STEP, k] = 0.0
            if rows[SIDE, k] == 0.0:
                order[count] = k
                count += 1
            else:
                rows[STEP, k] = rows[DOWN, k] if rows[SIDE, k] < 0.0 else rows[UP, k]
        if count < m:
            combine(address_of(H[0], 0), h, m, m, address_of(rows[STEP], 0), address_of(answer, 0))
        for k in range(m):
            rows[RHS, k] = rows[GAIN, k] - (answer[k] if count < m else 0.0)
            rows[D, k] = rows[STEP, k]
        solve_tiles(address_of(H[0], 0), L, h, order, count, m, rows[RHS], address_of(answer, 0))
        for c in range(count):
            rows[D, order[c]] = answer[c]
        ended = True
        if count < m:
            combine(address_of(H[0], 0), h, m, m, address_of(rows[D], 0), address_of(answer, 0))
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
                if side * (rows[GAIN, k] - answer[k]) < 0.0:
                    rows[SIDE, k] = 0.0
                    ended = False
        if ended:
            if attempt < SURE and off < NEARBY:
                refine(rows, h, m, order, count, H, L, answer, more, off)
            return 1 + attempt
    for k in range(m):
        d = rows[GAIN, k] / H[k, k]
        rows[D, k] = min(max(d, rows[DOWN, k]), rows[UP, k])
    return 3 * ROUNDS
