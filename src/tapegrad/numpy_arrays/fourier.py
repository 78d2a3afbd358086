"""NumPy's discrete Fourier transforms of what is differentiated.

A transform is linear, so its vjp is the transform's adjoint: the other direction with the other scale. Four definitions do for all:
a complex transform along one axis, that of real numbers, its half (`rfft`) and the way back from it (`irfft`). Real and imaginary
part are the last axis of one array there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.numpy_arrays.array import as_arrays
from tapegrad.numpy_arrays.complex_arrays import is_complex
from tapegrad.numpy_arrays.holomorphic_functions import from_pair, of_pair, pair_of, to_pair
from tapegrad.numpy_protocol.operands import one
from tapegrad.recording.structural import Structural, apply
from tapegrad.surface import functions as tg
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["FOURIER"]

_np: Any = np
OTHER_SCALE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}
Data = np.ndarray[Any, Any]


# Attributes of the four: axis, scale, and whether it is the inverse; of the halves the length of the real side.


def _transform(pair: Tensor, axis: int, norm: str, inverse: bool) -> Tensor:
    return apply(_FFT, (pair,), _transformed((array_of(pair),), (axis, norm, inverse)), (axis, norm, inverse))


def _transformed(arrays: Sequence[Any], attrs: Any) -> Any:
    axis, norm, inverse = attrs
    function: Any = np.fft.ifft if inverse else np.fft.fft
    return of_pair(function(from_pair(arrays[0]), axis=axis, norm=norm))


def _transform_of_real(x: Tensor, axis: int, norm: str, inverse: bool) -> Tensor:
    return apply(_FFT_OF_REAL, (x,), _real_transformed((array_of(x),), (axis, norm, inverse)), (axis, norm, inverse))


def _real_transformed(arrays: Sequence[Any], attrs: Any) -> Any:
    axis, norm, inverse = attrs
    function: Any = np.fft.ifft if inverse else np.fft.fft
    return of_pair(function(arrays[0], axis=axis, norm=norm))


def _half(x: Tensor, axis: int, norm: str) -> Tensor:
    data = array_of(x)
    return apply(_HALF, (x,), _halved((data,), (axis, norm, 0)), (axis, norm, data.shape[axis]))


def _halved(arrays: Sequence[Any], attrs: Any) -> Any:
    axis, norm, _ = attrs
    return of_pair(np.fft.rfft(arrays[0], axis=axis, norm=norm))


def _whole(pair: Tensor, axis: int, norm: str, length: int) -> Tensor:
    return apply(_WHOLE, (pair,), _made_whole((array_of(pair),), (axis, norm, length)), (axis, norm, length))


def _made_whole(arrays: Sequence[Any], attrs: Any) -> Any:
    axis, norm, length = attrs
    return np.fft.irfft(from_pair(arrays[0]), length, axis, norm)


def _real_part(pair: Tensor) -> Tensor:
    return tg.select(pair, -1, 0)


def _vjp(g: Tensor, ctx: Any) -> tuple[Tensor]:
    axis, norm, inverse = ctx.attrs
    return (_transform(g, axis, OTHER_SCALE[norm], not inverse),)


def _vjp_of_real(g: Tensor, ctx: Any) -> tuple[Tensor]:
    axis, norm, inverse = ctx.attrs
    return (_real_part(_transform(g, axis, OTHER_SCALE[norm], not inverse)),)


def _vjp_of_half(g: Tensor, ctx: Any) -> tuple[Tensor]:
    axis, norm, length = ctx.attrs
    missing = list(g.shape)
    missing[axis] = length - g.shape[axis]
    whole = tg.cat([g, tg.zeros(missing, dtype=g.dtype)], axis)
    return (_real_part(_transform(whole, axis, OTHER_SCALE[norm], True)),)


def _vjp_of_whole(g: Tensor, ctx: Any) -> tuple[Tensor]:
    axis, norm, length = ctx.attrs
    half = _half(g, axis, OTHER_SCALE[norm])
    twice = np.full(length // 2 + 1, 2.0)  # every frequency but the first, and the last of an even number, stands for two
    twice[0] = 1.0
    if length % 2 == 0:
        twice[-1] = 1.0
    return (half * one(twice.reshape(-1, *[1] * (half.ndim - axis - 1)).astype(array_of(g).dtype)),)


_FFT = Structural("FftC2CBackward0", ((),), _vjp, forward=_transformed)
_FFT_OF_REAL = Structural("FftR2CBackward0", ((),), _vjp_of_real, forward=_real_transformed)
_HALF = Structural("FftR2CBackward0", ((),), _vjp_of_half, forward=_halved)
_WHOLE = Structural("FftC2RBackward0", ((),), _vjp_of_whole, forward=_made_whole)


# NumPy's functions


def _axis(x: Any, axis: int) -> int:
    dims = np.ndim(x)
    if not -dims <= axis < dims:
        raise np.exceptions.AxisError(axis, dims)
    return axis % dims


def _fitted(x: Any, length: Any, axis: int) -> Any:
    """The array with so many elements along an axis: cut, or with zeros behind."""
    if length is None or length == np.shape(x)[axis]:
        return x
    if length < 1:
        raise ValueError(f"Invalid number of FFT data points ({length}) specified.")
    before = (slice(None),) * axis
    if length < np.shape(x)[axis]:
        return x[(*before, slice(0, int(length)))]
    shape = list(np.shape(x))
    shape[axis] = int(length) - shape[axis]
    return _np.concatenate([x, np.zeros(shape, x.dtype)], axis)


def _scale(norm: str | None) -> str:
    norm = "backward" if norm is None else norm
    if norm not in OTHER_SCALE:
        raise ValueError(f'Invalid norm value {norm}; should be "backward","ortho" or "forward".')
    return norm


def _one_axis(inverse: bool) -> Callable[..., Any]:
    def transform(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
        k = _axis(a, axis)
        x = _fitted(a, n, k)
        if is_complex(x):
            return pair_of(_transform(to_pair(x), k, _scale(norm), inverse))
        return pair_of(_transform_of_real(_float(x), k, _scale(norm), inverse))

    return transform


def _float(x: Any) -> Tensor:
    x = one(x)
    return x if x.dtype.kind == "f" else x.to(np.float64)


def _rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    if is_complex(a):
        raise TypeError("rfft takes real numbers")
    k = _axis(a, axis)
    return pair_of(_half(_float(_fitted(a, n, k)), k, _scale(norm)))


def _irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    k = _axis(a, axis)
    length = 2 * (np.shape(a)[k] - 1) if n is None else int(n)
    if length < 1:
        raise ValueError(f"Invalid number of FFT data points ({length}) specified.")
    return as_arrays(_whole(to_pair(_fitted(a, length // 2 + 1, k)), k, _scale(norm), length))


def _hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    return _irfft(np.conjugate(a), n, axis, OTHER_SCALE[_scale(norm)])


def _ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    return np.conjugate(_rfft(a, n, axis, OTHER_SCALE[_scale(norm)]))


_fft, _ifft = _one_axis(False), _one_axis(True)


def _places(a: Any, s: Any, axes: Any) -> list[tuple[Any, int]]:
    """Lengths and axes of a transform of several dimensions."""
    if axes is None:
        axes = range(np.ndim(a)) if s is None else range(-len(s), 0)
    lengths = [None] * len(axes) if s is None else [None if n == -1 else n for n in s]
    if len(lengths) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    return [(n, int(k)) for n, k in zip(lengths, axes, strict=True)]


def _several(step: Callable[..., Any]) -> Callable[..., Any]:
    def transform(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Any:
        for n, k in reversed(_places(a, s, axes)):
            a = step(a, n, k, norm)
        return a

    return transform


def _rfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Any:
    *rest, (n, k) = _places(a, s, axes)
    a = _rfft(a, n, k, norm)
    for n, k in reversed(rest):
        a = _fft(a, n, k, norm)
    return a


def _irfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Any:
    *rest, (n, k) = _places(a, s, axes)
    for length, j in rest:
        a = _ifft(a, length, j, norm)
    return _irfft(a, n, k, norm)


def _of_two(function: Callable[..., Any]) -> Callable[..., Any]:
    def transform(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None) -> Any:
        return function(a, s, axes, norm)

    return transform


def _shift(inverse: bool) -> Callable[..., Any]:
    def shift(x: Any, axes: Any = None) -> Any:
        places = tuple(range(np.ndim(x))) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
        steps = [(-1 if inverse else 1) * (np.shape(x)[k] // 2) for k in places]
        return _np.roll(x, steps, places)

    return shift


_fftn, _ifftn = _several(_fft), _several(_ifft)
FOURIER: dict[Any, Callable[..., Any]] = {
    np.fft.fft: _fft, np.fft.ifft: _ifft, np.fft.rfft: _rfft, np.fft.irfft: _irfft, np.fft.hfft: _hfft, np.fft.ihfft: _ihfft,
    np.fft.fftn: _fftn, np.fft.ifftn: _ifftn, np.fft.rfftn: _rfftn, np.fft.irfftn: _irfftn, np.fft.fft2: _of_two(_fftn),
    np.fft.ifft2: _of_two(_ifftn), np.fft.rfft2: _of_two(_rfftn), np.fft.irfft2: _of_two(_irfftn), np.fft.fftshift: _shift(False),
    np.fft.ifftshift: _shift(True),
}  # fmt: skip
