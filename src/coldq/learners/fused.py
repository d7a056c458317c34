"""A whole update in one compiled call, where the loss, the rows and the domain are common ones.

The plain path, which reads like a learner's algorithm, says what an update is; this gives the same
bits in less time. Where anything is out of the ordinary it gives nothing, and the plain path runs:
it finds what is wrong with the arguments, warns, and has other solvers where the first misses.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
from numpy import empty, int64

from coldq._values import Array, make_quickly
from coldq.compiled.calls import STACK
from coldq.constraints import Affine
from coldq.domains import Box
from coldq.feedback import Feedback
from coldq.losses import GradientAt, LeastSquares, Linear, Quadratic
from coldq.solver.answer import TOLERANCE
from coldq.solver.cascade import FEW_ROWS
from coldq.solver.kernels.affine import affine_step
from coldq.solver.kernels.by_address import code_of
from coldq.solver.kernels.queued import (
    AFTER,
    experts_size,
    experts_step,
    queued_blocks_size,
    queued_blocks_step,
    queued_size,
    queued_step,
)
from coldq.solver.kernels.side_by_side import affine_steps
from coldq.solver.kernels.simplices import simplices_step
from coldq.solver.simplices import steps_for
from coldq.solver.threads import LEAST_WORK, NONE, scratch
from coldq.step.residuals import listening, tell

# The parameters of a slot, numbers or arrays: (alpha, gain, eta, floor, price, when). The queue
# becomes max{(1 - eta) queue + gain [g]_+, floor}, BEFORE the step or, with g at the new x, AFTER
# it; in the step, whose proximal weight is alpha, rows weigh price times the queue, to which AHEAD
# adds its gain once more.
Rule = tuple[Any, Any, Any, Any, Any, float]
KEPT = (0.0, 0.0, -inf)  # gain, eta and floor of a slot that leaves the queue as it is
MOST_SHAPES = 1000  # that are remembered

# By the kind of a loss, what the kernels take of it: a vector, a matrix and its levels.
ARRAYS: dict[type, Callable[[Any], tuple[Any, Any, Any]]] = {
    LeastSquares: lambda loss: (None, loss.H, loss.y),
    Linear: lambda loss: (loss.c, None, None),
    Quadratic: lambda loss: (loss.q, loss.P, None),
}

# By the shapes of its arrays, what a call takes: the kernel, the step's code, how much memory, and
# the shape of one instance; on blocks also by their number, which limits Newton's steps.
_ready: dict[Any, Any] = {}


def _remembered(key: Any, made: Any) -> Any:
    """What calls of some shapes take, for those to come."""
    if len(_ready) >= MOST_SHAPES:
        _ready.clear()
    make_quickly()  # the feedbacks to come
    _ready[key] = made
    return made


def _prepare(shape: tuple[int, ...]) -> Any:
    """What a call with A of this shape takes; None if others are better at it."""
    n, p = shape[-2:]
    if n > FEW_ROWS:
        return None
    return _remembered(shape, (queued_step(), code_of(affine_step), queued_size(n, p), n, p))


def _on_blocks(domain: Any, A: Array, x: Array) -> tuple[Any, tuple[Array, ...]]:
    """The same on blocks with sums, and these; None if it is no single decision on such."""
    blocks = getattr(domain, "blocks", None)
    if blocks is None or not x.ndim == blocks.total.ndim == A.ndim - 1 == 1:
        return None, ()
    (n, p), k, box = A.shape, len(blocks.start), domain.box
    found = _ready.get(("blocks", n, p, k))
    if found is None:
        made = queued_blocks_step(), code_of(simplices_step), queued_blocks_size(n, p, k), n, p
        found = _remembered(("blocks", n, p, k), (made, steps_for(n, p, k, False)))
    return found[0], (box.lower, box.upper, *blocks, found[1])


def _prepare_experts(points: tuple[int, ...], rows: tuple[int, ...]) -> Any:
    """What a call with experts' points and A of these shapes takes; None if none is made."""
    (e, p), (n, _) = points, rows
    if n > FEW_ROWS:
        return None
    size = max(experts_size(e, n, p), STACK + 1)  # the kernel takes none from its stack
    made = experts_step(), code_of(affine_step), code_of(affine_steps), size, e, n, p
    return _remembered((points, rows), made)


