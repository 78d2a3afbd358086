"""Resizing as modules."""

from __future__ import annotations

from typing import Any

from tapegrad.nn import functional
from tapegrad.nn.module import Module
from tapegrad.tensors.tensor import Tensor

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """`functional.interpolate` as a module.

    Parameters
    ----------
    size, scale_factor, mode, align_corners, recompute_scale_factor
        As for the function.

    Examples
    --------
    >>> tg.nn.Upsample(scale_factor=2)(tg.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = tuple(size) if isinstance(size, (list, tuple)) else size
        if isinstance(scale_factor, (list, tuple)):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode, self.align_corners, self.recompute_scale_factor = mode, align_corners, recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """`input` at the other size."""
        return functional.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        """Size or factor, and the mode."""
        size = f"scale_factor={self.scale_factor}" if self.scale_factor is not None else f"size={self.size}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of images with ``mode="nearest"``.

    Parameters
    ----------
    size, scale_factor
        As for the function.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of images with ``mode="bilinear"`` and corners on corners.

    Parameters
    ----------
    size, scale_factor
        As for the function.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", align_corners=True)
