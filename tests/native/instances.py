"""Arguments of every contraction, and a print of the bits that a CPU level gives.

``python -m tests.native.instances`` prints one line a contraction, a step and a run of COLDQ.
"""

from __future__ import annotations

import hashlib

import numpy as np

import coldq
from coldq import _native
from tests.native import steps

SHAPES = {
    "dot": ("p", "p"),
    "matvec": ("np", "p"),
    "vecmat": ("np", "n"),
    "affine_value": ("np", "p", "n"),
    "least_squares_gradient": ("np", "p", "n"),
    "log_capacity": ("p", "p", "p"),
    "bounded_queue": ("n", "n", "", "", ""),
    "hedge": ("n", "np", "p", "p", ""),
    "weighted_mean": ("n", "np"),
    "mix": ("nn", "np"),
    "into_ball": ("p", "p", ""),
    "implied": ("p", "", "np", "n", "p", "p"),
}


def drawn(name: str, n: int, p: int, batch: int, seed: int = 0) -> list[np.ndarray]:
    """Arguments of one contraction: a batch of positive numbers of all sizes."""
    rng = np.random.default_rng([seed, n, p])
    sizes = {"n": n, "p": p}
    shapes = [(batch, *(sizes[axis] for axis in axes)) for axes in SHAPES[name]]
    return [np.exp(rng.normal(size=shape)) for shape in shapes]


def main() -> None:
    print(_native.level)
    for name in SHAPES:
        bits = hashlib.sha256()
        for n in (1, 2, 3, 9, 20):
            for p in (*range(1, 20), 100):
                bits.update(getattr(_native, name)(*drawn(name, n, p, 5)).tobytes())
        print(name, bits.hexdigest())
    for name in steps.INPUTS:
        bits = hashlib.sha256()
        for n, p in ((1, 5), (2, 10), (3, 9), (9, 20), (20, 8), (30, 50)):
            for batch in ((), (21,)):
                given = steps.drawn(name, np.random.default_rng([n, p]), batch, n=n, p=p)
                for part in getattr(_native, name)(*given):
                    bits.update(part.tobytes())
        print(name, bits.hexdigest())
    problem = coldq.problems.TimeVarying(horizon=100)
    learner = coldq.COLDQ.for_problem(problem, epsilon=0.01)
    trace = coldq.simulate(learner, problem, range(3), keep=["decisions", "queue"])
    run = [np.ascontiguousarray(part) for part in (trace.decisions, trace.queue, trace.loss)]
    print("COLDQ", hashlib.sha256(b"".join(part.tobytes() for part in run)).hexdigest())


if __name__ == "__main__":
    main()
