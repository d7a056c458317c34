"""RECOO: Rectified Online Optimization (Guo, Liu, Wei and Ying, NeurIPS 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from coldq.base.arrays import Array, one_of, one_real, positive
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Domain
from coldq.learners.card import WHOLE_STEP, Card, Claim, Rate, reference
from coldq.learners.queue_learner import QueueLearner
from coldq.learners.queue_rule import QueueRule, When
from coldq.slot.schedules import Power, Schedule, as_schedule, number_at
from coldq.theory.assumptions import WeightedStep, queue_again
from coldq.theory.constants import Guarantee, RunConstants

READINGS = ("drift", "comparison")


@dataclass(frozen=True, eq=False, repr=False, init=False)
class RECOO(QueueLearner):
    """A per-slot convex step, weighted by a queue with a growing floor and no ceiling.

    Q_1 = 0, so that the first step ignores the constraints. At the end of slot t:

        x_{t+1} = argmin over x in X of
                  <grad f_t(x_t), x - x_t> + alpha_t |x - x_t|^2 + gamma_t sum_n Q_t^n [g_t^n(x)]_+

    and the queue, in one of two readings of the rule:

        "drift"       Q_{t+1} = max{ Q_t + gamma_t [g_t(x_{t+1})]_+ , eta_{t+1} }
        "comparison"  Q_t     = max{ Q_{t-1} + gamma_t [g_t(x_t)]_+ , eta_t }  before it, for t > 1

    "drift" is how another paper reports it and what the drift analysis bounds; "comparison" is how
    the authors of COLDQ coded it. On the paper's problems the two are hardly told apart.

    Parameters
    ----------
    domain
        The feasible set X.
    epsilon
        For the default gamma_t = t^(1/2 + epsilon).
    alpha, gamma, eta
        Positive numbers or functions of t; by default t^(1/2), t^(1/2 + epsilon) and t^(1/2).
    reading
        "drift" or "comparison".

    References
    ----------
    Guo, Liu, Wei and Ying, NeurIPS 2022; the queue as reported by Sinha and Vaze, NeurIPS 2024,
    appendix A.5, and as in the later released code of the authors of COLDQ.

    >>> import coldq
    >>> learner = coldq.RECOO(coldq.Box(0.0, 4.0, dim=1))
    >>> revealed = coldq.Feedback(coldq.Linear([-4.0]), coldq.Affine([[1.0]], [1.0]))
    >>> state = learner.update(learner.init(1), revealed)
    >>> state.x, state.queue.round(6)  # Q_1 = 0: only now it looks at the constraint
    (array([2.]), array([1.414214]))
    """

    card: ClassVar[Card] = Card(
        needs=WHOLE_STEP,
        assumes=("a feasible decision common to all slots, for static regret",),
        claims=(
            Claim("convex", "fixed", Rate(0), Rate(0.5)),
            Claim("convex", "time-varying", Rate(0.75), Rate(0.5), Rate(0.5, vx=1)),
            Claim("strongly convex", "fixed", Rate(0), Rate(0, log=1)),
            Claim(
                "strongly convex",
                "time-varying",
                Rate(0.5, log=0.5),
                Rate(0, log=1),
                Rate(0.5, vx=1),
            ),
        ),
        certainty="likely",
        bibtex=reference("guo2022online"),
    )

    domain: Domain
    alpha: Schedule
    gamma: Schedule
    eta: Schedule
    reading: str
    horizon: int | None
    _leading = ("alpha", "gamma", "eta")

    def __init__(
        self,
        domain: Domain,
        epsilon: float | None = None,
        *,
        alpha: Any = None,
        gamma: Any = None,
        eta: Any = None,
        reading: str = "drift",
    ) -> None:
        if gamma is None:
            step = positive("epsilon", 0.01 if epsilon is None else epsilon)
            gamma = Power(0.5 + one_real("epsilon", step))
        elif epsilon is not None:
            raise InvalidInput("epsilon sets gamma, so give one of them, not both")
        one_of("reading", reading, READINGS)
        self._take(
            domain,
            alpha=as_schedule("alpha", Power(0.5) if alpha is None else alpha),
            gamma=as_schedule("gamma", gamma),
            eta=as_schedule("eta", Power(0.5) if eta is None else eta),
            reading=reading,
        )

    @classmethod
    def strongly_convex(cls, domain: Domain, mu: float, **parameters: Any) -> RECOO:
        """alpha_t = mu t, with COLDQ's mu: without the 1/2.

        >>> import coldq
        >>> coldq.RECOO.strongly_convex(coldq.Box(0.0, 1.0, dim=1), mu=2.0).alpha
        Power(exponent=1.0, scale=2.0)
        """
        return cls(domain, alpha=Power(1.0, positive("mu", mu)), **parameters)

    def guarantees(self, constants: RunConstants) -> tuple[Guarantee, ...]:
        """Theorem 1 of COLDQ's paper, which asks nothing of a queue, and a bound by the weights.

        The weights gamma_t Q_t are at least gamma_t eta_t from slot 2 on, so that with the default
        parameters the violation beyond sqrt(N) V is O(T^(1/2)), and O(1) if gamma_t eta_t grows
        faster than t alpha_t.

        >>> import coldq
        >>> learner = coldq.RECOO(coldq.Box(0.0, 1.0, dim=2))
        >>> constants = coldq.bounds.RunConstants(
        ...     horizon=100, diameter=2.0, gradient_bound=1.0, constraint_bound=1.0,
        ...     n_constraints=1, constraint_variation=0.0, path_length=0.0)
        >>> learner.guarantees(constants)[2].bound
        np.float64(38.353...)
        """
        return self.assumptions.guarantees(constants)

    @property
    def assumptions(self) -> WeightedStep:
        """What these ask of its runs; with ``keep=["queue"]`` its weights are known."""

        def least(t: Array) -> Array:
            return np.where(t > 1.0, self.gamma(t) * self.eta(t), 0.0)

        def of_run(trace: Any) -> Array | None:
            t, kept = np.arange(1.0, trace.horizon), trace.queue
            gamma = np.broadcast_to(self.gamma(t), t.shape)[:, None]
            if self.reading == "drift":  # whose queue takes in g_t(x_{t+1}), which no trace has
                return None if kept is None else gamma * kept[:, :-1]
            if kept is not None:
                return gamma * kept[:, 1:]
            floor = np.where(t > 1.0, self.eta(t), 0.0)
            return gamma * np.moveaxis(queue_again(gamma * trace.violation[:, :-1], 0, floor), 0, 1)

        return WeightedStep(self.alpha, least, of_run)

    @property
    def has_first_queue(self) -> bool:
        """Whether Q_1 = 0 is the queue of slot 1, as the comparison has it."""
        return self.reading == "comparison"

    def rule(self, t: Any) -> QueueRule:
        """The numbers of slot t in the reading that was chosen."""
        alpha, gamma = number_at(self.alpha, t), number_at(self.gamma, t)
        drifts = self.reading == "drift"
        return QueueRule(
            alpha,
            gain=gamma,
            floor=number_at(self.eta, t + 1 if drifts else t),
            price=gamma,
            when=When.AFTER_STEP if drifts else When.BEFORE_STEP,
        )
