"""The per-slot problem, solved exactly: one entry that picks, and one file a kind of rows.

    min over x in X of  <gradient, x - center> + alpha |x - center|^2 + penalty(g(x))

A row's penalty is what its multiplier may be: in [0, w] the hinge ``w [g]_+``, exactly w the linear
``w g``, in [-w, w] the equality penalty ``w |g|``; an infinite bound enforces the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coldq.base.arrays import Array, joint_batch, positive, real_array, smallest
from coldq.base.errors import InvalidInput
from coldq.base.protocols import Domain
from coldq.slot.constraints import Affine, Constraint, LogCapacity, Unconstrained
from coldq.slot.constraints.constraint import row_numbers
from coldq.slot.constraints.convex import Convex
from coldq.slot.constraints.max_affine import MaxAffine
from coldq.slot.constraints.quadratic import (
    BallRows,
    DiagonalQuadratic,
    LowRankQuadratic,
    QuadraticConstraint,
    ThinQuadratic,
)
from coldq.slot.constraints.sparse_affine import SparseAffine
from coldq.slot.constraints.stacked import Stacked
from coldq.slot.domains import Box, require_domain
from coldq.slot.step.affine import solve_on_blocks, solve_rows, solve_sparse, solve_unconstrained
from coldq.slot.step.convex import solve_convex, solve_stacked
from coldq.slot.step.log_capacity import solve_log_capacity
from coldq.slot.step.max_affine import solve_max_affine
from coldq.slot.step.quadratic import solve_quadratic
from coldq.slot.step.residuals import Residuals, listening, tell
from coldq.slot.step.slot import Slot
from coldq.slot.step.thin_quadratic import solve_thin
from coldq.solver.answer import Step
from coldq.solver.cascade import solve_affine
from coldq.solver.problem import HINGE, DoNotFit

__all__ = ["Residuals", "Step", "penalised_step", "solve"]

# By constraint; which domains each takes, it says itself.
SOLVERS: dict[type, Callable[[Slot], Step]] = {
    Affine: solve_rows,
    Convex: solve_convex,
    BallRows: solve_thin,
    DiagonalQuadratic: solve_thin,
    LowRankQuadratic: solve_thin,
    LogCapacity: solve_log_capacity,
    MaxAffine: solve_max_affine,
    QuadraticConstraint: solve_quadratic,
    SparseAffine: solve_sparse,
    Stacked: solve_stacked,
    Unconstrained: solve_unconstrained,
}


def solve(
    center: Array,
    gradient: Array,
    alpha: Array,
    multiplier_upper: Array,
    constraint: Constraint,
    domain: Domain,
    multiplier_lower: Any = HINGE,
) -> Step:
    """:func:`penalised_step` for learners, whose arrays are known to be sound."""
    high, low = multiplier_upper, multiplier_lower
    try:
        if type(constraint) is Affine and type(domain) is Box:  # by far the commonest: the fastest
            step = solve_affine(
                center, gradient, alpha, high, low, constraint.A, constraint.b, domain.lower,
                domain.upper,
            )  # fmt: skip
        elif type(constraint) is Affine and (blocks := getattr(domain, "blocks", None)) is not None:
            slot = center, gradient, alpha, high, low, constraint, domain
            step = solve_on_blocks(slot, constraint.A, blocks)
        else:
            # What stands for a stack, or for the rows of a learner that looks ahead.
            instead: Any = getattr(constraint, "for_step", None)
            if instead is not None:
                return solve(center, gradient, alpha, high, instead, domain, low)
            # Data near the end of the floats may overflow: its answer is judged by the residual.
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                slot = Slot(center, gradient, alpha, high, low, constraint, domain)
                step = solver_of(constraint, domain)(slot)
    except DoNotFit:
        raise Slot(center, gradient, alpha, high, low, constraint, domain).misfit() from None
    except InvalidInput as error:
        slot = Slot(center, gradient, alpha, high, low, constraint, domain)
        raise slot.not_finite() or error from None
    if listening:
        tell(step.residual)
    return step


def solver_of(constraint: Any, domain: Domain) -> Callable[[Slot], Step]:
    """What solves a constraint on a domain; raises if nothing does."""
    if type(constraint) not in SOLVERS:
        known = (kind.__name__ for kind in SOLVERS if not issubclass(kind, ThinQuadratic))
        raise InvalidInput(
            f"no solver for a {type(constraint).__name__} on a {type(domain).__name__}; there is "
            f"one for {', '.join(known)}. A convex constraint of your "
            "own is a coldq.Convex(g.value, g.jacobian)"
        )
    known = getattr(domain, "_segments", None) is not None  # far less than all rows, of many blocks
    if not known and getattr(domain, "enforced", None) is None:
        raise InvalidInput(
            f"the per-slot step must know what bounds a {type(domain).__name__}, and a projection "
            "does not say: write the set as a Box, Simplex, Polytope, Ball or Product, or use a "
            "learner that only projects (OGD, Yi2023, SinhaVaze)"
        )
    return SOLVERS[type(constraint)]


def penalised_step(
    center: ArrayLike,
    gradient: ArrayLike,
    alpha: ArrayLike,
    multiplier_upper: ArrayLike,
    constraint: Constraint | None,
    domain: Domain,
    *,
    multiplier_lower: ArrayLike = HINGE,
) -> Step:
    """Solve ``min over x in X of <gradient, x - center> + alpha |x - center|^2 + penalty(g(x))``.

    Parameters
    ----------
    center, gradient
        Of shape ``(..., p)``.
    alpha
        Positive, of the batch's shape.
    multiplier_upper, multiplier_lower
        The bounds [low, high] of the multipliers, of shape ``(..., N)`` or numbers: low = 0 is a
        hinge, low = high linear, low = -high an equality penalty, an infinite bound an enforced
        row. With finite bounds nothing is infeasible: the multiplier just reaches one.
    constraint, domain
        :class:`~coldq.Affine` rows or None, on a :class:`~coldq.Box`, :class:`~coldq.Simplex`,
        :class:`~coldq.Polytope`, :class:`~coldq.Ball` or :class:`~coldq.Product` of these; as well
        :class:`~coldq.SparseAffine`, :class:`~coldq.QuadraticConstraint`,
        :class:`~coldq.MaxAffine`, :class:`~coldq.LogCapacity`, :class:`~coldq.Convex` and
        :class:`~coldq.Stacked`. Which of these takes which domain, docs/which-pair-is-solved-how.md
        says. A row that is not affine takes low >= 0, because it is convex one way only.

    Returns
    -------
    Step
        The minimiser `x`, the `multipliers` in [low, high], and the relative KKT `residual`,
        in which the domain's own rows count too: at most 1e-9 for affine rows, max-affine rows and
        a capacity, 1e-8 for other curved rows. Without a hessian it is a relative gap instead, at
        most 1e-6. Leading axes of all arguments broadcast.

    Raises
    ------
    Infeasible
        If enforced rows are proved to have no common point in the domain.
    StepFailed
        If no solver found an answer with a residual of at most 1e-6. Curved rows may be
        infeasible without a proof; then the message says so.

    Warns
    -----
    Inexact
        If the best answer has a residual between what is promised and 1e-6.

    >>> import coldq
    >>> X, g = coldq.Box(0.0, 5.0, dim=1), coldq.Affine([[1.0]], [1.0])  # x <= 1
    >>> coldq.penalised_step([0.0], [-8.0], 1.0, 2.0, g, X).x  # the weight is too small to stop it
    array([3.])
    >>> coldq.penalised_step([0.0], [-8.0], 1.0, 9.0, g, X).x
    array([1.])
    """
    require_domain(domain)
    if constraint is None:
        constraint = Unconstrained()
    center = real_array("center", center, 1)
    gradient = real_array("gradient", gradient, 1)
    p = domain.dim
    for name, array in (("center", center), ("gradient", gradient)):
        if array.shape[-1] != p:
            raise InvalidInput(
                f"{name} must have {p} coordinates, as the domain has, but has shape {array.shape}"
            )
    dim = getattr(constraint, "dim", p)
    if dim != p:
        raise InvalidInput(f"the constraint has {dim} coordinates, but the domain {p}")
    alpha = positive("alpha", alpha)
    n = getattr(constraint, "n_constraints", 0)
    high = row_numbers("multiplier_upper", multiplier_upper, n, finite=False)
    if not smallest(high) >= 0.0:  # true for NaN as well
        raise InvalidInput(f"multiplier_upper must not be negative or NaN, but is {high}")
    low = HINGE
    if multiplier_lower is not HINGE:
        low = row_numbers("multiplier_lower", multiplier_lower, n, finite=False)
    if low is not HINGE and not ((low <= high) & (low < np.inf)).all():
        raise InvalidInput(
            "multiplier_lower must be finite and at most multiplier_upper, but is "
            f"{low} against {high}"
        )
    batches = domain.batch, getattr(constraint, "batch", ())
    single = center.ndim == gradient.ndim == high.ndim == 1 and not (alpha.ndim or any(batches))
    if not single or (isinstance(low, np.ndarray) and low.ndim > 1):
        shapes = {
            "center": center.shape[:-1],
            "gradient": gradient.shape[:-1],
            "alpha": alpha.shape,
            "multiplier_upper": high.shape[:-1],
            "multiplier_lower": np.shape(low)[:-1],
            "domain": batches[0],
            "constraint": batches[1],
        }
        center = np.broadcast_to(center, (*joint_batch(**shapes), p))
    return solve(center, gradient, alpha, high, constraint, domain, low)
