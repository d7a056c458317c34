"""Problems from tables: the same numbers as written in Python, and a sentence for what is wrong."""

from __future__ import annotations

import gzip
import json
import re
import warnings
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import coldq
from coldq.problems import Autoscale, Dispatch, JobScheduling, from_table
from coldq.problems.columns import read_table
from coldq.problems.dispatch import october_2016
from coldq.problems.job_scheduling import request_trace
from coldq.problems.nyiso import ZONES

AUTOSCALE = """
time = "minute"
decide = {reserved = [0, 20], on_demand = [0, 60], spot = [0, 100]}
cost = {reserved = 6, on_demand = 12, spot = "spot price"}
[[rows]]
sum = {reserved = 8, on_demand = 10, spot = 12}
at_least = "requests"
"""
JOBS = """
decide = {zones}
between = [0, 1000]
copies = 10
cost = "*"
[[rows]]
capacity = {{scale = 4, rate = 4}}
at_least = "jobs"
"""
TWO = {"decide": {"grid": [0, 9], "diesel": [0, 9]}, "cost": {"grid": "price", "diesel": 3.5}}
LOAD = {"sum": "all", "at_least": "load"}
SMALL = {"price": [3.0, 2.0, 4.0], "load": [5.0, 7.0, 6.0]}


def write_csv(path: Path, columns: dict[str, np.ndarray]) -> None:
    """Every number with all its digits."""
    names = ",".join(f'"{name}"' for name in columns)
    cells = [np.asarray(column).tolist() for column in columns.values()]
    lines = [",".join(map(repr, row)) for row in zip(*cells, strict=True)]
    path.write_text("\n".join([names, *lines]) + "\n")


def autoscale(folder: Path) -> coldq.problems.FromTable:
    """The web servers, as a CSV file with a TOML beside it."""
    prices = Autoscale()._prices()[:, 2]
    minutes = 5.0 * np.arange(len(prices))
    columns = {"spot price": prices, "requests": request_trace(), "minute": minutes}
    write_csv(folder / "web.csv", columns)
    (folder / "web.toml").write_text(AUTOSCALE)
    return from_table(folder / "web.toml")


def dispatch(folder: Path) -> coldq.problems.FromTable:
    """New York's zones, as a parquet file; the TOML says what a zone can make."""
    columns = {f"load {z}": october_2016("load")[:, k] for k, z in enumerate(ZONES)}
    columns |= {f"price {z}": october_2016("lbmp")[:, k] for k, z in enumerate(ZONES)}
    pq.write_table(pa.table(columns), folder / "state.parquet")
    tops = Dispatch().domain.upper.tolist()
    bounds = ", ".join(f'"{zone}" = [0, {top!r}]' for zone, top in zip(ZONES, tops, strict=True))
    (folder / "state.toml").write_text(f"""
decide = {{{bounds}}}
cost = "price *"
rows = [
  {{sum = "all", at_least = {[f"load {zone}" for zone in ZONES]}}},
  {{sum = ["LONGIL", "N.Y.C."], plus = 3500, at_least = ["load LONGIL", "load N.Y.C."]}},
  {{sum = "N.Y.C.", plus = 2500, at_least = "load N.Y.C."}},
]""")
    return from_table(folder / "state.parquet")


def jobs(folder: Path, seed: int) -> coldq.problems.FromTable:
    """The data centres with the arrivals of one seed, as arrays."""
    ours = JobScheduling()
    columns = {zone: ours.prices.values[:, k] for k, zone in enumerate(ours.prices.zones)}
    arrivals = ours.start([seed]).constraint.demand[:, 0]
    np.savez(folder / "jobs.npz", jobs=arrivals, **columns)  # type: ignore[arg-type]
    (folder / "jobs.toml").write_text(JOBS.format(zones=list(ours.prices.zones)))
    return from_table(folder / "jobs.npz")


@pytest.mark.parametrize("make", [autoscale, dispatch])
def test_the_built_in_problems_as_tables_are_the_same_to_the_last_bit(make, tmp_path) -> None:
    mine = make(tmp_path)
    ours = Autoscale() if make is autoscale else Dispatch()
    assert mine.horizon == ours.horizon
    assert mine.domain == ours.domain
    assert mine.constants == ours.constants
    mine_stream, ours_stream = mine.start([0]), ours.start([0])
    x = np.zeros(mine.domain.dim)
    for t in range(1, mine.horizon + 1):
        here, there = mine_stream.reveal(t, x), ours_stream.reveal(t, x)
        assert (here.loss, here.constraint) == (there.loss, there.constraint)
    short = from_table(next(tmp_path.glob("*.toml")), horizon=120)
    for learner in (
        coldq.COLDQ.for_problem(type(ours)(120)),
        coldq.SelfTuning(ours.domain, 0.05),
        coldq.RECOO.for_problem(type(ours)(120)),
    ):
        runs = [
            coldq.simulate(learner, p, [0], keep=["decisions"]) for p in (short, type(ours)(120))
        ]
        assert np.array_equal(runs[0].decisions, runs[1].decisions)
        assert np.array_equal(runs[0].loss, runs[1].loss)
        assert np.array_equal(runs[0].constraint, runs[1].constraint)
    h = np.array(0.25)
    for t in (1, 7):
        there = ours_stream.reveal(t, x).constraint
        usual = ours.tighten if make is dispatch else lambda g, h: g.tightened(h * np.abs(g.b))
        assert np.array_equal(mine.tighten(there, h).b, usual(there, h).b)


