"""backward: seeds, counts, roots, requested inputs, accumulation into grad, what grad may share memory with."""

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf

import tapegrad as tg


@pytest.mark.point(16)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_seed_is_implicit_for_one_element_of_any_rank(shape: tuple[int, ...]) -> None:
    x = leaf(np.full(shape, 2.0))
    (x * x).backward()
    assert_values(x.grad, np.full(shape, 4.0))


@pytest.mark.point(16)
def test_seed_is_needed_for_several_elements() -> None:
    with pytest.raises(RuntimeError, match="(?i)grad can be implicitly created only for scalar outputs"):
        (leaf([1.0, 2.0]) * 2).backward()


@pytest.mark.point(16)
def test_seed_is_needed_for_no_elements() -> None:
    with pytest.raises(RuntimeError, match="(?i)grad can be implicitly created only for scalar outputs"):
        (tg.zeros(0, requires_grad=True) * 2).backward()


def test_empty_tensors_have_empty_gradients() -> None:
    x = tg.zeros(0, 3, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad.shape == (0, 3)


def test_seed_weighs_the_elements() -> None:
    x = leaf([1.0, 2.0])
    (x * x).backward(tg.tensor([1.0, 10.0]))
    assert_values(x.grad, [2.0, 40.0])


def test_seed_of_a_scalar_root() -> None:
    x = leaf(3.0)
    (x * x).backward(tg.tensor(0.5))
    assert_values(x.grad, 3.0)


def test_seed_by_keyword() -> None:
    x = leaf([1.0, 2.0])
    (x * 3).backward(gradient=tg.tensor([1.0, 0.0]))
    assert_values(x.grad, [3.0, 0.0])


def test_backward_of_a_leaf_fills_its_own_gradient() -> None:
    x = leaf(3.0)
    x.backward()
    assert_values(x.grad, 1.0)


def test_backward_returns_none() -> None:
    assert (leaf(3.0) * 2).backward() is None


@pytest.mark.point(17)
def test_untracked_root_raises() -> None:
    with pytest.raises(RuntimeError, match="(?i)element 0 of tensors does not require grad and does not have a grad_fn"):
        tg.tensor(1.0).backward()


@pytest.mark.point(17)
def test_untracked_second_root_is_named_by_its_index() -> None:
    with pytest.raises(RuntimeError, match="(?i)element 1 of tensors does not require grad"):
        tg.autograd.backward([leaf(1.0) * 2, tg.tensor(1.0)])


@pytest.mark.point(18)
def test_seed_shape_must_match() -> None:
    message = r"(?i)mismatch in shape: grad_output\[0\] has a shape of .*2.* and output\[0\] has a shape of .*3"
    with pytest.raises(RuntimeError, match=message):
        (leaf([1.0, 2.0, 3.0]) * 2).backward(tg.ones(2))


@pytest.mark.point(18)
def test_scalar_seed_does_not_match_one_element() -> None:
    with pytest.raises(RuntimeError, match="(?i)mismatch in shape"):
        (leaf([1.0]) * 2).backward(tg.tensor(1.0))


@pytest.mark.point(18)
def test_seed_must_be_a_tensor() -> None:
    with pytest.raises(TypeError, match="(?i)gradients can be either Tensors or None, but got.*float"):
        tg.autograd.backward([leaf([1.0]) * 2], [1.0])


@pytest.mark.point(18)
def test_seed_of_another_dtype_is_cast() -> None:
    x = leaf([1.0, 2.0])
    (x * 3).backward(tg.tensor([1.0, 2.0], dtype=tg.float32))
    assert x.grad.dtype == tg.float64 and x.grad.tolist() == [3.0, 6.0]


@pytest.mark.point(19)
def test_fewer_seeds_than_roots_raise() -> None:
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="(?i)got 2 tensors and 1 gradients"):
        tg.autograd.backward([x * 2, x * 3], [tg.ones(1)])


@pytest.mark.point(19)
def test_extra_seeds_are_ignored() -> None:
    x = leaf([1.0])
    tg.autograd.backward([x * 2], [tg.ones(1), tg.ones(1)])
    assert_values(x.grad, [2.0])


@pytest.mark.point(19)
def test_no_root_is_accepted() -> None:
    assert tg.autograd.backward([]) is None


def test_single_root_may_be_bare() -> None:
    x = leaf([1.0])
    tg.autograd.backward(x * 2)
    assert_values(x.grad, [2.0])


def test_two_roots_accumulate() -> None:
    x = leaf([1.0])
    tg.autograd.backward([x * 2, x * 3])
    assert_values(x.grad, [5.0])


def test_seed_of_one_root_may_be_none() -> None:
    x = leaf([1.0])
    tg.autograd.backward([x * 2, x * 3], [None, tg.tensor([10.0])])
    assert_values(x.grad, [32.0])


@pytest.mark.point(24)
def test_root_given_twice_counts_twice() -> None:
    x = leaf([1.0])
    y = x * 2
    tg.autograd.backward([y, y])
    assert_values(x.grad, [4.0])


