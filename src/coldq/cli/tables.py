"""Tables in a terminal, or in a file or pipe: cells are folded, never cut."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

MIN_COLUMNS, PIPE_COLUMNS = 80, 120  # columns: of any terminal, and where nobody watches


def console() -> Console:
    """The standard output, as wide as its terminal; where there is none, wide enough to read.

    Brackets and colons are printed as they are: they stand in names that users give.
    """
    from rich.console import Console

    plain = partial(Console, markup=False, emoji=False)
    shown = plain()
    least = MIN_COLUMNS if shown.is_terminal else PIPE_COLUMNS
    return shown if shown.width >= least else plain(width=least)


def table(title: str, left: Iterable[str], right: Iterable[str] = ()) -> Table:
    """A table without rows, its columns aligned to the left, then some to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    rows = Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for heading in left:
        rows.add_column(heading, overflow="fold")
    for heading in right:
        rows.add_column(heading, justify="right", overflow="fold")
    return rows
