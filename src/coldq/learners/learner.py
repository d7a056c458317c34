"""What every learner shares: where it starts, what it reads of a feedback, how state is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from coldq._values import (
    FLOAT,
    Array,
    Value,
    as_array,
    batch_shape,
    core_contiguous,
    point,
    real_array,
    whole_number,
)
from coldq.errors import InvalidInput, PastHorizon, WrongState, name_indices, warn
from coldq.feedback import Feedback
from coldq.learners.card import Card

FILL_UP = (
    ": if their number changes, start for the largest and fill up with rows that always hold, "
    "0'x <= b"
)
BY_HAND = "was the state changed by hand? learner.from_arrays checks what it is given"
SHORT = 64


@dataclass(frozen=True, eq=False, slots=True)
class State:
    """All that a learner remembers: arrays over the batch, and nothing else.

    `t` is the slot about to be played, `x` the decision to play in it.
    """

    t: np.ndarray
    x: Array

    def __post_init__(self) -> None:
        self.x.setflags(write=False)  # the decision is handed out, and the state goes on from it

    def __getattr__(self, name: str) -> Any:
        """Only what a state lacks is asked for here: it belongs to another learner."""
        raise WrongState(f"a {type(self).__name__} has no {name}: was it made by another learner?")

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Copies of all arrays by name; ``learner.from_arrays`` takes them back."""
        return {f.name: np.array(getattr(self, f.name)) for f in fields(self)}

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        return self.x.shape[:-1]


@dataclass(frozen=True, eq=False, slots=True)
class DualState(State):
    """t, x_t, and one dual variable for each constraint."""

    queue: Array


@dataclass(frozen=True, eq=False, slots=True)
class QueueState(DualState):
    """t, x_t, the queue behind the next step, and the multipliers of the step that gave x_t."""

    multipliers: Array


