"""Products of a linear tape with tracked vectors, recorded: the map is constant, so its derivative is the transposed product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.drivers.derivatives import sizes_of
from tapegrad.ops.joining import cat
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["recorded_product"]


def recorded_product(derivative: Any, vectors: Sequence[Any], results: Sequence[Tensor], transposed: bool) -> list[Tensor]:
    """The product of a constant Jacobian with vectors, in the shapes of other tensors.

    Parameters
    ----------
    derivative : Derivative
        Of which no row will change.
    vectors : sequence of Tensor or ndarray
        In the order of its inputs, of its outputs if `transposed`.
    results : sequence of Tensor
        Of the shapes and dtypes that the parts of the product have.
    transposed : bool
    """
    whole = cat([(v if isinstance(v, Tensor) else wrap(np.asarray(v, np.float64))).reshape(-1) for v in vectors])
    product = _product(derivative, whole, transposed)
    made, done = [], 0
    for t, size in zip(results, sizes_of(results), strict=True):
        made.append(product[done : done + size].reshape(np.shape(t._data)).to(array_of(t).dtype))
        done += size
    return made


def _product(derivative: Any, vector: Tensor, transposed: bool) -> Tensor:
    multiply = derivative.pull if transposed else derivative.push
    return apply(_PRODUCT, (vector,), multiply(array_of(vector)[:, None])[:, 0], (derivative, transposed))


def _vjp(g: Tensor, ctx: Context) -> tuple[Tensor | None, ...]:
    derivative, transposed = ctx.attrs
    return (_product(derivative, g, not transposed),)


def _of_many(x_dot: np.ndarray[Any, Any], ctx: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    derivative, transposed = ctx.attrs
    found: np.ndarray[Any, Any] = (derivative.pull if transposed else derivative.push)(x_dot)
    return found


_PRODUCT = Structural("LinearMapBackward0", ((),), _vjp, linear=(_of_many,))
