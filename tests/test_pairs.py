"""Every pair of constraint and domain in the table: a share of ``make stress``."""

from __future__ import annotations

import pytest

from tests.pairs import PAIRS
from tests.stress import stress_pair


@pytest.mark.parametrize(("rows", "domain"), PAIRS)
def test_every_one_of_many_degenerate_steps_is_solved(rows: str, domain: str) -> None:
    found = stress_pair(rows, domain, 24, seed=5)
    assert not found.failed
