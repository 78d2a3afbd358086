"""Sums of products over labelled dimensions.

Operands are brought to a form in which no label is repeated, stretched or summed alone. Then a sum of products of two of
them is one product of matrices, and its derivatives are sums of products of the same form.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.arrays.subscripts import Labels, joint_sizes, label_operands, parse_equation, parse_sublists
from tapegrad.ops.products import apart, merges
from tapegrad.ops.reductions import sum as sum_over
from tapegrad.ops.shaping import reshape, squeeze
from tapegrad.ops.transposing import permute
from tapegrad.ops.views import view
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, is_recording

__all__ = ["einsum"]

Array = np.ndarray[Any, Any]


def einsum(*args: Any) -> Tensor:
    """Sum of products of the elements of operands whose dimensions are labelled.

    Parameters
    ----------
    equation : str
        A letter for each dimension, commas between operands; spaces are ignored. Dimensions with one letter go together;
        a letter twice in one operand means its diagonal. ``...`` stands for any number of dimensions, which broadcast.
        After ``->`` the letters of the result; without it, ``...`` and then those that appear once, in alphabetical order
        (capitals first). What the result does not have is summed.
    *operands : Tensor
        Also as one list. Instead of an equation each operand may be followed by a list of numbers below 52 (and `Ellipsis`),
        with the result's at the end.

    Returns
    -------
    Tensor
        With one operand and nothing to sum, a view of it.

    Raises
    ------
    RuntimeError
        If the equation has no meaning, or does not fit the operands.
    ValueError
        If there is no operand, or a number is out of range.

    Notes
    -----
    Sizes of one broadcast. More than two operands are multiplied pair by pair, in the order that `numpy.einsum_path` finds.

    Examples
    --------
    >>> x = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> tg.einsum("ij,kj->ik", x, x)
    tensor([[ 5., 11.],
            [11., 25.]])
    >>> tg.einsum("ii", x)
    tensor(5.)
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"
        )
    operands: Sequence[Any] = args[1:]
    if isinstance(args[0], str) and len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    elif not isinstance(args[0], str):
        operands, terms, output = parse_sublists(args)
    for number, operand in enumerate(operands):
        if not isinstance(operand, Tensor):
            raise TypeError(f"einsum(): expected Tensor as element {number} in argument 1, but got {type(operand).__name__}")
    ranks = tuple(array_of(x).ndim for x in operands)
    labels, result = _labels_of(args[0], ranks) if isinstance(args[0], str) else label_operands(terms, output, ranks)
    return contract(operands, labels, result)


@functools.lru_cache(maxsize=1024)
def _labels_of(equation: str, ranks: tuple[int, ...]) -> tuple[list[Labels], Labels]:
    return label_operands(*parse_equation(equation), ranks)


def contract(operands: Sequence[Tensor], labels: Sequence[Labels], output: Labels) -> Tensor:
    """The sum over all labels that are not in `output` of the product of the operands."""
    sizes = joint_sizes(labels, [array_of(x).shape for x in operands])
    prepared = [_without_repeats(x, own, sizes) for x, own in zip(operands, labels, strict=True)]
    terms = [_sum_alone(k, prepared, output) for k in range(len(prepared))]
    for pair in _order(tuple(own for _, own in terms), output, tuple(sizes.items())):
        (y, ys), (x, xs) = terms.pop(pair[1]), terms.pop(pair[0])
        wanted = set(output).union(*(own for _, own in terms))
        kept = output if not terms else tuple(k for k in dict.fromkeys(xs + ys) if k in wanted)
        terms.append((_pair(x, xs, y, ys, kept), kept))
    ((x, own),) = terms
    return x if own == output else permute(x, [own.index(k) for k in output])


