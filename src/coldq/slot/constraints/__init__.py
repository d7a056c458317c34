"""Constraints g_t(x) <= 0: what a decision should have respected. One kind a file.

Each has ``value(x)`` of shape ``(..., N)`` and ``jacobian(x)`` of shape ``(..., N, p)``.
"""

from coldq.base.protocols import Constraint
from coldq.slot.constraints.affine import Affine
from coldq.slot.constraints.constraint import Kind, difference, largest, require_whole
from coldq.slot.constraints.convex import Convex
from coldq.slot.constraints.log_capacity import LogCapacity
from coldq.slot.constraints.max_affine import MaxAffine
from coldq.slot.constraints.quadratic import (
    BallRows,
    DiagonalQuadratic,
    LowRankQuadratic,
    QuadraticConstraint,
)
from coldq.slot.constraints.sparse_affine import SparseAffine
from coldq.slot.constraints.stacked import Stacked
from coldq.slot.constraints.unconstrained import Unconstrained

__all__ = [
    "Affine",
    "BallRows",
    "Constraint",
    "Convex",
    "DiagonalQuadratic",
    "Kind",
    "LogCapacity",
    "LowRankQuadratic",
    "MaxAffine",
    "QuadraticConstraint",
    "SparseAffine",
    "Stacked",
    "Unconstrained",
    "difference",
    "largest",
    "require_whole",
]
