"""Numba's own functions as parts of the functions that call them.

Numba optimises each of them by itself and makes machine code and two wrappers for it, although it is linked into its callers,
which are optimised again, and nobody calls it from Python: a third of the time of tests that compare many functions. These use the
fixture; elsewhere all is compiled as Numba does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from numba.core.codegen import JITCodeLibrary
from numba.core.environment import lookup_environment
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import NativeLowering

from tapegrad.nopython.numba_interface.linking import ENVIRONMENT, OptimisedOnce, Part, PartLower

__all__ = ["numbas_functions_are_linked"]

_lower = NativeLowering.run_pass


class _Whole(OptimisedOnce):
    """A function that may be called, and all that is linked into it."""

    _environments: tuple[Any, ...] = ()

    def _finalize_final_module(self) -> None:
        super()._finalize_final_module()
        names = [v.name for v in self._final_module.global_variables if v.name.startswith(ENVIRONMENT)]
        known = {name: environment for name in names if (environment := lookup_environment(name)) is not None}
        self._environments = tuple(known.values())  # the code has their addresses
        for name, environment in known.items():
            self._codegen.set_env(name, environment)


class _PartLowering(NativeLowering):
    lowering_class = PartLower


_linking = False


def _lowered(self: Any, state: Any) -> Any:
    if state.library is not None:
        if _linking and type(state.library) is JITCodeLibrary:  # what Numba writes in Python while it lowers a function
            state.library.__class__ = Part
        return _lower(self, state)
    # What is compiled for a caller.
    is_part = _linking and len(ConfigStack()) > 1 and state.func_id.modname.startswith("numba.")
    state.library = (Part if is_part else _Whole)(state.targetctx.codegen(), state.func_id.func_qualname)
    state.library.enable_object_caching()
    return _lower(_PartLowering() if is_part else self, state)


@pytest.fixture(scope="module", autouse=True)
def numbas_functions_are_linked() -> Iterator[None]:
    """In the tests of a module; what calls one of these functions later gets it in the same way."""
    global _linking
    NativeLowering.run_pass, _linking = _lowered, True
    yield
    _linking = False
