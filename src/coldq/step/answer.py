"""What every solver of the per-slot problem returns."""

from __future__ import annotations

from typing import Any, NamedTuple

from coldq._values import Array


class Step(NamedTuple):
    """The answer of a per-slot problem, with the evidence that it is one.

    >>> import coldq
    >>> X, g = coldq.Box(0.0, 5.0, dim=2), coldq.Affine([[1.0, 1.0]], [1.0])
    >>> step = coldq.penalised_step([0.0, 0.0], [-4.0, -4.0], 1.0, 100.0, g, X)
    >>> step.x, step.multipliers, float(step.residual) < 1e-9
    (array([0.5, 0.5]), array([3.]), True)
    """

    x: Array
    multipliers: Array
    residual: Any
