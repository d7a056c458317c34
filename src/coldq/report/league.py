"""The league table as a picture, loss against violation, and as a part of the page."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import StrMethodFormatter

from coldq.experiments.compare import League
from coldq.experiments.intervals import mean_interval
from coldq.report.numbers import number
from coldq.report.parts import Part, join, render
from coldq.report.pictures import STYLE, SUFFIXES, as_address, save

FRONT, OTHERS = "#D55E00", "#0072B2"
INCHES = (7.0, 4.2)


def write_league_page(league: League, path: Path) -> None:
    """Write the picture beside the page, as PNG and PDF, and join the league to the page.

    >>> import pathlib, tempfile
    >>> from coldq.experiments.compare import compare
    >>> from coldq.report import write_league_page
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "index.html"
    >>> league = compare("linear", ["COLDQ", "OGD"], seeds=range(2), horizon=40)
    >>> write_league_page(league, path)
    >>> "OnlineLinear" in path.read_text(encoding="utf-8")
    True
    """
    name = f"compare-{league.key}"
    with matplotlib.rc_context(STYLE):
        canvas = _draw(league)
        for suffix in SUFFIXES:
            save(canvas, path.parent / "figures" / f"{name}{suffix}")
        picture = as_address(canvas)
    title = f"{type(league.problem).__name__}: all learners"
    html = render(
        "league.html.jinja",
        name=name,
        title=title,
        league=league,
        picture=picture,
        alternative=_alternative(league),
        mean_interval=mean_interval,
        suffixes=SUFFIXES,
    )
    lead = "Learners side by side, with the parameters that their own theory gives them."
    join(Part(name, title, lead, [(name, title)], html, {}), path)


def _draw(league: League) -> Canvas:
    """Loss against violation; the names stand in a column, in the order of the table."""
    canvas = Canvas(figsize=INCHES, layout="constrained")
    FigureCanvasAgg(canvas)
    axes = canvas.subplots()
    axes.grid(visible=True)
    axes.set_axisbelow(True)
    means = np.array([(one.loss.mean(), one.violation.mean()) for one in league.standings])
    positive = means[:, 1][means[:, 1] > 1e-6]
    if positive.size and means[:, 1].max() > 20.0 * positive.min():
        axes.set_yscale("symlog", linthresh=10.0 ** np.floor(np.log10(positive.min())))
    front = league.front
    at = np.array([means[k] for k, one in enumerate(league.standings) if one.name in front])
    order = np.argsort(at[:, 0])
    axes.plot(*at[order].T, color=FRONT, linewidth=1.0, linestyle="--", label="Pareto front")
    for k, one in enumerate(league.standings):
        ahead = one.name in front
        (loss, wide), (violation, high) = mean_interval(one.loss), mean_interval(one.violation)
        axes.errorbar(
            loss, violation, xerr=wide, yerr=high, fmt="s" if ahead else "o", markersize=4.0,
            color=FRONT if ahead else OTHERS, elinewidth=0.7, markeredgecolor="white",
            markeredgewidth=0.4,
        )  # fmt: skip
        axes.annotate(
            f"{k + 1} {one.name}",
            (loss, violation),
            xytext=(1.04, (k + 0.5) / len(league.standings)),
            textcoords="axes fraction",
            fontsize=6.5,
            color=FRONT if ahead else "#333333",
            verticalalignment="center",
            arrowprops={
                "arrowstyle": "-",
                "color": "#BBBBBB",
                "linewidth": 0.4,
                "shrinkB": 2.0,
                "relpos": (0.0, 0.5),
            },
        )
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("accumulated loss")
    axes.set_ylabel("hard constraint violation")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_title(
        f"{type(league.problem).__name__}, T = {league.problem.horizon:,}, mean and 95% interval "
        f"of {len(league.seeds)} seeds",
        loc="left",
    )
    axes.legend(frameon=False, loc="lower left")
    return canvas


def _alternative(league: League) -> str:
    """What the picture shows, in words and numbers."""
    points = (
        f"{one.name} at loss {number(float(one.loss.mean()))} and violation "
        f"{number(float(one.violation.mean()))}"
        for one in league.standings
        if one.name in league.front
    )
    return (
        f"Loss against violation of {len(league.standings)} learners. No other learner is better "
        f"in both than: {'; '.join(points)}."
    )
