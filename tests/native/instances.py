"""Arguments of contractions and of steps on blocks, and a print of the bits of a CPU level.

``python -m tests.native.instances`` prints one line a function, a step and a run of COLDQ.
"""

from __future__ import annotations

import hashlib

import numpy as np

import coldq
from coldq import _native
from coldq.solver.interior_point import guess_multipliers
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
SYSTEMS = {
    f"{kind}_system{digits}": ("np", *axes)
    for kind, axes in {"column": "npp", "row": "pnn"}.items()
    for digits in ("", "_extended")
}


def drawn(name: str, n: int, p: int, batch: int, seed: int = 0) -> list[np.ndarray]:
    """Arguments of one contraction or dense system: a batch of positive numbers of all sizes."""
    rng = np.random.default_rng([seed, n, p])
    sizes = {"n": n, "p": p}
    shapes = [(batch, *(sizes[axis] for axis in axes)) for axes in (SHAPES | SYSTEMS)[name]]
    return [np.exp(rng.normal(size=shape)) for shape in shapes]


def blocks_drawn(n: int, p: int, batch: int, seed: int = 0) -> list[np.ndarray]:
    """Arguments of steps on a simplex, a budget and a box, of a third of the coordinates each."""
    rng = np.random.default_rng([seed, n, p])
    start, none = np.array([0, p // 3, 2 * (p // 3)], float), np.zeros(0)
    center, A = rng.random((batch, p)) / p, rng.normal(size=(batch, n, p))
    b = np.einsum("bnp,bp->bn", A, center) - 0.1 * rng.random((batch, n))
    shared = (
        (none, none),
        (np.zeros(p), np.ones(p), start, np.ones(3), [-np.inf, 0.0, np.inf], 60.0),
    )
    zeros, weights = np.zeros((batch, n)), rng.random((batch, n))
    entries, blocks = ([np.tile(array, (batch, 1)) for array in some] for some in shared)
    blocks[-1] = blocks[-1][:, 0]
    gradient, alpha = rng.normal(size=(batch, p)), np.exp(rng.normal(size=batch))
    own = [center, gradient, alpha, zeros, weights, zeros, A.reshape(batch, n * p)]
    return [*own, *entries, b, *blocks]


def curved_drawn(
    name: str, n: int, p: int, batch: int, seed: int = 0, hard: bool = False
) -> list[np.ndarray]:
    """Arguments of a step with rows around a point in the box: of `quadratic_step` the first half
    have matrices, of `thin_step` each has one factor. The last row may be enforced."""
    rng = np.random.default_rng([seed, n, p])
    m, spot, slope = (n + 1) // 2, rng.random((batch, p)), rng.normal(size=(batch, n, p))
    center, gradient = spot + rng.normal(size=(batch, p)), rng.normal(size=(batch, p))
    alpha, room = np.exp(rng.normal(size=batch)), 0.1 * rng.random((batch, n))
    weights = np.exp(rng.normal(size=(batch, n)) + 1.0)
    weights[:, -1] = np.inf if hard else weights[:, -1]
    common = [center, gradient, alpha, np.zeros((batch, n)), weights]
    box = [np.zeros((batch, p)), np.ones((batch, p)), np.zeros((batch, n))]
    value = room + np.einsum("bnp,bp->bn", slope, spot)
    if name == "quadratic_step":
        root = rng.normal(size=(batch, m, 3, p))
        P = np.einsum("bmki,bmkj->bmij", root, root)
        value[:, :m] += 0.5 * np.einsum("bmij,bi,bj->bm", P, spot, spot)
        return [*common, P, slope, value, *box]
    d, middle = rng.random((batch, n, p)), rng.random((batch, n, p))
    F, owner = rng.normal(size=(batch, n, p)), np.tile(np.arange(n, dtype=float), (batch, 1))
    value += 0.5 * np.einsum("bnp,bnp->bn", d, np.square(spot[:, None] - middle))
    value += 0.5 * np.square(np.einsum("bnp,bp->bn", F, spot))
    return [*common, d, middle, slope, value, F, owner, *box]


def main() -> None:
    print(_native.level)
    for name in SHAPES | SYSTEMS:
        bits = hashlib.sha256()
        for n in (1, 2, 3, 9, 20):
            for p in (*range(1, 20), 100):
                out = getattr(_native, name)(*drawn(name, n, p, 5))
                for part in out if isinstance(out, tuple) else (out,):
                    bits.update(part.tobytes())
        print(name, bits.hexdigest())
    bits = hashlib.sha256()
    for n, p in ((1, 3), (2, 9), (5, 30), (20, 60), (3, 200)):
        for out in _native.blocks_step(*blocks_drawn(n, p, 5)):
            bits.update(out.tobytes())
    print("blocks_step", bits.hexdigest())
    bits = hashlib.sha256()
    for n, p in ((30, 10), (10, 30), (70, 60)):
        rng = np.random.default_rng([n, p])
        given = rng.normal(size=(2, p)), 1.0, np.zeros(n), np.ones(n), rng.normal(size=(n, p))
        start, ends = np.array([0.0, p // 3, p // 2]), (np.zeros(p), np.ones(p))
        blocks = start, np.ones(3), np.array([-np.inf, np.inf, 0.0])
        found = guess_multipliers(*given[0], *given[1:], rng.normal(size=n), *ends, blocks)
        assert found is not None
        bits.update(found.tobytes())
    print("grouped_guess", bits.hexdigest())
    for name in ("quadratic_step", "thin_step"):
        bits = hashlib.sha256()
        for n, p in ((1, 3), (2, 9), (5, 30), (12, 20), (3, 60)):
            for out in getattr(_native, name)(*curved_drawn(name, n, p, 5)):
                bits.update(out.tobytes())
        print(name, bits.hexdigest())
    for name in steps.INPUTS:
        bits = hashlib.sha256()
        for n, p in ((1, 5), (2, 10), (3, 9), (9, 20), (20, 8), (30, 50)):
            for batch, k in (((), 0), ((21,), 0), ((), 3), ((21,), 3)):
                given = steps.drawn(name, np.random.default_rng([n, p]), batch, n=n, p=p, k=k)
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
