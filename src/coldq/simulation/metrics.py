"""Measures of a run: loss, violation, regret, and how much the problem moved.

They return one number a seed, or with ``cumulative=True`` the running total, of shape (S, T). Those
of a run take a :class:`~coldq.Trace`; :func:`path_length` takes a comparator and
:func:`constraint_variation` a problem and its seeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from coldq.base.arrays import Array, flag, real_array
from coldq.base.errors import InvalidInput, UndefinedRegret, warn
from coldq.base.protocols import Problem, require_problem
from coldq.simulation.comparators import Comparator, dynamic_comparator, moves_of, static_comparator
from coldq.simulation.loop import seed_tuple
from coldq.simulation.replay import replay, require_same_again
from coldq.simulation.trace import Trace, require_known, require_trace
from coldq.simulation.trace.compared import differ
from coldq.slot.constraints import difference


def _totals(series: Array, cumulative: bool) -> Array:
    cumulative = flag("cumulative", cumulative)
    running = np.add.accumulate(series, axis=1)
    return running if cumulative else running[:, -1]


def accumulated_loss(trace: Trace, *, cumulative: bool = False) -> Array:
    """``sum_t f_t(x_t)``.

    >>> import coldq
    >>> problem = coldq.problems.OnlineLinear(horizon=20)
    >>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0, 1])
    >>> coldq.accumulated_loss(trace).shape
    (2,)
    """
    return _totals(require_trace(trace).loss, cumulative)


def hard_violation(trace: Trace, *, norm: float = 1, cumulative: bool = False) -> Array:
    """``sum_t |[g_t(x_t)]_+|``: no slot makes up for another one.

    The paper's measure is the sum over the constraints, norm 1; any other vector norm of NumPy
    may be taken over them instead.

    >>> import coldq
    >>> problem = coldq.problems.OnlineLinear(horizon=20)
    >>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])
    >>> coldq.hard_violation(trace) <= 1e-9
    array([ True])
    """
    return _totals(_norm(require_trace(trace).violation, norm), cumulative)


def soft_violation(trace: Trace, *, norm: float = 1, cumulative: bool = False) -> Array:
    """``|[sum_t g_t(x_t)]_+|``: slack in one slot pays for violation in another.

    >>> import coldq
    >>> problem = coldq.problems.OnlineLinear(horizon=20)
    >>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])
    >>> coldq.soft_violation(trace) <= coldq.hard_violation(trace)
    array([ True])
    """
    running = np.add.accumulate(require_trace(trace).constraint, axis=1)
    if not flag("cumulative", cumulative):
        running = running[:, -1:]
    totals = _norm(np.maximum(running, 0.0), norm)
    return totals if cumulative else totals[:, 0]


def _norm(rows: Array, norm: float) -> Array:
    if rows.shape[-1] == 0:
        return np.zeros(rows.shape[:-1])
    real = isinstance(norm, int | float | np.integer | np.floating) and not isinstance(norm, bool)
    if not (real and norm >= 1):
        raise InvalidInput(f"norm must be a number, at least 1, but is {norm!r:.200}")
    with np.errstate(over="ignore", under="ignore"):
        return np.linalg.norm(rows, ord=float(norm), axis=-1)


def dynamic_regret(
    trace: Trace,
    comparator: Comparator | None = None,
    *,
    cumulative: bool = False,
    skip_infeasible: bool = False,
) -> Array:
    """``sum_t f_t(x_t) - f_t(x*_t)``; NaN for a seed with a slot that has no feasible decision.

    A :class:`~coldq.UndefinedRegret` warning names such seeds and slots, as
    :func:`infeasible_slots` does; with ``skip_infeasible=True`` the sum is over the other slots.

    >>> import coldq
    >>> problem = coldq.problems.OnlineQuadratic(horizon=20)
    >>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])
    >>> coldq.dynamic_regret(trace) > coldq.static_regret(trace)
    array([ True])
    """
    skip_infeasible = flag("skip_infeasible", skip_infeasible)
    best = _comparator_of(require_trace(trace), comparator, "dynamic")
    if skip_infeasible:
        excess = np.where(best.feasible, trace.loss - best.loss, 0.0)
    else:
        excess = _excess(trace, best, "dynamic")
    return _totals(excess, cumulative)


def infeasible_slots(trace: Trace, comparator: Comparator | None = None) -> dict[int, np.ndarray]:
    """The slots, counted from 1, in which no decision was feasible, for each seed that has some.

    A run of one's own may well have such slots, and no learner is to blame for violations there.

    >>> import numpy as np, coldq
    >>> class Bursts:
    ...     domain, horizon, n_constraints = coldq.Box(0.0, 1.0, dim=1), 4, 1
    ...     adaptive = False
    ...     def start(self, seeds):
    ...         return self
    ...     def reveal(self, t, x):  # in slot 3 twice as much is asked for as there can be
    ...         return coldq.Feedback(
    ...             coldq.Linear([1.0]), coldq.Affine([[-1.0]], [-2.0 if t == 3 else -0.5])
    ...         )
    >>> trace = coldq.simulate(coldq.COLDQ(Bursts.domain, horizon=4), Bursts(), seeds=[7])
    >>> coldq.infeasible_slots(trace)
    {7: array([3])}
    >>> coldq.dynamic_regret(trace, skip_infeasible=True)
    array([...])
    """
    best = _comparator_of(require_trace(trace), comparator, "dynamic")
    return {
        seed: np.flatnonzero(~row) + 1
        for seed, row in zip(trace.seeds, best.feasible, strict=True)
        if not row.all()
    }


def static_regret(
    trace: Trace, comparator: Comparator | None = None, *, cumulative: bool = False
) -> Array:
    """``sum_t f_t(x_t) - f_t(x*)``; NaN for a seed without a decision feasible in every slot.

    >>> import coldq
    >>> problem = coldq.problems.OnlineLinear(horizon=20)
    >>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])
    >>> coldq.static_regret(trace).shape
    (1,)
    """
    best = _comparator_of(require_trace(trace), comparator, "static")
    return _totals(_excess(trace, best, "static"), cumulative)


def _comparator_of(trace: Trace, comparator: Comparator | None, kind: str) -> Comparator:
    """What a run is compared with: the one given, if it is that of this run, or else found."""
    if comparator is not None and not isinstance(comparator, Comparator):
        raise InvalidInput(
            f"comparator must be what coldq.{kind}_comparator(problem, seeds) returns, but is "
            f"{comparator!r:.200}"
        )
    if comparator is None:
        require_same_again(require_known(trace, "problem"))
        find = dynamic_comparator if kind == "dynamic" else static_comparator
        return find(trace.problem, trace.seeds, trace.decisions)
    given = (comparator.kind or kind, comparator.seeds or trace.seeds, comparator.loss.shape)
    if given != (kind, trace.seeds, trace.loss.shape):
        raise InvalidInput(
            f"the {kind} regret of {trace!r} with seeds {trace.seeds} needs its {kind} comparator, "
            f"but got a {given[0]} one of shape {given[2]} with seeds {given[1]}"
        )
    if comparator.problem is not None and differ(comparator.problem, trace.problem):
        raise InvalidInput(
            f"the {kind} regret of {trace!r} needs the comparator of its problem, "
            f"{trace.problem!r:.200}, but got that of {comparator.problem!r:.200}"
        )
    if comparator.problem is not None and getattr(trace.problem, "adaptive", False):
        _require_met(trace, comparator, kind)
    return comparator


def _require_met(trace: Trace, comparator: Comparator, kind: str) -> None:
    """Raise unless a comparator is about the functions that an adversary showed this run."""
    start = trace.problem.domain.start()
    for t, revealed in replay(trace.problem, trace.seeds, trace.decisions):
        known = comparator.feasible[:, t - 1]
        x = np.where(known[:, None], comparator.x[:, t - 1], start)
        if not np.allclose(revealed.loss.value(x)[known], comparator.loss[known, t - 1]):
            raise InvalidInput(
                f"the {kind} regret of {trace!r} needs its own comparator, but in slot {t} this "
                "one met another loss: an adversary shows each run functions of its own; without a "
                "comparator it is found"
            )


def _excess(trace: Trace, comparator: Comparator, kind: str) -> Array:
    """What each slot cost more than the comparator, NaN where that has none."""
    if comparator.lacking:
        static = kind == "static"
        common = "common to all slots " if static else ""
        instead = "" if static else " (skip_infeasible=True takes the other slots)"
        warn(
            f"the {kind} regret is NaN{instead} where there is no feasible decision {common}to "
            f"compare with: {comparator.lacking}",
            UndefinedRegret,
        )
    return trace.loss - comparator.loss


def path_length(comparator: Comparator, *, cumulative: bool = False) -> Array:
    """``sum_t |x*_t - x*_{t-1}|``, the first slot counting zero.

    >>> import coldq
    >>> best = coldq.dynamic_comparator(coldq.problems.OnlineLinear(horizon=20), seeds=[0])
    >>> bool(coldq.path_length(best)[0] > 0.0)
    True
    """
    if not isinstance(comparator, Comparator):
        raise InvalidInput(
            f"path_length takes a comparator, as coldq.dynamic_comparator(problem, seeds) returns "
            f"it, but got {comparator!r}"
        )
    return _totals(moves_of(comparator), cumulative)


@dataclass(frozen=True, eq=False)
class ConstraintVariation:
    """How much the constraint function moved: one number a seed, and how it was found.

    `exact` is False where ``max over X of |g_t - g_{t-1}|`` was replaced by an upper bound.

    >>> import coldq
    >>> coldq.constraint_variation(coldq.problems.OnlineLinear(horizon=20), seeds=[0])
    ConstraintVariation(1 seed, exact)
    """

    steps: Array
    exact: bool

    @property
    def total(self) -> Array:
        """``sum_t max over X of |g_t(x) - g_{t-1}(x)|``, one number a seed."""
        return _totals(self.steps, False)

    @property
    def cumulative(self) -> Array:
        """The running total, of shape (S, T)."""
        return _totals(self.steps, True)

    def __repr__(self) -> str:
        count = len(self.steps)
        kind = "exact" if self.exact else "an upper bound"
        return f"ConstraintVariation({count} seed{'s' if count != 1 else ''}, {kind})"


def constraint_variation(
    problem: Problem, seeds: Iterable[int], decisions: Array | None = None
) -> ConstraintVariation:
    """``sum_t max over X of |g_t(x) - g_{t-1}(x)|_2``.

    Exact for one affine constraint and, by vertices, for few coordinates; otherwise a safe upper
    bound, and the answer says which.

    >>> import coldq
    >>> coldq.constraint_variation(coldq.problems.TimeVarying(horizon=20), seeds=[0]).exact
    True
    """
    require_problem(problem)
    seeds = seed_tuple(seeds)
    steps = np.zeros((len(seeds), problem.horizon))
    exact = True
    previous = None
    for t, revealed in replay(problem, seeds, decisions, held=True):
        constraint = revealed.constraint
        if previous is not None and problem.n_constraints > 0:
            steps[:, t - 1], sharp = difference(constraint, previous, problem.domain)
            exact = exact and sharp
        previous = constraint
    return ConstraintVariation(steps, exact)


def growth_exponent(running_total: Array) -> Array:
    """The exponent v in ``total(t) ~ t^v``, fitted to the second half of a running total.

    Of :func:`path_length` it gives V_x, of :func:`constraint_variation` V_g. A total that stays
    zero has exponent 0.

    >>> import numpy as np, coldq
    >>> t = np.arange(1.0, 1001.0)
    >>> coldq.growth_exponent(3.0 * np.sqrt(t)).round(6)
    np.float64(0.5)
    """
    running = real_array("running_total", running_total, 1, finite=False)
    if running.shape[-1] == 0:
        raise InvalidInput("running_total must have at least one slot, but is empty")
    T = running.shape[-1]
    first = T // 2
    tail = running[..., first:]
    t = np.log(np.arange(first + 1.0, T + 1.0))
    t = t - t.mean()
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (np.log(tail) * t).sum(axis=-1) / (t * t).sum()
    return np.where(running[..., -1] == 0.0, 0.0, slope)[()]
