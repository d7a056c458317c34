"""The best decision for one loss and one constraint, by the per-slot solver itself.

A quadratic loss enters the step as compliant rows, and the smallest minimiser-preserving proximal
term picks one among several: with center c and a small alpha, ``min f(x) + alpha |x - c|^2`` tends
to the minimiser of f nearest to c, and repeating it from its own answer removes what alpha left of
an error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeGuard

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import Error, Infeasible, StepFailed
from coldq.base.protocols import Domain as Feasible
from coldq.slot.constraints import Affine, LogCapacity, Unconstrained, require_whole
from coldq.slot.domains import Ball, Box, Domain, require_single, scale_of
from coldq.slot.feedback import Feedback
from coldq.slot.losses import Linear
from coldq.slot.step import SOLVERS, Step, penalised_step
from coldq.slot.step.log_capacity import run_log_capacity
from coldq.solver.answer import TOLERANCE, raise_if_failed
from coldq.solver.ball import run_ball
from coldq.solver.cascade import rescue, run_affine
from coldq.solver.constants import ORIGIN_SIZE
from coldq.solver.problem import AffineProblem, BallProblem, append

PROXIMAL_RATIO = 1e-6  # the proximal term, relative to the size of the loss
CAPACITY_ROUNDING = 1e-12  # of what a capacity serves: a demand above by this much is met
STEPS_PER_EASING, MIN_EASING = (
    8,
    1e-8,
)  # steps before the proximal term is made smaller, and how much at most
SETTLED_MOVE = 1e-10  # a proximal step that moves less than this, relatively, ends the iteration
SETTLED_VERTEX_MOVE = 1e-8  # the same of a linear loss, which ends exactly: the rest is rounding
PROBE_LENGTH = 1e-3  # of a decision's size: a way on which a loss shows how much it bends
MIN_READABLE_RISE = 1e-10  # a rise that is a smaller share of a value is not read from values
SLOPE_ROUNDING = 1e-14  # relative
PENALTY_RATIO = 1e8  # times what pulls on a decision: a weight under which it keeps what it can
ROW_TOLERANCE = 1e-8  # of a row's terms: what its violation may be
NO_INSTANCE, ZERO, INFINITE = np.zeros((), bool), np.zeros(()), np.full((), np.inf)
ONE = np.ones(())


def nearest_minimiser(
    revealed: Feedback, domain: Feasible, near: Array
) -> tuple[Array, np.ndarray]:
    """A minimiser of the loss where the constraint holds, and whether one exists."""
    loss, constraint = revealed.loss, revealed.constraint
    quadratic = hasattr(loss, "quadratic")
    if quadratic and isinstance(constraint, Affine | Unconstrained) and on_rows(domain):
        g = constraint.as_affine(domain.dim)
        require_whole("a comparator", g)
        return minimise_on_rows(*quadratic_rows(loss), g.A, g.b, domain, near)
    if (
        isinstance(loss, Linear)
        and isinstance(constraint, LogCapacity)
        and isinstance(domain, Box)
        and not domain.batch
        and np.isfinite(domain.diameter)
    ):
        return minimise_cost(loss.c, constraint, domain, near)
    return minimise_smooth(loss.value, loss.gradient, constraint, domain, near)


def unit_of(domain: Feasible) -> Any:
    """What a move is small against: 1, or the width of a domain that is narrower."""
    return np.minimum(scale_of(domain.diameter), 1.0)


def on_rows(domain: Feasible) -> TypeGuard[Domain]:
    """Whether the step of affine rows knows the domain; else its steps are all there is."""
    return isinstance(domain, Ball) or (isinstance(domain, Domain) and domain.polyhedral)


def quadratic_rows(loss: Any) -> tuple[Array, Array, Array]:
    """Rows H, targets y and a slope c with ``f(x) = |H x - y|^2 / 2 + <c, x>`` up to a constant."""
    if hasattr(loss, "H"):
        return loss.H, loss.y, np.zeros(int(loss.dim))
    P, q = loss.quadratic()[:2]
    if not P.any():
        return np.zeros((0, int(loss.dim))), np.zeros(0), q
    rows = root_of(P)
    return rows, np.zeros(rows.shape[:-1]), q


def root_of(P: Array) -> Array:
    """A matrix H with ``H'H = P``, which is positive semidefinite but for rounding."""
    values, vectors = np.linalg.eigh(P)
    roots = np.sqrt(np.maximum(values, 0.0))
    return np.ascontiguousarray(roots[..., None] * np.swapaxes(vectors, -1, -2))


