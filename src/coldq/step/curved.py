"""Quadratic rows on a box, with affine rows beside them: the compiled dual Newton method."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coldq._values import Array
from coldq.constraints import Affine
from coldq.errors import InvalidInput
from coldq.quadratic_constraint import QuadraticConstraint
from coldq.step.affine import HINGE, misfit, raise_if_failed
from coldq.step.answer import Step
from coldq.step.threads import run_batch, scratch

CURVED_TOLERANCE = 1e-8  # the relative KKT residual above which no answer passes silently
CORES = (1, 1, 0, 1, 1, 3, 2, 1, 1, 1, 1)
STIFF = 1e8  # the weight that decides whether hard rows have a common point


class Rows(NamedTuple):
    """Rows as the kernel takes them: those with a P first; `order` says where each came from."""

    P: Array
    A: Array
    b: Array
    low: Array
    high: Array
    order: np.ndarray


def box_and_hard(domain: Any) -> tuple[Any, tuple[Any, ...]]:
    """The box around a domain, and the affine and quadratic rows that make the domain of it."""
    hard = getattr(domain, "hard", ())
    if hard is None:
        raise InvalidInput(
            f"the step cannot read a {type(domain).__name__}; use one of the library's domains, or "
            "a learner that only projects"
        )
    rows = tuple((as_quadratic(part, domain.dim), least) for part, least in hard)
    return getattr(domain, "box", domain), rows


def as_quadratic(part: Any, p: int) -> Any:
    """A ball's row, ``|x[first : first + q] - center| <= radius``, squared; other rows as is."""
    if not hasattr(part, "radius"):
        return part
    batch, q = part.center.shape[:-1], part.center.shape[-1]
    inside = (np.arange(p) >= part.first) & (np.arange(p) < part.first + q)
    center = np.zeros((*batch, 1, p))
    center[..., 0, inside] = part.center
    P = np.broadcast_to(np.diag(2.0 * inside), (*batch, 1, p, p))
    radius = np.square(part.radius)[..., None] - np.square(center).sum(axis=-1)
    return QuadraticConstraint(P, -2.0 * center, radius)


def assemble(parts: list[Any], low: Array, high: Array, hard: tuple[Any, ...]) -> Rows:
    """The rows of affine and quadratic parts, and of a domain's hard rows after them."""
    if len(parts) == 1 and not hard and isinstance(parts[0], QuadraticConstraint):
        only = parts[0]
        return Rows(only.P, only.q, only.r, low, high, np.arange(only.n_constraints))
    for part, least in hard:
        low = _append(low, np.full(part.n_constraints, least))
        high = _append(high, np.full(part.n_constraints, np.inf))
    parts = [*parts, *(part for part, _ in hard)]
    curved = np.concatenate(
        [np.full(part.n_constraints, isinstance(part, QuadraticConstraint)) for part in parts]
    )
    order = np.argsort(~curved, kind="stable")
    A = _joined([part.q if isinstance(part, QuadraticConstraint) else part.A for part in parts], 2)
    b = _joined([part.r if isinstance(part, QuadraticConstraint) else part.b for part in parts], 1)
    P = [part.P for part in parts if isinstance(part, QuadraticConstraint)]
    p = A.shape[-1]
    return Rows(
        _joined(P, 3) if P else np.zeros((0, p, p)),
        np.ascontiguousarray(A[..., order, :]),
        np.ascontiguousarray(b[..., order]),
        np.ascontiguousarray(low[..., order]),
        np.ascontiguousarray(high[..., order]),
        order,
    )


def _append(array: Array, more: Array) -> Array:
    return np.concatenate([array, np.broadcast_to(more, (*array.shape[:-1], more.size))], axis=-1)


def _joined(arrays: list[Array], core: int) -> Array:
    """Arrays side by side along the first of their core axes, leading axes broadcast."""
    batch = np.broadcast_shapes(*(array.shape[: array.ndim - core] for array in arrays))
    spread = [np.broadcast_to(a, batch + a.shape[a.ndim - core :]) for a in arrays]
    return np.concatenate(spread, axis=len(batch))


def solve_quadratic(
    center: Array,
    gradient: Array,
    alpha: Array,
    weights: Array,
    floor: Any,
    constraint: QuadraticConstraint,
    domain: Any,
) -> Step:
    """The answers of a batch; raises if any instance has none."""
    return solve_parts(center, gradient, alpha, weights, floor, constraint, domain, [constraint])


