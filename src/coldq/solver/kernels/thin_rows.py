"""Quadratic rows without matrices on a box: diagonals around centers, factors, slopes.

The dual Newton method of :mod:`coldq.solver.kernels.quadratic`, where the Lagrangian's matrix is a
diagonal and ``G G'`` with a column ``sqrt(mu_n) f`` for every factor f of a row n. Its minimiser
over the box is a formula of ``u = G'x``, and u maximises a concave function in as many variables as
there are factors, which is curved by at least 1 everywhere. So nothing has p by p numbers.
"""

import math

from coldq.compiled import batch_kernel, compiled, cube, inlined, matrix, vector
from coldq.solver.constants import REGULARISATION, TERMS, TINY, X_FLOOR
from coldq.solver.kernels.factors import cholesky, cholesky_solve
from coldq.solver.kernels.piece import (
    CHOSEN, HESSIAN, HI, LO, MU, NORM, SCALE, STEP, G, Y, Z, give_multipliers, known_size,
    list_moving, maximise, memory_of, move_chosen, set_room, set_target, told,
)  # fmt: skip
from coldq.solver.kernels.quadratic import (
    BACK, JAC, LEAST_PIVOT, SEARCH, UNIT, begin_search, curved_residual, is_reached, most_wrong,
    next_place, slope_along,
)  # fmt: skip

STIFF, PULL, THIN_COLUMNS = range(4, 7)  # the Lagrangian's diagonal, and what x is pulled to
# Of every factor: sqrt(mu), u, the slope and the step in u, f'x and the size of its terms, its
# place, u before a step.
ROOT, U, RISE, MOVE, SUM, SIZE, PLACE, BEFORE, FACTOR_LINES = range(9)


@inlined
def thin_scratch_size(n, p, k):
    """How many numbers an instance needs to work in."""
    return (THIN_COLUMNS + 2 * n) * p + (HESSIAN + 2 * n) * n + (FACTOR_LINES + 2 * k + n) * k


@compiled
def set_diagonal_part(rows, d, c, q, owner, columns, factors):
    """Set the diagonal and the pull of the Lagrangian, and the roots of multipliers."""
    n, p = d.shape
    for i in range(p):
        columns[STIFF, i] = 1.0
        columns[PULL, i] = columns[Y, i]
    for k in range(n):
        mu = rows[MU, k]
        if mu != 0.0:
            for i in range(p):
                columns[STIFF, i] += mu * d[k, i]
                columns[PULL, i] -= mu * (q[k, i] - d[k, i] * c[k, i])
    for j in range(owner.size):
        factors[ROOT, j] = math.sqrt(max(rows[MU, int(owner[j])], 0.0))
        factors[PLACE, j] = j


@compiled
def set_point(F, lower, upper, columns, factors, x):
    """Set x to the minimiser for u; and the slope in u there, relative to its terms at most."""
    p = x.size
    for i in range(p):
        columns[Z, i] = columns[PULL, i]
    for j in range(F.shape[0]):
        weight = factors[ROOT, j] * factors[U, j]
        if weight != 0.0:
            for i in range(p):
                columns[Z, i] -= weight * F[j, i]
    for i in range(p):
        x[i] = min(max(columns[Z, i] / columns[STIFF, i], lower[i]), upper[i])
    worst = 0.0
    for j in range(F.shape[0]):
        total = 0.0
        size = 0.0
        for i in range(p):
            total += F[j, i] * x[i]
            size += abs(F[j, i] * x[i])
        root = factors[ROOT, j]
        factors[SUM, j] = total
        factors[RISE, j] = root * total - factors[U, j]
        terms = root * size + abs(factors[U, j])
        worst = max(worst, abs(factors[RISE, j]) / max(terms, TINY))
    return worst


