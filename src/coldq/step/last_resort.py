"""The last resort for one instance: an interior-point method with twice the digits of a double.

    min |x - y|^2 / 2 + <lean, g(x)> + <cost, s>  over
        g_r(x) <= s_group(r),  E x = e,  lower <= x <= upper,

with s >= 0, or free (linear rows), or zero (hard ones), and quadratic or affine g_r. Multipliers of
a group sum up to its cost at most. The other methods decide by signs which rows and bounds hold x,
and where numbers of many magnitudes meet, rounding decides for them. Here nothing is decided: every
step is Newton's on all conditions at once. It runs in doubles as far as they go and then on pairs
of doubles, until products of multipliers and the rooms they have are so small that no row is in
doubt. Pairs are NumPy arrays: no compiler, and no kind of float that only some machines have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from coldq._values import Array

STEPS = 80  # in doubles, and as many on pairs
SHORT = 0.995  # of the way to the boundary
ENOUGH, SHARP = 1e-24, 1e-15  # the complementarity left, and the relative residual
SPLIT = 134217729.0  # 2^27 + 1: halves of a double


class Long:
    """Numbers as unevaluated sums of two doubles: arrays `high`, and `low` below its last digit."""

    __slots__ = ("high", "low")
    __array_ufunc__ = None  # an array on the left leaves the operation to this class

    def __init__(self, high: Any, low: Any = None) -> None:
        self.high = np.asarray(high, np.float64)
        self.low = np.zeros_like(self.high) if low is None else low

    def __add__(self, other: Any) -> Long:
        b, b_low = parts(other)
        s, e = two_sum(self.high, b)
        return renewed(s, e + (self.low + b_low))

    __radd__ = __add__

    def __neg__(self) -> Long:
        return Long(-self.high, -self.low)

    def __sub__(self, other: Any) -> Long:
        return self + (-other)

    def __rsub__(self, other: Any) -> Long:
        return -self + other

    def __mul__(self, other: Any) -> Long:
        b, b_low = parts(other)
        s, e = two_product(self.high, b)
        return renewed(s, e + (self.high * b_low + self.low * b))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Long:
        b, _ = parts(other)
        q = self.high / b
        rest = self - other * Long(q)
        more = rest.high / b
        rest = rest - other * Long(more)
        s, e = two_sum(q, more)
        return renewed(s, e + rest.high / b)

    def __rtruediv__(self, other: Any) -> Long:
        return Long(np.broadcast_to(other, self.high.shape)) / self

    def __getitem__(self, where: Any) -> Long:
        return Long(self.high[where], self.low[where])

    def __setitem__(self, where: Any, value: Any) -> None:
        self.high[where], self.low[where] = parts(value)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.high.shape

    @property
    def T(self) -> Long:
        return Long(self.high.T, self.low.T)

    def sum(self, axis: int = -1) -> Long:
        """The sum along an axis, by halves."""
        high, low = np.moveaxis(self.high, axis, 0), np.moveaxis(self.low, axis, 0)
        total = Long(high, low)
        while len(total.high) > 1:
            half = len(total.high) // 2
            rest = total[2 * half :]
            total = total[:half] + total[half : 2 * half]
            if len(rest.high):
                total = Long(
                    np.concatenate([total.high, rest.high]), np.concatenate([total.low, rest.low])
                )
        if not len(total.high):
            return Long(np.zeros(high.shape[1:]))
        return total[0]

    def sqrt(self) -> Long:
        root = np.sqrt(self.high)
        safe = np.where(root > 0.0, root, 1.0)
        rest = self - Long(root) * root
        return renewed(root, np.where(root > 0.0, rest.high / (2.0 * safe), 0.0))


def parts(value: Any) -> tuple[Any, Any]:
    return (value.high, value.low) if isinstance(value, Long) else (value, 0.0)


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    s = a + b
    bb = s - a
    return s, (a - (s - bb)) + (b - bb)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    p = a * b
    c, d = SPLIT * a, SPLIT * b
    a_high, b_high = c - (c - a), d - (d - b)
    a_low, b_low = a - a_high, b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


def renewed(high: Any, low: Any) -> Long:
    s = high + low
    return Long(s, low - (s - high))


def rounded(value: Any) -> Array:
    return value.high if isinstance(value, Long) else value


def dot(a: Any, b: Any) -> Any:
    """``a @ b`` over the last axis of a."""
    return (a * b).sum(-1)


class Problem(NamedTuple):
    """One instance. The first rows have a P; `lean` is added to every row's multiplier.

    Of a group, `cost` bounds the sum of multipliers, infinite if it is hard; `free` says that the
    sum is the cost.
    """

    y: Any
    P: Array
    A: Array
    b: Any
    group: np.ndarray
    lean: Array
    cost: Array
    free: np.ndarray
    E: Array
    e: Any
    lower: Array
    upper: Array


Guess = tuple[Array, Array, Array]  # x, and the multipliers of rows and of equalities


class Point(NamedTuple):
    """Where the method stands: t is the room of rows, low and up are the bounds' multipliers."""

    x: Any
    s: Any
    t: Any
    mu: Any
    nu: Any
    low: Any
    up: Any
    equal: Any


