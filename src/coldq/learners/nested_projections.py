"""Vaze and Sinha, NeurIPS 2025: projections onto nested sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array
from coldq.base.contractions import implied
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Domain
from coldq.learners.card import WHOLE_STEP, Card, Claim, Rate, reference
from coldq.learners.learner import Algorithm, Place, step_of
from coldq.learners.revealed import require_finite
from coldq.learners.state import GROWING_AXIS, State, axes
from coldq.slot.constraints import Kind
from coldq.slot.domains import Box, require_single
from coldq.slot.feedback import Feedback
from coldq.slot.schedules import Schedule
from coldq.slot.step.projection import project_on_rows


@dataclass(frozen=True, eq=False, slots=True)
class NestedState(State):
    """The state of :class:`NestedProjections`: t, x_t, the rows ``A x <= b`` of S_{t-1}, and the
    latest values g_{t-1}(x_{t-1}).

    Members of a batch may keep different numbers of rows; the rest are rows of zeros.
    """

    A: Array = field(metadata=axes(GROWING_AXIS, "p"))
    b: Array = field(metadata=axes(GROWING_AXIS))
    values: Array


@dataclass(frozen=True, eq=False, repr=False, init=False)
class NestedProjections(Algorithm):
    """Gradient steps, projected onto the set of decisions that all constraints so far allow.

    With S_0 = X, at the end of slot t:

        S_t     = {x in S_{t-1} : g_t(x) <= 0}
        y_t     = P_{S_{t-1}}(x_t - eta_t grad f_t(x_t))
        x_{t+1} = P_{S_t}(y_t)

    Affine constraints only. The state keeps the rows of S_t, so that it grows; a row that follows
    from another one and the box is dropped, and only such a row. Without a decision common to all
    slots S_t may be empty: that is a :class:`~coldq.Infeasible` error, which names the instances
    and leaves the state as it was.

    Vaze and Sinha bound the violation by a constant of the instance: how far apart the sets are and
    what shape they have. Sarkar and Sinha (2026) bound it by O(sqrt(T)) on every instance for
    NP-OGD, ``x_{t+1} = P_{S_t}(x_t - eta_t grad f_t(x_t))``, which projects once. Their bound holds
    here, too: x_t lies in S_{t-1}, so that ``|y_t - x_t| <= eta_t |grad f_t(x_t)|``, and x_{t+1} is
    what NP-OGD would do with the linear loss of gradient ``(x_t - y_t) / eta_t``, which is no
    longer.

    Parameters
    ----------
    domain
        The feasible set X.
    lipschitz
        G, a common Lipschitz constant of losses and constraints, for ``eta_t = R / (G sqrt(t))``.
    eta
        Any other step: a positive number or a function of t.

    References
    ----------
    Vaze and Sinha, NeurIPS 2025, Algorithm 1; Sarkar and Sinha, arXiv 2605.21107, 2026: the bound,
    from its abstract.

    >>> import coldq
    >>> learner = coldq.NestedProjections(coldq.Box(0.0, 4.0, dim=1), eta=1.0)
    >>> pull = coldq.Linear([-2.0])
    >>> state = learner.update(learner.init(1), coldq.Feedback(pull, coldq.Affine([[1.0]], [1.0])))
    >>> state = learner.update(state, coldq.Feedback(pull, coldq.Affine([[1.0]], [3.0])))
    >>> state.x, state.A, state.b  # x <= 3 follows from x <= 1
    (array([1.]), array([[1.]]), array([1.]))
    """

    card: ClassVar[Card] = Card(
        needs=WHOLE_STEP,
        assumes=(
            "a feasible decision common to all slots",
            "affine constraints",
            "Lipschitz constant G known",
        ),
        claims=(
            Claim("convex", "fixed", Rate(0), Rate(0.5)),
            Claim("convex", "time-varying", Rate(0.5), Rate(0.5)),
        ),
        certainty="exact",
        bibtex=reference("vaze2025static", "sarkar2026improved"),
        memory="grows",
    )

    state_type = NestedState
    domain: Domain
    eta: Schedule
    horizon: int | None
    _leading = ("eta",)
    _from_problem = ("lipschitz",)

    def __init__(
        self, domain: Domain, *, lipschitz: ArrayLike | None = None, eta: Any = None
    ) -> None:
        require_single(domain, "NestedProjections")
        eta = step_of("NestedProjections", domain, eta, lipschitz=lipschitz)
        self._take(domain, eta=eta)

    def update(self, state: NestedState, feedback: Feedback, played: Place = None) -> NestedState:
        """The state of the next slot."""
        gradient, g = self.observe(state, feedback, "values", played)
        t, x, X = state.t, state.x, self.domain
        rows = affine_rows(feedback.constraint, state)

        A, b = intersect(state.A, state.b, *rows, X)  # S_t
        y = project_on_rows(x - self.eta(t)[..., None] * gradient, state.A, state.b, X)
        x_new = require_finite(project_on_rows(y, A, b, X))
        return self.new_state(t + 1, x_new, A, b, np.array(g))

    def require_sound(self, state: Any) -> None:
        if state.A.shape[-2:] != (state.b.shape[-1], state.x.shape[-1]):
            raise InvalidInput(f"A {state.A.shape} and b {state.b.shape} must have the same rows")


def affine_rows(g: Any, state: Any) -> tuple[Array, Array]:
    """A and b of an affine constraint, for every member of a state's batch."""
    batch, p = state.batch, state.x.shape[-1]
    rows = g.as_affine(p) if isinstance(g, Kind) else None
    if rows is None:
        raise InvalidInput(
            "nested projections keep all constraints so far as rows, so that they take a "
            f"coldq.Affine constraint, but this is a {type(g).__name__}"
        )
    n = rows.n_constraints
    return np.broadcast_to(rows.A, (*batch, n, p)), np.broadcast_to(rows.b, (*batch, n))


