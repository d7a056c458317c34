"""The benchmarks of regret: the best decision of every slot, and the best one for all of them.

Both are found with the per-slot solver itself, no CVXPY needed. A quadratic loss enters the step as
compliant rows, and the smallest minimiser-preserving proximal term picks one among several: with
center c and a small alpha, ``min f(x) + alpha |x - c|^2`` tends to the minimiser of f nearest to c,
and repeating it from its own answer removes what alpha left of an error.

A problem that knows better says so: ``best_decisions(seeds)`` returns x*_t (S, T, p) and their
losses (S, T), ``best_fixed_decision(seeds)`` returns x* (S, p).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coldq._values import Array, is_ours, quiet
from coldq.constraints import (
    Affine,
    Kind,
    LogCapacity,
    SparseAffine,
    Stacked,
    Unconstrained,
    require_whole,
)
from coldq.domains import ORIGIN_SIZE, Ball, Box, Domain
from coldq.errors import Error, Infeasible, InvalidInput
from coldq.feedback import Feedback
from coldq.losses import Linear
from coldq.protocols import require_problem
from coldq.simulate import replay, seed_tuple
from coldq.step import SOLVERS, Step, penalised_step
from coldq.step.affine import TOLERANCE, append, is_large, raise_if_failed, rescue, run_affine
from coldq.step.ball import run_ball
from coldq.step.log_capacity import run_log_capacity

SMALL = 1e-6  # the proximal term, relative to the size of the loss
FREE = 1e-40  # a price this far below the largest counts as none
PATIENCE, EASIEST = 8, 1e-8  # steps before the proximal term is made smaller, and how much at most
SETTLED = 1e-10  # a proximal step that moves less than this, relatively, ends the iteration
SETTLED_AT_VERTEX = 1e-8  # the same of a linear loss, which ends exactly: the rest is rounding
STACKED = 64  # different constraints that are not affine, put together for the static comparator
NAMED = 5  # seeds, and slots of each, that a warning names
CACHE_BYTES = 500_000_000
NOWHERE, ZERO, INFINITE = np.zeros((), bool), np.zeros(()), np.full((), np.inf)


@dataclass(frozen=True, eq=False, repr=False)
class Comparator:
    """A benchmark sequence: decisions `x` (S, T, p), their `loss` (S, T), and what exists.

    `feasible` (S, T) is False where a slot has no feasible decision (dynamic), or where no decision
    is feasible in every slot (static, for the whole seed). There x and loss are NaN, and so is any
    regret against them. `kind` and `seeds` say what it is and of which seeds, where that is known.

    >>> import coldq
    >>> coldq.dynamic_comparator(coldq.problems.OnlineLinear(horizon=20), seeds=[0, 1])
    Comparator(2 seeds, 20 slots)
    """

    x: Array
    loss: Array
    feasible: np.ndarray
    kind: str | None = None
    seeds: tuple[int, ...] | None = None

    @property
    def lacking(self) -> str:
        """Words for the seeds and slots without a feasible decision; none if all have one."""
        words = []
        for place, row in enumerate(self.feasible):
            slots = (np.flatnonzero(~row) + 1).tolist()
            if slots:
                seed = place if self.seeds is None else self.seeds[place]
                words.append(f"seed {seed}" + ("" if self.kind == "static" else _in(slots)))
        more = f" and {len(words) - NAMED} more seeds" if len(words) > NAMED else ""
        return "; ".join(words[:NAMED]) + more

    def __repr__(self) -> str:
        seeds, slots = self.loss.shape
        lacking = int((~self.feasible).sum())
        return f"Comparator({seeds} seed{'s' if seeds != 1 else ''}, {slots} slots" + (
            f", {lacking} of them without a feasible decision)" if lacking else ")"
        )


def _in(slots: list[int]) -> str:
    """The first of several slots, in words."""
    shown = ", ".join(map(str, slots[:NAMED]))
    more = f" and {len(slots) - NAMED} more" if len(slots) > NAMED else ""
    return f" in slot{'s' if len(slots) > 1 else ''} {shown}{more}"


class _Cache:
    """The latest comparators, one entry a (kind, problem, seed), up to a number of bytes."""

    def __init__(self) -> None:
        self.entries: OrderedDict[Any, tuple[np.ndarray, ...]] = OrderedDict()
        self.bytes = 0

    def get(self, key: Any) -> tuple[np.ndarray, ...] | None:
        if key in self.entries:
            self.entries.move_to_end(key)
        return self.entries.get(key)

    def put(self, key: Any, arrays: tuple[np.ndarray, ...]) -> None:
        self.entries[key] = arrays
        self.bytes += sum(a.nbytes for a in arrays)
        while self.bytes > CACHE_BYTES and len(self.entries) > 1:
            _, old = self.entries.popitem(last=False)
            self.bytes -= sum(a.nbytes for a in old)


_cache = _Cache()


def _cached(
    kind: str, solve: Any, problem: Any, seeds: tuple[int, ...], decisions: Array | None
) -> Comparator:
    """Solve the seeds not solved before; a seed's bits do not depend on those beside it."""
    require_problem(problem)
    # Only the library's problems are known to be values; others may change under the same hash.
    if not is_ours(problem) or problem.adaptive:
        return Comparator(*solve(problem, seeds, decisions), kind=kind, seeds=seeds)
    found = {seed: _cache.get((kind, problem, seed)) for seed in seeds}
    missing = tuple(seed for seed in found if found[seed] is None)
    if missing:
        x, loss, feasible = solve(problem, missing, None)
        for k, seed in enumerate(missing):
            found[seed] = (x[k], loss[k], feasible[k])
            _cache.put((kind, problem, seed), found[seed])  # type: ignore[arg-type]
    chosen = [found[seed] for seed in seeds]
    x, loss, feasible = (np.stack(parts) for parts in zip(*chosen, strict=True))  # type: ignore[arg-type]
    return Comparator(x, loss, feasible, kind, seeds)


