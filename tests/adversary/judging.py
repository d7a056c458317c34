"""The KKT conditions of a step, judged in extended precision and relative to the step's own scales.

Nothing is relative to 1: with numbers of 1e-12 an answer has to be right to as many digits as with
numbers of 1. Rows are formulas of the judge's own (:class:`Rows`), evaluated in long double.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import lsq_linear, nnls

import coldq

INF = np.inf
LONG = np.longdouble
EPS = 2.3e-16
ROUNDINGS = 64.0 * EPS  # of a sum of products, after a solver's own
Slopes = tuple[np.ndarray, np.ndarray, np.ndarray]


class Rows(NamedTuple):
    """Rows ``g(x) <= 0`` as the judge reads them, all in long double.

    `slopes` gives the gradients at x, the row that each belongs to and the value of its tangent:
    one for a smooth row, at a kink one for every piece within `room` of being the largest, beside
    its terms. `size` is that of the terms which a value is the sum of. Coordinates count in terms
    as much as both are told.
    `shifted` lowers the values by so much. `wobble` is how much a change of x by as much as it is
    told, or a relative one by 1 of what its slope is computed from, moves the slope of a row:
    rounding of x counts in it. Every piece of a row lies above its tangent by `bowl` times half of
    the square of the distance.
    """

    constraint: Any
    value: Callable[[np.ndarray], np.ndarray]
    slopes: Callable[[np.ndarray, float, np.ndarray], Slopes]
    size: Callable[[np.ndarray, np.ndarray], np.ndarray]
    shifted: Callable[[np.ndarray], Rows]
    curved: bool = False
    wobble: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    bowl: np.ndarray | None = None


class Problem(NamedTuple):
    """One per-slot problem."""

    center: np.ndarray
    gradient: np.ndarray
    alpha: float
    multiplier_lower: np.ndarray
    multiplier_upper: np.ndarray
    rows: Rows
    domain: Any

    def arguments(self) -> tuple[Any, ...]:
        return (
            self.center, self.gradient, self.alpha, self.multiplier_upper, self.rows.constraint,
            self.domain,
        )  # fmt: skip

    def target(self) -> np.ndarray:
        """Where x would be without rows and domain."""
        half = LONG(0.5) / LONG(self.alpha)
        return self.center.astype(LONG) - self.gradient.astype(LONG) * half


def counted(problem: Problem, x: np.ndarray) -> np.ndarray:
    """The size of each coordinate: of itself, or if more of the rounding that it may have.

    x is known up to the rounding of what it is the difference of: a millionth of its target.
    """
    width = (problem.domain.box.upper - problem.domain.box.lower).astype(LONG)
    return np.maximum(np.abs(x), np.minimum(1e-6 * np.abs(problem.target()), width))


def floored(inside: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The sizes of coordinates in every row: a thousandth of the largest in the row at least."""
    least = 1e-3 * np.where(inside, at, 0.0).max(axis=-1, initial=0.0)
    return np.maximum(at, least[..., None])


