"""What all optimisers share: groups of parameters, state, and how both are kept."""

from __future__ import annotations

import functools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from tapegrad.ops.in_place import zero_
from tapegrad.optim.updating import gradient_of
from tapegrad.recording.casting import cast
from tapegrad.tensors.grad_mode import enable_grad, no_grad
from tapegrad.tensors.tensor import FLOATS, Tensor, is_leaf, make

__all__ = ["Optimizer", "Parameters", "as_number", "check_not_negative", "checked_betas", "evaluate", "required"]

Parameters = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required: Any = _Required()  # default of an option that every group must set


class Optimizer:
    """Base of the optimisers.

    A subclass gives its options and their defaults to the initialiser and defines `step`.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor) or of dict
        Leaves to be optimised, with or without names; or groups of them, each a dict with the key ``"params"`` and the options in
        which it differs from the others.
    defaults : dict
        Options of groups that do not set them.

    Attributes
    ----------
    param_groups : list of dict
        The groups, each with all options. Changing an option takes effect at the next step.
    state : dict
        What is kept from step to step, by parameter.
    defaults : dict

    Raises
    ------
    ValueError
        If there are no parameters, one is not a leaf or in two groups, or an option is out of its range.
    TypeError
        If there is something else than tensors among the parameters, or they come in a set, which has no order.

    Notes
    -----
    The options ``foreach``, ``fused`` and ``capturable`` choose between implementations in PyTorch. They are accepted and kept, so
    that scripts and saved states fit, and have no effect. Steps are not recorded, so ``differentiable=True`` is refused.

    Examples
    --------
    >>> class SignDescent(tg.optim.Optimizer):
    ...     def step(self, closure=None):
    ...         with tg.no_grad():
    ...             for group in self.param_groups:
    ...                 for p in group["params"]:
    ...                     p -= group["lr"] * p.grad.sign()
    >>> x = tg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = SignDescent([x], {"lr": 0.5})
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    has_stepped: bool | None = None  # since `watch_steps`

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _noting_call(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Parameters, defaults: dict[str, Any]) -> None:
        if defaults.get("differentiable"):
            raise NotImplementedError(
                "differentiable=True is not supported: a step is not recorded. To differentiate through updates, write them with "
                "operations of tensors, as in w = w - lr * g with g from autograd.grad(..., create_graph=True)."
            )
        if defaults.get("fused") and defaults.get("foreach"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{type(params).__name__}; put it in a list"
            )
        self.defaults = defaults
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters from their gradients, in place.

        Parameters
        ----------
        closure : callable, optional
            Evaluates the loss anew, with gradients, and returns it.

        Returns
        -------
        object
            What the closure returned, None without one.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no step")

    def watch_steps(self) -> None:
        """Note from now on whether `step` was called, for schedules, which must not come first."""
        if self.has_stepped is None:
            self.has_stepped = False

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters.

        Parameters
        ----------
        set_to_none : bool
            Whether gradients become None, or zeros in the memory they have.
        """
        for group in self.param_groups:
            for p in group["params"]:
                gradient = gradient_of(p)
                if gradient is None:
                    continue
                if set_to_none:
                    p._meta.grad = None
                    continue
                gradient.detach_()
                with no_grad():
                    zero_(gradient)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Optimise further parameters, with options of their own.

        Parameters
        ----------
        param_group : dict
            As in the list that an optimiser can be made from; it becomes an element of ``param_groups``.

        Raises
        ------
        ValueError, TypeError
            As for the class. Nothing is changed then.

        Examples
        --------
        >>> x, y = tg.zeros(2, requires_grad=True), tg.zeros(3, requires_grad=True)
        >>> optimizer = tg.optim.SGD([x], lr=0.1)
        >>> optimizer.add_param_group({"params": [y], "lr": 0.01})
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.1, 0.01]
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        if isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will change "
                "between runs. Please use a list instead."
            )
        entries: list[Any] = [given] if isinstance(given, Tensor) else list(given)
        names = [entry[0] for entry in entries if isinstance(entry, tuple)]
        if names and len(names) != len(entries):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        params = [entry[1] if isinstance(entry, tuple) else entry for entry in entries]
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if not (is_leaf(p) or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor; optimise the leaves it was computed from, or detach() it first")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
        named = bool(names) or "param_names" in param_group
        for group in self.param_groups:
            if named != ("param_names" in group):
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group with{'' if named else 'out'} names to the optimizer"
                )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in known for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        if len({id(p) for p in params}) < len(params):
            warnings.warn("optimizer contains a parameter group with duplicate parameters, which are updated twice", stacklevel=3)
        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        self.param_groups.append(param_group)

    def state_dict(self) -> dict[str, Any]:
        """State and options, with numbers in the place of parameters.

        Returns
        -------
        dict
            ``{"state": {0: {...}, ...}, "param_groups": [{..., "params": [0, ...]}, ...]}``; its tensors are the optimiser's
            own, not copies.

        Examples
        --------
        >>> x = tg.tensor([1.0], requires_grad=True)
        >>> optimizer = tg.optim.SGD([x], lr=0.5, momentum=0.9)
        >>> x.square().sum().backward()
        >>> optimizer.step()
        >>> optimizer.state_dict()["state"]
        {0: {'momentum_buffer': tensor([2.])}}
        """
        numbers: dict[int, int] = {}
        for p in chain.from_iterable(group["params"] for group in self.param_groups):
            numbers.setdefault(id(p), len(numbers))
        groups = [
            {**{key: value for key, value in group.items() if key != "params"}, "params": [numbers[id(p)] for p in group["params"]]}
            for group in self.param_groups
        ]
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over state and options from what `state_dict` returned.

        Parameters
        ----------
        state_dict : dict
            Of an optimiser with groups of the same sizes; parameters correspond by their order. It is copied, and floating state
            converted to the dtype of its parameter.

        Raises
        ------
        ValueError
            If groups differ in number or size. Nothing is changed then.
        """
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError(
                f"loaded state dict has a different number of parameter groups: {len(saved)}, and the optimizer has {len(groups)}"
            )
        for group, other in zip(groups, saved, strict=True):
            if len(group["params"]) != len(other["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                    f"{len(other['params'])} and {len(group['params'])} parameters"
                )
        params = {
            number: p
            for group, other in zip(groups, saved, strict=True)
            for number, p in zip(other["params"], group["params"], strict=True)
        }
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = self._adapted(params[key], value)
            else:
                state[key] = deepcopy(value)
        self.state = state
        self.param_groups = [{**group, **other, "params": group["params"]} for group, other in zip(groups, saved, strict=True)]

    def _adapted(self, p: Tensor, value: Any, key: Any = None) -> Any:
        """A copy of saved state for a parameter."""
        if isinstance(value, Tensor):
            if key == "step":
                return make(float(value.item()), 0)
            copied = value.detach().clone()
            return cast(copied, p.dtype) if p.dtype in FLOATS and copied.dtype.kind == "f" else copied
        if isinstance(value, dict):
            return {name: self._adapted(p, part, name) for name, part in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._adapted(p, part) for part in value)
        return make(float(value), 0) if key == "step" else deepcopy(value)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for number, group in enumerate(self.param_groups):
            text += f"\nParameter Group {number}\n"
            text += "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
        return text + ")"


def _noting_call(step: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(step)
    def call(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if self.has_stepped is False:
            self.has_stepped = True
        return step(self, *args, **kwargs)

    return call


def evaluate(closure: Callable[[], Any] | None) -> Any:
    """The loss from a closure, with recording on; None without one."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def as_number(value: Any) -> Any:
    """An option that may be a tensor of one element, as a number."""
    return value.item() if isinstance(value, Tensor) else value


def check_not_negative(options: dict[str, Any]) -> None:
    """Raise for options that are negative or NaN.

    Parameters
    ----------
    options : dict
        Numbers, or tensors of one element, by the words that a message has for them.

    Raises
    ------
    ValueError
        If one is out of its range.
    """
    for words, value in options.items():
        if isinstance(value, Tensor) and value.numel() != 1:
            raise ValueError(f"Tensor {words} must be 1-element, but has {value.numel()} elements")
        if not as_number(value) >= 0.0:
            raise ValueError(f"Invalid {words}: {value}")


def checked_betas(betas: tuple[Any, Any]) -> tuple[Any, Any]:
    """Parts of two running means that are kept at each step, as numbers.

    Raises
    ------
    ValueError
        If one is not in [0, 1).
    """
    parts = as_number(betas[0]), as_number(betas[1])
    for number, part in enumerate(parts):
        if not 0.0 <= part < 1.0:
            raise ValueError(f"Invalid beta parameter at index {number}: {part}")
    return parts
