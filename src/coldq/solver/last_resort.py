"""The last resort for one instance: an interior-point method with twice the digits of a double.

    min |x - y|^2 / 2 + <lean, g(x)> + <cost, s>  over
        g_r(x) <= s_group(r),  E x = e,  lower <= x <= upper,

with s >= 0, or free (linear rows), or zero (hard ones), and quadratic or affine g_r. Multipliers of
a group sum up to its cost at most. The other methods decide by signs which rows and bounds hold x,
and where numbers of many magnitudes meet, rounding decides for them. Here nothing is decided: every
step is Newton's on all conditions at once. It runs in doubles as far as they go and then on pairs
of doubles, until products of multipliers and the rooms they have are so small that no row is in
doubt. No kind of float is needed that only some machines have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from coldq._values import Array
from coldq.solver.kernels import last_resort as kernels
from coldq.solver.problem import largest_of, power

STEPS = 120
GIVE = 1e-15  # of the terms of a hard row
CLEARLY = 1e-6  # of the terms of a row: x breaks it by more than its own rounding could
CERTAIN = 1e-12  # of the conditions, on pairs: what doubles leave of them after that is rounding
DEPENDENT = 1e-13  # of a row: what is left of it beside the span of others
LAST_DIGIT = 2.0**-52  # of a number: its rounding
SPLIT = 134217729.0  # 2^27 + 1: halves of a double


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The sum of two doubles, and what its rounding took."""
    s = a + b
    bb = s - a
    return s, (a - (s - bb)) + (b - bb)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """The same of a product."""
    p = a * b
    c, d = SPLIT * a, SPLIT * b
    a_high, b_high = c - (c - a), d - (d - b)
    a_low, b_low = a - a_high, b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


def remainder(a: Any, b: Any, q: Any) -> Any:
    """What a quotient of doubles leaves of the first: again a double."""
    p, low = two_product(q, b)
    return (a - p) - low


def pair(high: Any, low: Any) -> np.ndarray:
    """The sums of these as the kernels have them: parts of complex numbers."""
    both = np.empty(np.shape(high), complex)
    both.real, both.imag = high, low
    return both


def target_of(center: Array, gradient: Array, double: float, unit: float) -> np.ndarray:
    """``(center - gradient / double) / unit`` as pairs; the unit is a power of two."""
    q = gradient / double
    rest = remainder(gradient, double, q)
    more = rest / double
    y, low = two_sum(center, -q)
    y, low = two_sum(y, low - (more + remainder(rest, double, more) / double))
    return pair(y / unit, low / unit)


class Problem(NamedTuple):
    """One instance. The first rows have a P; `lean` is added to every row's multiplier; y may be in
    pairs.

    Of a group, `cost` bounds the sum of multipliers, infinite if it is hard; `free` says that the
    sum is the cost.
    """

    y: Any
    P: Array
    A: Array
    b: Array
    group: np.ndarray
    lean: Array
    cost: Array
    free: np.ndarray
    E: Array
    e: Array
    lower: Array
    upper: Array


Guess = tuple[Array, Array, Array]  # x, and the multipliers of rows and of equalities


class Point(NamedTuple):
    """Where the method stands: t is the room of rows, low and up are the bounds' multipliers."""

    x: Array
    s: Array
    t: Array
    mu: Array
    nu: Array
    low: Array
    up: Array
    equal: Array


def answers(
    problem: Problem, guess: Guess, known: bool = True, give: float = GIVE
) -> Iterator[tuple[Guess, float]]:
    """x, the multipliers of rows without `lean`, and those of equalities, from several starts; with
    each what pairs of doubles leave of the conditions.

    A guess of the same that is `known` to be near is where the first one begins. Hard rows give way
    by so much of their terms.
    """
    problem = relaxed(problem, guess[0], give)
    fixed = problem.lower >= problem.upper
    equal, rows = needed(problem, fixed)
    x, mu, nu = guess
    problem, guess = only(problem, equal, rows), (x, mu[rows], nu[equal])
    costs = problem.cost[np.isfinite(problem.cost)], problem.lean, problem.y.real, [1.0]
    dear = float(np.abs(np.concatenate(costs)).max())
    afresh = (begin, 0.1 * dear), (begin, 1.0), (begin, np.sqrt(dear))
    for start, tau in ((near, 1e-7), *afresh, (near, 1e-2)) if known else (*afresh, (near, 1e-2)):
        with np.errstate(all="ignore"):
            point = start(problem, fixed, guess, tau)
            point = point._replace(x=lengthened(problem, point, fixed))
            point, left = walk(problem, point)
            x, found, found_equal = settle(problem, point)
        mu, nu = np.zeros(rows.size), np.zeros(equal.size)
        mu[rows], nu[equal] = found, found_equal
        yield (x, mu, nu), left


