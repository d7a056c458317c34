"""The compiled part of :mod:`coldq.solver.last_resort`, an interior-point method on pairs.

What it has for every coordinate, row, group and equality are the lines of four matrices, which have
names. Their numbers are those of :mod:`coldq.solver.kernels.long_numbers`.
"""

import math

from coldq.compiled import address_of, exact, kernel, pairs
from coldq.solver.kernels.long_numbers import (
    ONE,
    ZERO,
    add,
    add_row,
    add_square,
    back,
    divide,
    factor,
    inner_product,
    multiply,
    pair,
    plus,
    plus_float,
    ratio,
    times,
)

# Coordinates: x, the multipliers of its bounds and the rooms they have; a step, and one before it.
X, LOW, UP, D_X, D_LOW, D_UP, BEST_X, BEST_LOW, BEST_UP = range(9)
Y, DOWN, OVER, LEFT_X, F_X, F_LOW, F_UP, RIGHT, SIZE, COLUMNS = range(9, 19)
# Rows: the room of each, its multiplier, and how stiff the two make it.
T, MU, D_T, D_MU, BEST_T, BEST_MU = range(6)
B, LEFT_T, Q, STIFF, TOTAL, F_T, F_MU, ROWS = range(6, 14)
# Groups: what rows may rise to, and its multiplier.
S, NU, D_S, D_NU, BEST_S, BEST_NU = range(6)
LEFT_S, SUM, GIVE, SOFT, RISE, F_S, F_NU, GROUPS = range(6, 14)
EQUAL, D_EQUAL, BEST_EQUAL, LEFT_E, LIMIT, OWN_SIZE, EQUALITIES = range(7)
HINGE, FREE, HARD, DEAD = 0, 1, 2, 3  # kinds of groups

SHORT = 0.995  # of the way to the boundary
CARE = 1e-6  # the least share of the gap that a step aims at
FIRST = 1e-10  # of the gap: above it there is more patience
ENOUGH, SHARP = 1e-24, 1e-15  # the complementarity left, and the relative residual
ROUGH = 1e-8  # of the first gap: as far as doubles do


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
        x = columns[X, i]
        v = add(add(x, -columns[Y, i]), -columns[LOW, i])
        columns[LEFT_X, i] = add(v, columns[UP, i])
        columns[SIZE, i] = pair(1.0 + abs(x.real))
        columns[DOWN, i] = ONE
        columns[OVER, i] = ONE
        if lower[i] < upper[i]:
            if lower[i] > -math.inf:
                v = add(x, pair(-lower[i]))
                columns[DOWN, i] = v
                total += v.real * columns[LOW, i].real
            if upper[i] < math.inf:
                v = add(-x, pair(upper[i]))
                columns[OVER, i] = v
                total += v.real * columns[UP, i].real
    for k in range(cost.size):
        if kind[k] == HINGE:
            total += groups[S, k].real * groups[NU, k].real
        worth = 0.0 if kind[k] == HARD else cost[k]
        groups[LEFT_S, k] = add(pair(worth), -groups[NU, k])
    for r in range(n):
        k = group[r]
        g = -rows[B, r]
        mu = add(rows[MU, r], pair(lean[r]))
        rows[TOTAL, r] = mu
        for i in range(p):
            a = pair(A[r, i])
            x = columns[X, i]
            g = plus_float(g, x, A[r, i])
            if r < curved:
                v = along(rough, P, r * p + i, columns)
                a = add(v, a)
                g = plus(g, x, times(v, 0.5))
            J[r, i] = a
            t = multiply(a, mu)
            columns[LEFT_X, i] = add(columns[LEFT_X, i], t)
            columns[SIZE, i] += abs(t.real)
        v = add(add(g, -groups[S, k]), rows[T, r])
        rows[LEFT_T, r] = v
        groups[LEFT_S, k] = add(groups[LEFT_S, k], -rows[MU, r])
        if kind[k] != DEAD:
            total += rows[MU, r].real * rows[T, r].real
            off = max(off, abs(v.real))
    for r in range(E.shape[0]):
        v = -equal[LIMIT, r]
        for i in range(p):
            v = plus_float(v, columns[X, i], E[r, i])
            columns[LEFT_X, i] = plus_float(columns[LEFT_X, i], equal[EQUAL, r], E[r, i])
        equal[LEFT_E, r] = v
        off = max(off, abs(v.real))
    broken = 0.0
    for i in range(p):
        if lower[i] < upper[i]:
            left = columns[LEFT_X, i].real
            off = max(off, abs(left) / columns[SIZE, i].real)
            broken += 0.0 * left
    return total, off + broken


