"""Measure everything and print it: ``python -m benchmarks``, see ``--help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from benchmarks.ratios import worse

try:
    from benchmarks import (
        batch,
        curved,
        families,
        large,
        learners,
        one_step,
        simplices,
        startup,
        tables,
        targets,
        tenants,
        whole_run,
    )
except ModuleNotFoundError as error:
    sys.exit(f"{error.name} is missing; the peers come with: pip install -e '.[bench]'")

Result = TypeVar("Result")
LEAST_WIDTH = 120  # columns: where nobody watches, a table should not be folded


def main() -> None:
    """Print one table a section as soon as it is measured, and the targets at the end."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer steps, for a first look")
    parser.add_argument(
        "--only", choices=["F4", "F5", "simplices", "tenants"], help="one part alone"
    )
    parser.add_argument("--picture", type=Path, metavar="PNG", help="draw cost against p and N")
    parser.add_argument(
        "--against", type=Path, metavar="JSON", help="fail where a stored ratio is 1.5 times as bad"
    )
    parser.add_argument("--store", type=Path, metavar="JSON", help="store the ratios of this run")
    arguments = parser.parse_args()
    quick = arguments.quick
    steps, rounds, repeats = (60, 10, 1) if quick else (300, 100, 3)

    console = Console()
    console.width = max(console.width, LEAST_WIDTH)

    def progress(doing: str, measure: Callable[[], Result]) -> Result:
        with Console(stderr=True).status(doing):
            return measure()

    def later() -> list[targets.Target]:
        judged = []
        if arguments.only in (None, "tenants"):
            all_at_once = progress("tenants", lambda: tenants.measure(10_000, rounds // 3))
            console.print(tables.tenants_table(all_at_once), "")
            count = 100_000 if quick else 1_000_000
            million = progress("a million", lambda: tenants.measure_million(count, 8))
            console.print(tables.million_table(million), "")
            judged += targets.judge_tenants(all_at_once, million)
        if arguments.only in (None, "F4"):
            sizes = progress("F4", lambda: large.measure(quick))
            console.print(tables.large_table(sizes), "")
            warm = progress("F4, warm starts", lambda: large.warm_starts(quick))
            console.print(tables.warm_table(warm), "")
            judged += targets.judge_large(sizes)
        if arguments.only in (None, "simplices"):
            products = progress("simplices", lambda: simplices.measure(quick))
            console.print(tables.simplices_table(products), "")
            judged += targets.judge_simplices(products)
        if arguments.only in (None, "F5"):
            kinds = progress("F5", lambda: curved.measure(20 if quick else 40))
            console.print(tables.curved_table(kinds), "")
            judged += targets.judge_curved(kinds)
        return judged

    if arguments.picture is not None:
        progress("drawing", lambda: large.picture(arguments.picture, quick))

    def finish(judged: list[targets.Target]) -> None:
        console.print(tables.targets_table(judged))
        costs = {each.what: float(f"{each.cost:.3g}") for each in judged if each.cost is not None}
        if arguments.store is not None:
            arguments.store.write_text(json.dumps(costs, indent=2) + "\n")
        if arguments.against is not None:
            stored = json.loads(arguments.against.read_text())
            sys.exit("\n".join(worse(costs, stored)) or 0)

    if arguments.only is not None:
        finish(later())
        return

    builders = (families.time_varying, families.online_linear, families.job_scheduling)
    kinds = [progress("playing the runs", build) for build in builders]
    steppings = []
    for family in kinds:
        steppings.append(progress(family.name, lambda f=family: one_step.measure(f, steps)))
        console.print(tables.one_step_table(steppings[-1]), "")

    seeds = [kinds[0], progress("playing the runs", lambda: families.time_varying(seed=1))]
    many = progress("a batch", lambda: batch.measure(seeds, 10_000, rounds))
    console.print(tables.batch_table(many), "")

    whole = progress(
        "whole runs",
        lambda: whole_run.measure(kinds[0], steps, slots=min(steps, 200), rounds=2 * repeats - 1),
    )
    console.print(tables.whole_run_table(whole), "")

    updates = progress("all learners", lambda: learners.measure(kinds[0], steps))
    console.print(tables.learners_table(updates, steps), "")

    start_up = progress("fresh processes", lambda: startup.measure(repeats))
    console.print(tables.start_up_table(start_up), "")

    judged = targets.judge(steppings[0], many, whole, updates, start_up)
    finish(judged + later())


if __name__ == "__main__":
    main()
