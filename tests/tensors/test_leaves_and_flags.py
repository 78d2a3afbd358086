"""Leaves, results and the flags that tell them apart: requires_grad, is_leaf, grad, grad_fn, conversions."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf

import tapegrad as tg


@pytest.mark.point(1)
def test_tensor_is_untracked_unless_asked() -> None:
    assert tg.tensor([1.0]).requires_grad is False


@pytest.mark.point(1)
def test_tracked_leaf_is_a_leaf() -> None:
    assert leaf([1.0]).is_leaf is True


@pytest.mark.point(1)
def test_untracked_result_is_a_leaf() -> None:
    assert (tg.tensor([1.0]) * 2).is_leaf is True


@pytest.mark.point(1)
def test_tracked_result_is_no_leaf() -> None:
    assert (leaf([1.0]) * 2).is_leaf is False


def test_result_of_one_tracked_operand_is_tracked() -> None:
    assert (tg.tensor([1.0]) * leaf([1.0])).requires_grad is True


@pytest.mark.point(1)
def test_leaf_has_no_grad_fn() -> None:
    assert leaf([1.0]).grad_fn is None


@pytest.mark.point(1)
def test_leaf_starts_without_a_gradient() -> None:
    assert leaf([1.0]).grad is None


def test_requires_grad_can_be_switched_on() -> None:
    x = tg.tensor([1.0])
    x.requires_grad = True
    (x * 3.0).backward()
    assert_values(x.grad, [3.0])


def test_requires_grad_in_place_returns_the_tensor() -> None:
    x = tg.tensor([1.0])
    assert x.requires_grad_() is x


def test_requires_grad_in_place_switches_on() -> None:
    assert tg.tensor([1.0]).requires_grad_().requires_grad is True


def test_requires_grad_in_place_switches_off() -> None:
    assert leaf([1.0]).requires_grad_(False).requires_grad is False


def test_leaf_switched_off_records_nothing_more() -> None:
    x = leaf([1.0])
    x.requires_grad = False
    assert (x * 2).grad_fn is None


@pytest.mark.parametrize("value", [3.0, [3.0], np.float32(3.0)])
@pytest.mark.parametrize("hooked", [False, True])
def test_new_leaf_gets_its_row_from_whatever_operation_is_first(value: Any, hooked: bool) -> None:
    derivatives: dict[Callable[[Any], Any], float] = {
        lambda x: x * x: 6.0,
        lambda x: x + 2.0: 1.0,
        lambda x: 2.0 - x: -1.0,
        tg.exp: float(np.exp(type(value)(3.0) if isinstance(value, np.float32) else 3.0)),
        lambda x: x.sum(): 1.0,
        lambda x: x**2: 6.0,
    }
    for operation, derivative in derivatives.items():
        x = tg.tensor(value, requires_grad=True)
        if hooked:
            x.register_hook(lambda g: g * 2.0)
        operation(x).sum().backward()
        assert x.is_leaf
        np.testing.assert_allclose(x.grad.tolist(), np.full(x.shape, derivative * (1 + hooked)), rtol=1e-6)


def test_new_leaf_that_dies_leaves_no_rows() -> None:
    tape = tg.tape.default_tape()
    for _ in range(20_000):
        y = tg.tensor([1.0], requires_grad=True) * 2.0
    del y
    assert tape.rows < 10_000


def test_leaf_switched_off_after_use_gets_no_gradient() -> None:
    x = leaf([1.0])
    y = x * 2
    x.requires_grad = False
    y.backward()
    assert x.grad is None


def test_scalar_leaf_switched_on_twice_is_one_leaf() -> None:
    x = leaf(2.0)
    y = x * x
    x.requires_grad = True
    (y * x).backward()
    assert_values(x.grad, 12.0)


def test_factory_with_requires_grad_makes_a_leaf() -> None:
    x = tg.zeros(2, requires_grad=True)
    assert x.requires_grad and x.is_leaf


@pytest.mark.point(5)
def test_integers_cannot_be_tracked_at_construction() -> None:
    with pytest.raises(RuntimeError, match="(?i)only Tensors of floating point.* dtype can require gradients"):
        tg.tensor([1, 2], requires_grad=True)


@pytest.mark.point(5)
def test_integers_cannot_be_tracked_later() -> None:
    with pytest.raises(RuntimeError, match="(?i)only Tensors of floating point.* dtype can require gradients"):
        tg.tensor([1, 2]).requires_grad_()


@pytest.mark.point(5)
def test_bools_cannot_be_tracked_later() -> None:
    with pytest.raises(RuntimeError, match="(?i)only Tensors of floating point.* dtype can require gradients"):
        tg.tensor([True]).requires_grad = True


@pytest.mark.point(6)
def test_result_cannot_be_switched_off() -> None:
    y = leaf([1.0]) * 2
    with pytest.raises(RuntimeError, match=r"(?is)you can only change requires_grad flags of leaf variables.*detach\(\)"):
        y.requires_grad = False


@pytest.mark.point(6)
def test_result_cannot_be_set_on() -> None:
    y = leaf([1.0]) * 2
    with pytest.raises(RuntimeError, match="(?i)you can only change requires_grad flags of leaf variables"):
        y.requires_grad = True


@pytest.mark.point(6)
def test_result_may_ask_for_requires_grad_in_place() -> None:
    y = leaf([1.0]) * 2
    assert y.requires_grad_() is y


@pytest.mark.point(6)
def test_requires_grad_takes_only_bools() -> None:
    with pytest.raises(RuntimeError, match="(?i)requires_grad must be a bool"):
        tg.tensor([1.0]).requires_grad = 1


@pytest.mark.point(7)
def test_grad_of_a_result_warns() -> None:
    y = leaf([1.0]) * 2
    with pytest.warns(UserWarning, match="(?i)the .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert y.grad is None


@pytest.mark.point(7)
def test_grad_of_a_retained_result_does_not_warn() -> None:
    y = leaf([1.0]) * 2
    y.retain_grad()
    assert y.grad is None


def test_grad_of_an_untracked_tensor_does_not_warn() -> None:
    assert tg.tensor([1.0]).grad is None


@pytest.mark.point(8)
def test_assigned_gradient_is_kept_as_it_is() -> None:
    x, g = leaf([1.0, 2.0]), tg.tensor([3.0, 4.0])
    x.grad = g
    assert x.grad is g


@pytest.mark.point(8)
def test_assigned_gradient_must_be_a_tensor() -> None:
    with pytest.raises(TypeError, match="(?i)assigned grad expected to be a Tensor or None but got grad of type.*float"):
        leaf([1.0]).grad = 1.0


@pytest.mark.point(8)
def test_assigned_gradient_must_have_the_shape() -> None:
    with pytest.raises(RuntimeError, match=r"(?i)attempting to assign a gradient of size .*1.* to a tensor of size .*3"):
        leaf([1.0, 2.0, 3.0]).grad = tg.tensor([1.0])


@pytest.mark.point(8)
def test_assigned_gradient_must_have_the_dtype() -> None:
    with pytest.raises(RuntimeError, match="(?i)attempting to assign a gradient with dtype"):
        leaf([1.0]).grad = tg.tensor([1.0], dtype=tg.float32)


@pytest.mark.point(8)
def test_tensor_is_not_its_own_gradient() -> None:
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="(?i)can't assign Variable as its own grad"):
        x.grad = x


@pytest.mark.point(8)
def test_deleted_gradient_is_none() -> None:
    x = leaf([1.0])
    x.grad = tg.tensor([1.0])
    del x.grad
    assert x.grad is None


def test_gradient_set_to_none_starts_anew() -> None:
    x = leaf([1.0])
    (x * 2).backward()
    x.grad = None
    (x * 3).backward()
    assert_values(x.grad, [3.0])


@pytest.mark.point(8)
def test_grad_fn_is_not_writable() -> None:
    with pytest.raises(AttributeError):
        leaf([1.0]).grad_fn = None


@pytest.mark.point(8)
def test_is_leaf_is_not_writable() -> None:
    with pytest.raises(AttributeError):
        leaf([1.0]).is_leaf = False


@pytest.mark.point(9)
def test_numpy_of_a_tracked_tensor_raises() -> None:
    message = r"(?i)can't call numpy\(\) on Tensor that requires grad\. use tensor\.detach\(\)\.numpy\(\) instead"
    with pytest.raises(RuntimeError, match=message):
        leaf([1.0]).numpy()


@pytest.mark.point(9)
def test_asarray_of_a_tracked_tensor_raises() -> None:
    with pytest.raises(RuntimeError, match=r"(?i)can't call numpy\(\) on Tensor that requires grad"):
        np.asarray(leaf([1.0]))


@pytest.mark.point(9)
def test_item_of_a_tracked_tensor_works() -> None:
    assert (leaf([1.5]) * 2).item() == 3.0


@pytest.mark.point(9)
def test_tolist_of_a_tracked_tensor_works() -> None:
    assert (leaf([1.5, 2.0]) * 2).tolist() == [3.0, 4.0]


@pytest.mark.point(9)
def test_item_of_several_elements_raises() -> None:
    with pytest.raises(RuntimeError, match="(?i)a Tensor with 3 elements cannot be converted to Scalar"):
        leaf([1.0, 2.0, 3.0]).item()


@pytest.mark.point(9)
def test_float_of_a_tracked_tensor_warns() -> None:
    with pytest.warns(UserWarning, match="requires_grad=True"):
        assert float(leaf([1.5])) == 1.5


def test_float_of_an_untracked_tensor_does_not_warn() -> None:
    assert float(tg.tensor([1.5])) == 1.5


@pytest.mark.point(10)
def test_bool_of_several_elements_raises() -> None:
    with pytest.raises(RuntimeError, match="(?i)boolean value of Tensor with more than one value is ambiguous"):
        bool(tg.tensor([1.0, 2.0]))


@pytest.mark.point(10)
def test_bool_of_no_elements_raises() -> None:
    with pytest.raises(RuntimeError, match="(?i)boolean value of Tensor with no values is ambiguous"):
        bool(tg.tensor([]))


def test_bool_of_one_tracked_element_works() -> None:
    assert bool(leaf([0.5]) > 0.0) is True


@pytest.mark.point(10)
def test_len_of_a_scalar_raises() -> None:
    with pytest.raises(TypeError, match=r"(?i)len\(\) of a 0-d tensor"):
        len(leaf(1.0))


@pytest.mark.point(10)
def test_iteration_of_a_scalar_raises() -> None:
    with pytest.raises(TypeError, match="(?i)iteration over a 0-d tensor"):
        iter(leaf(1.0))


@pytest.mark.point(11)
def test_equality_is_elementwise() -> None:
    assert (tg.tensor([1.0, 2.0]) == tg.tensor([1.0, 3.0])).tolist() == [True, False]


@pytest.mark.point(11)
def test_hash_is_identity() -> None:
    x, y = tg.tensor([1.0]), tg.tensor([1.0])
    assert len({x, x, y}) == 2


WITHOUT_GRADIENT: dict[str, Callable[[tg.Tensor], tg.Tensor]] = {
    "==": lambda x: x == 2.0,
    "!=": lambda x: x != 2.0,
    "<": lambda x: x < 2.0,
    "<=": lambda x: x <= 2.0,
    ">": lambda x: x > 2.0,
    ">=": lambda x: x >= 2.0,
    "argmax": lambda x: x.argmax(),
    "argmin": lambda x: x.argmin(),
    "argsort": lambda x: x.argsort(),
    "indices of sort": lambda x: x.sort().indices,
    "indices of topk": lambda x: x.topk(1).indices,
    "indices of max": lambda x: x.max(0).indices,
    "indices of min": lambda x: x.min(0).indices,
}


@pytest.mark.point(1, 11)
@pytest.mark.parametrize("name", WITHOUT_GRADIENT)
def test_comparisons_and_indices_are_untracked_leaves(name: str) -> None:
    found = WITHOUT_GRADIENT[name](leaf([1.0, 2.0]))
    assert (found.requires_grad, found.is_leaf, found.grad_fn) == (False, True, None)


@pytest.mark.point(12)
def test_to_its_own_dtype_is_the_object() -> None:
    x = leaf([1.0])
    assert x.to(x.dtype) is x


@pytest.mark.point(12)
def test_double_of_float64_is_the_object() -> None:
    x = leaf([1.0])
    assert x.double() is x


@pytest.mark.point(12)
def test_contiguous_of_contiguous_is_the_object() -> None:
    x = leaf([1.0])
    assert x.contiguous() is x


@pytest.mark.point(12)
def test_unary_plus_is_the_object() -> None:
    x = leaf([1.0])
    assert +x is x


@pytest.mark.point(12)
@pytest.mark.parametrize("new", ["view", "slice", "detach", "clone"])
def test_views_and_copies_are_new_objects(new: str) -> None:
    x = leaf([1.0, 2.0])
    made = {"view": lambda: x.view(2), "slice": lambda: x[:], "detach": x.detach, "clone": x.clone}[new]()
    assert made is not x


def test_detach_is_an_untracked_leaf() -> None:
    d = (leaf([1.0]) * 2).detach()
    assert d.is_leaf and not d.requires_grad


def test_detach_shares_memory() -> None:
    x = leaf([1.0, 2.0])
    x.detach()[0] = 5.0
    assert x.tolist() == [5.0, 2.0]


def test_detached_factor_is_a_constant() -> None:
    x = leaf([3.0])
    (x * x.detach()).backward()
    assert_values(x.grad, [3.0])


def test_clone_passes_the_gradient_through() -> None:
    x = leaf([1.0, 2.0])
    (x.clone() * 3).sum().backward()
    assert_values(x.grad, [3.0, 3.0])


def test_from_numpy_shares_memory() -> None:
    array = np.array([1.0, 2.0])
    x = tg.from_numpy(array)
    array[0] = 7.0
    assert x.tolist() == [7.0, 2.0]


def test_tensor_copies_an_array() -> None:
    array = np.array([1.0, 2.0])
    x = tg.tensor(array)
    array[0] = 7.0
    assert x.tolist() == [1.0, 2.0]


@pytest.mark.point(13)
def test_deepcopy_of_a_result_raises() -> None:
    message = r"(?i)only Tensors created explicitly by the user \(graph leaves\) support the deepcopy protocol"
    with pytest.raises(RuntimeError, match=message):
        copy.deepcopy(leaf([1.0]) * 2)


@pytest.mark.point(13)
def test_deepcopy_of_a_leaf_keeps_requires_grad() -> None:
    assert copy.deepcopy(leaf([1.0])).requires_grad is True


def test_deepcopy_of_a_leaf_has_its_own_memory() -> None:
    x = leaf([1.0])
    copied = copy.deepcopy(x)
    with tg.no_grad():
        copied.add_(1.0)
    assert x.tolist() == [1.0]


def test_pickled_leaf_keeps_values() -> None:
    assert pickle.loads(pickle.dumps(leaf([1.0, 2.5]))).tolist() == [1.0, 2.5]


@pytest.mark.point(13)
def test_pickled_leaf_keeps_requires_grad() -> None:
    assert pickle.loads(pickle.dumps(leaf([1.0]))).requires_grad is True


def test_gradient_of_a_pickled_leaf_goes_to_the_copy() -> None:
    x = leaf([1.0])
    copied = pickle.loads(pickle.dumps(x))
    (copied * 2).backward()
    assert x.grad is None


@pytest.mark.point(14)
def test_default_dtype_is_float64() -> None:
    assert tg.tensor([1.0]).dtype == tg.float64


def test_python_integers_are_int64() -> None:
    assert tg.tensor([1, 2]).dtype == tg.int64


@pytest.mark.point(14)
def test_array_does_not_widen_for_a_scalar_tensor() -> None:
    assert (tg.ones(2, dtype=tg.float32) * tg.tensor(2.0, dtype=tg.float64)).dtype == tg.float32


@pytest.mark.point(14)
def test_array_does_not_widen_for_a_python_number() -> None:
    assert (tg.ones(2, dtype=tg.float32) * 2.0).dtype == tg.float32


def test_arrays_widen_to_the_larger_float() -> None:
    assert (tg.ones(2, dtype=tg.float32) * tg.ones(2, dtype=tg.float64)).dtype == tg.float64


def test_integer_array_times_float_number_is_the_default_float() -> None:
    assert (tg.tensor([1, 2]) * 1.5).dtype == tg.float64


@pytest.mark.point(14)
def test_integer_division_is_the_default_float() -> None:
    assert (tg.tensor([1, 2]) / tg.tensor([2, 2])).dtype == tg.float64


@pytest.mark.point(14)
def test_integer_sum_is_int64() -> None:
    assert tg.tensor([1, 2], dtype=tg.int32).sum().dtype == tg.int64


@pytest.mark.point(14)
def test_integer_mean_raises() -> None:
    with pytest.raises(RuntimeError, match="(?i)could not infer output dtype"):
        tg.tensor([1, 2]).mean()


@pytest.mark.point(14)
def test_matmul_does_not_promote() -> None:
    with pytest.raises(RuntimeError, match="(?i)expected m1 and m2 to have the same dtype"):
        tg.ones(2, 2, dtype=tg.float32) @ tg.ones(2, 2, dtype=tg.float64)


@pytest.mark.point(15)
def test_gradients_come_in_the_dtype_of_their_leaf() -> None:
    x, y = leaf([1.0, 2.0], tg.float32), leaf([3.0, 4.0], tg.float64)
    (x * y).sum().backward()
    assert (x.grad.dtype, y.grad.dtype) == (tg.float32, tg.float64)


@pytest.mark.point(15)
def test_scalar_leaf_in_a_float32_array_keeps_its_dtype() -> None:
    x, y = leaf([1.0, 2.0], tg.float32), leaf(3.0, tg.float64)
    (x * y).sum().backward()
    assert (x.grad.dtype, y.grad.dtype) == (tg.float32, tg.float64)


@pytest.mark.point(15)
def test_gradient_through_a_change_of_dtype() -> None:
    x = leaf([1.0, 2.0], tg.float32)
    (x.double() * 3.0).sum().backward()
    assert x.grad.dtype == tg.float32 and x.grad.tolist() == [3.0, 3.0]
