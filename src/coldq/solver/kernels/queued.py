"""A queue and the step that it weighs, on affine rows and blocks of coordinates with sums, for
losses that are quadratic.

What a learner would do in several calls with arrays between them, in one. The step itself is called
by its address (:mod:`~coldq.solver.kernels.by_address`).
"""

import math

from coldq._contraction_kernels import (
    set_affine_value,
    set_bounded_queue,
    set_least_squares_gradient,
    set_matvec,
)
from coldq.compiled import batch_kernel, exact_inlined, matrix, vector
from coldq.compiled.calls import run_at, words
from coldq.solver.kernels.by_address import BLOCK_OPERANDS, BLOCK_SIZES
from coldq.solver.kernels.piece import memory_of
from coldq.solver.kernels.simplices import scratch_size as block_scratch_size

BEFORE, AFTER, AHEAD = 0.0, 1.0, 2.0  # when the queue moves


def queued_blocks_size(n: int, p: int, k: int) -> int:
    """The same on k blocks."""
    own = BLOCK_SIZES + BLOCK_OPERANDS + p + 3 * n
    return own + block_scratch_size(n, p, k, n * p, False)


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
    """What comes before the step, of operands in the order of :func:`queued_blocks_step`: zeros,
    what rows weigh, and the queue, unless it moves later. Returns where the gradient stands."""
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
    "(p),(p)?,(m,p)?,(m)?,(n,p),(n),(n)?,(n),(),(),(),(),(),(),(p),(p),(k),(k),(k),(),(),(s)"
    "->(p),(n),(n)"
)
def queued_blocks_step(sizes, at):
    """The point x; of the loss a vector, a matrix and its levels: the gradient c, or P x + q, or
    H'(H x - y); A, b, and g(x) if it was measured; the queue; alpha, gain, eta, floor, price, and
    when the queue moves; lower, upper, the blocks' first coordinates, totals and kinds, how many
    Newton steps there may be, the address of the step's code, memory. Then x, the queue and the
    multipliers of the next slot. The largest residual is returned.

    The queue becomes ``max{(1 - eta) queue + gain [g]_+, floor}``, where g is not looked at if the
    gain is 0: BEFORE the step, or AFTER it with g at the new x. In the step the rows weigh
    ``price`` times the queue that there is; AHEAD, what it just gained counts there once more.
    """
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
