"""Random numbers that tensors give the chances of, and random numbers written into tensors.

All are drawn from the generator of `tapegrad.manual_seed`. What is written in place cuts the gradient of what was there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.errors import ShapeError
from tapegrad.ops.arithmetic import plain_number
from tapegrad.ops.elementwise import FUNCTIONS
from tapegrad.ops.in_place import copy_
from tapegrad.tensors.random import source
from tapegrad.tensors.tensor import Tensor, array_of, wrap
from tapegrad.tensors.tracers import looks_at_values, writes_operands

__all__ = [
    "bernoulli", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "multinomial", "normal_", "random_",
    "uniform_",
]  # fmt: skip

Array = np.ndarray[Any, Any]


@looks_at_values
def bernoulli(input: Tensor, p: float | None = None) -> Tensor:
    """Ones with the probabilities that `input` gives, else zeros.

    Parameters
    ----------
    input : Tensor of floats
    p : float, optional
        The probability of every element, in place of those of `input`.

    Returns
    -------
    Tensor, of shape and dtype of `input`
        Its gradient by `input` is zero.

    Raises
    ------
    RuntimeError
        If a probability is not between 0 and 1, or `input` is not of floats.

    Examples
    --------
    >>> tg.bernoulli(tg.tensor([0.0, 1.0, 1.0]))
    tensor([0., 1., 1.])
    """
    data = array_of(input)
    if p is not None:
        return wrap(_ones_with(_chances("bernoulli", np.asarray(p)), data.shape).astype(data.dtype))
    if data.dtype.kind != "f":
        raise RuntimeError(f"bernoulli: probabilities are floating point numbers, but input has dtype {type_name(data.dtype)}")
    _chances("bernoulli", data)
    # Numbers in (0, 1], exact in the dtype: the floor is -1 or 0, and a derivative by `input` that is zero comes with it.
    bits = 1 << np.finfo(data.dtype).nmant
    drawn = (source().integers(1, bits, data.shape, endpoint=True) / bits).astype(data.dtype)
    return FUNCTIONS["floor"](input - wrap(drawn)) + 1.0


@looks_at_values
def multinomial(input: Tensor, num_samples: int, replacement: bool = False) -> Tensor:
    """Indices that are drawn with the probabilities in `input`.

    Parameters
    ----------
    input : Tensor, shape (n,) or (rows, n)
        Weights that are not negative; they need not sum to one.
    num_samples : int
        How many are drawn, for each row.
    replacement : bool
        Whether an index may be drawn again.

    Returns
    -------
    Tensor of int64, shape (num_samples,) or (rows, num_samples)

    Raises
    ------
    RuntimeError
        If a weight is negative or not finite, all of a row are zero, or more are to be drawn than there are without replacement.

    Examples
    --------
    >>> tg.multinomial(tg.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
    tensor([1, 1])
    """
    data = array_of(input)
    if data.ndim not in (1, 2):
        raise ShapeError(f"multinomial: prob_dist must be 1 or 2 dim, but input has shape {list(data.shape)}")
    if data.dtype.kind != "f":
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {type_name(data.dtype)}")
    if num_samples <= 0:
        raise RuntimeError(f"cannot sample n_sample <= 0 samples, but num_samples is {num_samples}")
    weights = np.asarray(data, np.float64)
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not weights.shape[-1] or not weights.any(-1).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if not weights.size and (replacement or num_samples <= weights.shape[-1]):
        return wrap(np.empty((0, num_samples), np.int64))
    if replacement:
        shares = np.cumsum(weights / weights.max(-1, keepdims=True), -1).reshape(-1, weights.shape[-1])
        drawn = source().random((len(shares), num_samples)) * shares[:, -1:]
        found = np.stack([np.searchsorted(row, of_row, "right") for row, of_row in zip(shares, drawn, strict=True)])
        last = weights.shape[-1] - 1 - np.argmax((weights > 0).reshape(shares.shape)[:, ::-1], 1)
        found = np.minimum(found, last[:, None])  # a product that was rounded up to the sum itself
        return wrap(found.reshape(*weights.shape[:-1], num_samples).astype(np.int64))
    if num_samples > weights.shape[-1]:
        raise RuntimeError(
            f"cannot sample n_sample > prob_dist.size(-1) samples without replacement: {num_samples} of {weights.shape[-1]}"
        )
    if num_samples > np.count_nonzero(weights, -1).min():
        raise RuntimeError(
            f"invalid multinomial distribution (with replacement=False, not enough non-negative category to sample): {num_samples} "
            f"of {np.count_nonzero(weights, -1).min()} with a weight that is not zero"
        )
    # The first to arrive of independent processes with these rates (Efraimidis and Spirakis 2006).
    with quiet():
        arrival = source().standard_exponential(weights.shape) / weights
    return wrap(np.argsort(arrival, -1, kind="stable")[..., :num_samples].astype(np.int64))


@writes_operands
def normal_(t: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Write normal numbers of a mean and a standard deviation into the tensor; returns it.

    Raises
    ------
    RuntimeError
        If `std` is negative.
    """
    mean, std = plain_number("normal_", "mean", mean), plain_number("normal_", "std", std)
    if not std >= 0.0:
        raise RuntimeError(f"normal_ expects std >= 0.0, but found std={std}")
    return _drawn_into(t, "normal_", source().standard_normal(_floats(t, "normal_")) * std + mean)


@writes_operands
def uniform_(t: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Write numbers into the tensor that are uniform in ``[a, b)``; returns it.

    Raises
    ------
    RuntimeError
        If `a` is larger than `b`, or they or their difference are beyond the dtype.
    """
    a, b = plain_number("uniform_", "from", a), plain_number("uniform_", "to", b)
    if not a <= b:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={a} > to={b}")
    shape, dtype = _floats(t, "uniform_"), array_of(t).dtype
    most = float(np.finfo(dtype).max)
    if not (-most <= a and b <= most and b - a <= most):
        raise RuntimeError(
            f"uniform_ expects from, to and to - from <= {most} for {type_name(dtype)}, but found from={a} and to={b}"
        )
    below = np.nextafter(dtype.type(b), dtype.type(a))  # what is rounded up could be `b`
    return _drawn_into(t, "uniform_", np.minimum((source().random(shape) * (b - a) + a).astype(dtype), below))


@writes_operands
def exponential_(t: Tensor, lambd: float = 1.0) -> Tensor:
    """Write exponentially distributed numbers of a rate into the tensor; returns it.

    Raises
    ------
    RuntimeError
        If the rate is not positive.
    """
    lambd = plain_number("exponential_", "lambd", lambd)
    if not lambd > 0.0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    return _drawn_into(t, "exponential_", source().standard_exponential(_floats(t, "exponential_")) / lambd)


@writes_operands
def cauchy_(t: Tensor, median: float = 0.0, sigma: float = 1.0) -> Tensor:
    """Write numbers of a Cauchy distribution into the tensor, by its median and half width; returns it.

    Raises
    ------
    RuntimeError
        If `sigma` is not positive.
    """
    median, sigma = plain_number("cauchy_", "median", median), plain_number("cauchy_", "sigma", sigma)
    if not sigma > 0.0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return _drawn_into(t, "cauchy_", source().standard_cauchy(_floats(t, "cauchy_")) * sigma + median)


@writes_operands
def log_normal_(t: Tensor, mean: float = 1.0, std: float = 2.0) -> Tensor:
    """Write numbers into the tensor whose logarithm is normal with a mean and a standard deviation; returns it.

    Raises
    ------
    RuntimeError
        If `std` is not positive.
    """
    mean, std = plain_number("log_normal_", "mean", mean), plain_number("log_normal_", "std", std)
    if not std > 0.0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    with quiet():
        return _drawn_into(t, "log_normal_", np.exp(source().standard_normal(_floats(t, "log_normal_")) * std + mean))


@writes_operands
def geometric_(t: Tensor, p: float) -> Tensor:
    """Write into the tensor how many trials of a probability it takes to the first success; returns it.

    Raises
    ------
    RuntimeError
        If `p` is not between 0 and 1.
    """
    p = plain_number("geometric_", "p", p)
    if not 0.0 < p < 1.0:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    return _drawn_into(t, "geometric_", source().geometric(p, array_of(t).shape))


@writes_operands
def bernoulli_(t: Tensor, p: float | Tensor = 0.5) -> Tensor:
    """Write ones with the probability `p`, else zeros, into the tensor; returns it.

    Parameters
    ----------
    t : Tensor
    p : float or Tensor
        Of a shape that broadcasts to that of `t`; no gradient flows through it.

    Raises
    ------
    RuntimeError
        If a probability is not between 0 and 1.
    """
    chances = _chances("bernoulli_", array_of(p) if isinstance(p, Tensor) else np.asarray(p))
    shape = array_of(t).shape
    if np.broadcast_shapes(chances.shape, shape) != shape:
        raise ShapeError(f"bernoulli_: probabilities of shape {list(chances.shape)} do not broadcast to {list(shape)}")
    return _drawn_into(t, "bernoulli_", _ones_with(chances, shape))


@writes_operands
def random_(t: Tensor, *bounds: int | None) -> Tensor:
    """Write integers into the tensor that are uniform in ``[low, high)``; returns it.

    ``random_()`` takes all from 0 that the dtype has exactly, ``random_(high)`` those from 0, ``random_(low, high)`` those between.

    Raises
    ------
    RuntimeError
        If `low` is not less than `high`, or the dtype cannot hold them.
    """
    if len(bounds) > 2:
        raise TypeError(f"random_() takes random_(), random_(high) or random_(low, high), but got {len(bounds)} bounds")
    dtype = array_of(t).dtype
    if dtype.kind == "b":
        least, most = 0, 1
    elif dtype.kind == "f":
        least, most = -(1 << np.finfo(dtype).nmant + 1), 1 << np.finfo(dtype).nmant + 1
    else:
        least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    low, high = (0, *bounds)[-2:] if bounds else (0, None)
    first, last = 0 if low is None else int(low), most if high is None else int(high) - 1
    if first > last:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={first} >= to={last + 1}")
    if first < least or last > most:
        raise RuntimeError(f"from - to is out of bounds for {type_name(dtype)}: {first} to {last} is not in [{least}, {most}]")
    return _drawn_into(t, "random_", source().integers(first, last, array_of(t).shape, endpoint=True))


def _floats(t: Tensor, name: str) -> tuple[int, ...]:
    """Shape of a tensor that takes floats."""
    data = array_of(t)
    if data.dtype.kind != "f":
        raise NotImplementedError(f"{name}() is not implemented for '{type_name(data.dtype)}'; use a floating dtype")
    return data.shape


def _chances(name: str, p: Array) -> Array:
    if not ((p >= 0) & (p <= 1)).all():
        raise RuntimeError(f"{name} expects p_in >= 0 && p_in <= 1, but got probabilities from {p.min()} to {p.max()}")
    return p


def _ones_with(chances: Array, shape: tuple[int, ...]) -> Array:
    return np.asarray(source().random(shape) < chances)


def _drawn_into(t: Tensor, name: str, drawn: Any) -> Tensor:
    with quiet():
        return copy_(t, wrap(np.asarray(drawn).astype(array_of(t).dtype)))