@quiet
def dynamic_comparator(
    problem: Any, seeds: Iterable[int] = range(20), decisions: Array | None = None
) -> Comparator:
    """``x*_t``, a minimiser of f_t over ``{x in X : g_t(x) <= 0}``, for every slot.

    Among several minimisers the one nearest to the previous comparator is taken (at first: to the
    domain's start). Any selection is valid in Theorem 1; this one makes for a short path. Answers
    are cached by problem and seed. `decisions` (S, T, p) are needed for a problem that answers to
    them.

    >>> import coldq
    >>> best = coldq.dynamic_comparator(coldq.problems.TimeVarying(horizon=20), seeds=[0])
    >>> best.x.shape, bool(best.feasible.all())
    ((1, 20, 10), True)
    """
    return _cached("dynamic", _solve_dynamic, problem, seed_tuple(seeds), decisions)


@quiet
def static_comparator(
    problem: Any, seeds: Iterable[int] = range(20), decisions: Array | None = None
) -> Comparator:
    """``x*``, a minimiser of ``sum_t f_t`` over ``{x in X : g_t(x) <= 0 for all t}``.

    Rows are added to the problem as they turn out to be violated, until none is.

    >>> import coldq
    >>> best = coldq.static_comparator(coldq.problems.OnlineQuadratic(horizon=20), seeds=[0])
    >>> best.x[0, 0].round(3).shape
    (2,)
    """
    return _cached("static", _solve_static, problem, seed_tuple(seeds), decisions)


def _solve_dynamic(
    problem: Any, seeds: tuple[int, ...], decisions: Array | None
) -> tuple[Array, Array, np.ndarray]:
    if hasattr(problem, "best_decisions"):
        x, loss = problem.best_decisions(seeds)
        return x, loss, np.ones(loss.shape, bool)
    S, T, p = len(seeds), problem.horizon, problem.domain.dim
    x, loss, feasible = np.full((S, T, p), np.nan), np.full((S, T), np.nan), np.zeros((S, T), bool)
    near = np.array(np.broadcast_to(problem.domain.start(), (S, p)))
    for t, revealed in replay(problem, seeds, decisions):
        best, exists = nearest_minimiser(revealed, problem.domain, near)
        near = np.where(exists[:, None], best, near)
        feasible[:, t - 1] = exists
        x[:, t - 1] = np.where(exists[:, None], best, np.nan)
        loss[:, t - 1] = np.where(exists, revealed.loss.value(near), np.nan)
    return x, loss, feasible


def nearest_minimiser(revealed: Feedback, domain: Any, near: Array) -> tuple[Array, np.ndarray]:
    """A minimiser of the loss where the constraint holds, and whether one exists."""
    loss, constraint = revealed.loss, revealed.constraint
    quadratic = hasattr(loss, "quadratic")
    if quadratic and isinstance(constraint, Affine | Unconstrained) and on_rows(domain):
        rows, targets, slope = quadratic_rows(loss)
        if isinstance(constraint, Affine):
            require_whole("a comparator", constraint)
            return minimise_on_rows(rows, targets, slope, constraint.A, constraint.b, domain, near)
        none = np.zeros((0, domain.dim)), np.zeros(0)
        return minimise_on_rows(rows, targets, slope, *none, domain, near)
    if (
        isinstance(loss, Linear)
        and isinstance(constraint, LogCapacity)
        and isinstance(domain, Box)
        and not domain.batch
        and np.isfinite(domain.diameter)
    ):
        return minimise_cost(loss.c, constraint, domain, near)
    return minimise_smooth(loss.value, loss.gradient, constraint, domain, near)


