"""The steps with affine rows, as other kernels call them: by the addresses of their code.

Compiled into each of them once more, :data:`~coldq.solver.kernels.affine.affine_step` would take
seconds. A caller puts its sizes and the addresses of its operands down in memory of its own.
"""

from functools import cache
from typing import Any

import numpy as np

from coldq.compiled.calls import CODE

# What the steps are known to take; whoever gives an address makes sure that it does.
LAYOUT = "(p),(p),(),(n),(n),(n),(n,p),(n),(p),(p),(),(s)->(p),(n),()?"
TOGETHER = "(b*,p),(b*,p),(b*),(b*,n),(b*,n,p),(b*,n),(b*,p),(b*,p),(),(s)->(b*,p),(b*,n),(b*)"
ON_BLOCKS = "(p),(p),(),(n),(n),(n),(m),(e),(q),(n),(p),(p),(k),(k),(k),(),(s)->(p),(n),()?"
ITS_SIZES, ITS_OPERANDS = 3, 16  # words: p, n and s; one for each operand, and for spare memory
BLOCK_SIZES, BLOCK_OPERANDS = 7, 21  # the same on blocks: p, n, m, e, q, k and s


@cache
def code_of(step: Any) -> Any:
    """The address of a step's code, as the kernels take it that call it."""
    if step.layout not in (LAYOUT, TOGETHER, ON_BLOCKS):
        raise RuntimeError(f"there are kernels made for another step than {step}")
    return step().__self__[CODE].view(np.float64)  # of its card
