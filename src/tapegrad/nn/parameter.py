"""Parameter: a tensor that a module finds by being assigned to it."""

from typing import Any

from tapegrad.surface.copying import deep_copy
from tapegrad.tensors.factories import empty
from tapegrad.tensors.inference_tensors import check_inference_flag
from tapegrad.tensors.tensor import Tensor

__all__ = ["Parameter"]


class Parameter(Tensor):
    """A leaf that `Module` takes for one of its parameters.

    Parameters
    ----------
    data : Tensor, optional
        The values, with which memory is shared; an empty tensor if not given.
    requires_grad : bool
        Whether operations on it are recorded.

    Examples
    --------
    >>> tg.nn.Parameter(tg.tensor([1.0, 2.0]))
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    __slots__ = ()

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        source = empty(0) if data is None else data
        if not isinstance(source, Tensor):
            raise TypeError(f"Parameter data has to be a tensor, but got {type(source).__name__}; use tg.tensor(...)")
        if requires_grad:
            check_inference_flag(source)
        self._data = source.detach()._data
        self.requires_grad_(requires_grad)

    def __deepcopy__(self, memo: dict[Any, Any]) -> Tensor:
        # As in PyTorch: the copy of a module starts without gradients.
        return deep_copy(self, memo, with_gradient=False)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    __str__ = __repr__
