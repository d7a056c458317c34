"""Affine rows in a ball, or in a product with balls in it.

Alone, a ball's multiplier is a monotone root, compiled. In a product the ball is a quadratic row of
the compiled solver of such rows, with the ball's center for the origin. What these miss is solved
in double-double arithmetic, with tangents for the balls, which begin where an interior-point method
leads; or with Newton's method on their multipliers where tangents do not lead there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from coldq._values import Array
from coldq.contractions import affine_value, matvec
from coldq.solver import last_resort
from coldq.solver.answer import ROUGH, TOLERANCE, Step
from coldq.solver.api import Solution, Status, active_set_extended, affine_residual, ball_step
from coldq.solver.blas import on_one_thread
from coldq.solver.constants import LEAST_SIZE
from coldq.solver.curved import run_curved
from coldq.solver.extended import hard_rows_clash
from coldq.solver.problem import (
    AffineProblem,
    BallProblem,
    QuadraticProblem,
    append,
    member,
    members,
)
from coldq.solver.threads import run_batch

PASSES = 8  # over the rows: the work of an instance
ON_SPHERE = 1e-13  # how far from a sphere x may be, relative to the ball
CLOSE = 1e-9  # what is promised of it
FIRST_GUESSES = 2  # from inside, before a search that takes longer
LATE = 12  # steps of Newton's method, after which tangents are tried from there
MOST = 1e40  # as a multiplier nothing
FAR, NEARER = 1e4, 1e-2  # times 1 + nu, and times nu: the longest steps of a ball's multiplier
MOST_UNLIKE = 1e-18  # of a ball's curvature, that of other coordinates in one system
NEGLIGIBLE = 1e-3  # beside 1, which is what nu is added to
LOOSE = 1e12  # the share of coordinates that cost nothing
LITTLE = 1e-10  # of the terms of a hard row: what it may give way for a guess
LONG = 1e5  # times y: multipliers that cost x five digits


class InBall(NamedTuple):
    """A ball that holds some of the coordinates of one instance."""

    inside: slice
    center: Array
    radius: float

    @classmethod
    def at(cls, first: int, center: Array, radius: Array) -> InBall:
        """That of the coordinates from `first` on."""
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
    """The kernel, and where it fails double-double arithmetic; an infinite residual is a clash."""
    n, p = problem.A.shape[-2:]
    shapes, work = ((p,), (n,), ()), PASSES * (n + 2) * p + 2 * n * n
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
    """The same with several balls, each of some coordinates, beside bounds of the others."""
    x, found, residual = run_curved(as_curved(plain, balls))
    x, multipliers, residual = accepted(plain, balls, (x, found, residual))
    for where, one in members(plain, ~(residual <= TOLERANCE)):
        held = []
        for ball in balls:
            middle, radius, _ = member(ball, where, residual.shape)
            held.append(InBall.at(ball.first, middle, radius))
        guess = None
        if residual[where] <= ROUGH:
            radius = np.array([ball.radius for ball in held])
            guess = x[where], found[where][: len(held)] / (one.alpha * radius), multipliers[where]
        again = solve_in_balls(one, held, guess)
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
    at = np.maximum(np.abs(x), LEAST_SIZE * np.abs(x).max(axis=-1, keepdims=True, initial=0.0))
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
    long = (free & ~(push <= LONG * aim)).any(axis=-1)
    return x, multipliers, np.where(long, np.maximum(residual, 1.0), residual)


@on_one_thread
def solve_in_balls(
    instance: AffineProblem, balls: list[InBall], guess: tuple[Array, Array, Array] | None = None
) -> Solution:
    """The answer of one instance with rows, bounds and balls; an infinite residual is a clash.

    A ball's multiplier nu makes x the answer of the problem without the ball in which the ball's
    coordinates have the share ``1 / (1 + nu)``. Newton's method on ``1 / |x - c| = 1 / r``, which
    is nearly linear in nu, from a guess of the balls' and the rows' multipliers, or from none.
    """
    lower, upper = np.array(instance.lower), np.array(instance.upper)
    for ball in balls:
        lower[ball.inside] = ball.center - ball.radius
        upper[ball.inside] = ball.center + ball.radius
    boxed = instance._replace(lower=lower.copy(), upper=upper.copy())
    for ball in balls:  # a ball needs no bounds beside it, and in their corners has no curvature
        lower[ball.inside], upper[ball.inside] = -np.inf, np.inf
    instance = instance._replace(lower=lower, upper=upper)
    if guess is not None and all(np.isfinite(part).all() for part in guess):
        answer = along_tangents(instance, balls, *guess)
        if answer.residual <= CLOSE:
            return answer
    free = active_set_extended(instance)
    if free.infeasible or not np.isfinite(free.residual):
        return free._replace(residual=np.inf if free.infeasible else np.nan)
    if free.residual <= CLOSE and all(ball.reach(free.x) <= ball.radius for ball in balls):
        return free
    none = np.zeros(len(balls))
    answer = along_tangents(instance, balls, free.x, none, free.multipliers, patience=1)
    if answer.residual <= CLOSE:
        return answer
    # It is cheaper to know than to search in vain.
    if hard_rows_clash(boxed) or no_point_in_balls(instance, balls, np.ones(len(balls))):
        return free._replace(residual=np.inf, status=Status.INFEASIBLE)
    guesses = from_inside(boxed, balls, free)
    for guess in islice(guesses, FIRST_GUESSES):
        answer = along_tangents(instance, balls, *guess)
        if answer.residual <= CLOSE:
            return answer
    answer = Search(instance, balls).run(none, free.multipliers)
    while not answer.infeasible and not answer.residual <= CLOSE:
        guess = next(guesses, None)
        if guess is None:
            break
        answer = min(answer, along_tangents(instance, balls, *guess), key=attrgetter("residual"))
    return answer


def from_inside(
    instance: AffineProblem, balls: list[InBall], free: Solution
) -> Iterator[tuple[Array, Array, Array]]:
    """Nearly x and the multipliers of balls and of rows, by an interior-point method, with balls as
    quadratic rows around the origin. Hard rows give way a little, as it needs some room. It goes
    from several starts, one after the other."""
    some, m = np.abs(instance.A).max(axis=1, initial=0.0) > 0.0, len(balls)
    rows = ("floor", "weights", "soft", "A", "b")
    one = as_curved(
        instance._replace(**{name: getattr(instance, name)[some] for name in rows}), balls
    )
    radius, shift = np.array([ball.radius for ball in balls]), origin(free.x.size, balls)
    x = np.clip(free.x, instance.lower, instance.upper) - shift
    found, multipliers = np.append(np.zeros(m), free.multipliers[some]), free.multipliers.copy()
    begin = float(radius.max()), x, found, False, LITTLE
    for x, found, _ in last_resort.on_quadratic_rows(one, *begin):
        multipliers = multipliers.copy()
        multipliers[some] = found[m:]
        yield x + shift, found[:m] / (instance.alpha * radius), multipliers


def along_tangents(
    instance: AffineProblem,
    balls: list[InBall],
    x: Array,
    nu: Array,
    multipliers: Array,
    patience: int = 3,
) -> Solution:
    """The answer by Newton's method on all conditions, which may not get there from everywhere.

    Each step has a ball's tangent where x is, or nearest to it, for a row, and as much curvature as
    the ball's multiplier nu gives; the tangent's multiplier is the next nu. It ends after so many
    steps as `patience` says that do not halve the residual.
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
        more = MOST_UNLIKE * float(nu.max())
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
        late = count > last + (2 if best.residual <= CLOSE else patience)
        if found.residual <= ON_SPHERE or late:
            break
    # Where no digit is left for tangents, what they begin with may be an answer all the same.
    return given if given.residual < best.residual and not best.residual <= CLOSE else best