def test_the_jobs_of_one_seed_as_a_table_are_the_same_to_the_last_bit(tmp_path) -> None:
    mine, ours = jobs(tmp_path, 3), JobScheduling()
    assert mine.domain == ours.domain
    here, there = mine.constants, ours.constants
    assert here.gradient_bound == there.gradient_bound
    assert here.constraint_lipschitz == there.constraint_lipschitz
    assert here.constraint_bound <= there.constraint_bound  # which is for every seed
    mine_stream, ours_stream = mine.start([3]), ours.start([3])
    for t in range(1, mine.horizon + 1):
        a, b = mine_stream.reveal(t, np.zeros(100)), ours_stream.reveal(t, np.zeros(100))
        assert a.loss == b.loss
        assert a.constraint.demand == b.constraint.demand[0]
    short = from_table(tmp_path / "jobs.toml", horizon=60)
    learner = coldq.COLDQ.for_problem(JobScheduling(60))
    runs = [coldq.simulate(learner, p, [3], keep=["decisions"]) for p in (short, JobScheduling(60))]
    assert np.array_equal(runs[0].decisions, runs[1].decisions)
    assert np.array_equal(runs[0].loss, runs[1].loss)


def test_every_kind_of_table_is_the_same_problem_whatever_its_columns_order(
    tmp_path,
) -> None:
    layout = TWO | {"rows": [LOAD]}
    first = from_table(SMALL, layout)
    turned = dict(reversed(SMALL.items())) | {"note": ["a", "b", "c"]}
    frame = pd.DataFrame(turned, index=[7, 3, 5])
    frame.to_csv(tmp_path / "small.csv", index=False)
    with gzip.open(tmp_path / "packed.csv.gz", "wt") as file:
        file.write((tmp_path / "small.csv").read_text().replace(",", ";"))
    frame.to_parquet(tmp_path / "small.parquet")
    np.savez(tmp_path / "small.npz", **SMALL)
    for table in (
        frame,
        frame.convert_dtypes(),
        pl.DataFrame(turned),
        pl.DataFrame(turned).lazy(),
        pa.table(turned),
        {name: pd.Series(column) for name, column in turned.items()},
        tmp_path / "small.csv",
        str(tmp_path / "packed.csv.gz"),
        tmp_path / "small.parquet",
        tmp_path / "small.npz",
    ):
        again = from_table(table, layout)
        assert (again.loss, again.constraint) == (first.loss, first.constraint)
        assert again.domain == first.domain


def test_frames_of_other_libraries_are_taken_through_narwhals() -> None:
    frame = pd.DataFrame(SMALL)
    twice = pd.concat([frame, frame["load"].rename("note"), frame["load"].rename("note")], axis=1)
    for table in (
        duckdb.sql("select * from frame"),
        twice,  # two columns of a name that nobody asks for
        pa.Table.from_arrays([pa.array(twice.iloc[:, k]) for k in range(4)], list(twice.columns)),
        pa.table(frame).to_batches()[0],
    ):
        assert from_table(table, TWO, rows=LOAD) == from_table(SMALL, TWO, rows=LOAD)
    with pytest.raises(coldq.InvalidInput, match="2 columns are called 'note'"):
        from_table(twice, TWO, rows={"sum": "all", "at_least": "note"})


def test_a_key_that_is_none_is_left_out() -> None:
    none = {"gain": None, "shares": None, "total": None, "copies": None, "rows": [LOAD]}
    found, said = from_table(SMALL, TWO | none), from_table(SMALL, TWO, rows=LOAD)
    assert (found.loss, found.constraint) == (said.loss, said.constraint)


def test_keys_given_as_arguments_go_before_those_of_the_file(tmp_path) -> None:
    write_csv(tmp_path / "a.csv", SMALL)  # type: ignore[arg-type]
    (tmp_path / "a.toml").write_text('decide = {grid = [0, 9]}\ncost = "price"\n')
    assert from_table(tmp_path / "a.csv").n_constraints == 0
    assert from_table(tmp_path / "a.csv", rows=[LOAD]).n_constraints == 1
    (tmp_path / "b.toml").write_text('table = "a.csv"\ndecide = {grid = [0, 9]}\ncost = "load"\n')
    assert from_table(tmp_path / "b.toml").loss.c.ravel().tolist() == SMALL["load"]


def test_a_problem_is_called_as_the_file_that_was_named_for_it(tmp_path) -> None:
    write_csv(tmp_path / "A.CSV", SMALL)  # type: ignore[arg-type]
    (tmp_path / "A.toml").write_text('decide = {grid = [0, 9]}\ncost = "price"\n')
    for name in ("b", "c.d"):
        toml = 'table = "A.CSV"\ndecide = {grid = [0, 9]}\ncost = "load"\n'
        (tmp_path / f"{name}.toml").write_text(toml)
        assert from_table(tmp_path / f"{name}.toml").title == name
    assert from_table(tmp_path / "A.CSV").title == "A"  # and its TOML was found
    (tmp_path / "A.CSV.GZ").write_bytes(gzip.compress((tmp_path / "A.CSV").read_bytes()))
    assert from_table(tmp_path / "A.CSV.GZ").loss == from_table(tmp_path / "A.CSV").loss
    assert from_table(SMALL, tmp_path / "A.toml").title == "the table"


def test_least_squares_gains_and_both_are_what_they_say() -> None:
    squares = {"sum": {"grid": 2.0, "diesel": "price"}, "to": "load"}
    decide = {"grid": [0, 9], "diesel": [0, 9]}
    near = from_table(SMALL, decide=decide, least_squares=squares)
    both = from_table(SMALL, decide=decide, least_squares=[squares], cost="price", gain=1.0)
    x = np.array([1.5, 0.25])
    for k in range(3):
        price, load = SMALL["price"][k], SMALL["load"][k]
        miss = 0.5 * (2.0 * x[0] + price * x[1] - load) ** 2
        here = near.start([0]).reveal(k + 1, x).loss
        assert here.value(x) == pytest.approx(miss)
        here = both.start([0]).reveal(k + 1, x).loss
        assert here.value(x) == pytest.approx(miss + (price - 1.0) * x.sum())


