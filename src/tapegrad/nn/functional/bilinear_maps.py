"""Maps that are linear in each of two arguments."""

from __future__ import annotations

from tapegrad.errors import ShapeError
from tapegrad.ops.products import matmul
from tapegrad.ops.shaping import reshape, unsqueeze
from tapegrad.ops.transposing import permute
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["bilinear"]


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``y[k] = x1 @ weight[k] @ x2 + bias[k]``.

    Parameters
    ----------
    input1 : Tensor, shape (..., m)
    input2 : Tensor, shape (..., n)
    weight : Tensor, shape (k, m, n)
    bias : Tensor, shape (k,), optional

    Returns
    -------
    Tensor, shape (..., k)

    Raises
    ------
    RuntimeError
        If the shapes do not fit together.

    Examples
    --------
    >>> tg.nn.functional.bilinear(tg.tensor([1.0, 2.0]), tg.tensor([3.0]), tg.tensor([[[1.0], [1.0]]]))
    tensor([9.])
    """
    first, second, shape = array_of(input1).shape, array_of(input2).shape, array_of(weight).shape
    if len(first) != len(second):
        raise ShapeError(f"bilinear(): input dimensions do not match: got {len(first)} and {len(second)}")
    if first[:-1] != second[:-1]:
        k = next(k for k, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)
        raise ShapeError(f"bilinear(): input batch dimensions do not match at dim {k}: got {first[k]} and {second[k]}")
    for number, own, wanted in ((1, first, 1), (2, second, 2)):
        if len(shape) != 3 or not own or own[-1] != shape[wanted]:
            raise ShapeError(
                f"bilinear(): input{number} size does not match weight size: got {own[-1] if own else 0} but expected "
                f"{shape[wanted] if len(shape) == 3 else list(shape)}"
            )
    if bias is not None and array_of(bias).shape != shape[:1]:
        raise ShapeError(
            f"bilinear(): bias size does not match weight size: got {list(array_of(bias).shape)} but expected {shape[0]}"
        )
    out, m, n = shape
    # One product with all maps beside one another, and one for each place in the batch.
    beside = reshape(permute(weight, 1, 0, 2), (m, out * n))
    turned = reshape(matmul(input1, beside), (*first[:-1], out, n))
    y = reshape(matmul(turned, unsqueeze(input2, -1)), (*first[:-1], out))
    return y if bias is None else y + bias
