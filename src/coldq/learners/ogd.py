"""Online gradient descent, which ignores the constraints: the plain yardstick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from coldq.base.arrays import flag, positive
from coldq.base.protocols import Domain, Problem
from coldq.learners.card import GRADIENT, Card, Claim, Rate, reference
from coldq.learners.constants import ConstantsOf
from coldq.learners.learner import Learner, Place, step_of
from coldq.learners.revealed import require_finite
from coldq.slot.feedback import Feedback
from coldq.slot.schedules import Power, Schedule


@dataclass(frozen=True, eq=False, repr=False, init=False)
class OGD(Learner):
    """Online gradient descent: ``x_{t+1} = P_X(x_t - eta_t grad f_t(x_t))``.

    It never looks at a constraint, so it shows what the loss alone would do.

    Parameters
    ----------
    domain
        The feasible set X.
    gradient_bound
        D, for Zinkevich's step ``eta_t = R / (D sqrt(t))``.
    eta
        Any other step: a positive number or a function of t.

    References
    ----------
    Zinkevich, ICML 2003; for strongly convex losses Hazan, Agarwal and Kale, Machine Learning 2007.

    >>> import coldq
    >>> learner = coldq.OGD(coldq.Box(0.0, 1.0, dim=1), eta=0.25)
    >>> learner.update(learner.init(0), coldq.Feedback(coldq.Linear([-2.0]), None)).x
    array([0.5])
    """

    card: ClassVar[Card] = Card(
        needs=frozenset({GRADIENT}),
        assumes=("constraints are ignored", "gradient bound D known"),
        claims=(
            Claim("convex", "fixed", None, Rate(0.5), Rate(0.5, vx=1)),
            Claim("strongly convex", "fixed", None, Rate(0, log=1)),
        ),
        certainty="likely",
        bibtex=reference("zinkevich2003online"),
    )

    domain: Domain
    eta: Schedule
    horizon: int | None
    _leading = ("eta",)

    def __init__(
        self, domain: Domain, *, gradient_bound: ArrayLike | None = None, eta: Any = None
    ) -> None:
        self._take(domain, eta=step_of("OGD", domain, eta, gradient_bound=gradient_bound))

    @classmethod
    def strongly_convex(cls, domain: Domain, mu: float) -> Self:
        """Hazan's step ``1 / (H t)``. `mu` is COLDQ's constant without the 1/2, so that H = 2 mu.

        >>> import coldq
        >>> coldq.OGD.strongly_convex(coldq.Box(0.0, 1.0, dim=1), mu=1.0).eta(4.0)
        np.float64(0.125)
        """
        return cls(domain, eta=Power(-1.0, 0.5 / positive("mu", mu)))

    @classmethod
    def for_problem(
        cls, problem: Problem, *, strongly_convex: bool = False, **parameters: Any
    ) -> Self:
        """With the problem's own gradient bound, or its modulus of strong convexity, or `eta`.

        >>> import coldq
        >>> coldq.OGD.for_problem(coldq.problems.OnlineLinear(horizon=10)).domain
        Box(0.0, 1.0, dim=2)
        """
        strongly_convex = flag("strongly_convex", strongly_convex)
        if "eta" in parameters and not strongly_convex:
            return cls._of(problem, **parameters)
        known = ConstantsOf(problem, parameters)
        if strongly_convex:
            return cls.strongly_convex(problem.domain, known.strong_convexity, **parameters)
        return cls._of(problem, gradient_bound=known.gradient_bound, **parameters)

    def update(self, state: Any, feedback: Feedback, played: Place = None) -> Any:
        """The state of the next slot."""
        gradient = self.gradient_of(state, feedback, played)
        t, x = state.t, state.x
        x_new = require_finite(self.domain.project(x - self.eta(t)[..., None] * gradient))
        return self.new_state(t + 1, x_new)
