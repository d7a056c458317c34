"""A whole update in one native call, where the loss, the rows and the domain are common ones.

The plain path, which reads like a learner's algorithm, says what an update is; this gives the same
bits in less time. Where anything is out of the ordinary it gives nothing, and the plain path runs:
it finds what is wrong with the arguments, warns, and has other solvers where the first misses.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy import int64, maximum

from coldq.base.arrays import Array, all_finite, put
from coldq.base.errors import InvalidInput, StepFailed
from coldq.learners.forecast_state import KIND, SINCE
from coldq.learners.forecasts import limits_within_reach
from coldq.learners.queue_rule import QueueRule, When
from coldq.learners.recent import Recent
from coldq.learners.revealed import require_slot
from coldq.learners.state import QueueState, queue_state
from coldq.slot.constraints import Affine
from coldq.slot.domains import Box
from coldq.slot.feedback import Feedback, Forecast
from coldq.slot.losses import GradientAt, LeastSquares, Linear, Quadratic
from coldq.slot.step.residuals import listening, tell
from coldq.solver.answer import TOLERANCE
from coldq.solver.api import (
    experts_step,
    queue_step,
    self_tuning_step,
)
from coldq.solver.cascade import MAX_NEWTON_ROWS, UNLIMITED_SYSTEMS
from coldq.solver.simplices import steps_for
from coldq.solver.threads import MIN_THREAD_WORK, fill_batch

AFFINE = 1.0  # the kind of dense rows, see :func:`~coldq.forecasts.kind_of`

# By the kind of a loss, what the core takes of it: a vector, a matrix and its levels.
ARRAYS: dict[type, Callable[[Any], tuple[Any, Any, Any]]] = {
    LeastSquares: lambda loss: (None, loss.H, loss.y),
    Linear: lambda loss: (loss.c, None, None),
    Quadratic: lambda loss: (loss.q, loss.P, None),
}


def operands_of(domain: Any, n: int) -> tuple[Any, ...] | None:
    """What the core takes of a domain for n dense rows, or None where other solvers are needed.

    The bounds, the blocks, and how many systems Newton's method may solve.
    """
    if type(domain) is Box:
        few = n <= MAX_NEWTON_ROWS
        return (domain.lower, domain.upper, None, None, None, UNLIMITED_SYSTEMS) if few else None
    blocks = getattr(domain, "blocks", None)
    if blocks is None:
        return None
    return (domain.box.lower, domain.box.upper, *blocks, steps_for(n, domain.dim, False))


def _revealed(learner: Any, state: Any, feedback: Any, played: Any) -> tuple[Any, ...] | None:
    """What the core takes of a slot with affine rows and a common loss, or None.

    Where the decision was played, or None for x_t; the loss's arrays; the rows, and their values
    there if they were measured.
    """
    if (
        type(feedback) is not Feedback
        or type(state) is not learner.state_type
        or state.fingerprint is not learner._fingerprint
    ):
        return None
    loss: Any = feedback.loss
    rows: Any = feedback.constraint
    x = place = state.x
    if type(rows) is not Affine:
        return None
    if played is not None and played is not x:
        if type(played) is not np.ndarray or played.shape != x.shape or not all_finite(played):
            return None
        place = x if _same(played, x) else played
    kind, g = type(loss), rows.measured  # pyright: ignore[reportUnknownVariableType]
    if arrays := ARRAYS.get(kind):  # pyright: ignore[reportUnknownArgumentType]
        parts = arrays(loss)
    elif kind is GradientAt and _same(loss.x, place):
        parts = loss.slope, None, None
    else:
        return None
    if g is not None and not _same(rows.measured_at, place):
        return None
    at = None if place is x else place
    return at, *parts, rows, g


def at_once(learner: Any, state: Any, feedback: Any, played: Any = None) -> Any:
    """The next state of a queue's learner, or None: then the plain path is to be taken.

    The step starts at x_t, where g_t and the gradient are taken as well, unless another decision
    was `played`.
    """
    revealed = _revealed(learner, state, feedback, played)
    if revealed is None or type(state) is not QueueState:
        return None
    played, vector, matrix, levels, rows, g = revealed
    domain, x, t = learner.domain, state.x, state.t
    A: Any = rows.A
    queue, (n, p) = state.queue, A.shape[-2:]
    on = operands_of(domain, n)
    if on is None:
        return None
    try:
        # One decision, of which there is little Python.
        if type(t) is int64 and x.ndim == 1:  # pyright: ignore[reportUnnecessaryComparison]
            now, slot = int(t), feedback.slot
            if slot is not None and (type(slot) is not int or slot != now):
                return None  # late, or an array
            if now - 1 == learner.horizon:
                return None
        elif _ordinary(learner, t, feedback.slot, (n + 8) * p):
            now = t if t.ndim else t.item()
        else:
            return None
        rule = learner.rule(now)
        if type(now) is int and now == 1 and learner.has_first_queue:
            rule = QueueRule(rule.alpha, price=rule.price)
        if rule.when is When.AFTER_STEP and g is not None:
            return None  # not known at the new x
        following, its_queue, multipliers, residual = queue_step(
            x, played, vector, matrix, levels, A, rows.b, g, queue, *rule, *on
        )
        if following.shape != x.shape:
            return None
    except (AttributeError, TypeError):  # a state changed by hand, or arrays that do not fit
        return None
    worst = maximum.reduce(residual, None, initial=0.0) if x.ndim > 1 else residual
    if worst <= TOLERANCE:
        if listening:
            tell(worst)
        return queue_state(learner._fingerprint, t + 1, following, its_queue, multipliers)
    return None


def experts_at_once(learner: Any, state: Any, feedback: Any) -> Any:
    """The next state of a learner that tracks experts, whose pool has a rule, or None."""
    if (
        type(feedback) is not Feedback
        or type(state) is not learner.state_type
        or state.fingerprint is not learner._fingerprint
    ):
        return None
    loss: Any = feedback.loss
    rows, domain, t, slot = feedback.constraint, learner.domain, state.t, feedback.slot
    if (
        type(rows) is not Affine
        or rows.measured is not None  # at one point alone
        or type(t) is not int64
        or (slot is not None and (type(slot) is not int or slot != t))
    ):
        return None
    arrays = ARRAYS.get(type(loss))  # pyright: ignore[reportUnknownArgumentType]
    now, pool, experts = int(t), learner._pool(0), state.experts
    if (
        arrays is None
        or now == 1
        or now - 1 == learner.horizon
        or type(experts) is not QueueState
        or experts.fingerprint is not pool._fingerprint
    ):
        return None
    vector, matrix, levels = arrays(loss)
    try:
        on = operands_of(domain, rows.A.shape[0])
        if on is None:
            return None
        alpha, gain, eta, floor, price, when = pool.rule(now)
        x, logs, points, queue, multipliers, residuals = experts_step(
            experts.x, experts.queue, alpha, state.x, state.log_weights, learner.kappa,
            float(learner.gradient == "shared"), vector, matrix, levels, rows.A, rows.b, gain, eta,
            floor, price, when, *on,
        )  # fmt: skip
    except (AttributeError, TypeError, ValueError):  # no rule, or arrays that do not fit
        return None
    if x.ndim > 1:
        return None
    worst = maximum.reduce(residuals)
    if worst <= TOLERANCE:
        if listening:
            tell(worst)
        return _expert_state(
            type(state), learner._fingerprint, t + 1, x, logs,
            queue_state(pool._fingerprint, experts.t + 1, points, queue, multipliers),
        )  # fmt: skip
    return None


def _expert_state(kind: Any, fingerprint: Any, t: Any, x: Array, logs: Array, experts: Any) -> Any:
    """A state of experts, in less time than of any arrays."""
    state = object.__new__(kind)
    put(state, "t", t, "x", x, "log_weights", logs, "experts", experts, "fingerprint", fingerprint)
    x.setflags(False)  # pyright: ignore[reportCallIssue]  # its keyword takes thrice the time
    return state


def tuned_at_once(learner: Any, state: Any, feedback: Any, played: Any = None) -> Any:
    """The next state of SelfTuning, or None. Members of a batch to whom the core has no answer
    take the plain path by themselves."""
    revealed = _revealed(learner, state, feedback, played)
    if revealed is None:
        return None
    played, vector, matrix, levels, rows, g = revealed
    domain, x, t, own, ahead = learner.domain, state.x, state.t, None, learner._margins
    if feedback.forecast is not None:
        own = feedback.forecast.constraint
        if (
            feedback.forecast.loss is not None
            or type(own) is not Affine
            or own.measured is not None
        ):
            return None
    A: Any = rows.A
    forecaster, (n, p) = ahead.forecaster, A.shape[-2:]
    on = operands_of(domain, n) if 0 < n <= MAX_NEWTON_ROWS else None
    if on is None or rows.b.shape[-1] != n or x.shape[-1] != p:
        return None
    if feedback.slot is not None:
        require_slot(feedback.slot, t)
    try:
        limits, asked = rows.b, None
        if limits.shape != state.margin.shape:
            limits = np.ascontiguousarray(np.broadcast_to(limits, state.margin.shape))
        now, past = t.astype(np.float64) if t.ndim else float(t), state.past
        if past.shape[-1] != n * (p + 1):
            past = np.zeros((*t.shape, forecaster.rows, n * (p + 1)))
        if forecaster.own:  # which are told limits as the core will count them
            limits = limits_within_reach(rows, domain, np.zeros(np.shape(t), bool))
            limits = np.ascontiguousarray(np.broadcast_to(limits, state.margin.shape))
        recent, lags = state.recent.recall(t, forecaster.back, limits)
        if forecaster.own:
            tally = state.tally
            since = np.where((tally[..., KIND] == AFFINE) & (t > 1), tally[..., SINCE], now)
            asked = forecaster.asked(recent, t, since, limits.shape)
        given = (
            now, x, state.predicted, state.slopes, state.points, state.tally, state.margin,
            state.ordinary, state.largest, state.record, state.entry, state.highest, state.moments,
            state.errors, past, state.levels, state.terms, state.coefficients, state.covariance,
            state.hedge, state.losses, state.weights, played, vector, matrix, levels, A, rows.b,
            g, None if own is None else own.A, None if own is None else own.b, lags, asked,
            *forecaster.parts, learner.pool, *on, ahead.rate, ahead.tolerance, learner._R,
        )  # fmt: skip
        found = self_tuning_step(*given) if not t.ndim else _side_by_side(given, t.shape)
    except (AttributeError, TypeError, ValueError):  # arrays that do not fit
        return None
    following, residual = found[0], found[-1]
    if following.shape != x.shape:
        return None
    if t.ndim:
        missed = ~(residual <= TOLERANCE)
        if missed.any():
            if missed.all() or not _complete(learner, state, feedback, played, missed, found):
                return None
            residual = np.where(missed, 0.0, residual)
        worst = maximum.reduce(residual, None, initial=0.0)
    else:
        worst = residual
    if not worst <= TOLERANCE:
        return None
    if listening:
        tell(worst)
    (_, predicted, slopes, points, tally, margin, ordinary, largest, record, entry, highest,
     moments, errors, past, levels, terms, coefficients, covariance, hedge, losses, weights,
     _) = found  # fmt: skip
    counted = past[..., 0, p :: p + 1]  # limits within what rows can be
    if (counted != limits).any():
        if forecaster.own:
            return None  # the slot was infeasible
        recent, _ = state.recent.recall(t, forecaster.back, np.ascontiguousarray(counted))
    return learner.new_state(
        t + 1, following, tally, margin, ordinary, largest, record, entry, highest, predicted,
        moments, errors, past, levels, terms, coefficients, covariance, recent, slopes, points,
        hedge, losses, weights,
    )  # fmt: skip


# What self_tuning_step takes first, after the slot, and returns, before the residual.
TUNED = (
    "x", "predicted", "slopes", "points", "tally", "margin", "ordinary", "largest", "record",
    "entry", "highest", "moments", "errors", "past", "levels", "terms", "coefficients",
    "covariance", "hedge", "losses", "weights",
)  # fmt: skip
# The core axes of what it takes.
TUNED_CORES = (0, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1, 2, 1, 2, 2, 2, 2, 3, 1, 1, 1,
               1, 1, 2, 1, 2, 1, 1, 2, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)  # fmt: skip


def _side_by_side(given: tuple[Any, ...], batch: tuple[int, ...]) -> tuple[Array, ...]:
    """What self_tuning_step returns for a batch, by threads where that pays."""
    state = given[1 : 1 + len(TUNED)]
    outputs = *(np.empty(array.shape) for array in state), np.empty(batch)
    work = sum(array.size for array in state) // max(prod(batch), 1)
    fill_batch(self_tuning_step, given, TUNED_CORES, outputs, batch, work)
    return outputs


def _complete(
    learner: Any, state: Any, feedback: Any, played: Any, missed: np.ndarray, found: Any
) -> bool:
    """Fill in what the plain path finds for some members of a batch; whether it finds all."""
    where, batch = np.nonzero(missed), missed.shape
    arrays = {name: getattr(state, name) for name in state.names()}
    arrays["recent"] = Recent.of(state.recent).members(where)
    for name in arrays.keys() - {"recent"}:
        arrays[name] = np.ascontiguousarray(arrays[name][where])
    some = type(state)(**arrays, fingerprint=state.fingerprint)
    gradient = learner.gradient_of(state, feedback, played)
    forecast = feedback.forecast
    if forecast is not None:
        forecast = Forecast(constraint=forecast.constraint.member(where, batch))
    told = Feedback(
        Linear(gradient[where]), feedback.constraint.member(where, batch), forecast=forecast
    )
    try:
        answer = learner._step_by_step(some, told, None if played is None else played[where])
    except (InvalidInput, StepFailed):  # the plain path of all says which member it is
        return False
    for name, array in zip(TUNED, found, strict=False):
        array[where] = getattr(answer, name)
    return True


def _same(known: Any, x: Array) -> bool:
    """Whether a measurement is one at x; in doubt it is not."""
    return known is x or (known.shape == x.shape and known.tobytes() == x.tobytes())


def _ordinary(learner: Any, t: Any, slot: Any, work: int) -> bool:
    """Whether a small batch is in slots without anything to say or to do beside the rule."""
    if t.size * work >= 2 * MIN_THREAD_WORK:  # enough for threads
        return False
    past, times = -1 if learner.horizon is None else learner.horizon + 1, t.ravel().tolist()
    if past in times or (t.ndim and 1 in times):
        return False
    if slot is None or type(slot) is int:
        return slot is None or times.count(slot) == t.size
    return np.shape(slot) in ((), t.shape) and bool(np.all(t == slot))
