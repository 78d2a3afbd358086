"""What Python itself writes into classes, and whether their instances hold attributes only."""

from __future__ import annotations

import collections
import types
from typing import Any

from tapegrad.named_tuples import Named
from tapegrad.programs.names_in_code import is_installed_module

__all__ = ["fields_of", "is_installed_class", "is_of_python", "is_of_words", "parts_of"]

HEAP_TYPE = 1 << 9  # flag of classes that are made while a program runs
WORD = tuple.__itemsize__
# What Python, its dataclasses, abstract classes and generic ones write into classes.
_MADE_BY_PYTHON = """
__dict__ __weakref__ __doc__ __module__ __annotations__ __annotate__ __annotate_func__ __annotations_cache__ __slots__
__firstlineno__ __static_attributes__ __dataclass_params__ __dataclass_fields__ __match_args__ __abstractmethods__ _abc_impl
__slotnames__ __orig_bases__ __parameters__ __type_params__ __protocol_attrs__ __non_callable_proto_members__
"""
_OF_PYTHON = frozenset(_MADE_BY_PYTHON.split())
_READING = frozenset(["__getattribute__", "__getitem__", "__iter__", "__len__"])  # of a named tuple, by functions of its class
_TUPLE_GETTER = type(vars(collections.namedtuple("_Pair", "first"))["first"])


def is_of_python(name: str, part: Any) -> bool:
    """Whether an attribute of a class is one that Python made."""
    return name in _OF_PYTHON or isinstance(part, (types.MemberDescriptorType, types.GetSetDescriptorType, _TUPLE_GETTER))


def is_installed_class(kind: type) -> bool:
    """Whether a class is of an installed package; what text defines in a namespace without a name has Python's."""
    return is_installed_module(kind.__module__) and not (kind.__module__ == "builtins" and kind.__flags__ & HEAP_TYPE)


def is_of_words(kind: type) -> bool:
    """Whether instances hold attributes only: classes made by C code have memory of their own beside them."""
    base = kind.__base__
    if not kind.__flags__ & HEAP_TYPE or base is None:
        return False
    slots = sum(type(part) is types.MemberDescriptorType for part in vars(kind).values())
    dicts = (kind.__dictoffset__ > 0) - (base.__dictoffset__ > 0)
    references = (kind.__weakrefoffset__ > 0) - (base.__weakrefoffset__ > 0)
    return kind.__basicsize__ == base.__basicsize__ + WORD * (slots + dicts + references)


def fields_of(value: Any) -> tuple[str, ...] | None:
    """Names of the fields of a dataclass's instance, or of a named tuple, that holds nothing else; None for other objects."""
    kind = type(value)
    if issubclass(kind, tuple):
        names: tuple[str, ...] | None = getattr(kind, "_fields", None)
        own = vars(kind)
        is_plain = kind.__bases__ in ((tuple,), (Named,)) and not kind.__dictoffset__ and _READING.isdisjoint(own)
        return names if is_plain and names is not None and len(names) == len(value) else None
    if "__dataclass_fields__" not in vars(kind) or not all(base is object or is_of_words(base) for base in kind.__mro__):
        return None
    if any("__getattribute__" in vars(base) for base in kind.__mro__ if base is not object):
        return None
    import dataclasses  # who made the value has imported it

    names = tuple(field.name for field in dataclasses.fields(kind))
    held = vars(value) if kind.__dictoffset__ else {}
    if len(held) != sum(name in held for name in names):
        return None
    for name in names:  # nothing that a class computes
        part = _found_in(kind, name)
        if type(part) is not types.MemberDescriptorType and (name not in held or hasattr(type(part), "__set__")):
            return None
    return names if all(hasattr(value, name) for name in names) else None


def _found_in(kind: type, name: str) -> Any:
    """An attribute of a class, as it stands there."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def parts_of(value: Any) -> tuple[tuple[Any, ...], list[Any]] | None:
    """Names and parts of a container whose parts are arguments like others; None for other objects."""
    kind = type(value)
    if kind is tuple or kind is list:
        return tuple(range(len(value))), list(value)
    if kind is dict:
        return tuple(value), list(value.values())
    names = fields_of(value)
    return None if names is None else (names, list(value) if isinstance(value, tuple) else [getattr(value, name) for name in names])
