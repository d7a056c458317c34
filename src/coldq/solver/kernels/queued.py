"""A queue and the step that it weighs, on affine rows, for losses that are quadratic: on a box, or
on blocks of coordinates with sums.

What a learner would do in several calls with arrays between them, in one; and what a learner that
tracks experts would do, theirs side by side. The steps themselves are called by their addresses
(:mod:`~coldq.solver.kernels.by_address`).
"""

import math

from coldq._contraction_kernels import (
    set_affine_value,
    set_bounded_queue,
    set_hedge,
    set_least_squares_gradient,
    set_matvec,
    set_weighted_mean,
)
from coldq.compiled import batch_kernel, exact_inlined, matrix, vector
from coldq.compiled.calls import run_at, words
from coldq.solver.kernels.by_address import (
    BLOCK_OPERANDS, BLOCK_SIZES, CALL, ITS_OPERANDS, run_affine,
)  # fmt: skip
from coldq.solver.kernels.piece import memory_of, scratch_size
from coldq.solver.kernels.side_by_side import ALL_SIZES, together_size
from coldq.solver.kernels.simplices import scratch_size as block_scratch_size
from coldq.solver.kernels.small import MOST_COLUMNS, MOST_ROWS, SINGLE

BEFORE, AFTER, AHEAD = 0.0, 1.0, 2.0  # when the queue moves


@exact_inlined
def queued_size(n, p):
    """How many numbers an instance needs to work in."""
    return CALL + 1 + p + 3 * n + scratch_size(n, p) + SINGLE


def queued_blocks_size(n: int, p: int, k: int) -> int:
    """The same on k blocks."""
    own = BLOCK_SIZES + BLOCK_OPERANDS + p + 3 * n
    return own + block_scratch_size(n, p, k, n * p, False)


def experts_size(m: int, n: int, p: int) -> int:
    """How many numbers a slot of m experts needs to work in."""
    alone = scratch_size(n, p) + SINGLE
    own = ALL_SIZES + ITS_OPERANDS + 1 + p + m * p + 2 * n + m * n + m
    return own + max(alone, together_size(n, p))


@exact_inlined
def gradient_at(p, m, x, linear, H, levels, out):
    """Where the loss's gradient at x stands: it is set, unless it is the same everywhere."""
    if levels != 0:
        set_least_squares_gradient(matrix(H, m, p), vector(x, p), vector(levels, m), vector(out, p))
    elif H != 0:
        gradient = vector(out, p)
        set_matvec(matrix(H, m, p), vector(x, p), gradient)
        for i in range(p):
            gradient[i] += vector(linear, p)[i]
    else:
        return linear
    return out


@exact_inlined
def set_weights(n, p, x, A, b, measured, queue, gain, eta, floor, price, when, zeros, g, out, into):
    """What the rows weigh in the step, into `out`, and the queue, unless it moves AFTER that. The
    other addresses: A, b, g(x) if it was measured, n zeros, and where g may be worked out."""
    moved, weights = vector(into, n), vector(out, n)
    if gain == 0.0:
        g = zeros
    elif measured != 0:
        g = measured
    elif when != AFTER:
        set_affine_value(matrix(A, n, p), vector(x, p), vector(b, n), vector(g, n))
    if when != AFTER:
        set_bounded_queue(vector(queue, n), vector(g, n), gain, eta, floor, moved)
    for k in range(n):
        weights[k] = vector(queue, n)[k] if when == AFTER else moved[k]
        if when == AHEAD:
            weights[k] += gain * max(vector(g, n)[k], 0.0)
        weights[k] *= price


@exact_inlined
def begin_slot(n, p, m, at, slope, zeros, weights, g, queue):
    """What comes before the step, of operands in the order of :func:`queued_step`: zeros, what rows
    weigh, and the queue, unless it moves later. Returns where the gradient stands."""
    for k in range(n):
        vector(zeros, n)[k] = 0.0
    set_weights(
        n, p, at[0], at[4], at[5], at[6], at[7], vector(at[9], 1)[0], vector(at[10], 1)[0],
        vector(at[11], 1)[0], vector(at[12], 1)[0], vector(at[13], 1)[0], zeros, g, weights, queue,
    )  # fmt: skip
    return gradient_at(p, m, at[0], at[1], at[2], at[3], slope)


@exact_inlined
def end_slot(n, p, at, x, g, queue):
    """What comes after the step to x: the queue, if it moves then."""
    if vector(at[13], 1)[0] == AFTER:
        values, gain, eta = vector(g, n), vector(at[9], 1)[0], vector(at[10], 1)[0]
        set_affine_value(matrix(at[4], n, p), vector(x, p), vector(at[5], n), values)
        set_bounded_queue(
            vector(at[7], n), values, gain, eta, vector(at[11], 1)[0], vector(queue, n)
        )


