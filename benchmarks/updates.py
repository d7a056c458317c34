"""What a slot costs whoever decides: an update with its feedback, by COLDQ and by SelfTuning.

``python -m benchmarks.updates`` needs no more than the library. Ten coordinates and two rows, the
arrays of each slot as NumPy has them; the learners take turns, and the median of each is printed.
Opposing rows are a lower and an upper limit nearer to each other than the margin is wide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import coldq
from benchmarks.clock import in_turns

SLOTS, WARM = 2000, 100
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def main() -> None:
    """Print a line for each learner."""
    problem = coldq.problems.TimeVarying(horizon=SLOTS)
    rng, p = np.random.default_rng(0), problem.domain.dim
    slots = [
        (rng.standard_normal((4, p)), rng.standard_normal(4), rng.uniform(0.0, 2.0, (2, p)),
         rng.uniform(0.0, 2.0, 2))
        for _ in range(SLOTS)
    ]  # fmt: skip
    roomy = [(H, y, A, b + 2.0) for H, y, A, b in slots]
    level = rng.uniform(-1.0, 1.0, SLOTS)
    opposing = [
        (H, y, np.stack([A[0], -A[0]]), np.array([at + 0.05, 0.05 - at]))
        for (H, y, A, _), at in zip(slots, level, strict=True)
    ]
    tuned = coldq.SelfTuning(problem.domain, violation_rate=0.01)
    on_simplex = coldq.SelfTuning(coldq.Simplex(p), violation_rate=0.01)
    learners = {
        "COLDQ": (coldq.COLDQ.for_problem(problem), slots, False),
        "SelfTuning, 1%": (tuned, slots, False),
        "SelfTuning, 1%, with a forecast of the user's own": (tuned, slots, True),
        "SelfTuning, 1%, opposing rows": (tuned, opposing, False),
        "SelfTuning, 1%, on a simplex": (on_simplex, roomy, False),
        "SelfTuning, 1%, opposing rows on a simplex": (on_simplex, opposing, False),
    }
    calls = [updating(*each) for each in learners.values()]
    measured = in_turns(calls, range(WARM, SLOTS))
    medians = [float(np.median([seconds for seconds, _ in runs])) for runs in measured]
    for name, seconds in zip(learners, medians, strict=True):
        print(
            f"{name}: {1e6 * seconds:.1f} microseconds an update with its feedback, "
            f"{seconds / medians[0]:.1f} of COLDQ's"
        )


def updating(learner: Any, slots: list[Arrays], ahead: bool) -> Callable[[int], Any]:
    """An update of a state in the middle of a run, from a slot's arrays; also told what comes."""
    state = learner.init(2)

    def update(slot: int, at: Any = None) -> Any:
        H, y, A, b = slots[slot]
        rows = coldq.Affine(A, b)
        expected = coldq.Forecast(constraint=coldq.Affine(A, 0.9 * b)) if ahead else None
        told = coldq.Feedback(coldq.LeastSquares(H, y), rows, forecast=expected)
        return learner.update(state if at is None else at, told)

    for slot in range(WARM):
        state = update(slot, state)
    return update


if __name__ == "__main__":
    main()
