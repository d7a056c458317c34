"""Affine rows on every domain, drawn to break the step, and a judge in extended precision.

The judge reads x and the multipliers alone. Rows must hold relative to the size of their own terms,
however large their prices are, and x must minimise the Lagrangian over the domain in value: what it
could gain there is computed from the projection on the domain, which has a closed form part by part
(a polytope's rows get multipliers of their own first, by nonnegative least squares in
floats or, where these are not enough, in decimals). With the rows'
complementarity this bounds the duality gap, so that no price, however large, hides a wrong x.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from operator import mul
from typing import Any

import numpy as np
from scipy.optimize import nnls

import coldq
from tests.adversary.drawn import EXTREME, Draw, Drawn

ALLOWED, ALLOWED_IN_BALLS = 1e-9, 1e-8  # what docs/which-pair-is-solved-how.md promises
INF = np.inf
LONG = np.longdouble
HALF_OF_THE_DIGITS = Decimal("1e-40")
ROUNDING = LONG(1e-14)  # of the terms of a sum: what x and multipliers cannot show in floats

CATEGORIES = (
    "regular", "near-parallel", "duplicates", "parallel to the sum", "vertex", "integers",
    "row scales", "entry scales", "sparse", "zero rows", "constants", "clash",
)  # fmt: skip
DOMAINS = (
    "box", "simplex", "capped simplex", "polytope", "product", "ball", "product with a ball",
)  # fmt: skip


def magnitude(rng: np.random.Generator, scale: str, shape: Any = ()) -> Any:
    """A size for entries: six decades around 1, or 24."""
    most = 12.0 if scale == EXTREME else 3.0
    return 10.0 ** rng.uniform(-most, most, shape)


def draw_part(rng: np.random.Generator, kind: str, p: int, size: float, whole: bool) -> Any:
    """A domain of a kind, about `size` large; of whole numbers if asked."""
    if kind == "box":
        low, high = -rng.integers(0, 3, p) * 1.0, rng.integers(0, 3, p) * 1.0
        if not whole:
            low, high = low * rng.random(p), high * rng.random(p)
        open_ = rng.random((2, p)) < 0.1
        low, high = np.where(open_[0], -INF, size * low), np.where(open_[1], INF, size * high)
        return coldq.Box(low, high)
    if kind == "simplex":
        return coldq.Simplex(p, total=size)
    if kind == "capped simplex":
        cap = size * rng.uniform(1.0, 4.0) / p
        return coldq.Simplex(p, total=size, cap=size / max(1, p // 2) if whole else cap)
    if kind == "ball":
        far = 10.0 ** rng.uniform(-2.0, 3.0) if rng.random() < 0.3 else 1.0
        middle = rng.integers(-2, 3, p) if whole else rng.standard_normal(p)
        return coldq.Ball(far * size * middle, radius=size)
    M = int(rng.integers(1, p + 3))
    A = rng.integers(-2, 3, (M, p)) * 1.0 if whole else rng.standard_normal((M, p))
    inside = size * (rng.integers(0, 2, p) if whole else rng.random(p))
    if M > 1 and rng.random() < 0.3:  # a row twice, or nearly
        A[-1] = A[0] * rng.choice([1.0, -1.0, 3.0])
        A[-1] += rng.choice([0.0, 1e-9, 1e-6]) * rng.standard_normal(p)
    slack = size * rng.random(M) * (rng.random(M) < 0.5)
    if rng.random() < 0.3:
        C = A[: int(rng.integers(1, max(2, p // 2)))]
        return coldq.Polytope(A, A @ inside + slack, 0.0, size, A_eq=C, b_eq=C @ inside)
    return coldq.Polytope(A, A @ inside + slack, 0.0, size)


def draw_domain(rng: np.random.Generator, kind: str, p: int, size: float, whole: bool) -> Any:
    if not kind.startswith("product"):
        return draw_part(rng, kind, p, size, whole)
    kinds = ["box", "simplex", "capped simplex", "polytope"]
    chosen, left = [], p
    if kind == "product with a ball":
        q = int(rng.integers(1, left + 1))
        chosen, left = [draw_part(rng, "ball", q, size, whole)], left - q
    while left > 0:
        q = int(rng.integers(1, left + 1))
        other = str(rng.choice([*kinds, "ball"] if chosen and kind != "product" else kinds))
        chosen.append(draw_part(rng, other, q, size * rng.choice([1.0, 1.0, 0.1, 10.0]), whole))
        left -= q
    order = rng.permutation(len(chosen))
    return coldq.Product(*(chosen[k] for k in order))


def vertex_of(rng: np.random.Generator, domain: Any, size: float) -> np.ndarray:
    """A point at an edge of the domain, often a corner; a polytope's is only nearly there."""
    if isinstance(domain, coldq.Product):
        return np.concatenate([vertex_of(rng, part, size) for part in domain.domains])
    direction = size * rng.standard_normal(domain.dim)
    if isinstance(domain, coldq.Ball):
        direction /= max(float(np.linalg.norm(direction)), 1e-300)
        return domain.center + (1.0 - 1e-15) * float(domain.radius) * direction
    if isinstance(domain, coldq.Box):
        low = np.where(np.isinf(domain.lower), -size, domain.lower)
        high = np.where(np.isinf(domain.upper), size, domain.upper)
        return np.where(rng.random(domain.dim) < 0.5, low, high)
    if isinstance(domain, coldq.Simplex) and not np.isfinite(domain.cap):
        x = np.zeros(domain.dim)
        x[rng.integers(domain.dim)] = domain.total
        return x
    return domain.project(direction * 10.0)


