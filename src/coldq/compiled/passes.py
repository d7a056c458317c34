"""What of Numba's compiler kernels need, which is about half of it.

Kernels are plain loops over numbers: no closures, no literals to unroll, no array expressions, no
memory to count. The passes for these find nothing in them, and each walks the whole function.
"""

# pyright: reportPrivateImportUsage=false

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

from llvmlite.ir import IRBuilder
from numba.core import (
    base,
    cgutils,
    event,
    ssa,
    transforms,
    typed_passes,
    typeinfer,
    types,
    untyped_passes,
)
from numba.core.codegen import CPUCodeLibrary, JITCPUCodegen
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager
from numba.core.cpu import CPUContext
from numba.core.errors import NumbaError
from numba.core.interpreter import Interpreter
from numba.core.postproc import PostProcessor
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.core.typeinfer import CallConstraint, ConstraintNetwork
from numba.core.typing import context as typing

from coldq.compiled import lowering
from coldq.compiled.kernel import PART

PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.GenericRewrites,  # constant indices and powers
    untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    lowering.Lowered,
    typed_passes.NoPythonBackend,
)


class Passes(CompilerBase):
    """Numba's compiler with these passes alone."""

    def define_pipelines(self) -> list[PassManager]:
        manager = PassManager("kernel")
        for step in PASSES:
            manager.add_pass(step, step.__name__)
        manager.finalize()
        return [manager]


@contextmanager
def text_alone() -> Iterator[None]:
    """Keep Numba from optimising each of a kernel's parts and from making machine code of them.

    Nobody runs a part, and the whole is optimised in the end: parts take most of the time, since
    what they call is optimised again in each of them. The lock of Numba's compiler is held, so
    that nobody else is kept from it.
    """
    target: Any = cpu_target
    target.target_context.refresh()
    noted, rewritten = _where_named(ssa._run_block_analysis, ssa._run_block_rewrite)
    instead: dict[tuple[Any, str], Any] = {
        (CPUCodeLibrary, "_optimize_final_module"): lambda self: None,
        (JITCPUCodegen, "_add_module"): lambda self, module: None,
        # Any function does, but Numba keeps one of its own for each.
        (CPUContext, "get_executable"): lambda self, library, fndesc, env: [].append,
        (Interpreter, "post_process"): _as_it_is(Interpreter.post_process),
        (PostProcessor, "run"): _tidied(PostProcessor.run),
        (base, "_has_loc"): cache(base._has_loc),
        (base.BaseContext, "get_abi_sizeof"): _sized_once(base.BaseContext.get_abi_sizeof),
        # Nobody listens to how long LLVM is kept, a hundred thousand times.
        (event, "start_event"): lambda *details, **more: None,
        (event, "end_event"): lambda *details, **more: None,
        # Nor is there a user who would want to know where in a kernel an error is.
        (typeinfer, "new_error_context"): lambda *what, **more: nullcontext(),
        (ConstraintNetwork, "propagate"): _without_warnings,
        # All is imported that would register more.
        (base.BaseContext, "refresh"): _as_registered,
        (typing.BaseContext, "refresh"): lambda self: None,
        (ssa, "_run_block_analysis"): noted,
        (ssa, "_run_block_rewrite"): rewritten,
        (IRBuilder, "extract_value"): lowering.field_of,
        (base.BaseContext, "pair_first"): lowering.first_of,
        (base.BaseContext, "pair_second"): lowering.second_of,
        (base, "user_function"): _never_failing(base.user_function),
        (CallConstraint, "resolve"): _when_new(CallConstraint.resolve),
        (types.BaseFunction, "get_call_type"): _remembered(types.BaseFunction.get_call_type),
        (types.Dispatcher, "get_call_type"): _for_any_number(types.Dispatcher.get_call_type),
    }
    before = {place: getattr(*place) for place in instead}
    for place, idle in instead.items():
        setattr(*place, idle)
    try:
        yield
    finally:
        for place, own in before.items():
            setattr(*place, own)


# Functions of Numba's own, which others will call as well, are compiled in the usual way.


def _as_it_is(post_process: Any) -> Any:
    """Parts of kernels have no `with`, no ``**`` in calls and no dictionaries to look for."""

    def as_it_is(self: Interpreter, peepholes: Any, func_ir: Any) -> Any:
        ours = self.func_id.func_qualname.startswith(PART)
        return func_ir if ours else post_process(self, peepholes, func_ir)

    return as_it_is