def solve_parts(
    center: Array,
    gradient: Array,
    alpha: Array,
    weights: Array,
    floor: Any,
    constraint: Any,
    domain: Any,
    parts: list[Affine | QuadraticConstraint],
) -> Step:
    """The same for a constraint that is a stack of affine and quadratic parts."""
    box, hard = box_and_hard(domain)
    n = constraint.n_constraints
    low = np.zeros(n) if floor is HINGE else np.asarray(floor)
    begin = 0
    for part in parts:
        own = low[..., begin : begin + part.n_constraints]
        begin += part.n_constraints
        if isinstance(part, QuadraticConstraint) and (own < 0.0).any():
            raise one_way("quadratic", own)
    if constraint.dim != domain.dim or weights.shape[-1:] != (n,):
        raise misfit(center, gradient, weights, constraint, domain)
    rows = assemble(parts, low, weights, hard)
    start = np.zeros(rows.order.size)
    problem = (
        center, gradient, np.asarray(alpha), rows.low, rows.high, rows.P, rows.A, rows.b,
        box.lower, box.upper,
    )  # fmt: skip
    try:
        x, found, residual = run_curved(problem, start)
    except InvalidInput:
        raise
    except ValueError:
        raise misfit(center, gradient, weights, constraint, domain) from None
    clash = np.zeros(residual.shape, bool)
    if residual.size and not residual.max() <= CURVED_TOLERANCE:
        x, found, residual = (np.array(a) for a in (x, found, residual))
        clash = again(problem, x, found, residual)
    multipliers = np.empty_like(found)
    multipliers[..., rows.order] = found
    answer = Step(x, np.ascontiguousarray(multipliers[..., :n]), residual)
    if residual.size and not residual.max() <= CURVED_TOLERANCE:
        raise_if_failed(answer, clash, CURVED_TOLERANCE)
    return answer


def one_way(kind: str, floor: Array) -> InvalidInput:
    """The error for a negative floor of a row that is not affine."""
    return InvalidInput(
        f"a {kind} row is convex one way only: floor must not be negative, but is {floor}"
    )


def run_curved(problem: tuple[Any, ...], start: Array) -> tuple[Array, Array, Array]:
    """The kernel alone: answers whose residual may be large, infinite or NaN."""
    from coldq.step.kernels import curved_scratch_size, curved_step

    n, p = problem[6].shape[-2:]
    memory = partial(scratch, n, p, curved_scratch_size)
    x, multipliers, residual = run_batch(
        curved_step(), (*problem, start), CORES, ((p,), (n,), ()), memory
    )
    return x, multipliers, np.asarray(residual)


def again(problem: tuple[Any, ...], x: Array, found: Array, residual: Array) -> np.ndarray:
    """Solve from other multipliers what was not solved; also, where hard rows clash."""
    batch = residual.shape
    spread = [
        np.broadcast_to(a, batch + a.shape[a.ndim - c :])
        for a, c in zip(problem, CORES[:-1], strict=True)
    ]
    clash = np.zeros(batch, bool)
    for where in np.ndindex(*batch):
        if residual[where] <= CURVED_TOLERANCE or np.isnan(residual[where]):
            continue
        one = tuple(np.array(a[where]) for a in spread)
        if hard_rows_clash(one):
            clash[where] = True
            continue
        low, high = one[3], one[4]
        capped = np.where(np.isinf(high), np.maximum(low, 1.0), high)
        for start in (capped, np.maximum(low, 1e-3 * capped), np.nan_to_num(found[where])):
            x_new, multipliers, found_residual = run_curved(one, start)
            if found_residual < residual[where]:
                x[where], found[where], residual[where] = x_new, multipliers, found_residual
            if residual[where] <= CURVED_TOLERANCE:
                break
    return clash


def hard_rows_clash(instance: tuple[Any, ...]) -> bool:
    """Whether hard rows are violated even where they are all that matters, at a great weight."""
    center, gradient, _, low, high, P, A, b, lower, upper = instance
    at_most, at_least = high == np.inf, low == -np.inf
    if not (at_most.any() or at_least.any()):
        return False
    size = np.abs(b) + np.abs(A).sum(axis=-1)
    size[: len(P)] += np.abs(P).sum(axis=(-1, -2))
    weight = STIFF / np.where(size > 0.0, size, 1.0)
    high, low = np.where(at_most, weight, 0.0), np.where(at_least, -weight, 0.0)
    soft = (np.clip(center, lower, upper), 0.0 * gradient, np.array(1.0), low, high, P, A, b)
    x, _, _ = run_curved((*soft, lower, upper), np.zeros_like(b))
    g = A @ x - b
    g[: len(P)] += 0.5 * np.einsum("nij,i,j->n", P, x, x)
    violation = np.maximum(np.where(at_most, g, 0.0), np.where(at_least, -g, 0.0))
    scale = size * (1.0 + np.square(x).max(initial=0.0))
    return bool((violation > 1e-6 * scale).any())
