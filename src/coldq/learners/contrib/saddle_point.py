"""The regularised saddle point that several algorithms of this field are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, positive
from coldq.base.contractions import vecmat
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Domain, Problem
from coldq.learners.constants import ConstantsOf
from coldq.learners.learner import Learner, Place, horizon_of
from coldq.learners.revealed import require_finite
from coldq.learners.state import DualState
from coldq.slot.feedback import Feedback


@dataclass(frozen=True, eq=False, repr=False, init=False)
class SaddlePoint(Learner):
    """Descent in x and ascent in l on ``f_t(x) + <l, g_t(x)> - delta eta |l|^2 / 2``.

    l_1 = 0. At the end of slot t, both from (x_t, l_t):

        x_{t+1} = P_X(x_t - eta (grad f_t(x_t) + J' l_t))
        l_{t+1} = [ l_t + eta (g_t(x_t) - delta eta l_t) ]_+

    with J the jacobian of g_t at x_t. The constraint is not clipped: slack lowers l.
    """

    state_type = DualState
    domain: Domain
    horizon: int | None
    eta: Array
    delta: Array
    _leading = ("eta", "delta")

    def __init__(self, domain: Domain, horizon: int, *, eta: ArrayLike, delta: ArrayLike) -> None:
        self._take(
            domain, horizon_of(horizon), eta=positive("eta", eta), delta=positive("delta", delta)
        )

    @classmethod
    def for_problem(cls, problem: Problem, **parameters: Any) -> Any:
        """eta = R / sqrt(((m + 1) L^2 + 2 G^2) T) and delta = 2 (m + 1) L^2, unless given.

        L is a common Lipschitz constant of f and g, G a bound on |g|, m the number of constraints.
        Any delta >= (m + 1) L^2 + 2 delta^2 eta^2 would do; a horizon too short for it is refused.
        """
        return cls._theory(problem, 0.5, parameters)

    @classmethod
    def _theory(cls, problem: Problem, power: float, parameters: dict[str, Any]) -> Any:
        """With eta, falling as T^-power, and delta, unless given."""
        known, T = ConstantsOf(problem, parameters), float(problem.horizon)
        if {"eta", "delta"} <= set(parameters):
            return cls._of(problem, **parameters)
        slopes = (problem.n_constraints + 1.0) * known.lipschitz**2
        if "eta" not in parameters:
            size = np.sqrt(slopes + 2.0 * known.constraint_bound**2)
            parameters["eta"] = known.diameter / (size * T**power)
        if "delta" not in parameters:
            longer = np.max(8.0 * np.square(positive("eta", parameters["eta"])) * slopes)
            if longer > 1.0:
                raise InvalidInput(
                    "the theory needs delta >= (m + 1) L^2 + 2 delta^2 eta^2, "
                    f"which no delta satisfies for the horizon {problem.horizon}: it must be "
                    f"longer by a factor of {longer ** (0.5 / power):.3g}, or eta and delta given"
                )
            parameters["delta"] = 2.0 * slopes
        return cls._of(problem, **parameters)

    def update(self, state: DualState, feedback: Feedback, played: Place = None) -> DualState:
        """The state of the next slot."""
        gradient, g = self.observe(state, feedback, "queue", played)
        t, x, dual = state.t, state.x, state.queue
        J = self.jacobian_of(state, feedback, g.shape[-1], played)
        eta, delta = self.eta[..., None], self.delta[..., None]

        x_new = self.domain.project(x - eta * (gradient + vecmat(J, dual)))
        dual_new = np.maximum(dual + eta * (g - delta * eta * dual), 0.0)
        return self.new_state(t + 1, require_finite(x_new), require_finite(dual_new))
