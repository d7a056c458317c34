"""What holds for all tests."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from coldq.evaluation.tasks.processes import SINGLE_THREAD_SETTINGS
from tests import chromium

# Any machine may be busy: no verdict depends on its speed.
settings.register_profile("coldq", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("coldq")

# There are as many workers as cores. Threads of OpenBLAS that spin for each other beside them take
# thirty times as long as one, so each has one, before NumPy is there. Our own threads do not spin.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.update({k: one for k, one in SINGLE_THREAD_SETTINGS.items() if k != "COLDQ_THREADS"})

# A shell starts background jobs deaf to Ctrl-C, and their children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium, for the tests that look at pages."""
    with chromium.launched() as launched:
        yield launched
