"""Yu, Neely and Wei, NeurIPS 2017: drift plus penalty for stochastic constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, positive
from coldq.base.contractions import matvec, vecmat
from coldq.base.protocols import Domain
from coldq.learners.card import FIRST_ORDER, Card, Claim, Rate, reference
from coldq.learners.learner import Algorithm, Place, horizon_of
from coldq.learners.revealed import require_finite
from coldq.learners.state import DualState
from coldq.slot.feedback import Feedback


@dataclass(frozen=True, eq=False, repr=False, init=False)
class YuNeelyWei2017(Algorithm):
    """A gradient step on loss and queues, and queues that add the linear model of the constraint.

    Q_1 = 0. At the end of slot t, with J the jacobian of g_t at x_t:

        d       = V grad f_t(x_t) + J' Q_t
        x_{t+1} = P_X(x_t - d / (2 alpha))
        Q_{t+1} = [ Q_t + g_t(x_t) + J (x_{t+1} - x_t) ]_+

    The constraint is linearised and not clipped: slack in one slot pays for violation in another.

    Parameters
    ----------
    domain, horizon
        The feasible set X and the number of slots T.
    V, alpha
        The weight of the loss and of the movement; by default T^(1/2) and T.

    References
    ----------
    Yu, Neely and Wei, NeurIPS 2017; the rule as three implementations by others agree on it, the
    bounds, on expectations, from the abstract.

    >>> import coldq
    >>> learner = coldq.YuNeelyWei2017(coldq.Box(0.0, 4.0, dim=1), horizon=4)  # V = 2, alpha = 4
    >>> revealed = coldq.Feedback(coldq.Linear([-8.0]), coldq.Affine([[1.0]], [1.0]))
    >>> state = learner.update(learner.init(1), revealed)
    >>> state.x, state.queue
    (array([2.]), array([1.]))
    """

    card: ClassVar[Card] = Card(
        needs=FIRST_ORDER,
        assumes=("constraints drawn i.i.d.", "a Slater point on average", "known horizon"),
        claims=(Claim("convex", "time-varying", Rate(0.5), Rate(0.5), measure="soft"),),
        certainty="likely",
        bibtex=reference("yu2017online"),
    )
    state_type = DualState

    domain: Domain
    horizon: int | None
    V: Array
    alpha: Array
    _leading = ("V", "alpha")

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        *,
        V: ArrayLike | None = None,
        alpha: ArrayLike | None = None,
    ) -> None:
        T = float(horizon_of(horizon))
        self._take(
            domain,
            horizon,
            V=positive("V", np.sqrt(T) if V is None else V),
            alpha=positive("alpha", T if alpha is None else alpha),
        )

    def update(self, state: DualState, feedback: Feedback, played: Place = None) -> DualState:
        """The state of the next slot."""
        gradient, g = self.observe(state, feedback, "queue", played)
        t, x, Q = state.t, state.x, state.queue
        J = self.jacobian_of(state, feedback, g.shape[-1], played)

        d = self.V[..., None] * gradient + vecmat(J, Q)
        x_new = require_finite(self._move(x, d))
        moved = g + matvec(J, x_new - self._place(state, played))
        Q_new = require_finite(np.maximum(Q + moved, 0.0))
        return self.new_state(t + 1, x_new, Q_new)

    def _move(self, x: Array, d: Array) -> Array:
        """argmin over X of ``<d, y> + alpha |y - x|^2``."""
        return self.domain.project(x - d / (2.0 * self.alpha[..., None]))
