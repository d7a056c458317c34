"""Affine rows in a ball, or in a product with balls in it.

Alone, a ball's multiplier is a monotone root, compiled. In a product the ball is a quadratic row of
the compiled solver of such rows, with the ball's center for the origin. What these miss goes to the
last resort, an interior-point method in double-double arithmetic, and from where that leads
along the balls' tangents.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array
from coldq.base.contractions import affine_value, matvec
from coldq.solver.answer import TOLERANCE, Step
from coldq.solver.api import Solution, Status, active_set_extended, affine_residual, ball_step
from coldq.solver.blas import on_one_thread
from coldq.solver.constants import MIN_COORDINATE_SIZE
from coldq.solver.curved import run_curved
from coldq.solver.extended import enforced_rows_conflict
from coldq.solver.interior_point import on_quadratic_rows
from coldq.solver.problem import (
    AffineProblem,
    BallProblem,
    QuadraticProblem,
    append,
    member,
    members,
)
from coldq.solver.threads import run_batch

ROW_PASSES = 8  # over the rows: the work of an instance
SPHERE_ROUNDING = 1e-13  # how far from a sphere x may be, relative to the ball
MAX_REWEIGHTINGS = 20  # of balls, of which enforced rows miss one or other
MAX_STALLED_STEPS = 3  # steps along tangents that do not halve the residual
ANSWER_TOLERANCE = 1e-9  # the residual of an answer in balls
MIN_CURVATURE_RATIO = 1e-18  # of a ball's curvature, that of other coordinates in one system
FREE_SHARE = 1e12  # the share of coordinates that cost nothing
GUESS_SLACK = 1e-10  # of the terms of an enforced row: what it may give way for a guess
LONG_MULTIPLIER_RATIO = 1e5  # times y: multipliers that cost x five digits


class InBall(NamedTuple):
    """A ball that holds some of the coordinates of one instance."""

    inside: slice
    center: Array
    radius: float

    @classmethod
    def at(cls, first: int, center: Array, radius: Array) -> InBall:
        """The ball of the coordinates from `first` on."""
        return cls(slice(first, first + center.size), center, float(radius))

    @property
    def first(self) -> int:
        return self.inside.start

    def reach(self, x: Array) -> float:
        away = x[self.inside] - self.center
        size = float(np.abs(away).max(initial=0.0))
        away = away / size if size > 0.0 else away
        return size * math.sqrt(away @ away)

    @property
    def size(self) -> float:
        """What the rounding of a point on the sphere is relative to."""
        return self.radius + 1e-3 * float(np.abs(self.center).max(initial=0.0))


def run_ball(problem: BallProblem) -> Step:
    """The root, or where it fails double-double arithmetic.

    An infinite residual means that rows conflict.
    """
    n, p = problem.A.shape[-2:]
    shapes, work = ((p,), (n,), ()), ROW_PASSES * (n + 2) * p + 2 * n * n
    answer = Step(*run_batch(ball_step, problem, problem.cores, shapes, work))
    if (answer.residual <= TOLERANCE).all():
        return answer
    x, multipliers, residual = (np.array(a) for a in answer)
    for where, one in members(problem, ~(residual <= TOLERANCE)):
        *first, middle, radius = one
        ball = InBall.at(0, middle, radius)
        bounds = np.full(middle.size, np.inf)
        again = solve_in_balls(AffineProblem._make((*first, -bounds, bounds)), [ball])
        x[where] = np.minimum(np.maximum(again.x, middle - radius), middle + radius)
        multipliers[where], residual[where] = again[1:3]
    return Step(x, multipliers, residual)


def run_balls(plain: AffineProblem, balls: list[Any]) -> Step:
    """The answers with several balls, each of some coordinates, beside bounds of the others."""
    x, found, residual = run_curved(as_curved(plain, balls))
    x, multipliers, residual = accepted(plain, balls, (x, found, residual))
    for where, one in members(plain, ~(residual <= TOLERANCE)):
        held = []
        for ball in balls:
            middle, radius, _ = member(ball, where, residual.shape)
            held.append(InBall.at(ball.first, middle, radius))
        again = solve_in_balls(one, held)
        x[where] = np.minimum(np.maximum(again.x, one.lower), one.upper)
        multipliers[where], residual[where] = again[1:3]
    return Step(x, multipliers, residual)


def as_curved(plain: AffineProblem, balls: list[Any]) -> QuadraticProblem:
    """The problem with quadratic rows for the balls, and their centers for the origin."""
    center, gradient, alpha, low, high, _, A, b, lower, upper = plain
    p, shift = center.shape[-1], origin(center.shape[-1], balls)
    P, limits = [], []
    for ball in balls:
        q = ball.center.shape[-1]
        inside = (np.arange(p) >= ball.first) & (np.arange(p) < ball.first + q)
        limits.append(np.asarray(ball.radius))
        P.append(np.diag(2.0 * inside) / limits[-1][..., None, None])
    batch = np.broadcast_shapes(*(array.shape[:-2] for array in P))
    shape = np.broadcast_shapes(*(array.shape for array in limits))
    P = np.stack([np.broadcast_to(array, (*batch, p, p)) for array in P], axis=-3)
    r = np.stack([np.broadcast_to(array, shape) for array in limits], axis=-1)
    m = len(balls)
    return QuadraticProblem(
        center - shift, gradient, alpha, append(np.zeros(m), low, 1),
        append(np.full(m, np.inf), high, 1), np.ascontiguousarray(P),
        append(np.zeros((m, p)), A, 2), append(r, -affine_value(A, shift, b), 1),
        lower - shift, upper - shift,
    )  # fmt: skip


def origin(p: int, balls: list[Any]) -> Array:
    """The centers of the balls in their coordinates, zero in others."""
    batch = np.broadcast_shapes(*(ball.center.shape[:-1] for ball in balls))
    shift = np.zeros((*batch, p))
    for ball in balls:
        shift[..., ball.first : ball.first + ball.center.shape[-1]] = ball.center
    return shift


def accepted(
    plain: AffineProblem, balls: list[Any], answer: tuple[Array, Array, Array]
) -> tuple[Array, Array, Array]:
    """Answers of the quadratic rows' solver in the coordinates given, judged more strictly.

    Rows hold relative to their own terms, spheres relative to the ball, and multipliers are not so
    long that x is what rounding leaves.
    """
    center, gradient, alpha, low, high, _, A, b, lower, upper = plain
    x, found, residual = answer
    m = len(balls)
    x = np.minimum(np.maximum(x + origin(x.shape[-1], balls), lower), upper)
    multipliers = np.ascontiguousarray(found[..., m:])
    residual, size = np.array(residual), np.abs(A)
    at = np.maximum(
        np.abs(x), MIN_COORDINATE_SIZE * np.abs(x).max(axis=-1, keepdims=True, initial=0.0)
    )
    g, terms = affine_value(A, x, b), matvec(size, at) + np.abs(b)
    wrong = ((multipliers > low) & (g < 0.0)) | ((multipliers < high) & (g > 0.0))
    off = np.where(wrong, np.abs(g), 0.0) / np.where(terms > 0.0, terms, 1.0)
    residual = np.maximum(residual, off.max(axis=-1, initial=0.0))
    for k, ball in enumerate(balls):
        part = x[..., ball.first : ball.first + ball.center.shape[-1]] - ball.center
        away = np.sqrt(np.square(part).sum(axis=-1)) - ball.radius
        away = np.where(found[..., k] > 0.0, np.abs(away), np.maximum(away, 0.0))
        far = np.abs(ball.center).max(axis=-1)
        residual = np.maximum(residual, away / (ball.radius + 1e-3 * far))
    half = 0.5 / np.asarray(alpha)[..., None]
    flat = np.ascontiguousarray(np.swapaxes(size, -1, -2))
    push = matvec(flat, np.where(np.isfinite(multipliers), np.abs(multipliers), np.inf)) * half
    aim = np.abs(center) + np.abs(gradient) * half + np.abs(x)
    free = (lower < x) & (x < upper)
    long = (free & ~(push <= LONG_MULTIPLIER_RATIO * aim)).any(axis=-1)
    return x, multipliers, np.where(long, np.maximum(residual, 1.0), residual)


@on_one_thread
def solve_in_balls(instance: AffineProblem, balls: list[InBall]) -> Solution:
    """The answer of one instance with rows, bounds and balls; infeasible where they conflict.

    A ball's multiplier nu makes x the answer of the problem without the ball in which the ball's
    coordinates have the share ``1 / (1 + nu)``.
    """
    lower, upper = np.array(instance.lower), np.array(instance.upper)
    for ball in balls:
        lower[ball.inside] = ball.center - ball.radius
        upper[ball.inside] = ball.center + ball.radius
    boxed = instance._replace(lower=lower.copy(), upper=upper.copy())
    for ball in balls:  # a ball needs no bounds beside it, and in their corners has no curvature
        lower[ball.inside], upper[ball.inside] = -np.inf, np.inf
    instance = instance._replace(lower=lower, upper=upper)
    free = active_set_extended(instance)
    if free.infeasible or not np.isfinite(free.residual):
        return free._replace(residual=np.inf if free.infeasible else np.nan)
    if free.residual <= ANSWER_TOLERANCE and all(
        ball.reach(free.x) <= ball.radius for ball in balls
    ):
        return free
    if enforced_rows_conflict(boxed) or no_point_in_balls(boxed, balls):
        return free._replace(residual=np.inf, status=Status.INFEASIBLE)
    answers = []
    for guess in from_inside(boxed, balls, free):
        answers.append(along_tangents(instance, balls, *guess))
        if answers[-1].residual <= ANSWER_TOLERANCE:
            break
    return min(answers, key=attrgetter("residual"))


def from_inside(
    instance: AffineProblem, balls: list[InBall], free: Solution
) -> Iterator[tuple[Array, Array, Array]]:
    """Nearly x and the multipliers of balls and of rows, by an interior-point method, with balls as
    quadratic rows around the origin. Enforced rows give way a little, as it needs some room. It
    goes from several starts, one after the other."""
    some, m = np.abs(instance.A).max(axis=1, initial=0.0) > 0.0, len(balls)
    rows = ("multiplier_lower", "multiplier_upper", "soft", "A", "b")
    one = as_curved(
        instance._replace(**{name: getattr(instance, name)[some] for name in rows}), balls
    )
    radius, shift = np.array([ball.radius for ball in balls]), origin(free.x.size, balls)
    x = np.clip(free.x, instance.lower, instance.upper) - shift
    found, multipliers = np.append(np.zeros(m), free.multipliers[some]), free.multipliers.copy()
    begin = float(radius.max()), x, found, False, GUESS_SLACK
    for x, found, _ in on_quadratic_rows(one, *begin):
        multipliers = multipliers.copy()
        multipliers[some] = found[m:]
        yield x + shift, found[:m] / (instance.alpha * radius), multipliers


def along_tangents(
    instance: AffineProblem,
    balls: list[InBall],
    x: Array,
    nu: Array,
    multipliers: Array,
) -> Solution:
    """The answer by Newton's method on all conditions, which may not get there from everywhere.

    Each step has a ball's tangent where x is, or nearest to it, for a row, and as much curvature as
    the ball's multiplier nu gives; the tangent's multiplier is the next nu. It ends after a few
    steps that do not halve the residual.
    """
    *first, A, b, lower, upper = instance
    center, gradient, alpha, floor, weights, soft = first
    n, p, m = b.size, x.size, len(balls)
    radius, double = np.array([ball.radius for ball in balls]), 2.0 * float(alpha)
    floor, weights = np.append(floor, np.zeros(m)), np.append(weights, np.full(m, np.inf))
    soft, b = np.append(soft, np.zeros(m)), np.append(b, np.zeros(m))
    A = np.concatenate([A, np.zeros((m, p))])
    share, there, middle, rest = np.ones(p), np.zeros(p), np.zeros(p), np.ones(p, bool)
    for ball in balls:
        middle[ball.inside], rest[ball.inside] = ball.center, False

    sizes, own = [ball.size for ball in balls], np.ones(p)

    def judged(x: Array, multipliers: Array, nu: Array, reach: list[float]) -> Solution:
        off = 0.0
        for ball, far, size, more in zip(balls, reach, sizes, nu.tolist(), strict=True):
            own[ball.inside] = 1.0 / (1.0 + more)
            away = far - ball.radius
            off = max(off, (abs(away) if more > 0.0 else away) / size)
        found = max(affine_residual(instance, x, multipliers, own, middle), off)
        return Solution(x, multipliers, found, Status.of(found))

    reach = [ball.reach(x) for ball in balls]
    given, best = judged(x, multipliers, nu, reach), Solution(x, multipliers, np.inf, Status.FAILED)
    start, last = np.append(multipliers, double * nu * radius), 0
    for count in range(30):
        # Beside a huge nu no digit is left for coordinates of curvature 1. All get some more of it,
        # to where they are: at the end they stay there, and nothing has changed.
        more = MIN_CURVATURE_RATIO * float(nu.max())
        there[rest], share[rest] = x[rest], 1.0 / (1.0 + more)
        for k, ball in enumerate(balls):
            away = x[ball.inside] - ball.center
            away = away / reach[k] if reach[k] > 0.0 else away
            A[n + k, ball.inside], b[n + k] = away, away @ ball.center + ball.radius
            part = more / (nu[k] + more) if more > 0.0 else 0.0
            tangent = ball.center + ball.radius * away
            there[ball.inside] = tangent + part * (x[ball.inside] - tangent)
            share[ball.inside] = 1.0 / (1.0 + nu[k] + more)
        rows = AffineProblem(center, gradient, alpha, floor, weights, soft, A, b, lower, upper)
        answer = active_set_extended(rows, start, share, there)
        if not np.isfinite(answer.residual):
            break
        x, start = answer.x, answer.multipliers
        nu = start[n:] / (double * radius)
        reach = [ball.reach(x) for ball in balls]
        found = judged(x, start[:n], nu, reach)
        if found.residual < best.residual:
            last = count if found.residual < 0.5 * best.residual else last
            best = found
        late = count > last + (2 if best.residual <= ANSWER_TOLERANCE else MAX_STALLED_STEPS)
        if found.residual <= SPHERE_ROUNDING or late:
            break
    # Where no digit is left for tangents, what they begin with may be an answer all the same.
    return (
        given if given.residual < best.residual and not best.residual <= ANSWER_TOLERANCE else best
    )


def no_point_in_balls(instance: AffineProblem, balls: list[InBall]) -> bool:
    """Whether the enforced rows' best point is out of the weighted balls by more than rounding.

    Balls that it is out of get more weight, a few times.
    """
    enforced = instance.enforced_rows()
    if enforced is None:
        return False
    weights, radius = np.ones(len(balls)), np.array([ball.radius for ball in balls])
    aim, share = enforced.center, np.full(enforced.center.size, FREE_SHARE)
    for ball in balls:
        aim[ball.inside] = ball.center
    for _ in range(MAX_REWEIGHTINGS):
        for ball, weight in zip(balls, weights, strict=True):
            share[ball.inside] = 1.0 / max(weight, 1.0 / FREE_SHARE)
        found = active_set_extended(enforced, None, share, aim)
        if found.infeasible or not found.residual <= ANSWER_TOLERANCE:
            return False  # shares that differ so much may hide a point
        reach = np.array([ball.reach(found.x) for ball in balls])
        if is_out_of_reach(enforced, balls, found, weights, reach, aim, share):
            return True
        if (reach <= radius).all():
            return False
        weights *= np.square(np.maximum(reach, 1e-3 * radius) / radius)
        weights /= weights.max()
    return False


def is_out_of_reach(
    enforced: AffineProblem, balls: list[InBall], found: Solution, weights: Array, reach: Array,
    aim: Array, share: Array,
) -> bool:  # fmt: skip
    """Whether the weighted sum of squared distances is more than that of a point in all balls."""
    radius, size = (np.array([getattr(b, name) for b in balls]) for name in ("radius", "size"))
    total = weights @ (np.square(reach) - np.square(radius))
    outside = np.ones(aim.size, bool)
    for ball in balls:
        outside[ball.inside] = False
    moved = (np.square(found.x - aim) / share)[outside].sum()
    terms = np.abs(enforced.A) @ np.abs(found.x) + np.abs(enforced.b)
    gives = np.abs(found.multipliers) @ terms  # if rows do, as answers may
    return bool(
        total
        > moved + 2.0 * ANSWER_TOLERANCE * (weights @ (size * np.maximum(reach, radius)) + gives)
    )