@exact
def along(rough, P, line, columns):
    """A line of the matrices times x."""
    v = ZERO
    high = 0.0
    for j in range(P.shape[1]):
        if rough:
            high += P[line, j] * columns[X, j].real
        else:
            v = plus_float(v, columns[X, j], P[line, j])
    return pair(high) if rough else v


@exact
def set_system(
    rough, P, kind, group, E, lower, upper, columns, rows, groups, equal, J, L, ways, inner
):  # fmt: skip
    """Newton's equations with all but x and the multipliers of equalities put in: curvature,
    bounds, and rows through the rooms that they have. False if rounding leaves nothing of it."""
    n, p = J.shape
    curved, m = P.shape[0] // p, E.shape[0]
    for i in range(p):
        for j in range(i + 1):
            L[i, j] = ZERO
    for k in range(kind.size):
        groups[SUM, k] = ZERO
        groups[RISE, k] = ZERO  # here, the members
    for r in range(n):
        k = group[r]
        rows[STIFF, r] = ZERO
        if kind[k] != DEAD:
            v = ratio(rows, MU, T, r)
            rows[STIFF, r] = v
            groups[SUM, k] = add(groups[SUM, k], v)
            groups[RISE, k] += 1.0
    # Rows around the mean of their group, and the mean: s takes from its rise only.
    for k in range(kind.size):
        if kind[k] == DEAD:
            continue
        several = groups[RISE, k].real > 1.0
        w = groups[SUM, k]
        for i in range(p):
            columns[RIGHT, i] = ZERO
        for r in range(n):
            if group[r] == k:
                share = divide(rows[STIFF, r], w) if several else ONE
                add_row(rough, columns, RIGHT, J, r, share)
        rise, give = w, w
        if kind[k] == HINGE:
            v = ratio(groups, NU, S, k)
            give = add(v, w)  # of s
            rise = multiply(divide(v, give), w)
        groups[GIVE, k] = give
        if kind[k] != FREE:
            add_square(rough, L, columns, RIGHT, rise, p)
        if several:
            for r in range(n):
                if group[r] == k:
                    for i in range(p):
                        columns[D_X, i] = add(J[r, i], -columns[RIGHT, i])
                    add_square(rough, L, columns, D_X, rows[STIFF, r], p)
    for r in range(curved):
        v = rows[TOTAL, r]
        for i in range(p):
            for j in range(i + 1):
                if rough:
                    L[i, j] += P[r * p + i, j] * v.real
                else:
                    L[i, j] = plus_float(L[i, j], v, P[r * p + i, j])
    for i in range(p):
        if lower[i] < upper[i]:
            v = add(add(L[i, i], ONE), ratio(columns, LOW, DOWN, i))
            L[i, i] = add(v, ratio(columns, UP, OVER, i))
        else:
            for j in range(p):
                L[max(i, j), min(i, j)] = ZERO
            L[i, i] = ONE
    if not factor(rough, L, columns, SIZE, p):
        return False
    if m == 0:
        return True
    # What the multipliers of equalities do to x, and to the equalities.
    for a in range(m):
        for i in range(p):
            ways[a, i] = pair(E[a, i] if lower[i] < upper[i] else 0.0)
        back(rough, L, columns, SIZE, ways, a, p)
        for c in range(a + 1):
            inner[a, c] = across(E, c, lower, upper, ways, a, ZERO)
    return factor(rough, inner, equal, OWN_SIZE, m)


@exact
def across(E, r, lower, upper, lines, line, start):
    """An equality's row times a line, over the coordinates that are not fixed."""
    v = start
    for i in range(E.shape[1]):
        if lower[i] < upper[i]:
            v = plus_float(v, lines[line, i], E[r, i])
    return v


@exact
def towards(tau, lines, price, room, i, bend):
    """What a product is off tau, with what the first step says of its bend."""
    v = add(multiply(-lines[price, i], lines[room, i]), pair(tau))
    return add(v, bend)


@exact
def bend_of(second, lines, price, room, i):
    return multiply(-lines[price, i], lines[room, i]) if second else ZERO


@exact
def set_direction(
    rough, tau, second, kind, group, E, lower, upper, columns, rows, groups, equal, J, L, ways,
    inner,
):  # fmt: skip
    """Newton's step towards products of tau."""
    set_right(rough, tau, second, kind, group, lower, upper, columns, rows, groups, J)
    solve(rough, E, lower, upper, columns, equal, L, ways, inner)
    set_rest(rough, kind, group, lower, upper, columns, rows, groups, J)


