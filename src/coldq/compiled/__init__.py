"""Kernels: functions in Python's numbers and loops that run as machine code.

A kernel is written as a plain function and marked; nothing is compiled, and Numba is not imported,
until one is first called and no object code of it is found in the cache.

- :mod:`~coldq.compiled.kernel`: the marks, and what a marked function becomes
- :mod:`~coldq.compiled.cache`: object code on disk, whole and of this build, or absent
- :mod:`~coldq.compiled.machine`: the processor, and object code made callable; needs only llvmlite
- :mod:`~coldq.compiled.calls`: how a kernel reads its arguments, and the loop over a batch
- :mod:`~coldq.compiled.memory`: how compiled code sees the numbers it works on
- :mod:`~coldq.compiled.builtin`: Python's `range`, `max` and `min` there
- :mod:`~coldq.compiled.lanes`: several numbers side by side in the processor's lanes
- :mod:`~coldq.compiled.passes`: what of Numba's compiler kernels need
- :mod:`~coldq.compiled.lowering`: how they become text for LLVM, in fewer instructions
- :mod:`~coldq.compiled.compiler`: from marked functions to object code, by Numba
"""

# ruff: noqa: F401 (what kernels are written with, and Kernel itself)

from coldq.compiled.kernel import (
    Kernel,
    abreast,
    address_of,
    anywhere,
    batch_kernel,
    below,
    chosen,
    compiled,
    cube,
    eight,
    exact,
    exact_inlined,
    four,
    fourfold,
    fused,
    gathered,
    gathered_2,
    gathered_4,
    gathered_8,
    hidden,
    inlined,
    joined,
    kernel,
    lane_at,
    larger,
    length,
    matrix,
    pairs,
    parts_from,
    put_lane,
    put_thirds,
    room,
    scattered,
    scattered_2,
    scattered_4,
    scattered_8,
    smaller,
    spread,
    thirds,
    turned,
    unless,
    vector,
    width,
    without,
)
