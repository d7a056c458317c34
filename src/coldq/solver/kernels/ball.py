"""Affine rows in a ball.

Its multiplier nu adds ``nu (|x - c|^2 - r^2)`` to the objective, which is the same problem without
a ball, around c and with the curvature alpha + nu. As a function of s = 1 / (alpha + nu) its answer
x(s) is piecewise affine and its distance from c never falls, so that a line through two points of
x(s) gives the root of ``|x(s) - c| = r`` once both lie on the root's own piece.
"""

import math

from coldq.compiled import address_of, batch_kernel, compiled, inlined, matrix, vector
from coldq.solver.kernels.affine import UNSETTLED, solve_instance
from coldq.solver.kernels.piece import COLUMNS, memory_of, scratch_size, told

DESCENT, LEAST, MOST, STILL, INNER, OUTER, BEFORE, BALL_COLUMNS = range(8)


@inlined
def ball_scratch_size(n, p):
    """How many floats an instance in a ball needs to work in."""
    return BALL_COLUMNS * p + 2 * n + scratch_size(n, p)


@inlined
def distance(x, middle):
    total = 0.0
    for i in range(x.size):
        total += (x[i] - middle[i]) * (x[i] - middle[i])
    return math.sqrt(total)


@inlined
def to_sphere(point, s, other, t, middle, radius):
    """How far from s the line through x(s) and x(t) meets the sphere; NaN if it does not."""
    vv = 0.0
    ev = 0.0
    ee = 0.0
    for i in range(point.size):
        e = point[i] - middle[i]
        v = (other[i] - point[i]) / (t - s)
        vv += v * v
        ev += e * v
        ee += e * e
    gap = radius * radius - ee
    root = ev * ev + vv * gap
    if not (root > 0.0 and vv > 0.0):
        return math.nan
    root = math.sqrt(root)
    return gap / (ev + root) if ev > 0.0 else (root - ev) / vv


@compiled
def solve_ball(
    n, p, center, gradient, alpha, floor, weights, compliance, A_, b_, middle, radius, rounds,
    scratch_, x, multipliers,
):  # fmt: skip
    """Set x and the multipliers; return the residual, infinite if hard rows miss the ball.

    The residual is that of the problem with curvature alpha + nu, or the ball's own: how far x is
    outside, and where nu > 0 inside, relative to the radius and the size of the ball's center.
    """
    end = BALL_COLUMNS * p
    work = matrix(scratch_, BALL_COLUMNS, p)
    limits = matrix(scratch_ + 8 * end, 2, n)
    columns_ = scratch_ + 8 * (end + 2 * n)
    rows_ = scratch_ + 8 * (end + 2 * n + COLUMNS * p)
    size = radius
    for i in range(p):
        work[DESCENT, i] = gradient[i] + 2.0 * alpha * (middle[i] - center[i])
        work[LEAST, i] = -math.inf
        work[MOST, i] = math.inf
        work[STILL, i] = 0.0
        size = max(size, radius + abs(middle[i]))
    hard = False
    for k in range(n):
        stiff = compliance[k] == 0.0
        limits[0, k] = -math.inf if floor[k] == -math.inf and stiff else 0.0
        limits[1, k] = math.inf if weights[k] == math.inf and stiff else 0.0
        hard = hard or limits[0, k] < limits[1, k]
    middle_ = address_of(middle, 0)
    descent_, least_ = scratch_ + 8 * DESCENT * p, scratch_ + 8 * LEAST * p
    most_, compliance_ = scratch_ + 8 * MOST * p, address_of(compliance, 0)

    s_inner, s_outer = 0.0, 1.0 / alpha
    s = s_outer
    t = 0.0
    reach = 0.0
    residual = math.inf
    for iteration in range(120):
        residual = solve_instance(
            n, p, middle_, descent_, 1.0 / s, address_of(floor, 0), address_of(weights, 0),
            compliance_, A_, b_, least_, most_, rounds, columns_, rows_, address_of(x, 0),
            address_of(multipliers, 0),
        )  # fmt: skip
        reach = distance(x, middle)
        if rounds < math.inf and residual >= UNSETTLED:
            return residual
        if not (residual < math.inf and reach < math.inf):
            return residual if residual == math.inf else math.nan
        if iteration == 0:
            if reach <= radius:
                return residual
            for i in range(p):
                work[INNER, i] = middle[i]
                work[OUTER, i] = x[i]
            if hard:
                # Where nu grows for ever only hard rows count: the point of theirs nearest to c.
                blocked = solve_instance(
                    n, p, middle_, scratch_ + 8 * STILL * p, 0.5,
                    scratch_ + 8 * end, scratch_ + 8 * (end + n), compliance_,
                    A_, b_, least_, most_, rounds, columns_, rows_,
                    scratch_ + 8 * INNER * p, address_of(multipliers, 0),
                )  # fmt: skip
                if distance(work[INNER], middle) > radius + 1e-9 * size:
                    return math.inf
                if not (blocked < math.inf):
                    return blocked
        elif abs(reach - radius) <= 1e-15 * size:
            break
        elif reach > radius:
            s_before, s_outer = s_outer, s
            for i in range(p):
                work[BEFORE, i] = work[OUTER, i]
                work[OUTER, i] = x[i]
            # Two points of the same side are often on one piece already.
            t = s_outer + to_sphere(work[OUTER], s_outer, work[BEFORE], s_before, middle, radius)
        else:
            s_before, s_inner = s_inner, s
            for i in range(p):
                work[BEFORE, i] = work[INNER, i]
                work[INNER, i] = x[i]
            t = s_inner + to_sphere(work[INNER], s_inner, work[BEFORE], s_before, middle, radius)
        if iteration == 0 or iteration % 3 == 2 or not (s_inner < t and t < s_outer):
            t = s_inner + to_sphere(work[INNER], s_inner, work[OUTER], s_outer, middle, radius)
        if iteration % 4 == 3 or not (s_inner < t and t < s_outer):
            t = 0.5 * (s_inner + s_outer) if s_inner > 0.01 * s_outer else 0.03 * s_outer
        if not (s_inner < t and t < s_outer):
            break
        s = t
    for i in range(p):  # beyond the bounding box not even by rounding
        x[i] = min(max(x[i], middle[i] - radius), middle[i] + radius)
    # The promise is relative to the ball, and only where its center is far to the digits of that.
    return max(residual, abs(reach - radius) / (radius + 1e-3 * (size - radius)))


@batch_kernel("(p),(p),(),(n),(n),(n),(n,p),(n),(p),(),(),(s)->(p),(n),()")
def ball_step(sizes, at):
    """Affine rows in a ball: as :func:`affine_step`, its center and radius for bounds."""
    p, n, s = sizes[0], sizes[1], sizes[2]
    memory = memory_of(at[11], s, at[15], ball_scratch_size(n, p))
    if memory == 0:
        return math.nan
    residual = solve_ball(
        n, p, vector(at[0], p), vector(at[1], p), vector(at[2], 1)[0], vector(at[3], n),
        vector(at[4], n), vector(at[5], n), at[6], at[7], vector(at[8], p), vector(at[9], 1)[0],
        vector(at[10], 1)[0], memory, vector(at[12], p), vector(at[13], n),
    )  # fmt: skip
    return told(at[14], residual)
