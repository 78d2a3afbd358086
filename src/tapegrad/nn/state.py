"""A module's parameters and buffers as a dictionary, and back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tapegrad.nn.parameter import Parameter
from tapegrad.nn.tree import joined
from tapegrad.tensors.grad_mode import no_grad
from tapegrad.tensors.tensor import Tensor

if TYPE_CHECKING:
    from tapegrad.nn.module import Module

__all__ = ["KeyReport", "State"]


class KeyReport(NamedTuple):
    """What `Module.load_state_dict` found: names the state lacked, and names the module does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"KeyReport(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class State:
    """The methods of `Module` about its state."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]

    def state_dict(
        self, *, destination: dict[str, Tensor] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Tensor]:
        """The parameters and persistent buffers by dotted name; they share memory with the module's.

        Parameters
        ----------
        destination : dict, optional
            Where they are put; a new ordered dictionary if not given.
        prefix : str
            What all names begin with, the dot included.
        keep_vars : bool
            Whether the parameters themselves are given, not detached ones.
        """
        state: dict[str, Tensor] = OrderedDict() if destination is None else destination
        for name, tensor, _ in self._state(prefix.removesuffix(".")):
            state[name] = tensor if keep_vars else tensor.detach()
        return state

    def _state(self, prefix: str) -> Iterator[tuple[str, Tensor, State]]:
        """Parameters and persistent buffers with the module they belong to; what occurs twice appears under both names."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                yield joined(prefix, name), parameter, self
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                yield joined(prefix, name), buffer, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module._state(joined(prefix, name))

    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True, assign: bool = False) -> KeyReport:
        """Copy values into the parameters and buffers.

        Parameters
        ----------
        state_dict : mapping of str to Tensor
            As `state_dict` gives it.
        strict : bool
            Whether names on one side only are an error.
        assign : bool
            Whether the tensors themselves take the place of the module's, with their dtypes.

        Returns
        -------
        tuple of list of str
            ``missing_keys`` and ``unexpected_keys``.

        Raises
        ------
        TypeError
            If `state_dict` is no mapping.
        RuntimeError
            If shapes differ, or, when strict, names do; then nothing is copied.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        own = list(self._state(""))
        names = {name for name, _, _ in own}
        report = KeyReport(
            [name for name, _, _ in own if name not in state_dict], [name for name in state_dict if name not in names]
        )
        problems = []
        if strict and report.unexpected_keys:
            problems.append(f"Unexpected key(s) in state_dict: {_quoted(report.unexpected_keys)}.")
        if strict and report.missing_keys:
            problems.append(f"Missing key(s) in state_dict: {_quoted(report.missing_keys)}.")
        problems += [problem for name, tensor, _ in own if name in state_dict and (problem := _misfit(name, tensor, state_dict))]
        if problems:
            lines = "\n\t".join(problems)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}")
        with no_grad():
            for name, tensor, module in own:
                if name in state_dict:
                    if assign:
                        module._assign(name.rpartition(".")[2], state_dict[name])
                    else:
                        tensor.copy_(state_dict[name])
        return report

    def _assign(self, name: str, value: Tensor) -> None:
        own = self._parameters.get(name)
        if own is None:
            self._buffers[name] = value
        else:
            self._parameters[name] = value if isinstance(value, Parameter) else Parameter(value, own.requires_grad)


def _misfit(name: str, tensor: Tensor, state: Mapping[str, Any]) -> str:
    """Why a value cannot be copied; empty if it can."""
    value = state[name]
    if not isinstance(value, Tensor):
        return (
            f'While copying the parameter named "{name}", expected tapegrad.Tensor or Tensor-like object from checkpoint but '
            f"received {type(value)}"
        )
    if tuple(value.shape) != tuple(tensor.shape):
        return (
            f"size mismatch for {name}: copying a param with shape {value.shape} from checkpoint, "
            f"the shape in current model is {tensor.shape}."
        )
    return ""


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
