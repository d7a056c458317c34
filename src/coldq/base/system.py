"""What the system gives a process: cores, which file a name leads to, what its forks have to do."""

from __future__ import annotations

import ctypes
import math
import os
import struct
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

# The share of the processors that a container may use, in version 2 of control groups and in 1.
QUOTA = Path("/sys/fs/cgroup/cpu.max")
OLDER_QUOTA = (
    Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
    Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
)
NO_LIMIT = 2**31

HERE, NUMBER_AND_SIZE = -100, 0x300  # AT_FDCWD, STATX_INO and STATX_SIZE, of Linux's statx
Found = ctypes.c_char * 256  # what it fills
PLACES = struct.Struct("=32xQQ88xII")  # where it puts the file's number, its size, and its device


def cores() -> int:
    """How many cores this process may use: more threads than that only wait for each other."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, min(len(os.sched_getaffinity(0)), _quota()))
    return os.cpu_count() or 1


@cache
def _quota() -> int:
    """How many cores a container's limit is worth; where there is none, more than there are."""
    files = (QUOTA,) if QUOTA.exists() else OLDER_QUOTA
    try:
        given = " ".join(file.read_text() for file in files)
        time, period = (float(part) for part in given.replace("max", "inf").split())
    except (OSError, ValueError):
        return NO_LIMIT
    return math.ceil(time / period) if 0.0 < time < math.inf and period > 0.0 else NO_LIMIT


def which_file(name: bytes) -> tuple[int, ...]:
    """The number of a file and that of its device, which no other file has while it is there."""
    return which_and_size(name)[0]


def which_and_size(name: bytes) -> tuple[tuple[int, ...], int]:
    """Which file a name leads to, and the size of that in bytes.

    Its times are not asked for, where that can be: since Linux 6.13 whoever does, as `os.stat`,
    makes the next write to the file note a finer one, which adds a third to what a commit takes.
    """
    statx, found = _statx(), Found()
    if statx is not None and statx(HERE, name, 0, NUMBER_AND_SIZE, found) == 0:
        number, size, *device = PLACES.unpack_from(found)
        return (number, *device), size
    status = Path(os.fsdecode(name)).stat()  # also says why it is not to be found
    return (status.st_ino, status.st_dev), status.st_size


@cache
def _statx() -> Any:
    """Linux's call of this name; None where there is none."""
    if sys.platform != "linux":
        return None
    statx = getattr(ctypes.CDLL(None), "statx", None)
    if statx is not None:
        text, number = ctypes.c_char_p, ctypes.c_int
        statx.argtypes = (number, text, number, ctypes.c_uint, text)
    return statx


def in_every_fork(action: Callable[[], None]) -> Callable[[], None]:
    """Have it called in whatever forks from this process, where systems have forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=action)
    return action
