"""Adjoints that share memory, that are one number for all elements, or that go to a piece of a larger one."""

import importlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf, numbers
from hypothesis import given, settings
from hypothesis import strategies as st
from many_cases import each
from naive import Tape, Variable

import tapegrad as tg

LENGTH = 600  # more than one of the sweep's blocks
LARGEST = 50.0


def points(length: int = LENGTH) -> np.ndarray:
    return np.linspace(-1.0, 1.5, length)


# Array programs, run on tensors and on object arrays of the slow twin. A step keeps or shortens one dimension.


def pairwise(tape: Tape, name: str, x: Any, y: Any) -> Any:
    return np.asarray(np.frompyfunc(lambda a, b: tape.apply(name, a, b), 2, 1)(x, y), dtype=object)


def total(tape: Tape, x: np.ndarray) -> Variable:
    result = x.flat[0]
    for element in x.flat[1:]:
        result = tape.apply("add", result, element)
    return result


def trimmed(x: Any, y: Any) -> tuple[Any, Any]:
    length = min(len(x), len(y))
    return x[:length], y[len(y) - length :]


STEPS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Tape, Any, Any], Any]]] = {
    "neg": (lambda x, y: -x, lambda t, x, y: pairwise(t, "mul", x, -1.0)),
    "double": (lambda x, y: x + x, lambda t, x, y: pairwise(t, "add", x, x)),
    "cancel": (lambda x, y: x - x, lambda t, x, y: pairwise(t, "sub", x, x)),
    "scale": (lambda x, y: 0.5 * x, lambda t, x, y: pairwise(t, "mul", x, 0.5)),
    "from_one": (lambda x, y: 1.0 - x, lambda t, x, y: pairwise(t, "sub", 1.0, x)),
    "square": (lambda x, y: x**2, lambda t, x, y: pairwise(t, "mul", x, x)),
    "add": (lambda x, y: np.add(*trimmed(x, y)), lambda t, x, y: pairwise(t, "add", *trimmed(x, y))),
    "sub": (lambda x, y: np.subtract(*trimmed(x, y)), lambda t, x, y: pairwise(t, "sub", *trimmed(x, y))),
    "mul": (lambda x, y: np.multiply(*trimmed(x, y)), lambda t, x, y: pairwise(t, "mul", *trimmed(x, y))),
    "add_total": (lambda x, y: x + 0.01 * y.sum(), lambda t, x, y: pairwise(t, "add", x, t.apply("mul", total(t, y), 0.01))),
    "column": (lambda x, y: x.reshape(-1, 1)[:, 0], lambda t, x, y: x),
    "whole": (lambda x, y: x[:], lambda t, x, y: x),
    "head": (lambda x, y: x[:-1], lambda t, x, y: x[:-1]),
    "tail": (lambda x, y: x[1:], lambda t, x, y: x[1:]),
    "every_second": (lambda x, y: x[::2], lambda t, x, y: x[::2]),
}
BY_OPERATOR = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y}


def tensor_step(name: str, x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
    return BY_OPERATOR[name](*trimmed(x, y)) if name in BY_OPERATOR else STEPS[name][0](x, y)


Program = list[tuple[str, int, int]]
programs = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9)), max_size=9)


def twin_results(tape: Tape, start: np.ndarray, program: Program) -> tuple[list[Any], Program]:
    results, run = [start], []
    for name, left, right in program:
        x, y = results[left % len(results)], results[right % len(results)]
        if len(x) < 3:
            continue
        result = STEPS[name][1](tape, x, y)
        if max(abs(v.primal) for v in result) < LARGEST:
            results.append(result)
            run.append((name, left % (len(results) - 1), right % (len(results) - 1)))
    return results, run


