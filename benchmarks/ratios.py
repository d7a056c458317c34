"""Ratios of a run held against stored ones: our time in units of another's, of the same run.

``python -m benchmarks --store benchmarks/ratios.json`` renews them, on purpose, after a change of
speed that is meant.
"""

from __future__ import annotations

from collections.abc import Mapping

SLACK = 1.5  # times a stored ratio; runs on two busy machines differ by that much


def worse(now: Mapping[str, float], stored: Mapping[str, float]) -> list[str]:
    """The ratios that are above the stored ones by more than ``SLACK``, a line each."""
    factors = {what: now[what] / stored[what] for what in stored.keys() & now.keys()}
    return [
        f"{what}: {factor:.2f} times the stored ratio, but at most {SLACK} times is allowed"
        for what, factor in sorted(factors.items())
        if factor > SLACK
    ]
