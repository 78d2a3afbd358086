"""Nonlinearities as modules, for `Sequential`."""

from __future__ import annotations

from typing import Any

from tapegrad.nn import functional
from tapegrad.nn.module import Module
from tapegrad.nn.parameter import Parameter
from tapegrad.tensors.factories import full
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Nonlinearity(Module):
    """A function of `tapegrad.nn.functional` with its options; the attribute `shown` names those that are printed."""

    function: Any = None
    shown: tuple[str, ...] = ()

    def options(self) -> dict[str, Any]:
        """Keywords of the function."""
        return {name: getattr(self, name) for name in self.shown}

    def forward(self, input: Tensor) -> Tensor:
        """The function of the input."""
        return type(self).function(input, **self.options())

    def extra_repr(self) -> str:
        """The options."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.shown)


class Sigmoid(_Nonlinearity):
    """``1 / (1 + exp(-x))``."""

    function = staticmethod(functional.sigmoid)


class Tanh(_Nonlinearity):
    """The hyperbolic tangent."""

    function = staticmethod(functional.tanh)


class LogSigmoid(_Nonlinearity):
    """`functional.logsigmoid` as a module."""

    function = staticmethod(functional.logsigmoid)


class Softsign(_Nonlinearity):
    """`functional.softsign` as a module."""

    function = staticmethod(functional.softsign)


class Tanhshrink(_Nonlinearity):
    """`functional.tanhshrink` as a module."""

    function = staticmethod(functional.tanhshrink)


class _InPlace(_Nonlinearity):
    """A nonlinearity that can write into its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def options(self) -> dict[str, Any]:
        """Keywords of the function."""
        return super().options() | {"inplace": self.inplace}

    def extra_repr(self) -> str:
        """The options."""
        return ", ".join(part for part in (super().extra_repr(), "inplace=True" if self.inplace else "") if part)


class ReLU(_InPlace):
    """``max(x, 0)``; with ``inplace=True`` written into the input.

    Examples
    --------
    >>> tg.nn.ReLU()(tg.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    function = staticmethod(functional.relu)


class ReLU6(_InPlace):
    """`functional.relu6` as a module."""

    function = staticmethod(functional.relu6)


class SELU(_InPlace):
    """`functional.selu` as a module."""

    function = staticmethod(functional.selu)


class SiLU(_InPlace):
    """`functional.silu` as a module."""

    function = staticmethod(functional.silu)


class Mish(_InPlace):
    """`functional.mish` as a module."""

    function = staticmethod(functional.mish)


class Hardswish(_InPlace):
    """`functional.hardswish` as a module."""

    function = staticmethod(functional.hardswish)


class Hardsigmoid(_InPlace):
    """`functional.hardsigmoid` as a module."""

    function = staticmethod(functional.hardsigmoid)


class ELU(_InPlace):
    """`functional.elu` as a module."""

    function = staticmethod(functional.elu)
    shown = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha


class CELU(_InPlace):
    """`functional.celu` as a module."""

    function = staticmethod(functional.celu)
    shown = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha


class LeakyReLU(_InPlace):
    """`functional.leaky_relu` as a module."""

    function = staticmethod(functional.leaky_relu)
    shown = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope


class Hardtanh(_InPlace):
    """`functional.hardtanh` as a module."""

    function = staticmethod(functional.hardtanh)
    shown = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        if max_val <= min_val:
            raise ValueError(f"max_val must be larger than min_val, but got {max_val} and {min_val}")
        self.min_val, self.max_val = min_val, max_val


class Threshold(_InPlace):
    """`functional.threshold` as a module."""

    function = staticmethod(functional.threshold)
    shown = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold, self.value = threshold, value


class RReLU(_InPlace):
    """`functional.rrelu` as a module: random slopes in training."""

    function = staticmethod(functional.rrelu)
    shown = ("lower", "upper")

    def __init__(self, lower: float = 1.0 / 8.0, upper: float = 1.0 / 3.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.lower, self.upper = lower, upper

    def options(self) -> dict[str, Any]:
        """Keywords of the function."""
        return super().options() | {"training": self.training}


class GELU(_Nonlinearity):
    """`functional.gelu` as a module."""

    function = staticmethod(functional.gelu)
    shown = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate


class Softplus(_Nonlinearity):
    """`functional.softplus` as a module."""

    function = staticmethod(functional.softplus)
    shown = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold


class _Shrink(_Nonlinearity):
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def options(self) -> dict[str, Any]:
        """Keywords of the function."""
        return {"lambd": self.lambd}

    def extra_repr(self) -> str:
        """The width of the gap."""
        return f"{self.lambd}"


class Softshrink(_Shrink):
    """`functional.softshrink` as a module."""

    function = staticmethod(functional.softshrink)


class Hardshrink(_Shrink):
    """`functional.hardshrink` as a module."""

    function = staticmethod(functional.hardshrink)


class _Along(_Nonlinearity):
    shown = ("dim",)

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim


class Softmax(_Along):
    """Exponentials normalised to a sum of one along an axis.

    Parameters
    ----------
    dim : int
        The axis.
    """

    function = staticmethod(functional.softmax)


class Softmin(_Along):
    """`functional.softmin` along an axis as a module."""

    function = staticmethod(functional.softmin)


class LogSoftmax(_Along):
    """`functional.log_softmax` along an axis as a module."""

    function = staticmethod(functional.log_softmax)


class GLU(_Along):
    """`functional.glu` as a module."""

    function = staticmethod(functional.glu)

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim)


class Softmax2d(Module):
    """`Softmax` over the channels of images: input of shape (n, c, h, w) or (c, h, w)."""

    def forward(self, input: Tensor) -> Tensor:
        """The normalised exponentials, in the shape of ``input``."""
        if array_of(input).ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {array_of(input).ndim}D instead")
        return functional.softmax(input, -3)


class PReLU(Module):
    """``x`` where positive, else ``x`` times a learned slope; one for all or one for each channel.

    Parameters
    ----------
    num_parameters : int
        1, or the number of channels.
    init : float
        What the slopes start at.
    dtype : dtype, optional
        Floating dtype of the slopes; the default float if not given.

    Attributes
    ----------
    weight : Parameter, shape (num_parameters,)
    """

    weight: Parameter

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(full((num_parameters,), float(init), dtype=dtype))

    def forward(self, input: Tensor) -> Tensor:
        """The function of every element."""
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of slopes."""
        return f"num_parameters={self.num_parameters}"
