"""What drivers take and give: structures, constants, messages, and where a derivative would be lost."""

import dataclasses
import functools
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

Pair = namedtuple("Pair", ["left", "right"])


@dataclasses.dataclass(frozen=True)
class Model:
    weight: Any
    bias: Any


def total(x: Any) -> Any:
    return (x * x).sum()


@dataclasses.dataclass
class Rates:
    up: Any
    down: Any

    @functools.cached_property
    def ratio(self) -> Any:
        return self.up / self.down


class Inverse:
    """What a dataclass's ``__post_init__`` computes once."""

    def __post_init__(self) -> None:
        self.inverse = 1.0 / self.value  # type: ignore[attr-defined]


@dataclasses.dataclass
class WithInverse(Inverse):
    value: Any


# Values and gradients are plain.


def test_gradient_by_an_array_is_a_fresh_array() -> None:
    x = np.array([1.0, 2.0])
    value, gradient = tg.value_and_grad(total)(x)
    assert type(value) is float
    assert type(gradient) is np.ndarray
    assert gradient.tolist() == [2.0, 4.0]
    assert x.tolist() == [1.0, 2.0]


def test_gradient_by_a_float_is_a_float() -> None:
    value, gradient = tg.value_and_grad(lambda x: x**3)(2.0)
    assert (type(value), type(gradient)) == (float, float)
    assert (value, gradient) == (8.0, 12.0)


@pytest.mark.parametrize("point", [np.float64(2.0), np.float32(2.0), np.array(2.0), np.array(2.0, np.float32)])
def test_gradient_by_other_scalars(point: Any) -> None:
    gradient = tg.grad(lambda x: x**3)(point)
    assert gradient == 12.0
    assert np.shape(gradient) == ()


def test_gradient_has_the_dtype_of_the_input() -> None:
    assert tg.grad(total)(np.ones(3, np.float32)).dtype == np.float32


def test_gradient_of_the_identity_does_not_share_memory() -> None:
    x = np.array([1.0, 2.0])
    value, _ = tg.value_and_jacobian(lambda x: x)(x)
    assert not np.shares_memory(value, x)


@pytest.mark.parametrize("order", ["C", "F"])
def test_any_layout(order: Any) -> None:
    x = np.asarray(np.arange(6.0).reshape(2, 3), order=order)
    np.testing.assert_array_equal(tg.grad(total)(x), 2.0 * x)
    np.testing.assert_array_equal(tg.grad(total)(x[:, ::-1]), 2.0 * x[:, ::-1])


def test_numpy_functions_record() -> None:
    np.testing.assert_allclose(tg.grad(lambda x: np.sum(np.sin(x) * x))(np.array([0.5])), np.cos(0.5) * 0.5 + np.sin(0.5))


def test_recording_is_switched_on() -> None:
    with tg.no_grad():
        assert tg.grad(lambda x: x * x)(3.0) == 6.0
        assert not tg.is_grad_enabled()
    with tg.inference_mode():
        assert tg.grad(lambda x: x * x)(3.0) == 6.0


# Elements of arrays are numbers of their own.


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[0] * x[1] ** 2 * x[-1],
        lambda x: np.prod(np.stack([x[0], x[1], x[1], x[2]])),
        lambda x: (lambda a, b, c: a * b * b * c)(*x),
        lambda x: next(iter(x)) * x[1:2].sum() ** 2 * x[2],
        lambda x: x[np.int64(0)] * x[1] ** 2 * x[2],
    ],
    ids=["index", "stack", "unpack", "iterate", "numpy index"],
)
def test_elements(f: Any) -> None:
    np.testing.assert_allclose(tg.grad(f)(np.array([2.0, 3.0, 5.0])), [45.0, 60.0, 18.0], rtol=1e-14)
    np.testing.assert_allclose(
        tg.hessian(f)(np.array([2.0, 3.0, 5.0])), [[0.0, 30.0, 9.0], [30.0, 20.0, 12.0], [9.0, 12.0, 0.0]], rtol=1e-13, atol=1e-13
    )


def test_elements_of_a_matrix() -> None:
    gradient = tg.grad(lambda x: x[0, 1] * x[1, -1] + x[0][0])(np.arange(4.0).reshape(2, 2))
    assert gradient.tolist() == [[1.0, 3.0], [0.0, 1.0]]


