"""Compiled code without LLVM's optimiser, for tests that compile hundreds of functions and call each with a few numbers.

Optimising and selecting instructions is a third of the time of such tests, and changes neither a bit of a result nor what is
recorded. Of the rest, a quarter goes to three small things of Numba's, which are done here as they are there, but quicker:
`numba_is_quicker` is for tests that need the optimiser.

Examples, whole optimisation scripts, tapes, kept derivatives and all of the stress suite are compiled as users have it.
"""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Iterator
from typing import Any

import llvmlite.binding as llvm
import pytest
from numba.core import ir
from numba.core.base import BaseContext
from numba.core.codegen import CPUCodeLibrary
from numba.core.targetconfig import TargetConfig
from numba.core.types.abstract import _TypeMetaclass

from tapegrad.compilation import jit
from tapegrad.tape.tape import TAPE

__all__ = ["code_is_not_optimised", "numba_is_quicker"]

_finalize = CPUCodeLibrary._finalize_final_module
_OWN = {name: getattr(CPUCodeLibrary, name) for name in ("_optimize_final_module", "_optimize_functions", "_finalize_final_module")}
_cached = jit._cached


@functools.cache
def _machine(codegen: Any) -> Any:
    """Numba's target, selecting instructions as they come."""
    options = {"opt": 0}
    codegen._customize_tm_options(options)
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(**options)


def _inlined_where_it_must_be(self: Any) -> None:
    builder = llvm.create_pass_builder(_machine(self._codegen), llvm.create_pipeline_tuning_options(0))
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()  # these two cost less than to translate what they remove
    passes.add_simplify_cfg_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(self._final_module, builder)


def _left_as_they_are(self: Any, module: Any) -> None:
    module.data_layout = self._codegen._data_layout


def _translated_here(self: Any) -> None:
    """Numba's engine takes what is in its cache of machine code."""
    if self._object_caching_enabled and not self._compiled and self._compiled_object is None:  # else it was kept on disk
        self._set_compiled_object(_machine(self._codegen).emit_object(self._final_module))
    _finalize(self)


def _as_users_have_it(compile_with: Any, compiled: Any) -> Any:
    """Code of the engine, which is kept on disk where the library is older than the sources."""
    with pytest.MonkeyPatch.context() as patch:
        for name, function in _OWN.items():
            patch.setattr(CPUCodeLibrary, name, function)
        return _cached(compile_with, compiled)


@functools.cache
def _holds_variables(kind: type) -> bool:
    return issubclass(kind, (ir.Inst, list, tuple, dict))


def _variables_in(self: Any, value: Any) -> list[ir.Var]:
    """Of an instruction, in order."""
    if isinstance(value, ir.Var):
        return [value]
    if isinstance(value, ir.Inst):
        return value.list_vars()  # type: ignore[no-any-return]
    found: list[ir.Var] = []
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        kind = type(item)
        if kind is ir.Var:
            found.append(item)
        elif _holds_variables(kind):
            found += _variables_in(self, item)
    return found


@functools.cache
def _defaults(kind: Any) -> dict[str, Any]:
    return {name: option.default for name, option in kind.options.items()}


def _values_of_options(self: Any) -> dict[str, Any]:
    return _defaults(type(self)) | self._values


_refresh = BaseContext.refresh
_known: dict[int, int] = {}
_room = 5_000_000  # objects that may be left where they are: 1 GB


def _registered(context: Any) -> int:
    """How much was registered so far."""
    registries = [*context._registries, *context.typing_context._registries]
    return sum(len(items) for registry in registries for items in vars(registry).values() if isinstance(items, list))


def _refreshed(self: Any) -> None:
    """Where something was registered since: Numba looks whenever it makes an array, and has found nothing."""
    place = id(self._registries)  # which the contexts of functions share with the one that they are copies of
    if _known.get(place) != _registered(self):
        _refresh(self)
        _known[place] = _registered(self)


@contextlib.contextmanager
def _quicker() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ir.Inst, "_rec_list_vars", _variables_in)
        patch.setattr(TargetConfig, "values", _values_of_options)
        patch.setattr(BaseContext, "refresh", _refreshed)
        for name in ("__instancecheck__", "__subclasscheck__"):  # Numba's types are abstract classes, but none registers others
            patch.setattr(_TypeMetaclass, name, getattr(type, name))
        patch.setattr(llvm.ffi.lib._lock, "_cblist", [])  # two events for every call of LLVM
        with _few_collections():
            yield patch


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    """What is compiled lives on, and of what does not some million objects may stay, unless there are tensors among them.

    Looking for it and taking it apart, object by object, is a sixth of the time.
    """
    global _room
    thresholds, collections, rows = gc.get_threshold(), _collections(), TAPE.rows
    gc.set_threshold(max(_room, 5_000_000), 10, 10)
    try:
        yield
    finally:
        made, _, _ = gc.get_count()
        if _collections() == collections and made < _room and TAPE.rows <= rows:
            _room -= made
            gc.freeze()
        gc.set_threshold(*thresholds)


def _collections() -> int:
    """How often the youngest objects were looked at so far."""
    return int(gc.get_stats()[0]["collections"])


@pytest.fixture(scope="module", autouse=True)
def numba_is_quicker() -> Iterator[None]:
    """In the tests of a module, with the code that users get."""
    with _quicker():
        yield


@pytest.fixture(scope="module", autouse=True)
def code_is_not_optimised() -> Iterator[None]:
    """In the tests of a module, for all that they compile."""
    with _quicker() as patch:
        patch.setattr(CPUCodeLibrary, "_optimize_final_module", _inlined_where_it_must_be)
        patch.setattr(CPUCodeLibrary, "_optimize_functions", _left_as_they_are)
        patch.setattr(CPUCodeLibrary, "_finalize_final_module", _translated_here)
        patch.setattr(jit, "_cached", _as_users_have_it)
        yield
