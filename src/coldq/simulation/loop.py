"""The only loop over slots: a learner meets a problem, and what happened is a Trace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, as_array, flag, is_ours, is_several, real_array, whole_number
from coldq.base.errors import InvalidInput, NotRevealed
from coldq.base.notebook import track
from coldq.base.protocols import (
    Learner,
    Problem,
    Stream,
    require_learner,
    require_parts,
    require_problem,
)
from coldq.learners.networks import mean_in_order, network_feedback
from coldq.simulation.trace import Trace
from coldq.slot.feedback import Feedback

KEEPABLE = ("decisions", "queue", "multipliers", "margin")
PER_AGENT = ("agent_loss", "agent_violation")
BLOCK = 64  # slots that are revealed at once
BUDGET = ("booked", "overdraft", "overdraft_bound")  # of a learner that keeps a violation rate
ALWAYS = ("network_violation", "own_violation", "reduced", *BUDGET)  # where there is such a thing
MOST_SEEDS = 10_000_000  # more of them are a slip, and fill the memory before anything is run
LOOKS = 2  # points at which functions are compared
OUTSIDE = 1e-6  # of the domain's size: what single precision may round a decision by


def seed_tuple(seeds: Iterable[int]) -> tuple[int, ...]:
    """Seeds as whole numbers, at least one of them."""
    if not is_several(seeds):
        raise InvalidInput(f"seeds must be several, such as range(20), but is {seeds!r:.200}")
    if isinstance(seeds, range) and seeds[MOST_SEEDS:]:
        raise InvalidInput(f"seeds must be at most {MOST_SEEDS:,}, but are {seeds}")
    chosen = tuple(whole_number("a seed", seed, 0) for seed in seeds)
    if not chosen:
        raise InvalidInput("seeds must name at least one seed, but is empty")
    return chosen


def simulate(
    learner: Learner,
    problem: Problem,
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
        What else to record: any of "decisions", "queue", "multipliers", "margin", and on a network
        "agent_loss", "agent_violation". Of an adversary, and of any problem that is not the
        library's, the decisions are always kept: regret and bound reports show them to it again.
    start
        x_1, if not the learner's default.
    progress
        Whether to show a progress bar after the first second; by default on a terminal and in a
        notebook.

    >>> import coldq
    >>> problem = coldq.problems.TimeVarying(horizon=50)
    >>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[7])
    >>> trace.loss.shape
    (1, 50)
    """
    require_learner(learner)
    require_problem(problem)
    seeds = seed_tuple(seeds)
    _require_one(learner, problem, len(seeds))
    return play(learner, problem, seeds, delay, keep=keep, start=start, progress=progress)


def play(
    learner: Learner,
    problem: Problem,
    seeds: tuple[int, ...],
    delay: int = 0,
    *,
    keep: Iterable[str] = (),
    start: ArrayLike | None = None,
    progress: bool | None = None,
) -> Trace:
    """:func:`simulate` itself. A learner whose parameters make a batch of as many members as there
    are seeds plays each seed with a member of its own; a seed may then come several times."""
    delay, network = whole_number("delay", delay, 0), _agents(problem)
    keep = _kept_names(keep, (*KEEPABLE, *PER_AGENT) if network else KEEPABLE)
    _require_together(learner, problem, delay)
    S, T, N, p = len(seeds), problem.horizon, problem.n_constraints, problem.domain.dim
    state = learner.init(N, start=start, batch=(S,))
    for name in keep:
        if name in KEEPABLE[1:] and not hasattr(state, name):
            raise InvalidInput(f"{type(learner).__name__} has no {name} to keep")
    judged = _on_network if network else _alone
    loss, constraint = np.empty((S, T)), np.empty((S, T, N))
    cores = {"decisions": (p,), "agent_loss": ()}
    kept: dict[str, Array] = {
        name: np.empty((S, T, *network, *cores.get(name, (N,)))) for name in keep
    }
    # What another's problem reveals may answer to x without saying so: only its decisions can tell.
    if not is_ours(problem) or getattr(problem, "adaptive", False):
        kept.setdefault("decisions", np.empty((S, T, *network, p)))
    if network:
        kept["network_violation"] = np.empty((S, T, N))
        kept["own_violation"] = np.empty((S, T, N))
    elif hasattr(state, "reduced"):
        kept["reduced"] = np.zeros((S, T), bool)
    budget = _budget(learner, state, (S, T))
    reveal = _reveals(problem, seeds)
    watch = _watch(problem) if delay else None
    trusted = is_ours(learner) and is_ours(getattr(learner, "learner", learner))
    waiting: deque[Any] = deque()
    for t in _slots(T, progress):
        x = state.x.view() if trusted else _decision(t, state, problem.domain, (S, *network, p))
        x.flags.writeable = False
        revealed = reveal(t, x)
        _require_fit(t, revealed, problem, (S, *network))
        if watch is not None:
            watch(t, revealed, x.copy())
        loss[:, t - 1], constraint[:, t - 1], seen = judged(t, revealed, x, N)
        for name, array in kept.items():
            array[:, t - 1] = seen[name] if name in seen else getattr(state, name)
        waiting.append(revealed)
        if len(waiting) > delay:
            before, state = state, learner.update(state, waiting.popleft())
            if budget:
                found = learner.bound_report(state, delay)  # type: ignore[attr-defined]
                budget["booked"][:, t - 1 - delay] = state.violated > before.violated
                for name in BUDGET[1:]:
                    budget[name][:, t - 1 - delay] = found[name]
    kept |= budget
    other = {name: kept.get(name) for name in (*ALWAYS, *KEEPABLE, *PER_AGENT)}
    return Trace(learner, problem, seeds, delay, loss, constraint, state=state, **other)