def test_rows_of_every_kind_have_the_sign_that_their_words_say() -> None:
    problem = from_table(
        SMALL,
        TWO,
        rows=[
            {"sum": {"grid": "price"}, "at_most": 20.0, "at_least": "load"},
            {"name": "served", "capacity": {"scale": 2.0, "rate": {"grid": 1.0}}, "at_least": 3},
            {"sum": ["grid", "diesel"], "plus": 1.0, "equal": ["load", "price"]},
            {"sum": "grid", "plus": "price", "at_least": "load"},
        ],
    )
    x = np.array([2.0, 4.0])
    g = problem.start([0]).reveal(3, x).constraint.value(x)
    served = 2.0 * np.log1p(2.0)
    assert g == pytest.approx(
        [8.0 - 20.0, 6.0 - 8.0, 3.0 - served, 7.0 - 10.0, 10.0 - 7.0, 6.0 - 6.0]
    )
    assert problem.row_names == (
        "constraint 1, at most", "constraint 1, at least", "'served'", "constraint 3, at most",
        "constraint 3, at least", "constraint 4",
    )  # fmt: skip
    tight = problem.tighten(problem.start([0]).reveal(3, x).constraint, np.array(0.5)).value(x)
    assert tight - g == pytest.approx([10.0, 3.0, 1.5, 0.0, 0.0, 1.0])  # equalities stay


def test_shares_are_simplices() -> None:
    stocks = {"a": [0.1, -0.2, 0.0], "b": [0.0, 0.1, 0.2], "c": [0.0, 0.0, 0.1]}
    whole = from_table(stocks, decide=["a", "b", "c"], shares="all", gain="*")
    assert whole.domain == coldq.Simplex(3)
    capped = from_table(stocks, decide=["a", "b", "c"], between=[0, 0.5], shares="all", gain="*")
    assert capped.domain == coldq.Simplex(3, cap=0.5)
    part = from_table(
        stocks, decide={"a": [0, 3], "b": [0, 2], "c": [1, 4]}, shares=["b", "c"], total=4.0,
        gain="*",
    )  # fmt: skip
    assert part.domain.contains([3.0, 1.0, 3.0])
    assert not part.domain.contains([3.0, 3.0, 1.0])
    assert not part.domain.contains([3.0, 1.0, 2.0])
    trace = coldq.simulate(coldq.COLDQ.for_problem(part), part, [0], keep=["decisions"])
    assert trace.decisions is not None
    assert part.domain.contains(trace.decisions[0], 1e-9).all()


def test_gaps_are_refused_filled_or_skipped_as_said() -> None:
    table = {
        "when": ["2024-01-01", "2024-01-02", "2024-01-05", "2024-01-06"],
        "price": [1.0, 2.0, None, 4.0],
    }
    keys = {"decide": {"grid": [0, 9]}, "cost": "price", "time": "when"}
    with pytest.raises(coldq.InvalidInput, match="'price' has no number in row 3; gaps"):
        from_table(table, keys)
    filled = from_table(table, keys, gaps="fill")
    assert filled.loss.c.ravel().tolist() == [1.0, 2.0, 2.0, 2.0, 2.0, 4.0]
    assert any("2 missing rows" in words for words in filled.provenance)
    skipped = from_table(table, keys, gaps="skip")
    assert skipped.loss.c.ravel().tolist() == [1.0, 2.0, 4.0]
    whole = table | {"price": [1.0, 2.0, 3.0, 4.0]}
    with pytest.raises(coldq.InvalidInput, match="1 day apart, but 2024-01-02 and 2024-01-05"):
        from_table(whole, keys)
    with pytest.raises(coldq.InvalidInput, match="no number in row 1"):
        from_table(whole | {"price": [None, 2.0, 3.0, 4.0]}, keys, gaps="fill")
    far = whole | {"when": ["2024-01-01", "2024-01-02", "2024-01-03", "2124-01-06"]}
    with pytest.raises(coldq.InvalidInput, match="slots would be made up"):
        from_table(far, keys, gaps="fill")
    close = whole | {"when": ["2024-01-01", "2024-01-02", "2024-01-02 01:00", "2024-01-03"]}
    with pytest.raises(coldq.InvalidInput, match="1 hour apart"):
        from_table(close, keys, gaps="fill")
    assert from_table(close, keys, gaps="skip").horizon == 4


@pytest.mark.parametrize("gaps", ["refuse", "fill"])
def test_rows_after_the_horizon_do_not_matter(gaps) -> None:
    keys = {"decide": {"grid": [0, 9]}, "cost": "price", "time": "day", "gaps": gaps}
    whole = {"day": [1, 2, 3, 4], "price": [3.0, 2.0, 4.0, 5.0]}
    worse = {"day": [1, 2, 3, 4, 4, 9], "price": [3.0, 2.0, 4.0, 5.0, None, 1.0]}
    assert from_table(worse, keys, horizon=4) == from_table(whole, keys)
    with pytest.raises(coldq.InvalidInput):
        from_table(worse, keys, horizon=5)
    with pytest.raises(coldq.InvalidInput, match="horizon is 5, but the table has 4 slots"):
        from_table(whole, keys, horizon=5)


