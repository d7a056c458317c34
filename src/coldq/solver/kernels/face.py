"""The face that double-double arithmetic works on: which rows it holds, and their factor.

``H = A_S F A_S' + soft`` of the rows S of a face, in ORDER, over its free coordinates, each with
its share, is kept as L D L'. Rows and coordinates come and go one at a time, and it follows.
"""

import math

from coldq.compiled import exact
from coldq.solver.kernels.pairs import add, divide, multiply, product, times

Y, Y_LOW, Z, Z_LOW, X, X_LOW, W, W_LOW, LEAST, SHARE, SIDE, END, COLUMNS = range(13)
MU, MU_LOW, LO, LO_LOW, HI, HI_LOW, G, G_LOW, D, D_LOW = range(10)
SCALE, ROOM, SOFT, LENGTH, SPAN, BASIC, ORDER, POWER, ROWS = range(10, 19)
LEFT, FREE, RIGHT, FIXED = -1.0, 0.0, 1.0, 2.0  # sides: at the lower bound, between, at the upper
# The factor is below the diagonal of a square, what its numbers lack above it; lines after these:
PIVOT, PIVOT_LOW, SQUARES, SQUARES_LOW = range(-4, 0)
MORE_LINES = 4

DEPENDENT = 1e-26  # of a row's square: the square of what the rows before do not explain
ZERO = 1e-100  # below it a row is constant
FRESH = 1e-29  # of the terms of z: the rounding of z formed afresh
LOST = 1e-4  # of a pivot: what is left of it where a factor must be made anew


@exact
def shift(A, columns, k, d, d_low):
    """Move z by what d more of row k's multiplier does to it."""
    for i in range(A.shape[1]):
        if A[k, i] != 0.0 and columns[SHARE, i] != 0.0:
            t, t_low = times(d, d_low, A[k, i])
            t, t_low = times(t, t_low, -columns[SHARE, i])
            z, z_low = columns[Z, i], columns[Z_LOW, i]
            columns[Z, i], columns[Z_LOW, i] = add(z, z_low, t, t_low)


@exact
def form(A, columns, rows):
    """Form z afresh where multipliers that were far longer on the way left their rounding in it.

    Whether there was any. Where y or what is taken from it is as long still, z knows better.
    """
    some = False
    n, p = A.shape
    for i in range(p):
        w = w_low = size = 0.0
        for k in range(n):
            if rows[MU, k] != 0.0 and A[k, i] != 0.0:
                t, t_low = times(rows[MU, k], rows[MU_LOW, k], A[k, i])
                w, w_low = add(w, w_low, t, t_low)
                size += abs(t)
        share = columns[SHARE, i]
        w, w_low = times(w, w_low, -share)
        w, w_low = add(w, w_low, columns[Y, i], columns[Y_LOW, i])
        size = share * size + abs(columns[Y, i])
        off, _ = add(w, w_low, -columns[Z, i], -columns[Z_LOW, i])
        if share > 0.0 and abs(off) > FRESH * size:
            columns[Z, i], columns[Z_LOW, i] = w, w_low
            some = True
    return some


@exact
def refresh(A, b, lower, upper, columns, rows, tolerance):
    """Set x and g for the z there is; what g is the sum of, and how exact it need be."""
    n, p = A.shape
    for i in range(p):
        side = columns[SIDE, i]
        if side == FREE:
            columns[X, i], columns[X_LOW, i] = columns[Z, i], columns[Z_LOW, i]
            if abs(columns[Z, i]) <= columns[LEAST, i]:
                columns[X, i] = columns[X_LOW, i] = 0.0
        else:
            columns[X, i], columns[X_LOW, i] = upper[i] if side == RIGHT else lower[i], 0.0
    for k in range(n):
        g, g_low = times(rows[MU, k], rows[MU_LOW, k], -rows[SOFT, k])
        size = abs(b[k]) + abs(g)
        g, g_low = add(g, g_low, -b[k], 0.0)
        least = 0.0
        for i in range(p):
            if A[k, i] != 0.0:
                t, t_low = times(columns[X, i], columns[X_LOW, i], A[k, i])
                g, g_low = add(g, g_low, t, t_low)
                size += abs(t)
                if columns[SIDE, i] == FREE:
                    least += abs(A[k, i]) * columns[LEAST, i]
        rows[G, k], rows[G_LOW, k], rows[SCALE, k] = g, g_low, size
        rows[ROOM, k] = tolerance * size + least