def inside_of(rng: np.random.Generator, domain: Any, size: float) -> np.ndarray:
    return domain.project(size * rng.standard_normal(domain.dim))


def draw_step(rng: np.random.Generator, scale: str, kind: str) -> Drawn:
    """A step with affine rows on a domain of a kind."""
    category = str(rng.choice(CATEGORIES))
    p = int(rng.integers(1, 21 if rng.random() < 0.5 else 7))
    N = int(rng.integers(1, 21 if rng.random() < 0.5 else 7))
    whole = category == "integers"
    size = 1.0 if whole else float(magnitude(rng, scale))
    domain = draw_domain(rng, kind, p, size, whole)
    at = (vertex_of if rng.random() < 0.5 or category == "vertex" else inside_of)(rng, domain, size)
    at = np.where(np.abs(at) <= 1e-13 * np.abs(at).max(), 0.0, at)
    at = np.round(at) if whole and np.abs(at - np.round(at)).max() < 1e-9 else at
    A = rng.integers(-3, 4, (N, p)) * 1.0 if whole else rng.standard_normal((N, p))
    match category:
        case "near-parallel" if N > 1:
            other = A[rng.integers(0, N, N)]
            if (N + p) % 3 == 0:  # near to what two of them span
                other = other + other[::-1]
            near = other * rng.choice([1.0, -1.0, 3.0], (N, 1))
            near += 10.0 ** rng.uniform(-14.0, -2.0, (N, 1)) * rng.standard_normal((N, p))
            A = np.where(rng.random((N, 1)) < 0.6, near, A)
        case "duplicates" if N > 1:
            A = A[rng.integers(0, N, N)] * rng.choice([1.0, 1.0, -1.0, 2.0, 3.0], (N, 1))
        case "parallel to the sum":
            noise = rng.choice([0.0, 1e-12, 1e-9, 1e-6, 1e-3], (N, 1)) * rng.standard_normal((N, p))
            A = np.where(rng.random((N, 1)) < 0.6, rng.choice([1.0, -1.0], (N, 1)) + noise, A)
        case "row scales":
            A = A * magnitude(rng, scale, (N, 1))
        case "entry scales":
            A = A * magnitude(rng, scale, (N, p))
        case "sparse":
            A = A * (rng.random((N, p)) < 0.3)
        case "zero rows":
            A[rng.random(N) < 0.4] = 0.0
        case "constants":
            A = A * (rng.random(p) < 0.5)
    if category not in ("row scales", "entry scales", "integers"):
        A = A * magnitude(rng, scale)
    meets = A @ at
    room = np.abs(A) @ np.abs(at) + np.abs(A).max(axis=1, initial=0.0) * size
    slack = rng.choice([0.0, 0.0, 1.0], N) * rng.uniform(-0.3, 0.3, N) * room
    if whole:
        slack = np.round(slack)
    b = meets + slack
    pull = size if whole else size * 10.0 ** rng.uniform(-2.0, 2.0)
    center = (at if rng.random() < 0.3 else inside_of(rng, domain, size)).copy()
    if rng.random() < 0.2:
        center += pull * rng.standard_normal(p)
    alpha = 10.0 ** rng.uniform(-8.0, 8.0) if rng.random() < 0.2 else 10.0 ** rng.uniform(-3.0, 3.0)
    alpha = float(2.0 ** np.round(np.log2(alpha))) if whole else alpha
    gradient = magnitude(rng, scale) * rng.standard_normal(p)
    if whole:
        gradient = rng.integers(-4, 5, p) * 1.0
    elif rng.random() < 0.3:  # so that center - gradient / (2 alpha) is about as far as X is large
        gradient = 2.0 * alpha * pull * rng.standard_normal(p)
    top = 16.0 if scale == EXTREME else 8.0
    weights = (
        10.0 ** rng.uniform(-3.0, top, N) if rng.random() < 0.5 else 10.0 ** rng.uniform(-1, 4, N)
    )
    weights = np.round(weights) if whole else weights
    weights[rng.random(N) < 0.05] = 0.0
    floor = np.zeros(N)
    rows = rng.integers(0, 6, N) if rng.random() < 0.7 else np.full(N, rng.integers(0, 6))
    floor = np.where(rows == 1, weights, np.where(rows == 2, -weights, floor))
    floor = np.where(rows == 3, -weights * rng.random(N), floor)
    hard, equal = rows == 4, (rows == 5) & (rng.random(N) < 0.5)
    weights = np.where(hard | equal, INF, weights)
    floor = np.where(equal, -INF, floor)
    b = np.where(equal, meets, np.where(hard, np.maximum(b, meets), b))
    feasible: bool | None = True
    if category == "clash":
        # Two rows, opposite or nearly so, that are a thousandth of their terms apart, at least.
        gap = 10.0 ** rng.uniform(-3.0, 0.0) * (
            np.abs(A[0]) @ np.abs(at) + np.abs(A[0]).sum() * size
        )
        nearly = 1.0 + rng.choice([0.0, 1e-11, 1e-8, 1e-5]) * rng.standard_normal(p)
        A, b = np.concatenate([A, [-A[0] * nearly]]), np.append(b, -meets[0])
        b[0] = meets[0] - gap
        weights, floor = np.append(weights, INF), np.append(floor, 0.0)
        weights[0], floor[0], feasible = INF, 0.0, not gap > 0.0
        if gap > 0.0 and not np.isfinite(domain.diameter):
            feasible = None  # far away the gap is nothing beside the terms
    g = coldq.Affine(A, b)
    judge = judged(center, gradient, alpha, weights, floor, A, b, domain)
    enforced = bool(np.isinf(weights).any() or np.isinf(floor).any())
    in_balls = kind == "product with a ball" or (kind == "ball" and enforced)
    return Drawn(
        "affine", kind, category, (center, gradient, alpha, weights, g, domain), floor, judge,
        ALLOWED_IN_BALLS if in_balls else ALLOWED, feasible,
    )  # fmt: skip


