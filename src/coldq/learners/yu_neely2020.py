"""Yu and Neely, JMLR 2020: a virtual queue with O(1) soft violation of fixed constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, either, positive
from coldq.base.protocols import Domain, Problem
from coldq.learners.card import WHOLE_STEP, Card, Claim, Rate, reference
from coldq.learners.constants import ConstantsOf
from coldq.learners.learner import Learner, Place, horizon_of
from coldq.learners.revealed import finite_weights
from coldq.learners.state import QueueState
from coldq.slot.feedback import Feedback
from coldq.slot.schedules import Constant, Schedule, as_schedule
from coldq.slot.step import solve


@dataclass(frozen=True, eq=False, repr=False, init=False)
class YuNeely2020(Learner):
    """A per-slot convex step, the constraint weighted by a queue and priced for slack as well.

    Q_0 = 0. At the end of slot t:

        Q_t     = max{ -gamma g(x_t), Q_{t-1} + gamma g(x_t) }
        x_{t+1} = argmin over x in X of <grad f_t(x_t), x - x_t>
                  + <Q_t + gamma g(x_t), gamma g(x)> + alpha |x - x_t|^2

    The weights are never negative. The constraint is kept whole and not clipped; if it is affine,
    the step is a projection. With gamma = T^(1/4) and alpha = (L^2 + 1) T^(1/2) / 2 its static
    regret is O(T^(1/2)) and its soft violation O(1), under a Slater condition.

    Parameters
    ----------
    domain, horizon
        The feasible set X and the number of slots T.
    lipschitz
        L, the Lipschitz constant of the vector g, for the parameters above.
    alpha, gamma
        Any other parameters: positive numbers or functions of t.

    References
    ----------
    Yu and Neely, JMLR 2020; the parameters and the queue as other people's code has them too.

    >>> import coldq
    >>> learner = coldq.YuNeely2020(coldq.Box(0.0, 4.0, dim=1), horizon=16, lipschitz=1.0)
    >>> revealed = coldq.Feedback(coldq.Linear([-8.0]), coldq.Affine([[1.0]], [1.0]))
    >>> state = learner.update(learner.init(1, start=[1.0]), revealed)  # gamma = 2, alpha = 4
    >>> state = learner.update(state, revealed)
    >>> state.x, state.queue
    (array([2.]), array([2.]))
    """

    card: ClassVar[Card] = Card(
        needs=WHOLE_STEP,
        assumes=("fixed constraints", "a Slater point", "known horizon", "Lipschitz constant of g"),
        claims=(Claim("convex", "fixed", Rate(0), Rate(0.5), measure="soft"),),
        certainty="likely",
        bibtex=reference("yu2020low"),
    )
    state_type = QueueState

    domain: Domain
    alpha: Schedule
    gamma: Schedule
    horizon: int | None
    _leading = ("alpha", "gamma")

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        *,
        lipschitz: ArrayLike | None = None,
        alpha: Any = None,
        gamma: Any = None,
    ) -> None:
        either("YuNeely2020", lipschitz=lipschitz, alpha=alpha)
        root = np.sqrt(float(horizon_of(horizon)))
        if alpha is None:
            alpha = Constant((positive("lipschitz", lipschitz) ** 2 + 1.0) * root / 2.0)  # type: ignore[arg-type]
        gamma = as_schedule("gamma", np.sqrt(root) if gamma is None else gamma)
        self._take(domain, horizon, alpha=as_schedule("alpha", alpha), gamma=gamma)

    @classmethod
    def for_problem(cls, problem: Problem, **parameters: Any) -> Any:
        """L = sqrt(N) times the Lipschitz constant of a row, unless alpha is given.

        >>> import coldq
        >>> coldq.YuNeely2020.for_problem(coldq.problems.OnlineLinear(horizon=16)).alpha.level
        array(5.)
        """
        known = ConstantsOf(problem, parameters)
        needed = {} if "alpha" in parameters else {"lipschitz": "vector_lipschitz"}
        return cls._of(problem, **known.fill(**needed))

    def update(self, state: QueueState, feedback: Feedback, played: Place = None) -> QueueState:
        """The state of the next slot."""
        gradient, g = self.observe(state, feedback, "queue", played)
        t, x = state.t, state.x
        gamma = self.gamma(t)[..., None]

        v = gamma * g
        queue = np.maximum(-v, state.queue + v)
        weights = finite_weights(gamma * (queue + v))
        alpha = self._step_size(state, feedback, g.shape[-1], played)
        step = solve(x, gradient, alpha, weights, feedback.constraint, self.domain, weights)
        return self.new_state(t + 1, step.x, queue, step.multipliers)

    def _step_size(self, state: QueueState, feedback: Feedback, rows: int, played: Place) -> Array:
        """alpha_t, which :class:`~coldq.Liu2022` may take from what was revealed."""
        return self.alpha(state.t)
