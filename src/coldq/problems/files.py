"""Files of tables: CSV, parquet and npz."""

from __future__ import annotations

import csv
import gzip
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from coldq.base.errors import InvalidInput, NotReadable, UnlikelyUnits, installed, warn
from coldq.base.keys import Place, nearest, text

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".parquet", ".npz")
ROWS_AS_TEXT = 1 << 16  # rows of a CSV file that are text at one time
DOTTED_NUMBER = re.compile(r"\s*([+-]?\d{1,3}|[+-]?[1-9]\d{0,2}\.\d{3}|)\s*")  # 987 and 1.230


def is_path(table: Any) -> bool:
    """Whether a table is given by the place of its file."""
    return isinstance(table, str | os.PathLike)


def suffix_of(path: Path) -> str:
    """The kind of a file, ".csv.gz" being one."""
    zipped = path.suffix.lower() == ".gz"
    return "".join(path.suffixes[-2:] if zipped else path.suffixes[-1:]).lower()


def stem_of(path: Path) -> str:
    """A file's name without its kind, however that is written.

    >>> from coldq.problems.files import stem_of
    >>> stem_of(Path("march/load.csv.gz")), stem_of(Path("LOAD.CSV.GZ"))
    ('load', 'LOAD')
    """
    return path.name[: len(path.name) - len(suffix_of(path))]


def require_file(path: Path) -> str:
    """The kind of a table's file; raise unless it is there, and of one that is read."""
    kind = suffix_of(path)
    if kind not in SUFFIXES:
        raise InvalidInput(f"{path}: a table is a file of {', '.join(SUFFIXES)}, not {kind!r}")
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:  # not ours to look at, or no name that a file can have
        raise NotReadable(f"{path}: cannot be read ({error})") from None
    if not path.is_file():
        raise InvalidInput(f"{path}: is a folder or the like; a table is one file")
    return kind


def beside(path: Path, keys: Mapping[str, Any]) -> Path:
    """The table that a TOML file is about: the one it names, or that of its own name."""
    if "table" in keys:
        return path.parent / text(Place(str(path)), "table", keys["table"])
    for kind in SUFFIXES:
        if (path.parent / f"{path.stem}{kind}").is_file():
            return path.parent / f"{path.stem}{kind}"
    raise InvalidInput(
        f'{path}: no table {path.stem}.csv, .parquet or .npz lies beside it; table = "name.csv" '
        "names another"
    )


def read_file(path: Path, asked: Sequence[str], as_text: str | None) -> Any:
    """The asked columns of a file: a mapping of them by name, or a table of Arrow's.

    In a CSV file the column called `as_text` is not read as numbers.
    """
    kind = require_file(path)
    try:
        if kind == ".npz":
            return _read_npz(path, asked)
        if kind == ".parquet":
            return _read_parquet(path, asked)
        return _read_csv(path, asked, as_text)
    except (OSError, EOFError, zlib.error) as error:
        raise NotReadable(f"{path}: cannot be read ({error})") from None


def require_columns(
    name: str, asked: Sequence[str], there: Sequence[Any], besides: str = ""
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


def _read_npz(path: Path, asked: Sequence[str]) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            require_columns(str(path), asked, list(arrays))
            return {column: np.atleast_1d(arrays[column]) for column in asked}
    except (ValueError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise NotReadable(f"{path}: is no npz file of plain arrays ({error})") from None


def _read_parquet(path: Path, asked: Sequence[str]) -> Any:
    arrow = pyarrow(str(path))
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as opened:  # Arrow itself opens no name that is not UTF-8
            file = pq.ParquetFile(opened)
            require_columns(str(path), asked, file.schema_arrow.names)
            return file.read(columns=list(asked))
    except arrow.ArrowException as error:
        raise NotReadable(f"{path}: is no whole parquet file ({error})") from None


def pyarrow(name: str) -> Any:
    """The package pyarrow; a sentence on what needs it where it is not installed."""
    words = f"{name} is read with pyarrow: install it with pip install 'coldq[tables]'"
    return installed("pyarrow", words)


def _read_csv(path: Path, asked: Sequence[str], as_text: str | None) -> dict[str, Any]:
    """The asked columns of a CSV file, as numbers where all of a chunk are, else as text."""
    opener: Any = gzip.open if suffix_of(path).endswith(".gz") else open
    chunks: list[list[Any]] = []
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        try:
            rows = _csv_rows(path, file, asked)
            header = next(rows, None)
            if header is None:
                raise InvalidInput(f"{path}: the file is empty; its first line names the columns")
            require_columns(str(path), asked, header)
            places = [header.index(column) for column in asked]
            while some := list(islice(rows, ROWS_AS_TEXT)):
                texts = {c: [row[k] for row in some] for c, k in zip(asked, places, strict=True)}
                if not chunks:
                    _doubt_dots(path, texts)
                chunks.append([t if c == as_text else _numbers(t) for c, t in texts.items()])
        except UnicodeDecodeError:
            raise NotReadable(f"{path}: is no text in UTF-8") from None
    return {c: _joined([chunk[k] for chunk in chunks]) for k, c in enumerate(asked)}


def _csv_rows(path: Path, file: Any, asked: Sequence[str]) -> Iterator[list[str]]:
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


def _separator(file: Any, place: int, asked: Sequence[str], *, tabs: bool) -> str:
    """What stands between the names of the header there: what yields most of those asked for."""

    def names(separator: str) -> tuple[int, bool, int]:
        file.seek(place)
        try:
            header = [name.strip() for name in next(csv.reader(file, delimiter=separator), [])]
        except csv.Error:
            header = []
        return sum(one in header for one in asked), tabs and separator == "\t", len(header)

    return max(",;\t", key=names)


def _doubt_dots(path: Path, columns: Mapping[str, list[str]]) -> None:
    """Warn of 987 beside 1.230: no program that writes the one so writes 1.23 as the other."""
    for column, texts in columns.items():
        if not all(map(DOTTED_NUMBER.fullmatch, texts)):
            continue
        whole = next((t.strip() for t in texts if t.strip(" +-0") and "." not in t), None)
        dotted = next((t.strip() for t in texts if "." in t and t.strip().endswith("0")), None)
        if whole and dotted:
            warn(
                f"{path}: column {column!r} has {whole} and {dotted}, which is read as "
                f"{float(dotted):g}; does that dot stand between thousands? It must not be there",
                UnlikelyUnits,
            )


def _numbers(texts: list[str]) -> list[str] | np.ndarray:
    """Numbers, if all of them are such; then most of a large file is never kept as text."""
    if "_" in "".join(texts):  # Python would read 1_0 as ten
        return texts
    try:
        return np.array([float(text) for text in texts])
    except ValueError:
        return texts


def _joined(chunks: list[Any]) -> Any:
    if all(isinstance(chunk, np.ndarray) for chunk in chunks):
        return np.concatenate(chunks) if chunks else np.zeros(0)
    return [cell for chunk in chunks for cell in chunk]