@settings(max_examples=60, deadline=None)
@given(programs, st.lists(st.integers(0, 9), min_size=1, max_size=3), st.sampled_from([4, LENGTH]), st.booleans())
def test_array_programs_agree_with_the_naive_tape(program: Program, outputs: list[int], length: int, single: bool) -> None:
    kind, tolerance = (np.float32, 2e-4) if single else (np.float64, 1e-11)
    values = points(length).astype(kind)
    tape = Tape()
    start = np.asarray(np.frompyfunc(tape.leaf, 1, 1)(values.astype(np.float64)), dtype=object)
    twins, run = twin_results(tape, start, program)
    seeds: dict[int, float] = {}
    for output in outputs:
        for v in twins[output % len(twins)]:
            seeds[v.slot] = seeds.get(v.slot, 0.0) + 1.0

    x = leaf(values)
    results = [x]
    for name, left, right in run:
        results.append(tensor_step(name, results[left], results[right]))
    value = results[outputs[0] % len(results)].sum()
    for output in outputs[1:]:
        value = value + results[output % len(results)].sum()
    value.backward()

    slots = [v.slot for v in start]
    expected, scale = np.array(tape.gradient(seeds))[slots], np.array(tape.gradient(seeds, magnitude=True))[slots]
    assert np.all(np.abs(numbers(x.grad) - expected) <= tolerance * (1.0 + scale))


# One number for all elements


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(LENGTH,), (2, 1), (30, 40), (1,), (1, 1), ()])
def test_sum_of_a_leaf_and_of_a_product(shape: tuple[int, ...], kind: Any) -> None:
    x = tg.ones(shape, dtype=np.dtype(kind), requires_grad=True)
    x.sum().backward()
    assert_values(x.grad, np.ones(shape))
    (3.0 * x).sum().backward()
    assert_values(x.grad, np.full(shape, 4.0))
    (x * x).mean().backward()
    assert_values(x.grad, np.full(shape, 4.0 + 2.0 / x.numel()), rtol=1e-6 if kind is np.float32 else 1e-12)


CONTRIBUTIONS: list[tuple[Callable[[tg.Tensor], tg.Tensor], Callable[[np.ndarray], Any]]] = [
    (lambda y: y.sum(), np.ones_like),
    (lambda y: y.mean(), lambda y: np.full_like(y, 1.0 / len(y))),
    (lambda y: (y * y).sum(), lambda y: 2.0 * y),
    (lambda y: (y + y).sum(), lambda y: np.full_like(y, 2.0)),
    (lambda y: y[7:].sum(), lambda y: np.where(np.arange(len(y)) < 7, 0.0, 1.0)),
    (lambda y: y[:-7:2].sum(), lambda y: np.where((np.arange(len(y)) < len(y) - 7) & (np.arange(len(y)) % 2 == 0), 1.0, 0.0)),
    (lambda y: y.reshape(2, -1).sum(0).sum(), np.ones_like),
    (lambda y: tg.cat([y, 2.0 * y]).sum(), lambda y: np.full_like(y, 3.0)),
    (lambda y: y.cumsum(0).sum(), lambda y: np.arange(len(y), 0.0, -1.0)),
    (lambda y: tg.where(y > 0.0, y, -y).sum(), lambda y: np.where(y > 0.0, 1.0, -1.0)),
    (lambda y: y[5], lambda y: np.where(np.arange(len(y)) == 5, 1.0, 0.0)),
    (lambda y: (y - y.sum()).sum(), lambda y: np.full_like(y, 1.0 - len(y))),
    (lambda y: (y.unsqueeze(1) + y[:3]).sum(), lambda y: 3.0 + np.where(np.arange(len(y)) < 3, len(y), 0.0)),
]