def _without_repeats(x: Tensor, labels: Labels, sizes: dict[int, int]) -> tuple[Tensor, Labels]:
    """Diagonals for repeated labels; dimensions that would be stretched are left out."""
    distinct = tuple(dict.fromkeys(labels))
    if len(distinct) < len(labels):
        x = view(x, "DiagonalBackward0", functools.partial(_diagonal, labels=labels, distinct=distinct))
    shape = array_of(x).shape
    stretched = [k for k, label in enumerate(distinct) if shape[k] != sizes[label]]
    if stretched:
        x, distinct = squeeze(x, stretched), tuple(label for k, label in enumerate(distinct) if k not in stretched)
    return x, distinct


def _diagonal(array: Array, labels: Labels, distinct: Labels) -> Array:
    result: Array = np.einsum(array, _compact(labels, distinct), _compact(distinct, distinct))
    return result


def _compact(labels: Labels, known: Labels) -> list[int]:
    return [known.index(label) for label in labels]


def _sum_alone(k: int, terms: Sequence[tuple[Tensor, Labels]], output: Labels) -> tuple[Tensor, Labels]:
    """The k-th term, summed over what no other term and not the result has."""
    x, own = terms[k]
    others = set(output).union(*(labels for j, (_, labels) in enumerate(terms) if j != k))
    alone = [at for at, label in enumerate(own) if label not in others]
    if not alone:
        return x, own
    dtype = array_of(x).dtype if len(terms) > 1 else None
    return sum_over(x, alone, dtype=dtype), tuple(label for label in own if label in others)


