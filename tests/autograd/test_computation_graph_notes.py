"""The computation graph as it is taught: y = (x + w) * (w + 1), and everything one looks at and does with it."""

import pytest
from engine_fixtures import assert_values, leaf

import tapegrad as tg
from tapegrad.autograd import Variable

SECOND_TIME = "(?i)trying to backward through the graph a second time"


def graph() -> tuple[tg.Tensor, ...]:
    """w, x, a = w + x, b = w + 1, y = a * b."""
    w, x = leaf([1.0]), leaf([2.0])
    a = tg.add(w, x)
    b = tg.add(w, 1)
    return w, x, a, b, tg.mul(a, b)


def test_value_of_the_graph() -> None:
    assert repr(graph()[4].detach()) == "tensor([6.])"


def test_graph_with_a_tensor_of_ones_for_the_number() -> None:
    w, x, one = leaf([1.0]), leaf([2.0]), tg.tensor([1.0])
    tg.mul(tg.add(w, x), tg.add(w, one)).backward()
    assert (repr(x.grad), repr(w.grad)) == ("tensor([2.])", "tensor([5.])")


def test_gradients_of_the_leaves() -> None:
    w, x, _, _, y = graph()
    y.backward()
    assert (repr(w.grad), repr(x.grad)) == ("tensor([5.])", "tensor([2.])")


def test_all_five_tensors_require_grad() -> None:
    assert [t.requires_grad for t in graph()] == [True] * 5


def test_only_what_the_user_made_is_a_leaf() -> None:
    assert [t.is_leaf for t in graph()] == [True, True, False, False, False]


def test_leaves_stay_leaves_after_backward() -> None:
    tensors = graph()
    tensors[4].backward()
    assert [t.is_leaf for t in tensors] == [True, True, False, False, False]


@pytest.mark.filterwarnings("ignore:(?i)the .grad attribute of a Tensor that is not a leaf")
def test_inner_gradients_are_not_kept() -> None:
    _, _, a, b, y = graph()
    y.backward()
    assert (a.grad, b.grad, y.grad) == (None, None, None)


def test_looking_at_an_inner_gradient_warns() -> None:
    _, _, a, _, y = graph()
    y.backward()
    with pytest.warns(UserWarning, match="(?i)not a leaf"):
        assert a.grad is None


def test_inner_gradients_are_kept_on_demand() -> None:
    _, _, a, b, y = graph()
    a.retain_grad()
    b.retain_grad()
    y.backward()
    assert (repr(a.grad), repr(b.grad)) == ("tensor([2.])", "tensor([3.])")


def test_kept_inner_gradient_leaves_those_of_the_leaves_alone() -> None:
    w, x, a, _, y = graph()
    a.retain_grad()
    y.backward()
    assert (w.grad.item(), x.grad.item()) == (5.0, 2.0)


def test_leaves_have_no_grad_fn() -> None:
    w, x, *_ = graph()
    assert (w.grad_fn, x.grad_fn) == (None, None)


def test_results_name_the_operation_that_made_them() -> None:
    _, _, a, b, y = graph()
    assert [t.grad_fn.name() for t in (a, b, y)] == ["AddBackward0", "AddBackward0", "MulBackward0"]


def test_results_print_the_operation_that_made_them() -> None:
    _, _, a, _, y = graph()
    assert repr(a.grad_fn).startswith("<AddBackward0 object at 0x")
    assert repr(y.grad_fn).startswith("<MulBackward0 object at 0x")


def test_leaf_gradients_accumulate_over_two_graphs() -> None:
    w, x, _, _, y = graph()
    y.backward()
    a = tg.add(w, x)
    a.retain_grad()
    tg.mul(a, tg.add(w, 1)).backward()
    assert (repr(w.grad), repr(x.grad), repr(a.grad)) == ("tensor([10.])", "tensor([4.])", "tensor([2.])")


def test_leaf_gradients_are_zeroed_in_place() -> None:
    w, x, _, _, y = graph()
    y.backward()
    w.grad.zero_()
    x.grad.zero_()
    assert (repr(w.grad), repr(x.grad)) == ("tensor([0.])", "tensor([0.])")


def test_zeroing_keeps_the_identity_of_the_gradient() -> None:
    w, *_, y = graph()
    y.backward()
    kept = w.grad
    w.grad.zero_()
    assert w.grad is kept


def test_ones_takes_a_size_with_a_trailing_comma() -> None:
    assert repr(tg.ones(1)) == "tensor([1.])"


def test_adding_in_place_keeps_the_identity() -> None:
    m = tg.ones(1)
    before = id(m)
    m.add_(1)
    assert id(m) == before and repr(m) == "tensor([2.])"


def test_augmented_addition_keeps_the_identity() -> None:
    m = tg.ones(1)
    before = id(m)
    m += 1
    assert id(m) == before and repr(m) == "tensor([2.])"


def test_plain_addition_makes_another_tensor() -> None:
    m = kept = tg.ones(1)
    m = m + 1
    assert m is not kept and repr(m) == "tensor([2.])"


def test_retained_graph_runs_backward_twice() -> None:
    w, _, _, _, y = graph()
    y.backward(retain_graph=True)
    first = w.grad.item()
    w.grad.zero_()
    y.backward()
    assert (first, repr(w.grad)) == (5.0, "tensor([5.])")


def test_graph_that_was_not_retained_runs_once() -> None:
    *_, y = graph()
    y.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.backward()


def test_weighted_backward_over_two_results() -> None:
    w, _, a, b, y0 = graph()
    y1 = tg.add(a, b)
    loss = tg.cat([y0, y1], dim=0)
    loss.backward(gradient=tg.tensor([1.0, 2.0]))
    assert repr(w.grad) == "tensor([9.])"


