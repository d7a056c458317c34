"""The benchmarks of regret: the best decision of every slot, and the best one for all of them.

Both are solved with the per-slot solver itself (:mod:`coldq.slot.minimisers`), no CVXPY needed.

A problem that knows better says so: ``best_decisions(seeds)`` returns x*_t (S, T, p) and their
losses (S, T), ``best_fixed_decision(seeds)`` returns x* (S, p).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coldq.base.arrays import Array, is_ours, quiet
from coldq.base.errors import InvalidInput
from coldq.base.notebook import track, track_all
from coldq.base.protocols import Problem, require_problem
from coldq.simulation.loop import seed_tuple
from coldq.simulation.replay import recorded, replay
from coldq.slot.constraints import Affine, Kind, SparseAffine, Stacked, Unconstrained, require_whole
from coldq.slot.domains import Domain
from coldq.slot.feedback import Feedback
from coldq.slot.losses import Linear
from coldq.slot.minimisers import (
    minimise_on_many_rows,
    minimise_smooth,
    nearest_minimiser,
    on_rows,
    root_of,
)
from coldq.slot.step.affine import MIN_SPARSE_ENTRIES

MAX_STACKED = 64  # different constraints that are not affine, put together
MAX_NAMED = 5  # seeds, and slots of each, that a warning names
MAX_CACHE_BYTES = 100_000_000  # in each worker of a sweep, too


@dataclass(frozen=True, eq=False, repr=False)
class Comparator:
    """A benchmark sequence: decisions `x` (S, T, p), their `loss` (S, T), and what exists.

    `feasible` (S, T) is False where a slot has no feasible decision (dynamic), or where no decision
    is feasible in every slot (static, for the whole seed). There x and loss are NaN, and so is any
    regret against them. `kind`, `seeds` and `problem` say what it is and of what, where known.

    >>> import coldq
    >>> coldq.dynamic_comparator(coldq.problems.OnlineLinear(horizon=20), seeds=[0, 1])
    Comparator(2 seeds, 20 slots)
    """

    x: Array
    loss: Array
    feasible: np.ndarray
    kind: str | None = None
    seeds: tuple[int, ...] | None = None
    problem: Any = None

    @property
    def lacking(self) -> str:
        """Words for the seeds and slots without a feasible decision; none if all have one."""
        words = []
        for place, row in enumerate(self.feasible):
            slots = (np.flatnonzero(~row) + 1).tolist()
            if slots:
                seed = place if self.seeds is None else self.seeds[place]
                words.append(f"seed {seed}" + ("" if self.kind == "static" else _in(slots)))
        more = f" and {len(words) - MAX_NAMED} more seeds" if len(words) > MAX_NAMED else ""
        return "; ".join(words[:MAX_NAMED]) + more

    def __repr__(self) -> str:
        seeds, slots = self.loss.shape
        lacking = int((~self.feasible).sum())
        return f"Comparator({seeds} seed{'s' if seeds != 1 else ''}, {slots} slots" + (
            f", {lacking} of them without a feasible decision)" if lacking else ")"
        )


def _in(slots: list[int]) -> str:
    """The first of several slots, in words."""
    shown = ", ".join(map(str, slots[:MAX_NAMED]))
    more = f" and {len(slots) - MAX_NAMED} more" if len(slots) > MAX_NAMED else ""
    return f" in slot{'s' if len(slots) > 1 else ''} {shown}{more}"


def moves_of(comparator: Comparator) -> Array:
    """``|x*_t - x*_{t-1}|`` of every slot, the first counting zero, of shape (S, T)."""
    moves = np.zeros(comparator.loss.shape)
    moves[:, 1:] = np.sqrt(np.square(np.diff(comparator.x, axis=1)).sum(axis=-1))
    return moves


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
        while self.bytes > MAX_CACHE_BYTES and len(self.entries) > 1:
            _, old = self.entries.popitem(last=False)
            self.bytes -= sum(a.nbytes for a in old)


_cache = _Cache()


def _cached(
    kind: str, solve: Any, problem: Problem, seeds: tuple[int, ...], decisions: Array | None
) -> Comparator:
    """Solve the seeds not solved before; a seed's bits do not depend on those beside it."""
    require_problem(problem)
    # Only the library's problems are known to be values; others may change under the same hash.
    if not is_ours(problem) or getattr(problem, "adaptive", False):
        x, loss, feasible = solve(problem, seeds, decisions)
        return Comparator(x, loss, feasible, kind, seeds, problem)
    solved = {seed: _cache.get((kind, problem, seed)) for seed in seeds}
    missing = tuple(seed for seed in solved if solved[seed] is None)
    if missing:
        x, loss, feasible = solve(problem, missing, None)
        for k, seed in enumerate(missing):
            solved[seed] = (x[k], loss[k], feasible[k])
            _cache.put((kind, problem, seed), solved[seed])  # type: ignore[arg-type]
    chosen = [solved[seed] for seed in seeds]
    x, loss, feasible = (np.stack(parts) for parts in zip(*chosen, strict=True))  # type: ignore[arg-type]
    return Comparator(x, loss, feasible, kind, seeds, problem)


