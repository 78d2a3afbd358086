"""What a line of NumPy makes of tensors, compared with what it makes of arrays, and its derivatives with central differences."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numerical import check_gradients

import tapegrad as tg

__all__ = ["assert_like_numpy", "parts", "values_of"]


def parts(result: Any) -> tuple[Any, ...]:
    """Results one by one."""
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def values_of(f: Callable[..., Any], *arrays: Any) -> tuple[Any, ...]:
    """NumPy's results, after those of tensors were found to be the same in value, shape and dtype."""
    expected = parts(f(*arrays))
    for requires_grad in (False, True):
        tensors = [tg.tensor(array, requires_grad=requires_grad and np.asarray(array).dtype.kind == "f") for array in arrays]
        results = parts(f(*tensors))
        assert all(isinstance(result, tg.Tensor) for result in results)
        assert results[0].requires_grad == any(t.requires_grad for t in tensors)
        for result, value in zip(results, expected, strict=True):
            assert (result.shape, result.dtype) == (np.shape(value), np.asarray(value).dtype)
            rtol = 1e-5 if result.dtype == np.float32 else 1e-12
            np.testing.assert_allclose(result.detach().numpy(), value, rtol=rtol, atol=1e-15)
    return expected


def assert_like_numpy(f: Callable[..., Any], *arrays: Any, order: int = 1) -> None:
    """The same values, and derivatives up to `order` that agree with central differences."""
    values_of(f, *arrays)
    check_gradients(lambda *tensors: parts(f(*tensors)), *arrays, order=order)
