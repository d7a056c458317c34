"""BLAS runs on one thread while a step of middle size is solved, and on as many as before after."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from coldq.base.system import cores

TWO = [min(2, cores())]  # BLAS takes no more threads than there are cores

# A process that starts with one thread never has two, and the tests' own do.
SCRIPT = """
import json
import numpy as np, scipy.linalg
from scipy.sparse import csr_array
from threadpoolctl import threadpool_info

from coldq.solver.blas import LARGE, SMALL, on_one_thread

def threads():
    return sorted({lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"})

@on_one_thread
def inside(instance, deeper=0):
    return inside(instance, deeper - 1) if deeper else threads()

@on_one_thread
def fails(instance):
    raise ValueError

middle = (np.ones((40, 100)), "a name")
found = {"at first": threads()}
found["inside"], found["after"] = inside(middle), threads()
found["deeper inside"], found["after that"] = inside(middle, 2), threads()
found["of vectors"] = inside((np.ones(100), csr_array(np.eye(100))))  # a system of 100 by 100
tiny = (np.ones((2, SMALL // 2 - 1)), np.ones(SMALL // 100))
found["tiny"], found["large"] = inside(tiny), inside((np.ones(LARGE + 1),))
try:
    fails(middle)
except ValueError:
    found["after an error"], found["and then"] = threads(), inside(middle)

print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, list[int]]:
    two = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=os.environ | two, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


@pytest.mark.parametrize(
    "where",
    ["inside", "of vectors", "deeper inside", "and then"],
)
def test_an_instance_of_middle_size_is_solved_on_one_thread(
    found: dict[str, list[int]], where: str
) -> None:
    assert found[where] == [1]


@pytest.mark.parametrize("where", ["at first", "after", "after that", "after an error"])
def test_the_threads_come_back(found: dict[str, list[int]], where: str) -> None:
    assert found[where] == TWO


@pytest.mark.parametrize("where", ["tiny", "large"])
def test_a_tiny_or_large_instance_keeps_its_threads(
    found: dict[str, list[int]], where: str
) -> None:
    assert found[where] == TWO
