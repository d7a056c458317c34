"""A learner's state: arrays, whose they are, and which of its members go out and come in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, as_array, first_index, put
from coldq.base.errors import InvalidInput, WrongState
from coldq.base.notebook import html_table
from coldq.learners.fingerprint import KEY, Fingerprint, require_same

GROWING_AXIS = "more"  # the axis that grows


def axes(*names: str) -> dict[str, tuple[str, ...]]:
    """What the field of a state's array says of the axes that are its own, beside the batch's.

    "N" has an entry for each constraint, and is what an array has that does not say; "p" has one
    for each coordinate, "more" as many as the busiest member of a batch needs, zeros behind the
    others'. ``init`` makes zeros of such arrays. An axis of another name is for an ``init`` of the
    learner's own.

    >>> from dataclasses import dataclass, field
    >>> from coldq.learners.state import State, axes
    >>> @dataclass(frozen=True, eq=False, slots=True)
    ... class Averages(State):
    ...     gradient: Array = field(metadata=axes("p"))
    ...     slopes: Array = field(metadata=axes("N", "p"))
    >>> Averages.axes()
    {'t': (), 'x': ('p',), 'gradient': ('p',), 'slopes': ('N', 'p')}
    """
    return {"axes": names}


def inside() -> dict[str, bool]:
    """What the field of a state says that holds the state of another learner."""
    return {"inside": True}


@dataclass(frozen=True, eq=False, slots=True)
class State:
    """All that a learner remembers: arrays over the batch, and the fingerprint of the learner.

    `t` is the slot about to be played, `x` the decision to play in it.
    """

    t: np.ndarray = field(metadata=axes())
    x: Array = field(metadata=axes("p"))
    fingerprint: Fingerprint | None = field(default=None, kw_only=True, repr=False)

    version: ClassVar[int] = 1  # of the arrays' format, to be raised when it changes
    axes_before: ClassVar[dict[str, int]] = {}  # how many come before those of the batch, if any

    def __init_subclass__(cls) -> None:
        # A dataclass writes a __repr__, pages long, into a class that has none of its own.
        cls.__repr__ = cls.__repr__

    def __post_init__(self) -> None:
        self.x.setflags(write=False)  # the decision is handed out, and the state goes on from it

    def __getattr__(self, name: str) -> Any:
        """Only what a state lacks is asked for here: it belongs to another learner."""
        raise WrongState(f"a {type(self).__name__} has no {name}: was it made by another learner?")

    def __repr__(self) -> str:
        about = self.about()
        width = max(map(len, about))
        who = "a state" if self.fingerprint is None else type(self.fingerprint.learner).__name__
        return "\n".join([who, *(f"  {name:{width}}  {text}" for name, text in about.items())])

    def _repr_html_(self) -> str:
        title, *_ = repr(self).splitlines()
        return html_table(title, (), self.about().items())

    def about(self) -> dict[str, str]:
        """What is worth a look, a line each; ``to_arrays`` has everything.

        >>> import coldq
        >>> coldq.COLDQ(coldq.Box(0.0, 1.0, dim=2), horizon=10).init(1)
        COLDQ
          slot         1
          decision     [0. 0.]
          queue        [5.]
          multipliers  [0.]
        """
        return {"slot": brief_array(self.t), "decision": brief_array(self.x)}

    @classmethod
    def axes(cls) -> dict[str, tuple[str, ...]]:
        """The names of its arrays, and of the axes of each beside the batch's; see :func:`axes`."""
        own = (f for f in fields(cls) if f.name != "fingerprint" and "inside" not in f.metadata)
        return {f.name: f.metadata.get("axes", ("N",)) for f in own}

    @classmethod
    def inside(cls) -> list[str]:
        """The names of the states inside it."""
        return [f.name for f in fields(cls) if "inside" in f.metadata]

    @classmethod
    def names(cls) -> list[str]:
        """The names of its arrays, and of the states inside it."""
        return [f.name for f in fields(cls) if f.name != "fingerprint"]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Copies of all arrays by name; ``learner.from_arrays`` takes them back.

        Those of a state inside have its name and a dot before their own.
        One more, "learner", is a text that says whose they are: the learner's class, its
        parameters and the version of the state's format.
        """
        arrays: dict[str, np.ndarray] = {}
        for name in self.names():
            part = getattr(self, name)
            if isinstance(part, State):
                inside = part.to_arrays()
                arrays |= {f"{name}.{n}": inside[n] for n in inside if n != KEY}
            else:
                arrays[name] = np.array(part)
        return (
            arrays if self.fingerprint is None else arrays | {KEY: np.array(self.fingerprint.text)}
        )

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes."""
        return self.x.shape[:-1]

    def take(self, indices: ArrayLike) -> Self:
        """Some members of a batch, as a state of their own; of several axes, the first counts.

        `indices` is one whole number, which leaves no axis, several, or one flag for each member.

        >>> import coldq
        >>> tenants = coldq.COLDQ(coldq.Box(0.0, 1.0, dim=2), horizon=10).init(1, batch=(1000,))
        >>> tenants.take([3, 7]).x.shape, tenants.take(3).x.shape
        ((2, 2), (2,))
        """
        places = self._places(indices)
        return self._each(lambda array, axis: np.take(array, places, axis=axis), 0)

    def put(self, indices: ArrayLike, members: State) -> Self:
        """This state with some members of its batch replaced, as ``take`` names them.

        >>> import coldq
        >>> learner = coldq.OGD(coldq.Box(0.0, 1.0, dim=1), eta=0.5)
        >>> tenants = learner.init(0, batch=(3,))
        >>> news = coldq.Feedback(coldq.Linear([-1.0]), None)
        >>> tenants.put([1], learner.update(tenants.take([1]), news)).t
        array([1, 2, 1])
        """
        places = self._places(indices)
        named, counts = np.unique(places % self.batch[0], return_counts=True)
        if (counts > 1).any():
            twice = named[counts > 1][0]
            raise InvalidInput(f"each member is put in once, but indices has {twice} several times")
        if type(members) is not type(self):
            raise WrongState(
                f"put takes members as take gives them, a {type(self).__name__}, but got a "
                f"{type(members).__name__}"
            )
        if self.fingerprint is not members.fingerprint and self.fingerprint and members.fingerprint:
            remedy = "learner.from_arrays(members.to_arrays(), strict=False) makes them its own"
            require_same(
                members.fingerprint.text, self.fingerprint, "these members were made", remedy
            )
        needed = (*places.shape, *self.batch[1:])
        if members.batch != needed:
            raise InvalidInput(
                f"the members for these indices must have the leading axes {needed}, but have "
                f"{members.batch}"
            )
        return self._with(members, places, 0)

    def _places(self, indices: ArrayLike) -> np.ndarray:
        """Indices along the first axis of the batch, checked."""
        if not self.batch:
            raise InvalidInput("this state has one member, without an axis to take or put along")
        own = (
            () if self.fingerprint is None else getattr(self.fingerprint.learner, "_batch", tuple)()
        )
        depth = len(self.batch)
        if len(own) >= depth and own[-depth] != 1:
            raise InvalidInput(
                f"the first axis of this batch {self.batch} belongs to the learner, whose own "
                f"parameters or agents have the leading axes {own}: its members cannot be parted"
            )
        count, places = self.batch[0], as_array("indices", indices)
        if places.dtype.kind == "b" and places.shape == (count,):
            return np.flatnonzero(places)
        if places.size == 0 and places.ndim == 1:
            return np.zeros(0, np.intp)
        if places.dtype.kind not in "iu" or places.ndim > 1:
            raise InvalidInput(
                "indices must be a whole number, several, or one flag for each of the "
                f"{count} members, but is of type {places.dtype} and shape {places.shape}"
            )
        if ((places < -count) | (places >= count)).any():
            bad = places[first_index((places < -count) | (places >= count))]
            raise InvalidInput(f"indices must name some of {count} members, but has {bad}")
        return places.astype(np.intp)

    def _each(self, act: Callable[[np.ndarray, int], np.ndarray], axis: int) -> Self:
        """A state whose arrays are made from these, the batch beginning at `axis`."""
        parts: dict[str, Any] = {}
        for name in self.names():
            part, at = getattr(self, name), axis + self.axes_before.get(name, 0)
            parts[name] = part._each(act, at) if isinstance(part, State) else act(part, at)
        return type(self)(**parts, fingerprint=self.fingerprint)

    def _with(self, members: Any, places: np.ndarray, axis: int) -> Self:
        """A state with other members in some places along an axis."""
        parts: dict[str, Any] = {}
        for name in self.names():
            mine, theirs = getattr(self, name), getattr(members, name)
            at = axis + self.axes_before.get(name, 0)
            if isinstance(mine, State):
                parts[name] = mine._with(theirs, places, at)
            else:
                parts[name] = self._join(name, mine, theirs, places, at)
        return type(self)(**parts, fingerprint=self.fingerprint)

    def _join(
        self, name: str, mine: np.ndarray, theirs: np.ndarray, places: np.ndarray, axis: int
    ) -> np.ndarray:
        own = self.axes()[name]
        if GROWING_AXIS in own:
            mine, theirs = _filled_up(mine, theirs, own.index(GROWING_AXIS) - len(own))
        whole = np.array(mine)
        spots = (*(slice(None),) * axis, places)
        if np.shape(theirs) != whole[spots].shape:
            raise InvalidInput(
                f"{name} of the members must have the shape {whole[spots].shape}, but has "
                f"{np.shape(theirs)}: were they started for as many constraints?"
            )
        whole[spots] = theirs
        return whole


