"""The compiled part of :mod:`coldq.solver.last_resort`, an interior-point method on pairs.

What it has for every coordinate, row, group and equality are the lines of four matrices, which have
names. A number is the sum of two floats: a name is the line of the first, and the line after it has
what is below the last digit of that. Nothing here may be compiled with fast mathematics, which
would take the second for zero.
"""

import math

from coldq.compiled import address_of, cube, exact, exact_inlined, kernel, matrix
from coldq.solver.kernels.pairs import add as sum_of
from coldq.solver.kernels.pairs import divide as quotient_of
from coldq.solver.kernels.pairs import multiply as product_of
from coldq.solver.kernels.pairs import times as times_one

# Coordinates: x, the multipliers of its bounds and the rooms they have; a step, and one before it.
X, LOW, UP, D_X, D_LOW, D_UP, BEST_X, BEST_LOW, BEST_UP = range(0, 18, 2)
Y, DOWN, OVER, LEFT_X, F_X, F_LOW, F_UP, RIGHT, SIZE, COLUMNS = range(18, 38, 2)
# Rows: the room of each, its multiplier, and how stiff the two make it.
T, MU, D_T, D_MU, BEST_T, BEST_MU = range(0, 12, 2)
B, LEFT_T, Q, STIFF, TOTAL, F_T, F_MU, ROWS = range(12, 28, 2)
# Groups: what rows may rise to, and its multiplier.
S, NU, D_S, D_NU, BEST_S, BEST_NU = range(0, 12, 2)
LEFT_S, SUM, GIVE, SOFT, RISE, F_S, F_NU, GROUPS = range(12, 28, 2)
EQUAL, D_EQUAL, BEST_EQUAL, LEFT_E, LIMIT, OWN_SIZE, EQUALITIES = range(0, 14, 2)
HINGE, FREE, HARD, DEAD = 0, 1, 2, 3  # kinds of groups

SHORT = 0.995  # of the way to the boundary
CARE = 1e-6  # the least share of the gap that a step aims at
FIRST = 1e-10  # of the gap: above it there is more patience
ENOUGH, SHARP = 1e-24, 1e-15  # the complementarity left, and the relative residual
NO_PIVOT, NO_DIGIT = 1e-30, 1e-15  # of a diagonal of ones, and in doubles
ROUGH = 1e-8  # of the first gap: as far as doubles do


# Not put into what calls them, which would take long to compile.
@exact
def add(a, a_low, b, b_low):
    return sum_of(a, a_low, b, b_low)


@exact
def times(a, a_low, b):
    return times_one(a, a_low, b)


@exact
def multiply(a, a_low, b, b_low):
    return product_of(a, a_low, b, b_low)


@exact
def divide(a, a_low, b, b_low):
    return quotient_of(a, a_low, b, b_low)


@exact
def plus(s, s_low, a, a_low, b, b_low):
    """s + a b."""
    t, t_low = product_of(a, a_low, b, b_low)
    return sum_of(s, s_low, t, t_low)


@exact
def put(lines, line, i, value):
    lines[line, i], lines[line + 1, i] = value