def minimise_on_rows(
    H: Array, y: Array, c: Array, A: Array, b: Array, domain: Domain, near: Array
) -> tuple[Array, np.ndarray]:
    """Minimise ``|H x - y|^2 / 2 + <c, x>`` over ``A x <= b`` in a polyhedral domain or a ball.

    Also, whether there is such an x.
    """
    batch, own = near.shape[:-1], domain.rows
    rows, targets = append(append(H, A, 2), own.A, 2), append(append(y, b, 1), own.b, 1)
    rows = np.broadcast_to(rows, batch + rows.shape[-2:])
    targets = np.broadcast_to(targets, batch + targets.shape[-1:])
    m, n = y.shape[-1], b.shape[-1]
    low = np.concatenate([np.full(m, -np.inf), np.zeros(n), own.multiplier_lower])
    high = np.full(low.size, np.inf)
    compliance = np.where(np.arange(low.size) < m, 1.0, 0.0)
    # A linear loss must be able to cross the domain in one step.
    width = np.where(np.isfinite(domain.diameter), np.maximum(domain.diameter, 1.0), 1.0)
    size = np.square(H).sum(axis=(-1, -2)) + np.abs(c).max(axis=-1) / width
    alpha = np.broadcast_to(PROXIMAL_RATIO * np.where(size > 0.0, size, 1.0), batch)
    slope = np.broadcast_to(c, near.shape)

    def step(x: Array, here: np.ndarray, ease: float) -> tuple[Step, np.ndarray]:
        problem = (
            x, slope[here], ease * alpha[here], low, high, compliance,
            np.ascontiguousarray(rows[here]), np.ascontiguousarray(targets[here]),
        )  # fmt: skip
        return _solve(problem, domain)

    return _repeat(step, near, unit_of(domain), SETTLED_MOVE if m else SETTLED_VERTEX_MOVE)


def minimise_cost(
    c: Array, capacity: LogCapacity, domain: Box, near: Array
) -> tuple[Array, np.ndarray]:
    """Minimise ``<c, x>`` over a capacity row in a bounded box; also, whether there is such an x.

    This is water-filling: log(1 + rate_i x_i) is level + log(scale_i rate_i / c_i), clipped, for
    one level, the logarithm of the multiplier. What is served is piecewise linear in it, so that
    its corners, sorted once for all demands, give the level. A coordinate without a price stays as
    near as the demand lets it.
    """
    batch, lower, upper = near.shape[:-1], domain.lower, domain.upper
    c, scale, rate = (np.array(a) for a in np.broadcast_arrays(c, capacity.scale, capacity.rate))
    low, high = np.log1p(rate * lower), np.log1p(rate * upper)
    serves = (scale > 0.0) & (rate > 0.0)
    priced, free = serves & (c > 0.0), serves & (c == 0.0)
    # Served by all that costs nothing, and by the rest where it is least; then what is missing.
    given = (scale * np.where(priced, low, high)).sum(axis=-1)
    room = np.where(priced, scale * (high - low), 0.0).sum(axis=-1)
    missing = np.broadcast_to(capacity.demand - given, batch)
    size = np.abs(capacity.demand) + (scale * np.maximum(np.abs(low), np.abs(high))).sum(axis=-1)
    exists = missing <= room + CAPACITY_ROUNDING * size

    s, r, price = (np.where(priced, a, 1.0) for a in (scale, rate, c))
    offset = np.log(s) + np.log(r) - np.log(price)
    begin, end = (np.where(priced, a - offset, 0.0) for a in (low, high))
    weight = np.where(priced, scale, 0.0)
    level = _level(begin, end, weight, missing)
    for _ in range(2):  # exact on the piece that sorting found, but for its rounding
        at = np.clip(level[..., None], begin, end)
        bends = weight * ((at > begin) & (at < end))
        left, slope = missing - (weight * (at - begin)).sum(axis=-1), bends.sum(axis=-1)
        level = level + np.where(slope > 0.0, left / np.where(slope > 0.0, slope, 1.0), 0.0)
    level = np.where(missing >= room, np.inf, np.where(missing <= 0.0, -np.inf, level))[..., None]
    between = np.expm1(np.clip(level + offset, low, high)) / r
    filled = np.where(level >= end, upper, np.where(level <= begin, lower, between))
    still = np.clip(near, lower, upper)
    x = np.where(c < 0.0, upper, np.where(c > 0.0, lower, still))
    x = np.where(priced, np.clip(filled, lower, upper), np.where(free, upper, x))
    enough = np.broadcast_to(exists & (missing <= 0.0) & free.any(axis=-1), batch)
    if enough.any():  # the free ones alone can serve it: as near as they may stay
        here = enough[..., None]
        fixed = Box(np.where(here & free, lower, x), np.where(here & free, upper, x))
        row = LogCapacity(np.where(enough, capacity.demand, given), scale, rate)
        nearest, _, _ = run_log_capacity(
            still, np.zeros(still.shape), ONE, ZERO, INFINITE, row, fixed
        )
        x = np.where(here & free, nearest, x)
    return np.where(exists[..., None], x, near), np.array(exists)


