"""Smooth convex rows: one quadratic model after the other.

With hessians each row is replaced by its second-order model at x, a quadratic row, and the step
with these rows is solved exactly. As the models have the curvature of the rows themselves, the
iteration converges as fast as Newton's method, and since the per-slot objective is itself an exact
penalty, its value says how far to go along. Without hessians they are taken from differences of the
jacobian.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import InvalidInput
from coldq.solver.answer import CURVED_TOLERANCE, GAP_TOLERANCE
from coldq.solver.constants import ORIGIN_SIZE
from coldq.solver.curved import (
    POLISH_RESIDUAL,
    assemble,
    known_size,
    residual_of,
    solve_one,
    values,
)
from coldq.solver.max_affine import affine_rows_conflict
from coldq.solver.problem import Part, QuadraticProblem, reach_of

HIDDEN_FALL_FACTOR = 100.0  # times rounding: a fall that values need not show
MAX_NEWTON_STEPS = 60
MAX_PENALTY_INCREASES = 8  # with ever greater weights for enforced rows
PRICED_ROUNDING = 2e-9  # of a row's terms, priced: what rounding makes of a row is no gap
CONVEXITY_TOLERANCE = 1e-6  # how far below a tangent a convex function may be found, relatively
FIRST_PENALTY_RATIO = (
    1e3  # the first finite weight that stands for an enforced row, relative to the pull on it
)


class Member(NamedTuple):
    """One instance: the data of the step, its rows, which answer `value`, `jacobian` and perhaps
    `hessian`, and the enforced rows of its domain, each with the least of its multipliers."""

    center: Array
    gradient: Array
    alpha: float
    low: Array
    high: Array
    rows: Any
    lower: Array
    upper: Array
    enforced: tuple[tuple[Part, float], ...]

    def objective(self, x: Array, g: Array) -> float:
        """The penalised objective; all weights are finite."""
        move = x - self.center
        penalty = np.where(g > 0.0, self.high * g, self.low * g)
        return float(self.gradient @ move + self.alpha * (move @ move) + penalty.sum())

    def terms(self, x: Array, g: Array, J: Array) -> float:
        """What a gap is relative to: the sizes of all that the objective is the sum of, or the cost
        of moves by as much as x is, or a millionth of where it is pulled; no more than the value,
        if that is above 1, and no less than what is due to the rounding of rows.

        Nor less than what puts x within 1e-6 of the answer, relative to its size: the objective
        rises from the least by alpha times the square of the distance, at least.
        """
        soft, move = self.softened(0.0), x - self.center
        width = np.minimum(known_size(self, x), self.upper - self.lower)
        penalty = np.abs(np.where(g > 0.0, soft.high * g, soft.low * g)).sum()
        moving = np.abs(self.gradient) @ np.abs(move) + self.alpha * (move @ move)
        rounded = PRICED_ROUNDING * (np.abs(J) @ np.abs(x) + np.abs(J @ x - g))
        paid = np.where(g > -GAP_TOLERANCE * rounded, soft.high, np.abs(soft.low))
        rounding = paid @ rounded
        terms = max(moving + penalty, np.abs(self.gradient) @ width)
        near = GAP_TOLERANCE * self.alpha * (x @ x)
        return float(max(min(terms, max(1.0, abs(soft.objective(x, g)))), rounding, near))

    def softened(self, weight: Any) -> Member:
        """The instance with finite weights for enforced rows."""
        return self._replace(
            low=np.where(self.low == -np.inf, -weight, self.low),
            high=np.where(self.high == np.inf, weight, self.high),
        )


class Moved(NamedTuple):
    """Rows as functions of ``x - origin``, asked only within bounds."""

    rows: Any
    origin: Array
    lower: Array
    upper: Array

    @property
    def n_constraints(self) -> int:
        return self.rows.n_constraints

    def at(self, x: Array) -> Array:
        """Where x is in the rows' own coordinates."""
        return np.minimum(np.maximum(x + self.origin, self.lower), self.upper)

    def value(self, x: Array) -> Array:
        return self.rows.value(self.at(x))

    def jacobian(self, x: Array) -> Array:
        return self.rows.jacobian(self.at(x))

    def hessian(self, x: Array) -> Array:
        return self.rows.hessian(self.at(x))