def test_a_masked_entry_is_a_missing_value() -> None:
    keys = {"decide": {"grid": [0, 9]}, "cost": "price"}
    masks = [False, True, False]
    for numbers in (
        np.ma.array([1.0, 999.0, 3.0], mask=masks),
        np.ma.array([1, 999, 3], mask=masks),
        np.ma.array([1.0, "x", 3.0], mask=masks, dtype=object),
        [1.0, np.ma.masked, 3.0],
    ):
        table = {"price": numbers, "load": [1, 2, 3]}
        with pytest.raises(coldq.InvalidInput, match="'price' has no number in row 2"):
            from_table(table, keys)
        assert from_table(table, keys, gaps="fill").loss.c.ravel().tolist() == [1.0, 1.0, 3.0]
        assert from_table(table, keys, gaps="skip").loss.c.ravel().tolist() == [1.0, 3.0]
    whole = {"price": np.ma.array([1.0, 2.0, 3.0])}
    assert from_table(whole, keys).loss.c.ravel().tolist() == [1.0, 2.0, 3.0]
    days = np.array(["2024-01-01", "2024-01-02", "2024-01-03"], "datetime64[D]")
    for when in (np.ma.array(days, mask=masks), [days[0], np.ma.masked, days[2]], [1, None, 3]):
        with pytest.raises(coldq.InvalidInput, match="'when' has no time in row 2"):
            from_table(whole | {"when": when}, keys, time="when")


@pytest.mark.parametrize("cells", [[3.0, None, 4.0], ["3.0", None, "4.0"]], ids=["float", "text"])
@pytest.mark.parametrize("dictionary", [True, False], ids=["dictionary", "plain"])
def test_a_missing_value_of_arrow_is_missing(cells, dictionary, tmp_path) -> None:
    price = pa.array(cells).dictionary_encode() if dictionary else pa.array(cells)
    encoded = pa.table({"price": price, "load": SMALL["load"]})
    pq.write_table(encoded, tmp_path / "load.parquet")
    batch = encoded.to_batches()[0]
    mapped = {name: batch.column(name) for name in batch.schema.names}
    for table in (encoded, tmp_path / "load.parquet", batch, mapped):
        with pytest.raises(coldq.InvalidInput, match="column 'price' has no number in row 2"):
            from_table(table, TWO)
        assert from_table(table, TWO, gaps="fill").loss.c[:, 0].tolist() == [3.0, 3.0, 4.0]
    days = pa.array([datetime(2024, 1, 1), None, datetime(2024, 1, 3)]).dictionary_encode()
    with pytest.raises(coldq.InvalidInput, match="has no time in row 2"):
        from_table(encoded.append_column("day", days), TWO, time="day")


def test_a_blank_line_in_a_file_of_one_column_is_a_missing_value(tmp_path) -> None:
    keys = {"decide": {"grid": [0, 9]}, "cost": "price"}
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text("# prices\n\nprice\n1\n\n\n3\n4\n\n\n")
    with pytest.raises(coldq.InvalidInput, match="'price' has no number in row 2"):
        from_table(one, keys)
    assert from_table(one, keys, gaps="fill").loss.c.ravel().tolist() == [1, 1, 1, 3, 4]
    assert from_table(one, keys, gaps="skip").loss.c.ravel().tolist() == [1, 3, 4]
    two.write_text("price,load\n1,2\n\n3,4\n\n")
    assert from_table(two, keys).loss.c.ravel().tolist() == [1, 3]


def test_times_may_be_written_in_many_ways() -> None:
    keys = {"decide": {"grid": [0, 9]}, "cost": "price", "time": "when"}
    prices = [1.0, 2.0, 3.0]
    months = ["2024-01-01", "2024-02-01", "2024-03-01"]
    for when in (
        [0, 5, 10],
        ["1959", "1960", "1961"],
        months,
        [f"{month} 12:00" for month in months],
        [f"{month}T12:00:00+02:00" for month in months],
        pd.to_datetime(months).tz_localize("US/Eastern"),
        np.array(months, "datetime64[D]"),
        [np.datetime64(month).item() for month in months],
    ):
        assert from_table(pd.DataFrame({"when": when, "price": prices}), keys).horizon == 3
    written = {"when": ["Jan 1 2000", "Feb 1 2000", "Mar 1 2000"], "price": prices}
    assert from_table(written, keys, time_format="%b %d %Y").horizon == 3
    days = {"when": np.array([20240101, 20240102, 20240103]), "price": prices}
    assert from_table(days, keys, time_format="%Y%m%d").horizon == 3
    with pytest.raises(coldq.InvalidInput, match=r"is 'Jan 1 2000' in row 1"):
        from_table(written, keys)


@pytest.mark.parametrize("first", ["2024-03-30", "2024-10-26"])
def test_hours_with_a_zone_rise_across_a_change_of_clocks_in_whatever_they_are_kept(first) -> None:
    keys = {"decide": {"grid": [0, 9]}, "cost": "price", "time": "when"}
    hours = pd.date_range(first, periods=72, freq="h", tz="Europe/Berlin")
    price = np.arange(72.0)
    berlin = ZoneInfo("Europe/Berlin")
    utc = hours.tz_convert("UTC").tz_localize(None).to_numpy()
    for when in (
        hours,
        pd.Series(hours),
        list(hours),
        hours.to_numpy(),
        [datetime.fromtimestamp(hour.timestamp(), berlin) for hour in hours],
        [hour.isoformat() for hour in hours],
    ):
        read = read_table({"when": when, "price": price}, ["price"], "when")
        assert read.times is not None and np.array_equal(read.times, utc)
    objects = pd.DataFrame({"when": pd.Series(list(hours), dtype=object), "price": price})
    assert from_table(objects, keys).horizon == 72