def answers(problem: Problem, guess: Guess) -> Iterator[Guess]:
    """x, the multipliers of rows without `lean`, and those of equalities, from several starts.

    The guess of the same is where the first one begins.
    """
    fixed = problem.lower >= problem.upper
    costs = np.concatenate([problem.cost[np.isfinite(problem.cost)], np.abs(problem.lean), [1.0]])
    dear = float(costs.max())
    for start, tau in (
        (near, 1e-7), (begin, 0.1 * dear), (begin, 1.0), (begin, np.sqrt(dear)), (near, 1e-2),
    ):  # fmt: skip
        with np.errstate(all="ignore"):
            point = start(problem, fixed, guess, tau)
            if start is begin:
                first, point = point, walk(problem, point, fixed, False)
                if point is first and tau == 1.0:
                    continue
            point = walk(problem, lengthened(problem, point, fixed), fixed, True)
            answer = settle(problem, point)
        yield answer


def near(problem: Problem, fixed: np.ndarray, guess: Guess, tau: float) -> Point:
    """A point near a guess, of which every product of a multiplier and its room is tau."""
    y, P, A, _, group, lean, cost, free, E, _, lower, upper = problem
    x, mu, equal = guess
    n, hard = cost.size, np.isinf(cost)
    x = np.clip(x, lower, upper)
    J = A.copy()
    J[: len(P)] += P @ x
    slope = x - rounded(y) + J.T @ (mu + lean) + E.T @ equal
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
    top = np.full(n, -np.inf)
    np.maximum.at(top, group, g)
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
    g = problem.A @ x - rounded(problem.b)
    g[: len(problem.P)] += 0.5 * ((problem.P @ x) @ x)
    return g


def lengthened(problem: Problem, point: Point, fixed: np.ndarray) -> Point:
    """The same on pairs; what rounding has put onto a bound is brought back to its room."""
    lower, upper = problem.lower, problem.upper
    x, s, t, mu, nu, low, up, equal = point
    gap = float(mu @ t + nu @ np.maximum(s, 0.0)) / max(mu.size, 1) + 1e-100
    place = Long(np.array(x))
    digit = 1e-12 * np.maximum(np.abs(x), 1e-3)
    for side, sign, pull in ((lower, 1.0, low), (upper, -1.0, up)):
        held = np.isfinite(side) & ~fixed & (sign * (x - side) < digit)
        room = np.minimum(gap / np.maximum(pull, 1e-100), digit)
        place[held] = Long(side[held]) + sign * room[held]
    rest = (Long(np.array(part)) for part in (s, t, mu, nu, low, up, equal))
    return Point._make([place, *rest])