@batch_kernel(
    "(p),(p)?,(m,p)?,(m)?,(n,p),(n),(n)?,(n),(),(),(),(),(),(),(p),(p),(),(s)->(p),(n),(n)"
)
def queued_step(sizes, at):
    """The point x; of the loss a vector, a matrix and its levels: the gradient c, or P x + q, or
    H'(H x - y); A, b, and g(x) if it was measured; the queue; alpha, gain, eta, floor, price, and
    when the queue moves; lower, upper, the address of the step's code, memory. Then x, the queue
    and the multipliers of the next slot. The largest residual is returned.

    The queue becomes ``max{(1 - eta) queue + gain [g]_+, floor}``, where g is not looked at if the
    gain is 0: BEFORE the step, or AFTER it with g at the new x. In the step the rows weigh
    ``price`` times the queue that there is; AHEAD, what it just gained counts there once more.
    """
    p, m, n, s = sizes[0], sizes[1], sizes[2], sizes[3]
    memory = memory_of(at[17], s, at[21], queued_size(n, p))
    if memory == 0:
        return math.nan
    rounds_at = memory + 8 * CALL
    zeros_at = rounds_at + 8 + 8 * p
    weights_at = zeros_at + 8 * n
    g_at = weights_at + 8 * n
    rest = g_at + 8 * n
    slope_at = begin_slot(n, p, m, at, rounds_at + 8, zeros_at, weights_at, g_at, at[19])

    vector(rounds_at, 1)[0] = math.inf
    residual = run_affine(
        at[16], memory, p, n, at[0], slope_at, at[8], zeros_at, weights_at, zeros_at, at[4], at[5],
        at[14], at[15], rounds_at, rest, at[18], at[20], 0, rest + 8 * scratch_size(n, p),
    )  # fmt: skip
    end_slot(n, p, at, at[18], g_at, at[19])
    return residual


@batch_kernel(
    "(p),(p)?,(m,p)?,(m)?,(n,p),(n),(n)?,(n),(),(),(),(),(),(),(p),(p),(k),(k),(k),(),(),(s)"
    "->(p),(n),(n)"
)
def queued_blocks_step(sizes, at):
    """As :func:`queued_step`, on blocks: after lower and upper their first coordinates, totals and
    kinds, and how many Newton steps there may be."""
    p, m, n, k, s = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]
    own = BLOCK_SIZES + BLOCK_OPERANDS + p + 3 * n
    rest = block_scratch_size(n, p, k, n * p, False)
    memory = memory_of(at[21], s, at[25], own + rest)
    if memory == 0:
        return math.nan
    its_sizes, its = words(memory, BLOCK_SIZES), words(memory + 8 * BLOCK_SIZES, BLOCK_OPERANDS)
    slope_at = memory + 8 * (BLOCK_SIZES + BLOCK_OPERANDS)
    zeros_at = slope_at + 8 * p
    weights_at = zeros_at + 8 * n
    g_at = weights_at + 8 * n
    slope_at = begin_slot(n, p, m, at, slope_at, zeros_at, weights_at, g_at, at[23])

    its_sizes[0], its_sizes[1], its_sizes[2], its_sizes[3] = p, n, n * p, 0
    its_sizes[4], its_sizes[5], its_sizes[6] = 0, k, rest
    its[0], its[1], its[2] = at[0], slope_at, at[8]
    its[3], its[4], its[5] = zeros_at, weights_at, zeros_at
    its[6], its[7], its[8], its[9] = at[4], 0, 0, at[5]
    its[10], its[11], its[12], its[13], its[14] = at[14], at[15], at[16], at[17], at[18]
    its[15], its[16] = at[19], memory + 8 * own
    its[17], its[18], its[19], its[20] = at[22], at[24], 0, 0
    residual = run_at(words(at[20], 1)[0], memory, memory + 8 * BLOCK_SIZES)
    end_slot(n, p, at, at[22], g_at, at[23])
    return residual


