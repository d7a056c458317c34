"""Every CPU level that was built and that this machine executes gives the same bits."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from coldq import _native


def run(level: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.native.instances"]
    settings = {**os.environ, "COLDQ_CPU": level}
    return subprocess.run(command, env=settings, capture_output=True, text=True)


def test_every_level_gives_the_same_bits() -> None:
    found = {level: run(level) for level in ("", *_native.levels)}
    chosen, *bits = found[""].stdout.split("\n")
    assert chosen in _native.levels
    assert {line.split()[0] for line in bits if line} >= {
        "dot",
        "grouped_guess",
        "affine_step",
        "COLDQ",
    }
    for level, done in found.items():
        assert done.returncode == 0, done.stderr
        assert done.stdout.split("\n") == [level or chosen, *bits]


@pytest.mark.parametrize("level", ["v9", "sse2", "v22"])
def test_a_level_that_was_not_built_is_refused(level: str) -> None:
    done = run(level)
    assert done.returncode != 0
    assert f"executes, but is '{level}'" in done.stderr
    assert f"COLDQ_CPU must be {' or '.join(_native.levels)}, the levels that" in done.stderr


def test_the_command_says_so_in_a_sentence() -> None:
    command = [sys.executable, "-m", "coldq", "cite", "COLDQ"]
    settings = {**os.environ, "COLDQ_CPU": "v9"}
    done = subprocess.run(command, env=settings, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("coldq: COLDQ_CPU must be ") and done.stderr.count("\n") == 1
