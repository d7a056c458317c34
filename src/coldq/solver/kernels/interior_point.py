"""Compiled parts of the interior-point method, for :mod:`coldq.solver.interior_point`.

What it has for every row and every coordinate are the lines of two matrices, which have names. Rows
have unit length here. A pair is a room and its price: u and ``hi - mu``, v and ``mu - lo``, and for
coordinates ``x - lower`` and `low`, ``upper - x`` and `high`. Infinite bounds have no pair, nor
have rows and coordinates without any room.
"""

import math

from coldq.compiled import compiled, kernel
from coldq.solver.constants import TINY

LO, HI, MU, U, V, D_MU, D_U, D_V, G, WEIGHT, PULL, ROWS = range(12)
LOWER, UPPER, Y, X, LOW, HIGH, D_X, D_LOW, D_HIGH, STIFF, RIGHT, COLUMNS = range(12)
BETWEEN = 5.0  # times the geometric mean of two scales of prices: where these start
SOFT = 1e-10  # the least that a row gives way in a step, relative to rooms and prices
FIXED = 1e200  # the stiffness of a coordinate that cannot move


@compiled
def set_start(rows, columns, near):
    """Set multipliers, rooms and prices for the x and the g given, all well inside.

    Prices start between what x asks for and what rows that cannot be met have; where rows are
    `near` to being met, at the former. Return how large rooms are, and that in comparison with
    what x asks for.
    """
    n, p = rows.shape[1], columns.shape[1]
    reach = 0.0
    spans = 0.0
    count = 0
    for k in range(n):
        reach += abs(rows[G, k]) / n
        span = rows[HI, k] - rows[LO, k]
        if 0.0 < span and span < math.inf:
            spans += math.log(span)
            count += 1
    force = 0.0
    for i in range(p):
        force += abs(columns[Y, i] - columns[X, i]) / p
    reach, force = max(reach, 1e-3), max(force, reach, 1e-3)
    price = force
    if near == 0 and count > 0:
        price = max(force, BETWEEN * math.sqrt(force * math.exp(spans / count)))
    for k in range(n):
        lo, hi = rows[LO, k], rows[HI, k]
        room = min(0.5 * (hi - lo), price)
        rows[MU, k] = min(max(0.0, lo + room), hi - room) if lo < hi else lo
        rows[U, k] = max(rows[G, k], 0.0) + reach if lo < hi and hi < math.inf else 0.0
        rows[V, k] = max(-rows[G, k], 0.0) + reach if lo < hi and lo > -math.inf else 0.0
    for i in range(p):
        if columns[LOWER, i] < columns[UPPER, i]:
            if columns[LOWER, i] > -math.inf:
                columns[LOW, i] = price
            if columns[UPPER, i] < math.inf:
                columns[HIGH, i] = price
    return reach, reach / force


@compiled
def product(room, d_room, price, d_price, t):
    return (room + t * d_room) * (price + t * d_price)


@compiled
def mean_product(rows, columns, t):
    """The mean product of a room and its price, t along the direction."""
    total, count = 0.0, 0
    for k in range(rows.shape[1]):
        mu, d = rows[MU, k], rows[D_MU, k]
        if rows[U, k] > 0.0:
            total += product(rows[U, k], rows[D_U, k], rows[HI, k] - mu, -d, t)
            count += 1
        if rows[V, k] > 0.0:
            total += product(rows[V, k], rows[D_V, k], mu - rows[LO, k], d, t)
            count += 1
    for i in range(columns.shape[1]):
        x, d = columns[X, i], columns[D_X, i]
        if columns[LOW, i] > 0.0:
            total += product(x - columns[LOWER, i], d, columns[LOW, i], columns[D_LOW, i], t)
            count += 1
        if columns[HIGH, i] > 0.0:
            total += product(columns[UPPER, i] - x, -d, columns[HIGH, i], columns[D_HIGH, i], t)
            count += 1
    return total / max(count, 1)


@compiled
def unit_now(rows, reach, unit):
    """How large rooms are in comparison with multipliers as they are, or with what x asks for."""
    total, count = 0.0, 0
    for k in range(rows.shape[1]):
        if rows[U, k] > 0.0 or rows[V, k] > 0.0:
            total += abs(rows[MU, k])
            count += 1
    return min(unit, reach * count / max(total, TINY))


@compiled
def set_weights(rows, columns, reach, unit):
    """Set the weight of each row and the stiffness of each coordinate in a step's system.

    A little that all rows give way, beside the multipliers of those with rooms, keeps the weight
    finite of those without; later steps correct what that costs.
    """
    soft = SOFT * unit_now(rows, reach, unit)
    for k in range(rows.shape[1]):
        give = soft
        if rows[U, k] > 0.0:
            give += rows[U, k] / (rows[HI, k] - rows[MU, k])
        if rows[V, k] > 0.0:
            give += rows[V, k] / (rows[MU, k] - rows[LO, k])
        rows[WEIGHT, k] = 1.0 / give if rows[LO, k] < rows[HI, k] else 0.0
        rows[D_MU, k] = rows[D_U, k] = rows[D_V, k] = 0.0
    for i in range(columns.shape[1]):
        stiff = 0.0 if columns[LOWER, i] < columns[UPPER, i] else FIXED
        if columns[LOW, i] > 0.0:
            stiff += columns[LOW, i] / (columns[X, i] - columns[LOWER, i])
        if columns[HIGH, i] > 0.0:
            stiff += columns[HIGH, i] / (columns[UPPER, i] - columns[X, i])
        columns[STIFF, i] = stiff
        columns[D_X, i] = columns[D_LOW, i] = columns[D_HIGH, i] = 0.0