@pytest.mark.parametrize("is_leaf", [True, False])
@each(("first", "second"), list(itertools.product(range(len(CONTRIBUTIONS)), repeat=2)))
def test_two_contributions_in_either_order(first: int, second: int, is_leaf: bool) -> None:
    x = leaf(points())
    y = x if is_leaf else tg.sin(x)
    outer = np.ones(LENGTH) if is_leaf else np.cos(points())
    (f, of_f), (g, of_g) = CONTRIBUTIONS[first], CONTRIBUTIONS[second]
    (f(y) + 2.0 * g(y)).backward()
    at = points() if is_leaf else np.sin(points())
    assert_values(x.grad, outer * (of_f(at) + 2.0 * of_g(at)), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("g", [g for g, _ in CONTRIBUTIONS])
def test_adjoint_of_an_intermediate_is_shown_whole(g: Callable[[tg.Tensor], tg.Tensor]) -> None:
    x = leaf(points())
    y = 2.0 * x
    z = y * 1.5
    value = g(z)
    asked = tg.autograd.grad(value, (x, y, z), retain_graph=True)
    y.retain_grad()
    z.retain_grad()
    value.backward()
    for factor, gradients in zip((1.0, 2.0, 3.0), zip(asked, (x.grad, y.grad, z.grad), strict=True), strict=True):
        for gradient in gradients:
            assert_values(gradient, numbers(x.grad) / factor, rtol=1e-14)


def test_seed_of_a_sum_that_is_nan_or_infinite() -> None:
    for seed in (np.nan, np.inf):
        x = leaf(points())
        (0.0 * x).sum().backward(tg.tensor(seed))
        assert_values(x.grad, np.zeros(LENGTH))  # products with zero are zero
        x.sum().backward(tg.tensor(seed))
        assert_values(x.grad, np.full(LENGTH, seed))


# An argument that takes over its result's place


def test_chain_works_in_one_place() -> None:
    x = leaf(points())
    y = x
    for _ in range(6):
        y = -(y * 0.5 + y[:])
    (y * y).sum().backward()
    assert_values(x.grad, 2.0 * 1.5**12 * points())


def test_both_arguments_read_the_adjoint_that_one_overwrites() -> None:
    a, b = leaf(points()), leaf(points()[::-1].copy())
    x, y = tg.sin(a), tg.cos(b)
    z = x * y
    (z * z).sum().backward()
    s, c = np.sin(points()), np.cos(points()[::-1])
    assert_values(a.grad, 2.0 * s * c * c * np.cos(points()))
    assert_values(b.grad, -2.0 * s * s * c * np.sin(points()[::-1]), atol=1e-300)


def test_result_used_again_above_the_row_that_hands_its_place_on() -> None:
    x = leaf(points())
    y = tg.exp(x)
    z = y + y
    w = z * y
    (w * z).sum().backward()  # 4 exp(3 x)
    assert_values(x.grad, 12.0 * np.exp(3.0 * points()))


def test_retained_graph_gives_the_same_bits_again() -> None:
    x = leaf(points())
    y = tg.tanh(2.0 * x[1:] - x[:-1])
    value = (y - y * y[:]).mean()
    first = numbers(tg.autograd.grad(value, x, retain_graph=True)[0])
    second = numbers(tg.autograd.grad(value, x)[0])
    assert first.tobytes() == second.tobytes()


# Pieces


@pytest.mark.parametrize(
    "take",
    [
        lambda a: a[:],
        lambda a: a[3:],
        lambda a: a[:-3],
        lambda a: a[2:9, :],
        lambda a: a[2:9, 3:],
        lambda a: a[4:5, 2:6],
        lambda a: a[::2, ::3],
        lambda a: a[:, :1],
        lambda a: a.T,
        lambda a: a[5:5],
        lambda a: a[:, 30:],
        lambda a: a[40:],
        lambda a: a[7],
        lambda a: a[7, 3:8],
        lambda a: a[7, 3, None],
        lambda a: a[None, 30:, None],
    ],
)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("is_leaf", [True, False])
def test_piece_of_an_array(take: Callable[[Any], Any], kind: Any, is_leaf: bool) -> None:
    values = (np.arange(40.0 * 30.0).reshape(40, 30) / 1200.0).astype(kind)
    x = leaf(values)
    source = x if is_leaf else x + 0.0
    piece = take(source)
    (piece * piece).sum().backward()
    expected = np.zeros_like(values)
    take(expected)[...] = 2.0 * take(values)
    assert_values(x.grad, expected, rtol=1e-6 if kind is np.float32 else 1e-15)
    (take(x) * 1.0).sum().backward()  # now onto a gradient that is there already
    take(expected)[...] += 1.0
    assert_values(x.grad, expected, rtol=1e-6 if kind is np.float32 else 1e-15)


def test_the_gradient_of_nothing_is_written_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    allocate, made = tg.tape.column_memory.allocate, []

    def with_guard(length: int, dtype: Any) -> np.ndarray:
        memory = allocate(length + 4, dtype)
        memory[length:] = 77
        made.append(memory[length:])
        return memory[:length]

    monkeypatch.setattr(tg.tape.column_memory, "allocate", with_guard)
    importlib.import_module("tapegrad.autograd.sweep_memory")._pool.clear()
    nothing = tg.tensor(np.ones(0), requires_grad=True)
    for size in (1500, 3000):
        w = tg.tensor(np.ones(size), requires_grad=True)
        (nothing.sum() + w.sum()).backward(retain_graph=True)  # whose working memory is new
    assert made and all((guard == 77).all() for guard in made)