@exact
def first_face(A, lower, upper, columns, rows):
    """The face of the multipliers in MU, with z and sides: how many rows are between bounds."""
    n, p = A.shape
    m = 0
    for k in range(n):
        rows[BASIC, k] = 0.0
        if rows[LO, k] < rows[MU, k] and rows[MU, k] < rows[HI, k] and rows[LENGTH, k] > ZERO:
            rows[BASIC, k] = 1.0
            rows[ORDER, m] = k
            m += 1
    for i in range(p):
        columns[Z, i], columns[Z_LOW, i] = columns[Y, i], columns[Y_LOW, i]
    for k in range(n):
        if rows[MU, k] != 0.0:
            shift(A, columns, k, rows[MU, k], rows[MU_LOW, k])
    for i in range(p):
        columns[SIDE, i] = FREE if lower[i] < upper[i] else FIXED
        if columns[SIDE, i] == FREE and not (lower[i] < columns[Z, i] and columns[Z, i] < upper[i]):
            columns[SIDE, i] = LEFT if columns[Z, i] <= lower[i] else RIGHT
    return m


@exact
def leave(A, columns, rows, leaves, m):
    """Take a row out of the face of m rows, exactly at its bound if it has one; its place there."""
    bound = HI if rows[D, leaves] > 0.0 else LO
    if abs(rows[bound, leaves]) < math.inf:
        mu, mu_low = rows[bound, leaves], rows[bound + 1, leaves]
        rest, rest_low = add(mu, mu_low, -rows[MU, leaves], -rows[MU_LOW, leaves])
        shift(A, columns, leaves, rest, rest_low)
        rows[MU, leaves], rows[MU_LOW, leaves] = mu, mu_low
    rows[BASIC, leaves] = 0.0
    place = 0
    while rows[ORDER, place] != leaves:
        place += 1
    for a in range(place, m - 1):
        rows[ORDER, a] = rows[ORDER, a + 1]
    return place


@exact
def join(A, columns, rows, factor, k, m):
    """Set the factor's line m for row k; whether the m rows before leave some of it unexplained."""
    p = A.shape[1]
    own, own_low = rows[SOFT, k], 0.0
    room = 0  # free coordinates that the rows before, if they do not give way, leave to others
    for j in range(m):
        room -= 1 if rows[SOFT, int(rows[ORDER, j])] == 0.0 else 0
    for i in range(p):
        columns[W, i] = columns[W_LOW, i] = 0.0
        room += 1 if columns[SIDE, i] == FREE else 0
        if columns[SIDE, i] == FREE and A[k, i] != 0.0:
            t, t_low = product(A[k, i], columns[SHARE, i])
            columns[W, i], columns[W_LOW, i] = t, t_low
            t, t_low = times(t, t_low, A[k, i])
            own, own_low = add(own, own_low, t, t_low)
    rest, rest_low = own, own_low
    for j in range(m):
        other = int(rows[ORDER, j])
        h = h_low = 0.0
        for i in range(p):
            if columns[W, i] != 0.0 and A[other, i] != 0.0:
                t, t_low = times(columns[W, i], columns[W_LOW, i], A[other, i])
                h, h_low = add(h, h_low, t, t_low)
        for e in range(j):
            t, t_low = multiply(
                factor[SQUARES, e], factor[SQUARES_LOW, e],
                factor[j, e], factor[e, j],
            )  # fmt: skip
            h, h_low = add(h, h_low, -t, -t_low)
        factor[SQUARES, j], factor[SQUARES_LOW, j] = h, h_low
        f, f_low = divide(h, h_low, factor[PIVOT, j], factor[PIVOT_LOW, j])
        factor[m, j], factor[j, m] = f, f_low
        t, t_low = multiply(f, f_low, h, h_low)
        rest, rest_low = add(rest, rest_low, -t, -t_low)
    factor[PIVOT, m], factor[PIVOT_LOW, m] = rest, rest_low
    some = own > 1e-30 * rows[SPAN, k] and (room > 0 or rows[SOFT, k] > 0.0)
    return some and rest > DEPENDENT * own and m + 1 < factor.shape[1]


@exact
def fill(A, columns, rows, factor, kept, m):
    """Let the factor, which holds `kept` of the m rows, hold all; those that depend on others leave
    the face. How many are left."""
    for a in range(kept, m):
        k = int(rows[ORDER, a])
        if join(A, columns, rows, factor, k, kept):
            rows[ORDER, kept] = k
            kept += 1
        else:
            rows[BASIC, k] = 0.0
    return kept