@cache
def parts_of(kind: type[State]) -> tuple[Any, ...]:
    """What :func:`~coldq.base.arrays.put` takes to fill a state: names, None for each array.

    The fingerprint belongs behind it.
    """
    named = [part for name in kind.names() for part in (name, None)]
    return *named, "fingerprint"


def queue_state(
    fingerprint: Fingerprint, t: Any, x: Array, queue: Array, multipliers: Array
) -> QueueState:
    """A queue's state from its arrays, in a fifth of a frozen constructor's time."""
    state = object.__new__(QueueState)
    put(
        state, "t", t, "x", x, "queue", queue, "multipliers", multipliers,
        "fingerprint", fingerprint,
    )  # fmt: skip
    x.setflags(False)  # pyright: ignore[reportCallIssue]  # its keyword takes thrice the time
    return state


def brief_array(values: ArrayLike) -> str:
    """An array in one line: all of a few numbers, the ends of many, the range of a batch.

    >>> import numpy as np
    >>> from coldq.learners.state import brief_array
    >>> brief_array(3), brief_array(np.arange(9.0)), brief_array(np.ones((4, 2)))
    ('3', '[0. 1. 2. ... 6. 7. 8.], 9 numbers', '1 to 1, of shape (4, 2)')
    """
    values = np.asarray(values)
    if values.ndim == 0:
        return f"{values.item():.6g}"
    if values.ndim == 1 or not values.size:
        text = np.array2string(values, precision=6, threshold=8, max_line_width=10**6)
        return text if values.size <= 8 else f"{text}, {values.size:,} numbers"
    return f"{values.min():.6g} to {values.max():.6g}, of shape {values.shape}"


