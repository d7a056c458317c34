"""Odd tables and layouts: an answer or a sentence, never a traceback.

The tests run a share of it; ``python -m tests.problems.fuzzed_tables --cases 5000`` more.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import coldq

SLOTS = 6
NAMES = ("price", "load", "when", "note", "cap")
ODD: Any = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.text(max_size=4),
    st.sampled_from(
        ["price", "load", "all", "*", "a", "b", "nan", "1e400", "1_0", "", "a *", b"x"]
    ),
    st.dates(),
    st.decimals(),
    st.lists(st.one_of(st.integers(-3, 3), st.sampled_from(["a", "b", "price"])), max_size=3),
    st.dictionaries(
        st.sampled_from(["a", "b", "c", "sum", "at_least", "scale"]),
        st.one_of(st.integers(-3, 3), st.sampled_from(["price", "load", "all"])),
        max_size=3,
    ),
)
CELLS = st.one_of(
    st.floats(0.0, 10.0), st.floats(0.0, 10.0), st.floats(allow_subnormal=True), st.integers(-9, 9),
    st.sampled_from([None, np.nan, np.inf, "", "7", "x", True, 1e308, Decimal("1.5"), 1 + 2j]),
)  # fmt: skip
TIMES = st.one_of(
    st.integers(0, 40),
    st.dates(datetime.date(2020, 1, 1), datetime.date(2020, 2, 1)).map(str),
    st.sampled_from(
        [None, "later", np.nan, np.inf, "2020-01-01T00:00:00+01:00", datetime.date.max]
    ),
)
BASE: dict[str, Any] = {
    "decide": {"a": [0, 5], "b": [0, 9]},
    "cost": {"a": "price", "b": 2},
    "rows": [{"sum": "all", "at_least": "load"}],
}
MORE: list[dict[str, Any]] = [
    {"time": "when"}, {"gaps": "fill"}, {"gaps": "skip"}, {"gain": "price"}, {"shares": "all"},
    {"shares": ["a", "b"], "total": 3}, {"least_squares": {"sum": "all", "to": "load"}},
    {"copies": 2}, {"rows": [{"capacity": {"scale": 1, "rate": 1}, "at_least": "load"}]},
    {"rows": [{"sum": {"a": "cap"}, "at_most": 5, "at_least": "load"}]},
    {"rows": [{"sum": "a", "equal": "load", "plus": "cap"}]}, {"time_format": "%Y"},
    {"decide": ["a", "b"], "between": [0, 2]}, {"cost": "*"},
]  # fmt: skip


@st.composite
def columns(draw: Any) -> dict[str, list[Any]]:
    """Columns, mostly sound: some are missing, short, or have odd cells."""
    found = {}
    for name in NAMES:
        length = draw(st.sampled_from([SLOTS] * 12 + [0, 1, 2, 5]))
        kind = draw(st.sampled_from(["sound"] * 4 + ["odd", "missing"]))
        if kind == "sound":
            cells = list(range(length)) if name == "when" else None
            usual = st.lists(st.floats(0.5, 9.0), min_size=length, max_size=length)
            found[name] = cells or draw(usual)
        elif kind == "odd":
            each = TIMES if name == "when" else CELLS
            found[name] = draw(st.lists(each, min_size=length, max_size=length))
    return found


@st.composite
def layouts(draw: Any) -> dict[str, Any]:
    """A layout, mostly sound: some keys are odd, some unknown."""
    found = dict(BASE)
    for more in draw(st.lists(st.sampled_from(MORE), max_size=3)):
        found |= more
    for key in draw(
        st.lists(st.sampled_from([*BASE, "time", "gaps", "shares", "costs"]), max_size=1)
    ):
        found[key] = draw(ODD)
    if draw(st.integers(0, 5)) == 0:
        key = draw(st.sampled_from(["sum", "at_least", "at_most", "plus", "capacity", "name"]))
        found["rows"] = [{"sum": "all", "at_least": "load", key: draw(ODD)}]
    return found


def as_kind(kind: str, found: dict[str, list[Any]], folder: Path) -> Any:
    """The columns as one of the kinds of table; as a mapping where such a table cannot be."""
    try:
        if kind == "pandas":
            return pd.DataFrame(found)
        if kind == "polars":
            return pl.DataFrame(found, strict=False)
        if kind == "arrow":
            return pa.table(found)
        if kind == "npz":
            np.savez(folder / "t.npz", **{name: np.array(c) for name, c in found.items()})
            return folder / "t.npz"
        if kind == "csv":
            width = max((len(cells) for cells in found.values()), default=0)
            lines = [",".join(found)]
            for k in range(width):
                lines.append(",".join(str(c[k]) if k < len(c) else "" for c in found.values()))
            (folder / "t.csv").write_text("\n".join(lines))
            return folder / "t.csv"
    except Exception:  # what pandas and the others refuse never reaches us
        pass
    return found


def answer_or_sentence(table: Any, layout: dict[str, Any]) -> str:
    """Play what can be made of it; anything but an answer and a sentence is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", coldq.UnlikelyUnits)
        warnings.simplefilter("ignore", coldq.Inexact)
        try:
            problem = coldq.problems.from_table(table, layout)
            trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, [0], progress=False)
        except coldq.Error as error:
            assert str(error)
            return "a sentence"
        assert np.isfinite(trace.loss).all()
        return "an answer"


def check(cases: int, same: bool = False) -> Any:
    """A test of so many tables, the `same` every time if so."""

    @settings(
        max_examples=cases, deadline=None, suppress_health_check=list(HealthCheck),
        derandomize=same,
    )  # fmt: skip
    @given(
        columns(), layouts(), st.sampled_from(["dict", "pandas", "polars", "arrow", "npz", "csv"])
    )
    def run(found: dict[str, list[Any]], layout: dict[str, Any], kind: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            counts[answer_or_sentence(as_kind(kind, found, Path(folder)), layout)] += 1

    counts = {"an answer": 0, "a sentence": 0}
    run()
    return counts


def check_texts(cases: int, same: bool = False) -> Any:
    """The same of files that may be anything at all."""

    @settings(
        max_examples=cases, deadline=None, suppress_health_check=list(HealthCheck),
        derandomize=same,
    )  # fmt: skip
    @given(
        st.one_of(
            st.binary(max_size=60), st.text('price,load;\t\n"#1.5 \r', max_size=80).map(str.encode)
        ),
        st.sampled_from([".csv", ".csv.gz", ".tsv", ".parquet", ".npz", ".toml"]),
    )
    def run(content: bytes, suffix: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"t{suffix}"
            path.write_bytes(content)
            keys = {} if suffix == ".toml" else BASE
            counts[answer_or_sentence(path, keys or None)] += 1  # type: ignore[arg-type]

    counts = {"an answer": 0, "a sentence": 0}
    run()
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=5000)
    asked = parser.parse_args().cases
    print("tables and layouts:", check(asked))
    print("files:", check_texts(asked))