@exact
def set_state(
    rough, P, A, lean, cost, kind, group, E, lower, upper, columns, rows, groups, equal, J
):  # fmt: skip
    """Slopes, rooms at bounds, and what is left of stationarity in x and in s, of rows and of
    equalities; return the sum of all products of a multiplier and its room, and what is left."""
    n, p = A.shape
    curved = P.shape[0] // p
    total = 0.0
    off = 0.0
    for i in range(p):
        x, x_low = columns[X, i], columns[X + 1, i]
        v, e = add(x, x_low, -columns[Y, i], -columns[Y + 1, i])
        v, e = add(v, e, -columns[LOW, i], -columns[LOW + 1, i])
        put(columns, LEFT_X, i, add(v, e, columns[UP, i], columns[UP + 1, i]))
        columns[SIZE, i] = 1.0 + abs(x)
        put(columns, DOWN, i, (1.0, 0.0))
        put(columns, OVER, i, (1.0, 0.0))
        if lower[i] < upper[i]:
            if lower[i] > -math.inf:
                put(columns, DOWN, i, add(x, x_low, -lower[i], 0.0))
                total += columns[DOWN, i] * columns[LOW, i]
            if upper[i] < math.inf:
                put(columns, OVER, i, add(-x, -x_low, upper[i], 0.0))
                total += columns[OVER, i] * columns[UP, i]
    for k in range(cost.size):
        if kind[k] == HINGE:
            total += groups[S, k] * groups[NU, k]
        v = 0.0 if kind[k] == HARD else cost[k]
        put(groups, LEFT_S, k, add(v, 0.0, -groups[NU, k], -groups[NU + 1, k]))
    for r in range(n):
        k = group[r]
        g, g_low = -rows[B, r], -rows[B + 1, r]
        mu, mu_low = add(rows[MU, r], rows[MU + 1, r], lean[r], 0.0)
        rows[TOTAL, r], rows[TOTAL + 1, r] = mu, mu_low
        for i in range(p):
            a, a_low = A[r, i], 0.0
            x, x_low = columns[X, i], columns[X + 1, i]
            if a != 0.0:
                t, t_low = times(x, x_low, a)
                g, g_low = add(g, g_low, t, t_low)
            if r < curved:
                v, e = 0.0, 0.0
                for j in range(p):
                    c = P[r * p + i, j]
                    if rough:
                        v += c * columns[X, j]
                    elif c != 0.0:
                        t, t_low = times(columns[X, j], columns[X + 1, j], c)
                        v, e = add(v, e, t, t_low)
                a, a_low = add(v, e, a, 0.0)
                g, g_low = plus(g, g_low, x, x_low, 0.5 * v, 0.5 * e)
            J[0, r, i], J[1, r, i] = a, a_low
            if a != 0.0:
                t, t_low = multiply(a, a_low, mu, mu_low)
                v, e = columns[LEFT_X, i], columns[LEFT_X + 1, i]
                put(columns, LEFT_X, i, add(v, e, t, t_low))
                columns[SIZE, i] += abs(t)
        v, e = add(g, g_low, -groups[S, k], -groups[S + 1, k])
        v, e = add(v, e, rows[T, r], rows[T + 1, r])
        put(rows, LEFT_T, r, (v, e))
        v, e = groups[LEFT_S, k], groups[LEFT_S + 1, k]
        put(groups, LEFT_S, k, add(v, e, -rows[MU, r], -rows[MU + 1, r]))
        if kind[k] != DEAD:
            total += rows[MU, r] * rows[T, r]
            off = max(off, abs(rows[LEFT_T, r]))
    for r in range(E.shape[0]):
        v, e = -equal[LIMIT, r], -equal[LIMIT + 1, r]
        for i in range(p):
            if E[r, i] != 0.0:
                t, t_low = times(columns[X, i], columns[X + 1, i], E[r, i])
                v, e = add(v, e, t, t_low)
                t, t_low = times(equal[EQUAL, r], equal[EQUAL + 1, r], E[r, i])
                x, x_low = columns[LEFT_X, i], columns[LEFT_X + 1, i]
                put(columns, LEFT_X, i, add(x, x_low, t, t_low))
        put(equal, LEFT_E, r, (v, e))
        off = max(off, abs(v))
    broken = 0.0
    for i in range(p):
        if lower[i] < upper[i]:
            off = max(off, abs(columns[LEFT_X, i]) / columns[SIZE, i])
            broken += 0.0 * columns[LEFT_X, i]
    return total, off + broken