@pytest.mark.point(24)
def test_each_node_runs_once_whatever_the_roots() -> None:
    x, ran = leaf([3.0]), []
    y = x * x
    z = y * y
    y.grad_fn.register_hook(lambda *_: ran.append("y"))
    z.grad_fn.register_hook(lambda *_: ran.append("z"))
    tg.autograd.backward([y, z, y])
    assert ran == ["z", "y"]


@pytest.mark.point(24)
def test_root_that_feeds_another_root_waits_for_it() -> None:
    x = leaf([3.0])
    y = x * x
    z = y * y
    tg.autograd.backward([y, z])
    assert_values(x.grad, [6.0 + 4.0 * 27.0])


def test_leaf_may_be_a_root_beside_its_results() -> None:
    x = leaf([3.0])
    tg.autograd.backward([x, x * x])
    assert_values(x.grad, [7.0])


@pytest.mark.point(25)
def test_backward_works_under_no_grad() -> None:
    x = leaf([3.0])
    y = x * x
    with tg.no_grad():
        y.backward()
    assert_values(x.grad, [6.0])


@pytest.mark.point(20)
def test_no_inputs_raise() -> None:
    with pytest.raises(RuntimeError, match=r"(?i)`?inputs`? argument to `?backward\(\)`? cannot be empty"):
        (leaf([1.0]) * 2).backward(inputs=[])


@pytest.mark.point(20)
def test_only_the_requested_leaf_is_filled() -> None:
    x, w = leaf([1.0]), leaf([2.0])
    (x * w).backward(inputs=[x])
    assert_values(x.grad, [2.0])


@pytest.mark.point(20)
def test_other_leaves_are_not_touched() -> None:
    x, w = leaf([1.0]), leaf([2.0])
    (x * w).backward(inputs=[x])
    assert w.grad is None


@pytest.mark.point(20)
def test_requested_input_may_be_bare() -> None:
    x = leaf([1.0])
    (x * 2).backward(inputs=x)
    assert_values(x.grad, [2.0])


@pytest.mark.point(20)
def test_requested_inner_result_is_filled() -> None:
    y = leaf([1.0]) * 2
    (y * 3).backward(inputs=[y])
    assert_values(y.grad, [3.0])


@pytest.mark.point(20)
def test_requested_inner_result_retains_its_gradient() -> None:
    y = leaf([1.0]) * 2
    (y * 3).backward(inputs=[y], retain_graph=True)
    (y * 5).backward()
    assert y.retains_grad and y.grad.tolist() == [8.0]


@pytest.mark.point(20)
def test_leaf_below_a_requested_inner_result_is_not_touched() -> None:
    x = leaf([1.0])
    y = x * 2
    (y * 3).backward(inputs=[y])
    assert x.grad is None


@pytest.mark.point(20)
def test_requested_inputs_that_are_not_reached_stay_none() -> None:
    x, unused = leaf([1.0]), leaf([1.0])
    (x * 2).backward(inputs=[x, unused])
    assert unused.grad is None


@pytest.mark.point(20)
def test_untracked_requested_input_raises() -> None:
    message = r"(?i)can't retain_grad on Tensor that has requires_grad=False"
    with pytest.raises(RuntimeError, match=message):
        (leaf([1.0]) * 2).backward(inputs=[tg.tensor([1.0])])


def test_gradients_accumulate_over_passes() -> None:
    x = leaf([1.0])
    (x * 2).backward()
    (x * 3).backward()
    assert_values(x.grad, [5.0])


@pytest.mark.point(26)
def test_plain_pass_adds_in_place() -> None:
    x = leaf([1.0])
    (x * 2).backward()
    first = x.grad
    (x * 3).backward()
    assert x.grad is first and first.tolist() == [5.0]


@pytest.mark.point(26)
def test_plain_pass_adds_in_place_to_an_assigned_gradient() -> None:
    x, g = leaf([1.0]), tg.tensor([10.0])
    x.grad = g
    (x * 2).backward()
    assert x.grad is g and g.tolist() == [12.0]


@pytest.mark.parametrize("inputs", [False, True], ids=["to all leaves", "to inputs"])
def test_assigned_gradient_whose_elements_share_memory_is_refused(inputs: bool) -> None:
    x, g = leaf([1.0, 2.0]), tg.tensor([10.0])
    x.grad = g.expand(2)
    with pytest.raises(RuntimeError, match="(?i)more than one element of the written-to tensor refers to a single memory"):
        (x * 2).sum().backward(inputs=[x] if inputs else None)
    assert g.tolist() == [10.0]


@pytest.mark.point(26)
def test_plain_pass_adds_in_place_to_a_scalar_gradient() -> None:
    x = leaf(1.0)
    (x * 2).backward()
    first = x.grad
    (x * 3).backward()
    assert x.grad is first and first.item() == 5.0


def test_zeroed_gradient_accumulates_anew() -> None:
    x = leaf([1.0])
    (x * 2).backward()
    x.grad.zero_()
    (x * 3).backward()
    assert_values(x.grad, [3.0])


