"""What the derivative of a structural operation is written with, under one name for every pass.

A vjp is one text. Where its result may be recorded, `Context.on` is `TENSORS`: the operations that everybody has. In the plain pass
nothing is tracked and nobody sees what is in between, so there it is `PLAIN`: the same values, without checks, rows, and views that
remember what they are views of. What `PLAIN` does not define is the operation itself. Elementwise operations and operators are
not here: on small untracked tensors they are compiled, and take less time than NumPy's on arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.arrays.sizes import is_one_number, stretched_number
from tapegrad.deferred import look_up
from tapegrad.engine import layout as at
from tapegrad.ops.compiled_operators import plain_function, when_compiled
from tapegrad.ops.elementwise import _mul0
from tapegrad.recording.primal_values import choose
from tapegrad.recording.stretched_operands import divided_twice, outer_product, sums_of_products
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, make

__all__ = ["PLAIN", "TENSORS"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
Take = Callable[[Any], Any]
add_reduce: Any = np.add.reduce
float64 = np.dtype(np.float64)

PLACES = {
    "add_at": "ops.flat_places", "aligned": "ops.contractions", "between_eigenvectors": "linalg.vector_gaps",
    "between_singular_vectors": "linalg.vector_gaps", "cat": "ops.joining", "column": "linalg.determinants",
    "diagonal_matrix": "linalg.matrices", "divided_twice": "ops.scaled_sums", "eye_times": "ops.vectors",
    "factored_cotangent": "linalg.triangular_factors", "gate_cotangent": "ops.activations", "getitem": "ops.indexing",
    "identity_beside": "linalg.matrices", "limited_differences": "ops.residuals", "matmul": "ops.products",
    "matrix_cotangent": "linalg.matrix_cotangents", "mean": "ops.reductions", "mirrored": "linalg.matrices",
    "mT": "ops.transposing", "off_diagonal": "linalg.matrices", "outer": "ops.products", "part_of": "ops.overwriting",
    "pieces": "recording.strided_maps", "product_to": "ops.scaled_sums", "put_along": "ops.selecting",
    "put_at": "ops.flat_places", "reshape": "ops.shaping", "reshape_copy": "recording.strided_maps",
    "restore": "ops.reductions", "shared_evenly": "ops.extremes", "shared_magnitudes": "ops.norms",
    "shares_back": "ops.normalisation", "solve_cotangent": "linalg.solving", "sum": "ops.reductions",
    "sum_to": "recording.strided_maps", "take_at": "ops.flat_places", "take_last": "ops.flat_places", "tall": "ops.products",
    "times": "ops.arithmetic", "triangle": "linalg.matrices", "triangle_cotangent": "linalg.matrix_cotangents",
    "triangular_cotangent": "linalg.solving", "unsqueeze": "ops.shaping", "weighted_differences": "linalg.row_distances",
    "where": "ops.elementwise", "without_part": "ops.overwriting",
}  # fmt: skip


class _Tensors:
    """Operations, found when they are first asked for."""

    def __getattr__(self, name: str) -> Any:
        if name not in PLACES:
            raise AttributeError(f"vjps are not written with {name!r}: it has no place in the table of this file")
        function = look_up(f"{PLACES[name]}:{name}")
        setattr(self, name, function)
        return function


class _Plain(_Tensors):
    """The same on untracked tensors, for values only."""

    # Each computes what the operation computes, with the same calls of NumPy: a plain pass and a recorded one give the same bits.

    @staticmethod
    def aligned(x: Tensor, labels: Sequence[int], output: Sequence[int]) -> Tensor:
        return _tensor(look_up("ops.contractions:aligned_array")(array_of(x), labels, output))

    @staticmethod
    def cat(tensors: Sequence[Tensor], dim: int) -> Tensor:
        return make(np.concatenate([t._data for t in tensors], dim), 0)

    @staticmethod
    def column(x: Tensor) -> Tensor:
        data = x._data
        return x if type(data) is float else make(data[..., None, None], 0)

    @staticmethod
    def getitem(x: Tensor, key: tuple[Any, ...]) -> Tensor:
        return make(x._data[key], 0)

    @staticmethod
    def add_at(g: Tensor, places: Any, shape: Shape) -> Tensor:
        return _tensor(look_up("ops.flat_places:sums_at")(array_of(g), places, shape))

    @staticmethod
    def take_at(x: Tensor, places: Any) -> Tensor:
        data = array_of(x)
        if data.size > SMALL and is_one_number(data) and places.at.size and places.at.min() >= 0:
            return _spread(data, places.shape)
        return _tensor(look_up("ops.flat_places:taken_at")(data, places))

    @staticmethod
    def take_last(g: Tensor, places: Any) -> Tensor:
        data = array_of(g)
        if data.size > SMALL and is_one_number(data) and look_up("ops.flat_places:are_all_different")(places.at):
            return _spread(data, places.shape)
        return _tensor(look_up("ops.flat_places:last_taken_at")(data, places))

    @staticmethod
    def put_at(x: Tensor, places: Any, values: Tensor) -> Tensor:
        return _tensor(look_up("ops.flat_places:written_at")(array_of(x), places, array_of(values)))

    @staticmethod
    def part_of(x: Tensor, replay: Take) -> Tensor:
        data = np.asarray(x._data)
        if data.size > SMALL and is_one_number(data):  # of which a view by strides would leave the memory
            return _spread(data, replay(np.empty(data.shape, np.int8)).shape)
        return _tensor(replay(data))

    @staticmethod
    def without_part(x: Tensor, replay: Take) -> Tensor:
        data = array_of(x)
        if data.size > SMALL:
            part = replay(np.empty(data.shape, np.int8))
            if part.size == data.size and (part.flags.c_contiguous or part.flags.f_contiguous):
                return _tensor(stretched_number(0.0, data.shape, data.dtype))  # nothing is left
        rest = np.array(data, order="C")
        part = replay(rest)
        if part.size and not np.may_share_memory(part, rest):
            return TENSORS.without_part(x, replay)
        part[...] = 0.0
        return _tensor(rest)

    @staticmethod
    def pieces(x: Tensor, shapes: Sequence[Shape]) -> list[Tensor]:
        data, found, start = x._data, [], 0
        for shape in shapes:
            end = start + math.prod(shape)
            found.append(_tensor(data[start:end].reshape(shape)))
            start = end
        return found

    @staticmethod
    def mT(x: Tensor) -> Tensor:
        return make(x._data.swapaxes(-1, -2), 0)

    @staticmethod
    def matmul(x: Tensor, y: Tensor) -> Tensor:
        a, b = x._data, y._data
        if a.ndim > 2 or b.ndim > 2 or (a.ndim == b.ndim == 2 and a.shape[1] == 1):
            return make(look_up("ops.products:product")(a, b), 0)
        token = enter(IGNORING)
        try:
            z = a.dot(b)
        finally:
            leave(token)
        return _tensor(z)

    @staticmethod
    def outer(x: Tensor, y: Tensor) -> Tensor:
        token = enter(IGNORING)
        try:
            return make(outer_product(x._data, y._data), 0)
        finally:
            leave(token)

    @staticmethod
    def times(x: Tensor, factor: float) -> Tensor:
        data = x._data
        if type(data) is float or data.size <= SMALL or not is_one_number(data):
            return x * factor
        return make(stretched_number(data[(0,) * data.ndim] * factor, data.shape, data.dtype), 0)

    @staticmethod
    def divided_twice(x: Tensor, y: Tensor) -> Tensor:
        a, b = x._data, y._data
        if type(a) is not float and type(b) is not float and (a.size > SMALL or b.size > SMALL):
            found = divided_twice(a, b)
            if found is not None:
                return make(found, 0)
        return x / y / y

    @staticmethod
    def product_to(g: Tensor, x: Tensor, shape: Shape) -> Tensor:
        data = x._data
        if type(data) is not float and data.size > SMALL:
            found = sums_of_products(g._data, data, shape)
            if found is not None:
                return make(found, 0)
        product: Tensor = PLAIN.sum_to(_mul0(g, x), shape)
        return product

    @staticmethod
    def eye_times(g: Tensor, rows: int, columns: int) -> Tensor:
        dtype = float64 if type(g._data) is float else g._data.dtype
        result = np.zeros((rows, columns), dtype)
        result.reshape(-1)[: min(rows, columns) * columns : columns + 1] = g._data
        return make(result, 0)

    @staticmethod
    def gate_cotangent(g: Tensor, gate: Tensor, x: Tensor, halves: Any) -> Tensor:
        found = look_up("ops.activations:gate_cotangent_by_loop")(g, gate, x, halves)
        return look_up("ops.activations:gate_cotangent")(g, gate, x, halves, PLAIN) if found is None else found

    @staticmethod
    def tall(x: Tensor) -> Tensor:
        data = x._data
        return x if data.ndim == 2 else make(data.reshape(-1, data.shape[-1]) if data.size else _tall_of_nothing(data), 0)

    @staticmethod
    def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
        data = x._data
        return _tensor((np.array(data) if type(data) is float else data).reshape(shape))

    @staticmethod
    def unsqueeze(x: Tensor, dim: int) -> Tensor:
        data = np.array(x._data) if type(x._data) is float else x._data
        at = dim + data.ndim + 1 if dim < 0 else dim
        return make(data.reshape((*data.shape[:at], 1, *data.shape[at:])), 0)

    @staticmethod
    def restore(x: Tensor, axes: Shape, keepdim: bool, shape: Shape) -> Tensor:
        if keepdim or len(axes) == len(shape):
            return x
        return make(x._data.reshape([1 if k in axes else extent for k, extent in enumerate(shape)]), 0)

    @staticmethod
    def put_along(g: Tensor, position: int, places: Tensor, shape: Shape) -> Tensor:
        found = look_up("ops.running_extremes:large_put_along")(g, position, places, shape)
        return TENSORS.put_along(g, position, places, shape) if found is None else found

    @staticmethod
    def between_eigenvectors(turned: Tensor, g_values: Tensor, L: Tensor) -> Tensor:
        found = look_up("linalg.vector_gaps:by_loop")("between_eigenvectors", L, turned, g_values)
        return look_up("linalg.vector_gaps:between_eigenvectors")(turned, g_values, L, PLAIN) if found is None else found

    @staticmethod
    def between_singular_vectors(left: Tensor, right: Tensor, g_values: Tensor, S: Tensor) -> Tensor:
        found = look_up("linalg.vector_gaps:by_loop")("between_singular_vectors", S, left, right, g_values)
        return look_up("linalg.vector_gaps:between_singular_vectors")(left, right, g_values, S, PLAIN) if found is None else found

    @staticmethod
    def factored_cotangent(g: Tensor, found: Tensor, back: Array) -> Tensor:
        given = g, found, back
        cotangent = look_up("linalg.triangular_factors:small_factored_cotangent")(*given)
        return look_up("linalg.triangular_factors:factored_cotangent")(*given, PLAIN) if cotangent is None else cotangent

    @staticmethod
    def shared_evenly(g: Tensor, x: Tensor, z: Tensor, removed: Shape, keepdim: bool, shape: Shape) -> Tensor:
        found = look_up("ops.extremes:shared_by_loop")(g, x, z, removed)
        return look_up("ops.extremes:shared_evenly")(g, x, z, removed, keepdim, shape, PLAIN) if found is None else found

    @staticmethod
    def shared_magnitudes(g: Tensor, x: Tensor, z: Tensor, removed: Shape, keepdim: bool, shape: Shape) -> Tensor:
        found = look_up("ops.extremes:shared_by_loop")(g, x, z, removed, True)
        return look_up("ops.norms:shared_magnitudes")(g, x, z, removed, keepdim, shape, PLAIN) if found is None else found

    @staticmethod
    def mirrored(x: Tensor) -> Tensor:
        return look_up("linalg.matrices:mirrored")(x, PLAIN)

    @staticmethod
    def shares_back(g: Tensor, result: Tensor, axes: Shape, logarithm: bool) -> Tensor:
        found = look_up("ops.exponential_shares:cotangent")(g, result, axes, logarithm)
        return look_up("ops.normalisation:shares_back")(g, result, axes, logarithm, PLAIN) if found is None else found

    @staticmethod
    def limited_differences(
        g: Tensor, x: Tensor, y: Tensor, divisor: float, bound: float, factor: float, needs: Sequence[bool]
    ) -> Sequence[Tensor | None]:
        given = g, x, y, divisor, bound, factor, needs
        found = look_up("ops.residuals:differences_by_loop")(*given)
        return look_up("ops.residuals:limited_differences")(*given, PLAIN) if found is None else found

    @staticmethod
    def sum(x: Tensor, axes: Shape, keepdim: bool = False) -> Tensor:
        data = x._data
        if type(data) is float:
            return x
        token = enter(IGNORING)
        try:
            return _tensor(add_reduce(data, axes, None, None, keepdim))
        finally:
            leave(token)

    @staticmethod
    def mean(x: Tensor, axes: Shape, keepdim: bool = False) -> Tensor:
        data = x._data
        if type(data) is float or data.itemsize == 2:
            return TENSORS.mean(x, axes, keepdim)
        size = 1
        for k in axes:
            size *= data.shape[k]
        token = enter(IGNORING)
        try:
            found = np.divide(add_reduce(data, axes, None, None, keepdim), size)
            return _tensor(found if data.itemsize == 8 else found.astype(data.dtype, copy=False))
        finally:
            leave(token)

    @staticmethod
    def sum_to(x: Tensor, shape: Shape) -> Tensor:
        data = x._data
        if type(data) is float or data.shape == shape:
            return x
        over = _summed_axes(data.shape, shape)
        if not over:
            return _tensor(np.asarray(data).reshape(shape))
        token = enter(IGNORING)
        try:
            return _tensor(np.asarray(add_reduce(data, over, None, None, True)).reshape(shape))
        finally:
            leave(token)

    @staticmethod
    def triangle(x: Tensor, upper: bool, strict: bool = False) -> Tensor:
        data = np.ascontiguousarray(x._data)
        result = np.empty_like(data)
        ARRAY_KERNELS.copy_triangles(id(result), id(data), *data.shape[-2:], int(strict) if upper else -int(strict), int(upper))
        return make(result, 0)

    @staticmethod
    def matrix_cotangent(b_bar: Tensor, x: Tensor, left: bool = True) -> Tensor:
        if b_bar._data.size > SMALL:
            found = look_up("linalg.matrix_cotangents:large_cotangent")(b_bar._data, x._data, left)
            if found is not None:
                return make(found, 0)
        return -PLAIN.matmul(b_bar, PLAIN.mT(x)) if left else -PLAIN.matmul(PLAIN.mT(x), b_bar)

    @staticmethod
    def triangle_cotangent(b_bar: Tensor, x: Tensor, upper: bool, left: bool, unit: bool) -> Tensor:
        if b_bar._data.size > SMALL:
            diagonal = int(unit) if upper else -int(unit)
            found = look_up("linalg.matrix_cotangents:large_cotangent")(b_bar._data, x._data, left, upper, diagonal)
            if found is not None:
                return make(found, 0)
        return PLAIN.triangle(-PLAIN.matmul(b_bar, PLAIN.mT(x)) if left else -PLAIN.matmul(PLAIN.mT(x), b_bar), upper, unit)

    @staticmethod
    def triangular_cotangent(A: Tensor, B: Tensor, upper: bool, left: bool = True, unit: bool = False) -> Tensor:
        return _tensor(look_up("linalg.substitution:substituted")(array_of(A), array_of(B), upper, left, unit))

    @staticmethod
    def weighted_differences(weights: Tensor, x: Tensor, y: Tensor, order: float) -> Tensor:
        found: Tensor = look_up("linalg.row_distances:weighted_values")(weights, x, y, order)
        return found

    @staticmethod
    def where(condition: Tensor, x: Tensor | float, y: Tensor | float) -> Tensor:
        a, b = (v._data if isinstance(v, Tensor) else v for v in (x, y))
        return _tensor(choose(condition._data, a, b))


@lru_cache(maxsize=1024)
def _summed_axes(own: Shape, shape: Shape) -> Shape:
    """Over which axes something is summed that a shape was stretched to."""
    extra = len(own) - len(shape)
    return tuple(range(extra)) + tuple(d + extra for d, n in enumerate(shape) if n == 1 and own[d + extra] != 1)


def _tall_of_nothing(data: Array) -> Array:
    return data.reshape(int(np.prod(data.shape[:-1])), data.shape[-1])


def _spread(one: Array, shape: Shape) -> Tensor:
    """The number that an array repeats, in another shape."""
    return _tensor(stretched_number(one[(0,) * one.ndim], shape, one.dtype))


def _tensor(z: Any) -> Tensor:
    if type(z) is np.ndarray and z.ndim:
        return make(z, 0)
    return make(float(z) if z.dtype == float64 else np.asarray(z), 0)


for _which, _name in (
    (at.PLAIN_PRODUCT, "matmul"),
    (at.PLAIN_TRANSPOSE, "mT"),
    (at.PLAIN_OUTER, "outer"),
    (at.PLAIN_TRIANGLE, "triangle"),
    (at.PLAIN_PIECES, "pieces"),
    (at.PLAIN_SUM_TO, "sum_to"),
    (at.PLAIN_MIRRORED, "mirrored"),
    (at.PLAIN_RESTORE, "restore"),
    (at.PLAIN_UNSQUEEZE, "unsqueeze"),
):
    _form = vars(_Plain)[_name]
    setattr(_Plain, _name, when_compiled(_Plain, _form, partial(plain_function, _name, _which, _form.__func__)))

TENSORS: Any = _Tensors()
PLAIN: Any = _Plain()
