"""Learners whose decisions coincide on a problem, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import Error
from coldq.evaluation.named import listed
from coldq.learners.card import WHOLE_CONSTRAINT
from coldq.learners.contrib.saddle_point import SaddlePoint
from coldq.learners.yu_neely_wei2017 import YuNeelyWei2017
from coldq.simulation.loop import simulate

ROUNDING_TOLERANCE = 1e-9  # relative: steps equal in theory are solved in different ways


def coinciding(
    problem: Any, learners: Mapping[str, Any], measured: Mapping[str, Array]
) -> tuple[str, ...]:
    """A sentence for each group of learners whose measurements are all the same.

    `measured` has an array for each name, in which equal numbers mean equal decisions: losses and
    violations of seeds or slots.

    >>> import coldq, numpy as np
    >>> from coldq.evaluation.coinciding import coinciding
    >>> problem = coldq.problems.OnlineLinear(horizon=20)
    >>> names = coldq.YuNeelyWei2017, coldq.WeiYuNeely2020
    >>> learners = {kind.__name__: kind.for_problem(problem) for kind in names}
    >>> print(*coinciding(problem, learners, dict.fromkeys(learners, np.ones(3))))
    YuNeelyWei2017 and WeiYuNeely2020 decide the same here: they are one rule where the domain is no
    simplex, with the squared distance as divergence.
    """
    groups: list[list[str]] = []
    for name, values in measured.items():
        for group in groups:
            if _same(values, measured[group[0]]):
                group.append(name)
                break
        else:
            groups.append([name])
    return tuple(
        f"{listed(group)} decide the same here: "
        f"{_reason(problem, [learners[name] for name in group])}."
        for group in groups
        if len(group) > 1
    )


def _same(one: Array, other: Array) -> bool:
    size = max(float(np.abs(one).max(initial=0.0)), 1.0)
    return bool(np.allclose(one, other, rtol=ROUNDING_TOLERANCE, atol=ROUNDING_TOLERANCE * size))


def _reason(problem: Any, group: list[Any]) -> str:
    if all(isinstance(one, YuNeelyWei2017) for one in group):
        return (
            "they are one rule where the domain is no simplex, with the squared distance as "
            "divergence"
        )
    if all(isinstance(one, SaddlePoint) for one in group):
        return (
            "they are one saddle-point rule with the same step and the same regularisation, of "
            "which their papers prove different bounds"
        )
    if _stays(problem, group[0]):
        return (
            "they never leave the decision they begin with, because no step is long enough or the "
            "violation never weighs enough"
        )
    if all(WHOLE_CONSTRAINT in one.card.needs for one in group):
        return (
            "they differ in the price of a violation alone, which does not matter as long as it "
            "is above the multiplier that the latest constraint needs: the step is then a "
            "projection onto that constraint"
        )
    return "with the parameters that theory gives them, they take the same steps"


def _stays(problem: Any, learner: Any) -> bool:
    """Whether a learner keeps its first decision throughout."""
    try:
        trace = simulate(learner, problem, [0], keep=["decisions"], progress=False)
    except Error:
        return False
    x = trace.decisions
    return x is not None and bool((x == x[:, :1]).all())
