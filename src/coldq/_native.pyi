"""The compiled core: functions of float64 arrays that broadcast over leading axes.

Each takes its inputs and returns new arrays, or takes its outputs after them and returns None.
"""

from typing import Any

from coldq._values import Array

level: str  # of the processor, for which the functions are compiled

def dot(*arrays: Array | float) -> Any: ...
def active_set_extended(*arrays: Array | float) -> Any: ...
def affine_residual(*arrays: Array | float) -> Any: ...
def active_set_double(*arrays: Array | float) -> Any: ...
