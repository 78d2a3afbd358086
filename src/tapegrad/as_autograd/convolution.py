"""Convolutions over some axes, with sums of products over others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["convolve"]

Axes = Sequence[Sequence[int]]


def convolve(A: Any, B: Any, axes: Axes | None = None, dot_axes: Axes = ((), ()), mode: str = "full") -> Any:
    """Convolution of two arrays.

    Parameters
    ----------
    A, B : array
    axes : pair of sequences of int, optional
        Axes of `A` and `B` that are convolved with each other; by default all.
    dot_axes : pair of sequences of int
        Axes of `A` and `B` over which products are summed.
    mode : {"full", "valid", "same"}
        As for `scipy.signal.convolve`.

    Returns
    -------
    array
        The axes of `A` that are named nowhere, then those of `B`, then the convolved ones.

    Raises
    ------
    ValueError
        If the axes do not fit, or the mode is another.

    Notes
    -----
    A product with windows of the padded array, which NumPy sees as a view and which stand in memory once here: in the full mode
    that is the size of the result times that of the convolved axes of `B`.
    """
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"convolve: mode must be 'full', 'valid' or 'same', but got {mode!r}")
    if axes is None:
        if np.ndim(A) != np.ndim(B):
            raise ValueError(f"convolve: without axes both arrays need as many dimensions, but have {np.ndim(A)} and {np.ndim(B)}")
        axes = (range(np.ndim(A)), range(np.ndim(B)))
    a_conv, b_conv = ([axis % np.ndim(x) for axis in given] for x, given in zip((A, B), axes, strict=True))
    a_dot, b_dot = ([axis % np.ndim(x) for axis in given] for x, given in zip((A, B), dot_axes, strict=True))
    a_own, b_own = (
        [axis for axis in range(np.ndim(x)) if axis not in conv and axis not in dot]
        for x, conv, dot in ((A, a_conv, a_dot), (B, b_conv, b_dot))
    )
    lengths = [(np.shape(A)[i], np.shape(B)[j]) for i, j in zip(a_conv, b_conv, strict=True)]
    a = np.transpose(A, (*a_own, *a_dot, *a_conv))
    b = np.transpose(B, (*b_own, *b_dot, *b_conv))
    own = len(a_own), len(b_own), len(a_dot)
    if mode == "valid" and any(m > n for n, m in lengths):
        if not all(m >= n for n, m in lengths):
            raise ValueError(
                f"convolve: for mode 'valid' one array must be at least as long in every axis, but lengths are {lengths}"
            )
        found = _valid(b, a, (own[1], own[0], own[2]))
        order = (*range(own[1], own[0] + own[1]), *range(own[1]), *range(own[0] + own[1], np.ndim(found)))
        return np.transpose(found, order)
    if mode != "valid":
        a = np.pad(a, [(0, 0)] * (own[0] + own[2]) + [(m - 1, m - 1) for _, m in lengths])
    found = _valid(a, b, own)
    if mode == "same":
        found = found[(..., *[slice((m - 1) // 2, (m - 1) // 2 + n) for n, m in lengths])]
    return found


def _valid(a: Any, b: Any, own: tuple[int, int, int]) -> Any:
    """The convolution without borders over all axes after the first ones: own axes, then axes of products."""
    a_own, b_own, dots = own
    lengths = np.shape(b)[b_own + dots :]
    first = a_own + dots
    for k, length in enumerate(lengths):
        # The axis becomes one of places and one of the window, run through backwards; the windows' axes collect at the end.
        count = np.shape(a)[first + k] - length + 1
        places = np.arange(count)[:, None] + np.arange(length)[::-1]
        a = np.moveaxis(np.take(a, places, axis=first + k), first + k + 1, -1)
    number = len(lengths)
    left = [*range(a_own, first), *range(np.ndim(a) - number, np.ndim(a))]
    right = list(range(b_own, np.ndim(b)))
    found = np.tensordot(a, b, (left, right))
    # Axes are now those of `a`, the convolved ones and those of `b`.
    order = (*range(a_own), *range(a_own + number, np.ndim(found)), *range(a_own, a_own + number))
    return np.transpose(found, order)