def on_rows(domain: Any) -> bool:
    """Whether the kernels of affine rows know the domain; else its steps are all there is."""
    return isinstance(domain, Ball) or (isinstance(domain, Domain) and domain.polyhedral)


def quadratic_rows(loss: Any) -> tuple[Array, Array, Array]:
    """Rows H, targets y and a slope c with ``f(x) = |H x - y|^2 / 2 + <c, x>`` up to a constant."""
    if hasattr(loss, "H"):
        return loss.H, loss.y, np.zeros(loss.dim)
    P, q, _ = loss.quadratic()
    if not P.any():
        return np.zeros((0, loss.dim)), np.zeros(0), q
    values, vectors = np.linalg.eigh(P)
    roots = np.sqrt(np.maximum(values, 0.0))
    rows = np.ascontiguousarray(roots[..., None] * np.swapaxes(vectors, -1, -2))
    return rows, np.zeros(rows.shape[:-1]), q


def minimise_on_rows(
    H: Array, y: Array, c: Array, A: Array, b: Array, domain: Domain, near: Array
) -> tuple[Array, np.ndarray]:
    """Minimise ``|H x - y|^2 / 2 + <c, x>`` over ``A x <= b`` in a polyhedral domain or a ball.

    Also, whether there is such an x.
    """
    batch, own = near.shape[:-1], domain.rows
    rows, targets = append(append(H, A, 2), own.A, 2), append(append(y, b, 1), own.b, 1)
    rows = np.broadcast_to(rows, batch + rows.shape[-2:])
    targets = np.broadcast_to(targets, batch + targets.shape[-1:])
    m, n = y.shape[-1], b.shape[-1]
    floor = np.concatenate([np.full(m, -np.inf), np.zeros(n), own.floor])
    weights = np.full(floor.size, np.inf)
    compliance = np.where(np.arange(floor.size) < m, 1.0, 0.0)
    # A linear loss must be able to cross the domain in one step.
    width = np.where(np.isfinite(domain.diameter), np.maximum(domain.diameter, 1.0), 1.0)
    size = np.square(H).sum(axis=(-1, -2)) + np.abs(c).max(axis=-1) / width
    alpha = np.broadcast_to(SMALL * np.where(size > 0.0, size, 1.0), batch)
    slope = np.broadcast_to(c, near.shape)

    def step(x: Array, here: np.ndarray, ease: float) -> tuple[Step, np.ndarray]:
        problem = (
            x, slope[here], ease * alpha[here], floor, weights, compliance,
            np.ascontiguousarray(rows[here]), np.ascontiguousarray(targets[here]),
        )  # fmt: skip
        return _solve(problem, domain)

    return _repeat(step, near, SETTLED if m else SETTLED_AT_VERTEX)


def minimise_cost(
    c: Array, capacity: LogCapacity, domain: Box, near: Array
) -> tuple[Array, np.ndarray]:
    """Minimise ``<c, x>`` over a capacity row in a bounded box; also, whether there is such an x.

    This is water-filling: x_i is mu scale_i / c_i - 1 / rate_i, clipped, for one multiplier mu. The
    proximal term is small against the least price that is not zero, so that a free coordinate alone
    feels it and stays as near as the demand lets it.
    """
    prices = np.abs(c)
    most = prices.max(axis=-1, keepdims=True)
    least = np.where(prices > FREE * most, prices, most).min(axis=-1)
    size = np.where(least > 0.0, least, 1.0) / np.maximum(domain.diameter, 1.0)
    batch, whole = near.shape[:-1], near.shape
    alpha, demand = (np.broadcast_to(a, batch) for a in (SMALL * size, capacity.demand))
    c, scale, rate = (np.broadcast_to(a, whole) for a in (c, capacity.scale, capacity.rate))

    def step(x: Array, here: np.ndarray, ease: float) -> tuple[Step, np.ndarray]:
        row, near = LogCapacity(demand[here], scale[here], rate[here]), ease * alpha[here]
        answer = Step(*run_log_capacity(x, c[here], near, ZERO, INFINITE, row, domain))
        return answer, np.isinf(answer.residual)

    return _repeat(step, near)


