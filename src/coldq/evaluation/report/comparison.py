"""Learners side by side: a picture and tables, as a part of the page."""

from __future__ import annotations

from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from coldq.evaluation.comparison import Comparison
from coldq.evaluation.report.files import comparison_name
from coldq.evaluation.report.parts import join_picture
from coldq.evaluation.report.pictures import write_picture


def write_comparison_page(comparison: Comparison, path: Path) -> None:
    """Write the picture beside the page, as PNG and PDF, and join the tables to the page.

    >>> import pathlib, tempfile, coldq
    >>> from coldq.evaluation.report.comparison import write_comparison_page
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "index.html"
    >>> write_comparison_page(coldq.compare(coldq.problems.Autoscale(60), ["COLDQ"]), path)
    >>> "Autoscale" in path.read_text(encoding="utf-8")
    True
    """
    name = comparison_name(comparison)
    picture = write_picture(path.parent / "figures" / name, _draw, comparison)
    own = "Loss and violation"
    if comparison.rate is not None:
        own = f"At most {100 * comparison.rate:g}% of slots violated"
    lead = "What each learner would have done."
    shown = {"comparison": comparison, "alternative": _alternative(comparison)}
    shown["provenance"] = tuple(getattr(comparison.problem, "provenance", ()))
    titles = (f"{comparison.title}: learners side by side", own)
    join_picture(name, titles, lead, path, "comparison.html.jinja", picture, **shown)


def _draw(comparison: Comparison) -> Canvas:
    left, right = comparison.plot().axes
    for axes in (left, right):
        axes.grid(visible=False, axis="y")
    left.tick_params(axis="y", length=0.0, labelsize=6.5)
    canvas = left.figure
    FigureCanvasAgg(canvas)
    canvas.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return canvas


def _alternative(comparison: Comparison) -> str:
    """What the picture shows, in words and numbers."""
    points = (
        f"{row[0]}: {row[1]}, {row[2]}, {row[3]}" for row in comparison.cells(hindsight=False)
    )
    return f"Loss, violation and share of violated slots: {'; '.join(points)}."