def test_function_form_of_backward() -> None:
    w, *_, y = graph()
    tg.autograd.backward(y)
    assert_values(w.grad, [5.0])


def test_first_derivative_prints_its_own_graph() -> None:
    x = leaf([3.0])
    first = tg.autograd.grad(tg.pow(x, 2), x, create_graph=True)
    assert repr(first) == "(tensor([6.], grad_fn=<MulBackward0>),)"


def test_second_derivative() -> None:
    x = leaf([3.0])
    first = tg.autograd.grad(tg.pow(x, 2), x, create_graph=True)
    assert repr(tg.autograd.grad(first[0], x)) == "(tensor([2.]),)"


def test_variable_makes_a_tracked_tensor() -> None:
    variable = Variable(tg.FloatTensor([[1, 2]]), requires_grad=True)
    assert variable.requires_grad and variable.is_leaf and variable.tolist() == [[1.0, 2.0]]


def test_variable_is_untracked_unless_asked() -> None:
    assert Variable(tg.FloatTensor([[1, 2]])).requires_grad is False


def test_mean_of_squares() -> None:
    variable = Variable(tg.FloatTensor([[1, 2]]), requires_grad=True)
    v_out = tg.mean(variable * variable)
    assert v_out.backward() is None and v_out.item() == 2.5
    assert variable.grad.tolist() == [[1.0, 2.0]]


def test_data_of_a_variable_after_backward() -> None:
    variable = Variable(tg.FloatTensor([[1, 2]]), requires_grad=True)
    tg.mean(variable * variable).backward()
    assert variable.data.tolist() == [[1.0, 2.0]] and not variable.data.requires_grad


def test_product_of_sums_of_three_leaves_and_a_constant() -> None:
    a, b, c, d = leaf([1.0]), leaf([2.0]), leaf([3.0]), tg.tensor([4.0])
    ((a + b) * (c + d)).backward()
    assert (a.grad.item(), b.grad.item(), c.grad.item(), d.grad) == (7.0, 7.0, 3.0, None)


def linear_loss() -> tuple[tg.nn.Linear, tg.Tensor, tg.Tensor]:
    net = tg.nn.Linear(3, 4)
    entered = Variable(tg.randn(2, 3), requires_grad=True)
    return net, entered, tg.sum(net(entered))


def test_linear_layer_runs_backward() -> None:
    net, entered, loss = linear_loss()
    loss.backward()
    assert tuple(net.weight.grad.shape) == (4, 3) and tuple(entered.grad.shape) == (2, 3)


def test_gradient_of_the_bias_counts_the_rows() -> None:
    net, _, loss = linear_loss()
    loss.backward()
    assert net.bias.grad.tolist() == [2.0, 2.0, 2.0, 2.0]


def test_gradient_of_the_input_is_the_sum_of_the_weights() -> None:
    net, entered, loss = linear_loss()
    loss.backward()
    column = net.weight.detach().sum(0)
    assert_values(entered.grad, [column.tolist()] * 2, rtol=1e-6)


def test_second_backward_through_a_linear_layer_raises() -> None:
    *_, loss = linear_loss()
    loss.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        loss.backward()


def test_second_backward_through_a_retained_linear_layer_doubles() -> None:
    net, _, loss = linear_loss()
    loss.backward(retain_graph=True)
    loss.backward()
    assert net.bias.grad.tolist() == [4.0, 4.0, 4.0, 4.0]


def test_matrix_product_with_one_seed_after_the_other() -> None:
    x = Variable(tg.FloatTensor([[1, 2]]), requires_grad=True)
    y = Variable(tg.FloatTensor([[3, 4], [5, 6]]))
    loss = tg.mm(x, y)
    loss.backward(tg.FloatTensor([[1, 0]]), retain_graph=True)
    first = x.grad.data.tolist()
    x.grad.data.zero_()
    loss.backward(tg.FloatTensor([[0, 1]]))
    assert (first, x.grad.data.tolist()) == ([[3.0, 5.0]], [[4.0, 6.0]])


def test_value_of_the_matrix_product() -> None:
    x = Variable(tg.FloatTensor([[1, 2]]), requires_grad=True)
    assert tg.mm(x, Variable(tg.FloatTensor([[3, 4], [5, 6]]))).tolist() == [[13.0, 16.0]]


def test_float_tensor_is_float32() -> None:
    assert tg.FloatTensor([[1, 2]]).dtype == tg.float32


def test_backward_of_a_matrix_without_a_seed_raises() -> None:
    x = Variable(tg.FloatTensor([[1, 2]]), requires_grad=True)
    with pytest.raises(RuntimeError, match="(?i)grad can be implicitly created only for scalar outputs"):
        tg.mm(x, tg.FloatTensor([[3, 4], [5, 6]])).backward()


def test_python_s_own_while_decides_the_graph() -> None:
    x = leaf([1.5])
    y, steps = x, 0
    while y.item() < 100.0:
        y = y * x
        steps += 1
    y.backward()
    assert_values(x.grad, [(steps + 1) * 1.5**steps], rtol=1e-13)


def test_python_s_own_if_decides_the_graph() -> None:
    def f(x: tg.Tensor) -> tg.Tensor:
        return x * x if x > 0 else -3 * x

    up, down = leaf(2.0), leaf(-2.0)
    f(up).backward()
    f(down).backward()
    assert (up.grad.item(), down.grad.item()) == (4.0, -3.0)


def test_each_iteration_builds_its_own_graph() -> None:
    w, x = leaf([1.0]), leaf([2.0])
    results = [tg.mul(tg.add(w, x), tg.add(w, k)) for k in range(3)]
    results[1].backward()
    assert (w.grad.item(), x.grad.item()) == (5.0, 2.0)