def _repeat(
    step: Callable[[Array, np.ndarray, float], tuple[Step, np.ndarray]],
    near: Array,
    within: float = SETTLED,
) -> tuple[Array, np.ndarray]:
    """Repeat a proximal step from its own answers until they stay, and where there is an answer.

    `step` gets the points that still move, where they are in the batch and how much to ease alpha:
    a loss that bends a million times less in one direction than in another creeps along it under
    an alpha that suits the other. It says which instances have no answer.
    """
    batch = near.shape[:-1]
    x, exists, open_ = np.array(near), np.ones(batch, bool), np.ones(batch, bool)
    for k in range(100):
        # Each instance ends by itself, so that its bits do not depend on those beside it.
        answer, clash = step(x[open_], open_, max(0.1 ** max(k - PATIENCE, 0), EASIEST))
        if not (answer.residual <= TOLERANCE).all():
            raise_if_failed(
                answer._replace(residual=np.where(clash, 0.0, answer.residual)), NOWHERE
            )
            exists[open_] = ~clash
            answer = answer._replace(x=np.where(clash[:, None], x[open_], answer.x))
        settled = np.abs(answer.x - x[open_]) <= within * (1.0 + np.abs(answer.x))
        x[open_] = answer.x
        open_[open_] = ~settled.all(axis=-1)
        if not open_.any():
            return x, exists
    raise Error(
        f"no best decision was found, the search is at {x[open_][0]} and moving on: is the loss "
        "unbounded from below on the domain, or does it bend 1e12 times more in one direction than "
        "in another?"
    )


def _solve(problem: tuple[Any, ...], domain: Domain) -> tuple[Step, np.ndarray]:
    """The answers, and where hard rows have no point in the domain."""
    if isinstance(domain, Ball):
        answer = run_ball((*problem, domain.center, domain.radius))
        return answer, np.isinf(answer.residual)
    problem = (*problem, domain.box.lower, domain.box.upper)
    answer = run_affine(problem)
    if (answer.residual <= TOLERANCE).all():
        return answer, NOWHERE
    return rescue(problem, answer)


def minimise_smooth(
    value: Any, gradient: Any, constraint: Any, domain: Any, near: Array
) -> tuple[Array, np.ndarray]:
    """Minimise any smooth convex loss over the constraint, instance by instance.

    Projected gradient steps with backtracking and momentum; each projection is a per-slot problem
    with hard rows. Slower, and right for whatever the step can solve.
    """
    batch = near.shape[:-1]
    best, exists = np.array(near), np.ones(batch, bool)
    require_whole("a comparator", constraint)
    for where in np.ndindex(*batch):
        part = constraint.member(where, batch) if type(constraint) in SOLVERS else constraint

        def at(function: Any, x: Array, where: Any = where) -> Array:
            whole = np.array(best)
            whole[where] = x
            return function(whole)[where]

        try:
            best[where] = _descend(
                lambda x: at(value, x), lambda x: at(gradient, x), part, domain, near[where]
            )
        except Infeasible:
            exists[where] = False
    return best, exists


def _descend(value: Any, gradient: Any, constraint: Any, domain: Any, near: Array) -> Array:
    """Accelerated projected gradient with backtracking and restart."""

    def project(x: Array) -> Array:
        return penalised_step(x, np.zeros(x.size), 0.5, np.inf, constraint, domain).x

    x = project(near)
    ahead, momentum, curvature = x, 1.0, 1.0
    for _ in range(20_000):
        slope, level = gradient(ahead), value(ahead)
        while True:
            trial = project(ahead - slope / curvature)
            step = trial - ahead
            model = level + slope @ step + 0.5 * curvature * (step @ step)
            if value(trial) <= model + 1e-12 * (1.0 + abs(level)) or curvature > 1e16:
                break
            curvature *= 2.0
        moved = trial - x
        if np.abs(step).max() <= SETTLED * (1.0 + np.abs(trial).max()):
            return trial
        if step @ moved < 0.0:
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        ahead = trial + (momentum - 1.0) / following * moved
        x, momentum, curvature = trial, following, 0.9 * curvature
    raise Error("the comparator of a smooth loss did not settle in 20,000 projected steps")


