"""Jenatton, Huang and Archambeau, ICML 2016: adaptive steps for long-term constraints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, one_fraction, positive
from coldq.base.protocols import Domain
from coldq.learners.card import FIRST_ORDER, Card, Claim, Rate, reference
from coldq.learners.learner import Algorithm, Place, require_not_negative
from coldq.learners.revealed import require_finite, worst_row
from coldq.learners.state import State, axes
from coldq.slot.domains import diameter_of
from coldq.slot.feedback import Feedback
from coldq.slot.schedules import Power, Schedule


@dataclass(frozen=True, eq=False, slots=True)
class Jenatton2016State(State):
    """The state of :class:`Jenatton2016`: t, x_t, the one dual variable l_t, and the latest values
    g_{t-1}(x_{t-1})."""

    dual: Array = field(metadata=axes())
    values: Array


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Jenatton2016(Algorithm):
    """A saddle point whose steps and regularisation change with t; no horizon is needed.

    With several constraints ``g = max_n g^n``. l_1 = 0; at the end of slot t, both from (x_t, l_t):

        x_{t+1} = P_X(x_t - eta_t (grad f_t(x_t) + l_t grad g(x_t)))
        l_{t+1} = [ l_t + mu_t (g(x_t) - theta_t l_t) ]_+

    With eta_t = R / (L t^b), theta_t = 6 R L / t^b and mu_t = 1 / (theta_t (t + 1)) its static
    regret is O(T^max(b, 1-b)) and its soft violation O(T^(1 - b/2)).

    Parameters
    ----------
    domain
        X, a simple set that holds the feasible one, with diameter R.
    lipschitz
        L, a common Lipschitz constant of all losses and of the constraint.
    b
        In (0, 1): trades regret for violation.

    References
    ----------
    Jenatton, Huang and Archambeau, ICML 2016; the form as reported by Sinha and Vaze, NeurIPS 2024,
    the constants as in other people's code.

    >>> import coldq
    >>> learner = coldq.Jenatton2016(coldq.Box(0.0, 4.0, dim=1), lipschitz=2.0)
    >>> revealed = coldq.Feedback(coldq.Linear([-1.0]), coldq.Affine([[1.0]], [1.0]))
    >>> state = learner.update(learner.init(1, start=[3.0]), revealed)
    >>> state.x, state.dual.round(6)  # mu_1 = 1 / (48 * 2)
    (array([4.]), np.float64(0.020833))
    """

    card: ClassVar[Card] = Card(
        needs=FIRST_ORDER,
        assumes=("fixed constraints", "Lipschitz constant known"),
        claims=(Claim("convex", "fixed", Rate(0.75), Rate(0.5), measure="soft"),),
        certainty="likely",
        bibtex=reference("jenatton2016adaptive"),
    )

    state_type = Jenatton2016State
    domain: Domain
    eta: Schedule
    theta: Schedule
    horizon: int | None
    _lipschitz: ClassVar[Any]
    _leading = ("eta", "theta")
    _from_problem = ("lipschitz",)

    def __init__(self, domain: Domain, *, lipschitz: ArrayLike, b: float = 0.5) -> None:
        R, L = diameter_of(domain, "Jenatton2016 needs"), positive("lipschitz", lipschitz)
        b = one_fraction("b", b)
        self._take(domain, eta=Power(-b, R / L), theta=Power(-b, 6.0 * R * L), _lipschitz=L)

    def _arguments(self) -> dict[str, Any]:
        b = -self.eta.exponent  # type: ignore[attr-defined]
        return {"domain": self.domain, "lipschitz": self._lipschitz, "b": b}

    def update(
        self, state: Jenatton2016State, feedback: Feedback, played: Place = None
    ) -> Jenatton2016State:
        """The state of the next slot."""
        gradient, rows = self.observe(state, feedback, "values", played)
        t, x, dual = state.t, state.x, state.dual
        g, slope = worst_row(rows, self.jacobian_of(state, feedback, rows.shape[-1], played))
        eta, theta = self.eta(t), self.theta(t)
        mu = 1.0 / (theta * (t + 1))

        x_new = self.domain.project(x - eta[..., None] * (gradient + dual[..., None] * slope))
        dual_new = np.maximum(dual + mu * (g - theta * dual), 0.0)
        return self.new_state(
            t + 1, require_finite(x_new), require_finite(dual_new), np.array(rows)
        )

    def require_sound(self, state: Jenatton2016State) -> None:
        require_not_negative(state, "dual")
