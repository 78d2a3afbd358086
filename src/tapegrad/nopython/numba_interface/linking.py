"""A recording form is one piece of machine code: what it calls is linked into it, and optimised and translated there, once.

Numba optimises every function by itself, and writes machine code and two wrappers for it, although all of it goes into its callers
once more; that was half of the time that a derivative took to compile. The functions of a recording are called by each other only.

Names of compiled functions end in a number that Numba counts up anew in every process, and its linker takes the first of two
functions with one name. So in what is kept on disk, and linked beside what other processes kept, all functions but the one that
Python calls are without a name, and the number of each is a random one: environments, which hold what errors say, keep theirs.
"""

from __future__ import annotations

import functools
import inspect
import random
import weakref
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numba
import numba.core.extending as extending
from numba.core import lowering, typed_passes, types, untyped_passes
from numba.core.codegen import JITCodeLibrary, RuntimeLinker
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.environment import lookup_environment
from numba.core.errors import TypingError
from numba.core.targetconfig import ConfigStack

from tapegrad.nopython.numba_interface.borrowing import BorrowingLower
from tapegrad.nopython.types.variable import has_complex, present

__all__ = [
    "ENVIRONMENT",
    "DriveCompiler",
    "LinkedCompiler",
    "OptimisedOnce",
    "Part",
    "PartCompiler",
    "PartLower",
    "overload",
    "part",
    "register_jitable",
]

ENVIRONMENT = "_ZN08NumbaEnv"  # what the names of environments begin with
CIRCLE = RuntimeLinker.PREFIX
_numbers = random.SystemRandom()


_parts: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()  # by the names of their functions


class _WithoutEnvironment:
    """Takes the environment of a function that is not in memory."""

    def set_env(self, env_name: str, env: Any) -> None:
        """The code that it is linked into gets it."""


class OptimisedOnce(JITCodeLibrary):  # type: ignore[misc]
    """Code that is optimised as a whole only, and not function by function before: a tenth of the time, and the same result."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """As Numba's, but each function that it reaches is linked once: those that others link have nothing of what they call."""
        self._raise_if_finalized()
        libraries = _reached(self)
        if hasattr(self, "_reload_init"):  # newer than Numba 0.61
            for library in libraries:
                self._reload_init.update(library._reload_init)
        _link(self._final_module, libraries)
        self._optimize_final_module()
        self._final_module.verify()
        self._finalize_final_module()


def _reached(library: Any) -> list[Any]:
    """What it links, and what those link that are parts: of others, the code has all that they call."""
    found: dict[Any, None] = {}
    waiting = [library]
    while waiting:
        for other in waiting.pop()._linking_libraries:
            if other not in found:
                found[other] = None
                if isinstance(other, Part):
                    waiting.append(other)
    return list(found)


def _link(module: Any, libraries: list[Any]) -> None:
    """Put the code of libraries into a module, those parts of it that something calls."""
    parts = [library.own_module.clone() for library in libraries if isinstance(library, Part)]
    # Two by two: LLVM looks through all of a module for each one that is linked into it.
    while len(parts) > 1:
        for one, other in zip(parts[::2], parts[1::2], strict=False):
            one.link_in(other)
        parts = parts[::2]
    for one in parts:
        for function in one.functions:
            if function.linkage == llvm.Linkage.weak_odr:
                function.linkage = llvm.Linkage.linkonce_odr  # which is left out where nothing calls it
        module.link_in(one)
    for library in libraries:
        if not isinstance(library, Part):
            module.link_in(library._get_module_for_linking(), preserve=True)