def test_an_element_can_be_changed_without_the_array() -> None:
    def f(x: Any) -> Any:
        a = x[0]
        a *= 3.0
        return a * x[0]

    assert tg.grad(f)(np.array([2.0])).tolist() == [12.0]


@pytest.mark.parametrize("key", [3, -4, (0, 0), 1.5, "x"])
def test_elements_that_are_not_there(key: Any) -> None:
    with pytest.raises((IndexError, TypeError)):
        tg.grad(lambda x: x[key])(np.ones(3))


def test_elements_without_recording() -> None:
    def f(x: Any) -> Any:
        with tg.no_grad():
            scale = x[0]
        return (x * scale).sum()

    assert tg.grad(f)(np.array([2.0, 1.0])).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("key", [0, -1, slice(0, 1), (0,), np.int64(0), [0], np.array([True, False])])
def test_the_argument_cannot_be_written(key: Any) -> None:
    def f(x: Any) -> Any:
        x[key] = 1.0
        return x.sum()

    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        tg.grad(f)(np.ones(2))


# Which arguments.


def product(x: Any, y: Any, scale: float = 1.0) -> Any:
    return scale * x * y


@pytest.mark.parametrize(
    ("argnums", "expected"), [(0, 3.0), (1, 2.0), (-1, 2.0), ((0, 1), (3.0, 2.0)), ([1], (2.0,)), ((1, 0), (2.0, 3.0))]
)
def test_argnums(argnums: Any, expected: Any) -> None:
    assert tg.grad(product, argnums)(2.0, 3.0) == expected


def test_keyword_arguments_are_constants() -> None:
    assert tg.grad(product)(2.0, 3.0, scale=10.0) == 30.0


def test_other_arguments_are_passed_as_they_are() -> None:
    seen = []
    tg.grad(lambda x, n: (seen.append(n), x * n)[1])(2.0, 3)
    assert seen == [3]
    assert type(seen[0]) is int


@pytest.mark.parametrize("argnums", [2, -3, (0, 5)])
def test_an_argument_that_was_not_given(argnums: Any) -> None:
    with pytest.raises(ValueError, match="was called with 2"):
        tg.grad(product, argnums)(2.0, 3.0)


def test_an_argument_named_twice() -> None:
    with pytest.raises(ValueError, match="twice"):
        tg.grad(product, (0, -2))(2.0, 3.0)


@pytest.mark.parametrize("argnums", [0.0, "x", (0, 1.0), True])
def test_argnums_that_are_no_integers(argnums: Any) -> None:
    with pytest.raises(TypeError, match="argnums"):
        tg.grad(product, argnums)(2.0, 3.0)


def test_aux() -> None:
    def f(x: Any) -> Any:
        return x * x, {"twice": 2.0 * x, "name": "f"}

    assert tg.value_and_grad(f, has_aux=True)(3.0) == ((9.0, {"twice": 6.0, "name": "f"}), 6.0)
    assert tg.grad(f, has_aux=True)(3.0) == (6.0, {"twice": 6.0, "name": "f"})
    assert tg.jacobian(f, has_aux=True)(3.0) == (6.0, {"twice": 6.0, "name": "f"})
    assert tg.hessian(f, has_aux=True)(3.0) == (2.0, {"twice": 6.0, "name": "f"})


def test_aux_needs_a_pair() -> None:
    with pytest.raises(TypeError, match=r"pair \(output, aux\)"):
        tg.grad(lambda x: x * x, has_aux=True)(3.0)


# Containers.

STRUCTURES = [
    {"a": 2.0, "b": np.array([1.0, 3.0])},
    [2.0, np.array([1.0, 3.0])],
    (2.0, np.array([1.0, 3.0])),
    Pair(2.0, np.array([1.0, 3.0])),
    Model(2.0, np.array([1.0, 3.0])),
    OrderedDict(a=2.0, b=np.array([1.0, 3.0])),
    {"deep": [(2.0,), Model(np.array([1.0, 3.0]), None)], "empty": ()},
]


def leaves_of(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in leaves_of(part)]
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves_of(part)]
    if isinstance(value, Model):
        return leaves_of([value.weight, value.bias])
    return [value]