def normals_at(domain: Any, x: np.ndarray, at: np.ndarray, room: float) -> tuple[np.ndarray, ...]:
    """The outward normals of length 1 of all that holds x, the sizes of the terms of their entries,
    and how far x is from what it is held by, rounding apart."""
    eye = np.eye(x.size, dtype=LONG)
    lower, upper = domain.box.lower, domain.box.upper
    high, low = upper - x <= room * at, x - lower <= room * at
    normals, terms = [eye[high], -eye[low]], [eye[high], eye[low]]
    rooms = [(upper - x)[high], (x - lower)[low]]
    for part, floor in domain.enforced:
        if isinstance(part, coldq.Affine):
            A, b = part.A.astype(LONG), part.b.astype(LONG)
            held = b - A @ x <= room * (np.abs(b) + (np.abs(A) * floored(A != 0.0, at)).sum(axis=1))
            far, rounding = b - A @ x, 16.0 * EPS * (np.abs(b) + np.abs(A) @ np.abs(x))
            far = np.where(np.abs(far) <= rounding, 0.0, far)
            normals.append(A[held])
            terms.append(np.abs(A[held]))
            rooms.append(far[held])
            if floor == -INF:
                normals.append(-A)
                terms.append(np.abs(A))
                rooms.append(-far)
        else:
            own = slice(part.first, part.first + part.center.size)
            ray, size = np.zeros((1, x.size), LONG), np.zeros((1, x.size), LONG)
            ray[0, own] = x[own] - part.center
            size[0, own] = np.abs(x[own]) + np.abs(part.center)
            length = np.sqrt((ray * ray).sum())
            if part.radius - length <= room * (part.radius + np.abs(part.center).max()):
                normals.append(ray)
                terms.append(size)
                rooms.append(np.array([(part.radius - length) * length]))
    B, size, away = np.concatenate(normals), np.concatenate(terms), np.concatenate(rooms)
    length = np.sqrt((B * B).sum(axis=1))
    some = length > 0.0
    length = length[some]
    return B[some] / length[:, None], size[some] / length[:, None], away[some] / length


def outside(problem: Problem, x: np.ndarray, at: np.ndarray) -> float:
    """By how much x leaves the domain: of the size of a row's terms, of a radius and rounding."""
    domain, worst = problem.domain, 0.0
    if not ((domain.box.lower <= x) & (x <= domain.box.upper)).all():
        return INF
    for part, floor in domain.enforced:
        if isinstance(part, coldq.Affine):
            A, b = part.A.astype(LONG), part.b.astype(LONG)
            over = A @ x - b
            over = np.abs(over) if floor == -INF else np.maximum(over, 0.0)
            size = (np.abs(A) * floored(A != 0.0, at)).sum(axis=1) + np.abs(b)
            worst = max(worst, float((over / np.where(size > 0.0, size, 1.0)).max(initial=0.0)))
        else:
            own = slice(part.first, part.first + part.center.size)
            over = np.sqrt(np.square(x[own] - part.center.astype(LONG)).sum()) - part.radius
            rounding = 8.0 * EPS * np.sqrt(np.square(np.abs(part.center) + part.radius).sum())
            worst = max(worst, float((over - rounding) / part.radius))
    return worst


def residual(problem: Problem, step: coldq.Step, tolerance: float) -> float:
    """The relative KKT residual; what is within `tolerance` of being active may act on x."""
    x, lam, rows = step.x.astype(LONG), step.multipliers.astype(LONG), problem.rows
    if not (
        np.isfinite(x).all()
        and ((problem.multiplier_lower <= lam) & (lam <= problem.multiplier_upper)).all()
    ):
        return INF
    at = counted(problem, x)
    off = outside(problem, x, at)
    g, size = rows.value(x), rows.size(x, at)
    wrong = ((lam > problem.multiplier_lower) & (g < 0.0)) | (
        (lam < problem.multiplier_upper) & (g > 0.0)
    )
    broken = np.where(wrong, np.abs(g) / np.where(size > 0.0, size, 1.0), 0.0).max(initial=0.0)
    worst = max(off, float(broken))
    if worst > tolerance:
        return worst
    return max(worst, unbalanced(problem, x, lam, at, tolerance)[0])


