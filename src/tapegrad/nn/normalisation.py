"""Normalising layers as modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapegrad.arrays import dtypes
from tapegrad.nn import functional, init
from tapegrad.nn.module import Module
from tapegrad.nn.parameter import Parameter
from tapegrad.tensors.factories import empty, ones, tensor, zeros
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
]


class _Scaled(Module):
    """A module with a weight that starts at one and a bias that starts at zero, or neither."""

    weight: Parameter | None
    bias: Parameter | None

    def _add_scales(self, shape: tuple[int, ...], weighted: bool, biased: bool, dtype: Any) -> None:
        for name, wanted in (("weight", weighted), ("bias", biased)):
            self.register_parameter(name, Parameter(empty(*shape, dtype=dtype)) if wanted else None)

    def reset_parameters(self) -> None:
        """Set weight and bias to their starting values."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Scaled):
    """Mean zero and variance one over the last dimensions; see `functional.layer_norm`.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        Sizes of these dimensions.
    eps : float
        Added to the variance.
    elementwise_affine, bias : bool
        Whether there are a weight, and a bias with it.
    dtype : dtype, optional
        Floating dtype of the parameters; the default float if not given.

    Examples
    --------
    >>> tg.nn.LayerNorm(3)
    LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._add_scales(self.normalized_shape, elementwise_affine, elementwise_affine and bias, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """The normalised elements, in the shape of ``input``."""
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The dimensions, and whether there are parameters."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(_Scaled):
    """Elements divided by the root of their mean square over the last dimensions; see `functional.rms_norm`.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        Sizes of these dimensions.
    eps : float, optional
        Added to the mean square.
    elementwise_affine : bool
        Whether there is a weight.
    dtype : dtype, optional
        Floating dtype of the weight; the default float if not given.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter("weight", Parameter(ones(*self.normalized_shape, dtype=dtype)) if elementwise_affine else None)

    def reset_parameters(self) -> None:
        """Set the weight to one."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised elements, in the shape of ``input``."""
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The dimensions, and whether there is a weight."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Scaled):
    """Mean zero and variance one for each group of channels; see `functional.group_norm`.

    Parameters
    ----------
    num_groups, num_channels : int
        The first divides the second.
    eps : float
        Added to the variance.
    affine, bias : bool
        Whether there are a weight, and a bias with it.
    dtype : dtype, optional
        Floating dtype of the parameters; the default float if not given.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._add_scales((num_channels,), affine, affine and bias, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """The normalised elements, in the shape of ``input``."""
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Groups and channels."""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class _Running(_Scaled):
    """A module that keeps running means and variances of its channels."""

    ranks: tuple[int, ...] = ()
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        dtype: Any,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._add_scales((num_features,), affine, affine and bias, dtype)
        self.register_buffer("running_mean", zeros(num_features, dtype=dtype) if track_running_stats else None)
        self.register_buffer("running_var", ones(num_features, dtype=dtype) if track_running_stats else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=dtypes.int64) if track_running_stats else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget what was seen."""
        for buffer, value in ((self.running_mean, 0), (self.running_var, 1), (self.num_batches_tracked, 0)):
            if buffer is not None:
                buffer.fill_(value)

    def _check_rank(self, input: Tensor) -> None:
        if array_of(input).ndim not in self.ranks:
            wanted = " or ".join(f"{rank}D" for rank in self.ranks)
            raise ValueError(f"expected {wanted} input (got {array_of(input).ndim}D input)")

    def extra_repr(self) -> str:
        """Channels and options."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_Running):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised elements, in the shape of ``input``."""
        self._check_rank(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the plain mean over all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        own = self.training or (self.running_mean is None and self.running_var is None)
        kept = not self.training or self.track_running_stats
        return functional.batch_norm(
            input,
            self.running_mean if kept else None,
            self.running_var if kept else None,
            self.weight,
            self.bias,
            own,
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Mean zero and variance one for each channel over the batch; see `functional.batch_norm`.

    In training it uses the batch's mean and variance and moves its running ones towards them, otherwise it uses these.

    Parameters
    ----------
    num_features : int
        Number of channels.
    eps : float
        Added to the variance.
    momentum : float or None
        How far the running values move; with None they are plain means over all batches.
    affine : bool
        Whether there are weight and bias.
    track_running_stats : bool
        Whether running values are kept; without them the batch's are used always.
    dtype : dtype, optional
        Floating dtype of parameters and running values; the default float if not given.

    Examples
    --------
    >>> layer = tg.nn.BatchNorm1d(2)
    >>> layer(tg.tensor([[1.0, 5.0], [3.0, 5.0]])).shape
    tapegrad.Size([2, 2])
    >>> layer.running_mean
    tensor([0.2000, 0.5000])
    """

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """`BatchNorm1d` for images: input of shape (n, c, h, w)."""

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """`BatchNorm1d` for volumes: input of shape (n, c, d, h, w)."""

    ranks = (5,)


class _InstanceNorm(_Running):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        dtype: Any = None,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised elements, in the shape of ``input``."""
        self._check_rank(input)
        batched = array_of(input).ndim == self.ranks[-1]
        result = functional.instance_norm(
            input if batched else input.unsqueeze(0),
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return result if batched else result.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Mean zero and variance one for each channel of each element of the batch; see `functional.instance_norm`.

    Parameters are those of `BatchNorm1d`; there are neither parameters nor running values unless asked for.
    """

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """`InstanceNorm1d` for images: input of shape (n, c, h, w) or (c, h, w)."""

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """`InstanceNorm1d` for volumes: input of shape (n, c, d, h, w) or (c, d, h, w)."""

    ranks = (4, 5)


class LocalResponseNorm(Module):
    """`functional.local_response_norm` as a module."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        """The normalised elements, in the shape of ``input``."""
        return functional.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The options."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
