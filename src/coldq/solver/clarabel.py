"""Clarabel and other slow methods, for one instance at a time, without compliance."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

from coldq._values import Array
from coldq.solver.problem import AffineProblem


def clarabel_answers(instance: AffineProblem) -> Iterator[tuple[Array, Array]]:
    """Clarabel's answer, and its polished versions.

    Polishing fixes what sits at a bound, solves the equations that remain, and lets the sets
    correct themselves a few times.
    """
    y = instance.center - instance.gradient / (2.0 * instance.alpha)
    for x, lam in clarabel_points(instance):
        yield x, lam
        for slack in (1e-6, 1e-4, 1e-8):
            yield from polish(instance, y, x, lam, slack)
        for slack in (1e-8, 1e-6):
            yield explain(instance, y, x, slack)


def clarabel_points(instance: AffineProblem) -> Iterator[tuple[Array, Array]]:
    """Clarabel's answers, a sharp one and a less sharp one.

    Each row is split as ``g = up - down`` with up, down >= 0 priced at the row's bounds; an
    infinite price removes the variable.
    """
    from scipy import sparse

    clarabel: Any = import_module("clarabel")  # a compiled module without type information

    center, gradient, alpha, floor, weights, _, A, b, lower, upper = instance
    n, p = A.shape
    y = center - gradient / (2.0 * alpha)
    up, down = np.flatnonzero(weights < np.inf), np.flatnonzero(floor > -np.inf)
    m = p + up.size + down.size
    rows = sparse.csc_array(sparse.eye_array(n))
    costs = sparse.diags_array(
        np.concatenate([np.full(p, 2.0 * alpha), np.zeros(m - p)]), format="csc"
    )
    q = np.concatenate([-2.0 * alpha * y, weights[up], -floor[down]])
    split: Any = sparse.hstack([sparse.csc_array(A), -rows[:, up], rows[:, down]], format="csr")
    eye = sparse.csc_array(sparse.eye_array(m))
    least = np.concatenate([lower, np.zeros(m - p)])
    below, above = np.flatnonzero(least > -np.inf), np.flatnonzero(upper < np.inf)
    G = sparse.vstack([split, -eye[below], eye[above]], format="csc")
    h = np.concatenate([b, -least[below], upper[above]])
    cones = [clarabel.ZeroConeT(n), clarabel.NonnegativeConeT(below.size + above.size)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    # Where hard rows meet in a set without an inside, high accuracy looks infeasible to it.
    for tolerance in (1e-12, 1e-8):
        for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
            setattr(settings, name, tolerance)
        solution = clarabel.DefaultSolver(costs, q, G, h, cones, settings).solve()
        if "Infeasible" in str(solution.status) or not np.isfinite(solution.x).all():
            continue
        x, lam = np.array(solution.x[:p]), np.array(solution.z[:n])
        yield np.clip(x, lower, upper), np.clip(lam, floor, weights)


def polish(
    instance: AffineProblem, y: Array, x: Array, lam: Array, slack: float
) -> Iterator[tuple[Array, Array]]:
    """Newton's method on the active set that an approximate answer suggests."""
    _, _, alpha, floor, weights, _, A, b, lower, upper = instance
    for _ in range(10):
        room = slack * (1.0 + np.abs(x))
        free = (x > lower + room) & (x < upper - room)
        margin = slack * (1.0 + np.abs(lam))
        inner = (lam > floor + margin) & (lam < weights - margin)
        lam = np.where(inner, lam, np.where(lam <= floor + margin, floor, weights))
        x = np.where(free, x, np.where(x <= lower + room, lower, upper))
        # Free x: x = y - A'lam / (2 alpha). Inner rows: A x = b. Unknown: lam of the inner rows.
        B = A[np.ix_(inner, free)]
        fixed = y[free] - A[np.ix_(~inner, free)].T @ lam[~inner] / (2.0 * alpha)
        target = B @ fixed + A[np.ix_(inner, ~free)] @ x[~free] - b[inner]
        lam, x = lam.copy(), x.copy()
        lam[inner] = np.linalg.lstsq(B @ B.T / (2.0 * alpha), target, rcond=1e-13)[0]
        x[free] = fixed - B.T @ lam[inner] / (2.0 * alpha)
        # Correct x along the rows directly: with a small alpha lam cannot hold the digits.
        error = A[inner] @ x - b[inner]
        x[free] -= np.linalg.lstsq(B, error, rcond=1e-13)[0]
        x, lam = np.clip(x, lower, upper), np.clip(lam, floor, weights)
        yield x, lam


def explain(instance: AffineProblem, y: Array, x: Array, slack: float) -> tuple[Array, Array]:
    """x moved onto the rows it nearly meets, and the multipliers that make it an optimum, if any.

    Rows that leave a domain without an inside have no bound on their multipliers, so that those of
    an interior point method are of no use. Here x comes first, and the multipliers are a least
    squares problem with bounds.
    """
    from scipy.optimize import lsq_linear

    _, _, alpha, floor, weights, _, A, b, lower, upper = instance
    room = slack * (1.0 + np.abs(x))
    x = np.where(x <= lower + room, lower, np.where(x >= upper - room, upper, x))
    free = (x > lower) & (x < upper)
    size = np.abs(b) + np.abs(A) @ np.maximum(np.abs(x), 1e-3)
    near = np.abs(A @ x - b) <= slack * size
    for _ in range(2):
        error = A[near] @ x - b[near]
        x[free] -= np.linalg.lstsq(A[np.ix_(near, free)], error, rcond=1e-13)[0]
        x = np.clip(x, lower, upper)
    lam = np.where(near | (A @ x < b), floor, weights)
    lam = np.where(np.isinf(lam), 0.0, lam)
    # Unknown: the multipliers of the rows that x meets, and a push from each bound that it is at.
    below, above = np.flatnonzero(x <= lower), np.flatnonzero(x >= upper)
    eye = np.eye(x.size)
    columns = np.concatenate([A[near], -eye[below], eye[above]])
    pushes = np.zeros(below.size + above.size)
    least = np.concatenate([floor[near] / (2.0 * alpha), pushes])
    most = np.concatenate([weights[near] / (2.0 * alpha), pushes + np.inf])
    target = y - x - A[~near].T @ lam[~near] / (2.0 * alpha)
    scale = 1.0 + np.abs(y)
    loose = least < most
    target = target - columns[~loose].T @ least[~loose]
    found = least.copy()
    if loose.any():
        fit = lsq_linear(
            (columns[loose] / scale).T, target / scale, (least[loose], most[loose]), method="bvls",
            tol=1e-15,
        )  # fmt: skip
        found[loose] = fit.x
    lam[near] = np.clip(found[: near.sum()] * (2.0 * alpha), floor[near], weights[near])
    return x, lam
