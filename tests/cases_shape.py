"""Cases of operations on shapes: what NumPy calls by the same name is the reference."""

from typing import Any

import numpy as np
from operation_case import Case

import tapegrad as tg

RNG = np.random.default_rng(11)
VECTOR = RNG.normal(size=4)
MATRIX = RNG.normal(size=(2, 3))
SQUARE = RNG.normal(size=(3, 3))
CUBE = RNG.normal(size=(2, 3, 2))
WIDE = RNG.normal(size=(2, 6))
F = tg.nn.functional


def windows(a: np.ndarray, size: int, step: int) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(a, size, 1)[:, ::step]


def embedded(a: np.ndarray, offset: int) -> np.ndarray:
    return np.stack([np.diag(row, offset) for row in a])


def replaced(a: np.ndarray, b: np.ndarray, key: Any) -> np.ndarray:
    result = a.copy()
    result[key] = b
    return result


def blocks(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    result = np.zeros((5, 4))
    result[:2, :3], result[2:, 3] = a, b[:3]
    return result


CASES: list[Case] = [
    Case("flip", lambda x: tg.flip(x, (0, 2)), (CUBE,), lambda a: np.flip(a, (0, 2))),
    Case("vander", lambda x: tg.vander(x, 3), (VECTOR,), lambda a: np.vander(a, 3)),
    Case("vander", lambda x: tg.vander(x, increasing=True), (VECTOR,), lambda a: np.vander(a, increasing=True), "increasing"),
    Case("ldexp", tg.ldexp, (MATRIX, MATRIX), lambda a, b: a * 2.0**b),
    Case(
        "ldexp",
        lambda x: x.ldexp(tg.tensor([1, -2, 3])),
        (MATRIX,),
        lambda a: np.ldexp(a, [1, -2, 3]),
        "integers",
    ),
    Case("fliplr", tg.fliplr, (MATRIX,), np.fliplr),
    Case("flipud", tg.flipud, (MATRIX,), np.flipud),
    Case("roll", lambda x: tg.roll(x, 2), (MATRIX,), lambda a: np.roll(a, 2)),
    Case("roll", lambda x: x.roll((1, -2), (0, 1)), (MATRIX,), lambda a: np.roll(a, (1, -2), (0, 1)), "dims"),
    Case("rot90", lambda x: tg.rot90(x), (MATRIX,), np.rot90),
    Case("rot90", lambda x: tg.rot90(x, -1, (0, 2)), (CUBE,), lambda a: np.rot90(a, -1, (0, 2)), "dims"),
    Case("repeat", lambda x: x.repeat(2, 1, 2), (MATRIX,), lambda a: np.tile(a, (2, 1, 2))),
    Case("tile", lambda x: tg.tile(x, (2,)), (MATRIX,), lambda a: np.tile(a, 2)),
    Case("repeat_interleave", lambda x: tg.repeat_interleave(x, 2), (MATRIX,), lambda a: np.repeat(a, 2)),
    Case("repeat_interleave", lambda x: x.repeat_interleave(2, 0), (MATRIX,), lambda a: np.repeat(a, 2, 0), "dim"),
    Case(
        "repeat_interleave",
        lambda x: tg.repeat_interleave(x, tg.tensor([2, 0, 1]), 1),
        (MATRIX,),
        lambda a: np.repeat(a, [2, 0, 1], 1),
        "tensor",
    ),
    Case("unfold", lambda x: x.unfold(1, 3, 2), (WIDE,), lambda a: windows(a, 3, 2)),
    Case("unfold", lambda x: x.unfold(1, 2, 3), (WIDE,), lambda a: windows(a, 2, 3), "apart"),
    Case("narrow", lambda x: tg.narrow(x, 1, 1, 2), (MATRIX,), lambda a: a[:, 1:]),
    Case("narrow_copy", lambda x: tg.narrow_copy(x, 1, 1, 2), (MATRIX,), lambda a: a[:, 1:]),
    Case("select", lambda x: tg.select(x, 1, -1), (CUBE,), lambda a: a[:, -1]),
    Case("unflatten", lambda x: tg.unflatten(x, 1, (3, -1)), (WIDE,), lambda a: a.reshape(2, 3, 2)),
    Case("diag", tg.diag, (VECTOR,), np.diag, "vector"),
    Case("diag", lambda x: tg.diag(x, 1), (MATRIX,), lambda a: np.diag(a, 1), "matrix"),
    Case("diagonal", lambda x: tg.diagonal(x, 1, 1, 2), (CUBE,), lambda a: np.diagonal(a, 1, 1, 2)),
    Case("diag_embed", lambda x: tg.diag_embed(x, -1), (MATRIX,), lambda a: embedded(a, -1)),
    Case("diag_embed", lambda x: tg.diag_embed(x, 1, 0, 2), (MATRIX,), lambda a: np.moveaxis(embedded(a, 1), 1, 0), "dims"),
    Case("diagflat", tg.diagflat, (MATRIX,), np.diagflat),
    Case("tril", lambda x: tg.tril(x, -1), (CUBE,), lambda a: np.tril(a, -1)),
    Case("triu", tg.triu, (SQUARE,), np.triu),
    Case("meshgrid", lambda x, y: tg.meshgrid(x, y), (VECTOR, VECTOR[:3]), lambda a, b: tuple(np.meshgrid(a, b, indexing="ij"))),
    Case(
        "meshgrid",
        lambda x, y, z: tg.meshgrid(x, y, z, indexing="xy"),
        (VECTOR, VECTOR[:3], VECTOR[:2]),
        lambda a, b, c: tuple(np.meshgrid(a, b, c, indexing="xy")),
        "xy",
    ),
    Case("broadcast_tensors", tg.broadcast_tensors, (MATRIX, VECTOR[:3]), lambda a, b: (a, np.broadcast_to(b, a.shape))),
    Case(
        "cartesian_prod",
        tg.cartesian_prod,
        (VECTOR, VECTOR[:2]),
        lambda a, b: np.array([(x, y) for x in a for y in b]),
    ),
    Case("combinations", lambda x: tg.combinations(x), (VECTOR,), lambda a: a[np.array(np.triu_indices(4, 1)).T]),
    Case(
        "combinations",
        lambda x: tg.combinations(x, with_replacement=True),
        (VECTOR,),
        lambda a: a[np.array(np.triu_indices(4)).T],
        "with replacement",
    ),
    Case("hstack", lambda *x: tg.hstack(x), (MATRIX, SQUARE[:2]), lambda *a: np.hstack(a)),
    Case("vstack", lambda *x: tg.vstack(x), (MATRIX, VECTOR[:3]), lambda *a: np.vstack(a)),
    Case("dstack", lambda *x: tg.dstack(x), (VECTOR, VECTOR[::-1]), lambda *a: np.dstack(a)),
    Case("column_stack", lambda *x: tg.column_stack(x), (VECTOR[:2], MATRIX), lambda *a: np.column_stack(a)),
    Case("block_diag", tg.block_diag, (MATRIX, VECTOR[:3, None]), lambda a, b: blocks(a, b[:, 0])),
    Case("atleast_1d", tg.atleast_1d, (np.array(0.5),), np.atleast_1d),
    Case("atleast_2d", tg.atleast_2d, (VECTOR,), np.atleast_2d),
    Case("atleast_3d", tg.atleast_3d, (MATRIX,), np.atleast_3d),
    Case("tensor_split", lambda x: tg.tensor_split(x, 4, 1), (WIDE,), lambda a: tuple(np.array_split(a, 4, 1))),
    Case("tensor_split", lambda x: x.tensor_split((1, 5), 1), (WIDE,), lambda a: tuple(np.split(a, (1, 5), 1)), "places"),
    Case("hsplit", lambda x: tg.hsplit(x, 3), (WIDE,), lambda a: tuple(np.hsplit(a, 3))),
    Case("vsplit", lambda x: tg.vsplit(x, 2), (WIDE,), lambda a: tuple(np.vsplit(a, 2))),
    Case("dsplit", lambda x: tg.dsplit(x, (1,)), (CUBE,), lambda a: tuple(np.dsplit(a, (1,)))),
    Case("split_with_sizes", lambda x: x.split_with_sizes((1, 2), 1), (MATRIX,), lambda a: tuple(np.split(a, (1,), 1))),
    Case(
        "as_strided",
        lambda x: tg.as_strided(x.contiguous(), (2, 2), (3, 1), 1),
        (MATRIX,),
        lambda a: a[:, 1:],
    ),
    Case(
        "as_strided",
        lambda x: tg.as_strided(x.contiguous(), (5, 2), (1, 1)),
        (MATRIX,),
        lambda a: np.stack([a.ravel()[:-1], a.ravel()[1:]], 1),
        "overlapping",
    ),
    Case(
        "select_scatter",
        lambda x, y: tg.select_scatter(x, y, 1, 0),
        (MATRIX, VECTOR[:2]),
        lambda a, b: replaced(a, b, (slice(None), 0)),
    ),
    Case(
        "slice_scatter",
        lambda x, y: tg.slice_scatter(x, y, 1, 0, 6, 2),
        (WIDE, MATRIX),
        lambda a, b: replaced(a, b, (slice(None), slice(0, 6, 2))),
    ),
    Case("pad", lambda x: F.pad(x, (1, 2, 0, 1), value=0.5), (MATRIX,), lambda a: np.pad(a, ((0, 1), (1, 2)), constant_values=0.5)),
    Case("pad", lambda x: F.pad(x, (-1, 1)), (MATRIX,), lambda a: np.pad(a[:, 1:], ((0, 0), (0, 1))), "cut"),
    Case("pad", lambda x: F.pad(x, (2, 1), "reflect"), (MATRIX,), lambda a: np.pad(a, ((0, 0), (2, 1)), "reflect"), "reflect"),
    Case(
        "pad",
        lambda x: F.pad(x, (1, 0, 2, 1), "replicate"),
        (CUBE,),
        lambda a: np.pad(a, ((0, 0), (2, 1), (1, 0)), "edge"),
        "replicate",
    ),
    Case("pad", lambda x: F.pad(x, (3, 2), "circular"), (MATRIX,), lambda a: np.pad(a, ((0, 0), (3, 2)), "wrap"), "circular"),
    Case("cat", lambda x, y: tg.cat([x, y], -1), (MATRIX, SQUARE[:2]), lambda a, b: np.concatenate([a, b], -1)),
    Case("concat", lambda x: tg.concat([x, x]), (MATRIX,), lambda a: np.concatenate([a, a])),
    Case("concatenate", lambda x: tg.concatenate([x, x], 1), (MATRIX,), lambda a: np.concatenate([a, a], 1)),
    Case("row_stack", lambda x, y: tg.row_stack([x, y]), (MATRIX, MATRIX[0]), lambda a, b: np.vstack([a, b])),
    Case("chunk", lambda x: tg.chunk(x, 2, 1), (WIDE,), lambda a: tuple(np.split(a, 2, 1))),
    Case("unbind", lambda x: tg.unbind(x, 1), (MATRIX,), lambda a: tuple(a.T)),
    Case("expand", lambda x: tg.expand(x, 4, 2, 3), (MATRIX,), lambda a: np.broadcast_to(a, (4, 2, 3))),
    Case("expand_as", lambda x, y: x.expand_as(y), (VECTOR[:3], MATRIX), lambda a, b: np.broadcast_to(a, b.shape)),
    Case("flatten", lambda x: tg.flatten(x, 1), (CUBE,), lambda a: a.reshape(2, 6)),
    Case("permute", lambda x: tg.permute(x, (2, 0, 1)), (CUBE,), lambda a: a.transpose(2, 0, 1)),
    Case("transpose", lambda x: tg.transpose(x, 0, 2), (CUBE,), lambda a: a.swapaxes(0, 2)),
    Case("swapdims", lambda x: tg.swapdims(x, 0, 1), (CUBE,), lambda a: a.swapaxes(0, 1)),
    Case("movedim", lambda x: tg.movedim(x, 0, 2), (CUBE,), lambda a: np.moveaxis(a, 0, 2)),
    Case("adjoint", tg.adjoint, (CUBE,), lambda a: a.swapaxes(1, 2)),
    Case("unsqueeze", lambda x: tg.unsqueeze(x, 1), (MATRIX,), lambda a: a[:, None]),
    Case("view", lambda x: (x * 1.0).contiguous().view(3, 2), (MATRIX,), lambda a: a.reshape(3, 2)),
    Case("view_as", lambda x, y: (x * 1.0).contiguous().view_as(y), (WIDE, CUBE), lambda a, b: a.reshape(b.shape)),
    Case("reshape_as", lambda x, y: x.reshape_as(y), (WIDE, CUBE), lambda a, b: a.reshape(b.shape)),
    Case("getitem", lambda x: x[1:, ::2, 0], (CUBE,), lambda a: a[1:, ::2, 0]),
    Case("getitem", lambda x: x[:, [2, 0, 2]], (CUBE,), lambda a: a[:, [2, 0, 2]], "places"),
    Case("broadcast_to", lambda x: tg.broadcast_to(x, (2, 2, 3)), (MATRIX,), lambda a: np.broadcast_to(a, (2, 2, 3))),
    Case("clone", tg.clone, (CUBE,), np.copy),
    Case("contiguous", lambda x: x.mT.contiguous(), (CUBE,), lambda a: a.swapaxes(1, 2)),
    Case("moveaxis", lambda x: tg.moveaxis(x, 2, 0), (CUBE,), lambda a: np.moveaxis(a, 2, 0)),
    Case("ravel", tg.ravel, (CUBE,), np.ravel),
    Case("reshape", lambda x: tg.reshape(x, (3, -1)), (CUBE,), lambda a: a.reshape(3, 4)),
    Case(
        "diagonal_scatter",
        lambda x, y: tg.diagonal_scatter(x, y, 1),
        (MATRIX, VECTOR[:2]),
        lambda a, b: replaced(a, b, ([0, 1], [1, 2])),
    ),
    Case(
        "diagonal_scatter",
        lambda x, y: tg.diagonal_scatter(x, y, 1, -1, 1),
        (CUBE, MATRIX[:, :2]),
        lambda a, b: replaced(a, b, (slice(None), [1, 2], [0, 1])),
        "of other dimensions",
    ),
    Case(
        "as_strided_scatter",
        lambda x, y: tg.as_strided_scatter(x.contiguous(), y, (2, 2), (3, 1), 1),
        (MATRIX, VECTOR.reshape(2, 2)),
        lambda a, b: replaced(a, b, (slice(None), slice(1, 3))),
    ),
    Case("unsafe_chunk", lambda x: tg.unsafe_chunk(x, 2, 1), (WIDE,), lambda a: (a[:, :3], a[:, 3:])),
    Case("unsafe_split", lambda x: tg.unsafe_split(x, 4, 1), (WIDE,), lambda a: (a[:, :4], a[:, 4:])),
    Case("unsafe_split_with_sizes", lambda x: tg.unsafe_split_with_sizes(x, (1, 5), 1), (WIDE,), lambda a: (a[:, :1], a[:, 1:])),
    Case("split", lambda x: tg.split(x, [2, 4], 1), (WIDE,), lambda a: (a[:, :2], a[:, 2:])),
    Case("squeeze", lambda x: tg.squeeze(x[:, None], 1), (MATRIX,), np.copy),
    Case("squeeze", lambda x: tg.squeeze(x[:, None], ()), (MATRIX,), lambda a: a[:, None], "of none"),
    Case("stack", lambda x, y: tg.stack([x, y], 1), (MATRIX, MATRIX + 1.0), lambda a, b: np.stack([a, b], 1)),
    Case("swapaxes", lambda x: tg.swapaxes(x, 0, 2), (CUBE,), lambda a: a.swapaxes(0, 2)),
    Case("t", tg.t, (MATRIX,), np.transpose),
    Case("sum_to_size", lambda x: tg.sum_to_size(x, 3, 1), (CUBE,), lambda a: a.sum((0, 2)).reshape(3, 1)),
    Case("sum_to_size", lambda x: x.sum_to_size((2, 3, 2)), (CUBE,), lambda a: a, "same"),
]
