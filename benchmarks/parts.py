"""Where the time of one step goes, ours and DAQP's: ``python -m benchmarks.parts``.

CPU time, best of several turns, the same slots of F1 for all (p = 10, N = 2).
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

import daqp
import numpy as np

from benchmarks.batch import stack
from benchmarks.families import Slot, time_varying
from benchmarks.peers import DAQPRefilled
from coldq.slot.step import solve
from coldq.solver.api import newton_step
from coldq.solver.cascade import UNLIMITED_SYSTEMS
from coldq.solver.problem import zeros_of

SLOTS, TURNS = 300, 15


def each(call: Callable[[Any], Any], cases: list[Any]) -> float:
    """Microseconds of a call: the least of several turns through the cases."""
    least = np.inf
    for _ in range(TURNS):
        begun = process_time()
        for case in cases:
            call(case)
        least = min(least, process_time() - begun)
    return 1e6 * float(least) / len(cases)


def prepared(slot: Slot) -> tuple[Any, ...]:
    """All that the native step is given."""
    zeros = zeros_of(2)
    return (
        slot.center, slot.gradient, slot.alpha, zeros, slot.queue, zeros, slot.constraint.A,
        slot.constraint.b, slot.domain.lower, slot.domain.upper, UNLIMITED_SYSTEMS,
    )  # fmt: skip


def main() -> None:
    """Print a line a part."""
    slots = [moment.slot for moment in time_varying().spread(SLOTS)]
    kernel, together, theirs = newton_step, stack(slots), DAQPRefilled(slots[0])
    inside: list[float] = []

    def alone(slot: Slot) -> None:
        """DAQP's call with arrays that are ready, whatever is in them."""
        *_, told = daqp.solve(
            theirs.P, theirs.q, theirs.rows, theirs.at_most, theirs.at_least, eps_prox=1e-6
        )
        inside.append(told["solve_time"] + told["setup_time"])

    def refilled(slot: Slot) -> None:
        theirs.fill(slot)
        theirs.at_most[-theirs.N :] = slot.constraint.b
        alone(slot)

    lines = (
        ("coldq: a step as a learner makes it", each(lambda slot: solve(*slot), slots)),
        ("  its kernel, called from Python", each(lambda given: kernel(*given),
                                                  [prepared(slot) for slot in slots])),
        ("  its kernel, an instance of a batch", each(lambda _: solve(*together), [0]) / SLOTS),
        ("DAQP: arrays refilled and solved", each(refilled, slots)),
        ("  the refilling", each(theirs.fill, slots)),
        ("  inside its C code, as it says itself", 1e6 * float(np.median(inside))),
    )  # fmt: skip
    for what, took in lines:
        print(f"{what:42} {took:6.2f} us")


if __name__ == "__main__":
    main()
