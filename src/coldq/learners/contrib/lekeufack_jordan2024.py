"""Lekeufack and Jordan, 2024: an optimistic algorithm, a reconstruction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, point, positive
from coldq.base.contractions import dot
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Domain
from coldq.learners.card import FIRST_ORDER, Card, Claim, Rate, reference
from coldq.learners.learner import Algorithm, Place, Shape, require_not_negative
from coldq.learners.revealed import require_finite, spread, worst_violation
from coldq.learners.sinha_vaze import exponential_price
from coldq.learners.state import State, axes
from coldq.slot.domains import diameter_of, scale_of
from coldq.slot.feedback import Feedback


@dataclass(frozen=True, eq=False, slots=True)
class OptimisticState(State):
    """The state of :class:`LekeufackJordan2024`.

    t and x_t, the centre z_t that it was foreseen from; the violation Q(t-1); the squared errors of
    what was foreseen of the surrogate and of the violation, added up; the gradients of f_t and
    [g_t]_+ that are foreseen; and the latest values g_{t-1}(x_{t-1}).
    """

    centre: Array = field(metadata=axes("p"))
    violation: Array = field(metadata=axes())
    squares: Array = field(metadata=axes())
    surprise: Array = field(metadata=axes())
    expected_loss: Array = field(metadata=axes("p"))
    expected_violation: Array = field(metadata=axes("p"))
    values: Array


@dataclass(frozen=True, eq=False, repr=False, init=False)
class LekeufackJordan2024(Algorithm):
    """Optimistic steps on a surrogate loss: what is foreseen rightly costs nothing.

    With several constraints ``g_t = max_n g_t^n``. z_1 = x_1, Q(0) = 0, nothing is foreseen of slot
    1. At the end of slot t, with a hat on what was foreseen of it and b = 1 / (2 G R):

        Q(t)      = Q(t-1) + b [g_t(x_t)]_+
        nabla_t   = grad f_t(x_t) + Phi'(Q(t)) grad [g_t(x_t)]_+
        S_t       = S_{t-1} + |nabla_t - (grad f^_t + Phi'(Q(t-1)) grad g^_t)|^2
        E_t       = E_{t-1} + |grad [g_t(x_t)]_+ - grad g^_t|^2 / G^2
        z_{t+1}   = P_X(z_t - eta_t nabla_t),   eta_t = R / sqrt(G^2 + S_{t-1})
        x_{t+1}   = P_X(z_{t+1} - eta_{t+1} (grad f^_{t+1} + Phi'(Q(t)) grad g^_{t+1}))

    where Phi'(q) = lambda exp(lambda q) with ``lambda = 1 / (2 sqrt(max(1, E)))`` for the E known
    then: E_{t-1}, and E_t in the last line.

    What is foreseen of the next slot is the :class:`~coldq.Forecast` that comes with the feedback:
    gradients of its loss, and of the violation of its constraint, at z_{t+1}. Of a part that it
    does not have, the latest gradient is foreseen.

    A reconstruction: bounds and idea are from the paper's abstract and descriptions of it; that
    regret is O(sqrt(E(f))) and violation O(log T (1 + sqrt(E([g]_+)))), E the squared errors of the
    forecasts added up, is its own. The step sizes are ours, and so is that lambda follows E at
    once: the paper's doubles. The claims are the bounds for forecasts that are always wrong.

    Parameters
    ----------
    domain
        The feasible set X, with diameter R.
    lipschitz
        G, a common Lipschitz constant of all losses and constraints.

    References
    ----------
    Lekeufack and Jordan, arXiv 2412.08060, 2024.

    >>> import coldq
    >>> learner = coldq.LekeufackJordan2024(coldq.Box(0.0, 4.0, dim=1), lipschitz=2.0)
    >>> pull = coldq.Linear([-1.0])
    >>> ahead = coldq.Forecast(loss=coldq.Linear([1.0]))
    >>> state = learner.update(learner.init(0), coldq.Feedback(pull, None, forecast=ahead))
    >>> state.centre, state.x.round(6)  # R / G = 2 to the right, 4 / sqrt(4 + 1) back again
    (array([2.]), array([0.211146]))
    """

    card: ClassVar[Card] = Card(
        needs=FIRST_ORDER,
        assumes=("a feasible decision common to all slots", "Lipschitz constant G known"),
        claims=(
            Claim("convex", "fixed", Rate(0.5, log=1), Rate(0.5)),
            Claim("convex", "time-varying", Rate(0.5, log=1), Rate(0.5)),
        ),
        certainty="uncertain",
        unchecked="the step sizes, and how lambda follows the errors of the forecasts",
        bibtex=reference("lekeufack2024optimistic"),
    )

    state_type = OptimisticState
    domain: Domain
    lipschitz: Array
    horizon: int | None
    _leading = ("lipschitz",)
    _from_problem = ("lipschitz",)

    def __init__(self, domain: Domain, *, lipschitz: ArrayLike) -> None:
        diameter_of(domain, "LekeufackJordan2024 needs")
        self._take(domain, lipschitz=positive("lipschitz", lipschitz))

    def init(self, n_constraints: int, start: Place = None, batch: Shape = ()) -> OptimisticState:
        """The state before slot 1, of which nothing is foreseen."""
        rows = self._count(n_constraints)
        t, x = self.first_slot(start, batch)
        counts = (np.zeros(t.shape) for _ in range(3))
        gradients = (np.zeros(x.shape) for _ in range(2))
        return self.new_state(t, x, x.copy(), *counts, *gradients, np.zeros((*t.shape, rows)))

    def update(
        self, state: OptimisticState, feedback: Feedback, played: Place = None
    ) -> OptimisticState:
        """The state of the next slot."""
        gradient, g = self.observe(state, feedback, "values", played)
        J = self.jacobian_of(state, feedback, g.shape[-1], played)
        level, slope = worst_violation(g, J)
        G, R = self.lipschitz, scale_of(self.domain.diameter)

        foreseen = self._surrogate(state.violation, state.surprise, state.expected_loss,
                                   state.expected_violation)  # fmt: skip
        Q = np.asarray(state.violation + level / (2.0 * G * R))
        nabla = self._surrogate(Q, state.surprise, gradient, slope)
        missed, off = nabla - foreseen, slope - state.expected_violation
        squares = np.asarray(state.squares + dot(missed, missed))
        surprise = np.asarray(state.surprise + dot(off, off) / (G * G))

        centre = self.domain.project(state.centre - self._eta(state.squares) * nabla)
        centre = require_finite(centre)
        f, v = self._foreseen(state, feedback, centre, gradient, slope)
        ahead = self._surrogate(Q, surprise, f, v)
        x_new = require_finite(self.domain.project(centre - self._eta(squares) * ahead))
        return self.new_state(state.t + 1, x_new, centre, Q, squares, surprise, f, v, np.array(g))

    def _eta(self, squares: Array) -> Array:
        """The step after these squared errors, as a factor of a gradient."""
        G, R = self.lipschitz, scale_of(self.domain.diameter)
        return np.asarray(R / np.sqrt(G * G + squares))[..., None]

    def _surrogate(self, Q: Array, surprise: Array, gradient: Array, slope: Array) -> Array:
        """``gradient + Phi'(Q) slope``."""
        rate = np.asarray(0.5 / np.sqrt(np.maximum(surprise, 1.0)))
        return gradient + exponential_price(rate, Q)[..., None] * slope

    def _foreseen(
        self, state: Any, feedback: Feedback, centre: Array, gradient: Array, slope: Array
    ) -> tuple[Array, Array]:
        """The gradients of the next loss and violation, as the forecast has them at the centre."""
        given, rows = feedback.forecast, state.values.shape[-1]
        f, v = np.array(gradient), np.array(slope)
        if given is None:
            return f, v
        if given.loss is not None:
            slope = point(given.loss.gradient(centre), centre.shape[-1], "the forecast's gradient")
            slope = require_finite(slope, "the forecast's gradient")
            f = np.array(spread("the forecast's gradient", slope, centre.shape))
        if given.constraint is not None:
            expected = Feedback(feedback.loss, given.constraint)
            g = self.values_of(state, expected, state.values.shape, centre)
            v = worst_violation(g, self.jacobian_of(state, expected, rows, centre))[1]
        return f, v

    def require_sound(self, state: OptimisticState) -> None:
        require_not_negative(state, "violation", "squares", "surprise")
        if not self.domain.contains(state.centre).all():
            raise InvalidInput(f"centre must lie in the domain, but is {state.centre}")
