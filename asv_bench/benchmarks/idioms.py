"""What scripts are made of, written once for tapegrad and PyTorch: measured by the breadth benchmark beside single operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Step = Callable[[], object]
Results = Callable[[], list[Any]]


class Idiom(NamedTuple):
    """A name, and what makes of a library and a size a step and a function for its results."""

    name: str
    build: Callable[[Any, int], tuple[Step, Results]]


IDIOMS: list[Idiom] = []


def vector(size: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 1.5, size)


def matrix(size: int, rows: int = 1, seed: int = 2) -> np.ndarray:
    """Square, or with so many times more rows; of about `size` elements if that is more than a script has."""
    extent = 8 if size <= 8 else round(size**0.5)
    return np.random.default_rng(seed).uniform(0.5, 1.5, (rows * extent, extent))


def idiom(name: str, *points: Callable[[int], np.ndarray]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function of the library and of tracked tensors that gives a scalar: differentiated at `points`, which a size makes."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        def build(m: Any, size: int) -> tuple[Step, Results]:
            leaves = [m.tensor(point(size), requires_grad=True) for point in points]

            def step() -> object:
                for leaf in leaves:
                    leaf.grad = None
                value = function(m, *leaves)
                value.backward()
                return value

            return step, lambda: [step(), *(leaf.grad for leaf in leaves)]

        IDIOMS.append(Idiom(name, build))
        return function

    return enter


def whole(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function that makes a step and its results by itself."""

    def enter(build: Callable[..., Any]) -> Callable[..., Any]:
        IDIOMS.append(Idiom(name, build))
        return build

    return enter


def tall(size: int) -> np.ndarray:
    return matrix(size, 2)


def row(size: int) -> np.ndarray:
    return vector(matrix(size).shape[1])


@idiom("x[0] * x[1]", vector)
def _(m: Any, x: Any) -> Any:
    return x[0] * x[1]


@idiom("loop over elements", lambda size: vector(8))
def _(m: Any, x: Any) -> Any:
    s = x[0]
    for i in range(1, 8):
        s = s + x[i] * x[i - 1]
    return s


@idiom("a, b, c = exp(p)", lambda size: vector(3))
def _(m: Any, p: Any) -> Any:
    a, b, c = m.exp(p)
    return a * b + b * c - a / c


@idiom("elements of a computed vector in a loop", lambda size: vector(4))
def _(m: Any, p: Any) -> Any:
    q = m.exp(p)
    y = q[0]
    for _ in range(10):
        y = y + 0.1 * (q[1] * y - q[2] * y * y + q[3])
    return y


@idiom("scalars", lambda size: np.array(1.3), lambda size: np.array(0.7))
def _(m: Any, x: Any, y: Any) -> Any:
    return m.sin(x * y) + x / y