@pytest.mark.point(26)
@pytest.mark.filterwarnings("ignore:.*reference cycle:UserWarning")
def test_recorded_pass_replaces_the_gradient() -> None:
    x = leaf([1.0])
    (x * 2).backward()
    first = x.grad
    (x * x).backward(create_graph=True)
    assert x.grad is not first and x.grad.tolist() == [4.0]


@pytest.mark.point(26)
@pytest.mark.filterwarnings("ignore:.*reference cycle:UserWarning")
def test_recorded_pass_leaves_the_old_gradient_its_value() -> None:
    x = leaf([1.0])
    (x * 2).backward()
    first = x.grad
    (x * x).backward(create_graph=True)
    assert_values(first, [2.0])


@pytest.mark.point(27)
def test_gradient_does_not_share_memory_with_the_seed() -> None:
    x, seed = leaf([1.0, 2.0]), tg.tensor([1.0, 1.0])
    (x + 0.0).backward(seed)
    x.grad.add_(5.0)
    assert_values(seed, [1.0, 1.0])


@pytest.mark.point(27)
def test_gradient_of_a_root_leaf_does_not_share_memory_with_the_seed() -> None:
    x, seed = leaf([1.0, 2.0]), tg.tensor([1.0, 1.0])
    x.backward(seed)
    x.grad.add_(5.0)
    assert_values(seed, [1.0, 1.0])


@pytest.mark.point(27)
def test_gradients_of_two_leaves_do_not_share_memory() -> None:
    x, w = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    (x + w).backward(tg.ones(2))
    x.grad.add_(5.0)
    assert_values(w.grad, [1.0, 1.0])


@pytest.mark.point(27)
def test_retained_gradient_does_not_share_memory_with_the_leaf_s() -> None:
    x = leaf([1.0, 2.0])
    y = x + 0.0
    y.retain_grad()
    y.backward(tg.ones(2))
    x.grad.add_(5.0)
    assert_values(y.grad, [1.0, 1.0])


@pytest.mark.point(27)
def test_engine_never_sums_into_a_seed() -> None:
    x, seed = leaf([1.0, 2.0]), tg.tensor([1.0, 1.0])
    y = x + 0.0
    tg.autograd.backward([y, y], [seed, seed])
    assert_values(seed, [1.0, 1.0])


@pytest.mark.point(27)
def test_gradient_of_a_sum_is_ordinary_writable_memory() -> None:
    x = leaf([1.0, 2.0])
    x.sum().backward()
    x.grad[0] = 7.0
    assert_values(x.grad, [7.0, 1.0])


@pytest.mark.point(27)
def test_gradient_of_a_view_has_ordinary_memory() -> None:
    x = leaf(np.ones((2, 3)))
    x.t().expand(3, 2).sum().backward()
    x.grad[0, 0] = 7.0
    assert_values(x.grad, [[7.0, 1.0, 1.0], [1.0, 1.0, 1.0]])


def test_retained_gradient_of_an_inner_result() -> None:
    y = leaf([3.0]) * 2
    y.retain_grad()
    (y * y).backward()
    assert_values(y.grad, [12.0])


def test_retains_grad_is_true_after_asking() -> None:
    y = leaf([3.0]) * 2
    y.retain_grad()
    assert y.retains_grad is True


@pytest.mark.point(48)
def test_retain_grad_does_nothing_on_a_leaf() -> None:
    x = leaf([3.0])
    x.retain_grad()
    assert x.retains_grad is False


@pytest.mark.point(48)
def test_retain_grad_of_an_untracked_tensor_raises() -> None:
    with pytest.raises(RuntimeError, match="(?i)can't retain_grad on Tensor that has requires_grad=False"):
        tg.tensor([1.0]).retain_grad()


@pytest.mark.point(48)
def test_retained_gradients_accumulate_over_passes() -> None:
    y = leaf([3.0]) * 2
    y.retain_grad()
    z = y * y
    z.backward(retain_graph=True)
    z.backward()
    assert_values(y.grad, [24.0])


def test_retained_gradient_of_the_root_is_the_seed() -> None:
    y = leaf([3.0]) * 2
    y.retain_grad()
    y.backward(tg.tensor([5.0]))
    assert_values(y.grad, [5.0])


def test_inner_result_keeps_no_gradient_unasked() -> None:
    x = leaf([3.0])
    y = x * 2
    (y * y).backward()
    with pytest.warns(UserWarning, match="(?i)not a leaf"):
        assert y.grad is None


def test_untracked_branch_takes_no_part() -> None:
    x, c = leaf([3.0]), tg.tensor([2.0])
    (x * c + c * c).backward()
    assert c.grad is None


def test_backward_of_one_of_two_interleaved_graphs_leaves_the_other() -> None:
    x, w = leaf(2.0), leaf(3.0)
    first = x * x
    second = w * w
    first = first * x
    second = second * w
    first.backward()
    second.backward()
    assert (x.grad.item(), w.grad.item()) == (12.0, 27.0)


def test_leaf_older_than_many_graphs_still_accumulates() -> None:
    x = leaf(2.0)
    for _ in range(1000):
        (x * x).backward()
    assert_values(x.grad, 4000.0)
