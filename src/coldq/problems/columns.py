"""Columns of a table by their names: a frame, a mapping, or a file of CSV, parquet or npz."""

from __future__ import annotations

import csv
import gzip
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, date, datetime
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import InvalidInput, NotReadable, UnlikelyUnits, installed, warn

KINDS = (".csv", ".csv.gz", ".tsv", ".parquet", ".npz")
CHUNK = 1 << 16  # rows of a CSV file that are text at one time
MISSING = {"", "na", "nan", "null", "none", "n/a", "-"}  # texts of a cell that has no number
THOUSANDS = re.compile(r"\s*([+-]?\d{1,3}|[+-]?[1-9]\d{0,2}\.\d{3}|)\s*")  # as 987 and 1.230
FRAMES = ("pandas", "polars", "pyarrow")
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


def is_path(table: Any) -> bool:
    """Whether a table is given by the place of its file."""
    return isinstance(table, str | os.PathLike)


def suffix_of(path: Path) -> str:
    """The kind of a file, ".csv.gz" being one."""
    zipped = path.suffix.lower() == ".gz"
    return "".join(path.suffixes[-2:] if zipped else path.suffixes[-1:]).lower()


def stem_of(path: Path) -> str:
    """A file's name without its kind, however that is written.

    >>> from coldq.problems.columns import stem_of
    >>> stem_of(Path("march/load.csv.gz")), stem_of(Path("LOAD.CSV.GZ"))
    ('load', 'LOAD')
    """
    return path.name[: len(path.name) - len(suffix_of(path))]


def read_table(
    table: Any, wanted: Iterable[str], time: str | None = None, time_format: str | None = None
) -> Table:
    """The wanted columns of a table, and its times; whatever is wrong with them is a sentence.

    >>> from coldq.problems.columns import read_table
    >>> read_table({"price": [1, None, 3.5], "note": "abc"}, ["price"]).numbers["price"]
    array([1. , nan, 3.5])
    """
    wanted = list(dict.fromkeys(wanted))
    asked = [*wanted, *([time] if time is not None and time not in wanted else [])]
    if is_path(table):
        name = str(Path(table))
        raw = _from_file(Path(table), asked, time if time_format is not None else None)
    else:
        name = "the table"
        raw = _from_memory(name, table, asked)
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


def require_columns(
    name: str, asked: Iterable[str], there: Sequence[str], besides: str = ""
) -> None:
    """Raise unless a table has these columns, each of them once; `besides` ends the sentence."""
    for column in asked:
        count = sum(column == other for other in there)
        if count == 0:
            raise InvalidInput(
                f"{name}: there is no column {column!r}{nearest(column, there)}; it has "
                f"{', '.join(map(repr, there[:30]))}{', ...' if len(there) > 30 else ''}{besides}"
            )
        if count > 1:
            raise InvalidInput(f"{name}: {count} columns are called {column!r}; which one is it?")


def nearest(word: str, known: Iterable[str]) -> str:
    """A suggestion, if one of the known words is like this one.

    >>> from coldq.problems.columns import nearest
    >>> nearest("at_last", ["at_least", "at_most"])
    " (did you mean 'at_least'?)"
    """
    known = [one for one in known if isinstance(one, str)]
    folded = {one.lower(): one for one in known}
    close = get_close_matches(word.lower(), list(folded), 1, 0.6)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""


# From memory