def _budget(learner: Any, state: Any, shape: tuple[int, int]) -> dict[str, Array]:
    """Room for what is booked of each slot, if the learner keeps an error budget."""
    if getattr(learner, "violation_rate", None) is None or not hasattr(state, "overdraft"):
        return {}
    return {name: np.zeros(shape, bool if name == "booked" else float) for name in BUDGET}


def _decision(t: int, state: Any, domain: Any, shape: tuple[int, ...]) -> Array:
    """The decision of a learner that is not the library's; raise unless it lies in the domain.

    Outside of it losses may be lower than any that a learner could have.
    """
    name = f"the decision x of slot {t}, in the learner's state,"
    given: Any = getattr(state, "x", None)
    x = real_array(name, given, 1)
    if x.shape != shape:
        raise InvalidInput(f"{name} must have the shape {shape}, but has {x.shape}")
    size = domain.diameter if np.isfinite(domain.diameter).all() else 1.0 + np.abs(x)
    inside = domain.contains(x, OUTSIDE * float(np.max(size)))
    if not inside.all():
        raise InvalidInput(
            f"{name} must lie in the domain {domain}, but is {x[~inside][0]}: domain.project(x) is "
            "the nearest that does"
        )
    return x.view()


def _reveals(problem: Problem, seeds: tuple[int, ...]) -> Callable[[int, Array], Any]:
    """What reveals a slot, from whole blocks of them where the problem's stream has any to give."""
    stream: Any = started(problem, seeds)
    # One whose `reveal` is another's than its `reveal_block` may look at x all the same.
    owner = next((kind for kind in type(stream).__mro__ if "reveal" in vars(kind)), object)
    replaced = "reveal" in getattr(stream, "__dict__", ())
    if "reveal_block" not in vars(owner) or replaced or getattr(problem, "adaptive", False):
        return stream.reveal
    block = stream.reveal_block
    ready: deque[Any] = deque()

    def reveal(t: int, x: Array) -> Any:
        if not ready:
            count = min(BLOCK, problem.horizon + 1 - t)
            ready.extend(block(t, count))
            if len(ready) != count:
                raise InvalidInput(
                    f"reveal_block({t}, {count}) must give a feedback for each of {count} slots, "
                    f"but gave {len(ready)}"
                )
        return ready.popleft()

    return reveal


def _kept_names(keep: Any, keepable: tuple[str, ...]) -> tuple[str, ...]:
    """What is to be kept, each a name that is known."""
    if not is_several(keep):
        raise InvalidInput(f"keep must be names such as ['decisions'], but is {keep!r:.200}")
    keep = (keep,) if isinstance(keep, str) else tuple(keep)
    for name in keep:
        if not isinstance(name, str) or name not in keepable:
            raise InvalidInput(f"keep may name {', '.join(keepable)}, but has {name!r:.200}")
    return keep


def _require_together(learner: Learner, problem: Problem, delay: int) -> None:
    """Raise unless the learner was made for this problem and delay."""
    if learner.domain != problem.domain:
        raise InvalidInput(
            f"the learner's domain is {learner.domain}, but the problem's is {problem.domain}"
        )
    if learner.horizon is not None and learner.horizon != problem.horizon:
        raise InvalidInput(
            f"the learner's horizon is {learner.horizon}, but the problem's is {problem.horizon}"
        )
    own_delay = getattr(learner, "delay", delay)
    if own_delay != delay:
        raise InvalidInput(f"the learner's delay is {own_delay}, but the run's is {delay}")


def _require_one(learner: Learner, problem: Problem, seeds: int) -> None:
    """Raise unless it is one learner for all seeds."""
    own, network = np.shape(learner.init(problem.n_constraints).x)[:-1], _agents(problem)
    if own != network and (network or getattr(learner, "agents", None)):
        (agents,) = network or ("no",)
        raise InvalidInput(
            f"the problem has {agents} agents, but the learner has the leading axes {own}: "
            "coldq.Decentralised(learner, mixing) puts a learner on a network"
        )
    if own != network:
        raise InvalidInput(
            f"simulate runs one learner over {seeds} seeds, but this learner's own parameters make "
            f"a batch of {own}"
        )


def _agents(problem: Problem) -> tuple[int, ...]:
    """The axis of a network's agents, if the problem has any."""
    agents = getattr(problem, "agents", None)
    return () if agents is None else (agents,)


