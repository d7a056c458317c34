"""What a learner costs as a whole, against the same learner stepping with CVXPY."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import coldq
from benchmarks.clock import in_turns, timed
from benchmarks.families import HORIZON, Family, Moment
from benchmarks.modelled import LearnersStep, stepping_with
from coldq.learners.learner import QueueState


@dataclass(frozen=True)
class WholeRun:
    """Medians, in seconds; the CVXPY run was timed on `slots` slots and extrapolated."""

    updates: int
    update: float
    update_cvxpy: float
    rounds: int
    run: float
    run_cvxpy: float
    slots: int


def measure(family: Family, updates: int, slots: int, rounds: int) -> WholeRun:
    """Time updates at moments spread over the family's run, and whole simulated runs."""
    learner = family.learner
    cvxpy_step = LearnersStep(family.moments[0].slot)

    def update(moment: Moment) -> QueueState:
        return learner.update(moment.state, moment.feedback)

    def update_with_cvxpy(moment: Moment) -> QueueState:
        with stepping_with(cvxpy_step):
            return learner.update(moment.state, moment.feedback)

    # The same parameters without a horizon, so that the learner also plays a shorter problem.
    untied = coldq.COLDQ(learner.domain, alpha=learner.alpha, eta=learner.eta, gamma=learner.gamma)
    whole, part = coldq.problems.TimeVarying(HORIZON), coldq.problems.TimeVarying(slots)

    def run(problem: coldq.problems.TimeVarying) -> coldq.Trace:
        return coldq.simulate(untied, problem, seeds=[0], progress=False)

    each = in_turns([update, update_with_cvxpy], family.spread(updates))
    totals = np.empty((rounds, 2))
    for k in range(rounds):
        totals[k, 0], _ = timed(run, whole)
        before = cvxpy_step.taken
        with stepping_with(cvxpy_step):
            totals[k, 1], _ = timed(run, part)
        if cvxpy_step.taken - before != slots:
            raise RuntimeError("COLDQ no longer takes its step where CVXPY was put in its place")
    ours, theirs = (float(np.median([seconds for seconds, _ in runs])) for runs in each)
    run_ours, run_part = map(float, np.median(totals, axis=0))
    return WholeRun(updates, ours, theirs, rounds, run_ours, run_part * HORIZON / slots, slots)