def judged(
    center: np.ndarray, gradient: np.ndarray, alpha: float, weights: np.ndarray,
    floor: np.ndarray, A: np.ndarray, b: np.ndarray, domain: Any,
) -> Callable[[coldq.Step], float]:  # fmt: skip
    """The judge of one step's answers."""

    def judge(step: coldq.Step) -> float:
        x, lam = step.x.astype(LONG), step.multipliers.astype(LONG)
        if not (np.isfinite(x).all() and ((floor <= lam) & (lam <= weights)).all()):
            return INF
        worst = outside(domain, x)
        long_a, rows = A.astype(LONG), np.abs(A).astype(LONG)
        g = long_a @ x - b
        size = rows @ np.abs(x) + np.abs(b)
        # A row may have coordinates that are small because large ones cancel: rounding is theirs.
        largest, box = np.abs(x).max(initial=0.0), domain.box
        reach = np.minimum(
            np.maximum(-box.lower, box.upper), np.abs(center) + np.abs(gradient) / alpha
        )
        reach = max(float(largest), float(reach.max(initial=0.0)))
        size = size + rows.sum(axis=1) * (1e-6 * np.where(b == 0.0, reach, largest))
        wrong = ((lam > floor) & (g < 0)) | ((lam < weights) & (g > 0))
        off = np.where(wrong, np.abs(g) / np.where(size > 0, size, 1), 0)
        worst = max(worst, float(off.max(initial=0.0)))
        return max(worst, gain(x, lam))

    def gain(x: np.ndarray, lam: np.ndarray) -> float:
        """What x leaves to gain in the Lagrangian, relative to the objective's own terms."""
        d, c, a = gradient.astype(LONG), center.astype(LONG), LONG(alpha)
        aim = np.abs(c) + np.abs(d) / a
        reach = np.minimum(np.maximum(-domain.box.lower, domain.box.upper), aim)
        slope = d + lam @ A.astype(LONG) + 2 * a * (x - c)
        size = np.abs(d) + np.abs(lam) @ np.abs(A).astype(LONG) + 2 * a * (np.abs(x) + np.abs(c))
        left, rounding, here = LONG(0), LONG(0), at_bounds(domain.box, x)
        pieces = zip(
            parts_of(domain, here), parts_of(domain, slope), parts_of(domain, size), strict=True
        )
        for (part, y), (_, s), (_, terms) in pieces:
            more, blur = gain_in(part, y, s, terms, a)
            left, rounding = left + more, rounding + blur
        # The terms are the objective's, penalties included, but no price of a row that holds.
        own = np.sum(np.abs(d) * (np.abs(x) + np.abs(c) + 1e-3 * reach))
        own += a * np.sum(np.square(x - c))
        own += np.sum(np.abs(lam * (A.astype(LONG) @ x - b)))
        own += rounding / LONG(ALLOWED)
        return float(np.abs(left) / own) if own > 0 else float(left > 0)

    return judge