class Learner(Value):
    """The base of the library's learners; a learner of your own need not inherit it."""

    card: ClassVar[Card]
    domain: Any
    horizon: int | None

    def _batch(self) -> tuple[int, ...]:
        """The leading axes that the learner's own parameters carry."""
        return self.domain.batch

    def _count(self, n_constraints: Any) -> int:
        """The number of constraints, checked."""
        return whole_number("n_constraints", n_constraints, 0)

    def _first(self, start: ArrayLike | None, batch: tuple[int, ...]) -> tuple[np.ndarray, Array]:
        """The slot 1 and the decision x_1 for a batch."""
        dim = self.domain.dim
        given = self.domain.start() if start is None else real_array("start", start, 1)
        if given.shape[-1] != dim:
            raise InvalidInput(f"start must have {dim} coordinates, but has shape {given.shape}")
        if not self.domain.contains(given).all():
            raise InvalidInput(f"start must lie in the domain {self.domain}, but is {given}")
        whole = _fit("start", given.shape[:-1], _fit("batch", batch_shape(batch), self._batch()))
        x = np.array(np.broadcast_to(given, (*whole, dim)), order="C")
        return np.ones(whole, np.int64), x

    def _observe(
        self, state: Any, feedback: Feedback, shape: tuple[int, ...]
    ) -> tuple[Array, Array]:
        """The gradient of f_t at x_t, and g_t(x_t), which must have the given shape."""
        return self._gradient(state, feedback), self._values(state, feedback, shape)

    def _gradient(self, state: Any, feedback: Feedback) -> Array:
        """The gradient of f_t at x_t; the feedback must be about this slot."""
        if not isinstance(feedback, Feedback):
            raise InvalidInput(f"update takes a coldq.Feedback, but got {feedback!r}")
        try:
            x, loss = state.x, feedback.loss
        except AttributeError:
            raise WrongState(f"update takes a state, as init gives it, but got {state!r}") from None
        if feedback.slot is not None:
            self._require_slot(feedback.slot, state.t)
        if isinstance(loss, Value):
            gradient = loss.gradient(x)  # type: ignore[attr-defined]
        else:  # a loss of the user's own gets no chance to change x, and its answer is checked
            shown = x.view()
            shown.flags.writeable = False
            gradient = point(loss.gradient(shown), x.shape[-1], "the loss's gradient")
        if gradient.shape != x.shape:
            gradient = self._spread("the loss's gradient", gradient, x.shape)
        if self.horizon is not None and any_of(state.t == self.horizon + 1):
            warn(
                f"slot {self.horizon + 1} is past the horizon {self.horizon} that this learner "
                "was tuned for; it goes on, without its guarantee",
                PastHorizon,
            )
        return gradient

    @staticmethod
    def _require_slot(slot: Any, t: Any) -> None:
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
            elsewhere = np.asarray(slots != now)
        except ValueError:
            elsewhere = slots
        if elsewhere.shape != now.shape:
            raise InvalidInput(
                f"slot has shape {slots.shape}, which does not fit the batch {now.shape}"
            )
        words, places = name_indices(elsewhere)
        for place in places[:1]:
            about, own = np.broadcast_to(slots, now.shape)[place], now[place]
            raise InvalidInput(
                f"the feedback is about slot {about}, but the learner is in slot {own}{words}"
            )

    def _values(self, state: Any, feedback: Feedback, shape: tuple[int, ...]) -> Array:
        """g_t(x_t), one value for each constraint the learner was started for."""
        g = feedback.constraint.value(state.x)
        if type(g) is not np.ndarray or g.shape != shape or g.dtype is not FLOAT:
            name, rows = "the constraint's value", shape[-1]
            if np.shape(as_array(name, g))[-1:] != (rows,):
                raise InvalidInput(
                    f"{name} has shape {np.shape(g)}, but the learner was started for {rows} "
                    f"constraint{'s' if rows != 1 else ''}{FILL_UP}"
                )
            g = self._spread(name, point(g, rows, name), shape)
        return g

    def _spread(self, name: str, array: Array, shape: tuple[int, ...]) -> Array:
        """An array broadcast to the state's batch, which it may not enlarge."""
        try:
            return np.ascontiguousarray(np.broadcast_to(array, shape))
        except ValueError:
            raise InvalidInput(
                f"{name} has shape {array.shape}, but the state needs {shape}; feedback may "
                "broadcast to the state's batch, not enlarge it"
            ) from None

    def _require_rows(self, feedback: Feedback, shape: tuple[int, ...]) -> None:
        """That g_t has one row for each constraint the learner was started for, unevaluated."""
        g: Any = feedback.constraint
        if not hasattr(g, "n_constraints"):
            return  # no solver takes it, and the step says so
        if g.n_constraints != shape[-1]:
            raise InvalidInput(
                f"the constraint has {g.n_constraints} rows, but the learner was started for "
                f"{shape[-1]}{FILL_UP}"
            )
        if g.batch and _fit("g", g.batch, shape[:-1]) != shape[:-1]:
            raise InvalidInput(
                f"the constraint has leading axes {g.batch}, but the state the batch "
                f"{shape[:-1]}; feedback may broadcast to the state's batch, not enlarge it"
            )

    def _center(self, state: Any, center: Array | None) -> Array:
        """Where a step starts: x_t, unless a network mixes it with others, see Decentralised."""
        if center is None:
            return state.x
        return self._spread("center", point(center, state.x.shape[-1], "center"), state.x.shape)

    def _jacobian(self, state: Any, feedback: Feedback, rows: int) -> Array:
        """The jacobian of g_t at x_t, its core axes contiguous."""
        shape = (*state.x.shape[:-1], rows, state.x.shape[-1])
        J = point(feedback.constraint.jacobian(state.x), shape[-1], "the constraint's jacobian")
        if J.shape != shape or not core_contiguous(J, 2):
            J = self._spread("the constraint's jacobian", J, shape)
        return J

    def _joint(self, *schedules: Any) -> tuple[int, ...]:
        """The leading axes that the domain and some schedules carry."""
        shapes = [np.shape(schedule(np.ones(()))) for schedule in schedules]
        return np.broadcast_shapes(self.domain.batch, *shapes)

    def _restore_queue(self, arrays: Mapping[str, np.ndarray], cls: type = QueueState) -> Any:
        """A state of t, x, the queue, and multipliers where the class has them."""
        cores = {f.name: int(f.name != "t") for f in fields(cls)}
        state = self._restore(cls, arrays, cores)
        if "multipliers" in cores and state.queue.shape != state.multipliers.shape:
            raise InvalidInput("queue and multipliers must have the same shape")
        if (state.queue < 0.0).any():
            raise InvalidInput("queue must not be negative")
        return state

    def _restore(self, cls: type, arrays: Mapping[str, np.ndarray], cores: dict[str, int]) -> Any:
        """A state from arrays, each checked: `cores` gives the core axes of every field."""
        if set(require_mapping(arrays)) != set(cores):
            raise InvalidInput(
                f"the arrays must be {sorted(cores)}, but are {sorted(arrays)}: "
                f"were they saved by another learner than {type(self).__name__}?"
            )
        found = {}
        for name, core in cores.items():
            given = as_array(name, arrays[name])
            if given.dtype.kind not in "fiu" or given.ndim < core or not np.isfinite(given).all():
                raise InvalidInput(f"{name} must be finite numbers with at least {core} axes")
            found[name] = np.array(given, dtype=np.int64 if name == "t" else np.float64, order="C")
            if name == "t" and not np.array_equal(found[name], given):
                raise InvalidInput("t must be whole numbers")
        batches = {
            name: found[name].shape[: found[name].ndim - core] for name, core in cores.items()
        }
        if len(set(batches.values())) != 1:
            raise InvalidInput(f"the arrays belong to different batches: {batches}")
        x = found["x"]
        if x.shape[-1] != self.domain.dim or not self.domain.contains(x).all():
            raise InvalidInput(f"x must lie in the domain {self.domain}")
        if (found["t"] < 1).any():
            raise InvalidInput("t must be at least 1")
        batch, own = x.shape[:-1], self._batch()
        if _fit("the arrays' batch", batch, own) != batch:
            raise InvalidInput(
                f"the arrays have the batch {batch}, but this learner's parameters need {own}"
            )
        return cls(**found)


