"""The paper's figures, at the width of a page of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import StrMethodFormatter

from coldq.base.arrays import Array
from coldq.base.palette import BLUE, SKY
from coldq.evaluation.report.numbers import number, superscripts
from coldq.evaluation.report.pictures import as_address, new_canvas, write_picture
from coldq.paper.figures import Figure, Setting
from coldq.paper.report.curves import (
    Curve,
    Look,
    curves,
    frame,
    log_floor,
    looks,
    outside,
    spans_magnitudes,
)
from coldq.paper.runs import FigureRuns, Run

PICTURE_INCHES = (7.0, 3.1)
QUEUE_INCHES = (7.0, 1.8)
MARKER_COUNT = 7
QUEUE_STRETCHES = 200  # of slots, of which the largest queue is drawn


def picture_name(figure: Figure, setting: Setting) -> str:
    """The files of one setting of a figure, without their suffixes.

    >>> from coldq.paper.figures import find
    >>> from coldq.paper.report.pictures import picture_name
    >>> picture_name(find("linear"), find("linear").settings[0])
    'linear-printed'
    """
    return f"{figure.key}-{setting.key}"


def queue_name(figure: Figure, setting: Setting) -> str:
    """The files of the queue in one setting of a figure."""
    return f"{picture_name(figure, setting)}-queue"


def write_pictures(runs: FigureRuns, folder: Path) -> dict[str, str]:
    """Write one PNG, of 300 dots an inch, and one PDF for every setting; their addresses by name.

    Two panels, loss and violation: means over seeds, their range shaded, the published curves
    dashed. Where COLDQ's queue left its floor, a picture of its own shows how far.

    >>> import pathlib, tempfile
    >>> from dataclasses import replace
    >>> from coldq.paper.figures import Setting, find
    >>> from coldq.paper.runs import run_figures
    >>> from coldq.problems import OnlineLinear
    >>> from coldq.paper.report.pictures import write_pictures
    >>> short = (Setting("short", "X = [0, 1]^2", OnlineLinear(horizon=20)),)
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> (runs,) = run_figures([replace(find("linear"), settings=short)], seeds=(0,))
    >>> list(write_pictures(runs, folder))
    ['linear-short']
    >>> sorted(path.name for path in folder.iterdir())
    ['linear-short.pdf', 'linear-short.png']
    """
    addresses = {}
    for setting in runs.figure.settings:
        name = picture_name(runs.figure, setting)
        addresses[name] = as_address(write_picture(folder / name, _draw, runs, setting))
        for run in runs.of(setting):
            if run.above_floor is not None and run.above_floor.any():
                name = queue_name(runs.figure, setting)
                addresses[name] = as_address(write_picture(folder / name, _draw_queue, run))
    return addresses


def above_floor(run: Run) -> Array:
    """By how much the largest queue of each seed and slot is above its floor, (S, T)."""
    assert run.trace.queue is not None
    return (run.trace.queue - run.trace.learner.gamma).max(axis=-1)


def queue_steps(run: Run) -> tuple[np.ndarray, Array]:
    """Where stretches of slots begin, and the largest queue above its floor in each, of each seed.

    The queue leaves the floor for a few slots at a time, which a choice of slots would miss.
    """
    T = run.trace.horizon
    begins = np.unique(np.linspace(0, T, QUEUE_STRETCHES, endpoint=False).astype(int))
    return begins, np.maximum.reduceat(above_floor(run), begins, axis=1)


def _draw_queue(run: Run) -> Canvas:
    canvas, (begins, largest) = new_canvas(*QUEUE_INCHES), queue_steps(run)
    axes, edges = canvas.subplots(), np.append(begins + 1, run.trace.horizon)
    greatest = largest.max(axis=0)
    axes.stairs(
        greatest, edges, fill=True, color=SKY.colour, alpha=0.3, label="largest of the seeds"
    )
    axes.stairs(largest.mean(axis=0), edges, color=BLUE.colour, label="mean of the seeds")
    axes.set_title("largest queue − γ", loc="left")
    axes.set_xlabel("slot t")
    axes.set_xlim(1, run.trace.horizon)
    axes.set_ylim(bottom=0.0)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    canvas.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return canvas


def _draw(runs: FigureRuns, setting: Setting) -> Canvas:
    figure = runs.figure
    canvas = new_canvas(*PICTURE_INCHES)
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
        places = (
            (np.arange(MARKER_COUNT) + (i + 1.0) / (len(drawn) + 1.0)) * curve.t[-1] / MARKER_COUNT
        )
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
