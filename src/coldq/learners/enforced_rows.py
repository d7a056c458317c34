"""Rows that a price cannot keep: enforced where they have a common point, reduced where not.

A step weighs rows by prices, and a steep or thin row may ask for more than any price. Where a
decision breaks an expected row, the step is taken again with all rows enforced. Where the margin
leaves them no common point, the decision keeps the lowest limits so far instead, with the same room
beyond them for every row, as far as there is room and up to the row's margin. Where these have none
either, no decision has kept all limits so far, and this one is reduced. Whether there is a common
point is decided by the least violation beyond the rows' tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array
from coldq.base.contractions import Contraction, dot
from coldq.base.errors import StepFailed
from coldq.base.protocols import Domain
from coldq.learners.best_response import (
    failed_members,
    least_violation,
    native_operands,
    unanswered,
)
from coldq.learners.forecasts import ends_of
from coldq.slot.constraints import Affine, LogCapacity, SparseAffine, Stacked
from coldq.slot.constraints.constraint import Kind
from coldq.slot.domains import scale_of
from coldq.slot.step import solve

TOLERANCE = 1e-8  # of a row's terms: a step lands on the boundary, and rounding must not count
SHARE_PRECISION = 2.0**-20  # of the share of a margin that leaves rows a common point
MAX_TRIALS = 75  # of shares; every third at least halves what is left

row_slack = Contraction(
    "row_slack", "The slack of rows, of (x, g, J, R, tolerance), see :func:`slack_at`."
)
at_once = Contraction(
    "margin_kept",
    "What :func:`margin_kept` returns of affine rows, or a point that is NaN, of (near, A, b, "
    "margin, worst, the domain's operands, R, tolerance).",
)


def slack_at(x: Array, g: Array, J: Array, R: ArrayLike, tolerance: float = TOLERANCE) -> Array:
    """Above what each row counts as violated at x, given its values and slopes there.

    It is the `tolerance` times the size of the row's terms, ``sum_i |J_i x_i| + |J x - g|``, which
    is R |J| at most and a millionth of that at least. So a bound that is meant as no limit, or
    coordinates in other units, do not hide what is violated in the row's own. Of an unbounded
    domain, R is the decision's own size.
    """
    width: Array = np.where(np.isfinite(R), R, np.sqrt(dot(x, x)))
    return row_slack(x, g, J, width, tolerance)


def keeps(g: Any, x: Array, R: Any, tolerance: float) -> np.ndarray:
    """Whether x keeps all rows, up to their tolerance."""
    value, slopes = g.value(x), g.jacobian(x)
    if slopes.shape != (*value.shape, x.shape[-1]):
        slopes = np.broadcast_to(slopes, (*value.shape, x.shape[-1]))
    slopes = np.ascontiguousarray(slopes)
    return ~np.any(value > slack_at(x, value, slopes, R, tolerance), axis=-1)


def room_of(g: Any, domain: Any) -> Array:
    """The largest margin that each row by itself leaves a decision: ``-min over X of g^n(x)``.

    Infinity where that has no closed form. It is negative where no decision keeps the row.
    """
    if isinstance(g, Stacked):
        rooms = [room_of(part, domain) for part in g.parts]
        batch = np.broadcast_shapes(*(room.shape[:-1] for room in rooms))
        return np.concatenate([np.broadcast_to(r, (*batch, r.shape[-1])) for r in rooms], axis=-1)
    if isinstance(g, Affine | SparseAffine):
        return g.b - ends_of(g, domain)[0]
    if isinstance(g, LogCapacity) and getattr(domain, "around", None) is domain:
        return -g.value(domain.upper)
    return np.full(g.n_constraints, np.inf)


def has_common_point(g: Any, domain: Domain, near: Array, tolerance: float) -> np.ndarray:
    """Whether some decision keeps all rows."""
    R = scale_of(domain.diameter)
    return keeps(g, least_violation(g, domain, near, by_slope=True), R, tolerance)


def margin_kept(
    g: Any, margin: Array, worst: Array, domain: Domain, near: Array, tolerance: float
) -> tuple[Array, np.ndarray, np.ndarray, Array]:
    """A margin that leaves rows a common point; whether it is whole, or reduced; and such a point.

    `worst` is the margin that the lowest limits so far ask for, below zero where they are above the
    expected ones. Between whole and reduced is what keeps these and the same room beyond, in units
    of x, for every row. Reduced is the largest share of `worst`; where there is no point without a
    margin, it is zero and the point one of least violation.
    """
    if (on := native_operands(g, domain)) is not None:
        kept, whole, reduced, point = at_once(
            near, g.A, g.b, margin, worst, *on, scale_of(domain.diameter), tolerance
        )
        if point.shape == near.shape:
            found = kept, np.array(whole, bool), np.array(reduced, bool), point
            for some, rows, its in unanswered(point, g, domain):
                again = _margin_kept(rows, margin[some], worst[some], its, near[some], tolerance)
                for array, one in zip(found, again, strict=True):
                    array[some] = one
            return found
    return _margin_kept(g, margin, worst, domain, near, tolerance)


def _margin_kept(
    g: Any, margin: Array, worst: Array, domain: Domain, near: Array, tolerance: float
) -> tuple[Array, np.ndarray, np.ndarray, Array]:
    """What :func:`margin_kept` returns, of any rows on any domain."""
    R = scale_of(domain.diameter)
    J = np.ascontiguousarray(np.broadcast_to(g.jacobian(near), (*margin.shape, near.shape[-1])))
    slopes = np.sqrt(dot(J, J))
    slopes = np.where(slopes > 0.0, slopes, 1.0)

    def tried(margin: Array) -> tuple[Array, np.ndarray, Array]:
        """A point of least violation, whether it keeps the rows, and what it breaks them by."""
        tight = g.tightened(margin)
        point = least_violation(tight, domain, near, by_slope=True)
        excess = dot(np.maximum(tight.value(point), 0.0), 1.0 / slopes)
        return point, keeps(tight, point, R, tolerance)[..., None], excess[..., None]

    point, whole, _ = tried(margin)
    if whole.all():
        return margin, whole[..., 0], ~whole[..., 0], point
    asked, worst = np.minimum(margin, np.maximum(worst, 0.0)), np.minimum(margin, worst)
    (there, kept, _), (least, meets, _) = tried(worst), tried(np.zeros(margin.shape))
    rest = slopes * ((margin - worst) / slopes).max(axis=-1, keepdims=True)

    def part(share: Array) -> Array:
        less = np.where(kept, np.minimum(margin, worst + share * rest), share * asked)
        return np.where(whole, margin, less)

    low, high, point = largest_share(
        lambda share: tried(part(share)),
        ~whole & (kept | meets),
        np.where(whole, point, np.where(kept, there, least)),
    )
    # Just beyond that the least violation has one place, which rounding moves little.
    there = tried(part(high))[0]
    sound = keeps(g.tightened(part(low)), there, R, tolerance)[..., None] & ~whole
    reduced = ~(whole | kept)
    return part(low), whole[..., 0], reduced[..., 0], np.where(sound, there, point)


def largest_share(
    tried: Callable[[Array], tuple[Array, np.ndarray, Array]], wanted: np.ndarray, point: Array
) -> tuple[Array, Array, Array]:
    """The largest share with a common point, one just beyond, and that point.

    `tried` tells of a share a point, whether it keeps the rows, and the least violation. Of rows
    convex in x and the share that is convex in the share, and the secant through two shares beyond
    leads back to the largest one.
    """
    low, high = np.zeros(wanted.shape), np.ones(wanted.shape)
    excess = tried(high)[2]
    beyond, beyond_excess, probing = high, excess, np.zeros(wanted.shape, bool)
    for trial in range(MAX_TRIALS):
        searching = wanted & (high - low > SHARE_PRECISION)
        if not searching.any():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            secant = high - excess * (beyond - high) / (beyond_excess - excess)
        leads = (low < secant) & (secant < high) & (trial % 3 > 0) & ~probing
        share = np.where(leads, secant, 0.5 * (low + high))
        share = np.where(probing, low + 0.5 * SHARE_PRECISION, share)
        there, has, its = tried(share)
        has, lacks = searching & has, searching & ~has
        beyond, beyond_excess = np.where(lacks, (high, excess), (beyond, beyond_excess))
        high, excess = np.where(lacks, (share, its), (high, excess))
        low, point = np.where(has, share, low), np.where(has, there, point)
        probing = has & leads
    return low, high, point


def members_of(g: Any, where: Any, batch: tuple[int, ...]) -> Any:
    """The constraint of some members of a batch, those at `where`, as a batch of their own."""
    return g.member(where, batch) if isinstance(g, Kind) else g


def enforced(
    g: Any, margin: Array, worst: Array, points: Array, directions: Array, alphas: Array,
    broken: np.ndarray, domain: Domain, near: Array, tolerance: float,
) -> tuple[Array, Array, np.ndarray]:  # fmt: skip
    """The steps of a pool (..., K, p) again, with all rows enforced, where a member is `broken`.

    Returns these, the margin that they keep, and where it is reduced. Where it is not whole, all of
    the pool take the same point: one of the rows so tightened, or of least violation where no
    decision keeps the rows even without a margin.
    """
    some = np.nonzero(broken) if broken.ndim else ()
    rows = members_of(g, some, broken.shape)
    kept, whole, short, point = margin_kept(
        rows, margin[some], worst[some], domain, near[some], tolerance
    )
    found = np.array(np.broadcast_to(point[..., None, :], points[some].shape))
    if whole.any():  # else the rows have next to nothing but that point in common
        those = np.nonzero(whole) if whole.ndim else ()
        tight = members_of(rows, those, whole.shape).tightened(margin[some][those])
        # The pool is the leading axis here, so that the rows' own axes are those of a batch.
        center, direction = (
            np.ascontiguousarray(np.moveaxis(a[some][those], -2, 0)) for a in (points, directions)
        )
        alpha = np.ascontiguousarray(np.moveaxis(alphas[some][those], -1, 0))
        stepped, failed = _attempted(center, direction, alpha, tight, domain)
        sound = keeps(tight, stepped, scale_of(domain.diameter), tolerance) & ~failed
        stepped = np.where(sound[..., None], stepped, point[those])
        found[those] = np.moveaxis(stepped, 0, -2)
    points, margin, reduced = np.array(points), np.array(margin), np.zeros(broken.shape, bool)
    points[some], margin[some], reduced[some] = found, kept, short
    return points, margin, reduced


def _attempted(
    center: Array, direction: Array, alpha: Array, tight: Any, domain: Domain
) -> tuple[Array, np.ndarray]:
    """The steps with enforced rows, and which of them failed."""
    failed, hard = np.zeros(center.shape[:-1], bool), np.full(tight.n_constraints, np.inf)
    try:
        return solve(center, direction, alpha, hard, tight, domain).x, failed
    except StepFailed as error:
        if error.step is None:
            return center, ~failed
        failed = failed_members(error, failed.shape)
        return np.where(np.isfinite(error.step.x), error.step.x, center), failed
