"""What every learner shares: where it starts, and what it reads of a feedback."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import signature
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import (
    Array,
    Value,
    as_array,
    batch_shape,
    core_contiguous,
    either,
    flag,
    joint_batch,
    positive,
    put,
    quiet,
    real_array,
    whole_number,
)
from coldq.base.describe import describable
from coldq.base.errors import InvalidInput, PastHorizon, WrongState, warn
from coldq.base.protocols import Domain, Problem, require_problem
from coldq.learners.card import Card
from coldq.learners.constants import ConstantsOf, require_parameters
from coldq.learners.fingerprint import KEY, Fingerprint, recognised, warn_unknown
from coldq.learners.revealed import (
    FILL_UP,
    any_of,
    fitted,
    joint_shape,
    require_coordinates,
    require_slot,
)
from coldq.learners.state import GROWING_AXIS, DualState, QueueState, State, parts_of, taken_out
from coldq.slot.domains import diameter_of, require_domain
from coldq.slot.feedback import Feedback
from coldq.slot.schedules import Power, Schedule, as_schedule, value_at

ARRAYS = slice(1, -2, 2)  # the places of the arrays in what fills a state
STATE_IS_MADE = State.__post_init__
ONE = np.ones(())
Shape = tuple[int, ...]
Place = ArrayLike | None  # a decision in place of the learner's own, which None stands for


class Learner(Value):
    """The base of the library's learners; a learner of your own need not inherit it."""

    card: ClassVar[Card]
    state_type: ClassVar[type[State]] = State
    _leading: ClassVar[tuple[str, ...]] = ()  # parameters that may be arrays over leading axes
    _constructors: ClassVar[tuple[str, ...]] = (
        "__init__",
    )  # what a `for_problem` hands keywords on to
    _fingerprint: Fingerprint
    _parts: list[Any]  # of a state: each name and a place for its array
    _by_hand: ClassVar[bool] = False  # whether the constructor is written out
    domain: Domain
    horizon: int | None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Every constructor works out parameters from a user's constants, however large."""
        super().__init_subclass__(**kwargs)
        if "card" in vars(cls) and cls.__module__.startswith("coldq."):
            describable(cls)
        members: dict[str, Any] = dict(vars(cls))
        for name, made in members.items():
            if name == "__init__":
                cls._by_hand = True
                cls.__init__ = quiet(made)
            elif isinstance(made, classmethod):
                setattr(cls, name, classmethod(quiet(vars(cls)[name].__func__)))

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        learner = super().__new__(cls)
        fingerprint = Fingerprint(learner)
        object.__setattr__(learner, "_fingerprint", fingerprint)
        object.__setattr__(learner, "_parts", [*parts_of(cls.state_type), fingerprint])
        _keep_from_replace(cls)
        return learner

    def __getstate__(self) -> dict[str, Any]:
        """All but what every copy makes for itself."""
        return {n: v for n, v in self.__dict__.items() if n not in ("_fingerprint", "_parts")}

    def new_state(self, *arrays: Any) -> Any:
        """A state of this learner, its arrays in order: the slot, the decision, and its own.

        The state knows its learner, so that saved arrays say whose they are. The arrays are kept
        as they are: new ones, that share no memory with the feedback.

        >>> import coldq, numpy as np
        >>> learner = coldq.OGD(coldq.Box(0.0, 4.0, dim=1), eta=0.5)
        >>> learner.new_state(np.array(2), np.array([1.5])).fingerprint
        Fingerprint(OGD)
        """
        parts, kind = self._parts.copy(), self.state_type
        try:
            parts[ARRAYS] = arrays
        except ValueError:
            needed = ", ".join(kind.names())
            raise InvalidInput(
                f"a {kind.__name__} is made of {needed}, but got {len(arrays)} arrays"
            ) from None
        state = object.__new__(kind)
        put(state, *parts)
        if kind.__post_init__ is STATE_IS_MADE:  # the call alone would take as long as the rest
            arrays[1].setflags(False)
        else:
            state.__post_init__()
        return state

    def _take(self, domain: Domain, horizon: int | None = None, **parameters: Any) -> None:
        """Set the domain, the horizon if there is one, and parameters, whose shapes must fit."""
        require_domain(domain)
        horizon = None if horizon is None else horizon_of(horizon)
        self._set(domain=domain, horizon=horizon, **parameters)
        self._batch()

    @classmethod
    def _of(cls, problem: Problem, constructor: str = "__init__", /, **parameters: Any) -> Self:
        """One for a problem's domain, and for its horizon if what makes it takes one."""
        require_problem(problem)
        for name in ("domain", "horizon"):
            if name in parameters:
                raise InvalidInput(
                    f"{cls.__name__}.for_problem takes the problem's {name}, which is "
                    f"{getattr(problem, name)}; for another one make it by {cls.__name__}(...)"
                )
        takes = signature(getattr(cls, constructor)).parameters
        require_parameters(cls, constructor, takes, parameters)
        own: Any = (problem.domain, problem.horizon) if "horizon" in takes else (problem.domain,)
        make = cls if constructor == "__init__" else getattr(cls, constructor)
        return make(*own, **parameters)

    def _batch(self) -> Shape:
        """The leading axes that the learner's own parameters carry."""
        levels: dict[str, Any] = {
            name: value_at(getattr(self, name), ONE) for name in self._leading
        }
        shapes = {name: np.shape(level) for name, level in levels.items() if level is not None}
        return joint_batch(domain=self.domain.batch, **shapes)

    def _count(self, n_constraints: Any) -> int:
        """The number of constraints, checked."""
        return whole_number("n_constraints", n_constraints, 0)

    def first_slot(self, start: Place, batch: Shape) -> tuple[np.ndarray, Array]:
        """The slot 1 and the decision x_1 for a batch."""
        dim = self.domain.dim
        given = self.domain.start() if start is None else real_array("start", start, 1)
        if given.shape[-1] != dim:
            raise InvalidInput(f"start must have {dim} coordinates, but has shape {given.shape}")
        if not self.domain.contains(given).all():
            raise InvalidInput(f"start must lie in the domain {self.domain}, but is {given}")
        whole = joint_shape(
            "start", given.shape[:-1], joint_shape("batch", batch_shape(batch), self._batch())
        )
        x = np.array(np.broadcast_to(given, (*whole, dim)), order="C")
        return np.ones(whole, np.int64), x

    def init(self, n_constraints: int, start: Place = None, batch: Shape = ()) -> Any:
        """The state before slot 1: x_1 = `start`, or the domain's own, and zeros besides.

        `batch` are leading axes: as many decision makers side by side.

        >>> import coldq
        >>> learner = coldq.COLDQ(coldq.Box(0.0, 4.0, dim=2), horizon=9)
        >>> learner.init(3, batch=(1000,)).queue.shape
        (1000, 3)
        """
        rows = self._count(n_constraints)
        t, x = self.first_slot(start, batch)
        lengths = {"N": rows, "p": x.shape[-1], GROWING_AXIS: 0}
        own = list(self.state_type.axes().values())[2:]
        zeros = (np.zeros((*t.shape, *(lengths[axis] for axis in names))) for names in own)
        return self.new_state(t, x, *zeros)

    def _require_own(self, state: Any, feedback: Any) -> None:
        """That update got a feedback, and a state of a learner of this class and dimension."""
        if not isinstance(feedback, Feedback):
            raise InvalidInput(f"update takes a coldq.Feedback, but got {feedback!r:.200}")
        if not isinstance(state, State):
            raise WrongState(f"update takes a state, as init gives it, but got {state!r:.200}")
        made, name = state.fingerprint, self._fingerprint.updated_by
        if made is not None and made.updated_by != name:
            raise WrongState(f"this state was made by {made.name}, but this is {name}")
        if np.shape(state.x)[-1:] != (self.domain.dim,):
            raise WrongState(
                f"this state's decisions have shape {np.shape(state.x)}, but the learner's domain "
                f"has {self.domain.dim} coordinates"
            )

    def observe(
        self, state: Any, feedback: Feedback, rows: str | None = None, played: Place = None
    ) -> tuple[Array, Array]:
        """The gradient of f_t and the values of g_t at x_t, or where a late feedback was `played`.

        Both are checked: finite, of the state's batch, and with as many values as the state's array
        called `rows` has entries. A learner that keeps nothing for each row leaves `rows` out, and
        takes as many as there are.

        >>> import coldq
        >>> learner = coldq.OGD(coldq.Box(0.0, 4.0, dim=2), eta=0.5)
        >>> told = coldq.Feedback(coldq.Linear([1.0, 2.0]), coldq.Affine([[1.0, 1.0]], [3.0]))
        >>> learner.observe(learner.init(1), told)
        (array([1., 2.]), array([-3.]))
        """
        gradient = self.gradient_of(state, feedback, played)
        shape = None if rows is None else getattr(state, rows).shape
        return gradient, self.values_of(state, feedback, shape, played)

    def _place(self, state: Any, played: Place) -> Array:
        """Where f_t and g_t are evaluated: at x_t, unless another decision was played."""
        x = state.x
        if played is None or played is x:
            return x
        at = fitted("played", played, x.shape)
        return x if (at == x).all() else at

    def gradient_of(self, state: Any, feedback: Feedback, played: Place = None) -> Array:
        """The gradient of f_t at x_t, or where a late feedback was `played`.

        State and feedback are checked first: they must be this learner's and this slot's. So it is
        called before anything else of the feedback is read, or :meth:`observe` is.

        >>> import coldq
        >>> learner = coldq.OGD(coldq.Box(0.0, 4.0, dim=2), eta=0.5)
        >>> told = coldq.Feedback(coldq.LeastSquares([[1.0, 1.0]], [2.0]), None)
        >>> state = learner.init(0)
        >>> learner.gradient_of(state, told), learner.gradient_of(state, told, played=[1.0, 0.0])
        (array([-2., -2.]), array([-1., -1.]))
        """
        if (
            type(state) is not self.state_type
            or state.fingerprint is not self._fingerprint
            or type(feedback) is not Feedback
        ):
            self._require_own(state, feedback)
        x, loss = state.x if played is None else self._place(state, played), feedback.loss
        if feedback.slot is not None:
            require_slot(feedback.slot, state.t)
        if not isinstance(loss, Value):  # a loss of the user's own gets no chance to change x
            x = x.view()
            x.flags.writeable = False
        try:
            gradient = loss.gradient(x)
        except InvalidInput:
            require_coordinates("loss", loss, x)
            raise
        gradient = fitted("the loss's gradient", gradient, x.shape)
        if self.horizon is not None and any_of(state.t == self.horizon + 1):
            warn(
                f"slot {self.horizon + 1} is past the horizon {self.horizon} that this learner "
                "was tuned for; it goes on, without its guarantee",
                PastHorizon,
            )
        return gradient

    def values_of(
        self, state: Any, feedback: Feedback, shape: Shape | None = None, played: Place = None
    ) -> Array:
        """The values g_t(x_t), or those where a late feedback was `played`.

        `shape` is that of an array with an entry for each constraint the learner was started for,
        such as its queue; another number of values is refused. Without it any number is taken.

        >>> import coldq
        >>> learner = coldq.COLDQ(coldq.Box(0.0, 4.0, dim=1), horizon=9)
        >>> state, rows = learner.init(2), coldq.Affine([[1.0], [2.0]], [3.0, 1.0])
        >>> learner.values_of(state, coldq.Feedback(coldq.Linear([1.0]), rows), state.queue.shape)
        array([-3., -1.])
        """
        x = state.x if played is None else self._place(state, played)
        try:
            g = feedback.constraint.value(x)
        except InvalidInput:
            require_coordinates("constraint", feedback.constraint, x)
            raise
        name = "the constraint's value"
        if type(g) is not np.ndarray:
            g = as_array(name, g)
        if shape is None:
            shape = (*x.shape[:-1], *g.shape[-1:])
        if g.shape[-1:] != shape[-1:]:
            raise InvalidInput(
                f"{name} has shape {g.shape}, but the learner was started for {shape[-1]} "
                f"constraint{'s' if shape[-1] != 1 else ''}{FILL_UP}"
            )
        return fitted(name, g, shape)

    def _center(self, state: Any, center: Place) -> Array:
        """Where a step starts: x_t, unless a network mixes it with others, see Decentralised."""
        if center is None:
            return state.x
        return fitted("center", center, state.x.shape)

    def jacobian_of(self, state: Any, feedback: Feedback, rows: int, played: Place = None) -> Array:
        """The jacobian of g_t at x_t: a slope for each of so many `rows`, its core axes contiguous.

        >>> import coldq
        >>> learner = coldq.COLDQ(coldq.Box(0.0, 4.0, dim=2), horizon=9)
        >>> told = coldq.Feedback(coldq.Linear([1.0, 2.0]), coldq.Affine([[1.0, 1.0]], [3.0]))
        >>> learner.jacobian_of(learner.init(1), told, 1)
        array([[1., 1.]])
        """
        x = self._place(state, played)
        shape = (*x.shape[:-1], rows, x.shape[-1])
        J = fitted("the constraint's jacobian", feedback.constraint.jacobian(x), shape)
        return J if core_contiguous(J, 2) else np.ascontiguousarray(J)

    def from_arrays(self, arrays: Mapping[str, np.ndarray], *, strict: bool = True) -> Any:
        """The state that ``state.to_arrays()`` wrote down, bit for bit.

        Arrays that another learner saved, or this one with other parameters, are refused, unless
        ``strict=False`` says that they are meant. What a plain function computes is not known, so
        that it never counts as a difference. Arrays saved without the text "learner" give a
        warning.

        >>> import coldq
        >>> X = coldq.Box(0.0, 1.0, dim=1)
        >>> saved = coldq.COLDQ(X, horizon=10).init(2).to_arrays()
        >>> coldq.COLDQ(X, horizon=10).from_arrays(saved).queue
        array([5., 5.])
        >>> coldq.COLDQ(X, horizon=8, eta=0.1, gamma=5.0).from_arrays(saved)
        Traceback (most recent call last):
        ...
        coldq.InvalidInput: these arrays were saved by COLDQ(horizon=10), but this is
        COLDQ(horizon=8): horizon differs; from_arrays(arrays, strict=False) takes them all the same
        """
        strict, given = flag("strict", strict), cast(object, arrays)
        if not isinstance(given, Mapping):
            raise InvalidInput(
                f"the arrays must be a mapping, as state.to_arrays() gives it, but are {arrays!r}"
            )
        state = self._restore(recognised(arrays, self._fingerprint, strict, self._restore))
        if strict and KEY not in arrays:
            warn_unknown(self._fingerprint)
        return state

    def _restore(self, arrays: Mapping[str, Any]) -> Any:
        """A state from arrays, each checked, of states inside by their own learners."""
        kind, own = self.state_type, dict(arrays)
        inside = {name: taken_out(own, name) for name in kind.inside()}
        found: dict[str, Any] = self._checked(kind, own)
        batch = found["x"].shape[:-1]
        for name, theirs in inside.items():
            state = self._learner_inside(len(batch))._restore(theirs)
            if state.batch[kind.axes_before.get(name, 0) :] != batch:
                raise InvalidInput(
                    f"the arrays of {name} must have the batch of the state around, {batch}, but "
                    f"have {state.batch}"
                )
            found[name] = state
        restored = self.new_state(*found.values())
        self.require_sound(restored)
        return restored

    def _learner_inside(self, axes: int) -> Any:
        """The learner whose state is inside this one's, for a batch of so many axes."""
        raise NotImplementedError

    def require_sound(self, state: Any) -> None:
        """What a learner asks of the arrays it restores, beside their shapes."""
        if isinstance(state, DualState):
            require_not_negative(state, "queue")
        if isinstance(state, QueueState) and state.queue.shape != state.multipliers.shape:
            raise InvalidInput(
                f"queue and multipliers must have the same shape, but have {state.queue.shape} "
                f"and {state.multipliers.shape}"
            )

    def _checked(self, cls: type[State], arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The arrays of a state, in order: numbers of one batch, x in the domain."""
        names = cls.axes()
        if set(arrays) != set(names):
            raise InvalidInput(
                f"the arrays must be {sorted(names)}, but are {sorted(map(str, arrays))}: "
                f"were they saved by another learner than {type(self).__name__}?"
            )
        found: dict[str, np.ndarray] = {}
        batches: dict[str, Shape] = {}
        for name, own in cls.axes().items():
            given, core = as_array(name, arrays[name]), len(own)
            before = cls.axes_before.get(name, 0)
            if (
                given.dtype.kind not in "fiu"
                or given.ndim < before + core
                or not np.isfinite(given).all()
            ):
                raise InvalidInput(
                    f"{name} must be finite numbers with at least {before + core} axes"
                )
            found[name] = np.array(given, dtype=np.int64 if name == "t" else np.float64, order="C")
            if name == "t" and not np.array_equal(found[name], given):
                raise InvalidInput(f"t must be whole numbers, but is {given}")
            batches[name] = given.shape[before : given.ndim - core]
        if len(set(batches.values())) != 1:
            raise InvalidInput(f"the arrays belong to different batches: {batches}")
        x, dim = found["x"], self.domain.dim
        if x.shape[-1] != dim:
            raise InvalidInput(
                f"x has {x.shape[-1]} coordinates, but the domain {self.domain} has {dim}"
            )
        if not self.domain.contains(x).all():
            raise InvalidInput(f"x must lie in the domain {self.domain}, but is {x}")
        if (found["t"] < 1).any():
            raise InvalidInput(f"t must be at least 1, but is {found['t']}")
        batch, own = x.shape[:-1], self._batch()
        if joint_shape("the arrays' batch", batch, own) != batch:
            raise InvalidInput(
                f"the arrays have the batch {batch}, but this learner's parameters need {own}"
            )
        return found


class Algorithm(Learner):
    """A learner that a problem is enough for: its domain, its horizon, its constants."""

    _from_problem: ClassVar[tuple[str, ...]] = ()  # parameters that are constants of a problem

    @classmethod
    def for_problem(cls, problem: Problem, **parameters: Any) -> Self:
        """For a problem's domain, and for its horizon if the learner has one.

        The constants that its theory needs are the problem's own, unless given.

        >>> import coldq
        >>> problem = coldq.problems.OnlineLinear(horizon=8)
        >>> coldq.MOSP.for_problem(problem).mu, coldq.RECOO.for_problem(problem).horizon
        (array(0.5), None)
        >>> coldq.Ader.for_problem(problem, gradient_bound=2.0).gradient_bound
        array(2.)
        """
        if cls._from_problem and "eta" not in parameters:  # which stands for a bound, see step_of
            needed = {name: name for name in cls._from_problem}
            parameters = ConstantsOf(problem, parameters).fill(**needed)
        return cls._of(problem, **parameters)


def is_learner(given: Any) -> bool:
    """Whether another learner may run this one: it is a value, with a card."""
    parts = ("init", "update", "domain", "horizon", "card")
    return not isinstance(given, type) and all(hasattr(given, part) for part in parts)


def require_not_negative(state: Any, *names: str) -> None:
    """That some arrays of a state have no negative entry."""
    for name in names:
        array = getattr(state, name)
        if (array < 0.0).any():
            raise InvalidInput(f"{name} must not be negative, but has the entry {array.min():g}")


@cache
def _keep_from_replace(cls: type[Learner]) -> None:
    """Let ``dataclasses.replace`` refuse a class with a constructor of its own.

    It hands every field to the constructor, and what was worked out from the old horizon, say,
    would stay as if it had been given.
    """
    if cls._by_hand and is_dataclass(cls):  # pyright: ignore[reportPrivateUsage]
        for each in fields(cls):
            each.init = False


def horizon_of(horizon: Any) -> int:
    return whole_number("horizon", horizon, 2)


def step_of(
    owner: str, domain: Domain, eta: Any, power: float = 0.5, **bound: ArrayLike | None
) -> Schedule:
    """eta_t as it was given, or else ``R / (bound t^power)``, with one bound on slopes."""
    either(owner, **bound, eta=eta)
    if eta is None:
        name, level = bound.popitem()
        R = diameter_of(domain, f"the step R / ({name} t^{power:g}) needs")
        eta = Power(-power, R / positive(name, level))  # type: ignore[arg-type]
    return as_schedule("eta", eta)
