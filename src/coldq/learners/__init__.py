"""Algorithms, one a file: a frozen value with ``init`` and a pure ``update``."""

from coldq.learners.coldq import COLDQ

__all__ = ["COLDQ"]
