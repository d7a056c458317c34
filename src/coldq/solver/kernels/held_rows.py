"""A face of rows that clash: the rows that it holds at their kinks, over the coordinates free.

B has a line for each free coordinate, with what the rows held have there. Rows and coordinates come
and go one at a time; the system ``B'B`` is so small that it is formed and factored every time. A
block's sum is a row like others, after those of A.
"""

from coldq.compiled import address_of, compiled, eight, fourfold, inlined
from coldq.solver.constants import TINY
from coldq.solver.kernels.tiles import combine, multiply, products, solve_again, solve_tiles

LO, HI, MU, G, ALONG, TIME, STATE, SIZE, ROWS = range(9)  # of rows, then of the blocks' sums
REST, PULL, PULL_LOW, UPPER, COLUMNS = range(5)
HELD_BY, RIGHT, FACE = range(3)  # of the rows held: their multipliers
STEP, BY_ROWS, FREE = range(3)  # of the free coordinates
ABOVE, HELD, BELOW = 1.0, 0.0, -1.0  # a row and its kink
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
def fix_one(free, f, B, c):
    """Take a coordinate from the free ones; the last takes its place."""
    free[c] = free[f - 1]
    line, last = B[c], B[f - 1]
    for a in range(line.size):
        line[a] = last[a]


@compiled
def hold(turned, order, free, m, f, B, r):
    """Add a row to those held."""
    order[m] = r
    for c in range(f):
        B[c, m] = turned[free[c], r]


@compiled
def drop(order, m, f, B, place):
    """Take a row from those held; the last takes its place."""
    order[place] = order[m - 1]
    for c in range(f):
        B[c, place] = B[c, m - 1]
        B[c, m - 1] = 0.0


@compiled
def solve(B, H, L, plain, m, f, face):
    """Set the multipliers of the rows held that belong to the right side, and L to the factor for
    others; whether the rows are independent."""
    h, lines = B.shape[1], address_of(B[0], 0)
    system, factor = address_of(H[0], 0), address_of(L[0], 0)
    multiply(lines, system, h, f, m)
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
        elif not solve(B, H, L, plain, m, f, face):
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
    if m > f or not solve(B, H, L, plain, m, f, face):
        return False
    set_by_rows(B, m, f, face, moves)
    for c in range(f):
        x[free[c]] -= moves[BY_ROWS, c]
        columns[REST, free[c]] += moves[BY_ROWS, c]
    return True
