"""The curves of the paper's figures, and how far ours end from them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

import numpy as np

from coldq.base.arrays import Array
from coldq.paper.figures import Setting
from coldq.paper.runs import FigureRuns
from coldq.problems import data

# What the paper's figures are called in the file of decoded curves.
MEASURES = {"loss": ("loss", "cost"), "violation": ("vio", "delay")}


@cache
def _curves() -> dict[str, dict[str, list[list[float]]]]:
    return json.loads(data.text("published-curves.json"))


def published_curve(prefix: str, measure: str, label: str) -> tuple[Array, Array]:
    """The vertices of a published curve: slots t, from 1, and values.

    The figures were drawn with simplified paths, so that only the vertices are exact.

    >>> from coldq.paper.published import published_curve
    >>> t, loss = published_curve("tv", "loss", "COLDQ")
    >>> int(t[-1]), float(loss[-1])
    (5000, 41278.3421)
    """
    curves = _curves()
    name = next(f"{prefix}_{m}" for m in MEASURES[measure] if f"{prefix}_{m}" in curves)
    vertices = np.asarray(curves[name][label])
    return vertices[:, 0] + 1.0, vertices[:, 1]


def final(prefix: str, measure: str, label: str) -> float:
    """Where a published curve ends."""
    return float(published_curve(prefix, measure, label)[1][-1])


@dataclass(frozen=True)
class EndPoint:
    """Where a published curve ends, and where ours does: mean and range over seeds."""

    setting: Setting
    label: str
    measure: str
    published: float
    ours: float
    least: float
    greatest: float

    @property
    def distance(self) -> float:
        """How far our mean is from the published end, as a part of it; infinite from a zero."""
        if self.published == 0.0:
            return 0.0 if abs(self.ours) <= 1e-9 else np.inf
        return (self.ours - self.published) / abs(self.published)

    @property
    def within_seeds(self) -> bool:
        """Whether the published end lies in the range of our seeds."""
        return self.least - 1e-9 <= self.published <= self.greatest + 1e-9


def end_points(runs: FigureRuns) -> tuple[EndPoint, ...]:
    """Where ours ends, measured as the paper does, for every published curve and drawn setting."""
    figure = runs.figure
    rows = []
    for setting in (each for each in figure.settings if each.drawn):
        for run in runs.of(setting):
            if run.entry.published is None:
                continue
            for measure in MEASURES:
                ends = run.running(measure, averaged=figure.averaged)[:, -1]
                rows.append(
                    EndPoint(
                        setting,
                        run.entry.label,
                        measure,
                        final(figure.curves, measure, run.entry.published),
                        float(ends.mean()),
                        float(ends.min()),
                        float(ends.max()),
                    )
                )
    return tuple(rows)