class Part(OptimisedOnce):
    """A function that others link."""

    _with_all: Any = None

    @property
    def codegen(self) -> Any:
        return _WithoutEnvironment()

    def finalize(self) -> None:
        """What it calls is linked where it is itself: here it would be copied once for each level of calls."""
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True
        for function in self._final_module.functions:
            if function.linkage == llvm.Linkage.external and not function.is_declaration:
                _parts[function.name] = self
                function.linkage = llvm.Linkage.weak_odr

    @property
    def own_module(self) -> Any:
        """Its code, without that of what it calls."""
        self._ensure_finalized()
        return self._final_module

    def _get_module_for_linking(self) -> Any:
        """Its code and that of what it calls, for a library that links one by one."""
        if self._with_all is None:
            self._with_all = self.own_module.clone()
            for function in self._with_all.functions:
                if function.linkage == llvm.Linkage.weak_odr:
                    function.linkage = llvm.Linkage.linkonce_odr
            _link(self._with_all, _reached(self))
        return self._with_all

    def get_pointer_to_function(self, name: str) -> int:
        """None: there is no machine code."""
        self._ensure_finalized()
        return 0


class Whole(OptimisedOnce):
    """A function that Python calls, and all that is linked into it."""

    _environments: tuple[Any, ...] = ()

    def _optimize_final_module(self) -> None:
        self._close_circles()
        for function in self._final_module.functions:
            if function.linkage == llvm.Linkage.linkonce_odr:
                function.linkage = llvm.Linkage.private  # an internal name would still be found by later code
        super()._optimize_final_module()

    def _close_circles(self) -> None:
        """Functions that call each other in a circle do so through pointers, which Numba sets when both are in memory."""
        module = self._final_module
        seen: set[str] = set()
        while wanted := {v.name for v in module.global_variables if v.name.startswith(CIRCLE)} - seen:
            seen |= wanted
            for pointer in wanted:
                name = pointer.removeprefix(CIRCLE)
                part = _parts.get(name)
                if part is None:
                    continue  # a function that Numba has in memory
                text = f'\n@"{pointer}" = global ptr @"{name}"\ndeclare void @"{name}"()\n'
                module.link_in(llvm.parse_assembly(str(self._codegen._create_empty_module(name)) + text))
                module.get_global_variable(pointer).linkage = llvm.Linkage.private
                module.link_in(part._get_module_for_linking(), preserve=True)

    def _finalize_final_module(self) -> None:
        super()._finalize_final_module()
        names = [v.name for v in self._final_module.global_variables if v.name.startswith(ENVIRONMENT)]
        known = {name: lookup_environment(name) for name in names}
        self._environments = tuple(known.values())  # the code has their addresses
        for name, environment in known.items():
            if environment is not None:
                self._codegen.set_env(name, environment)

    @property
    def is_closed(self) -> bool:
        """Whether all that it calls is in it."""
        return not any(v.name.startswith(CIRCLE) and v.is_declaration for v in self._final_module.global_variables)


class PartLower(BorrowingLower):
    """Python does not call it."""

    def create_cpython_wrapper(self, release_gil: bool = False) -> None:
        """None."""

    def create_cfunc_wrapper(self) -> None:
        """None."""


