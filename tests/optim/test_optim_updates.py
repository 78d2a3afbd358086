"""Steps of the optimisers beside their published formulas, element by element, for floats and for arrays of every layout."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from many_cases import each

import tapegrad as tg

Numbers = list[float]


def sgd(
    w: float, gradients: Numbers, lr=0.1, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False
) -> float:
    b = None
    for g in gradients:
        g = (-g if maximize else g) + weight_decay * w
        b = g if b is None else momentum * b + (1 - dampening) * g
        w -= lr * (g + momentum * b if nesterov else b if momentum else g)
    return w


def adam(
    w: float,
    gradients: Numbers,
    lr=0.1,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.0,
    amsgrad=False,
    maximize=False,
    shrinks=False,
) -> float:
    m = v = largest = 0.0
    for t, g in enumerate(gradients, start=1):
        if maximize:
            g = -g
        if shrinks:
            w *= 1 - lr * weight_decay
        else:
            g += weight_decay * w
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        largest = max(largest, v)
        v_hat = (largest if amsgrad else v) / (1 - betas[1] ** t)
        w -= lr * (m / (1 - betas[0] ** t)) / (math.sqrt(v_hat) + eps)
    return w


def adamw(w: float, gradients: Numbers, **options: Any) -> float:
    return adam(w, gradients, **{"weight_decay": 0.01, **options}, shrinks=True)


def rmsprop(
    w: float, gradients: Numbers, lr=0.1, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False, maximize=False
) -> float:
    v = a = b = 0.0
    for g in gradients:
        g = (-g if maximize else g) + weight_decay * w
        v = alpha * v + (1 - alpha) * g**2
        a = alpha * a + (1 - alpha) * g
        b = momentum * b + g / (math.sqrt(v - a**2 if centered else v) + eps)
        w -= lr * b
    return w


def adagrad(
    w: float, gradients: Numbers, lr=0.1, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10, maximize=False
) -> float:
    s = initial_accumulator_value
    for t, g in enumerate(gradients, start=1):
        g = (-g if maximize else g) + weight_decay * w
        s += g**2
        w -= lr / (1 + (t - 1) * lr_decay) * g / (math.sqrt(s) + eps)
    return w


def adamax(w: float, gradients: Numbers, lr=0.1, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, maximize=False) -> float:
    m = u = 0.0
    for t, g in enumerate(gradients, start=1):
        g = (-g if maximize else g) + weight_decay * w
        m = betas[0] * m + (1 - betas[0]) * g
        u = max(betas[1] * u, abs(g) + eps)
        w -= lr / (1 - betas[0] ** t) * m / u
    return w


def nadam(
    w: float,
    gradients: Numbers,
    lr=0.1,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.0,
    momentum_decay=4e-3,
    decoupled_weight_decay=False,
    maximize=False,
) -> float:
    def mu(t: int) -> float:
        return betas[0] * (1 - 0.96 ** (t * momentum_decay) / 2)

    m = v = 0.0
    for t, g in enumerate(gradients, start=1):
        if maximize:
            g = -g
        if decoupled_weight_decay:
            w -= lr * weight_decay * w
        else:
            g += weight_decay * w
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        so_far = math.prod(mu(k) for k in range(1, t + 1))
        ahead = mu(t + 1) * m / (1 - so_far * mu(t + 1)) + (1 - mu(t)) * g / (1 - so_far)
        w -= lr * ahead / (math.sqrt(v / (1 - betas[1] ** t)) + eps)
    return w


def radam(
    w: float,
    gradients: Numbers,
    lr=0.1,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.0,
    decoupled_weight_decay=False,
    maximize=False,
) -> float:
    m = v = 0.0
    for t, g in enumerate(gradients, start=1):
        if maximize:
            g = -g
        if decoupled_weight_decay:
            w -= lr * weight_decay * w
        else:
            g += weight_decay * w
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        end = 2 / (1 - betas[1]) - 1
        rho = end - 2 * t * betas[1] ** t / (1 - betas[1] ** t)
        m_hat = m / (1 - betas[0] ** t)
        if rho > 5:
            rectified = math.sqrt((rho - 4) * (rho - 2) * end / ((end - 4) * (end - 2) * rho))
            w -= lr * m_hat * rectified * math.sqrt(1 - betas[1] ** t) / (math.sqrt(v) + eps)
        else:
            w -= lr * m_hat
    return w


def adadelta(w: float, gradients: Numbers, lr=0.1, rho=0.9, eps=1e-6, weight_decay=0.0, maximize=False) -> float:
    v = u = 0.0
    for g in gradients:
        g = (-g if maximize else g) + weight_decay * w
        v = rho * v + (1 - rho) * g**2
        d = math.sqrt(u + eps) / math.sqrt(v + eps) * g
        u = rho * u + (1 - rho) * d**2
        w -= lr * d
    return w


def rprop(w: float, gradients: Numbers, lr=0.1, etas=(0.5, 1.2), step_sizes=(1e-6, 50.0), maximize=False) -> float:
    before, length = 0.0, lr
    for g in gradients:
        g = -g if maximize else g
        if g * before > 0:
            length = min(length * etas[1], step_sizes[1])
        elif g * before < 0:
            length, g = max(length * etas[0], step_sizes[0]), 0.0
        w -= math.copysign(length, g) if g else 0.0
        before = g
    return w


def asgd(w: float, gradients: Numbers, lr=0.1, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0, maximize=False) -> float:
    for t, g in enumerate(gradients):
        eta = lr / (1 + lambd * lr * t) ** alpha
        g = (-g if maximize else g) + weight_decay * w
        w -= eta * (g + lambd * w)
    return w


def choices(**options: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(options, values, strict=True)) for values in itertools.product(*options.values())]


BOTH = (False, True)
NAIVE: dict[str, Callable[..., float]] = {
    "SGD": sgd, "Adam": adam, "AdamW": adamw, "RMSprop": rmsprop, "Adagrad": adagrad,
    "Adamax": adamax, "NAdam": nadam, "RAdam": radam, "Adadelta": adadelta, "Rprop": rprop, "ASGD": asgd,
}  # fmt: skip
CASES = [
    *[("SGD", o) for o in choices(momentum=(0.0, 0.9), dampening=(0.0, 0.3), weight_decay=(0.0, 0.2), maximize=BOTH)],
    *[("SGD", o) for o in choices(momentum=(0.9,), nesterov=(True,), weight_decay=(0.0, 0.2), maximize=BOTH)],
    *[("Adam", o) for o in choices(betas=((0.9, 0.999), (0.0, 0.5)), weight_decay=(0.0, 0.2), amsgrad=BOTH, maximize=BOTH)],
    *[("AdamW", o) for o in choices(eps=(1e-8, 0.1), amsgrad=BOTH, maximize=BOTH)],
    ("AdamW", {"weight_decay": 0.3}),
    *[("RMSprop", o) for o in choices(momentum=(0.0, 0.8), centered=BOTH, weight_decay=(0.0, 0.2), maximize=BOTH)],
    ("RMSprop", {"alpha": 0.5, "eps": 0.1}),
    *[("Adagrad", o) for o in choices(lr_decay=(0.0, 0.3), weight_decay=(0.0, 0.2), maximize=BOTH)],
    ("Adagrad", {"initial_accumulator_value": 0.7, "eps": 0.1}),
    *[("Adamax", o) for o in choices(betas=((0.9, 0.999), (0.0, 0.3)), weight_decay=(0.0, 0.2), maximize=BOTH)],
    ("Adamax", {"eps": 0.1}),
    *[("NAdam", o) for o in choices(weight_decay=(0.0, 0.2), decoupled_weight_decay=BOTH, maximize=BOTH)],
    ("NAdam", {"betas": (0.5, 0.9), "eps": 0.1, "momentum_decay": 2.0}),
    *[("RAdam", o) for o in choices(betas=((0.9, 0.999), (0.5, 0.8)), weight_decay=(0.0, 0.2), decoupled_weight_decay=BOTH)],
    ("RAdam", {"eps": 0.1, "maximize": True}),
    *[("Adadelta", o) for o in choices(rho=(0.9, 0.3), weight_decay=(0.0, 0.2), maximize=BOTH)],
    ("Adadelta", {"eps": 0.1}),
    *[("Rprop", o) for o in choices(etas=((0.5, 1.2), (0.1, 3.0)), step_sizes=((1e-6, 50.0), (0.09, 0.11)), maximize=BOTH)],
    *[("ASGD", o) for o in choices(lambd=(1e-4, 0.5), weight_decay=(0.0, 0.2), maximize=BOTH)],
    ("ASGD", {"lambd": 1.0, "alpha": 0.3}),
]
IDS = [f"{name}-{'-'.join(f'{key}={value}' for key, value in options.items())}" for name, options in CASES]

LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "C": lambda a: a.copy(),
    "columns": lambda a: np.asfortranarray(a),
    "strided": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
}
STEPS = 6


def values(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def run(name: str, options: dict[str, Any], parameter: tg.Tensor, gradients: np.ndarray) -> np.ndarray:
    optimizer = getattr(tg.optim, name)([parameter], **{"lr": 0.1, **options})
    for g in gradients:
        parameter.grad = tg.tensor(g, dtype=parameter.dtype)
        optimizer.step()
    return np.array(parameter.detach().numpy())


def expected(name: str, options: dict[str, Any], start: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    flat = gradients.reshape(len(gradients), -1)
    ends = [NAIVE[name](float(w), flat[:, k].tolist(), **options) for k, w in enumerate(start.reshape(-1))]
    return np.array(ends).reshape(start.shape)


@each(("name", "options"), CASES, ids=IDS)
def test_float_follows_the_formula(name: str, options: dict[str, Any]) -> None:
    start, gradients = values((), 1), values((STEPS,), 2)
    result = run(name, options, tg.tensor(float(start), requires_grad=True), gradients)
    np.testing.assert_allclose(result, expected(name, options, start, gradients), rtol=1e-12)


@each(("name", "options"), CASES, ids=IDS)
def test_array_follows_the_formula(name: str, options: dict[str, Any]) -> None:
    start, gradients = values((2, 3), 3), values((STEPS, 2, 3), 4)
    result = run(name, options, tg.tensor(start, requires_grad=True), gradients)
    np.testing.assert_allclose(result, expected(name, options, start, gradients), rtol=1e-12)


@each("layout", LAYOUTS)
@each("name", NAIVE)
def test_memory_order_does_not_matter(name: str, layout: str) -> None:
    start, gradients = values((3, 4), 5), values((STEPS, 3, 4), 6)
    parameter = tg.from_numpy(LAYOUTS[layout](start)).requires_grad_()
    np.testing.assert_allclose(run(name, {}, parameter, gradients), expected(name, {}, start, gradients), rtol=1e-12)


@each("layout", LAYOUTS)
@each("name", NAIVE)
def test_many_elements_are_each_updated_once(name: str, layout: str) -> None:
    """Long arrays go through the rule in blocks: equal elements stay equal, and equal to a float's."""
    start, gradients = np.full((130, 600), 0.75), np.full((2, 130, 600), -0.25)
    parameter = tg.from_numpy(LAYOUTS[layout](start)).requires_grad_()
    alone = run(name, {}, tg.tensor(0.75, requires_grad=True), np.full(2, -0.25))
    np.testing.assert_allclose(run(name, {}, parameter, gradients), float(alone), rtol=1e-14)


