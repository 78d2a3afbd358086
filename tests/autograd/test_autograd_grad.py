"""autograd.grad: requested inputs, unused ones, seeds, what is touched and what is not."""

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf

import tapegrad as tg

grad = tg.autograd.grad


def test_returns_a_tuple_for_a_bare_input() -> None:
    x = leaf([2.0])
    assert isinstance(grad(x * x, x), tuple)


def test_gradients_come_in_the_order_of_the_inputs() -> None:
    x, w = leaf([2.0]), leaf([3.0])
    gw, gx = grad(x * x * w, [w, x])
    assert (gw.item(), gx.item()) == (4.0, 12.0)


def test_leaves_keep_their_grad() -> None:
    x = leaf([2.0])
    grad(x * x, x)
    assert x.grad is None


def test_same_input_twice_is_answered_twice() -> None:
    x = leaf([2.0])
    first, second = grad(x * x, [x, x])
    assert (first.item(), second.item()) == (4.0, 4.0)


def test_inner_result_as_an_input() -> None:
    y = leaf([2.0]) * 3
    assert_values(grad(y * y, y)[0], [12.0])


def test_inner_result_and_the_leaf_below_it() -> None:
    x = leaf([2.0])
    y = x * 3
    gy, gx = grad(y * y, [y, x])
    assert (gy.item(), gx.item()) == (12.0, 36.0)


def test_output_as_its_own_input() -> None:
    y = leaf([2.0]) * 3
    assert_values(grad(y, y)[0], [1.0])


def test_several_outputs_add_up() -> None:
    x = leaf([2.0])
    assert_values(grad([x * 2, x * x], x)[0], [6.0])


def test_seeds_weigh_the_outputs() -> None:
    x = leaf([2.0])
    assert_values(grad([x * 2, x * x], x, [tg.tensor([10.0]), tg.tensor([1.0])])[0], [24.0])


def test_bare_seed() -> None:
    x = leaf([1.0, 2.0])
    assert_values(grad(x * x, x, tg.tensor([1.0, 10.0]))[0], [2.0, 40.0])


def test_seed_is_needed_for_several_elements() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="(?i)grad can be implicitly created only for scalar outputs"):
        grad(x * x, x)


