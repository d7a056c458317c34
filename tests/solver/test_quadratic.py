"""The kernel of quadratic rows: what its systems are over."""

from __future__ import annotations

import numpy as np

from coldq.compiled import batch_kernel, matrix, vector
from coldq.solver.kernels.piece import FREE
from coldq.solver.kernels.quadratic import CURVED_COLUMNS, LIST, C, list_to_solve
from coldq.solver.kernels.tiles import padded


@batch_kernel("(p),(p),(w,h),(p,h),(p)->()")
def listed(sizes, at):
    """How many coordinates are listed, carefully; the third operand is overwritten."""
    p, w, h = sizes[0], sizes[1], sizes[2]
    columns, B = matrix(at[2], w, h), matrix(at[3], p, h)
    count = list_to_solve(vector(at[0], p), vector(at[1], p), columns, B, vector(at[4], p), True)
    vector(at[5], 1)[0] = count
    return 0.0


def test_a_coordinate_that_leaves_its_bound_is_listed_in_its_place() -> None:
    # In a system over all coordinates tiles take them in order, without being told.
    x, wish, count = np.array([0.2, 0.0, 0.3]), np.array([0.2, 0.5, 0.3]), np.empty(1)
    columns, B = np.zeros((CURVED_COLUMNS, padded(3))), np.zeros((3, padded(3)))
    columns[C, :3], columns[FREE, :3], B[:, :3] = wish, [1.0, 0.0, 1.0], np.eye(3)
    listed()(np.zeros(3), np.ones(3), columns, B, x, count)
    assert count[0] == 3
    np.testing.assert_array_equal(columns[LIST, :3], [0.0, 1.0, 2.0])
