"""The page: everything that a reproduction found, in one file that needs nothing else."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import coldq
from coldq.evaluation.report.numbers import amount, number, superscripts
from coldq.evaluation.report.parts import Part, join, render
from coldq.evaluation.report.pictures import SUFFIXES
from coldq.paper import claims
from coldq.paper.claims import FAILS, HOLDS, IN_PART, Quantity
from coldq.paper.figures import Figure, Setting
from coldq.paper.published import MEASURES, EndPoint
from coldq.paper.report.curves import Curve, curves
from coldq.paper.report.pictures import above_floor, picture_name, queue_name
from coldq.paper.reproduce import Reproduction
from coldq.paper.runs import FigureRuns, Run

# An outcome as a class name for its colour, a sign beside its words, and what it means.
OUTCOMES = {
    HOLDS: ("holds", "✓", "every measured quantity keeps its limit"),
    IN_PART: ("in-part", "◐", "some of the measured quantities keep their limits"),
    FAILS: ("fails", "✗", "no measured quantity keeps its limit"),
}
NAMED_PACKAGES = ("numpy", "scipy", "cvxpy", "matplotlib", "pyarrow")
CONTENTS = {
    "queue": "The queue",
    "parameters": "Parameters",
    "data-sources": "Data",
    "time": "Run time",
    "files": "Files",
}


def write_page(result: Reproduction, path: Path, pictures: Mapping[str, str]) -> None:
    """Write the report as one file that loads nothing else; the same result gives the same bytes.

    `pictures` are addresses of the figures by their names, as ``write_pictures`` returns them.

    >>> import pathlib, tempfile
    >>> from dataclasses import replace
    >>> from coldq.paper.figures import Setting, find
    >>> from coldq.paper.reproduce import Reproduction
    >>> from coldq.paper.runs import run_figures
    >>> from coldq.problems import OnlineLinear
    >>> from coldq.paper.report.page import write_page
    >>> from coldq.paper.report.pictures import write_pictures
    >>> short = (Setting("short", "X = [0, 1]^2", OnlineLinear(horizon=20)),)
    >>> runs = run_figures([replace(find("linear"), settings=short)], seeds=(0, 1))
    >>> result = Reproduction(runs, (), {}, seeds=(0, 1), seconds=1.0, stepping=None)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "index.html"
    >>> write_page(result, path, write_pictures(*runs, path.parent / "figures"))
    >>> "Online linear programming" in path.read_text(encoding="utf-8")
    True
    """
    sections = [_section(runs, result, pictures) for runs in result.figures]
    contents = [("claims", "Claims"), *((s["figure"].key, s["figure"].title) for s in sections)]
    seeds = len(result.seeds)
    part = Part(
        "reproduction",
        "COLDQ, reproduced",
        "The experiments of “Doubly-Bounded Queue for Constrained Online Learning: Keeping Pace "
        "with Dynamics of Both Loss and Constraint” (Wang, Yan and Liu, AAAI 2025), run again "
        f"with {seeds} seed{'' if seeds == 1 else 's'}, and what became of each claim.",
        contents=[*contents, *CONTENTS.items()],
        html=render("reproduction.html.jinja", "coldq.paper.report", **_context(result, sections)),
    )
    join(part, path)


def _context(result: Reproduction, sections: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "result": result,
        "outcomes": OUTCOMES,
        "counts": {o: sum(v.outcome == o for v in result.verdicts) for o in OUTCOMES},
        "sections": sections,
        "packages": {"coldq": coldq.__version__, "Python": platform.python_version()}
        | _versions(NAMED_PACKAGES),
        "limits": claims,
        "gauge": gauge,
        "needs": _needs,
        "suffixes": SUFFIXES,
    }


def _section(runs: FigureRuns, result: Reproduction, pictures: Mapping[str, str]) -> dict[str, Any]:
    figure = runs.figure
    ends = result.end_points.get(figure.key, ())
    return {
        "figure": figure,
        "runs": runs,
        "verdicts": [v for v in result.verdicts if v.figure == figure.key],
        "panels": [_panel(runs, setting, ends, pictures) for setting in figure.settings],
        "parameters": _parameters(runs),
        "provenance": _provenance(figure),
        "seconds": sum(run.seconds for run in runs.runs),
    }


def _panel(
    runs: FigureRuns, setting: Setting, ends: Sequence[EndPoint], pictures: Mapping[str, str]
) -> dict[str, Any]:
    """One setting of a figure: its pictures, and what its tables say."""
    figure, own = runs.figure, runs.of(setting)
    name, queue = picture_name(figure, setting), queue_name(figure, setting)
    titles = {"loss": figure.loss_label, "violation": figure.violation_label}
    alternatives = (
        _alternative(titles[measure], setting, curves(runs, setting, measure))
        for measure in MEASURES
    )
    return {
        "id": name,
        "setting": setting,
        "seeds": len(own[0].trace.seeds),
        "horizon": own[0].trace.horizon,
        "picture": pictures[name],
        "alternative": " ".join(alternatives),
        "titles": titles.values(),
        "ends": [_end_row(run, figure, setting, ends) for run in own],
        "queue": next((_queue(run) for run in own if run.above_floor is not None), None),
        "queue_picture": pictures.get(queue),
        "names": [name, *([queue] if queue in pictures else [])],
    }


def _alternative(label: str, setting: Setting, drawn: Sequence[Curve]) -> str:
    """What the plot shows, in words and numbers."""
    ends = []
    for curve in drawn:
        text = f"{curve.label} ends at {number(curve.mean[-1])}"
        if curve.seeds > 1:
            text += f" (seeds from {number(curve.low[-1])} to {number(curve.high[-1])})"
        if curve.published is not None:
            text += f", published {number(curve.published[1][-1])}"
        ends.append(text)
    kind = f"mean of {drawn[0].seeds} seeds" if drawn[0].seeds > 1 else "one run"
    return superscripts(
        f"Line plot of the {label} over {drawn[0].t[-1]:,.0f} slots, {setting.title}, {kind}. "
        f"{'; '.join(ends)}."
    )


def _end_row(
    run: Run, figure: Figure, setting: Setting, ends: Sequence[EndPoint]
) -> tuple[str, list[dict[str, Any]]]:
    """Where a learner's curves end, and where the published ones do, if there are any."""
    row = []
    for measure in MEASURES:
        values = run.running(measure, averaged=figure.averaged)[:, -1]
        points = (
            end
            for end in ends
            if end.setting is setting and end.label == run.entry.label and end.measure == measure
        )
        row.append(
            {
                "ours": float(values.mean()),
                "least": float(values.min()),
                "greatest": float(values.max()),
                "seeds": len(values),
                "point": next(points, None),
            }
        )
    return run.entry.label, row


