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
    refused,
    stack,
    table_at,
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
def size_of(row):
    size = 1
    for a in range(row[AXES]):
        size *= words(row[LENGTHS], row[AXES])[a]
    return size


@exact
def is_whole(kind, given, row):
    """Whether this is an array of float64, contiguous and writable."""
    if not is_array(kind, given) or not read_array(given, False, row):
        return False
    flags = words(given, HEAD + 7)[HEAD + 6]
    return flags & CONTIGUOUS != 0 and flags & WRITABLE != 0


@exact
def is_alike(one, other):
    """Whether two arrays have the same lengths."""
    alike = one[AXES] == other[AXES]
    for a in range(one[AXES] if alike else 0):
        alike = alike and words(one[LENGTHS], a + 1)[a] == words(other[LENGTHS], a + 1)[a]
    return alike


@exact
def put_down(numbers, into):
    for i in range(numbers.size):
        into[i] = numbers[i]


@exact
def enter_look(given, args, count):
    """1 if an array is of finite float64, whole and writable, else 0. Of four, rows and levels
    with room for both, if both are so and belong together; then they are kept there."""
    kind, objects = words(data_of(given), 1)[0], words(args, count)
    row = table_at(stack(), 4, FIELDS)
    if count != 1 and count != 4:
        return refused()
    for o in range(count):
        if not is_whole(kind, objects[o], row[o]):
            return boxed(0.0)
    for o in range((count + 1) // 2):
        if not has_finite(vector(row[o, DATA], size_of(row[o]))):
            return boxed(0.0)
    if count == 4:
        if row[0, AXES] != 2 or row[1, AXES] != 1 or not is_alike(row[0], row[2]):
            return boxed(0.0)
        if not is_alike(row[1], row[3]):
            return boxed(0.0)
        if words(row[0, LENGTHS], 1)[0] != words(row[1, LENGTHS], 1)[0]:
            return boxed(0.0)
        for o in range(2):
            source, copy = row[o], row[o + 2]
            numbers, place = vector(source[DATA], size_of(source)), copy[DATA]
            put_down(numbers, vector(place, numbers.size))
            words(objects[o + 2], HEAD + 7)[HEAD + 6] &= ~WRITABLE
    return boxed(1.0)


LOOK = Kernel(enter_look)


@cache
def look() -> Callable[..., Any]:
    """What Python calls."""
    return machine.function("look", LOOK.code().address, np.array([id(np.ndarray)]))
