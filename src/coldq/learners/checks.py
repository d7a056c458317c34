"""One contract for every learner, ours or yours: ``coldq.checks.check_learner(learner)``.

Each check is a function of a :class:`Case` that raises :class:`CheckFailed` with a sentence. They
need no more of a learner than its protocol: ``domain``, ``horizon``, ``card``, ``init``,
``update``, ``from_arrays``, and of its states ``t``, ``x``, ``to_arrays``, ``take`` and ``put``. A
:class:`~coldq.learners.learner.Learner` has ``from_arrays``, its states the last three.
"""

from __future__ import annotations

import io
import json
import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array
from coldq.base.errors import Error, UnknownLearner
from coldq.base.protocols import Domain, Learner
from coldq.learners.card import (
    CONSTRAINT,
    GRADIENT_ELSEWHERE,
    VALUES,
    WHOLE_CONSTRAINT,
    WHOLE_LOSS,
    Card,
    citation,
)
from coldq.slot.constraints import Affine
from coldq.slot.feedback import Feedback
from coldq.slot.losses import GradientAt, LeastSquares, Linear

SLOTS = 12


class CheckFailed(AssertionError):
    """A learner breaks the contract.

    >>> from coldq.learners.checks import CheckFailed
    >>> issubclass(CheckFailed, AssertionError)
    True
    """


@dataclass(frozen=True)
class Case:
    """A learner, and a short run's worth of random feedback for a batch of three.

    A learner whose own states have axes, such as the agents of a network, gets feedback with them.

    >>> import coldq
    >>> case = coldq.checks.Case.of(coldq.COLDQ(coldq.Box(0.0, 1.0, dim=2), horizon=50))
    >>> case.data[0][0].shape  # H of the first slot: three members, 3 rows, 2 coordinates
    (3, 3, 2)
    """

    learner: Any
    n_constraints: int
    data: tuple[tuple[Array, Array, Array, Array], ...]

    @classmethod
    def of(cls, learner: Any, n_constraints: int = 2, seed: int = 0) -> Case:
        """Random least-squares losses, and affine constraints that all hold at one random point."""
        for part in ("domain", "horizon", "init", "update", "from_arrays"):
            require(
                hasattr(learner, part), f"a learner needs {part}, which this has not: {learner}"
            )
        rng, p = np.random.default_rng(seed), learner.domain.dim
        lead = (3, *np.shape(learner.init(n_constraints).t))
        common = learner.domain.project(learner.domain.start() + rng.standard_normal(p))
        data: list[tuple[Array, Array, Array, Array]] = []
        for _ in range(SLOTS):
            H, y = rng.standard_normal((*lead, 3, p)), rng.standard_normal((*lead, 3))
            A = rng.standard_normal((*lead, n_constraints, p))
            b = A @ common + rng.uniform(0.0, 1.0, (*lead, n_constraints))
            data.append((H, y, A, b))
        return cls(learner, n_constraints, tuple(data))

    @property
    def lead(self) -> tuple[int, ...]:
        """The leading axes of the batch of three."""
        return self.data[0][0].shape[:-2]

    def feedback(self, slot: int, member: int | list[int] | None = None) -> Feedback:
        """What slot `slot` (from 1) reveals, to the batch, to one member of it or to some."""
        shown = self.data[slot - 1]
        H, y, A, b = shown if member is None else (array[member] for array in shown)
        return Feedback(LeastSquares(H, y), Affine(A, b), slot)

    def init(self, batch: tuple[int, ...] = ()) -> Any:
        """A first state."""
        return self.learner.init(self.n_constraints, batch=batch)


def arrays_in(state: Any) -> list[np.ndarray]:
    """All arrays that a state holds, found through its fields."""
    parts: Any
    given: Any = state
    if isinstance(state, np.ndarray):
        return [given]
    if hasattr(state, "__array__"):  # one that is made of blocks nobody can change
        return [np.array(state)]
    if is_dataclass(state):
        parts = [getattr(state, f.name) for f in fields(state)]
    elif isinstance(state, dict):
        parts = given.values()
    elif isinstance(state, tuple | list):
        parts = given
    else:
        parts = getattr(state, "__dict__", {}).values()
    return [array for part in parts for array in arrays_in(part)]


