"""What a command needs beside the library."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from coldq.errors import InvalidInput
from coldq.files import require_writable
from coldq.report.files import require_own_page

MEGABYTES = 20.0  # of most results, with room to spare


def require_report(out: Path, megabytes: float = MEGABYTES) -> None:
    """Raise unless a report can be written there: its libraries, room, and no page of another's."""
    require("the report", "report", "jinja2", "matplotlib", "plotly", "pyarrow")
    require_writable(out, megabytes)
    require_own_page(out / "index.html")


def require(what: str, extra: str, *modules: str) -> None:
    """Raise unless what a command needs is installed."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise InvalidInput(
            f"{what} needs {', '.join(missing)}: install them with pip install 'coldq[{extra}]'"
        )
