"""In-place operations: identity, versions, what may be written, and the gradient of what was written."""

from collections.abc import Callable

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf, node_name, parents
from many_cases import each

import tapegrad as tg

grad = tg.autograd.grad
LEAF = "(?i)a leaf Variable that requires grad is being used in an in-place operation"

FORMS: dict[str, tuple[Callable[[tg.Tensor], tg.Tensor], Callable[[np.ndarray], np.ndarray], str]] = {
    "add_": (lambda t: t.add_(1.5), lambda a: a + 1.5, "AddBackward0"),
    "sub_": (lambda t: t.sub_(1.5), lambda a: a - 1.5, "SubBackward0"),
    "mul_": (lambda t: t.mul_(1.5), lambda a: a * 1.5, "MulBackward0"),
    "div_": (lambda t: t.div_(1.5), lambda a: a / 1.5, "DivBackward0"),
    "pow_": (lambda t: t.pow_(2), lambda a: a**2, "PowBackward0"),
    "neg_": (lambda t: t.neg_(), lambda a: -a, "NegBackward0"),
    "exp_": (lambda t: t.exp_(), np.exp, "ExpBackward0"),
    "sqrt_": (lambda t: t.sqrt_(), np.sqrt, "SqrtBackward0"),
    "sin_": (lambda t: t.sin_(), np.sin, "SinBackward0"),
    "tanh_": (lambda t: t.tanh_(), np.tanh, "TanhBackward0"),
    "zero_": (lambda t: t.zero_(), np.zeros_like, "ZeroBackward0"),
    "fill_": (lambda t: t.fill_(2.5), lambda a: np.full_like(a, 2.5), "FillBackward2"),
    "copy_": (lambda t: t.copy_(tg.tensor([5.0, 6.0])), lambda a: np.array([5.0, 6.0]), "CopyBackwards"),
}
SLOPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "add_": np.ones_like,
    "sub_": np.ones_like,
    "mul_": lambda a: np.full_like(a, 1.5),
    "div_": lambda a: np.full_like(a, 1 / 1.5),
    "pow_": lambda a: 2 * a,
    "neg_": lambda a: -np.ones_like(a),
    "exp_": np.exp,
    "sqrt_": lambda a: 0.5 / np.sqrt(a),
    "sin_": np.cos,
    "tanh_": lambda a: 1 - np.tanh(a) ** 2,
    "zero_": np.zeros_like,
    "fill_": np.zeros_like,
    "copy_": np.zeros_like,
}


@each("name", FORMS)
def test_in_place_form_computes_its_value(name: str) -> None:
    run, value, _ = FORMS[name]
    assert_values(run(tg.tensor([0.5, 2.0])), value(np.array([0.5, 2.0])), rtol=1e-14)


@pytest.mark.point(42)
@each("name", FORMS)
def test_in_place_form_returns_the_object(name: str) -> None:
    x = tg.tensor([0.5, 2.0])
    assert FORMS[name][0](x) is x


@pytest.mark.point(33)
@each("name", FORMS)
def test_in_place_form_raises_the_version_by_one(name: str) -> None:
    x = tg.tensor([0.5, 2.0])
    FORMS[name][0](x)
    assert x._version == 1


@each("name", FORMS)
def test_in_place_form_passes_the_gradient(name: str) -> None:
    x = leaf([0.5, 2.0])
    y = x + 0.0
    FORMS[name][0](y)
    y.sum().backward()
    assert_values(x.grad, SLOPES[name](np.array([0.5, 2.0])), rtol=1e-13)


@each("name", FORMS)
def test_in_place_form_on_a_scalar_passes_the_gradient(name: str) -> None:
    x = leaf(0.5)
    y = x + 0.0
    if name == "copy_":
        y.copy_(tg.tensor(5.0))
    else:
        FORMS[name][0](y)
    y.backward()
    assert_values(x.grad, SLOPES[name](np.array(0.5)), rtol=1e-13)


