"""A slot of SelfTuning on affine rows in a box in one call: what comes before its steps, the steps
of the whole pool, and what comes after."""

import math

from coldq._tuning_kernels import GIVEN, WEIGHT, expect, look, play
from coldq.compiled import batch_kernel, matrix, vector
from coldq.compiled.calls import words
from coldq.solver.kernels.by_address import CALL, run_affine
from coldq.solver.kernels.piece import scratch_size
from coldq.solver.kernels.small import SINGLE

LOOKED_AT = 33  # operands of `look`


def pool_size(k: int, n: int, p: int) -> int:
    """How many numbers a slot of a pool of k needs to work in."""
    own = LOOKED_AT + CALL + 1 + n * p + 4 * n + k * (p + n + 1)
    return own + scratch_size(n, p) + SINGLE


@batch_kernel(f"{GIVEN},(p),(p),(),(z)->(c),(f,n),(f),(n),(r,d),(h),(k),(k),(k,p),(p),(f,n)")
def pool_slot(sizes, at):
    """What `look` takes; lower, upper, the address of the step's code, memory. Then tally, moments,
    errors, margin, past, hedge, losses, weights, points, x and what forecasts expect there. The
    largest residual is returned."""
    n, p, c, f, r, d = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5]
    m, s, k, z = sizes[6], sizes[7], sizes[8], sizes[10]
    call_at = at[23] + 8 * LOOKED_AT
    rounds_at = call_at + 8 * CALL
    rows_at = rounds_at + 8
    limits_at = rows_at + 8 * n * p
    slack_at = limits_at + 8 * n
    zeros_at = slack_at + 8 * n
    prices_at = zeros_at + 8 * n
    slopes_at = prices_at + 8 * n
    alphas_at = slopes_at + 8 * k * p
    multipliers_at = alphas_at + 8 * k
    memory = multipliers_at + 8 * k * n
    spare = memory + 8 * scratch_size(n, p)
    if at[23] + 8 * z < spare + 8 * SINGLE:
        return math.nan

    its = words(at[23], LOOKED_AT)
    for o in range(20):
        its[o] = at[o]
    its[20], its[21], its[22], its[23], its[24] = at[24], at[25], at[26], at[27], at[28]
    its[25], its[26] = rows_at, limits_at
    its[27], its[28], its[29] = at[29], at[30], at[31]
    its[30], its[31], its[32] = slopes_at, alphas_at, slack_at
    look(sizes, its)

    vector(rounds_at, 1)[0] = math.inf
    for j in range(n):
        vector(zeros_at, n)[j] = 0.0
        vector(prices_at, n)[j] = WEIGHT
    worst = 0.0
    for j in range(k):
        residual = run_affine(
            at[22], call_at, p, n, at[14] + 8 * j * p, slopes_at + 8 * j * p, alphas_at + 8 * j,
            zeros_at, prices_at, zeros_at, rows_at, limits_at, at[20], at[21], rounds_at, memory,
            at[32] + 8 * j * p, multipliers_at + 8 * j * n, 0, spare,
        )  # fmt: skip
        if worst == worst and not (residual <= worst):
            worst = residual

    x, tally = vector(at[33], p), vector(at[24], c)
    points, multipliers = matrix(at[32], k, p), matrix(multipliers_at, k, n)
    play(vector(at[31], k), points, multipliers, tally, x, tally)
    spec = matrix(at[13], m, s)
    expect(vector(at[0], 1)[0], matrix(at[28], r, d), spec, x, matrix(at[34], f, n))
    return worst
