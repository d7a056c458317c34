"""Columns of a table by their names: numbers and times, whatever holds the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import InvalidInput
from coldq.problems.files import is_path, pyarrow, read_file, require_columns

MISSING_TEXTS = {"", "na", "nan", "null", "none", "n/a", "-"}  # texts of a cell that has no number
Raw = Sequence[Any] | np.ndarray


class Table(NamedTuple):
    """What is read of a table: numbers by column, NaN where there are none, and the times."""

    name: str
    numbers: dict[str, Array]
    times: np.ndarray | None
    n_rows: int

    def first(self, count: int) -> Table:
        """Its first rows, or all if they are fewer."""
        numbers = {name: column[:count] for name, column in self.numbers.items()}
        times = None if self.times is None else self.times[:count]
        return Table(self.name, numbers, times, min(self.n_rows, count))


def read_table(
    table: Any, wanted: Iterable[str], time: str | None = None, time_format: str | None = None
) -> Table:
    """The wanted columns of a table, and its times; whatever is wrong with them is a sentence.

    >>> from coldq.problems.columns import read_table
    >>> read_table({"price": [1, None, 3.5], "note": "abc"}, ["price"]).numbers["price"]
    array([1. , nan, 3.5])
    """
    wanted = list(dict.fromkeys(wanted))
    asked = list(dict.fromkeys([*wanted, time] if time is not None else wanted))
    name = "the table"
    if is_path(table):
        name = str(Path(table))
        table = read_file(Path(table), asked, time if time_format is not None else None)
    columns = _of_mapping if isinstance(table, Mapping) else _of_frame
    raw = columns(name, table, asked)
    lengths = {key: len(values) for key, values in raw.items()}
    if len(set(lengths.values())) > 1:
        given = ", ".join(f"{key!r} has {n}" for key, n in lengths.items())
        raise InvalidInput(f"{name}: its columns differ in length: {given}")
    count = next(iter(lengths.values()), 0)
    if count < 2:
        raise InvalidInput(f"{name}: a problem needs at least two rows of data, but it has {count}")
    numbers = {key: _numbers(name, key, raw[key]) for key in wanted}
    times = None if time is None else _times(name, time, raw[time], time_format)
    return Table(name, numbers, times, count)


def _of_mapping(name: str, table: Mapping[Any, Any], asked: Sequence[str]) -> dict[str, Raw]:
    """The asked columns, each a list, an array, or a series of whatever library."""
    require_columns(name, asked, list(table))
    columns = {column: table[column] for column in asked}
    indices = {c: one.index for c, one in columns.items() if hasattr(one, "iloc")}
    for column, index in indices.items():
        first = next(iter(indices))
        if not index.equals(indices[first]):  # rows are taken by their place
            raise InvalidInput(
                f"{name}: columns {first!r} and {column!r} have unlike indices, which would be "
                "ignored; pandas.DataFrame(...) of them puts what belongs together side by side"
            )
    return {column: _in_order(name, column, values) for column, values in columns.items()}


def _of_frame(name: str, table: Any, asked: Sequence[str]) -> dict[str, Raw]:
    """The asked columns of a frame that narwhals knows, or that hands itself out as Arrow."""
    import narwhals.stable.v2 as nw

    besides = ""
    if nw.dependencies.is_pandas_like_dataframe(table):
        levels = [c for c in table.index.names if c in asked and c not in table.columns]
        counted = type(table.index).__name__ == "RangeIndex"  # which a frame has by itself
        if table.index.names == [None] and not counted:
            besides = "; its index is a column once it has a name: table.rename_axis('time')"
        table = table.reset_index(levels) if levels else table
    try:
        frame: Any = nw.from_native(table, pass_through=True)
    except nw.exceptions.DuplicateError:  # also of names that nobody asks for
        is_arrow = hasattr(table, "column_names")
        require_columns(name, asked, list(table.column_names if is_arrow else table.columns))
        frame = nw.from_native(table.select(asked) if is_arrow else table[asked])
    if frame is table and hasattr(table, "__arrow_c_stream__"):
        pyarrow("this table")
        frame = nw.from_arrow(table, backend="pyarrow")
    if isinstance(frame, nw.LazyFrame):
        require_columns(name, asked, frame.collect_schema().names())
        frame = frame.select(asked).collect()
    if not isinstance(frame, nw.DataFrame):
        raise InvalidInput(
            "a table is a path, a pandas, Polars or Arrow frame, or a mapping of columns by name, "
            f"but got a {type(table).__name__}"
        )
    require_columns(name, asked, frame.columns, besides)
    return {column: _in_order(name, column, _of_series(frame[column])) for column in asked}


def _of_series(series: Any) -> Any:
    """The values of a narwhals series; as a list where NumPy has no such type, or loses some."""
    import narwhals.stable.v2 as nw

    listed = (nw.Categorical, nw.Enum, nw.Int128, nw.UInt128, nw.Unknown)
    return series.to_list() if isinstance(series.dtype, listed) else series.to_numpy()


def _in_order(name: str, column: str, values: Any) -> Raw:
    """Values as a list or an array of one axis, missing ones unmasked."""
    if hasattr(values, "to_numpy"):
        import narwhals.stable.v2 as nw

        series: Any = nw.from_native(values, series_only=True, pass_through=True)
        values = values if series is values else _of_series(series)
    if hasattr(values, "to_pylist"):  # Arrow's without chunks
        values = values.to_pylist()
    elif hasattr(values, "to_numpy"):  # an index of pandas
        values = values.to_numpy()
    if isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable):
        raise InvalidInput(
            f"{name}: column {column!r} must be several values in order, but is {values!r:.80}"
        )
    if not isinstance(values, np.ndarray):
        return list(values)
    if values.ndim != 1:
        raise InvalidInput(f"{name}: column {column!r} must have one axis, not {values.shape}")
    return _unmasked(values) if isinstance(values, np.ma.MaskedArray) else values


def _unmasked(values: np.ma.MaskedArray) -> np.ndarray:
    """An array whose masked entries are missing values, whatever number lies below the mask."""
    kind = values.dtype.kind
    missing = np.array("NaT", values.dtype) if kind in "mM" else np.array(None)
    if kind in "fiub":
        missing = np.array(np.nan)
    return np.where(np.ma.getmaskarray(values), missing, np.ma.getdata(values))


# Numbers and times


def _numbers(name: str, column: str, values: Raw) -> Array:
    """A column as numbers, NaN where there is none; anything else is refused with its row."""
    kind = values.dtype.kind if isinstance(values, np.ndarray) else None
    if kind in ("m", "M"):
        what = "durations" if kind == "m" else "times"
        raise InvalidInput(f"{name}: column {column!r} must be numbers, but is {what}")
    if kind in tuple("fiub"):
        numbers = np.asarray(values).astype(np.float64)
    else:
        numbers = np.array([_number(name, column, k, v) for k, v in enumerate(values)], np.float64)
    wrong = np.isinf(numbers)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise InvalidInput(f"{name}: column {column!r} must be finite, but is {numbers[k]} {at(k)}")
    return numbers


def _is_missing(value: Any) -> bool:
    return value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType")


def _number(name: str, column: str, k: int, value: Any) -> float:
    if _is_missing(value):
        return np.nan
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str) and value.strip().lower() in MISSING_TEXTS:
        return np.nan
    other = isinstance(value, complex | np.complexfloating | date)
    try:
        if other or (isinstance(value, str) and "_" in value):
            raise ValueError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(
            f"{name}: column {column!r} must be numbers, but is {value!r:.80} {at(k)}"
            f"{_about_commas(value)}"
        ) from None


def _about_commas(value: Any) -> str:
    """A hint, if a text would be a number but for its commas."""
    if not isinstance(value, str) or "," not in value:
        return ""
    digits = value.replace(",", "").replace(".", "").strip().lstrip("+-")
    if not digits.isdecimal():
        return ""
    return "; a decimal comma, or one between thousands, is not read: write 1.5, and 1000"


def at(k: int) -> str:
    """Words for a row of the data, counted from 1 without the header."""
    return f"in row {k + 1}"


def _times(name: str, column: str, values: Raw, time_format: str | None) -> np.ndarray:
    """Times as datetime64, or as numbers; whatever is neither is refused with its row."""
    kind = values.dtype.kind if isinstance(values, np.ndarray) else None
    if kind == "M":
        times = np.asarray(values).astype("datetime64[us]")
    elif time_format is None and kind in tuple("fiu"):
        times = np.asarray(values).astype(np.float64)
    else:
        read = [_time(name, column, k, v, time_format) for k, v in enumerate(values)]
        stamps, zoned = [stamp for stamp, _ in read], [zone for _, zone in read]
        if all(isinstance(stamp, float) for stamp in stamps):
            times = np.array(stamps)
        elif any(isinstance(stamp, float) for stamp in stamps):
            raise InvalidInput(f"{name}: time column {column!r} mixes numbers and dates")
        else:
            _require_one_clock(name, column, values, zoned)
            times = np.array(stamps, "datetime64[us]")
    odd = ~np.isfinite(times) if times.dtype.kind == "f" else np.isnat(times)
    if odd.any():
        raise _no_time(name, column, int(np.argmax(odd)))
    return times


def _no_time(name: str, column: str, k: int) -> InvalidInput:
    return InvalidInput(f"{name}: time column {column!r} has no time {at(k)}")


def _require_one_clock(name: str, column: str, values: Raw, zoned: list[bool]) -> None:
    """Raise if some times have a zone and some none: how far apart those are is not known."""
    if any(zoned) and not all(zoned):
        one, other = zoned.index(True), zoned.index(False)
        raise InvalidInput(
            f"{name}: time column {column!r} mixes times with a time zone, as "
            f"{str(values[one])!r:.80} {at(one)}, and times without, as "
            f"{str(values[other])!r:.80} {at(other)}"
        )


def _time(name: str, column: str, k: int, value: Any, time_format: str | None) -> tuple[Any, bool]:
    """A number or a time in UTC, and whether a time zone was given with it."""
    if _is_missing(value):
        raise _no_time(name, column, k)
    try:
        if isinstance(value, str | float | int | np.integer) and time_format is not None:
            text = value if isinstance(value, str) else f"{value:.0f}"
            stamp = datetime.strptime(text.strip(), time_format)
        elif isinstance(value, str):
            try:
                return float(value), False
            except ValueError:
                stamp = datetime.fromisoformat(value.strip())
        elif isinstance(value, date):
            stamp = value if isinstance(value, datetime) else datetime(*value.timetuple()[:3])
        elif isinstance(value, np.datetime64):
            return value.astype("datetime64[us]"), False
        else:
            return float(value), False
        zoned = stamp.utcoffset() is not None
        if zoned:  # not less its offset: pandas would subtract that across a change of clocks
            stamp = stamp.astimezone(UTC)
        return np.datetime64(stamp.replace(tzinfo=None), "us"), zoned
    except (TypeError, ValueError, OverflowError):
        how = (
            "as 2024-01-31 or 2024-01-31 23:55, or as a number; time_format says otherwise"
            if time_format is None
            else f"as {time_format}"
        )
        raise InvalidInput(
            f"{name}: time column {column!r} is written {how}, but is {value!r:.80} {at(k)}"
        ) from None
