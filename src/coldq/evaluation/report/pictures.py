"""Pictures as PNG, PDF and SVG, each file whole or not at all."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine

from coldq.base.files import whole_file

DOTS_PER_INCH = 300
SUFFIXES = (".png", ".pdf")
STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with Matplotlib: the same on every machine
    "font.size": 7.5,
    "axes.titlesize": 8.0,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "pdf.fonttype": 42,  # text stays text
    "svg.hashsalt": "coldq",  # names inside the file that are the same in every run
}


def write_picture(path: Path, draw: Callable[..., Canvas], *shown: Any) -> Canvas:
    """Draw a picture of what is shown, and write it whole, in every format."""
    with matplotlib.rc_context(STYLE):
        canvas = draw(*shown)
        _settle(canvas)
        for suffix in SUFFIXES:
            with whole_file(path.with_name(path.name + suffix)) as temporary:
                _print(canvas, suffix, temporary)
    return canvas


def new_canvas(width: float, height: float) -> Canvas:
    """An empty picture, in inches."""
    canvas = Canvas(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(canvas)
    return canvas


def _print(canvas: Canvas, suffix: str, file: Any) -> None:
    """As `savefig` does, which draws a picture twice, the first time to lay it out.

    Neither the day nor the program are in it: the same runs give the same bytes.
    """
    shown = canvas.dpi
    canvas.set_dpi(DOTS_PER_INCH)
    match suffix:
        case ".png":
            FigureCanvasAgg(canvas).print_png(file, metadata={"Software": None})
        case ".pdf":
            unstamped = {"CreationDate": None, "Creator": None, "Producer": None}
            FigureCanvasPdf(canvas).print_pdf(file, metadata=unstamped)
        case ".svg":
            FigureCanvasSVG(canvas).print_svg(file, metadata={"Date": None, "Creator": None})
    canvas.set_dpi(shown)


def _settle(canvas: Canvas) -> None:
    """Lay the picture out, once for all formats: that takes longer than to draw it."""
    if isinstance(canvas.get_layout_engine(), ConstrainedLayoutEngine):
        canvas.draw_without_rendering()
        canvas.set_layout_engine("none")


def as_address(canvas: Canvas) -> str:
    """A picture that was written, as SVG inside an address: the page needs no other file."""
    content = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        _print(canvas, ".svg", content)
    return f"data:image/svg+xml;base64,{base64.b64encode(content.getvalue()).decode()}"