def _from_memory(name: str, table: Any, asked: list[str]) -> dict[str, Raw]:
    kind, besides = _library_of(table), ""
    if kind not in FRAMES and hasattr(table, "__arrow_c_stream__"):
        table, kind = _pyarrow("this table").table(table), "pyarrow"
    if kind == "polars" and hasattr(table, "collect"):
        table = table.collect()
    if kind == "pandas" and hasattr(table, "columns"):
        index = [c for c in table.index.names if c in asked and c not in table.columns]
        counted = type(table.index).__name__ == "RangeIndex"  # which a frame has by itself
        if table.index.names == [None] and not counted:
            besides = "; its index is a column once it has a name: table.rename_axis('time')"
        table = table.reset_index(index) if index else table
        there, column = table.columns, lambda c: _of_pandas(table[c])
    elif kind == "polars" and hasattr(table, "get_column"):
        there, column = table.columns, lambda c: _of_polars(table.get_column(c))
    elif kind == "pyarrow" and hasattr(table, "column_names"):
        there, column = table.column_names, lambda c: _of_arrow(table.column(c))
    elif isinstance(table, Mapping):
        there, column = table, table.__getitem__
    else:
        raise InvalidInput(
            "a table is a path, a pandas, Polars or Arrow frame, or a mapping of columns by name, "
            f"but got a {type(table).__name__}"
        )
    require_columns(name, asked, list(there), besides)
    found = {c: column(c) for c in asked}
    if isinstance(table, Mapping):
        _require_one_index(name, found)
        found = {c: _listed(name, c, values) for c, values in found.items()}
    return {c: _one_axis(name, c, values) for c, values in found.items()}


def _library_of(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _require_one_index(name: str, columns: Mapping[str, Any]) -> None:
    """Raise if Series of pandas have unlike indices: rows are taken by their place."""
    series = {c: one for c, one in columns.items() if _library_of(one) == "pandas"}
    indices = {c: one.index for c, one in series.items() if hasattr(one, "index")}
    for column, index in indices.items():
        first = next(iter(indices))
        if not index.equals(indices[first]):
            raise InvalidInput(
                f"{name}: columns {first!r} and {column!r} have unlike indices, which would be "
                "ignored; pandas.DataFrame(...) of them puts what belongs together side by side"
            )


def _of_pandas(series: Any) -> np.ndarray:
    if getattr(series.dtype, "tz", None) is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    return series.to_numpy()


def _of_polars(series: Any) -> Raw:
    if str(series.dtype) in ("Int128", "UInt128"):  # which NumPy has not
        return series.to_list()
    return series.to_numpy()


def _of_arrow(column: Any) -> Raw:
    if hasattr(column.type, "index_type"):  # to_numpy gives a missing value the dictionary's last
        column = column.cast(column.type.value_type)
    try:
        return column.to_numpy(zero_copy_only=False)
    except NotImplementedError:  # of a union, say
        return column.to_pylist()


def _listed(name: str, column: str, values: Any) -> Raw:
    if _library_of(values) == "pyarrow" and hasattr(values, "cast"):
        values = _of_arrow(values)
    elif _library_of(values) == "polars" and hasattr(values, "dtype"):
        values = _of_polars(values)
    elif hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, np.ma.MaskedArray):
        values = _unmasked(values)
    if isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable):
        raise InvalidInput(
            f"{name}: column {column!r} must be several values in order, but is {values!r:.80}"
        )
    return values if isinstance(values, np.ndarray) else list(values)


def _one_axis(name: str, column: str, values: Raw) -> Raw:
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InvalidInput(f"{name}: column {column!r} must have one axis, not {values.shape}")
    return values


def _unmasked(values: np.ma.MaskedArray) -> np.ndarray:
    """An array whose masked entries are missing values, whatever number lies below the mask."""
    kind = values.dtype.kind
    missing = np.array("NaT", values.dtype) if kind in "mM" else np.array(None)
    if kind in "fiub":
        missing = np.array(np.nan)
    return np.where(np.ma.getmaskarray(values), missing, np.ma.getdata(values))


# From files


def require_file(path: Path) -> str:
    """The kind of a table's file; raise unless it is there, and of one that is read."""
    kind = suffix_of(path)
    if kind not in KINDS:
        raise InvalidInput(f"{path}: a table is a file of {', '.join(KINDS)}, not {kind!r}")
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:  # not ours to look at, or no name that a file can have
        raise NotReadable(f"{path}: cannot be read ({error})") from None
    if not path.is_file():
        raise InvalidInput(f"{path}: is a folder or the like; a table is one file")
    return kind