# What has no rule, or does not take it with these arguments.
WITHOUT_RULES = {
    "div_": (0.7, {"rounding_mode": None}), "float_power_": (2,), "ldexp_": (tg.tensor(2.0),), "logit_": (0.1,),
    "nan_to_num_": (0.5,), "polygamma_": (1,), "true_divide_": (0.7,),
}  # fmt: skip


@each("name", WITHOUT_RULES)
def test_in_place_form_without_a_rule_on_a_number_has_the_derivatives_of_the_other_form(name: str) -> None:
    *args, options = [*WITHOUT_RULES[name], *[{}] * (not isinstance(WITHOUT_RULES[name][-1], dict))]
    found = []
    for method in (name, name.removesuffix("_")):
        x = leaf(0.3)
        (first,) = grad(getattr(x * x, method)(*args, **options), x, create_graph=True)
        found.append([first.item(), grad(first * first, x, allow_unused=True, materialize_grads=True)[0].item()])
    assert found[0] == found[1]


@pytest.mark.point(42)
@each("name", FORMS)
def test_in_place_form_has_the_ordinary_node_name(name: str) -> None:
    y = leaf([0.5, 2.0]) * 1.0
    FORMS[name][0](y)
    assert node_name(y).split("::")[-1] == FORMS[name][2]


@pytest.mark.point(42)
@each("name", FORMS)
def test_in_place_node_reads_the_old_grad_fn(name: str) -> None:
    y = leaf([0.5, 2.0]) * 1.0
    old = y.grad_fn
    FORMS[name][0](y)
    assert y.grad_fn.next_functions[0][0] is old


@pytest.mark.point(32)
@each("name", FORMS)
def test_in_place_form_on_a_tracked_leaf_raises(name: str) -> None:
    x = leaf([0.5, 2.0])
    with pytest.raises(RuntimeError, match=LEAF):
        FORMS[name][0](x)


@each("name", FORMS)
def test_refused_in_place_form_leaves_the_values(name: str) -> None:
    x = leaf([0.5, 2.0])
    with pytest.raises(RuntimeError, match=LEAF):
        FORMS[name][0](x)
    assert_values(x, [0.5, 2.0])


OPERATORS: dict[str, tuple[Callable[[tg.Tensor], tg.Tensor], list[float]]] = {
    "+=": (lambda t: t.__iadd__(2.0), [3.0, 5.0]),
    "-=": (lambda t: t.__isub__(2.0), [-1.0, 1.0]),
    "*=": (lambda t: t.__imul__(2.0), [2.0, 6.0]),
    "/=": (lambda t: t.__itruediv__(2.0), [0.5, 1.5]),
    "**=": (lambda t: t.__ipow__(2.0), [1.0, 9.0]),
}


@each("operator", OPERATORS)
def test_augmented_assignment_keeps_the_object(operator: str) -> None:
    x = tg.tensor([1.0, 3.0])
    assert OPERATORS[operator][0](x) is x


@each("operator", OPERATORS)
def test_augmented_assignment_computes_its_value(operator: str) -> None:
    x = tg.tensor([1.0, 3.0])
    OPERATORS[operator][0](x)
    assert_values(x, OPERATORS[operator][1])


def test_augmented_assignment_on_a_tracked_leaf_raises() -> None:
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match=LEAF):
        x += 1.0


def test_augmented_assignment_on_a_tracked_scalar_leaf_raises() -> None:
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match=LEAF):
        x *= 2.0


def test_ordinary_assignment_makes_a_new_object() -> None:
    x = tg.ones(1)
    y = x
    x = x + 1
    assert x is not y


def test_in_place_scalar_chain_is_differentiated() -> None:
    x = leaf(2.0)
    y = x * 1.0
    for _ in range(3):
        y *= x
    y.backward()
    assert_values(x.grad, 4 * 8.0)


def test_in_place_with_a_tracked_operand_tracks_the_target() -> None:
    x, total = leaf([2.0]), tg.zeros(1)
    total += x * x
    total.backward()
    assert_values(x.grad, [4.0])


def test_running_total_over_an_in_place_loop() -> None:
    x, total = leaf(2.0), tg.tensor(0.0)
    for k in range(5):
        total += k * x
    total.backward()
    assert_values(x.grad, 10.0)


