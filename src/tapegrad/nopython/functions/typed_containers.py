"""Lists and dictionaries that a function makes: where the user declares floats, or copies them, they hold variables."""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.typed import Dict, List

from tapegrad.nopython.functions.tuples import as_variable
from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.types.variable import complex_variable, is_float, variable_of

__all__ = ["CONTAINERS", "EMPTY", "list_of"]

# What makes a container whose item type is that of what is put in first.
EMPTY = (List, Dict, dict, set)


def _declared(kind: Any) -> Any:
    """The type that an argument names, with variables for floats."""
    return with_variables(kind.dtype if isinstance(kind, (types.DType, types.NumberClass)) else kind.instance_type)


def with_variables(kind: types.Type) -> types.Type:
    """A type of items in which floats are variables."""
    if is_float(kind):
        return variable_of(kind)
    if kind == types.complex128:
        return complex_variable
    if isinstance(kind, types.Array) and is_float(kind.dtype):
        return kind.copy(dtype=variable_of(kind.dtype))
    if isinstance(kind, types.ListType):
        return types.ListType(with_variables(kind.item_type))
    if isinstance(kind, types.DictType):
        return types.DictType(kind.key_type, with_variables(kind.value_type))
    if isinstance(kind, types.BaseAnonymousTuple):
        return types.Tuple([with_variables(item) for item in kind])
    return kind


def empty_list(item_type, allocated=0):
    raise NotImplementedError


@overload(empty_list)
def _empty_list(item_type, allocated=0):
    kind = _declared(item_type)
    return lambda item_type, allocated=0: List.empty_list(kind, allocated)


def empty_dict(key_type, value_type, n_keys=0):
    raise NotImplementedError


@overload(empty_dict)
def _empty_dict(key_type, value_type, n_keys=0):
    kind = _declared(value_type)
    return lambda key_type, value_type, n_keys=0: Dict.empty(key_type, kind, n_keys)


def list_of(items):
    """``list(items)``, which may hold variables."""
    raise NotImplementedError


@overload(list_of, complex_too=True)
def _list_of(items):
    return lambda items: [as_variable(item) for item in items]


CONTAINERS: dict[Any, Any] = {List.empty_list: empty_list, Dict.empty: empty_dict}
