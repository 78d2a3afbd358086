"""The method `Tensor.backward`, which most programs call with one root and nothing else."""

from __future__ import annotations

from typing import Any

from tapegrad.arrays import dtypes
from tapegrad.autograd.sweep import sweep_from
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor

__all__ = ["tensor_backward"]


def tensor_backward(
    self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """Accumulate the gradients of this tensor into the leaves; see `tapegrad.autograd.backward`."""
    if not retain_graph and not create_graph and inputs is None and self._row > 0 and not TAPE.anomalies:
        data = self._data
        if gradient is None:
            if type(data) is float or data.size == 1:
                sweep_from(self._row, 1.0)
                return
        elif type(data) is float and type(gradient) is Tensor:
            seed = gradient._data
            if type(seed) is float or (seed.ndim == 0 and seed.dtype == dtypes.float64):
                sweep_from(self._row, float(seed))
                return
    from tapegrad.autograd.entry_points import backward

    backward(self, None if gradient is None else (gradient,), retain_graph, create_graph, inputs)
