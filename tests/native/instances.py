"""Arguments of every contraction, and a print of the bits that a CPU level gives.

``python -m tests.native.instances`` prints one line a contraction.
"""

from __future__ import annotations

import hashlib

import numpy as np

from coldq import _native

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


if __name__ == "__main__":
    main()
