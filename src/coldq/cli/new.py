"""``coldq new``: a table and its TOML that run, to be replaced by one's own."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from coldq.base.errors import InvalidInput
from coldq.base.files import whole_file

EXAMPLE_SLOTS = 336  # two weeks of hours
LAYOUT_TEMPLATE = """\
# What the columns of {name}.csv mean. `coldq compare {name}.toml` plays learners on it.
# The numbers are made up: put your own table beside this file, and change the names below.
about = "Made-up loads, sun and prices of two weeks, by the hour."
time = "time"                    # leave it out if there is no such column
gaps = "refuse"                  # missing rows or numbers; or "fill" with those before, or "skip"

# What is decided every hour, and between which bounds: here megawatts from three sources.
decide = {{grid = [0, 80], battery = [0, 20], diesel = [0, 60]}}

# What a unit costs: a number, or the name of a column.
cost = {{grid = "grid_price", battery = 28, diesel = "diesel_price"}}

# What must hold, as often as possible; as many [[rows]] as you like.
[[rows]]
sum = "all"                      # or names, ["grid", "diesel"], or factors, {{grid = 0.9}}
plus = "sun"                     # comes on top, whatever is decided; leave it out if nothing does
at_least = "load"                # or at_most, or equal: a column, a number, or columns to add up

[[rows]]
sum = "grid"
at_most = "line_limit"           # a bound that changes is a row
"""


def write_example(folder: str | Path) -> Path:
    """Write an example into a new folder and return its TOML; what is there is not overwritten.

    >>> import tempfile, coldq
    >>> from coldq.cli.new import write_example
    >>> coldq.problems.from_table(write_example(tempfile.mkdtemp() + "/power"))
    FromTable(power: 336 slots, 3 decisions, 2 rows)
    """
    folder = Path(folder)
    name = folder.name
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise InvalidInput(
            f"a new problem's name has letters, digits, - and _, such as my-load, but is {name!r}"
        )
    try:
        taken = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be looked at: {error.strerror}") from None
    if taken:
        raise InvalidInput(f"{folder} is there already, and nothing in it was changed")
    with whole_file(folder / f"{name}.csv") as path:
        path.write_text(_table(), encoding="utf-8")
    layout = folder / f"{name}.toml"
    with whole_file(layout) as path:
        path.write_text(LAYOUT_TEMPLATE.format(name=name), encoding="utf-8")
    return layout


def _table() -> str:
    """Two weeks of hours: a load with days and noise, sun, prices that follow the load."""
    rng, hours = np.random.default_rng(7), np.arange(EXAMPLE_SLOTS)
    day = 2.0 * np.pi * hours / 24.0
    noise = np.zeros((3, EXAMPLE_SLOTS))
    for t in range(1, EXAMPLE_SLOTS):
        noise[:, t] = 0.9 * noise[:, t - 1] + rng.standard_normal(3)
    load = 70.0 + 15.0 * np.sin(day - 2.0) + 2.0 * noise[0]
    sun = np.maximum(20.0 * np.sin(day - np.pi / 2.0) + 2.0 * noise[1], 0.0)
    price = np.maximum(0.6 * load - 0.4 * sun + 2.0 * noise[2], 1.0)
    limit = np.where(hours % 24 < 6, 60.0, 75.0)
    begin = datetime(2024, 3, 1)
    lines = ["time,load,sun,grid_price,diesel_price,line_limit"]
    for k in hours.tolist():
        stamp = (begin + timedelta(hours=k)).isoformat(" ", "minutes")
        diesel = 55.0 + 5.0 * (k // 168)
        cells = (load[k], sun[k], price[k], diesel, limit[k])
        lines.append(",".join([stamp, *(f"{cell:.2f}" for cell in cells)]))
    return "\n".join(lines) + "\n"
