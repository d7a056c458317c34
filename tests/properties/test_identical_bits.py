"""A run gives the same bits alone, in a batch, on several threads and after a fork."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest

import coldq

PROBLEM = coldq.problems.TimeVarying(horizon=300)
LEARNER = coldq.COLDQ.for_problem(PROBLEM, epsilon=0.01)  # a queue that moves


def bits(seeds) -> dict[int, bytes]:
    trace = coldq.simulate(LEARNER, PROBLEM, seeds, keep=["decisions", "queue"])
    assert trace.decisions is not None
    assert trace.queue is not None
    return {
        seed: trace.decisions[k].tobytes() + trace.queue[k].tobytes() + trace.loss[k].tobytes()
        for k, seed in enumerate(trace.seeds)
    }


ALONE = bits([17])[17]


@pytest.mark.parametrize("threads", ["1", "2", "7"])
def test_inside_a_batch_of_64(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLDQ_THREADS", threads)
    assert bits(range(64))[17] == ALONE


def test_on_four_threads_at_once() -> None:
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(bits, [[17], [3, 17], range(10, 64), [17, 18]]):
            assert found[17] == ALONE


def test_in_a_state_per_tenant_with_clocks_of_their_own() -> None:
    # The same tenant at another clock beside others: t is an array.
    one = LEARNER.init(2)
    stream = PROBLEM.start([17])
    for t in range(1, 40):
        revealed = stream.reveal(t, one.x)
        rows = coldq.Affine(revealed.constraint.A[0], revealed.constraint.b[0])  # type: ignore[attr-defined]
        loss = coldq.LeastSquares(revealed.loss.H[0], revealed.loss.y[0])  # type: ignore[attr-defined]
        fresh = LEARNER.init(2)
        arrays = {name: [array, fresh.to_arrays()[name]] for name, array in one.to_arrays().items()}
        both = LEARNER.from_arrays(arrays)  # type: ignore[arg-type]
        one = LEARNER.update(one, coldq.Feedback(loss, rows))
        both = LEARNER.update(both, coldq.Feedback(loss, rows))
        first = LEARNER.update(fresh, coldq.Feedback(loss, rows))
        assert both.x[0].tobytes() == one.x.tobytes()
        assert both.x[1].tobytes() == first.x.tobytes()
        assert both.t.tolist() == [t + 1, 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_after_a_fork() -> None:
    # In a process of its own: pytest's has threads, which must not be forked with.
    script = textwrap.dedent("""
        import os, sys
        from tests.properties.test_identical_bits import ALONE, bits
        os.environ["COLDQ_THREADS"] = "4"
        assert bits(range(64))[17] == ALONE  # the pool exists before the fork
        child = os.fork()
        if child == 0:
            os._exit(0 if bits(range(64))[17] == ALONE else 3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        print("same bits")
    """)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "same bits\n", done.stderr
