"""The same per-slot problem in CVXPY, solved by Clarabel: slow, independent, the oracle of tests.

Needs ``pip install coldq[exact]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq._values import Array
from coldq.constraints import Affine, Constraint, LogCapacity, Unconstrained
from coldq.domains import Box
from coldq.errors import InvalidInput


def reference_step(
    center: ArrayLike,
    gradient: ArrayLike,
    alpha: float,
    weights: ArrayLike,
    constraint: Constraint | None,
    domain: Box,
    *,
    floor: ArrayLike = 0.0,
) -> tuple[Array, float]:
    """The minimiser of one instance and its objective, as CVXPY finds them.

    >>> import coldq
    >>> from coldq.step.reference import reference_step
    >>> X, g = coldq.Box(0.0, 5.0, dim=1), coldq.Affine([[1.0]], [1.0])
    >>> x, _ = reference_step([0.0], [-8.0], 1.0, 9.0, g, X)
    >>> round(float(x[0]), 6)
    1.0
    """
    import cvxpy as cp

    center, gradient = np.asarray(center, float), np.asarray(gradient, float)
    x = cp.Variable(domain.dim)
    objective: Any = gradient @ (x - center) + alpha * cp.sum_squares(x - center)
    bounded_below, bounded_above = np.isfinite(domain.lower), np.isfinite(domain.upper)
    limits: list[Any] = [
        x[bounded_below] >= domain.lower[bounded_below],
        x[bounded_above] <= domain.upper[bounded_above],
    ]
    rows = _rows(cp, x, constraint)
    low = np.broadcast_to(np.asarray(floor, float), (len(rows),))
    high = np.broadcast_to(np.asarray(weights, float), (len(rows),))
    for g, lo, hi in zip(rows, low, high, strict=True):
        if lo == hi:
            objective += lo * g
            continue
        if hi == np.inf:
            limits.append(g <= 0.0)
        elif hi != 0.0:
            objective += hi * cp.pos(g)
        if lo == -np.inf:
            limits.append(g >= 0.0)
        elif lo != 0.0:
            # penalty max(lo g, hi g) = hi [g]_+ - lo [g]_-, with lo > 0 written without concavity
            objective += lo * g - lo * cp.pos(g) if lo > 0.0 else -lo * cp.neg(g)
    problem = cp.Problem(cp.Minimize(objective), limits)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    if x.value is None:
        raise InvalidInput(f"the reference solver ended with {problem.status}")
    return np.clip(x.value, domain.lower, domain.upper), float(problem.value)  # type: ignore[arg-type]


def _rows(cp: Any, x: Any, constraint: Constraint | None) -> list[Any]:
    if constraint is None or isinstance(constraint, Unconstrained):
        return []
    if isinstance(constraint, Affine):
        return [a @ x - c for a, c in zip(constraint.A, constraint.b, strict=True)]
    if isinstance(constraint, LogCapacity):
        served = constraint.scale @ cp.log(1.0 + cp.multiply(constraint.rate, x))
        return [constraint.demand - served]
    raise InvalidInput(f"no reference for a {type(constraint).__name__}")
