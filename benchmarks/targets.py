"""The promises about speed, each held against what was measured in this run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.batch import Batch
from benchmarks.curved import Curved
from benchmarks.large import Large
from benchmarks.learners import LearnerCost
from benchmarks.modelled import WithParameters
from benchmarks.one_step import OneStep
from benchmarks.peers import OurPublicStep
from benchmarks.simplices import Simplices
from benchmarks.startup import StartUp
from benchmarks.tenants import Million, Tenants
from benchmarks.whole_run import WholeRun


@dataclass(frozen=True)
class Target:
    """A measured figure and the bound it should respect."""

    what: str
    bound: str
    measured: str
    met: bool
    cost: float | None = None  # of a ratio: it grows with our time


def judge(
    step: OneStep,
    batch: Batch,
    whole: WholeRun,
    costs: Sequence[LearnerCost],
    start_up: Sequence[StartUp],
) -> list[Target]:
    """All targets; `step` is the family with p = 10 and N = 2."""
    cvxpy = step.times_ours(step.named(WithParameters.name))
    solver = step.fastest_exact
    return [
        _at_least("one step, p = 10, N = 2, against CVXPY with parameters", cvxpy, 415),
        _at_least(
            f"the same against the fastest exact QP solver ({solver.method})",
            step.times_ours(solver),
            7.5,
        ),
        _within(
            "the public step, against the step as a learner makes it",
            step.times_ours(step.named(OurPublicStep.name)),
            3,
            "x",
        ),
        _at_least(
            "one learner.update against the same learner stepping with CVXPY",
            whole.update_cvxpy / whole.update,
            330,
        ),
        _within(
            "a Feedback and its update, against the step",
            whole.with_feedback / whole.step,
            2.5,
            "x",
        ),
        _within("the same by Feedback.from_arrays", whole.from_arrays / whole.step, 2.5, "x"),
        _within(
            "an update on simplices, against the step",
            whole.update_on_simplices / whole.step_on_simplices,
            2.5,
            "x",
        ),
        _within("a step in a batch, one core, against the bare loop", batch.times_loop, 6, "x"),
        *(
            _within(f"an update of {cost.name}, against COLDQ", cost.times_coldq, cost.target, "x")
            for cost in costs[1:]
            if cost.target is not None
        ),
        *(_within(row.what, row.seconds, row.target, " s") for row in start_up),
    ]


def judge_tenants(result: Tenants, million: Million) -> list[Target]:
    """What a slot of many tenants, and SelfTuning, may cost."""
    many = f"{million.count:,} tenants of COLDQ, {million.cores} cores, each"
    return [
        _within(many, million.clock, 0.8, " us"),
        _within(
            f"{result.count:,} tenants of SelfTuning, against COLDQ", result.times_coldq, 8, "x"
        ),
        _within("an update of SelfTuning, against COLDQExpert", result.times_expert, 3, "x"),
    ]


def judge_large(rows: Sequence[Large]) -> list[Target]:
    """The targets of F4: the larger size of each kind."""
    dense = next(row for row in rows if row.kind == "dense" and row.p == 10_000)
    thin = next(row for row in rows if row.kind == "sparse" and row.p == 10_000)
    return [
        _at_least(f"{dense.name}, against PIQP", dense.piqp / dense.ours, 165),
        _at_least(f"{dense.name}, against Clarabel", dense.clarabel / dense.ours, 100),
        _at_least(f"{thin.name}, against PIQP", thin.piqp / thin.ours, 10),
    ]


def judge_simplices(rows: Sequence[Simplices]) -> list[Target]:
    """The targets of products of simplices whose rows can all be met, and of all residuals."""
    worst = max(row.residual for row in rows)
    return [
        *(
            _at_least(f"simplices, {row.size.name}, against {row.best}", row.ratio, 20)
            for row in rows
            if row.size.met
        ),
        Target("the worst residual of these", "at most 1e-9", f"{worst:.0e}", worst <= 1e-9),
    ]


def judge_curved(rows: Sequence[Curved]) -> list[Target]:
    """The targets of F5."""
    against = "against CVXPY with parameters"
    return [_at_least(f"{row.name}, {against}", row.ratio, 30 if row.smooth else 5) for row in rows]


def _at_least(what: str, ratio: float, bound: float) -> Target:
    return Target(what, f"at least {bound:g}x faster", f"{ratio:.1f}x", ratio >= bound, 1.0 / ratio)


def _within(what: str, figure: float, bound: float, unit: str) -> Target:
    cost = figure if unit == "x" else None
    return Target(what, f"within {bound:g}{unit}", f"{figure:.2f}{unit}", figure <= bound, cost)
