"""Module: a callable with named parameters and named parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

from tapegrad.grad_mode import no_grad
from tapegrad.nn.parameter import Parameter
from tapegrad.tensor import Tensor

__all__ = ["Module"]


class KeyReport(NamedTuple):
    """What `Module.load_state_dict` found: names the state lacked, and names the module does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"KeyReport(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class Module:
    """Base class of everything with parameters.

    A subclass calls ``super().__init__()``, assigns `Parameter` and `Module` attributes, which are found by that, and
    defines `forward`.

    Attributes
    ----------
    training : bool
        Set by `train` and `eval`, for modules that behave differently in the two.

    Examples
    --------
    >>> class Scale(tg.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = tg.nn.Parameter(tg.tensor([3.0]))
    ...
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> scale = Scale()
    >>> scale(tg.tensor([2.0]))
    tensor([6.], grad_fn=<MulBackward0>)
    >>> [name for name, _ in scale.named_parameters()]
    ['factor']
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _modules: dict[str, Module | None]

    def __init__(self) -> None:
        # Written past __setattr__, which needs the two tables.
        self.__dict__.update(training=True, _parameters={}, _modules={})

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The computation; a subclass defines it, a user calls the module itself."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What `forward` returns."""
        return self.forward(*args, **kwargs)

    # Attributes

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self.add_module(name, value)
        elif name in self.__dict__.get("_parameters", ()):
            if value is not None:
                raise TypeError(f"cannot assign '{type(value).__name__}' as parameter '{name}' (tg.nn.Parameter or None expected)")
            self._parameters[name] = None
        elif name in self.__dict__.get("_modules", ()):
            if value is not None:
                raise TypeError(f"cannot assign '{type(value).__name__}' as child module '{name}' (tg.nn.Module or None expected)")
            self._modules[name] = None
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        for table in ("_parameters", "_modules"):
            found = self.__dict__.get(table, {})
            if name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._modules):
            if name in table:
                del table[name]
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._modules})

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """Give the module a parameter, or with None the place for one."""
        self._register("parameters", self.__dict__.get("_parameters"), name, parameter)

    def add_module(self, name: str, module: Module | None) -> None:
        """Give the module a part."""
        self._register("modules", self.__dict__.get("_modules"), name, module)

    def _register(self, what: str, table: dict[str, Any] | None, name: str, value: Any) -> None:
        if table is None:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call; call super().__init__() first")
        if not name or "." in name:
            raise KeyError(f'the name of {what} must not be empty nor contain ".", got "{name}"')
        for other in (self.__dict__, self._parameters, self._modules):
            if other is not table:
                other.pop(name, None)
        table[name] = value

    # What it is made of

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

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module, its parts, and theirs, each once, with dotted names."""
        return self._walk(prefix, set())

    def _walk(self, prefix: str, seen: set[int]) -> Iterator[tuple[str, Module]]:
        if id(self) in seen:
            return
        seen.add(id(self))
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module._walk(_join(prefix, name), seen)

    def modules(self) -> Iterator[Module]:
        """This module, its parts, and theirs, each once."""
        return (module for _, module in self.named_modules())

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Parameter]]:
        """The parameters, each once, with dotted names; with ``recurse=False`` those of this module alone."""
        seen: set[int] = set()
        for path, module in self.named_modules(prefix) if recurse else ((prefix, self),):
            for name, parameter in module._parameters.items():
                if parameter is not None and id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield _join(path, name), parameter

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    # State

    def train(self, mode: bool = True) -> Self:
        """Set `training` of this module and all its parts."""
        if not isinstance(mode, bool):
            raise ValueError(f"training mode is expected to be boolean, got {mode!r}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """The same as ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Track all parameters, or none."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or with ``set_to_none=False`` fill them with zeros."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                if parameter.grad.grad_fn is not None:
                    parameter.grad = parameter.grad.detach()
                parameter.grad.zero_()

    def state_dict(self) -> dict[str, Tensor]:
        """The parameters' values by dotted name; they share memory with the parameters."""
        return {name: parameter.detach() for name, parameter in self._state("")}

    def _state(self, prefix: str) -> Iterator[tuple[str, Parameter]]:
        """Like `named_parameters`, but what occurs twice appears under both names."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                yield _join(prefix, name), parameter
        for name, module in self._modules.items():
            if module is not None:
                yield from module._state(_join(prefix, name))

    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True) -> KeyReport:
        """Copy values into the parameters.

        Parameters
        ----------
        state_dict : mapping of str to Tensor
            As `state_dict` gives it.
        strict : bool
            Whether names on one side only are an error.

        Returns
        -------
        tuple of list of str
            ``missing_keys`` and ``unexpected_keys``.

        Raises
        ------
        RuntimeError
            If shapes differ, or, when strict, names do; then nothing is copied.
        """
        own = dict(self._state(""))
        report = KeyReport([name for name in own if name not in state_dict], [n for n in state_dict if n not in own])
        problems = []
        if strict and report.unexpected_keys:
            problems.append(f"Unexpected key(s) in state_dict: {_quoted(report.unexpected_keys)}.")
        if strict and report.missing_keys:
            problems.append(f"Missing key(s) in state_dict: {_quoted(report.missing_keys)}.")
        problems += [
            f"size mismatch for {name}: copying a param with shape {tuple(state_dict[name].shape)} from checkpoint, "
            f"the shape in current model is {tuple(parameter.shape)}."
            for name, parameter in own.items()
            if name in state_dict and tuple(state_dict[name].shape) != tuple(parameter.shape)
        ]
        if problems:
            lines = "\n\t".join(problems)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}")
        with no_grad():
            for name, parameter in own.items():
                if name in state_dict:
                    parameter.copy_(state_dict[name])
        return report

    # Text

    def extra_repr(self) -> str:
        """What the module's line in `repr` says about it."""
        return ""

    def __repr__(self) -> str:
        parts = [f"({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]
        about = self.extra_repr()
        if not parts:
            return f"{type(self).__name__}({about})"
        lines = ([about] if about else []) + parts
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