def begin(problem: Problem, fixed: np.ndarray, guess: Guess, tau: float) -> Point:
    """A point well inside the bounds, of which every product of a multiplier and its room is tau.

    Rows may be broken: that is mended on the way, while unequal products would be in it.
    """
    y, _, _, _, group, _, cost, free, E, _, lower, upper = problem
    y, n, hard = rounded(y), cost.size, np.isinf(cost)
    low, high = np.isfinite(lower) & ~fixed, np.isfinite(upper) & ~fixed
    room = 0.1 * np.minimum(np.where(low & high, upper - lower, 2.0), 2.0)
    x = np.clip(y, -1e3, 1e3)
    x = np.where(low, np.maximum(x, lower + room), x)
    x = np.where(high, np.minimum(x, upper - room), x)
    x = np.where(fixed, lower, x)
    top = np.full(n, -np.inf)
    np.maximum.at(top, group, rows_at(problem, x))
    share = np.where(hard, np.inf, cost / np.maximum(np.bincount(group, minlength=n), 1))[group]
    mu = np.maximum(np.where(free[group], share, np.minimum(0.5 * share, tau)), 1e-100)
    nu = np.where(hard | free, 0.0, np.maximum(cost - np.bincount(group, mu, n), 1e-100))
    s = np.where(hard, 0.0, np.where(free, 1.0 + top, tau / np.where(nu > 0.0, nu, 1.0)))
    lows = np.where(low, tau / np.where(low, x - lower, 1.0), 0.0)
    ups = np.where(high, tau / np.where(high, upper - x, 1.0), 0.0)
    return Point(x, s, tau / mu, mu, nu, lows, ups, np.zeros(len(E)))


class Masks(NamedTuple):
    """Which pairs of a multiplier and a room there are, and which row is in which group."""

    fixed: np.ndarray
    hard: np.ndarray
    hinge: np.ndarray
    live: np.ndarray  # rows of groups that have a cost
    below: np.ndarray
    above: np.ndarray
    member: Array

    @property
    def pairs(self) -> int:
        return sum(int(m.sum()) for m in (self.live, self.hinge, self.below, self.above))

    @property
    def still(self) -> np.ndarray:
        """The groups whose s is zero for good."""
        return ~self.hinge & ((self.member @ self.live == 0.0) | self.hard)


def masks_of(problem: Problem, fixed: np.ndarray) -> Masks:
    cost, group = problem.cost, problem.group
    hard = np.isinf(cost)
    dear = hard | (cost > 0.0)
    return Masks(
        fixed, hard, ~hard & ~problem.free & dear, dear[group], np.isfinite(problem.lower) & ~fixed,
        np.isfinite(problem.upper) & ~fixed,
        (group == np.arange(cost.size)[:, None]).astype(float),
    )  # fmt: skip


class State(NamedTuple):
    """All that the conditions at a point are made of: slopes, rooms at bounds, and what is left of
    stationarity in x and in s, of rows and of equalities."""

    J: Any
    total: Any
    down: Any
    over: Any
    rx: Any
    rs: Any
    rp: Any
    re: Any

    def pairs(self, point: Point, masks: Masks) -> list[tuple[Any, Any, np.ndarray]]:
        """The multipliers, the rooms that they have, and which of them count."""
        return [
            (point.mu, point.t, masks.live), (point.nu, point.s, masks.hinge),
            (point.low, self.down, masks.below), (point.up, self.over, masks.above),
        ]  # fmt: skip


def state_at(problem: Problem, point: Point, masks: Masks) -> State:
    _, P, A, _, _, lean, cost, _, E, _, lower, upper = problem
    x, s, t, mu, nu, low, up, equal = point
    long, k = isinstance(x, Long), len(P)
    y, b, e = (part if long else rounded(part) for part in (problem.y, problem.b, problem.e))
    J, g = copied(A, long), dot(A, x) - b
    if k:
        bent = dot(P, x)
        J[:k] = J[:k] + bent
        g[:k] = g[:k] + 0.5 * dot(bent, x)
    total = mu + lean
    rx = x - y + dot(J.T, total) - low + up
    if len(E):
        rx = rx + dot(E.T, equal)
    return State(
        J, total, there(x - lower, masks.below), there(upper - x, masks.above), rx,
        np.where(masks.hard, 0.0, cost) - dot(masks.member, mu) - nu,
        g - dot(masks.member.T, s) + t, dot(E, x) - e if len(E) else copied(np.zeros(0), long),
    )  # fmt: skip


