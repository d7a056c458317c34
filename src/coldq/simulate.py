"""The only loop over slots: a learner meets a problem, and what happened is a Trace."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq._values import Array, as_array, whole_number
from coldq.errors import InvalidInput
from coldq.feedback import Feedback

KEEPABLE = ("decisions", "queue", "multipliers")


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """What happened in S runs of T slots.

    `loss` (S, T) holds f_t(x_t), `constraint` (S, T, N) the signed g_t(x_t). On request:
    `decisions` (S, T, p) holds x_t; `queue` (S, T, N) the queue and `multipliers` (S, T, N) the
    dual variables of the step that led to x_t, at t = 1 those of the initial state. `state` is the
    learner's state after the last slot, ready to go on.

    >>> import coldq
    >>> problem = coldq.problems.TimeVarying(horizon=50)
    >>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=range(3))
    >>> trace
    Trace(COLDQ on TimeVarying: 3 seeds, 50 slots, 2 constraints)
    >>> trace.violation.min() >= 0.0
    np.True_
    """

    learner: Any
    problem: Any
    seeds: tuple[int, ...]
    delay: int
    loss: Array
    constraint: Array
    decisions: Array | None
    queue: Array | None
    multipliers: Array | None
    state: Any

    @property
    def violation(self) -> Array:
        """``[g_t(x_t)]_+``, of shape (S, T, N)."""
        return np.maximum(self.constraint, 0.0)

    @property
    def horizon(self) -> int:
        """The number of slots T."""
        return self.loss.shape[1]

    def __repr__(self) -> str:
        seeds, slots, rows = self.constraint.shape
        return (
            f"Trace({type(self.learner).__name__} on {type(self.problem).__name__}: "
            f"{seeds} seed{'s' if seeds != 1 else ''}, {slots} slots, "
            f"{rows} constraint{'s' if rows != 1 else ''})"
        )


def seed_tuple(seeds: Iterable[int]) -> tuple[int, ...]:
    """Seeds as whole numbers, at least one of them."""
    if not isinstance(seeds, Iterable):
        raise InvalidInput(f"seeds must be several, such as range(20), but is {seeds!r}")
    chosen = tuple(whole_number("a seed", seed, 0) for seed in seeds)
    if not chosen:
        raise InvalidInput("seeds must name at least one seed, but is empty")
    return chosen


def simulate(
    learner: Any,
    problem: Any,
    seeds: Iterable[int] = range(20),
    delay: int = 0,
    *,
    keep: Iterable[str] = (),
    start: ArrayLike | None = None,
    progress: bool | None = None,
) -> Trace:
    """Play `problem` with `learner` for all its slots, all seeds side by side.

    Each slot: the decision is played, then the problem reveals its loss and constraint, then the
    learner updates.

    Parameters
    ----------
    delay
        How many slots the feedback is late. The feedback of slot t reaches the learner at the end
        of slot t + delay; until the first one arrives x_1 is played. The learner's own clock
        counts feedbacks, so its ``state.t`` is the slot whose feedback it waits for, and it
        evaluates the late functions at the decision it holds by then; one made for late feedback,
        such as :class:`~coldq.Wang2023`, has a `delay` of its own, which must be the same.
    keep
        What else to record: any of "decisions", "queue", "multipliers".
    start
        x_1, if not the learner's default.
    progress
        Whether to show a progress bar; by default only on a terminal.

    >>> import coldq
    >>> problem = coldq.problems.TimeVarying(horizon=50)
    >>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[7])
    >>> trace.loss.shape
    (1, 50)
    """
    seeds = seed_tuple(seeds)
    delay = whole_number("delay", delay, 0)
    keep = (keep,) if isinstance(keep, str) else tuple(keep)
    for name in keep:
        if name not in KEEPABLE:
            raise InvalidInput(f"keep may name {', '.join(KEEPABLE)}, but has {name!r}")
    if learner.domain != problem.domain:
        raise InvalidInput(
            f"the learner's domain is {learner.domain}, but the problem's is {problem.domain}"
        )
    if learner.horizon is not None and learner.horizon != problem.horizon:
        raise InvalidInput(
            f"the learner's horizon is {learner.horizon}, but the problem's is {problem.horizon}"
        )
    if getattr(learner, "delay", delay) != delay:
        raise InvalidInput(f"the learner's delay is {learner.delay}, but the run's is {delay}")
    S, T, N, p = len(seeds), problem.horizon, problem.n_constraints, problem.domain.dim
    own = np.shape(learner.init(N).x)[:-1]
    if own:
        raise InvalidInput(
            f"simulate runs one learner over {S} seeds, but this learner's own parameters make a "
            f"batch of {own}"
        )
    state = learner.init(N, start=start, batch=(S,))
    for name in keep:
        if name != "decisions" and not hasattr(state, name):
            raise InvalidInput(f"{type(learner).__name__} has no {name} to keep")
    loss, constraint = np.empty((S, T)), np.empty((S, T, N))
    kept = {name: np.empty((S, T, p if name == "decisions" else N)) for name in keep}
    stream = problem.start(seeds)
    waiting: deque[Any] = deque()
    for t in _slots(T, progress):
        x = state.x.view()
        x.flags.writeable = False
        revealed = stream.reveal(t, x)
        if not isinstance(revealed, Feedback):
            raise InvalidInput(f"slot {t} must reveal a coldq.Feedback, but revealed {revealed!r}")
        loss[:, t - 1] = _recorded(f"the loss of slot {t}", revealed.loss.value(x), (S,))
        constraint[:, t - 1] = _recorded(
            f"the constraint of slot {t}", revealed.constraint.value(x), (S, N)
        )
        for name, array in kept.items():
            array[:, t - 1] = x if name == "decisions" else getattr(state, name)
        waiting.append(revealed)
        if len(waiting) > delay:
            state = learner.update(state, waiting.popleft())
    return Trace(
        learner=learner,
        problem=problem,
        seeds=seeds,
        delay=delay,
        loss=loss,
        constraint=constraint,
        decisions=kept.get("decisions"),
        queue=kept.get("queue"),
        multipliers=kept.get("multipliers"),
        state=state,
    )


def replay(
    problem: Any, seeds: tuple[int, ...], decisions: Array | None = None
) -> Iterator[tuple[int, Any]]:
    """Every slot's feedback once more; an adversary needs the decisions it answered to."""
    if getattr(problem, "adaptive", False) and decisions is None:
        raise InvalidInput(
            f"{type(problem).__name__} answers to the decisions: simulate with "
            "keep=['decisions'] and pass them on"
        )
    stream = problem.start(seeds)
    start = np.broadcast_to(problem.domain.start(), (len(seeds), problem.domain.dim))
    for t in range(1, problem.horizon + 1):
        yield t, stream.reveal(t, start if decisions is None else decisions[:, t - 1])


def _recorded(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    """A value that a trace may hold: finite, and one for every seed."""
    array = as_array(name, value)
    if array.shape != shape:
        raise InvalidInput(f"{name} must have the shape {shape}, but has {array.shape}")
    if not np.isfinite(array).all():
        raise InvalidInput(f"{name} must be finite, but is {array}")
    return array


def _slots(horizon: int, progress: bool | None) -> Iterator[int]:
    """1 to T, with a progress bar where somebody watches."""
    slots = range(1, horizon + 1)
    if progress is None:
        progress = sys.stderr.isatty()
    if not progress:
        yield from slots
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(slots, "slots", console=Console(stderr=True), transient=True)
