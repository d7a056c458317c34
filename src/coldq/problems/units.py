"""Units that look wrong: a million times what stands beside them, or out of every reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import UnlikelyUnits, warn
from coldq.problems.columns import at
from coldq.slot.constraints import Affine, LogCapacity
from coldq.slot.losses import Linear

UNLIKELY_RATIO = 1e6  # of two sizes that stand side by side
UNREACHABLE_SHARE = 0.95  # of the slots, above which a limit out of reach is no bad luck
LIMIT_TOLERANCE = 1e-9  # relative, by which a limit may be missed: rounding alone


def doubt_units(problem: Any, table: str, columns: Mapping[str, Array], slots: np.ndarray) -> None:
    """Warn where something is a million times as large as what stands beside it.

    So too where a row's limit is beyond what the bounds of the decisions allow in nearly all slots.
    """
    for name, column in columns.items():
        size = np.abs(column)
        usual = float(np.median(size[size > 0.0])) if size.any() else 0.0
        k = int(np.argmax(size))
        if usual > 0.0 and size[k] >= UNLIKELY_RATIO * usual:
            _doubt(
                f"{table}: column {name!r} is {column[k]:.4g} {at(int(slots[k]))}, where "
                f"{usual:.4g} is usual"
            )
    box = problem.domain.box
    width = np.maximum(np.abs(box.lower), np.abs(box.upper))
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = _row_sizes(problem, table, width)
        _compare(table, "", sizes, "has a size of")
        if isinstance(problem.loss, Linear):
            costs = np.median(np.abs(problem.loss.c), axis=0) * width
            named = zip(problem.decisions, costs.tolist(), strict=True)
            _compare(table, "the cost of ", dict(named), "is up to")


def _row_sizes(problem: Any, table: str, width: Array) -> dict[str, float]:
    """How large the sum of each affine row, or its usual limit, can be; both should be alike."""
    sizes, rows = dict[str, float](), zip(problem.row_names, problem.tighten.sign, strict=True)
    box = problem.domain.box
    for part in getattr(problem.constraint, "parts", (problem.constraint,)):
        if isinstance(part, LogCapacity):
            name, _ = next(rows)
            most = (part.scale * np.log1p(part.rate * box.upper)).sum()
            _doubt_reach(f"{table}: {name} needs a capacity", -most, -part.demand, -1.0)
        if not isinstance(part, Affine):
            continue
        reach = np.median(np.atleast_2d((np.abs(part.A) * width).sum(axis=-1)), axis=0)
        limits = np.median(np.atleast_2d(np.abs(part.b)), axis=0)
        least = np.minimum(part.A * box.lower, part.A * box.upper).sum(axis=-1)
        for k, (far, limit) in enumerate(zip(reach.tolist(), limits.tolist(), strict=True)):
            name, sign = next(rows)
            ratio = limit / far if limit > 0.0 and far > 0.0 else 1.0
            if not 1.0 / UNLIKELY_RATIO < ratio < UNLIKELY_RATIO:
                _doubt(
                    f"{table}: {name} has limits of about {limit:.4g}, but its sum is at most "
                    f"about {far:.4g}"
                )
            else:
                side = -1.0 if sign < 0.0 or name.endswith(", at least") else 1.0
                _doubt_reach(f"{table}: {name} needs a sum", least[..., k], part.b[..., k], side)
            sizes[name.partition(", at ")[0]] = max(far, limit)
    return sizes


def _doubt_reach(row: str, least: Array, b: Array, side: float) -> None:
    """Warn if a row ``A x <= b`` has no decision in nearly all slots, A x being at least `least`.

    A and b have their signs turned where `side` is -1: the row was written as an at_least.
    """
    missed = least > b + LIMIT_TOLERANCE * (np.abs(b) + np.abs(least))
    if np.mean(missed) > UNREACHABLE_SHARE:
        near, far = ("at least", "at most") if side < 0.0 else ("at most", "at least")
        _doubt(
            f"{row} of {near} about {side * np.median(b):.4g}, but within the bounds of the "
            f"decisions it is {far} about {side * np.median(least):.4g}",
            f"out of reach in {int(missed.sum()):,} of {missed.size:,} slots",
        )


def _compare(table: str, what: str, sizes: Mapping[str, float], words: str) -> None:
    """Warn if the largest of some sizes is a million times the smallest."""
    known = {name: size for name, size in sizes.items() if size > 0.0}
    if len(known) < 2:
        return
    most, least = max(known, key=known.__getitem__), min(known, key=known.__getitem__)
    if known[most] >= UNLIKELY_RATIO * known[least]:
        _doubt(
            f"{table}: {what}{most} {words} {known[most]:.4g}, {what}{least} {words} "
            f"{known[least]:.4g}"
        )


def _doubt(sentence: str, why: str = "a million times apart") -> None:
    warn(f"{sentence}: {why}; are the units right?", UnlikelyUnits)
