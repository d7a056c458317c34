"""How results show themselves in a notebook, and progress wherever somebody watches.

Nothing here needs more than Python: IPython is asked only where it already runs.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any, TypeVar

DELAY = 1.0  # seconds of work before a bar appears
PAUSE = 0.2  # seconds between two changes of a notebook's bar
Item = TypeVar("Item")


def html_table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    notes: Iterable[str] = (),
) -> str:
    """A table under a title, and sentences below it; the first column names its row.

    >>> from coldq.base.notebook import html_table
    >>> print(html_table("A < B", ("name", "cost"), [("A", 1.5)], ["Made up."]))
    <p><strong>A &lt; B</strong></p>
    <table><thead><tr><th style="text-align: left">name</th><th>cost</th></tr></thead>
    <tbody><tr><th style="text-align: left">A</th><td>1.5</td></tr></tbody></table>
    <p>Made up.</p>
    """
    left = ' style="text-align: left"'

    def cells(tag: str, texts: Sequence[object]) -> str:
        named, *others = (escape(str(text)) for text in texts)
        return f"<th{left}>{named}</th>" + "".join(f"<{tag}>{text}</{tag}>" for text in others)

    head = f"<thead><tr>{cells('th', headings)}</tr></thead>\n" if headings else ""
    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    above = f"<p><strong>{escape(title)}</strong></p>\n"
    below = "".join(f"\n<p>{escape(note)}</p>" for note in notes)
    return f"{above}<table>{head}<tbody>{body}</tbody></table>{below}"


def in_notebook() -> bool:
    """Whether a notebook shows what this process displays."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel")


_hidden = False


@contextmanager
def no_bars() -> Generator[None]:
    """No bars of single runs, while another one counts these."""
    global _hidden
    before, _hidden = _hidden, True
    try:
        yield
    finally:
        _hidden = before


def watched() -> bool:
    """Whether somebody watches: a terminal or a notebook, and this is no worker of another."""
    if _hidden:
        return False
    alone = threading.current_thread() is threading.main_thread()
    if multiprocessing.parent_process() is not None or not alone:
        return False
    return sys.stderr.isatty() or in_notebook()


def track(items: Sequence[Item], words: str, shown: bool | None = None) -> Iterator[Item]:
    """The items, with a bar after the first second; by default only where somebody watches."""
    return track_all(items, len(items), words, shown)


def track_all(
    items: Iterable[Item], total: int, words: str, shown: bool | None = None
) -> Iterator[Item]:
    """Show a bar for items that come one by one, of which there will be `total`."""
    if not (watched() if shown is None else shown):
        yield from items
        return
    with bar(words, total) as done:
        for item in items:
            yield item
            done()


@contextmanager
def bar(words: str, total: int) -> Generator[Callable[[], None]]:
    """A bar of so many steps; what it gives is called after each."""
    begun, count = time.monotonic(), 0
    change: Callable[[int], None] | None = None
    make = _in_cell(words, total) if in_notebook() else _on_terminal(words, total)

    def done() -> None:
        nonlocal count, change
        count += 1
        if change is None and time.monotonic() - begun > DELAY:
            change = next(make)
        if change is not None:
            change(count)

    try:
        yield done
    finally:
        make.close()


def _on_terminal(words: str, total: int) -> Generator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(words, total=total)
        yield lambda count: shown.update(task, completed=count)


def _in_cell(words: str, total: int) -> Generator[Callable[[int], None]]:
    # It runs already.
    from IPython.display import HTML, display  # pyright: ignore[reportUnknownVariableType]

    def drawn(count: int) -> Any:
        label = f"{escape(words)}: {count:,} of {total:,}"
        return HTML(f'<progress value="{count}" max="{total}"></progress> {label}')

    handle: Any = display(drawn(0), display_id=True)
    latest = time.monotonic()

    def change(count: int) -> None:
        nonlocal latest
        if time.monotonic() - latest > PAUSE:
            handle.update(drawn(count))
            latest = time.monotonic()

    try:
        yield change
    finally:
        handle.update(HTML(""))
