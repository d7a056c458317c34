"""A queue and the step that it weighs, on affine rows and a box, for losses that are quadratic.

What a learner would do in several calls with arrays between them, in one. The step itself is
called by its address (:mod:`~coldq.solver.kernels.by_address`).
"""

import math

from coldq._contraction_kernels import (
    set_affine_value,
    set_bounded_queue,
    set_least_squares_gradient,
    set_matvec,
)
from coldq.compiled import batch_kernel, matrix, vector
from coldq.compiled.calls import run_at, words
from coldq.solver.kernels.by_address import ITS_OPERANDS, ITS_SIZES
from coldq.solver.kernels.piece import COLUMNS, HESSIAN, memory_of, scratch_size
from coldq.solver.kernels.small import SINGLE

BEFORE, AFTER, AHEAD = 0.0, 1.0, 2.0  # when the queue moves


def queued_size(n: int, p: int) -> int:
    """How many numbers an instance needs to work in."""
    return ITS_SIZES + ITS_OPERANDS + 1 + p + 3 * n + scratch_size(n, p) + SINGLE


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
    own = ITS_SIZES + ITS_OPERANDS + 1 + p + 3 * n
    rest = COLUMNS * p + (HESSIAN + 2 * n) * n
    memory = memory_of(at[17], s, at[21], own + rest + SINGLE)
    if memory == 0:
        return math.nan
    its_sizes, its = words(memory, ITS_SIZES), words(memory + 8 * ITS_SIZES, ITS_OPERANDS)
    rounds_at = memory + 8 * (ITS_SIZES + ITS_OPERANDS)
    gradient_at = rounds_at + 8
    zeros_at = gradient_at + 8 * p
    weights_at = zeros_at + 8 * n
    g_at = weights_at + 8 * n

    x, gradient = vector(at[0], p), vector(gradient_at, p)
    if at[3] != 0:
        set_least_squares_gradient(matrix(at[2], m, p), x, vector(at[3], m), gradient)
    elif at[2] != 0:
        set_matvec(matrix(at[2], m, p), x, gradient)
        for i in range(p):
            gradient[i] += vector(at[1], p)[i]
    else:
        gradient_at = at[1]
    gain, eta, floor = vector(at[9], 1)[0], vector(at[10], 1)[0], vector(at[11], 1)[0]
    price, when = vector(at[12], 1)[0], vector(at[13], 1)[0]
    after = when == AFTER
    A, b, following = matrix(at[4], n, p), vector(at[5], n), vector(at[18], p)
    queue, moved = vector(at[7], n), vector(at[19], n)
    zeros, weights = vector(zeros_at, n), vector(weights_at, n)
    for k in range(n):
        zeros[k] = 0.0
    if gain == 0.0:
        g_at = zeros_at
    elif at[6] != 0:
        g_at = at[6]
    elif not after:
        set_affine_value(A, x, b, vector(g_at, n))
    if not after:
        set_bounded_queue(queue, vector(g_at, n), gain, eta, floor, moved)
    for k in range(n):
        weights[k] = queue[k] if after else moved[k]
        if when == AHEAD:
            weights[k] += gain * max(vector(g_at, n)[k], 0.0)
        weights[k] *= price

    vector(rounds_at, 1)[0] = math.inf
    its_sizes[0], its_sizes[1], its_sizes[2] = p, n, rest
    its[0], its[1], its[2] = at[0], gradient_at, at[8]
    its[3], its[4], its[5] = zeros_at, weights_at, zeros_at
    its[6], its[7], its[8], its[9] = at[4], at[5], at[14], at[15]
    its[10], its[11] = rounds_at, memory + 8 * own
    its[12], its[13], its[14], its[15] = at[18], at[20], 0, memory + 8 * (own + rest)
    residual = run_at(words(at[16], 1)[0], memory, memory + 8 * ITS_SIZES)
    if after:
        set_affine_value(A, following, b, vector(g_at, n))
        set_bounded_queue(queue, vector(g_at, n), gain, eta, floor, moved)
    return residual