def at_bounds(box: Any, x: np.ndarray) -> np.ndarray:
    """The same point with the coordinates at a bound that are nearly there."""
    near = 1e-10 * np.minimum(np.abs(x).max(initial=0.0), np.maximum(-box.lower, box.upper))
    x = np.where(np.abs(x - box.lower) <= near, box.lower, x)
    return np.where(np.abs(x - box.upper) <= near, box.upper, x).astype(LONG)


def outside(domain: Any, x: np.ndarray) -> float:
    """How far x is outside, relative to what bounds it in its part of the domain."""
    if not ((domain.box.lower <= x) & (x <= domain.box.upper))[~in_balls(domain)].all():
        return INF
    worst = 0.0
    reach = np.where(np.isfinite(domain.box.upper), domain.box.upper, np.abs(x))
    dims = [part.dim for part in getattr(domain, "domains", (domain,))]
    reach = np.repeat(np.maximum.reduceat(reach, np.cumsum([0, *dims[:-1]])), dims)
    if hasattr(domain, "rows"):
        C, limit, low, *_ = domain.rows
        g, size = C @ x - limit, np.abs(C) @ np.maximum(np.abs(x), 1e-6 * reach) + np.abs(limit)
        off = np.where((g > 0) | np.isinf(low), np.abs(g), 0) / np.where(size > 0, size, 1)
        worst = float(off.max(initial=0.0))
    for part, y in parts_of(domain, x) if in_balls(domain).any() else ():
        if isinstance(part, coldq.Ball):
            away = np.sqrt(np.sum(np.square(y - part.center)))
            size = part.radius + np.abs(part.center).max() * LONG(1e-6)
            worst = max(worst, float((away - part.radius) / size))
    return worst


def in_balls(domain: Any) -> np.ndarray:
    """Which coordinates are a ball's."""
    parts = getattr(domain, "domains", (domain,))
    return np.repeat([isinstance(part, coldq.Ball) for part in parts], [p.dim for p in parts])