def place_of(rows: Any, x: Array) -> Array:
    """Where x is in the rows' own coordinates: their values have the rounding of these."""
    return rows.at(x) if isinstance(rows, Moved) else x


def differences(constraint: Any, x: Array, lower: Array, upper: Array) -> Array:
    """The hessians from central differences of the jacobian, inside the box, made semidefinite."""
    p, unit = x.size, reach_of(x, lower, upper) or 1.0
    out = np.zeros((constraint.n_constraints, p, p))
    for i in range(p):
        h = 6e-6 * min(unit, 1.0 + abs(x[i]))
        ahead, behind = x.copy(), x.copy()
        ahead[i], behind[i] = min(x[i] + h, upper[i]), max(x[i] - h, lower[i])
        if ahead[i] > behind[i]:
            rise = constraint.jacobian(ahead) - constraint.jacobian(behind)
            out[:, :, i] = rise / (ahead[i] - behind[i])
    out = 0.5 * (out + np.swapaxes(out, -1, -2))
    values, vectors = np.linalg.eigh(out)
    return (vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, -1, -2)


def newton(member: Member, exact: bool) -> tuple[Array, Array, float]:
    """Quadratic models of the rows; enforced ones get a weight, greater ones if it is too small.

    An infinite residual says that enforced rows have no common point. Without hessians less is
    tried, for cutting planes are left.
    """
    low, high = member.low, member.high
    at_most, at_least = np.isinf(high), np.isinf(low)
    if not (at_most.any() or at_least.any()):
        return models(member, exact)
    x, lam, off = None, np.zeros(high.size), 1.0
    weights = first_weights(member)
    attempts = range(MAX_PENALTY_INCREASES if exact else 2)
    for attempt in attempts:
        soft = member.softened(weights)
        x, lam, off = models(soft, exact, x, lam)
        short = (at_most & (lam >= soft.high)) | (at_least & (lam <= soft.low))
        # Of rows that depend on each other some multiplier is at any weight, and yet all hold.
        g, J = values_at(member.rows, x)
        over = np.where(at_least & (~at_most | (g < 0.0)), -g, g)
        broken = broken_by(x, over[short], J[short])
        if broken <= POLISH_RESIDUAL:
            off = max(off, broken)
            break
        off = 1.0
        if exact and attempt in (0, attempts[-1]) and rows_conflict(member, x):
            off = np.inf
            break
        weights = np.where(short, np.maximum(100.0 * weights, enough(member, x, lam)), weights)
    return x, np.minimum(np.maximum(lam, low), high), off  # type: ignore[return-value]


def broken_by(x: Array, g: Array, J: Array) -> float:
    """By how much rows are broken, relative to the terms of their tangents at x."""
    size = np.abs(J) @ np.maximum(np.abs(x), ORIGIN_SIZE * np.abs(x).max(initial=0.0))
    size = size + np.abs(J @ x - g)
    return float((np.maximum(g, 0.0) / np.where(size > 0.0, size, 1.0)).max(initial=0.0))


def first_weights(member: Member) -> Array:
    """Finite weights for enforced rows, relative to what pulls on them at first."""
    begin = np.clip(member.center, member.lower, member.upper)
    weights = enough(member, begin, np.zeros(member.high.size))
    return np.where(weights > 0.0, weights, FIRST_PENALTY_RATIO * member.alpha)


def enough(member: Member, x: Array, lam: Array) -> Array:
    """What it takes of each row to stop all else that pulls on x, many times over."""
    g, J = values_at(member.rows, x)
    steep = np.abs(J).max(axis=1, initial=0.0)
    steep = np.where(steep > 0.0, steep, float(steep.max(initial=0.0)) or 1.0)
    way = np.abs(x - member.center).max(initial=0.0) + np.abs(g) / steep
    soft = np.isfinite(member.high) & np.isfinite(member.low)
    pull = np.abs(member.gradient) + np.abs(lam[soft]) @ np.abs(J[soft])
    return FIRST_PENALTY_RATIO * (pull.max(initial=0.0) + 2.0 * member.alpha * way) / steep