def weighted(p: Any) -> Any:
    scalar, array = leaves_of(p)
    return scalar * scalar * (array * array).sum()


@pytest.mark.parametrize("point", STRUCTURES, ids=lambda p: type(p).__name__)
def test_gradients_have_the_structure_of_the_argument(point: Any) -> None:
    gradient = tg.grad(weighted)(point)
    assert type(gradient) is type(point)
    scalar, array = leaves_of(gradient)
    assert scalar == 40.0
    np.testing.assert_array_equal(array, [8.0, 24.0])


@pytest.mark.parametrize("point", STRUCTURES, ids=lambda p: type(p).__name__)
def test_products_take_and_give_the_structure_of_the_argument(point: Any) -> None:
    product_ = tg.hvp(weighted, point, point)  # the Hessian of a form of degree 4 times the point is 3 times the gradient
    assert type(product_) is type(point)
    scalar, array = leaves_of(product_)
    assert scalar == 120.0
    np.testing.assert_allclose(array, [24.0, 72.0], rtol=1e-14)


def test_cached_properties_are_computed_anew() -> None:
    rates = Rates(2.0, 4.0)
    assert rates.ratio == 0.5
    assert tg.grad(lambda r: r.ratio)(rates) == Rates(0.25, -0.125)
    assert tg.optimize.minimize(lambda r: (r.ratio - 1.0) ** 2, rates).x.ratio == pytest.approx(1.0)


@pytest.mark.parametrize("differentiate", [lambda f, p: tg.grad(f)(p), tg.optimize.minimize], ids=["grad", "minimize"])
def test_attributes_that_would_stay_as_they_are_are_refused(differentiate: Any) -> None:
    with pytest.raises(TypeError, match=r"WithInverse\.inverse is a number but no item or field"):
        differentiate(lambda p: p.inverse, WithInverse(2.0))


def test_jacobians_nest_the_structures() -> None:
    found = tg.jacobian(lambda p: {"s": p["x"] * p["y"], "v": p["y"] * p["y"]})({"x": 2.0, "y": np.array([1.0, 3.0])})
    np.testing.assert_array_equal(found["s"]["x"], [1.0, 3.0])
    np.testing.assert_array_equal(found["s"]["y"], 2.0 * np.eye(2))
    np.testing.assert_array_equal(found["v"]["x"], [0.0, 0.0])
    np.testing.assert_array_equal(found["v"]["y"], np.diag([2.0, 6.0]))


def test_hessians_nest_the_structure() -> None:
    found = tg.hessian(lambda p: p["x"] * (p["y"] * p["y"]).sum())({"x": 2.0, "y": np.array([1.0, 3.0])})
    assert found["x"]["x"] == 0.0
    np.testing.assert_array_equal(found["x"]["y"], [2.0, 6.0])
    np.testing.assert_array_equal(found["y"]["x"], [2.0, 6.0])
    np.testing.assert_array_equal(found["y"]["y"], 4.0 * np.eye(2))


def test_another_structure_is_refused() -> None:
    with pytest.raises(TypeError, match="structure"):
        tg.hvp(weighted, {"a": 2.0, "b": np.ones(2)}, {"a": 2.0, "c": np.ones(2)})


def test_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"got \(3,\), but expected \(2,\)"):
        tg.jvp(total, (np.ones(2),), (np.ones(3),))


# What cannot be differentiated.


@pytest.mark.parametrize("value", [2, True, np.int64(2), np.array([1, 2]), np.array([True])])
def test_integers_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"real-valued inputs.*Pass floats"):
        tg.grad(lambda x: 2.0 * x)(value)


@pytest.mark.parametrize("value", [1j, np.array([1j])])
def test_complex_inputs_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="real-valued inputs"):
        tg.grad(lambda x: 2.0 * x)(value)


def test_an_input_of_another_kind_is_named() -> None:
    with pytest.raises(TypeError, match=r"argument 0\['name'\] must be an array"):
        tg.grad(lambda p: p["x"])({"x": 1.0, "name": "model"})


def test_an_output_that_is_no_scalar() -> None:
    with pytest.raises(TypeError, match=r"scalar-output functions. Output had shape: \(2,\)"):
        tg.grad(lambda x: 2.0 * x)(np.ones(2))


