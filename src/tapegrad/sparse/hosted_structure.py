"""What rows whose derivative is Python depend on: selections are found by what they select, products by their shapes.

Nothing here is a list of operations. What a linear operation gives for the numbers 1, 2, 3, ... names what it selected, and what it
gives for random numbers tells a selection from anything else. Whatever is not known is dense.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tapegrad.linear.hosted_rows import HostedRow
from tapegrad.ops.contractions import is_contraction
from tapegrad.ops.products import is_product
from tapegrad.sparse.index_sets import IndexSets
from tapegrad.tensors.tensor import array_of

__all__ = ["Edges", "edges_of", "factor_lines", "multiplies", "spread"]

Places = np.ndarray[Any, Any]
Edges = list[tuple[int, Places, Places]]  # number of an input; elements of it, and elements of the row that depend on these
Pattern = Callable[[Any], tuple[Places, Places]]
MOST_CODES = 1 << 24  # numbers that float32 holds exactly
THIN = 0.5  # part of a constant factor that is not zero from which on its zeros are not looked at


def multiplies(row: HostedRow) -> bool:
    """Whether a row is a product whose structure its shapes give."""
    return is_product(row.op) or is_contraction(row.op)


def edges_of(row: HostedRow, pattern_of: Pattern) -> tuple[Edges, list[int]]:
    """The dependencies of a hosted row's elements.

    Parameters
    ----------
    row : HostedRow
    pattern_of : callable
        Gives the pattern of a linear tape, for rows whose derivative is one.

    Returns
    -------
    list of (int, array, array)
        Number of an input, and elements of it and of the row: each of these depends on that.
    list of int
        Inputs on which every element depends.
    """
    found: Edges = []
    dense: list[int] = []
    varying = [k for k, place in enumerate(row.inputs) if place >= 0]
    if not row.is_linear:
        through = _through_the_transpose(row, pattern_of)
        return (through, []) if through is not None else ([], varying)
    for k in varying:
        pair = _constant_factor(row, k) if multiplies(row) else _selection(row, k) or _scattering(row, k)
        if pair is None:
            dense.append(k)
        else:
            found.append((k, *pair))
    return found, dense


def spread(row: HostedRow, sets: IndexSets, edges: Edges, dense: list[int]) -> bool:
    """Give the places of a row their sets; whether the row is dense in inputs of which nothing is known."""
    sets.places[row.place : row.place + row.size] = 0
    for k, sources, targets in edges:
        sets.add_edges(row.inputs[k] + sources, row.place + targets)
    if not dense:
        return False
    if multiplies(row):
        for sources, targets in _product_edges(row, sets, dense):
            sets.add_edges(sources, targets)
        return False
    (hub,) = sets.scratch(1)
    for k in dense:
        sources = row.inputs[k] + np.arange(row.sizes[k])
        sets.add_edges(sources, np.full(len(sources), hub))
    targets = row.place + np.arange(row.size)
    sets.add_edges(np.full(row.size, hub), targets)
    return True


def _codes(size: int) -> Places:
    """A column with the numbers 1, 2, 3, ..., and one of random numbers."""
    return np.stack([np.arange(1.0, size + 1.0), np.random.default_rng(size).uniform(1.0, 2.0, size)], axis=1)


def _selected(values: Places, given: Places) -> tuple[Places, Places] | None:
    """What `values` selected from `given`, both with these two columns: places there, and here; None if it is no selection."""
    codes = values[:, 0]
    if not np.isfinite(codes).all() or (codes < 0).any() or (codes > len(given)).any():
        return None
    chosen = codes.astype(np.int64)
    padded = np.concatenate([np.zeros((1, 2)), given])
    if not np.array_equal(padded[chosen], values):
        return None
    here = np.flatnonzero(chosen)
    return chosen[here] - 1, here


def _selection(row: HostedRow, k: int) -> tuple[Places, Places] | None:
    """Places in input k, and elements of the row that are what stands there; None if it is something else."""
    form = dict(row.linear)[k]
    if form is None or row.sizes[k] >= MOST_CODES:
        return None
    given = _codes(row.sizes[k])
    shape = row.context.shapes[k]
    return _selected(np.asarray(form(given.reshape(*shape, 2), row.context, row.shape)).reshape(row.size, 2), given)


def _scattering(row: HostedRow, k: int) -> tuple[Places, Places] | None:
    """The same for rows to which each element of the input is added once."""
    if row.size >= MOST_CODES:
        return None
    given = _codes(row.size).astype(row.dtype).astype(np.float64)
    columns = []
    for column in given.T:
        cotangent = row.pulled(column)[k]
        if cotangent is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        columns.append(array_of(cotangent).reshape(-1).astype(np.float64))
    found = _selected(np.stack(columns, axis=1), given)
    return None if found is None else found[::-1]


def _through_the_transpose(row: HostedRow, pattern_of: Pattern) -> Edges | None:
    """The structure of what the derivative recorded, which leads from the row to its inputs."""
    tape = row.transposed
    if tape is None:
        return None
    ends, elements = pattern_of(tape)
    of_inputs = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    found, done = [], 0
    for place, size in row.parts:
        inside = (of_inputs >= done) & (of_inputs < done + size)
        found.append((row.inputs.index(place), of_inputs[inside] - done, elements[inside].astype(np.int64)))
        done += size
    return found


def _constant_factor(row: HostedRow, k: int) -> tuple[Places, Places] | None:
    """The edges of a product with a constant matrix many of whose elements are zero."""
    other = row.context.inputs[1 - k]
    if is_contraction(row.op) or row.inputs[1 - k] >= 0 or other is None or max(map(len, row.context.shapes)) > 2:
        return None
    matrix = array_of(other)
    matrix = matrix.reshape(-1, 1) if matrix.ndim == 1 and k == 0 else matrix.reshape(1, -1) if matrix.ndim == 1 else matrix
    inner = matrix.shape[0 if k == 0 else 1]
    i, j = np.nonzero(matrix)
    if len(i) > THIN * matrix.size or not inner:
        return None
    count = row.sizes[k] // inner
    if k == 0:  # z[r, j] = sum of x[r, i] m[i, j]
        r = np.arange(count)[:, None]
        return (r * inner + i).reshape(-1), (r * matrix.shape[1] + j).reshape(-1)
    c = np.arange(count)  # z[i, c] = sum of m[i, j] y[j, c]
    return (j[:, None] * count + c).reshape(-1), (i[:, None] * count + c).reshape(-1)


def factor_lines(row: HostedRow) -> list[Places]:
    """Elements of both factors of a product: of the shape of the result, or ones, with what is summed over as last dimension."""
    x, y = (np.arange(size).reshape(shape) for size, shape in zip(row.sizes, row.context.shapes, strict=True))
    if is_contraction(row.op):
        return _lines_by_labels(x, y, *row.context.attrs)
    x, y = x if x.ndim > 1 else x[None, :], y if y.ndim > 1 else y[:, None]
    return [x[..., :, None, :], y.swapaxes(-1, -2)[..., None, :, :]]


def _lines_by_labels(x: Places, y: Places, xs: Any, ys: Any, output: Any) -> list[Places]:
    summed = [label for label in dict.fromkeys((*xs, *ys)) if label not in output]
    aligned = []
    for grid, labels in ((x, xs), (y, ys)):
        order = [labels.index(label) for label in (*output, *summed) if label in labels]
        shape = [grid.shape[labels.index(label)] if label in labels else 1 for label in (*output, *summed)]
        aligned.append(grid.transpose(order).reshape(shape))
    rank = len(output)
    behind = np.broadcast_shapes(*(grid.shape[rank:] for grid in aligned))
    return [np.broadcast_to(grid, (*grid.shape[:rank], *behind)).reshape(*grid.shape[:rank], -1) for grid in aligned]


def _product_edges(row: HostedRow, sets: IndexSets, dense: list[int]) -> Iterator[tuple[Places, Places]]:
    """An element of a product depends on a row of the one factor and on a column of the other."""
    lines = factor_lines(row)
    whole = np.broadcast_shapes(lines[0].shape[:-1], lines[1].shape[:-1])
    z = np.arange(row.size).reshape(whole)
    for k in dense:
        if not lines[k].shape[-1]:
            continue
        hubs = sets.scratch(lines[k][..., 0].size)
        yield row.inputs[k] + lines[k].reshape(-1), np.repeat(hubs, lines[k].shape[-1])
        own = np.broadcast_to(hubs.reshape(lines[k].shape[:-1]), whole)
        yield own.reshape(-1), row.place + z.reshape(-1)