@exact
def factor(rough, L, sizes, line, p):
    """Cholesky's factor in place, of the matrix brought to a diagonal of ones; whether there is
    one. Powers of two do it, so that nothing is rounded."""
    for i in range(p):
        d = L[0, i, i]
        if not (d > 0.0 and d < math.inf):
            return False
        sizes[line, i] = 2.0 ** -math.floor(0.5 * math.log2(d))
    for j in range(p):
        for i in range(j, p):
            size = sizes[line, i] * sizes[line, j]
            v, e = L[0, i, j] * size, L[1, i, j] * size
            if rough:
                for k in range(j):
                    v -= L[0, i, k] * L[0, j, k]
            else:
                for k in range(j):
                    if L[0, j, k] != 0.0:
                        v, e = plus(v, e, -L[0, i, k], -L[1, i, k], L[0, j, k], L[1, j, k])
            if i == j:
                if not v > (NO_DIGIT if rough else NO_PIVOT):
                    v, e = NO_DIGIT if rough else NO_PIVOT, 0.0
                root = math.sqrt(v)
                t, _ = plus(v, e, -root, 0.0, root, 0.0)
                more = t / (2.0 * root)
                high = root + more
                L[0, j, j], L[1, j, j] = divide(1.0, 0.0, high, more - (high - root))
            else:
                L[0, i, j], L[1, i, j] = multiply(v, e, L[0, j, j], L[1, j, j])
    return True


@exact
def back(L, sizes, at, z, line, p):
    """Solve with a factor in place; its diagonal holds the inverses."""
    for i in range(p):
        v, e = z[line, i] * sizes[at, i], z[line + 1, i] * sizes[at, i]
        for j in range(i):
            if L[0, i, j] != 0.0:
                v, e = plus(v, e, -L[0, i, j], -L[1, i, j], z[line, j], z[line + 1, j])
        put(z, line, i, multiply(v, e, L[0, i, i], L[1, i, i]))
    for i in range(p - 1, -1, -1):
        v, e = z[line, i], z[line + 1, i]
        for j in range(i + 1, p):
            if L[0, j, i] != 0.0:
                v, e = plus(v, e, -L[0, j, i], -L[1, j, i], z[line, j], z[line + 1, j])
        put(z, line, i, multiply(v, e, L[0, i, i], L[1, i, i]))
    for i in range(p):
        z[line, i] *= sizes[at, i]
        z[line + 1, i] *= sizes[at, i]


@exact
def add_square(rough, L, c, line, s, s_low, p):
    """Add ``s c c'`` to the matrix, in its lower half."""
    for i in range(p):
        if rough:
            v = s * c[line, i]
            for j in range(i + 1):
                L[0, i, j] += v * c[line, j]
        elif c[line, i] != 0.0:
            v, e = multiply(c[line, i], c[line + 1, i], s, s_low)
            for j in range(i + 1):
                if c[line, j] != 0.0:
                    L[0, i, j], L[1, i, j] = plus(
                        L[0, i, j], L[1, i, j], v, e, c[line, j], c[line + 1, j]
                    )


