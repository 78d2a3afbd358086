"""Parameters in a list and by name."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from tapegrad.arrays.dtypes import type_name
from tapegrad.nn.module import Module
from tapegrad.nn.parameter import Parameter
from tapegrad.tensors.tensor import Tensor

__all__ = ["ParameterDict", "ParameterList"]


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    sizes = "x".join(map(str, value.shape))
    return f"{'Parameter' if isinstance(value, Parameter) else 'Tensor'} containing: [{type_name(value.dtype)} of size {sizes}]"


class ParameterList(Module):
    """A list of parameters, all of which are found; tensors become parameters.

    Parameters
    ----------
    values : iterable of Parameter or Tensor, optional

    Examples
    --------
    >>> shifts = tg.nn.ParameterList([tg.zeros(2), tg.zeros(3)])
    >>> [name for name, _ in shifts.named_parameters()]
    ['0', '1']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _name(self, index: Any) -> str:
        number = operator.index(index)
        if not -self._size <= number < self._size:
            raise IndexError(f"index {number} is out of range")
        return str(number % self._size)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._name(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._name(index), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, str(number)) for number in range(self._size))

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def append(self, value: Any) -> Self:
        """Put a parameter at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Put several parameters at the end."""
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """The parameters' types and sizes."""
        return "\n".join(f"  ({number}): {_described(value)}" for number, value in enumerate(self))


class ParameterDict(Module):
    """Parameters by name, all of which are found; tensors become parameters.

    Parameters
    ----------
    parameters : mapping of str to Parameter or Tensor, optional

    Examples
    --------
    >>> tg.nn.ParameterDict({"shift": tg.zeros(2)})["shift"].requires_grad
    True
    """

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def update(self, parameters: Mapping[str, Any]) -> None:
        """Add parameters, or replace those of the same names."""
        for name, value in parameters.items():
            self[name] = value

    def __getitem__(self, name: str) -> Any:
        if name not in self._keys:
            raise KeyError(name)
        return getattr(self, name)

    def __setitem__(self, name: str, value: Any) -> None:
        self._keys[name] = None
        setattr(self, name, _as_parameter(value))

    def __delitem__(self, name: str) -> None:
        del self._keys[name]
        delattr(self, name)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def items(self) -> Any:
        """Names and parameters."""
        return [(name, self[name]) for name in self._keys]

    def values(self) -> Any:
        """The parameters."""
        return [self[name] for name in self._keys]

    def extra_repr(self) -> str:
        """The parameters' types and sizes."""
        return "\n".join(f"  ({name}): {_described(value)}" for name, value in self.items())