def intersect(A: Array, b: Array, more: Array, limits: Array, X: Any) -> tuple[Array, Array]:
    """The rows of ``{x in X : A x <= b and more x <= limits}`` without those known not to matter.

    A row goes where it follows from a single other one and X. Zeros fill up the members of a batch
    that keep fewer rows than others.

    >>> import numpy as np, coldq
    >>> from coldq.learners.nested_projections import intersect
    >>> X, A, b = coldq.Box(0.0, 9.0, dim=2), np.array([[1.0, 2.0]]), np.array([1.0])
    >>> intersect(A, b, np.array([[1.0, 1.0], [3.0, 3.0]]), np.array([4.0, 1.0]), X)
    (array([[3., 3.]]), array([1.]))
    """
    open_ = np.full(A.shape[-1], np.inf)
    bounds = (X.lower, X.upper) if isinstance(X, Box) else (-open_, open_)
    more, limits = np.array(more), np.array(limits)
    for n in range(limits.shape[-1]):
        a, limit = more[..., n, :].copy(), limits[..., n].copy()
        more[..., n, :] = limits[..., n] = 0.0  # a row does not stand in for itself
        others = np.concatenate([A, more], axis=-2), np.concatenate([b, limits], axis=-1)
        needed = implied(a, limit, *others, *bounds) == 0.0
        more[..., n, :] = np.where(needed[..., None], a, 0.0)
        limits[..., n] = np.where(needed, limit, 0.0)
    by_new = implied(A, b, more[..., None, :, :], limits[..., None, :], *bounds) == 1.0
    rows = np.concatenate([np.where(by_new[..., None], 0.0, A), more], axis=-2)
    ends = np.concatenate([np.where(by_new, 0.0, b), limits], axis=-1)
    kept = rows.any(axis=-1) | (ends < 0.0)
    order = np.argsort(~kept, axis=-1, kind="stable")[..., : kept.sum(axis=-1).max(initial=0)]
    rows = np.take_along_axis(rows, order[..., None], axis=-2)
    return rows, np.take_along_axis(ends, order, axis=-1)