@functools.lru_cache(maxsize=1024)
def _order(labels: tuple[Labels, ...], output: Labels, sizes: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Which pairs of terms to multiply, one after the other; each product goes to the end."""
    count = len(labels)
    if count < 3 or len(sizes) > 52:
        # From the left: each product stands at the end, so it is multiplied by the first of what is left.
        return ((0, 1), *((0, count - 1 - k) for k in range(1, count - 1))) if count > 1 else ()
    known = tuple(label for label, _ in sizes)
    extent = dict(sizes)
    arguments: list[Any] = []
    for own in labels:
        arguments += [np.broadcast_to(np.float64(0.0), [extent[k] for k in own]), _compact(own, known)]
    found, _ = np.einsum_path(*arguments, _compact(output, known), optimize="optimal" if count <= 4 else "greedy")
    order: list[tuple[int, int]] = []
    for step in found[1:]:
        places = sorted(step)
        # A step with several terms is done two by two; each product stands at the end of the list.
        left = count - len(order)
        while len(places) > 1:
            order.append((places[0], places[1]))
            left -= 1
            places = [*(p - 2 for p in places[2:]), left - 1]
    return tuple(order)


class _Layout(NamedTuple):
    """How a sum of products of two operands is a product of matrices."""

    swapped: bool  # whether the second operand is the left factor
    left: Labels  # axes of the left factor: batch, rows, summed
    right: Labels  # axes of the right factor: batch, summed, columns
    batch: int  # how many there are
    rows: int
    result: Labels  # axes of the product in the order of the result


@functools.lru_cache(maxsize=1024)
def _layout(xs: Labels, ys: Labels, output: Labels) -> _Layout | None:
    """None if nothing is summed: then it is a product of elements."""
    summed = [k for k in xs if k in ys and k not in output]
    if not summed:
        return None
    batch = [k for k in output if k in xs and k in ys]
    alone = next((k for k in output if k not in batch), None)
    swapped = alone is not None and alone not in xs  # the result then mostly needs no reordering
    if swapped:
        xs, ys = ys, xs
    rows = [k for k in output if k in xs and k not in ys]
    columns = [k for k in output if k in ys and k not in xs]
    made = [*batch, *rows, *columns]
    return _Layout(
        swapped,
        tuple(xs.index(k) for k in (*batch, *rows, *summed)),
        tuple(ys.index(k) for k in (*batch, *summed, *columns)),
        len(batch),
        len(rows),
        tuple(made.index(k) for k in output),
    )


def _pair(x: Tensor, xs: Labels, y: Tensor, ys: Labels, output: Labels) -> Tensor:
    """Sum of products of two operands. Every label is in two of `xs`, `ys` and `output` at least."""
    layout = _layout(xs, ys, output)
    if layout is None:
        return _aligned(x, xs, output) * _aligned(y, ys, output)
    a, b = array_of(x), array_of(y)
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {type_name(a.dtype)} but found {type_name(b.dtype)}")
    if layout.swapped:
        a, b = b, a
    a, b = a.transpose(layout.left), b.transpose(layout.right)
    last = layout.batch + layout.rows
    summed = a.ndim - last
    batch, rows, columns = a.shape[: layout.batch], a.shape[layout.batch : last], b.shape[layout.batch + summed :]
    inner = math.prod(a.shape[last:])
    left = a.reshape(*batch, math.prod(rows), inner)
    right = b.reshape(*batch, inner, math.prod(columns))
    with quiet():
        product = (np.matmul(left, right) if batch else np.dot(left, right)).reshape(batch + rows + columns)
    if (x._row or y._row) and is_recording():
        first, second = (y, x) if layout.swapped else (x, y)
        first = _kept(first, second, a, left, layout.left, len(batch))
        second = _kept(second, first, b, right, layout.right, len(batch))
        x, y = (second, first) if layout.swapped else (first, second)
    return apply(_EINSUM, (x, y), product.transpose(layout.result), (xs, ys, output))


def _kept(t: Tensor, other: Tensor, ordered: Array, factor: Array, order: Labels, batch: int) -> Tensor:
    """An operand with the memory of its factor, if that is a copy, here or in PyTorch: then the operand may be written."""
    if not other._row or not factor.size:
        return t
    if np.may_share_memory(factor, ordered):
        if merges(factor, batch):
            return t
        factor = factor.copy()
    return apart(t, factor.reshape(ordered.shape).transpose(np.argsort(order)))


def _aligned(x: Tensor, labels: Labels, output: Labels) -> Tensor:
    """`x` with its dimensions in the order of `output`, and dimensions of size one for the labels it has not."""
    order = [labels.index(k) for k in output if k in labels]
    if order != sorted(order):
        x = permute(x, order)
    shape = array_of(x).shape
    if len(shape) == len(output):
        return x
    extents = iter(shape)
    return reshape(x, tuple(next(extents) if k in labels else 1 for k in output))


def _einsum_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    xs, ys, output = ctx.attrs
    x, y = ctx.inputs
    x_bar = _pair(g, output, y, ys, xs) if ctx.needs[0] else None
    return x_bar, _pair(g, output, x, xs, ys) if ctx.needs[1] else None


def _sums_of_many(x_dot: np.ndarray, ctx: Context, shape: tuple[int, ...]) -> np.ndarray:
    xs, ys, output = ctx.attrs
    return _one_of_many(x_dot, xs, array_of(ctx.inputs[1]), ys, output)


def _sums_with_many(y_dot: np.ndarray, ctx: Context, shape: tuple[int, ...]) -> np.ndarray:
    xs, ys, output = ctx.attrs
    return _one_of_many(y_dot, ys, array_of(ctx.inputs[0]), xs, output)


def _one_of_many(many: np.ndarray, labels: Labels, other: np.ndarray, others: Labels, output: Labels) -> np.ndarray:
    numbers = {label: k for k, label in enumerate(sorted({*labels, *others}))}
    lane = len(numbers)
    first, second, last = ([numbers[label] for label in labels_of] for labels_of in (labels, others, output))
    return np.einsum(many, [*first, lane], other, second, [*last, lane], optimize=True)


def is_contraction(op: Structural) -> bool:
    """Whether an operation is a sum of products of elements of two operands, by labels of their dimensions and the result's."""
    return op is _EINSUM


_EINSUM = Structural("EinsumBackward0", ((1,), (0,)), _einsum_vjp, linear=(_sums_of_many, _sums_with_many))
