"""Switch (Vaze and Sinha, NeurIPS 2025): nested projections, with a bound for the worst case."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, positive
from coldq.base.protocols import Domain
from coldq.learners.card import WHOLE_STEP, Card, Claim, Rate, reference
from coldq.learners.learner import Algorithm, Place, Shape, require_not_negative
from coldq.learners.nested_projections import NestedProjections, NestedState, affine_rows
from coldq.learners.sinha_vaze import SinhaVaze, SinhaVazeState
from coldq.learners.state import GROWING_AXIS, State, axes
from coldq.slot.constraints import Affine
from coldq.slot.feedback import Feedback


@dataclass(frozen=True, eq=False, slots=True)
class SwitchState(State):
    """The state of :class:`Switch`: t, x_t and the violation CCV(t-1) so far; the rows of S_{t-1}
    before the switch; Q and the sum of squared gradients after it; the latest values."""

    ccv: Array = field(metadata=axes())
    A: Array = field(metadata=axes(GROWING_AXIS, "p"))
    b: Array = field(metadata=axes(GROWING_AXIS))
    violation: Array = field(metadata=axes())
    squares: Array = field(metadata=axes())
    values: Array


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Switch(Algorithm):
    """Nested projections while little is violated, Sinha and Vaze's universal algorithm after.

    With several constraints ``g_t = max_n g_t^n``. At the end of slot t:

        CCV(t)  = CCV(t-1) + [g_t(x_t)]_+
        x_{t+1} = the update of NestedProjections       if CCV(t) <= limit
                  the update of SinhaVaze               else

    SinhaVaze starts in the slot of the switch with Q = 0 and an empty sum of gradients. CCV never
    falls, so there is one switch at most; the rows of the nested sets are then forgotten.

    In two dimensions its violation is O(T^(1/3)). In any, :class:`~coldq.NestedProjections` alone
    has a smaller bound by now than the one that the switch ensures, O(sqrt(T)).

    Affine constraints only. Before the switch an empty nested set is a :class:`~coldq.Infeasible`
    error, which names the instances and leaves the state as it was.

    Parameters
    ----------
    domain, horizon
        The feasible set X and the number of slots T.
    lipschitz
        G, a common Lipschitz constant of all losses and constraints.
    limit
        The violation that ends the first part: sqrt(T) log(T) unless given.

    References
    ----------
    Vaze and Sinha, NeurIPS 2025, Algorithm 2; Balasundaram, Mahendran and Vaze, arXiv 2603.20671,
    2026: the bound in two dimensions, from its abstract.

    >>> import numpy as np, coldq
    >>> learner = coldq.Switch(coldq.Box(0.0, 4.0, dim=1), horizon=4, lipschitz=2.0)
    >>> revealed = coldq.Feedback(coldq.Linear([-2.0]), coldq.Affine([[1.0]], [1.0]))
    >>> state = learner.update(learner.init(1, start=[4.0]), revealed)
    >>> state.ccv > 2.0 * np.log(4.0), state.violation  # sqrt(T) log(T) is exceeded: switched
    (np.True_, array(0.1875))
    """

    card: ClassVar[Card] = Card(
        needs=WHOLE_STEP,
        assumes=(
            "a feasible decision common to all slots",
            "affine constraints",
            "known horizon",
            "Lipschitz constant G known",
        ),
        claims=(
            Claim("convex", "fixed", Rate(0), Rate(0.5)),
            Claim("convex", "time-varying", Rate(0.5, log=1), Rate(0.5)),
        ),
        certainty="exact",
        bibtex=reference("vaze2025static", "balasundaram2026breaking"),
        memory="grows",
    )

    state_type = SwitchState
    nested: NestedProjections
    universal: SinhaVaze
    limit: Array
    domain: Domain
    horizon: int | None
    _from_problem = ("lipschitz",)

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        *,
        lipschitz: ArrayLike,
        limit: ArrayLike | None = None,
    ) -> None:
        universal = SinhaVaze(domain, horizon, lipschitz=lipschitz)
        T = float(horizon)
        self._set(
            nested=NestedProjections(domain, lipschitz=lipschitz),
            universal=universal,
            limit=positive("limit", np.sqrt(T) * np.log(T) if limit is None else limit),
            domain=domain,
            horizon=universal.horizon,
        )

    def _arguments(self) -> dict[str, Any]:
        return super()._arguments() | {"lipschitz": self.universal.lipschitz}

    def update(self, state: SwitchState, feedback: Feedback, played: Place = None) -> SwitchState:
        """The state of the next slot."""
        self._require_own(state, feedback)
        t, x = state.t, state.x
        g = self.values_of(state, feedback, state.values.shape, played)
        A, b = affine_rows(feedback.constraint, state)

        ccv = state.ccv + np.maximum(g.max(axis=-1, initial=0.0), 0.0)
        stay = ccv <= self.limit

        # All members take both steps. Those that switched have no rows any more, the others no Q.
        rows = [np.where(stay[..., None, None], rows, 0.0) for rows in (state.A, A)]
        ends = [np.where(stay[..., None], ends, 0.0) for ends in (state.b, b)]
        near = NestedState(t, x, rows[0], ends[0], state.values)
        seen = Feedback(feedback.loss, Affine(rows[1], ends[1]))
        near = self.nested.update(near, seen, played=played)
        far = SinhaVazeState(t, x, state.violation, state.squares, state.values)
        far = self.universal.update(far, feedback, played=played)
        return self.new_state(
            t + 1,
            np.where(stay[..., None], near.x, far.x),
            ccv,
            near.A,
            near.b,
            np.where(stay, 0.0, far.violation),
            np.where(stay, 0.0, far.squares),
            far.values,
        )

    def require_sound(self, state: SwitchState) -> None:
        self.nested.require_sound(state)  # the same rows
        require_not_negative(state, "ccv", "violation", "squares")

    def _batch(self) -> Shape:
        return np.broadcast_shapes(self.universal._batch(), self.limit.shape)
