"""Many instances of few affine rows on boxes, several side by side in the processor's lanes.

A block of instances is looked at first: those that need no multipliers are answered there. Of the
others as many at a time as suit the processor are solved by the lines of
:mod:`~coldq.solver.kernels.small`; one that is out of the ordinary is solved by the general kernel,
whose code is called by its address.
"""

import math

from coldq.compiled import abreast, address_of, batch_kernel, exact, lane_at, put_lane, width
from coldq.compiled.calls import words
from coldq.solver.kernels.by_address import CALL, run_affine
from coldq.solver.kernels.piece import scratch_size
from coldq.solver.kernels.small import (
    A_AT, ALPHA_AT, B_AT, CENTER_AT, GRADIENT_AT, LOWER_AT, MATRIX, MOST_COLUMNS, MOST_ROWS,
    MULTIPLIERS_AT, RESIDUAL_AT, ROWS, SINGLES, TABLE, UPPER_AT, WEIGHTS_AT, X_AT, is_loud,
    solve_lanes,
)  # fmt: skip

MOST_WIDE = 8  # instances side by side, on any processor
BLOCK = 256  # instances looked at before those that need multipliers are solved
LINE = 64  # bytes of the processor's memory that come together: no lanes should lie in two
ALL_SIZES = 15  # words for whoever calls the kernel below by its address
INPUTS = 8  # of the kernel below: arrays to read; with those to be written there are TABLE


@exact
def solve_alone(code, lane, p, n, table, its, rest):
    """Run the general kernel on the instance in a lane."""
    wide = width(abreast())
    zeros = its + 8 * CALL
    for k in range(n):
        put_lane(zeros, k, 0.0)
    put_lane(zeros, n, math.inf)
    return run_affine(
        code, its, p, n, table[CENTER_AT * wide + lane], table[GRADIENT_AT * wide + lane],
        table[ALPHA_AT * wide + lane], zeros, table[WEIGHTS_AT * wide + lane], zeros,
        table[A_AT * wide + lane], table[B_AT * wide + lane], table[LOWER_AT * wide + lane],
        table[UPPER_AT * wide + lane], zeros + 8 * n, rest, table[X_AT * wide + lane],
        table[MULTIPLIERS_AT * wide + lane], table[RESIDUAL_AT * wide + lane], 0,
    )  # fmt: skip


def together_size(n: int, p: int) -> int:
    """How many numbers a thread needs to work in."""
    lanes = MOST_WIDE * ((MATRIX + n) * p + ROWS * n + SINGLES + TABLE)
    alone = CALL + n + 1 + scratch_size(n, p)
    return LINE // 8 + lanes + BLOCK + MOST_WIDE + alone


@exact
def find_loud(
    n, p, begun, end, center, gradient, alpha, weights, A, b, lower, upper, x, multipliers,
    residual, center_step, gradient_step, alpha_step, weights_step, A_step, b_step, lower_step,
    upper_step, x_step, multipliers_step, residual_step, loud, found,
):  # fmt: skip
    """Answer the instances that need no multipliers, without a branch that nobody could predict;
    list the others after those found before, and return how many they are in all."""
    for j in range(begun, end):
        half = 0.5 / lane_at(alpha, j * alpha_step, 0.0)
        put_lane(residual, j * residual_step, 0.0)
        put_lane(multipliers, j * multipliers_step, 0.0)
        put_lane(multipliers, j * multipliers_step + n - 1, 0.0)  # of one or two
        loud[found] = j
        found += is_loud(
            n, p, center + 8 * j * center_step, gradient + 8 * j * gradient_step, half,
            weights + 8 * j * weights_step, A + 8 * j * A_step, b + 8 * j * b_step,
            lower + 8 * j * lower_step, upper + 8 * j * upper_step, x + 8 * j * x_step,
        )  # fmt: skip
    return found


@exact
def solve_all(loud, live, p, n, at, steps, table, memory, bounds, its, rest):
    """Solve the first `live` of those listed; the largest residual."""
    wide = width(abreast())
    for lane in range(live, wide):  # the other lanes repeat the first
        loud[lane] = loud[0]
    for line in range(TABLE):
        first, step = at[line if line < INPUTS else line + 2], 8 * steps[line]
        for lane in range(wide):
            table[line * wide + lane] = first + step * loud[lane]
    solve_lanes(abreast(), n, p, address_of(table, 0), memory, bounds)
    worst = 0.0
    for lane in range(live):
        found = lane_at(table[RESIDUAL_AT * wide + lane], 0, 0.0)
        if found < 0.0:
            found = solve_alone(at[INPUTS], lane, p, n, table, its, rest)
        if worst == worst and not (found <= worst):
            worst = found
    return worst


@batch_kernel("(b*,p),(b*,p),(b*),(b*,n),(b*,n,p),(b*,n),(b*,p),(b*,p),(),(s)->(b*,p),(b*,n),(b*)")
def affine_steps(sizes, at):
    """Hinges of few affine rows on boxes of few coordinates, b instances: center, gradient, alpha,
    weights, A, b, lower, upper, the address of the general kernel's code, memory; x, multipliers,
    residual. The largest residual is returned."""
    count, p, n, wide = sizes[0], sizes[1], sizes[2], width(abreast())
    steps = words(address_of(sizes, 4), TABLE)
    memory = (at[INPUTS + 1] + LINE - 1) & -LINE
    table_at = memory + 8 * wide * ((MATRIX + n) * p + ROWS * n + SINGLES)
    loud_at = table_at + 8 * TABLE * wide
    its = loud_at + 8 * (BLOCK + wide)
    rest = its + 8 * (CALL + n + 1)
    end = rest + 8 * scratch_size(n, p)
    if 8 * sizes[3] < end - at[INPUTS + 1] or not (0 < n <= MOST_ROWS and 0 < p <= MOST_COLUMNS):
        return math.nan
    table, listed = words(table_at, TABLE * wide), words(loud_at, BLOCK + wide)
    worst = 0.0
    found = 0
    bounds = True
    for begun in range(0, count, BLOCK):
        last = begun + BLOCK >= count
        found = find_loud(
            n, p, begun, count if last else begun + BLOCK, at[0], at[1], at[2], at[3], at[4],
            at[5], at[6], at[7], at[10], at[11], at[12], steps[0], steps[1], steps[2], steps[3],
            steps[4], steps[5], steps[6], steps[7], steps[8], steps[9], steps[10], listed, found,
        )  # fmt: skip
        done = 0
        while found - done >= wide or (last and done < found):
            loud, live = words(loud_at + 8 * done, wide), min(found - done, wide)
            most = solve_all(loud, live, p, n, at, steps, table, memory, bounds, its, rest)
            if worst == worst and not (most <= worst):
                worst = most
            done += wide
            bounds = steps[6] != 0 or steps[7] != 0  # one box for all stays where it is
        for f in range(done, found):
            listed[f - done] = listed[f]
        found -= done
    return worst
