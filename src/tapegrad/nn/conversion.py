"""A module's parameters and buffers in another precision."""

from __future__ import annotations

from typing import Any, Self

from tapegrad.arrays import dtypes
from tapegrad.arrays.dtypes import DType, as_dtype
from tapegrad.nn.tree import Tree
from tapegrad.tensors.devices import CPU, check_device
from tapegrad.tensors.tensor import Tensor

__all__ = ["Conversion"]


class Conversion(Tree):
    """The methods of `Module` that convert it."""

    def to(self, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False) -> Self:
        """Convert floating point parameters and buffers to a dtype, that of a tensor if one is given; in place.

        A device, which can only be the CPU, and `non_blocking` change nothing.

        Raises
        ------
        TypeError
            If the dtype is no floating point one.

        Examples
        --------
        >>> tg.nn.Linear(2, 1).to(tg.float32).weight.dtype
        dtype('float32')
        """
        check_device(device)
        for given in args:
            if isinstance(given, (str, type(CPU))):
                check_device(given)
                continue
            dtype = given.dtype if isinstance(given, Tensor) else given
        if dtype is None:
            return self
        wanted = as_dtype(dtype)
        if wanted.kind != "f":
            raise TypeError(f"nn.Module.to only accepts floating point dtypes, but got desired dtype={wanted}")
        return self._convert(wanted)

    def cpu(self) -> Self:
        """The module itself, which is on the CPU."""
        return self

    def float(self) -> Self:
        """Convert floating point parameters and buffers to float32."""
        return self._convert(dtypes.float32)

    def double(self) -> Self:
        """Convert floating point parameters and buffers to float64."""
        return self._convert(dtypes.float64)

    def half(self) -> Self:
        """Convert floating point parameters and buffers to float16."""
        return self._convert(dtypes.float16)

    def _convert(self, dtype: DType) -> Self:
        for module in self.modules():
            for parameter in module._parameters.values():
                if parameter is not None and parameter.dtype.kind == "f" and parameter.dtype != dtype:
                    grad = parameter.grad
                    parameter.data = parameter.detach().to(dtype)
                    if grad is not None:
                        parameter.grad = grad.detach().to(dtype)
            for name, buffer in module._buffers.items():
                if buffer is not None and buffer.dtype.kind == "f":
                    module._buffers[name] = buffer.to(dtype)
        return self
