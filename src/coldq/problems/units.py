"""Units that look wrong: something a million times as large as what stands beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coldq._values import Array
from coldq.constraints import Affine
from coldq.errors import UnlikelyUnits, warn
from coldq.losses import Linear
from coldq.problems.columns import at

FAR_APART = 1e6


def doubt_units(problem: Any, table: str, columns: Mapping[str, Array], slots: np.ndarray) -> None:
    """Warn where something is a million times as large as what stands beside it."""
    for name, column in columns.items():
        size = np.abs(column)
        usual = float(np.median(size[size > 0.0])) if size.any() else 0.0
        k = int(np.argmax(size))
        if usual > 0.0 and size[k] >= FAR_APART * usual:
            _doubt(
                f"{table}: column {name!r} is {column[k]:.4g} {at(int(slots[k]))}, where "
                f"{usual:.4g} is usual"
            )
    box = problem.domain.box
    width = np.maximum(np.abs(box.lower), np.abs(box.upper))
    with np.errstate(over="ignore"):
        sizes = _row_sizes(problem, table, width)
        _compare(table, "", sizes, "has a size of")
        if isinstance(problem.loss, Linear):
            costs = np.median(np.abs(problem.loss.c), axis=0) * width
            named = zip(problem.decisions, costs.tolist(), strict=True)
            _compare(table, "the cost of ", dict(named), "is up to")


def _row_sizes(problem: Any, table: str, width: Array) -> dict[str, float]:
    """How large the sum of each affine row, or its usual limit, can be; both should be alike."""
    sizes, names = dict[str, float](), iter(problem.row_names)
    for part in getattr(problem.constraint, "parts", (problem.constraint,)):
        if not isinstance(part, Affine):
            next(names, None)
            continue
        reach = np.median(np.atleast_2d((np.abs(part.A) * width).sum(axis=-1)), axis=0)
        limits = np.median(np.atleast_2d(np.abs(part.b)), axis=0)
        for far, limit, name in zip(reach.tolist(), limits.tolist(), names, strict=False):
            if limit > 0.0 and far > 0.0 and not 1.0 / FAR_APART < limit / far < FAR_APART:
                _doubt(
                    f"{table}: {name} has limits of about {limit:.4g}, but its sum is at most "
                    f"about {far:.4g}"
                )
            sizes[name.partition(", at ")[0]] = max(far, limit)
    return sizes


def _compare(table: str, what: str, sizes: Mapping[str, float], words: str) -> None:
    """Warn if the largest of some sizes is a million times the smallest."""
    known = {name: size for name, size in sizes.items() if size > 0.0}
    if len(known) < 2:
        return
    most, least = max(known, key=known.__getitem__), min(known, key=known.__getitem__)
    if known[most] >= FAR_APART * known[least]:
        _doubt(
            f"{table}: {what}{most} {words} {known[most]:.4g}, {what}{least} {words} "
            f"{known[least]:.4g}"
        )


def _doubt(sentence: str) -> None:
    warn(f"{sentence}: a million times apart; are the units right?", UnlikelyUnits)
