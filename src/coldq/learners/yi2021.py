"""Yi, Li, Yang, Xie, Chai and Johansson, ICML 2021: Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from coldq.base.arrays import Array, flag, one_fraction, one_of, positive
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Domain, Problem
from coldq.learners.card import WHOLE_STEP, Card, Claim, Rate, reference
from coldq.learners.constants import ConstantsOf
from coldq.learners.learner import horizon_of
from coldq.learners.queue_learner import QueueLearner
from coldq.learners.queue_rule import QueueRule, When
from coldq.learners.state import QueueState
from coldq.slot.schedules import Constant, Power, Schedule, as_schedule
from coldq.theory.assumptions import WeightedStep
from coldq.theory.constants import Guarantee, RunConstants

LIPSCHITZ = ("vector", "rows")  # of which the theory's constant is


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Yi2021(QueueLearner):
    """A per-slot convex step, weighted by the accumulated violation, the latest counted twice.

    q_0 = 0. At the end of slot t, with v = gamma_t [g_t(x_t)]_+ :

        q_t     = q_{t-1} + v,   qhat_t = q_t + v
        x_{t+1} = argmin over x in X of alpha_t <grad f_t(x_t), x>
                  + alpha_t gamma_{t+1} <qhat_t, [g_t(x)]_+> + |x - x_t|^2

    Parameters
    ----------
    domain, horizon
        The feasible set X and the number of slots T.
    alpha0, gamma0
        alpha = alpha0 / T^c and gamma = gamma0 T^(c/2). The theory keeps alpha gamma^2 L^2 bounded
        for L the Lipschitz constant of g.
    c
        In (0, 1): trades regret O(T^max(c, 1-c)) for violation O(T^((1-c)/2)).
    printed_gamma
        Take gamma0 / T^(c/2), as the tables of COLDQ's paper print it. That is the wrong side of
        the fraction: it leaves losses far off and hundreds of times the violation.
    alpha, gamma
        Any other parameters: positive numbers or functions of t.

    References
    ----------
    Yi et al., ICML 2021, Algorithm 1; the rule as in the later released code of the authors of
    COLDQ, the bounds from the abstract.

    >>> import coldq
    >>> learner = coldq.Yi2021(coldq.Box(0.0, 1.0, dim=2), horizon=16, alpha0=2.0, gamma0=3.0)
    >>> learner.alpha, learner.gamma
    (Constant(level=0.5), Constant(level=6.0))
    """

    card: ClassVar[Card] = Card(
        needs=WHOLE_STEP,
        assumes=("fixed constraints", "known horizon"),
        claims=(
            Claim("convex", "fixed", Rate(0.25), Rate(0.5)),
            Claim("strongly convex", "fixed", Rate(0, log=1), Rate(0, log=1)),
        ),
        certainty="likely",
        bibtex=reference("yi2021regret"),
    )

    domain: Domain
    alpha: Schedule
    gamma: Schedule
    horizon: int | None
    _leading = ("alpha", "gamma")

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        *,
        alpha0: float | None = None,
        gamma0: float | None = None,
        c: float = 0.5,
        printed_gamma: bool = False,
        alpha: Any = None,
        gamma: Any = None,
    ) -> None:
        if (alpha is None) == (alpha0 is None) or (gamma is None) == (gamma0 is None):
            raise InvalidInput("Yi2021 needs either alpha0 or alpha, and either gamma0 or gamma")
        if horizon is None and (alpha0 is not None or gamma0 is not None):
            raise InvalidInput("alpha0 and gamma0 are scaled by the horizon, so Yi2021 needs it")
        c, T = one_fraction("c", c), 1.0 if horizon is None else float(horizon_of(horizon))
        if alpha0 is not None:
            alpha = Constant(positive("alpha0", alpha0) / T**c)
        if gamma0 is not None:
            power = -c / 2.0 if flag("printed_gamma", printed_gamma) else c / 2.0
            gamma = Constant(positive("gamma0", gamma0) * T**power)
        gamma = as_schedule("gamma", gamma)
        self._take(domain, horizon, alpha=as_schedule("alpha", alpha), gamma=gamma)

    @classmethod
    def strongly_convex(cls, domain: Domain, horizon: int, mu: float, gamma0: float) -> Yi2021:
        """alpha_t = 1 / (mu t) and gamma_t = gamma0 sqrt(mu t), which keeps alpha gamma^2 bounded.

        `mu` is COLDQ's, without the 1/2. The reading of these parameters is uncertain.

        >>> import coldq
        >>> X = coldq.Box(0.0, 1.0, dim=1)
        >>> coldq.Yi2021.strongly_convex(X, 100, mu=0.5, gamma0=1.0).alpha(4.0)
        np.float64(0.5)
        """
        mu_ = positive("mu", mu)
        gamma = Power(0.5, positive("gamma0", gamma0) * np.sqrt(mu_))
        return cls(domain, horizon, alpha=Power(-1.0, 1.0 / mu_), gamma=gamma)

    @classmethod
    def for_problem(cls, problem: Problem, *, reading: str = "vector", **parameters: Any) -> Yi2021:
        """alpha0 = R / D, and the gamma0 for which alpha gamma^2 L^2 = 1/2, unless given.

        L is the Lipschitz constant of all N rows as one vector, as the proof needs it: sqrt(N)
        times that of a row. ``reading="rows"`` takes that of a row, which makes gamma sqrt(N) times
        as large: fewer violations, and alpha gamma^2 L^2 = N / 2, where the proof asks for a half.

        >>> import coldq
        >>> problem = coldq.problems.OnlineLinear(horizon=10)  # of three rows
        >>> proved = coldq.Yi2021.for_problem(problem).gamma(1.0)
        >>> rows = coldq.Yi2021.for_problem(problem, reading="rows").gamma(1.0)
        >>> ((rows / proved) ** 2).round(6)
        np.float64(3.0)
        """
        one_of("reading", reading, LIPSCHITZ)
        constants = ConstantsOf(problem, parameters)
        if "alpha" not in parameters and "alpha0" not in parameters:
            parameters["alpha0"] = constants.diameter / constants.gradient_bound
        if not {"gamma", "gamma0"} & set(parameters) and "alpha0" in parameters:
            scale = np.sqrt(2.0 * parameters["alpha0"]) * lipschitz_of(constants, reading)
            parameters["gamma0"] = 1.0 / scale
        return cls._of(problem, **parameters)

    def guarantees(self, constants: RunConstants) -> tuple[Guarantee, ...]:
        """Theorem 1 of COLDQ's paper with its alpha_t = 1 / alpha_t, and a bound by the weights.

        The weights are zero until a row is violated, so that before a run nothing but N G T is
        known of the violation. In a run they are what violations have made of them.

        >>> import coldq
        >>> learner = coldq.Yi2021(coldq.Box(0.0, 1.0, dim=2), horizon=100, alpha0=1.0, gamma0=1.0)
        >>> constants = coldq.bounds.RunConstants(
        ...     horizon=100, diameter=2.0, gradient_bound=1.0, constraint_bound=1.0,
        ...     n_constraints=1, constraint_variation=0.0, path_length=0.0)
        >>> [guarantee.bound.round(3) for guarantee in learner.guarantees(constants)[1:3]]
        [np.float64(44.5), np.float64(100.0)]
        """
        return self.assumptions.guarantees(constants)

    @property
    def assumptions(self) -> WeightedStep:
        """What these ask of its runs: an alpha_t that does not grow."""

        def of_run(trace: Any) -> Array:
            v, t = trace.violation[:, :-1], np.arange(1.0, trace.horizon)
            now, then = (np.broadcast_to(self.gamma(s), t.shape)[:, None] for s in (t, t + 1.0))
            return then * (np.add.accumulate(now * v, axis=1) + now * v)

        def unknown(t: Array) -> Array:
            return np.zeros(np.shape(t))

        def alpha(t: Array) -> Array:
            return 1.0 / self.alpha(t)

        return WeightedStep(alpha, unknown, of_run)

    def rule(self, t: Any) -> QueueRule:
        """The numbers of slot t, whose violations weigh twice in its step."""
        return QueueRule(
            1.0 / self.alpha(t),
            gain=self.gamma(t),
            price=self.gamma(t + 1),
            when=When.TWICE_BEFORE_STEP,
        )

    def _caps(self, before: QueueState, after: QueueState) -> Array:
        """The weights of the step between two states, which bound its multipliers."""
        return self.gamma(before.t + 1)[..., None] * (2.0 * after.queue - before.queue)


def lipschitz_of(constants: ConstantsOf, reading: str) -> Any:
    """L in the reading that a ``for_problem`` was asked for."""
    return constants.vector_lipschitz if reading == "vector" else constants.constraint_lipschitz
