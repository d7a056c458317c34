"""Many affine rows on a box, of which few hold x back.

The dual is maximised over a *working set* of multipliers, the others resting at their bounds: those
between their bounds, and those of the rows that x violates most. Each round goes up, so that no set
comes twice, and costs one pass over A beside a step with few rows, called by its address
(:mod:`~coldq.solver.kernels.by_address`). It starts where the last round ended, because it is asked
for the change of the multipliers.
"""

import math

from coldq.compiled import batch_kernel, compiled, inlined, matrix, vector
from coldq.solver.constants import (
    FEW_COORDINATES, MORE_ROWS, MUCH_DATA, ROW_TOLERANCE, TOLERANCE, X_FLOOR,
)  # fmt: skip
from coldq.solver.kernels.affine import REFRESH_ABOVE, UNSETTLED
from coldq.solver.kernels.by_address import CALL, run_affine
from coldq.solver.kernels.downhill import FEW_FOR_FACES, descend, downhill_size
from coldq.solver.kernels.piece import (
    CHOSEN, COLUMNS, FIRST_LINES, GAIN, HI, LO, MU, NORM, SCALE, SIDE, SOFT, G, W, Y, Z,
    affine_residual, give_multipliers, judged, memory_of, scratch_size, set_row_values, told,
)  # fmt: skip

FIRST = 4  # rows of the first set; later ones add as many as are between their bounds, if more
ALL = 12  # violated rows: no more than these are all taken
FEWER = 6  # the same where it may turn out that they clash in few coordinates
AT_FIRST = 32  # rows: no more are all taken at first where they point anywhere
MOST = 64  # rows of a set: with more, passes on BLAS are faster
ROUNDS, CHEAP = 40, 1_000_000  # rounds at most, more of them where a pass costs little
SYSTEMS = 8  # that a round solves, about
WORK = 3e6  # systems that a round may solve, times its rows cubed: others do better then
LOOK = 2  # rounds, after which few rows are wrong that can all be met
SOON, SOME = 1, 8  # the same, and how many are no longer few, where all may be taken at once
MANY = 600  # rows where others take all at once in few coordinates, too
MOST_AT_ONCE = 700  # rows that may be up to twice as many as coordinates
NUMBERS = 2  # alpha, and rounds
ITS_Y, ITS_GRADIENT, ITS_COLUMNS = range(3)
ITS_B, ITS_LO, ITS_HI, ITS_SOFT, ITS_D, ITS_ROWS = range(6)


@inlined
def most_of(n, p):
    """How many rows a set may have, of which no more than p + 3 are between their bounds."""
    return min(min(n, MOST), p + 3 + max(p + 3, ALL))


@inlined
def working_size(n, p):
    """How many numbers an instance needs to work in."""
    m = most_of(n, p)
    own = CALL + NUMBERS + (COLUMNS + ITS_COLUMNS) * p + FIRST_LINES * n
    rest = ITS_ROWS * m + m * p + scratch_size(m, p)
    return own + (max(rest, downhill_size(n, p, 0)) if fit_downhill(p) else rest)


@inlined
def is_wrong(rows, k):
    """Whether a multiplier has room to go where g pushes it."""
    tolerance = ROW_TOLERANCE * rows[SCALE, k]
    g, mu = rows[G, k], rows[MU, k]
    return (g > tolerance and mu < rows[HI, k]) or (g < -tolerance and mu > rows[LO, k])


