"""Functions that write in place as people write them, for programs."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapegrad as tg
import tapegrad.numpy as tnp


def element_and_slice(x: Any) -> Any:
    y = np.zeros_like(x)
    y[0] = x[1]
    y[1:] = x[1:] * 2
    return (y * y).sum()


def number_and_an_element_updated(x: Any) -> Any:
    y = x * 2
    y[0] = 3.0
    y[1] += x[0]
    return (y * y).sum()


def elements_in_a_loop(x: Any) -> Any:
    y = np.zeros_like(x)
    for k in range(len(x)):
        y[k] += x[k] * k
        y[k] *= x[0]
    return (y * np.sin(y)).sum()


def updates_of_everything(x: Any) -> Any:
    y = x.copy()
    y += x
    y *= np.exp(x)
    y -= 1.0
    return (y * y).sum()


def under_a_mask(x: Any) -> Any:
    y = x.copy()
    y[y < 0.5] = 0.0
    return (y * y).sum()


def through_a_view(x: Any) -> Any:
    y = x.copy()
    v = y[1:3]
    v *= 2
    y[0] = v[0]
    return (y * y).sum() + v.sum()


def a_view_that_decides(x: Any) -> Any:
    y = np.zeros_like(x)
    v = y[1:]
    y[1] = x[0]
    return (v * v).sum() if v[0] > 0.5 else v.sum()


def index_arrays(x: Any) -> Any:
    y = np.zeros_like(x)
    y[[0, 2]] = x[:2]
    y[np.array([1])] = x[3]
    return (y * y).sum()


def rows_and_columns(x: Any) -> Any:
    a = np.zeros((4, 4)) if not isinstance(x, tg.Tensor) else np.zeros_like(np.outer(x, x))
    a[0] = x
    a[:, 1] = x * 2
    a[2, 2] = x[0]
    return (a * a).sum()


def heat_steps(x: Any) -> Any:
    u = x.copy()
    for _ in range(5):
        new = np.zeros_like(u)
        new[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        new[0] = u[0]
        new[-1] = u[-1]
        u = new
    return (u * u).sum()


def zeros_of_the_namespace(x: Any) -> Any:
    y = tnp.zeros(4)
    y[0] = x[0]
    y[1:3] = x[:2]
    return (y * y).sum() + x.sum()


def out(x: Any) -> Any:
    out = np.zeros_like(x)
    np.add(x, x, out=out)
    np.multiply(out, x, out=out)
    return out.sum()


def numbers_first(x: Any) -> Any:
    y = np.zeros_like(x)
    y[0] = 1.0
    y[1] = y[0] + x[0]
    y[2] = y[1] * y[0]
    return y.sum()


def fill(x: Any) -> Any:
    y = np.zeros_like(x)
    y.fill(x[0])
    y[1] = 2
    return (y * y).sum()


def sort(x: Any) -> Any:
    y = x.copy()
    y.sort()
    return (y * np.arange(4)).sum()


def place_of_the_largest(x: Any) -> Any:
    y = x.copy()
    y[x.argmax()] = 0.0
    return (y * y).sum()


def place_by_a_comparison(x: Any) -> Any:
    y = x.copy()
    y[int(x[0] > 0.5)] = 7.0
    return (y * y).sum()


def swap(x: Any) -> Any:
    y = np.empty_like(x)
    y[:] = x
    y[:2], y[2:] = y[2:].copy(), y[:2].copy()
    return (y * np.arange(4)).sum()


def two_names(x: Any) -> Any:
    y = np.zeros_like(x)
    z = y
    z[0] = x[0]
    z = z + 1
    y[1] = z[0]
    return (y * y).sum() + z.sum()


def recurrence(x: Any) -> Any:
    y = np.ones_like(x)
    s = 0.0
    for k in range(3):
        y[k + 1] = y[k] * x[k]
        s = s + y[k + 1] ** 2
    return s


def read_before_and_after(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1] = 5.0
    w = y * 2.0
    y[2] = x[0]
    return (w * x).sum() + y.sum()


def mask_on_both_sides(x: Any) -> Any:
    y = np.zeros_like(x)
    y[x > 0.5] = x[x > 0.5]
    return (y * y).sum()


def sums_in_one_element(x: Any) -> Any:
    y = np.zeros_like(x)
    y[0] = y[0] + x[0]
    y[0] = y[0] + x[1]
    return y.sum() * y[0]


def every_other_element(x: Any) -> Any:
    y = x * 1.0
    z = y[::2]
    z[...] = x[1::2]
    return (y * y).sum()


def methods_of_tensors(x: Any) -> Any:
    y = tg.as_tensor(x) * 2.0
    y.add_(1.0)
    y.mul_(y)
    y[0] = 0.0
    y.clamp_(0.0, 3.0)
    return y.sum()


def lists(x: Any) -> Any:
    y = np.zeros_like(x)
    y[0] = np.float64(2.5)
    y[1:] = [1, 2, 3]
    y[2] = x[0]
    return (y * x).sum()


FUNCTIONS = [
    element_and_slice,
    number_and_an_element_updated,
    elements_in_a_loop,
    updates_of_everything,
    under_a_mask,
    through_a_view,
    a_view_that_decides,
    index_arrays,
    rows_and_columns,
    heat_steps,
    zeros_of_the_namespace,
    out,
    numbers_first,
    fill,
    sort,
    place_of_the_largest,
    place_by_a_comparison,
    swap,
    two_names,
    recurrence,
    read_before_and_after,
    mask_on_both_sides,
    sums_in_one_element,
    every_other_element,
    methods_of_tensors,
    lists,
]
