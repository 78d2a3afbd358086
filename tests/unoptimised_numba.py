"""Compiled code without LLVM's optimiser, for tests that compile hundreds of functions and call each with a few numbers.

Optimising and selecting instructions is a third of the time of such tests, and changes neither a bit of a result nor what is
recorded. Of the rest, a third goes to small things of Numba's, which are done as they are there, but quicker (`quicker_numba`):
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
from numba.core.codegen import CPUCodeLibrary
from quicker_numba import patch_numba

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


_room = 5_000_000  # objects that may be left where they are: 1 GB


@contextlib.contextmanager
def _quicker() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        patch_numba(patch.setattr)
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
