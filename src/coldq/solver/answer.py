"""What every solver of the per-slot problem returns, and what becomes of an answer that is none."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coldq.base.arrays import Array
from coldq.base.errors import Inexact, Infeasible, InvalidInput, StepFailed, name_indices, warn
from coldq.solver.constants import TOLERANCE

CURVED_TOLERANCE = 1e-8  # the same of curved rows
GAP_TOLERANCE = 1e-6  # the gap, relative to the value, of rows without hessians
MAX_RESIDUAL = 1e-6  # and that above which none passes at all
MAY_BE_INFEASIBLE = (
    "; rows with infinite weights may be infeasible"  # of curved ones it need not be proved
)
MAX_START_RESIDUAL = 1e-3  # the residual up to which multipliers are worth starting from


new_tuple: Any = tuple.__new__  # a named tuple without the call of its own constructor


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


def raise_if_failed(answer: Step, infeasible: np.ndarray, tolerance: float = TOLERANCE) -> None:
    """Raise an error that names the instances without an answer and carries the others.

    Where there are only answers beyond the tolerance that are still accepted, it is one warning.
    """
    residual = np.asarray(answer.residual)
    if infeasible.any():
        words, indices = name_indices(infeasible)
        message = f"the enforced rows have no common point in the domain{words}"
        raise Infeasible(message, indices, answer)
    if np.isnan(residual).any():
        words, _ = name_indices(np.isnan(residual))
        raise InvalidInput(
            "center, gradient, alpha, the multipliers' bounds and the constraint must be "
            f"finite, but the step came out as NaN{words}"
        )
    most = max(tolerance, MAX_RESIDUAL)
    bad = residual > most
    if bad.any():
        words, indices = name_indices(bad)
        doubt = MAY_BE_INFEASIBLE if tolerance > TOLERANCE else ""
        raise StepFailed(
            f"no solver reached a relative KKT residual of {most:g}{words}; "
            f"the largest is {residual[bad].max():.3g}{doubt}",
            indices,
            answer,
        )
    inexact = residual > tolerance
    if inexact.any():
        words, _ = name_indices(inexact)
        warn(
            f"no solver reached a relative KKT residual of {tolerance:g}{words}: the best answers "
            f"are taken, whose largest is {residual.max():.3g}",
            Inexact,
        )
