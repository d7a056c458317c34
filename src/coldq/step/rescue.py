"""The slow path for one instance with affine rows: strict faces, then Clarabel, polished."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

from coldq._values import Array
from coldq.step.affine import STRICT, TOLERANCE, run_affine
from coldq.step.threads import scratch

Instance = tuple[Any, ...]


def solve_slowly(instance: Instance) -> tuple[Array, Array, Array]:
    """The best answer that any of the slow methods finds; stops at the first good one."""
    best = run_affine(instance, STRICT)
    if best[2] <= TOLERANCE:
        return best
    for x, multipliers in clarabel_answers(instance):
        answer = x, multipliers, residual_of(instance, x, multipliers)
        if answer[2] < best[2] or np.isnan(best[2]):
            best = answer
        if best[2] <= TOLERANCE:
            break
    return best


def residual_of(instance: Instance, x: Array, multipliers: Array) -> Array:
    """The kernel's own residual, of an answer from anywhere."""
    from coldq.step.kernels import affine_check

    return affine_check()(x, multipliers, *instance, scratch(*instance[6].shape))


def clarabel_answers(instance: Instance) -> Iterator[tuple[Array, Array]]:
    """Clarabel's answer, and its polished versions.

    Each row is split as ``A x - b = up - down`` with up, down >= 0 priced at the row's bounds;
    an infinite price removes the variable, and a compliant row has one more, squared. Polishing
    fixes what sits at a bound, solves the equations that remain, and lets the sets correct
    themselves a few times.
    """
    from scipy import sparse

    clarabel: Any = import_module("clarabel")  # a compiled module without type information

    center, gradient, alpha, floor, weights, compliance, A, b, lower, upper = instance
    n, p = A.shape
    y = center - gradient / (2.0 * alpha)
    up, down = np.flatnonzero(weights < np.inf), np.flatnonzero(floor > -np.inf)
    m = p + up.size + down.size
    soft = np.flatnonzero(compliance > 0.0)
    rows = sparse.csc_array(sparse.eye_array(n))
    P = sparse.diags_array(
        np.concatenate([np.full(p, 2.0 * alpha), np.zeros(m - p), 1.0 / compliance[soft]]),
        format="csc",
    )
    q = np.concatenate([-2.0 * alpha * y, weights[up], -floor[down], np.zeros(soft.size)])
    split = sparse.hstack(
        [sparse.csc_array(A), -rows[:, up], rows[:, down], -rows[:, soft]], format="csc"
    )
    eye = sparse.csc_array(sparse.eye_array(m + soft.size))
    below = np.flatnonzero(np.concatenate([lower, np.zeros(m - p)]) > -np.inf)
    above = np.flatnonzero(upper < np.inf)
    G = sparse.vstack([split, -eye[below], eye[above]], format="csc")
    h = np.concatenate([b, -np.concatenate([lower, np.zeros(m - p)])[below], upper[above]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(settings, name, 1e-12)
    cones = [clarabel.ZeroConeT(n), clarabel.NonnegativeConeT(below.size + above.size)]
    solution = clarabel.DefaultSolver(P, q, G, h, cones, settings).solve()
    if not np.isfinite(solution.x).all():
        return
    x = np.clip(np.array(solution.x[:p]), lower, upper)
    lam = np.clip(np.array(solution.z[:n]), floor, weights)
    yield x, lam
    for slack in (1e-6, 1e-4, 1e-8):
        yield from polish(instance, y, x, lam, slack)


def polish(
    instance: Instance, y: Array, x: Array, lam: Array, slack: float
) -> Iterator[tuple[Array, Array]]:
    """Newton's method on the active set that an approximate answer suggests."""
    _, _, alpha, floor, weights, compliance, A, b, lower, upper = instance
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
        dual = B @ B.T / (2.0 * alpha) + np.diag(compliance[inner])
        lam[inner] = np.linalg.lstsq(dual, target, rcond=1e-13)[0]
        x[free] = fixed - B.T @ lam[inner] / (2.0 * alpha)
        # Correct x along the rows directly: with a small alpha lam cannot hold the digits.
        error = A[inner] @ x - b[inner] - compliance[inner] * lam[inner]
        x[free] -= np.linalg.lstsq(B, error, rcond=1e-13)[0]
        x, lam = np.clip(x, lower, upper), np.clip(lam, floor, weights)
        yield x, lam


def hard_rows_clash(instance: Instance) -> bool:
    """Whether a linear program finds no point of the box that satisfies every hard row.

    It minimises the largest violation relative to each row's size.
    """
    from scipy.optimize import linprog

    _, _, _, floor, weights, _, A, b, lower, upper = instance
    at_most, at_least = weights == np.inf, floor == -np.inf
    if not (at_most.any() or at_least.any()):
        return False
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
    )
    return bool(result.status == 2 or (result.status == 0 and result.fun > 1e-8))
