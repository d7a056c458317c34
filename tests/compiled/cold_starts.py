"""Many processes that start at once on an empty cache, some of them killed: ``make cold-starts``.

Every round has an empty cache, eight processes that want the same kernels in different orders, and
kills at random moments. Then a fresh process must find every kernel whole, and right.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SMALL = """
import sys
import numpy as np
from tests.compiled import small
for k in map(int, sys.argv[1]):
    if k == 0:
        out = np.empty((5, 2))
        small.scaled_product()(np.ones((5, 2, 3)), np.ones(3), 2.0, out)
        assert (out == 6.0).all()
    elif k == 1:
        assert small.everything()(np.ones(3), np.eye(2), np.array([1]), 1.0, 2) == 106.5
    elif k == 2:
        assert small.guarded_quotients()(np.ones(4), np.full(4, 1e300)) == 1.0
    else:
        assert small.three()(np.arange(3.0)) == (0.0, 1.0, 2.0)
print("right")
"""

REAL = """
import sys
import numpy as np
import coldq
box, ball = coldq.Box(0.0, 1.0, dim=2), coldq.Ball([0.0, 0.0], 1.0)
rows = coldq.Affine([[1.0, 0.0]], [0.5])
for k in map(int, sys.argv[1]):
    if k == 0:
        x = coldq.penalised_step(np.zeros(2), np.array([-4.0, 0.0]), 1.0, 9.0, rows, ball).x
    elif k == 1:
        g = coldq.QuadraticConstraint([[[2.0, 0.0], [0.0, 0.0]]], [[0.0, 0.0]], [0.25])
        x = coldq.penalised_step(np.zeros(2), np.array([-4.0, 0.0]), 1.0, 9.0, g, box).x
    elif k == 2:
        x = coldq.penalised_step(np.zeros(2), np.array([-4.0, 0.0]), 1.0, 9.0, rows, box).x
    else:
        learner = coldq.COLDQ(box, horizon=10)
        feedback = coldq.Feedback(coldq.LeastSquares([[1.0, 0.0]], [0.5]), rows)
        state = learner.init(1, start=[0.5, 0.0])
        x = learner.update(state, feedback).x
    assert np.allclose(x, [0.5, 0.0], atol=1e-6), (k, x)
print("right")
"""


def start(script: str, order: str, folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "COLDQ_CACHE_DIR": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script, order], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def play(script: str, rng: random.Random, processes: int = 8, longest: float = 4.0) -> list[str]:
    """What went wrong in a round."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "cache"
        orders = ["".join(rng.sample("0123", 4)) for _ in range(processes)]
        running = [start(script, order, folder) for order in orders]
        killed = set(rng.sample(range(processes), rng.randrange(processes // 2 + 1)))
        for k in sorted(killed):
            time.sleep(rng.uniform(0.0, longest / processes))
            running[k].send_signal(signal.SIGKILL)
        wrong = []
        for k, process in enumerate(running):
            out, error = process.communicate()
            if k not in killed and (process.returncode, out) != (0, "right\n"):
                wrong.append(f"order {orders[k]}: {process.returncode} {error[-500:]}")
        last = start(script, "0123", folder)
        out, error = last.communicate()
        if (last.returncode, out) != (0, "right\n"):
            wrong.append(f"afterwards: {last.returncode} {error[-500:]}")
        left = [path.name for path in folder.glob("*") if path.suffix != ".kernel"]
        if not killed and left:
            wrong.append(f"left behind: {left}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50, help="with small kernels")
    parser.add_argument("--real", type=int, default=3, help="rounds with those of the step")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, failures = random.Random(given.seed), 0
    for script, rounds, longest in ((SMALL, given.rounds, 4.0), (REAL, given.real, 40.0)):
        begun = time.perf_counter()
        for k in range(rounds):
            wrong = play(script, rng, longest=longest)
            failures += len(wrong)
            for words in wrong:
                print(f"round {k}: {words}", flush=True)
        kind = "small" if script is SMALL else "real"
        print(
            f"{rounds} rounds of 8 processes, {kind} kernels: {time.perf_counter() - begun:.0f} s"
        )
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
