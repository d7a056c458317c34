"""Sinha and Vaze, NeurIPS 2024: optimal algorithms with adversarial constraints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, flag, positive
from coldq.base.contractions import dot
from coldq.base.protocols import Domain, Problem
from coldq.learners.card import FIRST_ORDER, Card, Claim, Rate, reference
from coldq.learners.constants import ConstantsOf
from coldq.learners.learner import Learner, Place, horizon_of, require_not_negative
from coldq.learners.revealed import require_finite, worst_violation
from coldq.learners.state import State, axes
from coldq.slot.domains import diameter_of, scale_of
from coldq.slot.feedback import Feedback

MAX_EXPONENT = 230.0  # an exponent whose powers, 1e100, can still be squared and added up


def exponential_price(rate: Any, Q: Any) -> Array:
    """``Phi'(q)`` of ``Phi(q) = exp(rate q) - 1``, as far as floats go.

    Only a row that is out of reach, or one far steeper than G, comes there. Steps are then as long
    as they can be, whatever the price, because they are measured by the gradients so far.
    """
    return rate * np.exp(np.minimum(rate * np.asarray(Q), MAX_EXPONENT))


@dataclass(frozen=True, eq=False, slots=True)
class SinhaVazeState(State):
    """The state of :class:`SinhaVaze`: t, x_t, the scaled violation Q(t-1), the sum of squared
    gradients so far, and the latest values g_{t-1}(x_{t-1})."""

    violation: Array = field(metadata=axes())
    squares: Array = field(metadata=axes())
    values: Array


@dataclass(frozen=True, eq=False, repr=False, init=False)
class SinhaVaze(Learner):
    """Adaptive gradient steps on a surrogate loss that prices the accumulated violation.

    With several constraints ``g_t = max_n g_t^n``. Q(0) = 0; at the end of slot t, with scale b:

        Q(t)    = Q(t-1) + b [g_t(x_t)]_+
        nabla_t = V b grad f_t(x_t) + Phi'(Q(t)) b grad [g_t(x_t)]_+
        x_{t+1} = P_X(x_t - eta_t nabla_t)

    Convex: b = 1 / (2 G R), V = 1, Phi(q) = exp(q / (2 sqrt(T))) - 1, and
    ``eta_t = sqrt(2) R / (2 sqrt(sum_{s<=t} |nabla_s|^2))``. Strongly convex with modulus a:
    b = 1, V = 8 G^2 log(e T) / a, Phi(q) = q^2, eta_t = 1 / (V a t). The paper's box prints the
    modulus of f_s in that sum; its proof uses that of the surrogate, V a, and so do we.

    Parameters
    ----------
    domain, horizon
        The feasible set X, with diameter R, and the number of slots T.
    lipschitz
        G, a common Lipschitz constant of all losses and constraints.
    modulus
        a, if the losses are strongly convex:
        ``f(y) >= f(x) + <grad f(x), y - x> + a |y - x|^2 / 2``, which makes it twice COLDQ's mu.

    References
    ----------
    Sinha and Vaze, NeurIPS 2024, Algorithm 1, Theorems 1 and 3.

    >>> import coldq
    >>> learner = coldq.SinhaVaze(coldq.Box(0.0, 4.0, dim=1), horizon=100, lipschitz=2.0)
    >>> revealed = coldq.Feedback(coldq.Linear([-2.0]), coldq.Affine([[1.0]], [1.0]))
    >>> learner.update(learner.init(1), revealed).x.round(6)  # R / sqrt(2), whatever the gradient
    array([2.828427])
    """

    card: ClassVar[Card] = Card(
        needs=FIRST_ORDER,
        assumes=(
            "a feasible decision common to all slots",
            "known horizon",
            "Lipschitz constant G known",
        ),
        claims=(
            Claim("convex", "fixed", Rate(0.5, log=1), Rate(0.5)),
            Claim("convex", "time-varying", Rate(0.5, log=1), Rate(0.5)),
            Claim("strongly convex", "fixed", Rate(0.5, log=0.5), Rate(0, log=1)),
            Claim("strongly convex", "time-varying", Rate(0.5, log=0.5), Rate(0, log=1)),
        ),
        certainty="exact",
        bibtex=reference("sinha2024optimal"),
    )

    state_type = SinhaVazeState
    domain: Domain
    horizon: int | None
    lipschitz: Array
    modulus: Array | None
    _leading = ("lipschitz", "modulus")

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        *,
        lipschitz: ArrayLike,
        modulus: ArrayLike | None = None,
    ) -> None:
        diameter_of(domain, "SinhaVaze needs")
        a = None if modulus is None else positive("modulus", modulus)
        self._take(
            domain, horizon_of(horizon), lipschitz=positive("lipschitz", lipschitz), modulus=a
        )

    @classmethod
    def for_problem(
        cls, problem: Problem, *, strongly_convex: bool = False, **parameters: Any
    ) -> SinhaVaze:
        """G the larger of the problem's two Lipschitz constants, a = 2 mu if asked for.

        >>> import coldq
        >>> coldq.SinhaVaze.for_problem(coldq.problems.OnlineLinear(horizon=10)).horizon
        10
        """
        known = ConstantsOf(problem, parameters)
        if flag("strongly_convex", strongly_convex):
            parameters["modulus"] = 2.0 * known.strong_convexity
        return cls._of(problem, **known.fill(lipschitz="lipschitz"))

    def update(
        self, state: SinhaVazeState, feedback: Feedback, center: Place = None, played: Place = None
    ) -> SinhaVazeState:
        """The state of the next slot; `center` is z, the mixture of neighbours' decisions."""
        gradient, g = self.observe(state, feedback, "values", played)
        t, z = state.t, self._center(state, center)
        level, slope = worst_violation(g, self.jacobian_of(state, feedback, g.shape[-1], played))
        T, G, a = float(self.horizon or 0), self.lipschitz, self.modulus
        R = scale_of(self.domain.diameter)

        convex = a is None
        b = 1.0 / (2.0 * G * R) if convex else 1.0
        V = 1.0 if convex else 8.0 * G * G * np.log(np.e * T) / a
        Q = state.violation + b * level
        price = exponential_price(self._rate(t), Q) if convex else 2.0 * Q
        b_, V_, price_ = (np.asarray(factor)[..., None] for factor in (b, V, price))
        nabla = V_ * b_ * gradient + price_ * b_ * slope
        squares = state.squares + dot(nabla, nabla)
        if a is None:
            # Nothing to learn from as long as every gradient was zero.
            eta = np.sqrt(2.0) * R / (2.0 * np.sqrt(np.where(squares > 0.0, squares, 1.0)))
        else:
            eta = 1.0 / (V_[..., 0] * a * t)
        x_new = require_finite(self.domain.project(z - eta[..., None] * nabla))
        return self.new_state(t + 1, x_new, Q, squares, np.array(g))

    def _rate(self, t: Any) -> Any:
        """lambda of Phi(q) = exp(lambda q) - 1."""
        return 1.0 / (2.0 * np.sqrt(float(self.horizon or 0)))

    def require_sound(self, state: SinhaVazeState) -> None:
        require_not_negative(state, "violation", "squares")
