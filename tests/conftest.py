"""What holds for all tests."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from coldq.tasks.processes import ONE_THREAD
from tests import chromium

# A first draw may compile kernels, and any machine may be busy: no verdict depends on its speed.
settings.register_profile("coldq", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("coldq")

# There are as many workers as cores. Threads of OpenBLAS that spin for each other beside them take
# thirty times as long as one, so each has one, before NumPy is there. Our own threads do not spin.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.update({k: one for k, one in ONE_THREAD.items() if k != "COLDQ_THREADS"})

# A shell starts background jobs deaf to Ctrl-C, and their children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Before all tests, workers share the compiling: one begins at either end, so that they meet
    when all is done, however long each kernel takes."""
    config = session.config
    worker = getattr(config, "workerinput", None)
    if worker is not None and config.args_source == pytest.Config.ArgsSource.TESTPATHS:
        from coldq.warmup import kernels

        number, workers = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
        todo = kernels()
        first = number // 2 * len(todo) // workers
        for kernel in (todo[first:] + todo[:first])[:: -1 if number % 2 else 1]:
            kernel()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium, for the tests that look at pages."""
    with chromium.launched() as launched:
        yield launched
