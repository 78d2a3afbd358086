"""How Numba compiles the engine: in as many passes as its functions need, and parts of an entry as a part of it only.

Of a function that others call Numba makes machine code of its own, with all that it calls, before it is linked into its
callers, which are optimised once more. Nobody calls the engine's parts by themselves, so their code is linked as it is and
optimised with each entry, once: Numba optimises function by function, then the whole for the sake of its reference counts, of
which the engine has none, and then the whole again. The passes that are left out serve closures, literals, raising and array
expressions, of which the engine has none; they take a fifth.
"""

from __future__ import annotations

from typing import Any, ClassVar

from numba.core import codegen, compiler, typed_passes, types, untyped_passes
from numba.core.compiler_machinery import PassManager, register_pass

from tapegrad.compilation.compiler_room import with_few_collections

__all__ = ["Compiler", "PartCompiler"]


class _NoEnvironments:
    """Where a part's environment would be set; the engine raises nothing and has no objects, so it uses none."""

    @staticmethod
    def set_env(name: str, environment: object) -> None:
        pass


class _OptimisedOnce(codegen.JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """Code of an entry or a kernel, with all that it calls."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _Part(_OptimisedOnce):
    """Code that is linked into others, and never run by itself."""

    codegen = _NoEnvironments()

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            if hasattr(self, "_reload_init"):  # newer than Numba 0.61
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0


class _Typing:
    """Numba's typing context, which remembers what a function gives for arguments of some types.

    Numba resolves each use of an operator anew.
    """

    _signatures: ClassVar[dict[Any, Any]] = {}

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        if isinstance(func, types.Dispatcher):  # not anew for each number that is written as one
            args = tuple(map(types.unliteral, args))
        if kws or type(func) is not types.Function:  # what else is called may be compiled on the way
            return self._context.resolve_function_type(func, args, kws)
        key = func, tuple(args)
        found = self._signatures.get(key)
        if found is None:
            found = self._signatures[key] = self._context.resolve_function_type(func, args, kws)
        return found


@register_pass(mutates_CFG=True, analysis_only=False)
class _TypeInference(typed_passes.NopythonTypeInference):  # type: ignore[misc, unused-ignore]
    _name = "tapegrad_type_inference"

    def run_pass(self, state: Any) -> bool:
        context, state.typingctx = state.typingctx, _Typing(state.typingctx)
        try:
            done: bool = super().run_pass(state)
        finally:
            state.typingctx = context
        return done


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(typed_passes.NativeLowering):  # type: ignore[misc, unused-ignore]
    _name = "tapegrad_engine_lowering"
    library_class: type[codegen.JITCodeLibrary] = _OptimisedOnce

    def run_pass(self, state: Any) -> bool:
        state.library = self.library_class(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        done: bool = super().run_pass(state)
        return done


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(_Lowering):
    _name = "tapegrad_engine_part_lowering"
    library_class = _Part


class Compiler(compiler.CompilerBase):  # type: ignore[misc, unused-ignore]
    """For entries and kernels."""

    lowering: Any = _Lowering

    def compile_extra(self, func: Any) -> Any:
        """Compile an entry, which takes two seconds at most, with all that it calls."""
        return with_few_collections(super().compile_extra, func)

    def define_pipelines(self) -> list[Any]:
        """The passes, in their order."""
        passes = PassManager("tapegrad")
        for one in (
            untyped_passes.TranslateByteCode,
            untyped_passes.FixupArgs,
            untyped_passes.IRProcessing,
            untyped_passes.RewriteSemanticConstants,
            untyped_passes.DeadBranchPrune,
            untyped_passes.GenericRewrites,
            untyped_passes.ReconstructSSA,
            _TypeInference,
            typed_passes.PreLowerStripPhis,
            typed_passes.IRLegalization,
            self.lowering,
            typed_passes.NoPythonBackend,
        ):
            passes.add_pass(one, one.__name__)
        passes.finalize()
        return [passes]


class PartCompiler(Compiler):
    """For what they call."""

    lowering = _PartLowering

    def compile_extra(self, func: Any) -> Any:
        """Compile it while its caller is compiled."""
        return compiler.CompilerBase.compile_extra(self, func)
