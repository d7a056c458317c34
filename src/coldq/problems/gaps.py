"""Rows and numbers that a table lacks: refused, filled with those before, or left out, as said."""

from __future__ import annotations

from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import InvalidInput
from coldq.problems.columns import Table, at

MISSING_ROW_STEPS = 1.5  # steps after the row before from which rows are missing in between
GAPS_ADVICE = (
    'gaps = "fill" would take what was before, gaps = "skip" would go on with the rows there are'
)
CLOCKS_ADVICE = (
    "; where clocks go back an hour comes twice: write times with their zone, as 02:00+01:00, or "
    "leave time out"
)


def slots_of(table: Table, gaps: str) -> tuple[np.ndarray, list[str]]:
    """Which row of the table each slot takes, and sentences on what is not as given."""
    rows, notes = np.arange(table.n_rows), list[str]()
    missing = np.zeros(table.n_rows, bool)
    for name, column in table.numbers.items():
        empty = np.isnan(column)
        if not empty.any():
            continue
        k = int(np.argmax(empty))
        if gaps == "refuse":
            place = f"column {name!r} has no number {at(k)}"
            raise InvalidInput(f"{table.name}: {place}; {GAPS_ADVICE}")
        if gaps == "fill":
            if k == 0:
                raise InvalidInput(
                    f"{table.name}: column {name!r} has no number in row 1, so that there is none "
                    'before it to fill it with; gaps = "skip" leaves such rows out'
                )
            notes.append(f"{name}: {int(empty.sum())} missing, each filled with the one before.")
        missing |= empty
    if gaps == "skip" and missing.any():
        rows = np.flatnonzero(~missing)
        notes.append(f"{int(missing.sum())} rows without all numbers are left out.")
    if table.times is None or len(rows) < 2:
        return rows, notes
    slots, late = _in_time(table, gaps, rows)
    if late:
        notes.append(late)
    return slots, notes


def _in_time(table: Table, gaps: str, rows: np.ndarray) -> tuple[np.ndarray, str]:
    """The rows in time, one after another; where some are missing, as the layout says."""
    times = table.times[rows]  # type: ignore[index]
    steps = np.diff(times)
    step = np.sort(steps)[len(steps) // 2]
    dated = steps.dtype.kind == "m"
    zero = np.timedelta64(0, "us") if dated else steps.dtype.type(0)
    if (steps <= zero).any():
        k = int(np.argmax(steps <= zero))
        again = " again" if steps[k] == zero else ", which is earlier"
        hour = np.timedelta64(1, "h")
        clocks = CLOCKS_ADVICE if dated and step <= hour and steps[k] > -hour else ""
        raise InvalidInput(
            f"{table.name}: times must rise from row to row, but after {_shown(times[k])} comes "
            f"{_shown(times[k + 1])} {at(int(rows[k + 1]))}{again}{clocks}"
        )
    away = steps / step
    odd = (away > MISSING_ROW_STEPS) | (away < 1.0 / MISSING_ROW_STEPS)
    if gaps == "skip" or not odd.any():
        return rows, ""
    early = away < 1.0 / MISSING_ROW_STEPS
    k = int(np.argmax(early if early.any() else away if gaps == "fill" else odd))
    pair = f"{_shown(times[k])} and {_shown(times[k + 1])} (row {int(rows[k + 1]) + 1})"
    if gaps == "refuse" or early.any():
        raise InvalidInput(
            f"{table.name}: rows are {_span(step)} apart, but {pair} are {_span(steps[k])} apart; "
            + ('gaps = "skip" would take the rows as they come' if early.any() else GAPS_ADVICE)
        )
    counts = np.rint(away)
    added = float(counts.sum()) - len(steps)
    if added > len(rows):
        raise InvalidInput(
            f"{table.name}: to fill the gaps, the longest between {pair}, {added:,.0f} slots would "
            f'be made up, more than the {len(rows):,} rows there are; gaps = "skip" would go on '
            "with those"
        )
    repeats = np.concatenate([counts.astype(np.int64), [1]])
    note = f"{int(added)} missing rows are filled with the row before."
    return np.repeat(rows, repeats), note


def _shown(time: Any) -> str:
    if isinstance(time, np.datetime64):
        text = str(time.astype("datetime64[us]").item())
        return text.removesuffix(" 00:00:00")
    return f"{time:.10g}"


def _span(step: Any) -> str:
    if not isinstance(step, np.timedelta64):
        return f"{step:.10g}"
    seconds = float(step / np.timedelta64(1, "s"))
    for size, unit in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= size:
            return f"{seconds / size:.6g} {unit if seconds != size else unit[:-1]}"
    return f"{seconds:.6g} seconds"


def filled(column: Array) -> Array:
    """A column with every missing number replaced by the one before it."""
    empty = np.isnan(column)
    if not empty.any():
        return column
    latest = np.maximum.accumulate(np.where(empty, 0, np.arange(len(column))))
    return column[latest]
