"""A face of rows that clash: the rows that it holds at their kinks, over the coordinates free.

B has a line for each free coordinate, with what the rows held have there. Rows and coordinates come
and go one at a time, and with them the system ``H = B'B``, of which there is what is from the
diagonal on; it is so small that it is factored every time. A block's sum is a row like others,
after those of A.
"""

from coldq.compiled import address_of, compiled, eight, fourfold, inlined
from coldq.solver.constants import TINY
from coldq.solver.kernels.tiles import (
    add_squares, combine, multiply, products, solve_again, solve_tiles, take_squares,
)  # fmt: skip

LO, HI, MU, G, ALONG, TIME, STATE, SIZE, ROWS = range(9)  # of rows, then of the blocks' sums
REST, PULL, PULL_LOW, UPPER, COLUMNS = range(5)
HELD_BY, RIGHT, FACE = range(3)  # of the rows held: their multipliers
STEP, BY_ROWS, FREE = range(3)  # of the free coordinates
ABOVE, HELD, BELOW = 1.0, 0.0, -1.0  # a row and its kink
SOUND = 1e-4  # of a row's squared length: with less of it free, rounding of the rest would count
LEAST_PIVOT = 1e-13  # of a diagonal entry: below it, the rows held depend on each other


@compiled
def add_row(A, first, r, by, line):
    """Add to a vector row r times a number, or the sum of a block."""
    n = A.shape[0]
    if r < n:
        row = A[r]
        for i in range(line.size):
            line[i] += by * row[i]
    else:
        for i in range(int(first[r - n]), int(first[r - n + 1])):
            line[i] += by


@compiled
def add_lines(A, order, count, share, out):
    """Add to a vector the lines of A in `order`, each times its share: four of them for each time
    that it is written."""
    for a in range(0, count, 4):
        second, third, last = min(a + 1, count - 1), min(a + 2, count - 1), min(a + 3, count - 1)
        s1, s2 = share[a], share[second] if a + 1 < count else 0.0
        s3 = share[third] if a + 2 < count else 0.0
        s4 = share[last] if a + 3 < count else 0.0
        one, two, three, four = A[order[a]], A[order[second]], A[order[third]], A[order[last]]
        for i in range(out.size):
            out[i] += (s1 * one[i] + s2 * two[i]) + (s3 * three[i] + s4 * four[i])


@inlined
def entry(A, first, r, i):
    """What row r, or the sum of a block, has at coordinate i."""
    n = A.shape[0]
    if r < n:
        return A[r, i]
    return 1.0 if first[r - n] <= i and i < first[r - n + 1] else 0.0


@compiled
def set_values(A, b, first, total, x, rows):
    """Set the values of all rows and sums at x."""
    n, p = A.shape
    for r in range(n):
        row, value = A[r], 0.0
        for i in range(p):
            value += row[i] * x[i]
        rows[G, r] = value - b[r]
    for j in range(total.size):
        value = -total[j]
        for i in range(int(first[j]), int(first[j + 1])):
            value += x[i]
        rows[G, n + j] = value


@compiled
def gather(turned, order, free, m, f, B):
    """Set the lines of free coordinates, from the first on."""
    for c in range(f):
        free_one(turned, order, free, m, c, B, free[c])


@compiled
def free_one(turned, order, free, m, f, B, i):
    """Add a coordinate to the free ones."""
    free[f] = i
    line, own = B[f], turned[i]
    for a in range(line.size):
        line[a] = 0.0
    for a in range(m):
        line[a] = own[order[a]]


@compiled
def form(B, H, m, f):
    """Set the system afresh."""
    multiply(address_of(B[0], 0), address_of(H[0], 0), B.shape[1], f, m)


@compiled
def add_line(B, H, m, c):
    """Add to the system what one more line has."""
    add_squares(address_of(B[0], 0), address_of(H[0], 0), B.shape[1], c, c + 1, m)