@compiled
def begin_all(
    half, center, gradient, floor, weights, compliance, A, b, lower, upper, columns, rows, x
):  # fmt: skip
    """Set y, the multipliers nearest to zero, and x and g that belong to them.

    NaN without a y, infinite if a row that is constant on X cannot hold, else 0.
    """
    n, p = A.shape
    finite = 0.0
    for i in range(p):
        y = center[i] - gradient[i] * half
        columns[Y, i] = y
        columns[Z, i] = y
        columns[W, i] = 1.0 if lower[i] < upper[i] else 0.0
        finite += 0.0 * y
    if not (finite == 0.0):
        return math.nan
    for k in range(n):
        rows[LO, k] = floor[k] * half
        rows[HI, k] = weights[k] * half
        rows[SOFT, k] = compliance[k] / half
        mu = min(max(0.0, rows[LO, k]), rows[HI, k])
        rows[MU, k] = mu
        rows[SIDE, k] = 0.0
        if mu != 0.0:
            for i in range(p):
                columns[Z, i] -= mu * A[k, i]
    for i in range(p):
        x[i] = min(max(columns[Z, i], lower[i]), upper[i])
    for k in range(n):
        value = 0.0
        size = 0.0
        norm = 0.0
        for i in range(p):
            value += A[k, i] * x[i]
            size += abs(A[k, i]) * max(abs(x[i]), X_FLOOR)
            norm += columns[W, i] * A[k, i] * A[k, i]
        soft = rows[SOFT, k] * rows[MU, k]
        rows[G, k] = value - b[k] - soft
        rows[SCALE, k] = size + abs(b[k]) + abs(soft)
        rows[NORM, k] = norm + rows[SOFT, k]
        if rows[NORM, k] == 0.0 and rows[G, k] != 0.0:
            # The row is constant on X: its multiplier is at a bound, once and for all.
            rows[MU, k] = rows[HI, k] if rows[G, k] > 0.0 else rows[LO, k]
            if abs(rows[MU, k]) == math.inf:
                return math.inf
    return 0.0


@inlined
def violated(rows, n):
    """How many rows are wrong that were not in the last working set; rows[SIDE] says who was."""
    count = 0
    for k in range(n):
        if rows[SIDE, k] == 0.0 and rows[NORM, k] > 0.0 and is_wrong(rows, k):
            count += 1
    return count


@inlined
def fit_at_once(n, p):
    """Whether n rows that all matter are given to the kernel for blocks at once, which moves no
    more of them than coordinates are free."""
    return n <= min(2 * p, MOST_AT_ONCE) or 6 * n <= 5 * p


@inlined
def fit_downhill(p):
    """Whether rows that all matter are solved in the coordinates, which are so few."""
    return p <= FEW_FOR_FACES


@inlined
def many_matter(n, first, wrong):
    """Whether so many rows are still wrong, of those that were at `first`, that most are likely to
    matter."""
    return 2 * wrong > first and 4 * wrong > n


