"""COLDQ-Expert: COLDQ that need not know how fast the best decision moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from coldq.base.arrays import Array, one_real, positive
from coldq.base.protocols import Domain
from coldq.learners.card import GRADIENT_ELSEWHERE, WHOLE_STEP, Card, Claim, Rate, reference
from coldq.learners.coldq import COLDQ
from coldq.learners.experts import ExpertLearner
from coldq.slot.schedules import Power
from coldq.theory.a_priori import APrioriBounds, a_priori_bounds
from coldq.theory.assumptions import DoublyBounded
from coldq.theory.constants import Guarantee, RunConstants
from coldq.theory.guarantees import expert_guarantees


@dataclass(frozen=True, eq=False, repr=False, init=False)
class COLDQExpert(ExpertLearner):
    """COLDQ without knowledge of V_x: M copies, expert m with alpha_t[m] = sqrt(t) / 2^(m-1).

    Algorithm 2 of the paper with the parameters of its corollary: kappa = T^(-1/2),
    eta = T^(-3/2), gamma = epsilon T^(3/2). The weights are also updated at t = 1: the paper's loop
    starts at t = 2, which leaves w_2 undefined.

    Parameters
    ----------
    domain, horizon
        The feasible set X and the number of slots T.
    epsilon
        The queue's floor per slot, as in :class:`~coldq.COLDQ`.
    kappa
        The hedge's rate.
    gradient
        "own": each expert gets the gradient at its own point, as printed. "shared": all get the
        gradient at x_t, one evaluation a slot. A loss known only at x_t gets the shared one, with a
        warning.

    References
    ----------
    Wang, Yan and Liu, AAAI 2025, Algorithm 2 and the corollary on expert tracking.

    >>> import coldq
    >>> learner = coldq.COLDQExpert(coldq.Box(0.0, 1.0, dim=2), horizon=100)
    >>> state = learner.init(n_constraints=1)
    >>> state.weights.round(3), state.experts.x.shape
    (array([0.625, 0.208, 0.104, 0.062]), (4, 2))
    """

    card: ClassVar[Card] = Card(
        needs=WHOLE_STEP | {GRADIENT_ELSEWHERE},
        assumes=("known horizon",),
        claims=(
            Claim("convex", "fixed", Rate(0), Rate(0.5), Rate(0.5, vx=0.5)),
            Claim("convex", "time-varying", Rate(vg=1), Rate(0.5), Rate(0.5, vx=0.5)),
        ),
        certainty="exact",
        bibtex=reference("wang2025coldq"),
    )

    domain: Domain
    horizon: int | None
    epsilon: Array
    kappa: Array
    gradient: str

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        epsilon: float = 0.5,
        *,
        kappa: float | None = None,
        gradient: str = "own",
    ) -> None:
        self._set_common(domain, horizon, kappa, gradient)
        self._set(epsilon=positive("epsilon", one_real("epsilon", epsilon)))

    def guarantees(self, constants: RunConstants) -> tuple[Guarantee, ...]:
        """The corollary on expert tracking for these parameters and what is known of a run.

        >>> import coldq
        >>> learner = coldq.COLDQExpert(coldq.Box(0.0, 1.0, dim=2), horizon=100)
        >>> constants = coldq.bounds.RunConstants(
        ...     horizon=100, diameter=2.0, gradient_bound=1.0, constraint_bound=1.0,
        ...     n_constraints=1, constraint_variation=0.0, path_length=0.0)
        >>> learner.guarantees(constants)[0].bound
        np.float64(66.980...)
        """
        pool = self._pool_of(0)
        alphas = [Power(0.5, scale) for scale in pool.alpha.scale]  # type: ignore[attr-defined]
        return expert_guarantees(alphas, self.kappa, pool.gamma, constants)

    @property
    def assumptions(self) -> DoublyBounded:
        """What the corollary asks of its runs: what COLDQ does of every expert."""
        pool = self._pool_of(1)  # whose alpha has a row for each expert

        def queues(trace: Any) -> tuple[Array, str]:
            return trace.state.experts.queue, "of all experts, at the end"

        return DoublyBounded(pool.alpha, pool.eta, pool.gamma, queues)

    def a_priori_bounds(self, n_constraints: int, **assumed: Any) -> APrioriBounds:
        """The bounds before a run, for assumed constants.

        Its keywords are those of :func:`coldq.a_priori_bounds`.

        >>> import coldq
        >>> learner = coldq.COLDQExpert(coldq.Box(0.0, 1.0, dim=2), horizon=1000)
        >>> learner.a_priori_bounds(1, gradient_bound=1.0, constraint_bound=1.0).useful_from
        16
        """

        def at(T: int) -> COLDQExpert:
            kappa = self.kappa * np.sqrt((self.horizon or T) / T)
            epsilon = float(self.epsilon)
            return COLDQExpert(self.domain, T, epsilon, kappa=kappa, gradient=self.gradient)

        return a_priori_bounds(self, at, n_constraints, **assumed)

    def _pool_of(self, axes: int) -> COLDQ:
        T = float(self.horizon or 0)
        alpha = Power(0.5, 1.0 / self._scales(axes))
        return COLDQ(self.domain, alpha=alpha, eta=T**-1.5, gamma=self.epsilon * T**1.5)
