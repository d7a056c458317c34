"""Constraints g_t(x) <= 0: what a decision should have respected. One kind a file.

Each has ``value(x)`` of shape ``(..., N)`` and ``jacobian(x)`` of shape ``(..., N, p)``.
"""

from coldq.constraints.affine import Affine
from coldq.constraints.constraint import Kind, difference, largest, require_whole
from coldq.constraints.convex import Convex
from coldq.constraints.log_capacity import LogCapacity
from coldq.constraints.max_affine import MaxAffine
from coldq.constraints.quadratic import (
    BallRows,
    DiagonalQuadratic,
    LowRankQuadratic,
    QuadraticConstraint,
)
from coldq.constraints.sparse_affine import SparseAffine
from coldq.constraints.stacked import Stacked
from coldq.constraints.unconstrained import Unconstrained
from coldq.protocols import Constraint

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