@exact
def adjust(factor, m, sigma, sigma_low, first):
    """Change the factor of H to that of ``H + sigma v v'``, from line `first` on; v in SQUARES.

    What H is made of changes by one coordinate or one row at a time, and this costs a line of the
    matrix where a new factor costs the matrix. False if digits were lost that a new one has.
    """
    for j in range(first, m):
        v, v_low = factor[SQUARES, j], factor[SQUARES_LOW, j]
        if v == 0.0:
            continue
        old, old_low = factor[PIVOT, j], factor[PIVOT_LOW, j]
        push, push_low = multiply(sigma, sigma_low, v, v_low)
        new, new_low = multiply(push, push_low, v, v_low)
        new, new_low = add(old, old_low, new, new_low)
        if not new > LOST * old:
            return False
        factor[PIVOT, j], factor[PIVOT_LOW, j] = new, new_low
        push, push_low = divide(push, push_low, new, new_low)
        ratio, ratio_low = divide(old, old_low, new, new_low)
        sigma, sigma_low = multiply(sigma, sigma_low, ratio, ratio_low)
        for r in range(j + 1, m):
            f, f_low = factor[r, j], factor[j, r]
            t, t_low = multiply(v, v_low, f, f_low)
            w, w_low = add(factor[SQUARES, r], factor[SQUARES_LOW, r], -t, -t_low)
            factor[SQUARES, r], factor[SQUARES_LOW, r] = w, w_low
            t, t_low = multiply(push, push_low, w, w_low)
            factor[r, j], factor[j, r] = add(f, f_low, t, t_low)
    return True


@exact
def turn(A, columns, rows, factor, i, side, m):
    """Let coordinate i go, or hold it at a side; whether the factor of m rows followed."""
    share = columns[SHARE, i]
    for a in range(m):
        factor[SQUARES, a], factor[SQUARES_LOW, a] = A[int(rows[ORDER, a]), i], 0.0
    columns[SIDE, i] = side
    return adjust(factor, m, share if side == FREE else -share, 0.0, 0)


@exact
def drop(factor, place, m):
    """Take the row at a place out of the factor of m rows; whether it followed."""
    for r in range(place + 1, m):
        factor[SQUARES, r - 1] = factor[r, place]
        factor[SQUARES_LOW, r - 1] = factor[place, r]
    sigma, sigma_low = factor[PIVOT, place], factor[PIVOT_LOW, place]
    for r in range(place + 1, m):
        factor[PIVOT, r - 1], factor[PIVOT_LOW, r - 1] = (
            factor[PIVOT, r], factor[PIVOT_LOW, r]
        )  # fmt: skip
        for j in range(place):
            factor[r - 1, j] = factor[r, j]
            factor[j, r - 1] = factor[j, r]
        for j in range(place + 1, r):
            factor[r - 1, j - 1] = factor[r, j]
            factor[j - 1, r - 1] = factor[j, r]
    return adjust(factor, m - 1, sigma, sigma_low, place)


@exact
def back(rows, factor, m):
    """Solve with the factor's transpose, in place in the D of the rows of the face."""
    for a in range(m - 1, -1, -1):
        k = int(rows[ORDER, a])
        d, d_low = rows[D, k], rows[D_LOW, k]
        for e in range(a + 1, m):
            j = int(rows[ORDER, e])
            t, t_low = multiply(factor[e, a], factor[a, e], rows[D, j], rows[D_LOW, j])
            d, d_low = add(d, d_low, -t, -t_low)
        rows[D, k], rows[D_LOW, k] = d, d_low


@exact
def solve(rows, factor, m):
    """Solve with the factor, in place in the D of the rows of the face."""
    for a in range(m):
        k = int(rows[ORDER, a])
        d, d_low = rows[D, k], rows[D_LOW, k]
        for e in range(a):
            j = int(rows[ORDER, e])
            t, t_low = multiply(factor[a, e], factor[e, a], rows[D, j], rows[D_LOW, j])
            d, d_low = add(d, d_low, -t, -t_low)
        rows[D, k], rows[D_LOW, k] = d, d_low
    for a in range(m):
        k = int(rows[ORDER, a])
        rows[D, k], rows[D_LOW, k] = divide(
            rows[D, k], rows[D_LOW, k], factor[PIVOT, a], factor[PIVOT_LOW, a]
        )
    back(rows, factor, m)
