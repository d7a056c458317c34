"""Convex functions with derivatives by hand, smooth and with kinks, and the same in CVXPY."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Functions(NamedTuple):
    """N rows of one kind; `modelled` gives them as CVXPY expressions of a variable."""

    value: Callable[[np.ndarray], Any]
    jacobian: Callable[[np.ndarray], Any]
    hessian: Callable[[np.ndarray], Any] | None
    modelled: Callable[[Any, Any], list[Any]]


SMOOTH, KINKED = ("log-sum-exp", "exponentials", "powers", "entropy"), ("norm", "pieces", "mixed")


def make_functions(rng: np.random.Generator, kind: str, N: int, p: int) -> Functions:
    """Rows of a kind with random data; all are finite on [-2, 2]^p."""
    A, b, r = rng.standard_normal((N, 4, p)), rng.standard_normal((N, 4)), rng.uniform(-0.5, 2, N)
    match kind:
        case "log-sum-exp":

            def shares(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
                u = A @ x + b
                top = u.max(axis=1, keepdims=True)
                e = np.exp(u - top)
                return e / e.sum(axis=1, keepdims=True), np.log(e.sum(axis=1)) + top[:, 0]

            def curvature(x: np.ndarray) -> np.ndarray:
                w = shares(x)[0]
                mean = np.einsum("nk,nki->ni", w, A)
                second = np.einsum("nk,nki,nkj->nij", w, A, A)
                return second - mean[:, :, None] * mean[:, None, :]

            return Functions(
                lambda x: shares(x)[1] - r - 1.0,
                lambda x: np.einsum("nk,nki->ni", shares(x)[0], A),
                curvature,
                lambda cp, x: [cp.log_sum_exp(A[n] @ x + b[n]) - r[n] - 1.0 for n in range(N)],
            )
        case "exponentials":
            a = A[:, 0]
            return Functions(
                lambda x: np.exp(a * x).sum(axis=1) - p - r,
                lambda x: a * np.exp(a * x),
                lambda x: np.stack([np.diag(a[n] ** 2 * np.exp(a[n] * x)) for n in range(N)]),
                lambda cp, x: [cp.sum(cp.exp(cp.multiply(a[n], x))) - p - r[n] for n in range(N)],
            )
        case "powers":
            return Functions(
                lambda x: ((A @ x + b) ** 4).sum(axis=1) - 4.0 * r,
                lambda x: np.einsum("nk,nki->ni", 4.0 * (A @ x + b) ** 3, A),
                lambda x: np.einsum("nk,nki,nkj->nij", 12.0 * (A @ x + b) ** 2, A, A),
                lambda cp, x: [cp.sum((A[n] @ x + b[n]) ** 4) - 4.0 * r[n] for n in range(N)],
            )
        case "entropy":  # a barrier-like curvature near -2.5
            return Functions(
                lambda x: ((x + 2.5) * np.log(x + 2.5)).sum() + A[:, 0] @ x - r - p,
                lambda x: np.log(x + 2.5) + 1.0 + A[:, 0],
                lambda x: np.repeat(np.diag(1.0 / (x + 2.5))[None], N, axis=0),
                lambda cp, x: [
                    -cp.sum(cp.entr(x + 2.5)) + A[n, 0] @ x - r[n] - p for n in range(N)
                ],
            )
        case "norm":

            def direction(x: np.ndarray) -> np.ndarray:
                length = np.sqrt(x @ x)
                return x / length if length > 0.0 else x

            return Functions(
                lambda x: np.sqrt(x @ x) + A[:, 0] @ x - r,
                lambda x: direction(x) + A[:, 0],
                None,
                lambda cp, x: [cp.norm(x) + A[n, 0] @ x - r[n] for n in range(N)],
            )
        case "pieces":

            def slopes(x: np.ndarray) -> np.ndarray:
                return A[np.arange(N), (A @ x + b).argmax(axis=1)]

            return Functions(
                lambda x: (A @ x + b).max(axis=1) - r,
                slopes,
                None,
                lambda cp, x: [cp.max(A[n] @ x + b[n]) - r[n] for n in range(N)],
            )
        case _:  # a kink along a line, curvature across it

            def bent(x: np.ndarray) -> np.ndarray:
                return np.sign(A[:, 0] @ x)[:, None] * A[:, 0] + x

            return Functions(
                lambda x: np.abs(A[:, 0] @ x) + 0.5 * x @ x - r,
                bent,
                None,
                lambda cp, x: [
                    cp.abs(A[n, 0] @ x) + 0.5 * cp.sum_squares(x) - r[n] for n in range(N)
                ],
            )
