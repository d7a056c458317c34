"""The measured figures as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.table import Table

from benchmarks.batch import Batch
from benchmarks.curved import Curved
from benchmarks.families import HORIZON
from benchmarks.large import Large, Warm
from benchmarks.learners import LearnerCost
from benchmarks.one_step import WRONG, OneStep
from benchmarks.simplices import Simplices
from benchmarks.startup import StartUp
from benchmarks.targets import Target
from benchmarks.tenants import Million, Tenants
from benchmarks.whole_run import WholeRun


def _table(title: str, caption: str, *headings: str) -> Table:
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left")
    for k, heading in enumerate(headings):
        table.add_column(heading, justify="right" if k else "left", no_wrap=k > 0)
    return table


def one_step_table(result: OneStep) -> Table:
    steps = result.ours.microseconds.size
    table = _table(
        f"One step. {result.family}",
        f"{steps} steps a method; in {result.binding:.0%} of them a row binds. gap = (F(clip(x)) - "
        "best) / max(1, |best|), F the hinge objective, best the least of all methods.",
        "method", "median us", "p90 us", "times our step", "gap median", "gap max", "failures",
        f"gap > {WRONG:g}",
    )  # fmt: skip
    for row in result.rows:
        table.add_row(
            row.method,
            f"{row.median:.1f}",
            f"{np.quantile(row.microseconds, 0.9):.1f}",
            f"{result.times_ours(row):.1f}",
            f"{np.median(row.gaps):.0e}",
            f"{row.gaps.max():.0e}",
            f"{row.failures}/{steps}",
            f"{row.wrong}/{steps}",
        )
    return table


def batch_table(result: Batch) -> Table:
    table = _table(
        f"A batch of {result.count:,} steps, p = 10, N = 2",
        "The bare loop is compiled and does a gradient step, the clip and one A x. Target: within "
        "5 times on one core, by CPU time. More cores help as far as they are idle.",
        "what", "us an instance", "times the bare loop",
    )  # fmt: skip
    table.add_row("bare loop, one core", f"{result.loop:.3f}", "1.0")
    table.add_row("coldq, one core", f"{result.one_core:.3f}", f"{result.times_loop:.1f}")
    table.add_row(
        f"coldq, all cores ({result.cores})",
        f"{result.all_cores:.3f}",
        f"{result.times_loop_all_cores:.1f}",
    )
    return table


def tenants_table(result: Tenants) -> Table:
    table = _table(
        f"SelfTuning for {result.count:,} tenants at once, p = 10, N = 2, slots as TimeVarying's",
        "CPU time of all threads, the least of all rounds, the learners in turns. How the two "
        "compare depends on how often COLDQ's own step has a row to hold; here most have.",
        "what", "COLDQ", "SelfTuning", "times COLDQ",
    )  # fmt: skip
    table.add_row(
        "one update of all", f"{result.coldq:.1f} ms", f"{result.self_tuning:.1f} ms",
        f"{result.times_coldq:.1f}",
    )  # fmt: skip
    table.add_row("a tenant's state", "", f"{8 * result.numbers / 1000:.1f} kB", "")
    return table


def million_table(result: Million) -> Table:
    table = _table(
        f"COLDQ for {result.count:,} tenants at once, p = 10, N = 2, slots as TimeVarying's",
        "One update of all, the feedback being there, the least of all rounds. The clock shows two "
        "cores only where both are idle.",
        "what", "us a tenant",
    )  # fmt: skip
    table.add_row(f"by the clock, all cores ({result.cores})", f"{result.clock:.2f}")
    table.add_row("CPU time of all threads", f"{result.at_work:.2f}")
    table.add_row("a tenant's state", f"{8 * result.numbers} bytes")
    return table


def whole_run_table(result: WholeRun) -> Table:
    table = _table(
        "A whole run. COLDQ on TimeVarying, one seed",
        f"{result.updates} updates and {result.rounds} runs a method. CVXPY: the same learner, its "
        "step alone replaced by CVXPY with parameters.",
        "what", "coldq", "CVXPY", "times faster",
    )  # fmt: skip
    table.add_row(
        "one COLDQ.update, feedback prebuilt",
        f"{1e6 * result.update:.1f} us",
        f"{1e6 * result.update_cvxpy:.1f} us",
        f"{result.update_cvxpy / result.update:.1f}",
    )
    simplices = result.update_on_simplices, result.step_on_simplices
    for what, seconds, step in (
        ("the same with its Feedback from arrays, checked", result.with_feedback, result.step),
        ("the same by Feedback.from_arrays", result.from_arrays, result.step),
        ("one COLDQ.update on 3 simplices of 3, 2 rows", *simplices),
    ):
        table.add_row(
            what, f"{1e6 * seconds:.1f} us", f"bare step {1e6 * step:.1f} us",
            f"1 / {seconds / step:.2f}",
        )  # fmt: skip
    table.add_row(
        f"simulate, T = {HORIZON} (CVXPY extrapolated from {result.slots} slots)",
        f"{result.run:.2f} s",
        f"{result.run_cvxpy:.2f} s",
        f"{result.run_cvxpy / result.run:.1f}",
    )
    return table


def learners_table(costs: Sequence[LearnerCost], updates: int) -> Table:
    table = _table(
        "One update of every learner, p = 10, N = 2",
        f"{updates} updates a learner, one decision maker, feedback prebuilt.",
        "learner", "us", "updates of COLDQ", "target",
    )  # fmt: skip
    for cost in costs:
        target = "-" if cost.target is None else f"{cost.target:g}"
        table.add_row(cost.name, f"{1e6 * cost.seconds:.1f}", f"{cost.times_coldq:.2f}", target)
    return table


def large_table(rows: Sequence[Large]) -> Table:
    table = _table(
        "F4: large and sparse affine rows",
        "Milliseconds a step; peers set up afresh for every step. gap: the largest to the best.",
        "size", "coldq", "one A x", "PIQP", "Clarabel", "times PIQP", "times Clarabel", "gaps",
    )  # fmt: skip
    for row in rows:
        table.add_row(
            row.name, f"{row.ours:.2f}", f"{row.one_pass:.3f}", f"{row.piqp:.0f}",
            f"{row.clarabel:.0f}", f"{row.piqp / row.ours:.0f}", f"{row.clarabel / row.ours:.0f}",
            " ".join(f"{gap:.0e}" for gap in row.gaps),
        )  # fmt: skip
    return table


def simplices_table(rows: Sequence[Simplices]) -> Table:
    names = ("PIQP", "PIQP, dense", "Clarabel", "HiGHS")
    table = _table(
        "Products of simplices",
        "Milliseconds a step; peers set up once and updated, their arrays ready. In brackets: not "
        "solved, within its time or at all. gap: the largest of ours to the best.",
        "size", "coldq", *names, "times the best", "residual", "gap",
    )  # fmt: skip
    for row in rows:
        times = [
            "-" if name not in row.peers else
            f"({row.peers[name]:.3g})" if row.unsolved[name] else f"{row.peers[name]:.3g}"
            for name in names
        ]  # fmt: skip
        table.add_row(
            row.size.name, f"{row.ours:.3g}", *times, f"{row.ratio:.1f}", f"{row.residual:.0e}",
            f"{row.gap:.0e}",
        )  # fmt: skip
    return table


def warm_table(rows: Sequence[Warm]) -> Table:
    table = _table(
        "F4: steps of a drifting sequence, started from the last step's multipliers",
        "Milliseconds a step.", "size", "from zero", "from the last", "times faster",
    )  # fmt: skip
    for row in rows:
        table.add_row(row.name, f"{row.cold:.2f}", f"{row.warm:.2f}", f"{row.cold / row.warm:.2f}")
    return table


def curved_table(rows: Sequence[Curved]) -> Table:
    table = _table(
        "F5: quadratic and max-affine rows, p = 20, N = 5",
        "gap: the largest of ours to the better of both.",
        "rows", "coldq us", "CVXPY with parameters us", "times faster", "gap",
    )  # fmt: skip
    for row in rows:
        table.add_row(
            row.name, f"{row.ours:.0f}", f"{row.cvxpy:.0f}", f"{row.ratio:.1f}", f"{row.gap:.0e}"
        )
    return table


def start_up_table(rows: Sequence[StartUp]) -> Table:
    table = _table(
        "Start-up, whole processes",
        f"CPU time, medians of {rows[0].repeats}. A first decision may take 4 times import numpy.",
        "what", "seconds", "target",
    )  # fmt: skip
    for row in rows:
        table.add_row(row.what, f"{row.seconds:.2f}", f"{row.target:g}")
    return table


def targets_table(targets: Sequence[Target]) -> Table:
    table = _table("Targets", "", "what", "target", "measured", "verdict")
    for target in targets:
        verdict = "[green]met[/]" if target.met else "[red]missed[/]"
        table.add_row(target.what, target.bound, target.measured, verdict)
    return table
