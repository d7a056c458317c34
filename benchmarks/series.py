"""SelfTuning beside tuned rivals on series from files: ``python -m benchmarks.series X.toml``.

Each series is a demand for the pools of ``coldq.problems.Autoscale``, in units in which its peak
is that of the requests there; the prices are drawn as there. A table of the TOML file says where
one is::

    [bikes]
    path = "Bikeshare.csv"      # a CSV, or a Python file with the numbers in np.array([...])
    column = "bikers"           # its name, or its number from 0; without one the file is an array
    periods = [24, 168]         # slots of a day and of a week: the rivals are told, SelfTuning not

The series of docs/violation-rate-measured.md are files of packages on PyPI, of which nothing is
installed or kept here.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import coldq
from coldq.base.arrays import Array
from coldq.cli.compare import rates_of
from coldq.cli.tables import console
from coldq.cli.terminal import print_comparison, print_overall
from coldq.evaluation.compare import comparisons
from coldq.problems.autoscale import CAPACITIES
from coldq.problems.job_scheduling import request_trace
from coldq.problems.slots import WholeStream
from coldq.slot.constraints import Affine
from coldq.slot.losses import Linear


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Series(coldq.problems.Autoscale):
    """The pools of Autoscale for another demand, scaled so that the peak is the same."""

    title: str
    demand: Array
    periods: tuple[int, ...]

    def __init__(self, title: str, demand: Array, periods: Iterable[int] = ()) -> None:
        pools = coldq.problems.Autoscale()
        scaled = demand * (request_trace().max() / demand.max())
        self._set(
            horizon=len(demand), price_seed=pools.price_seed, domain=pools.domain, title=title,
            demand=scaled, periods=tuple(periods),
        )  # fmt: skip

    def start(self, seeds: Iterable[int]) -> WholeStream:
        """One stream; it is the same for all seeds."""
        return WholeStream(Linear(self._prices()), Affine(-CAPACITIES[None], -self.demand[:, None]))


def read_series(path: Path, column: str | int | None) -> Array:
    """The numbers of a column of a CSV, empty ones left out, or of the array in a Python file."""
    text = path.read_text(encoding="utf-8-sig")
    if column is None:
        found = re.search(r"np\.array\(\[([^\]]*)\]", text)
        if found is None:
            sys.exit(f"{path}: has no np.array([...]); column names the column of a CSV")
        return np.array([float(one) for one in found[1].split(",") if one.strip()])
    head, *rows = csv.reader(text.splitlines())
    if column not in head and not isinstance(column, int):
        sys.exit(f"{path}: has no column {column!r}; there are {', '.join(head)}")
    at = column if isinstance(column, int) else head.index(column)
    return np.array([float(row[at]) for row in rows if row and row[at].strip()])


def all_series(layout: Path) -> list[Series]:
    """The series of a TOML file; its paths begin where it lies."""
    keys: dict[str, Any] = tomllib.loads(layout.read_text(encoding="utf-8"))
    return [
        Series(
            title,
            read_series(layout.parent / one["path"], one.get("column")),
            one.get("periods", ()),
        )
        for title, one in keys.items()
    ]


def main() -> None:
    """Print a table for every series and rate, and the geometric mean over all of them."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.series", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("layout", type=Path, nargs="+", help="TOML files that name series")
    parser.add_argument("--rate", default="0.05,0.01", help="violation rates, commas between")
    arguments = parser.parse_args()
    shown, tables = console(), []
    rates = rates_of(arguments.rate)
    for series in (one for layout in arguments.layout for one in all_series(layout)):
        found = comparisons(series, None, rates, [0])
        for table in found:
            print_comparison(table)
        tables += found
    for table in tables:
        held = table.rivalry
        saved, low, high = held.saved
        shown.print(
            f"{table.title}, {100 * table.rate:g}%: SelfTuning {held.loss.mean():.5g} at "
            f"{100 * held.share:.2f}%, best rival {held.rival_loss.mean():.5g} at "
            f"{100 * held.rival_share:.2f}% ({held.rival}), ratio {1.0 - saved:.4f} "
            f"[{1.0 - high:.4f}, {1.0 - low:.4f}]",
            soft_wrap=True,
        )
    print_overall(tables)


if __name__ == "__main__":
    main()