def taken_out(arrays: dict[str, Any], name: str) -> dict[str, Any]:
    """The arrays of the state inside that has this name, taken out of those around it."""
    lead = f"{name}."
    return {n[len(lead) :]: arrays.pop(n) for n in list(arrays) if str(n).startswith(lead)}


def _filled_up(one: np.ndarray, two: np.ndarray, axis: int) -> list[np.ndarray]:
    """Two arrays of equal length along an axis, zeros behind the shorter."""
    length = max(one.shape[axis], two.shape[axis])
    filled: list[np.ndarray] = []
    for array in (one, two):
        widths = [(0, 0)] * array.ndim
        widths[axis] = (0, length - array.shape[axis])
        filled.append(np.pad(array, widths))
    return filled


@dataclass(frozen=True, eq=False, slots=True)
class DualState(State):
    """t, x_t, and one dual variable for each constraint."""

    queue: Array

    def about(self) -> dict[str, str]:
        """Slot, decision and queue."""
        return State.about(self) | {"queue": brief_array(self.queue)}


@dataclass(frozen=True, eq=False, slots=True)
class QueueState(DualState):
    """t, x_t, the queue behind the next step, and the multipliers of the step that gave x_t."""

    multipliers: Array

    def about(self) -> dict[str, str]:
        """Slot, decision, queue and multipliers."""
        return DualState.about(self) | {"multipliers": brief_array(self.multipliers)}
