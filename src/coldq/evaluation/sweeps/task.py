"""One task: a problem, a learner with its parameters, and some seeds; its result is a table."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from coldq.base.describe import build
from coldq.base.errors import InvalidInput, WeakPrice
from coldq.evaluation.named import GIVEN, learners_of, own_learner, problem_maker
from coldq.evaluation.sweeps.identity import module_digest
from coldq.evaluation.tasks.library import canonical
from coldq.simulation.loop import simulate
from coldq.simulation.metrics import accumulated_loss, hard_violation, soft_violation

MEASURES = ("loss", "violation", "soft_violation", "largest_violation")
CACHED_PROBLEMS = 4  # that a worker keeps built


@dataclass(frozen=True)
class Task:
    """What a worker needs to know; plain data, so that any machine can be told it.

    `problem` and `learner` are described, or named with their parameters; `parameters` is what the
    table says of the learner's.
    """

    key: str
    title: str
    label: str
    parameters: str
    problem: Mapping[str, Any]
    learner: Mapping[str, Any]
    seeds: tuple[int, ...]

    def about(self) -> dict[str, Any]:
        """What it is, as the table says it."""
        return {
            "problem": self.title, "learner": self.label, "parameters": self.parameters,
            "seeds": list(self.seeds),
        }  # fmt: skip


def run(task: Task) -> dict[str, Any]:
    """The columns of a table with a row a seed: the same for the same task."""
    problem = problem_of(canonical(task.problem))
    trace = simulate(learner_of(task.learner, problem), problem, task.seeds, progress=False)
    n = len(task.seeds)
    return {
        "task": [task.key] * n,
        "problem": [task.title] * n,
        "learner": [task.label] * n,
        "parameters": [task.parameters] * n,
        "seed": np.array(task.seeds, np.int64),
        "horizon": np.full(n, problem.horizon),
        "loss": accumulated_loss(trace),
        "violation": hard_violation(trace),
        "soft_violation": soft_violation(trace),
        "largest_violation": trace.violation.max(axis=(1, 2), initial=0.0),
    }


@lru_cache(CACHED_PROBLEMS)
def problem_of(described: str) -> Any:
    """The problem that a task is about, from the text of its description."""
    said = json.loads(described)
    if "described" in said:
        return build(said["described"])
    _require_same_module(said)
    return problem_maker(said["module"])(**built(said["parameters"]))


def learner_of(said: Mapping[str, Any], problem: Any) -> Any:
    """The learner of a task, made for its problem."""
    if "described" in said:
        return build(said["described"])
    parameters = built(said["parameters"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakPrice)  # what it does is to be seen
        if "module" in said:
            _require_same_module(said)
            return own_learner(said["module"])(problem, **parameters)
        (kind,) = learners_of([said["learner"]])
        given = {**GIVEN.get(kind.__name__, {}), **parameters}
        return kind.for_problem(problem, **given)  # type: ignore[attr-defined]


def built(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with a value in the place of each description."""
    return {name: build(v) if isinstance(v, Mapping) else v for name, v in parameters.items()}


def _require_same_module(said: Mapping[str, Any]) -> None:
    module = said["module"].partition(":")[0]
    if module_digest(module) != said["digest"]:
        raise InvalidInput(f"this worker has another {module} than the one that sent the task")