@compiled
def factor_matrix(F, lower, upper, columns, factors, x, M, L):
    """The factor of ``I + G'S^-1 G`` over what is free of x, S the diagonal."""
    p = x.size
    k = F.shape[0]
    for j in range(k):
        for e in range(j + 1):
            M[j, e] = 1.0 if j == e else 0.0
        if factors[ROOT, j] == 0.0:
            continue
        for i in range(p):
            inside = lower[i] < x[i] and x[i] < upper[i]
            columns[Z, i] = F[j, i] / columns[STIFF, i] if inside else 0.0
        for e in range(j + 1):
            total = 0.0
            for i in range(p):
                total += columns[Z, i] * F[e, i]
            M[j, e] += factors[ROOT, j] * factors[ROOT, e] * total
    cholesky(M, L, factors[PLACE], k, LEAST_PIVOT)


@compiled
def minimise_thin(rows, d, c, q, F, owner, lower, upper, columns, factors, M, L, x):
    """Set x to the minimiser of ``|x - y|^2 / 2 + mu'g(x)`` over the box, from what u is at x."""
    k = owner.size
    set_diagonal_part(rows, d, c, q, owner, columns, factors)
    for j in range(k):
        factors[U, j] = factors[ROOT, j] * factors[SUM, j]
    worst = set_point(F, lower, upper, columns, factors, x)
    rounded = 1e-15 * max(1.0, math.sqrt(x.size / 64.0))
    best = math.inf
    stuck = 0
    for _ in range(80 if k > 0 else 0):
        stuck = 0 if worst < 0.5 * best else stuck + 1
        best = min(best, worst)
        if not (worst > rounded) or stuck > 4:
            break
        factor_matrix(F, lower, upper, columns, factors, x, M, L)
        for j in range(k):
            factors[MOVE, j] = factors[RISE, j]
            factors[BEFORE, j] = factors[U, j]
        cholesky_solve(L, factors[MOVE], k)
        first = 0.0
        for j in range(k):
            first += factors[RISE, j] * factors[MOVE, j]
        t = 1.0
        left = 0.0
        left_slope = first
        right = math.inf
        right_slope = 0.0
        for _ in range(30):
            for j in range(k):
                factors[U, j] = factors[BEFORE, j] + t * factors[MOVE, j]
            worst = set_point(F, lower, upper, columns, factors, x)
            slope = 0.0
            for j in range(k):
                slope += factors[RISE, j] * factors[MOVE, j]
            if slope >= -SEARCH * first or not (worst > rounded):
                break
            t, left, left_slope, right, right_slope = next_place(
                t, slope, math.inf, left, left_slope, right, right_slope
            )
            if not (left < t and t < right):
                break


@compiled
def set_thin_values(d, c, q, b, F, owner, lower, upper, columns, rows, factors, blocks, x):
    """g and its jacobian, the sizes of the terms that g is the sum of, and of those of the jacobian
    that x moves: around centers relative to these, where the rounding of x counts."""
    n, p = d.shape
    for k in range(n):
        most = 0.0
        for i in range(p):
            size = known_size(x[i], columns[Y, i], lower[i], upper[i])
            if d[k, i] != 0.0:
                most = max(most, max(abs(x[i] - c[k, i]), size - abs(x[i])))
            if q[k, i] != 0.0:
                most = max(most, size)
        rows[UNIT, k] = most
    for j in range(F.shape[0]):
        k = int(owner[j])
        for i in range(p):
            if F[j, i] != 0.0:
                size = known_size(x[i], columns[Y, i], lower[i], upper[i])
                rows[UNIT, k] = max(rows[UNIT, k], size)
    for k in range(n):
        least = X_FLOOR * rows[UNIT, k]
        value = 0.0
        size = 0.0
        for i in range(p):
            away = x[i] - c[k, i]
            at = max(abs(away), least)
            most = d[k, i] * (abs(x[i]) + abs(c[k, i]))
            value += 0.5 * d[k, i] * away * away + q[k, i] * x[i]
            size += 0.5 * d[k, i] * at * at + abs(q[k, i]) * max(abs(x[i]), least)
            size += TERMS * most * abs(away) if c[k, i] != 0.0 else 0.0
            blocks[JAC, k, i] = d[k, i] * away + q[k, i]
            blocks[BACK, k, i] = most
        rows[G, k] = value - b[k]
        rows[SCALE, k] = size + abs(b[k])
    for j in range(F.shape[0]):
        k = int(owner[j])
        least = X_FLOOR * rows[UNIT, k]
        total = 0.0
        size = 0.0
        for i in range(p):
            total += F[j, i] * x[i]
            size += abs(F[j, i]) * max(abs(x[i]), least)
        factors[SUM, j] = total
        rows[G, k] += 0.5 * total * total
        rows[SCALE, k] += 0.5 * size * size
        for i in range(p):
            blocks[JAC, k, i] += F[j, i] * total
            blocks[BACK, k, i] += abs(F[j, i]) * size


