"""What a command needs beside the library."""

from __future__ import annotations

from importlib.util import find_spec

from coldq.errors import InvalidInput


def require_report() -> None:
    """Raise unless what the report needs is installed."""
    require("the report", "report", "jinja2", "matplotlib", "plotly", "pyarrow")


def require(what: str, extra: str, *modules: str) -> None:
    """Raise unless what a command needs is installed."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise InvalidInput(
            f"{what} needs {', '.join(missing)}: install them with pip install 'coldq[{extra}]'"
        )
