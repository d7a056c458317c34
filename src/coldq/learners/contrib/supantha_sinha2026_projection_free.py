"""Supantha and Sinha, ALT 2026: the algorithm that never projects onto a constraint."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, log, log2
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, positive
from coldq.base.contractions import dot, weighted_mean
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Domain
from coldq.learners.card import FIRST_ORDER, Card, Claim, Rate
from coldq.learners.learner import Algorithm, Place, Shape, horizon_of, require_not_negative
from coldq.learners.revealed import require_finite, worst_violation
from coldq.learners.state import State, axes
from coldq.learners.supantha_sinha2026 import BIBTEX
from coldq.slot.domains import diameter_of, require_single
from coldq.slot.feedback import Feedback

MAX_ROUNDING_LOSS = 1e-12  # of R |nabla|: a difference of surrogate losses below it is rounding


@dataclass(frozen=True, eq=False, slots=True)
class ProjectionFreeState(State):
    """The state of :class:`SupanthaSinha2026ProjectionFree`.

    t and x_t, the violation Q(t-1), the sum of squared gradients, what AdaHedge lost to mixing; of
    each of M experts its decision and its loss so far; and the latest values g_{t-1}(x_{t-1}).
    """

    violation: Array = field(metadata=axes())
    squares: Array = field(metadata=axes())
    gap: Array = field(metadata=axes())
    points: Array = field(metadata=axes("expert", "p"))
    losses: Array = field(metadata=axes("expert"))
    values: Array


@dataclass(frozen=True, eq=False, repr=False, init=False)
class SupanthaSinha2026ProjectionFree(Algorithm):
    """Many adaptive step sizes, weighted by AdaHedge, on a loss that prices the violation so far.

    With several constraints ``g_t = max_n g_t^n``. Q(0) = 0; at the end of slot t:

        Q(t)       = Q(t-1) + [g_t(x_t)]_+
        nabla_t    = V grad f_t(x_t) + 2 Q(t) grad [g_t(x_t)]_+
        x_{t+1}[i] = P_X(x_t[i] - eta_i nabla_t)
        x_{t+1}    = sum_i w_{t+1}[i] x_{t+1}[i]

    for i = 1, ..., M with M = ceil(log2(1 + T) / 2) + 1, and the steps
    ``eta_i = 2^(i-1) R / sqrt(2 sum_{s<=t} |nabla_s|^2)``; w are AdaHedge's weights for the losses
    ``<nabla_t, x_t[i] - x_t>``. No decision need be feasible in all slots, and no constant is
    needed but the domain's.

    In part a reconstruction: that Phi(q) = q^2, and AdaHedge over AdaGrad, is as the paper is
    described; V, M and the steps are ours. For every sequence u of decisions that are feasible in
    their slots, the regret of the surrogate gives ``V Reg(u) + Q(T)^2 <= K_u (V + 2 Q(T))`` with
    K_u of the order of sqrt((1 + P_u) T) and P_u the path of u. With u the best decisions, regret
    is at most K + K^2 / V. With u the *shortest* feasible path, since Reg(u) >= -G R T, violation
    is at most 2 K_u + sqrt(V (K_u + G R T)): for V = sqrt(T) and a decision that is feasible in all
    slots O(T^(3/4)), however far the best decisions move, and O(T^max(3/4, (1+v)/2)) where the
    shortest feasible path grows as T^v.

    Parameters
    ----------
    domain, horizon
        The feasible set X, with diameter R, and the number of slots T.
    V
        The weight of the loss: sqrt(T) unless given. It has the unit of a violation.

    References
    ----------
    Supantha and Sinha, ALT 2026, the algorithm that does not project; AdaHedge of de Rooij, van
    Erven, Grunwald and Koolen (JMLR 2014).

    >>> import coldq
    >>> X = coldq.Box(0.0, 4.0, dim=1)
    >>> learner = coldq.SupanthaSinha2026ProjectionFree(X, horizon=3, V=1.0)
    >>> revealed = coldq.Feedback(coldq.Linear([-1.0]), coldq.Affine([[1.0]], [1.0]))
    >>> state = learner.update(learner.init(1, start=[2.0]), revealed)
    >>> state.violation, state.points[:, 0]  # the gradient is -1 + 2: both go down, and are clipped
    (array(1.), array([0., 0.]))
    """

    card: ClassVar[Card] = Card(
        needs=FIRST_ORDER,
        assumes=(
            "a feasible decision in every slot",
            "for the violation: one common to all slots, or a short path of them",
            "known horizon",
        ),
        claims=tuple(
            Claim(
                "convex",
                constraints,
                Rate(0.75),
                Rate(0.5),
                Rate(0.5, vx=1.0),
            )
            for constraints in ("fixed", "time-varying")
        ),
        certainty="uncertain",
        unchecked="the weight V, the number of experts and their steps",
        bibtex=BIBTEX,
    )

    state_type = ProjectionFreeState
    domain: Domain
    horizon: int | None
    V: Array
    _leading = ("V",)

    def __init__(self, domain: Domain, horizon: int, *, V: ArrayLike | None = None) -> None:
        require_single(domain, "an expert learner")
        diameter_of(domain, "SupanthaSinha2026ProjectionFree needs")
        T = horizon_of(horizon)
        self._take(domain, T, V=positive("V", np.sqrt(float(T)) if V is None else V))

    @property
    def n_experts(self) -> int:
        """M."""
        return ceil(0.5 * log2(1.0 + float(self.horizon or 0))) + 1

    def init(
        self, n_constraints: int, start: Place = None, batch: Shape = ()
    ) -> ProjectionFreeState:
        """The state before slot 1: all experts start where the learner does."""
        rows = self._count(n_constraints)
        t, x = self.first_slot(start, batch)
        none, M = np.zeros(t.shape), self.n_experts
        points = np.repeat(x[..., None, :], M, axis=-2)
        zeros = (np.zeros((*t.shape, count)) for count in (M, rows))
        return self.new_state(t, x, none, none.copy(), none.copy(), points, *zeros)

    def update(
        self, state: ProjectionFreeState, feedback: Feedback, played: Place = None
    ) -> ProjectionFreeState:
        """The state of the next slot."""
        gradient, g = self.observe(state, feedback, "values", played)
        J = self.jacobian_of(state, feedback, g.shape[-1], played)
        level, slope = worst_violation(g, J)
        x, R = state.x, self.domain.diameter

        Q = np.asarray(state.violation + level)
        nabla = self.V[..., None] * gradient + (2.0 * Q)[..., None] * slope
        square = dot(nabla, nabla)
        squares = np.asarray(state.squares + square)
        total = np.where(squares > 0.0, squares, 1.0)  # nothing to learn from a zero gradient
        eta = (R / np.sqrt(2.0 * total))[..., None] * np.power(2.0, np.arange(self.n_experts))
        aim = state.points - eta[..., None] * nabla[..., None, :]
        points = require_finite(self.domain.project(aim))

        lost = dot(nabla[..., None, :], state.points - x[..., None, :])
        alike = (MAX_ROUNDING_LOSS * R * np.sqrt(square))[..., None]
        lost = np.where(np.abs(lost) <= alike, 0.0, lost)
        gap = _mixed(state.losses, state.gap, lost, alike[..., 0])
        losses = state.losses + lost
        x_new = weighted_mean(_log_weights(losses, gap), points)
        return self.new_state(
            state.t + 1, self.domain.project(x_new), Q, squares, gap, points, losses, np.array(g)
        )

    def require_sound(self, state: ProjectionFreeState) -> None:
        require_not_negative(state, "violation", "squares", "gap")
        M = self.n_experts
        shapes = state.points.shape[-2:], state.losses.shape[-1:]
        if shapes != ((M, self.domain.dim), (M,)):
            raise InvalidInput(
                f"points and losses must be those of {M} experts, but have the shapes "
                f"{state.points.shape} and {state.losses.shape}"
            )
        if not self.domain.contains(state.points).all():
            raise InvalidInput("points must lie in the domain")


def _log_weights(losses: Array, gap: Array) -> Array:
    """Logarithms of AdaHedge's weights: those of the leaders while nothing was lost to mixing."""
    over, some = losses - losses.min(axis=-1, keepdims=True), (gap > 0.0)[..., None]
    eta = log(losses.shape[-1]) / np.where(some, gap[..., None], 1.0)
    return np.where(some, -eta * over, np.where(over > 0.0, -np.inf, 0.0))


def _mixed(losses: Array, gap: Array, lost: Array, alike: Array) -> Array:
    """What AdaHedge has lost to mixing: the mean loss less the mix loss, added up."""
    raw = np.exp(_log_weights(losses, gap))
    ones = np.ones(lost.shape[-1])
    weights = raw / dot(raw, ones)[..., None]
    eta = log(lost.shape[-1]) / np.where(gap > 0.0, gap, 1.0)
    low = np.where(weights > 0.0, lost, np.inf).min(axis=-1)
    shares = np.where(weights > 0.0, np.exp(-eta[..., None] * (lost - low[..., None])), 0.0)
    mixed: Array = low - np.log(dot(weights, shares)) / eta
    led = (losses + lost).min(axis=-1) - losses.min(axis=-1)
    more: Array = dot(weights, lost) - np.where(gap > 0.0, mixed, led)
    return np.asarray(gap + np.where(more > alike, more, 0.0))
