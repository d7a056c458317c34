"""Yi 2021 with expert tracking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from coldq.base.arrays import Array, one_fraction, one_of, positive
from coldq.base.protocols import Domain, Problem
from coldq.learners.card import WHOLE_STEP, Card, Claim, Rate, reference
from coldq.learners.constants import ConstantsOf
from coldq.learners.experts import ExpertLearner
from coldq.learners.yi2021 import LIPSCHITZ, Yi2021, lipschitz_of
from coldq.slot.schedules import Power


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Yi2021Expert(ExpertLearner):
    """Yi 2021 with expert tracking, its Algorithm 2: alpha_t[i] = 2^(i-1) alpha0 / t^c.

    Each expert is fed the surrogate ``<grad f_t(x_t), x - x_t>`` and has a queue of its own, with
    gamma_t[i] = gamma0 / sqrt(alpha_t[i]), which keeps alpha gamma^2 bounded.

    Parameters
    ----------
    domain, horizon
        The feasible set X and the number of slots T.
    alpha0, gamma0, c
        As in :class:`~coldq.Yi2021`.
    kappa, gradient
        As in :class:`~coldq.COLDQExpert`; by default one shared gradient.

    References
    ----------
    Yi et al., ICML 2021, Algorithm 2; constants in part from knowledge of the field.

    >>> import coldq
    >>> X = coldq.Box(0.0, 1.0, dim=2)
    >>> coldq.Yi2021Expert(X, horizon=100, alpha0=1.0, gamma0=1.0).n_experts
    4
    """

    card: ClassVar[Card] = Card(
        needs=WHOLE_STEP,
        assumes=("known horizon", "fixed constraints"),
        claims=(Claim("convex", "fixed", Rate(0.5), Rate(0.5), Rate(0.5, vx=0.5)),),
        certainty="uncertain",
        unchecked="the constants of the experts' steps and of their hedge",
        bibtex=reference("yi2021regret"),
    )

    domain: Domain
    horizon: int | None
    alpha0: Array
    gamma0: Array
    c: float
    kappa: Array
    gradient: str

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        *,
        alpha0: float,
        gamma0: float,
        c: float = 0.5,
        kappa: float | None = None,
        gradient: str = "shared",
    ) -> None:
        self._set_common(domain, horizon, kappa, gradient)
        levels = {"alpha0": positive("alpha0", alpha0), "gamma0": positive("gamma0", gamma0)}
        self._set(**levels, c=one_fraction("c", c))

    @classmethod
    def for_problem(
        cls, problem: Problem, *, reading: str = "vector", **parameters: Any
    ) -> Yi2021Expert:
        """alpha0 = R / D, and the gamma0 for which alpha gamma^2 L^2 = 1/2, unless given.

        `reading` says which L that is, as for :class:`~coldq.Yi2021`.
        """
        one_of("reading", reading, LIPSCHITZ)
        known = ConstantsOf(problem, parameters)
        if "alpha0" not in parameters:
            parameters["alpha0"] = known.diameter / known.gradient_bound
        if "gamma0" not in parameters:
            parameters["gamma0"] = np.sqrt(0.5) / lipschitz_of(known, reading)
        return cls._of(problem, **parameters)

    def _pool_of(self, axes: int) -> Yi2021:
        scale = self.alpha0 * self._scales(axes)
        gamma = Power(self.c / 2.0, self.gamma0 / np.sqrt(scale))
        return Yi2021(self.domain, alpha=Power(-self.c, scale), gamma=gamma)
