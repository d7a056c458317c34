"""A share of what the suites kill-agent, damage-logs and fuzz of ``make check`` do."""

from __future__ import annotations

import subprocess
import sys

from tests.agent import stateful
from tests.agent.damaged_logs import damage_again_and_again


def test_an_agent_killed_at_work_loses_nothing_and_counts_nothing_twice() -> None:
    command = [sys.executable, "-m", "tests.agent.kills", "--kills", "5", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "none missing, none twice, the same bits as undisturbed" in done.stdout


def test_an_agent_does_what_a_model_of_few_lines_does() -> None:
    stateful.check(cases=25)


def test_a_damaged_log_is_refused_or_right_and_a_torn_tail_opens() -> None:
    assert "none older" in damage_again_and_again(20, seed=2)
