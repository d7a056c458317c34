"""The portfolio example runs, draws, and keeps its promise."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np

EXAMPLE = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "portfolio.py"))


def test_the_portfolio_keeps_its_risk_and_draws_a_picture(tmp_path: Path) -> None:
    place = tmp_path / "out" / "portfolio.png"
    run = EXAMPLE["main"]([str(place), "--days", "120"])
    assert place.read_bytes().startswith(b"\x89PNG")
    assert run.wealth.shape == (121,)
    broken = [np.maximum(r - EXAMPLE["LIMIT"], 0.0).sum() for r in (run.risk, run.unlimited_risk)]
    assert broken[0] < 0.1 * broken[1]