@exact
def set_right(rough, tau, second, kind, group, lower, upper, columns, rows, groups, J):
    """The right side of Newton's equations for x; what they need later of the others."""
    n, p = J.shape
    for k in range(kind.size):
        groups[SOFT, k] = ZERO
        if kind[k] == HINGE or kind[k] == FREE:
            v = -groups[LEFT_S, k]
            if kind[k] == HINGE:
                t = towards(tau, groups, NU, S, k, bend_of(second, groups, F_NU, F_S, k))
                groups[D_NU, k] = t  # for later
                v = add(v, divide(t, groups[S, k]))
            groups[SOFT, k] = v
    for r in range(n):
        k = group[r]
        rows[Q, r] = ZERO
        if kind[k] != DEAD:
            v = towards(tau, rows, MU, T, r, bend_of(second, rows, F_MU, F_T, r))
            v = divide(plus(v, rows[MU, r], rows[LEFT_T, r]), rows[T, r])
            rows[Q, r] = v
            if kind[k] != HARD:
                groups[SOFT, k] = add(groups[SOFT, k], v)
    for k in range(kind.size):
        if kind[k] == HINGE or kind[k] == FREE:
            groups[SOFT, k] = ratio(groups, SOFT, GIVE, k)
    for i in range(p):
        columns[D_X, i] = -columns[LEFT_X, i]
    for r in range(n):
        t = -rows[Q, r]
        if groups[SOFT, group[r]].real != 0.0:
            t = plus(t, rows[STIFF, r], groups[SOFT, group[r]])
        add_row(rough, columns, D_X, J, r, t)
    for i in range(p):
        v = columns[D_X, i]
        columns[D_LOW, i] = ZERO
        columns[D_UP, i] = ZERO
        if lower[i] < upper[i]:
            if lower[i] > -math.inf:
                t = towards(tau, columns, LOW, DOWN, i, bend_of(second, columns, F_LOW, F_X, i))
                columns[D_LOW, i] = t
                v = add(v, divide(t, columns[DOWN, i]))
            if upper[i] < math.inf:
                t = towards(tau, columns, UP, OVER, i, -bend_of(second, columns, F_UP, F_X, i))
                columns[D_UP, i] = t
                v = add(v, -divide(t, columns[OVER, i]))
        else:
            v = ZERO
        columns[D_X, i] = v


@exact
def solve(rough, E, lower, upper, columns, equal, L, ways, inner):
    """The step of x and of the multipliers of equalities."""
    p, m = L.shape[0], E.shape[0]
    back(rough, L, columns, SIZE, columns, D_X, p)
    for r in range(m):
        equal[D_EQUAL, r] = across(E, r, lower, upper, columns, D_X, equal[LEFT_E, r])
    back(rough, inner, equal, OWN_SIZE, equal, D_EQUAL, m)
    for r in range(m):
        add_row(rough, columns, D_X, ways, r, -equal[D_EQUAL, r])


@exact
def set_rest(rough, kind, group, lower, upper, columns, rows, groups, J):
    """The step of all others, from that of x."""
    n, p = J.shape
    for k in range(kind.size):
        groups[D_S, k] = ZERO
    for r in range(n):
        v = inner_product(rough, J, r, columns, D_X)
        rows[D_T, r] = v
        k = group[r]
        if kind[k] != HARD and kind[k] != DEAD:
            groups[D_S, k] = plus(groups[D_S, k], rows[STIFF, r], v)
    for k in range(kind.size):
        t = ZERO
        if kind[k] == HINGE or kind[k] == FREE:
            v = add(ratio(groups, D_S, GIVE, k), groups[SOFT, k])
            groups[D_S, k] = v
            if kind[k] == HINGE:
                t = divide(plus(groups[D_NU, k], -groups[NU, k], v), groups[S, k])
        groups[D_NU, k] = t
    for r in range(n):
        k = group[r]
        v = add(rows[D_T, r], -groups[D_S, k])
        rows[D_T, r] = add(-v, -rows[LEFT_T, r])
        rows[D_MU, r] = plus(rows[Q, r], rows[STIFF, r], v) if kind[k] != DEAD else ZERO
    for i in range(p):
        if lower[i] < upper[i]:
            v = columns[D_X, i]
            low = plus(columns[D_LOW, i], -columns[LOW, i], v)
            up = plus(columns[D_UP, i], columns[UP, i], v)
            columns[D_LOW, i] = divide(low, columns[DOWN, i])
            columns[D_UP, i] = divide(up, columns[OVER, i])


@exact
def within(length, room, d_room):
    return min(length, -room.real / d_room.real) if d_room.real < 0.0 else length


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
def product_at(t, a, d_a, b, d_b):
    return (a.real + t * d_a.real) * (b.real + t * d_b.real)


