"""Time competitors in turns, so that a busy moment of the machine hits all of them alike."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

BLOCK = 20  # calls in a row before the next competitor's turn: long enough for warm caches
WARM_UP = 2  # untimed calls at the start of a turn


def timed(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """The seconds a call took and its result; garbage is collected off the clock."""
    gc.disable()
    begun = perf_counter()
    result = function(*arguments)
    seconds = perf_counter() - begun
    gc.enable()
    return seconds, result


def in_turns(
    functions: Sequence[Callable[[Any], Any]], cases: Sequence[Any]
) -> list[list[tuple[float, Any]]]:
    """Every function on every case, in blocks: for each function its ``(seconds, result)`` pairs.

    The order rotates from block to block, so that nobody always follows the same neighbour.
    """
    measured: list[list[tuple[float, Any]]] = [[] for _ in functions]
    order = list(range(len(functions)))
    for begin in range(0, len(cases), BLOCK):
        block = cases[begin : begin + BLOCK]
        for k in order:
            for case in block[:WARM_UP]:
                functions[k](case)
            measured[k] += [timed(functions[k], case) for case in block]
        order.append(order.pop(0))
    return measured
