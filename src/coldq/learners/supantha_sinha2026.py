"""Supantha and Sinha, ALT 2026: universal dynamic regret without a common feasible decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from coldq.base.arrays import Array, one_real, positive
from coldq.base.contractions import dot
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Domain
from coldq.learners.ader import Ader
from coldq.learners.card import WHOLE_STEP, Card, Claim, Rate, reference
from coldq.learners.learner import Algorithm, Place, Shape
from coldq.learners.revealed import require_finite, worst_violation
from coldq.learners.state import State, inside
from coldq.slot.feedback import Feedback
from coldq.slot.losses import Linear
from coldq.slot.step import solve

BIBTEX = reference("supantha2026universal")
HALF = np.array(0.5)
MAX_ROUNDING_DISTANCE = 1e-12  # of R: so close to X_t a decision is in it


@dataclass(frozen=True, eq=False, slots=True)
class SupanthaSinhaState(State):
    """The state of :class:`SupanthaSinha2026`: t, x_t, the latest values, and Ader's state."""

    values: Array
    ader: Any = field(metadata=inside())


@dataclass(frozen=True, eq=False, repr=False, init=False)
class SupanthaSinha2026(Algorithm):
    """Ader on a loss that prices the violation and the distance to where the constraint holds.

    With several constraints ``g_t = max_n g_t^n``, and ``X_t = {x in X : g_t(x) <= 0}``. At the end
    of slot t :class:`~coldq.Ader` takes a step on the surrogate

        f_t(x) + [g_t(x)]_+ + 2 G dist(x, X_t),

    which is 4 G-Lipschitz; its gradient at x_t, with y the point of X_t nearest to x_t, is

        nabla_t = grad f_t(x_t) + grad [g_t(x_t)]_+ + 2 G (x_t - y) / |x_t - y|.

    The distance is what makes it work: with ``f_t + [g_t]_+`` alone the paper has a counterexample.
    X_t must not be empty: that is a :class:`~coldq.Infeasible` error, which names the instances and
    leaves the state as it was. No decision need be feasible in all slots.

    The violation's bound has the path of the best feasible decisions in it, as the regret's has if
    they are what it is compared with: V_x is of that path in both.

    Parameters
    ----------
    domain, horizon
        The feasible set X, with diameter R, and the number of slots T.
    lipschitz
        G, a common Lipschitz constant of all losses and constraints.

    References
    ----------
    Supantha and Sinha, ALT 2026, the algorithm that projects: surrogate and bounds from
    descriptions of it, Ader as :class:`~coldq.Ader` has it.

    >>> import coldq
    >>> learner = coldq.SupanthaSinha2026(coldq.Box(0.0, 4.0, dim=1), horizon=14, lipschitz=1.0)
    >>> revealed = coldq.Feedback(coldq.Linear([-1.0]), coldq.Affine([[1.0]], [1.0]))
    >>> state = learner.update(learner.init(1, start=[2.0]), revealed)
    >>> state.ader.experts.x[:, 0]  # the gradient is -1 + 1 + 2, the steps 1/2, 1, 2
    array([1., 0., 0.])
    """

    card: ClassVar[Card] = Card(
        needs=WHOLE_STEP,
        assumes=(
            "a feasible decision in every slot",
            "known horizon",
            "Lipschitz constant G known",
        ),
        claims=(
            Claim("convex", "fixed", Rate(0.5, vx=0.5), Rate(0.5), Rate(0.5, vx=0.5)),
            Claim("convex", "time-varying", Rate(0.5, vx=0.5), Rate(0.5), Rate(0.5, vx=0.5)),
        ),
        certainty="likely",
        bibtex=BIBTEX,
    )

    state_type = SupanthaSinhaState
    domain: Domain
    horizon: int | None
    lipschitz: float
    _ader: ClassVar[Ader]  # set for each
    _from_problem = ("lipschitz",)

    def __init__(self, domain: Domain, horizon: int, *, lipschitz: float) -> None:
        G = one_real("lipschitz", positive("lipschitz", lipschitz))
        ader = Ader(domain, horizon, gradient_bound=4.0 * G)
        self._take(domain, horizon, lipschitz=G)
        self._set(_ader=ader)

    def init(
        self, n_constraints: int, start: Place = None, batch: Shape = ()
    ) -> SupanthaSinhaState:
        """The state before slot 1: all of Ader's experts start where the learner does."""
        rows = self._count(n_constraints)
        t, x = self.first_slot(start, batch)
        ader = self._ader.init(n_constraints, x, t.shape)
        return self.new_state(t, x, np.zeros((*t.shape, rows)), ader)

    def update(
        self, state: SupanthaSinhaState, feedback: Feedback, played: Place = None
    ) -> SupanthaSinhaState:
        """The state of the next slot."""
        gradient, g = self.observe(state, feedback, "values", played)
        J = self.jacobian_of(state, feedback, g.shape[-1], played)
        level, slope = worst_violation(g, J)

        nabla = gradient + slope
        if (level > 0.0).any():
            away = self._away(self._place(state, played), feedback, g.shape)
            nabla = nabla + np.where((level > 0.0)[..., None], 2.0 * self.lipschitz * away, 0.0)
        nabla = require_finite(nabla)
        ader = self._ader.advance(state.ader, Feedback(Linear(nabla), None), nabla)
        return self.new_state(state.t + 1, np.array(ader.x), np.array(g), ader)

    def _away(self, x: Array, feedback: Feedback, shape: Shape) -> Array:
        """The unit vector from X_t to x, zero where x lies in X_t."""
        hard = np.full(shape, np.inf)
        nearest = solve(x, np.zeros(x.shape), HALF, hard, feedback.constraint, self.domain).x
        apart = x - nearest
        length = np.sqrt(dot(apart, apart))[..., None]
        outside = length > MAX_ROUNDING_DISTANCE * self.domain.diameter
        return np.where(outside, apart / np.where(outside, length, 1.0), 0.0)

    def _learner_inside(self, axes: int) -> Ader:
        return self._ader

    def require_sound(self, state: SupanthaSinhaState) -> None:
        if not np.array_equal(state.ader.x, state.x):
            raise InvalidInput("x and that of Ader inside must be the same")
