"""What a good engineer builds: the best response to a forecast, with a safety margin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from coldq.base.arrays import Array, joint_batch
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Domain
from coldq.learners.best_response import respond
from coldq.learners.card import WHOLE_LOSS, WHOLE_STEP, Card, reference
from coldq.learners.enforced_rows import slack_at
from coldq.learners.forecasts import limits_of
from coldq.learners.learner import Learner, Place, Shape
from coldq.learners.limit_forecasts import LastValue, LimitForecast
from coldq.learners.margins import Judged, Margin, RollingQuantile
from coldq.learners.revealed import require_finite
from coldq.learners.state import State, axes
from coldq.slot.feedback import Feedback

LAST_VALUE, FIVE_PERCENT = LastValue(), RollingQuantile(0.05)


@dataclass(frozen=True, eq=False, slots=True)
class MarginState(State):
    """t, x_t, and for each row what was expected of it at x_t, its margin, and what both rest on.

    `past` has the last limits and `errors` the last errors, newest first; `weights` and `control`
    are the forecast's and the margin's own numbers.
    """

    expected: Array
    margin: Array
    past: Array = field(metadata=axes("N", "past"))
    weights: Array = field(metadata=axes("N", "weights"))
    errors: Array = field(metadata=axes("N", "errors"))
    control: Array = field(metadata=axes("N", "control"))


class Outlook(NamedTuple):
    """What follows from a slot for the next one, before a decision is taken.

    The next rows are expected to be the last ones plus `change`, and `margin` is added to that.
    """

    change: Array
    margin: Array
    past: Array
    weights: Array
    errors: Array
    control: Array


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ForecastWithMargin(Learner):
    """The best response to a forecast of the constraint, each row tightened by a safety margin.

        x_{t+1} = argmin of f_t(x) over x in X with g_t^n(x) + b_t^n - forecast^n + margin^n <= 0

    for all n, with b_t^n the limit of row n: the next constraint is expected to be the last one
    with its limits replaced by a forecast of them. If no decision keeps all rows, the one of least
    total violation is taken. This is what a good engineer builds to keep a violation rate. It has
    no theory here; forecast and margin want to be tuned, and rows have their own of both.

    Parameters
    ----------
    domain
        The feasible set X.
    forecast
        One of :mod:`coldq.limit_forecasts`, which each row has for itself.
    margin
        One of :mod:`coldq.margins`.

    References
    ----------
    Gibbs and Candes, NeurIPS 2021; Angelopoulos, Candes and Tibshirani, NeurIPS 2023.

    >>> import coldq
    >>> learner = coldq.ForecastWithMargin(
    ...     coldq.Box(0.0, 9.0, dim=2),
    ...     coldq.limit_forecasts.ExponentialSmoothing(0.5),
    ...     coldq.margins.ShareOfLimit(0.25),
    ... )
    >>> state = learner.init(1)
    >>> for demand in (4.0, 8.0):  # x_1 + x_2 >= demand, 6 is expected next
    ...     g = coldq.Affine([[-1.0, -1.0]], [-demand])
    ...     state = learner.update(state, coldq.Feedback(coldq.Linear([1.0, 2.0]), g))
    >>> state.x
    array([7.5, 0. ])
    """

    card: ClassVar[Card] = Card(
        needs=WHOLE_STEP | {WHOLE_LOSS},
        assumes=("forecast and margin tuned: what an engineer builds, without theory",),
        claims=(),
        certainty="exact",
        bibtex=reference("gibbs2021adaptive", "angelopoulos2023conformal"),
    )
    state_type = MarginState
    looks_ahead: ClassVar[bool] = True
    domain: Domain
    forecast: LimitForecast
    margin: Margin
    horizon: int | None

    def __init__(
        self,
        domain: Domain,
        forecast: LimitForecast = LAST_VALUE,
        margin: Margin = FIVE_PERCENT,
    ) -> None:
        asked: dict[str, tuple[Any, type]] = {
            "forecast": (forecast, LimitForecast), "margin": (margin, Margin),
        }  # fmt: skip
        for name, (given, kind) in asked.items():
            if not isinstance(given, kind):
                home = "limit_forecasts" if kind is LimitForecast else "margins"
                raise InvalidInput(f"{name} must be one of coldq.{home}, but is {given!r:.200}")
        self._take(domain, forecast=forecast, margin=margin)

    @classmethod
    def for_problem(cls, problem: Any, **parameters: Any) -> ForecastWithMargin:
        """For a problem's domain.

        >>> import coldq
        >>> coldq.ForecastWithMargin.for_problem(coldq.problems.Autoscale()).forecast
        LastValue()
        """
        return cls._of(problem, **parameters)

    def _batch(self) -> Shape:
        return joint_batch(
            domain=self.domain.batch, forecast=self.forecast.batch, margin=self.margin.batch
        )

    def _lengths(self) -> dict[str, int]:
        forecast, margin = self.forecast, self.margin
        return {
            "past": forecast.kept, "weights": forecast.numbers,
            "errors": margin.kept, "control": margin.numbers,
        }  # fmt: skip

    def init(self, n_constraints: int, start: Place = None, batch: Shape = ()) -> MarginState:
        """The state before slot 1: x_1 = `start`, or the domain's own, and nothing is expected."""
        rows = (*self.first_slot(start, batch)[0].shape, self._count(n_constraints))
        t, x = self.first_slot(start, batch)
        memory = (np.zeros((*rows, length)) for length in self._lengths().values())
        return self.new_state(t, x, np.zeros(rows), np.zeros(rows), *memory)

    def update(self, state: MarginState, feedback: Feedback, played: Place = None) -> MarginState:
        """The state of the next slot."""
        _, g = self.observe(state, feedback, "margin", played)
        J = self.jacobian_of(state, feedback, g.shape[-1], played)
        x = self._place(state, played)
        rows: Any = feedback.constraint
        violated = np.asarray((g > slack_at(x, g, J, self.domain.diameter)).any(axis=-1))
        if x is not state.x:  # what was expected is of the state's own decision
            g = self.values_of(state, feedback, g.shape)
        seen = self.look_ahead(state, rows, g, violated)
        shift = require_finite(seen.change + seen.margin)
        x = respond(feedback.loss, rows.tightened(shift), self.domain, state.x)
        return self.decided(state, x, rows.value(x), seen)

    def look_ahead(
        self, state: MarginState, constraint: Any, g: Array, violated: np.ndarray
    ) -> Outlook:
        """What follows from a slot's constraint, its values at x_t and whether it was violated."""
        limits = np.broadcast_to(limits_of(constraint), g.shape)
        past = _newest_first(limits, state.past)
        expected, weights = self.forecast.next(past, state.weights, state.t)
        error = np.where((state.t > 1)[..., None], g - state.expected, 0.0)
        now = Judged(state.t, expected, error, violated)
        errors = _newest_first(self.margin.record(now, state.control), state.errors)
        margin, control = self.margin.next(now, errors, state.control)
        return Outlook(limits - expected, margin, past, weights, errors, control)

    def decided(self, state: MarginState, x: Array, g: Array, seen: Outlook) -> MarginState:
        """The state of the next slot, whose decision is x; g has the last rows' values there."""
        expected = require_finite(np.array(g + seen.change))
        return self.new_state(
            state.t + 1, x, expected, np.array(seen.margin), seen.past, np.array(seen.weights),
            seen.errors, np.array(seen.control),
        )  # fmt: skip

    def require_sound(self, state: MarginState) -> None:
        """That it remembers as much as forecast and margin ask for."""
        rows = state.margin.shape
        for name, length in self._lengths().items():
            if getattr(state, name).shape != (*rows, length):
                raise InvalidInput(
                    f"{name} must have the shape {(*rows, length)}, but has "
                    f"{getattr(state, name).shape}"
                )
        if state.expected.shape != rows:
            raise InvalidInput(
                f"expected must have the shape {rows}, but has {state.expected.shape}"
            )


def _newest_first(new: Array, kept: Array) -> Array:
    """What is kept (..., N, length) with something new in front, the oldest left out."""
    if not kept.shape[-1]:
        return np.array(kept)
    return np.concatenate([new[..., None], kept[..., :-1]], axis=-1)