@each("shape", [(), (3,)])
@each("name", NAIVE)
def test_float32_stays_float32(name: str, shape: tuple[int, ...]) -> None:
    start, gradients = values(shape, 7), values((STEPS, *shape), 8)
    result = run(name, {}, tg.tensor(start, dtype=tg.float32, requires_grad=True), gradients)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected(name, {}, start, gradients), rtol=1e-4, atol=1e-6)


@each("name", ["Adam", "AdamW", "RMSprop", "Adagrad", "Adamax", "NAdam", "Adadelta"])
@each("shape", [(), (2,)])
def test_nothing_over_nothing_is_nan(name: str, shape: tuple[int, ...]) -> None:
    parameter = tg.ones(*shape, requires_grad=True) if shape else tg.tensor(1.0, requires_grad=True)
    assert np.isnan(run(name, {"eps": 0.0}, parameter, np.zeros((1, *shape)))).all()


@each("name", NAIVE)
def test_overflow_is_infinite_or_nan(name: str) -> None:
    ends = [run(name, {"lr": 10.0}, tg.tensor(start, requires_grad=True), np.full((2, *np.shape(start)), 1e308))
            for start in (1.0, [1.0])]  # fmt: skip
    np.testing.assert_array_equal(ends[0], ends[1][0])