def _queue(run: Run) -> dict[str, Any]:
    """How often the queue left its floor, and how far."""
    return {
        "gamma": float(np.max(run.trace.learner.gamma)),
        "slots": run.above_floor,
        "largest": float(above_floor(run).max()),
    }


def _parameters(runs: FigureRuns) -> list[tuple[str, str, str]]:
    """Label, class and parameters; those that were tuned to a setting name it."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for run in runs.runs:
        key = (run.entry.label, run.entry.learner.__name__, run.entry.printed)
        rows.setdefault(key, []).append(run.setting.title)
    return [
        (label, name, printed if len(where) == len(runs.figure.settings) else
         f"{printed} ({', '.join(where)})")
        for (label, name, printed), where in rows.items()
    ]  # fmt: skip


def _provenance(figure: Figure) -> list[tuple[str, list[str]]]:
    """Sentences on where the data comes from: those of all settings, then those of each alone."""
    drawn = ("Synthetic: drawn from generators that the seeds determine.",)
    told = [getattr(setting.problem, "provenance", drawn) for setting in figure.settings]
    common = [sentence for sentence in told[0] if all(sentence in each for each in told)]
    own = [
        (setting.title, [sentence for sentence in each if sentence not in common])
        for setting, each in zip(figure.settings, told, strict=True)
    ]
    return [("", common), *((title, sentences) for title, sentences in own if sentences)]


def _versions(packages: Iterable[str]) -> dict[str, str]:
    versions = {}
    for name in packages:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _needs(quantity: Quantity) -> str:
    """The limit of a quantity in words."""
    limit = amount(quantity.limit, quantity.unit)
    return f"within ±{limit}" if quantity.sign == "within" else f"{quantity.sign} {limit}"


def gauge(quantity: Quantity) -> dict[str, float] | None:
    """Where value, interval and limits lie on a scale from 0 to 100; None where one is infinite.

    >>> from coldq.paper.claims import Quantity
    >>> from coldq.paper.report.page import gauge
    >>> drawn = gauge(Quantity("violation below", 0.5, (0.45, 0.55), "at least", 0.4))
    >>> drawn["from"] < drawn["low"] < drawn["value"] < drawn["high"] < drawn["to"]
    True
    """
    low, high = quantity.interval or (quantity.value, quantity.value)
    limits = (-quantity.limit, quantity.limit) if quantity.sign == "within" else (quantity.limit,)
    shown = (low, high, quantity.value, *limits)
    if not all(math.isfinite(value) for value in shown):
        return None
    begin, end = min(shown), max(shown)
    margin = 0.2 * (end - begin) or 1.0

    def place(value: float) -> float:
        return round(100.0 * (value - begin + margin) / (end - begin + 2.0 * margin), 2)

    return {
        "low": place(low),
        "high": place(high),
        "value": place(quantity.value),
        "from": 0.0 if quantity.sign == "at most" else place(min(limits)),
        "to": 100.0 if quantity.sign == "at least" else place(max(limits)),
    }