def unbalanced(
    problem: Problem, x: np.ndarray, lam: np.ndarray, at: np.ndarray, room: float
) -> tuple[float, Any]:
    """What is left of ``y - x`` after the rows' slopes and the domain's normals.

    Shares of a row's pieces and multiples of the normals come from nonnegative least squares; the
    remainder, in long double, is relative to x and all terms. Second, the bound from below
    that these multipliers prove, or the same multipliers made exact.
    """
    y, mu = problem.target(), lam * (LONG(0.5) / LONG(problem.alpha))
    owner, S, tangents = problem.rows.slopes(x, room, at)
    B, size, away = normals_at(problem.domain, x, at, room)
    pulled = np.abs(problem.center) + np.abs(problem.gradient) * (LONG(0.5) / LONG(problem.alpha))
    scale = np.abs(x) + pulled + np.abs(S * mu[owner, None]).sum(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    # Of x, in the slopes, and beside a ball's center. A coordinate that is far smaller than others
    # is known to their last digit, and a heavy row that bends makes much of it.
    rounding = np.full(x.size, EPS * np.abs(x).max(initial=0.0), LONG)
    known = np.maximum(np.abs(x), rounding / ROUNDINGS)
    for part, _ in problem.domain.enforced:
        if not isinstance(part, coldq.Affine):
            # Beside the radius x has twice the digits of a double at most.
            width = np.abs(part.center) + 4.0 * EPS * part.radius
            own = slice(part.first, part.first + part.center.size)
            rounding[own] += 4.0 * EPS * width
            known[own] += width
    if problem.rows.wobble is not None:
        rounding += ROUNDINGS * problem.rows.wobble(x, known).T @ np.abs(mu)
    bowls = LONG(0.0) if problem.rows.bowl is None else problem.rows.bowl @ mu
    several = np.flatnonzero((np.bincount(owner, minlength=lam.size) > 1) & (mu != 0.0))
    open_ = np.isin(owner, several)
    share = np.where(open_, 0.0, 1.0).astype(LONG)
    v = y - x - S.T @ (share * mu[owner])
    sums = (owner[open_] == several[:, None]).astype(LONG)
    pull = (S * mu[owner, None])[open_]
    empty = np.zeros((several.size, len(B)))
    best, least = INF, LONG(-INF)
    exact = None
    # A first fit tells how much the normals push, and so what rounding of theirs is worth. A
    # coordinate whose slopes are nothing but rounding must not spoil the fit of the others.
    worth = np.full(x.size, scale.max()) + rounding / room
    for fit in (_quickly, _quickly, _carefully, _carefully):
        left = np.block([[(B / worth).T, (pull / worth).T], [empty, sums]])
        right = np.concatenate([v / worth, np.ones(several.size, LONG)])
        length = np.sqrt((left * left).sum(axis=0))
        length = np.where(length > 0.0, length, 1.0)
        found = np.zeros(left.shape[1], LONG)
        for _ in range(4):  # what rounding left of the fit is fitted again
            rest = right - left @ found
            width = float(np.abs(rest).max(initial=0.0)) or 1.0
            more = fit(
                (left / length).astype(float), (rest / width).astype(float),
                -(found * length / width).astype(float),
            )  # fmt: skip
            found = np.maximum(found + more.astype(LONG) * width / length, 0.0)
            c, t = found[: len(B)], found[len(B) :]
            total = sums.T @ (sums @ t)
            share[open_] = t / np.where(total > 0.0, total, 1.0)
            move = y - x - S.T @ (share * mu[owner]) - B.T @ c  # from x to the Lagrangian's least
            left_over = np.maximum(np.abs(move) - rounding, 0.0)
            off = float((left_over / (scale + size.T @ c)).max())
            if off < best:
                d = move / (1.0 + bowls)
                best, there = off, x + d - problem.center.astype(LONG)
                rows = (share * mu[owner]) @ (tangents + S @ d) + c @ (B @ d - away)
                rows = rows + LONG(0.5) * bowls * (d @ d)
                least = problem.gradient @ there + problem.alpha * (there @ there + 2.0 * rows)
                exact = (
                    problem, x, lam, (owner, S, tangents), (B, away), open_, share.copy(), c.copy()
                )  # fmt: skip
            if best <= 1e-3 * room:
                return best, least, exact
        worth = scale + size.T @ found[: len(B)] + rounding / room
    return best, least, exact


def least_exactly(
    problem: Problem, x: np.ndarray, lam: np.ndarray, rows: Slopes, holds: Any, open_: np.ndarray,
    share: np.ndarray, c: np.ndarray,
) -> Any:  # fmt: skip
    """The bound from below that such a fit proves if fractions correct it to leave nothing.

    Where prices are of 1e26 and gradients of 1e-10, no kind of floats has the digits for that. What
    pushes is corrected in proportion to how much it does, so that nothing changes its sign.
    """
    owner, S, tangents = rows
    B, away = holds
    pieces, normals = np.flatnonzero(open_ & (share > 0.0)), np.flatnonzero(c > 0.0)
    groups = np.unique(owner[pieces])
    exact = [fraction(v) for v in x]
    half = Fraction(1, 2) / Fraction(problem.alpha)
    price = [fraction(v) * half for v in lam]
    force = [[fraction(v) * price[owner[k]] for v in S[k]] for k in range(len(owner))]
    left = [
        Fraction(float(a)) - Fraction(float(b)) * half - at
        for a, b, at in zip(problem.center, problem.gradient, exact, strict=True)
    ]
    shares = {int(k): fraction(share[k]) for k in np.flatnonzero(share > 0.0)}
    for k, part in shares.items():
        left = [v - part * f for v, f in zip(left, force[k], strict=True)]
    push = {int(j): fraction(c[j]) for j in normals}
    bends = {j: [fraction(v) for v in B[j]] for j in push}
    for j, part in push.items():
        left = [v - part * f for v, f in zip(left, bends[j], strict=True)]
    sums = [1 - sum(shares[int(k)] for k in pieces if owner[k] == g) for g in groups]
    columns = [
        *([*force[k], *(Fraction(int(owner[k] == g)) for g in groups)] for k in pieces),
        *([*bends[j], *(Fraction(0) for _ in groups)] for j in push),
    ]
    much = [*(shares[int(k)] for k in pieces), *push.values()]
    more = weighted_solution(columns, much, [*left, *sums])
    if more is None or any(m + d < 0 for m, d in zip(much, more, strict=True)):
        return LONG(-INF)
    for k, d in zip(pieces, more, strict=False):
        shares[int(k)] += d
    for j, d in zip(push, more[len(pieces) :], strict=True):
        push[j] += d
    way = [a - Fraction(float(b)) for a, b in zip(exact, problem.center, strict=True)]
    least = sum(Fraction(float(a)) * b for a, b in zip(problem.gradient, way, strict=True))
    least += Fraction(problem.alpha) * sum(v * v for v in way)
    values = sum(part * price[owner[k]] * fraction(tangents[k]) for k, part in shares.items())
    values -= sum(part * fraction(away[j]) for j, part in push.items())
    return LONG(float(least + values / half))


def fraction(value: Any) -> Fraction:
    """A long double as a fraction."""
    return Fraction(*np.longdouble(value).as_integer_ratio())


def weighted_solution(
    columns: list[list[Fraction]], much: list[Fraction], right: list[Fraction]
) -> list[Fraction] | None:
    """How little to add to what there is `much` of, in proportion, so that columns add up to the
    right side exactly; None if they cannot."""
    lines = [k for k in range(len(right)) if any(c[k] for c in columns) or right[k]]
    table = [
        [sum(w * w * c[a] * c[b] for c, w in zip(columns, much, strict=True)) for b in lines]
        + [right[a]]
        for a in lines
    ]
    m, pivots = len(lines), []
    for col in range(m):
        row = next((r for r in range(len(pivots), m) if table[r][col]), None)
        if row is None:
            continue
        at = len(pivots)
        table[at], table[row] = table[row], table[at]
        table[at] = [v / table[at][col] for v in table[at]]
        for r in range(m):
            if r != at and table[r][col]:
                table[r] = [a - table[r][col] * b for a, b in zip(table[r], table[at], strict=True)]
        pivots.append(col)
    if any(table[r][m] for r in range(len(pivots), m)):
        return None
    found = [Fraction(0)] * m
    for r, col in enumerate(pivots):
        found[col] = table[r][m]
    return [
        w * w * sum(f * c[a] for f, a in zip(found, lines, strict=True))
        for c, w in zip(columns, much, strict=True)
    ]


def _quickly(B: np.ndarray, v: np.ndarray, least: np.ndarray) -> np.ndarray:
    if not B.shape[1]:
        return np.zeros(0)
    if not least.any():
        return nnls(B, v, maxiter=1000 * (B.shape[1] + 1))[0]
    return _carefully(B, v, least)


def _carefully(B: np.ndarray, v: np.ndarray, least: np.ndarray) -> np.ndarray:
    if not B.shape[1]:
        return np.zeros(0)
    return lsq_linear(B, v, (least - 1e-300, INF), method="bvls", tol=1e-15).x


def objective(problem: Problem, x: np.ndarray) -> tuple[LONG, LONG]:
    """The penalised objective without enforced rows, and the size of its terms."""
    move, g = x - problem.center.astype(LONG), problem.rows.value(x)
    high = np.where(np.isinf(problem.multiplier_upper), 0.0, problem.multiplier_upper).astype(LONG)
    penalty = np.where(g > 0.0, high * g, problem.multiplier_lower * g)
    terms = np.concatenate([problem.gradient * move, problem.alpha * move * move, penalty])
    return terms.sum(), np.abs(terms).sum()


def gap(problem: Problem, step: coldq.Step, tolerance: float) -> float:
    """How far the value at x is above the least, relative to the terms of the value at x, or at
    the projection of the center, or to the cost of a move by as much as x is, within the bounds;
    or so small that x is as near to the answer as the tolerance says, by strong convexity.

    Multipliers with the tangents at x prove a bound from below. At kinks that may not be enough:
    then quadratic programs with the tangents at some points, each leading to the next one.
    """
    x, rows = step.x.astype(LONG), problem.rows
    lam = step.multipliers
    if not (
        np.isfinite(x).all()
        and ((problem.multiplier_lower <= lam) & (lam <= problem.multiplier_upper)).all()
    ):
        return INF
    at = counted(problem, x)
    hard = np.isinf(problem.multiplier_upper)
    terms = rows.size(x, at)
    terms = np.where(terms > 0.0, terms, 1.0)
    broken = (np.maximum(rows.value(x), 0.0) / terms)[hard].max(initial=0.0)
    left = outside(problem, x, at)
    worst = max(left, float(broken))
    if worst > tolerance:
        return worst
    value, size = objective(problem, x)[0], worth_of(problem, x, at, tolerance)
    value = value - rounded_off(problem, x, at, left)
    enough = value - tolerance * size
    _, least, exact = unbalanced(problem, x, lam.astype(LONG), at, 1e-4)
    if not least >= enough and exact is not None:
        least = max(least, least_exactly(*exact))
    if not least >= enough and x.size == 1:
        least = max(least, least_on_a_line(problem, x))
    if not least >= enough:
        least = max(least, least_by_cuts(problem, x, lam, enough, size))
    return max(worst, float((value - least) / size)) if size > 0.0 else worst


def rounded_off(problem: Problem, x: np.ndarray, at: np.ndarray, left: float) -> Any:
    """What rounding makes of rows, priced: it is no gap, nor what x being off its domain by as much
    does, which is relative to several terms of a size like that of x."""
    rows, hard = problem.rows, np.isinf(problem.multiplier_upper)
    rounding = 16.0 * EPS * rows.size(x, at)
    owner, S, _ = rows.slopes(x, 0.0, at)
    np.maximum.at(rounding, owner, 4.0 * left * (np.abs(S) @ at))
    price = np.where(
        rows.value(x) > -rounding, problem.multiplier_upper, np.abs(problem.multiplier_lower)
    )
    return np.where(hard, 0.0, price) @ rounding


def worth_of(problem: Problem, x: np.ndarray, at: np.ndarray, tolerance: float) -> Any:
    """What a gap is relative to."""
    begin = problem.domain.project(problem.center).astype(LONG)
    width = np.minimum(at, problem.domain.box.upper - problem.domain.box.lower)
    size = max(objective(problem, x)[1], objective(problem, begin)[1])
    return max(size, np.abs(problem.gradient) @ width, tolerance * problem.alpha * (x @ x))


def found_below(problem: Problem, step: coldq.Step, tolerance: float) -> float:
    """The same as far as a search finds: by how much random steps of all lengths get below x.

    Where numbers of twenty magnitudes meet, no bound from below that floats prove is close enough.
    Next to a kink whose slopes are 1e20 times the value, a last digit of x decides: that is no gap
    here either.
    """
    rng, hard, box = (
        np.random.default_rng(0),
        np.isinf(problem.multiplier_upper),
        problem.domain.box,
    )
    x = step.x.astype(LONG)
    at = counted(problem, x)
    left = outside(problem, x, at)

    def broken(x: np.ndarray) -> np.ndarray:
        size = problem.rows.size(x, counted(problem, x))[hard]
        return problem.rows.value(x)[hard] / np.where(size > 0.0, size, 1.0)

    # An enforced row may be off by the tolerance at x, and is so at the points that are compared.
    room = np.maximum(broken(x), 1e-9)
    if max(left, room.max(initial=0.0)) > tolerance:
        return INF

    def value(x: np.ndarray) -> Any:
        x = x.astype(LONG)
        return LONG(INF) if (broken(x) > room).any() else objective(problem, x)[0]

    best, here = step.x, objective(problem, x)[0]
    first = here
    reach = np.minimum(box.upper - box.lower, np.abs(best).max(initial=0.0))
    reach = np.maximum(np.abs(best), reach)
    for length in np.tile(10.0 ** -np.arange(0.0, 15.0, 0.5), 4):
        for _ in range(60):
            move = rng.standard_normal(best.size) * (rng.random(best.size) < 0.7)
            there = problem.domain.project(best + length * reach * move)
            if value(there) < here:
                best, here = there, value(there)
    size, rounding = worth_of(problem, x, at, tolerance), rounded_off(problem, x, at, left)
    return float((first - here - rounding) / size) if size > 0.0 else 0.0


def least_on_a_line(problem: Problem, x: np.ndarray) -> Any:
    """The same of a single coordinate: between two points where a convex function is no less than
    at x lies its least, which is below x by no more than it rises from x on the other side."""
    here, best = objective(problem, x)[0], LONG(-INF)
    for k in range(6, 18):
        rise = [
            objective(problem, x + side)[0] - here
            for side in (-np.abs(x) * LONG(10.0) ** -k, np.abs(x) * LONG(10.0) ** -k)
            if outside(problem, x + side, counted(problem, x + side)) <= 0.0
        ]
        if rise and min(rise) >= 0.0:
            best = max(best, here - max(rise))
    return best


def least_by_cuts(
    problem: Problem, start: np.ndarray, lam: np.ndarray, enough: Any, size: Any
) -> Any:
    """The least with tangents at some points in place of the rows.

    The multipliers that Clarabel finds are clipped to their bounds, and the bound that they prove
    is evaluated in long double: the least of the Lagrangian over the domain's box, its rows priced.
    A price far above the multiplier that is claimed says no more than one above, and costs digits.
    """
    from scipy import sparse

    clarabel: Any = import_module("clarabel")  # a compiled module without type information

    p, n = start.size, problem.multiplier_upper.size
    own = [(part.A, part.b, floor) for part, floor in problem.domain.enforced]
    A = np.concatenate([np.zeros((0, p)), *(rows for rows, _, _ in own)])
    b = np.concatenate([np.zeros(0), *(limits for _, limits, _ in own)])
    equal = np.concatenate([np.zeros(0, bool), *(np.full(c.size, f == -INF) for _, c, f in own)])
    lower, upper = problem.domain.box.lower, problem.domain.box.upper
    low, high = np.flatnonzero(lower > -INF), np.flatnonzero(upper < INF)
    hard, linear = (
        np.isinf(problem.multiplier_upper),
        problem.multiplier_lower == problem.multiplier_upper,
    )
    unit = float(np.abs(start).max()) or 1.0  # x is in this unit, the objective in its size
    worth = float(size) or 1.0
    eye, price = np.eye(p + n), np.where(hard, 0.0, problem.multiplier_upper)
    center, best, x = problem.center.astype(LONG), LONG(-INF), start
    cuts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for _ in range(500):
        owner, S, tangents = problem.rows.slopes(x, 1e-4, counted(problem, x))
        cuts.append((owner, S, S @ x - tangents))
        group = np.concatenate([o for o, _, _ in cuts])
        C, c = np.concatenate([s for _, s, _ in cuts]), np.concatenate([d for _, _, d in cuts])
        height = np.abs(C).max(axis=1) * unit  # of each cut, in which its slack is measured
        height = np.where(height > 0.0, height, 1.0)
        tall = np.zeros(n, LONG)
        np.maximum.at(tall, group, height)
        G = np.zeros((group.size, p + n))
        G[:, :p] = (C * unit / height[:, None]).astype(float)
        G[np.arange(group.size), p + group] = -(tall[group] / height).astype(float)
        own_size = np.maximum(np.abs(A).max(axis=1, initial=0.0) * unit, 1e-300)
        H = np.hstack([A * unit / own_size[:, None], np.zeros((b.size, n))])
        none = np.flatnonzero(~linear)  # s >= 0
        cap = np.flatnonzero(hard)  # s <= 0
        blocks = [H[equal], H[~equal], G, -eye[low], eye[high], -eye[p + none], eye[p + cap]]
        limit = [
            (b / own_size)[equal], (b / own_size)[~equal], (c / height).astype(float),
            -lower[low] / unit, upper[high] / unit, np.zeros(none.size + cap.size),
        ]  # fmt: skip
        pull = problem.gradient - 2.0 * problem.alpha * problem.center
        claimed = 1e3 * np.maximum(lam * tall.astype(float) / worth, 1.0)
        paid = np.minimum(price * tall.astype(float) / worth, claimed)
        q = np.concatenate([pull * unit / worth, np.where(linear, price * tall / worth, paid)])
        bend = np.concatenate([np.full(p, 2.0 * problem.alpha * unit**2 / worth), np.zeros(n)])
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
        cones = [
            clarabel.ZeroConeT(int(equal.sum())),
            clarabel.NonnegativeConeT(sum(len(k) for k in blocks) - int(equal.sum())),
        ]
        matrix = sparse.csc_array(np.concatenate(blocks))
        found = clarabel.DefaultSolver(
            sparse.diags_array(bend, format="csc"),
            q,
            matrix,
            np.concatenate(limit),
            cones,
            settings,
        ).solve()
        z, there = np.array(found.z), np.array(found.x)
        if not (np.isfinite(z).all() and np.isfinite(there).all()):
            break
        k = b.size
        nu = np.empty(k, LONG)
        nu[equal] = z[: int(equal.sum())]
        nu[~equal] = np.maximum(z[int(equal.sum()) : k], 0.0)
        nu = nu * worth / own_size
        mu = np.maximum(z[k : k + group.size], 0.0).astype(LONG) * worth / height
        total = np.zeros(n, LONG)
        np.add.at(total, group, mu)
        aim = np.where(
            linear, problem.multiplier_upper, np.minimum(total, problem.multiplier_upper)
        )
        mu = mu * (aim / np.where(total > 0.0, total, 1.0))[group]
        slope = problem.gradient + C.T @ mu + A.T.astype(LONG) @ nu
        move = np.clip(center - slope / (2.0 * LONG(problem.alpha)), lower, upper) - center
        least = slope @ move + problem.alpha * move @ move
        least += mu @ (C @ center - c) + nu @ (A.astype(LONG) @ center - b)
        best = max(best, least)
        if best >= enough:
            break
        x = np.clip(there[:p] * unit, lower, upper).astype(LONG)
    return best