def _alone(
    t: int, revealed: Feedback, x: Array, n_constraints: int
) -> tuple[Array, Array, dict[str, Array]]:
    """The loss and the constraint of a slot's decisions, and what else there is to see of it."""
    f, g = _values_at(t, revealed, x, x.shape[:-1], n_constraints)
    return f, g, {"decisions": x}


def _on_network(
    t: int, revealed: Feedback, x: Array, n_constraints: int
) -> tuple[Array, Array, dict[str, Array]]:
    """The same on a network: every agent's decision, the first axis, meets every one's functions.

    First the means over whose functions they are, then over the agents.
    """
    points, (seeds, agents) = np.moveaxis(x, 1, 0)[:, :, None], x.shape[:2]
    f, g = _values_at(t, revealed, points, (agents, seeds, agents), n_constraints)
    over = np.maximum(g, 0.0)
    own = mean_in_order(np.diagonal(over, axis1=0, axis2=2), 2)
    f, g, over = (np.moveaxis(mean_in_order(array, 2), 0, 1) for array in (f, g, over))
    seen = {"decisions": x, "agent_loss": f, "agent_violation": over}
    f, g, over = (mean_in_order(array, 1) for array in (f, g, over))
    return f, g, seen | {"network_violation": over, "own_violation": own}


def _values_at(
    t: int, revealed: Feedback, x: Array, lead: tuple[int, ...], n_constraints: int
) -> tuple[Array, Array]:
    """f_t and g_t at these points, of which there are `lead`."""
    f = recorded(f"the loss of slot {t}", revealed.loss.value(x), lead)
    g = revealed.constraint.value(x)
    return f, recorded(f"the constraint of slot {t}", g, (*lead, n_constraints))


def replay(
    problem: Problem,
    seeds: tuple[int, ...],
    decisions: Array | None = None,
    *,
    held: bool = False,
) -> Iterator[tuple[int, Any]]:
    """Every slot's feedback once more; an adversary needs the decisions it answered to.

    Who looks at slots after the next one was revealed says so by `held`, see :func:`_watch`.
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
    network = _agents(problem)
    lead = (len(seeds), *network)
    if decisions is not None:
        whole = (len(seeds), problem.horizon, *network, problem.domain.dim)
        decisions = real_array("decisions", decisions, 0)
        if decisions.shape != whole:
            raise InvalidInput(
                f"decisions must have the shape {whole}, as a trace keeps them, but have "
                f"{decisions.shape}"
            )
    stream, watch = started(problem, seeds), _watch(problem) if held else None
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
        _require_fit(t, revealed, problem, lead)
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
    lead = (len(seeds), *_agents(problem))
    rng = np.random.default_rng(0)
    looks = [somewhere(problem.domain, rng, lead) for _ in range(LOOKS)]

    def seen() -> Iterator[tuple[int, str, list[Array]]]:
        """Every slot's functions at the same points, other decisions having been played."""
        stream = started(problem, seeds)
        for t in range(1, problem.horizon + 1):
            revealed = stream.reveal(t, somewhere(problem.domain, rng, lead))
            _require_fit(t, revealed, problem, lead)
            for name, function in (("loss", revealed.loss), ("constraint", revealed.constraint)):
                yield t, name, _values(function, looks)

    first = list(seen())
    for (_, _, before), (t, name, values) in zip(first, seen(), strict=True):
        if not all(map(_same, values, before)):
            raise InvalidInput(
                f"{type(problem).__name__} reveals another {name} in slot {t} when it is asked "
                "again and shown another decision: if it answers to decisions, give it adaptive = "
                "True and pass those of a run on; if not, start(seeds) must begin the same stream "
                "again"
            )


def _watch(problem: Problem) -> Callable[[int, Feedback, Array], None] | None:
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


def _values(function: Any, looks: list[Array]) -> list[Array]:
    """A function at some points; nothing if it was measured where it was played alone."""
    try:
        return [np.asarray(function.value(x)) for x in looks]
    except NotRevealed:
        return []


def _same(now: Array, then: Array) -> bool:
    """Whether a function has the values that it had, but for rounding."""
    atol = 1e-9 * np.abs(then).max(initial=0.0)
    return np.shape(now) == np.shape(then) and np.allclose(now, then, rtol=1e-9, atol=atol)


def somewhere(domain: Any, rng: np.random.Generator, lead: tuple[int, ...]) -> Array:
    """Random points of a domain, inside and on its edge."""
    width = domain.diameter if np.isfinite(domain.diameter) else 1.0
    spread = rng.random((*lead, 1)) * width * rng.standard_normal((*lead, domain.dim))
    return domain.project(domain.start() + spread)


def _require_fit(t: int, revealed: Any, problem: Problem, lead: tuple[int, ...]) -> None:
    """That what a slot reveals is a feedback about as many coordinates and members."""
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
    if x is None or _agents(problem) or is_ours(problem):
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


def _slots(horizon: int, progress: bool | None) -> Iterator[int]:
    """1 to T, with a progress bar where somebody watches."""
    shown = None if progress is None else flag("progress", progress)
    return track(range(1, horizon + 1), "slots", shown)
