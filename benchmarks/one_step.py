"""One step of one slot, called from Python: every method on the same slots of a run."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import coldq
from benchmarks.clock import in_turns
from benchmarks.families import Array, Family, Slot, objective
from benchmarks.modelled import RebuiltEachSlot, WithParameters
from benchmarks.peers import AFFINE_PEERS, EXACT, CapacityDual, OurPublicStep, OurStep
from coldq.slot.step import solve

WRONG = 1e-3  # the relative gap above which an answer is counted as wrong


@dataclass(frozen=True)
class Row:
    """What one method did: times in microseconds, relative objective gaps, failures."""

    method: str
    exact: bool
    microseconds: Array
    gaps: Array
    failures: int

    @property
    def median(self) -> float:
        return float(np.median(self.microseconds))

    @property
    def wrong(self) -> int:
        return int(np.sum(~(self.gaps <= WRONG)))


@dataclass(frozen=True)
class OneStep:
    """All methods on one family; the first row is our step as a learner makes it."""

    family: str
    binding: float  # the share of steps in which a row holds x back
    rows: list[Row]

    @property
    def ours(self) -> Row:
        return self.rows[0]

    def times_ours(self, row: Row) -> float:
        return row.median / self.ours.median

    def named(self, method: str) -> Row:
        return next(row for row in self.rows if row.method == method)

    @property
    def fastest_exact(self) -> Row:
        """The fastest of the exact solvers that got every step right."""
        right = (row for row in self.rows if row.exact and not row.failures and not row.wrong)
        return min(right, key=lambda row: row.median)


def measure(family: Family, steps: int) -> OneStep:
    """Time all methods that fit the family on `steps` slots of its run."""
    slots = [moment.slot for moment in family.spread(steps)]
    first = slots[0]
    methods: list[Any] = [OurStep(), OurPublicStep()]
    if isinstance(first.constraint, coldq.Affine):
        methods += [build(first) for build in AFFINE_PEERS]
    else:
        methods += [CapacityDual()]
    methods += [WithParameters(first), RebuiltEachSlot()]
    with warnings.catch_warnings():
        # An inaccurate answer is counted as a failure, so nobody needs to be warned of it.
        warnings.simplefilter("ignore")
        measured = in_turns([_attempt(method) for method in methods], slots)
    values = np.array(
        [[_value(*pair) for pair in zip(slots, runs, strict=True)] for runs in measured]
    )
    best = values.min(axis=0)
    gaps = (values - best) / np.maximum(1.0, np.abs(best))
    rows = [
        Row(
            method.name,
            isinstance(method, EXACT),
            1e6 * np.array([seconds for seconds, _ in runs]),
            gap,
            sum(not solved for _, (_, solved) in runs),
        )
        for method, runs, gap in zip(methods, measured, gaps, strict=True)
    ]
    binding = np.mean([solve(*slot).multipliers.any() for slot in slots])
    return OneStep(family.name, float(binding), rows)


def _value(slot: Slot, run: tuple[float, Any]) -> float:
    """The objective that a method reached, infinite where it gave no decision."""
    _, (x, _) = run
    reached = np.inf if x is None else objective(slot, x)
    return np.inf if np.isnan(reached) else reached


def _attempt(method: Callable[[Slot], Any]) -> Callable[[Slot], tuple[Array | None, bool]]:
    """The method, with an exception counted as a failure."""

    def run(slot: Slot) -> tuple[Array | None, bool]:
        try:
            return method(slot)
        except Exception:  # whatever a solver raises, the others go on
            return None, False

    return run
