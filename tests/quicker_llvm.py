"""The text of LLVM code that Numba writes in Python, as llvmlite writes it, but quicker; and no more of it than is used.

Most of what compiling leaves behind are the objects that this text is written from: they refer to each other in circles, and a
collection that looks for millions of them takes seconds. Here they are taken apart when the text is written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from llvmlite import ir
from llvmlite.ir import instructions as of
from llvmlite.ir import types, values
from numba.core.codegen import CPUCodeLibrary
from numba.core.runtime.context import NRTContext

__all__ = ["patch_llvm"]

_add_ir_module = CPUCodeLibrary.add_ir_module


def _added(self: Any, module: Any) -> None:
    """What comes after is in other modules."""
    _add_ir_module(self, module)
    for function in module.functions:
        for block in function.blocks:
            block.instructions, block.terminator = [], None
        function.blocks, function.args, function.return_value = [], (), None
    module.globals.clear()


def _more(self: Any) -> str:
    return self._stringify_metadata(leading_comma=True) if self.metadata else ""


def _extract_value(self: Any) -> str:
    indices = ", ".join(map(str, self.indices))
    return f"{self.get_reference()} = extractvalue {self.aggregate.type} {self.aggregate.get_reference()}, {indices} {_more(self)}"


def _insert_value(self: Any) -> str:
    whole, item, indices = self.aggregate, self.value, ", ".join(map(str, self.indices))
    parts = f"{whole.type} {whole.get_reference()}, {item.type} {item.get_reference()}, {indices}"
    return f"{self.get_reference()} = insertvalue {parts} {_more(self)}"


def _aligned(self: Any) -> str:
    return "" if self.align is None else f", align {self.align:d}"


def _load(self: Any) -> str:
    (place,) = self.operands
    return f"{self.get_reference()} = load {self.type}, {place.type} {place.get_reference()}{_aligned(self)}{_more(self)}"


def _store(self: Any) -> str:
    value, place = self.operands
    return f"store {value.type} {value.get_reference()}, {place.type} {place.get_reference()}{_aligned(self)}{_more(self)}"


def _place(self: Any) -> str:
    indices = ", ".join([f"{i.type} {i.get_reference()}" for i in self.indices])
    kind = "getelementptr inbounds" if self.inbounds else "getelementptr"
    whole = self.pointer
    return f"{self.get_reference()} = {kind} {self.source_etype}, {whole.type} {whole.get_reference()}, {indices} {_more(self)}"


def _comparison(self: Any) -> str:
    one, other = self.operands
    kind = " ".join([self.opname, *self.flags, self.op])
    return f"{self.get_reference()} = {kind} {one.type} {one.get_reference()}, {other.get_reference()} {_more(self)}"


def _cast(self: Any) -> str:
    (value,) = self.operands
    return f"{self.get_reference()} = {self.opname} {value.type} {value.get_reference()} to {self.type} {_more(self)}"


def _branch(self: Any) -> str:
    operands = ", ".join([f"{x.type} {x.get_reference()}" for x in self.operands])
    return f"{self.opname} {operands}{_more(self)}"


TEXTS: dict[type, Callable[[Any], str]] = {
    of.ExtractValue: _extract_value,
    of.InsertValue: _insert_value,
    of.LoadInstr: _load,
    of.StoreInstr: _store,
    of.GEPInstr: _place,
    of.ICMPInstr: _comparison,
    of.FCMPInstr: _comparison,
    of.CastInstr: _cast,
    of.Branch: _branch,
    of.ConditionalBranch: _branch,
}


def _lines(self: Any, buffer: list[str]) -> None:
    buffer.append(f"{self._format_name()}:\n")
    for instruction in self.instructions:
        text = TEXTS.get(type(instruction), str)
        buffer.append(f"  {text(instruction).rstrip()}\n")


def _reference(self: Any) -> str:
    name = self._name
    if "\\" in name or '"' in name:
        name = name.replace("\\", "\\5c").replace('"', "\\22")
    return f'{self.name_prefix}"{name}"'


def _set_name(self: Any, name: str) -> None:
    """One that no other value of the scope has."""
    scope = self.parent.scope
    used, numbers, base = scope._useset, scope._basenamemap, name
    if name in used and not self.deduplicate_name:
        scope.register(name)  # which raises
    while name in used:
        numbers[base] = number = numbers[base] + 1
        name = f"{base}.{number}"
    used.add(name)
    self._name = name


def _pointer(self: Any) -> str:
    """LLVM's pointers have no types any more, and reads `double*` as this; not kept, so that there is never a `ptr*`."""
    return "ptr" if self.addrspace == 0 else f"ptr addrspace({self.addrspace})"


@functools.cache
def _counted(manager: Any, kind: Any) -> bool:
    """Whether there are references to count anywhere in a value."""
    model = manager[kind]
    return bool(model.has_nrt_meminfo()) or any(_counted(manager, inner) for inner, _ in model.traverse(None))


def _found(manager: Any, builder: Any, kind: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    model = manager[kind]
    if model.has_nrt_meminfo():
        yield kind, model.get_nrt_meminfo(builder, value)
    for inner, part in model.traverse(builder):
        if _counted(manager, inner):
            yield from _found(manager, builder, inner, part(value))


def _get_meminfos(self: Any, builder: Any, kind: Any, value: Any) -> list[tuple[Any, Any]]:
    """Numba takes values apart to the last number, and what is not counted the optimiser throws away: a quarter of all code."""
    return list(_found(self._context.data_model_manager, builder, kind, value))


def patch_llvm(put: Callable[[Any, str, Any], None]) -> None:
    """Put these in the place of llvmlite's and Numba's own."""
    put(CPUCodeLibrary, "add_ir_module", _added)
    put(NRTContext, "get_meminfos", _get_meminfos)
    put(ir.Block, "descr", _lines)
    put(values.NamedValue, "_get_reference", _reference)
    put(values.NamedValue, "_set_name", _set_name)
    put(types._TypedPointerType, "__str__", _pointer)