def _from_file(path: Path, asked: list[str], text: str | None) -> dict[str, Raw]:
    """The asked columns of a file; that called `text` is not read as numbers where it is text."""
    kind = require_file(path)
    try:
        if kind == ".npz":
            return _of_npz(path, asked)
        if kind == ".parquet":
            return _of_parquet(path, asked)
        return _of_csv(path, asked, text)
    except (OSError, EOFError, zlib.error) as error:
        raise NotReadable(f"{path}: cannot be read ({error})") from None


def _of_npz(path: Path, asked: list[str]) -> dict[str, Raw]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            require_columns(str(path), asked, list(arrays))
            return {c: _one_axis(str(path), c, np.atleast_1d(arrays[c])) for c in asked}
    except (ValueError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise NotReadable(f"{path}: is no npz file of plain arrays ({error})") from None


def _of_parquet(path: Path, asked: list[str]) -> dict[str, Raw]:
    arrow = _pyarrow(str(path))
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as opened:  # Arrow itself opens no name that is not UTF-8
            file = pq.ParquetFile(opened)
            require_columns(str(path), asked, file.schema_arrow.names)
            read = file.read(columns=asked)
            return {c: _of_arrow(read.column(c)) for c in asked}
    except arrow.ArrowException as error:
        raise NotReadable(f"{path}: is no whole parquet file ({error})") from None


def _pyarrow(name: str) -> Any:
    words = f"{name} is read with pyarrow: install it with pip install 'coldq[tables]'"
    return installed("pyarrow", words)


def _of_csv(path: Path, asked: list[str], text: str | None) -> dict[str, Raw]:
    """The asked columns of a CSV file, as numbers where all of a chunk are, else as text."""
    opener: Any = gzip.open if suffix_of(path).endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        try:
            rows = _csv_rows(path, file, asked)
            header = next(rows, None)
            if header is None:
                raise InvalidInput(f"{path}: the file is empty; its first line names the columns")
            require_columns(str(path), asked, header)
            places = [header.index(column) for column in asked]
            chunks: list[list[Raw]] = []
            while some := list(islice(rows, CHUNK)):
                columns = {c: [row[k] for row in some] for c, k in zip(asked, places, strict=True)}
                if not chunks:
                    _doubt_dots(path, columns)
                chunks.append([t if c == text else _plain(t) for c, t in columns.items()])
        except UnicodeDecodeError:
            raise NotReadable(f"{path}: is no text in UTF-8") from None
    return {c: _chunks_joined([one[k] for one in chunks]) for k, c in enumerate(asked)}


def _csv_rows(path: Path, file: Any, asked: list[str]) -> Iterator[list[str]]:
    """The header and the rows, each as long as the header; blank lines are passed over.

    So are lines before the header that begin with #. Where there is one column a blank line is a
    row without a number, unless no row follows.
    """
    place, first = 0, file.readline()
    while first.startswith("#") or (first and not first.strip()):
        place, first = file.tell(), file.readline()
    separator = _separator(file, place, asked, tabs=suffix_of(path) == ".tsv")
    file.seek(place)
    reader = csv.reader(file, delimiter=separator, strict=True)
    width, blank = 0, 0
    try:
        for row in reader:
            if not row or (width > 1 and row == [""]):
                blank += 1
                continue
            if not width:
                width, row = len(row), [name.strip() for name in row]
            elif len(row) != width:
                raise InvalidInput(
                    f"{path}, line {reader.line_num}: the header names {width} columns, but this "
                    f"line has {len(row)}"
                )
            elif width == 1:
                yield from [[""]] * blank
            blank = 0
            yield row
    except csv.Error as error:
        raise NotReadable(
            f"{path}, line {reader.line_num}: not a row of a CSV file ({error})"
        ) from None


def _separator(file: Any, place: int, asked: list[str], *, tabs: bool) -> str:
    """What stands between the names of the header there: what yields most of those asked for."""

    def names(separator: str) -> tuple[int, bool, int]:
        file.seek(place)
        try:
            found = [name.strip() for name in next(csv.reader(file, delimiter=separator), [])]
        except csv.Error:
            found = []
        return sum(one in found for one in asked), tabs and separator == "\t", len(found)

    return max(",;\t", key=names)


def _doubt_dots(path: Path, columns: Mapping[str, list[str]]) -> None:
    """Warn of 987 beside 1.230: no program that writes the one so writes 1.23 as the other."""
    for column, texts in columns.items():
        if not all(map(THOUSANDS.fullmatch, texts)):
            continue
        whole = next((t.strip() for t in texts if t.strip(" +-0") and "." not in t), None)
        dotted = next((t.strip() for t in texts if "." in t and t.strip().endswith("0")), None)
        if whole and dotted:
            warn(
                f"{path}: column {column!r} has {whole} and {dotted}, which is read as "
                f"{float(dotted):g}; does that dot stand between thousands? It must not be there",
                UnlikelyUnits,
            )


def _plain(texts: list[str]) -> Raw:
    """Numbers, if all of them are such; then most of a large file is never kept as text."""
    if "_" in "".join(texts):  # Python would read 1_0 as ten
        return texts
    try:
        return np.array([float(text) for text in texts])
    except ValueError:
        return texts


def _chunks_joined(chunks: list[Raw]) -> Raw:
    if all(isinstance(chunk, np.ndarray) for chunk in chunks):
        return np.concatenate(chunks) if chunks else np.zeros(0)  # type: ignore[arg-type]
    joined: list[Any] = []
    for chunk in chunks:
        joined += chunk.tolist() if isinstance(chunk, np.ndarray) else chunk
    return joined


# Numbers and times


def _numbers(name: str, column: str, values: Raw) -> Array:
    """A column as numbers, NaN where there is none; anything else is refused with its row."""
    given = values if isinstance(values, np.ndarray) else None
    if given is not None and given.dtype.kind == "m":
        raise InvalidInput(f"{name}: column {column!r} must be numbers, but is durations")
    if given is not None and given.dtype.kind == "M":
        raise InvalidInput(f"{name}: column {column!r} must be numbers, but is times")
    if given is not None and given.dtype.kind in "fiub":
        found = given.astype(np.float64)
    else:
        found = np.array([_number(name, column, k, v) for k, v in enumerate(values)], np.float64)
    wrong = np.isinf(found)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise InvalidInput(f"{name}: column {column!r} must be finite, but is {found[k]} {at(k)}")
    return found


def _is_missing(value: Any) -> bool:
    return value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType")


def _number(name: str, column: str, k: int, value: Any) -> float:
    if _is_missing(value):
        return np.nan
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str) and value.strip().lower() in MISSING:
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
    given = values if isinstance(values, np.ndarray) else None
    if given is not None and given.dtype.kind == "M":
        found = given.astype("datetime64[us]")
    elif time_format is None and given is not None and given.dtype.kind in "fiu":
        found = given.astype(np.float64)
    else:
        read = [_time(name, column, k, v, time_format) for k, v in enumerate(values)]
        stamps, zoned = [stamp for stamp, _ in read], [zone for _, zone in read]
        if all(isinstance(stamp, float) for stamp in stamps):
            found = np.array(stamps)
        elif any(isinstance(stamp, float) for stamp in stamps):
            raise InvalidInput(f"{name}: time column {column!r} mixes numbers and dates")
        else:
            _require_one_clock(name, column, values, zoned)
            found = np.array(stamps, "datetime64[us]")
    odd = ~np.isfinite(found) if found.dtype.kind == "f" else np.isnat(found)
    if odd.any():
        raise _no_time(name, column, int(np.argmax(odd)))
    return found


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
