"""Quadratic rows on a box, with affine rows beside them.

The dual is the same, but x(mu) minimises a quadratic over the box and the pieces of the dual are no
longer quadratic: Newton's method with a line search on the slope.
"""

import math

from coldq.compiled import address_of, batch_kernel, compiled, cube, inlined, matrix, vector
from coldq.solver.constants import REGULARISATION, TERMS, TINY, X_FLOOR
from coldq.solver.kernels.factors import product, product_and_size
from coldq.solver.kernels.piece import (
    CHOSEN, DOWN, FREE, GAIN, HESSIAN, HI, LO, MU, NORM, SCALE, SOFT, STEP, UP, D, G, W, Y, Z,
    give_multipliers, kkt_residual, known_size, list_moving, maximise, memory_of, move_chosen,
    set_room, set_target, told, width_of,
)  # fmt: skip
from coldq.solver.kernels.tiles import padded, solve_again, solve_tiles

SEARCH = 0.2  # of the slope at the start: a closer search costs more than a Newton step
C, TRIAL, R, MOVE, LIST, FACTORED, SIZE, CURVED_COLUMNS = range(4, 12)
NONE = -1.0  # in place of a coordinate: the list ends
UNIT = SOFT  # quadratic rows have no compliance
LEAST_PIVOT = 1e-14  # of a diagonal entry
JAC, BACK = range(2)  # blocks of n by p: the jacobian; what x moves of it, or it through the factor


@inlined
def curved_scratch_size(n, p):
    """As :func:`scratch_size`, for quadratic rows."""
    h = padded(p)
    return (CURVED_COLUMNS + p + h) * h + 2 * n * p + (HESSIAN + 2 * n) * n


@compiled
def list_free(x, lower, upper, columns):
    """List the coordinates strictly between their bounds, and say how many there are."""
    count = 0
    for i in range(x.size):
        if lower[i] < x[i] and x[i] < upper[i]:
            columns[LIST, count] = i
            count += 1
    return count


@compiled
def solve_listed(B, L, columns, right, count):
    """Solve with B over the coordinates listed, for what `right` has of them; into MOVE.

    B is factored unless L is its factor over these already. What is half solved is in L, after each
    of the factor's columns.
    """
    p, h = B.shape
    known = columns[FACTORED, count] == NONE
    for a in range(count):
        known = known and columns[FACTORED, a] == columns[LIST, a]
    move = address_of(columns[MOVE], 0)
    if known:
        for a in range(h):
            columns[TRIAL, a] = right[int(columns[LIST, a])] if a < count else 0.0
        solve_again(address_of(L, 0), h, count, address_of(columns[TRIAL], 0), move)
        return
    solve_tiles(address_of(B, 0), address_of(L, 0), h, columns[LIST], count, p, right, move)
    for a in range(count):
        columns[FACTORED, a] = columns[LIST, a]
    columns[FACTORED, count] = NONE


@compiled
def form_lagrangian(mu, P, A, columns, B):
    """Set C and B of ``x'B x / 2 - C'x``, which is ``|x - y|^2 / 2 + mu'g(x)``; is B not I?

    B is set only if it is not.
    """
    n, p = A.shape
    m = P.shape[0]
    curved = False
    for i in range(p):
        columns[C, i] = columns[Y, i]
    for k in range(n):
        if mu[k] != 0.0:
            curved = curved or k < m
            for i in range(p):
                columns[C, i] -= mu[k] * A[k, i]
    if curved:
        columns[FACTORED, 0] = NONE
        for i in range(p):
            for j in range(p):
                B[i, j] = 0.0
            B[i, i] = 1.0
            for k in range(m):
                if mu[k] != 0.0:
                    for j in range(p):
                        B[i, j] += mu[k] * P[k, i, j]
    return curved


@compiled
def list_to_solve(lower, upper, columns, B, x, careful):
    """List the coordinates to be solved for next, in order, with slopes in R: none, if x is it.

    Those that a bound does not hold back; if careful, of those at a bound one at a time.
    """
    p = x.size
    count = 0
    done = True
    worst = 0.0
    pick = -1
    h = B.shape[1]
    sizes = address_of(columns[SIZE], 0)
    for i in range(p):
        columns[SIZE, i] = abs(x[i])
    for i in range(p):
        s, size = product_and_size(address_of(B, i * h), address_of(x, 0), sizes, p)
        size += abs(columns[C, i])
        r = s - columns[C, i]
        columns[R, i] = r
        wrong = abs(r) > 1e-15 * size
        at_bound = x[i] <= lower[i] or x[i] >= upper[i]
        if (x[i] <= lower[i] and r >= 0.0) or (x[i] >= upper[i] and r <= 0.0):
            columns[FREE, i] = 0.0
            continue
        if not careful or not at_bound:
            columns[FREE, i] = 1.0
        elif columns[FREE, i] == 0.0:
            if wrong and abs(r) > worst * size:
                worst = abs(r) / size
                pick = i
            continue
        columns[LIST, count] = i
        count += 1
        done = done and not wrong
    if done and pick >= 0:
        columns[FREE, pick] = 1.0
        place = count
        while place > 0 and columns[LIST, place - 1] > pick:
            columns[LIST, place] = columns[LIST, place - 1]
            place -= 1
        columns[LIST, place] = pick
        return count + 1
    return 0 if done else count


