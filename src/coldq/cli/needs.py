"""What a command needs beside the library."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from coldq.base.errors import InvalidInput
from coldq.base.files import require_writable
from coldq.evaluation.report.files import require_own_page

REPORT_MODULES = ("jinja2", "matplotlib", "pyarrow")
RESULT_MEGABYTES = 20.0  # of most results, with room to spare


def require_report(page: Path, megabytes: float = RESULT_MEGABYTES) -> None:
    """Raise unless a report can be written: its libraries, and a place for it."""
    require("the report", "report", *REPORT_MODULES)
    require_place(page, megabytes)


def require_place(page: Path, megabytes: float = RESULT_MEGABYTES) -> None:
    """Raise unless a page can be written there: room for it, and no page of another's."""
    require_writable(page.parent, megabytes)
    require_own_page(page)


def require(what: str, extra: str, *modules: str) -> None:
    """Raise unless what a command needs is installed."""
    words = lacking(what, extra, *modules)
    if words:
        raise InvalidInput(words)


def lacking(what: str, extra: str, *modules: str) -> str:
    """Which of the modules are not installed, and what installs them; nothing if all are."""
    missing = [name for name in modules if find_spec(name) is None]
    if not missing:
        return ""
    return f"{what} needs {', '.join(missing)}: install them with pip install 'coldq[{extra}]'"
