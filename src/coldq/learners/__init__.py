"""Algorithms, one a file: a frozen value with ``init`` and a pure ``update``."""

from coldq.learners.card import citation
from coldq.learners.coldq import COLDQ
from coldq.learners.ogd import OGD
from coldq.learners.recoo import RECOO
from coldq.learners.sinha_vaze import SinhaVaze
from coldq.learners.yi2021 import Yi2021
from coldq.learners.yi2023 import Yi2023

__all__ = ["COLDQ", "OGD", "RECOO", "SinhaVaze", "Yi2021", "Yi2023", "citation"]