@compiled
def minimise_lagrangian(mu, P, A, lower, upper, columns, B, L, x):
    """Set x to the minimiser of ``|x - y|^2 / 2 + mu'g(x)`` over the box, from x.

    The projected Newton method: solve for the coordinates that are not held at a bound, and
    shorten the step where the box cuts it until the value falls.
    """
    p = x.size
    if not form_lagrangian(mu, P, A, columns, B):
        for i in range(p):
            x[i] = min(max(columns[C, i], lower[i]), upper[i])
        return
    for i in range(p):
        x[i] = min(max(x[i], lower[i]), upper[i])
    careful = False
    for attempt in range(80 + 4 * p):
        # At first all coordinates that a bound does not hold back are solved for, and the step is
        # shortened where the box cuts it. That may creep; then bounds are met one by one and left
        # one by one, of which every full step goes down.
        careful = careful or attempt == 20
        count = list_to_solve(lower, upper, columns, B, x, careful)
        if count == 0:
            break
        solve_listed(B, L, columns, columns[R], count)
        for a in range(count):
            columns[MOVE, a] = -columns[MOVE, a]
        t = 1.0
        if careful:
            for a in range(count):
                i = int(columns[LIST, a])
                move = columns[MOVE, a]
                room = upper[i] - x[i] if move > 0.0 else lower[i] - x[i]
                if abs(move) * t > abs(room):
                    t = abs(room) / max(abs(move), TINY)
        settled = True
        inside = True
        for i in range(p):
            columns[TRIAL, i] = 0.0
        for _ in range(30):
            inside = True
            first = 0.0
            for a in range(count):
                i = int(columns[LIST, a])
                wish = x[i] + t * columns[MOVE, a]
                there = min(max(wish, lower[i]), upper[i])
                inside = inside and wish == there
                columns[TRIAL, i] = there - x[i]
                first += columns[R, i] * (there - x[i])
            if inside or careful:
                break
            second = 0.0
            for a in range(count):
                i = int(columns[LIST, a])
                line = address_of(B, i * B.shape[1])
                second += product(line, address_of(columns[TRIAL], 0), p) * columns[TRIAL, i]
            if first + 0.5 * second <= 0.1 * first:
                break
            t *= 0.5
        for a in range(count):
            i = int(columns[LIST, a])
            there = min(max(x[i] + columns[TRIAL, i], lower[i]), upper[i])
            settled = settled and abs(columns[TRIAL, i]) <= 4e-16 * abs(x[i])
            if careful and t < 1.0:
                move = columns[MOVE, a]
                room = upper[i] - x[i] if move > 0.0 else lower[i] - x[i]
                if t * abs(move) >= abs(room) * (1.0 - 1e-15):
                    there = upper[i] if move > 0.0 else lower[i]
                    columns[FREE, i] = 0.0
            x[i] = there
        if settled and not careful:
            if inside:
                break
            careful = True


@compiled
def set_curved_values(P, A, b, x, lower, upper, columns, rows, blocks):
    """g and its jacobian, the sizes of the terms that g is the sum of, and of those of the jacobian
    that x moves.

    In a row coordinates count at least with X_FLOOR of the largest that is in it.
    """
    n, p = A.shape
    m = P.shape[0]
    for k in range(n):
        most = 0.0
        for i in range(p):
            if A[k, i] != 0.0 or (k < m and P[k, i, i] != 0.0):
                most = max(most, known_size(x[i], columns[Y, i], lower[i], upper[i]))
        for i in range(p):
            columns[SIZE, i] = max(abs(x[i]), X_FLOOR * most)
        value = 0.0
        size = 0.0
        for i in range(p):
            s = 0.0
            t = 0.0
            if k < m:
                line = address_of(P, (k * p + i) * p)
                s, t = product_and_size(line, address_of(x, 0), address_of(columns[SIZE], 0), p)
            value += (0.5 * s + A[k, i]) * x[i]
            size += (0.5 * t + abs(A[k, i])) * columns[SIZE, i]
            blocks[JAC, k, i] = s + A[k, i]
            blocks[BACK, k, i] = t
        rows[G, k] = value - b[k]
        rows[SCALE, k] = size + abs(b[k])
        rows[UNIT, k] = most


