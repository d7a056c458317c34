"""Capacity planned by hand: the best decision for the last slot, with a safety margin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, non_negative
from coldq.base.contractions import Contraction, dot
from coldq.base.errors import InvalidInput, StepFailed
from coldq.base.protocols import Domain, Problem
from coldq.learners.anticipated import Anticipated
from coldq.learners.card import WHOLE_LOSS, WHOLE_STEP, Card, reference
from coldq.learners.fused import MAX_NEWTON_ROWS, operands_of
from coldq.learners.learner import Learner, Place
from coldq.learners.revealed import require_finite
from coldq.learners.state import State
from coldq.slot.constraints import (
    Affine,
    BallRows,
    LogCapacity,
    MaxAffine,
    QuadraticConstraint,
    SparseAffine,
    Stacked,
    Unconstrained,
)
from coldq.slot.domains import Box, scale_of
from coldq.slot.feedback import Feedback
from coldq.slot.minimisers import nearest_minimiser
from coldq.slot.step import solve

# The proximal term of least violation, relative to the rows' slopes over R: it falls from step to
# step. A light one leads farther where rows meet at a small angle, but leaves fewer digits of x.
PROXIMAL_WEIGHT, LEAST_PROXIMAL_WEIGHT, PROXIMAL_FALL = 1e-3, 1e-8, 0.1
MAX_PROXIMAL_STEPS = 40
KEPT = 1e-11  # of a row's terms: what a step leaves of a violation, and no next one can take away

at_once = Contraction(
    "least_violation",
    "A decision of least violation, or NaN, of (near, A, b, the domain's operands, width, "
    "by_slope).",
)


@dataclass(frozen=True, eq=False, slots=True)
class RowState(State):
    """t, x_t, and a zero for each row."""

    rows: Array


@dataclass(frozen=True, eq=False, repr=False, init=False)
class BestResponse(Learner):
    """The best decision for the last slot's functions, each row tightened by a safety margin.

        x_{t+1} = argmin of f_t(x) over x in X with g_t^n(x) + h |b^n| <= 0 for all n

    with b^n the limit of row n: that of affine rows, the demand of a capacity, the limit of a
    quadratic. If no decision keeps all rows, the one of least total violation is taken. This is how
    capacity is planned by hand; it has no theory, and what h should be it does not say
    (:func:`coldq.tune_safety_margin` tries).

    Parameters
    ----------
    domain
        The feasible set X.
    safety_margin
        h >= 0, a number, or an array over leading axes.
    tighten
        A function of a constraint and h that tightens it in another way.

    >>> import coldq
    >>> learner = coldq.BestResponse(coldq.Box(0.0, 9.0, dim=2), safety_margin=0.25)
    >>> demand = coldq.Affine([[-1.0, -1.0]], [-8.0])  # x_1 + x_2 >= 8
    >>> learner.update(learner.init(1), coldq.Feedback(coldq.Linear([1.0, 2.0]), demand)).x
    array([9., 1.])
    """

    card: ClassVar[Card] = Card(
        needs=WHOLE_STEP | {WHOLE_LOSS},
        assumes=(),
        claims=(),
        certainty="exact",
        bibtex=reference("safety-margin"),
    )

    state_type = RowState
    domain: Domain
    safety_margin: Array
    tighten: Callable[[Any, Array], Any] | None
    horizon: int | None
    _leading = ("safety_margin",)

    def __init__(
        self,
        domain: Domain,
        safety_margin: ArrayLike = 0.0,
        *,
        tighten: Callable[[Any, Array], Any] | None = None,
    ) -> None:
        if tighten is not None and not callable(tighten):
            raise InvalidInput(f"tighten must be a function or None, but is {tighten!r:.200}")
        self._take(
            domain, safety_margin=non_negative("safety_margin", safety_margin), tighten=tighten
        )

    @classmethod
    def for_problem(cls, problem: Problem, **parameters: Any) -> BestResponse:
        """For a problem's domain.

        >>> import coldq
        >>> problem = coldq.problems.Autoscale()
        >>> coldq.BestResponse.for_problem(problem, safety_margin=0.5).safety_margin
        array(0.5)
        """
        parameters = {"tighten": getattr(problem, "tighten", None)} | parameters
        return cls._of(problem, **parameters)

    def update(self, state: Any, feedback: Feedback, played: Place = None) -> Any:
        """The state of the next slot."""
        self.observe(state, feedback, "rows", played)
        g: Any = feedback.constraint
        if isinstance(g, Anticipated):  # what a learner around this one expects
            g = g.for_step
        tight = (self.tighten or tightened_by)(g, self.safety_margin)
        x = respond(feedback.loss, tight, self.domain, state.x)
        return self.new_state(state.t + 1, x, np.zeros(state.rows.shape))


def respond(loss: Any, constraint: Any, domain: Domain, near: Array) -> Array:
    """The cheapest decision that keeps all rows, or else one of least total violation.

    Of several it is the one nearest to `near` (..., p), whose leading axes are the batch.
    """
    start = near if near.ndim > 1 else near[None]
    best, exists = nearest_minimiser(Feedback(loss, constraint), domain, start)
    if not exists.all():
        least = least_violation(constraint, domain, start)
        best = np.where(exists[..., None], best, least)
    return require_finite(np.array(best.reshape(near.shape)))


def tightened_by(g: Any, safety_margin: Array) -> Any:
    """A constraint with each row tightened by a share of its own limit."""
    if isinstance(g, Unconstrained) or not safety_margin.any():
        return g
    if isinstance(g, Stacked):
        return Stacked(*(tightened_by(part, safety_margin) for part in g.parts))
    if isinstance(g, MaxAffine):
        return MaxAffine(g.A, g.b - safety_margin[..., None, None] * np.abs(g.b))
    if isinstance(g, LogCapacity):
        limits = g.demand[..., None]
    elif isinstance(g, Affine | SparseAffine):
        limits = g.b
    elif isinstance(g, BallRows):
        limits = g.limit
    elif isinstance(g, QuadraticConstraint):
        limits = g.r
    else:
        raise InvalidInput(
            f"a safety margin is a share of a row's limit, which a {type(g).__name__} does not have"
        )
    return g.tightened(safety_margin[..., None] * np.abs(limits))


def least_violation(g: Any, domain: Domain, near: Array, *, by_slope: bool = False) -> Array:
    """A decision of least ``sum_n [g^n(x)]_+``: proximal steps, each from the one before.

    `by_slope` divides every row by its slope, so that rows of unlike units count alike.
    """
    x = np.ascontiguousarray(near)
    if (on := native_operands(g, domain)) is not None:
        point: Array = at_once(x, g.A, g.b, *on, _width(domain), float(by_slope))
        if point.shape == x.shape:
            for some, rows, its in unanswered(point, g, domain):
                point[some] = _least_violation(rows, its, x[some], by_slope)
            return point
    return _least_violation(g, domain, x, by_slope)


def native_operands(g: Any, domain: Any) -> tuple[Any, ...] | None:
    """What the native core takes of a domain where it finds points: of a few dense rows."""
    if type(g) is not Affine or not 0 < g.n_constraints <= MAX_NEWTON_ROWS:
        return None
    alone = type(domain) is Box or not domain.batch
    return operands_of(domain, g.n_constraints) if alone else None


def unanswered(point: Array, g: Affine, domain: Any) -> Iterator[tuple[Any, Affine, Any]]:
    """Where points (..., p) are NaN, if any is; the rows and the domain of those members."""
    batch, lost = point.shape[:-1], np.isnan(point).any(axis=-1)
    if lost.any():
        some: Any = np.nonzero(lost) if batch else ()
        if domain.batch:
            lower, upper = (
                np.broadcast_to(end, point.shape)[some] for end in (domain.lower, domain.upper)
            )
            domain = Box(lower, upper)
        yield some, g.member(some, batch), domain


def _least_violation(g: Any, domain: Domain, x: Array, by_slope: bool) -> Array:
    """A decision of least violation by the steps that any rows on any domain have."""
    n = g.n_constraints
    J = np.ascontiguousarray(np.broadcast_to(g.jacobian(x), (*x.shape[:-1], n, x.shape[-1])))
    slopes = np.sqrt(dot(J, J))
    weights = np.ones(n)
    if by_slope:
        weights = 1.0 / np.where(slopes > 0.0, slopes, 1.0)
        slopes = slopes * weights
    slope = slopes.max(axis=-1, initial=0.0)
    width = _width(domain)
    unit = np.where(slope > 0.0, slope, 1.0) / width
    zero, moving, weight = np.zeros(x.shape), np.ones(x.shape[:-1], bool), PROXIMAL_WEIGHT
    for round_ in range(MAX_PROXIMAL_STEPS):
        moving &= _is_violated(g, x)
        if not moving.any():
            break
        try:
            step = solve(x, zero, weight * unit, weights, g, domain).x
        except StepFailed as error:
            failed = failed_members(error, moving.shape)
            if error.step is None or (round_ == 0 and (failed & moving).any()):
                raise
            step = np.where(failed[..., None], x, error.step.x)
        weight = max(PROXIMAL_FALL * weight, LEAST_PROXIMAL_WEIGHT)
        # Each instance ends by itself, so that its bits do not depend on those beside it.
        still = np.abs(step - x).max(axis=-1) <= 1e-12 * width
        x = np.where(moving[..., None], step, x)
        moving &= ~still
    return x


def _is_violated(g: Any, x: Array) -> np.ndarray:
    """Whether x breaks a row by more than rounding."""
    value, slopes = g.value(x), g.jacobian(x)
    slopes = np.ascontiguousarray(np.broadcast_to(slopes, (*value.shape, x.shape[-1])))
    here = x[..., None, :]
    terms = dot(np.abs(slopes), np.abs(here)) + np.abs(dot(slopes, here) - value)
    return np.any(value > KEPT * terms, axis=-1)


def failed_members(error: StepFailed, batch: tuple[int, ...]) -> np.ndarray:
    """Which members of a batch have no answer."""
    found = np.zeros(batch, bool)
    for where in error.indices:
        found[where] = True
    return found


def _width(domain: Domain) -> Array:
    """The diameter, or 1 where it is infinite."""
    return np.where(np.isfinite(domain.diameter), scale_of(domain.diameter), 1.0)