@pytest.mark.parametrize("output", [None, "text", (1.0, 2.0), {}])
def test_an_output_that_is_no_number(output: Any) -> None:
    with pytest.raises(TypeError, match="scalar-output functions"):
        tg.grad(lambda x: output)(1.0)


@pytest.mark.parametrize("output", [3, True, 1j])
def test_an_output_that_is_no_float(output: Any) -> None:
    with pytest.raises(TypeError, match="real-valued outputs"):
        tg.grad(lambda x: output)(1.0)


def test_a_constant_has_zero_derivatives() -> None:
    x = np.ones(2)
    assert tg.value_and_grad(lambda x: 3.0)(1.0) == (3.0, 0.0)
    assert tg.grad(lambda x: 3.0)(x).tolist() == [0.0, 0.0]
    assert tg.jacobian(lambda x: np.ones(3))(x).tolist() == [[0.0, 0.0]] * 3
    assert tg.hessian(lambda x: 3.0)(x).tolist() == [[0.0, 0.0]] * 2
    assert tg.hvp(lambda x: 3.0, x, x).tolist() == [0.0, 0.0]
    assert tg.jvp(lambda x: 3.0, (x,), (x,)) == (3.0, 0.0)


def test_an_argument_that_is_not_used_has_a_zero_gradient() -> None:
    gradient = tg.grad(lambda p: p["x"] * 2.0)({"x": 1.0, "y": np.ones(2)})
    assert gradient["x"] == 2.0
    assert gradient["y"].tolist() == [0.0, 0.0]


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
@pytest.mark.parametrize(
    "cut", [lambda x: x.item() ** 2, lambda x: (x * x).item(), lambda x: sum([x.tolist()]), lambda x: tg.tensor([x * x]).sum()]
)
def test_a_number_taken_out_of_what_is_differentiated_is_refused(cut: Any) -> None:
    with pytest.raises(TypeError, match="would have no derivative|left the graph"):
        tg.grad(cut)(2.0)


def test_a_part_of_a_result_that_left_the_graph_is_refused() -> None:
    with pytest.raises(TypeError, match="would have no derivative"):
        tg.jacobian(lambda x: {"kept": x * 2.0, "lost": x[0].item() ** 2})(np.ones(2))


def written(x: Any) -> Any:
    r = np.zeros(2)
    r[0] = x[0] * x[0]
    return (r * x).sum()


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
@pytest.mark.parametrize("driver", [tg.grad, tg.hessian, tg.jacobian], ids=["grad", "hessian", "jacobian"])
def test_tracked_values_written_into_an_array_of_numpys_are_refused(driver: Any) -> None:
    with pytest.raises(TypeError, match="written into an array of NumPy's at .*test_drivers_calling.py, line"):
        driver(written)(np.array([2.0, 3.0]))


def test_constants_may_be_written_into_an_array_of_numpys() -> None:
    def f(x: Any) -> Any:
        r = np.zeros(2)
        r[0], r[1] = tg.stop_gradient(x[0]), tg.stop_gradient(x[1]).item()
        return (r * x).sum()

    assert tg.grad(f)(np.array([2.0, 3.0])).tolist() == [2.0, 3.0]


def test_tracked_values_may_be_written_into_an_array_like_a_tracked_one() -> None:
    def f(x: Any) -> Any:
        r = np.zeros_like(x)
        r[0] = x[0] * x[0]
        return (r * x).sum()

    assert tg.grad(f)(np.array([2.0, 3.0])).tolist() == [12.0, 0.0]


def test_writing_into_the_argument_is_refused_with_what_to_do_instead() -> None:
    def f(x: Any) -> Any:
        x[0] = 1.0
        return x.sum()

    with pytest.raises(RuntimeError, match=r"write into a copy of it, x.clone\(\) or np.copy\(x\)"):
        tg.grad(f)(np.ones(3))


def test_numbers_may_be_looked_at() -> None:
    assert tg.grad(lambda x: x * x if x > 0 else -x)(2.0) == 4.0
    assert tg.grad(lambda x: x * x if tg.stop_gradient(x).item() > 0 else -x)(2.0) == 4.0


def test_functions_of_the_math_module_are_refused() -> None:
    with pytest.raises(TypeError, match=r"np.exp\(x\[0\]\) for math.exp"):
        tg.grad(lambda x: __import__("math").sin(x))(2.0)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises((TypeError, AttributeError)):
        tg.grad(3.0)(1.0)