class DualLearner(Learner):
    """A learner whose dual variables, one for each constraint, start at zero."""

    state_type: ClassVar[type[DualState]] = DualState

    def init(
        self, n_constraints: int, start: ArrayLike | None = None, batch: tuple[int, ...] = ()
    ) -> Any:
        """The state before slot 1, with dual variables of zero."""
        rows = self._count(n_constraints)
        t, x = self._first(start, batch)
        names = [f.name for f in fields(self.state_type) if f.name not in ("t", "x")]
        return self.state_type(t, x, *(np.zeros((*t.shape, rows)) for _ in names))

    def from_arrays(self, arrays: Mapping[str, np.ndarray]) -> Any:
        """The state that ``state.to_arrays()`` wrote down."""
        return self._restore_queue(arrays, self.state_type)


def require_mapping(arrays: Any) -> Mapping[str, np.ndarray]:
    """Arrays by name, as ``state.to_arrays()`` and ``numpy.load`` give them."""
    if not isinstance(arrays, Mapping):
        raise InvalidInput(
            f"the arrays must be a mapping, as state.to_arrays() gives it, but are {arrays!r}"
        )
    return arrays


def require_finite(x: Array) -> Array:
    """A decision, unless a NaN found its way into it."""
    if not np.isfinite(x).all():
        raise InvalidInput(
            "the loss's gradient and the constraint must be finite, but the next decision "
            f"came out as {x}"
        )
    return x


def worst_row(g: Array, J: Array) -> tuple[Array, Array]:
    """``max_n g^n`` and its row of the jacobian, the first of several largest; -inf without rows.

    >>> import numpy as np
    >>> from coldq.learners.learner import worst_row
    >>> worst_row(np.array([-1.0, 2.0]), np.array([[1.0, 0.0], [3.0, 4.0]]))
    (array(2.), array([3., 4.]))
    """
    if g.shape[-1] == 0:
        return np.full(g.shape[:-1], -np.inf), np.zeros((*g.shape[:-1], J.shape[-1]))
    worst = g.argmax(axis=-1)[..., None]
    row = np.take_along_axis(J, worst[..., None], axis=-2)[..., 0, :]
    return np.take_along_axis(g, worst, axis=-1)[..., 0], row


def has_first(t: Any) -> bool:
    """Whether any member of a batch is in slot 1."""
    try:
        if t.ndim == 0:
            return bool(t == 1)
        if t.ndim == 1 and t.size < SHORT:  # experts, say: a list is searched before NumPy begins
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


def horizon_of(horizon: Any) -> int:
    return whole_number("horizon", horizon, 2)


def _fit(name: str, given: tuple[int, ...], own: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(given, own)
    except ValueError:
        raise InvalidInput(f"{name} of shape {given} does not fit the batch {own}") from None
