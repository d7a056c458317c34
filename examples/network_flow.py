"""Route a day's traffic through a network, with flow conserved at every node.

    python examples/network_flow.py [picture.png] [--horizons 500,1000,2000,4000]

Conservation is an equality: what enters a node leaves it, and the demand, known only after the
slot, is carried. No decision meets it with room to spare: there is no Slater point. COLDQ needs
none. The method beside it, drift plus penalty (Yu, Neely and Wei, NeurIPS 2017), does: its queues
collect the signed violation, whose sum over time they bound, and single slots may cancel out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import coldq
from coldq.base.files import whole_file
from coldq.cli import command

NODES = 6
EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 4), (3, 5), (4, 5), (2, 3), (0, 5)]
X = coldq.Box(0.0, 4.0, dim=len(EDGES))


def conservation() -> np.ndarray:
    """One row a node but the last, whose row follows from the others: inflow less outflow."""
    A = np.zeros((NODES, len(EDGES)))
    for k, (tail, head) in enumerate(EDGES):
        A[tail, k], A[head, k] = -1.0, 1.0
    return A[:-1]


def slots(horizon: int, seed: int):
    """A day of `horizon` slots: the cost of the edges, and the conservation of flow."""
    rng, A = np.random.default_rng(seed), conservation()
    for t in range(horizon):
        demand = np.zeros(NODES - 1)  # enters at the first node, leaves at the last
        demand[0] = -2.0 - np.sin(2.0 * np.pi * t / horizon)
        price = rng.uniform(0.0, 2.0, len(EDGES))
        yield coldq.Quadratic(0.4 * np.eye(len(EDGES)), price), coldq.Affine.equality(A, demand)


def run_coldq(horizon: int, seed: int) -> tuple[np.ndarray, float]:
    """The violation in every slot, and the loss of all."""
    learner = coldq.COLDQ(X, horizon=horizon)
    state, violation, loss = learner.init(2 * (NODES - 1)), np.zeros(horizon), 0.0
    for t, (f, g) in enumerate(slots(horizon, seed)):
        violation[t] = np.maximum(g.value(state.x), 0.0).sum()
        loss += float(f.value(state.x))
        state = learner.update(state, coldq.Feedback(f, g))
    return violation, loss


def run_drift_plus_penalty(horizon: int, seed: int) -> tuple[np.ndarray, float]:
    """The same, by ``x' = P_X(x - (V grad f + J'Q) / (2 alpha))``, ``Q' = [Q + g + J(x' - x)]_+``.

    V = sqrt(T) and alpha = T, as in the paper.
    """
    V, alpha = np.sqrt(horizon), float(horizon)
    x, queue = X.start(), np.zeros(2 * (NODES - 1))
    violation, loss = np.zeros(horizon), 0.0
    for t, (f, g) in enumerate(slots(horizon, seed)):
        violation[t] = np.maximum(g.value(x), 0.0).sum()
        loss += float(f.value(x))
        moved = X.project(x - (V * f.gradient(x) + g.A.T @ queue) / (2.0 * alpha))
        queue = np.maximum(queue + g.value(moved), 0.0)  # g + J(x' - x), as g is affine
        x = moved
    return violation, loss


def compare(horizons: list[int], seed: int = 0) -> dict[str, list[tuple[np.ndarray, float]]]:
    """Both methods at every horizon."""
    methods = {"COLDQ": run_coldq, "drift plus penalty": run_drift_plus_penalty}
    return {name: [run(T, seed) for T in horizons] for name, run in methods.items()}


def draw(horizons: list[int], results: dict[str, list[tuple[np.ndarray, float]]], to: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    running, totals = figure.subplots(1, 2)
    for name, runs in results.items():
        running.plot(np.cumsum(runs[-1][0]), label=name)
        totals.loglog(horizons, [violation.sum() for violation, _ in runs], "o-", label=name)
    running.set(xlabel="slot", ylabel="violation so far", title=f"T = {horizons[-1]}", yscale="log")
    totals.set(xlabel="horizon T", ylabel="violation of all slots", title="flow not conserved")
    running.legend()
    with whole_file(to) as file:
        figure.savefig(file, dpi=120, format=to.suffix[1:] or "png")


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--horizons", type=numbers, default="500,1000,2000,4000", help="slots of each day to run"
    )
    parser.add_argument(
        "picture", nargs="?", type=Path, default=Path("examples/out/network_flow.png")
    )
    given = parser.parse_args(arguments)
    results = compare(given.horizons)
    for name, runs in results.items():
        print(name)
        for T, (violation, loss) in zip(given.horizons, runs, strict=True):
            print(f"  T = {T:5d}: violation {violation.sum():9.2f}, loss a slot {loss / T:.3f}")
    draw(given.horizons, results, given.picture)
    print(f"picture in {given.picture}")


if __name__ == "__main__":
    with command():
        main()
