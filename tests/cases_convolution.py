"""Convolutions and their transposes, against sums over windows written out."""

import itertools
from typing import Any

import numpy as np
from operation_case import Case

from tapegrad.nn import functional

rng = np.random.default_rng(3)

Numbers = tuple[int, ...]


def sample(*shape: int) -> np.ndarray:
    return rng.uniform(-1.5, 1.5, shape)


def convolution(x: Any, w: Any, bias: Any, stride: Numbers, padding: Any, dilation: Numbers, groups: int) -> np.ndarray:
    """Every element of the result from its window."""
    kernel = w.shape[2:]
    padding = [(p, p) if isinstance(p, int) else p for p in padding]
    padded = np.pad(x, [(0, 0), (0, 0), *padding])
    sizes = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(padded.shape[2:], kernel, stride, dilation, strict=True)]
    result = np.zeros((x.shape[0], w.shape[0], *sizes))
    inside, outside = x.shape[1] // groups, w.shape[0] // groups
    for place in np.ndindex(*sizes):
        for tap in np.ndindex(*kernel):
            at = tuple(o * s + t * d for o, s, t, d in zip(place, stride, tap, dilation, strict=True))
            for m in range(w.shape[0]):
                first = m // outside * inside
                for c in range(inside):
                    result[(slice(None), m, *place)] += padded[(slice(None), first + c, *at)] * w[(m, c, *tap)]
    return result if bias is None else result + bias.reshape((-1,) + (1,) * len(kernel))


def transposed(y: Any, w: Any, bias: Any, stride: Numbers, padding: Numbers, dilation: Numbers, more: Numbers, groups: int) -> Any:
    """The matrix of the convolution of unit signals, applied from the other side."""
    numbers = zip(y.shape[2:], stride, padding, dilation, w.shape[2:], more, strict=True)
    extents = [(n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, s, p, d, k, e in numbers]
    channels = w.shape[1] * groups
    result = np.zeros((y.shape[0], channels, *extents))
    covered = tuple(slice(0, n) for n in y.shape[2:])
    for unit in itertools.product(range(channels), *map(range, extents)):
        x = np.zeros((1, channels, *extents))
        x[(0, *unit)] = 1.0
        z = convolution(x, w, None, stride, padding, dilation, groups)[(0, slice(None), *covered)]
        result[(slice(None), *unit)] = (y * z).sum(tuple(range(1, y.ndim)))
    return result if bias is None else result + bias.reshape((-1,) + (1,) * len(extents))


def windows(x: Any) -> np.ndarray:
    """The elements under every window of size 2x2, two rows apart, of a padded image."""
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    places = [(i, j) for i in range(0, padded.shape[2] - 1, 2) for j in range(padded.shape[3] - 1)]
    return np.stack([padded[:, :, i : i + 2, j : j + 2].reshape(len(x), -1) for i, j in places], -1)


def placed(y: Any) -> np.ndarray:
    """The matrix of `windows`, applied from the other side."""
    result = np.zeros((1, 2, 2, 3))
    for unit in np.ndindex(result.shape):
        x = np.zeros(result.shape)
        x[unit] = 1.0
        result[unit] = (windows(x) * y).sum()
    return result


CASES: list[Case] = [
    Case(
        "conv1d",
        lambda x, w, b: functional.conv1d(x, w, b, stride=2, padding=1, dilation=2),
        (sample(2, 2, 6), sample(3, 2, 2), sample(3)),
        lambda x, w, b: convolution(x, w, b, (2,), (1,), (2,), 1),
        "stride padding dilation",
    ),
    Case(
        "conv1d",
        lambda x, w: functional.conv1d(x, w, padding="same"),
        (sample(1, 2, 4), sample(2, 2, 2)),
        lambda x, w: convolution(x, w, None, (1,), [(0, 1)], (1,), 1),
        "same, even window",
    ),
    Case(
        "conv1d",
        functional.conv1d,
        (sample(2, 5), sample(1, 2, 3)),
        lambda x, w: convolution(x[None], w, None, (1,), (0,), (1,), 1)[0],
        "no batch",
    ),
    Case(
        "conv2d",
        lambda x, w, b: functional.conv2d(x, w, b, stride=(2, 1), padding=(0, 1)),
        (sample(2, 2, 4, 3), sample(2, 2, 2, 2), sample(2)),
        lambda x, w, b: convolution(x, w, b, (2, 1), (0, 1), (1, 1), 1),
        "stride padding",
    ),
    Case(
        "conv2d",
        lambda x, w: functional.conv2d(x, w, groups=2),
        (sample(1, 4, 3, 3), sample(2, 2, 2, 2)),
        lambda x, w: convolution(x, w, None, (1, 1), (0, 0), (1, 1), 2),
        "groups",
    ),
    Case(
        "conv3d",
        lambda x, w: functional.conv3d(x, w, padding="valid"),
        (sample(1, 1, 3, 2, 3), sample(2, 1, 2, 2, 1)),
        lambda x, w: convolution(x, w, None, (1, 1, 1), (0, 0, 0), (1, 1, 1), 1),
    ),
    Case(
        "conv_transpose1d",
        lambda x, w, b: functional.conv_transpose1d(x, w, b, stride=3, padding=1, output_padding=2),
        (sample(2, 2, 3), sample(2, 3, 2), sample(3)),
        lambda x, w, b: transposed(x, w, b, (3,), (1,), (1,), (2,), 1),
        "stride padding output_padding",
    ),
    Case(
        "conv_transpose1d",
        lambda x, w: functional.conv_transpose1d(x, w, output_padding=1, dilation=2),
        (sample(1, 1, 2), sample(1, 2, 2)),
        lambda x, w: transposed(x, w, None, (1,), (0,), (2,), (1,), 1),
        "room for one more window",
    ),
    Case(
        "conv_transpose2d",
        lambda x, w: functional.conv_transpose2d(x, w, stride=(1, 2), groups=2),
        (sample(1, 2, 2, 2), sample(2, 1, 2, 2)),
        lambda x, w: transposed(x, w, None, (1, 2), (0, 0), (1, 1), (0, 0), 2),
        "groups",
    ),
    Case(
        "functional.unfold",
        lambda x: functional.unfold(x, 2, padding=1, stride=(2, 1)),
        (sample(2, 2, 2, 3),),
        windows,
    ),
    Case(
        "fold",
        lambda y: functional.fold(y, (2, 3), 2, padding=1, stride=(2, 1)),
        (sample(1, 8, 8),),
        placed,
    ),
    Case(
        "conv_transpose3d",
        lambda x, w: functional.conv_transpose3d(x, w, stride=(1, 2, 1), padding=(0, 1, 0)),
        (sample(1, 2, 1, 2, 2), sample(2, 1, 2, 2, 1)),
        lambda x, w: transposed(x, w, None, (1, 2, 1), (0, 1, 0), (1, 1, 1), (0, 0, 0), 1),
    ),
]
