"""A problem's slots once more, and whether they are what a run saw: others' problems may differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from coldq.base.arrays import Array, as_array, is_ours, real_array
from coldq.base.errors import InvalidInput, NotRevealed
from coldq.base.protocols import Problem, Stream, require_parts
from coldq.learners.networks import network_feedback
from coldq.simulation.trace import Trace
from coldq.slot.feedback import Feedback

N_PROBES = 2  # points at which the functions of two streams are compared
SAME_VALUE = 1e-9  # relative to the largest value: how far rounding may take two evaluations apart


def agents_axis(problem: Problem) -> tuple[int, ...]:
    """The axis of a network's agents, if the problem has any."""
    agents = getattr(problem, "agents", None)
    return () if agents is None else (agents,)


def replay(
    problem: Problem,
    seeds: tuple[int, ...],
    decisions: Array | None = None,
    *,
    held: bool = False,
) -> Iterator[tuple[int, Any]]:
    """Every slot's feedback once more; an adversary needs the decisions it answered to.

    Who looks at slots after the next one was revealed says so by `held`, see :func:`watch_of`.
    Of a problem with agents it is the network's: their mean loss, and all their constraints. A
    problem that is not the library's is looked at first, if there are no decisions to show it:
    where it answers to them without saying so, it is refused.
    """
    if getattr(problem, "adaptive", False) and decisions is None:
        raise InvalidInput(
            f"{type(problem).__name__} answers to the decisions: pass those of a run on, as "
            "coldq.simulate keeps them for an adversary"
        )
    if decisions is None and not is_ours(problem):
        _require_blind(problem, seeds)
    network = agents_axis(problem)
    lead = (len(seeds), *network)
    if decisions is not None:
        whole = (len(seeds), problem.horizon, *network, problem.domain.dim)
        decisions = real_array("decisions", decisions, 0)
        if decisions.shape != whole:
            raise InvalidInput(
                f"decisions must have the shape {whole}, as a trace keeps them, but have "
                f"{decisions.shape}"
            )
    stream, watch = started(problem, seeds), watch_of(problem) if held else None
    # A problem that looks at x without saying so gets NaN, which shows in most of what it computes
    # from it. Not in a comparison, which is False: only kept decisions find that, see below.
    unseen = np.full((*lead, problem.domain.dim), np.nan)
    for t in range(1, problem.horizon + 1):
        try:
            revealed = stream.reveal(t, unseen if decisions is None else decisions[:, t - 1])
        except InvalidInput as error:
            if decisions is not None:
                raise
            raise InvalidInput(
                f"{type(problem).__name__} cannot be replayed without the decisions ({error}): "
                "if it answers to them, give it adaptive = True and simulate with "
                "keep=['decisions']"
            ) from error
        require_fit(t, revealed, problem, lead)
        if watch is not None:
            watch(t, revealed, somewhere(problem.domain, np.random.default_rng(0), lead))
        yield t, network_feedback(revealed, lead) if network else revealed


def started(problem: Problem, seeds: tuple[int, ...]) -> Stream:
    """A problem's stream for these seeds."""
    stream = problem.start(seeds)
    require_parts(stream, "stream, which start(seeds) of a problem returns,", ("reveal",))
    return stream


def _require_blind(problem: Problem, seeds: tuple[int, ...]) -> None:
    """Raise if a problem reveals other functions to other decisions, drawn from all its domain."""
    lead = (len(seeds), *agents_axis(problem))
    rng = np.random.default_rng(0)
    probes = [somewhere(problem.domain, rng, lead) for _ in range(N_PROBES)]

    def seen() -> Iterator[tuple[int, str, list[Array]]]:
        """Every slot's functions at the same points, other decisions having been played."""
        stream = started(problem, seeds)
        for t in range(1, problem.horizon + 1):
            revealed = stream.reveal(t, somewhere(problem.domain, rng, lead))
            require_fit(t, revealed, problem, lead)
            for name, function in (("loss", revealed.loss), ("constraint", revealed.constraint)):
                yield t, name, _values(function, probes)

    first = list(seen())
    for (_, _, before), (t, name, values) in zip(first, seen(), strict=True):
        if not all(map(_same, values, before)):
            raise InvalidInput(
                f"{type(problem).__name__} reveals another {name} in slot {t} when it is asked "
                "again and shown another decision: if it answers to decisions, give it adaptive = "
                "True and pass those of a run on; if not, start(seeds) must begin the same stream "
                "again"
            )