@exact
def set_system(
    rough, P, kind, group, E, lower, upper, columns, rows, groups, equal, J, L, ways, inner
):  # fmt: skip
    """Newton's equations with all but x and the multipliers of equalities put in: curvature,
    bounds, and rows through the rooms that they have. False if rounding leaves nothing of it."""
    n, p = J.shape[1], J.shape[2]
    curved, m = P.shape[0] // p, E.shape[0]
    for i in range(p):
        for j in range(i + 1):
            L[0, i, j] = L[1, i, j] = 0.0
    for k in range(kind.size):
        put(groups, SUM, k, (0.0, 0.0))
        groups[RISE, k] = 0.0  # here, the members
    for r in range(n):
        k = group[r]
        put(rows, STIFF, r, (0.0, 0.0))
        if kind[k] != DEAD:
            v, e = divide(rows[MU, r], rows[MU + 1, r], rows[T, r], rows[T + 1, r])
            put(rows, STIFF, r, (v, e))
            put(groups, SUM, k, add(groups[SUM, k], groups[SUM + 1, k], v, e))
            groups[RISE, k] += 1.0
    # Rows around the mean of their group, and the mean: s takes from its rise only.
    for k in range(kind.size):
        if kind[k] == DEAD:
            continue
        several = groups[RISE, k] > 1.0
        w, w_low = groups[SUM, k], groups[SUM + 1, k]
        for i in range(p):
            put(columns, RIGHT, i, (0.0, 0.0))
        for r in range(n):
            if group[r] == k:
                share, share_low = 1.0, 0.0
                if several:
                    share, share_low = divide(rows[STIFF, r], rows[STIFF + 1, r], w, w_low)
                for i in range(p):
                    if J[0, r, i] != 0.0:
                        v, e = columns[RIGHT, i], columns[RIGHT + 1, i]
                        v, e = plus(v, e, J[0, r, i], J[1, r, i], share, share_low)
                        put(columns, RIGHT, i, (v, e))
        give, give_low = 0.0, 0.0
        if kind[k] == HINGE:
            give, give_low = divide(groups[NU, k], groups[NU + 1, k], groups[S, k],
                                    groups[S + 1, k])  # fmt: skip
        give, give_low = add(give, give_low, w, w_low)  # of s
        put(groups, GIVE, k, (give, give_low))
        rise, rise_low = w, w_low
        if kind[k] == HINGE:
            v, e = divide(groups[NU, k], groups[NU + 1, k], groups[S, k], groups[S + 1, k])
            v, e = divide(v, e, give, give_low)
            rise, rise_low = multiply(v, e, w, w_low)
        if kind[k] != FREE:
            add_square(rough, L, columns, RIGHT, rise, rise_low, p)
        if several:
            for r in range(n):
                if group[r] == k:
                    for i in range(p):
                        v, e = -columns[RIGHT, i], -columns[RIGHT + 1, i]
                        put(columns, D_X, i, add(v, e, J[0, r, i], J[1, r, i]))
                    add_square(rough, L, columns, D_X, rows[STIFF, r], rows[STIFF + 1, r], p)
    for r in range(curved):
        v, e = rows[TOTAL, r], rows[TOTAL + 1, r]
        for i in range(p):
            for j in range(i + 1):
                c = P[r * p + i, j]
                if rough:
                    L[0, i, j] += c * v
                elif c != 0.0:
                    t, t_low = times(v, e, c)
                    L[0, i, j], L[1, i, j] = add(L[0, i, j], L[1, i, j], t, t_low)
    for i in range(p):
        v, e = add(L[0, i, i], L[1, i, i], 1.0, 0.0)
        if lower[i] < upper[i]:
            for pull, room in ((LOW, DOWN), (UP, OVER)):
                t, t_low = divide(
                    columns[pull, i], columns[pull + 1, i], columns[room, i], columns[room + 1, i]
                )
                v, e = add(v, e, t, t_low)
            L[0, i, i], L[1, i, i] = v, e
        else:
            for j in range(p):
                a, c = max(i, j), min(i, j)
                L[0, a, c] = L[1, a, c] = 0.0
            L[0, i, i] = 1.0
    if not factor(rough, L, columns, SIZE, p):
        return False
    if m == 0:
        return True
    # What the multipliers of equalities do to x, and to the equalities.
    for a in range(m):
        for i in range(p):
            put(ways, 2 * a, i, (E[a, i] if lower[i] < upper[i] else 0.0, 0.0))
        back(L, columns, SIZE, ways, 2 * a, p)
        for c in range(a + 1):
            v, e = 0.0, 0.0
            for i in range(p):
                if E[c, i] != 0.0 and lower[i] < upper[i]:
                    t, t_low = times(ways[2 * a, i], ways[2 * a + 1, i], E[c, i])
                    v, e = add(v, e, t, t_low)
            inner[0, a, c], inner[1, a, c] = v, e
    return factor(rough, inner, equal, OWN_SIZE, m)


