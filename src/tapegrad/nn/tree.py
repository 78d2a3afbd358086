"""What a module is made of: its parts, parameters and buffers, and theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self, cast

from tapegrad.nn.parameter import Parameter
from tapegrad.tensors.tensor import Tensor

if TYPE_CHECKING:
    from tapegrad.nn.module import Module

__all__ = ["Tree", "joined"]


def joined(prefix: str, name: str) -> str:
    """A dotted name."""
    return f"{prefix}.{name}" if prefix else name


class Tree:
    """The methods of `Module` that walk over it."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The parts of this module itself, each once, with their names."""
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        """The parts of this module itself, each once."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module, its parts, and theirs, with dotted names.

        Parameters
        ----------
        memo : set, optional
            Modules to leave out; those that were met are added.
        prefix : str
            What all names begin with.
        remove_duplicate : bool
            Whether each is given once, or under every name that it has.
        """
        seen: set[Any] = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, cast("Module", self)
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(seen, joined(prefix, name), remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module, its parts, and theirs, each once."""
        return (module for _, module in self.named_modules())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with dotted names.

        Parameters
        ----------
        prefix : str
            What all names begin with.
        recurse : bool
            Whether those of the parts are given too.
        remove_duplicate : bool
            Whether each is given once, or under every name that it has.
        """
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The buffers with dotted names; arguments as for `named_parameters`."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def _named(self, table: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else ((prefix, self),)
        for path, module in modules:
            for name, member in getattr(module, table).items():
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield joined(path, name), member

    def get_submodule(self, target: str) -> Module:
        """The part with a dotted name; the module itself for an empty one.

        Raises
        ------
        AttributeError
            If there is none, or it is no module.
        """
        found: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(found, name):
                raise AttributeError(f"{type(found).__name__} has no attribute `{name}`")
            found = getattr(found, name)
            if not isinstance(found, Tree):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return cast("Module", found)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with a dotted name.

        Raises
        ------
        AttributeError
            If there is none.
        """
        module, name = self._owner(target)
        found = getattr(module, name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with a dotted name.

        Raises
        ------
        AttributeError
            If there is none.
        """
        module, name = self._owner(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return cast(Tensor, module._buffers[name])

    def _owner(self, target: str) -> tuple[Module, str]:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        return module, name

    def apply(self, fn: Callable[[Any], object]) -> Self:
        """Call `fn` with every part, from the inside out, and with this module last.

        Examples
        --------
        >>> def start(module):
        ...     if isinstance(module, tg.nn.Linear):
        ...         tg.nn.init.ones_(module.weight)
        >>> net = tg.nn.Sequential(tg.nn.Linear(2, 1)).apply(start)
        >>> net[0].weight.tolist()
        [[1.0, 1.0]]
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self
