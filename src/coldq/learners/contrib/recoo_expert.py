"""RECOO with expert tracking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from coldq.base.arrays import Array, one_real, positive
from coldq.base.protocols import Domain
from coldq.learners.card import WHOLE_STEP, Card, Claim, Rate, reference
from coldq.learners.experts import ExpertLearner
from coldq.learners.recoo import RECOO
from coldq.slot.schedules import Power


@dataclass(frozen=True, eq=False, repr=False, init=False)
class RECOOExpert(ExpertLearner):
    """RECOO with expert tracking: M copies, expert m with alpha_t[m] = sqrt(t) / 2^(m-1).

    The paper's expert variant is read here as the pool and hedge of its time, with the constants
    that reappear in COLDQ-Expert; that reading is uncertain.

    Parameters
    ----------
    domain, horizon
        The feasible set X and the number of slots T.
    epsilon, reading
        As in :class:`~coldq.RECOO`.
    kappa, gradient
        As in :class:`~coldq.COLDQExpert`; by default one shared gradient.

    References
    ----------
    Guo, Liu, Wei and Ying, NeurIPS 2022.

    >>> import coldq
    >>> coldq.RECOOExpert(coldq.Box(0.0, 1.0, dim=2), horizon=100).n_experts
    4
    """

    card: ClassVar[Card] = Card(
        needs=WHOLE_STEP,
        assumes=("known horizon", "fixed constraints"),
        claims=(Claim("convex", "fixed", Rate(0, log=1), Rate(0.5), Rate(0.5, vx=0.5)),),
        certainty="uncertain",
        unchecked="the pool of experts and their hedge, which are COLDQ-Expert's here",
        bibtex=reference("guo2022online"),
    )

    domain: Domain
    horizon: int | None
    epsilon: Array
    reading: str
    kappa: Array
    gradient: str

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        epsilon: float = 0.01,
        *,
        reading: str = "drift",
        kappa: float | None = None,
        gradient: str = "shared",
    ) -> None:
        self._set_common(domain, horizon, kappa, gradient)
        self._set(epsilon=positive("epsilon", one_real("epsilon", epsilon)), reading=reading)
        self._pool_of(0)  # checks the reading

    def _pool_of(self, axes: int) -> RECOO:
        alpha = Power(0.5, 1.0 / self._scales(axes))
        return RECOO(self.domain, float(self.epsilon), alpha=alpha, reading=self.reading)
