"""The step on blocks, as another kernel calls it: by the address of its code.

Compiled into that once more it would take seconds. The caller puts its sizes and the addresses of
its operands down in memory of its own.
"""

from functools import cache
from typing import Any

import numpy as np

from coldq.compiled.calls import CODE

# What the step is known to take; whoever gives an address makes sure that it does.
ON_BLOCKS = "(p),(p),(),(n),(n),(n),(m),(e),(q),(n),(p),(p),(k),(k),(k),(),(s)->(p),(n),()?"
BLOCK_SIZES, BLOCK_OPERANDS = 7, 21  # words: p, n, m, e, q, k and s; one for each operand, and one


@cache
def code_of(step: Any) -> Any:
    """The address of a step's code, as the kernels take it that call it."""
    if step.layout != ON_BLOCKS:
        raise RuntimeError(f"there are kernels made for another step than {step}")
    return step().__self__[CODE].view(np.float64)  # of its card
