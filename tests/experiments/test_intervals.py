"""Means with their intervals, as they are read."""

from __future__ import annotations

import numpy as np
import pytest

from coldq.experiments.intervals import brief, with_interval


@pytest.mark.parametrize(
    ("mean", "spread", "shown"),
    [
        (940.45, 99.7, "940.45 ± 100"),  # and not 1e+02
        (99999.7, 0.0, "100,000 ± 0"),
        (5000.21, 0.3, "5,000.2 ± 0.3"),  # little is not nothing
        (1234567.4, 4321.0, "1,234,567 ± 4,321"),
        (2e-14, 3.12e-15, "2e-14 ± 3.1e-15"),
        (0.0, 0.0, "0 ± 0"),
    ],
)
def test_a_mean_has_five_digits_and_its_interval_two(mean, spread, shown) -> None:
    off = spread / 12.706204736  # Student's t for two samples
    assert with_interval(np.array([mean - off, mean + off])) == shown
    assert with_interval(np.array([mean])) == shown.partition(" ")[0]


def test_large_numbers_are_written_out() -> None:
    shown = [brief(x) for x in (1234567.8, -1e8, 1e13)]
    assert shown == ["1,234,568", "-100,000,000", "1e+13"]