class System(NamedTuple):
    """Newton's equations with all but x and the multipliers of equalities put in."""

    w: Any
    W: Any
    mean: Any
    S: Any
    factor: Any
    ways: list[Any]
    inner: Any


def system_at(problem: Problem, point: Point, masks: Masks, state: State) -> System | None:
    """The matrix: curvature, bounds, and rows through the rooms that they have; None if rounding
    leaves nothing of it."""
    P, E, fixed, member = problem.P, problem.E, masks.fixed, masks.member
    long, p = isinstance(point.x, Long), problem.A.shape[1]
    J = state.J
    w = masked(point.mu / point.t, masks.live)
    W = dot(member, w)
    # Rows around the mean of their group, and the mean: s takes from its rise only.
    mean = dot(member[:, None, :], (w[:, None] * J).T) / nonzero(W)[:, None]
    kappa = masked(point.nu / nonzero(point.s), masks.hinge)
    rise = W * kappa / nonzero(W + kappa)
    rise[masks.hard] = W[masks.hard]
    centered = J - dot(member.T[:, None, :], mean.T)
    M = dot((w[:, None] * centered).T[:, None, :], centered.T[None])
    M = M + dot((rise[:, None] * mean).T[:, None, :], mean.T[None])
    if len(P):
        M = M + (state.total[: len(P), None, None] * P).sum(0)
    where = np.arange(p)
    M[where, where] = M[where, where] + (1.0 + point.low / state.down + point.up / state.over)
    open_ = (~fixed).astype(float)
    M = M * open_ * open_[:, None] + np.diag(1.0 - open_)
    factor = factored(M)
    if factor is None:
        return None
    ways = [back(factor, copied(row * open_, long)) for row in E]
    inner = None
    if ways:  # what the multipliers of equalities do to x, and to the equalities
        response = copied(np.zeros((len(E), len(E))), long)
        for j, way in enumerate(ways):
            response[:, j] = dot(E * open_, way)
        inner = factored(response)
        if inner is None:
            return None
    return System(w, W, mean, nonzero(W + kappa), factor, ways, inner)


def direction(
    problem: Problem, point: Point, masks: Masks, state: State, system: System, tau: float,
    first: Point | None,
) -> Point:  # fmt: skip
    """Newton's step towards products of tau; `first` is one whose own curvature counts."""
    _, s, t, mu, nu, low, up, equal = point
    J, _, down, over, rx, rs, rp, re = state
    w, W, mean, S, factor, ways, inner = system
    cr, cs, cl, cu = tau - mu * t, tau - nu * s, tau - low * down, tau - up * over
    if first is not None:
        cr, cs = cr - first.mu * first.t, cs - first.nu * first.s
        cl, cu = cl - first.low * first.x, cu + first.up * first.x
    moves = ~masks.still
    q = masked((cr + mu * rp) / t, masks.live)
    soft = masked((dot(masks.member, q) - rs + masked(cs / nonzero(s), masks.hinge)) / S, moves)
    right = -1.0 * rx - dot(J.T, q) + dot((W[:, None] * mean).T, soft)
    right = right + masked(cl / down, masks.below) - masked(cu / over, masks.above)
    dx, de = back(factor, masked(right, ~masks.fixed)), equal
    if ways:
        de = back(inner, dot(problem.E * ~masks.fixed, dx) + re)
        for j, way in enumerate(ways):
            dx = dx - de[j] * way
    ds = soft + masked(W * dot(mean, dx) / S, moves)
    along = dot(J, dx) - dot(masks.member.T, ds)
    return Point(
        dx, ds, -1.0 * rp - along, masked(q + w * along, masks.live),
        masked((cs - nu * ds) / nonzero(s), masks.hinge),
        masked((cl - low * dx) / down, masks.below), masked((cu + up * dx) / over, masks.above), de,
    )  # fmt: skip


