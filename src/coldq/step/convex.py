"""Any convex rows: one quadratic model after the other, or cutting planes where they have kinks.

With hessians each row is replaced by its second-order model at x, a quadratic row, and the step
with these rows is solved exactly. As the models have the curvature of the rows themselves, the
iteration converges as fast as Newton's method, and since the per-slot objective is itself an exact
penalty, its value says how far to go along.

Without hessians they are taken from differences of the jacobian. If that does not come with a
certificate, for there may be kinks, cutting planes do: every point visited gives each row an affine
piece below it, and the step with these pieces is solved exactly, caps of groups included.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coldq._values import Array
from coldq.constraints import Affine, Unconstrained
from coldq.constraints.max_affine import MaxAffine
from coldq.constraints.quadratic import QuadraticConstraint
from coldq.constraints.stacked import Stacked
from coldq.domains import ORIGIN_SIZE, ROUNDING
from coldq.errors import InvalidInput
from coldq.step.affine import HINGE, TOLERANCE, misfit, raise_if_failed
from coldq.step.answer import Step
from coldq.step.curved import (
    CURVED_TOLERANCE,
    assemble,
    box_and_hard,
    one_way,
    residual_of,
    solve_one,
    solve_parts,
)  # fmt: skip
from coldq.step.max_affine import (
    Pieces,
    affine_rows_clash,
    capped_sums,
    in_units,
    pieces_clash,
    plain_rows,
    solve_pieces,
    units_of,
    with_more_digits,
)  # fmt: skip

UNCLEAR = 100.0  # times rounding: a fall that values need not show
GAP_TOLERANCE = 1e-6  # between value and cutting model, relative to the value, without hessians
NEWTON_STEPS = 60
ATTEMPTS = 8  # with ever greater weights for hard rows
CUTS = 300
LATELY, STUCK = 4, 30  # rounds
ROUNDED = 4e-9  # of a row's terms, priced: what rounding makes of a row is no gap
DIFFERENCES = 200  # coordinates up to which hessians are taken from differences of the jacobian
NOT_CONVEX = 1e-6  # how far below a tangent a convex function may be found, relatively
STIFF = 1e3  # the first finite weight that stands for a hard row, relative to the pull on it


class Member(NamedTuple):
    """One instance: the data of the step, and its rows, some of them of known shape."""

    center: Array
    gradient: Array
    alpha: float
    low: Array
    high: Array
    constraint: Any
    box: Any
    hard: tuple[Any, ...]

    def objective(self, x: Array, g: Array) -> float:
        """The penalised objective; all weights are finite."""
        move = x - self.center
        penalty = np.where(g > 0.0, self.high * g, self.low * g)
        return float(self.gradient @ move + self.alpha * (move @ move) + penalty.sum())

    def terms(self, x: Array, g: Array, J: Array) -> float:
        """What a gap is relative to: the sizes of all that the objective is the sum of, or the cost
        of moves by as much as x is; no more than the value, if that is above 1, and no less than
        what is due to the rounding of rows."""
        soft, move = self.softened(0.0), x - self.center
        width = np.minimum(np.abs(x), self.box.upper - self.box.lower)
        penalty = np.abs(np.where(g > 0.0, soft.high * g, soft.low * g)).sum()
        moving = np.abs(self.gradient) @ np.abs(move) + self.alpha * (move @ move)
        rounding = ROUNDED * (soft.high @ (np.abs(J) @ np.abs(x) + np.abs(J @ x - g)))
        terms = max(moving + penalty, np.abs(self.gradient) @ width)
        return float(max(min(terms, max(1.0, abs(soft.objective(x, g)))), rounding))

    def softened(self, weight: Any) -> Member:
        """The same with finite weights for hard rows."""
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


def differences(constraint: Any, x: Array, box: Any) -> Array:
    """The hessians from central differences of the jacobian, inside the box, made semidefinite."""
    p, ends = x.size, np.abs(np.concatenate([x, box.lower, box.upper]))
    out = np.zeros((constraint.n_constraints, p, p))
    unit = float(ends[np.isfinite(ends)].max(initial=0.0)) or 1.0
    for i in range(p):
        h = 6e-6 * min(unit, 1.0 + abs(x[i]))
        ahead, behind = x.copy(), x.copy()
        ahead[i], behind[i] = min(x[i] + h, box.upper[i]), max(x[i] - h, box.lower[i])
        if ahead[i] > behind[i]:
            rise = constraint.jacobian(ahead) - constraint.jacobian(behind)
            out[:, :, i] = rise / (ahead[i] - behind[i])
    out = 0.5 * (out + np.swapaxes(out, -1, -2))
    values, vectors = np.linalg.eigh(out)
    return (vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, -1, -2)


def solve_convex(
    center: Array,
    gradient: Array,
    alpha: Array,
    weights: Array,
    floor: Any,
    constraint: Any,
    domain: Any,
) -> Step:
    """The answers of a batch, one by one; raises if any instance has none."""
    batch, p, n = center.shape[:-1], domain.dim, constraint.n_constraints
    low = np.zeros(n) if floor is HINGE else np.asarray(floor)
    if ((low < 0.0) & ~constraint.is_affine).any():
        raise one_way("convex", low)
    box, hard, shift = box_and_hard(domain)
    if shift is not None:
        center = center - shift
    try:
        arrays = [
            np.broadcast_to(array, batch + core)
            for array, core in (
                (center, (p,)), (gradient, (p,)), (alpha, ()), (low, (n,)), (weights, (n,)),
                (box.lower, (p,)), (box.upper, (p,)), (0.0 if shift is None else shift, (p,)),
                (domain.box.lower, (p,)), (domain.box.upper, (p,)),
            )
        ]  # fmt: skip
    except ValueError:
        raise misfit(center, gradient, weights, constraint, domain) from None
    exact = constraint.has_hessian
    tolerance = CURVED_TOLERANCE if exact else GAP_TOLERANCE
    x, multipliers, worst = np.empty((*batch, p)), np.empty((*batch, n)), np.empty(batch)
    for where in np.ndindex(*batch):
        c, d, a, lo, hi, lower, upper, origin, *bounds = (array[where] for array in arrays)
        own = constraint.member(where, batch)
        if shift is not None:
            own = Moved(own, origin, *bounds)
        rows = tuple((part.member(where, batch), least) for part, least in hard)
        member = Member(c, d, float(a), lo, hi, own, type(box)(lower, upper), rows)
        x[where], multipliers[where], worst[where] = solve_member(member, exact)
    if shift is not None:
        x = np.clip(x + shift, domain.box.lower, domain.box.upper)
    answer = Step(x, multipliers, worst)
    if not (worst <= tolerance).all():
        raise_if_failed(answer, np.isinf(worst), tolerance)
    return answer


def solve_member(member: Member, exact: bool) -> tuple[Array, Array, float]:
    """x, multipliers, and their residual or gap; infinite if hard rows have no common point."""
    if not np.isfinite(member.center - member.gradient / member.alpha).all():
        return member.center, 0.0 * member.low, np.nan
    if exact:
        return newton(member, exact)
    if ((member.low != 0.0) & (member.low != member.high)).any():
        raise InvalidInput(
            "a row beside or without a hessian is a hinge (floor 0) or linear (floor = weights), "
            f"but floor is {member.low} against {member.high}"
        )
    if member.center.size <= DIFFERENCES and not isinstance(member.constraint, MaxAffine):
        x, multipliers, _ = newton(member, exact)
        gap = certificate(member, x)
        if gap <= GAP_TOLERANCE:
            return x, multipliers, gap
    return cutting_planes(member)


def newton(member: Member, exact: bool) -> tuple[Array, Array, float]:
    """Quadratic models of the rows; hard rows get a weight, and a greater one if it is too small.

    An infinite residual says that hard rows have no common point. Without hessians less is tried,
    for cutting planes are left.
    """
    low, high = member.low, member.high
    at_most, at_least = np.isinf(high), np.isinf(low)
    if not (at_most.any() or at_least.any()):
        return models(member, exact)
    x, lam, off = None, np.zeros(high.size), 1.0
    weights = first_weights(member)
    attempts = range(ATTEMPTS if exact else 2)
    for attempt in attempts:
        soft = member.softened(weights)
        x, lam, off = models(soft, exact, x, lam)
        short = (at_most & (lam >= soft.high)) | (at_least & (lam <= soft.low))
        if not short.any():
            break
        off = 1.0
        if exact and attempt in (0, attempts[-1]) and rows_clash(member, x):
            off = np.inf
            break
        weights = np.where(short, np.maximum(100.0 * weights, enough(member, x, lam)), weights)
    return x, np.minimum(np.maximum(lam, low), high), off  # type: ignore[return-value]


def first_weights(member: Member) -> Array:
    """Finite weights for hard rows, relative to what pulls on them at first."""
    begin = np.clip(member.center, member.box.lower, member.box.upper)
    weights = enough(member, begin, np.zeros(member.high.size))
    return np.where(weights > 0.0, weights, STIFF * member.alpha)


def enough(member: Member, x: Array, lam: Array) -> Array:
    """What it takes of each row to stop all else that pulls on x, many times over."""
    g, J = values_at(member.constraint, x)
    steep = np.abs(J).max(axis=1, initial=0.0)
    steep = np.where(steep > 0.0, steep, float(steep.max(initial=0.0)) or 1.0)
    way = np.abs(x - member.center).max(initial=0.0) + np.abs(g) / steep
    soft = np.isfinite(member.high) & np.isfinite(member.low)
    pull = np.abs(member.gradient) + np.abs(lam[soft]) @ np.abs(J[soft])
    return STIFF * (pull.max(initial=0.0) + 2.0 * member.alpha * way) / steep


def rows_clash(member: Member, x: Array) -> bool:
    """Whether the tangents of hard rows have no common point, where hard rows are all that matters.

    Convex rows lie above their tangents. Coordinates without bounds leave little to prove with: of
    those it is enough that a greater weight does not bring x closer to a common point.
    """
    at_most, at_least = np.isinf(member.high), np.isinf(member.low)
    hard = member._replace(
        center=x, gradient=0.0 * x, alpha=1.0, low=np.where(at_least, -np.inf, 0.0),
        high=np.where(at_most, np.inf, 0.0),
    )  # fmt: skip
    bounded = np.isfinite(member.box.lower).all() and np.isfinite(member.box.upper).all()
    unit = size_of_x(member)
    last = off = np.inf
    for weight in (STIFF, 1e2 * STIFF, 1e4 * STIFF, 1e6 * STIFF):
        g, J = values_at(member.constraint, x)
        size = np.abs(J) @ np.abs(x) + np.abs(J @ x - g) + unit * np.abs(J).sum(axis=1)
        size = np.where(size > 0.0, size, 1.0)
        x, _, worst = models(hard.softened(weight * unit * unit / size), True, x)
        A, b, low, high = tangents_at(hard, x, *values_at(member.constraint, x))
        if affine_rows_clash(A, b, low, high, x, unit, member.box.lower, member.box.upper):
            return True
        if not worst <= CURVED_TOLERANCE:
            return False  # nothing is proven
        g = member.constraint.value(x)
        violation = np.maximum(np.where(at_most, g, 0.0), np.where(at_least, -g, 0.0))
        last, off = off, float((violation / size).max())
        if off <= CURVED_TOLERANCE:
            return False
    return not bounded and off >= 0.5 * last


def size_of_x(member: Member) -> float:
    """How large coordinates are: as far as bounds and center say."""
    ends = np.abs(np.concatenate([member.box.lower, member.box.upper, member.center]))
    return float(ends[np.isfinite(ends)].max(initial=0.0)) or 1.0


def tangents_at(member: Member, x: Array, g: Array, J: Array) -> tuple[Array, Array, Array, Array]:
    """The tangents of all rows at x, those of the domain's own after them: slopes, limits, and the
    bounds of their multipliers."""
    A, b, low, high = [J], [J @ x - g], member.low, member.high
    for part, least in member.hard:
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
    center, gradient, alpha, low, high, g_of, box, hard = member
    n, inside = high.size, x is not None
    x = np.clip(center, box.lower, box.upper) if x is None else x
    lam = np.zeros(n) if lam is None else lam
    best, answer = np.inf, (x, lam, np.inf)
    g, J = values_at(g_of, x)
    for _ in range(NEWTON_STEPS if exact else NEWTON_STEPS // 3):
        H = g_of.hessian(x) if exact else differences(g_of, x, box)
        if exact:
            require_convex(H, x)
        Hx = H @ x
        model = QuadraticConstraint.unchecked(H, J - Hx, J @ x - g - 0.5 * (Hx @ x))
        rows = assemble([model], low, high, hard)
        problem = (center, gradient, np.array(alpha), rows.low, rows.high, rows.P, rows.A, rows.b,
                   box.lower, box.upper)  # fmt: skip
        start = np.zeros(rows.order.size)
        start[:n] = lam
        there, found, inner = solve_one(problem, start[rows.order], thorough=exact)
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
            trial = there if t == 1.0 else np.clip(x + t * (there - x), box.lower, box.upper)
            g_there, J_there = values_at(g_of, trial)
            require_tangent(g, J, x, g_there, trial)
            reached = member.objective(trial, g_there)
            noise = 1e-14 * (abs(value) + abs(reached) + high @ (np.abs(g) + np.abs(J) @ np.abs(x)))
            if reached <= value + 0.1 * t * fall + noise + entry or t < 1e-12:
                break
            # Functions may have more rounding than their values show. Slopes tell then.
            near = t == 1.0 and -fall <= UNCLEAR * noise
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
    """By how much x breaks each of the domain's hard rows."""
    over = [
        np.abs(part.value(x)) if least else np.maximum(part.value(x), 0.0)
        for part, least in member.hard
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
        if skew[k] > NOT_CONVEX * size[k]:
            raise InvalidInput(f"the hessian of row {k} is not symmetric at x = {x}")
        if least[k] < -NOT_CONVEX * size[k]:
            raise InvalidInput(
                f"row {k} of the constraint is not convex: its hessian has the eigenvalue "
                f"{least[k]:.3g} at x = {x}"
            )


def require_tangent(g: Array, J: Array, x: Array, g_there: Array, there: Array) -> None:
    """Raise if a row lies clearly below its tangent: it is not convex, or its jacobian wrong."""
    move = J @ (there - x)
    below = g + move - g_there
    size = np.abs(g) + np.abs(g_there) + np.abs(J) @ np.abs(there - x)
    rounding = 1e-11 * (1.0 + np.abs(J) @ np.abs(x) + np.abs(J @ x - g))
    wrong = below > NOT_CONVEX * size + rounding
    if wrong.any():
        k = int(np.argmax(wrong))
        raise InvalidInput(
            f"row {k} of the constraint is not convex, or its jacobian is wrong: the tangent at "
            f"x = {x} gives {(g + move)[k]:.6g} at x = {there}, but the value there is "
            f"{g_there[k]:.6g}"
        )


def smooth_residual(
    member: Member, x: Array, lam: Array, g: Array, J: Array, H: Array, rounded: bool
) -> float:
    """The relative KKT residual with the rows' own values and slopes: that of their tangents.

    Where curvature is great, the last digit of x moves the slopes: its terms count.
    """
    center, gradient, alpha, _, _, _, box, _ = member
    A, b, low, high = tangents_at(member, x, g, J)
    none, bounds = np.zeros((0, x.size, x.size)), (box.lower, box.upper)
    place = member.constraint.at(x) if isinstance(member.constraint, Moved) else x
    bends = np.zeros((b.size, x.size))
    bends[: len(H)] = np.abs(H) @ np.abs(place)
    one = (center, gradient, alpha, low, high, none, A, b, *bounds)
    return residual_of(one, x, lam, bends, rounded)


def certificate(member: Member, x: Array) -> float:
    """The relative gap between the value at x and the least with the rows' tangents there."""
    g, J = values_at(member.constraint, x)
    problem = cut_problem(member, J, J @ x - g, np.arange(g.size))
    _, mu, nu, _ = solve_cuts(problem, x)
    return gap_above(member, x, g, J, problem, mu, nu)


def solve_cuts(problem: Pieces, x: Array) -> tuple[Array, Array, Array, bool]:
    """The answer with cuts for rows, for an x about as large as this; and whether it is exact.

    Cuts get nearly parallel in the end, so that all digits are needed from the beginning. Where
    these do not do, Clarabel's answer does, for the gap is proven with any multipliers.
    """
    from coldq.step.rescue import clarabel_on_pieces

    none, plain = np.zeros(problem.b.size), np.zeros(problem.limit.size)
    there, mu, nu, worst = with_more_digits(problem, x, none, plain, np.inf, known=False)
    if not worst <= TOLERANCE:
        units = units_of(problem)
        found = in_units(problem, None, units, lambda scaled, _: clarabel_on_pieces(scaled))
        there, mu, nu, _ = found or solve_pieces(problem)
    return there, mu, nu, worst <= TOLERANCE


def gap_above(
    member: Member, x: Array, g: Array, J: Array, problem: Pieces, mu: Array, nu: Array
) -> float:
    """The relative gap from a bound from below to the value at x, and what hard rows are off by.

    Any multipliers within their bounds give a bound: the least of the Lagrangian over the box.
    """
    value, off = value_there(member, x, g, J, problem)
    terms = member.terms(x, g, J)
    least = least_below(member, problem, mu, nu)
    gap = (value - least) / terms if terms > 0.0 else value - least
    return max(gap, off, 0.0)


def value_there(
    member: Member, x: Array, g: Array, J: Array, problem: Pieces
) -> tuple[float, float]:
    """The objective at x without hard rows, and what those are off by; infinite if x is not in the
    domain."""
    over = problem.plain @ x - problem.limit
    over = np.where(problem.lo == -np.inf, np.abs(over), over)
    inside = np.where(problem.plain != 0.0, np.abs(x), 0.0).max(axis=1, initial=0.0)
    at = np.maximum(np.abs(x), ORIGIN_SIZE * inside[:, None])
    room = ROUNDING * ((np.abs(problem.plain) * at).sum(axis=1) + np.abs(problem.limit))
    firm = np.isinf(member.high)
    off = np.inf if (over > room).any() else broken_by(x, g[firm], J[firm])
    return member.softened(0.0).objective(x, g), off


def least_below(member: Member, problem: Pieces, mu: Array, nu: Array) -> float:
    """The least of the Lagrangian over the box: below the objective of every point."""
    center, gradient, alpha, _, high, _, _, _ = member
    total = np.bincount(problem.group, mu, high.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(total > 0.0, capped_sums(problem, mu) / total, 1.0)
    mu = mu * share[problem.group]
    pull = problem.A.T @ mu + problem.plain.T @ nu
    there = np.minimum(np.maximum(problem.y - pull, problem.lower), problem.upper)
    rows = mu @ (problem.A @ there - problem.b) + nu @ (problem.plain @ there - problem.limit)
    move = there - center
    return float(gradient @ move + alpha * (move @ move) + 2.0 * alpha * rows)


def broken_by(x: Array, g: Array, J: Array) -> float:
    """By how much rows are broken, relative to the terms of their tangents at x."""
    size = np.abs(J) @ np.maximum(np.abs(x), ORIGIN_SIZE * np.abs(x).max(initial=0.0))
    size = size + np.abs(J @ x - g)
    return float((np.maximum(g, 0.0) / np.where(size > 0.0, size, 1.0)).max(initial=0.0))


def cut_problem(member: Member, A: Array, b: Array, group: np.ndarray) -> Pieces:
    """The step with affine pieces for rows."""
    center, gradient, alpha, low, high, _, box, hard = member
    half = 0.5 / alpha
    plain = plain_rows(hard, (), (), center.size)
    return Pieces(
        center - gradient * half, A, b, group, low * half, high * half, *plain, box.lower, box.upper
    )


def known_pieces(constraint: Any, p: int) -> tuple[Array, Array, np.ndarray, np.ndarray]:
    """The pieces of all rows that are nothing else, the row of each, and which rows these are."""
    parts = constraint.parts if isinstance(constraint, Stacked) else (constraint,)
    A, b, group = [np.zeros((0, p))], [np.zeros(0)], [np.zeros(0, int)]
    known, first = np.zeros(constraint.n_constraints, bool), 0
    for part in parts:
        n = part.n_constraints
        if isinstance(part, Affine | MaxAffine):
            A.append(part.A.reshape(-1, p))
            b.append(part.b.reshape(-1))
            group.append(first + np.repeat(np.arange(n), b[-1].size // max(n, 1)))
            known[first : first + n] = True
        first += n
    return np.concatenate(A), np.concatenate(b), np.concatenate(group), known


def cutting_planes(member: Member) -> tuple[Array, Array, float]:
    """Cuts below the rows at every point visited, until the gap is small between the least value
    seen and the greatest bound from below.

    Half-way from the best point to the model's the rows are asked as well: where many cuts meet
    in a kink, the model's own points jump around it.
    """
    n, firm = member.high.size, np.isinf(member.high).any()
    x = np.clip(member.center, member.box.lower, member.box.upper)
    A, b, group, known = known_pieces(member.constraint, x.size)
    bent = np.flatnonzero(~known)
    used, lam = np.full(b.size, CUTS), np.zeros(n)
    problem = cut_problem(member, A, b, group)
    best, least, gap, terms = (np.inf, x), -np.inf, 1.0, 0.0
    last, late = np.inf, 0
    seen: list[tuple[Array, Array, Array]] = []
    for k in range(CUTS):
        half = [0.5 * (x + best[1])] if best[0] < np.inf and (x != best[1]).any() else []
        points = []
        for point in (x, *half):
            g, J = values_at(member.constraint, point)
            for at, value, slope in seen[-3:]:
                require_tangent(value, slope, at, g, point)
            seen.append((point, g, J))
            points.append((point, g, J))
            value, off = value_there(member, point, g, J, problem)
            if off <= 0.5 * GAP_TOLERANCE and value < best[0]:
                best, terms = (value, point), member.terms(point, g, J)
        if best[0] < np.inf:
            way = best[0] - least
            gap = way / terms if terms > 0.0 else way
            late = k if way < 0.9 * last else late
            last = min(way, last)
            if gap <= 0.5 * GAP_TOLERANCE or k > late + STUCK:
                break
        # Cuts that have not mattered lately are forgotten. The model's least value does not fall
        # by that, for it rests on the others.
        keep = used > k - LATELY
        A = np.concatenate([A[keep], *(J[bent] for _, _, J in points)])
        b = np.concatenate([b[keep], *((J @ point - g)[bent] for point, g, J in points)])
        group = np.concatenate([group[keep], *(bent for _ in points)])
        used = np.concatenate([used[keep], np.full(bent.size * len(points), k)])
        problem = cut_problem(member, A, b, group)
        x, mu, nu, exactly = solve_cuts(problem, x)
        # Cuts lie below the rows: where even they clash, the rows do.
        if firm and not exactly and pieces_clash(problem):
            return x, np.zeros(n), np.inf
        below = least_below(member, problem, mu, nu)
        if below > least:
            least, lam = below, capped_sums(problem, mu) * 2.0 * member.alpha
        mattered = mu > 1e-8 * capped_sums(problem, mu)[group]
        used = np.where(mattered & (used < CUTS), k, used)
    return best[1], np.minimum(np.maximum(lam, member.low), member.high), max(gap, 0.0)


def solve_stacked(
    center: Array,
    gradient: Array,
    alpha: Array,
    weights: Array,
    floor: Any,
    constraint: Stacked,
    domain: Any,
) -> Step:
    """Affine and quadratic parts go to the compiled kernel together, all else to the models."""
    parts = [part for part in constraint.parts if not isinstance(part, Unconstrained)]
    if parts and all(isinstance(part, Affine | QuadraticConstraint) for part in parts):
        return solve_parts(center, gradient, alpha, weights, floor, constraint, domain, parts)
    return solve_convex(center, gradient, alpha, weights, floor, constraint, domain)
