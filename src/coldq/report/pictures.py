"""The figures as PNG and PDF, at the width of a paper's page."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import StrMethodFormatter

from coldq.experiments.figures import Figure, Setting
from coldq.experiments.runs import FigureRuns
from coldq.files import whole_file
from coldq.report.curves import (
    Curve,
    Look,
    curves,
    frame,
    log_floor,
    looks,
    outside,
    spans_magnitudes,
)
from coldq.report.numbers import number, superscripts

INCHES, DOTS = (7.0, 3.1), 300
SUFFIXES = (".png", ".pdf")
MARKERS = 7
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


def picture_name(figure: Figure, setting: Setting) -> str:
    """The files of one setting of a figure, without their suffixes.

    >>> from coldq.experiments.figures import find
    >>> from coldq.report.pictures import picture_name
    >>> picture_name(find("linear"), find("linear").settings[0])
    'linear-printed'
    """
    return f"{figure.key}-{setting.key}"


def write_pictures(runs: FigureRuns, folder: Path) -> None:
    """Write one PNG, of 300 dots an inch, and one PDF for every setting of the figure.

    Two panels, loss and violation: means over seeds, their range shaded, the published curves
    dashed.

    >>> import pathlib, tempfile
    >>> from dataclasses import replace
    >>> from coldq.experiments.figures import Setting, find
    >>> from coldq.experiments.runs import run_figures
    >>> from coldq.problems import OnlineLinear
    >>> from coldq.report.pictures import write_pictures
    >>> short = (Setting("short", "X = [0, 1]^2", OnlineLinear(horizon=20)),)
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> (runs,) = run_figures([replace(find("linear"), settings=short)], seeds=(0,))
    >>> write_pictures(runs, folder)
    >>> sorted(path.name for path in folder.iterdir())
    ['linear-short.pdf', 'linear-short.png']
    """
    for setting in runs.figure.settings:
        write_picture(folder / picture_name(runs.figure, setting), _draw, runs, setting)


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
    canvas.set_dpi(DOTS)
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


def _draw(runs: FigureRuns, setting: Setting) -> Canvas:
    figure = runs.figure
    canvas = new_canvas(*INCHES)
    title = superscripts(f"Figure {figure.number}. {figure.title}: {setting.title}")
    canvas.suptitle(title, fontsize=8.5, parse_math=False)  # a $ is a dollar
    look = looks(run.entry.label for run in runs.runs)
    left, right = canvas.subplots(1, 2)
    panels = (("loss", left, figure.loss_label), ("violation", right, figure.violation_label))
    drawn: tuple[Curve, ...] = ()
    for measure, axes, label in panels:
        drawn = curves(runs, setting, measure)
        _panel(axes, drawn, look, logarithmic=measure == "violation" and spans_magnitudes(drawn))
        axes.set_title(label, loc="left", parse_math=False)
        axes.set_xlabel("slot t")
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    _legend(canvas, drawn, look)
    return canvas


def _panel(axes: Any, drawn: Sequence[Curve], look: dict[str, Look], *, logarithmic: bool) -> None:
    axes.set_xlim(0.0, drawn[0].t[-1])
    for i, curve in enumerate(drawn):
        style, plotted = look[curve.label], curve.plotted
        if curve.seeds > 1:
            axes.fill_between(
                curve.t, curve.low, curve.high, color=style.colour, alpha=0.12, linewidth=0.0
            )
        # Markers at even slots, shifted from learner to learner: they do not cover each other.
        places = (np.arange(MARKERS) + (i + 1.0) / (len(drawn) + 1.0)) * curve.t[-1] / MARKERS
        axes.plot(
            curve.t,
            curve.mean,
            color=style.colour,
            linewidth=1.4 if plotted else 0.9,
            marker=style.marker,
            markersize=4.0 if plotted else 3.6,
            markeredgecolor="white",
            markeredgewidth=0.35,
            markevery=np.unique(np.searchsorted(curve.t, places)).tolist(),
            zorder=2.5 if plotted else 3.0,  # thin lines over thick ones: both can be seen
        )
        if curve.published is not None:
            axes.plot(
                *curve.published,
                color=style.colour,
                linewidth=0.9,
                linestyle=(0.0, (4.0, 2.0)),
                zorder=2.7,
            )
    if logarithmic:
        floor = log_floor(drawn) or 1.0
        axes.set_yscale("symlog", linthresh=floor, linscale=0.5)
        axes.set_ylim(bottom=-0.3 * floor)  # a line at zero lies above the axis, not on it
    else:
        _fit(axes, drawn)


def _fit(axes: Any, drawn: Sequence[Curve]) -> None:
    """Fit the paper's learners; of those that leave the frame say where they end."""
    low, high = frame(drawn)
    axes.set_ylim(low, high)
    if high - low > 1e4:
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    away = outside(drawn)
    if away:
        words = "\n".join(f"{curve.label} ends at {number(curve.mean[-1])}" for curve in away)
        axes.text(
            0.98, 0.03, f"outside:\n{words}", transform=axes.transAxes, ha="right", va="bottom",
            fontsize=6.0, color="#444444", parse_math=False,
        )  # fmt: skip


def _legend(canvas: Canvas, drawn: Sequence[Curve], look: dict[str, Look]) -> None:
    handles: list[Any] = [
        Line2D(
            [], [], color=look[c.label].colour, marker=look[c.label].marker, markersize=3.6,
            linewidth=1.4 if c.plotted else 0.9, label=c.label,
        )
        for c in drawn
    ]  # fmt: skip
    if any(curve.published is not None for curve in drawn):
        handles.append(
            Line2D([], [], color="#444444", linewidth=0.9, linestyle="--", label="published")
        )
    seeds = drawn[0].seeds
    if seeds > 1:
        handles.append(Patch(color="#BBBBBB", linewidth=0.0, label=f"range of {seeds} seeds"))
    canvas.legend(
        handles=handles, loc="outside lower center", ncols=min(len(handles), 5),
        handlelength=2.4, columnspacing=1.6,
    )  # fmt: skip
