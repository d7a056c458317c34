"""What one update of each learner costs, against one of COLDQ's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import coldq
from benchmarks.clock import in_turns
from benchmarks.families import HORIZON, Family
from coldq.learners.card import WHOLE_CONSTRAINT
from coldq.slot.schedules import Power


@dataclass(frozen=True)
class LearnerCost:
    """The median seconds of one update, and what they should stay below, in updates of COLDQ."""

    name: str
    seconds: float
    times_coldq: float
    target: float | None


def measure(family: Family, updates: int) -> list[LearnerCost]:
    """Every learner on the same feedbacks, each from its own state in the middle of a run."""
    problem = coldq.problems.TimeVarying(HORIZON)
    learners: list[Any] = [
        family.learner,
        coldq.COLDQExpert.for_problem(problem),
        coldq.RECOO(problem.domain, alpha=Power(0.5, 0.5)),
        coldq.RECOO(problem.domain, alpha=Power(0.5, 0.5), reading="comparison"),
        coldq.Yi2021.for_problem(problem),
        coldq.Yi2023.for_problem(problem),
        coldq.SinhaVaze.for_problem(problem),
        coldq.OGD.for_problem(problem),
    ]
    feedbacks = [coldq.Feedback(m.feedback.loss, m.feedback.constraint)
                 for m in family.spread(updates)]  # fmt: skip
    calls = [_update(learner, feedbacks[:30]) for learner in learners]
    medians = [
        float(np.median([seconds for seconds, _ in runs])) for runs in in_turns(calls, feedbacks)
    ]
    return [
        LearnerCost(_name(learner), seconds, seconds / medians[0], _target(learner))
        for learner, seconds in zip(learners, medians, strict=True)
    ]


def _update(learner: Any, warm_up: list[coldq.Feedback]) -> Callable[[coldq.Feedback], Any]:
    state = learner.init(2)
    for feedback in warm_up:
        state = learner.update(state, feedback)
    return lambda feedback: learner.update(state, feedback)


def _name(learner: Any) -> str:
    detail = getattr(learner, "reading", None)
    if hasattr(learner, "n_experts"):
        detail = f"M = {learner.n_experts}"
    return type(learner).__name__ + (f", {detail}" if detail else "")


def _target(learner: Any) -> float | None:
    if hasattr(learner, "n_experts"):
        return 3.0
    return 1.5 if WHOLE_CONSTRAINT in learner.card.needs else None
