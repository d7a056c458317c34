"""A figure of Matplotlib's that notebooks show by itself. Imported only where one is drawn."""

from __future__ import annotations

import base64
import io
from typing import Any

from matplotlib import figure

SHARPNESS = 2  # dots of the picture for a dot of the page


class Figure(figure.Figure):
    """What the plots of this library are drawn on; pyplot knows nothing of it.

    >>> from coldq.base.figure import Figure
    >>> Figure(figsize=(2.0, 1.0))._repr_html_()[:36]
    '<img width="200" style="max-width: 1'
    """

    def _repr_html_(self) -> str:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=SHARPNESS * self.dpi)  # pyright: ignore[reportUnknownMemberType]
        data = base64.b64encode(content.getvalue()).decode()
        width = round(self.get_figwidth() * self.dpi)
        style = 'style="max-width: 100%; background: #fff"'
        return f'<img width="{width}" {style} alt="plot" src="data:image/png;base64,{data}">'


def subplots(width: float, height: float, rows: int, columns: int, **more: Any) -> Any:
    """The axes of a new figure, an array of so many rows and columns."""
    drawn = Figure(figsize=(width, height), layout="constrained")
    return drawn.subplots(rows, columns, squeeze=False, **more)
