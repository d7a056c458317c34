"""What the tests of the agent share: a learner, and feedback that anybody can make again."""

from __future__ import annotations

import numpy as np

import coldq

X = coldq.Box(0.0, 5.0, dim=3)
LEARNER = coldq.COLDQ(X, horizon=100_000, epsilon=1e-5)


def revealed(round: int, seed: int = 0) -> tuple[coldq.LeastSquares, coldq.Affine]:
    """The loss and the constraint of a round, whoever asks and however often."""
    rng = np.random.default_rng((seed, round))
    loss = coldq.LeastSquares(rng.normal(size=(2, 3)), rng.normal(size=2))
    return loss, coldq.Affine(rng.normal(size=(2, 3)), rng.uniform(0.0, 1.0, 2))


def measured(round: int, x: np.ndarray) -> tuple[coldq.GradientAt, coldq.Affine]:
    """The same, known only at the decision that was played."""
    loss, g = revealed(round)
    at = coldq.Affine.from_measurement(x, g.value(x), g.jacobian(x))
    return coldq.GradientAt(x, loss.gradient(x), loss.value(x)), at


def bits(state: object) -> dict[str, bytes]:
    """A state, to be compared bit for bit."""
    return {name: np.asarray(a).tobytes() for name, a in state.to_arrays().items()}  # type: ignore[attr-defined]


def undisturbed(rounds: list[int], learner=LEARNER):
    """The state of the bare learner after the feedback of these rounds, each played at once."""
    state = learner.init(2)
    for round in rounds:
        state = learner.update(state, coldq.Feedback(*revealed(round)))
    return state