@compiled
def set_thin_piece(F, lower, upper, columns, rows, factors, M, L, T, blocks, x, m):
    """Set the dual's piece for the chosen rows: how g at x(mu) falls, through what is free of x.

    ``J (S + G G')^-1 J'`` without a matrix of p by p. Whether a row is flat there.
    """
    p = x.size
    flat = False
    k = F.shape[0]
    factor_matrix(F, lower, upper, columns, factors, x, M, L)
    for a in range(m):
        r = int(rows[CHOSEN, a])
        norm = 0.0
        for i in range(p):
            slope = blocks[JAC, r, i]
            norm += slope * slope if lower[i] < upper[i] else 0.0
            inside = lower[i] < x[i] and x[i] < upper[i]
            blocks[BACK, r, i] = slope / math.sqrt(columns[STIFF, i]) if inside else 0.0
        for j in range(k):
            total = 0.0
            if factors[ROOT, j] > 0.0:
                for i in range(p):
                    total += F[j, i] * blocks[BACK, r, i] / math.sqrt(columns[STIFF, i])
            s = factors[ROOT, j] * total
            for e in range(j):
                s -= L[j, e] * T[r, e]
            T[r, j] = s / L[j, j]
        set_room(rows, a, r)
        for e in range(a + 1):
            o = int(rows[CHOSEN, e])
            s = 0.0
            for i in range(p):
                s += blocks[BACK, r, i] * blocks[BACK, o, i]
            whole = s
            for j in range(k):
                s -= T[r, j] * T[o, j]
            if o == r:
                s = max(s, 1e-15 * whole)
                unit = rows[UNIT, r]
                steep = X_FLOOR * rows[SCALE, r] / (unit if unit > 0.0 else math.inf)
                least = REGULARISATION * (norm + steep * steep) + TINY
                flat = flat or s < least
                s += least
            rows[HESSIAN + a, e] = s
            rows[HESSIAN + e, a] = s
    return flat


@compiled
def go_along_thin(
    d, c, q, b, F, owner, lower, upper, columns, rows, factors, M, L, blocks, x, m, flat
):  # fmt: skip
    """Go along D until the dual's slope has nearly vanished.

    How many places were tried: 0 if it does not rise, below 0 if it rises for ever.
    """
    first, limit = begin_search(rows, d.shape[0], m)
    if not (first > 0.0):
        return 0
    left = 0.0
    left_slope = first
    right = math.inf
    right_slope = 0.0
    t = 1.0
    tried = 0
    for _ in range(60):
        move_chosen(rows, m, t, STEP)
        minimise_thin(rows, d, c, q, F, owner, lower, upper, columns, factors, M, L, x)
        set_thin_values(d, c, q, b, F, owner, lower, upper, columns, rows, factors, blocks, x)
        tried += 1
        slope = slope_along(rows, m)
        if is_reached(t, slope, first, limit, left, flat):
            break
        t, left, left_slope, right, right_slope = next_place(
            t, slope, limit, left, left_slope, right, right_slope
        )
        if t > 1e100:
            return -1
        if not (left < t and t < right):
            break
    return tried


