"""Series over the slots, drawn with Matplotlib: axes in, axes out, nothing global."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coldq._looks import PALETTE
from coldq._values import Array, flag, is_several
from coldq.errors import InvalidInput, installed

PANEL = (7.0, 2.2)  # inches of one panel
NAMED = 10  # lines up to which a legend names them
SUMMED = ("loss", "violation")
SYMBOLS = {"decisions": "x"}


def draw_panels(
    series: Mapping[str, Array], what: Any, ax: Any, cumulative: bool, line: Mapping[str, Any]
) -> Any:
    """A panel for each of the series chosen, which have the axes (S, T) or (S, T, lines)."""
    alone, chosen = chosen_panels(what, tuple(series))
    cumulative = flag("cumulative", cumulative)
    axes = panel_axes(ax, len(chosen))
    for panel, name in zip(axes, chosen, strict=True):
        values = series[name]
        if cumulative and name in SUMMED:
            values = np.add.accumulate(values, axis=1)
        many = values[..., None] if values.ndim == 2 else values
        count = many.shape[-1]
        for k in range(count):
            label = f"{SYMBOLS.get(name, name)}_{k + 1}" if values.ndim == 3 else name
            given = {"color": PALETTE[k % len(PALETTE)].colour, "label": label, **line}
            draw_line(panel, many[..., k], given)
        finish(panel, name, cumulative)
        if 1 < count <= NAMED:
            panel.legend(frameon=False, ncols=min(count, 5))
    axes[-1].set_xlabel("slot t")
    return axes[0] if alone else axes


def chosen_panels(what: Any, known: tuple[str, ...]) -> tuple[bool, tuple[str, ...]]:
    """Whether one panel was asked for by its name, and the names of all that are to be drawn."""
    alone = isinstance(what, str)
    if what is not None and not is_several(what):
        raise InvalidInput(f"what must be names such as 'loss', but is {what!r:.200}")
    chosen = (what,) if alone else known if what is None else tuple(what)
    for name in chosen:
        if not isinstance(name, str) or name not in known:
            kept = "simulate(..., keep=[...]) keeps more"
            raise InvalidInput(f"what may name {', '.join(known)}, but has {name!r:.80}; {kept}")
    if not chosen:
        raise InvalidInput(f"what must name at least one of {', '.join(known)}, but is empty")
    return alone, chosen


def panel_axes(ax: Any, count: int) -> np.ndarray:
    """Axes for that many panels, an array: those given, or those of a new figure."""
    if ax is None:
        words = "pictures need Matplotlib: install it with pip install 'coldq[report]'"
        figures = installed("matplotlib.figure", words)
        figure = figures.Figure(figsize=(PANEL[0], PANEL[1] * count), layout="constrained")
        return figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    axes = np.array(ax, dtype=object).ravel()
    if len(axes) != count or not all(hasattr(each, "fill_between") for each in axes):
        panels = "one of Matplotlib's axes" if count == 1 else f"{count} of Matplotlib's axes"
        raise InvalidInput(f"ax must be {panels}, one a panel, but is {ax!r:.200}")
    return axes


def draw_line(panel: Any, values: Array, line: Mapping[str, Any]) -> None:
    """The mean of several seeds (S, T) as a line, and their range as a band."""
    t = np.arange(1, values.shape[1] + 1)
    try:
        (drawn,) = panel.plot(t, values.mean(axis=0), **line)
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidInput(f"Matplotlib's Axes.plot refuses the line's options: {error}") from None
    if len(values) > 1:
        low, high = values.min(axis=0), values.max(axis=0)
        panel.fill_between(t, low, high, color=drawn.get_color(), alpha=0.15, linewidth=0.0)


def finish(panel: Any, name: str, cumulative: bool) -> None:
    """A title, and a quiet frame."""
    panel.set_title(f"{name} so far" if cumulative and name in SUMMED else name)
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(visible=True, color="#E3E3E3", linewidth=0.5)
    panel.set_axisbelow(True)


def agents_as_seeds(values: Array) -> Array:
    """(S, T, n, ...) as (S n, T, ...)."""
    moved = np.moveaxis(values, 2, 1)
    return moved.reshape(-1, *moved.shape[2:])
