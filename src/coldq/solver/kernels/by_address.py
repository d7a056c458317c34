"""The steps with affine rows, as other kernels call them: by the addresses of their code.

Compiled into each of them once more, :data:`~coldq.solver.kernels.affine.affine_step` would take
seconds. A caller puts its sizes and the addresses of its operands down in memory of its own.
"""

from functools import cache
from typing import Any

import numpy as np

from coldq.compiled import exact_inlined
from coldq.compiled.calls import CODE, run_at, words
from coldq.solver.kernels.piece import scratch_size

# What the steps are known to take; whoever gives an address makes sure that it does.
LAYOUT = "(p),(p),(),(n),(n),(n),(n,p),(n),(p),(p),(),(s)->(p),(n),()?"
TOGETHER = "(b*,p),(b*,p),(b*),(b*,n),(b*,n,p),(b*,n),(b*,p),(b*,p),(),(s)->(b*,p),(b*,n),(b*)"
ON_BLOCKS = "(p),(p),(),(n),(n),(n),(m),(e),(q),(n),(p),(p),(k),(k),(k),(),(s)->(p),(n),()?"
ITS_SIZES, ITS_OPERANDS = 3, 16  # words: p, n and s; one for each operand, and for spare memory
CALL = ITS_SIZES + ITS_OPERANDS
BLOCK_SIZES, BLOCK_OPERANDS = 7, 21  # the same on blocks: p, n, m, e, q, k and s


@cache
def code_of(step: Any) -> Any:
    """The address of a step's code, as the kernels take it that call it."""
    if step.layout not in (LAYOUT, TOGETHER, ON_BLOCKS):
        raise RuntimeError(f"there are kernels made for another step than {step}")
    return step().__self__[CODE].view(np.float64)  # of its card


@exact_inlined
def run_affine(
    code, call, p, n, center, gradient, alpha, floor, weights, soft, A, b, lower, upper, rounds,
    memory, x, multipliers, residual, spare,
):  # fmt: skip
    """Run the step of affine rows on operands at these addresses, by what is put down at `call`,
    where there is room for CALL words; `code` is where the address of its code is."""
    sizes, at = words(call, ITS_SIZES), words(call + 8 * ITS_SIZES, ITS_OPERANDS)
    sizes[0], sizes[1], sizes[2] = p, n, scratch_size(n, p)
    at[0], at[1], at[2], at[3], at[4], at[5] = center, gradient, alpha, floor, weights, soft
    at[6], at[7], at[8], at[9], at[10], at[11] = A, b, lower, upper, rounds, memory
    at[12], at[13], at[14], at[15] = x, multipliers, residual, spare
    return run_at(words(code, 1)[0], call, call + 8 * ITS_SIZES)
