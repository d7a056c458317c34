"""Split an advertiser's traffic over channels, each slot within the budgets of two markets.

    python examples/ad_budget.py [picture.png] [--horizon 2000]

A decision is a share for every channel: a point of the simplex, whose last share is held back.
What a share is worth and what it costs becomes known only after the slot. Each market has a budget
a slot, a row that moves with the prices.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import coldq
from coldq.base.files import whole_file
from coldq.cli import command

MARKETS = np.array([0, 0, 0, 0, 1, 1, 1, 1])  # the market of every channel
BUDGETS = np.array([0.25, 0.35])  # money a slot
X = coldq.Simplex(MARKETS.size + 1)


def slots(horizon: int, seed: int):
    """A day of `horizon` slots: the clicks that the shares bring, and what they cost."""
    rng = np.random.default_rng(seed)
    worth = rng.uniform(0.5, 1.5, MARKETS.size)
    for t in range(horizon):
        day = 1.0 + 0.5 * np.sin(2.0 * np.pi * (t / horizon + MARKETS / 4.0))
        clicks = np.append(worth * day * rng.uniform(0.5, 1.5, MARKETS.size), 0.0)
        price = np.append(day * rng.uniform(0.9, 1.1, MARKETS.size), 0.0)
        spend = np.stack([price * np.append(market == MARKETS, False) for market in (0, 1)])
        yield coldq.Linear(-clicks), coldq.Affine(spend, BUDGETS)


def run(learner, horizon: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What was spent in every slot and market, and the clicks of every slot."""
    state, spent, clicks = learner.init(2), np.zeros((horizon, 2)), np.zeros(horizon)
    for t, (f, g) in enumerate(slots(horizon, seed)):
        spent[t], clicks[t] = g.value(state.x) + BUDGETS, -f.value(state.x)
        state = learner.update(state, coldq.Feedback(f, g))
    return spent, clicks


def compare(horizon: int, seed: int = 0) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """COLDQ beside gradient descent, which does not look at the budgets."""
    learners = {
        "COLDQ": coldq.COLDQ.scaled(X, horizon, gradient_bound=5.0, constraint_bound=1.5),
        "OGD": coldq.OGD(X, gradient_bound=5.0),
    }
    return {name: run(learner, horizon, seed) for name, learner in learners.items()}


def draw(results: dict[str, tuple[np.ndarray, np.ndarray]], to: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    axes = figure.subplots(1, 3)
    for name, (spent, clicks) in results.items():
        for market in (0, 1):
            axes[market].plot(np.cumsum(spent[:, market]), label=name)
        axes[2].plot(np.cumsum(clicks), label=name)
    horizon = len(clicks)
    for market in (0, 1):
        plan = [0.0, BUDGETS[market] * horizon]
        axes[market].plot([0, horizon], plan, "k--", label="budget")
        axes[market].set(xlabel="slot", title=f"spent in market {market + 1}")
    axes[2].set(xlabel="slot", title="clicks")
    axes[0].legend()
    with whole_file(to) as file:
        figure.savefig(file, dpi=120, format=to.suffix[1:] or "png")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--horizon", type=int, default=2000, help="how many slots")
    parser.add_argument("picture", nargs="?", type=Path, default=Path("examples/out/ad_budget.png"))
    given = parser.parse_args(arguments)
    results = compare(given.horizon)
    for name, (spent, clicks) in results.items():
        over = np.maximum(spent - BUDGETS, 0.0).sum(axis=0)
        print(f"{name:6s} clicks {clicks.sum():8.1f}, spent {spent.sum(axis=0).round(1)} "
              f"of {BUDGETS * len(spent)}, over the budget of a slot {over.round(2)}")  # fmt: skip
    draw(results, given.picture)
    print(f"picture in {given.picture}")


if __name__ == "__main__":
    with command():
        main()