@compiled
def curved_residual(x, lower, upper, columns, rows, blocks):
    """The residual for quadratic rows; G, SCALE and both blocks belong to x already.

    Nothing is relative to 1: a coordinate is relative to all that it is the sum of.
    """
    n, p = blocks.shape[1], blocks.shape[2]
    for i in range(p):
        y = columns[Y, i]
        columns[Z, i] = y
        terms = abs(x[i]) + abs(y)
        for k in range(n):
            term = blocks[JAC, k, i] * rows[MU, k]
            columns[Z, i] -= term
            terms += abs(term) + TERMS * blocks[BACK, k, i] * abs(rows[MU, k])
        columns[W, i] = width_of(x[i], columns[Z, i], y, terms, lower[i], upper[i])
    return kkt_residual(n, p, x, lower, upper, columns, rows)


@compiled
def set_curved_piece(P, lower, upper, columns, B, L, blocks, rows, x, m):
    """Set the dual's piece for the chosen rows: how g at x(mu) falls, through what is free of x.

    Whether a row is flat there: nothing that it moves is free.
    """
    n, p = blocks.shape[1], x.size
    back = matrix(address_of(blocks, BACK * n * p), n, p)
    flat = False
    curved = False
    for k in range(P.shape[0]):
        curved = curved or rows[MU, k] != 0.0
    count = list_free(x, lower, upper, columns)
    for a in range(m):
        k = int(rows[CHOSEN, a])
        norm = 0.0
        for i in range(p):
            norm += blocks[JAC, k, i] * blocks[JAC, k, i] if lower[i] < upper[i] else 0.0
        if curved:
            own = vector(address_of(blocks, (JAC * n + k) * p), p)
            solve_listed(B, L, columns, own, count)
        for c in range(count):
            back[k, c] = L[c, count] if curved else blocks[JAC, k, int(columns[LIST, c])]
        set_room(rows, a, k)
        for c in range(a + 1):
            j = int(rows[CHOSEN, c])
            s = product(address_of(back, k * p), address_of(back, j * p), count)
            if j == k:
                unit = rows[UNIT, k]
                steep = X_FLOOR * rows[SCALE, k] / (unit if unit > 0.0 else math.inf)
                least = REGULARISATION * (norm + steep * steep) + TINY
                flat = flat or s < least
                s += least
            rows[HESSIAN + a, c] = s
            rows[HESSIAN + c, a] = s
    return flat


@inlined
def begin_search(rows, n, m):
    """Keep the multipliers; the dual's slope along d, and how far they may go along it."""
    first = 0.0
    limit = math.inf
    for a in range(m):
        d = rows[D, a]
        first += d * rows[GAIN, a]
        if d > 0.0:
            limit = min(limit, rows[UP, a] / max(d, TINY))
        elif d < 0.0:
            limit = min(limit, rows[DOWN, a] / min(d, -TINY))
    for k in range(n):
        rows[STEP, k] = rows[MU, k]
    return first, max(limit, 1.0)


@inlined
def slope_along(rows, m):
    """The dual's slope along d at x."""
    slope = 0.0
    for a in range(m):
        slope += rows[D, a] * rows[G, int(rows[CHOSEN, a])]
    return slope


@inlined
def most_wrong(rows, n):
    """The largest |g| that a multiplier does not explain.

    Around a point that a row hardly lets x leave, the terms of g shrink along with it, so that the
    residual, which is relative to them, shows no progress until the end.
    """
    worst = 0.0
    for k in range(n):
        mu, g = rows[MU, k], rows[G, k]
        if (mu > rows[LO, k] and g < 0.0) or (mu < rows[HI, k] and g > 0.0):
            worst = max(worst, abs(g))
    return worst


@inlined
def is_reached(t, slope, first, limit, left, flat):
    """Whether to stop at a place along d: there the slope has nearly vanished, or a bound is met.

    A step of a flat row has no length that means anything. So it may well be far too long, and the
    slope about as small behind the maximum as it is in front.
    """
    if flat and slope < 0.0 and left < 0.5 * t:
        return False
    return abs(slope) <= SEARCH * first or (slope > 0.0 and t >= limit)


