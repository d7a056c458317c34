"""Expert tracking: many copies of a learner with different step sizes, and a hedge over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from coldq.base.arrays import Array, one_of, positive
from coldq.base.contractions import hedge, weighted_mean
from coldq.base.errors import InvalidInput, SharedGradient, warn
from coldq.base.protocols import Domain
from coldq.learners.fused import experts_at_once
from coldq.learners.learner import Algorithm, Place, Shape, horizon_of
from coldq.learners.state import State, axes, inside
from coldq.slot.domains import require_single
from coldq.slot.feedback import Feedback
from coldq.slot.losses import GradientAt, Linear

GRADIENTS = ("own", "shared")


@dataclass(frozen=True, eq=False, slots=True)
class ExpertState(State):
    """t and the decision x_t, the logarithms of the M weights, and the state of the M experts.

    The experts are the leading axis: `log_weights` has shape (M, ...), ``experts.x`` (M, ..., p).
    """

    log_weights: Array = field(metadata=axes())
    experts: Any = field(metadata=inside())

    axes_before: ClassVar[dict[str, int]] = {"log_weights": 1, "experts": 1}

    @property
    def weights(self) -> Array:
        """The weights of the experts, which sum to one."""
        weights = np.exp(self.log_weights)
        return weights / weights.sum(axis=0)


def _experts_last(array: Array, core: int) -> Array:
    """A view with the experts' axis just before the other core axes, as contractions take it."""
    return array if array.ndim == core else np.moveaxis(array, 0, -core)


class ExpertLearner(Algorithm):
    """What the expert variants share: all but the pool of experts.

    At the end of slot t, with the surrogate loss ``l_t(x) = <grad f_t(x_t), x - x_t>``:

        w_{t+1}[m] is proportional to w_t[m] exp(-kappa l_t(x_t[m]))
        x_{t+1}[m] = the update of expert m
        x_{t+1}    = sum_m w_{t+1}[m] x_{t+1}[m]

    Weights start at ``w_1[m] = (M + 1) / (m (m + 1) M)`` and are kept as logarithms with the
    largest subtracted, because kappa times the surrogate loss can be huge.
    """

    state_type = ExpertState
    horizon: int | None
    kappa: Array
    gradient: str
    _pools: dict[int, Any]

    def _pool_of(self, axes: int) -> Any:
        """The experts as one learner whose parameters have M entries and then `axes` axes."""
        raise NotImplementedError

    def _pool(self, axes: int) -> Any:
        """The pool for a batch of so many axes, built once."""
        if axes not in self._pools:
            self._pools[axes] = self._pool_of(axes)
        return self._pools[axes]

    @property
    def n_experts(self) -> int:
        """``M = floor(log2(1 + T) / 2) + 1``, as many as there are orders of step sizes."""
        assert self.horizon is not None
        return ((1 + self.horizon).bit_length() - 1) // 2 + 1

    def _scales(self, axes: int) -> Array:
        """1, 2, 4, ... for the experts."""
        return np.power(2.0, np.arange(self.n_experts)).reshape(-1, *(1,) * axes)

    def init(self, n_constraints: int, start: Place = None, batch: Shape = ()) -> ExpertState:
        """The state before slot 1: all experts start where the learner does."""
        self._count(n_constraints)
        t, x = self.first_slot(start, batch)
        M, shape = self.n_experts, t.shape
        experts = self._pool(len(shape)).init(n_constraints, start=x, batch=(M, *shape))
        m = np.arange(1.0, M + 1.0)
        first = np.log((M + 1.0) / (m * (m + 1.0) * M)).reshape(M, *(1,) * len(shape))
        first = first - first.max(axis=0)
        return self.new_state(t, x, np.array(np.broadcast_to(first, (M, *shape))), experts)

    def update(self, state: ExpertState, feedback: Feedback, played: Place = None) -> ExpertState:
        """The state of the next slot."""
        if played is None and (done := experts_at_once(self, state, feedback)):
            return done
        return self.advance(state, feedback, self.gradient_of(state, feedback, played))

    def advance(self, state: ExpertState, feedback: Feedback, gradient: Array) -> ExpertState:
        """The state of the next slot, the gradient at x_t being known."""
        t, x, pool = state.t, state.x, self._pool(state.x.ndim - 1)

        points = _experts_last(state.experts.x, 2)
        logs = hedge(_experts_last(state.log_weights, 1), points, x, gradient, self.kappa)

        experts = pool.update(state.experts, self._for_experts(feedback, gradient))

        x_new = weighted_mean(logs, _experts_last(experts.x, 2))
        log_weights = logs if logs.ndim == 1 else np.ascontiguousarray(np.moveaxis(logs, -1, 0))
        return self.new_state(t + 1, x_new, log_weights, experts)

    def _for_experts(self, feedback: Feedback, gradient: Array) -> Feedback:
        """What the experts see: the loss itself, or its linear surrogate at x_t."""
        known_once = isinstance(feedback.loss, GradientAt)
        if self.gradient == "own" and not known_once:
            return feedback
        if self.gradient == "own":
            warn(
                "the loss is known only where it was played, so the experts share its gradient "
                'there; gradient="shared" says that this is meant',
                SharedGradient,
            )
        return Feedback(Linear(gradient), feedback.constraint, feedback.slot)

    def _learner_inside(self, axes: int) -> Any:
        return self._pool(axes)

    def require_sound(self, state: ExpertState) -> None:
        expected = (self.n_experts, *state.batch)
        for name, shape in (
            ("log_weights", state.log_weights.shape), ("experts", state.experts.batch),
        ):  # fmt: skip
            if shape != expected:
                raise InvalidInput(f"{name} must have the leading axes {expected}, but has {shape}")

    def _set_common(self, domain: Domain, horizon: int, kappa: Any, gradient: str) -> None:
        require_single(domain, "an expert learner")
        one_of("gradient", gradient, GRADIENTS)
        horizon = horizon_of(horizon)
        rate = positive("kappa", horizon**-0.5 if kappa is None else kappa)
        if rate.ndim:
            raise InvalidInput(f"kappa must be one number, but has shape {rate.shape}")
        self._take(domain, horizon, kappa=rate, gradient=gradient, _pools={})
