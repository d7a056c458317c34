"""SafetyMargin and Forecasting: any learner with a step on the whole constraint looks ahead."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np

from coldq.base.arrays import Array
from coldq.base.describe import describable
from coldq.base.errors import Infeasible, InvalidInput
from coldq.base.protocols import Domain
from coldq.learners.anticipated import Anticipated
from coldq.learners.card import CONSTRAINT, WHOLE_CONSTRAINT, Card, reference
from coldq.learners.enforced_rows import TOLERANCE, enforced, keeps, margin_kept, slack_at
from coldq.learners.forecast_margins import ForecastMargins
from coldq.learners.forecast_state import STRETCH, ForecastState
from coldq.learners.forecasts import DEFAULT, Last
from coldq.learners.learner import Learner, Place, Shape, is_learner
from coldq.learners.revealed import require_slot
from coldq.learners.state import State, inside
from coldq.slot.domains import scale_of
from coldq.slot.feedback import Feedback

LAST = (Last(),)
BIBTEX = reference("gibbs2021adaptive", "lekeufack2023conformal")


@dataclass(frozen=True, eq=False, slots=True)
class ForecastingState(ForecastState):
    """What :class:`Forecasting` remembers, and the state of the learner inside."""

    version: ClassVar[int] = 2

    inner: Any = field(metadata=inside())


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Forecasting(Learner):
    """A learner whose step uses the constraint expected next, not the last one.

    Its queue and whatever else it computes from values sees g_t(x_t) itself. Forecasts are judged
    by their surprises, see :mod:`~coldq.learners.forecast_margins`; a :class:`~coldq.Forecast` that
    comes with the feedback is one of them.

    Parameters
    ----------
    learner
        One with a step on the whole constraint: COLDQ, RECOO, Yi2021, CLASP, or your own.
    forecasts
        Some of :mod:`coldq.forecasts`.

    >>> import coldq
    >>> inside = coldq.COLDQ(coldq.Box(0.0, 9.0, dim=1), horizon=100, epsilon=5.0)
    >>> learner = coldq.Forecasting(inside, [coldq.forecasts.Trend(1.0)])
    >>> state = learner.init(1)
    >>> for t in range(1, 9):  # x <= t, and the loss rewards x
    ...     revealed = coldq.Feedback(coldq.Linear([-50.0]), coldq.Affine([[1.0]], [t]))
    ...     state = learner.update(state, revealed)
    >>> state.x.round(6)
    array([9.])
    """

    card: ClassVar[Card] = Card(
        needs=frozenset({CONSTRAINT, WHOLE_CONSTRAINT}),
        assumes=(),
        claims=(),
        certainty="exact",
        bibtex=BIBTEX,
    )
    state_type = ForecastingState
    learner: Any
    domain: Domain
    forecasts: tuple[Any, ...]
    horizon: int | None
    _margins: ClassVar[ForecastMargins]  # set for each
    _R: ClassVar[Any]

    def __init__(self, learner: Any, forecasts: Any = DEFAULT) -> None:
        self._set_inside(learner, ForecastMargins(forecasts, None, TOLERANCE))

    def _set_inside(self, learner: Any, ahead: ForecastMargins) -> None:
        if not is_learner(learner) or WHOLE_CONSTRAINT not in learner.card.needs:
            raise InvalidInput(
                f"{type(self).__name__} needs a learner with a step on the whole constraint, such "
                f"as COLDQ or RECOO, but got {learner!r:.200}"
            )
        state_type = getattr(learner, "state_type", object)
        looks = issubclass(state_type, ForecastState) or getattr(learner, "looks_ahead", False)
        if looks or not issubclass(state_type, State):
            raise InvalidInput(
                f"{type(self).__name__} takes a learner that does not look ahead itself and whose "
                f"states are coldq's, but got {learner!r:.200}"
            )
        needs = learner.card.needs | {CONSTRAINT, WHOLE_CONSTRAINT}
        both = f"{learner.card.bibtex}\n{BIBTEX}"
        card = replace(learner.card, needs=needs, claims=(), bibtex=both)
        self._set(
            learner=learner,
            domain=learner.domain,
            forecasts=ahead.forecasts,
            horizon=learner.horizon,
            card=card,
            _margins=ahead,
            _R=scale_of(learner.domain.diameter),
        )

    def init(self, n_constraints: int, start: Place = None, batch: Shape = ()) -> ForecastingState:
        """The state before slot 1, that of the learner inside with it."""
        rows = self._count(n_constraints)
        inner = self.learner.init(n_constraints, start, batch)
        t, x = np.array(inner.t), np.array(inner.x)
        return self.new_state(t, x, *self._margins.first(x.shape[:-1], rows), inner)

    def update(
        self, state: ForecastingState, feedback: Feedback, played: Place = None
    ) -> ForecastingState:
        """The state of the next slot."""
        self._require_own(state, feedback)
        if feedback.slot is not None:
            require_slot(feedback.slot, state.t)
        seen = self._margins.look(self, state, feedback, played)
        place, short = self._place(state, played), np.zeros(state.t.shape, bool)
        try:
            inner = self._inside(state, feedback, seen, place)
        except Infeasible:  # one that enforces rows gets as much of the margin as has room
            margin, short = self._with_room(seen, state.x)
            seen = seen._replace(margin=margin)
            inner = self._inside(state, feedback, seen, place)
        x, margin, reduced = self._projected(seen, np.array(inner.x))
        seen = seen._replace(margin=margin)
        return self.new_state(
            state.t + 1, x, *self._margins.arrays(x, seen, short | reduced), inner
        )

    def _inside(self, state: ForecastingState, feedback: Feedback, seen: Any, place: Array) -> Any:
        """The state of the learner inside after a slot."""
        both: Any = Anticipated(feedback.constraint, seen.expected.tightened(seen.margin))
        elsewhere = {} if np.array_equal(place, state.inner.x) else {"played": place}
        anticipated = Feedback(feedback.loss, both, feedback.slot)
        return self.learner.update(state.inner, anticipated, **elsewhere)

    def _with_room(self, seen: Any, x: Array) -> tuple[Array, np.ndarray]:
        """A margin that leaves the rows a common point, beyond doubt, and where it is reduced."""
        tolerance = self._margins.tolerance
        margin, whole, reduced, point = margin_kept(
            seen.expected, seen.margin, seen.worst, self.domain, x, tolerance
        )
        over: Array = seen.expected.tightened(margin).value(point)
        J = np.broadcast_to(seen.expected.jacobian(point), (*margin.shape, point.shape[-1]))
        room = np.maximum(over, 0.0) + slack_at(point, over, np.ascontiguousarray(J), self._R)
        return np.where(whole[..., None], margin, margin - room), reduced

    def _projected(self, seen: Any, x: Array) -> tuple[Array, Array, np.ndarray]:
        """Decisions on the tightened rows, where the error budget is spent."""
        broken: np.ndarray = seen.tally[..., STRETCH] > 0.0
        if broken.any():
            tight = seen.expected.tightened(seen.margin)
            broken &= ~keeps(tight, x, self._R, self._margins.tolerance)
        if not broken.any():
            return x, seen.margin, np.zeros(broken.shape, bool)
        one = x[..., None, :]
        found, margin, reduced = enforced(
            seen.expected, seen.margin, seen.worst, one, np.zeros(one.shape),
            np.ones(one.shape[:-1]), broken, self.domain, x, self._margins.tolerance,
        )  # fmt: skip
        return np.where(broken[..., None], found[..., 0, :], x), margin, reduced

    def _batch(self) -> Shape:
        return getattr(self.learner, "_batch", tuple)()

    def _learner_inside(self, axes: int) -> Any:
        return self.learner

    def require_sound(self, state: ForecastingState) -> None:
        self._margins.require_sound(state)


@describable
@dataclass(frozen=True, eq=False, repr=False, init=False)
class SafetyMargin(Forecasting):
    """A learner that keeps the violation rate you name: its step sees rows tightened by a margin.

    The margin is :class:`~coldq.SelfTuning`'s, widened by its error budget. The queue sees the raw
    g_t(x_t), the step the tightened constraint. Where the budget is spent, the learner's decision
    is projected onto the tightened rows; that is what the bound needs. See
    docs/keep-a-violation-rate.md.

    Parameters
    ----------
    learner
        One with a step on the whole constraint: COLDQ, RECOO, Yi2021, CLASP, or your own.
    violation_rate
        q in (0, 1): the share of slots in which any row may be violated.
    forecasts
        Some of :mod:`coldq.forecasts` to step on; by default the last constraint alone, which
        leaves the learner what it is.
    tolerance
        A row is violated above this share of the size of its terms, as in SelfTuning.

    >>> import coldq
    >>> inside = coldq.COLDQ(coldq.Box(0.0, 1.0, dim=2), horizon=100)
    >>> learner = coldq.SafetyMargin(inside, violation_rate=0.05)
    >>> float(learner.init(1).factor.round(4))
    2.3026
    """

    violation_rate: float
    tolerance: float

    def __init__(
        self,
        learner: Any,
        violation_rate: float,
        *,
        forecasts: Any = LAST,
        tolerance: float = TOLERANCE,
    ) -> None:
        if cast(object, violation_rate) is None:
            raise InvalidInput("SafetyMargin needs a violation_rate; coldq.Forecasting has none")
        ahead = ForecastMargins(forecasts, violation_rate, tolerance)
        self._set_inside(learner, ahead)
        self._set(violation_rate=ahead.violation_rate, tolerance=ahead.tolerance)

    def bound_report(self, state: ForecastingState, delay: int = 0) -> dict[str, Any]:
        """The violation budget beside its bounds, as :meth:`coldq.SelfTuning.bound_report`."""
        return self._margins.bound_report(state, delay)