def test_an_exception_in_the_function_leaves_drivers_usable() -> None:
    with pytest.raises(ZeroDivisionError):
        tg.grad(lambda x: x * (1 // 0))(1.0)
    gradient = tg.grad(lambda x: x * x)(3.0)
    assert type(gradient) is float
    assert gradient == 6.0


def test_nothing_to_differentiate_by() -> None:
    assert tg.grad(lambda p: 1.0)([]) == []
    assert tg.jacobian(lambda p: np.ones(2))({}) == {}
    assert tg.hessian(lambda p: 1.0)({"a": None}) == {"a": None}
    assert tg.jvp(lambda p: np.ones(2), ([],), ([],))[1].tolist() == [0.0, 0.0]
    assert tg.hvp(lambda p: 1.0, {}, {}) == {}


def test_no_output_at_all() -> None:
    assert tg.jacobian(lambda x: ())(1.0) == ()
    assert tg.vjp(lambda x: (), np.ones(2))[1](())[0].tolist() == [0.0, 0.0]
    assert tg.jvp(lambda x: {}, (1.0,), (1.0,)) == ({}, {})


# Tensors of the surroundings.


def test_other_leaves_are_constants_and_keep_their_gradients() -> None:
    w = tg.tensor([1.0, 2.0], requires_grad=True)
    for driver in (tg.grad, tg.jacobian):
        np.testing.assert_array_equal(driver(lambda x: (x * w).sum())(np.ones(2)), [1.0, 2.0])
    assert w.grad is None


def test_a_graph_of_the_surroundings_can_still_be_walked() -> None:
    w = tg.tensor(2.0, requires_grad=True)
    u = w * w
    assert tg.grad(lambda x: x * u)(3.0) == 4.0
    u.backward()
    assert w.grad.item() == 4.0


def test_hooks_of_the_function_are_called() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        y.register_hook(lambda g: 10.0 * g)
        return y * y

    assert tg.grad(f)(1.0) == 80.0
    assert tg.jacobian(f)(1.0) == 80.0


def test_an_argument_whose_flag_was_set_anew() -> None:
    def f(x: Any) -> Any:
        y = x * x
        x.requires_grad_(False)
        x.requires_grad_(True)
        return y * x

    assert tg.grad(f)(2.0) == 12.0
    assert tg.jacobian(f)(2.0) == 12.0
    assert tg.jvp(f, (2.0,), (1.0,)) == (8.0, 12.0)
    assert tg.hessian(f)(2.0) == 12.0


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled", "ignore:Error detected in")
def test_anomalies_are_found() -> None:
    for driver in (tg.grad, tg.jacobian, tg.hessian):
        with tg.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="returned nan values"):
            driver(lambda x: np.sqrt(x) * 2.0)(-1.0)


@pytest.mark.parametrize("driver", [tg.grad, tg.jacobian, tg.hessian], ids=["grad", "jacobian", "hessian"])
def test_writes_to_the_array_of_an_argument_are_not_seen(driver: Any) -> None:
    x = np.array([1.0, 2.0])

    def f(t: Any) -> Any:
        y = (t**3).sum()
        x[:] = 100.0
        return y

    expected = driver(lambda t: (t**3).sum())(x)
    np.testing.assert_array_equal(driver(f)(x), expected)


def test_writes_to_the_argument_leave_the_caller_alone() -> None:
    def f(t: Any) -> Any:
        with tg.no_grad():
            t[0] = 5.0
        return (t * t).sum()

    x = np.array([1.0, 2.0])
    assert tg.grad(f)(x).tolist() == [10.0, 4.0]
    assert x.tolist() == [1.0, 2.0]


def test_variable_that_the_function_kept_has_no_gradient_afterwards() -> None:
    kept = []
    tg.grad(lambda x: kept.append(x) or (x * x).sum())(np.arange(3.0))
    assert kept[0].grad is None


def test_gradient_is_the_callers_own() -> None:
    gradient = tg.grad(lambda x: x.sum())
    first = gradient(np.zeros(3))
    first += 7.0
    assert gradient(np.zeros(3)).tolist() == [1.0, 1.0, 1.0]
