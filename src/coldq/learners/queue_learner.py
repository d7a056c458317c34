"""Learners with a virtual queue: one update, by the numbers of each learner's rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.learners.fused import at_once
from coldq.learners.learner import Algorithm, Place
from coldq.learners.queue_rule import QueueRule, When
from coldq.learners.revealed import finite_weights, has_first, require_rows
from coldq.learners.state import QueueState
from coldq.slot.feedback import Feedback
from coldq.slot.step import solve


class QueueLearner(Algorithm):
    """A per-slot convex step, whose rows are weighted by a virtual queue.

    At the end of slot t, with f_t and g_t revealed and the numbers of :meth:`rule` for slot t:

        Q_t     = max{ (1 - eta) Q_{t-1} + gain [g_t(x_t)]_+ , floor }
        x_{t+1} = argmin over x in X of
                  <grad f_t(x_t), x - x_t> + alpha |x - x_t|^2 + price sum_n Q_t^n [g_t^n(x)]_+

    The rule's ``when`` may let the queue move after the step, with g_t(x_{t+1}), or let the step
    see the slot's violations twice.
    """

    state_type = QueueState

    @property
    def has_first_queue(self) -> bool:
        """Whether Q_1 is what :meth:`init` gave, so that the queue does not move in slot 1."""
        return False

    def rule(self, t: Any) -> QueueRule:
        """How the queue moves in slot t, a whole number or an array of them, and what it weighs."""
        raise NotImplementedError

    def update(
        self, state: QueueState, feedback: Feedback, center: Place = None, played: Place = None
    ) -> QueueState:
        """The state of the next slot, from what slot t revealed. The old state stays as it was.

        `center` takes the place of x_t in the step, though not where f_t and g_t are evaluated:
        the mean of neighbours' decisions, see :class:`~coldq.Decentralised`. `played` takes its
        place there, though not in the step: the decision that a late or measured feedback is about.

        >>> import coldq
        >>> learner = coldq.COLDQ(coldq.Box(0.0, 1.0, dim=1), alpha=1.0, eta=0.5, gamma=1.0)
        >>> state = learner.init(0)
        >>> learner.update(state, coldq.Feedback(coldq.Linear([-1.0]), None)).x
        array([0.5])
        """
        if center is None and (done := at_once(self, state, feedback, played)):
            return done
        gradient = self.gradient_of(state, feedback, played)
        t, queue, z, rule = state.t, state.queue, self._center(state, center), self.rule(state.t)

        if rule.when is When.AFTER_STEP:
            require_rows(feedback.constraint, queue.shape)
            weights = rule.weights(queue)
        else:
            g = self.values_of(state, feedback, queue.shape, played)
            queue = rule.moved(queue, g)
            if self.has_first_queue and has_first(t):
                queue = np.where(t[..., None] == 1, state.queue, queue)
            weights = rule.weights(queue, g)
        step = solve(
            z, gradient, rule.alpha, finite_weights(weights), feedback.constraint, self.domain
        )
        if rule.when is When.AFTER_STEP:
            queue = rule.moved(queue, feedback.constraint.value(step.x))
        return self.new_state(t + 1, step.x, queue, step.multipliers)

    def _caps(self, before: QueueState, after: QueueState) -> Array:
        """The weights of the step between two states, which bound its multipliers."""
        rule = self.rule(before.t)
        queue = before.queue if rule.when is When.AFTER_STEP else after.queue
        return rule.weights(queue)