@inlined
def next_place(t, slope, limit, left, left_slope, right, right_slope):
    """The next place to try along d, and between which the dual's maximum lies.

    An end that has not moved for a while counts half as much each time: else, where the slope bends
    (a ball's multiplier may be 1e9 times too large at first), that end would hold the search back.
    """
    if slope > 0.0:
        # Where the slope hardly falls, go ten times as far.
        ahead = t + (t - left) * slope / max(left_slope - slope, 0.11 * slope)
        right_slope *= 0.5 if left > 0.0 else 1.0
        left = t
        left_slope = slope
        t = min(ahead, limit) if ahead < right else 0.5 * (left + right)
        if right < math.inf:
            t = left + (right - left) * min(max(slope / (slope - right_slope), 0.1), 0.9)
    else:
        left_slope *= 0.5 if right < math.inf else 1.0
        right = t
        right_slope = slope
        share = left_slope / (left_slope - slope)
        t = left + (right - left) * min(max(share, 0.05), 0.95)
    return t, left, left_slope, right, right_slope


@compiled
def go_along_slope(P, A, b, lower, upper, columns, B, L, blocks, rows, x, m, flat):
    """Go along d until the dual's slope has nearly vanished.

    How many places were tried: 0 if it does not rise, below 0 if it rises for ever.
    """
    n = rows.shape[1]
    first, limit = begin_search(rows, n, m)
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
        minimise_lagrangian(rows[MU], P, A, lower, upper, columns, B, L, x)
        set_curved_values(P, A, b, x, lower, upper, columns, rows, blocks)
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
def solve_curved(
    center, gradient, alpha, floor, weights, P, A, b, lower, upper, start, columns, B, L, blocks,
    rows, x, multipliers,
):  # fmt: skip
    n = A.shape[0]
    half = 0.5 / alpha
    if not set_target(center, gradient, half, lower, upper, columns, x):
        return math.nan
    for k in range(n):
        rows[LO, k] = floor[k] * half
        rows[HI, k] = weights[k] * half
        rows[MU, k] = min(max(start[k] * half, rows[LO, k]), rows[HI, k])
        rows[NORM, k] = 1.0  # no row is known to be constant
    minimise_lagrangian(rows[MU], P, A, lower, upper, columns, B, L, x)
    set_curved_values(P, A, b, x, lower, upper, columns, rows, blocks)
    best = math.inf
    least = math.inf
    stuck = 0
    tried = 0
    for _ in range(60 + 10 * n):
        m, settled = list_moving(rows, n)
        if settled:
            break
        flat = set_curved_piece(P, lower, upper, columns, B, L, blocks, rows, x, m)
        maximise(rows, n, m, math.inf)
        more = go_along_slope(P, A, b, lower, upper, columns, B, L, blocks, rows, x, m, flat)
        if more < 0:
            return math.inf
        if more == 0:
            break
        tried += more
        residual = curved_residual(x, lower, upper, columns, rows, blocks)
        wrong = most_wrong(rows, n)
        stuck = 0 if residual < 0.5 * best or wrong < 0.5 * least else stuck + 1
        best = residual if residual < 0.5 * best else best
        least = wrong if wrong < 0.5 * least else least
        # What it does not get on with is soon better off elsewhere.
        if not (best > 1e-13) or (stuck > 8 and best <= 1e-11) or stuck > 12 or tried > 150:
            break
    residual = curved_residual(x, lower, upper, columns, rows, blocks)
    give_multipliers(alpha, floor, weights, rows, multipliers)
    return residual


@batch_kernel("(p),(p),(),(n),(n),(m,p,p),(n,p),(n),(p),(p),(n),(s)->(p),(n),()?")
def curved_step(sizes, at):
    """Quadratic rows, of which the first m of n have a P, and all have a and b: center, gradient,
    alpha, floor, weights, P, A, b, lower, upper, start, memory; x, multipliers, residual. The
    largest residual is returned."""
    p, n, m, s = sizes[0], sizes[1], sizes[2], sizes[3]
    h = padded(p)
    B = CURVED_COLUMNS * h
    L = B + p * h
    blocks = L + h * h
    rows = blocks + 2 * n * p
    memory = memory_of(at[11], s, at[15], curved_scratch_size(n, p))
    if memory == 0:
        return math.nan
    residual = solve_curved(
        vector(at[0], p), vector(at[1], p), vector(at[2], 1)[0], vector(at[3], n),
        vector(at[4], n), cube(at[5], m, p, p), matrix(at[6], n, p), vector(at[7], n),
        vector(at[8], p), vector(at[9], p), vector(at[10], n),
        matrix(memory, CURVED_COLUMNS, h), matrix(memory + 8 * B, p, h),
        matrix(memory + 8 * L, h, h), cube(memory + 8 * blocks, 2, n, p),
        matrix(memory + 8 * rows, HESSIAN + 2 * n, n),
        vector(at[12], p), vector(at[13], n),
    )  # fmt: skip
    return told(at[14], residual)