def _tidied(run: Any) -> Any:
    """Their blocks are put in order; how long variables live matters to objects alone."""

    def tidied(self: PostProcessor, *details: Any, **more: Any) -> None:
        if self.func_ir.func_id.func_qualname.startswith(PART):
            self.func_ir.blocks = transforms.canonicalize_cfg(self.func_ir.blocks)
            self.func_ir.generator_info = None
        else:
            run(self, *details, **more)

    return tidied


def _sized_once(get_abi_sizeof: Any) -> Any:
    """The bytes of a type, asked for once: LLVM reads a module for each answer."""
    known: dict[Any, int] = {}

    def sized_once(self: Any, kind: Any) -> int:
        if kind not in known:
            known[kind] = get_abi_sizeof(self, kind)
        return known[kind]

    return sized_once


def _never_failing(user_function: Any) -> Any:
    """Calls of a kernel's parts: they raise nothing, so that nobody asks afterwards."""

    def never_failing(fndesc: Any, libs: Any) -> Any:
        usual = user_function(fndesc, libs)
        if not fndesc.qualname.startswith(PART):
            return usual

        def call(context, builder, sig, args):
            part, convention = context.declare_function(builder.module, fndesc), context.call_conv
            place, trouble = (
                cgutils.alloca_once(builder, argument.type.pointee) for argument in part.args[:2]
            )
            packed = convention._get_arg_packer(fndesc.argtypes).as_arguments(builder, args)
            builder.call(part, [place, trouble, *packed])
            return context.get_returned_value(builder, fndesc.restype, builder.load(place))

        call.signature, call.libs = usual.signature, usual.libs  # type: ignore[attr-defined]
        return call

    return never_failing


def _when_new(resolve: Any) -> Any:
    """What a call gives is found out when the types of its arguments are new, not every round."""

    def when_new(self: Any, typeinfer: Any, typevars: Any, fnty: Any) -> None:
        if not self.kws and self.vararg is None:
            asked = fnty, *(typevars[argument.name].get() for argument in self.args)
            if getattr(self, "asked", None) == asked:
                return
            self.asked = asked
        resolve(self, typeinfer, typevars, fnty)

    return when_new


def _as_registered(self: Any) -> None:
    """Only that counts which typing has just registered: operations of kernels."""
    for registry in list(self._registries):
        self.install_registry(registry)


def _without_warnings(self: Any, typeinfer: Any) -> list[Any]:
    """A round of type inference; kernels give no warnings to be listened for at each statement."""
    errors = []
    for constraint in self.constraints:
        try:
            constraint(typeinfer)
        except NumbaError as error:
            errors.append(error)
    return errors


def _where_named(analyse: Any, rewrite: Any) -> tuple[Any, Any]:
    """A variable that gets new names is looked for in those blocks alone that name it."""
    found: dict[str, Any] = {}

    def noted(blocks: Any, states: Any, handler: Any) -> None:
        analyse(blocks, states, handler)
        found.update(states)

    def rewritten(blocks: Any, states: Any, handler: Any) -> Any:
        name = states["varname"]
        places = {label for _, label in found["defs"][name]} | found["uses"][name]
        concerned = {label: block for label, block in blocks.items() if label in places}
        return {**blocks, **rewrite(concerned, states, handler)}

    return noted, rewritten


_known_calls: dict[Any, Any] = {}


def _remembered(get_call_type: Any) -> Any:
    """What an operation gives for arguments of such types, looked for once for functions that are
    compiled alike: every round of inference asks again, and Numba then tries one by one all that
    it could mean."""
    ways: dict[int, Any] = {}

    def remembered(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws:
            return get_call_type(self, context, args, kws)
        flags = ConfigStack.top_or_none()  # of the function that is compiled
        if id(flags) not in ways:
            ways[id(flags)] = repr(flags), flags
        asked = id(self), ways[id(flags)][0], args
        if asked not in _known_calls:
            # The objects as well, here and above, so that no other gets their ids.
            _known_calls[asked] = get_call_type(self, context, args, kws), self
        return _known_calls[asked][0]

    return remembered


def _for_any_number(get_call_type: Any) -> Any:
    """A function called with a number that is written there is compiled for any such number, not
    once more for each."""

    def for_any_number(self: Any, context: Any, args: Any, kws: Any) -> Any:
        return get_call_type(self, context, tuple(types.unliteral(kind) for kind in args), kws)

    return for_any_number