@inlined
def go_downhill(rows, n, p, first, wrong):
    """Whether rows seem to clash in coordinates so few that the way from face to face is short:
    there some are wrong though others are at their weights already."""
    full = False
    for k in range(n):
        if rows[HI, k] == math.inf or rows[LO, k] == -math.inf:
            return False  # hard rows are met from the start, there
        full = full or (rows[LO, k] < rows[HI, k] and rows[MU, k] >= rows[HI, k])
    if p > FEW_COORDINATES:
        return fit_downhill(p) and n > p and many_matter(n, first, wrong)
    return full or wrong > max(p // 4, n // 16)


@inlined
def clash(n, p, first, wrong, count):
    """The same where there is another way that takes all of them, which is then told at once."""
    if fit_at_once(n, p):
        soon = SOON <= count and count <= LOOK
        return soon and wrong > SOME and many_matter(n, first, wrong)
    large = n > MANY or (n > MORE_ROWS and p > FEW_COORDINATES)
    some = count == LOOK and large and n * p <= MUCH_DATA
    return some and wrong > max(p // 4, ALL) and 4 * wrong > n


@inlined
def scattered(n, p, wrong):
    """Whether few rows seem to point anywhere, with more coordinates than they need: then those
    that x violates will hold it back, and others in their turn. Rows that ask for much the same
    are violated all at once, and few of them hold x back."""
    return n <= AT_FIRST and 3 * n <= 2 * p and wrong > FEWER and 3 * wrong <= 2 * n


@compiled
def choose(rows, n, p, room):
    """List the next working set in rows[CHOSEN]; how many, -1 if too many.

    All multipliers between their bounds belong to it, and of the rows that x violates those it
    violates most: as many as there is room for, or as are between their bounds, if that is more.
    """
    m = 0
    for k in range(n):
        rows[SIDE, k] = 0.0
        rows[GAIN, k] = -1.0
        if rows[LO, k] < rows[MU, k] and rows[MU, k] < rows[HI, k]:
            if m > MOST - FIRST or m > p + 2:
                return -1
            rows[CHOSEN, m] = k
            rows[SIDE, k] = 1.0
            m += 1
        elif rows[NORM, k] > 0.0 and is_wrong(rows, k):
            rows[GAIN, k] = abs(rows[G, k]) / math.sqrt(rows[NORM, k])
    for _ in range(min(max(room, m), MOST - m)):
        deepest = -1
        depth = -1.0
        for k in range(n):
            if rows[GAIN, k] > depth:
                depth = rows[GAIN, k]
                deepest = k
        if deepest < 0:
            break
        rows[GAIN, deepest] = -1.0
        rows[CHOSEN, m] = deepest
        rows[SIDE, deepest] = 1.0
        m += 1
    return m


@compiled
def pose(A, b, columns, rows, m, its_columns, its_rows, its_A):
    """Put down the problem of how the chosen multipliers change."""
    n, p = A.shape
    for i in range(p):
        its_columns[ITS_Y, i] = columns[Y, i]
    for k in range(n):
        mu = rows[MU, k]
        if mu != 0.0:
            for i in range(p):
                its_columns[ITS_Y, i] -= mu * A[k, i]
    for a in range(m):
        k = int(rows[CHOSEN, a])
        mu, soft = rows[MU, k], rows[SOFT, k]
        its_rows[ITS_B, a] = b[k] + soft * mu
        its_rows[ITS_LO, a] = rows[LO, k] - mu
        its_rows[ITS_HI, a] = rows[HI, k] - mu
        its_rows[ITS_SOFT, a] = soft
        for i in range(p):
            its_A[a, i] = A[k, i]


@inlined
def change(rows, its_rows, m):
    """Add to the chosen multipliers what was found; what is at a bound is so exactly."""
    for a in range(m):
        k = int(rows[CHOSEN, a])
        d = its_rows[ITS_D, a]
        if d >= its_rows[ITS_HI, a]:
            rows[MU, k] = rows[HI, k]
        elif d <= its_rows[ITS_LO, a]:
            rows[MU, k] = rows[LO, k]
        else:
            rows[MU, k] = min(max(rows[MU, k] + d, rows[LO, k]), rows[HI, k])


@batch_kernel("(p),(p),(),(n),(n),(n),(n,p),(n),(p),(p),(),(),(s)->(p),(n),()?")
def working_set_step(sizes, at):
    """Affine rows on a box: as :func:`affine_step`, whose code's address comes before the memory.

    NaN where a working set gets too large, or anything else goes wrong.
    """
    p, n, s = sizes[0], sizes[1], sizes[2]
    most = most_of(n, p)
    memory = memory_of(at[12], s, at[16], working_size(n, p))
    if memory == 0:
        return told(at[15], math.nan)
    half_at = memory + 8 * CALL
    columns_at = half_at + 8 * NUMBERS
    its_columns_at = columns_at + 8 * COLUMNS * p
    rows_at = its_columns_at + 8 * ITS_COLUMNS * p
    its_rows_at = rows_at + 8 * FIRST_LINES * n
    its_A_at = its_rows_at + 8 * ITS_ROWS * most

    center, gradient = vector(at[0], p), vector(at[1], p)
    alpha, floor, weights = vector(at[2], 1)[0], vector(at[3], n), vector(at[4], n)
    A, b = matrix(at[6], n, p), vector(at[7], n)
    lower, upper, rounds = vector(at[8], p), vector(at[9], p), vector(at[10], 1)[0]
    x, multipliers = vector(at[13], p), vector(at[14], n)
    columns, rows = matrix(columns_at, COLUMNS, p), matrix(rows_at, FIRST_LINES, n)
    its_columns = matrix(its_columns_at, ITS_COLUMNS, p)
    its_rows, its_A = matrix(its_rows_at, ITS_ROWS, most), matrix(its_A_at, most, p)

    begun = begin_all(
        0.5 / alpha, center, gradient, floor, weights, vector(at[5], n), A, b, lower, upper,
        columns, rows, x,
    )  # fmt: skip
    if not (begun == 0.0):
        return told(at[15], begun)
    if scattered(n, p, violated(rows, n)):
        found = run_affine(
            at[11], memory, p, n, at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8],
            at[9], at[10], its_rows_at, at[13], at[14], 0, 0,
        )  # fmt: skip
        return told(at[15], found)
    numbers = vector(half_at, NUMBERS)
    numbers[0] = 0.5
    for i in range(p):
        its_columns[ITS_GRADIENT, i] = 0.0
    refreshed = 0
    off = math.nan
    spent = 0
    first = 0
    most_wrong = FEWER if fit_downhill(p) else ALL
    soft = False
    for k in range(n):
        soft = soft or rows[SOFT, k] > 0.0
    for count in range(ROUNDS + CHEAP // (n * p)):
        if count >= ROUNDS and spent > CHEAP:
            return told(at[15], math.nan)
        wrong = violated(rows, n)
        if wrong == 0:
            off = affine_residual(x, A, lower, upper, columns, rows)
            if off <= REFRESH_ABOVE or refreshed == 2:
                break
            refreshed += 1  # ``y - A'mu`` will be formed afresh
        first = wrong if count == 0 else first
        if SOON <= count and count <= LOOK and wrong > 0 and not soft:
            if go_downhill(rows, n, p, first, wrong):
                off = math.nan
                break
            if clash(n, p, first, wrong, count):
                return told(at[15], math.nan)
        m = choose(rows, n, p, 0 if wrong == 0 else (most_wrong if wrong <= most_wrong else FIRST))
        if m < 0:
            return told(at[15], math.nan)
        if m == 0:
            break
        numbers[1] = WORK / (m * m * m)
        spent += n * p + SYSTEMS * m * m * m
        pose(A, b, columns, rows, m, its_columns, its_rows, its_A)
        found = run_affine(
            at[11], memory, p, m, its_columns_at, its_columns_at + 8 * p, half_at,
            its_rows_at + 8 * ITS_LO * most, its_rows_at + 8 * ITS_HI * most,
            its_rows_at + 8 * ITS_SOFT * most, its_A_at, its_rows_at + 8 * ITS_B * most, at[8],
            at[9], half_at + 8, its_A_at + 8 * most * p, at[13], its_rows_at + 8 * ITS_D * most,
            0, 0,
        )  # fmt: skip
        if not (found < UNSETTLED):
            return told(at[15], found)
        change(rows, its_rows, m)
        set_row_values(A, b, x, rows)
    else:
        return told(at[15], math.nan)
    off = judged(off, x, A, b, center, lower, upper, columns, rows, rounds < math.inf)
    if fit_downhill(p) and not soft and not (off <= TOLERANCE):
        none = vector(half_at, 0)
        found = descend(
            A, b, center, gradient, alpha, floor, weights, rows[LO], rows[HI], columns[Y], lower,
            upper, none, none, none, x, rows[MU], off < math.inf, multipliers, its_rows_at,
        )  # fmt: skip
        if found <= TOLERANCE:
            return told(at[15], found)
        for i in range(p):
            x[i] = min(max(columns[Z, i], lower[i]), upper[i])
    give_multipliers(alpha, floor, weights, rows, multipliers)
    return told(at[15], off)