def needed(problem: Problem, fixed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The equalities that do not follow from others, and the rows that these leave in doubt.

    With an equality twice the system of their multipliers is singular, and a hard row that is
    constant where the equalities hold has no room.
    """
    p = fixed.size
    across: list[Array] = []  # orthonormal, of the same span as the equalities

    def rest(row: Array) -> Array:
        row = np.where(fixed, 0.0, row)
        size = np.abs(row).max(initial=0.0)
        row = row / (size * np.sqrt(p)) if size > 0.0 else row
        for _ in range(2):
            for direction in across:
                row = row - (direction @ row) * direction
        return row

    equal = np.ones(len(problem.E), bool)
    for k, line in enumerate(problem.E):
        left = rest(line)
        length = float(np.linalg.norm(left))
        equal[k] = length > DEPENDENT
        if equal[k]:
            across.append(left / length)
    rows = np.ones(len(problem.A), bool)
    if across:
        hard = np.isinf(problem.cost)[problem.group]
        hard[: len(problem.P)] = False
        for k in np.flatnonzero(hard):
            rows[k] = float(np.linalg.norm(rest(problem.A[k]))) > DEPENDENT
    return equal, rows


def only(problem: Problem, equal: np.ndarray, rows: np.ndarray) -> Problem:
    """The same with these equalities and rows alone."""
    return problem._replace(
        A=problem.A[rows], b=problem.b[rows], group=problem.group[rows], lean=problem.lean[rows],
        E=problem.E[equal], e=problem.e[equal],
    )  # fmt: skip


def relaxed(problem: Problem, x: Array, give: float) -> Problem:
    """The same with hard rows that give way by their rounding: hard rows that meet without room may
    miss each other by that, which more digits would see."""
    hard = np.isinf(problem.cost)[problem.group]
    size = np.abs(problem.A) @ np.abs(x) + np.abs(problem.b)
    size[: len(problem.P)] += 0.5 * (np.abs(problem.P) @ np.abs(x)) @ np.abs(x)
    return problem._replace(b=problem.b + np.where(hard, give * size, 0.0))


def near(problem: Problem, fixed: np.ndarray, guess: Guess, tau: float) -> Point:
    """A point near a guess, of which every product of a multiplier and its room is tau."""
    y, P, A, _, group, lean, cost, free, E, _, lower, upper = problem
    x, mu, equal = guess
    n, hard = cost.size, np.isinf(cost)
    x = np.clip(x, lower, upper)
    J = A.copy()
    J[: len(P)] += P @ x
    slope = x - y.real + J.T @ (mu + lean) + E.T @ equal
    places, pulls = [], []
    for side, sign in ((lower, 1.0), (upper, -1.0)):
        held = np.isfinite(side) & ~fixed
        away = np.where(held, sign * (x - side), 0.0)
        pull = halfway(np.maximum(sign * slope, 0.0) - away, tau)
        most = 0.4 * (upper - lower)
        room = np.where(held, np.minimum(tau / pull, most), 0.0)
        places.append(np.where(held, side + sign * room, -sign * np.inf))
        pulls.append(np.where(held, pull, 0.0))
    x = np.where(fixed, lower, np.minimum(np.maximum(x, places[0]), places[1]))
    g = rows_at(problem, x)
    top = largest_of(g, group, n, -np.inf)
    sums = np.bincount(group, mu, n)
    s = halfway(np.maximum(top, 0.0) - np.where(hard, 0.0, np.maximum(cost - sums, 0.0)), tau)
    nu = np.where(hard | free, 0.0, tau / s)
    s = np.where(hard, 0.0, np.where(free, top + np.sqrt(tau), s))
    mu = halfway(mu - np.maximum(s[group] - g, 0.0), tau)
    return Point(x, s, tau / mu, mu, nu, pulls[0], pulls[1], equal)


def halfway(difference: Array, tau: float) -> Array:
    """The positive a with ``a - tau / a`` equal to this."""
    root = np.sqrt(np.square(difference) + 4.0 * tau)
    return np.where(
        difference > 0.0,
        0.5 * (difference + root),
        2.0 * tau / np.maximum(root - difference, 1e-300),
    )


def rows_at(problem: Problem, x: Array) -> Array:
    """g in doubles."""
    g = problem.A @ x - problem.b
    g[: len(problem.P)] += 0.5 * ((problem.P @ x) @ x)
    return g


def lengthened(problem: Problem, point: Point, fixed: np.ndarray) -> np.ndarray:
    """x in pairs; what rounding has put onto a bound is brought back to its room."""
    x, s, t, mu, nu, low, up, _ = point
    gap = float(mu @ t + nu @ np.maximum(s, 0.0)) / max(mu.size, 1) + 1e-100
    place = pair(x, 0.0)
    digit = 1e-12 * np.maximum(np.abs(x), 1e-3)
    for side, sign, pull in ((problem.lower, 1.0, low), (problem.upper, -1.0, up)):
        held = np.isfinite(side) & ~fixed & (sign * (x - side) < digit)
        room = np.minimum(gap / np.maximum(pull, 1e-100), digit)
        place[held] = pair(*two_sum(side[held], sign * room[held]))
    return place


def begin(problem: Problem, fixed: np.ndarray, guess: Guess, tau: float) -> Point:
    """A point well inside the bounds, of which every product of a multiplier and its room is tau.

    Rows may be broken: that is mended on the way, while unequal products would be in it.
    """
    y, _, _, _, group, _, cost, free, E, _, lower, upper = problem
    n, hard = cost.size, np.isinf(cost)
    low, high = np.isfinite(lower) & ~fixed, np.isfinite(upper) & ~fixed
    room = 0.1 * np.minimum(np.where(low & high, upper - lower, 2.0), 2.0)
    x = np.clip(y.real, -2.0, 2.0)
    x = np.where(low, np.maximum(x, lower + room), x)
    x = np.where(high, np.minimum(x, upper - room), x)
    x = np.where(fixed, lower, x)
    g = rows_at(problem, x)
    top = largest_of(g, group, n, -np.inf)
    share = np.where(hard, np.inf, cost / np.maximum(np.bincount(group, minlength=n), 1))[group]
    mu = np.minimum(0.5 * share, tau / np.where(hard[group], np.maximum(np.abs(g), 1.0), 1.0))
    mu = np.maximum(np.where(free[group], share, mu), 1e-100)
    nu = np.where(hard | free, 0.0, np.maximum(cost - np.bincount(group, mu, n), 1e-100))
    s = np.where(hard, 0.0, np.where(free, 1.0 + top, tau / np.where(nu > 0.0, nu, 1.0)))
    lows = np.where(low, tau / np.where(low, x - lower, 1.0), 0.0)
    ups = np.where(high, tau / np.where(high, upper - x, 1.0), 0.0)
    return Point(x, s, tau / mu, mu, nu, lows, ups, np.zeros(len(E)))


def walk(problem: Problem, point: Point) -> tuple[Point, float]:
    """Newton's method from inside, compiled, until the gap is small enough or no longer falls; and
    the gap or residual that is left."""
    y, P, A, b, group, lean, cost, free, E, e, lower, upper = problem
    (n, p), m = A.shape, len(E)
    columns, rows, groups, equal = (
        np.zeros(shape, complex)
        for shape in (
            (kernels.COLUMNS, p), (kernels.ROWS, n), (kernels.GROUPS, cost.size),
            (kernels.EQUALITIES, m),
        )
    )  # fmt: skip
    x, s, t, mu, nu, low, up, of_equal = point
    columns[kernels.X], columns[kernels.LOW], columns[kernels.UP] = x, low, up
    columns[kernels.Y] = y
    rows[kernels.T], rows[kernels.MU], rows[kernels.B] = t, mu, b
    groups[kernels.S], groups[kernels.NU] = s, nu
    equal[kernels.EQUAL], equal[kernels.LIMIT] = of_equal, e
    dead = (cost == 0.0) & ~free
    kind = np.where(np.isinf(cost), kernels.HARD, np.where(free, kernels.FREE, kernels.HINGE))
    left = kernels.walk()(
        P.reshape(-1, p), np.ascontiguousarray(A), lean, cost, np.where(dead, kernels.DEAD, kind),
        group, np.ascontiguousarray(E), lower, upper, columns.view(float), rows.view(float),
        groups.view(float), equal.view(float), STEPS,
        np.empty(kernels.walk_size(n, p, m)),
    )  # fmt: skip
    best = (
        columns[kernels.BEST_X], groups[kernels.BEST_S], rows[kernels.BEST_T],
        rows[kernels.BEST_MU], groups[kernels.BEST_NU], columns[kernels.BEST_LOW],
        columns[kernels.BEST_UP], equal[kernels.BEST_EQUAL],
    )  # fmt: skip
    return Point(*(line.real for line in best)), left


def settle(problem: Problem, point: Point) -> Guess:
    """The point in doubles; what is clearly at a bound is exactly so."""
    _, P, A, b, group, _, cost, free, _, _, lower, upper = problem
    x, s, t, mu, _, low, up, equal = point
    at = np.maximum(np.abs(x), 1e-3 * np.abs(x).max(initial=0.0))
    size = np.abs(A) @ at + np.abs(b)
    size[: len(P)] += 0.5 * (np.abs(P) @ at) @ at
    size = np.where(size > 0.0, size, 1.0)
    mu = np.where(t > 1e-11 * size, 0.0, np.maximum(mu, 0.0))
    most = largest_of(size, group, cost.size)
    hard = np.isinf(cost)
    total = np.bincount(group, mu, cost.size)
    full = (free | (s > 1e-11 * most)) & ~hard
    share = np.where(
        full & (total > 0.0), np.where(hard, 1.0, cost) / np.maximum(total, 1e-300), 1.0
    )
    mu = mu * share[group]
    # A group may weigh so little that no room of it is told by its product: its value decides.
    g = rows_at(problem, x)
    top = largest_of(g, group, cost.size, -np.inf)
    light = ~hard & (total == 0.0) & (top > CLEARLY * most)
    largest = light[group] & (g >= top[group])
    count = np.bincount(group, largest, cost.size)
    mu = np.where(largest, np.where(light, cost / np.maximum(count, 1.0), 0.0)[group], mu)
    near = 1e-13 * np.maximum(at, 1e-300)
    x = np.where((x - lower <= near) & (low > 0.0), lower, x)
    x = np.where((upper - x <= near) & (up > 0.0), upper, x)
    return np.clip(x, lower, upper), mu, equal


def on_quadratic_rows(
    one: tuple[Any, ...],
    unit: float,
    guess: Array,
    multipliers: Array,
    known: bool,
    give: float = GIVE,
) -> Iterator[tuple[Array, Array, float]]:
    """x and multipliers of an instance as the kernel for quadratic rows takes it, from a guess; and
    what is left of the conditions, before they are rounded to doubles.

    `unit` is the size of x.
    """
    center, gradient, alpha, low, high, P, A, b, lower, upper = one
    u, k, half = float(power(unit)), len(P), 0.5 / float(alpha)
    steep = np.abs(A).max(axis=1, initial=0.0)
    steep[:k] = np.maximum(steep[:k], u * np.abs(P).max(axis=(1, 2), initial=0.0))
    steep = power(steep)
    with np.errstate(all="ignore"):
        y = target_of(center, gradient, 2.0 * float(alpha), u)
        worth = half * steep / u  # of a multiplier
        equal = np.isinf(low) & np.isinf(high)
        turned = np.isinf(low) & ~equal  # hard from below: the row the other way round
        sign = np.where(turned, -1.0, 1.0) / steep
        least, most = np.where(turned, -high, low), np.where(turned, -low, high)
        rows = ~equal
        lean = (least * worth)[rows]
        cost = np.where(np.isinf(most), np.inf, (most - least) * worth)[rows]
        count = int(rows.sum())
        bent = without_dents(P * (u / steep[:k])[:, None, None], (most * worth)[:k])
        problem = Problem(
            y, bent, (A * sign[:, None])[rows], (b * sign / u)[rows],
            np.arange(count), lean, cost, np.zeros(count, bool), A[equal] / steep[equal, None],
            b[equal] / steep[equal] / u, lower / u, upper / u,
        )  # fmt: skip
        start = np.where(turned, -multipliers, multipliers)[rows] * worth[rows] - lean
        begun = guess / u, np.clip(start, 0.0, cost), (multipliers * worth)[equal]
        for (x, mu, nu), left in answers(problem, begun, known, give):
            lam, full = np.empty(b.size), mu >= (1.0 - 2.0 * LAST_DIGIT) * cost
            lam[rows] = np.where(
                full, most[rows], np.where(mu <= 0.0, least[rows], (lean + mu) / worth[rows])
            ) * np.where(turned[rows], -1.0, 1.0)
            lam[equal] = nu / worth[equal]
            yield np.clip(x * u, lower, upper), np.clip(lam, low, high), left


def without_dents(P: Array, price: Array) -> Array:
    """The same matrices, convex beyond rounding, where their price is so high that this matters.

    What rounding leaves of an eigenvalue that is zero may be negative, and more than the step's own
    curvature once it is priced.
    """
    own = np.diagonal(P, axis1=1, axis2=2)
    dear = np.where(np.isinf(price), 0.0, price) * own.max(axis=1, initial=0.0) * LAST_DIGIT > 0.1
    if not dear.any():
        return P
    width = np.sqrt(np.where(own > 0.0, own, 1.0))
    alike = P / (width[:, :, None] * width[:, None, :])
    dent = LAST_DIGIT - np.linalg.eigvalsh(alike).min(axis=1, initial=0.0)
    return P + (np.where(dear, dent, 0.0)[:, None] * own)[:, :, None] * np.eye(P.shape[-1])


def on_pieces(
    problem: Any, unit: float, guess: Array, multipliers: Array, beside: Array, known: bool = True
) -> Iterator[Guess]:
    """x and the multipliers of pieces and of plain rows, of a problem with max-affine rows.

    From a guess of the same; `unit` is the size of x.
    """
    y, A, b, group, low, high, plain, limit, lo, _, lower, upper = problem
    u, n = float(power(unit)), high.size
    steep = power(largest_of(np.abs(A).max(axis=1, initial=0.0), group, n))
    own = power(np.abs(plain).max(axis=1, initial=0.0))
    equal = lo == -np.inf
    count = int((~equal).sum())
    with np.errstate(all="ignore"):
        free = (low == high) & (high < np.inf) & (high > 0.0)
        scaled = Problem(
            y / u, np.zeros((0, A.shape[1], A.shape[1])),
            np.concatenate([A / steep[group, None], (plain / own[:, None])[~equal]]),
            np.concatenate([b / steep[group] / u, (limit / own / u)[~equal]]),
            np.concatenate([group, n + np.arange(count)]), np.zeros(b.size + count),
            np.concatenate([high * steep / u, np.full(count, np.inf)]),
            np.concatenate([free, np.zeros(count, bool)]), (plain / own[:, None])[equal],
            (limit / own / u)[equal], lower / u, upper / u,
        )  # fmt: skip
        price = beside * own / u
        start = np.concatenate([multipliers * steep[group] / u, price[~equal]])
        for (x, mu, nu), _ in answers(scaled, (guess / u, start, price[equal]), known):
            out = np.empty(limit.size)
            out[equal], out[~equal] = nu * u / own[equal], mu[b.size :] * u / own[~equal]
            yield np.clip(x * u, lower, upper), mu[: b.size] * u / steep[group], out
