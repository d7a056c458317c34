"""The system around a process: its cores, and calls in its forks."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

from coldq.base.errors import InvalidInput

# The share of the processors that a container may use, in version 2 of control groups and in 1.
QUOTA = Path("/sys/fs/cgroup/cpu.max")
OLDER_QUOTA = (
    Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
    Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
)
NO_LIMIT_CORES = 2**31


def cores() -> int:
    """How many cores this process may use: more threads than that only wait for each other."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, min(len(os.sched_getaffinity(0)), _quota()))
    return os.cpu_count() or 1


def thread_count() -> int:
    """How many threads share a large batch: ``COLDQ_THREADS``, else the cores we may use."""
    given = os.environ.get("COLDQ_THREADS")
    if given:
        if not given.isdigit() or int(given) < 1:
            raise InvalidInput(f"COLDQ_THREADS must be a whole number above 0, but is {given!r}")
        return int(given)
    return cores()


@cache
def _quota() -> int:
    """How many cores a container's limit is worth; where there is none, more than there are."""
    files = (QUOTA,) if QUOTA.exists() else OLDER_QUOTA
    try:
        given = " ".join(file.read_text() for file in files)
        time, period = (float(part) for part in given.replace("max", "inf").split())
    except (OSError, ValueError):
        return NO_LIMIT_CORES
    return math.ceil(time / period) if 0.0 < time < math.inf and period > 0.0 else NO_LIMIT_CORES


def in_every_fork(action: Callable[[], None]) -> Callable[[], None]:
    """Call a function in every fork of this process, where systems have forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=action)
    return action
