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
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.arrays.subscripts import Labels, joint_sizes, label_operands, parse_equation, parse_sublists
from tapegrad.ops.namespaces import TENSORS
from tapegrad.ops.products import apart, merges
from tapegrad.ops.reductions import sum as sum_over
from tapegrad.ops.shaping import reshape, squeeze
from tapegrad.ops.transposing import permute
from tapegrad.ops.views import view
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of, is_recording

__all__ = ["einsum"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


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
    ranks = tuple([0 if type(x._data) is float else x._data.ndim for x in operands])
    if isinstance(args[0], str):
        labels, result = _labels_of(args[0], ranks)
    else:
        labels, result = _labels_of_sublists(tuple(map(tuple, terms)), None if output is None else tuple(output), ranks)
    return contract(operands, labels, result)


@functools.lru_cache(maxsize=1024)
def _labels_of(equation: str, ranks: tuple[int, ...]) -> tuple[tuple[Labels, ...], Labels]:
    labels, result = label_operands(*parse_equation(equation), ranks)
    return tuple(labels), result


@functools.lru_cache(maxsize=1024)
def _labels_of_sublists(
    terms: tuple[Any, ...], output: tuple[Any, ...] | None, ranks: tuple[int, ...]
) -> tuple[tuple[Labels, ...], Labels]:
    labels, result = label_operands([*map(list, terms)], None if output is None else list(output), ranks)
    return tuple(labels), result


class _Term(NamedTuple):
    """What is done to an operand before it is multiplied."""

    diagonal: Any  # takes the view in which no label is repeated, or None
    stretched: list[int]  # dimensions that would be stretched, which are left out
    alone: list[int]  # dimensions that no other operand and not the result has, over which it is summed


class _Plan(NamedTuple):
    """How a sum of products is computed."""

    terms: tuple[_Term, ...]
    pairs: tuple[tuple[int, int, Labels, Labels, Labels], ...]  # which terms are multiplied, their labels and those of the product
    order: list[int] | None  # of the dimensions of the last term in the result


def contract(operands: Sequence[Tensor], labels: tuple[Labels, ...], output: Labels) -> Tensor:
    """The sum over all labels that are not in `output` of the product of the operands."""
    plan = _plan(labels, output, tuple([() if type(x._data) is float else x._data.shape for x in operands]))
    terms = [_without_repeats(x, term) for x, term in zip(operands, plan.terms, strict=True)]
    for k, term in enumerate(plan.terms):
        if term.alone:
            terms[k] = sum_over(terms[k], term.alone, dtype=array_of(terms[k]).dtype if len(terms) > 1 else None)
    for first, second, xs, ys, kept in plan.pairs:
        y, x = terms.pop(second), terms.pop(first)
        terms.append(_pair(x, xs, y, ys, kept))
    return terms[0] if plan.order is None else permute(terms[0], plan.order)


@functools.lru_cache(maxsize=1024)
def _plan(labels: tuple[Labels, ...], output: Labels, shapes: tuple[tuple[int, ...], ...]) -> _Plan:
    """How operands of these shapes are contracted.

    Raises
    ------
    RuntimeError
        If the sizes of a label differ.
    """
    sizes = joint_sizes(labels, shapes)
    distinct = [tuple(dict.fromkeys(own)) for own in labels]
    stretched = [
        [k for k, label in enumerate(once) if shape[own.index(label)] != sizes[label]]
        for once, own, shape in zip(distinct, labels, shapes, strict=True)
    ]
    prepared = [
        tuple([label for k, label in enumerate(once) if k not in left_out])
        for once, left_out in zip(distinct, stretched, strict=True)
    ]
    remaining, terms = [], []
    for k, own in enumerate(prepared):
        others = set(output).union(*(other for j, other in enumerate(prepared) if j != k))
        diagonal = (
            functools.partial(_diagonal, labels=labels[k], distinct=distinct[k]) if len(distinct[k]) < len(labels[k]) else None
        )
        terms.append(_Term(diagonal, stretched[k], [at for at, label in enumerate(own) if label not in others]))
        remaining.append(tuple([label for label in own if label in others]))
    pairs = []
    for first, second in _order(tuple(remaining), output, tuple(sizes.items())):
        ys, xs = remaining.pop(second), remaining.pop(first)
        wanted = set(output).union(*remaining)
        kept = output if not remaining else tuple([k for k in dict.fromkeys(xs + ys) if k in wanted])
        pairs.append((first, second, xs, ys, kept))
        remaining.append(kept)
    (own,) = remaining
    return _Plan(tuple(terms), tuple(pairs), None if own == output else [own.index(k) for k in output])


def _without_repeats(x: Tensor, term: _Term) -> Tensor:
    """Diagonals for repeated labels; dimensions that would be stretched are left out."""
    if term.diagonal is not None:
        x = view(x, "DiagonalBackward0", term.diagonal)
    return squeeze(x, term.stretched) if term.stretched else x


def _diagonal(array: Array, labels: Labels, distinct: Labels) -> Array:
    result: Array = np.einsum(array, _compact(labels, distinct), _compact(distinct, distinct))
    return result


def _compact(labels: Labels, known: Labels) -> list[int]:
    return [known.index(label) for label in labels]


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
    """How a sum of products of two operands is a product of matrices; None stands for an order or a shape that is there already."""

    swapped: bool  # whether the second operand is the left factor
    left: Labels | None  # axes of the left factor: batch, rows, summed
    left_shape: Shape | None
    right: Labels | None  # axes of the right factor: batch, summed, columns
    right_shape: Shape | None
    batch: int  # how many there are
    shape: Shape | None  # of the product
    result: Labels | None  # axes of the product in the order of the result


@functools.lru_cache(maxsize=1024)
def _layout(xs: Labels, ys: Labels, output: Labels, x_shape: Shape, y_shape: Shape) -> _Layout | None:
    """None if nothing is summed: then it is a product of elements."""
    summed = [k for k in xs if k in ys and k not in output]
    if not summed:
        return None
    batch = [k for k in output if k in xs and k in ys]
    alone = next((k for k in output if k not in batch), None)
    swapped = alone is not None and alone not in xs  # the result then mostly needs no reordering
    if swapped:
        xs, ys, x_shape, y_shape = ys, xs, y_shape, x_shape
    rows = [k for k in output if k in xs and k not in ys]
    columns = [k for k in output if k in ys and k not in xs]
    made = [*batch, *rows, *columns]
    extents = dict(zip(xs, x_shape, strict=True)) | dict(zip(ys, y_shape, strict=True))
    many, height, inner, width = ([extents[k] for k in part] for part in (batch, rows, summed, columns))
    left_shape = (*many, math.prod(height), math.prod(inner))
    right_shape = (*many, math.prod(inner), math.prod(width))
    shape = (*many, *height, *width)
    return _Layout(
        swapped,
        _unless_sorted([xs.index(k) for k in (*batch, *rows, *summed)]),
        left_shape if (*many, *height, *inner) != left_shape else None,
        _unless_sorted([ys.index(k) for k in (*batch, *summed, *columns)]),
        right_shape if (*many, *inner, *width) != right_shape else None,
        len(batch),
        shape if (*many, left_shape[-2], right_shape[-1]) != shape else None,
        _unless_sorted([made.index(k) for k in output]),
    )


def _unless_sorted(order: list[int]) -> Labels | None:
    return None if order == sorted(order) else tuple(order)


def _pair(x: Tensor, xs: Labels, y: Tensor, ys: Labels, output: Labels, on: Any = TENSORS) -> Tensor:
    """Sum of products of two operands. Every label is in two of `xs`, `ys` and `output` at least."""
    a, b = x._data, y._data
    layout = _layout(xs, ys, output, () if type(a) is float else a.shape, () if type(b) is float else b.shape)
    if layout is None:
        product: Tensor = on.aligned(x, xs, output) * on.aligned(y, ys, output)
        return product
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {type_name(a.dtype)} but found {type_name(b.dtype)}")
    swapped, left_order, left_shape, right_order, right_shape, batch, shape, order = layout
    if swapped:
        a, b = b, a
    if left_order is not None:
        a = a.transpose(left_order)
    if right_order is not None:
        b = b.transpose(right_order)
    left = a if left_shape is None else a.reshape(left_shape)
    right = b if right_shape is None else b.reshape(right_shape)
    token = enter(IGNORING)
    try:
        z = np.matmul(left, right) if batch else left.dot(right)
    finally:
        leave(token)
    if shape is not None:
        z = z.reshape(shape)
    if (x._row or y._row) and is_recording():
        first, second = (y, x) if swapped else (x, y)
        first = _kept(first, second, a, left, left_order, batch)
        second = _kept(second, first, b, right, right_order, batch)
        x, y = (second, first) if swapped else (first, second)
    return apply(_EINSUM, (x, y), z if order is None else z.transpose(order), (xs, ys, output))


def _kept(t: Tensor, other: Tensor, ordered: Array, factor: Array, order: Labels | None, batch: int) -> Tensor:
    """An operand with the memory of its factor, if that is a copy, here or in PyTorch: then the operand may be written."""
    if not other._row or ordered.flags.c_contiguous or not factor.size:
        return t
    if np.may_share_memory(factor, ordered):
        if merges(factor, batch):
            return t
        factor = factor.copy()
    own = factor.reshape(ordered.shape)
    return apart(t, own if order is None else own.transpose(np.argsort(order)))


def aligned(x: Tensor, labels: Labels, output: Labels) -> Tensor:
    """`x` with its dimensions in the order of `output`, and dimensions of size one for the labels it has not."""
    order, places = _alignment(labels, output)
    if order is not None:
        x = permute(x, order)
    if places is None:
        return x
    extents = iter(array_of(x).shape)
    return reshape(x, tuple([next(extents) if has else 1 for has in places]))


def aligned_array(a: Array, labels: Labels, output: Labels) -> Array:
    """The same of an array."""
    order, places = _alignment(labels, output)
    if order is not None:
        a = a.transpose(order)
    if places is None:
        return a
    extents = iter(a.shape)
    return a.reshape([next(extents) if has else 1 for has in places])


@functools.lru_cache(maxsize=1024)
def _alignment(labels: Labels, output: Labels) -> tuple[list[int] | None, tuple[bool, ...] | None]:
    """The order of the dimensions of an operand, and which of the result's it has; None for what changes nothing."""
    order = [labels.index(k) for k in output if k in labels]
    places = tuple([k in labels for k in output])
    return None if order == sorted(order) else order, None if all(places) else places


def _einsum_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    xs, ys, output = ctx.attrs
    x, y = ctx.inputs
    x_bar = _pair(g, output, y, ys, xs, ctx.on) if ctx.needs[0] else None
    return x_bar, _pair(g, output, x, xs, ys, ctx.on) if ctx.needs[1] else None


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
