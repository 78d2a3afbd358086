"""Memory by name: what the engine's compiled code finds at an address, as types of Numba.

A value of these types is an address and nothing else, so it costs what an integer costs. `Column` is many elements of one kind, one
after the other: ``column[k]``. `Struct` is named fields: ``tape.rows``. The elements of a column and the fields of a struct may be
columns and structs themselves: ``tape.first[slot]``, ``sweep.reached[k].payload``. Small integers are read as int64 and float32
as float64, whatever their width, so that callers are compiled for one set of types only.

Numba's own records could do this, but their arrays carry lengths and strides, and each access checks for negative indices.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import (
    intrinsic,
    lower_builtin,
    lower_cast,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
    unbox,
)

__all__ = ["BYTES", "DOUBLES", "INTS", "SHORTS", "WORDS", "Column", "address_of", "at_address", "from_element", "struct"]

WORD = ir.IntType(64)


class Memory(types.Type):
    """An address. It converts to an integer, and never back unasked."""

    bitwidth = 64

    def can_convert_to(self, typingctx: Any, other: Any) -> Any:
        return Conversion.safe if other == types.int64 else None


class Column(Memory):
    """Elements of one kind, one after the other: numbers, addresses (of columns), or structs that stand there themselves."""

    element: Any

    def __init__(self, element: types.Type) -> None:
        self.element = element
        self.step = element.size if isinstance(element, Struct) else element.bitwidth // 8
        super().__init__(f"Column({element})")


class Struct(Memory):
    """Fields of several kinds: `fields` has their places in bytes and what is there. A column may stand there itself (`inline`).

    An index stands for a word, whatever its field.
    """

    element, step = types.int64, 8

    def __init__(self, name: str, size: int, fields: tuple[tuple[str, int, types.Type, bool], ...]) -> None:
        self.size, self.fields = size, fields
        self.places = {field: (place, kind, inline) for field, place, kind, inline in fields}
        super().__init__(name)

    @property
    def key(self) -> Any:
        """What tells it from others of its name, in an engine of other sources."""
        return self.name, self.size, self.fields


BYTES, SHORTS, INTS = Column(types.uint8), Column(types.uint16), Column(types.int32)
WORDS, DOUBLES = Column(types.int64), Column(types.float64)
NAMED: dict[str, types.Type] = {"Words": WORDS, "Ints": INTS, "Doubles": DOUBLES}  # what signatures of entries and kernels may say


def struct(name: str, fields: dict[str, float], step: int = 0, **kinds: Any) -> Struct:
    """A struct of words (int64), some of which are of another kind; signatures know it by its name.

    Parameters
    ----------
    name : str
    fields : dict
        Name and word of each field; the second half of a word is half a word further.
    step : int, optional
        From one to the next in a column of these, in words.
    **kinds
        What is no int64: a `Column` or `Struct` is an address of one, a number stands there itself, and so does a column in a list.
    """
    listed = []
    for field, word in fields.items():
        kind = kinds.pop(field, types.int64)
        inline = isinstance(kind, list)
        listed.append((field, int(8 * word), kind[0] if inline else kind, inline))
    if kinds:
        raise TypeError(f"{name} has no field {', '.join(kinds)}")
    made = NAMED[name] = Struct(name, 8 * step, tuple(listed))
    return made


def _read_as(kind: types.Type) -> types.Type:
    """The type in which a field or an element is read."""
    if isinstance(kind, types.Float):
        return types.float64
    return types.int64 if isinstance(kind, types.Integer) else kind


@register_model(Column)
@register_model(Struct)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, WORD)


@lower_cast(Column, types.int64)
@lower_cast(Struct, types.int64)
def _cast(context: Any, builder: Any, given: Any, wanted: Any, value: Any) -> Any:
    return value


@unbox(Column)
@unbox(Struct)
def _unbox(kind: Any, obj: Any, compiler: Any) -> Any:
    return compiler.unbox(types.int64, obj)


def _place(builder: Any, memory: Any, address: Any, index: Any) -> Any:
    """Address of an element."""
    distance = builder.mul(ir.Constant(WORD, memory.step), index, flags=["nsw"]) if memory.step > 1 else index
    return builder.add(address, distance, flags=["nsw"])


def _pointer(context: Any, builder: Any, memory: Any, address: Any, index: Any, kind: Any) -> Any:
    """Pointer to one of the elements of a kind that there are at an address."""
    pointer = (WORD if isinstance(kind, Memory) else context.get_value_type(kind)).as_pointer()
    if isinstance(memory, Struct):
        return builder.gep(builder.inttoptr(address, pointer), [index])
    # With the same instruction for columns, LLVM makes vector code of short loops over dimensions: a fifth more of everything.
    return builder.inttoptr(_place(builder, memory, address, index), pointer)


def _load(context: Any, builder: Any, memory: Any, address: Any, index: Any, kind: Any) -> Any:
    value = builder.load(_pointer(context, builder, memory, address, index, kind))
    return context.cast(builder, value, kind, _read_as(kind))


def _store(context: Any, builder: Any, memory: Any, address: Any, index: Any, kind: Any, value: Any) -> None:
    value = context.cast(builder, value, _read_as(kind), kind)
    builder.store(value, _pointer(context, builder, memory, address, index, kind))


@infer_getattr
class _Fields(AttributeTemplate):
    key = Struct

    def generic_resolve(self, kind: Any, name: str) -> Any:
        return _read_as(kind.places[name][1]) if name in kind.places else None


def _number_of(place: int, kind: Any) -> Any:
    """Where a field stands, counted in elements of its kind."""
    return ir.Constant(WORD, place // (kind.bitwidth // 8))


@lower_getattr_generic(Struct)
def _get_field(context: Any, builder: Any, record: Any, address: Any, name: str) -> Any:
    place, kind, inline = record.places[name]
    if inline:
        return builder.add(address, ir.Constant(WORD, place), flags=["nsw"])
    return _load(context, builder, record, address, _number_of(place, kind), kind)


@lower_setattr_generic(Struct)
def _set_field(context: Any, builder: Any, sig: Any, arguments: Any, name: str) -> None:
    place, kind, _inline = sig.args[0].places[name]
    _store(context, builder, sig.args[0], arguments[0], _number_of(place, kind), kind, arguments[1])


@infer_global(operator.getitem)
class _Element(AbstractTemplate):
    def generic(self, arguments: Any, keywords: Any) -> Any:
        if isinstance(arguments[0], Memory):
            return signature(_read_as(arguments[0].element), arguments[0], types.int64)
        return None


@infer_global(operator.setitem)
class _SetElement(AbstractTemplate):
    def generic(self, arguments: Any, keywords: Any) -> Any:
        if not isinstance(arguments[0], Memory) or isinstance(arguments[0].element, Struct):
            return None
        element = _read_as(arguments[0].element)
        if element is types.float64 and not isinstance(arguments[2], types.Float):
            return None  # a slot that was meant for another column would become a float unnoticed
        return signature(types.void, arguments[0], types.int64, element)


@lower_builtin(operator.getitem, Column, types.int64)
@lower_builtin(operator.getitem, Struct, types.int64)
def _get_element(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    memory = sig.args[0]
    if isinstance(memory.element, Struct):
        return _place(builder, memory, *arguments)
    return _load(context, builder, memory, arguments[0], arguments[1], memory.element)


@lower_builtin(operator.setitem, Column, types.int64, types.int64)
@lower_builtin(operator.setitem, Column, types.int64, types.float64)
@lower_builtin(operator.setitem, Struct, types.int64, types.int64)
def _set_element(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    _store(context, builder, sig.args[0], arguments[0], arguments[1], sig.args[0].element, arguments[2])
    return context.get_dummy_value()


@intrinsic
def address_of(context: Any, column: Any, k: Any) -> Any:
    """Address of an element of a column, or of a word of a struct."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return _place(builder, sig.args[0], *arguments)

    return types.int64(column, types.int64), generate


@intrinsic
def from_element(context: Any, column: Any, k: Any) -> Any:
    """A column from its element `k` on, or the words of a struct from word `k` on."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return _place(builder, sig.args[0], *arguments)

    return (WORDS if isinstance(column, Struct) else column)(column, types.int64), generate


def at_address(kind: Any) -> Any:
    """A function that sees what is at an address as memory of a kind."""

    @intrinsic
    def seen(context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
            return arguments[0]

        return kind(types.int64), generate

    return seen