def test_in_place_broadcasts_the_operand() -> None:
    x, y = leaf([2.0]), tg.zeros(3)
    y += x
    y.sum().backward()
    assert_values(x.grad, [3.0])


@pytest.mark.point(41)
def test_in_place_keeps_its_shape() -> None:
    message = r"(?i)output with shape .*2.* doesn't match the broadcast shape .*3, 2"
    with pytest.raises(RuntimeError, match=message):
        tg.zeros(2).add_(tg.ones(3, 2))


@pytest.mark.point(41)
def test_in_place_keeps_an_integer_dtype() -> None:
    with pytest.raises(RuntimeError, match="(?i)result type .* can't be cast to the desired output type"):
        tg.tensor([1, 2]).add_(0.5)


@pytest.mark.point(41)
def test_in_place_casts_float64_into_float32() -> None:
    x = tg.zeros(2, dtype=tg.float32)
    x.add_(tg.tensor([0.5, 1.5], dtype=tg.float64))
    assert x.dtype == tg.float32 and x.tolist() == [0.5, 1.5]


@pytest.mark.point(41)
def test_in_place_on_an_expanded_tensor_raises() -> None:
    message = "(?i)more than one element of the written-to tensor refers to a single memory location"
    with pytest.raises(RuntimeError, match=message):
        tg.zeros(1).expand(3).add_(1.0)


OVERLAPPING_WRITES: dict[str, Callable[[tg.Tensor], object]] = {
    "copy_": lambda t: t.copy_(tg.ones(2, 3)),
    "copy_ of a number": lambda t: t.copy_(tg.tensor(5.0)),
    "assignment": lambda t: t.__setitem__((slice(None), 0), tg.ones(2)),
    "index assignment": lambda t: t.__setitem__(tg.tensor([0]), 5.0),
    "assignment of a number": lambda t: t.__setitem__(slice(None), 2.0),
    "fill_ with a tensor": lambda t: t.fill_(tg.tensor(2.0)),
    "tracked fill_": lambda t: t.fill_(leaf(2.0)),
    "part of the copies": lambda t: t[:, :1].mul_(2.0),
}


@pytest.mark.point(41)
@each("name", OVERLAPPING_WRITES)
def test_elements_that_share_memory_are_not_written(name: str) -> None:
    base = tg.zeros(3)
    with pytest.raises(RuntimeError, match="(?i)more than one element of the written-to tensor refers to a single memory"):
        OVERLAPPING_WRITES[name](base.expand(2, 3))
    assert base.tolist() == [0.0, 0.0, 0.0]


@each(("fill", "value"), [(lambda t: t.fill_(2.0), 2.0), (lambda t: t.zero_(), 0.0)], ids=["fill_", "zero_"])
def test_elements_that_share_memory_are_filled_with_one_number(fill: Callable[[tg.Tensor], object], value: float) -> None:
    base = tg.ones(3)
    fill(base.expand(2, 3))
    assert base.tolist() == [value] * 3


ALONE: dict[str, Callable[[tg.Tensor], tg.Tensor]] = {
    "size one": lambda t: t.expand(1, 3),
    "one copy of several": lambda t: t.expand(2, 3)[1],
    "a slice of one copy": lambda t: t.expand(2, 3)[:1],
}


@each("name", ALONE)
def test_expanded_tensor_whose_elements_share_no_memory_is_written(name: str) -> None:
    x = leaf([1.0, 2.0, 3.0])
    y = x * 1.0
    ALONE[name](y).mul_(4.0)
    y.sum().backward()
    assert y.tolist() == [4.0, 8.0, 12.0] and x.grad.tolist() == [4.0, 4.0, 4.0]


@each("shape", [(2, 0), (0, 1)], ids=str)
def test_empty_expanded_tensor_is_written(shape: tuple[int, ...]) -> None:
    expanded = tg.zeros(1, shape[1]).expand(*shape)
    assert tuple(expanded.add_(1.0).shape) == shape


@pytest.mark.point(33)
def test_version_starts_at_zero() -> None:
    assert leaf([1.0])._version == 0


