"""Ader: Adaptive learning for dynamic environments (Zhang, Lu and Zhou, NeurIPS 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, one_real, positive
from coldq.base.protocols import Domain
from coldq.learners.card import GRADIENT, Card, Claim, Rate, reference
from coldq.learners.experts import ExpertLearner
from coldq.learners.ogd import OGD
from coldq.slot.domains import diameter_of, scale_of
from coldq.slot.schedules import Constant


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Ader(ExpertLearner):
    """Gradient descent with many step sizes and a hedge over them; it ignores the constraints.

    With one gradient a slot, and the surrogate ``l_t(x) = <grad f_t(x_t), x - x_t>``:

        x_{t+1}[i] = P_X(x_t[i] - eta_i grad f_t(x_t)),  eta_i = 2^(i-1) (R / D) sqrt(7 / (2 T))
        w_{t+1}[i] is proportional to w_t[i] exp(-kappa l_t(x_t[i])),  kappa = sqrt(2 / T) / (D R)
        x_{t+1}    = sum_i w_{t+1}[i] x_{t+1}[i]

    for i = 1, ..., N with N = ceil(log2(1 + 4 T / 7) / 2) + 1, from ``w_1[i]`` proportional to
    1 / (i (i + 1)). This is the paper's improved version; its first one asks for N gradients.

    Parameters
    ----------
    domain, horizon
        The feasible set X, with diameter R, and the number of slots T.
    gradient_bound
        D.

    References
    ----------
    Zhang, Lu and Zhou, NeurIPS 2018; the pool of steps as other people's code has it.

    >>> import coldq
    >>> learner = coldq.Ader(coldq.Box(0.0, 1.0, dim=1), horizon=14, gradient_bound=1.0)
    >>> state = learner.update(learner.init(0), coldq.Feedback(coldq.Linear([-1.0]), None))
    >>> learner.n_experts, state.experts.x[:, 0]
    (3, array([0.5, 1. , 1. ]))
    """

    card: ClassVar[Card] = Card(
        needs=frozenset({GRADIENT}),
        assumes=("constraints are ignored", "known horizon", "gradient bound D known"),
        claims=(Claim("convex", "fixed", None, Rate(0.5), Rate(0.5, vx=0.5)),),
        certainty="likely",
        bibtex=reference("zhang2018adaptive"),
    )

    domain: Domain
    horizon: int | None
    gradient_bound: Array
    kappa: Array
    gradient: str
    _from_problem = ("gradient_bound",)

    def __init__(self, domain: Domain, horizon: int, *, gradient_bound: ArrayLike) -> None:
        D = positive("gradient_bound", one_real("gradient_bound", gradient_bound))
        self._set_common(domain, horizon, None, "shared")
        R = diameter_of(domain, "Ader's steps need")
        kappa = positive("kappa", np.sqrt(2.0 / horizon) / (D * R))
        self._set(gradient_bound=D, kappa=kappa)

    @property
    def n_experts(self) -> int:
        """N."""
        return ceil(0.5 * log2(1.0 + 4.0 * float(self.horizon or 0) / 7.0)) + 1

    def _pool_of(self, axes: int) -> OGD:
        R, D = scale_of(self.domain.diameter), self.gradient_bound
        T = float(self.horizon or 0)
        return OGD(self.domain, eta=Constant(self._scales(axes) * R / D * np.sqrt(3.5 / T)))