def test_an_hour_that_comes_twice_is_refused_with_what_to_do() -> None:
    clocks = "where clocks go back an hour comes twice: write times with their zone"
    for minutes in (60, 15):
        local = pd.date_range("2024-10-27", periods=400 // minutes, freq=f"{minutes}min", tz="UTC")
        local = local.tz_convert("Europe/Berlin").tz_localize(None)
        hours = {"time": local, "price": np.ones(len(local))}
        with pytest.raises(coldq.InvalidInput, match=clocks):
            from_table(hours, decide={"grid": [0, 9]}, cost="price", time="time", gaps="skip")
    for odd in (
        ["2024-01-01", "2024-01-02", "2024-01-02", "2024-01-03"],
        ["2024-01-01 02:00", "2024-01-01 01:00", "2024-01-01 00:00"],
        [1.0, 2.0, 2.0],
    ):
        with pytest.raises(coldq.InvalidInput, match=r"times must rise.*(again|earlier)$"):
            read = {"time": odd, "price": np.ones(len(odd))}
            from_table(read, decide={"grid": [0, 9]}, cost="price", time="time")


def test_an_index_of_pandas_is_a_column_of_its_name() -> None:
    hours = pd.date_range("2024-10-26", periods=48, freq="h", tz="Europe/Berlin", name="stamp")
    frame = pd.DataFrame({"price": np.arange(48.0)}, index=hours)
    keys = {"decide": {"grid": [0, 9]}, "cost": "price", "time": "stamp"}
    assert from_table(frame, keys) == from_table(frame.reset_index(), keys)
    with pytest.raises(coldq.InvalidInput, match="times must rise"):
        from_table(frame[::-1], keys)
    stacked = pd.concat({"north": frame, "south": frame}, names=["zone"])
    with pytest.raises(coldq.InvalidInput, match="times must rise"):
        from_table(stacked, keys)
    nameless = r"no column 'stamp'; it has 'price'; its index is a column once .*rename_axis"
    with pytest.raises(coldq.InvalidInput, match=nameless):
        from_table(frame.rename_axis(None), keys)
    with pytest.raises(coldq.InvalidInput, match=r"no column 'stamp'; it has 'price'$"):
        from_table(frame.reset_index(drop=True), keys)


def test_numbers_of_types_that_numpy_has_not_are_taken() -> None:
    parts = [pa.array([3.0, 4.0]), pa.array([2])]
    union = pa.UnionArray.from_dense(
        pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32()), parts
    )
    long = pl.Series([3, 2, 4], dtype=pl.Int128)
    load = SMALL["load"]
    for table in (
        pa.table({"price": union, "load": load}),
        {"price": union, "load": load},
        pl.DataFrame({"price": long, "load": load}),
        {"price": long, "load": load},
    ):
        assert from_table(table, TWO, rows=LOAD) == from_table(SMALL, TWO, rows=LOAD)
    short = pl.DataFrame({"price": pl.Series([3, None, 4], dtype=pl.Int128), "load": load})
    with pytest.raises(coldq.InvalidInput, match="'price' has no number in row 2"):
        from_table(short, TWO, rows=LOAD)


def test_limits_that_cross_are_refused_with_their_row() -> None:
    def limited(low, high, **more):
        row = {"name": "both", "sum": "all", "plus": 0.1, "at_least": "low", "at_most": "high"}
        return from_table(SMALL | {"low": low, "high": high}, TWO | more, rows=row)

    words = r"'both' of the layout is to be at least 7 and at most 3 in row 3.* in 1 of 3 slots"
    with pytest.raises(coldq.InvalidInput, match=words):
        limited([1.0, 2.0, 7.0], [3.0, 3.0, 3.0])
    words = r"at least 7 and at most 3 in row 3.* in 1 of 2 slots"
    with pytest.raises(coldq.InvalidInput, match=words):
        limited([1.0, None, 7.0], [3.0, 3.0, 3.0], gaps="skip")
    with pytest.raises(coldq.InvalidInput, match=r"at least 5 and at most 3 in row 1"):
        from_table(SMALL, TWO, rows={"sum": "all", "at_least": 5, "at_most": 3})
    tie = limited([0.1 + 0.2, 2.0, 3.0], [0.3, 3.0, 3.0])  # by rounding alone
    assert coldq.build(coldq.describe(tie)) == tie


def test_columns_that_are_no_values_in_order_are_refused() -> None:
    frame = pd.DataFrame(SMALL)
    for table, words in (
        (frame.to_dict(), r"column 'price' must be several values in order, but is \{0: 3.0"),
        (SMALL | {"price": {3.0, 2.0, 4.0}}, "must be several values in order"),
        (SMALL | {"price": np.array([3.0, 2j, 4.0], np.complex64)}, "must be numbers"),
        ({"price": frame["price"], "load": frame["load"][::-1]}, "have unlike indices"),
        (pl.DataFrame(SMALL | {"price": np.ones((3, 1))}), r"must have one axis, not \(3, 1\)"),
    ):
        with pytest.raises(coldq.InvalidInput, match=words):
            from_table(table, TWO, rows=LOAD)
    taken = from_table({"price": frame["price"], "load": SMALL["load"]}, TWO, rows=LOAD)
    assert taken == from_table(frame.to_dict("list"), TWO, rows=LOAD)


def test_times_with_and_without_a_zone_in_one_column_are_refused_and_both_are_named() -> None:
    keys = {"decide": {"grid": [0, 9]}, "cost": "price", "time": "when"}
    naive, aware = "2024-01-31T00:00", "2024-01-31T01:00Z"
    words = f"with a time zone, as '{aware}' in row 2, and times without, as '{naive}' in row 1"
    for when in ([naive, aware], [np.datetime64(naive), pd.Timestamp(aware)]):
        with pytest.raises(coldq.InvalidInput, match=r"mixes times with a time zone.* without"):
            from_table({"when": when, "price": [1.0, 2.0]}, keys)
    with pytest.raises(coldq.InvalidInput, match=words):
        from_table({"when": [naive, aware], "price": [1.0, 2.0]}, keys)
    zones = ["2024-01-31T01:00+01:00", "2024-01-31T01:00Z"]
    assert from_table({"when": zones, "price": [1.0, 2.0]}, keys).horizon == 2