@pytest.mark.point(33)
def test_version_grows_with_item_assignment() -> None:
    x = tg.zeros(3)
    x[0] = 1.0
    assert x._version == 1


@pytest.mark.point(32, 33)
def test_version_grows_under_no_grad() -> None:
    x = leaf([1.0])
    with tg.no_grad():
        x.add_(1.0)
    assert x._version == 1


@pytest.mark.point(33)
def test_version_is_shared_with_a_view() -> None:
    x = tg.zeros(3)
    view = x[:2]
    view.add_(1.0)
    assert x._version == 1


@pytest.mark.point(33)
def test_version_is_shared_with_a_detached_tensor() -> None:
    x = leaf([1.0])
    x.detach().add_(1.0)
    assert x._version == 1


@pytest.mark.point(33)
def test_version_is_not_shared_with_data() -> None:
    x = leaf([1.0])
    x.data.add_(1.0)
    assert x._version == 0


@pytest.mark.point(33)
def test_version_is_not_shared_with_a_clone() -> None:
    x = tg.zeros(1)
    x.clone().add_(1.0)
    assert x._version == 0


@pytest.mark.point(32)
def test_leaf_may_be_written_under_no_grad() -> None:
    x = leaf([1.0])
    with tg.no_grad():
        x.add_(1.0)
    assert x.is_leaf and x.requires_grad and x.tolist() == [2.0]


@pytest.mark.point(32)
def test_scalar_leaf_may_be_written_under_no_grad() -> None:
    x = leaf(1.0)
    with tg.no_grad():
        x -= 0.25
    assert x.is_leaf and x.requires_grad and x.item() == 0.75


def test_scalar_leaf_written_under_no_grad_is_differentiated_at_its_new_value() -> None:
    x = leaf(1.0)
    (x * x).backward()
    with tg.no_grad():
        x.copy_(tg.tensor(5.0))
    assert_values(grad(x * x, x)[0], 10.0)


def test_leaf_may_be_written_through_data() -> None:
    x = leaf([1.0, 2.0])
    x.data[0] = 5.0
    assert x.tolist() == [5.0, 2.0]


def test_scalar_leaf_may_be_written_through_data() -> None:
    x = leaf(1.0)
    x.data.mul_(3.0)
    assert x.item() == 3.0


def test_data_may_be_replaced() -> None:
    x = leaf([1.0, 2.0])
    x.data = tg.tensor([3.0, 4.0])
    assert_values(grad((x * x).sum(), x)[0], [6.0, 8.0])


def test_data_is_untracked() -> None:
    assert leaf([1.0]).data.requires_grad is False


@pytest.mark.point(32)
def test_item_assignment_into_a_tracked_leaf_raises() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="(?i)a view of a leaf Variable that requires grad is being used in an in-place"):
        x[0] = 1.0


@pytest.mark.point(32)
def test_writing_a_view_of_a_tracked_leaf_raises() -> None:
    with pytest.raises(RuntimeError, match="(?i)a view of a leaf Variable that requires grad is being used in an in-place"):
        leaf([1.0, 2.0])[:1].add_(1.0)


@pytest.mark.point(32)
def test_writing_a_view_made_before_the_leaf_was_tracked_raises() -> None:
    x = tg.tensor([1.0, 2.0])
    view = x[:1]
    x.requires_grad_()
    with pytest.raises(RuntimeError, match="(?i)a view of a leaf Variable that requires grad is being used in an in-place"):
        view.add_(1.0)


@pytest.mark.point(42)
def test_filling_with_a_number_has_one_operand() -> None:
    y = leaf([1.0, 2.0]) * 1.0
    y.fill_(2.5)
    assert parents(y.grad_fn) == ["MulBackward0"]


@pytest.mark.point(32)
@each("made", ["before", "inside"])
def test_view_of_a_leaf_may_be_written_under_no_grad(made: str) -> None:
    x = tg.tensor([1.0, 2.0])
    before = x[:1]
    x.requires_grad_()
    with tg.no_grad():
        (before if made == "before" else x[:1]).add_(1.0)
    assert (x.tolist(), x._version, x.is_leaf, x.requires_grad) == ([2.0, 2.0], 1, True, True)


