"""What a command needs beside the library."""

from __future__ import annotations

from importlib.util import find_spec

from coldq.errors import InvalidInput

REPORT_NEEDS = ("jinja2", "matplotlib", "plotly", "pyarrow")


def require_report() -> None:
    """Raise unless what the report needs is installed."""
    missing = [name for name in REPORT_NEEDS if find_spec(name) is None]
    if missing:
        raise InvalidInput(
            f"the report needs {', '.join(missing)}: install them with pip install 'coldq[report]'"
        )