class Search:
    """The balls' multipliers, by Newton's method; that of a single one is kept in a bracket."""

    def __init__(self, instance: AffineProblem, balls: list[InBall]) -> None:
        self.instance, self.balls = instance, balls
        self.radius = np.array([ball.radius for ball in balls])
        self.best: Solution | None = None
        self.nu = np.zeros(len(balls))  # the multipliers of the balls that the best has
        p = instance.lower.size
        self.share, self.middle = np.ones(p), np.zeros(p)
        for ball in balls:
            self.middle[ball.inside] = ball.center

    def at(self, nu: Array, start: Array) -> tuple[Solution, Array, Array]:
        """The answer for these multipliers, how far it reaches, and how far it is from right."""
        for ball, own in zip(self.balls, nu, strict=True):
            self.share[ball.inside] = 1.0 / (1.0 + own)
        answer = active_set_extended(self.instance, start, self.share, self.middle)
        reach = np.array([ball.reach(answer.x) for ball in self.balls])
        size, away = np.array([ball.size for ball in self.balls]), reach - self.radius
        off = np.where(nu > 0.0, np.abs(away), np.maximum(away, 0.0)) / size
        residual = max(answer.residual, float(off.max()))
        if self.best is None or residual < self.best.residual:
            self.best, self.nu = answer._replace(residual=residual), nu.copy()
        return answer, reach, off

    def run(self, nu: Array, multipliers: Array) -> Solution:
        """The best answer on the way from these multipliers of the balls and of the rows."""
        radius = self.radius
        answer, reach, off = self.at(nu, multipliers)
        low, high = 0.0, np.inf  # between which a single ball's multiplier lies
        last = np.inf
        for k in range(60):
            worst = float(off.max())
            if worst <= ON_SPHERE or (k == LATE and self.polished(multipliers)):
                break
            wish = self.newton(nu, answer, reach)
            if nu.size == 1:
                low, high = (float(nu[0]), high) if reach[0] > radius[0] else (low, float(nu[0]))
                if (k > 3 and not worst < 0.5 * last) or not low < wish[0] < high:
                    middle = np.sqrt(max(low, 1e-8 * high) * high)
                    wish[0] = middle if high < np.inf else FAR * (1.0 + low)
                if not low < wish[0] < high:
                    break
            if (wish == nu).all() or wish.max() > MOST:
                break
            # The dual is concave: beyond its maximum along the step, the slope is negative.
            step, slope = wish - nu, float((wish - nu) @ (reach**2 - radius**2))
            for _ in range(12):
                answer, reach, off = self.at(nu + step, answer.multipliers)
                there = float(step @ (reach**2 - radius**2))
                if nu.size == 1 or there >= -0.5 * abs(slope):
                    break
                step *= min(max(abs(slope) / (abs(slope) - there), 0.05), 0.7)
            nu, last = nu + step, worst
        assert self.best is not None
        missed = not self.polished(multipliers) and nu.max() > 0.0
        if missed and no_point_in_balls(self.instance, self.balls, nu / nu.max()):
            return self.best._replace(residual=np.inf, status=Status.INFEASIBLE)
        return self.best

    def polished(self, multipliers: Array) -> bool:
        """Whether the best is what it should be, or tangents lead from it, or from none, to that.

        The multipliers of rows are those of no nu.
        """
        assert self.best is not None
        x, nu, rows = self.best.x, self.nu, self.best.multipliers
        for begin in ((x, nu, rows), (x, 0.0 * nu, multipliers)):
            if self.best.residual <= CLOSE:
                break
            again = along_tangents(self.instance, self.balls, *begin, patience=12)
            self.best = again if again.residual < self.best.residual else self.best
        return self.best.residual <= CLOSE

    def newton(self, nu: Array, answer: Solution, reach: Array) -> Array:
        """The next multipliers of the balls."""
        _, _, _, floor, weights, _, A, _, lower, upper = self.instance
        x, share = answer.x, self.share
        free = (lower < x) & (x < upper)
        inner = (floor < answer.multipliers) & (answer.multipliers < weights)
        rows = A[np.ix_(inner, free)] * np.sqrt(share[free])
        size = np.linalg.norm(rows, axis=1)
        rows = rows[size > 0.0] / size[size > 0.0, None]
        away = np.zeros((len(self.balls), x.size))
        for k, ball in enumerate(self.balls):
            away[k, ball.inside] = x[ball.inside] - ball.center
        turned = away[:, free] * np.sqrt(share[free])
        if len(rows):
            basis, values, _ = np.linalg.svd(rows.T, full_matrices=False)
            basis = basis[:, values > 1e-12 * values[0]]
            turned = turned - (turned @ basis) @ basis.T
            turned = turned - (turned @ basis) @ basis.T
        bend = turned @ turned.T
        on = (nu > 0.0) | (reach > self.radius)
        wish, far = nu.copy(), FAR * (1.0 + nu)
        unit = 1.0 / np.sqrt(np.maximum(np.diag(bend)[on], 1e-280))
        H = bend[np.ix_(on, on)] * unit * unit[:, None]
        right = unit * (reach**2 * (reach - self.radius) / self.radius)[on]
        if not (np.isfinite(H).all() and np.isfinite(right).all()):
            return far  # x is so far away that its square is no number
        wish[on] = nu[on] + unit * np.linalg.lstsq(H, right, rcond=1e-12)[0]
        # Where rows hold x the way is longer than it looks; it is gone in large steps then.
        least = np.where(nu > NEGLIGIBLE, NEARER * nu, 0.0)
        return np.minimum(np.maximum(wish, least), far)