@compiled
def solve_thin(
    center, gradient, alpha, floor, weights, d, c, q, b, F, owner, lower, upper, columns, rows,
    factors, M, L, T, blocks, x, multipliers,
):  # fmt: skip
    n = d.shape[0]
    half = 0.5 / alpha
    if not set_target(center, gradient, half, lower, upper, columns, x):
        return math.nan
    for k in range(n):
        rows[LO, k] = floor[k] * half
        rows[HI, k] = weights[k] * half
        rows[MU, k] = min(max(0.0, rows[LO, k]), rows[HI, k])
        rows[NORM, k] = 1.0  # no row is known to be constant
    for j in range(owner.size):
        factors[SUM, j] = 0.0
    minimise_thin(rows, d, c, q, F, owner, lower, upper, columns, factors, M, L, x)
    set_thin_values(d, c, q, b, F, owner, lower, upper, columns, rows, factors, blocks, x)
    best = math.inf
    least = math.inf
    stuck = 0
    tried = 0
    clash = False
    for _ in range(60 + 10 * n):
        m, settled = list_moving(rows, n)
        if settled:
            break
        flat = set_thin_piece(F, lower, upper, columns, rows, factors, M, L, T, blocks, x, m)
        maximise(rows, n, m, math.inf)
        more = go_along_thin(
            d, c, q, b, F, owner, lower, upper, columns, rows, factors, M, L, blocks, x, m, flat
        )
        clash = more < 0
        if more <= 0:
            break
        tried += more
        residual = curved_residual(x, lower, upper, columns, rows, blocks)
        wrong = most_wrong(rows, n)
        stuck = 0 if residual < 0.5 * best or wrong < 0.5 * least else stuck + 1
        best = residual if residual < 0.5 * best else best
        least = wrong if wrong < 0.5 * least else least
        if not (best > 1e-13) or (stuck > 8 and best <= 1e-11) or stuck > 12 or tried > 150:
            break
    set_thin_values(d, c, q, b, F, owner, lower, upper, columns, rows, factors, blocks, x)
    residual = curved_residual(x, lower, upper, columns, rows, blocks)
    give_multipliers(alpha, floor, weights, rows, multipliers)
    return math.inf if clash else residual


@batch_kernel("(p),(p),(),(n),(n),(n,p),(n,p),(n,p),(n),(k,p),(k),(p),(p),(s)->(p),(n),()")
def thin_step(sizes, at):
    """Rows ``sum_i d_i (x_i - c_i)^2 / 2 + <q, x> - b``, and ``(f'x)^2 / 2`` for every factor f of
    theirs: center, gradient, alpha, floor, weights, d, c, q, b, F, the row of each factor, lower,
    upper, memory; x, multipliers, residual."""
    p, n, k, s = sizes[0], sizes[1], sizes[2], sizes[3]
    rows_ = THIN_COLUMNS * p
    blocks_ = rows_ + (HESSIAN + 2 * n) * n
    factors_ = blocks_ + 2 * n * p
    matrix_ = factors_ + FACTOR_LINES * k
    memory = memory_of(at[13], s, at[17], thin_scratch_size(n, p, k))
    if memory == 0:
        return math.nan
    residual = solve_thin(
        vector(at[0], p), vector(at[1], p), vector(at[2], 1)[0], vector(at[3], n),
        vector(at[4], n), matrix(at[5], n, p), matrix(at[6], n, p), matrix(at[7], n, p),
        vector(at[8], n), matrix(at[9], k, p), vector(at[10], k), vector(at[11], p),
        vector(at[12], p), matrix(memory, THIN_COLUMNS, p),
        matrix(memory + 8 * rows_, HESSIAN + 2 * n, n),
        matrix(memory + 8 * factors_, FACTOR_LINES, k), matrix(memory + 8 * matrix_, k, k),
        matrix(memory + 8 * (matrix_ + k * k), k, k),
        matrix(memory + 8 * (matrix_ + 2 * k * k), n, k), cube(memory + 8 * blocks_, 2, n, p),
        vector(at[14], p), vector(at[15], n),
    )  # fmt: skip
    return told(at[16], residual)