def moving(point: Point, masks: Masks, state: State, move: Point) -> list[tuple[Array, Array]]:
    """Every multiplier and every room, and how it would change."""
    changes = [
        (move.mu, move.t), (move.nu, move.s), (move.low, move.x), (move.up, -1.0 * move.x),
    ]  # fmt: skip
    return [
        (rounded(part)[m], rounded(change)[m])
        for (a, c, m), both in zip(state.pairs(point, masks), changes, strict=True)
        for part, change in ((a, both[0]), (c, both[1]))
    ]


def walk(problem: Problem, point: Point, fixed: np.ndarray, long: bool) -> Point:
    """Newton's method from inside, until the gap is small enough or no longer falls."""
    masks, k = masks_of(problem, fixed), len(problem.P)
    size = max(masks.pairs, 1)
    best, stuck, care = (np.inf, point), 0, 1e-6
    patience = 8 if long else 25
    for _ in range(STEPS):
        state = state_at(problem, point, masks)
        pairs = [(rounded(a)[m], rounded(c)[m]) for a, c, m in state.pairs(point, masks)]
        gap = sum(float(a @ c) for a, c in pairs) / size
        off = left_over(point, masks, state)
        merit = max(gap, off)
        if not np.isfinite(merit):
            break
        stuck = 0 if merit < 0.9 * best[0] else stuck + 1
        best = (merit, point) if stuck == 0 else best
        if ((gap <= ENOUGH and off <= SHARP) if long else gap <= 1e-10) or stuck > patience:
            break
        system = system_at(problem, point, masks, state)
        if system is None:
            break
        # First aim at zero, to see how far that leads; then at what it would leave.
        move = direction(problem, point, masks, state, system, 0.0, None)
        ways = moving(point, masks, state, move)
        length = farthest(ways)
        ends = [a + length * d for a, d in ways]
        left = sum(float(a @ c) for a, c in zip(ends[::2], ends[1::2], strict=True)) / size
        tau = gap * min(max(max(left / max(gap, 1e-300), 0.0) ** 3, care), 1.0)
        move = direction(problem, point, masks, state, system, tau, move)
        length = min(SHORT * farthest(moving(point, masks, state, move)), 1.0)
        if k:  # the curvature of a row takes some of its room
            bend = 0.5 * dot(dot(problem.P, move.x), move.x)
            length = bent_less(length, masks.live[:k], *(rounded(a)[:k] for a in (
                point.t, move.t, bend)))  # fmt: skip
            move.t[:k] = move.t[:k] - length * bend
        care = max(0.9 * (1.0 - length) ** 2, 1e-6)  # aim low where the last step could go far
        point = Point(*(a + length * d for a, d in zip(point, move, strict=True)))
    return best[1]


def left_over(point: Point, masks: Masks, state: State) -> float:
    """The relative residual, of all but the products."""
    J, total, x = rounded(state.J), rounded(state.total), rounded(point.x)
    scale = 1.0 + np.abs(x) + np.abs(J).T @ np.abs(total)
    parts = [(np.abs(rounded(state.rx)) / scale)[~masks.fixed], rounded(state.rp)[masks.live]]
    return max(float(np.abs(a).max(initial=0.0)) for a in (*parts, rounded(state.re)))


def farthest(ways: list[tuple[Array, Array]]) -> float:
    """How much of a step leaves everything positive, at most all of it."""
    length = 1.0
    for a, d in ways:
        falls = d < 0.0
        length = min(length, float((-a[falls] / d[falls]).min(initial=1.0)))
    return length


def bent_less(length: float, live: np.ndarray, t: Array, dt: Array, bend: Array) -> float:
    """A step so short that the rows' curvature takes at most half of the room at its end."""
    for _ in range(60):
        if not (length * length * bend > 0.5 * (t + length * dt))[live].any():
            break
        length *= 0.7
    return length


def copied(value: Array, long: bool) -> Any:
    """A new array, of pairs or not."""
    return Long(np.array(value)) if long else np.array(value)


