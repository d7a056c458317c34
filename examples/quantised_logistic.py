"""Online logistic regression on a network whose messages are quantised.

Every agent sees a few labelled images a slot, of 28 by 28 pixels in 10 classes, so that x has
p = 7,840 numbers, and steps on the loss of a softmax. It tells its neighbours its decision rounded
to a grid, q, and must not leave by more than r what it has told: |x - q|^2 <= r^2, a ball-shaped
row whose step is a root in one multiplier. The images are made up: a random pattern for every
class, and noise.

Run it with: python examples/quantised_logistic.py [--slots 200] [picture.png]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import coldq
from coldq import networks
from coldq.base.files import whole_file
from coldq.cli import command

PIXELS, CLASSES, AGENTS, IMAGES = 784, 10, 4, 8
P = PIXELS * CLASSES
STEP, RADIUS, BOUND = 0.02, 0.6, 1.0


def images(rng: np.random.Generator, patterns: np.ndarray, count: int) -> tuple[np.ndarray, ...]:
    """Labels, and images of shape (agents, count, pixels) with entries around 0 to 1."""
    labels = rng.integers(0, CLASSES, (AGENTS, count))
    noise = 0.5 * rng.standard_normal((AGENTS, count, PIXELS))
    return labels, (patterns[labels] + noise) / np.sqrt(PIXELS)


def logistic(seen: np.ndarray, labels: np.ndarray) -> coldq.Smooth:
    """The mean loss of each agent's images, a function of decisions (..., agents, p)."""
    right = np.eye(CLASSES)[labels]

    def scores(x: np.ndarray) -> np.ndarray:
        s = np.einsum("amk,...akc->...amc", seen, x.reshape(*x.shape[:-1], PIXELS, CLASSES))
        return s - s.max(axis=-1, keepdims=True)

    def value(x: np.ndarray) -> np.ndarray:
        s = scores(x)
        return (np.log(np.exp(s).sum(axis=-1)) - (s * right).sum(axis=-1)).mean(axis=-1)

    def gradient(x: np.ndarray) -> np.ndarray:
        e = np.exp(scores(x))
        off = e / e.sum(axis=-1, keepdims=True) - right
        return np.einsum("amk,...amc->...akc", seen, off).reshape(x.shape) / labels.shape[-1]

    return coldq.Smooth(value, gradient, vectorised=True)


def learner() -> coldq.Decentralised:
    """COLDQ on a ring of agents that hear each other's decisions rounded."""
    X = coldq.Box(-BOUND, BOUND, dim=P)
    inside = coldq.COLDQ(X, alpha=0.02, eta=0.1, gamma=0.5)
    ring = networks.metropolis(networks.ring(AGENTS))
    return coldq.Decentralised(inside, ring, networks.Quantised(STEP))


def limit(x: np.ndarray) -> coldq.QuadraticConstraint:
    """No agent may be farther than r from what it has told."""
    told = STEP * np.round(x / STEP)
    return coldq.QuadraticConstraint.ball(told[:, None, :], [RADIUS])


def run(slots: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Losses of the slots, how far decisions are from what was told before, and seconds."""
    rng = np.random.default_rng(seed)
    patterns = rng.standard_normal((CLASSES, PIXELS))
    network = learner()
    state = network.init(1, start=np.zeros((AGENTS, P)))
    losses, reach, seconds = np.empty(slots), np.empty(slots), np.empty(slots)
    for k in range(slots):
        labels, seen = images(rng, patterns, IMAGES)
        loss, g = logistic(seen, labels), limit(state.x)
        losses[k] = loss.value(state.x).mean()
        begun = time.perf_counter()
        state = network.update(state, coldq.Feedback(loss, g))
        seconds[k] = time.perf_counter() - begun
        reach[k] = np.sqrt(g.value(state.x).max() + RADIUS**2)
    return {"loss": losses, "reach": reach, "seconds": seconds}


def draw(found: dict[str, np.ndarray], to: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(found["loss"])
    left.set(xlabel="slot", title="mean loss of the agents")
    right.plot(found["reach"])
    right.axhline(RADIUS, color="k", linestyle="--", label="r")
    right.set(xlabel="slot", title="farthest from what was told")
    right.legend()
    with whole_file(to) as file:
        figure.savefig(file, dpi=120, format=to.suffix[1:] or "png")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--slots", type=int, default=200)
    picture = Path("examples/out/quantised_logistic.png")
    parser.add_argument("picture", nargs="?", type=Path, default=picture)
    given = parser.parse_args(arguments)
    slots, found = given.slots, run(given.slots)
    tenth = max(1, slots // 10)
    print(
        f"{AGENTS} agents, p = {P}: loss {found['loss'][:tenth].mean():.3f} in the first tenth of "
        f"{slots} slots, {found['loss'][-tenth:].mean():.3f} in the last; at most "
        f"{found['reach'].max():.3f} from what was told, with r = {RADIUS}; "
        f"{1e3 * np.median(found['seconds']):.2f} ms a slot"
    )
    draw(found, given.picture)
    print(f"picture in {given.picture}")


if __name__ == "__main__":
    with command():
        main()
