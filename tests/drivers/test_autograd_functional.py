"""Jacobians, Hessians and their products: shapes, nesting, values, strict mode, messages."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import leaf
from hypothesis import given, settings
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad.autograd import functional as F  # noqa: N812 - as it is called

over = pytest.mark.parametrize
PRODUCTS = [F.vjp, F.jvp, F.vhp, F.hvp]


def x3() -> tg.Tensor:
    return tg.tensor([1.0, 2.0, 3.0])


def y2() -> tg.Tensor:
    return tg.tensor([2.0, 1.0])


def cube(x: tg.Tensor) -> tg.Tensor:
    return (x**3).sum()


def shapes(result: Any) -> Any:
    """Shapes in the nesting of the result."""
    return tuple(map(shapes, result)) if type(result) is tuple else list(result.shape)


# Jacobians


@pytest.mark.point(91)
def test_jacobian_has_the_output_s_shape_and_then_the_input_s() -> None:
    assert shapes(F.jacobian(lambda x: x.reshape(2, 2).exp(), tg.ones(4))) == [2, 2, 4]


@pytest.mark.point(91)
def test_jacobian_of_tensor_by_tuple_is_a_tuple() -> None:
    assert shapes(F.jacobian(lambda x, y: x.sum() * y, (x3(), y2()))) == ([2, 3], [2, 2])


@pytest.mark.point(91)
def test_jacobian_of_tuple_by_tensor_is_a_tuple() -> None:
    assert shapes(F.jacobian(lambda x: (x.sum(), x * 2), x3())) == ([3], [3, 3])


@pytest.mark.point(91)
def test_jacobian_of_tuple_by_tuple_is_nested_by_output_and_then_input() -> None:
    assert shapes(F.jacobian(lambda x, y: (x.sum() * y, x), (x3(), y2()))) == (([2, 3], [2, 2]), ([3, 3], [3, 2]))


def test_tuples_of_one_stay_tuples() -> None:
    assert shapes(F.jacobian(lambda x: (x * 2,), (x3(),))) == (([3, 3],),)


def test_jacobian_values() -> None:
    jacobian = F.jacobian(lambda x: x.exp() * x[0], tg.tensor([1.0, 0.5]))
    e, root = np.exp(1.0), np.exp(0.5)
    np.testing.assert_allclose(jacobian.numpy(), [[2 * e, 0.0], [root, root]], rtol=1e-14)


def test_jacobian_of_a_scalar_by_a_scalar_is_a_scalar() -> None:
    assert F.jacobian(lambda x: x * x, tg.tensor(2.0)).item() == 4.0


def test_jacobian_of_nothing_is_empty() -> None:
    assert shapes(F.jacobian(lambda x: x[:0], x3())) == [0, 3]


@pytest.mark.point(91)
def test_independence_gives_zeros() -> None:
    _, by_y = F.jacobian(lambda x, y: x * 2, (x3(), y2()))
    np.testing.assert_array_equal(by_y.numpy(), np.zeros((3, 2)))


def test_untracked_output_gives_zeros() -> None:
    np.testing.assert_array_equal(F.jacobian(lambda x: tg.ones(2), x3()).numpy(), np.zeros((2, 3)))


def test_jacobian_has_the_dtype_of_the_input() -> None:
    assert F.jacobian(lambda x: x.double() * 2, x3().float()).dtype == tg.float32


def test_vectorize_changes_nothing() -> None:
    assert F.jacobian(tg.exp, x3(), vectorize=True).tolist() == F.jacobian(tg.exp, x3()).tolist()


@pytest.mark.point(91)
@over("function", [lambda x: x[:2].exp() * x[2], lambda x: tg.stack([x.sum(), x.prod()]), lambda x: x @ x.exp()])
def test_jacobian_in_forward_mode_is_the_same(function: Any) -> None:
    forward = F.jacobian(function, x3(), vectorize=True, strategy="forward-mode")
    np.testing.assert_allclose(forward.numpy(), F.jacobian(function, x3()).numpy(), rtol=1e-14)


def test_jacobian_of_many_outputs_keeps_no_matrix_of_unit_vectors() -> None:
    class Twice(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: tg.Tensor) -> tg.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: tg.Tensor) -> tg.Tensor:
            return g * 2

    tracemalloc.start()
    try:
        jacobian = F.jacobian(lambda x: Twice.apply(x).expand(3000), tg.ones(1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert jacobian.tolist() == [[2.0]] * 3000 and peak < 40e6


@over("function", [F.jacobian, F.hessian])
def test_hooks_take_part(function: Any) -> None:
    def hooked(x: tg.Tensor) -> tg.Tensor:
        y = x * x
        y.register_hook(lambda g: 10.0 * g)
        return y.sum()

    assert function(hooked, tg.tensor([3.0])).reshape(()).item() == (60.0 if function is F.jacobian else 20.0)


# Hessians


def test_hessian_has_the_input_s_shape_twice() -> None:
    assert shapes(F.hessian(cube, tg.ones(2, 3))) == [2, 3, 2, 3]


def test_hessian_blocks() -> None:
    blocks = F.hessian(lambda x, y: (x**2).sum() * y.sum(), (x3(), y2()))
    assert shapes(blocks) == (([3, 3], [3, 2]), ([2, 3], [2, 2]))
    np.testing.assert_allclose(blocks[0][0].numpy(), 6.0 * np.eye(3))
    np.testing.assert_allclose(blocks[0][1].numpy(), [[2.0, 2.0], [4.0, 4.0], [6.0, 6.0]])
    np.testing.assert_allclose(blocks[1][0].numpy(), blocks[0][1].numpy().T)
    np.testing.assert_array_equal(blocks[1][1].numpy(), np.zeros((2, 2)))


@pytest.mark.point(92)
@over("shape", [(), (1,), (1, 1)])
def test_hessian_takes_one_element_of_any_rank(shape: tuple[int, ...]) -> None:
    hessian = F.hessian(lambda x: cube(x).reshape(shape), x3())
    np.testing.assert_allclose(hessian.numpy(), np.diag([6.0, 12.0, 18.0]))


def test_hessian_of_a_linear_function_is_zero() -> None:
    np.testing.assert_array_equal(F.hessian(tg.sum, x3()).numpy(), np.zeros((3, 3)))


@pytest.mark.point(92)
def test_hessian_in_forward_mode_is_the_same() -> None:
    forward = F.hessian(cube, x3(), vectorize=True, outer_jacobian_strategy="forward-mode")
    assert forward.tolist() == np.diag([6.0, 12.0, 18.0]).tolist()


MATRIX = tg.tensor([[1.0, 2.0, -1.0], [0.5, -1.0, 3.0]])


@over("strict", [False, True])
def test_hessian_through_a_product_of_matrices(strict: bool) -> None:
    x = x3()
    hessian = F.hessian(lambda x: (MATRIX @ x).pow(3).sum(), x, strict=strict)
    weights = np.diag(6.0 * (MATRIX @ x).numpy())
    np.testing.assert_allclose(hessian.numpy(), MATRIX.numpy().T @ weights @ MATRIX.numpy(), rtol=1e-13)


# Products


@pytest.mark.point(92)
def test_vjp_gives_value_and_product() -> None:
    value, product = F.vjp(lambda x: x * x, x3(), tg.tensor([1.0, 0.0, 2.0]))
    assert value.tolist() == [1.0, 4.0, 9.0] and product.tolist() == [2.0, 0.0, 12.0]


@pytest.mark.point(92)
def test_jvp_gives_value_and_product() -> None:
    value, product = F.jvp(lambda x: x[0] * x, x3(), tg.tensor([1.0, 0.0, 2.0]))
    assert value.tolist() == [1.0, 2.0, 3.0] and product.tolist() == [2.0, 2.0, 5.0]


@pytest.mark.point(92)
@over("function", [F.vhp, F.hvp])
def test_hessian_products_by_several_inputs(function: Any) -> None:
    vector = (tg.tensor([1.0, 0.0, 0.0]), tg.tensor([0.0, 1.0]))
    value, (by_x, by_y) = function(lambda x, y: (x**2).sum() * y.sum(), (x3(), y2()), vector)
    assert value.item() == 42.0 and by_x.tolist() == [8.0, 4.0, 6.0] and by_y.tolist() == [2.0, 2.0]


@over("function", [F.vjp, F.jvp])
def test_products_are_nested_as_what_they_belong_to(function: Any) -> None:
    vector = (y2(), x3()) if function is F.vjp else (x3(), y2())
    value, product = function(lambda x, y: (x.sum() * y, x), (x3(), y2()), vector)
    assert shapes(value) == ([2], [3])
    assert shapes(product) == (([3], [2]) if function is F.vjp else ([2], [3]))


@pytest.mark.point(92)
@over("function", PRODUCTS)
def test_vector_may_be_left_out_for_one_element(function: Any) -> None:
    value, product = function(lambda x: x.sum() ** 3, tg.tensor([2.0]))
    assert value.item() == 8.0 and product.item() == 12.0


@over("function", [F.jvp, F.hvp, F.vhp])
def test_product_of_an_independent_function_is_zero(function: Any) -> None:
    assert function(lambda x: tg.tensor(4.0), x3(), x3())[1].numpy().any() == np.False_


def composed(x: tg.Tensor, y: tg.Tensor) -> tuple[tg.Tensor, tg.Tensor]:
    """Many kinds of operations: products, gathers, reductions, a softmax, an extreme, a mask."""
    inner = tg.tanh(x @ y).cumsum(0)[tg.tensor([1, 0, 1])]
    return inner.softmax(0) * y[0].max(), tg.where(x > 0.0, tg.log(x.abs() + 1.0), x**3).sum(1) / y.norm()


@settings(max_examples=15)
@given(st.integers(0, 1000))
def test_products_agree_with_the_jacobian(seed: int) -> None:
    rng = np.random.default_rng(seed)
    point = tg.tensor(rng.normal(size=(2, 3))), tg.tensor(rng.normal(size=(3, 2)))
    values = composed(*point)
    v = tuple(tg.tensor(rng.normal(size=x.shape)) for x in point)
    w = tuple(tg.tensor(rng.normal(size=tuple(y.shape))) for y in values)
    jacobian = F.jacobian(composed, point)
    _, forwards = F.jvp(composed, point, v)
    _, backwards = F.vjp(composed, point, w)
    for k, product in enumerate(forwards):
        expected = sum(np.tensordot(jacobian[k][i].numpy(), v[i].numpy(), v[i].ndim) for i in range(2))
        np.testing.assert_allclose(product.numpy(), expected, rtol=1e-10, atol=1e-12)
    for i, product in enumerate(backwards):
        expected = sum(np.tensordot(w[k].numpy(), jacobian[k][i].numpy(), w[k].ndim) for k in range(2))
        np.testing.assert_allclose(product.numpy(), expected, rtol=1e-10, atol=1e-12)


@settings(max_examples=15)
@given(st.integers(0, 1000))
def test_hessian_products_agree_with_the_hessian(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, v = tg.tensor(rng.normal(size=5)), tg.tensor(rng.normal(size=5))

    def function(x: tg.Tensor) -> tg.Tensor:
        return (x.sin() * x.prod()).sum() + x.logsumexp(0) ** 2

    expected = F.hessian(function, x).numpy() @ v.numpy()
    for product in (F.hvp, F.vhp):
        np.testing.assert_allclose(product(function, x, v)[1].numpy(), expected, rtol=1e-9, atol=1e-12)


def test_jvp_at_a_masked_singularity_is_finite() -> None:
    _, product = F.jvp(lambda x: tg.where(x > 0.0, x.log(), 0.0 * x), tg.tensor([0.0, 2.0]), tg.ones(2))
    assert product.tolist() == [0.0, 0.5]


# Tracking


RESULTS: dict[str, Callable[..., Any]] = {
    "jacobian": lambda x, **options: F.jacobian(tg.exp, x, **options),
    "hessian": lambda x, **options: F.hessian(cube, x, **options),
    "vjp": lambda x, **options: F.vjp(tg.exp, x, x3(), **options)[1],
    "jvp": lambda x, **options: F.jvp(tg.exp, x, x3(), **options)[1],
    "vhp": lambda x, **options: F.vhp(cube, x, x3(), **options)[1],
    "hvp": lambda x, **options: F.hvp(cube, x, x3(), **options)[1],
}


@pytest.mark.point(91)
@over("name", RESULTS)
def test_results_are_untracked(name: str) -> None:
    assert not RESULTS[name](leaf([1.0, 2.0, 3.0])).requires_grad


@pytest.mark.point(91)
@over("name", RESULTS)
def test_results_can_be_differentiated_with_create_graph(name: str) -> None:
    x = leaf([1.0, 2.0, 3.0])
    RESULTS[name](x, create_graph=True).sum().backward()
    e = np.exp([1.0, 2.0, 3.0])
    ones = {"jacobian": e, "hessian": np.full(3, 6.0), "vjp": e * [1, 2, 3], "jvp": e * [1, 2, 3]}
    np.testing.assert_allclose(x.grad.numpy(), ones.get(name, 6.0 * np.array([1.0, 2.0, 3.0])))


@over("name", RESULTS)
def test_inputs_and_their_gradients_are_left_alone(name: str) -> None:
    x = leaf([1.0, 2.0, 3.0])
    x.grad = kept = tg.ones(3)
    RESULTS[name](x)
    assert x.requires_grad and x.is_leaf and x.grad is kept and kept.tolist() == [1.0] * 3 and x._version == 0


def test_works_under_no_grad() -> None:
    with tg.no_grad():
        assert F.jacobian(lambda x: x * x, tg.tensor(3.0)).item() == 6.0


# Strict mode


@pytest.mark.point(91)
def test_strict_jacobian_names_the_independent_input() -> None:
    with pytest.raises(RuntimeError, match="(?i)Output 0 of the user-provided function is independent of input 1"):
        F.jacobian(lambda x, y: x * 2, (x3(), y2()), strict=True)


@over("function", [F.jacobian, F.vjp, F.jvp, F.vhp, F.hvp])
def test_strict_names_the_untracked_output(function: Any) -> None:
    with pytest.raises(RuntimeError, match="(?i)Output 0 of the user-provided function does not require gradients"):
        function(lambda x: tg.tensor([1.0]), tg.tensor([2.0]), strict=True)


@over("function", PRODUCTS)
def test_strict_products_name_the_independent_input(function: Any) -> None:
    v = tg.tensor(1.0) if function is F.vjp else (x3(), y2())
    with pytest.raises(RuntimeError, match="(?i)The output of the user-provided function is independent of input 1"):
        function(lambda x, y: cube(x), (x3(), y2()), v, strict=True)


@over("function", [F.hessian, F.vhp, F.hvp])
def test_strict_second_order_forbids_linear_functions(function: Any) -> None:
    with pytest.raises(RuntimeError, match="(?i)jacobian of the user-provided function with respect to input 0 is independent"):
        function(lambda x: x.sum(), tg.tensor([1.0]), strict=True)


@over("function", [F.jacobian, F.vjp, F.jvp])
def test_strict_create_graph_forbids_constant_derivatives(function: Any) -> None:
    with pytest.raises(RuntimeError, match="(?i)independent of input 0. This is not allowed in strict mode when create_graph=True"):
        function(lambda x: x * 2, leaf([1.0]), strict=True, create_graph=True)


@pytest.mark.point(91)
@over("function", [F.jacobian, F.hessian])
def test_strict_and_vectorize_exclude_each_other(function: Any) -> None:
    with pytest.raises(RuntimeError, match="(?i)are not supported together"):
        function(cube, x3(), strict=True, vectorize=True)


# Messages


FORWARD = over(("function", "option"), [(F.jacobian, "strategy"), (F.hessian, "outer_jacobian_strategy")])


@FORWARD
def test_forward_mode_needs_vectorize(function: Any, option: str) -> None:
    with pytest.raises(NotImplementedError, match="only implemented for `vectorize=True`"):
        function(cube, x3(), **{option: "forward-mode"})


@FORWARD
@over(("other", "error"), [("strict", RuntimeError), ("create_graph", NotImplementedError)])
def test_forward_mode_gives_numbers_only(function: Any, option: str, other: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="are not supported together"):
        function(cube, x3(), vectorize=True, **{option: "forward-mode", other: True})


@FORWARD
def test_other_strategies_are_refused(function: Any, option: str) -> None:
    with pytest.raises(AssertionError, match='Expected strategy to be either "forward-mode" or "reverse-mode"'):
        function(cube, x3(), **{option: "sideways"})


EVERY: list[Any] = [F.jacobian, F.hessian, *PRODUCTS]


@pytest.mark.point(92)
@over("function", EVERY)
def test_inputs_that_are_no_tensors_are_named(function: Any) -> None:
    name = function.__name__
    with pytest.raises(TypeError, match=f"The inputs given to {name} must be .* the given inputs has type <class 'list'>"):
        function(cube, [x3()])
    with pytest.raises(TypeError, match=f"The inputs given to {name} must be .* the value at index 1 has type <class 'int'>"):
        function(cube, (x3(), 3))


@pytest.mark.point(92)
@over("function", EVERY)
def test_outputs_that_are_no_tensors_are_named(function: Any) -> None:
    with pytest.raises(TypeError, match=f"(?i)outputs of the user-provided function given to {function.__name__} must be"):
        function(lambda x: 3.0, tg.tensor([1.0]))


@pytest.mark.point(92)
@over("function", PRODUCTS)
def test_vectors_that_are_no_tensors_are_named(function: Any) -> None:
    with pytest.raises(TypeError, match=f"The v given to {function.__name__} must be .* index 0 has type <class 'int'>"):
        function(cube, x3(), (3,))


@pytest.mark.point(92)
@over("function", [F.hessian, F.vhp, F.hvp])
def test_second_order_needs_one_element(function: Any) -> None:
    options = () if function is F.hessian else (x3(),)
    with pytest.raises(RuntimeError, match=f"function given to {function.__name__} should contain a single element"):
        function(tg.exp, x3(), *options)
    with pytest.raises(RuntimeError, match=f"function given to {function.__name__} should return a single Tensor"):
        function(lambda x: (x.sum(), x.sum()), x3(), *options)


@pytest.mark.point(92)
@over("function", PRODUCTS)
def test_vector_may_not_be_left_out_for_several_elements(function: Any) -> None:
    with pytest.raises(RuntimeError, match="The vector v can only be None if"):
        function((lambda x: x * 2) if function is F.vjp else cube, x3())


@pytest.mark.point(92)
@over("function", PRODUCTS)
def test_vector_of_another_shape_is_refused(function: Any) -> None:
    with pytest.raises(RuntimeError, match=r"(?i)v has invalid size: should be .*Size\(\[3\]\) but got .*Size\(\[2\]\)"):
        function((lambda x: x * 2) if function is F.vjp else cube, x3(), y2())


def test_vectors_of_another_number_are_refused() -> None:
    with pytest.raises(RuntimeError, match="v is a tuple of invalid length: should be 2 but got 1"):
        F.jvp(lambda x, y: x, (x3(), y2()), (x3(),))


def test_integer_inputs_are_refused() -> None:
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can require gradients"):
        F.jacobian(tg.exp, tg.tensor([1, 2]))