@pytest.mark.point(32)
def test_item_assignment_into_a_leaf_under_no_grad() -> None:
    x = leaf([1.0, 2.0])
    with tg.no_grad():
        x[0] = 9.0
    assert x.tolist() == [9.0, 2.0] and x.is_leaf


def test_detach_in_place_makes_a_leaf() -> None:
    y = leaf([1.0]) * 2
    y.detach_()
    assert y.is_leaf and not y.requires_grad


def test_view_taken_before_its_base_was_detached_in_place_stays_tracked() -> None:
    x = leaf([1.0, 2.0])
    y = x * 3.0
    view = y[:1]
    y.detach_()
    view.sum().backward()
    assert_values(x.grad, [3.0, 0.0])


def test_view_of_a_tensor_detached_in_place_is_untracked_once_that_was_written() -> None:
    y = leaf([1.0, 2.0]) * 3.0
    view = y[:1]
    y.detach_()
    y.mul_(2.0)
    assert not view.requires_grad


@pytest.mark.point(40)
def test_detach_in_place_of_a_view_raises() -> None:
    view = (leaf([1.0, 2.0]) * 2)[:1]
    with pytest.raises(RuntimeError, match=r"(?i)can't detach views in-place\. use detach\(\) instead"):
        view.detach_()


def test_writing_does_not_change_a_result_made_before() -> None:
    y = leaf([1.0]) + 1.0
    z = y + 1.0
    y.add_(10.0)
    assert z.tolist() == [3.0]


def test_old_value_and_new_value_both_pass_their_gradients() -> None:
    x = leaf([2.0])
    y = x + 0.0
    z = y + 0.0
    y.mul_(3.0)
    (y * 10 + z).backward()
    assert_values(x.grad, [31.0])


def test_retained_gradient_follows_the_newest_value() -> None:
    y = leaf([2.0]) * 1.0
    y.retain_grad()
    y.mul_(3.0)
    (y * 5.0).backward()
    assert_values(y.grad, [5.0])


def test_in_place_operand_may_be_the_target_itself() -> None:
    x = leaf([3.0])
    y = x + 0.0
    y.add_(y)
    y.backward()
    assert_values(x.grad, [2.0])


def test_in_place_results_are_differentiated_twice() -> None:
    x = leaf([2.0])
    y = x**2
    y *= x
    (g,) = grad(y, x, create_graph=True)
    assert_values(grad(g, x)[0], [12.0])


@pytest.mark.point(43)
def test_out_argument_with_a_tracked_operand_raises() -> None:
    with pytest.raises(RuntimeError, match=r"(?i)functions with out=\.\.\. arguments don't support automatic differentiation"):
        tg.add(leaf([1.0]), 1.0, out=tg.zeros(1))


POINTS = tg.tensor([[1.5, 2.5, 3.5], [4.5, 5.5, 6.5]])
INDICES = tg.tensor([[0, 1, 0], [1, 0, 1]])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("ldexp", (tg.tensor([1, -2, 3]),)),
        ("renorm", (2.0, 0, 5.0)),
        ("mvlgamma", (2,)),
        ("scatter_reduce", (0, INDICES, POINTS + 1.0, "prod")),
        ("index_reduce", (0, tg.tensor([1, 1]), POINTS + 1.0, "prod")),
    ],
)
def test_composed_operation_in_place_has_value_and_gradients_of_the_copy(name: str, arguments: tuple[object, ...]) -> None:
    found = []
    for form in (name, f"{name}_"):
        x = POINTS.clone().requires_grad_()
        y = x * 1.5
        z = getattr(y, form)(*arguments)
        assert (z is y) == form.endswith("_")
        (first,) = tg.autograd.grad((z * z).sum(), x, create_graph=True)
        (second,) = tg.autograd.grad((first * first).sum(), x)
        found.append([z.tolist(), first.tolist(), second.tolist()])
    assert found[0] == found[1]
