"""The elements under every window as columns, and columns added back into place."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tapegrad.errors import ShapeError
from tapegrad.nn.functional.sliding import Windows, columns, computed, places_of, sliding
from tapegrad.nn.functional.sliding import fold as add_back
from tapegrad.nn.functional.spatial_sizes import Sizes, per_dimension
from tapegrad.recording.structural import Context, Structural, apply, one_by_one
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["fold", "unfold"]

Numbers = int | tuple[int, ...]


def unfold(input: Tensor, kernel_size: Numbers, dilation: Numbers = 1, padding: Numbers = 0, stride: Numbers = 1) -> Tensor:
    """The elements under every window of an image, as the columns of a matrix.

    Parameters
    ----------
    input : Tensor, shape (n, c, h, w) or (c, h, w)
    kernel_size, dilation, padding, stride : int or pair of int

    Returns
    -------
    Tensor, shape (n, c * kernel elements, windows)

    Raises
    ------
    RuntimeError
        If the rank is wrong, a number makes no sense, or no window fits.

    Examples
    --------
    >>> tg.nn.functional.unfold(tg.tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]), 2)
    tensor([[1., 2.],
            [2., 3.],
            [4., 5.],
            [5., 6.]])
    """
    shape = array_of(input).shape
    if len(shape) not in (3, 4) or not all(shape[-3:]):
        raise ShapeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: "
            f"{list(shape)}"
        )
    windows = _windows(shape[-2:], kernel_size, dilation, padding, stride)
    return _unfolded(input, windows)


def fold(
    input: Tensor,
    output_size: Numbers,
    kernel_size: Numbers,
    dilation: Numbers = 1,
    padding: Numbers = 0,
    stride: Numbers = 1,
) -> Tensor:
    """The transpose of `unfold`: an image with every column added in the place of its window.

    Parameters
    ----------
    input : Tensor, shape (n, c * kernel elements, windows) or without the batch
    output_size : int or pair of int
        Size of the image.
    kernel_size, dilation, padding, stride : int or pair of int

    Returns
    -------
    Tensor, shape ``(n, c, *output_size)``

    Raises
    ------
    RuntimeError
        If the shapes do not fit together.

    Examples
    --------
    >>> tg.nn.functional.fold(tg.ones(1, 4, 2), (2, 3), 2)
    tensor([[[[1., 2., 1.],
              [1., 2., 1.]]]])
    """
    shape = array_of(input).shape
    if len(shape) not in (2, 3) or not all(shape[-2:]):
        raise ShapeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but "
            f"got: {list(shape)}"
        )
    windows = _windows(
        per_dimension(output_size, 2, "fold: output_size must be one int or two"), kernel_size, dilation, padding, stride
    )
    elements, count = math.prod(windows.kernel), math.prod(windows.places)
    if shape[-2] % elements:
        raise ShapeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)="
            f"{shape[-2]} and kernel_size={windows.kernel}."
        )
    if shape[-1] != count:
        raise ShapeError(
            f"Given output_size={windows.extents}, kernel_size={windows.kernel}, dilation={windows.dilation}, stride="
            f"{windows.stride}, expected size of input's dimension 2 to match the calculated number of sliding blocks {count}, "
            f"but got input.size(2)={shape[-1]}."
        )
    return _folded(input, windows)


def _windows(extents: Sizes, kernel: Numbers, dilation: Numbers, padding: Numbers, stride: Numbers) -> Windows:
    window, gaps, before, steps = (
        per_dimension(value, 2, f"{what} must be one int or two")
        for what, value in (("kernel_size", kernel), ("dilation", dilation), ("padding", padding), ("stride", stride))
    )
    for what, values, least in (("kernel_size", window, 1), ("dilation", gaps, 1), ("stride", steps, 1), ("padding", before, 0)):
        if min(values) < least:
            raise RuntimeError(f"{what} should be at least {least}, but got {values}")
    places = places_of(extents, window, steps, gaps, [2 * p for p in before])
    if min(places) < 1:
        raise ShapeError(
            f"Given input with spatial size {extents}, kernel_size={window}, dilation={gaps}, padding={before}, calculated shape "
            f"of the array of sliding blocks as {places}, but its components must be at least one."
        )
    return sliding(extents, window, steps, gaps, before, places)


def _unfolded(x: Tensor, windows: Windows) -> Tensor:
    data = array_of(x)
    (wide,) = computed(data)
    pieces = columns(wide if data.ndim == 4 else wide[None], windows).astype(data.dtype, copy=windows.identical)
    return apply(_UNFOLD, (x,), pieces if data.ndim == 4 else pieces[0], windows)


def _folded(g: Tensor, windows: Windows) -> Tensor:
    data = array_of(g)
    (wide,) = computed(data)
    result = add_back(wide if data.ndim == 3 else wide[None], windows).astype(data.dtype, copy=windows.identical)
    return apply(_FOLD, (g,), result if data.ndim == 3 else result[0], windows)


def _unfold_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (_folded(g, ctx.attrs),)


def _fold_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return (_unfolded(g, ctx.attrs),)


_UNFOLD = Structural("Im2ColBackward0", ((),), _unfold_vjp, linear=(one_by_one(lambda x, ctx: _unfolded(x, ctx.attrs)),))
_FOLD = Structural("Col2ImBackward0", ((),), _fold_vjp, linear=(one_by_one(lambda g, ctx: _folded(g, ctx.attrs)),))
