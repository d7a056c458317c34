"""The plan of a sweep: every task, and about how long it will take."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from coldq._values import is_ours
from coldq.experiments.named import told_apart
from coldq.sweeps.config import Asked, Played, Player
from coldq.sweeps.identity import FORMAT, canonical, digest
from coldq.sweeps.task import Task, learner_of
from coldq.tasks.library import library_digest

SEEDS_A_TASK = 250  # beyond, a batch gains nothing more
TRACE = 32e6  # bytes of the runs that a task holds at once
PROBE = 0.3  # seconds to look at a pair of learner and problem


@dataclass(frozen=True, eq=False)
class Plan:
    """What is asked for, and the tasks that it comes to."""

    asked: Asked

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """Every task, in the order in which they are asked for."""
        library, found = library_digest(), []
        for played in self.asked.problems:
            problem = digest(played.described)
            for player in self.asked.learners:
                learner, parameters = digest(player.described), canonical(player.flat)
                for seeds in self.batches(played):
                    named = [FORMAT, library, problem, learner, list(seeds)]
                    shown = [played.title, player.label, parameters]
                    found.append(
                        Task(
                            digest([named, shown]), played.title, player.label, parameters,
                            played.described, player.described, seeds, library,
                        )
                    )  # fmt: skip
        return tuple(found)

    def longest_first(self, tasks: Iterable[Task]) -> list[Task]:
        """Tasks by their slots: then no worker is left alone with a long one at the end."""
        slots = {played.title: played.problem.horizon for played in self.asked.problems}
        return sorted(tasks, key=lambda task: -slots[task.title] * len(task.seeds))

    def batches(self, played: Played) -> list[tuple[int, ...]]:
        """The seeds of each task of a problem; one where they would all see the same."""
        seeds = told_apart(played.problem, self.asked.seeds)
        each = self.asked.seeds_a_task or seeds_a_task(played.problem)
        return [seeds[k : k + each] for k in range(0, len(seeds), each)]

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return sum(len(task.seeds) for task in self.tasks)


def seeds_a_task(problem: Any) -> int:
    """How many seeds a task has: enough to be worth sending, few enough for its memory.

    >>> import coldq
    >>> from coldq.sweeps.plan import seeds_a_task
    >>> seeds_a_task(coldq.problems.TimeVarying(1000)), seeds_a_task(
    ...     coldq.problems.TimeVarying(100_000))
    (250, 13)
    """
    numbers = 1 + problem.n_constraints + (0 if is_ours(problem) else problem.domain.dim)
    return max(1, min(SEEDS_A_TASK, int(TRACE / (8.0 * problem.horizon * numbers))))


def estimate(plan: Plan) -> Mapping[tuple[str, str], float | str]:
    """Seconds that every problem takes every learner on one core, all seeds and parameters.

    Each pair is looked at for a moment, with the learner's first parameters; where that fails there
    is the reason.
    """
    found: dict[tuple[str, str], float | str] = {}
    slots: dict[tuple[str, str], float] = {}
    for played, player in product(plan.asked.problems, plan.asked.learners):
        pair, batches = (played.title, player.label), plan.batches(played)
        if pair not in found:
            try:
                slots[pair] = _probe(played.problem, player, batches[0])
                found[pair] = 0.0
            except Exception as error:
                found[pair] = f"{type(error).__name__}: {error}"
        spent = found[pair]
        if isinstance(spent, float):
            share = sum(len(seeds) for seeds in batches) / len(batches[0])
            found[pair] = spent + slots[pair] * played.problem.horizon * share
    return found


def _probe(problem: Any, player: Player, seeds: tuple[int, ...]) -> float:
    """Seconds of a slot of these seeds together."""
    learner = learner_of(player.described, problem)
    state = learner.init(problem.n_constraints, batch=(len(seeds),))
    stream, spent = problem.start(seeds), []
    begun = time.perf_counter()
    for t in range(1, problem.horizon + 1):
        before = time.perf_counter()
        revealed = stream.reveal(t, state.x)
        for function in (revealed.loss, revealed.constraint):
            function.value(state.x)
        state = learner.update(state, revealed)
        now = time.perf_counter()
        spent.append(now - before)
        if now - begun > PROBE and len(spent) > 8:
            break
    # The first slots compile or load; a stream draws many slots at once, so that the mean counts.
    later = spent[3:] or spent
    return sum(later) / len(later)
