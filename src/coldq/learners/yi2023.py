"""Yi, Li, Yang, Xie, Chai and Johansson, IEEE TAC 2023: Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from coldq.base.arrays import Array, one_fraction, one_of, positive
from coldq.base.contractions import matvec, vecmat
from coldq.base.protocols import Domain, Problem
from coldq.learners.card import FIRST_ORDER, Card, Claim, Rate, reference
from coldq.learners.constants import ConstantsOf
from coldq.learners.learner import Learner, Place
from coldq.learners.revealed import require_finite
from coldq.learners.state import State
from coldq.slot.feedback import Feedback
from coldq.slot.schedules import Power, Schedule, as_schedule

INDICES = ("t", "t+1")


@dataclass(frozen=True, eq=False, slots=True)
class Yi2023State(State):
    """The state of :class:`Yi2023`: t, x_t and the dual variable q_t."""

    queue: Array


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Yi2023(Learner):
    """A primal-dual gradient step with a regularised dual variable.

    q_1 = 0. At the end of slot t, with J the jacobian of the active rows, zero for the others:

        w       = grad f_t(x_t) + J' q_t
        x_{t+1} = P_X(x_t - alpha_t w)
        q_{t+1} = [ (1 - beta_t gamma_t) q_t + gamma_t ([g_t(x_t)]_+ + J (x_{t+1} - x_t)) ]_+

    The distributed algorithm moves from a mixture z of its neighbours' decisions in place of x_t,
    ``x_{t+1} = P_X(z - alpha_t w)``; that is ``Decentralised(Yi2023(...), mixing)``. A single agent
    is its own only neighbour.

    Parameters
    ----------
    domain
        The feasible set X.
    alpha, beta, gamma
        The primal step, the dual regularisation and the dual step: positive numbers or functions
        of t. The theory has a t^-c, b t^-k and g t^-(1-k), see :meth:`from_exponents`.
    index
        "t", as the theory counts: the step at the end of slot t has alpha_t, beta_t and gamma_t.
        "t+1", as the released code has it: those of the slot that the step decides for. All steps
        are then a little shorter, the first one by a factor 2^-c. Numbers that do not change with t
        make no difference.

    References
    ----------
    Yi et al., IEEE Transactions on Automatic Control 2023, Algorithm 1; the rule as in the later
    released code of the authors of COLDQ, the bounds from the abstract. COLDQ's tables may have
    beta and gamma swapped; here they are what the paper's definition says.

    >>> import coldq
    >>> X, constant = coldq.Box(0.0, 4.0, dim=1), dict(alpha=1.0, beta=0.5, gamma=1.0)
    >>> learner = coldq.Yi2023(X, **constant)
    >>> revealed = coldq.Feedback(coldq.Linear([-2.0]), coldq.Affine([[1.0]], [1.0]))
    >>> state = learner.update(learner.init(1), revealed)
    >>> state = learner.update(state, revealed)
    >>> state.x, state.queue
    (array([4.]), array([3.]))
    """

    card: ClassVar[Card] = Card(
        needs=FIRST_ORDER,
        assumes=("a feasible decision common to all slots",),
        claims=(
            Claim("convex", "fixed", Rate(0.75), Rate(0.5)),
            Claim("convex", "time-varying", Rate(0.75), Rate(0.5)),
            Claim("strongly convex", "time-varying", Rate(0.75), Rate(0.5)),
        ),
        certainty="likely",
        bibtex=reference("yi2023regret"),
    )

    state_type = Yi2023State
    domain: Domain
    alpha: Schedule
    beta: Schedule
    gamma: Schedule
    index: str
    horizon: int | None
    _leading = ("alpha", "beta", "gamma")
    _constructors = ("from_exponents",)

    def __init__(
        self, domain: Domain, *, alpha: Any, beta: Any, gamma: Any, index: str = "t"
    ) -> None:
        one_of("index", index, INDICES)
        self._take(
            domain,
            alpha=as_schedule("alpha", alpha),
            beta=as_schedule("beta", beta),
            gamma=as_schedule("gamma", gamma),
            index=index,
        )

    @classmethod
    def from_exponents(
        cls,
        domain: Domain,
        *,
        a: float,
        b: float,
        g: float,
        c: float = 0.5,
        k: float = 0.5,
        index: str = "t",
    ) -> Yi2023:
        """alpha_t = a t^-c, beta_t = b t^-k and gamma_t = g t^-(1-k).

        >>> import coldq
        >>> coldq.Yi2023.from_exponents(coldq.Box(0.0, 1.0, dim=1), a=3.0, b=5.0, g=0.1).beta
        Power(exponent=-0.5, scale=5.0)
        """
        c, k = one_fraction("c", c), one_fraction("k", k)
        return cls(
            domain,
            alpha=Power(-c, positive("a", a)),
            beta=Power(-k, positive("b", b)),
            gamma=Power(k - 1.0, positive("g", g)),
            index=index,
        )

    @classmethod
    def for_problem(cls, problem: Problem, **parameters: Any) -> Yi2023:
        """a = R / D and b = g = 1 / L^2 for L the Lipschitz constant of g, unless given.

        >>> import coldq
        >>> learner = coldq.Yi2023.for_problem(coldq.problems.OnlineLinear(horizon=10))
        >>> learner.gamma.scale.round(6)
        np.float64(2.0)
        """
        known = ConstantsOf(problem, parameters)
        if "a" not in parameters:
            parameters["a"] = known.diameter / known.gradient_bound
        for name in {"b", "g"} - set(parameters):
            parameters[name] = known.constraint_lipschitz**-2
        return cls._of(problem, "from_exponents", **parameters)

    def update(
        self, state: Yi2023State, feedback: Feedback, center: Place = None, played: Place = None
    ) -> Yi2023State:
        """The state of the next slot; `center` is z, the mixture of neighbours' decisions."""
        gradient, g = self.observe(state, feedback, "queue", played)
        t, q = state.t, state.queue
        z = self._center(state, center)
        J = self.jacobian_of(state, feedback, g.shape[-1], played) * (g > 0.0)[..., None]
        s = t if self.index == "t" else t + 1
        alpha, beta, gamma = (at(s)[..., None] for at in (self.alpha, self.beta, self.gamma))

        w = gradient + vecmat(J, q)
        x_new = require_finite(self.domain.project(z - alpha * w))
        moved = np.maximum(g, 0.0) + matvec(J, x_new - self._place(state, played))
        q_new = require_finite(np.maximum((1.0 - beta * gamma) * q + gamma * moved, 0.0))
        return self.new_state(t + 1, x_new, q_new)
