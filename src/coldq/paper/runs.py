"""Running a figure: every learner in every setting, all seeds side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array
from coldq.evaluation.intervals import tuned_to
from coldq.evaluation.named import distinct_seeds
from coldq.evaluation.tasks.executors import do_all, executor_of
from coldq.learners.card import WHOLE_CONSTRAINT
from coldq.paper.figures import Entry, Figure, Setting
from coldq.simulation.loop import play
from coldq.simulation.metrics import accumulated_loss, hard_violation
from coldq.simulation.trace import Trace
from coldq.slot.schedules import Power

TUNED_RECOO = "RECOO (tuned)"
TRIED_ALPHAS = tuple(2.0 ** (k / 3.0) for k in range(-4, 7))  # from 0.4 to 4
QUICK_ALPHAS = (0.5, 1.0, 2.0)  # for a quick look


@dataclass(frozen=True, eq=False)
class Run:
    """One learner in one setting: its trace, and how long all seeds together took."""

    setting: Setting
    entry: Entry
    trace: Trace
    seconds: float

    @cached_property
    def loss(self) -> Array:
        """The accumulated loss of each seed."""
        return accumulated_loss(self.trace)

    @cached_property
    def violation(self) -> Array:
        """The hard violation of each seed."""
        return hard_violation(self.trace)

    def running(self, measure: str, *, averaged: bool) -> Array:
        """The running "loss" or "violation", of shape (S, T); averages as the paper takes them."""
        total = {"loss": accumulated_loss, "violation": hard_violation}[measure]
        values = total(self.trace, cumulative=True)
        return values / np.arange(2.0, self.trace.horizon + 2.0) if averaged else values

    @cached_property
    def above_floor(self) -> Array | None:
        """In how many slots of each seed a queue was above its floor gamma, if there is one."""
        if self.trace.queue is None:
            return None
        return (self.trace.queue > self.trace.learner.gamma).any(axis=-1).sum(axis=-1)


@dataclass(frozen=True, eq=False)
class FigureRuns:
    """All runs of one figure, and the seconds a slot of a single seed takes each learner."""

    figure: Figure
    runs: tuple[Run, ...]
    seconds_per_slot: dict[str, float]

    def find(self, setting: Setting, label: str) -> Run:
        """The run of a learner in a setting."""
        for run in self.runs:
            if run.setting is setting and run.entry.label == label:
                return run
        raise KeyError(f"{label} in {setting.title}")

    def of(self, setting: Setting) -> tuple[Run, ...]:
        """The runs of one setting."""
        return tuple(run for run in self.runs if run.setting is setting)


def count_runs(figure: Figure) -> int:
    """How often `run_figures` will report that something is done."""
    tuned = sum(setting.claimed for setting in figure.settings) if figure.tuned else 0
    return (len(figure.settings) + 1) * len(figure.entries) + tuned


def run_figures(
    figures: Iterable[Figure],
    seeds: tuple[int, ...],
    done: Callable[[str], None] = lambda what: None,
    alphas: tuple[float, ...] = TRIED_ALPHAS,
    processes: int = 1,
) -> tuple[FigureRuns, ...]:
    """Every learner in every setting of each figure; `done` hears of each finished run.

    `alphas` are those from which RECOO's is chosen where a figure tunes it. Runs are shared among
    `processes`.
    """
    plans = [(figure, list(_plan(figure, seeds, alphas))) for figure in figures]
    played = iter(_all_played([task for _, plan in plans for task in plan], processes, done))
    return tuple(_collected(figure, plan, played) for figure, plan in plans)


class Task(NamedTuple):
    """A learner to be run in a setting; with each of `alphas`, if there are any, side by side."""

    setting: Setting
    entry: Entry
    seeds: tuple[int, ...]
    use: str  # "shown", "tried" for tuning, or "timed": one seed alone
    alphas: tuple[float, ...] = ()


def _plan(figure: Figure, seeds: tuple[int, ...], alphas: tuple[float, ...]) -> Iterator[Task]:
    for setting in figure.settings:
        chosen = distinct_seeds(setting.problem, seeds)
        for entry in figure.entries:
            yield Task(setting, entry, chosen, "shown")
        if figure.tuned and setting.claimed:
            theirs = next(entry for entry in figure.entries if entry.label == "RECOO")
            yield Task(setting, theirs, chosen, "tried", alphas)
    # One seed alone: a decision maker has no batch that would share the cost of Python.
    for entry in figure.entries:
        yield Task(figure.settings[0], entry, seeds[:1], "timed")


def _all_played(
    tasks: list[Task], processes: int, done: Callable[[str], None]
) -> list[tuple[Trace, float]]:
    """The traces, in the order of the tasks, and the seconds that each took."""
    played: dict[int, tuple[Trace, float]] = {}
    with executor_of(processes if processes > 1 else None) as executor:
        for (number, task), future in do_all(_played, enumerate(tasks), executor):
            played[number] = future.result()
            done(f"{task.entry.label}, {task.setting.title}")
    return [played[number] for number in range(len(tasks))]


def _played(numbered: tuple[int, Task]) -> tuple[Trace, float]:
    task = numbered[1]
    problem, entry, seeds = task.setting.problem, task.entry, task.seeds
    if task.alphas:
        entry = _with_alpha(entry, np.repeat(task.alphas, len(seeds)))
        seeds = seeds * len(task.alphas)
    learner = entry.make(problem)
    begun = time.perf_counter()
    keep = ["queue"] if entry.label == "COLDQ" else []
    trace = play(learner, problem, seeds, keep=keep, progress=False)
    return trace, time.perf_counter() - begun


def _collected(
    figure: Figure, plan: list[Task], played: Iterator[tuple[Trace, float]]
) -> FigureRuns:
    """The runs of a figure, each setting's with RECOO's best alpha behind the others."""
    runs, seconds = list[Run](), dict[str, float]()
    for task in plan:
        trace, spent = next(played)
        if task.use == "timed":
            seconds[task.entry.label] = spent / trace.horizon
        elif task.use == "shown":
            runs.append(Run(task.setting, task.entry, trace, spent))
        else:
            ours = next(run for run in runs if run.setting is task.setting)
            runs.append(_tuned(ours, list(_parted(task, trace, spent))))
    return FigureRuns(figure, tuple(runs), seconds)


def _parted(task: Task, trace: Trace, seconds: float) -> Iterator[Run]:
    """The runs of each alpha."""
    count = len(task.seeds)
    for k, alpha in enumerate(task.alphas):
        entry, own = _with_alpha(task.entry, alpha), slice(k * count, (k + 1) * count)
        part = replace(
            trace, learner=entry.make(task.setting.problem), seeds=task.seeds, state=None,
            loss=trace.loss[own], constraint=trace.constraint[own],
        )  # fmt: skip
        yield Run(task.setting, entry, part, seconds / len(task.alphas))


def _with_alpha(theirs: Entry, scale: Any) -> Entry:
    size = f"{scale:.3g}" if np.ndim(scale) == 0 else "c"
    return replace(
        theirs,
        label=TUNED_RECOO,
        parameters={**theirs.parameters, "alpha": Power(0.5, scale)},
        printed=f"alpha_t = {size} t^(1/2), the rest as RECOO",
        published=None,
    )


def _tuned(ours: Run, runs: list[Run]) -> Run:
    """RECOO with the alpha that violates least among those with a mean loss as low as COLDQ's.

    Where no alpha has a loss as low, the one that comes closest.
    """
    loss, violation = np.array([(run.loss.mean(), run.violation.mean()) for run in runs]).T
    return runs[tuned_to(float(ours.loss.mean()), loss, violation)]


@dataclass(frozen=True)
class Stepping:
    """What the runs that solve a step would take through CVXPY, from steps measured here.

    `ours` is what the same runs took.
    """

    seconds_per_step: dict[str, float]
    steps: int
    seconds: float
    ours: float


def stepping_with_cvxpy(figures: tuple[FigureRuns, ...], samples: int = 8) -> Stepping | None:
    """An estimate from `samples` steps a figure; None where CVXPY is not installed."""
    if find_spec("cvxpy") is None:
        return None
    from coldq.slot.step.reference import reference_step

    per_step, steps, seconds, ours = {}, 0, 0.0, 0.0
    for runs in figures:
        problem = runs.figure.settings[0].problem
        learner = runs.figure.entries[0].make(problem)
        state, stream = learner.init(problem.n_constraints, batch=(1,)), problem.start([0])
        spent = []
        for t in range(1, samples + 2):
            revealed = stream.reveal(t, state.x)
            gradient = revealed.loss.gradient(state.x)[0]
            begun = time.perf_counter()
            reference_step(
                state.x[0],
                gradient,
                float(learner.alpha(state.t)[0]),
                state.queue[0],
                revealed.constraint.member((0,), (1,)),
                problem.domain,
            )
            spent.append(time.perf_counter() - begun)
            state = learner.update(state, revealed)
        each = float(np.median(spent[1:]))  # the first one imports and compiles
        stepped = [r for r in runs.runs if WHOLE_CONSTRAINT in r.entry.learner.card.needs]
        count = sum(r.trace.loss.size * getattr(r.trace.learner, "n_experts", 1) for r in stepped)
        ours += sum(run.seconds for run in stepped)
        per_step[runs.figure.key] = each
        steps += count
        seconds += each * count
    return Stepping(per_step, steps, seconds, ours)
