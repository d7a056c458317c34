"""MOSP: the modified online saddle point (Chen, Ling and Giannakis, IEEE TSP 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, positive
from coldq.base.protocols import Domain
from coldq.learners.card import WHOLE_STEP, Card, Claim, Largest, Rate, reference
from coldq.learners.learner import Algorithm, Place, horizon_of
from coldq.learners.revealed import finite_weights
from coldq.learners.state import QueueState
from coldq.slot.feedback import Feedback
from coldq.slot.step import solve


@dataclass(frozen=True, eq=False, repr=False, init=False)
class MOSP(Algorithm):
    """A saddle point that keeps the whole constraint in its primal step.

    l_1 = 0. At the end of slot t:

        l_{t+1} = [ l_t + mu g_t(x_t) ]_+
        x_{t+1} = argmin over x in X of
                  <grad f_t(x_t), x - x_t> + <l_{t+1}, g_t(x)> + |x - x_t|^2 / (2 alpha)

    The constraint is not clipped. The state's queue is l.

    Parameters
    ----------
    domain, horizon
        The feasible set X and the number of slots T.
    alpha, mu
        The primal and the dual step, by default T^(-1/3). The paper's other choice is
        sqrt(V / T) where the variation V of best decisions and constraints is known.

    References
    ----------
    Chen, Ling and Giannakis, IEEE Transactions on Signal Processing 2017; rule and bounds from
    knowledge of the field.

    >>> import coldq
    >>> learner = coldq.MOSP(coldq.Box(0.0, 4.0, dim=1), horizon=8)  # alpha = mu = 1/2
    >>> revealed = coldq.Feedback(coldq.Linear([-4.0]), coldq.Affine([[1.0]], [1.0]))
    >>> state = learner.update(learner.init(1, start=[3.0]), revealed)
    >>> state.x, state.queue
    (array([4.]), array([1.]))
    """

    card: ClassVar[Card] = Card(
        needs=WHOLE_STEP,
        assumes=("a Slater point, deeper than g moves in a slot", "known horizon"),
        claims=(
            Claim(
                "convex",
                "time-varying",
                Rate(2 / 3),
                None,
                Largest(Rate(2 / 3), Rate(1 / 3, vx=1), Rate(1 / 3, vg=1)),
                measure="soft",
            ),
        ),
        certainty="uncertain",
        unchecked="the rule and its steps",
        bibtex=reference("chen2017online"),
    )
    state_type = QueueState

    domain: Domain
    horizon: int | None
    alpha: Array
    mu: Array
    _leading = ("alpha", "mu")

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        *,
        alpha: ArrayLike | None = None,
        mu: ArrayLike | None = None,
    ) -> None:
        step = np.cbrt(1.0 / horizon_of(horizon))
        alpha = positive("alpha", step if alpha is None else alpha)
        self._take(domain, horizon, alpha=alpha, mu=positive("mu", step if mu is None else mu))

    def update(self, state: QueueState, feedback: Feedback, played: Place = None) -> QueueState:
        """The state of the next slot."""
        gradient, g = self.observe(state, feedback, "queue", played)
        t, x = state.t, state.x

        dual = finite_weights(np.maximum(state.queue + self.mu[..., None] * g, 0.0))
        weight = 1.0 / (2.0 * self.alpha)
        step = solve(x, gradient, weight, dual, feedback.constraint, self.domain, dual)
        return self.new_state(t + 1, step.x, dual, step.multipliers)