@each("name", NAIVE)
def test_parameters_without_gradient_stay(name: str) -> None:
    first, second = tg.ones(2, requires_grad=True), tg.ones(2, requires_grad=True)
    optimizer = getattr(tg.optim, name)([first, second], lr=0.1)
    first.grad = tg.ones(2)
    optimizer.step()
    assert second.tolist() == [1.0, 1.0] != first.tolist()


def test_parameters_count_their_own_steps() -> None:
    first, second = tg.tensor(1.0, requires_grad=True), tg.tensor(1.0, requires_grad=True)
    optimizer = tg.optim.Adam([first, second], lr=0.1)
    for gradients in ((0.5, None), (0.25, 3.0)):
        for p, g in zip((first, second), gradients, strict=True):
            p.grad = None if g is None else tg.tensor(g)
        optimizer.step()
    assert first.item() == pytest.approx(adam(1.0, [0.5, 0.25]), rel=1e-14)
    assert second.item() == pytest.approx(adam(1.0, [3.0]), rel=1e-14)


def test_learning_rate_may_be_a_tensor() -> None:
    rate = tg.tensor(0.5)
    x = tg.tensor([1.0], requires_grad=True)
    optimizer = tg.optim.SGD([x], lr=rate)
    x.grad = tg.ones(1)
    optimizer.step()
    rate.fill_(0.25)
    optimizer.step()
    assert x.tolist() == [0.25]


@each("shape", [(), (3,)])
def test_mean_of_the_points_is_kept(shape: tuple[int, ...]) -> None:
    w = tg.zeros(*shape, requires_grad=True) if shape else tg.tensor(0.0, requires_grad=True)
    optimizer = tg.optim.ASGD([w], lr=1.0, lambd=0.0, t0=2)
    points = []
    for k in range(7):
        w.grad = tg.full(shape, float(k * k)) if shape else tg.tensor(float(k * k))
        optimizer.step()
        points.append(w.detach().numpy().copy())
    np.testing.assert_allclose(optimizer.state[w]["ax"].numpy(), np.mean(points[3:], axis=0), rtol=1e-14)


@each("shape", [(), (2,)])
def test_nan_in_a_gradient_of_signs_is_not_lost(shape: tuple[int, ...]) -> None:
    parameter = tg.ones(*shape, requires_grad=True) if shape else tg.tensor(1.0, requires_grad=True)
    assert np.isnan(run("Rprop", {}, parameter, np.full((1, *shape), np.nan))).all()