WRONG = [
    ({"cost": {"grid": "prize", "diesel": 3.5}}, "no column 'prize' .did you mean 'price'"),
    ({"rows": [{"sum": "all", "at_last": "load"}]}, "'at_last' .did you mean 'at_least'"),
    ({"decied": 3}, "no key 'decied' .did you mean 'decide'"),
    ({"rows": [{"sum": ["gird"], "at_least": 1}]}, "constraint 1: sum names 'gird'.*mean 'grid'"),
    ({"rows": [{"name": "served", "sum": "all"}]}, "'served': needs at_most"),
    ({"rows": [{"at_least": 1.0}]}, "needs either sum"),
    ({"rows": "load"}, r"written as \[\[rows\]\]"),
    ({"cost": {"grid": 1.0}}, "nothing of 'diesel'"),
    ({"cost": 1.0}, "names no column"),
    ({"cost": None}, "says nothing of what a decision costs"),
    ({"cost": "note"}, "'note' must be numbers, but is 'x' in row 1"),
    ({"decide": {"grid": [0, "load"], "diesel": [0, 1]}}, "fixed numbers.* is a row"),
    ({"decide": {"grid": [9, 0], "diesel": [0, 1]}}, r"must be \[lower, upper\], not \[9, 0\]"),
    ({"decide": ["grid", "diesel"]}, "'grid' needs bounds"),
    ({"decide": ["grid", "grid"]}, "different names"),
    ({"gaps": "mend"}, "gaps must be one of"),
    ({"time": "load"}, "after 7 comes 6 in row 3, which is earlier"),
    ({"time": "same"}, "after 1 comes 1 in row 2 again"),
    ({"shares": "all", "total": 100}, "cannot add up to 100"),
    ({"total": 2.0}, "needs shares"),
    ({"copies": 0}, "copies of 'grid' must be a whole number"),
    ({"rows": [{"capacity": {"scale": 1, "rate": 1}, "at_most": 1}]}, "its returns fall"),
    ({"rows": [{"capacity": {"scale": 1}, "at_least": 1}]}, "needs rate"),
    ({"decide": {"grid": [0, 10**400], "diesel": [0, 1]}}, "bounds of 'grid' must be at most 1.8"),
    ({"cost": {"grid": "price", "diesel": -(10**400)}}, "cost of 'diesel' must be at most 1.8"),
    ({"cost": "inf"}, "'inf' must be finite, but is inf in row 2"),
]


@pytest.mark.parametrize(("keys", "words"), WRONG, ids=[words for _, words in WRONG])
def test_what_is_wrong_is_named_in_a_sentence(keys, words) -> None:
    table = SMALL | {"note": ["x", "y", "z"], "same": [1, 1, 2], "inf": [1.0, np.inf, 2.0]}
    with pytest.raises(coldq.InvalidInput, match=words):
        from_table(table, TWO | keys)
    with pytest.raises(coldq.InvalidInput, match="horizon is 9"):
        from_table(table, TWO, horizon=9)


