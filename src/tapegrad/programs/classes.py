"""What Python itself writes into classes, and whether their instances hold attributes only."""

from __future__ import annotations

import collections
import types
from typing import Any

__all__ = ["is_of_python", "is_of_words"]

HEAP_TYPE = 1 << 9  # flag of classes that are made while a program runs
WORD = tuple.__itemsize__
# What Python, its dataclasses, abstract classes and generic ones write into classes.
_MADE_BY_PYTHON = """
__dict__ __weakref__ __doc__ __module__ __annotations__ __annotate__ __annotate_func__ __annotations_cache__ __slots__
__firstlineno__ __static_attributes__ __dataclass_params__ __dataclass_fields__ __match_args__ __abstractmethods__ _abc_impl
__orig_bases__ __parameters__ __type_params__ __protocol_attrs__ __non_callable_proto_members__
"""
_OF_PYTHON = frozenset(_MADE_BY_PYTHON.split())
_TUPLE_GETTER = type(vars(collections.namedtuple("_Pair", "first"))["first"])


def is_of_python(name: str, part: Any) -> bool:
    """Whether an attribute of a class is one that Python made."""
    return name in _OF_PYTHON or isinstance(part, (types.MemberDescriptorType, types.GetSetDescriptorType, _TUPLE_GETTER))


def is_of_words(kind: type) -> bool:
    """Whether instances hold attributes only: classes made by C code have memory of their own beside them."""
    base = kind.__base__
    if not kind.__flags__ & HEAP_TYPE or base is None:
        return False
    slots = sum(type(part) is types.MemberDescriptorType for part in vars(kind).values())
    dicts = (kind.__dictoffset__ > 0) - (base.__dictoffset__ > 0)
    references = (kind.__weakrefoffset__ > 0) - (base.__weakrefoffset__ > 0)
    return kind.__basicsize__ == base.__basicsize__ + WORD * (slots + dicts + references)
