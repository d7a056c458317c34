"""Series over the slots, drawn with Matplotlib: a new figure, or the axes given; nothing global."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coldq.base.arrays import Array, flag, is_several
from coldq.base.errors import InvalidInput, installed
from coldq.base.palette import PALETTE

NO_MATPLOTLIB = "pictures need Matplotlib: install it with pip install 'coldq[report]'"
PANEL_SIZE = (7.0, 2.2)  # inches
MAX_NAMED = 10  # lines up to which a legend names them
CUMULATIVE_SERIES = ("loss", "violation")
SYMBOLS = {"decisions": "x"}
Lines = Sequence[tuple[str, Array]]  # labels, and of each the seeds' series (S, T)


def draw_panels(
    series: Mapping[str, Lines],
    what: Any,
    ax: Any,
    cumulative: bool,
    line: Mapping[str, Any],
    *,
    named: int = MAX_NAMED,
) -> np.ndarray:
    """A panel for each of the series chosen, with a legend where there are few lines in it."""
    chosen = _chosen_panels(what, tuple(series))
    cumulative = flag("cumulative", cumulative)
    axes = _panel_axes(ax, len(chosen))
    for panel, name in zip(axes, chosen, strict=True):
        summed, lines = cumulative and name in CUMULATIVE_SERIES, series[name]
        for k, (label, values) in enumerate(lines):
            given = {"color": PALETTE[k % len(PALETTE)].colour, "label": label, **line}
            _draw_line(panel, np.add.accumulate(values, axis=1) if summed else values, given)
        panel.set_title(f"{name} so far" if summed else name)
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(visible=True, color="#E3E3E3", linewidth=0.5)
        panel.set_axisbelow(True)
        if 1 < len(lines) <= named:
            panel.legend(frameon=False, ncols=min(len(lines), 5))
    axes[-1].set_xlabel("slot t")
    return axes


def drawn_on(axes: np.ndarray, ax: Any) -> Any:
    """What a plot returns: its figure, or the axes that it was given."""
    return axes[0].figure if ax is None else ax


def lines_of(name: str, values: Array, *, agents: bool) -> Lines:
    """A line for each entry of the last axis of (S, T, lines), or of a network's (S, T, n, lines),
    whose agents count as seeds do."""
    if agents:
        moved = np.moveaxis(values, 2, 1)
        values = moved.reshape(-1, *moved.shape[2:])
    symbol = SYMBOLS.get(name, name)
    return [(f"{symbol}_{k + 1}", values[..., k]) for k in range(values.shape[-1])]


def _chosen_panels(what: Any, known: tuple[str, ...]) -> tuple[str, ...]:
    """The names of all panels that are to be drawn."""
    if what is not None and not is_several(what):
        raise InvalidInput(f"what must be names such as 'loss', but is {what!r:.200}")
    chosen = (what,) if isinstance(what, str) else known if what is None else tuple(what)
    for name in chosen:
        if not isinstance(name, str) or name not in known:
            kept = "simulate(..., keep=[...]) keeps more"
            raise InvalidInput(f"what may name {', '.join(known)}, but has {name!r:.80}; {kept}")
    if not chosen:
        raise InvalidInput(f"what must name at least one of {', '.join(known)}, but is empty")
    return chosen


def _panel_axes(ax: Any, count: int) -> np.ndarray:
    """Axes for that many panels, an array: those given, or those of a new figure."""
    if ax is None:
        new = installed("coldq.base.figure", NO_MATPLOTLIB)
        return new.subplots(PANEL_SIZE[0], PANEL_SIZE[1] * count, count, 1, sharex=True)[:, 0]
    axes = np.array(ax, dtype=object).ravel()
    if len(axes) != count or not all(hasattr(each, "fill_between") for each in axes):
        panels = "one of Matplotlib's axes" if count == 1 else f"{count} of Matplotlib's axes"
        raise InvalidInput(f"ax must be {panels}, one a panel, but is {ax!r:.200}")
    return axes


def _draw_line(panel: Any, values: Array, line: Mapping[str, Any]) -> None:
    """The mean of several seeds (S, T) as a line, and their range as a band."""
    t = np.arange(1, values.shape[1] + 1)
    try:
        (drawn,) = panel.plot(t, values.mean(axis=0), **line)
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidInput(f"Matplotlib's Axes.plot refuses the line's options: {error}") from None
    if len(values) > 1:
        low, high = values.min(axis=0), values.max(axis=0)
        panel.fill_between(t, low, high, color=drawn.get_color(), alpha=0.15, linewidth=0.0)