@compiled
def fix_one(rows, order, free, m, f, B, H, c):
    """Take a coordinate from the free ones; the last takes its place. Whether the system has kept
    its digits."""
    line, last, sound = B[c], B[f - 1], True
    take_squares(address_of(line, 0), address_of(H[0], 0), B.shape[1], 1, m)
    for a in range(m):
        size = rows[SIZE, order[a]]
        sound = sound and H[a, a] > SOUND * size * size
    free[c] = free[f - 1]
    for a in range(line.size):
        line[a] = last[a]
    return sound


@compiled
def hold(turned, order, free, m, f, B, H, r, face, moves):
    """Add a row to those held."""
    column, beside = moves[BY_ROWS], face[RIGHT]
    order[m] = r
    for c in range(f):
        column[c] = turned[free[c], r]
        B[c, m] = column[c]
    lines = address_of(B[0], 0)
    combine(lines, B.shape[1], m + 1, f, address_of(column, 0), address_of(beside, 0))
    for a in range(m + 1):
        H[a, m] = beside[a]


@compiled
def drop(order, m, f, B, H, place):
    """Take a row from those held; the last takes its place."""
    last = m - 1
    order[place] = order[last]
    for c in range(f):
        B[c, place] = B[c, last]
        B[c, last] = 0.0
    for a in range(place):
        H[a, place] = H[a, last]
    for a in range(place + 1, last):
        H[place, a] = H[a, last]
    H[place, place] = H[last, last]


@compiled
def solve(B, H, L, plain, m, face):
    """Set the multipliers of the rows held that belong to the right side, and L to the factor for
    others; whether the rows are independent."""
    h, system, factor = B.shape[1], address_of(H[0], 0), address_of(L[0], 0)
    solve_tiles(system, factor, h, plain, m, m, face[RIGHT], address_of(face[HELD_BY], 0))
    independent = True
    for a in range(m):
        independent = independent and H[a, a] * L[a, a] * L[a, a] * LEAST_PIVOT < 1.0
    return independent


@compiled
def set_by_rows(B, m, f, face, moves):
    """Set what the multipliers of the rows held do to each free coordinate."""
    h, lines, held, out = B.shape[1], address_of(B[0], 0), face[HELD_BY], moves[BY_ROWS]
    for a in range(m, (m + 7) // 8 * 8):
        held[a] = 0.0
    for c in range(0, f, 4):
        given = address_of(held, 0)
        s, t, u, v = products(lines, h, c, f, given, 0, (m + 7) // 8, eight())
        out[min(c + 3, f - 1)] = fourfold(v)
        out[min(c + 2, f - 1)] = fourfold(u)
        out[min(c + 1, f - 1)] = fourfold(t)
        out[c] = fourfold(s)


@compiled
def set_step(columns, free, B, H, L, plain, m, f, face, moves, again):
    """Set the multipliers of the rows held, and the step to the face's lowest point; how long it
    is at most, beside what pulls; below 0 if there is none. With the factor that there is, `again`.
    """
    rest, step, by_rows = columns[REST], moves[STEP], moves[BY_ROWS]
    h, lines = B.shape[1], address_of(B[0], 0)
    size, longest = TINY, 0.0
    for c in range(f):
        step[c] = rest[free[c]]
        size = max(size, abs(step[c]))
    if m > 0:
        right, held = address_of(face[RIGHT], 0), address_of(face[HELD_BY], 0)
        combine(lines, h, m, f, address_of(step, 0), right)
        if again:
            solve_again(address_of(L[0], 0), h, m, right, held)
        elif not solve(B, H, L, plain, m, face):
            return -1.0
        set_by_rows(B, m, f, face, moves)
        for c in range(f):
            step[c] -= by_rows[c]
    for c in range(f):
        longest = max(longest, abs(step[c]))
    return longest / size if m < f else 0.0


@compiled
def put_right(rows, columns, x, order, free, B, H, L, plain, m, f, face, moves):
    """Put x back onto the kinks that it is held at; whether that could be done."""
    if m == 0:
        return True
    for a in range(m):
        face[RIGHT, a] = rows[G, order[a]]
    form(B, H, m, f)
    if m > f or not solve(B, H, L, plain, m, face):
        return False
    set_by_rows(B, m, f, face, moves)
    for c in range(f):
        x[free[c]] -= moves[BY_ROWS, c]
        columns[REST, free[c]] += moves[BY_ROWS, c]
    return True
