"""`sum_over`: a sum over shards of data as one function, whose derivatives are computed where the shards are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.function import Function
from tapegrad.drivers.containers import Structure, flatten, restore
from tapegrad.drivers.curvature import gauss_newton, hessian, hvp
from tapegrad.drivers.gradients import value_and_grad
from tapegrad.drivers.leaves import recorder_of
from tapegrad.numpy_arrays.constants import stop_gradient
from tapegrad.parallel.workers import workers_for
from tapegrad.tensors.tensor import Tensor, array_of, make, wrap

__all__ = ["SumOver", "sum_over"]


class _Part:
    """The function on one shard, which is spread over its arguments if it is a tuple."""

    def __init__(self, f: Callable[..., Any], squares: bool) -> None:
        self.f, self.squares = f, squares

    def residual(self, shard: Any) -> Callable[[Any], Any]:
        rest, record = _arguments(shard), recorder_of(self.f)
        return lambda x: record(x, *rest)

    def on(self, shard: Any) -> Callable[[Any], Any]:
        own = self.residual(shard)
        return (lambda x: _half_of_squares(own(x))) if self.squares else own


def _arguments(shard: Any) -> tuple[Any, ...]:
    return shard if isinstance(shard, tuple) else (shard,)


def _half_of_squares(residual: Any) -> Any:
    found: list[Any] = []
    flatten(residual, found)
    total: Any = 0.0
    for part in found:
        total = total + 0.5 * (part * part).sum() if hasattr(part, "sum") else total + 0.5 * part * part
    return total


# Work, which is shipped by its name.


def _value(part: _Part, shard: Any, x: Any) -> float:
    return float(array_of(wrap(stop_gradient(part.on(shard)(x)))))


def _value_and_gradient(part: _Part, shard: Any, x: Any) -> tuple[float, list[Any]]:
    if part.squares:
        value, gradient = value_and_grad(part.on(shard))(x)
    else:  # without a function around it, compiled ones are swept by themselves
        value, gradient = value_and_grad(part.f)(x, *_arguments(shard))
    return float(value), _leaves(gradient)


def _product(part: _Part, shard: Any, x: Any, v: Any) -> list[Any]:
    return _leaves(hvp(part.on(shard), x, v))


def _hessian(part: _Part, shard: Any, x: Any) -> Any:
    return hessian(part.on(shard))(x)


def _normal_matrix(part: _Part, shard: Any, x: Any) -> tuple[Any, list[Any]]:
    model = gauss_newton(part.residual(shard), x)
    return model.matrix(), _leaves(model.gradient)


def _normal_product(part: _Part, shard: Any, x: Any, v: Any) -> list[Any]:
    return _leaves(gauss_newton(part.residual(shard), x).product(v))


def _leaves(value: Any) -> list[Any]:
    found: list[Any] = []
    flatten(value, found)
    return found


def _added(parts: Sequence[Sequence[Any]]) -> list[Any]:
    """Sums of leaves, always in the order of the shards: the bits do not depend on who computed what, and when."""
    total = [np.array(leaf, np.float64) for leaf in parts[0]]
    for part in parts[1:]:
        for k, leaf in enumerate(part):
            total[k] = total[k] + leaf
    return total


class SumOver:
    """A sum over shards; see `sum_over`. It is called like a function of the variable alone, also by drivers and optimisers."""

    def __init__(self, f: Callable[..., Any], shards: Sequence[Any], executor: Any, squares: bool) -> None:
        shards = list(shards)
        if not shards:
            raise ValueError("sum_over: there is no shard to sum over")
        self._squares = squares
        self._workers = workers_for(_Part(f, squares), shards, executor)
        self.__name__ = getattr(f, "__name__", "sum")

    def __call__(self, x: Any) -> Any:
        """The sum at a point; tracked if the point is."""
        leaves: list[Any] = []
        structure = flatten(x, leaves)
        if any(isinstance(leaf, Tensor) for leaf in leaves):
            return _Sum.apply(self, structure, *[leaf if isinstance(leaf, Tensor) else make(leaf, 0) for leaf in leaves])
        return sum(self._workers.apply(_value, x))

    def value_and_grad(self, x: Any) -> tuple[float, Any]:
        """Value and gradient, in the structure of `x`."""
        structure = flatten(x, [])
        value, gradient = self._value_and_gradient(x)
        return value, restore(structure, iter(gradient))

    def _value_and_gradient(self, x: Any) -> tuple[float, list[Any]]:
        parts = self._workers.apply(_value_and_gradient, x)
        return sum(value for value, _ in parts), _added([gradient for _, gradient in parts])

    def hvp(self, x: Any, v: Any) -> Any:
        """Product of the Hessian with a vector of the structure of `x`."""
        structure = flatten(x, [])
        return restore(structure, iter(self._product(x, v)))

    def _product(self, x: Any, v: Any) -> list[Any]:
        return _added(self._workers.apply(_product, x, v))

    def hessian(self, x: Any) -> np.ndarray:
        """The Hessian; the variable is an array.

        Raises
        ------
        TypeError
            If it is a container.
        """
        self._refuse_containers(x, "hessian")
        (total,) = _added([[part] for part in self._workers.apply(_hessian, x)])
        return np.asarray(total)

    def gauss_newton(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """``J.T @ J`` and the gradient ``J.T @ r`` of half the sum of squares; only of sums of squares, by an array.

        Raises
        ------
        TypeError
            If the sum is not one of squares, or the variable a container.
        """
        self._refuse_sums("gauss_newton")
        self._refuse_containers(x, "gauss_newton")
        parts = self._workers.apply(_normal_matrix, x)
        matrix, gradient = _added([[matrix, *gradient] for matrix, gradient in parts])
        return matrix, gradient

    def gauss_newton_product(self, x: Any, v: Any) -> Any:
        """``J.T @ (J @ v)``, in the structure of `x`; only of sums of squares.

        Raises
        ------
        TypeError
            If the sum is not one of squares.
        """
        self._refuse_sums("gauss_newton_product")
        structure = flatten(x, [])
        return restore(structure, iter(_added(self._workers.apply(_normal_product, x, v))))

    def _refuse_sums(self, name: str) -> None:
        if not self._squares:
            raise TypeError(f"{name} is of sums of squares: let f give residuals, and say sum_over(..., squares=True)")

    def _refuse_containers(self, x: Any, name: str) -> None:
        if flatten(x, []) is not None:
            raise TypeError(f"{name} of a sum takes an array, not {type(x).__name__}; hvp and gauss_newton_product take containers")


def _plain(structure: Structure, leaves: Sequence[Any]) -> Any:
    """Values in their structure, without a graph."""
    values = [leaf._data if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    return restore(structure, iter([value.copy() if isinstance(value, np.ndarray) else value for value in values]))


class _Sum(Function):
    """The sum as an operation; value and gradient come from one visit to the shards."""

    @staticmethod
    def forward(ctx: Any, total: SumOver, structure: Structure, *leaves: Any) -> Any:
        value, gradient = total._value_and_gradient(_plain(structure, leaves))
        ctx.total, ctx.structure, ctx.gradient = total, structure, gradient
        ctx.save_for_backward(*leaves)
        return make(value, 0)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        found = _Gradient.apply(ctx.total, ctx.structure, ctx.gradient, *ctx.saved_tensors)
        slopes = found if isinstance(found, tuple) else (found,)
        return (None, None, *[g * slope for slope in slopes])


class _Gradient(Function):
    """The gradient, whose derivative is the Hessian: symmetric, so that its transpose is itself."""

    @staticmethod
    def forward(ctx: Any, total: SumOver, structure: Structure, gradient: list[Any], *leaves: Any) -> Any:
        ctx.total, ctx.structure = total, structure
        ctx.save_for_backward(*leaves)
        found = tuple([_as_tensor(slope) for slope in gradient])
        return found if len(found) > 1 else found[0]

    @staticmethod
    def backward(ctx: Any, *weights: Any) -> Any:
        leaves = ctx.saved_tensors
        given = [make(np.zeros(np.shape(leaf._data)), 0) if w is None else w for w, leaf in zip(weights, leaves, strict=True)]
        found = _Product.apply(ctx.total, ctx.structure, *leaves, *given)
        return (None, None, None, *(found if isinstance(found, tuple) else (found,)))


class _Product(Function):
    """A product with the Hessian."""

    @staticmethod
    def forward(ctx: Any, total: SumOver, structure: Structure, *leaves: Any) -> Any:
        half = len(leaves) // 2
        found = total._product(_plain(structure, leaves[:half]), _plain(structure, leaves[half:]))
        products = tuple([_as_tensor(product) for product in found])
        return products if half > 1 else products[0]

    @staticmethod
    def backward(ctx: Any, *weights: Any) -> Any:
        raise NotImplementedError(
            "a sum over shards has derivatives of first and second order, and this would be a third; differentiate the function "
            "without sum_over"
        )


def _as_tensor(value: Any) -> Tensor:
    array = np.asarray(value, np.float64)
    return make(array.item() if array.ndim == 0 else array.copy(), 0)


def sum_over(f: Callable[..., Any], shards: Sequence[Any], executor: Any = None, squares: bool = False) -> SumOver:
    """A sum of a function over shards of data, computed where the shards are.

    Parameters
    ----------
    f : callable
        ``f(x, shard)`` gives a number, or residuals with `squares`; ``f(x, *shard)`` where a shard is a tuple. Python's or
        compiled. For processes it is a function of a module, which can be pickled.
    shards : sequence
        Data, or functions without arguments that make them where they are to be.
    executor : Executor, distributed.Client, joblib.Parallel, "joblib", "ray" or None
        Who computes: threads or processes of `concurrent.futures`, a cluster of Dask (extra ``dask``), joblib with what
        ``joblib.parallel_config`` says (extra ``joblib``), Ray (extra ``ray``), or this process. Each worker is sent a shard once.
    squares : bool
        Whether `f` gives residuals, and half the sum of their squares is meant.

    Returns
    -------
    SumOver
        A function of `x` for all drivers and for `tapegrad.optimize`, with ``value_and_grad(x)``, ``hvp(x, v)``, ``hessian(x)``,
        and of squares ``gauss_newton(x)`` and ``gauss_newton_product(x, v)``.

    Raises
    ------
    ModuleNotFoundError
        If the executor's library is asked for by name, and is not installed.
    ValueError
        If there are no shards.
    TypeError
        If the executor is none.

    Notes
    -----
    Parts are added in the order of the shards, so the bits are the same for any number and kind of workers, as long as these
    compute alike. Derivatives of first and second order are there; a third raises. With processes a call takes the time of its
    slowest shard, and that of sending `x` and the results, of the variable's size, there and back.

    Examples
    --------
    >>> def misfit(w, x, y):
    ...     return ((x @ w - y) ** 2).sum()
    >>> x = np.arange(12.0).reshape(6, 2)
    >>> shards = [(x[:3], np.ones(3)), (x[3:], np.ones(3))]
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as executor:
    ...     total = tg.parallel.sum_over(misfit, shards, executor)
    ...     value, gradient = tg.value_and_grad(total)(np.zeros(2))
    >>> value, gradient
    (6.0, array([-60., -72.]))
    """
    return SumOver(f, shards, executor, squares)