def watch_of(problem: Problem) -> Callable[[int, Feedback, Array], None] | None:
    """What is shown each slot at a point, and raises if the one before has changed by then.

    Functions of a user's own may look at what their stream holds now, or be one object that is used
    again for every slot: who looks at a slot after the next one was revealed sees something else.
    """
    if is_ours(problem):
        return None
    before: list[tuple[str, Any, Array, list[Array]]] = []

    def watch(t: int, revealed: Feedback, point: Array) -> None:
        for name, function, x, then in before:
            if not all(map(_same, _values(function, [x]), then)):
                raise InvalidInput(
                    f"the {name} that {type(problem).__name__} revealed in slot {t - 1} is another "
                    f"since slot {t} was revealed, but it is looked at once more: what reveal "
                    "returns must stay as it is, with numbers of its own in place of self's"
                )
        parts = (("loss", revealed.loss), ("constraint", revealed.constraint))
        before[:] = [(name, g, point, _values(g, [point])) for name, g in parts]

    return watch


def _values(function: Any, points: list[Array]) -> list[Array]:
    """A function at some points; nothing if it was measured where it was played alone."""
    try:
        return [np.asarray(function.value(x)) for x in points]
    except NotRevealed:
        return []


def _same(now: Array, then: Array) -> bool:
    """Whether a function has the values that it had, but for rounding."""
    atol = SAME_VALUE * np.abs(then).max(initial=0.0)
    return np.shape(now) == np.shape(then) and np.allclose(now, then, rtol=SAME_VALUE, atol=atol)


def somewhere(domain: Any, rng: np.random.Generator, lead: tuple[int, ...]) -> Array:
    """Random points of a domain, inside and on its edge."""
    width = domain.diameter if np.isfinite(domain.diameter) else 1.0
    spread = rng.random((*lead, 1)) * width * rng.standard_normal((*lead, domain.dim))
    return domain.project(domain.start() + spread)


def require_fit(t: int, revealed: Any, problem: Problem, lead: tuple[int, ...]) -> None:
    """Raise unless what a slot reveals is a feedback about as many coordinates and members."""
    if not isinstance(revealed, Feedback):
        raise InvalidInput(f"slot {t} must reveal a coldq.Feedback, but revealed {revealed!r:.200}")
    p = problem.domain.dim
    for name, part in (("loss", revealed.loss), ("constraint", revealed.constraint)):
        if getattr(part, "dim", p) != p:
            raise InvalidInput(
                f"the {name} of slot {t} has {part.dim} coordinates, but the problem's domain {p}"  # type: ignore[attr-defined]
            )
        batch = getattr(part, "batch", ())
        if batch in ((), lead):
            continue
        try:
            fits = np.broadcast_shapes(batch, lead) == lead
        except ValueError:
            fits = False
        if not fits:
            raise InvalidInput(
                f"the {name} of slot {t} has the leading axes {batch}, which do not fit {lead}: "
                "one for each seed, and on a network one for each agent of it"
            )


def require_same_again(trace: Trace) -> None:
    """Raise if a problem, shown the decisions kept, reveals other functions than in the run.

    Its own generator without a seed, or an adversary that remembers, would make regret a number
    about another run. The library's problems are values, and need no look.
    """
    problem, x = trace.problem, trace.decisions
    if x is None or agents_axis(problem) or is_ours(problem):
        return
    for t, revealed in replay(problem, trace.seeds, x):
        for name, function, was in (
            ("loss", revealed.loss, trace.loss),
            ("constraint", revealed.constraint, trace.constraint),
        ):
            now, then = function.value(x[:, t - 1]), was[:, t - 1]
            if not _same(now, then):
                raise InvalidInput(
                    f"{type(problem).__name__} reveals another {name} in slot {t} than in the run, "
                    f"{now} at the decision that had {then}: start(seeds) must begin the same "
                    "stream again, with random numbers from the seeds alone"
                )


def recorded(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    """A value that a trace may hold: finite, and one for every seed."""
    array = as_array(name, value)
    if array.shape != shape:
        raise InvalidInput(f"{name} must have the shape {shape}, but has {array.shape}")
    if not np.isfinite(array).all():
        raise InvalidInput(f"{name} must be finite, but is {array}")
    return array