def there(value: Any, where: np.ndarray) -> Any:
    """The value there, one elsewhere."""
    return masked(value, where) + np.where(where, 0.0, 1.0)


def nonzero(value: Any) -> Any:
    """The same with ones for zeros."""
    return value + np.where(rounded(value) == 0.0, 1.0, 0.0)


def masked(value: Any, where: np.ndarray) -> Any:
    """The value there, zero elsewhere, whatever it is."""
    if isinstance(value, Long):
        return Long(np.where(where, value.high, 0.0), np.where(where, value.low, 0.0))
    return np.where(where, value, 0.0)


def factored(M: Any) -> Any:
    """Cholesky's factor, of the matrix brought to a diagonal of ones; None if there is none."""
    diagonal = np.diagonal(rounded(M)).copy()
    if not (np.isfinite(diagonal).all() and (diagonal > 0.0).all()):
        return None
    size = np.ldexp(1.0, -(np.frexp(diagonal)[1] // 2))
    M = size[:, None] * M * size
    p = size.size
    if not isinstance(M, Long):
        try:
            return np.linalg.cholesky(M + 1e-15 * np.eye(p)), size
        except np.linalg.LinAlgError:
            return None
    L = Long(np.array(M.high), np.array(M.low))
    for j in range(p):
        pivot = L[j, j]
        if not pivot.high > 1e-30:
            pivot = Long(np.array(1e-30))
        root = pivot.sqrt()
        L[j, j] = root
        if j + 1 < p:
            L[j + 1 :, j] = L[j + 1 :, j] / root
            column = L[j + 1 :, j]
            L[j + 1 :, j + 1 :] = L[j + 1 :, j + 1 :] - column[:, None] * column[None, :]
    return L, size


def back(factor: Any, right: Any) -> Any:
    """Solve with a factor."""
    L, size = factor
    if not isinstance(L, Long):
        from scipy.linalg import cho_solve

        return size * cho_solve((L, True), size * right)
    z = size * right
    p = size.size
    for j in range(p):
        z[j] = z[j] / L[j, j]
        if j + 1 < p:
            z[j + 1 :] = z[j + 1 :] - L[j + 1 :, j] * z[j]
    for j in range(p - 1, -1, -1):
        z[j] = z[j] / L[j, j]
        if j:
            z[:j] = z[:j] - L[j, :j] * z[j]
    return size * z


def settle(problem: Problem, point: Point) -> Guess:
    """The point in doubles; what is clearly at a bound is exactly so."""
    _, P, A, b, group, _, cost, free, _, _, lower, upper = problem
    x, s, t, mu, _, low, up, equal = (rounded(part) for part in point)
    at = np.maximum(np.abs(x), 1e-3 * np.abs(x).max(initial=0.0))
    size = np.abs(A) @ at + np.abs(rounded(b))
    size[: len(P)] += 0.5 * (np.abs(P) @ at) @ at
    size = np.where(size > 0.0, size, 1.0)
    mu = np.where(t > 1e-11 * size, 0.0, np.maximum(mu, 0.0))
    most = np.zeros(cost.size)
    np.maximum.at(most, group, size)
    hard = np.isinf(cost)
    total = np.bincount(group, mu, cost.size)
    full = (free | (s > 1e-11 * most)) & ~hard
    share = np.where(
        full & (total > 0.0), np.where(hard, 1.0, cost) / np.maximum(total, 1e-300), 1.0
    )
    mu = mu * share[group]
    near = 1e-13 * np.maximum(at, 1e-300)
    x = np.where((x - lower <= near) & (low > 0.0), lower, x)
    x = np.where((upper - x <= near) & (up > 0.0), upper, x)
    return np.clip(x, lower, upper), mu, equal


def power(size: Any) -> Any:
    """The power of two next to a size, 1 for 0: a division by it is exact."""
    return np.ldexp(1.0, np.where(size > 0.0, np.frexp(size)[1], 0))


def on_quadratic_rows(
    one: tuple[Any, ...], unit: float, guess: Array, multipliers: Array
) -> Iterator[tuple[Array, Array]]:
    """x and multipliers of an instance as the kernel for quadratic rows takes it, from a guess.

    `unit` is the size of x.
    """
    center, gradient, alpha, low, high, P, A, b, lower, upper = one
    u, k, half = float(power(unit)), len(P), 0.5 / float(alpha)
    steep = np.abs(A).max(axis=1, initial=0.0)
    steep[:k] = np.maximum(steep[:k], u * np.abs(P).max(axis=(1, 2), initial=0.0))
    steep = power(steep)
    with np.errstate(all="ignore"):
        y = (Long(center) - Long(gradient) / (2.0 * float(alpha))) / u
        worth = half * steep / u  # of a multiplier
        equal = np.isinf(low) & np.isinf(high)
        turned = np.isinf(low) & ~equal  # hard from below: the row the other way round
        sign = np.where(turned, -1.0, 1.0) / steep
        least, most = np.where(turned, -high, low), np.where(turned, -low, high)
        rows = ~equal
        lean = (least * worth)[rows]
        cost = np.where(np.isinf(most), np.inf, (most - least) * worth)[rows]
        count = int(rows.sum())
        problem = Problem(
            y, P * (u / steep[:k])[:, None, None], (A * sign[:, None])[rows], (b * sign / u)[rows],
            np.arange(count), lean, cost, np.zeros(count, bool), A[equal] / steep[equal, None],
            b[equal] / steep[equal] / u, lower / u, upper / u,
        )  # fmt: skip
        start = np.where(turned, -multipliers, multipliers)[rows] * worth[rows] - lean
        for x, mu, nu in answers(
            problem, (guess / u, np.clip(start, 0.0, cost), (multipliers * worth)[equal])
        ):
            lam = np.empty(b.size)
            lam[rows] = np.where(
                mu >= cost, most[rows], np.where(mu <= 0.0, least[rows], (lean + mu) / worth[rows])
            ) * np.where(turned[rows], -1.0, 1.0)
            lam[equal] = nu / worth[equal]
            yield np.clip(x * u, lower, upper), np.clip(lam, low, high)


def on_pieces(
    problem: Any, unit: float, guess: Array, multipliers: Array, beside: Array
) -> Iterator[Guess]:
    """x and the multipliers of pieces and of plain rows, of a problem with max-affine rows.

    From a guess of the same; `unit` is the size of x.
    """
    y, A, b, group, low, high, plain, limit, lo, _, lower, upper = problem
    u, n = float(power(unit)), high.size
    steep = np.zeros(n)
    np.maximum.at(steep, group, np.abs(A).max(axis=1, initial=0.0))
    steep, own = power(steep), power(np.abs(plain).max(axis=1, initial=0.0))
    equal = lo == -np.inf
    count = int((~equal).sum())
    with np.errstate(all="ignore"):
        free = (low == high) & (high < np.inf) & (high > 0.0)
        scaled = Problem(
            Long(y) / u, np.zeros((0, A.shape[1], A.shape[1])),
            np.concatenate([A / steep[group, None], (plain / own[:, None])[~equal]]),
            np.concatenate([b / steep[group] / u, (limit / own / u)[~equal]]),
            np.concatenate([group, n + np.arange(count)]), np.zeros(b.size + count),
            np.concatenate([high * steep / u, np.full(count, np.inf)]),
            np.concatenate([free, np.zeros(count, bool)]), (plain / own[:, None])[equal],
            (limit / own / u)[equal], lower / u, upper / u,
        )  # fmt: skip
        price = beside * own / u
        start = np.concatenate([multipliers * steep[group] / u, price[~equal]])
        for x, mu, nu in answers(scaled, (guess / u, start, price[equal])):
            out = np.empty(limit.size)
            out[equal], out[~equal] = nu * u / own[equal], mu[b.size :] * u / own[~equal]
            yield np.clip(x * u, lower, upper), mu[: b.size] * u / steep[group], out
