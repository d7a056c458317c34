"""Feasible sets X: where every decision must lie, whatever the constraints turn out to be.

Each has ``dim``, ``batch``, ``diameter``, ``project``, ``contains`` and ``start``. For the per-slot
step it also gives ``box``, a box around it, and ``enforced``, what must hold beside that box: pairs
of rows and the least of their multipliers, 0 for ``g <= 0`` and -inf for ``g = 0``.
"""

from coldq.slot.domains.ball import Ball
from coldq.slot.domains.box import Box
from coldq.slot.domains.custom import CustomDomain
from coldq.slot.domains.domain import (
    Domain,
    Rows,
    diameter_of,
    require_domain,
    require_single,
    scale_of,
)
from coldq.slot.domains.polytope import Polytope
from coldq.slot.domains.product import Product
from coldq.slot.domains.simplex import Simplex

__all__ = [
    "Ball",
    "Box",
    "CustomDomain",
    "Domain",
    "Polytope",
    "Product",
    "Rows",
    "Simplex",
    "diameter_of",
    "require_domain",
    "require_single",
    "scale_of",
]
