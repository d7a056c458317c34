"""The data that comes with the package; README.md in this folder says what it is and is not."""

from __future__ import annotations

import gzip

import numpy as np

from coldq.base.arrays import Array


def text(name: str) -> str:
    """The text of a file in this folder, unpacked if it is gzipped.

    >>> from coldq.problems import data
    >>> data.text("nasa-http-requests-5min-1995-07-01_1995-07-10.csv.gz").splitlines()[0]
    'timestamp,requests'
    """
    from importlib.resources import files  # slow to import, and seldom needed

    content = files(__name__).joinpath(name).read_bytes()
    return (gzip.decompress(content) if name.endswith(".gz") else content).decode()


def columns(name: str) -> tuple[tuple[str, ...], Array]:
    """The names of a table's columns and its numbers, (T, columns), but for the first, its times.

    >>> from coldq.problems import data
    >>> data.columns("nasa-http-requests-5min-1995-07-01_1995-07-10.csv.gz")[1].shape
    (2880, 1)
    """
    header, *rows = text(name).splitlines()
    names = tuple(header.split(",")[1:])
    values = np.loadtxt(rows, delimiter=",", usecols=range(1, len(names) + 1), ndmin=2)
    values.flags.writeable = False
    return names, values