@exact
def products(t, kind, group, lower, upper, columns, rows, groups):
    """The sum of all products of a multiplier and its room, t along the step; and their count."""
    total = 0.0
    count = 0
    for r in range(group.size):
        if kind[group[r]] != DEAD:
            total += product_at(t, rows[MU, r], rows[D_MU, r], rows[T, r], rows[D_T, r])
            count += 1
    for k in range(kind.size):
        if kind[k] == HINGE:
            total += product_at(t, groups[S, k], groups[D_S, k], groups[NU, k], groups[D_NU, k])
            count += 1
    for i in range(lower.size):
        if lower[i] < upper[i]:
            d = columns[D_X, i]
            if lower[i] > -math.inf:
                total += product_at(t, columns[LOW, i], columns[D_LOW, i], columns[DOWN, i], d)
                count += 1
            if upper[i] < math.inf:
                total += product_at(t, columns[UP, i], columns[D_UP, i], columns[OVER, i], -d)
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
            rise = 0.0
            for j in range(p):
                rise += P[r * p + i, j] * columns[D_X, j].real
            bend += 0.5 * rise * columns[D_X, i].real
        rows[Q, r] = pair(bend)
        if kind[group[r]] != DEAD:
            room, d_room = rows[T, r].real, rows[D_T, r].real
            for _ in range(60):
                if length * length * bend <= 0.5 * (room + length * d_room):
                    break
                length *= 0.7
    for r in range(curved):
        rows[D_T, r] = add(rows[D_T, r], pair(-length * rows[Q, r].real))
    return length


@exact
def copy_lines(lines, source, target, count):
    for line in range(count):
        for i in range(lines.shape[1]):
            lines[target + line, i] = lines[source + line, i]


@exact
def keep(columns, rows, groups, equal):
    """Remember the point."""
    copy_lines(columns, X, BEST_X, 3)
    copy_lines(rows, T, BEST_T, 2)
    copy_lines(groups, S, BEST_S, 2)
    copy_lines(equal, EQUAL, BEST_EQUAL, 1)


@exact
def move(lines, value, step, count, length):
    """Move some lines along the step, of which the lines lie in the same order."""
    for line in range(count):
        for i in range(lines.shape[1]):
            place = lines[value + line, i]
            lines[value + line, i] = plus_float(place, lines[step + line, i], length)


def walk_size(n: int, p: int, m: int) -> int:
    """How many numbers :func:`walk` needs to work in."""
    return 2 * (n * p + p * p + m * p + m * m)


@kernel("MMVVIIMVVMMMMiV")
def walk(
    P, A, lean, cost, kind, group, E, lower, upper, of_columns, of_rows, of_groups, of_equal, steps,
    memory,
):  # fmt: skip
    """Newton's method from the point in the first lines, until the gap is small enough or no longer
    falls; the best point is in the lines for it. P has the matrices of the first rows one below the
    other, `of_columns` and so on the pairs. Return the larger of the gap left and the residual."""
    n, p = A.shape
    m = E.shape[0]
    columns = pairs(address_of(of_columns, 0), COLUMNS, p)
    rows = pairs(address_of(of_rows, 0), ROWS, n)
    groups = pairs(address_of(of_groups, 0), GROUPS, cost.size)
    equal = pairs(address_of(of_equal, 0), EQUALITIES, m)
    J = pairs(address_of(memory, 0), n, p)
    L = pairs(address_of(memory, 2 * n * p), p, p)
    end = 2 * (n * p + p * p)
    ways = pairs(address_of(memory, end), m, p)
    inner = pairs(address_of(memory, end + 2 * m * p), m, m)
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
        if not (abs(merit) < math.inf):
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
            if not rough:
                break
            rough = False
            continue
        # First aim at zero, to see how far that leads; then at what it would leave.
        set_direction(rough, 0.0, False, kind, group, E, lower, upper, columns, rows, groups, equal,
                      J, L, ways, inner)  # fmt: skip
        length = farthest(kind, group, lower, upper, columns, rows, groups)
        left, _ = products(length, kind, group, lower, upper, columns, rows, groups)
        share = max(left / count / max(gap, 1e-300), 0.0)
        tau = gap * min(max(share * share * share, care), 1.0)
        copy_lines(columns, D_X, F_X, 3)
        copy_lines(rows, D_T, F_T, 2)
        copy_lines(groups, D_S, F_S, 2)
        set_direction(rough, tau, True, kind, group, E, lower, upper, columns, rows, groups, equal,
                      J, L, ways, inner)  # fmt: skip
        length = farthest(kind, group, lower, upper, columns, rows, groups)
        length = min(SHORT * length, 1.0)
        length = curvature_takes(P, kind, group, columns, rows, length, p)
        # Aim low where the last step could go far.
        if length < 0.1 or gap <= ROUGH * first or gap <= FIRST:
            rough = False
        care = max(0.9 * (1.0 - length) * (1.0 - length), CARE)
        move(columns, X, D_X, 3, length)
        move(rows, T, D_T, 2, length)
        move(groups, S, D_S, 2, length)
        move(equal, EQUAL, D_EQUAL, 1, length)
    return best
