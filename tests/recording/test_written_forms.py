"""In-place forms of operations that are no rules."""

import operator

import numpy as np
import pytest
from engine_fixtures import leaf, node_name, numbers

import tapegrad as tg

UNIT = np.array([[0.2, 0.55, 0.9], [0.35, 0.62, 0.15]])
OTHER = np.array([0.45, 1.7, 0.3])

# The name, what follows the tensor, keywords.
FORMS = {
    "addcmul": ((OTHER, OTHER), {"value": 2.0}),
    "addcdiv": ((OTHER, OTHER + 1.0), {"value": 2.0}),
    "float_power": ((2.5,), {}),
    "logit": ((0.3,), {}),
    "nan_to_num": ((), {}),
    "cumsum": ((1,), {}),
    "cumprod": ((0,), {}),
    "div": ((OTHER,), {"rounding_mode": "floor"}),
    "round": ((), {"decimals": 1}),
    "erfinv": ((), {}),
    "sinc": ((), {}),
    "copysign": ((-OTHER,), {}),
    "clamp_min": ((0.4,), {}),
    "clamp_max": ((OTHER,), {}),
    "arcsin": ((), {}),
}
forms = pytest.mark.parametrize("name", FORMS)


def arguments(name: str) -> tuple[tuple, dict]:
    others, options = FORMS[name]
    return tuple(leaf(other) if isinstance(other, np.ndarray) else other for other in others), options


def derivatives(y: tg.Tensor, leaves: list[tg.Tensor]) -> list[np.ndarray]:
    seed = tg.tensor(np.linspace(0.5, 1.5, 6).reshape(2, 3))
    return [numbers(g) for g in tg.autograd.grad((y * seed).sum(), leaves, materialize_grads=True)]


@forms
def test_writes_the_value_with_its_derivatives_into_the_tensor(name: str) -> None:
    others, options = arguments(name)
    leaves = [leaf(UNIT), *(other for other in others if isinstance(other, tg.Tensor))]
    inner = leaves[0] * 1.0
    version = inner._version
    assert getattr(inner, f"{name}_")(*others, **options) is inner
    assert inner._version > version
    expected = getattr(tg, name)(leaves[0] * 1.0, *others, **options)
    np.testing.assert_allclose(numbers(inner), numbers(expected), rtol=1e-14)
    for one, other in zip(derivatives(inner, leaves), derivatives(expected, leaves), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


@forms
def test_writes_through_a_view(name: str) -> None:
    others, options = FORMS[name]
    others = tuple(tg.tensor(other) if isinstance(other, np.ndarray) else other for other in others)
    x = leaf(np.concatenate([UNIT, UNIT]))
    inner = x * 1.0
    getattr(inner[2:], f"{name}_")(*others, **options)
    y = leaf(UNIT)
    (expected,) = derivatives(getattr(tg, name)(y, *others, **options), [y])
    (got,) = derivatives(inner[2:], [x])
    np.testing.assert_allclose(got[2:], expected, rtol=1e-13)
    assert not got[:2].any()


@forms
def test_leaf_is_refused_and_stays(name: str) -> None:
    others, options = arguments(name)
    x = leaf(UNIT)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        getattr(x, f"{name}_")(*others, **options)
    np.testing.assert_array_equal(numbers(x), UNIT)


@forms
def test_without_recording_only_the_value_changes(name: str) -> None:
    others, options = arguments(name)
    x = leaf(UNIT)
    expected = getattr(tg, name)(tg.tensor(UNIT), *others, **options)
    with tg.no_grad():
        getattr(x, f"{name}_")(*others, **options)
    assert x.is_leaf and x.requires_grad
    np.testing.assert_allclose(numbers(x), numbers(expected), rtol=1e-14)


def test_comparison_cuts_the_gradient_of_what_it_overwrites() -> None:
    x = leaf([1.0, 2.0])
    inner = x * 1.0
    inner.gt_(1.5)
    assert inner.tolist() == [0.0, 1.0] and node_name(inner).endswith("CopyBackwards")
    (inner + x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_an_operation_of_a_tensor_on_itself_reads_the_old_value() -> None:
    x = leaf([2.0, 3.0])
    inner = x * 1.0
    inner.addcmul_(inner, inner)
    inner.sum().backward()
    assert inner.tolist() == [6.0, 12.0] and x.grad.tolist() == [5.0, 7.0]


def test_result_of_a_wider_dtype_is_cast() -> None:
    x = leaf([2.0, 3.0], tg.float32)
    inner = x * 1.0
    inner.float_power_(2.0)
    inner.sum().backward()
    assert inner.dtype == x.grad.dtype == tg.float32 and x.grad.tolist() == [4.0, 6.0]


def test_integers_take_no_fractions() -> None:
    with pytest.raises(RuntimeError, match="result type Double can't be cast to the desired output type Long"):
        tg.tensor([1, 2]).float_power_(0.5)


OPERATORS = {
    "%=": (operator.imod, 3, [2, 0, 1]),
    "//=": (operator.ifloordiv, 2, [2, 1, 3]),
    "&=": (operator.iand, 6, [4, 2, 6]),
    "|=": (operator.ior, 8, [13, 11, 15]),
    "^=": (operator.ixor, 1, [4, 2, 6]),
    "<<=": (operator.ilshift, 2, [20, 12, 28]),
    ">>=": (operator.irshift, 1, [2, 1, 3]),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_augmented_operator_writes_into_the_tensor(name: str) -> None:
    write, other, expected = OPERATORS[name]
    x = tg.tensor([5, 3, 7])
    view = x[:]
    assert write(x, other) is x
    assert view.tolist() == expected


def test_augmented_remainder_has_the_derivative_of_the_remainder() -> None:
    x = leaf([5.0, -7.5])
    inner = x * 2.0
    inner %= 3.0
    inner.sum().backward()
    assert inner.tolist() == [1.0, 0.0] and x.grad.tolist() == [2.0, 2.0]


def test_bitwise_operators_take_a_number_on_the_left() -> None:
    x = tg.tensor([1, 2])
    assert [(3 & x).tolist(), (4 | x).tolist(), (3 ^ x).tolist(), (1 << x).tolist(), (8 >> x).tolist()] == [
        [1, 2], [5, 6], [2, 1], [2, 4], [4, 2],
    ]  # fmt: skip
