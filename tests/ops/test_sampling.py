"""Random numbers by tensors' probabilities, and written in place."""

import numpy as np
import pytest

import tapegrad as tg

IN_PLACE = ("normal_", "uniform_", "exponential_", "bernoulli_", "random_", "cauchy_", "log_normal_", "geometric_")
GIVEN = {"geometric_": (0.3,)}


@pytest.mark.parametrize("name", IN_PLACE)
def test_the_same_seed_writes_the_same_numbers(name: str) -> None:
    drawn = []
    for _ in range(2):
        tg.manual_seed(5)
        drawn.append(getattr(tg.empty(50), name)(*GIVEN.get(name, ())).tolist())
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_leaf_that_requires_grad_is_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        getattr(tg.ones(2, requires_grad=True), name)(*GIVEN.get(name, ()))


@pytest.mark.parametrize("name", IN_PLACE)
def test_what_was_saved_and_then_drawn_over_is_noticed(name: str) -> None:
    x = tg.ones(2, requires_grad=True)
    y = x * 2.0
    z = (y * y).sum()
    getattr(y, name)(*GIVEN.get(name, ()))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@pytest.mark.parametrize("name", IN_PLACE)
def test_what_was_drawn_over_has_no_gradient(name: str) -> None:
    x = tg.ones(2, requires_grad=True)
    y = x * 2.0
    getattr(y, name)(*GIVEN.get(name, ()))
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


DRAWING = [*(lambda x, name=name: x * getattr(tg.empty(50), name)(*GIVEN.get(name, ())) for name in IN_PLACE)]
DRAWING += [
    lambda x: tg.bernoulli(tg.as_tensor(x) / 2.0) * x,
    lambda x: tg.bernoulli(tg.as_tensor(x), 0.5) * x,
    lambda x: x * tg.multinomial(tg.as_tensor(x), 9, True).sum(),
]


@pytest.mark.parametrize("function", DRAWING)
def test_a_program_draws_anew_in_every_run(function) -> None:  # type: ignore[no-untyped-def]
    program = tg.program(function)
    drawn = [tuple(np.asarray(program(np.ones(50))).tolist()) for _ in range(4)]
    assert len(set(drawn)) > 1
    assert len(set(drawn[1:])) > 1


@pytest.mark.parametrize(
    ("call", "mean", "variance"),
    [
        (lambda t: t.normal_(1.0, 2.0), 1.0, 4.0),
        (lambda t: t.uniform_(2.0, 4.0), 3.0, 1 / 3),
        (lambda t: t.exponential_(2.0), 0.5, 0.25),
        (lambda t: t.bernoulli_(0.3), 0.3, 0.21),
        (lambda t: t.random_(3, 5), 3.5, 0.25),
        (lambda t: tg.bernoulli(t.fill_(0.3)), 0.3, 0.21),
        (lambda t: tg.bernoulli(t.fill_(0.9), 0.3), 0.3, 0.21),
        (lambda t: tg.multinomial(tg.tensor([1.0, 3.0, 0.0]), t.numel(), True), 0.75, 0.1875),
    ],
)
def test_moments_are_those_of_the_distribution(call, mean: float, variance: float) -> None:  # type: ignore[no-untyped-def]
    tg.manual_seed(1)
    values = call(tg.empty(100_000)).numpy().astype(float)
    assert abs(values.mean() - mean) < 0.02
    assert abs(values.var() - variance) < 0.05


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (2.0, 3.0)])
def test_uniform_numbers_never_are_the_upper_end(low: float, high: float) -> None:
    tg.manual_seed(2)
    values = tg.empty(50_000, dtype=tg.float16).uniform_(low, high).numpy()
    assert (values.min() >= low, values.max() < high) == (True, True)


def test_random_takes_the_whole_range_of_the_dtype() -> None:
    values = tg.empty(1000, dtype=tg.uint8).random_().numpy()
    assert (values.min() < 20, values.max() > 235) == (True, True)


def test_the_upper_bound_is_not_drawn_where_numbers_are_rounded_to_it() -> None:
    values = tg.empty(100, dtype=tg.float32).uniform_(2.0**24, 2.0**24 + 2.0)  # between them there is no other number
    assert (values == 2.0**24).all()


@pytest.mark.parametrize("replacement", [False, True])
def test_of_no_rows_no_indices_are_drawn(replacement: bool) -> None:
    assert tg.multinomial(tg.ones(0, 3), 2, replacement).shape == (0, 2)


def test_without_replacement_no_index_comes_twice_and_none_of_weight_zero() -> None:
    rows = tg.multinomial(tg.tensor([[1.0, 0.0, 2.0, 3.0]] * 20), 3).tolist()
    assert {tuple(sorted(row)) for row in rows} == {(0, 2, 3)}


def test_gradient_of_bernoulli_by_its_probabilities_is_zero() -> None:
    p = tg.tensor([0.2, 1.0, 0.0], requires_grad=True)
    tg.bernoulli(p).sum().backward()
    assert p.grad.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tg.bernoulli(tg.tensor([1.5])), "p_in >= 0 && p_in <= 1"),
        (lambda: tg.multinomial(tg.tensor([1.0, -1.0]), 1), "element < 0"),
        (lambda: tg.multinomial(tg.tensor([0.0, 0.0]), 1), "sum of probabilities <= 0"),
        (lambda: tg.multinomial(tg.tensor([1.0, 1.0]), 3), "without replacement"),
        (lambda: tg.empty(2).normal_(0.0, -1.0), "std >= 0.0"),
        (lambda: tg.empty(2).uniform_(1.0, 0.0), "from=1.0 > to=0.0"),
        (lambda: tg.empty(2).uniform_(-1e308, 1e308), "to - from <= 1.797"),
        (lambda: tg.empty(2, dtype=tg.float16).uniform_(6e4, 7e4), "from, to and to - from <= 65504"),
        (lambda: tg.empty(2).exponential_(0.0), "lambda > 0.0"),
        (lambda: tg.empty(2).random_(3, 3), "less than 'to'"),
        (lambda: tg.empty(2, dtype=tg.uint8).random_(300), "out of bounds"),
    ],
)
def test_bad_distributions_are_refused(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RuntimeError, match=message):
        call()


@pytest.mark.parametrize("name", ["normal_", "uniform_", "exponential_", "cauchy_", "log_normal_", "geometric_"])
def test_parameters_are_numbers_and_no_tracked_tensors(name: str) -> None:
    t = tg.empty(3)
    assert getattr(t, name)(tg.tensor(0.5)) is t
    with pytest.raises(TypeError, match="must be a number, not Tensor"):
        getattr(t, name)(tg.tensor(0.5, requires_grad=True))