class WholeLower(lowering.Lower):  # type: ignore[misc]
    """C does not call it."""

    def create_cfunc_wrapper(self) -> None:
        """None."""


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(typed_passes.NativeLowering):  # type: ignore[misc]
    """Code of a function that others link."""

    _name = "tapegrad_part_lowering"
    lowering_class: Any = PartLower
    library_class: type[JITCodeLibrary] = Part

    def run_pass(self, state: Any) -> bool:
        state.library = self.library_class(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class WholeLowering(PartLowering):
    """Code of a function that Python calls."""

    _name = "tapegrad_whole_lowering"
    lowering_class = WholeLower
    library_class = Whole


class LinkedCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's pipeline with another last step, and other names."""

    # Numba compiles its own functions anew for callers with and without a wrapper. There is none in either case, so with the
    # option of the caller, what the user's function had Numba compile is found, not compiled again.
    takes_over = False

    def _compile_bytecode(self) -> Any:
        outer = ConfigStack.top_or_none()
        if outer is not None and self.takes_over:
            self.state.flags.no_cpython_wrapper = outer.no_cpython_wrapper
        identity = self.state.func_id
        identity.unique_id = _numbers.getrandbits(63)
        identity.unique_name = f"{identity.func_qualname}${identity.unique_id}"
        return super()._compile_bytecode()

    def add_typed(self, pipeline: PassManager) -> list[Any]:
        """The passes after those on untyped code."""
        builder = DefaultPassBuilder
        pipeline.passes.extend(builder.define_typed_pipeline(self.state).passes)
        for entry, description in builder.define_nopython_lowering_pipeline(self.state).passes:
            pipeline.add_pass(PartLowering if entry is typed_passes.NativeLowering else entry, description)
        pipeline.finalize()
        return [pipeline]


class PartCompiler(LinkedCompiler):
    """For functions of ours that recordings call."""

    takes_over = True

    def define_pipelines(self) -> list[Any]:
        pipeline = PassManager("tapegrad_part")
        pipeline.passes.extend(DefaultPassBuilder.define_untyped_pipeline(self.state).passes)
        return self.add_typed(pipeline)


class DriveCompiler(LinkedCompiler):
    """For functions that Python calls, and which call recordings."""

    def define_pipelines(self) -> list[Any]:
        pipeline = PassManager("tapegrad_drive")
        for one in (
            untyped_passes.TranslateByteCode,
            untyped_passes.FixupArgs,
            untyped_passes.IRProcessing,
            untyped_passes.ReconstructSSA,
            typed_passes.NopythonTypeInference,
            typed_passes.PreLowerStripPhis,
            typed_passes.IRLegalization,
            WholeLowering,
            typed_passes.NoPythonBackend,
        ):  # of the others there is nothing for
            pipeline.add_pass(one, one.__name__)
        pipeline.finalize()
        return [pipeline]


def part(function: Any = None, **options: Any) -> Any:
    """`numba.njit` for what recordings alone call. Python cannot call it: there is no wrapper for that."""
    compiled: Any = numba.njit(pipeline_class=PartCompiler, **options)
    return compiled if function is None else compiled(function)


@extending.intrinsic  # type: ignore[untyped-decorator]
def not_none(typingctx: Any, value: Any) -> Any:
    """What may be None, where it is not; raises where it is."""

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        found = context.cast(builder, args[0], value, sig.return_type)
        context.nrt.incref(builder, sig.return_type, found)
        return found

    return present(value)(value), write


def _where_present(function: Any, define: Any, given: dict[str, Any]) -> Any:
    """An implementation that calls the function without the possibility of None."""
    optional = {name for name, kind in given.items() if isinstance(kind, types.Type) and present(kind) is not kind}
    parameters = inspect.signature(define).parameters.values()
    taken = ", ".join(str(p.replace(annotation=inspect.Parameter.empty)) for p in parameters)
    passed = ", ".join(f"not_none({p.name})" if p.name in optional else p.name for p in parameters)
    space = {"function": function, "not_none": not_none}
    exec(f"def impl({taken}):\n    return function({passed})", space)
    return space["impl"]


def overload(function: Any, complex_too: bool = False, **options: Any) -> Callable[[Any], Any]:
    """`numba.extending.overload` for what recordings alone call; most of it is for real variables."""
    compiled: Any = {"pipeline_class": PartCompiler}
    made: Callable[[Any], Any] = extending.overload(function, jit_options=compiled, **options)

    def checking(define: Any) -> Any:
        @functools.wraps(define)
        def checked(*args: Any, **kwargs: Any) -> Any:
            kinds = [kind for kind in (*args, *kwargs.values()) if isinstance(kind, types.Type)]
            if any(present(kind) is not kind for kind in kinds):
                return _where_present(function, define, inspect.signature(define).bind(*args, **kwargs).arguments)
            if not complex_too and any(map(has_complex, kinds)):
                raise TypingError(
                    f"[tapegrad] {function.__name__.strip('_')} of complex numbers that depend on the inputs is not recorded; "
                    "write it with arithmetic on numbers, or with their real and imaginary parts"
                )
            return define(*args, **kwargs)

        made(checked)
        return define

    return checking


def register_jitable(function: Callable[..., Any]) -> Callable[..., Any]:
    """`numba.extending.register_jitable` for what recordings alone call."""
    made: Callable[..., Any] = extending.register_jitable(pipeline_class=PartCompiler)(function)
    return made
