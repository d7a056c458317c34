"""How parts of kernels become text for LLVM: in fewer instructions than Numba writes.

LLVM would take the others away again, but each is an object to make, a line to print and to parse.
"""

# pyright: reportPrivateImportUsage=false

from __future__ import annotations

from collections import Counter
from typing import Any

from llvmlite import ir as llvm
from numba.core import ir
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering


class Lowering(Lower):
    """Variables that are set once have no place in memory, and nothing is counted or reported."""

    @property
    def _disable_sroa_like_opt(self) -> bool:
        """Whether a debugger wants to see all of them in memory: nobody debugs a kernel."""
        return False

    def _find_singly_assigned_variable(self) -> None:
        """Numba keeps to those that one block alone uses, but what sets a variable once comes
        before all that reads it. Where it did not, LLVM would refuse the text."""
        times = Counter(
            statement.target.name
            for block in self.func_ir.blocks.values()
            for statement in block.find_insts(ir.Assign)
        )
        self._singly_assigned_vars = {name for name, count in times.items() if count == 1}
        self._blk_local_varmap: dict[str, Any] = {}

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def lower_block(self, block: Any) -> None:
        self.pre_block(block)
        for statement in block.body:
            self.loc = statement.loc
            self.lower_inst(statement)
        self.post_block(block)

    def lower_inst(self, inst: Any) -> None:
        if isinstance(inst, ir.Assign):
            name = inst.target.name
            self.storevar(self.lower_assign(self.typeof(name), inst), name)
        else:
            super().lower_inst(inst)


@register_pass(mutates_CFG=True, analysis_only=False)
class Lowered(NativeLowering):
    """The pass that does so."""

    _name = "kernel_lowering"

    @property
    def lowering_class(self) -> Any:
        return Lowering


_extract = llvm.IRBuilder.extract_value


def field_of(builder: Any, whole: Any, place: Any, name: str = "") -> Any:
    """A field of a struct, as `IRBuilder.extract_value` gives it; what was just put there is not
    asked for again."""
    wanted = list(place) if isinstance(place, (list, tuple)) else [place]
    while isinstance(whole, llvm.instructions.InsertValue):
        given = list(whole.indices)
        if given == wanted[: len(given)]:
            whole, wanted = whole.value, wanted[len(given) :]
            if not wanted:
                return whole
        elif wanted == given[: len(wanted)]:
            break  # a part of what is wanted was put there
        else:
            whole = whole.aggregate
    return _extract(builder, whole, wanted, name)


def first_of(context: Any, builder: Any, pair: Any, kind: Any) -> Any:
    return builder.extract_value(pair, 0)


def second_of(context: Any, builder: Any, pair: Any, kind: Any) -> Any:
    return builder.extract_value(pair, 1)