@exact_inlined
def towards(tau, lines, price, room, other, i, second, f_price, f_room):
    """What a product is off tau, with what the first step says of its bend."""
    v, e = multiply(-lines[price, i], -lines[price + 1, i], other[room, i], other[room + 1, i])
    v, e = add(v, e, tau, 0.0)
    if second:
        v, e = plus(v, e, -lines[f_price, i], -lines[f_price + 1, i], lines[f_room, i],
                    lines[f_room + 1, i])  # fmt: skip
    return v, e


@exact
def set_direction(
    tau, second, kind, group, E, lower, upper, columns, rows, groups, equal, J, L, ways, inner
):  # fmt: skip
    """Newton's step towards products of tau."""
    n, p = J.shape[1], J.shape[2]
    m = E.shape[0]
    for k in range(kind.size):
        put(groups, SOFT, k, (0.0, 0.0))
        put(groups, RISE, k, (0.0, 0.0))
        if kind[k] == HINGE or kind[k] == FREE:
            v, e = -groups[LEFT_S, k], -groups[LEFT_S + 1, k]
            if kind[k] == HINGE:
                t, t_low = towards(tau, groups, NU, S, groups, k, second, F_NU, F_S)
                put(groups, D_NU, k, (t, t_low))  # for later
                t, t_low = divide(t, t_low, groups[S, k], groups[S + 1, k])
                v, e = add(v, e, t, t_low)
            put(groups, SOFT, k, (v, e))
    for r in range(n):
        k = group[r]
        put(rows, Q, r, (0.0, 0.0))
        if kind[k] != DEAD:
            v, e = towards(tau, rows, MU, T, rows, r, second, F_MU, F_T)
            v, e = plus(v, e, rows[MU, r], rows[MU + 1, r], rows[LEFT_T, r], rows[LEFT_T + 1, r])
            v, e = divide(v, e, rows[T, r], rows[T + 1, r])
            put(rows, Q, r, (v, e))
            if kind[k] != HARD:
                put(groups, SOFT, k, add(groups[SOFT, k], groups[SOFT + 1, k], v, e))
    for k in range(kind.size):
        if kind[k] == HINGE or kind[k] == FREE:
            put(groups, SOFT, k, divide(groups[SOFT, k], groups[SOFT + 1, k], groups[GIVE, k],
                                        groups[GIVE + 1, k]))  # fmt: skip
    for i in range(p):
        v, e = 0.0, 0.0
        if lower[i] < upper[i]:
            v, e = -columns[LEFT_X, i], -columns[LEFT_X + 1, i]
            for r in range(n):
                if J[0, r, i] != 0.0:
                    v, e = plus(v, e, -J[0, r, i], -J[1, r, i], rows[Q, r], rows[Q + 1, r])
        put(columns, D_X, i, (v, e))
    for r in range(n):
        k = group[r]
        if groups[SOFT, k] != 0.0:
            t, t_low = multiply(rows[STIFF, r], rows[STIFF + 1, r], groups[SOFT, k],
                                groups[SOFT + 1, k])  # fmt: skip
            for i in range(p):
                if lower[i] < upper[i] and J[0, r, i] != 0.0:
                    v, e = columns[D_X, i], columns[D_X + 1, i]
                    put(columns, D_X, i, plus(v, e, J[0, r, i], J[1, r, i], t, t_low))
    for i in range(p):
        v, e = columns[D_X, i], columns[D_X + 1, i]
        put(columns, D_LOW, i, (0.0, 0.0))
        put(columns, D_UP, i, (0.0, 0.0))
        if lower[i] < upper[i]:
            if lower[i] > -math.inf:
                c, c_low = towards(tau, columns, LOW, DOWN, columns, i, second, F_LOW, F_X)
                put(columns, D_LOW, i, (c, c_low))
                t, t_low = divide(c, c_low, columns[DOWN, i], columns[DOWN + 1, i])
                v, e = add(v, e, t, t_low)
            if upper[i] < math.inf:
                c, c_low = towards(tau, columns, UP, OVER, columns, i, False, F_UP, F_X)
                if second:
                    c, c_low = plus(c, c_low, columns[F_UP, i], columns[F_UP + 1, i],
                                    columns[F_X, i], columns[F_X + 1, i])  # fmt: skip
                put(columns, D_UP, i, (c, c_low))
                t, t_low = divide(c, c_low, columns[OVER, i], columns[OVER + 1, i])
                v, e = add(v, e, -t, -t_low)
            put(columns, D_X, i, (v, e))
    back(L, columns, SIZE, columns, D_X, p)
    if m:
        for r in range(m):
            v, e = equal[LEFT_E, r], equal[LEFT_E + 1, r]
            for i in range(p):
                if E[r, i] != 0.0 and lower[i] < upper[i]:
                    t, t_low = times(columns[D_X, i], columns[D_X + 1, i], E[r, i])
                    v, e = add(v, e, t, t_low)
            put(equal, D_EQUAL, r, (v, e))
        back(inner, equal, OWN_SIZE, equal, D_EQUAL, m)
        for r in range(m):
            t, t_low = equal[D_EQUAL, r], equal[D_EQUAL + 1, r]
            for i in range(p):
                v, e = columns[D_X, i], columns[D_X + 1, i]
                put(columns, D_X, i,
                    plus(v, e, -ways[2 * r, i], -ways[2 * r + 1, i], t, t_low))  # fmt: skip
    for k in range(kind.size):
        put(groups, D_S, k, (0.0, 0.0))
    for r in range(n):
        v, e = 0.0, 0.0
        for i in range(p):
            if J[0, r, i] != 0.0:
                v, e = plus(v, e, J[0, r, i], J[1, r, i], columns[D_X, i], columns[D_X + 1, i])
        put(rows, D_T, r, (v, e))
        k = group[r]
        if kind[k] != HARD and kind[k] != DEAD:
            t, t_low = groups[D_S, k], groups[D_S + 1, k]
            t, t_low = plus(t, t_low, rows[STIFF, r], rows[STIFF + 1, r], v, e)
            put(groups, D_S, k, (t, t_low))
    for k in range(kind.size):
        if kind[k] == HINGE or kind[k] == FREE:
            v, e = divide(groups[D_S, k], groups[D_S + 1, k], groups[GIVE, k], groups[GIVE + 1, k])
            v, e = add(v, e, groups[SOFT, k], groups[SOFT + 1, k])
            put(groups, D_S, k, (v, e))
            if kind[k] == HINGE:
                t, t_low = groups[D_NU, k], groups[D_NU + 1, k]
                t, t_low = plus(t, t_low, -groups[NU, k], -groups[NU + 1, k], v, e)
                put(groups, D_NU, k, divide(t, t_low, groups[S, k], groups[S + 1, k]))
            else:
                put(groups, D_NU, k, (0.0, 0.0))
        else:
            put(groups, D_NU, k, (0.0, 0.0))
    for r in range(n):
        k = group[r]
        v, e = rows[D_T, r], rows[D_T + 1, r]
        v, e = add(v, e, -groups[D_S, k], -groups[D_S + 1, k])
        put(rows, D_T, r, add(-v, -e, -rows[LEFT_T, r], -rows[LEFT_T + 1, r]))
        put(rows, D_MU, r, (0.0, 0.0))
        if kind[k] != DEAD:
            t, t_low = rows[Q, r], rows[Q + 1, r]
            put(rows, D_MU, r, plus(t, t_low, rows[STIFF, r], rows[STIFF + 1, r], v, e))
    for i in range(p):
        if lower[i] < upper[i]:
            v, e = columns[D_X, i], columns[D_X + 1, i]
            if lower[i] > -math.inf:
                t, t_low = columns[D_LOW, i], columns[D_LOW + 1, i]
                t, t_low = plus(t, t_low, -columns[LOW, i], -columns[LOW + 1, i], v, e)
                put(columns, D_LOW, i,
                    divide(t, t_low, columns[DOWN, i], columns[DOWN + 1, i]))  # fmt: skip
            if upper[i] < math.inf:
                t, t_low = columns[D_UP, i], columns[D_UP + 1, i]
                t, t_low = plus(t, t_low, columns[UP, i], columns[UP + 1, i], v, e)
                put(columns, D_UP, i,
                    divide(t, t_low, columns[OVER, i], columns[OVER + 1, i]))  # fmt: skip


