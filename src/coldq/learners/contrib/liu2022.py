"""Liu, Wu, Huang and Fang, SIGMETRICS 2022: a virtual queue for time-varying constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from coldq.base.arrays import Array, either, one_exponent, one_of, positive
from coldq.base.contractions import dot
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Domain, Problem
from coldq.learners.card import WHOLE_STEP, Card, Claim, Largest, Rate, reference
from coldq.learners.learner import Place
from coldq.learners.state import QueueState
from coldq.learners.yu_neely2020 import YuNeely2020
from coldq.slot.feedback import Feedback
from coldq.slot.schedules import Power, as_schedule

READINGS = ("known", "parameter-free")


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Liu2022(YuNeely2020):
    """Yu and Neely's queue with constraints and parameters that change with t.

    Q_0 = 0. At the end of slot t:

        Q_t     = max{ -gamma_t g_t(x_t), Q_{t-1} + gamma_t g_t(x_t) }
        x_{t+1} = argmin over x in X of <grad f_t(x_t), x - x_t>
                  + <Q_t + gamma_t g_t(x_t), gamma_t g_t(x)> + alpha_t |x - x_t|^2

    The constraint is kept whole and not clipped. Our reading of the indices and parameters is
    uncertain: alpha_t = (L^2 + 1) t^((1 - V_x) / 2) / 2 and gamma_t = t^((1 - V_x) / 4) are Yu and
    Neely's with t for T, slowed down for a best decision that moves.

    The paper calls its algorithm parameter-free, and these two want V_x and L. In the other reading
    nothing is known: V_x = 0, and in place of L stands what slot t revealed, the norm of the
    jacobian of g_t at x_t, which for affine rows is at least the Lipschitz constant of g_t. Steps
    are then as long as these rows allow, longer where they are flat; where a learner told L is
    told the largest of all slots, its steps are shorter in the others.

    Parameters
    ----------
    domain
        The feasible set X.
    lipschitz
        L, the Lipschitz constant of the vector g_t, for the parameters above.
    path_exponent
        V_x, how fast the best decision moves.
    reading
        "known", or "parameter-free", which takes neither.
    alpha, gamma
        Any other parameters: positive numbers or functions of t. In the parameter-free reading
        alpha_t is what |J_t|^2 + 1 is multiplied by, sqrt(t) / 2 unless given.

    References
    ----------
    Liu, Wu, Huang and Fang, Proceedings of the ACM on Measurement and Analysis of Computing
    Systems 2021 (SIGMETRICS 2022); the bounds as reported by Wang, Yan and Liu, AAAI 2025.

    >>> import coldq
    >>> learner = coldq.Liu2022(coldq.Box(0.0, 4.0, dim=1), alpha=4.0, gamma=2.0)
    >>> revealed = coldq.Feedback(coldq.Linear([-8.0]), coldq.Affine([[1.0]], [1.0]))
    >>> state = learner.update(learner.init(1, start=[2.0]), revealed)
    >>> state.x, state.queue
    (array([2.]), array([2.]))
    """

    card: ClassVar[Card] = Card(
        needs=WHOLE_STEP,
        assumes=("V_x known, for the dynamic bound", "Lipschitz constant of g, in one reading"),
        claims=(
            Claim(
                "convex",
                "time-varying",
                Largest(Rate(0.75), Rate(vg=1)),
                None,
                Rate(0.5, vx=0.5),
                measure="soft",
            ),
        ),
        certainty="uncertain",
        unchecked="the slots of g in the rule, and alpha and gamma",
        bibtex=reference("liu2021simultaneously"),
    )

    reading: str

    def __init__(
        self,
        domain: Domain,
        *,
        lipschitz: ArrayLike | None = None,
        path_exponent: float = 0.0,
        reading: str = "known",
        alpha: Any = None,
        gamma: Any = None,
    ) -> None:
        one_of("reading", reading, READINGS)
        v = one_exponent("path_exponent", path_exponent)
        if reading == "known":
            either("Liu2022", lipschitz=lipschitz, alpha=alpha)
        elif lipschitz is not None or v:
            raise InvalidInput(
                'lipschitz and path_exponent must be left out for reading="parameter-free"'
            )
        elif alpha is None:
            alpha = Power(0.5, 0.5)
        power = (1.0 - v) / 2.0
        if alpha is None:
            alpha = Power(power, (positive("lipschitz", lipschitz) ** 2 + 1.0) / 2.0)  # type: ignore[arg-type]
        gamma = as_schedule("gamma", Power(power / 2.0) if gamma is None else gamma)
        self._take(domain, alpha=as_schedule("alpha", alpha), gamma=gamma, reading=reading)

    @classmethod
    def for_problem(cls, problem: Problem, **parameters: Any) -> Any:
        """L = sqrt(N) times the Lipschitz constant of a row, where it is needed and not given.

        >>> import coldq
        >>> problem = coldq.problems.OnlineLinear(horizon=16)
        >>> coldq.Liu2022.for_problem(problem, reading="parameter-free").alpha(16.0)
        np.float64(2.0)
        """
        if parameters.get("reading") == "parameter-free":
            return cls._of(problem, **parameters)
        return super().for_problem(problem, **parameters)

    def _step_size(self, state: QueueState, feedback: Feedback, rows: int, played: Place) -> Array:
        alpha = super()._step_size(state, feedback, rows, played)
        if self.reading == "known":
            return alpha
        J = self.jacobian_of(state, feedback, rows, played)
        flat = J.reshape(*J.shape[:-2], -1)
        return alpha * (dot(flat, flat) + 1.0)
