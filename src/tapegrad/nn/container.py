"""Modules made of modules: one after the other, in a list, by name."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, overload

from tapegrad.nn.module import Module, laid_out

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


class _Row(Module):
    """Modules that are numbered ``"0"``, ``"1"``, ..."""

    def _part(self, index: slice) -> Self:
        return type(self)(list(self)[index])

    def _position(self, index: Any) -> int:
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"index {number} is out of range: there are {len(self)} modules")
        return number % len(self)

    def _rename(self, modules: Iterable[Module]) -> None:
        self._modules.clear()
        for number, module in enumerate(modules):
            self.add_module(str(number), module)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: Any) -> Any:
        return self._part(index) if isinstance(index, slice) else list(self)[self._position(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, list(self._modules)[self._position(index)], module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self)
        if not isinstance(index, slice):
            index = self._position(index)
        del modules[index]
        self._rename(modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._modules.values()))

    def append(self, module: Module) -> Self:
        """Put a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before the one of a number."""
        modules = list(self)
        modules.insert(index, module)
        self._rename(modules)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Put several modules at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, index: int = -1) -> Any:
        """Take a module away and return it."""
        module = self[index]
        del self[index]
        return module


class Sequential(_Row):
    """Modules applied one after the other.

    Parameters
    ----------
    *modules : Module, or one dict of str to Module
        Without names they are called ``"0"``, ``"1"``, ...

    Raises
    ------
    TypeError
        If anything but a module is given.

    Examples
    --------
    >>> net = tg.nn.Sequential(tg.nn.Linear(2, 3), tg.nn.Tanh())
    >>> net
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): Tanh()
    )
    >>> len(net), net[1]
    (2, Tanh())
    """

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        super().__init__()
        named = modules[0] if len(modules) == 1 and isinstance(modules[0], Mapping) else dict(enumerate(modules))
        for name, module in named.items():
            self.add_module(str(name), module)  # type: ignore[arg-type]

    def _part(self, index: slice) -> Self:
        return type(self)(dict(list(self._modules.items())[index]))  # type: ignore[arg-type]

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def forward(self, input: Any) -> Any:
        """The value of the last module."""
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input


class ModuleList(_Row):
    """A list of modules, all of which are found as parts.

    Parameters
    ----------
    modules : iterable of Module, optional

    Examples
    --------
    >>> layers = tg.nn.ModuleList(tg.nn.Linear(2, 2) for _ in range(3))
    >>> layers
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    >>> len(list(layers.parameters()))
    6
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        runs: list[tuple[int, int, str]] = []
        for number, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], number, text)
            else:
                runs.append((number, number, text))
        parts = []
        for first, last, text in runs:
            label = f"({first}): " if first == last else f"({first}-{last}): {last - first + 1} x "
            parts.append((label + text).replace("\n", "\n  "))
        return laid_out(type(self).__name__, [], parts)


class ModuleDict(Module):
    """Modules by name, all of which are found as parts.

    Parameters
    ----------
    modules : mapping of str to Module, or iterable of pairs, optional

    Examples
    --------
    >>> choices = tg.nn.ModuleDict({"tanh": tg.nn.Tanh()})
    >>> choices["tanh"](tg.zeros(1))
    tensor([0.])
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules, or replace those of the same names."""
        for name, module in dict(modules).items():
            self[name] = module

    def __getitem__(self, name: str) -> Any:
        return self._modules[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, module)

    def __delitem__(self, name: str) -> None:
        del self._modules[name]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def clear(self) -> None:
        """Take all modules away."""
        self._modules.clear()

    def pop(self, name: str) -> Any:
        """Take a module away and return it."""
        return self._modules.pop(name)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Names and modules."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()