@exact_inlined
def within(length, room, d_room):
    return min(length, -room / d_room) if d_room < 0.0 else length


@exact
def farthest(kind, group, lower, upper, columns, rows, groups):
    """How much of a step leaves everything positive, at most all of it."""
    length = 1.0
    for r in range(group.size):
        if kind[group[r]] != DEAD:
            length = within(length, rows[MU, r], rows[D_MU, r])
            length = within(length, rows[T, r], rows[D_T, r])
    for k in range(kind.size):
        if kind[k] == HINGE:
            length = within(length, groups[S, k], groups[D_S, k])
            length = within(length, groups[NU, k], groups[D_NU, k])
    for i in range(lower.size):
        if lower[i] < upper[i]:
            if lower[i] > -math.inf:
                length = within(length, columns[LOW, i], columns[D_LOW, i])
                length = within(length, columns[DOWN, i], columns[D_X, i])
            if upper[i] < math.inf:
                length = within(length, columns[UP, i], columns[D_UP, i])
                length = within(length, columns[OVER, i], -columns[D_X, i])
    return length


@exact
def products(t, kind, group, lower, upper, columns, rows, groups):
    """The sum of all products of a multiplier and its room, t along the step; and their count."""
    total = 0.0
    count = 0
    for r in range(group.size):
        if kind[group[r]] != DEAD:
            total += (rows[MU, r] + t * rows[D_MU, r]) * (rows[T, r] + t * rows[D_T, r])
            count += 1
    for k in range(kind.size):
        if kind[k] == HINGE:
            total += (groups[S, k] + t * groups[D_S, k]) * (groups[NU, k] + t * groups[D_NU, k])
            count += 1
    for i in range(lower.size):
        if lower[i] < upper[i]:
            d = columns[D_X, i]
            if lower[i] > -math.inf:
                total += (columns[LOW, i] + t * columns[D_LOW, i]) * (columns[DOWN, i] + t * d)
                count += 1
            if upper[i] < math.inf:
                total += (columns[UP, i] + t * columns[D_UP, i]) * (columns[OVER, i] - t * d)
                count += 1
    return total, count


