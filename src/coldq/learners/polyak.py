"""Hutchinson and Alizadeh, ICML 2025: online gradient descent with Polyak feasibility steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, positive
from coldq.base.contractions import dot
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Domain, Problem
from coldq.learners.card import FIRST_ORDER, Card, Claim, Rate, reference
from coldq.learners.constants import ConstantsOf
from coldq.learners.learner import Learner, Place, horizon_of
from coldq.learners.revealed import require_finite, worst_row
from coldq.learners.state import State
from coldq.slot.domains import require_domain
from coldq.slot.feedback import Feedback
from coldq.slot.schedules import Constant, Schedule, as_schedule


@dataclass(frozen=True, eq=False, slots=True)
class PolyakState(State):
    """The state of :class:`PolyakFeasibility`: t, x_t and the latest values g(x_{t-1})."""

    values: Array


@dataclass(frozen=True, eq=False, repr=False, init=False)
class PolyakFeasibility(Learner):
    """A gradient step on the loss, then one of Polyak's length on a tightened constraint.

    For a fixed g, with several rows ``g = max_n g^n``, s a subgradient of g at x_t. At the end of
    slot t:

        y       = x_t - eta grad f_t(x_t)
        x_{t+1} = P_X( y - [g(x_t) + <s, y - x_t> + rho]_+ s / |s|^2 )

    g is asked for once a slot, at x_t. If x_1 is strictly feasible, the parameters of
    :meth:`safe` keep every decision feasible.

    Parameters
    ----------
    domain
        The feasible set X.
    horizon
        The number of slots that eta and rho are meant for, if they depend on it.
    eta, rho
        The step and the tightening: positive numbers or functions of t.

    References
    ----------
    Hutchinson and Alizadeh, ICML 2025; the rule as in the authors' released code.

    >>> import coldq
    >>> learner = coldq.PolyakFeasibility(coldq.Box(0.0, 4.0, dim=1), eta=1.0, rho=0.25)
    >>> revealed = coldq.Feedback(coldq.Linear([-2.0]), coldq.Affine([[1.0]], [1.0]))
    >>> learner.update(learner.init(1), revealed).x
    array([0.75])
    """

    card: ClassVar[Card] = Card(
        needs=FIRST_ORDER,
        assumes=(
            "fixed constraints",
            "a strictly feasible start, by a known slack",
            "known horizon",
            "gradient bound D and Lipschitz constant of g known",
        ),
        claims=(Claim("convex", "fixed", Rate(0), Rate(0.5)),),
        certainty="likely",
        bibtex=reference("hutchinson2025constrained"),
    )

    state_type = PolyakState
    domain: Domain
    eta: Schedule
    rho: Schedule
    horizon: int | None
    _leading = ("eta", "rho")
    _constructors = ("safe",)

    def __init__(self, domain: Domain, horizon: int | None = None, *, eta: Any, rho: Any) -> None:
        self._take(domain, horizon, eta=as_schedule("eta", eta), rho=as_schedule("rho", rho))

    @classmethod
    def safe(
        cls,
        domain: Domain,
        horizon: int,
        *,
        gradient_bound: ArrayLike,
        lipschitz: ArrayLike,
        slack: ArrayLike,
        steepness: ArrayLike | None = None,
    ) -> PolyakFeasibility:
        """``rho = slack / sqrt(T)`` and the largest eta that keeps every decision feasible.

        If g(x_1) <= -slack and ``g(x) + rho >= steepness * (distance to where g <= -rho)``, each
        slot brings x nearer to that set by a factor ``q = sqrt(1 - (steepness / L)^2)``, and the
        loss takes it away by at most eta D. It stays within rho / L, where g <= 0, for

            eta = (1 - q) rho / (L D).

        Parameters
        ----------
        gradient_bound, lipschitz
            D and L, bounds on the gradients of the losses and on the subgradients of g.
        slack
            At most -g(x_1), and positive.
        steepness
            By default what convexity gives: (slack - rho) / R, or L if that is less.

        >>> import coldq
        >>> X = coldq.Box(-1.0, 1.0, dim=1)
        >>> known = dict(gradient_bound=2.0, lipschitz=1.0, slack=0.5)
        >>> learner = coldq.PolyakFeasibility.safe(X, 100, **known, steepness=1.0)
        >>> learner.eta, learner.rho
        (Constant(level=0.025), Constant(level=0.05))
        """
        require_domain(domain)
        T = horizon_of(horizon)
        D, L = positive("gradient_bound", gradient_bound), positive("lipschitz", lipschitz)
        gap, R = positive("slack", slack), domain.diameter
        rho = gap / np.sqrt(float(T))
        if steepness is None and not np.isfinite(R).all():
            raise InvalidInput(f"without a steepness the domain must be bounded, but is {domain}")
        # Where g falls by L R at most from -slack, all of X is below -rho, and any steepness holds.
        steep = np.minimum((gap - rho) / R, L) if steepness is None else steepness
        steep = positive("steepness", steep)
        if (steep > L).any():
            raise InvalidInput(f"steepness must be at most lipschitz = {L}, but is {steep}")
        share = np.square(steep / L)
        nearer = share / (1.0 + np.sqrt(1.0 - share))  # 1 - q, in all digits
        return cls(domain, T, eta=Constant(nearer * rho / (L * D)), rho=Constant(rho))

    @classmethod
    def for_problem(
        cls, problem: Problem, *, slack: ArrayLike, **parameters: Any
    ) -> PolyakFeasibility:
        """:meth:`safe` with the problem's own constants; how feasible x_1 is, only you know.

        >>> import coldq
        >>> problem = coldq.problems.OnlineLinear(horizon=100)
        >>> coldq.PolyakFeasibility.for_problem(problem, slack=0.1).horizon
        100
        """
        needed = {"gradient_bound": "gradient_bound", "lipschitz": "constraint_lipschitz"}
        constants = ConstantsOf(problem, parameters).fill(**needed)
        return cls._of(problem, "safe", slack=slack, **constants)

    def update(self, state: PolyakState, feedback: Feedback, played: Place = None) -> PolyakState:
        """The state of the next slot."""
        gradient, g = self.observe(state, feedback, "values", played)
        t, x = state.t, state.x
        level, s = worst_row(g, self.jacobian_of(state, feedback, g.shape[-1], played))
        eta, rho = self.eta(t)[..., None], self.rho(t)

        y = x - eta * gradient
        size = dot(s, s)
        excess = np.maximum(level + dot(s, y - self._place(state, played)) + rho, 0.0)
        length = excess / np.where(size > 0.0, size, 1.0)  # a row of zeros pulls nowhere
        x_new = require_finite(self.domain.project(y - length[..., None] * s))
        return self.new_state(t + 1, x_new, np.array(g))
