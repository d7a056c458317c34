"""The only loop over slots: a learner meets a problem, and what happened is a Trace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, flag, is_ours, is_several, real_array, whole_number
from coldq.base.errors import InvalidInput
from coldq.base.notebook import track
from coldq.base.protocols import Learner, Problem, require_learner, require_problem
from coldq.learners.networks import mean_in_order
from coldq.simulation.replay import agents_axis, recorded, require_fit, started, watch_of
from coldq.simulation.trace import Trace
from coldq.slot.feedback import Feedback

KEEPABLE = ("decisions", "queue", "multipliers", "margin")
KEEPABLE_BY_AGENT = ("agent_loss", "agent_violation")
BUDGET = ("booked", "overdraft", "overdraft_bound")  # of a learner that keeps a violation rate
SLOTS_A_BLOCK = 64  # slots that are revealed at once
MAX_SEEDS = 10_000_000  # more of them are a slip, and fill the memory before anything is run
OUTSIDE_TOLERANCE = 1e-6  # of the domain's diameter: what single precision may round a decision by


def seed_tuple(seeds: Iterable[int]) -> tuple[int, ...]:
    """Seeds as whole numbers, at least one of them."""
    if not is_several(seeds):
        raise InvalidInput(f"seeds must be several, such as range(20), but is {seeds!r:.200}")
    if isinstance(seeds, range) and seeds[MAX_SEEDS:]:
        raise InvalidInput(f"seeds must be at most {MAX_SEEDS:,}, but are {seeds}")
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
    """Play without the checks of :func:`simulate` that one learner meets all seeds.

    A learner whose parameters make a batch of as many members as there are seeds plays each seed
    with a member of its own; a seed may then come several times.
    """
    delay, agents = whole_number("delay", delay, 0), agents_axis(problem)
    keep = _kept_names(keep, (*KEEPABLE, *KEEPABLE_BY_AGENT) if agents else KEEPABLE)
    _require_together(learner, problem, delay)
    S, T, N, p = len(seeds), problem.horizon, problem.n_constraints, problem.domain.dim
    state = learner.init(N, start=start, batch=(S,))
    for name in keep:
        if name in KEEPABLE[1:] and not hasattr(state, name):
            raise InvalidInput(f"{type(learner).__name__} has no {name} to keep")
    judge = _on_network if agents else _alone
    loss, constraint = np.empty((S, T)), np.empty((S, T, N))
    records, budget = _records(problem, state, keep, S), _budget(learner, state, (S, T))
    reveal = _reveals(problem, seeds)
    watch = watch_of(problem) if delay else None
    trusted = is_ours(learner) and is_ours(getattr(learner, "learner", learner))
    waiting: deque[Any] = deque()
    for t in _slots(T, progress):
        x = state.x.view() if trusted else _decision(t, state, problem.domain, (S, *agents, p))
        x.flags.writeable = False
        revealed = reveal(t, x)
        require_fit(t, revealed, problem, (S, *agents))
        if watch is not None:
            watch(t, revealed, x.copy())
        loss[:, t - 1], constraint[:, t - 1], seen = judge(t, revealed, x, N)
        for name, array in records.items():
            array[:, t - 1] = seen[name] if name in seen else getattr(state, name)
        waiting.append(revealed)
        if len(waiting) > delay:
            before, state = state, learner.update(state, waiting.popleft())
            if budget:
                report = learner.bound_report(state, delay)  # type: ignore[attr-defined]
                budget["booked"][:, t - 1 - delay] = state.violated > before.violated
                for name in BUDGET[1:]:
                    budget[name][:, t - 1 - delay] = report[name]
    optional: dict[str, Any] = {**dict.fromkeys(KEEPABLE), **records, **budget}
    return Trace(learner, problem, seeds, delay, loss, constraint, state=state, **optional)


def _records(problem: Problem, state: Any, keep: tuple[str, ...], S: int) -> dict[str, Array]:
    """Arrays for what is recorded of each slot, by name, beside the loss and the constraint."""
    T, N, p = problem.horizon, problem.n_constraints, problem.domain.dim
    agents = agents_axis(problem)
    cores = {"decisions": (p,), "agent_loss": ()}
    records = {name: np.empty((S, T, *agents, *cores.get(name, (N,)))) for name in keep}
    # What another's problem reveals may answer to x without saying so: only its decisions can tell.
    if not is_ours(problem) or getattr(problem, "adaptive", False):
        records.setdefault("decisions", np.empty((S, T, *agents, p)))
    if agents:
        records |= {name: np.empty((S, T, N)) for name in ("network_violation", "own_violation")}
    elif hasattr(state, "reduced"):
        records["reduced"] = np.zeros((S, T), bool)
    return records


def _budget(learner: Any, state: Any, shape: tuple[int, int]) -> dict[str, Array]:
    """Arrays for what is booked of each slot, if the learner keeps an error budget."""
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
    inside = domain.contains(x, OUTSIDE_TOLERANCE * float(np.max(size)))
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
            count = min(SLOTS_A_BLOCK, problem.horizon + 1 - t)
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
    own, network = np.shape(learner.init(problem.n_constraints).x)[:-1], agents_axis(problem)
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


def _alone(
    t: int, revealed: Feedback, x: Array, n_constraints: int
) -> tuple[Array, Array, dict[str, Array]]:
    """The loss and the constraint of a slot's decisions, and what else there is to see of it."""
    f, g = _values_at(t, revealed, x, x.shape[:-1], n_constraints)
    return f, g, {"decisions": x}


def _on_network(
    t: int, revealed: Feedback, x: Array, n_constraints: int
) -> tuple[Array, Array, dict[str, Array]]:
    """The loss and the constraint on a network: each agent's decision meets every one's functions.

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


def _slots(horizon: int, progress: bool | None) -> Iterator[int]:
    """1 to T, with a progress bar where somebody watches."""
    shown = None if progress is None else flag("progress", progress)
    return track(range(1, horizon + 1), "slots", shown)
