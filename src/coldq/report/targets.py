"""Cost against the share of violated slots: a picture and a table, as a part of the page."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import PercentFormatter

from coldq.experiments.targets import Target
from coldq.report.curves import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION
from coldq.report.numbers import number
from coldq.report.parts import join_picture
from coldq.report.pictures import new_canvas, write_picture

LOOKS = {
    "SelfTuning": VERMILION,
    "SafetyMargin(COLDQ)": BLUE,
    "SafetyMargin(RECOO)": GREEN,
    "headroom": BLACK,
}
POINTS = {"COLDQ": PURPLE, "COLDQ.scaled": ORANGE}
LEAST = 1e-3  # shares below are drawn here


def write_target_page(target: Target, path: Path) -> None:
    """Write the picture beside the page, as PNG and PDF, and join the scores to the page.

    >>> import pathlib, tempfile
    >>> from coldq.experiments.targets import measure_target
    >>> from coldq.report.targets import write_target_page
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "index.html"
    >>> (target,) = measure_target("autoscale", [0.1], seeds=[0], horizon=90, curves=False)
    >>> write_target_page(target, path)
    >>> "Autoscale" in path.read_text(encoding="utf-8")
    True
    """
    name = f"rate-{target.key}-{target.rate:g}"
    picture = write_picture(path.parent / "figures" / name, _draw, target)
    title = target.title
    titles = (
        f"{title}: what a violation rate costs",
        f"{title}: at most {100 * target.rate:g}% of slots violated",
    )
    lead = "What a violation rate costs, by learners that keep one and by hand."
    shown = {"target": target, "alternative": _alternative(target)}
    join_picture(name, titles, lead, path, "target.html.jinja", picture, **shown)


def _draw(target: Target) -> Canvas:
    canvas = new_canvas(5.0, 3.2)
    axes = canvas.subplots()
    for name, points in target.curves.items():
        look = LOOKS[name]
        shown = sorted((max(share, LEAST), cost) for share, cost in points if share <= 0.5)
        if shown:
            axes.plot(
                *zip(*shown, strict=True), color=look.colour, marker=look.marker, markersize=3.5,
                linewidth=1.0, label=name,
            )  # fmt: skip
    for one in target.scores:
        if one.name in POINTS:
            look = POINTS[one.name]
            axes.plot(
                max(one.share[0], LEAST), one.cost[0], look.marker, color=look.colour,
                markersize=5.0, label=one.name,
            )  # fmt: skip
    axes.axvline(target.rate, color="#888888", linewidth=0.8, linestyle=":")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=1))
    axes.set_xlabel("share of slots violated")
    axes.set_ylabel("cost a slot")
    axes.set_title(
        f"{target.title}: cost against violated slots",
        loc="left",
    )
    axes.legend(fontsize=6.5)
    return canvas


def _alternative(target: Target) -> str:
    """What the picture shows, in words and numbers."""
    points = (
        f"{one.name} at cost {number(one.cost[0])} and share {100 * one.share[0]:.2f}%"
        for one in target.scores
    )
    return f"Cost a slot against the share of violated slots: {'; '.join(points)}."