def test_seed_shape_must_match() -> None:
    x = leaf([1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError, match=r"(?i)mismatch in shape: grad_output\[0\] has a shape of .*2"):
        grad(x * x, x, tg.ones(2))


def test_untracked_output_raises() -> None:
    with pytest.raises(RuntimeError, match="(?i)element 0 of tensors does not require grad"):
        grad(tg.tensor([1.0]), leaf([1.0]))


@pytest.mark.point(20)
def test_untracked_input_raises() -> None:
    with pytest.raises(RuntimeError, match="(?i)one of the differentiated Tensors does not require grad"):
        grad(leaf([1.0]) * 2, tg.tensor([1.0]))


@pytest.mark.point(20)
def test_no_inputs_raise() -> None:
    with pytest.raises(RuntimeError, match=r"(?i)`?inputs`? argument to `?grad\(\)`? cannot be empty"):
        grad(leaf([1.0]) * 2, [])


@pytest.mark.point(22)
def test_input_that_is_no_tensor_raises() -> None:
    message = "(?i)all inputs have to be Tensors or GradientEdges, but got.*float"
    with pytest.raises(RuntimeError, match=message):
        grad(leaf([1.0]) * 2, [1.0])


@pytest.mark.point(21)
def test_unused_input_raises() -> None:
    x, unused = leaf([1.0]), leaf([1.0])
    message = "(?i)differentiated Tensor at index 1 appears to not have been used in the graph.*allow_unused=True"
    with pytest.raises(RuntimeError, match=message):
        grad(x * 2, [x, unused])


@pytest.mark.point(21)
def test_unused_input_is_none_when_allowed() -> None:
    x, unused = leaf([1.0]), leaf([1.0])
    assert grad(x * 2, [x, unused], allow_unused=True)[1] is None


@pytest.mark.point(21)
def test_unused_input_is_zeros_when_materialized() -> None:
    x, unused = leaf([1.0]), leaf([1.0, 2.0])
    assert_values(grad(x * 2, [x, unused], materialize_grads=True)[1], [0.0, 0.0])


def test_materialized_zeros_have_the_dtype_of_the_input() -> None:
    x, unused = leaf([1.0]), leaf([1.0, 2.0], tg.float32)
    assert grad(x * 2, [x, unused], materialize_grads=True)[1].dtype == tg.float32


@pytest.mark.point(21)
def test_materialize_contradicts_allow_unused_false() -> None:
    x = leaf([1.0])
    with pytest.raises(ValueError, match="(?i)allow_unused"):
        grad(x * 2, x, allow_unused=False, materialize_grads=True)


@pytest.mark.point(23)
def test_node_that_made_a_requested_input_does_not_run() -> None:
    x = leaf([0.0])
    y = x.log()
    z = y * 2
    grad(z, y)
    y.backward()
    assert x.grad.item() == float("inf")


@pytest.mark.point(23)
def test_only_rows_on_a_path_to_the_inputs_run() -> None:
    x, w = leaf([2.0]), leaf([3.0])
    a, b = x * x, w * w
    loss = a + b
    grad(loss, x)
    grad(loss, w)
    with pytest.raises(RuntimeError, match="(?i)second time"):
        grad(a, x)


@pytest.mark.point(30)
def test_gradient_of_a_linear_function_is_untracked_even_when_recorded() -> None:
    x = leaf([2.0])
    assert grad(x * 3 + 1, x, create_graph=True)[0].requires_grad is False


def test_recorded_gradient_is_tracked() -> None:
    x = leaf([2.0])
    assert grad(x * x, x, create_graph=True)[0].requires_grad is True


def test_plain_gradient_is_untracked() -> None:
    x = leaf([2.0])
    assert grad(x * x, x)[0].requires_grad is False


def test_gradient_under_no_grad() -> None:
    x = leaf([2.0])
    y = x * x
    with tg.no_grad():
        assert_values(grad(y, x)[0], [4.0])


@pytest.mark.point(28)
def test_gradient_does_not_warn_of_cycles_when_recorded() -> None:
    x = leaf([2.0])
    assert grad(x**3, x, create_graph=True)[0].item() == 12.0


def test_outputs_may_share_parts_of_the_graph() -> None:
    x = leaf([2.0])
    shared = x * x
    assert_values(grad([shared * 2, shared * 3], x)[0], [20.0])


def test_gradient_after_the_leaf_was_written_under_no_grad() -> None:
    x = leaf([2.0])
    (x * x).backward()
    with tg.no_grad():
        x -= 0.5 * x.grad
    assert_values(grad(x * x, x)[0], [0.0])


def test_a_leaf_that_a_number_does_not_depend_on_is_refused_and_the_graph_stays() -> None:
    x, y = tg.tensor([1.0, 2.0], requires_grad=True), tg.tensor([1.0, 2.0], requires_grad=True)
    z = (x * x).sum()
    with pytest.raises(RuntimeError, match="not have been used"):
        tg.autograd.grad(z, y)
    np.testing.assert_array_equal(tg.autograd.grad(z, x)[0].numpy(), [2.0, 4.0])


def test_hooks_on_the_way_to_the_one_leaf_are_called() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    inner = x * x
    inner.register_hook(lambda g: 3.0 * g)
    x.register_hook(lambda g: g + 1.0)
    np.testing.assert_array_equal(tg.autograd.grad(inner.sum(), x)[0].numpy(), [7.0, 13.0])


def test_the_gradient_by_one_leaf_is_not_accumulated_and_frees_the_graph() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    z = tg.exp(x).prod()
    np.testing.assert_allclose(tg.autograd.grad(z, x)[0].numpy(), np.exp(3.0) * np.ones(2))
    assert x.grad is None
    with pytest.raises(RuntimeError, match="second time"):
        tg.autograd.grad(z, x)


def test_by_one_leaf_it_does_not_need_what_others_do() -> None:
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    z = x * 1.5
    output = (z * z + y).sum()
    z.mul_(2.0)
    assert_values(tg.autograd.grad(output, y)[0], [1.0, 1.0])


def test_by_one_leaf_it_says_what_was_overwritten() -> None:
    x = leaf([1.0, 2.0])
    z = x * 1.5
    output = (z * z).sum()
    z.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        tg.autograd.grad(output, x)
    assert x.grad is None