def _level(begin: Array, end: Array, weight: Array, missing: Array) -> Array:
    """Where ``sum_i weight_i (clip(level, begin_i, end_i) - begin_i)`` is what is missing."""
    corners, turns = (np.concatenate(pair, axis=-1) for pair in ((begin, end), (weight, -weight)))
    order = np.argsort(corners, axis=-1, kind="stable")
    corners, turns = (np.take_along_axis(a, order, axis=-1) for a in (corners, turns))
    slopes = np.cumsum(turns, axis=-1)[..., :-1]
    heights = np.cumsum(slopes * np.diff(corners, axis=-1), axis=-1)  # where each piece ends
    piece = (heights < missing[..., None]).sum(axis=-1, keepdims=True)
    piece = np.minimum(piece, heights.shape[-1] - 1)
    first, last, top, slope = (
        np.take_along_axis(np.broadcast_to(a, (*missing.shape, a.shape[-1])), piece, axis=-1)[
            ..., 0
        ]
        for a in (corners[..., :-1], corners[..., 1:], heights, slopes)
    )
    down = np.where(slope > 0.0, (top - missing) / np.where(slope > 0.0, slope, 1.0), 0.0)
    return np.clip(last - down, first, last)


def _repeat(
    step: Callable[[Array, np.ndarray, float], tuple[Step, np.ndarray]],
    near: Array,
    unit: Any,
    within: float,
) -> tuple[Array, np.ndarray]:
    """Repeat a proximal step from its own answers until they stay, and where there is an answer.

    `step` gets the points that still move, where they are in the batch and how much to ease alpha:
    a loss that bends a million times less in one direction than in another creeps along it under
    an alpha that suits the other. It says which instances have no answer.
    """
    batch = near.shape[:-1]
    x, exists, open_ = np.array(near), np.ones(batch, bool), np.ones(batch, bool)
    units = np.broadcast_to(unit, batch)[..., None]
    for k in range(100):
        # Each instance ends by itself, so that its bits do not depend on those beside it.
        answer, infeasible = step(
            x[open_], open_, max(0.1 ** max(k - STEPS_PER_EASING, 0), MIN_EASING)
        )
        if not (answer.residual <= TOLERANCE).all():
            raise_if_failed(
                answer._replace(residual=np.where(infeasible, 0.0, answer.residual)), NO_INSTANCE
            )
            exists[open_] = ~infeasible
            answer = answer._replace(x=np.where(infeasible[:, None], x[open_], answer.x))
        size = units[open_] + np.abs(answer.x)
        settled = np.abs(answer.x - x[open_]) <= within * size
        x[open_] = answer.x
        open_[open_] = ~settled.all(axis=-1)
        if not open_.any():
            return x, exists
    raise Error(
        f"no best decision was found, the search is at {x[open_][0]} and moving on: is the loss "
        "unbounded from below on the domain, or does it bend 1e12 times more in one direction than "
        "in another?"
    )


def _solve(problem: tuple[Any, ...], domain: Domain) -> tuple[Step, np.ndarray]:
    """The answers, and where enforced rows have no point in the domain."""
    if isinstance(domain, Ball):
        answer = run_ball(BallProblem._make((*problem, domain.center, domain.radius)))
        return answer, np.isinf(answer.residual)
    on_box = AffineProblem._make((*problem, domain.box.lower, domain.box.upper))
    answer = run_affine(on_box)
    if (answer.residual <= TOLERANCE).all():
        return answer, NO_INSTANCE
    return rescue(on_box, answer)


def minimise_smooth(
    value: Any, gradient: Any, constraint: Any, domain: Feasible, near: Array
) -> tuple[Array, np.ndarray]:
    """Minimise any smooth convex loss over the constraint, instance by instance.

    Projected gradient steps with backtracking and momentum; each projection is a per-slot problem
    with enforced rows. Slower, and right for whatever the step can solve.
    """
    batch = near.shape[:-1]
    best, exists = np.array(near), np.ones(batch, bool)
    require_whole("a comparator", constraint)
    require_single(domain, "the best decision for such a loss or constraint")
    for where in np.ndindex(*batch):
        part = constraint.member(where, batch) if type(constraint) in SOLVERS else constraint

        def at(function: Any, x: Array, where: Any = where) -> Array:
            whole = np.array(best)
            whole[where] = x
            found = function(whole)[where]
            if not np.isfinite(found).all():
                raise Error(f"a loss and its gradient must be finite, but one is {found} at {x}")
            return found

        try:
            best[where] = _descend(
                partial(at, value), partial(at, gradient), part, domain, near[where]
            )
        except StepFailed as failed:
            if not isinstance(failed, Infeasible) and _has_point(part, domain, near[where]):
                raise
            exists[where] = False
    return best, exists


