"""One task: a problem, a learner or a comparator, and some seeds; its result is a table."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.base.describe import build
from coldq.base.errors import Error, InvalidInput, WeakPrice
from coldq.evaluation.named import GIVEN, learners_of, own_learner, problem_factory
from coldq.evaluation.scores import COMPARATORS, Setting, regret
from coldq.evaluation.sweeps.identity import module_digest
from coldq.evaluation.tasks.library import canonical
from coldq.simulation.loop import simulate
from coldq.simulation.metrics import accumulated_loss, hard_violation, soft_violation

MEASURES = (
    "loss", "violation", "soft_violation", "largest_violation", "dynamic_regret", "static_regret",
)  # fmt: skip
BEST = {"best decisions": "dynamic", "best fixed decision": "static"}  # comparators by their title
BEST_DECISION_BYTES = 32e6  # that a comparator may hold at once
CACHED_PROBLEMS = 4  # that a worker keeps built


@dataclass(frozen=True)
class Task:
    """What a worker needs to know; plain data, so that any machine can be told it.

    `problem` and `learner` are described, or named with their parameters; `parameters` is what the
    table says of the learner's. A comparator is in the place of a learner: all runs of a problem
    are compared with the same, but where it answers to decisions: then a task with `regret` finds
    what is best for each of its runs.
    """

    key: str
    title: str
    label: str
    parameters: str
    problem: Mapping[str, Any]
    learner: Mapping[str, Any]
    seeds: tuple[int, ...]
    regret: bool = False

    def about(self) -> dict[str, Any]:
        """What it is, as the table says it."""
        return {
            "problem": self.title, "learner": self.label, "parameters": self.parameters,
            "seeds": list(self.seeds),
        }  # fmt: skip


def run(task: Task) -> dict[str, Any]:
    """The columns of a table with a row a seed: the same for the same task."""
    problem, n = problem_of(canonical(task.problem)), len(task.seeds)
    play = _best if "comparator" in task.learner else _played
    measures, notes = play(task, problem)
    return {
        "task": [task.key] * n,
        "problem": [task.title] * n,
        "learner": [task.label] * n,
        "parameters": [task.parameters] * n,
        "seed": np.array(task.seeds, np.int64),
        "horizon": np.full(n, problem.horizon),
        **{name: measures.get(name, np.full(n, np.nan)) for name in MEASURES},
        "notes": [" ".join(notes)] * n,
    }


def _played(task: Task, problem: Any) -> tuple[dict[str, Array], Iterable[str]]:
    """The measures of a learner's run, and what there is to know of its regret."""
    keep = ["decisions"] if task.regret else []
    learner = learner_of(task.learner, problem)
    trace = simulate(learner, problem, task.seeds, keep=keep, progress=False)
    measures, notes = (
        {
            "loss": accumulated_loss(trace),
            "violation": hard_violation(trace),
            "soft_violation": soft_violation(trace),
            "largest_violation": trace.violation.max(axis=(1, 2), initial=0.0),
        },
        (),
    )
    if task.regret:
        excess, notes = Setting(problem, task.seeds).excess(trace.loss, trace.decisions)
        measures |= {f"{kind}_regret": regret(each)[0] for kind, each in excess.items()}
    return measures, notes


def _best(task: Task, problem: Any) -> tuple[dict[str, Array], Iterable[str]]:
    """The loss of a comparator, NaN where there is none, and why."""
    kind, losses, notes = task.learner["comparator"], [], []
    count = max(1, int(BEST_DECISION_BYTES / (8.0 * problem.horizon * problem.domain.dim)))
    for first in range(0, len(task.seeds), count):
        try:
            best = COMPARATORS[kind](problem, task.seeds[first : first + count])
        except Error as error:
            return {}, [f"There is no {kind} regret: {error}."]
        losses.append(np.add.accumulate(best.loss, axis=1)[:, -1])
        if best.lacking:
            notes.append(f"No {kind} regret where no decision is feasible: {best.lacking}.")
    loss = np.concatenate(losses)
    return {
        "loss": loss,
        **dict.fromkeys(MEASURES[1:4], np.where(np.isnan(loss), loss, 0.0)),
    }, notes


@lru_cache(CACHED_PROBLEMS)
def problem_of(described: str) -> Any:
    """The problem that a task is about, from the text of its description."""
    description = json.loads(described)
    if "described" in description:
        return build(description["described"])
    _require_same_module(description)
    return problem_factory(description["module"])(**built(description["parameters"]))


def learner_of(description: Mapping[str, Any], problem: Any) -> Any:
    """The learner of a task, made for its problem."""
    if "described" in description:
        return build(description["described"])
    parameters = built(description["parameters"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakPrice)  # what it does is to be seen
        if "module" in description:
            _require_same_module(description)
            return own_learner(description["module"])(problem, **parameters)
        (kind,) = learners_of([description["learner"]])
        given = {**GIVEN.get(kind.__name__, {}), **parameters}
        return kind.for_problem(problem, **given)  # type: ignore[attr-defined]


def built(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with a value in the place of each description."""
    return {name: build(v) if isinstance(v, Mapping) else v for name, v in parameters.items()}


def _require_same_module(description: Mapping[str, Any]) -> None:
    module = description["module"].partition(":")[0]
    if module_digest(module) != description["digest"]:
        raise InvalidInput(f"this worker has another {module} than the one that sent the task")