@idiom("Rosenbrock", vector)
def _(m: Any, x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


@idiom("v @ A @ v", row, matrix)
def _(m: Any, v: Any, a: Any) -> Any:
    return v @ a @ v


@idiom("A @ v", matrix, row)
def _(m: Any, a: Any, v: Any) -> Any:
    return (a @ v).sum()


@idiom("B @ A", tall, matrix)
def _(m: Any, b: Any, a: Any) -> Any:
    return (b @ a).sum()


@idiom("y @ P of 4 x 4", lambda size: vector(4), lambda size: np.random.default_rng(3).uniform(0.0, 1.0, (4, 4)))
def _(m: Any, y: Any, p: Any) -> Any:
    return (y @ p).sum()


@idiom("linear regression", tall, row)
def _(m: Any, x: Any, w: Any) -> Any:
    return ((x @ w - 1.0) ** 2).mean()


@idiom("logistic regression", tall, row)
def _(m: Any, x: Any, w: Any) -> Any:
    return m.nn.functional.softplus(-(x @ w)).mean() + 0.01 * (w * w).sum()


@idiom("two layers", tall, matrix, row, row)
def _(m: Any, x: Any, a: Any, b: Any, c: Any) -> Any:
    return (m.tanh(x @ a + b) @ c).sum()


@idiom("v[idx]", vector)
def _(m: Any, v: Any) -> Any:
    return v[[2, 0, 5]].sum()


@idiom("v[v > 0.9]", vector)
def _(m: Any, v: Any) -> Any:
    return v[v > 0.9].sum()


@idiom("a row and a column", matrix)
def _(m: Any, a: Any) -> Any:
    return (a[1] * a[:, 2]).sum()


@idiom("max - min", vector)
def _(m: Any, v: Any) -> Any:
    return v.max() - v.min()


@idiom("standardised", vector)
def _(m: Any, v: Any) -> Any:
    return (((v - v.mean()) / v.std()) ** 3).sum()


@idiom("distance", vector, lambda size: vector(size, 7))
def _(m: Any, v: Any, w: Any) -> Any:
    return m.linalg.norm(v - w)


@idiom("log-likelihood of a mixture", tall)
def _(m: Any, x: Any) -> Any:
    return m.logsumexp(-0.5 * x * x - 0.9, 1).sum()


@idiom("cross entropy", tall)
def _(m: Any, x: Any) -> Any:
    return -m.log_softmax(x, 1)[:, 0].mean()


@idiom("where", vector)
def _(m: Any, v: Any) -> Any:
    return m.where(v > 1.0, v * v, 2.0 * v).sum()


@idiom("clamp", vector)
def _(m: Any, v: Any) -> Any:
    return v.clamp(0.7, 1.2).sum()


@idiom("stack of scalars", lambda size: np.array(1.3), lambda size: np.array(0.7))
def _(m: Any, x: Any, y: Any) -> Any:
    return (m.stack([x * y, x + y, x - y]) ** 2).sum()


@idiom("concatenation", vector, lambda size: vector(size, 7))
def _(m: Any, v: Any, w: Any) -> Any:
    return (m.cat([v, w]) ** 2).sum()


@idiom("a += w", vector, lambda size: vector(size, 7))
def _(m: Any, v: Any, w: Any) -> Any:
    a = v * 2.0
    a += w
    return a.sum()


@idiom("writes to parts", vector, lambda size: np.array(0.7))
def _(m: Any, v: Any, s: Any) -> Any:
    a = v * 1.0
    a[0] = s
    a[1:3] *= 3.0
    return (a * a).sum()


@idiom("log-density of a normal distribution", row, matrix)
def _(m: Any, v: Any, a: Any) -> Any:
    lower = m.linalg.cholesky(a @ a.T + 8.0 * m.eye(len(v), dtype=m.float64))
    z = m.linalg.solve_triangular(lower, v.unsqueeze(1), upper=False)
    return -0.5 * (z * z).sum() - lower.diagonal().log().sum()


@whole("a new leaf each time")
def _(m: Any, size: int) -> tuple[Step, Results]:
    x, w = vector(size), vector(size, 7)
    leaves: list[Any] = []

    def step() -> object:
        leaves[:] = m.tensor(x, requires_grad=True), m.tensor(w, requires_grad=True)
        a, b = leaves
        value = ((a + b) * (b + 1)).sum()
        value.backward()
        return value

    return step, lambda: [step(), *(leaf.grad for leaf in leaves)]


@whole("new scalar leaves each time")
def _(m: Any, size: int) -> tuple[Step, Results]:
    leaves: list[Any] = []

    def step() -> object:
        leaves[:] = m.tensor(2.0, dtype=m.float64, requires_grad=True), m.tensor(1.0, dtype=m.float64, requires_grad=True)
        x, w = leaves
        value = (x + w) * (w + 1)
        value.backward()
        return value

    return step, lambda: [step(), *(leaf.grad for leaf in leaves)]


@whole("gradients that accumulate")
def _(m: Any, size: int) -> tuple[Step, Results]:
    x, w = (m.tensor(vector(size, seed), requires_grad=True) for seed in (1, 7))

    def step() -> object:
        value = ((x + w) * (w + 1)).sum()
        value.backward()
        return value

    return step, lambda: [step()]


@whole("double backward")
def _(m: Any, size: int) -> tuple[Step, Results]:
    x = m.tensor(vector(size), requires_grad=True)

    def step() -> list[Any]:
        (g,) = m.autograd.grad((x**3 * m.sin(x)).sum(), x, create_graph=True)
        return list(m.autograd.grad((g * g).sum(), x))

    return step, step


@whole("custom Function")
def _(m: Any, size: int) -> tuple[Step, Results]:
    class Cube(m.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3.0 * x * x

    x = m.tensor(vector(size), requires_grad=True)

    def step() -> object:
        x.grad = None
        value = Cube.apply(x).sum()
        value.backward()
        return value

    return step, lambda: [step(), x.grad]


@whole("custom Function with other arguments and two outputs")
def _(m: Any, size: int) -> tuple[Step, Results]:
    class Scaled(m.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, factor: float) -> Any:
            ctx.factor = factor
            ctx.save_for_backward(x)
            return factor * x, x * x

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            (x,) = ctx.saved_tensors
            return ctx.factor * g + 2.0 * x * h, None

    x = m.tensor(vector(size), requires_grad=True)

    def step() -> object:
        x.grad = None
        scaled, square = Scaled.apply(x, 3.0)
        value = (scaled + square).sum()
        value.backward()
        return value

    return step, lambda: [step(), x.grad]
