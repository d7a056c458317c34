"""CLASP: Convex Losses And Squared Penalties (Ferreira, Xavier and Soares, 2026)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, one_fraction
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Domain
from coldq.learners.card import GRADIENT, WHOLE_CONSTRAINT, Card, Claim, Rate, reference
from coldq.learners.learner import Place, step_of
from coldq.learners.ogd import OGD
from coldq.learners.revealed import require_rows
from coldq.learners.state import State
from coldq.slot.feedback import Feedback
from coldq.slot.step import solve
from coldq.theory.assumptions import WeightedStep
from coldq.theory.constants import Guarantee, RunConstants


@dataclass(frozen=True, eq=False, slots=True)
class CLASPState(State):
    """The state of :class:`CLASP`: t, x_t and the multipliers of the projection that gave x_t."""

    multipliers: Array


@dataclass(frozen=True, eq=False, repr=False, init=False)
class CLASP(OGD):
    """A gradient step, projected onto the part of X where the latest constraint holds.

    At the end of slot t:

        x_{t+1} = P_{X_t}(x_t - eta_t grad f_t(x_t)),   X_t = {x in X : g_t(x) <= 0}

    The paper bounds the sum of squared violations: O(T^(1-b)) with regret O(T^max(b, 1-b)) for
    eta_t proportional to t^-b, and O(log T) for both if losses are strongly convex. The claims
    below are what Cauchy and Schwarz make of that for the sum of the violations themselves, at
    b = 1/2. A fixed constraint is violated in slot 1 at most.

    Where a queue's floor exceeds the multipliers, COLDQ takes the same steps. It also has an answer
    where X_t is empty; here that is a :class:`~coldq.Infeasible` error, which names the instances
    and leaves the state as it was.

    Parameters
    ----------
    domain
        The feasible set X.
    gradient_bound
        D, for ``eta_t = R / (D t^b)``.
    b
        In (0, 1), 1/2 unless given.
    eta
        Any other step: a positive number or a function of t.

    References
    ----------
    Ferreira, Xavier and Soares, ICML 2026: rule and bounds from its abstract and reviews of it. The
    paper has two variants, CLASP-I and CLASP-F; which of them this rule is could not be checked.

    >>> import coldq
    >>> learner = coldq.CLASP(coldq.Box(0.0, 4.0, dim=2), eta=1.0)
    >>> revealed = coldq.Feedback(coldq.Linear([-2.0, -1.0]), coldq.Affine([[1.0, 1.0]], [2.0]))
    >>> learner.update(learner.init(1), revealed).x  # (2, 1), projected onto x_1 + x_2 <= 2
    array([1.5, 0.5])
    """

    card: ClassVar[Card] = Card(
        needs=frozenset({GRADIENT, WHOLE_CONSTRAINT}),
        assumes=("a feasible decision common to all slots", "gradient bound D known"),
        claims=(
            Claim("convex", "fixed", Rate(0), Rate(0.5)),
            Claim("convex", "time-varying", Rate(0.75), Rate(0.5)),
            Claim("strongly convex", "fixed", Rate(0), Rate(0, log=1)),
            Claim("strongly convex", "time-varying", Rate(0.5, log=0.5), Rate(0, log=1)),
        ),
        certainty="likely",
        bibtex=reference("ferreira2026clasp"),
    )

    state_type = CLASPState

    def __init__(
        self,
        domain: Domain,
        *,
        gradient_bound: ArrayLike | None = None,
        b: float | None = None,
        eta: Any = None,
    ) -> None:
        if eta is not None and b is not None:
            raise InvalidInput("b sets eta, so give one of them, not both")
        power = one_fraction("b", 0.5 if b is None else b)
        eta = step_of("CLASP", domain, eta, power, gradient_bound=gradient_bound)
        self._take(domain, eta=eta)

    def guarantees(self, constants: RunConstants) -> tuple[Guarantee, ...]:
        """Theorem 1 of COLDQ's paper with alpha_t = 1 / (2 eta_t), and a bound by the weights.

        A projection is a step with infinite weights, so that nothing comes beyond
        sqrt(N) V + N G; where a run ended, every slot had a feasible decision.

        >>> import coldq
        >>> learner = coldq.CLASP(coldq.Box(0.0, 1.0, dim=2), eta=0.1)
        >>> constants = coldq.bounds.RunConstants(
        ...     horizon=100, diameter=2.0, gradient_bound=1.0, constraint_bound=1.0,
        ...     n_constraints=3, constraint_variation=0.5, path_length=0.0)
        >>> learner.guarantees(constants)[2].bound == 3.0 + 0.5 * 3.0**0.5
        np.True_
        """
        return self.assumptions.guarantees(constants)

    @property
    def assumptions(self) -> WeightedStep:
        """What these ask of its runs: an eta_t that does not grow."""

        def alpha(t: Array) -> Array:
            return 0.5 / self.eta(t)

        def hard(t: Array) -> Array:
            return np.full(np.shape(t), np.inf)

        return WeightedStep(alpha, hard, lambda trace: None)

    def update(self, state: CLASPState, feedback: Feedback, played: Place = None) -> CLASPState:
        """The state of the next slot."""
        gradient = self.gradient_of(state, feedback, played)
        t, x, hard = state.t, state.x, np.full(state.multipliers.shape, np.inf)
        require_rows(feedback.constraint, hard.shape)

        step = solve(x, gradient, 0.5 / self.eta(t), hard, feedback.constraint, self.domain)
        return self.new_state(t + 1, step.x, step.multipliers)
