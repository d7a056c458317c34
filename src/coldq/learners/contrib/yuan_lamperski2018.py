"""Yuan and Lamperski, NeurIPS 2018: the first bound on hard violation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, one_fraction, positive
from coldq.base.contractions import vecmat
from coldq.base.protocols import Domain, Problem
from coldq.learners.card import FIRST_ORDER, Card, Claim, Rate, reference
from coldq.learners.constants import ConstantsOf
from coldq.learners.learner import Learner, Place, horizon_of
from coldq.learners.revealed import require_finite
from coldq.learners.state import DualState
from coldq.slot.feedback import Feedback


@dataclass(frozen=True, eq=False, repr=False, init=False)
class YuanLamperski2018(Learner):
    """Gradient descent on an augmented Lagrangian, whose multiplier has a closed form.

    At the end of slot t, with J the jacobian of g at x_t:

        l_t     = [g(x_t)]_+ / (sigma eta)
        x_{t+1} = P_X(x_t - eta (grad f_t(x_t) + J' l_t))

    The multiplier has no memory; the state keeps the latest one as its queue. What is bounded is
    the sum of the squares of [g(x_t)]_+, by O(T^(1/2)) at eta of the order of T^(-1/2), and by it
    the hard violation, by O(T^(3/4)).

    Parameters
    ----------
    domain, horizon
        X, a simple set that holds the feasible one, and the number of slots T.
    eta, sigma
        The step and the weight of the squared violation, see :meth:`for_problem`. Our reading of
        the theory's constants is uncertain.

    Notes
    -----
    Two papers by a first author Yuan have this rule. The released code of the authors of COLDQ has
    it with a step beta and a penalty of its own for sigma eta, as Yuan, Proutiere and Shi write it
    for a network, each agent moving from the mean of its neighbours; see :meth:`from_penalty`. For
    a single agent with constants that is a matter of names, and no decision differs.

    References
    ----------
    Yuan and Lamperski, NeurIPS 2018; Yuan, Proutiere and Shi, IEEE Transactions on Automatic
    Control 2022; the rule as in the later released code of the authors of COLDQ, the bounds from
    the abstract.

    >>> import coldq
    >>> X = coldq.Box(0.0, 4.0, dim=1)
    >>> learner = coldq.YuanLamperski2018(X, 16, eta=0.5, sigma=2.0)
    >>> revealed = coldq.Feedback(coldq.Linear([-1.0]), coldq.Affine([[1.0]], [1.0]))
    >>> state = learner.update(learner.init(1, start=[3.0]), revealed)
    >>> state.x, state.queue
    (array([2.5]), array([2.]))
    """

    card: ClassVar[Card] = Card(
        needs=FIRST_ORDER,
        assumes=("fixed constraints", "known horizon", "Lipschitz constant known"),
        claims=(Claim("convex", "fixed", Rate(0.75), Rate(0.5)),),
        certainty="uncertain",
        unchecked="the constants of eta and sigma",
        bibtex=reference("yuan2018online", "yuan2022distributed"),
    )
    state_type = DualState

    domain: Domain
    horizon: int | None
    eta: Array
    sigma: Array
    _leading = ("eta", "sigma")

    def __init__(self, domain: Domain, horizon: int, *, eta: ArrayLike, sigma: ArrayLike) -> None:
        self._take(
            domain, horizon_of(horizon), eta=positive("eta", eta), sigma=positive("sigma", sigma)
        )

    @classmethod
    def from_penalty(
        cls, domain: Domain, horizon: int, *, beta: ArrayLike, penalty: ArrayLike
    ) -> YuanLamperski2018:
        """As Yuan, Proutiere and Shi write it: the step beta, and l_t = [g(x_t)]_+ / penalty.

        >>> import coldq
        >>> X = coldq.Box(0.0, 4.0, dim=1)
        >>> learner = coldq.YuanLamperski2018.from_penalty(X, 16, beta=0.5, penalty=1.0)
        >>> learner.eta, learner.sigma
        (array(0.5), array(2.))
        """
        step = positive("beta", beta)
        return cls(domain, horizon, eta=step, sigma=positive("penalty", penalty) / step)

    @classmethod
    def for_problem(cls, problem: Problem, a: float = 0.5, **parameters: Any) -> YuanLamperski2018:
        """eta = 1 / (L sqrt((m + 1) R T)) and sigma = (m + 1) L^2 / (2 (1 - a)), a in (0, 1).

        L is a common Lipschitz constant of f and g, and m the number of constraints. Either may be
        given.

        >>> import coldq
        >>> problem = coldq.problems.OnlineLinear(horizon=10)
        >>> coldq.YuanLamperski2018.for_problem(problem).horizon
        10
        """
        a = one_fraction("a", a)
        known, m = ConstantsOf(problem, parameters), problem.n_constraints
        if "eta" not in parameters:
            width = known.diameter * problem.horizon
            parameters["eta"] = 1.0 / (known.lipschitz * np.sqrt((m + 1.0) * width))
        if "sigma" not in parameters:
            parameters["sigma"] = (m + 1.0) * known.lipschitz**2 / (2.0 * (1.0 - a))
        return cls._of(problem, **parameters)

    def update(
        self, state: DualState, feedback: Feedback, center: Place = None, played: Place = None
    ) -> DualState:
        """The state of the next slot; `center` is z, the mixture of neighbours' decisions."""
        gradient, g = self.observe(state, feedback, "queue", played)
        t, z = state.t, self._center(state, center)
        J = self.jacobian_of(state, feedback, g.shape[-1], played)
        eta, sigma = self.eta[..., None], self.sigma[..., None]

        dual = np.maximum(g, 0.0) / (sigma * eta)
        x_new = self.domain.project(z - eta * (gradient + vecmat(J, dual)))
        return self.new_state(t + 1, require_finite(x_new), require_finite(dual))