def rows_conflict(member: Member, x: Array) -> bool:
    """Whether the tangents of enforced rows, where these are all that matters, conflict.

    Convex rows lie above their tangents. Coordinates without bounds leave little to prove with: of
    those it is enough that a greater weight does not bring x closer to a common point.
    """
    at_most, at_least = np.isinf(member.high), np.isinf(member.low)
    enforced = member._replace(
        center=x, gradient=0.0 * x, alpha=1.0, low=np.where(at_least, -np.inf, 0.0),
        high=np.where(at_most, np.inf, 0.0),
    )  # fmt: skip
    bounded = np.isfinite(member.lower).all() and np.isfinite(member.upper).all()
    unit = reach_of(member.lower, member.upper, member.center) or 1.0
    last = off = np.inf
    for weight in (
        FIRST_PENALTY_RATIO,
        1e2 * FIRST_PENALTY_RATIO,
        1e4 * FIRST_PENALTY_RATIO,
        1e6 * FIRST_PENALTY_RATIO,
    ):
        g, J = values_at(member.rows, x)
        size = np.abs(J) @ np.abs(x) + np.abs(J @ x - g) + unit * np.abs(J).sum(axis=1)
        size = np.where(size > 0.0, size, 1.0)
        x, _, worst = models(enforced.softened(weight * unit * unit / size), True, x)
        A, b, low, high = tangents_at(enforced, x, *values_at(member.rows, x))
        if affine_rows_conflict(A, b, low, high, x, unit, member.lower, member.upper):
            return True
        if not worst <= CURVED_TOLERANCE:
            return False  # nothing is proven
        g = member.rows.value(x)
        violation = np.maximum(np.where(at_most, g, 0.0), np.where(at_least, -g, 0.0))
        last, off = off, float((violation / size).max())
        if off <= CURVED_TOLERANCE:
            return False
    return not bounded and off >= 0.5 * last


def tangents_at(member: Member, x: Array, g: Array, J: Array) -> tuple[Array, Array, Array, Array]:
    """The tangents of all rows at x, those of the domain's own after them: slopes, limits, and the
    bounds of their multipliers."""
    A, b, low, high = [J], [J @ x - g], member.low, member.high
    for part, least in member.enforced:
        slope = np.asarray(part.jacobian(x))
        A.append(slope)
        b.append(slope @ x - part.value(x))
        low = np.append(low, np.full(part.n_constraints, least))
        high = np.append(high, np.full(part.n_constraints, np.inf))
    return np.concatenate(A), np.concatenate(b), low, high


