"""COLDQ without a horizon, by the doubling trick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, positive
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Domain
from coldq.learners.card import WHOLE_STEP, Card, Claim, Rate
from coldq.learners.coldq import BIBTEX, tracking_alpha
from coldq.learners.learner import Place, Shape
from coldq.learners.queue_learner import QueueLearner
from coldq.learners.queue_rule import QueueRule
from coldq.learners.state import QueueState
from coldq.slot.schedules import Schedule


@dataclass(frozen=True, eq=False, repr=False, init=False)
class COLDQDoubling(QueueLearner):
    """COLDQ that starts anew in the slots 1, 2, 4, 8, ..., each time for twice as many slots.

    The epoch that starts in slot T = 2^k has T slots and is Algorithm 1 for the horizon T. The
    decision is carried over, the queue and the clock s = t - T + 1 are not:

        Q_t     = max{ (1 - 1/T) Q_{t-1} + [g_t(x_t)]_+ , epsilon T }    for s > 1, else epsilon T
        x_{t+1} = argmin over x in X of
                  <grad f_t(x_t), x - x_t> + alpha_s |x - x_t|^2 + sum_n Q_t^n [g_t^n(x)]_+

    with alpha_s = s^((1 - V_x) / 2). The bounds of COLDQ's epochs add up to those of COLDQ but for
    its constant violation under a fixed constraint, which comes once an epoch: O(log T).

    Parameters
    ----------
    domain
        The feasible set X.
    epsilon, path_exponent
        As in :class:`~coldq.COLDQ`.

    References
    ----------
    Wang, Yan and Liu, AAAI 2025, Algorithm 1 and Corollary 1, restarted; ``COLDQ.anytime`` is the
    authors' own way to do without a horizon.

    >>> import coldq
    >>> learner = coldq.COLDQDoubling(coldq.Box(0.0, 1.0, dim=1), epsilon=2.0)
    >>> state = learner.init(1)
    >>> revealed = coldq.Feedback(coldq.Linear([0.0]), coldq.Affine([[1.0]], [1.0]))
    >>> for _ in range(8):
    ...     state = learner.update(state, revealed)
    >>> state.t, state.queue  # slot 8 began an epoch of 8 slots
    (np.int64(9), array([16.]))
    """

    card: ClassVar[Card] = Card(
        needs=WHOLE_STEP,
        assumes=("V_x known, for the dynamic bound",),
        claims=(
            Claim("convex", "fixed", Rate(0, log=1), Rate(0.5), Rate(0.5, vx=0.5)),
            Claim("convex", "time-varying", Rate(vg=1), Rate(0.5), Rate(0.5, vx=0.5)),
        ),
        certainty="exact",
        bibtex=BIBTEX,
    )

    domain: Domain
    alpha: Schedule
    epsilon: Array
    horizon: int | None
    _leading = ("alpha", "epsilon")

    def __init__(
        self, domain: Domain, epsilon: ArrayLike = 0.5, path_exponent: ArrayLike | None = None
    ) -> None:
        alpha = tracking_alpha(path_exponent)
        self._take(domain, alpha=alpha, epsilon=positive("epsilon", epsilon))

    def _arguments(self) -> dict[str, Any]:
        exponent = self.alpha.exponent  # type: ignore[attr-defined]
        return super()._arguments() | {"path_exponent": 1.0 - 2.0 * exponent}

    def init(self, n_constraints: int, start: Place = None, batch: Shape = ()) -> QueueState:
        """The state before slot 1, with Q_1 = epsilon."""
        rows = self._count(n_constraints)
        t, x = self.first_slot(start, batch)
        queue = np.array(np.broadcast_to(self.epsilon[..., None], (*t.shape, rows)))
        return self.new_state(t, x, queue, np.zeros(queue.shape))

    def rule(self, t: Any) -> QueueRule:
        """The numbers of slot t's epoch, in whose first slot the queue becomes gamma."""
        T = epoch(t)
        s, gamma = t - T + 1, self.epsilon * T
        starts = s == 1
        gain, eta = np.where(starts, 0.0, 1.0), np.where(starts, 1.0, 1.0 / T)
        return QueueRule(self.alpha(s), gain=gain, eta=eta, floor=gamma)

    def require_sound(self, state: QueueState) -> None:
        super().require_sound(state)
        gamma = self.epsilon * epoch(np.maximum(state.t - 1, 1))
        if (state.queue < gamma[..., None]).any():
            raise InvalidInput(
                f"queue must be at least gamma = {gamma}, but is {state.queue.min():g}"
            )


def epoch(t: np.ndarray) -> Array:
    """The length of the epoch that slot t belongs to, and its first slot: the largest 2^k <= t.

    >>> import numpy as np
    >>> from coldq.learners.doubling import epoch
    >>> epoch(np.array([1, 2, 3, 4, 1023, 1024]))
    array([1.000e+00, 2.000e+00, 2.000e+00, 4.000e+00, 5.120e+02, 1.024e+03])
    """
    _, exponent = np.frexp(np.float64(t))  # type: ignore[arg-type]  # t = m 2^e, m in [1/2, 1)
    return np.ldexp(1.0, exponent - 1)
