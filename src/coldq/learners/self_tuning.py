"""SelfTuning: no horizon, no bounds, no units, and the violation rate you name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, non_negative, real_array
from coldq.base.contractions import dot
from coldq.base.errors import InvalidInput, UnlikelyUnits, warn
from coldq.base.protocols import Domain
from coldq.learners.card import WHOLE_STEP, Card, Claim, Rate, reference
from coldq.learners.enforced_rows import TOLERANCE, enforced, keeps
from coldq.learners.forecast_margins import (
    ForecastMargins,
    given_constraint,
    require_alike,
    require_cores,
    whole,
)
from coldq.learners.forecast_state import ForecastState
from coldq.learners.forecasts import DEFAULT, Last
from coldq.learners.fused import tuned_at_once
from coldq.learners.learner import Algorithm, Place, Shape, require_not_negative
from coldq.learners.pool import (
    HEAVIEST,
    HEDGE_SIZE,
    MAX_ROUNDING_LOSS,
    SQUARES,
    STEEPEST,
    play,
    weigh,
)
from coldq.learners.state import axes
from coldq.learners.units import box_in, rows_in, units_of
from coldq.slot.domains import diameter_of, require_single
from coldq.slot.feedback import Feedback, Forecast
from coldq.slot.losses import Linear
from coldq.slot.step import solve

STEP_SIZES = tuple(4.0**-k for k in range(-1, 7))
ROW_PRICE = 100.0  # the price of a row of slope 1 against a loss whose step has a slope below 1
WARNED_WIDTH_RATIO = 1e4  # of two coordinates: the narrow one hardly counts in a step
MIN_SLOPE_SHARE = 1e-6  # of the steepest slope seen: a row so flat at x_t is steeper elsewhere


@dataclass(frozen=True, eq=False, slots=True)
class SelfTuningState(ForecastState):
    """The state of :class:`SelfTuning`: what forecasts and margins keep, and the pool.

    The pool's are `points` (K, p), their `weights` and summed `losses` (K).
    `hedge` has the hedge's mixability gap, the sum of squared gradients, the largest gradient, and
    the step size of most weight. `slopes` (N) are the steepest that rows have been.
    """

    version: ClassVar[int] = 2

    slopes: Array
    points: Array = field(metadata=axes("step", "p"))
    hedge: Array = field(metadata=axes("count"))
    losses: Array = field(metadata=axes("step"))
    weights: Array = field(metadata=axes("step"))

    @property
    def step_size(self) -> Array:
        """The step of the pool with the greatest weight, in units of ``sqrt(S) / R``."""
        return self.hedge[..., HEAVIEST]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class SelfTuning(Algorithm):
    """A learner to pick without thinking: it keeps the violation rate you name, in your units.

    No horizon, no bounds on gradients or constraints, no units. At the end of slot t:

    1. ``d = grad f_t(x_t)``, ``S = sum of |d|^2``, ``D = max |d|``.
    2. Slot t is violated if any ``g_t^n(x_t)`` is above 1e-8 times the size of its terms. It is
       booked against the error budget (:mod:`~coldq.learners.error_budget`), unless it was
       infeasible: no decision kept g_t.
    3. Forecasts of g_{t+1} are judged, and the best is taken
       (:mod:`~coldq.learners.forecast_margins`).
    4. The margin is ``lambda sigma^n``, lambda by adaptive conformal inference; the largest
       surprises M^n at least where the budget is spent.
    5. A pool of step sizes c = 4, 1, ..., 4^-6 is weighted by AdaHedge on ``<d, x^c - x_t>``.
    6. Each steps from its own x^c, with ``alpha = c sqrt(S) / R`` and ``F = D + 2 alpha R``:

           min over x in X of <d, x - x^c> / F + alpha |x - x^c|^2 / F
                              + 100 sum_n [forecast^n(x) + margin^n]_+ / |grad forecast^n(x_t)|

    7. x_{t+1} is the weighted mean of the pool. If it breaks a row, all step again with the rows
       enforced; where these have no common point, x_{t+1} keeps all limits so far, or, if no
       decision does, is *reduced* (:mod:`~coldq.learners.enforced_rows`).

    Decisions do not depend on the units of the loss or of any row. Where a coordinate of a box is
    100 times as wide as another, all of this is in units in which they are about as wide. What has
    no unit yet is put in a way that keeps this: before the first gradient that is not zero,
    alpha / F is that of a first one; a row without a slope (0'x <= b) counts by its sign and has no
    margin; a curved row that is flat at x_t takes the steepest slope seen, or else |g^n| / R; a
    surprise that never came leaves the margin zero.

    Parameters
    ----------
    domain
        The feasible set X, bounded.
    violation_rate
        q in (0, 1): the share of slots in which any row may be violated. None: no margin.
    forecasts
        Some of :mod:`coldq.forecasts`; the last constraint is always one of them.
    pool
        The step sizes c.
    tolerance
        A row is violated above ``tolerance (sum_i |J_i x_i| + |J x - g|)``, where J are its slopes:
        the size of its terms, of an affine row ``sum_i |A_i x_i| + |b|``, counted as R |J| at most
        and as a millionth of that at least.

    Notes
    -----
    For every run, without assumptions, and any slots a to b, at most ``q (b - a + 1)`` and a little
    more are violated: the slack, 20 at most, and in a stretch one more for each time that the
    record of surprises is broken by a factor e. Infeasible slots, and violated ones after a reduced
    decision, are counted apart. See docs/violation-rate-proofs.md for the proof.

    References
    ----------
    The step is that of Wang, Yan and Liu (AAAI 2025); the factor is adaptive conformal inference of
    Gibbs and Candes (NeurIPS 2021), on decisions as in Lekeufack, Angelopoulos, Bajcsy, Jordan and
    Malik (arXiv 2310.05921); the pool is that of Zhang, Lu and Zhou (NeurIPS 2018) under
    AdaHedge of de Rooij, van Erven, Grunwald and Koolen (JMLR 2014).

    >>> import coldq
    >>> learner = coldq.SelfTuning(coldq.Box(0.0, 1.0, dim=2), violation_rate=0.01)
    >>> state = learner.init(n_constraints=1)
    >>> revealed = coldq.Feedback(coldq.Linear([-1.0, -2.0]), coldq.Affine([[1.0, 1.0]], [1.0]))
    >>> for _ in range(20):
    ...     state = learner.update(state, revealed)
    >>> state.x.round(6), float(state.overdraft), bool(state.safe)
    (array([0., 1.]), 0.0, False)
    """

    card: ClassVar[Card] = Card(
        needs=WHOLE_STEP,
        assumes=(
            "bounded domain",
            "regret: against decisions that keep the margin too",
            "violation: no violation_rate, the last constraint as the only forecast, a feasible "
            "decision in every slot",
        ),
        claims=(
            Claim("convex", "fixed", Rate(0), Rate(0.5), Rate(0.5, vx=0.5)),
            Claim("convex", "time-varying", Rate(vg=1), Rate(0.5), Rate(0.5, vx=0.5)),
        ),
        certainty="exact",
        bibtex=reference(
            "wang2025coldq",
            "gibbs2021adaptive",
            "lekeufack2023conformal",
            "zhang2018adaptive",
            "derooij2014follow",
        ),
    )

    state_type = SelfTuningState
    domain: Domain
    violation_rate: float | None
    forecasts: tuple[Any, ...]
    pool: Array
    tolerance: float
    horizon: int | None
    _margins: ClassVar[ForecastMargins]  # set for each
    _R: ClassVar[Array]
    _units: ClassVar[Array | None]
    _inside: ClassVar[Any]

    def __init__(
        self,
        domain: Domain,
        violation_rate: float | None = None,
        *,
        forecasts: Any = DEFAULT,
        pool: ArrayLike = STEP_SIZES,
        tolerance: float = TOLERANCE,
    ) -> None:
        require_single(domain, "SelfTuning")
        diameter = diameter_of(domain, "SelfTuning needs")
        units = units_of(domain)
        if units is None:
            _doubt_widths(domain)
        sizes = real_array("pool", pool, 1)
        if sizes.ndim != 1 or not sizes.size or not (sizes > 0.0).all():
            raise InvalidInput(f"pool must be some positive step sizes, but is {pool!r:.200}")
        ahead = ForecastMargins(forecasts, violation_rate, tolerance)
        inside = None
        if units is not None:
            inside = SelfTuning(
                box_in(units, domain), violation_rate, forecasts=ahead.forecasts, pool=sizes,
                tolerance=tolerance,
            )  # fmt: skip
            diameter = inside._R
        self._take(
            domain,
            violation_rate=ahead.violation_rate,
            forecasts=ahead.forecasts,
            pool=sizes,
            tolerance=ahead.tolerance,
            _margins=ahead,
            _R=np.array(diameter),
            _units=units,
            _inside=inside,
        )

    def init(self, n_constraints: int, start: Place = None, batch: Shape = ()) -> SelfTuningState:
        """The state before slot 1: all of the pool start where the learner does."""
        rows = self._count(n_constraints)
        t, x = self.first_slot(start, batch)
        lead, K = t.shape, self.pool.size
        points = np.repeat(x[..., None, :], K, axis=-2)
        hedge = np.zeros((*lead, HEDGE_SIZE))
        hedge[..., HEAVIEST] = self.pool[0]
        return self.new_state(
            t, x, *self._margins.first(lead, rows), np.zeros((*lead, rows)), points, hedge,
            np.zeros((*lead, K)), np.full((*lead, K), 1.0 / K),
        )  # fmt: skip

    def update(
        self, state: SelfTuningState, feedback: Feedback, played: Place = None
    ) -> SelfTuningState:
        """The state of the next slot."""
        if self._units is None and (done := tuned_at_once(self, state, feedback, played)):
            return done
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is told below
            return self._step_by_step(state, feedback, played)

    def _step_by_step(
        self, state: SelfTuningState, feedback: Feedback, played: Place = None
    ) -> SelfTuningState:
        """The state of the next slot, on any rows and any domain, whatever happens."""
        gradient = self.gradient_of(state, feedback, played)
        if self._units is not None:
            return self._update_in_units(self._units, state, gradient, feedback, played)
        seen = self._margins.look(self, state, feedback, played)
        pool = weigh(gradient, state, self.pool, self._R)
        _require_squares("gradient of the loss", gradient, pool.hedge)
        points, slopes = self._step(state, pool, seen)
        x: Array = play(pool.weights, points)
        reduced = np.zeros(state.t.shape, bool)
        broken = ~keeps(seen.expected.tightened(seen.margin), x, self._R, self.tolerance)
        if broken.any():
            again, margin, reduced = enforced(
                seen.expected, seen.margin, seen.worst, state.points, pool.directions, pool.alphas,
                broken, self.domain, x, self.tolerance,
            )  # fmt: skip
            points = np.where(broken[..., None, None], again, points)
            x = np.where(broken[..., None], play(pool.weights, points), x)
            seen = seen._replace(margin=margin)
        return self.new_state(
            state.t + 1, x, *self._margins.arrays(x, seen, reduced), slopes, points, pool.hedge,
            pool.losses, pool.weights,
        )  # fmt: skip

    def _update_in_units(
        self, units: Array, state: SelfTuningState, gradient: Array, feedback: Feedback,
        played: Place,
    ) -> SelfTuningState:  # fmt: skip
        """The state of the next slot, in units in which all coordinates are about as wide."""
        n = state.margin.shape[-1]
        self.values_of(state, feedback, state.margin.shape, played)  # says what is wrong
        given = given_constraint(feedback, n)
        if given is not None:
            require_alike(given, whole(feedback.constraint, n), state.t.shape)
        found = self._inside.update(
            replace(
                state,
                x=state.x / units,
                points=state.points / units,
                fingerprint=self._inside._fingerprint,
            ),
            Feedback(
                Linear(gradient * units),
                rows_in(units, whole(feedback.constraint, n)),
                feedback.slot,
                None if given is None else Forecast(constraint=rows_in(units, given)),
            ),
            None if played is None else self._place(state, played) / units,
        )
        x, points = found.x * units, found.points * units
        return replace(found, x=x, points=points, fingerprint=self._fingerprint)

    def _step(self, state: SelfTuningState, pool: Any, seen: Any) -> tuple[Array, Array]:
        """Every member's step with rows at a price, and the steepest that rows have been."""
        rho, slopes = self._slopes(state, seen.expected)
        # The pool is the leading axis here, so that the constraint's own axes are those of a batch.
        center, direction = (
            np.ascontiguousarray(np.moveaxis(a, -2, 0)) for a in (state.points, pool.directions)
        )
        alpha = np.ascontiguousarray(np.moveaxis(pool.alphas, -1, 0))
        tight = seen.expected.tightened(seen.margin)
        step = solve(center, direction, alpha, ROW_PRICE / rho, tight, self.domain)
        return np.ascontiguousarray(np.moveaxis(step.x, 0, -2)), slopes

    def _slopes(self, state: SelfTuningState, expected: Any) -> tuple[Array, Array]:
        """rho^n, how steep the expected rows are at x_t, and the steepest that they have been."""
        shape = (*state.margin.shape, state.x.shape[-1])
        J = np.ascontiguousarray(np.broadcast_to(expected.jacobian(state.x), shape))
        norms = np.sqrt(dot(J, J))
        _require_squares("slope of the constraint", J, norms)
        steepest = np.maximum(state.slopes, norms)
        rho = np.maximum(norms, MIN_SLOPE_SHARE * steepest)
        if not rho.all():
            height = np.abs(expected.value(state.x)) / self._R
            rho = np.where(rho > 0.0, rho, np.where(height > 0.0, height, 1.0))
        return rho, steepest

    def bound_report(self, state: SelfTuningState, delay: int = 0) -> dict[str, Any]:
        """What was booked so far, and the overdraft beside the most that it can be.

        >>> import coldq
        >>> learner = coldq.SelfTuning(coldq.Box(0.0, 1.0, dim=1), violation_rate=0.1)
        >>> found = learner.bound_report(learner.init(1))
        >>> float(found["overdraft"]), float(found["overdraft_bound"])
        (0.0, 5.0)
        """
        return self._margins.bound_report(state, delay)

    def regret_bound(self, state: SelfTuningState, path_length: ArrayLike = 0.0) -> Array:
        """The most that the losses so far can be above those of decisions with such a path.

        Of decisions that keep the rows stepped on; docs/violation-rate-proofs.md has the proof.

        >>> import coldq
        >>> learner = coldq.SelfTuning(coldq.Box(0.0, 1.0, dim=1), pool=[1.0])
        >>> learner.regret_bound(learner.init(0))  # nothing was lost so far
        array(0.)
        """
        path, R = non_negative("path_length", path_length), self._R
        if self._units is not None:
            path = path / self._units.min()  # no longer than that in these units
        log = np.log(self.pool.size)
        squares, steepest = state.hedge[..., SQUARES], state.hedge[..., STEEPEST]
        spans = self.pool * (1.0 + 2.0 * path / R)[..., None] + 0.5 / self.pool
        rounding = 2.0 * MAX_ROUNDING_LOSS * R * np.sqrt(squares * np.maximum(state.t - 1.0, 0.0))
        root = R * np.sqrt(squares) * (spans.min(axis=-1) + np.sqrt(log))
        return np.asarray(root + R * steepest * (4.0 / 3.0 * log + 2.0) + rounding)

    @property
    def tracks_slots(self) -> bool:
        """Whether the best decision of every slot is one that :meth:`regret_bound` is about.

        It is where rows are stepped on as they were last, without a margin.
        """
        return self.violation_rate is None and self.forecasts == (Last(),)

    def require_sound(self, state: SelfTuningState) -> None:
        self._margins.require_sound(state)
        K, n, p = self.pool.size, state.margin.shape[-1], self.domain.dim
        cores = {
            "slopes": (n,), "points": (K, p), "hedge": (HEDGE_SIZE,),
            "losses": (K,), "weights": (K,),
        }  # fmt: skip
        require_cores(state, cores)
        if not self.domain.contains(state.points).all():
            raise InvalidInput(f"points must lie in the domain {self.domain}")
        require_not_negative(state, "weights", "hedge", "losses")


def _require_squares(name: str, given: Array, sums: Array) -> None:
    """That sums of the squares of what is given are finite."""
    if not np.isfinite(sums).all():
        raise InvalidInput(
            f"the {name} is too large, up to {np.abs(given).max():.3g}: its squares are not "
            "finite. Give it in a larger unit"
        )


def _doubt_widths(domain: Domain) -> None:
    """Warn where coordinates have units so unlike that the narrow ones hardly count."""
    box: Any = getattr(domain, "around", None)
    width = np.zeros(0) if box is None else np.ravel(box.upper - box.lower)
    moving = np.flatnonzero(width > 0.0)
    if not moving.size:
        return
    widest, narrowest = (moving[pick(width[moving])] for pick in (np.argmax, np.argmin))
    if width[widest] >= WARNED_WIDTH_RATIO * width[narrowest]:
        warn(
            f"SelfTuning goes as far in one coordinate as in another, but coordinate {widest} is "
            f"{width[widest]:.3g} wide and coordinate {narrowest} {width[narrowest]:.3g}: choose "
            "units in which they are alike, or the rate may not be kept",
            UnlikelyUnits,
        )