@batch_kernel(
    "(e,p),(e,n),(e*),(p),(e),(),(),(p)?,(m,p)?,(m)?,(n,p),(n),(e*),(e*),(e*),(e*),(),(p),(p),"
    "(),(),(s)->(p),(e),(e,p),(e,n),(e,n)"
)
def experts_step(sizes, at):
    """The experts' points, queues and alphas; x, the logarithms of their weights, kappa, and
    whether all take the gradient at x; the loss and the rows as in :func:`queued_step`; gain, eta,
    floor, price, and when the queue moves; lower, upper, the addresses of the code of one step and
    of many, memory. Then x of the next slot, the logarithms, and the experts' points, queues and
    multipliers. The largest residual is returned.
    """
    e, p, n, m, s = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]
    alpha_step, gain_step, eta_step, floor_step, price_step = (
        sizes[5], sizes[6], sizes[7], sizes[8], sizes[9],
    )  # fmt: skip
    many, few = at[21], scratch_size(n, p)
    together = 0 < n <= MOST_ROWS and 0 < p <= MOST_COLUMNS
    sizes_at, operands_at = many, many + 8 * ALL_SIZES
    rounds_at = operands_at + 8 * ITS_OPERANDS
    slope_at = rounds_at + 8
    slopes_at = slope_at + 8 * p
    zeros_at = slopes_at + 8 * e * p
    g_at = zeros_at + 8 * n
    weights_at = g_at + 8 * n
    residuals_at = weights_at + 8 * e * n
    memory = residuals_at + 8 * e
    room = s - (memory - many) // 8
    if room < few + SINGLE:
        return math.nan
    its_sizes, its = words(sizes_at, ALL_SIZES), words(operands_at, ITS_OPERANDS)
    when, shared = vector(at[16], 1)[0], vector(at[6], 1)[0]
    vector(rounds_at, 1)[0] = math.inf
    for k in range(n):
        vector(zeros_at, n)[k] = 0.0

    at_x = gradient_at(p, m, at[3], at[7], at[8], at[9], slope_at)
    kappa = vector(at[5], 1)[0]
    set_hedge(
        e, p, at[4], 1, at[0], p, vector(at[3], p), vector(at_x, p), kappa,
        vector(at[23], e),
    )  # fmt: skip
    for j in range(e):
        point, slope = at[0] + 8 * j * p, slopes_at + 8 * j * p
        found = at_x
        if shared == 0.0:
            found = gradient_at(p, m, point, at[7], at[8], at[9], slope)
        for i in range(p):
            vector(slope, p)[i] = vector(found, p)[i]
        set_weights(
            n, p, point, at[10], at[11], 0, at[1] + 8 * j * n,
            vector(at[12] + 8 * j * gain_step, 1)[0], vector(at[13] + 8 * j * eta_step, 1)[0],
            vector(at[14] + 8 * j * floor_step, 1)[0], vector(at[15] + 8 * j * price_step, 1)[0],
            when, zeros_at, g_at, weights_at + 8 * j * n, at[25] + 8 * j * n,
        )  # fmt: skip
    worst = 0.0
    if together:
        its_sizes[0], its_sizes[1], its_sizes[2], its_sizes[3] = e, p, n, room
        its_sizes[4], its_sizes[5], its_sizes[6], its_sizes[7] = p, p, alpha_step, n
        for line in range(8, 12):  # A, b and the bounds are the same for all
            its_sizes[line] = 0
        its_sizes[12], its_sizes[13], its_sizes[14] = p, n, 1
        its[0], its[1], its[2], its[3] = at[0], slopes_at, at[2], weights_at
        its[4], its[5], its[6], its[7] = at[10], at[11], at[17], at[18]
        its[8], its[9], its[10], its[11], its[12] = at[19], memory, at[24], at[26], residuals_at
        worst = run_at(words(at[20], 1)[0], sizes_at, operands_at)
    for j in range(0 if together else e):
        residual = run_affine(
            at[19], many, p, n, at[0] + 8 * j * p, slopes_at + 8 * j * p,
            at[2] + 8 * j * alpha_step, zeros_at, weights_at + 8 * j * n, zeros_at, at[10], at[11],
            at[17], at[18], rounds_at, memory, at[24] + 8 * j * p, at[26] + 8 * j * n, 0,
            memory + 8 * few,
        )  # fmt: skip
        if worst == worst and not (residual <= worst):
            worst = residual
    for j in range(e if when == AFTER else 0):
        g, moved = vector(g_at, n), vector(at[25] + 8 * j * n, n)
        set_affine_value(matrix(at[10], n, p), vector(at[24] + 8 * j * p, p), vector(at[11], n), g)
        set_bounded_queue(
            vector(at[1] + 8 * j * n, n), g, vector(at[12] + 8 * j * gain_step, 1)[0],
            vector(at[13] + 8 * j * eta_step, 1)[0], vector(at[14] + 8 * j * floor_step, 1)[0],
            moved,
        )  # fmt: skip
    set_weighted_mean(e, p, at[23], 1, at[24], p, vector(residuals_at, e), vector(at[22], p))
    return worst
