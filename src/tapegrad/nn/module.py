"""Module: a callable with named parameters, buffers and parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from tapegrad.nn.conversion import Conversion
from tapegrad.nn.hooks import Hook, Hooks, call, register
from tapegrad.nn.parameter import Parameter
from tapegrad.nn.state import State
from tapegrad.tensors.hooks import RemovableHandle
from tapegrad.tensors.tensor import Tensor

__all__ = ["Module", "laid_out"]

_TABLES = ("_parameters", "_buffers", "_modules")


class Module(Conversion, State):
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
    _before: Hooks
    _after: Hooks
    _backward_before: Hooks
    _backward_after: Hooks

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            raise TypeError(f"{type(self).__name__}.__init__() takes no arguments, but got {[*args, *kwargs]}")
        # Written past __setattr__, which needs the tables.
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _modules={},
            _before={},
            _after={},
            _backward_before={},
            _backward_after={},
        )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The computation; a subclass defines it, a user calls the module itself."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What `forward` returns, with the hooks around it."""
        if self._backward_before or self._backward_after:
            from tapegrad.nn.backward_hooks import Passage

            passage = Passage(self, self._backward_before, self._backward_after)
            return call(self, self._before, self._after, args, kwargs, passage)
        if self._before or self._after:
            return call(self, self._before, self._after, args, kwargs)
        return self.forward(*args, **kwargs)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before `forward`.

        Parameters
        ----------
        hook : callable
            What it returns, unless None, takes the place of the arguments.
        prepend : bool
            Whether it runs before the hooks that are there already.
        with_kwargs : bool
            Whether it is called with the keywords as well, and returns ``(args, kwargs)``.

        Returns
        -------
        RemovableHandle
            Its ``remove()`` takes the hook away.
        """
        return register(self, "_before", Hook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, result)`` after `forward`.

        Parameters
        ----------
        hook : callable
            What it returns, unless None, takes the place of the result.
        prepend : bool
            Whether it runs before the hooks that are there already.
        with_kwargs : bool
            Whether it is called with the keywords too: ``hook(module, args, kwargs, result)``.
        always_call : bool
            Whether it runs, with None for the result, also when the computation raises.

        Returns
        -------
        RemovableHandle
            Its ``remove()`` takes the hook away.
        """
        return register(self, "_after", Hook(hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when a reverse pass comes to the module's results.

        Only tensors that are results themselves, or in a tuple of results, count; others have None.

        Parameters
        ----------
        hook : callable
            What it returns, unless None, takes the place of the gradients of the results: a tensor or a tuple.
        prepend : bool
            Whether it runs before the hooks that are there already.

        Returns
        -------
        RemovableHandle
            Its ``remove()`` takes the hook away from calls that are still to come.

        Raises
        ------
        RuntimeError
            In the pass, if it returns another number of gradients.
        """
        return register(self, "_backward_before", Hook(hook, False), prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], *, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when a reverse pass has gone through the module.

        Arguments given by keyword, or inside containers, are not looked at; those that are not tracked have None. Arguments and
        results of a module with such a hook must not be written in place.

        Parameters
        ----------
        hook : callable
            What it returns, unless None, takes the place of the gradients of the arguments: a tensor or a tuple.
        prepend : bool
            Whether it runs before the hooks that are there already.

        Returns
        -------
        RemovableHandle
            Its ``remove()`` takes the hook away from calls that are still to come.

        Raises
        ------
        RuntimeError
            In the pass, if it returns another number of gradients.

        Examples
        --------
        >>> net = tg.nn.Tanh()
        >>> handle = net.register_full_backward_hook(lambda module, grad_input, grad_output: print(grad_output))
        >>> net(tg.tensor([0.0], requires_grad=True)).sum().backward()
        (tensor([1.]),)
        """
        return register(self, "_backward_after", Hook(hook, False), prepend)

    # Attributes

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self._require_init("parameters")
            self._clear(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._require_init("module")
            self._clear(name, "_modules")
            self.add_module(name, value)
        elif name in self.__dict__.get("_parameters", ()):
            if value is not None:
                raise TypeError(f"cannot assign '{type(value).__name__}' as parameter '{name}' (tg.nn.Parameter or None expected)")
            self._parameters[name] = None
        elif name in self.__dict__.get("_modules", ()):
            if value is not None:
                raise TypeError(f"cannot assign '{type(value).__name__}' as child module '{name}' (tg.nn.Module or None expected)")
            self._modules[name] = None
        elif name in self.__dict__.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"cannot assign '{type(value).__name__}' as buffer '{name}' (tg.Tensor or None expected)")
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        for table in _TABLES:
            found = self.__dict__.get(table, {})
            if name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Give the module a parameter, or with None the place for one.

        Raises
        ------
        KeyError
            If the name is empty, has a dot in it or is taken.
        TypeError
            If `param` is no parameter.
        """
        self._check_name("parameter", "_parameters", name)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{type(param).__name__}' object to parameter '{name}' (tg.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(f"Cannot assign non-leaf Tensor to parameter '{name}'. Compute it in forward() instead.")
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Give the module a tensor that is part of its state but no parameter, or with None the place for one.

        Parameters
        ----------
        name : str
        tensor : Tensor or None
        persistent : bool
            Whether `state_dict` has it.

        Raises
        ------
        KeyError
            If the name is empty, has a dot in it or is taken.
        TypeError
            If `tensor` is no tensor.

        Examples
        --------
        >>> module = tg.nn.Module()
        >>> module.register_buffer("steps", tg.zeros(1))
        >>> module.steps
        tensor([0.])
        """
        self._check_name("buffer", "_buffers", name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (tg.Tensor or None required)")
        self._buffers[name] = tensor
        self._non_persistent_buffers_set.discard(name)
        if not persistent:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Give the module a part.

        Raises
        ------
        KeyError
            If the name is empty, has a dot in it or is taken.
        TypeError
            If `module` is no module.
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._check_name("module", "_modules", name)
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    def _require_init(self, what: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call; call super().__init__() first")

    def _check_name(self, what: str, table: str, name: str) -> None:
        self._require_init(what)
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain ".", got: {name}')
        if not name:
            raise KeyError(f'{what} name can\'t be empty string ""')
        if hasattr(self, name) and name not in getattr(self, table):
            raise KeyError(f"attribute '{name}' already exists")

    def _clear(self, name: str, keep: str) -> None:
        """Let a parameter or a part take the place of an attribute of another kind; its own kind it replaces in the order."""
        for table in _TABLES:
            if table != keep:
                getattr(self, table).pop(name, None)
        self.__dict__.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    # Modes and dtypes

    def train(self, mode: bool = True) -> Self:
        """Set `training` of this module and all its parts."""
        if not isinstance(mode, bool):
            raise ValueError(f"training mode is expected to be boolean, got {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
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

    # Text

    def extra_repr(self) -> str:
        """What the module's line in `repr` says about it."""
        return ""

    def __repr__(self) -> str:
        about = self.extra_repr().split("\n")
        parts = [f"({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]
        return laid_out(type(self).__name__, [line for line in about if line], parts)


def laid_out(name: str, about: list[str], parts: list[str]) -> str:
    """The text of a module with these lines about itself and its parts."""
    if not parts and len(about) <= 1:
        return f"{name}({''.join(about)})"
    return f"{name}(\n  " + "\n  ".join(about + parts) + "\n)"
