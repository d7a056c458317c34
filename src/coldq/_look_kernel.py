"""One look at arrays that a user gives: whether they are as most come, and all numbers finite."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from coldq.compiled import Kernel, compiled, exact, machine, vector
from coldq.compiled.calls import (
    AXES,
    CONTIGUOUS,
    DATA,
    FIELDS,
    HEAD,
    LENGTHS,
    boxed,
    data_of,
    is_array,
    read_array,
    stack,
    words,
)  # fmt: skip

WRITABLE = 0x0400


@compiled
def has_finite(numbers):
    """Whether no entry is NaN or infinite."""
    total = 0.0
    for i in range(numbers.size):
        total += 0.0 * numbers[i]
    return total == 0.0


@exact
def enter_look(given, args, count):
    """1 if every argument is an array of finite float64, whole and writable, else 0."""
    kind, objects, row = words(data_of(given), 1)[0], words(args, count), words(stack(), FIELDS)
    for o in range(count):
        if not is_array(kind, objects[o]) or not read_array(objects[o], False, row):
            return boxed(0.0)
        flags = words(objects[o], HEAD + 7)[HEAD + 6]
        if flags & CONTIGUOUS == 0 or flags & WRITABLE == 0:
            return boxed(0.0)
        size = 1
        for a in range(row[AXES]):
            size *= words(row[LENGTHS], row[AXES])[a]
        if not has_finite(vector(row[DATA], size)):
            return boxed(0.0)
    return boxed(1.0)


LOOK = Kernel(enter_look)


@cache
def look() -> Callable[..., Any]:
    """What Python calls."""
    return machine.function("look", LOOK.code().address, np.array([id(np.ndarray)]))