def no_point_in_balls(instance: AffineProblem, balls: list[InBall], weights: Array) -> bool:
    """Whether the hard rows' best point is out of the balls, so weighted, by more than rounding."""
    hard = instance.hard_rows()
    if hard is None:
        return False
    aim, share = hard.center, np.full(hard.center.size, LOOSE)
    for ball, weight in zip(balls, weights, strict=True):
        aim[ball.inside] = ball.center
        share[ball.inside] = 1.0 / max(weight, 1.0 / LOOSE)
    found = active_set_extended(hard, None, share, aim)
    if found.infeasible:  # shares that differ so much may hide a point
        return False
    # If x were in all balls the weighted sum would not exceed this.
    moved = np.abs(found.x - aim) / np.sqrt(share)
    total, size = 0.0, 0.0
    for ball, weight in zip(balls, weights, strict=True):
        total += weight * (ball.reach(found.x) ** 2 - ball.radius**2)
        size += weight * ball.size * max(ball.reach(found.x), ball.radius)
    outside = np.ones(aim.size, bool)
    for ball in balls:
        outside[ball.inside] = False
    terms = np.abs(hard.A) @ np.abs(found.x) + np.abs(hard.b)
    gives = 2.0 * CLOSE * float(np.abs(found.multipliers) @ terms)  # if rows do, as answers may
    most = 2.0 * CLOSE * size + np.square(moved[outside]).sum() + gives
    return bool(found.residual <= CLOSE and total > most)