def snapshot(state: Any) -> list[bytes]:
    """The bits of a state."""
    return [array.tobytes() for array in arrays_in(state)]


def require(holds: Any, sentence: str) -> None:
    """Raise :class:`CheckFailed` unless it holds."""
    if not holds:
        raise CheckFailed(sentence)


def update_is_pure(case: Case) -> None:
    """A state and a feedback give one answer however often, and stay as they were."""
    state = case.init((3,))
    for slot in range(1, SLOTS + 1):
        revealed = case.feedback(slot)
        before = snapshot(state)
        once, twice = (case.learner.update(state, revealed) for _ in range(2))
        require(snapshot(state) == before, f"update changed the state it was given, in slot {slot}")
        require(snapshot(once) == snapshot(twice), f"two updates differ, in slot {slot}")
        state = once


def states_are_not_aliased(case: Case) -> None:
    """A new state shares no memory that can be written with the old one, start or feedback."""
    domain = case.learner.domain
    start = np.array(np.broadcast_to(domain.start(), (*case.lead, domain.dim)))
    state = case.learner.init(case.n_constraints, start=start, batch=(3,))
    outside = [start]
    for slot in range(1, SLOTS + 1):
        for mine in arrays_in(state):
            for other in outside:
                require(
                    not np.shares_memory(mine, other),
                    f"the state of slot {slot} shares memory with what it came from",
                )
        revealed = case.feedback(slot)
        loss, g = revealed.loss, revealed.constraint
        outside = [*arrays_in(state), *arrays_in(loss), *arrays_in(g)]
        state = case.learner.update(state, revealed)


def a_batch_equals_one_by_one(case: Case) -> None:
    """Members of a batch have, bit for bit, the decisions that they have alone."""
    together, alone = case.init((3,)), [case.init() for _ in range(3)]
    for slot in range(1, SLOTS + 1):
        together = case.learner.update(together, case.feedback(slot))
        for k in range(3):
            alone[k] = case.learner.update(alone[k], case.feedback(slot, k))
            same = np.asarray(together.x[k]).tobytes() == np.asarray(alone[k].x).tobytes()
            require(same, f"member {k} of a batch differs from the same alone, after slot {slot}")
        now = np.full(case.lead, slot + 1)
        require(
            np.array_equal(together.t, now) and np.array_equal([s.t for s in alone], now),
            f"state.t must have the batch's shape and count the slots, after slot {slot}",
        )


def resume_equals_continue(case: Case) -> None:
    """A state written to a file and read back goes on with the same bits."""
    straight = resumed = case.init((3,))
    for slot in range(1, SLOTS + 1):
        straight = case.learner.update(straight, case.feedback(slot))
        file = io.BytesIO()
        np.savez(file, **resumed.to_arrays())
        file.seek(0)
        with np.load(file) as stored:
            resumed = case.learner.from_arrays(dict(stored))
        resumed = case.learner.update(resumed, case.feedback(slot))
        require(
            snapshot(resumed) == snapshot(straight),
            f"a state saved and restored before slot {slot} goes on differently",
        )
    stale = {name: array[..., None] for name, array in straight.to_arrays().items()}
    for broken, words in ((stale, "of wrong shapes"), ({"nothing": np.zeros(1)}, "of wrong names")):
        _refused(lambda broken=broken: case.learner.from_arrays(broken), f"arrays {words}")