def parts_of(domain: Any, x: np.ndarray) -> list[tuple[Any, np.ndarray]]:
    domains = domain.domains if isinstance(domain, coldq.Product) else (domain,)
    ends = np.cumsum([part.dim for part in domains])
    return list(zip(domains, np.split(x, ends[:-1]), strict=True))


def gain_in(
    part: Any, x: np.ndarray, slope: np.ndarray, size: np.ndarray, a: np.longdouble
) -> tuple[np.longdouble, np.longdouble]:
    """At most what a part's coordinates leave to gain, and what of it may be rounding.

    On a simplex and a ball, the linear part of it, by its best point. How far x is outside them is
    not counted here again.
    """
    blur = ROUNDING * size
    if isinstance(part, coldq.Ball):
        if np.abs(part.center).max() > 1e10 * part.radius:
            return LONG(0), LONG(0)  # no float is in it but the center
        away, steep = x - part.center, np.sqrt(np.sum(np.square(slope)))
        far = np.sqrt(np.sum(np.square(away)))
        away = away * (part.radius / far) if far > part.radius else away
        best = np.sum(slope * away) + part.radius * steep
        interior = np.sum(np.square(slope)) / (4 * a)
        inside = part.radius - np.sqrt(np.sum(np.square(away)))
        if interior < best and steep / (2 * a) <= inside:
            best = interior
        return best, np.sqrt(np.sum(np.square(blur))) * (part.radius + np.abs(part.center).max())
    lower, upper = part.box.lower.astype(LONG), part.box.upper.astype(LONG)
    if isinstance(part, coldq.Simplex):
        left, best, price = LONG(part.total), np.zeros_like(x), LONG(0)
        for i in np.argsort(slope):  # the cheapest coordinates, filled
            best[i] = min(left, upper[i])
            price, left = (slope[i] if left > 0 else price), left - best[i]
        return np.sum((slope - price) * (x - best)), np.max(blur) * LONG(part.total)
    if isinstance(part, coldq.Box):
        return gain_in_box(lower, upper, x, slope, blur, a)
    found = LONG(0), LONG(0)
    for least in (in_floats, in_decimals):
        C, limit, low, *_ = part.rows
        nu = prices(C, limit, low, lower, upper, -slope, x, least)
        more = ROUNDING * (np.abs(nu) @ np.abs(C))
        found = gain_in_box(lower, upper, x, slope + nu @ C, blur + more, a)
        if found[0] <= found[1]:
            break
    return found


def gain_in_box(
    lower: np.ndarray, upper: np.ndarray, x: np.ndarray, slope: np.ndarray, blur: np.ndarray,
    a: np.longdouble,
) -> tuple[np.longdouble, np.longdouble]:  # fmt: skip
    move = np.clip(-slope / (2 * a), lower - x, upper - x)
    gained = -(slope * move + a * np.square(move))
    width = np.where(np.isfinite(upper - lower), upper - lower + np.abs(x), INF)
    width = np.where(blur > 0, width, 0)
    return np.sum(gained), np.sum(np.minimum(blur * width, np.square(blur) / a))


