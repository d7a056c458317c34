"""Wang, Dong, Liang, Boudreau and Abou-Zeid, IEEE/ACM TON 2023: feedback that comes late."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, one_exponent, positive, whole_number
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Domain, Problem
from coldq.learners.card import (
    GRADIENT_ELSEWHERE,
    WHOLE_STEP,
    Card,
    Claim,
    Largest,
    Rate,
    reference,
)
from coldq.learners.constants import ConstantsOf
from coldq.learners.learner import Learner, Place, Shape, horizon_of
from coldq.learners.revealed import finite_weights
from coldq.learners.state import QueueState, State, axes
from coldq.slot.feedback import Feedback
from coldq.slot.step import solve


@dataclass(frozen=True, eq=False, slots=True)
class Wang2023State(QueueState):
    """The state of :class:`Wang2023`: with delay tau, `t` is the slot whose feedback comes next,
    `x` the decision of slot t + tau, and `past` (..., tau + 1, p) those of slots t to t + tau."""

    past: Array = field(metadata=axes("delay", "p"))


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Wang2023(Learner):
    """DTC-OCO: a virtual queue and two regularisers, for feedback that is tau slots late.

    The feedback of slot t arrives while x_{t+tau} is played; x_1 is played until the first has
    come. Q_0 = 0. Then

        Q_t         = max{ -gamma g_t(x_{t+tau}), Q_{t-1} + gamma g_t(x_{t+tau}) }
        x_{t+tau+1} = argmin over x in X of <grad f_t(x_t), x - x_t>
                      + <Q_t + gamma g_t(x_{t+tau}), gamma g_t(x)>
                      + alpha |x - x_t|^2 + eta |x - x_{t+tau}|^2

    One regulariser keeps x near where the gradient was taken, the other near the latest decision.
    Our reading of which decision each g is taken at, and of the parameters, is uncertain.

    Parameters
    ----------
    domain, horizon
        The feasible set X and the number of slots T.
    delay
        tau. ``simulate`` takes the same ``delay=``.
    alpha, eta, gamma
        The two regularisers and the scale of the constraint, see :meth:`for_problem`.

    References
    ----------
    Wang, Dong, Liang, Boudreau and Abou-Zeid, IEEE/ACM Transactions on Networking 2023; the bounds
    as reported by Wang, Yan and Liu, AAAI 2025, the rule from knowledge of the field.

    >>> import coldq
    >>> X, levels = coldq.Box(0.0, 4.0, dim=1), dict(alpha=1.0, eta=1.0, gamma=1.0)
    >>> learner = coldq.Wang2023(X, horizon=100, delay=1, **levels)
    >>> revealed = coldq.Feedback(coldq.Linear([-4.0]), coldq.Affine([[1.0]], [1.0]))
    >>> state = learner.update(learner.init(1), revealed)  # x_1 = x_2 = 0 were played
    >>> state.x, state.past[:, 0]
    (array([1.]), array([0., 1.]))
    """

    card: ClassVar[Card] = Card(
        needs=WHOLE_STEP | {GRADIENT_ELSEWHERE},
        assumes=("a Slater point", "known horizon", "known delay", "V_x known"),
        claims=(
            Claim(
                "convex",
                "time-varying",
                Largest(Rate(0.5, vx=-0.5), Rate(vg=1)),
                None,
                Largest(Rate(0.5, vx=0.5), Rate(vg=1)),
                measure="soft",
            ),
        ),
        certainty="uncertain",
        unchecked="at which decision each g is taken, and the parameters",
        bibtex=reference("wang2023delay"),
        played="remembered",
    )

    state_type = Wang2023State
    domain: Domain
    horizon: int | None
    delay: int
    alpha: Array
    eta: Array
    gamma: Array
    _leading = ("alpha", "eta", "gamma")

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        delay: int,
        *,
        alpha: ArrayLike,
        eta: ArrayLike,
        gamma: ArrayLike,
    ) -> None:
        self._take(
            domain,
            horizon_of(horizon),
            delay=whole_number("delay", delay, 0),
            alpha=positive("alpha", alpha),
            eta=positive("eta", eta),
            gamma=positive("gamma", gamma),
        )

    @classmethod
    def for_problem(
        cls, problem: Problem, delay: int, path_exponent: float = 0.0, **parameters: Any
    ) -> Wang2023:
        """alpha = T^((1 - V_x) / 2), gamma = 1 and eta = L^2 / 2, L Lipschitz for the vector g.

        That eta makes up for the change of g from a decision to the next; alpha and gamma are those
        that lead to the reported bounds. Each may be given.

        >>> import coldq
        >>> problem = coldq.problems.OnlineLinear(horizon=100)
        >>> coldq.Wang2023.for_problem(problem, delay=3).alpha
        array(10.)
        """
        power = (1.0 - one_exponent("path_exponent", path_exponent)) / 2.0
        known = ConstantsOf(problem, parameters)
        if "eta" not in parameters:
            parameters["eta"] = known.vector_lipschitz**2 / 2.0
        others = {"alpha": float(problem.horizon) ** power, "gamma": 1.0}
        return cls._of(problem, delay=delay, **(others | parameters))

    def init(self, n_constraints: int, start: Place = None, batch: Shape = ()) -> Wang2023State:
        """The state before the first feedback: all decisions so far are x_1."""
        rows = self._count(n_constraints)
        t, x = self.first_slot(start, batch)
        queue = np.zeros((*t.shape, rows))
        past = np.repeat(x[..., None, :], self.delay + 1, axis=-2)
        return self.new_state(t, x, queue, queue.copy(), past)

    def update(
        self, state: Wang2023State, feedback: Feedback, played: Place = None
    ) -> Wang2023State:
        """The state after the feedback of slot t, which came at the end of slot t + tau."""
        self._require_own(state, feedback)
        if played is not None:
            raise InvalidInput(
                "Wang2023 remembers what it played over its own delay: leave played out"
            )
        t, latest, past = state.t, state.x, state.past
        oldest = np.ascontiguousarray(past[..., 0, :])
        gradient = self.gradient_of(State(t, oldest), feedback)
        g = self.values_of(state, feedback, state.queue.shape)
        alpha, eta, gamma = (level[..., None] for level in (self.alpha, self.eta, self.gamma))

        v = gamma * g
        queue = np.maximum(-v, state.queue + v)
        weights = finite_weights(gamma * (queue + v))
        # Two squared distances are one, to the point between.
        center = (alpha * oldest + eta * latest) / (alpha + eta)
        step = solve(
            center, gradient, self.alpha + self.eta, weights, feedback.constraint, self.domain,
            weights,
        )  # fmt: skip
        past = np.concatenate([past[..., 1:, :], step.x[..., None, :]], axis=-2)
        return self.new_state(t + 1, step.x, queue, step.multipliers, past)

    def require_sound(self, state: Wang2023State) -> None:
        super().require_sound(state)
        kept, needed = state.past.shape[-2:], (self.delay + 1, self.domain.dim)
        if kept != needed or not np.array_equal(state.past[..., -1, :], state.x):
            raise InvalidInput(f"past must hold the {needed[0]} latest decisions, x the last")
        if not self.domain.contains(state.past).all():
            raise InvalidInput(f"past must lie in the domain {self.domain}")
