"""Sarkar and Sinha, 2025: Sinha and Vaze's algorithm without a horizon, a reconstruction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, positive
from coldq.base.protocols import Domain, Problem
from coldq.learners.card import FIRST_ORDER, Card, Claim, Rate, reference
from coldq.learners.constants import ConstantsOf
from coldq.learners.sinha_vaze import SinhaVaze
from coldq.slot.domains import diameter_of


@dataclass(frozen=True, eq=False, repr=False, init=False)
class SarkarSinha2025(SinhaVaze):
    """Sinha and Vaze's adaptive steps with a potential that flattens as time goes by.

    With several constraints ``g_t = max_n g_t^n``. Q(0) = 0; at the end of slot t, b = 1 / (2 G R):

        Q(t)    = Q(t-1) + b [g_t(x_t)]_+
        nabla_t = b grad f_t(x_t) + Phi_t'(Q(t)) b grad [g_t(x_t)]_+
        x_{t+1} = P_X(x_t - eta_t nabla_t),  eta_t = sqrt(2) R / (2 sqrt(sum_{s<=t} |nabla_s|^2))

    with ``Phi_t(q) = exp(c q / sqrt(t)) - 1``. For c = 1/2 it is in slot T what
    :class:`~coldq.SinhaVaze` is throughout with the horizon T.

    A reconstruction: that the potential varies with time, and the bounds, are from the paper's
    abstract; that it is this one, with this c, is ours.

    Parameters
    ----------
    domain
        The feasible set X, with diameter R.
    lipschitz
        G, a common Lipschitz constant of all losses and constraints.
    c
        How steep the potential is.

    References
    ----------
    Sarkar and Sinha, arXiv 2510.22579, 2025: bounds from its abstract.

    >>> import coldq
    >>> learner = coldq.SarkarSinha2025(coldq.Box(0.0, 4.0, dim=1), lipschitz=2.0)
    >>> revealed = coldq.Feedback(coldq.Linear([-2.0]), coldq.Affine([[1.0]], [1.0]))
    >>> learner.update(learner.init(1), revealed).x.round(6)  # R / sqrt(2), whatever the gradient
    array([2.828427])
    """

    card: ClassVar[Card] = Card(
        needs=FIRST_ORDER,
        assumes=("a feasible decision common to all slots", "Lipschitz constant G known"),
        claims=(
            Claim("convex", "fixed", Rate(0.5, log=1), Rate(0.5)),
            Claim("convex", "time-varying", Rate(0.5, log=1), Rate(0.5)),
        ),
        certainty="uncertain",
        unchecked="which potential varies with time, and its constant c",
        bibtex=reference("sarkar2025anytime"),
    )

    c: Array
    modulus: ClassVar[None] = None  # pyright: ignore[reportIncompatibleVariableOverride]
    _leading = ("lipschitz", "c")

    def __init__(self, domain: Domain, *, lipschitz: ArrayLike, c: ArrayLike = 0.5) -> None:
        diameter_of(domain, "SarkarSinha2025 needs")
        self._take(domain, lipschitz=positive("lipschitz", lipschitz), c=positive("c", c))

    @classmethod
    def for_problem(cls, problem: Problem, **parameters: Any) -> SarkarSinha2025:
        """G the larger of the problem's two Lipschitz constants.

        >>> import coldq
        >>> coldq.SarkarSinha2025.for_problem(coldq.problems.OnlineLinear(horizon=10)).c
        array(0.5)
        """
        return cls._of(problem, **ConstantsOf(problem, parameters).fill(lipschitz="lipschitz"))

    def _rate(self, t: Any) -> Any:
        return self.c / np.sqrt(np.asarray(t, np.float64))
