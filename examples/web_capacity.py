"""Rent servers for a web site so that at most 1% of its five minutes lack capacity.

    python examples/web_capacity.py [picture.png] [--slots 2880] [--rate 0.01]

The requests are real: to a NASA web server in July 1995, in slots of five minutes. Pools, prices
and capacities are made up. Beside SelfTuning, which is told nothing but the rate, stands what is
done by hand: as many servers as the last slot needed, plus a safety margin, tuned on the
first third of the slots. Both are scored on the rest.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import coldq
from coldq.base.files import whole_file
from coldq.cli import command

CAPACITY = np.array([8.0, 10.0, 12.0])  # requests that a unit of each pool serves in a slot
SMALL = 1e-6  # requests: less is rounding
SHOWN = 288  # slots of the picture, the last day


def play(slots: int, rate: float) -> tuple[coldq.problems.Autoscale, dict[str, coldq.Trace]]:
    """Both ways on the same requests, with their decisions."""
    problem = coldq.problems.Autoscale(slots)
    tuned = coldq.tune_safety_margin(problem, rate, (0.0, 1.0 / 3.0))
    learners = {
        "SelfTuning": coldq.SelfTuning(problem.domain, violation_rate=rate),
        f"safety margin {tuned.safety_margin:.0%}": coldq.BestResponse(
            problem.domain, tuned.safety_margin
        ),
    }
    traces = {
        name: coldq.simulate(learner, problem, seeds=[0], keep=["decisions"], progress=False)
        for name, learner in learners.items()
    }
    return problem, traces


def draw(traces: dict[str, coldq.Trace], to: Path) -> None:
    """Requests and rented capacity of the last day; what was paid on the scored slots."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    day, cost = figure.subplots(1, 2, width_ratios=[2.2, 1.0])
    for k, (name, trace) in enumerate(traces.items()):
        rented = (trace.decisions[0] @ CAPACITY)[-SHOWN:]
        hours = np.arange(len(rented)) / 12.0
        if not k:
            requests = rented + trace.constraint[0, -SHOWN:, 0]
            day.fill_between(hours, requests, color="#BBBBBB", linewidth=0.0, label="requests")
        day.plot(hours, rented, linewidth=1.1, label=name)
        begin = trace.horizon // 3
        slots = np.arange(begin, trace.horizon)
        cost.plot(slots, np.cumsum(trace.loss[0, begin:]) / 1e3, label=name)
    day.set(xlabel="hour of the last day", title="requests and rented capacity, five minutes")
    day.set_ylim(bottom=0.0)
    day.legend(frameon=False, ncols=3, loc="upper left", fontsize=8)
    cost.set(xlabel="slot", title="paid so far, thousands")
    for panel in (day, cost):
        panel.spines[["top", "right"]].set_visible(False)
    with whole_file(to) as file:
        figure.savefig(file, dpi=130, format=to.suffix[1:] or "png")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slots", type=int, default=2880, help="five minutes each, at most 2880")
    parser.add_argument("--rate", type=float, default=0.01, help="of slots that may lack capacity")
    parser.add_argument(
        "picture", nargs="?", type=Path, default=Path("examples/out/web_capacity.png")
    )
    given = parser.parse_args(arguments)
    _, traces = play(given.slots, given.rate)
    for name, trace in traces.items():
        rest = slice(trace.horizon // 3, None)
        lacking = float((trace.violation[0, rest, 0] > SMALL).mean())
        paid = trace.loss[0, rest].mean()
        print(f"{name:14s} paid {paid:6.1f} a slot, {lacking:.2%} of the slots lacked capacity")
    draw(traces, given.picture)
    print(f"picture in {given.picture}")


if __name__ == "__main__":
    with command():
        main()