def at_once(learner: Any, state: Any, feedback: Any) -> Any:
    """The next state of a learner with a ``_rule(t)``, or None: then the plain path is to be taken.

    The state has a queue and multipliers; g_t and the gradient are taken at x_t, where the step
    starts as well.
    """
    if (
        type(feedback) is not Feedback
        or type(state) is not learner.state_type
        or state.made_by is not learner._maker
    ):
        return None
    loss: Any = feedback.loss
    rows, domain, x, t = feedback.constraint, learner.domain, state.x, state.t
    if type(rows) is not Affine:
        return None
    kind, g = type(loss), rows.measured
    if arrays := ARRAYS.get(kind):
        vector, matrix, levels = arrays(loss)
    elif kind is GradientAt and _same(loss.x, x):
        vector, matrix, levels = loss.slope, None, None
    else:
        return None
    if g is not None and not _same(rows.measured_at, x):
        return None
    A, queue = rows.A, state.queue
    if type(domain) is Box:
        prepared, on = _ready.get(A.shape) or _prepare(A.shape), (domain.lower, domain.upper)
    else:
        prepared, on = _on_blocks(domain, A, x)
    if prepared is None:
        return None
    kernel, code, size, n, p = prepared
    try:
        if type(t) is int64 and x.ndim == 1:  # one decision, of which there is little Python
            now, slot = int(t), feedback.slot
            if slot is not None and (type(slot) is not int or slot != now):
                return None  # late, or an array
            if now - 1 == learner.horizon:
                return None
            following, its_queue, multipliers = empty(p), empty(n), empty(n)
        elif _ordinary(learner, t, feedback.slot, size):
            now = t if t.ndim else t.item()
            following, its_queue, multipliers = (empty(a.shape) for a in (x, queue, queue))
        else:
            return None
        alpha, gain, eta, floor, price, when = learner._rule(now)
        if when == AFTER and g is not None:
            return None  # not known at the new x
        residual = kernel(
            x, vector, matrix, levels, A, rows.b, g, queue, alpha, gain, eta, floor, price, when,
            *on, code, NONE if size <= STACK else scratch(size), following, its_queue, multipliers,
        )  # fmt: skip
    except (AttributeError, TypeError):  # a state changed by hand, or arrays that do not fit
        return None
    if residual <= TOLERANCE:
        if listening:
            tell(residual)
        return learner._build(t + 1, following, its_queue, multipliers)
    return None


def experts_at_once(learner: Any, state: Any, feedback: Any) -> Any:
    """The same of a single state of a learner that tracks experts, whose pool has a rule."""
    if (
        type(feedback) is not Feedback
        or type(state) is not learner.state_type
        or state.made_by is not learner._maker
    ):
        return None
    loss: Any = feedback.loss
    rows, domain, t, slot = feedback.constraint, learner.domain, state.t, feedback.slot
    if (
        type(rows) is not Affine
        or type(domain) is not Box
        or rows.measured is not None  # at one point alone
        or type(t) is not int64
        or (slot is not None and (type(slot) is not int or slot != t))
    ):
        return None
    arrays = ARRAYS.get(type(loss))
    now, pool, experts = int(t), learner._pool(0), state.experts
    if (
        arrays is None
        or now == 1
        or now - 1 == learner.horizon
        or type(experts) is not pool.state_type
        or experts.made_by is not pool._maker
    ):
        return None
    vector, matrix, levels = arrays(loss)
    shapes = experts.x.shape, rows.A.shape
    try:
        prepared = _ready.get(shapes) or _prepare_experts(*shapes)
        if prepared is None:
            return None
        kernel, code, together, size, e, n, p = prepared
        x, logs, points = empty(p), empty(e), empty((e, p))
        queue, multipliers = empty((e, n)), empty((e, n))
        alpha, gain, eta, floor, price, when = pool._rule(now)
        residual = kernel(
            experts.x, experts.queue, alpha, state.x, state.log_weights, learner.kappa,
            learner.gradient == "shared", vector, matrix, levels, rows.A, rows.b, gain, eta, floor,
            price, when, domain.lower, domain.upper, code, together, scratch(size), x, logs, points,
            queue, multipliers,
        )  # fmt: skip
    except (AttributeError, TypeError, ValueError):  # no rule, or arrays that do not fit
        return None
    if residual <= TOLERANCE:
        if listening:
            tell(residual)
        return learner._build(
            t + 1, x, logs, pool._build(experts.t + 1, points, queue, multipliers)
        )
    return None


def _same(known: Any, x: Array) -> bool:
    """Whether a measurement is one at x; in doubt it is not."""
    return known is x or (known.shape == x.shape and known.tobytes() == x.tobytes())


def _ordinary(learner: Any, t: Any, slot: Any, size: int) -> bool:
    """Whether a small batch is in slots without anything to say or to do beside the rule."""
    if t.size * size >= 2 * LEAST_WORK:  # enough for threads
        return False
    past, times = -1 if learner.horizon is None else learner.horizon + 1, t.ravel().tolist()
    if past in times or (t.ndim and 1 in times):
        return False
    if slot is None or type(slot) is int:
        return slot is None or times.count(slot) == t.size
    return np.shape(slot) in ((), t.shape) and bool(np.all(t == slot))
