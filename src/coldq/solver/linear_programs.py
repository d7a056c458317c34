"""What linear programs tell of affine rows on a box."""

from __future__ import annotations

import numpy as np

from coldq.base.arrays import Array


def no_point(A: Array, b: Array, lower: Array, upper: Array, low: Array, high: Array) -> bool:
    """Whether no point of the box satisfies all rows.

    It minimises the largest violation relative to each row's size, in units of how far x may go.
    """
    from scipy.optimize import linprog

    at_most, at_least = high == np.inf, low == -np.inf
    far = np.maximum(np.abs(lower), np.abs(upper))
    far = np.where((far > 0.0) & (far < np.inf), far, 1.0)
    A, lower, upper = A * far, lower / far, upper / far
    size = np.abs(b) + np.abs(A).sum(axis=1)
    size = np.where(size > 0.0, size, 1.0)
    G = np.concatenate([(A / size[:, None])[at_most], (-A / size[:, None])[at_least]])
    h = np.concatenate([(b / size)[at_most], (-b / size)[at_least]])
    p = A.shape[1]
    result = linprog(
        np.concatenate([np.zeros(p), [1.0]]),
        A_ub=np.hstack([G, -np.ones((len(h), 1))]),
        b_ub=h,
        bounds=[*zip(lower, upper, strict=True), (0.0, None)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return bool(result.status == 2 or (result.status == 0 and result.fun > 1e-8))


def smallest_box(A: Array, b: Array, lower: Array, upper: Array, low: Array) -> tuple[Array, Array]:
    """Bounds on every coordinate of a polytope, not inside it; infinite where there are none."""
    from scipy.optimize import linprog

    p, equal = A.shape[1], low == -np.inf
    ends = np.array([lower, upper])
    for i in range(p):
        for side, sign in ((0, 1.0), (1, -1.0)):
            c = np.zeros(p)
            c[i] = sign
            result = linprog(
                c, A[~equal], b[~equal], A[equal], b[equal],
                bounds=list(zip(lower, upper, strict=True)), method="highs",
            )  # fmt: skip
            if result.status == 0:
                # The program meets its rows up to 1e-7, so its answer may lie that far inside.
                bound = sign * (result.fun - 1e-6 * (1.0 + abs(result.fun)))
                ends[side, i] = min(bound, upper[i]) if side else max(bound, lower[i])
    return ends[0], ends[1]


def inner_ball(
    A: Array, b: Array, lengths: Array, E: Array, e: Array, lower: Array, upper: Array
) -> Array | None:
    """The centre of the largest ball with ``A x + r lengths <= b`` in ``E x = e`` within bounds.

    `lengths` has one number a row, then one a coordinate for its bounds: how far along the row a
    radius of one reaches. None if there is no such ball, or no largest.
    """
    from scipy.optimize import linprog

    p, rows = A.shape[1], len(b)
    reach = lengths[rows:]
    finite = np.concatenate([np.isfinite(upper), np.isfinite(lower)])
    sides = np.concatenate([np.eye(p), -np.eye(p)])[finite]
    limits = np.concatenate([upper, -lower])[finite]
    lengths = np.concatenate([lengths[:rows], np.concatenate([reach, reach])[finite]])
    result = linprog(
        np.concatenate([np.zeros(p), [-1.0]]),
        A_ub=np.hstack([np.concatenate([A, sides]), lengths[:, None]]),
        b_ub=np.concatenate([b, limits]),
        A_eq=np.hstack([E, np.zeros((len(e), 1))]) if len(e) else None,
        b_eq=e if len(e) else None,
        bounds=[(None, None)] * p + [(0.0, None)],
        method="highs",
    )
    return result.x[:-1] if result.status == 0 else None
