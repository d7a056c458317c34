"""The per-slot problem in CVXPY, solved by Clarabel: slow, independent, the oracle of tests.

Needs ``pip install 'coldq[exact]'``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array
from coldq.base.errors import InvalidInput, installed
from coldq.slot.constraints import Affine, BallRows, Constraint, LogCapacity, Unconstrained
from coldq.slot.constraints.max_affine import MaxAffine
from coldq.slot.constraints.quadratic import QuadraticConstraint
from coldq.slot.constraints.sparse_affine import SparseAffine
from coldq.slot.constraints.stacked import Stacked
from coldq.slot.domains import Domain

NO_CVXPY = "this step needs CVXPY: install it with pip install 'coldq[exact]'"


def reference_step(
    center: ArrayLike,
    gradient: ArrayLike,
    alpha: float,
    multiplier_upper: ArrayLike,
    constraint: Constraint | None,
    domain: Domain,
    *,
    multiplier_lower: ArrayLike = 0.0,
) -> tuple[Array, float]:
    """The minimiser of one instance and its objective, as CVXPY finds them.

    >>> import coldq
    >>> from coldq.slot.step.reference import reference_step
    >>> X, g = coldq.Box(0.0, 5.0, dim=1), coldq.Affine([[1.0]], [1.0])
    >>> x, _ = reference_step([0.0], [-8.0], 1.0, 9.0, g, X)
    >>> round(float(x[0]), 6)
    1.0
    """
    cp = installed("cvxpy", NO_CVXPY)

    center, gradient = np.asarray(center, float), np.asarray(gradient, float)
    x = cp.Variable(domain.dim)
    objective: Any = gradient @ (x - center) + alpha * cp.sum_squares(x - center)
    limits = domain_limits(cp, x, domain)
    rows = modelled_rows(cp, x, constraint)
    edges = np.cumsum([0, *(g.size for g in rows)])
    low = np.broadcast_to(np.asarray(multiplier_lower, float), edges[-1:])
    high = np.broadcast_to(np.asarray(multiplier_upper, float), edges[-1:])
    for g, first, end in zip(rows, edges, edges[1:], strict=False):
        penalty, enforced = _priced(cp, g, low[first:end], high[first:end])
        objective, limits = objective + penalty, limits + enforced
    problem = cp.Problem(cp.Minimize(objective), limits)
    # With cones in it Clarabel solves the problem less sharply.
    sharp = 1e-11 if problem.is_qp() else 1e-8
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=sharp, tol_gap_rel=sharp, tol_feas=sharp)
    if x.value is None:
        raise InvalidInput(f"the reference solver ended with {problem.status}")
    return np.clip(x.value, domain.box.lower, domain.box.upper), float(problem.value)  # type: ignore[arg-type]


def domain_limits(cp: Any, x: Any, domain: Domain) -> list[Any]:
    """What keeps x in the domain."""
    lower, upper = domain.box.lower, domain.box.upper
    below, above = np.isfinite(lower), np.isfinite(upper)
    limits: list[Any] = []  # some versions of CVXPY refuse empty ones
    if below.any():
        limits.append(x[below] >= lower[below])
    if above.any():
        limits.append(x[above] <= upper[above])
    for row, low in domain.enforced:
        if isinstance(row, Affine):
            limits.append(row.A @ x == row.b if low == -np.inf else row.A @ x <= row.b)
        else:
            part = x[row.first : row.first + row.center.size]
            limits.append(cp.norm(part - row.center) <= row.radius)
    return limits


def _priced(cp: Any, g: Any, low: Array, high: Array) -> tuple[Any, list[Any]]:
    """The sum of max(low g, high g), and the limits that infinite prices are."""
    linear = np.where(low == high, low, np.maximum(low, 0.0))
    above, below = high - linear, np.where(low == high, 0.0, np.maximum(-low, 0.0))
    penalty: Any = linear @ g if linear.any() else 0.0
    limits: list[Any] = []
    for price, over in ((above, g), (below, -g)):
        soft, enforced = np.isfinite(price) & (price != 0.0), np.isinf(price)
        if soft.any():
            penalty += price[soft] @ cp.pos(over if soft.all() else over[soft])
        if enforced.any():
            limits.append(over[enforced] <= 0.0)
    return penalty, limits


def modelled_rows(cp: Any, x: Any, constraint: Constraint | None) -> list[Any]:
    """The rows as vectors: what a vector says costs CVXPY little more than one of its entries."""
    if constraint is None or isinstance(constraint, Unconstrained):
        return []
    if isinstance(constraint, Stacked):
        return [row for part in constraint.parts for row in modelled_rows(cp, x, part)]
    if isinstance(constraint, Affine | SparseAffine):
        return [constraint.A @ x - constraint.b] if constraint.n_constraints else []
    if isinstance(constraint, BallRows):
        away = zip(constraint.center, constraint.limit, strict=True)
        return [cp.hstack([cp.sum_squares(x - c) - limit for c, limit in away])]
    if isinstance(constraint, QuadraticConstraint):
        rows: list[Any] = []
        for P, q, r in zip(constraint.P, constraint.q, constraint.r, strict=True):
            values, vectors = np.linalg.eigh(P)
            root = (vectors * np.sqrt(np.maximum(values, 0.0))).T
            rows.append(0.5 * cp.sum_squares(root @ x) + q @ x - r)
        return [cp.hstack(rows)]
    if isinstance(constraint, MaxAffine):
        pieces = zip(constraint.A, constraint.b, strict=True)
        return [cp.hstack([cp.max(A @ x - b) for A, b in pieces])]
    if isinstance(constraint, LogCapacity):
        served = constraint.scale @ cp.log(1.0 + cp.multiply(constraint.rate, x))
        return [cp.hstack([constraint.demand - served])]
    raise InvalidInput(f"no reference for a {type(constraint).__name__}")