def a_state_knows_its_learner(case: Case) -> None:
    """Saved arrays say whose they are: another's are refused if strict, unsigned ones warn."""
    learner = case.learner
    state = learner.update(case.init((3,)), case.feedback(1))
    arrays = state.to_arrays()
    require(
        "learner" in arrays and np.asarray(arrays["learner"]).dtype.kind in "US",
        "state.to_arrays() must have a text 'learner', which says who saved it: a Learner makes "
        "its states with self.new_state(...)",
    )
    other = arrays | {"learner": np.array(json.dumps(_SOMEBODY))}
    _refused(lambda: learner.from_arrays(other), "arrays that another learner saved")
    taken = learner.from_arrays(other, strict=False)
    require(
        snapshot(taken) == snapshot(state),
        "arrays taken with strict=False must come back as they were",
    )
    unsigned = {name: array for name, array in arrays.items() if name != "learner"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learner.from_arrays(unsigned)
    require(
        any(issubclass(warning.category, UnknownLearner) for warning in caught),
        "arrays that do not say who saved them must give a coldq.UnknownLearner warning",
    )


_SOMEBODY: dict[str, Any] = {"learner": "SomebodyElse", "format": 1, "parameters": {}}


def some_members_go_on_alone(case: Case) -> None:
    """Members taken out of a batch, updated and put back are what they are within it."""
    together, some = case.init((3,)), [2, 0]
    for slot in range(1, SLOTS + 1):
        new = case.learner.update(together, case.feedback(slot))
        part = case.learner.update(together.take(some), case.feedback(slot, some))
        before = snapshot(together)
        mixed = together.put(some, part)
        require(snapshot(together) == before, f"put changed the state it was given, in slot {slot}")
        for k, whole in enumerate((new, together, new)):
            same = mixed.take(k).x.tobytes() == whole.take(k).x.tobytes()
            require(
                same and np.array_equal(mixed.take(k).t, whole.take(k).t),
                f"member {k} differs where members {some} were updated alone, in slot {slot}",
            )
        together = mixed.put(1, new.take(1))
        require(
            together.x.tobytes() == new.x.tobytes(),
            f"a batch put together from its members differs, in slot {slot}",
        )
    _refused(lambda: together.take([3]), "a member that a batch of three does not have")
    _refused(lambda: together.put([0, 1], together.take([0])), "one member in two places")


def decisions_stay_in_the_domain(case: Case) -> None:
    """Every decision is finite and lies in the domain, exactly."""
    state = case.init((3,))
    for slot in range(1, SLOTS + 1):
        state = case.learner.update(state, case.feedback(slot))
        require(
            np.isfinite(state.x).all() and case.learner.domain.contains(state.x).all(),
            f"the decision after slot {slot} is outside the domain: {state.x}",
        )


class _Seen:
    """A loss or constraint that shows only what a learner declared that it needs."""

    def __init__(self, inner: Any, at: Array, shown: dict[str, bool]) -> None:
        self._inner, self._at, self._shown = inner, at, shown

    def _ask(self, what: str, x: ArrayLike) -> Array:
        where = what if np.array_equal(x, self._at) else f"{what} elsewhere"
        require(
            self._shown.get(where, False),
            f"the learner asked for the {where}, which it does not declare as a need",
        )
        return getattr(self._inner, what)(x)

    def value(self, x: ArrayLike) -> Array:
        return self._ask("value", x)

    def gradient(self, x: ArrayLike) -> Array:
        return self._ask("gradient", x)

    def jacobian(self, x: ArrayLike) -> Array:
        return self._ask("jacobian", x)


def _hidden(revealed: Feedback, x: Array, needs: frozenset[str], slot: int) -> Feedback:
    """A feedback that shows at x, and elsewhere, what is needed and nothing more."""
    values, slopes = VALUES in needs, CONSTRAINT in needs
    elsewhere = GRADIENT_ELSEWHERE in needs
    loss = {"value": values, "gradient": not values, "gradient elsewhere": elsewhere}
    rows = {"value": values or slopes, "jacobian": slopes}
    f: Any = revealed.loss if WHOLE_LOSS in needs else _Seen(revealed.loss, x, loss)
    g: Any = revealed.constraint
    return Feedback(f, g if WHOLE_CONSTRAINT in needs else _Seen(g, x, rows), slot)


def declared_needs_are_the_only_thing_touched(case: Case) -> None:
    """A feedback that hides the rest is enough, and changes nothing."""
    needs, state = case.learner.card.needs, case.init((3,))
    for slot in range(1, SLOTS + 1):
        revealed = case.feedback(slot)
        hidden = _hidden(revealed, state.points if VALUES in needs else state.x, needs, slot)
        seen, state = (case.learner.update(state, f) for f in (hidden, revealed))
        require(snapshot(seen) == snapshot(state), f"hiding the rest changed slot {slot}")


def late_feedback_is_about_what_was_played(case: Case) -> None:
    """``update(..., played=y)`` takes gradient and values at y, and steps from the state's own."""
    learner, needs, takes = case.learner, case.learner.card.needs, case.learner.card.played
    state, good = case.init((3,)), case.feedback(1)
    if takes != "taken":
        if "played" in signature(learner.update).parameters:
            _refused(lambda: learner.update(state, good, played=state.x), "played")
        return
    require(
        "played" in signature(learner.update).parameters,
        "update must take played=None, the decision that a late feedback is about, or its card "
        "say played='unknown'",
    )
    for odd in ("here", np.full(state.x.shape, np.nan), np.zeros(learner.domain.dim + 1)):
        _refused(lambda odd=odd: learner.update(state, good, played=odd), f"played = {odd!r:.40}")
    rng, domain = np.random.default_rng(5), learner.domain
    for slot in range(1, SLOTS + 1):
        revealed, new = case.feedback(slot), learner.update(state, case.feedback(slot))
        same = learner.update(state, revealed, played=np.array(state.x))
        require(snapshot(same) == snapshot(new), f"played = state.x changes slot {slot}")
        y = domain.project(domain.start() + rng.standard_normal(state.x.shape))
        before = snapshot(state)
        late = learner.update(state, revealed, played=y)
        require(snapshot(state) == before, f"played changed the state given, in slot {slot}")
        hidden = learner.update(state, _hidden(revealed, y, needs, slot), played=y)
        require(
            snapshot(hidden) == snapshot(late),
            f"hiding what is not at the decision played changed slot {slot}",
        )
        for k in range(3):
            alone = learner.update(state.take(k), case.feedback(slot, k), played=y[k])
            require(
                np.asarray(alone.x).tobytes() == np.asarray(late.x[k]).tobytes(),
                f"member {k} of a batch differs from the same alone, played elsewhere in {slot}",
            )
        if not needs & {GRADIENT_ELSEWHERE, WHOLE_LOSS}:
            _gradient_is_taken_at(y, learner, state, case, slot)
        state = new


def _gradient_is_taken_at(y: Array, learner: Any, state: Any, case: Case, slot: int) -> None:
    """A loss measured at y acts as the linear one of its slope, and only if y is named."""
    revealed, (_, _, A, b) = case.feedback(slot), case.data[slot - 1]
    slope, flat = revealed.loss.gradient(y), Affine(np.zeros(A.shape), np.abs(b))
    measured = Feedback(GradientAt(y, slope), flat, slot)
    late = learner.update(state, measured, played=y)
    linear = learner.update(state, Feedback(Linear(slope), flat, slot))
    require(
        np.allclose(late.x, linear.x, rtol=1e-9, atol=1e-9),
        f"a slope measured at the decision played acts otherwise than the same slope, in {slot}",
    )
    if not np.array_equal(y, state.x):
        _refused(lambda: learner.update(state, measured), "a loss measured elsewhere")


class _Broken:
    """A loss whose gradient is not a number."""

    def value(self, x: ArrayLike) -> Array:
        return np.full(np.shape(x)[:-1], np.nan)

    def gradient(self, x: ArrayLike) -> Array:
        return np.full(np.shape(x), np.nan)


def _refused(call: Callable[[], Any], what: str) -> None:
    try:
        with np.errstate(all="ignore"):
            call()
    except Error as error:
        require(len(str(error)) > 15, f"the error for {what} should be a sentence: {error!r}")
        return
    except Exception as error:
        raise CheckFailed(f"{what} should raise a coldq.Error, but raised {error!r}") from error
    raise CheckFailed(f"{what} should be refused with a coldq.Error")


def _outside(domain: Domain) -> Array | None:
    """A point outside a domain, if there is one: a convex set ends along some axis, or nowhere."""
    for axis in range(domain.dim):
        for far in (1e100, -1e100):
            x = np.zeros(domain.dim)
            x[axis] = far
            if not np.all(domain.contains(x)):
                return x
    return None


def _keeps_rows(case: Case) -> bool:
    """Whether a state has something for each constraint, so that their number must stay."""
    sizes = (
        sum(array.size for array in arrays_in(case.learner.init(count)))
        for count in (case.n_constraints, case.n_constraints + 1)
    )
    return len(set(sizes)) == 2


def bad_input_is_refused(case: Case) -> None:
    """What cannot be used raises a sentence before anything changes."""
    learner, state = case.learner, case.init((3,))
    p, good = learner.domain.dim, case.feedback(1)
    _refused(lambda: learner.init(-1), "a negative number of constraints")
    for odd in (3, None, "state"):
        _refused(lambda odd=odd: learner.update(odd, good), f"{odd!r} in place of a state")
        _refused(lambda odd=odd: learner.update(state, odd), f"{odd!r} in place of a feedback")
    far = _outside(learner.domain)
    if far is not None:
        _refused(lambda: learner.init(case.n_constraints, start=far), "a start outside the domain")
    _refused(lambda: learner.init(case.n_constraints, start=np.zeros(p + 1)), "a start too long")
    wrong: list[tuple[Feedback, str]] = [
        (Feedback(good.loss, good.constraint, slot=7), "feedback about another slot"),
        (Feedback(_Broken(), good.constraint), "a gradient that is NaN"),
        (
            Feedback(LeastSquares(np.ones((1, p + 1)), [1.0]), good.constraint),
            "a loss with too many coordinates",
        ),
        (
            Feedback(LeastSquares(np.ones((5, 3, 1, p)), [1.0]), good.constraint),
            "a loss that would enlarge the batch",
        ),
    ]
    if CONSTRAINT in learner.card.needs and _keeps_rows(case):
        one_more = Affine(np.ones((case.n_constraints + 1, p)), np.ones(case.n_constraints + 1))
        wrong.append((Feedback(good.loss, one_more), "more constraints than it was started for"))
    before = snapshot(state)
    for revealed, what in wrong:
        _refused(lambda revealed=revealed: learner.update(state, revealed), what)
        require(snapshot(state) == before, f"{what} was refused, but changed the state")


def learners_are_values(case: Case) -> None:
    """A learner equals, hashes and prints as its copy, through pickling too."""
    learner = case.learner
    copy = pickle.loads(pickle.dumps(learner))
    require(copy == learner, "a pickled learner must equal the original")
    require(hash(copy) == hash(learner), "equal learners must have equal hashes")
    require(learner != object(), "a learner must differ from anything else")
    require(
        type(learner).__name__ in repr(learner) and " at 0x" not in repr(learner),
        f"repr must show the learner's name and content, but is {learner!r}",
    )


def the_card_is_filled_in(case: Case) -> None:
    """Needs, assumptions, claims, certainty and citation are declared."""
    require(isinstance(getattr(case.learner, "card", None), Card), "a learner needs a card")
    require(citation(case.learner).lstrip().startswith("@"), "its citation must be BibTeX")


CHECKS: tuple[Callable[[Case], None], ...] = (
    the_card_is_filled_in,
    update_is_pure,
    states_are_not_aliased,
    a_batch_equals_one_by_one,
    resume_equals_continue,
    a_state_knows_its_learner,
    some_members_go_on_alone,
    decisions_stay_in_the_domain,
    declared_needs_are_the_only_thing_touched,
    late_feedback_is_about_what_was_played,
    bad_input_is_refused,
    learners_are_values,
)


def check_learner(learner: Learner, n_constraints: int = 2, seed: int = 0) -> None:
    """Run every check; raises :class:`CheckFailed` at the first that does not hold.

    >>> import coldq
    >>> coldq.checks.check_learner(coldq.COLDQ(coldq.Box(0.0, 1.0, dim=3), horizon=50))
    """
    case = Case.of(learner, n_constraints, seed)
    for check in CHECKS:
        check(case)
