"""The data that comes with the package; README.md in this folder says what it is and is not."""

from __future__ import annotations

import gzip


def text(name: str) -> str:
    """The text of a file in this folder, unpacked if it is gzipped.

    >>> from coldq.problems import data
    >>> data.text("nasa-http-requests-5min-1995-07-01_1995-07-10.csv.gz").splitlines()[0]
    'timestamp,requests'
    """
    from importlib.resources import files  # slow to import, and seldom needed

    content = files(__name__).joinpath(name).read_bytes()
    return (gzip.decompress(content) if name.endswith(".gz") else content).decode()
