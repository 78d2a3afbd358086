"""Sequential: modules one after the other."""

from collections.abc import Iterator
from typing import Any

from tapegrad.nn.module import Module

__all__ = ["Sequential"]


class Sequential(Module):
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

    def __init__(self, *modules: Module | dict[str, Module]) -> None:
        super().__init__()
        named = modules[0] if len(modules) == 1 and isinstance(modules[0], dict) else dict(enumerate(modules))
        for name, module in named.items():
            if not isinstance(module, Module):
                raise TypeError(f"{type(module).__name__} is not a Module subclass")
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Any:
        """The value of the last module."""
        for module in self:
            input = module(input)
        return input

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return (module for module in self._modules.values() if module is not None)

    def __getitem__(self, index: int) -> Module:
        return list(self)[index]
