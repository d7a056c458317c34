"""Packages whose names are imported when they are asked for are modules like others."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import coldq
import coldq.agent
import coldq.learners


@pytest.mark.parametrize("package", [coldq, coldq.learners, coldq.agent])
def test_no_module_of_a_package_bears_the_name_of_what_the_package_offers(package) -> None:
    modules = {path.stem for folder in package.__path__ for path in Path(folder).glob("*.py")}
    assert not modules & set(package.__all__)


def _of_a_script() -> Any:
    """A function as a script or notebook has it: sent by value, with the modules it mentions."""
    script: dict[str, Any] = {"__name__": "__main__"}
    exec("import coldq\ndef job(high):\n    return coldq.Box(0.0, high, dim=2).diameter", script)
    return script["job"]


def test_a_function_that_mentions_the_library_travels() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    assert pickle.loads(cloudpickle.dumps(_of_a_script()))(1.0) == pytest.approx(2.0**0.5)


def test_a_function_that_mentions_the_library_is_run_by_joblib() -> None:
    joblib = pytest.importorskip("joblib")
    from joblib.externals.loky import get_reusable_executor

    run = joblib.Parallel(n_jobs=2, backend="loky")
    found = run(joblib.delayed(_of_a_script())(high) for high in (1.0, 3.0))
    get_reusable_executor().shutdown(wait=True)
    assert found == pytest.approx([2.0**0.5, 18.0**0.5])
