"""What a learner costs as a whole, against the same learner stepping with CVXPY."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import coldq
from benchmarks.clock import in_turns, timed
from benchmarks.families import HORIZON, Family, Moment
from benchmarks.modelled import LearnersStep, stepping_with
from coldq.learners.learner import QueueState
from coldq.slot.step import solve


@dataclass(frozen=True)
class WholeRun:
    """Medians, in seconds; the CVXPY run was timed on `slots` slots and extrapolated."""

    updates: int
    step: float  # the bare step of the same slots
    update: float
    update_cvxpy: float
    with_feedback: float  # an update, and its feedback from a user's arrays
    from_arrays: float  # the same by Feedback.from_arrays
    step_on_simplices: float
    update_on_simplices: float
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

    def with_feedback(moment: Moment) -> QueueState:
        H, y, A, b, slot = given[id(moment)]
        revealed = coldq.Feedback(coldq.LeastSquares(H, y), coldq.Affine(A, b), slot)
        return learner.update(moment.state, revealed)

    def from_arrays(moment: Moment) -> QueueState:
        H, y, A, b, slot = given[id(moment)]
        revealed = coldq.Feedback.from_arrays(H=H, y=y, A=A, b=b, slot=slot)
        return learner.update(moment.state, revealed)

    # The same parameters without a horizon, so that the learner also plays a shorter problem.
    untied = coldq.COLDQ(learner.domain, alpha=learner.alpha, eta=learner.eta, gamma=learner.gamma)
    whole, part = coldq.problems.TimeVarying(HORIZON), coldq.problems.TimeVarying(slots)

    def run(problem: coldq.problems.TimeVarying) -> coldq.Trace:
        return coldq.simulate(untied, problem, seeds=[0], progress=False)

    moments = family.spread(updates)
    given = {id(moment): _arrays(moment.feedback) for moment in moments}
    methods = [lambda moment: solve(*moment.slot), update, with_feedback, from_arrays]
    each = [*in_turns(methods, moments), *in_turns([update_with_cvxpy], moments)]
    totals = np.empty((rounds, 2))
    for k in range(rounds):
        totals[k, 0], _ = timed(run, whole)
        before = cvxpy_step.taken
        with stepping_with(cvxpy_step):
            totals[k, 1], _ = timed(run, part)
        if cvxpy_step.taken - before != slots:
            raise RuntimeError("COLDQ no longer takes its step where CVXPY was put in its place")
    step, ours, built, arrays, theirs = (
        float(np.median([seconds for seconds, _ in runs])) for runs in each
    )
    run_ours, run_part = map(float, np.median(totals, axis=0))
    run_theirs = run_part * HORIZON / slots
    return WholeRun(
        updates, step, ours, theirs, built, arrays, *on_simplices(updates), rounds, run_ours,
        run_theirs, slots,
    )  # fmt: skip


def on_simplices(updates: int) -> tuple[float, float]:
    """A step and an update on a product of three simplices of three, with two rows."""
    rng, domain = np.random.default_rng(0), coldq.Product(*[coldq.Simplex(3)] * 3)
    learner, p = coldq.COLDQ(domain, horizon=HORIZON), domain.dim
    state, moments = learner.init(2), []
    for t in range(1, updates + 1):
        rows = coldq.Affine(rng.random((2, p)), rng.uniform(0.8, 1.4, 2))
        feedback = coldq.Feedback(coldq.Linear(rng.normal(size=p)), rows, t)
        following = learner.update(state, feedback)
        slot = (state.x, feedback.loss.c, learner.alpha(state.t), following.queue, rows, domain)
        moments.append((state, feedback, slot))
        state = following
    methods = [lambda moment: solve(*moment[2]), lambda moment: learner.update(*moment[:2])]
    step, update = (
        float(np.median([seconds for seconds, _ in runs])) for runs in in_turns(methods, moments)
    )
    return step, update


def _arrays(feedback: Any) -> tuple[Any, ...]:
    """What a feed would deliver: arrays of its own that can be written to, and the slot."""
    loss, g = feedback.loss, feedback.constraint
    return *(np.array(a) for a in (loss.H, loss.y, g.A, g.b)), feedback.slot
