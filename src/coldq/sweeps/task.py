"""One task: a problem, a learner with its parameters, and some seeds; its result is a table."""

from __future__ import annotations

import json
import time
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np

from coldq.description import build
from coldq.errors import InvalidInput, WeakPrice
from coldq.experiments.named import GIVEN, learners_of, own_learner, own_problem
from coldq.metrics import accumulated_loss, hard_violation, soft_violation
from coldq.simulate import simulate
from coldq.sweeps.identity import canonical, module_digest
from coldq.tasks.library import library_digest

MEASURES = ("loss", "violation", "soft_violation", "largest_violation")
KEPT = 4  # problems that a worker keeps built


@dataclass(frozen=True)
class Task:
    """What a worker needs to know; plain data, so that any machine can be told it.

    `problem` and `learner` are described, or named by a user's module; `parameters` is what the
    table says of the learner's.
    """

    key: str
    title: str
    label: str
    parameters: str
    problem: Mapping[str, Any]
    learner: Mapping[str, Any]
    seeds: tuple[int, ...]
    library: str


@dataclass(frozen=True)
class Answer:
    """What came of a task: a table, as the bytes of a parquet file, or why there is none."""

    seconds: float
    table: bytes | None = None
    error: str | None = None
    traceback: str | None = None


def answer(task: Task) -> Answer:
    """The answer to a task; an error is one, too."""
    begun = time.perf_counter()
    try:
        table = run(task)
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        return Answer(time.perf_counter() - begun, None, words, traceback.format_exc())
    return Answer(time.perf_counter() - begun, table)


def run(task: Task) -> bytes:
    """A table with a row a seed, as the bytes of a parquet file: the same for the same task."""
    if task.library != library_digest():
        raise InvalidInput(
            "this worker has another version of coldq than the one that sent the task: install "
            "the same on all machines"
        )
    problem = problem_of(canonical(task.problem))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakPrice)  # what it does is to be seen
        learner = learner_of(task.learner, problem)
    trace = simulate(learner, problem, task.seeds, progress=False)
    n = len(task.seeds)
    return parquet(
        {
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
    )


def parquet(columns: Mapping[str, Any]) -> bytes:
    """Columns as the bytes of a parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = BytesIO()
    pq.write_table(pa.table(dict(columns)), file)
    return file.getvalue()


@lru_cache(KEPT)
def problem_of(described: str) -> Any:
    """The problem that a task is about, from the text of its description."""
    said = json.loads(described)
    if "module" in said:
        _require_same_module(said)
        return own_problem(said["module"])[1]
    return build(said["described"])


def learner_of(said: Mapping[str, Any], problem: Any) -> Any:
    """The learner of a task, made for its problem."""
    if "described" in said:
        return build(said["described"])
    parameters = {
        name: build(value) if isinstance(value, Mapping) else value
        for name, value in said["parameters"].items()
    }
    if "module" in said:
        _require_same_module(said)
        return own_learner(said["module"])(problem, **parameters)
    (kind,) = learners_of([said["learner"]])
    given = {**GIVEN.get(kind.__name__, {}), **parameters}
    return kind.for_problem(problem, **given)  # type: ignore[attr-defined]


def _require_same_module(said: Mapping[str, Any]) -> None:
    module = said["module"].partition(":")[0]
    if module_digest(module) != said["digest"]:
        raise InvalidInput(f"this worker has another {module} than the one that sent the task")
