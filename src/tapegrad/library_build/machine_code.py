"""From the engine's text to machine code: functions by Numba, whose LLVM code is linked and optimised as a whole."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from tapegrad.compilation import jit
from tapegrad.compilation.jit import Lazy
from tapegrad.library_build.glue import Function

__all__ = ["compiled", "defined_by", "emitted", "joined", "optimised", "renamed"]

# Helpers of Numba that no library may need: what they do, it cannot.
FOREIGN = re.compile(r"\b(numba|NRT|_ZN)")


def defined_by(text: str) -> dict[str, Lazy]:
    """All entries and kernels that a text defines, and those for recordings of compiled functions."""
    jit.takes_all_passes = True
    space: dict[str, Any] = {"__name__": "tapegrad_library"}
    exec(compile(text, "<tapegrad engine>", "exec"), space)
    return {name: value for name, value in (space | _parts_of_recordings()).items() if isinstance(value, Lazy)}


def _parts_of_recordings() -> dict[str, Lazy]:
    """What compiled functions need: text of its own modules, since it shares Numba's types with them."""
    from tapegrad.nopython.tape import lane_sweeps, matrix_programs, reverse_sweep, sweep_along, sweep_entries

    modules = lane_sweeps, reverse_sweep, sweep_along, matrix_programs
    found = [lazy for module in modules for lazy in vars(module).values() if isinstance(lazy, Lazy)]
    return {sweep_entries.PREFIX + lazy.function.__name__: lazy for lazy in found}


def compiled(found: dict[str, Lazy]) -> tuple[list[Function], list[str]]:
    """These entries and kernels, and their LLVM code."""
    import numba

    functions, codes = [], []
    for name, lazy in found.items():
        made: Any = numba.cfunc(jit.typed(lazy.signature), error_model="numpy")(lazy.function)
        functions.append(Function(name, lazy.signature, made.native_name, lazy.is_entry, lazy.nogil))
        codes.append(made.inspect_llvm())
    return functions, codes


def renamed(codes: Sequence[str], functions: Sequence[Function], names: Sequence[str]) -> list[str]:
    """Code whose functions have other names, which do not depend on the process that made it."""
    pairs = zip(codes, functions, names, strict=True)
    return [code.replace(f"@{function.symbol}(", f"@{name}(") for code, function, name in pairs]


def joined(codes: Sequence[str], exported: Collection[str]) -> Any:
    """LLVM's module of a whole, in which all symbols but these are internal."""
    import llvmlite.binding as llvm

    whole = llvm.parse_assembly(codes[0])
    for code in codes[1:]:
        whole.link_in(llvm.parse_assembly(code))
    _hide(whole, exported)
    return whole


def optimised(codes: Sequence[str], processor: str, exported: Collection[str], features: str = "") -> tuple[Any, Any]:
    """A whole, and what emits it."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple = llvm.Target.from_default_triple()
    machine = triple.create_target_machine(cpu=processor, features=features, opt=3, reloc="pic", codemodel="default")
    whole = joined(codes, exported)
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(whole, passes)
    return whole, machine


def _hide(whole: Any, exported: Collection[str]) -> None:
    for thing in (*whole.functions, *whole.global_variables):
        if not thing.is_declaration and thing.name not in exported:
            thing.linkage = "internal"


def emitted(whole: Any, machine: Any, others: Sequence[str], exported: Collection[str]) -> bytes:
    """Position-independent machine code of a module, and of LLVM code that was optimised before.

    Raises
    ------
    RuntimeError
        If the code needs what only Numba has.
    """
    import llvmlite.binding as llvm

    for other in others:
        whole.link_in(llvm.parse_assembly(other))
    _hide(whole, exported)
    needed = [f.name for f in whole.functions if f.is_declaration and not f.name.startswith("llvm.")]
    if any(map(FOREIGN.search, needed)):
        raise RuntimeError(f"the engine's code needs {' '.join(filter(FOREIGN.search, needed))}, which only Numba has")
    return bytes(machine.emit_object(whole))