@quiet
def dynamic_comparator(
    problem: Problem, seeds: Iterable[int] = range(20), decisions: Array | None = None
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
    problem: Problem, seeds: Iterable[int] = range(20), decisions: Array | None = None
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
    problem: Problem, seeds: tuple[int, ...], decisions: Array | None
) -> tuple[Array, Array, np.ndarray]:
    S, T, p = len(seeds), problem.horizon, problem.domain.dim
    known: Any = getattr(problem, "best_decisions", None)
    if known is not None:
        said = known(seeds)
        if not isinstance(said, tuple | list) or len(said) != 2:
            raise InvalidInput(f"best_decisions must return x and loss, but returned {said!r:.200}")
        x = recorded("x of best_decisions", said[0], (S, T, p))
        loss = recorded("loss of best_decisions", said[1], (S, T))
        return x, loss, np.ones((S, T), bool)
    x, loss, feasible = np.full((S, T, p), np.nan), np.full((S, T), np.nan), np.zeros((S, T), bool)
    near = np.array(np.broadcast_to(problem.domain.start(), (S, p)))
    slots = track_all(replay(problem, seeds, decisions), T, "best decisions")
    for t, revealed in slots:
        best, exists = nearest_minimiser(revealed, problem.domain, near)
        near = np.where(exists[:, None], best, near)
        feasible[:, t - 1] = exists
        x[:, t - 1] = np.where(exists[:, None], best, np.nan)
        loss[:, t - 1] = np.where(exists, revealed.loss.value(near), np.nan)
    return x, loss, feasible


def _solve_static(
    problem: Problem, seeds: tuple[int, ...], decisions: Array | None
) -> tuple[Array, Array, np.ndarray]:
    S, T, p = len(seeds), problem.horizon, problem.domain.dim
    each = replay(problem, seeds, decisions, held=True)
    slots = [revealed for _, revealed in track_all(each, T, "slots of the best fixed decision")]
    near = np.array(np.broadcast_to(problem.domain.start(), (S, p)))
    losses, constraints = [s.loss for s in slots], [s.constraint for s in slots]
    quadratic = all(hasattr(loss, "quadratic") for loss in losses)
    # Sparse rows are dense ones where the step would take them as such, too.
    constraints = [
        g.dense()
        if isinstance(g, SparseAffine) and g.A.shape[0] * g.dim <= MIN_SPARSE_ENTRIES
        else g
        for g in constraints
    ]
    affine = all(isinstance(g, Affine | Unconstrained) for g in constraints)
    known: Any = getattr(problem, "best_fixed_decision", None)
    if known is not None:
        best = recorded("what best_fixed_decision returns", known(seeds), (S, p))
        exists = np.ones(S, bool)
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
    if len(different) > MAX_STACKED:
        raise InvalidInput(
            "the static comparator takes any number of affine constraints, and capacities whose "
            f"scale and rate stay the same, but of others at most {MAX_STACKED} different ones: "
            f"these are {len(different)} of {', '.join(sorted(kind.__name__ for kind in kinds))}"
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
    H, rows = root_of(P), [g.as_affine(p) for g in constraints]
    require_whole("a comparator", *rows)
    A = np.concatenate([np.broadcast_to(g.A, (S, *g.A.shape[-2:])) for g in rows], axis=1)
    b = np.concatenate([np.broadcast_to(g.b, (S, g.b.shape[-1])) for g in rows], axis=1)
    best, exists = np.array(near), np.ones(S, bool)
    for s in track(range(S), "best fixed decisions"):
        best[s], exists[s] = minimise_on_many_rows(H[s], q[s], A[s], b[s], domain, near[s])
    return best, exists
