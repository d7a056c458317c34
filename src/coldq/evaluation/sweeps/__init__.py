"""Sweeps: problems, learners, grids of parameters and seeds, each run once.

`config` reads what is asked for, `grid` writes it out, `plan` makes tasks of it, `identity` names
them, `task` runs one, `sweep` runs what is missing, `table` holds the results, `answers` reads
them.
"""

from coldq.evaluation.sweeps.sweep import sweep
from coldq.evaluation.sweeps.table import Sweep

__all__ = ["Sweep", "sweep"]