def models(
    member: Member, exact: bool, x: Array | None = None, lam: Array | None = None
) -> tuple[Array, Array, float]:
    """One quadratic model of the rows after the other, from a point of the domain if one is given;
    every bound of a multiplier is finite."""
    center, gradient, alpha, low, high, g_of, lower, upper, enforced = member
    n, inside = high.size, x is not None
    x = np.clip(center, lower, upper) if x is None else x
    lam = np.zeros(n) if lam is None else lam
    best, answer = np.inf, (x, lam, np.inf)
    g, J = values_at(g_of, x)
    for _ in range(MAX_NEWTON_STEPS if exact else MAX_NEWTON_STEPS // 3):
        H = g_of.hessian(x) if exact else differences(g_of, x, lower, upper)
        if exact:
            require_convex(H, place_of(g_of, x))
        Hx = H @ x
        model = Part(H, J - Hx, J @ x - g - 0.5 * (Hx @ x))
        rows = assemble([model], low, high, enforced)
        problem = QuadraticProblem(
            center, gradient, np.array(alpha), rows.low, rows.high, rows.P, rows.A, rows.b, lower,
            upper,
        )  # fmt: skip
        start = np.zeros(rows.order.size)
        start[:n] = lam
        there, found, inner = solve_one(problem, start[rows.order], thorough=exact)
        if not np.isfinite(there).all():
            break
        both = np.empty(found.size)
        both[rows.order] = found
        lam = both[:n]
        value = member.objective(x, g)
        h = g + J @ (there - x) + 0.5 * np.einsum("nij,i,j->n", H, there - x, there - x)
        fall = member.objective(there, h) - value
        # What it costs to enter the domain, at first or because a model was not solved sharply.
        entry = np.abs(both[n:]) @ outside(member, x) if inside else np.inf
        t = 1.0
        while True:
            trial = there if t == 1.0 else np.clip(x + t * (there - x), lower, upper)
            g_there, J_there = values_at(g_of, trial)
            require_tangent(g_of, g, J, x, g_there, trial)
            reached = member.objective(trial, g_there)
            terms = np.abs(g) + np.abs(J) @ np.abs(place_of(g_of, x))
            noise = 1e-14 * (abs(value) + abs(reached) + high @ terms)
            if reached <= value + 0.1 * t * fall + noise + entry or t < 1e-12:
                break
            # Functions may have more rounding than their values show. Slopes tell then.
            near = t == 1.0 and -fall <= HIDDEN_FALL_FACTOR * noise
            if near and smooth_residual(member, trial, both, g_there, J_there, H, False) < best:
                break
            t *= 0.5
        inside = True
        moved = np.abs(trial - x).max(initial=0.0)
        x, g, J = trial, g_there, J_there
        # Newton's method doubles digits: after a short step only rounding is left.
        rounded = inner <= CURVED_TOLERANCE and moved <= 1e-8 * np.abs(x).max(initial=0.0)
        off = smooth_residual(member, x, both, g, J, H, rounded)
        settled = off <= 1e-12 or (best <= 1e-10 and off > 0.1 * best)
        if off < best:
            best, answer = off, (x, lam, off)
        if settled or (moved <= 1e-14 * np.abs(x).max(initial=0.0) and t == 1.0):
            break
    return answer


def outside(member: Member, x: Array) -> Array:
    """By how much x breaks each of the domain's enforced rows."""
    over = [
        np.abs(part.value(x)) if least else np.maximum(part.value(x), 0.0)
        for part, least in member.enforced
    ]
    return np.concatenate([np.zeros(0), *over])


def values_at(constraint: Any, x: Array) -> tuple[Array, Array]:
    """g and its jacobian at a point."""
    return constraint.value(x), np.asarray(constraint.jacobian(x))


def require_convex(H: Array, x: Array) -> None:
    """Raise if a hessian has a clearly negative eigenvalue."""
    size = np.abs(H).max(axis=(-1, -2), initial=0.0)
    skew = np.abs(H - np.swapaxes(H, -1, -2)).max(axis=(-1, -2), initial=0.0)
    least = np.linalg.eigvalsh(H)[:, 0] if H.size else np.zeros(len(H))
    for k in range(len(H)):
        if skew[k] > CONVEXITY_TOLERANCE * size[k]:
            raise InvalidInput(f"the hessian of row {k} is not symmetric at x = {x}")
        if least[k] < -CONVEXITY_TOLERANCE * size[k]:
            raise InvalidInput(
                f"row {k} of the constraint is not convex: its hessian has the eigenvalue "
                f"{least[k]:.3g} at x = {x}"
            )


def require_tangent(rows: Any, g: Array, J: Array, x: Array, g_there: Array, there: Array) -> None:
    """Raise if a row lies clearly below its tangent: it is not convex, or its jacobian wrong."""
    move = J @ (there - x)
    below = g + move - g_there
    size = np.abs(g) + np.abs(g_there) + np.abs(J) @ np.abs(there - x)
    place = place_of(rows, x)
    rounding = 1e-11 * (1.0 + np.abs(J) @ np.abs(place) + np.abs(J @ place - g))
    wrong = below > CONVEXITY_TOLERANCE * size + rounding
    if wrong.any():
        k = int(np.argmax(wrong))
        raise InvalidInput(
            f"row {k} of the constraint is not convex, or its jacobian is wrong: the tangent at "
            f"x = {place} gives {(g + move)[k]:.6g} at x = {place_of(rows, there)}, but the value "
            f"there is {g_there[k]:.6g}"
        )


def smooth_residual(
    member: Member, x: Array, lam: Array, g: Array, J: Array, H: Array, rounded: bool
) -> float:
    """The relative KKT residual with the rows' own values and slopes: that of their tangents.

    Where curvature is great, the last digit of x moves the slopes: its terms count.
    """
    A, b, low, high = tangents_at(member, x, g, J)
    bends = [np.abs(H) @ np.abs(place_of(member.rows, x))]
    for part, _ in member.enforced:
        bends.append(0.0 * part.A if part.P is None else np.abs(part.P) @ np.abs(x))
    one = QuadraticProblem(
        member.center, member.gradient, np.array(member.alpha), low, high,
        np.zeros((0, x.size, x.size)), A, b, member.lower, member.upper,
    )  # fmt: skip
    known = *values(one, x)[:3], np.concatenate(bends)
    return residual_of(one, x, lam, known, rounded)
