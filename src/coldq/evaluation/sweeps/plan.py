"""The plan of a sweep: every task, and about how long it will take."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from coldq.base.arrays import is_ours
from coldq.evaluation.named import distinct_seeds
from coldq.evaluation.scores import COMPARATORS
from coldq.evaluation.sweeps.config import Entry, SweepConfig
from coldq.evaluation.sweeps.task import BEST, Task, learner_of, problem_of
from coldq.evaluation.tasks.library import canonical, digest, library_digest
from coldq.evaluation.tasks.processes import Processes

TABLE_FORMAT = 3  # of the tables that tasks give
MAX_SEEDS_A_TASK = 250  # beyond, a batch gains nothing more
TRACE_BYTES = 32e6  # of the runs that a task holds at once
PROBE_SECONDS = 0.3  # to look at a pair of learner and problem
PROBE_SLOTS = 20  # to look at a comparator


@dataclass(frozen=True, eq=False)
class Plan:
    """What is asked for, and the tasks that it comes to."""

    config: SweepConfig

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """Every task, in the order in which they are asked for."""
        library, tasks = library_digest(), []
        for played in self.config.problems:
            problem, regret = digest(played.described), self.config.regret and played.adaptive
            for player in self.players(played):
                learner, parameters = digest(player.described), canonical(player.flat)
                shown = played.title, player.title, parameters
                for seeds in self.batches(played):
                    content = [TABLE_FORMAT, library, problem, learner, list(seeds), regret]
                    about = played.described, player.described, seeds, regret
                    tasks.append(Task(digest([content, shown]), *shown, *about))
        return tuple(tasks)

    def players(self, played: Entry) -> tuple[Entry, ...]:
        """The learners of a problem, and the comparators that regret needs, which come first."""
        if not self.config.regret or played.adaptive:
            return self.config.learners
        best = (Entry(title, {}, {"comparator": kind}) for title, kind in BEST.items())
        return *best, *self.config.learners

    @cached_property
    def longest_first(self) -> list[Task]:
        """Tasks by their slots: then no worker is left alone with a long one at the end."""
        slots = {played.title: played.problem.horizon for played in self.config.problems}

        def order(task: Task) -> tuple[bool, int]:
            return task.label not in BEST, -slots[task.title] * len(task.seeds)

        return sorted(self.tasks, key=order)

    def batches(self, played: Entry) -> list[tuple[int, ...]]:
        """The seeds of each task of a problem; one where they would all see the same."""
        seeds = distinct_seeds(played.problem, self.config.seeds)
        each = self.config.seeds_a_task or seeds_a_task(played.problem)
        return [seeds[k : k + each] for k in range(0, len(seeds), each)]

    @property
    def runs(self) -> int:
        """How many runs there are, those of comparators among them."""
        return sum(len(task.seeds) for task in self.tasks)


def seeds_a_task(problem: Any) -> int:
    """How many seeds a task has: enough to be worth sending, few enough for its memory.

    >>> import coldq
    >>> from coldq.evaluation.sweeps.plan import seeds_a_task
    >>> seeds_a_task(coldq.problems.TimeVarying(1000)), seeds_a_task(
    ...     coldq.problems.TimeVarying(100_000))
    (250, 13)
    """
    numbers = 1 + problem.n_constraints + (0 if is_ours(problem) else problem.domain.dim)
    return max(1, min(MAX_SEEDS_A_TASK, int(TRACE_BYTES / (8.0 * problem.horizon * numbers))))


@dataclass(frozen=True)
class Estimate:
    """About how long a sweep will take.

    `seconds` are those of every problem and learner on one core, all seeds and parameters, or why
    there is no telling; `start` those of a process until it has begun to play.
    """

    seconds: Mapping[tuple[str, str], float | str]
    start: float

    def on(self, workers: int) -> float:
        """Seconds by the clock: the process that sweeps starts, then its workers, who share."""
        work = sum(took for took in self.seconds.values() if isinstance(took, float))
        return 2.0 * self.start + work / workers


def estimate(plan: Plan) -> Estimate:
    """About how long a plan will take.

    Each pair is looked at for a moment, with the learner's first parameters, and a fresh process is
    started, which plays the first of them.
    """
    seconds: dict[tuple[str, str], float | str] = {}
    slots: dict[tuple[str, str], float] = {}
    for played, player in (
        (one, each) for one in plan.config.problems for each in plan.players(one)
    ):
        pair, batches = (played.title, player.title), plan.batches(played)
        if pair not in seconds:
            try:
                probe = _comparator_seconds if player.title in BEST else _seconds_a_slot
                slots[pair] = probe(played.problem, player.described, batches[0])
                seconds[pair] = 0.0
            except Exception as error:
                seconds[pair] = f"{type(error).__name__}: {error}"
        spent = seconds[pair]
        if isinstance(spent, float):
            share = sum(len(seeds) for seeds in batches) / len(batches[0])
            seconds[pair] = spent + slots[pair] * played.problem.horizon * share
    begun = time.perf_counter()
    with Processes(1) as executor:
        executor.submit(_begin, plan.tasks[-1])  # whether it can or not
    return Estimate(seconds, time.perf_counter() - begun)


def _seconds_a_slot(problem: Any, learner: Mapping[str, Any], seeds: tuple[int, ...]) -> float:
    """Seconds of a slot of these seeds together."""
    player, begun, spent = learner_of(learner, problem), time.perf_counter(), []
    for _ in _slots(player, problem, seeds):
        spent.append(time.perf_counter())
        if spent[-1] - begun > PROBE_SECONDS and len(spent) > 8:
            break
    # The first slots compile or load; a stream draws many slots at once, so that the mean counts.
    later = spent[3:] if len(spent) > 4 else [begun, *spent]
    return (later[-1] - later[0]) / (len(later) - 1)


class _Shortened:
    """The first slots of a problem."""

    def __init__(self, problem: Any, slots: int) -> None:
        self._problem, self.horizon = problem, min(problem.horizon, slots)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)


def _comparator_seconds(
    problem: Any, comparator: Mapping[str, Any], seeds: tuple[int, ...]
) -> float:
    """Seconds of a slot of the best decisions for these seeds together."""
    kind, spent = comparator["comparator"], 0.0
    if kind == "dynamic" and hasattr(problem, "best_decisions"):
        return 0.0
    for slots in (2, PROBE_SLOTS):  # the first slots load what is needed
        begun = time.perf_counter()
        COMPARATORS[kind](_Shortened(problem, slots), seeds)  # type: ignore[arg-type]
        spent = time.perf_counter() - begun
    return spent / min(problem.horizon, PROBE_SLOTS)


def _begin(task: Task) -> None:
    """The first slot of a task."""
    problem = problem_of(canonical(task.problem))
    next(_slots(learner_of(task.learner, problem), problem, task.seeds))


def _slots(learner: Any, problem: Any, seeds: tuple[int, ...]) -> Iterator[None]:
    """Play, and stop after each slot."""
    state = learner.init(problem.n_constraints, batch=(len(seeds),))
    stream = problem.start(seeds)
    for t in range(1, problem.horizon + 1):
        revealed = stream.reveal(t, state.x)
        for function in (revealed.loss, revealed.constraint):
            function.value(state.x)
        state = learner.update(state, revealed)
        yield