def test_files_that_cannot_be_read_are_named(tmp_path) -> None:
    for name, content, words in (
        ("a.csv", b"", "empty"),
        ("b.csv", b"price,load\n1,2\n3\n", "line 3: the header names 2 columns"),
        ("c.csv", b"price\n1\n", "at least two rows"),
        ("d.csv", b"price,price\n1,2\n3,4\n", "2 columns are called 'price'"),
        ("e.csv", b"price\n\xff\xfe\n", "UTF-8"),
        ("f.csv.gz", b"no gzip", "cannot be read"),
        ("g.parquet", b"no parquet", "parquet"),
        ("h.npz", b"no arrays", "npz"),
        ("i.xlsx", b"", "a table is a file of"),
        ("k.csv", b"price\n1_0\n2\n", "'1_0' in row 1"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(coldq.Error, match=words):
            from_table(tmp_path / name, decide={"grid": [0, 9]}, cost="price")
    with pytest.raises(coldq.InvalidInput, match="no such file"):
        from_table(tmp_path / "none.csv", decide={"grid": [0, 9]}, cost="price")
    (tmp_path / "z.toml").write_text("decide = [")
    with pytest.raises(coldq.NotReadable, match="is not TOML"):
        from_table(tmp_path / "z.toml")
    (tmp_path / "z.toml").write_text(f"total = 1{'0' * 5000}")
    with pytest.raises(coldq.NotReadable, match="is not TOML"):
        from_table(tmp_path / "z.toml")
    (tmp_path / "y.toml").write_text("decide = {a = [0, 1]}\n")
    with pytest.raises(coldq.InvalidInput, match=r"no table y.csv"):
        from_table(tmp_path / "y.toml")
    with pytest.raises(coldq.InvalidInput, match="a table is a path"):
        from_table(7, decide={"grid": [0, 9]}, cost="price")


@pytest.mark.parametrize(
    ("name", "header", "separator"),
    [
        ("a.csv", "price;load;note, x", ";"),
        ("a.csv", 'price;load;"note, x"', ";"),
        ("a.csv", '"price";"load";note, x, y, z', ";"),
        ("a.csv", "# a comment, and more\nprice;load;note, x", ";"),
        ("a.csv", '"note,\nx";load;price', ";"),
        ("a.csv", "price,load,a;b;c;d;e", ","),
        ("a.csv", "price\tload\tnote; x, y", "\t"),
        ("a.tsv", "price\tload\tnote, x", "\t"),
        ("a.tsv", "price,load,note", ","),
    ],
)
def test_the_separator_is_the_one_that_yields_the_columns(
    name, header, separator, tmp_path
) -> None:
    rows = [separator.join(row) for row in (("3.0", "5.0", "3.0"), ("2.0", "7.0", "2.0"))]
    (tmp_path / name).write_text("\n".join([header, *rows]))
    read = read_table(tmp_path / name, ["load", "price"])
    assert read.numbers["price"].tolist() == [3.0, 2.0]
    assert read.numbers["load"].tolist() == [5.0, 7.0]


def test_a_header_without_the_columns_is_shown_as_its_names(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("time, UTC;load;note\n1;2;3\n")
    with pytest.raises(coldq.InvalidInput, match="it has 'time, UTC', 'load', 'note'"):
        read_table(tmp_path / "a.csv", ["price"])
    (tmp_path / "a.tsv").write_text("time, UTC\tload, kW\n1\t2\n")
    with pytest.raises(coldq.InvalidInput, match="it has 'time, UTC', 'load, kW'"):
        read_table(tmp_path / "a.tsv", ["price"])


def test_a_folder_in_the_place_of_a_table_is_said_to_be_one(tmp_path) -> None:
    (tmp_path / "load.parquet").mkdir()  # as Spark and Dask write it
    with pytest.raises(coldq.InvalidInput, match=r"load.parquet: is a folder or the like"):
        from_table(tmp_path / "load.parquet", decide={"grid": [0, 9]}, cost="price")


@pytest.mark.parametrize("name", ["a" * 300, "a\0b"], ids=["long", "zero"])
def test_a_name_that_no_file_can_have_gets_a_sentence(name, tmp_path) -> None:
    for keys in ({}, {"decide": {"grid": [0, 9]}, "cost": "price"}):
        with pytest.raises(coldq.NotReadable, match="cannot be read"):
            from_table(tmp_path / f"{name}.csv", **keys)
    with pytest.raises(coldq.NotReadable):
        from_table(tmp_path / f"{name}.toml")


def test_a_file_that_nothing_is_said_of_is_told_what_it_lacks(tmp_path) -> None:
    with pytest.raises(coldq.InvalidInput, match=r"load.csv: there is no such file"):
        from_table(tmp_path / "load.csv")
    (tmp_path / "load.csv").write_text("price,load\n1,2\n3,4\n")
    with pytest.raises(coldq.InvalidInput, match=r"no load.toml lies beside it; coldq new writes"):
        from_table(tmp_path / "load.csv")


@pytest.mark.parametrize(
    ("cells", "doubted"),
    [
        (["987", "1.230", "", "12.034"], "has 987 and 1.230, which is read as 1.23"),
        (["-1.230", "-987"], "has -987 and -1.230"),
        (["0.987", "1.230"], None),  # three decimals
        (["987.000", "1.230"], None),
        (["0", "1.230"], None),
        (["987", "1.23"], None),  # as many as are needed
        (["987", "1.234"], None),
        (["1987", "1.230"], None),
    ],
)
def test_a_dot_that_may_stand_between_thousands_is_doubted(cells, doubted, tmp_path) -> None:
    (tmp_path / "a.csv").write_text("\n".join(["price;load", *(f"1;{cell}" for cell in cells)]))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        read_table(tmp_path / "a.csv", ["price", "load"])
    if doubted is None:
        assert not said
    else:
        assert [one.category for one in said] == [coldq.UnlikelyUnits]
        assert f"column 'load' {doubted}" in str(said[0].message)


def test_commas_in_numbers_get_a_hint(tmp_path) -> None:
    for cell in ("1,5", "-1,5", "1.234,5", "1,000"):
        (tmp_path / "a.csv").write_text(f"price;load\n{cell};2\n2;3\n")
        with pytest.raises(coldq.InvalidInput, match=rf"is '{cell}' in row 1; a decimal comma"):
            read_table(tmp_path / "a.csv", ["price"])
    (tmp_path / "a.csv").write_text("price;load\na,b;2\n2;3\n")
    with pytest.raises(coldq.InvalidInput, match=r"is 'a,b' in row 1$"):
        read_table(tmp_path / "a.csv", ["price"])


def test_units_that_look_wrong_get_a_sentence() -> None:
    loads = {"price": [3.0, 2.0, 4.0], "load": [5.0, 7.0, 6.0]}
    watts = {"price": [3.0, 2.0, 4.0], "load": [5e9, 7e9, 6e9]}
    spike = {"price": [3.0, 2.0, 4.0], "load": [5.0, 7e6, 6.0]}
    both = [LOAD, {"name": "gas", "sum": {"diesel": 1e-7}, "at_most": 1e-6}]
    for table, rows, cost, words in (
        (watts, [LOAD], TWO["cost"], "constraint 1 has limits of about 6e.09"),
        (spike, [LOAD], TWO["cost"], "column 'load' is 7e.06 in row 2, where 6 is usual"),
        (loads, both, TWO["cost"], "constraint 1 has a size of 18, 'gas' has a size of 1e-06"),
        (loads, [LOAD], {"grid": "price", "diesel": 4e6}, "the cost of diesel is up to"),
    ):
        with pytest.warns(coldq.UnlikelyUnits, match=words):
            from_table(table, TWO, rows=rows, cost=cost)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_table(loads, TWO, rows=[LOAD])


KILOWATTS = 1000.0 * np.linspace(20.0, 40.0, 100)


def doubts(rows, load=KILOWATTS, decide=None, **keys) -> list[str]:
    """What is said of the units of loads, where two sources can give 50 each."""
    bounds = decide or {"grid": [0, 50], "diesel": [0, 50]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from_table({"load": load}, decide=bounds, cost=1.0, rows=rows, **keys)
    assert all(issubclass(one.category, coldq.UnlikelyUnits) for one in caught)
    return [str(one.message) for one in caught]


def test_limits_out_of_reach_in_nearly_all_slots_get_a_sentence() -> None:
    (words,) = doubts(LOAD)
    assert words == (
        "the table: constraint 1 needs a sum of at least about 3e+04, but within the bounds of the "
        "decisions it is at most about 100: out of reach in 100 of 100 slots; are the units right?"
    )
    share = KILOWATTS / 1000.0 - 20.0  # 0 to 20
    for rows, decide, told in (
        ({"sum": "all", "at_most": "load"}, {"grid": [3e4, 5e4], "diesel": [2e4, 5e4]},
         "at most about 3e.04, but within .* at least about 5e.04: out of reach in 100 of 100"),
        ({"sum": {"grid": -1.0}, "at_least": "load"}, None, "at least about 3e.04.* at most about"),
        ({"sum": "all", "equal": "load"}, None, "constraint 1, at least needs a sum of at least"),
        ({"sum": {"grid": "load"}, "plus": 5.0, "at_most": 0}, {"grid": [1, 2]},
         "at most about -5, .* at least about 3e.04"),
        ({"capacity": {"scale": 4, "rate": 4}, "at_least": "load"}, None,
         "needs a capacity of at least about 3e.04, .* at most about 42.43"),
    ):  # fmt: skip
        (words,) = doubts(rows, decide=decide)
        assert re.search(told, words), words
    for load, count in ((np.full(100, 1e5), 1), (np.full(100, 100.0), 0), (share, 0)):
        assert len(doubts(LOAD, load)) == count
    hard = np.where(np.arange(100) < 95, 300.0, 80.0)  # which can be met in five slots
    assert not doubts(LOAD, hard)
    assert len(doubts(LOAD, np.where(np.arange(100) < 96, 300.0, 80.0))) == 1


def test_limits_at_a_bound_are_within_reach() -> None:
    """Whatever rounding makes of a sum of tenths."""
    tenths = {f"d{k}": [0, 0.1] for k in range(10)}
    for rows in ({"sum": "all", "equal": "load"}, LOAD):
        assert not doubts(rows, np.full(20, 1.0), tenths)
        assert not doubts(rows, np.full(20, 0.1 * 10 + 2e-16), tenths)


def test_tables_that_packages_ship_are_read_as_they_are(tmp_path) -> None:
    longer = Path(matplotlib.get_data_path()) / "sample_data" / "Stocks.csv"
    keys = {"time": "Date", "decide": ["IBM", "AMZN"], "shares": "all", "cost": "*"}
    with pytest.raises(coldq.InvalidInput, match="has no number in row"):
        from_table(longer, keys)  # of single days, some of them empty
    found = from_table(longer, keys, gaps="skip")
    frame = pacsv.read_csv(longer, pacsv.ReadOptions(skip_rows=1)).to_pandas()
    assert np.array_equal(found.loss.c, frame[["IBM", "AMZN"]].dropna())


def test_a_problem_of_a_table_comes_back_from_its_description_and_from_a_saved_trace(
    tmp_path,
) -> None:
    hours = np.arange(40.0)
    columns = {"load": 20.0 + 5.0 * np.sin(hours / 4.0), "price": 3.0 + np.cos(hours / 4.0)}
    columns["load"][7] = np.nan
    kept = {name: column.copy() for name, column in columns.items()}

    def made(**more) -> coldq.problems.FromTable:
        return coldq.problems.from_table(
            columns, decide={"grid": [0, np.float64(30)], "diesel": [0, 40]}, gaps="fill",
            cost={"grid": "price", "diesel": 6}, rows=[{"sum": "all", "at_least": "load"}], **more,
        )  # fmt: skip

    problem = made()
    back = coldq.build(json.loads(json.dumps(coldq.describe(problem))))
    assert back == problem and hash(back) == hash(problem) and made() == problem
    assert made(horizon=39) != problem and back.provenance == problem.provenance
    learner = coldq.COLDQ.for_problem(problem)
    runs = [coldq.simulate(learner, one, [0], keep=["decisions"]) for one in (problem, back)]
    assert runs[0].decisions.tobytes() == runs[1].decisions.tobytes()
    runs[0].save(tmp_path / "run.npz")
    loaded = coldq.Trace.load(tmp_path / "run.npz")
    assert loaded.problem == problem
    assert repr(coldq.bound_report(loaded)) == repr(coldq.bound_report(runs[0]))
    assert all((columns[name] == kept[name])[hours != 7.0].all() for name in columns)


@pytest.mark.parametrize("title", ["nan", "inf", "-inf"])
def test_a_title_that_reads_as_a_number_stays_a_title(title, tmp_path) -> None:
    (tmp_path / f"{title}.csv").write_text("price,load\n3,5\n2,7\n")
    problem = from_table(tmp_path / f"{title}.csv", TWO, rows=LOAD, about=title)
    back = coldq.build(json.loads(json.dumps(coldq.describe(problem))))
    assert back == problem
    assert back.title == title and back.provenance[0] == title


def test_keys_that_change_afterwards_change_no_problem() -> None:
    keys = {**TWO, "cost": dict(TWO["cost"]), "rows": [dict(LOAD)]}
    made = []
    for price in (1.0, 2.0):
        keys["cost"]["diesel"] = price
        made.append(from_table(SMALL, keys))
    keys["rows"].clear()
    assert made[0] != made[1]
    for price, problem in zip((1.0, 2.0), made, strict=True):
        again = coldq.build(coldq.describe(problem))
        assert again == problem
        assert again.loss.c[0].tolist() == [3.0, price]
        assert again.n_constraints == 1


def test_a_description_of_a_table_that_is_wrong_gets_a_sentence() -> None:
    problem = coldq.problems.from_table(
        {"load": [5.0, 7.0]}, decide={"grid": [0, 9]}, cost=2.0,
        rows=[{"sum": "all", "at_least": "load"}],
    )  # fmt: skip
    right = coldq.describe(problem)
    for wrong in (
        {"layout": "no JSON"},
        {"layout": "[]"},
        {"layout": '{"keys": {}, "columns": ["load"]}'},
        {"layout": right["layout"].replace('["load"]', '["lood"]')},
        {"numbers": [[5.0, 7.0], [1.0, 2.0]]},
        {"numbers": [[5.0]]},
        {"numbers": [["nan", 1.0]]},
        {"numbers": "many"},
    ):
        with pytest.raises(coldq.InvalidInput):
            coldq.build(right | wrong)
