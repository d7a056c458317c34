"""Buy power for New York so that at most 1% of the five minutes fall short.

    python examples/power.py [picture.png] [--slots 2016] [--rate 0.01]

Loads and prices are real: those of the eleven zones of the New York ISO, 23 to 29 October 2016.
What a zone can make and what lines carry is made up. Power is bought before the load and the price
of its five minutes are known. Beside SelfTuning stands what is done by hand: what the last slot
needed, plus a safety margin, tuned on the first third of the slots. Both are scored on the rest.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import coldq
from coldq.base.files import whole_file
from coldq.cli import command

SMALL = 1e-3  # MW: less is rounding


def play(slots: int, rate: float) -> dict[str, coldq.Trace]:
    """Both ways on the same week."""
    problem = coldq.problems.Dispatch(slots)
    tuned = coldq.tune_safety_margin(problem, rate, (0.0, 1.0 / 3.0))
    by_hand = coldq.BestResponse(problem.domain, tuned.safety_margin, tighten=problem.tighten)
    learners = {
        "SelfTuning": coldq.SelfTuning(problem.domain, violation_rate=rate),
        f"safety margin {tuned.safety_margin:.1%}": by_hand,
    }
    return {
        name: coldq.simulate(learner, problem, seeds=[0], keep=["decisions"], progress=False)
        for name, learner in learners.items()
    }


def draw(traces: dict[str, coldq.Trace], to: Path) -> None:
    """What was bought beyond the load, and where it fell short; the load itself behind it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    load, spare = figure.subplots(2, 1, sharex=True)
    for k, (name, trace) in enumerate(traces.items()):
        days = np.arange(trace.horizon) / 288.0
        beyond = -trace.constraint[0, :, 0]
        if not k:
            needed = trace.decisions[0].sum(axis=-1) - beyond
            load.plot(days[1:], needed[1:] / 1e3, color="#444444")
        spare.plot(days[1:], beyond[1:], linewidth=0.7, alpha=0.9, label=name)
    load.set(title="load of all zones, GW")
    spare.axhline(0.0, color="black", linewidth=0.8)
    spare.set(title="bought beyond it, MW (below zero: short)", xlabel="day", ylim=(-400.0, 1200.0))
    spare.legend(frameon=False, ncols=2, fontsize=8)
    for panel in (load, spare):
        panel.spines[["top", "right"]].set_visible(False)
    with whole_file(to) as file:
        figure.savefig(file, dpi=130, format=to.suffix[1:] or "png")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slots", type=int, default=2016, help="five minutes each, at most 2016")
    parser.add_argument("--rate", type=float, default=0.01, help="of slots that may fall short")
    parser.add_argument("picture", nargs="?", type=Path, default=Path("examples/out/power.png"))
    given = parser.parse_args(arguments)
    traces = play(given.slots, given.rate)
    for name, trace in traces.items():
        rest = slice(trace.horizon // 3, None)
        short = float((trace.violation[0, rest] > SMALL).any(axis=-1).mean())
        paid = trace.loss[0, rest].mean()
        print(f"{name:14s} paid {paid:9,.0f} $/h on average, short in {short:.2%} of the slots")
    draw(traces, given.picture)
    print(f"picture in {given.picture}")


if __name__ == "__main__":
    with command():
        main()
