"""Realised regret and violation of a run beside the bounds that theory has for them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from coldq.base.arrays import Array, percent
from coldq.base.errors import InvalidInput
from coldq.simulation.checked_assumptions import (
    check_bound,
    check_convexity,
    check_delay,
    check_domain,
    check_horizon,
    comparators_of,
    declared_constants,
    variation_of,
)
from coldq.simulation.comparators import Comparator, moves_of
from coldq.simulation.estimated_constants import CHECKED_SLOTS, estimate_constants
from coldq.simulation.metrics import hard_violation, soft_violation
from coldq.simulation.replay import require_same_again
from coldq.simulation.trace import Trace, require_known, require_trace
from coldq.theory.assumptions import FAILS, HOLDS, ROUNDING, UNKNOWN, Assumption, in_words
from coldq.theory.constants import Guarantee, RunConstants, one_number, steps_otherwise

PARTLY = "in part"  # a verdict: the bound is about the other slots
PROOF_PAGE = "docs/violation-rate-proofs.md"  # of the regret of learners with a violation rate
MAX_NAMED = 8  # reduced slots of a seed, and seeds, that are named
WINDOW_LENGTHS = (10.0, 100.0)  # slots of the windows that are looked at, times 1 / rate
LEAST_SOURCE = "the least"  # of several bounds, not of one source for all seeds


@dataclass(frozen=True, eq=False)
class Check:
    """One measure of a run beside its bound, for each seed; the bound is NaN where there is none.

    `void` says that something that it assumes fails; else what it needs is not known.

    >>> import numpy as np
    >>> from coldq.simulation.bound_reports import Check
    >>> check = Check("dynamic regret", "Theorem 1", np.array([2.0, 3.0]), np.array([10.0, 9.0]))
    >>> check.slack, check.exceeded
    (array([8., 6.]), array([False, False]))
    """

    measure: str
    source: str
    realised: Array
    bound: Array
    void: bool = False

    @property
    def slack(self) -> Array:
        """The bound less what was realised."""
        return self.bound - self.realised

    @property
    def compared(self) -> bool:
        """Whether both numbers are known for every seed."""
        return not np.isnan(self.slack).any()

    @property
    def exceeded(self) -> np.ndarray:
        """Whether what was realised is above the bound, by more than rounding."""
        return self.slack < -ROUNDING * (1.0 + np.abs(self.bound))

    def __str__(self) -> str:
        realised = f"{self.measure:<15} {in_words(self.realised):>21}"
        if not self.source:
            return f"{realised}   no bound"
        if np.isnan(self.bound).all():
            why = f"no bound ({self.source} is void)" if self.void else f"unknown ({self.source})"
            return f"{realised}   {why}"
        if np.isnan(self.slack).all():
            return f"{realised}   <= {in_words(self.bound):>21}   unknown ({self.source})"
        none = np.zeros(self.realised.shape)  # of a bound that is zero, and kept
        shares = np.divide(self.realised, self.bound, out=none, where=self.bound != 0.0)
        share = 100.0 * np.nanmax(shares)
        kept = f"at most {share:.3g}% of it" if share > 0.0 else "none of it"
        verdict = "EXCEEDED" if self.exceeded.any() else kept
        return f"{realised}   <= {in_words(self.bound):>21}   {verdict} ({self.source})"


@dataclass(frozen=True, eq=False, repr=False)
class BoundReport:
    """A run's regret and violation beside their bounds, and every assumption behind them.

    `checks` are the measures, `assumptions` what the theorems assume; `constants` holds R, D, G, N,
    the moves of x*_t and the constraint variation that the bounds were computed from. ``holds`` is
    True if a bound was compared with what was realised, none is exceeded and no assumption fails.
    ``to_dict()`` gives plain numbers, ``print`` plain words.

    >>> import coldq
    >>> problem = coldq.problems.OnlineQuadratic(horizon=50)
    >>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=range(3))
    >>> report = coldq.bound_report(trace)
    >>> report.holds, [check.measure for check in report.checks][:2]
    (True, ['dynamic regret', 'static regret'])
    """

    run: str
    seeds: tuple[int, ...]
    constants: RunConstants | None
    checks: tuple[Check, ...]
    assumptions: tuple[Assumption, ...]

    @property
    def holds(self) -> bool:
        """Whether bounds were compared, none is exceeded and no assumption failed."""
        kept = all(assumption.verdict != FAILS for assumption in self.assumptions)
        exceeded = any(check.exceeded.any() for check in self.checks)
        return kept and not exceeded and any(check.compared for check in self.checks)

    def check(self, measure: str) -> Check:
        """The first check of a measure, such as "dynamic regret".

        >>> import coldq
        >>> problem = coldq.problems.OnlineLinear(horizon=50)
        >>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])
        >>> coldq.bound_report(trace).check("hard violation").source
        'Theorem 2'
        """
        for check in self.checks:
            if check.measure == measure:
                return check
        raise InvalidInput(
            f"there is no {measure!r}; there are {sorted({c.measure for c in self.checks})}"
        )

    def least(self, measure: str) -> Check:
        """The least of the bounds on a measure, seed by seed; NaN where all are void.

        >>> import coldq
        >>> problem = coldq.problems.OnlineLinear(horizon=50)
        >>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=[0])
        >>> report = coldq.bound_report(trace)
        >>> bounds = [c.bound for c in report.checks if c.measure == "hard violation"]
        >>> report.least("hard violation").bound == min(bounds)
        array([ True])
        """
        first = self.check(measure)
        several = [check for check in self.checks if check.measure == measure]
        bound = np.fmin.reduce([check.bound for check in several])
        sources = [c.source for c in several if np.array_equal(c.bound, bound, equal_nan=True)]
        return replace(first, source=sources[0] if sources else LEAST_SOURCE, bound=bound)

    def to_dict(self) -> dict[str, Any]:
        """The bound report as plain lists, numbers and words; NaN stands for "undefined"."""
        return {
            "run": self.run,
            "seeds": list(self.seeds),
            "holds": self.holds,
            "checks": [
                {
                    "measure": check.measure,
                    "source": check.source,
                    "realised": check.realised.tolist(),
                    "bound": check.bound.tolist(),
                    "slack": check.slack.tolist(),
                    "exceeded": check.exceeded.tolist(),
                }
                for check in self.checks
            ],
            "assumptions": [asdict(assumption) for assumption in self.assumptions],
        }

    def __str__(self) -> str:
        lines = [self.run, *(f"  {self._line(check)}" for check in self.checks), "Assumptions"]
        lines += [f"  {assumption}" for assumption in self.assumptions]
        if self.constants is None and not any(check.compared for check in self.checks):
            lines.append(
                "The theorems are about learners that say their assumptions, the count about "
                "learners with a violation rate: only realised values, and nothing is certified."
            )
        elif self.holds:
            which = "" if all(check.compared for check in self.checks) else " that is known"
            lines.append(
                f"Every bound{which} holds, and nothing that it assumes was found to fail."
            )
        elif any(check.exceeded.any() for check in self.checks):
            lines.append("A bound is exceeded: look at the assumptions for the reason.")
        elif any(assumption.verdict == FAILS for assumption in self.assumptions):
            lines.append("An assumption fails, so that the bounds that need it are void.")
        else:
            lines.append("Nothing could be compared with its bound, so nothing is certified.")
        return "\n".join(lines)

    def _line(self, check: Check) -> str:
        """A check in words, and whether its bound is the least of several."""
        several = sum(other.measure == check.measure for other in self.checks) > 1
        least = several and check.compared and self.least(check.measure).source == check.source
        return f"{check}".removesuffix(")") + ", the least)" if least else f"{check}"

    __repr__ = __str__


def bound_report(
    trace: Trace,
    *,
    gradient_bound: Any = None,
    constraint_bound: Any = None,
    mu: float | None = None,
) -> BoundReport:
    """Realised regret and violation beside their bounds, with every assumption checked.

    For a run of a learner that says its `assumptions` and `guarantees`: ``COLDQ``, ``COLDQExpert``,
    ``RECOO``, ``CLASP``, ``Yi2021`` and yours; a subclass with an `update` or a `rule` of its own
    says them anew. One with a violation rate (``SelfTuning``, ``SafetyMargin``) gets its violated
    slots beside the most that there can be, whatever happened, in the whole run and in the worst
    window of several lengths, and its reduced ones by number. Another gets its realised values
    without bounds.
    What the trace does not hold is worked out again: the revealed functions by replaying the
    problem, the queue from the recorded violations. A problem that reveals other functions than in
    the run is refused.

    A slot without a feasible decision leaves the regret of its seed undefined and voids the bounds
    of the theorems; those that count slot by slot (``step_violation``) charge it N G, and stand.

    Parameters
    ----------
    gradient_bound, constraint_bound
        D and G, if the revealed functions have no closed form and the problem no `constants`, or to
        check your own.
    mu
        The losses' strong convexity, without a 1/2; by default the problem's own.

    >>> import coldq
    >>> problem = coldq.problems.OnlineLinear(horizon=200)
    >>> trace = coldq.simulate(coldq.COLDQ.for_problem(problem), problem, seeds=range(3))
    >>> report = coldq.bound_report(trace)
    >>> report.holds
    True
    >>> bool((report.check("dynamic regret").slack > 0.0).all())
    True
    """
    require_same_again(require_known(require_trace(trace), "learner", "problem"))
    problem, learner, S = trace.problem, trace.learner, len(trace.seeds)
    declared = declared_constants(problem)
    if mu is None:
        mu = float(getattr(declared, "strong_convexity", 0.0))
    mu = one_number("mu", mu)
    dynamic, static, regrets = comparators_of(trace)
    realised = {
        "dynamic regret": _regret(trace, dynamic),
        "static regret": _regret(trace, static),
        "hard violation": hard_violation(trace),
        "soft violation": soft_violation(trace),
    }
    asked = getattr(learner, "assumptions", None)
    if asked is None or steps_otherwise(learner):
        return _without_assumptions(trace, realised, dynamic, regrets)
    estimated = estimate_constants(problem, trace.seeds, trace.decisions, mu=mu)
    whole = not np.isnan(estimated.nonconvexity).any()
    seen = np.maximum(
        estimated.largest_value, np.abs(trace.constraint).max(axis=(1, 2), initial=0.0)
    )
    D, slope = check_bound(
        "gradient_bound", gradient_bound, estimated.gradient_bound, estimated.gradient_exact,
        estimated.largest_gradient, declared, whole,
    )  # fmt: skip
    G, height = check_bound(
        "constraint_bound", constraint_bound, estimated.constraint_bound,
        estimated.constraint_exact, seen, declared, whole,
    )  # fmt: skip
    rules = (
        check_domain(problem.domain),
        check_convexity(estimated.nonconvexity, mu, min(CHECKED_SLOTS, trace.horizon)),
        slope,
        height,
        check_delay(trace.delay),
        *asked.of_parameters(trace.horizon),
        *check_horizon(trace.horizon),
    )
    variation, moved = variation_of(trace)
    void = any(assumption.verdict == FAILS for assumption in rules)
    # The theorems compare with a feasible decision in every slot, and one for all is one for each.
    exists = [best.feasible for best in (dynamic, static) if best is not None]
    slots = np.logical_or.reduce([np.zeros((S, trace.horizon), bool), *exists])
    constants = RunConstants(
        horizon=trace.horizon,
        diameter=float(problem.domain.diameter),
        gradient_bound=D,
        constraint_bound=G,
        n_constraints=problem.n_constraints,
        constraint_variation=variation,
        moves=np.full((S, trace.horizon), np.nan) if dynamic is None else moves_of(dynamic),
        mu=mu,
        common=static.feasible.all(axis=1) if static else False,
        feasible=slots,
        weights=asked.weights(trace) if hasattr(asked, "weights") else None,
    )
    lacking = any(assumption.verdict == FAILS for assumption in regrets)
    guarantees = () if void else learner.guarantees(constants)
    checks = _beside(guarantees, realised, slots.all(axis=1), lacking)
    assumptions = (*rules, *regrets, moved, asked.of_queue(trace, G))
    return BoundReport(repr(trace), trace.seeds, constants, checks, assumptions)


def _beside(
    guarantees: tuple[Guarantee, ...],
    realised: dict[str, Array],
    feasible: np.ndarray,
    lacking: bool = False,
) -> tuple[Check, ...]:
    """Realised values beside their bounds, void where a seed has a slot that they do not allow."""
    if not guarantees:
        none = np.full(feasible.shape, np.nan)
        return tuple(Check(name, "", values, none) for name, values in realised.items())
    return tuple(
        Check(
            g.measure,
            g.source,
            realised[g.measure],
            np.where(feasible | g.slotwise, g.bound, np.nan),
            void=lacking,
        )
        for g in guarantees
    )


def _without_assumptions(
    trace: Trace,
    realised: dict[str, Array],
    dynamic: Comparator | None,
    regrets: tuple[Assumption, ...],
) -> BoundReport:
    """Realised values; count and regret of a learner with a violation rate beside its bounds."""
    learner, S = trace.learner, len(trace.seeds)
    checks = _beside((), realised, np.ones(S, bool))
    counts, reduced = _counted(trace)
    if getattr(learner, "tracks_slots", False) and dynamic is not None and not trace.delay:
        bound = learner.regret_bound(trace.state, np.sum(moves_of(dynamic), axis=-1))
        whole = dynamic.feasible.all(axis=1)
        regret, bound = realised["dynamic regret"], np.where(whole, bound, np.nan)
        check = Check("dynamic regret", PROOF_PAGE, regret, bound, void=not whole.all())
        checks = (check, *checks[1:])
    about = (*reduced, *regrets)
    if steps_otherwise(learner):
        words = f"{type(learner).__name__} has steps of its own, but another's assumptions"
        about += (Assumption("steps that the theorems are about", UNKNOWN, words),)
    return BoundReport(repr(trace), trace.seeds, None, (*counts, *checks), about)


def _counted(trace: Trace) -> tuple[tuple[Check, ...], tuple[Assumption, ...]]:
    """The violated slots of a learner with a violation rate, in all and in the worst windows."""
    rate = getattr(trace.learner, "violation_rate", None)
    if rate is None or trace.booked is None:
        return (), ()
    T, void = trace.horizon, trace.delay > 0
    lengths = sorted({min(round(times / rate), T) for times in WINDOW_LENGTHS} | {T})
    checks = []
    for length in reversed(lengths):
        worst, bound = _worst_window(trace, rate, length)
        name = "violated slots" if length == T else f"of any {length:,}"
        bound = np.full(bound.shape, np.nan) if void else bound
        checks.append(Check(name, "error budget", worst, bound, void=void))
    report = trace.learner.bound_report(trace.state)
    violated, infeasible = (int(report[name].sum()) for name in ("violated", "infeasible"))
    slots = len(trace.seeds) * T
    share = Assumption(
        f"a rate of {percent(rate, 3)}",
        HOLDS,
        f"{violated} of {slots} slots violated, {percent(violated / slots, 3)}; "
        f"{int(report['reduced_violated'].sum())} of these after a reduced decision; "
        f"{infeasible} slots were infeasible and are not booked",
    )
    words = []
    assert trace.reduced is not None
    for seed, flags in zip(trace.seeds, trace.reduced, strict=True):
        reduced = (np.flatnonzero(flags) + 1).tolist()
        if reduced:
            more = f" and {len(reduced) - MAX_NAMED} more" if len(reduced) > MAX_NAMED else ""
            words.append(f"{', '.join(map(str, reduced[:MAX_NAMED]))}{more} of seed {seed}")
    listed = "; ".join(words[:MAX_NAMED]) + ("; ..." if len(words) > MAX_NAMED else "")
    about = Assumption(
        "every decision kept its margin or all limits so far",
        FAILS if void else PARTLY if words else HOLDS,
        f"but those of slots {listed}" if words else "none was reduced",
    )
    return tuple(checks), (share, about, *((check_delay(trace.delay),) if void else ()))


def _worst_window(trace: Trace, rate: float, length: int) -> tuple[Array, Array]:
    """The most violated slots in any so many that follow each other, and the bound there.

    Of windows that have as many the one of least bound: ``q W + bound_b - D_{a-1}``.
    """
    assert trace.booked is not None
    assert trace.overdraft is not None
    assert trace.overdraft_bound is not None
    S, T = trace.booked.shape
    sums = np.concatenate([np.zeros((S, 1)), np.cumsum(trace.booked, axis=1)], axis=1)
    count = sums[:, length:] - sums[:, : T - length + 1]
    before = np.concatenate([np.zeros((S, 1)), trace.overdraft[:, : T - length]], axis=1)
    bound = rate * length + trace.overdraft_bound[:, length - 1 :] - before
    # A window above its bound is the worst; else the one of most violated slots.
    order = np.where(count > bound, count - bound + T, count - 1e-9 * bound)
    worst = order.argmax(axis=1)[:, None]
    return (
        np.take_along_axis(count, worst, axis=1)[:, 0],
        np.take_along_axis(bound, worst, axis=1)[:, 0],
    )


def _regret(trace: Trace, comparator: Comparator | None) -> Array:
    """The regret of each seed, NaN where there is nothing to compare with."""
    if comparator is None:
        return np.full(len(trace.seeds), np.nan)
    return np.add.accumulate(trace.loss - comparator.loss, axis=1)[:, -1]
