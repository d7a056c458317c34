"""Columns of equal length as a table of pandas, Polars or Arrow, and in parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import installed
from coldq.base.files import whole_file


class Tabular:
    """A value with columns, which is handed out as a table of the library that is asked for.

    >>> import numpy as np
    >>> from coldq.base.tabular import Tabular
    >>> class Prices(Tabular):
    ...     def _columns(self):
    ...         return {"slot": np.arange(1, 3), "price": np.array([2.0, 3.0])}
    >>> Prices().to_arrow().column_names
    ['slot', 'price']
    """

    def _columns(self) -> dict[str, np.ndarray]:
        """Arrays of one axis by name, in order."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """A pandas DataFrame."""
        return library("pandas").DataFrame(self._columns())

    def to_polars(self) -> Any:
        """A Polars DataFrame."""
        return library("polars").DataFrame(self._columns())

    def to_arrow(self) -> Any:
        """A PyArrow Table."""
        return library("pyarrow").table(self._columns())


def numbered(name: str, values: Array) -> dict[str, Array]:
    """A column for each entry of the last axis, counted from 1; the other axes are the rows.

    >>> import numpy as np
    >>> from coldq.base.tabular import numbered
    >>> numbered("x", np.array([[1.0, 2.0], [3.0, 4.0]]))
    {'x_1': array([1., 3.]), 'x_2': array([2., 4.])}
    """
    return {f"{name}_{n + 1}": values[..., n].ravel() for n in range(values.shape[-1])}


def library(name: str) -> Any:
    """A library that only tables and pictures need; raise if it is not installed."""
    package = name.partition(".")[0]
    words = f"this table needs {package}: install it with pip install 'coldq[tables]'"
    return installed(name, words)


def write_parquet(table: Any, path: Path, through: Path | None = None) -> None:
    """Write a table of Arrow's as a :func:`~coldq.base.files.whole_file`."""
    parquet = library("pyarrow.parquet")
    # Arrow itself opens no name that is not UTF-8.
    with whole_file(path, through) as temporary, temporary.open("wb") as file:
        parquet.write_table(table, file)


def read_parquet(path: Path) -> Any:
    """A table of Arrow's, from a file that `write_parquet` wrote."""
    with path.open("rb") as file:
        return library("pyarrow.parquet").read_table(file)