def prices(
    C: np.ndarray, limit: np.ndarray, low: np.ndarray, lower: np.ndarray, upper: np.ndarray,
    want: np.ndarray, x: np.ndarray, least: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> np.ndarray:  # fmt: skip
    """Multipliers of a polytope's rows that hold x back where it wants to go, if there are any."""
    g, size = C @ x - limit, np.abs(C) @ np.abs(x) + np.abs(limit)
    tiny = 1e-14 * np.max(np.where(np.isfinite(upper), upper, np.abs(x)), initial=0.0)
    size = size + 1e6 * tiny * np.abs(C).sum(axis=1)
    meets = np.flatnonzero((np.abs(g) <= 1e-8 * size) | np.isinf(low))
    rows = np.concatenate([C[meets], -C[meets[np.isinf(low[meets])]]]).astype(float)
    at = np.eye(x.size)
    bounds = np.concatenate([-at[x <= lower + tiny], at[x >= upper - tiny]])
    columns = np.concatenate([rows, bounds])
    scale = 2.0 ** np.floor(np.log2(np.maximum(np.abs(columns).max(axis=1, initial=0.0), 1e-300)))
    found = np.zeros(len(columns), LONG)
    if len(columns):
        found = least(columns / scale[:, None], want)
    found = found[: len(rows)] / scale[: len(rows)]
    nu = np.zeros(len(C), LONG)
    nu[meets] += found[: len(meets)]
    nu[meets[np.isinf(low[meets])]] -= found[len(meets) :]
    return nu


def in_floats(columns: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Nonnegative least squares: a sum of the columns (lines here) that is next to `want`."""
    unit = max(float(np.abs(want).max(initial=0.0)), 1e-300)
    found = nnls(columns.T, (want / unit).astype(float), maxiter=50 * len(columns) + 100)[0]
    found = found.astype(LONG) * unit
    some = found > 0
    for _ in range(3):  # what floats leave is found again among the same ones
        rest = want - found @ columns.astype(LONG)
        more = np.linalg.lstsq(columns[some].T, rest.astype(float), rcond=1e-13)[0]
        found[some] = np.maximum(found[some] + more, 0)
    return found


def in_decimals(columns: np.ndarray, want: np.ndarray) -> np.ndarray:
    """The same with 80 digits, by Lawson and Hanson's method: columns may differ in the last digit.

    What is left of `want`, or of a column by others, counts down to half of the digits.
    """
    with localcontext(Context(prec=80, Emax=10**8, Emin=-(10**8))):
        lines = [[Decimal(float(v)) for v in column] for column in columns]
        aim = [Decimal(float(v)) + Decimal(float(v - LONG(float(v)))) for v in want]
        least = sum(v * v for v in aim).sqrt() * HALF_OF_THE_DIGITS
        found, chosen, useless = [Decimal(0)] * len(lines), list[int](), set[int]()
        for _ in range(6 * len(lines)):
            rest = aim
            for k in chosen:
                rest = [r - found[k] * v for r, v in zip(rest, lines[k], strict=True)]
            others = [k for k in range(len(lines)) if k not in chosen and k not in useless]
            pulls = {k: sum(map(mul, lines[k], rest)) for k in others}
            pick = max(others, key=pulls.__getitem__, default=-1)
            if pick < 0 or pulls[pick] <= least:
                break
            chosen.append(pick)
            goal = solved_in_decimals([lines[k] for k in chosen], aim)
            if goal is None:
                useless.add(chosen.pop())
            while goal is not None:
                ways = [found[k] / (found[k] - v)
                        for k, v in zip(chosen, goal, strict=True) if v <= 0]  # fmt: skip
                step = min(ways, default=Decimal(1))
                for k, v in zip(chosen, goal, strict=True):
                    found[k] += step * (v - found[k])
                if not ways:
                    break
                for k, v in zip(tuple(chosen), goal, strict=True):
                    if v <= 0 and found[k] <= least:
                        found[k] = Decimal(0)
                        chosen.remove(k)
                        useless.clear()
                goal = solved_in_decimals([lines[k] for k in chosen], aim)
        return np.array([LONG(str(v)) for v in found])


def solved_in_decimals(lines: list[list[Decimal]], aim: list[Decimal]) -> list[Decimal] | None:
    """Least squares by Gauss's elimination on the normal equations; None if one line too many."""
    m = len(lines)
    M = [[sum(map(mul, a, b)) for b in lines] + [sum(map(mul, a, aim))] for a in lines]
    for j in range(m):
        own = sum(v * v for v in lines[j])
        if M[j][j] <= own * HALF_OF_THE_DIGITS:
            return None
        for r in range(j + 1, m):
            f = M[r][j] / M[j][j]
            M[r] = [v - f * u for v, u in zip(M[r], M[j], strict=True)]
    out = [Decimal(0)] * m
    for j in range(m - 1, -1, -1):
        out[j] = (M[j][m] - sum(M[j][k] * out[k] for k in range(j + 1, m))) / M[j][j]
    return out


def _draw(kind: str) -> Draw:
    return lambda rng, scale: draw_step(rng, scale, kind)


DRAWS: dict[tuple[str, str], Draw] = {("affine", kind): _draw(kind) for kind in DOMAINS}
