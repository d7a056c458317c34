"""What a slot revealed, checked and in the shapes of a state."""

from __future__ import annotations

from typing import Any

import numpy as np

from coldq.base.arrays import (
    Array,
    all_finite,
    are_finite,
    as_array,
    first_index,
    point,
)
from coldq.base.errors import InvalidInput, WrongState, name_indices

FILL_UP = (
    ": if their number changes, start for the largest and fill up with rows that always hold, "
    "0'x <= b"
)
BY_HAND = "was the state changed by hand? learner.from_arrays checks what it is given"
MAX_LISTED_MEMBERS = 64  # of a batch: so short a list is searched before NumPy begins
Shape = tuple[int, ...]


def fitted(name: str, given: Any, shape: Shape) -> Array:
    """Vectors that were revealed, as finite float64 of a state's shape; a batch is filled up.

    >>> from coldq.learners.revealed import fitted
    >>> fitted("the loss's gradient", [1.0, 2.0], (2, 2))
    array([[1., 2.],
           [1., 2.]])
    """
    if type(given) is np.ndarray and given.shape == shape and are_finite(given):
        return given  # as the library's own functions give it
    array = point(given, shape[-1], name)
    if array.shape != shape:
        array = spread(name, array, shape)
    return require_finite(array, name)


def spread(name: str, array: Array, shape: Shape) -> Array:
    """An array broadcast to a state's batch, which it may not enlarge."""
    try:
        return np.ascontiguousarray(np.broadcast_to(array, shape))
    except ValueError:
        raise InvalidInput(
            f"{name} has shape {array.shape}, but the state needs {shape}; feedback may "
            "broadcast to the state's batch, not enlarge it"
        ) from None


def joint_shape(name: str, given: Shape, own: Shape) -> Shape:
    try:
        return np.broadcast_shapes(given, own)
    except ValueError:
        raise InvalidInput(f"{name} of shape {given} does not fit the batch {own}") from None


def require_slot(slot: Any, t: Any) -> None:
    """That a feedback is about the slots that the members of a batch are in."""
    try:
        elsewhere = slot != t
        if elsewhere.ndim == 0:
            if not elsewhere:
                return
        elif elsewhere.shape == t.shape and not elsewhere.any():
            return
    except (AttributeError, ValueError):
        pass  # found out below
    slots, now = as_array("slot", slot), np.asarray(t)
    try:
        about = np.broadcast_to(slots, now.shape)
    except ValueError:
        raise InvalidInput(
            f"slot has shape {slots.shape}, which does not fit the batch {now.shape}"
        ) from None
    words, places = name_indices(np.asarray(about != now))
    for at in places[:1]:
        raise InvalidInput(
            f"the feedback is about slot {about[at]}, but the learner is in slot {now[at]}{words}"
        )


def require_rows(g: Any, shape: Shape) -> None:
    """That g_t has one row for each constraint the learner was started for, unevaluated."""
    if not hasattr(g, "n_constraints"):
        return  # no solver takes it, and the step says so
    if g.n_constraints != shape[-1]:
        raise InvalidInput(
            f"the constraint has {g.n_constraints} rows, but the learner was started for "
            f"{shape[-1]}{FILL_UP}"
        )
    if g.batch and joint_shape("g", g.batch, shape[:-1]) != shape[:-1]:
        raise InvalidInput(
            f"the constraint has leading axes {g.batch}, but the state the batch "
            f"{shape[:-1]}; feedback may broadcast to the state's batch, not enlarge it"
        )


def require_coordinates(name: str, function: Any, x: Array) -> None:
    """Raise if a loss or constraint is one of other coordinates than the decisions."""
    dim, own = getattr(function, "dim", None), x.shape[-1]
    if dim is not None and dim != own:
        raise InvalidInput(
            f"the {name} has {dim} coordinates, but the decisions have {own}: it is a "
            f"{type(function).__name__}"
        ) from None


def require_finite(array: Array, name: str = "") -> Array:
    """An array without NaN or infinity; one that has no name is what an update came to."""
    if not all_finite(array):
        where = first_index(~np.isfinite(array))
        place = f" at index {where}" if where else ""
        what = name or "loss or constraint are too large: what follows from them"
        raise InvalidInput(f"{what} must be finite, but is {array[where]}{place}")
    return array


def finite_weights(weights: Array) -> Array:
    """The weights that a queue gives to rows, unless it is full: infinite ones enforce rows."""
    if not all_finite(weights):
        raise InvalidInput(
            "the constraint's values are so large that the queue which adds them up would not be "
            "finite: give them in larger units. Nothing has changed"
        )
    return weights


def worst_row(g: Array, J: Array) -> tuple[Array, Array]:
    """``max_n g^n`` and its row of the jacobian, the first of several largest; -inf without rows.

    >>> import numpy as np
    >>> from coldq.learners.revealed import worst_row
    >>> worst_row(np.array([-1.0, 2.0]), np.array([[1.0, 0.0], [3.0, 4.0]]))
    (array(2.), array([3., 4.]))
    """
    if g.shape[-1] == 0:
        return np.full(g.shape[:-1], -np.inf), np.zeros((*g.shape[:-1], J.shape[-1]))
    worst = g.argmax(axis=-1)[..., None]
    row = np.take_along_axis(J, worst[..., None], axis=-2)[..., 0, :]
    return np.take_along_axis(g, worst, axis=-1)[..., 0], row


def worst_violation(g: Array, J: Array) -> tuple[Array, Array]:
    """``[max_n g^n]_+`` and a subgradient of it: the worst row's, or zero where none is violated.

    >>> import numpy as np
    >>> from coldq.learners.revealed import worst_violation
    >>> worst_violation(np.array([-1.0, -2.0]), np.array([[1.0, 0.0], [3.0, 4.0]]))
    (np.float64(0.0), array([0., 0.]))
    """
    level, slope = worst_row(g, J)
    return np.maximum(level, 0.0), np.where((level > 0.0)[..., None], slope, 0.0)


def has_first(t: Any) -> bool:
    """Whether any member of a batch is in slot 1."""
    try:
        if t.ndim == 0:
            return bool(t == 1)
        if t.ndim == 1 and t.size < MAX_LISTED_MEMBERS:
            return 1 in t.tolist()
        return t.size > 0 and bool(t.min() == 1)
    except AttributeError:
        raise WrongState(f"state.t must be an array, but is {t!r}: {BY_HAND}") from None


def any_of(flags: Any) -> bool:
    """Whether any flag of a batch is set; a single one costs next to nothing."""
    try:
        return bool(flags) if flags is True or flags.ndim == 0 else bool(flags.any())
    except AttributeError:
        raise WrongState(f"state.t must be an array: {BY_HAND}") from None
