"""Tensors of random numbers, from one NumPy generator for the process."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.dtypes import DType, as_dtype, float_or_default, type_name
from tapegrad.arrays.sizes import Lengths, parse_size
from tapegrad.tensors.devices import check_device
from tapegrad.tensors.factories import Number, finish, like
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = [
    "manual_seed",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
]

_generator: np.random.Generator | None = None


def source() -> np.random.Generator:
    """The generator, made when first used: importing `numpy.random` takes a tenth of the time of importing NumPy."""
    global _generator
    if _generator is None:
        _generator = np.random.default_rng()
    return _generator


def manual_seed(seed: int) -> np.random.Generator:
    """Start the random numbers anew, the same for the same seed.

    Returns
    -------
    numpy.random.Generator
        The generator that all functions of this module draw from.

    Examples
    --------
    >>> _ = tg.manual_seed(0)
    >>> first = tg.rand(3)
    >>> _ = tg.manual_seed(0)
    >>> bool((tg.rand(3) == first).all())
    True
    """
    global _generator
    value = int(seed)
    if not -(2**63) <= value < 2**64:
        raise ValueError(f"Overflow when unpacking long long: the seed {value} does not fit in 64 bits")
    _generator = np.random.default_rng(value % 2**64)
    return _generator


def state() -> dict[str, Any]:
    """Where the generator stands."""
    return dict(source().bit_generator.state)


def set_state(state: dict[str, Any]) -> None:
    """Let the generator stand where it stood."""
    source().bit_generator.state = state


def rand(
    *lengths: Lengths,
    size: Lengths | None = None,
    dtype: object = None,
    requires_grad: bool = False,
    device: object = None,
) -> Tensor:
    """Uniform numbers in ``[0, 1)``.

    Parameters
    ----------
    *lengths : int, or one sequence of int
        Shape of the result.
    size : sequence of int, optional
        The same, by its name.
    dtype : dtype, optional
        A floating dtype; the default float if not given.
    requires_grad : bool
        Whether operations on the result are recorded.
    device : device or str, optional
        The CPU; there is no other.
    """
    check_device(device)
    return finish(_uniform("rand", parse_size("rand", lengths, size), float_or_default(dtype)), requires_grad)


def randn(
    *lengths: Lengths,
    size: Lengths | None = None,
    dtype: object = None,
    requires_grad: bool = False,
    device: object = None,
) -> Tensor:
    """Normal numbers of mean 0 and variance 1; arguments as for `rand`."""
    check_device(device)
    return finish(_standard_normal("randn", parse_size("randn", lengths, size), float_or_default(dtype)), requires_grad)


def rand_like(input: Tensor, dtype: object = None, requires_grad: bool = False, *, device: object = None) -> Tensor:
    """`rand` with the shape, and if not given the dtype, of a tensor."""
    check_device(device)
    return finish(_uniform("rand_like", *like("rand_like", input, dtype)), requires_grad)


def randn_like(input: Tensor, dtype: object = None, requires_grad: bool = False, *, device: object = None) -> Tensor:
    """`randn` with the shape, and if not given the dtype, of a tensor."""
    check_device(device)
    return finish(_standard_normal("randn_like", *like("randn_like", input, dtype)), requires_grad)


def randint(
    *bounds_and_size: Any,
    low: Any = None,
    high: Any = None,
    size: Any = None,
    dtype: object = None,
    requires_grad: bool = False,
    device: object = None,
) -> Tensor:
    """Integers, uniform in ``[low, high)``: ``randint(high, size)`` or ``randint(low, high, size)``.

    Parameters
    ----------
    low, high : int
        Bounds; `low` is 0 if not given.
    size : sequence of int
        Shape of the result.
    dtype : dtype, optional
        int64 if not given.

    Raises
    ------
    RuntimeError
        If `low` is not less than `high`, or the dtype cannot hold them.

    Examples
    --------
    >>> tg.randint(7, 8, (2,))
    tensor([7, 7])
    """
    check_device(device)
    arguments = list(bounds_and_size)
    if size is None and arguments:
        size = arguments.pop()
    arguments = [*([] if low is None else [low]), *arguments, *([] if high is None else [high])]
    if not isinstance(size, tuple | list) or len(arguments) not in (1, 2) or (low is not None and len(arguments) == 1):
        raise TypeError("randint() takes randint(high, size) or randint(low, high, size), with size a tuple of ints")
    low, high = (0, *arguments)[-2:]
    kind = dtypes.int64 if dtype is None else as_dtype(dtype)
    return finish(_integers(low, high, parse_size("randint", (size,)), kind), requires_grad)


def randint_like(
    input: Tensor, low: int, high: int | None = None, dtype: object = None, requires_grad: bool = False, *, device: object = None
) -> Tensor:
    """`randint` with the shape, and if not given the dtype, of a tensor."""
    check_device(device)
    if high is None:
        low, high = 0, low
    return finish(_integers(low, high, *like("randint_like", input, dtype)), requires_grad)


def randperm(n: int, dtype: object = None, requires_grad: bool = False, *, device: object = None) -> Tensor:
    """The numbers 0 to ``n - 1`` in random order, of shape ``(n,)`` and int64 if no dtype is given."""
    check_device(device)
    kind = dtypes.int64 if dtype is None else as_dtype(dtype)
    (length,) = parse_size("randperm", (n,))
    return finish(source().permutation(length).astype(kind), requires_grad)


def normal(
    mean: Number | Tensor,
    std: Number | Tensor = 1.0,
    size: Any = None,
    dtype: object = None,
    requires_grad: bool = False,
    *,
    device: object = None,
) -> Tensor:
    """Normal numbers of a given mean and standard deviation.

    Parameters
    ----------
    mean, std : number or Tensor
        Tensors are broadcast against each other; no gradient flows through them.
    size : sequence of int, optional
        Shape of the result; needed if, and only if, both are numbers.

    Raises
    ------
    RuntimeError
        If `std` is negative, or the shapes do not broadcast.
    """
    check_device(device)
    center, spread = _parameter("mean", mean), _parameter("std", std)
    if (size is None) != (isinstance(mean, Tensor) or isinstance(std, Tensor)):
        raise TypeError("normal() takes size=(...) if mean and std are numbers, and no size if one is a tensor")
    if (spread < 0).any():
        raise RuntimeError(f"normal expects std >= 0.0, but found std {spread.min()}")
    try:
        shape = np.broadcast_shapes(center.shape, spread.shape) if size is None else parse_size("normal", (size,))
    except ValueError:
        raise RuntimeError(f"normal(): the shapes of mean {center.shape} and std {spread.shape} must match or broadcast") from None
    if dtype is not None:
        kind = as_dtype(dtype)
    elif size is not None:
        kind = dtypes.get_default_dtype()
    else:
        kind = center.dtype if isinstance(mean, Tensor) else spread.dtype
    drawn = _standard_normal("normal", shape, kind)
    return finish((center + spread * drawn).astype(kind), requires_grad)


def _parameter(name: str, value: Any) -> np.ndarray:
    if isinstance(value, Tensor):
        return array_of(value)
    if isinstance(value, bool | int | float | np.generic):
        return np.asarray(value)
    raise TypeError(f"normal(): argument '{name}' must be Number or Tensor, not {type(value).__name__}")


def _uniform(name: str, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    _check_floating(name, dtype)
    if dtype == dtypes.float16:
        # Rounding a wider number could give 1, which the interval excludes; these are exact.
        return (source().integers(0, 2**11, shape) / 2**11).astype(dtype)
    return np.asarray(source().random(shape, dtype=dtype.type))


def _standard_normal(name: str, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    _check_floating(name, dtype)
    wide = dtypes.float32 if dtype == dtypes.float16 else dtype
    return np.asarray(source().standard_normal(shape, dtype=wide.type)).astype(dtype)


def _check_floating(name: str, dtype: DType) -> None:
    if dtype.kind != "f":
        raise NotImplementedError(f"{name}() is not implemented for '{type_name(dtype)}'; use a floating dtype")


def _integers(low: int, high: int, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if low < limits.min or high - 1 > limits.max:
            raise RuntimeError(
                f"from - to is out of bounds for {dtype.name}: {low} to {high - 1} is not in [{limits.min}, {limits.max}]"
            )
    return np.asarray(source().integers(low, high, shape)).astype(dtype)