@exact
def curvature_takes(P, kind, group, columns, rows, length, p):
    """Take from the step of a row's room what its curvature takes; return a length so short that
    this is at most half of the room at its end. Doubles do: the next step mends their rounding."""
    curved = P.shape[0] // p
    for r in range(curved):
        bend = 0.0
        for i in range(p):
            along = 0.0
            for j in range(p):
                along += P[r * p + i, j] * columns[D_X, j]
            bend += 0.5 * along * columns[D_X, i]
        rows[Q, r] = bend
        if kind[group[r]] != DEAD:
            for _ in range(60):
                if length * length * bend <= 0.5 * (rows[T, r] + length * rows[D_T, r]):
                    break
                length *= 0.7
    for r in range(curved):
        put(rows, D_T, r, add(rows[D_T, r], rows[D_T + 1, r], -length * rows[Q, r], 0.0))
    return length


@exact
def copy_lines(lines, source, target, count):
    for line in range(count):
        for i in range(lines.shape[1]):
            lines[target + line, i] = lines[source + line, i]


@exact
def keep(columns, rows, groups, equal):
    """Remember the point."""
    copy_lines(columns, X, BEST_X, 6)
    copy_lines(rows, T, BEST_T, 4)
    copy_lines(groups, S, BEST_S, 4)
    copy_lines(equal, EQUAL, BEST_EQUAL, 2)


