"""Late, lost and doubled feedback: what is drawn is what happens, and what it costs is printed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import coldq
from coldq.evaluation.disturbed import Disturbance, play

PROBLEM = coldq.problems.TimeVarying(horizon=300)
LEARNER = coldq.COLDQ.for_problem(PROBLEM)


def test_undisturbed_it_is_simulate_and_doubled_messages_change_nothing() -> None:
    trace = coldq.simulate(LEARNER, PROBLEM, seeds=[4])
    for disturbance in (Disturbance(), Disturbance(doubled=0.3)):
        loss, violation, skipped, repeated = play(LEARNER, PROBLEM, 4, disturbance)
        assert np.array_equal(loss, trace.loss[0])
        assert np.array_equal(violation, trace.violation[0])
        assert skipped == 0 and (repeated > 50) == (disturbance.doubled > 0.0)


def test_lost_feedback_is_skipped_and_late_feedback_counts() -> None:
    _, _, skipped, _ = play(LEARNER, PROBLEM, 4, Disturbance(lost=0.2))
    assert 30 <= skipped <= 90  # 60 expected of 300, 4.3 standard deviations each way
    loss, _, skipped, _ = play(LEARNER, PROBLEM, 4, Disturbance(delay=20))
    calm = coldq.simulate(LEARNER, PROBLEM, seeds=[4]).loss.sum()
    assert skipped == 0 and calm < loss.sum() < 10.0 * calm


@pytest.mark.parametrize("odd", [{"delay": -1}, {"lost": 1.0}, {"doubled": -0.1}, {"delay": 5000}])
def test_odd_disturbances_are_refused(odd) -> None:
    with pytest.raises(coldq.InvalidInput):
        Disturbance(**odd)


def test_the_command_prints_a_table_for_each_problem() -> None:
    command = [sys.executable, "-m", "coldq", "agent", "rehearse", "--seeds", "1"]
    done = subprocess.run(
        [*command, "--horizon", "40"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for words in ("TimeVarying", "Autoscale", "up to 20 late, 5% lost, 5% doubled", "SelfTuning"):
        assert words in done.stdout