@compiled
def row_aims(rows, k, tau):
    """What u and v are to be if mu stays; the last direction says how products will bend."""
    mu, d = rows[MU, k], rows[D_MU, k]
    u, v = 0.0, 0.0
    if rows[U, k] > 0.0:
        u = (tau + rows[D_U, k] * d) / max(rows[HI, k] - mu, TINY)
    if rows[V, k] > 0.0:
        v = (tau - rows[D_V, k] * d) / max(mu - rows[LO, k], TINY)
    return u, v


@compiled
def column_aims(columns, i, tau):
    """The same of the two prices of a coordinate."""
    x, d = columns[X, i], columns[D_X, i]
    low, high = 0.0, 0.0
    if columns[LOW, i] > 0.0:
        low = (tau - columns[D_LOW, i] * d) / max(x - columns[LOWER, i], TINY)
    if columns[HIGH, i] > 0.0:
        high = (tau + columns[D_HIGH, i] * d) / max(columns[UPPER, i] - x, TINY)
    return low, high


@compiled
def set_aims(rows, columns, tau):
    """Set the right side of a step that aims at products tau: `PULL` goes through A'."""
    for k in range(rows.shape[1]):
        u, v = row_aims(rows, k, tau)
        rows[PULL, k] = rows[MU, k] + rows[WEIGHT, k] * (rows[G, k] - u + v)
    for i in range(columns.shape[1]):
        low, high = column_aims(columns, i, tau)
        columns[RIGHT, i] = columns[Y, i] - columns[X, i] + low - high


@compiled
def within(t, room, d_room):
    return min(t, -room / d_room) if d_room < 0.0 else t


@compiled
def set_direction(rows, columns, tau, d, along):
    """Complete the direction whose x part is d and A d is `along`; return how far it may go."""
    t = math.inf
    for k in range(rows.shape[1]):
        u, v = row_aims(rows, k, tau)
        mu = rows[MU, k]
        step = rows[WEIGHT, k] * (rows[G, k] - u + v + along[k])
        rows[D_MU, k] = step
        if rows[U, k] > 0.0:
            price = rows[HI, k] - mu
            rows[D_U, k] = u - rows[U, k] + rows[U, k] / price * step
            t = within(within(t, rows[U, k], rows[D_U, k]), price, -step)
        if rows[V, k] > 0.0:
            price = mu - rows[LO, k]
            rows[D_V, k] = v - rows[V, k] - rows[V, k] / price * step
            t = within(within(t, rows[V, k], rows[D_V, k]), price, step)
    for i in range(columns.shape[1]):
        low, high = column_aims(columns, i, tau)
        columns[D_X, i] = step = d[i]
        if columns[LOW, i] > 0.0:
            room, price = columns[X, i] - columns[LOWER, i], columns[LOW, i]
            columns[D_LOW, i] = low - price - price / room * step
            t = within(within(t, room, step), price, columns[D_LOW, i])
        if columns[HIGH, i] > 0.0:
            room, price = columns[UPPER, i] - columns[X, i], columns[HIGH, i]
            columns[D_HIGH, i] = high - price + price / room * step
            t = within(within(t, room, -step), price, columns[D_HIGH, i])
    return t


@compiled
def move_along(rows, columns, t):
    """Move by t along the direction."""
    for k in range(rows.shape[1]):
        for line in range(3):
            rows[MU + line, k] += t * rows[D_MU + line, k]
    for i in range(columns.shape[1]):
        for line in range(3):
            columns[X + line, i] += t * columns[D_X + line, i]


# The same, one by one, for rows whose systems are solved elsewhere.


@kernel("MMi")
def begin(rows, columns, near):
    return set_start(rows, columns, near)


@kernel("MMf")
def gap(rows, columns, t):
    return mean_product(rows, columns, t)


@kernel("MMff")
def weigh(rows, columns, reach, unit):
    set_weights(rows, columns, reach, unit)


@kernel("MMf")
def aim(rows, columns, tau):
    set_aims(rows, columns, tau)


@kernel("MMfVV")
def direct(rows, columns, tau, d, along):
    return set_direction(rows, columns, tau, d, along)


@kernel("MMf")
def go(rows, columns, t):
    move_along(rows, columns, t)


@kernel("MVVVfffV")
def snap(rows, length, floor, weights, reach, unit, double, out):
    """The multipliers, times `double`, at a bound where the room is larger than its price."""
    unit = unit_now(rows, reach, unit)
    for k in range(out.size):
        mu = rows[MU, k]
        found = min(max(mu / length[k] * double, floor[k]), weights[k])
        if rows[U, k] > unit * (rows[HI, k] - mu):
            found = weights[k]
        if rows[V, k] > unit * (mu - rows[LO, k]):
            found = floor[k]
        out[k] = found