@exact
def move(lines, value, step, length):
    for i in range(lines.shape[1]):
        t, t_low = times(lines[step, i], lines[step + 1, i], length)
        put(lines, value, i, add(lines[value, i], lines[value + 1, i], t, t_low))


def walk_size(n: int, p: int, m: int) -> int:
    """How many numbers :func:`walk` needs to work in."""
    return 2 * (n * p + p * p + m * p + m * m)


@kernel("MMVVIIMVVMMMMiV")
def walk(
    P, A, lean, cost, kind, group, E, lower, upper, columns, rows, groups, equal, steps, memory
):  # fmt: skip
    """Newton's method from the point in the first lines, until the gap is small enough or no longer
    falls; the best point is in the lines for it. P has the matrices of the first rows one below the
    other. Return the larger of the gap left and the residual."""
    n, p = A.shape
    m = E.shape[0]
    end = 2 * n * p
    J = cube(address_of(memory, 0), 2, n, p)
    L = cube(address_of(memory, end), 2, p, p)
    end += 2 * p * p
    ways = matrix(address_of(memory, end), 2 * m, p)
    inner = cube(address_of(memory, end + 2 * m * p), 2, m, m)
    best = math.inf
    stuck = 0
    care = CARE
    _, count = products(0.0, kind, group, lower, upper, columns, rows, groups)
    count = max(count, 1)
    keep(columns, rows, groups, equal)
    rough = True
    first = math.inf
    for _ in range(steps):
        total, off = set_state(
            rough, P, A, lean, cost, kind, group, E, lower, upper, columns, rows, groups, equal, J
        )
        gap = total / count
        merit = max(gap, off)
        if merit - merit != 0.0:  # it is infinite, or not a number
            break
        if merit < 0.9 * best:
            stuck = 0
            best = merit
            keep(columns, rows, groups, equal)
        else:
            stuck += 1
        first = gap if first == math.inf else first
        if (not rough and gap <= ENOUGH and off <= SHARP) or stuck > (25 if gap > FIRST else 8):
            break
        if not set_system(rough, P, kind, group, E, lower, upper, columns, rows, groups, equal, J,
                          L, ways, inner):  # fmt: skip
            break
        # First aim at zero, to see how far that leads; then at what it would leave.
        set_direction(0.0, False, kind, group, E, lower, upper, columns, rows, groups, equal, J, L,
                      ways, inner)  # fmt: skip
        length = farthest(kind, group, lower, upper, columns, rows, groups)
        left, _ = products(length, kind, group, lower, upper, columns, rows, groups)
        share = max(left / count / max(gap, 1e-300), 0.0)
        tau = gap * min(max(share * share * share, care), 1.0)
        copy_lines(columns, D_X, F_X, 6)
        copy_lines(rows, D_T, F_T, 4)
        copy_lines(groups, D_S, F_S, 4)
        set_direction(tau, True, kind, group, E, lower, upper, columns, rows, groups, equal, J, L,
                      ways, inner)  # fmt: skip
        length = farthest(kind, group, lower, upper, columns, rows, groups)
        length = min(SHORT * length, 1.0)
        length = curvature_takes(P, kind, group, columns, rows, length, p)
        # Aim low where the last step could go far.
        if length < 0.1 or gap <= ROUGH * first or gap <= FIRST:
            rough = False
        care = max(0.9 * (1.0 - length) * (1.0 - length), CARE)
        for value, step in ((X, D_X), (LOW, D_LOW), (UP, D_UP)):
            move(columns, value, step, length)
        for value, step in ((T, D_T), (MU, D_MU)):
            move(rows, value, step, length)
        for value, step in ((S, D_S), (NU, D_NU)):
            move(groups, value, step, length)
        move(equal, EQUAL, D_EQUAL, length)
    return best