def _solve_static(
    problem: Any, seeds: tuple[int, ...], decisions: Array | None
) -> tuple[Array, Array, np.ndarray]:
    slots = [revealed for _, revealed in replay(problem, seeds, decisions)]
    S, T, p = len(seeds), problem.horizon, problem.domain.dim
    near = np.array(np.broadcast_to(problem.domain.start(), (S, p)))
    losses, constraints = [s.loss for s in slots], [s.constraint for s in slots]
    quadratic = all(hasattr(loss, "quadratic") for loss in losses)
    constraints = _dense(constraints)
    affine = all(isinstance(g, Affine | Unconstrained) for g in constraints)
    if hasattr(problem, "best_fixed_decision"):
        best, exists = problem.best_fixed_decision(seeds), np.ones(S, bool)
    elif quadratic and affine and on_rows(problem.domain):
        best, exists = _static_on_rows(losses, constraints, problem.domain, near)
    elif all(isinstance(loss, Linear) for loss in losses):
        total = Linear(sum(loss.c for loss in losses))
        revealed = Feedback(total, _strictest(constraints))
        best, exists = nearest_minimiser(revealed, problem.domain, near)
    else:
        best, exists = minimise_smooth(
            lambda x: np.sum([f.value(x) for f in losses], axis=0),
            lambda x: np.sum([f.gradient(x) for f in losses], axis=0),
            _strictest(constraints),
            problem.domain,
            near,
        )
    loss = np.stack([f.value(best) for f in losses], axis=1)
    x = np.array(np.broadcast_to(best[:, None, :], (S, T, p)))
    feasible = np.broadcast_to(exists[:, None], (S, T)).copy()
    return np.where(feasible[..., None], x, np.nan), np.where(feasible, loss, np.nan), feasible


def _dense(constraints: list[Any]) -> list[Any]:
    """Sparse rows as dense ones, where the step would take them as such too."""
    return [
        g.dense() if isinstance(g, SparseAffine) and not is_large(*g.shape) else g
        for g in constraints
    ]


def _strictest(constraints: list[Any]) -> Any:
    """One constraint that stands for all slots, where there is one."""
    # Ours are equal by content; of a user's own we know only which object it is.
    first = constraints[0]
    different = list({g if is_ours(first) else id(g): g for g in constraints}.values())
    different = [g for g in different if not isinstance(g, Unconstrained)] or [first]
    kinds = {type(g) for g in different}
    if len(kinds) == 1 and isinstance(different[0], Kind):
        whole = different[0].all_of(different)
        if whole is not None:
            return whole
    if len(different) > STACKED:
        raise InvalidInput(
            "the static comparator takes any number of affine constraints, and capacities whose "
            f"scale and rate stay the same, but of others at most {STACKED} different ones: these "
            f"are {len(different)} of {', '.join(sorted(kind.__name__ for kind in kinds))}"
        )
    return Stacked(*different) if len(different) > 1 else different[0]


def _static_on_rows(
    losses: list[Any], constraints: list[Any], domain: Domain, near: Array
) -> tuple[Array, np.ndarray]:
    S, p = near.shape
    P, q = np.zeros((S, p, p)), np.zeros((S, p))
    for loss in losses:
        more_P, more_q, _ = loss.quadratic()
        P += more_P
        q += more_q
    values, vectors = np.linalg.eigh(P)
    roots = np.sqrt(np.maximum(values, 0.0))
    H = np.ascontiguousarray(roots[..., None] * np.swapaxes(vectors, -1, -2))
    rows = [g for g in constraints if isinstance(g, Affine)]
    require_whole("a comparator", *rows)
    A = [np.broadcast_to(g.A, (S, *g.A.shape[-2:])) for g in rows]
    b = [np.broadcast_to(g.b, (S, g.b.shape[-1])) for g in rows]
    A, b = (np.concatenate(A, axis=1), np.concatenate(b, axis=1)) if rows else (
        np.zeros((S, 0, p)), np.zeros((S, 0)))  # fmt: skip
    best, exists = np.array(near), np.ones(S, bool)
    for s in range(S):
        best[s], exists[s] = _add_violated_rows(H[s], q[s], A[s], b[s], domain, near[s])
    return best, exists


def _add_violated_rows(
    H: Array, c: Array, A: Array, b: Array, domain: Domain, near: Array
) -> tuple[Array, bool]:
    """Minimise over very many rows by solving for few of them, the worst violated ones."""
    y = np.zeros(H.shape[0])
    # A coordinate at zero counts with a size of its own, which is small beside the domain's.
    least = ORIGIN_SIZE * np.minimum(domain.diameter, 1.0)
    working = np.zeros(len(b), bool)
    while True:
        chosen = np.flatnonzero(working)
        x, exists = minimise_on_rows(H, y, c, A[chosen], b[chosen], domain, near)
        if not exists:
            return x, False
        scale = np.abs(b) + np.abs(A) @ np.maximum(np.abs(x), least)
        excess = np.where(working, 0.0, (A @ x - b) / np.where(scale > 0.0, scale, 1.0))
        worst = np.argsort(-excess)[: max(8, near.size)]
        worst = worst[excess[worst] > TOLERANCE]
        if worst.size == 0:
            return x, True
        working[worst] = True