def _has_point(constraint: Any, domain: Feasible, near: Array) -> bool:
    """Whether the decision of least violation keeps the constraint, or none was found.

    Curved rows may be infeasible without a proof. Under great but finite weights each step has an
    answer, and it keeps the rows where any decision does.
    """
    unit = unit_of(domain) + np.abs(near).max()
    steep: Array = np.abs(constraint.jacobian(near)).max(axis=-1)
    high: Array = np.full(steep.shape, PENALTY_RATIO * unit)
    np.divide(high, steep, out=high, where=steep > 0.0)
    try:
        x = penalised_step(near, np.zeros(near.size), 0.5, high, constraint, domain).x
    except StepFailed:
        return True
    g, J = constraint.value(x), constraint.jacobian(x)
    return bool((g <= ROW_TOLERANCE * (np.abs(J) @ np.abs(x) + np.abs(J @ x - g))).all())


def _descend(value: Any, gradient: Any, constraint: Any, domain: Feasible, near: Array) -> Array:
    """Accelerated projected gradient with backtracking and restart."""

    def project(x: Array) -> Array:
        return penalised_step(x, np.zeros(x.size), 0.5, np.inf, constraint, domain).x

    x, unit = project(near), unit_of(domain)
    ahead, momentum = x, 1.0
    curvature = _first_curvature(value, gradient, project, x, domain)
    for _ in range(20_000):
        slope, level = gradient(ahead), value(ahead)
        while True:
            trial = project(ahead - slope / curvature)
            step = trial - ahead
            bends = _bends(value, gradient, trial, step, level, slope, curvature)
            settled = np.abs(step).max() <= SETTLED_MOVE * (unit + np.abs(trial).max())
            if bends <= curvature * (step @ step) or settled:
                break
            curvature *= 2.0
        moved = trial - x
        if settled:
            return trial
        if step @ moved < 0.0:
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        # Outside of the domain a loss need not be defined.
        ahead = domain.project(trial + (momentum - 1.0) / following * moved)
        x, momentum, curvature = trial, following, 0.9 * curvature
    raise Error("the comparator of a smooth loss did not settle in 20,000 projected steps")


def _first_curvature(value: Any, gradient: Any, project: Any, x: Array, domain: Feasible) -> Any:
    """How much a loss bends on a short way down from x, so that it may be in any units.

    At least so much that its first step is no longer than the domain is wide.
    """
    slope = gradient(x)
    steepest = np.abs(slope).max() or 1.0
    size = unit_of(domain) + np.abs(x).max()
    width = scale_of(domain.diameter) if np.isfinite(domain.diameter) else size
    least = steepest / width
    trial = project(x - PROBE_LENGTH * size / steepest * slope)
    step = trial - x
    if not step.any():
        return least
    bends = _bends(value, gradient, trial, step, value(x), slope, least)
    return max(bends / (step @ step), least)


def _bends(
    value: Any, gradient: Any, trial: Array, step: Array, level: Array, slope: Array, least: float
) -> Any:
    """How much a loss bends over a step to a trial: twice its rise above the tangent.

    From its values, unless a curvature of `least` shows in too few of their digits: near a minimum
    they differ by the square of the step. Then from its slopes, as of a parabola (Becker, Candes
    and Grant, "Templates for convex cone problems", 2011, section 5.3), but for their rounding.
    """
    there = value(trial)
    size = abs(level) + abs(there) + np.abs(slope) @ np.abs(trial)
    if least * (step @ step) > MIN_READABLE_RISE * size:
        return 2.0 * (there - level - slope @ step)
    return (gradient(trial) - slope) @ step - SLOPE_ROUNDING * (np.abs(slope) @ np.abs(step))


def minimise_on_many_rows(
    H: Array, c: Array, A: Array, b: Array, domain: Domain, near: Array
) -> tuple[Array, bool]:
    """Minimise over very many rows by solving for few of them, the worst violated ones."""
    y = np.zeros(H.shape[0])
    # A coordinate at zero counts with a size of its own, which is small beside the domain's.
    least = ORIGIN_SIZE * np.minimum(domain.diameter, 1.0)
    working = np.zeros(len(b), bool)
    while True:
        chosen = np.flatnonzero(working)
        x, exists = minimise_on_rows(H, y, c, A[chosen], b[chosen], domain, near)
        if not exists:
            return x, False
        scale = np.abs(b) + np.abs(A) @ np.maximum(np.abs(x), least)
        excess = np.where(working, 0.0, (A @ x - b) / np.where(scale > 0.0, scale, 1.0))
        worst = np.argsort(-excess)[: max(8, near.size)]
        worst = worst[excess[worst] > TOLERANCE]
        if worst.size == 0:
            return x, True
        working[worst] = True
