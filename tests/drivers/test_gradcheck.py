"""gradcheck and gradgradcheck find wrong derivatives, and leave their inputs as they were."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import leaf

import tapegrad as tg
from tapegrad.autograd import gradcheck, gradgradcheck
from tapegrad.autograd.gradcheck import GradcheckError
from tapegrad.recording.structural import Structural, apply
from tapegrad.tensors.tensor import array_of

over = pytest.mark.parametrize
MODES = over("fast_mode", [False, True])


def operation(vjp: Callable[[tg.Tensor, tg.Tensor], tg.Tensor]) -> Callable[[tg.Tensor], tg.Tensor]:
    """Squaring, with a derivative of one's own: ``vjp(g, x)``."""
    op = Structural("SquareByHandBackward0", ((0,),), lambda g, ctx: (vjp(g, ctx.inputs[0]),))
    return lambda x: apply(op, (x,), array_of(x) ** 2, ())


wrong = operation(lambda g, x: g * x)


def smooth(x: tg.Tensor, y: tg.Tensor) -> tuple[tg.Tensor, tg.Tensor]:
    return (x.unsqueeze(1) * y).sin().sum(0), x.exp() * y.prod()


@pytest.mark.point(93)
@MODES
def test_right_derivatives_pass(fast_mode: bool) -> None:
    assert gradcheck(smooth, (leaf([0.5, 1.5]), leaf([0.3, -0.7, 2.0])), fast_mode=fast_mode) is True


@MODES
def test_right_second_derivatives_pass(fast_mode: bool) -> None:
    assert gradgradcheck(smooth, (leaf([0.5, 1.5]), leaf([0.3, -0.7, 2.0])), fast_mode=fast_mode) is True


@MODES
def test_scalars_pass(fast_mode: bool) -> None:
    assert gradcheck(lambda x: x * x * 3.0, leaf(0.5), fast_mode=fast_mode)


@pytest.mark.point(93)
@MODES
def test_wrong_derivatives_are_found(fast_mode: bool) -> None:
    with pytest.raises(
        GradcheckError, match="Jacobian mismatch for output 1 with respect to input 0,\nnumerical:(.|\n)*analytical:"
    ):
        gradcheck(lambda x: (x.sin(), wrong(x)), leaf([1.0, 2.0]), fast_mode=fast_mode)


def test_message_shows_both_jacobians() -> None:
    with pytest.raises(GradcheckError) as found:
        gradcheck(wrong, leaf([1.0, 2.0]))
    assert repr(tg.tensor([[1.0, 0.0], [0.0, 2.0]])) in str(found.value)
    assert "numerical:tensor([[2.0000, 0.0000],\n        [0.0000, 4.0000]])" in str(found.value)


@MODES
def test_one_wrong_element_among_many_is_found(fast_mode: bool) -> None:
    spoiled = np.ones(50)
    spoiled[17] = 1.5
    function = operation(lambda g, x: g * x * tg.tensor(2.0 * spoiled))
    assert not gradcheck(function, leaf(np.linspace(1.0, 2.0, 50)), raise_exception=False, fast_mode=fast_mode)


def test_wrong_second_derivatives_are_found() -> None:
    function = operation(lambda g, x: 2.0 * g * x.detach())
    x = leaf([1.0, 2.0])
    assert gradcheck(function, x)
    assert gradgradcheck(function, x, raise_exception=False) is False


@pytest.mark.point(93)
def test_error_is_a_runtime_error() -> None:
    assert issubclass(GradcheckError, RuntimeError)


@pytest.mark.point(93)
def test_failure_is_false_without_exceptions() -> None:
    assert gradcheck(wrong, leaf([1.0]), raise_exception=False) is False


def test_tolerances_are_used() -> None:
    off = operation(lambda g, x: g * x * 2.01)
    assert not gradcheck(off, leaf([1.0]), raise_exception=False)
    assert gradcheck(off, leaf([1.0]), rtol=0.02)
    assert gradcheck(off, leaf([1.0]), atol=0.02)


@pytest.mark.point(93)
@over("check", [gradcheck, gradgradcheck])
def test_some_input_must_be_tracked(check: Any) -> None:
    with pytest.raises(ValueError, match="gradcheck expects at least one input tensor to require gradient"):
        check(tg.exp, tg.ones(2), raise_exception=False)


@pytest.mark.point(93)
def test_float32_warns() -> None:
    x = tg.tensor([1.0], dtype=tg.float32, requires_grad=True)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision floating point"):
        assert gradcheck(lambda x: x * 2.0, x, eps=1e-2, atol=1e-2)


@pytest.mark.point(93)
def test_expanded_input_is_refused() -> None:
    x = tg.ones(1).expand(3).requires_grad_()
    with pytest.raises(RuntimeError, match="0th input has a dimension with stride 0"):
        gradcheck(lambda x: x * 2.0, x)


def changing() -> Callable[[tg.Tensor], tg.Tensor]:
    """A function whose backward gives something else each time."""
    calls: list[None] = []

    def vjp(g: tg.Tensor, x: tg.Tensor) -> tg.Tensor:
        calls.append(None)
        return g * x * (2.0 + 1e-7 * len(calls))

    return operation(vjp)


@pytest.mark.point(93)
@MODES
def test_changing_backward_is_found(fast_mode: bool) -> None:
    with pytest.raises(GradcheckError, match="(?i)backward is not reentrant"):
        gradcheck(changing(), leaf([1.0, 2.0]), fast_mode=fast_mode)


def test_changing_backward_is_tolerated_if_asked() -> None:
    assert gradcheck(changing(), leaf([1.0, 2.0]), nondet_tol=1e-3)


@pytest.mark.point(93)
def test_untracked_output_that_varies_is_found() -> None:
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: x.detach() * 2.0, leaf([1.0]))


def test_untracked_output_that_does_not_vary_passes() -> None:
    assert gradcheck(lambda x: tg.ones(2), leaf([1.0]))


def test_integer_outputs_are_left_out() -> None:
    assert gradcheck(lambda x: x.max(0), leaf([1.0, 2.0]))


def test_inputs_that_are_no_tensors_are_handed_on() -> None:
    assert gradcheck(lambda x, power: x**power, (leaf([1.0, 2.0]), 3))


def test_output_that_is_no_tensor_is_named() -> None:
    with pytest.raises(TypeError, match="expects func to return Tensors, but output 1 has type int"):
        gradcheck(lambda x: (x, 3), leaf([1.0]))


def test_empty_inputs_pass() -> None:
    assert gradcheck(lambda x, y: x.sum() + y, (leaf(np.zeros(0)), leaf([1.0])))


def test_what_the_function_reaches_otherwise_moves_too() -> None:
    weight = leaf([1.0, 2.0])
    assert gradcheck(lambda _: weight.exp(), weight)


def test_result_of_an_operation_may_be_an_input() -> None:
    assert gradcheck(tg.sin, leaf([1.0, 2.0]) * 2.0)


@pytest.mark.point(93)
@MODES
@over("start", [0.7, [0.7, 0.1]])
def test_inputs_are_left_alone(start: Any, fast_mode: bool) -> None:
    x = leaf(start)
    x.grad = kept = tg.ones_like(x)
    before = x.tolist()
    gradcheck(lambda x: x.sin(), x, fast_mode=fast_mode)
    gradgradcheck(lambda x: x.sin(), x, fast_mode=fast_mode)
    assert x.tolist() == before and x.requires_grad and x.is_leaf and x._version == 0
    assert x.grad is kept and kept.tolist() == tg.ones_like(x).tolist()


def test_inputs_are_restored_after_an_exception() -> None:
    x, calls = leaf([0.7, 0.1]), []

    def fails(x: tg.Tensor) -> tg.Tensor:
        calls.append(None)
        if len(calls) > 2:
            raise KeyError("by the user")
        return x.sin()

    with pytest.raises(KeyError, match="by the user"):
        gradcheck(fails, x)
    assert x.tolist() == [0.7, 0.1]


def test_graphs_recorded_before_stay_usable() -> None:
    x = leaf([2.0])
    y = x * x
    gradcheck(tg.sin, x)
    y.sum().backward()
    assert x.grad.tolist() == [4.0]


def test_works_under_no_grad() -> None:
    with tg.no_grad():
        assert gradcheck(tg.sin, leaf([1.0]))


def test_seeds_may_be_given() -> None:
    seed = leaf([0.5, -1.0])
    assert gradgradcheck(tg.sin, leaf([1.0, 2.0]), seed)
    assert gradgradcheck(tg.sin, leaf([1.0, 2.0]), (tg.ones(2),))


def test_random_seeds_may_have_gaps() -> None:
    seen = []

    def vjp(g: tg.Tensor, x: tg.Tensor) -> tg.Tensor:
        seen.append(g.is_contiguous())
        return 2.0 * g * x

    assert gradgradcheck(operation(vjp), leaf([1.0, 2.0]))
    assert False not in seen
    assert gradgradcheck(operation(vjp), leaf([1.0, 2.0]), gen_non_contig_grad_outputs=True)
    assert False in seen


def test_random_numbers_are_not_used_up() -> None:
    gradgradcheck(tg.sin, leaf([1.0]))
    after = tg.rand(3).tolist()
    tg.manual_seed(0)
    assert tg.rand(3).tolist() == after


def test_function_without_second_derivative_passes() -> None:
    assert gradgradcheck(lambda x: x * 2.0, leaf([1.0, 2.0]))


@over("option", ["check_forward_ad", "check_batched_grad", "check_batched_forward_grad"])
def test_checks_that_do_not_exist_are_refused(option: str) -> None:
    with pytest.raises(NotImplementedError, match=option):
        gradcheck(tg.sin, leaf([1.0]), **{option: True})


def test_something_must_be_checked() -> None:
    with pytest.raises(AssertionError, match="Expected at least one of"):
        gradcheck(tg.sin, leaf([1.0]), check_backward_ad=False)
    with pytest.raises(AssertionError, match="Expected at least one of"):
        gradgradcheck(tg.sin, leaf([1.0]), check_rev_over_rev=False)
    with pytest.raises(NotImplementedError, match="check_fwd_over_rev"):
        gradgradcheck(tg.sin, leaf([1.0]), check_fwd_over_rev=True)


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    ("what", "other"),
    [("shape", lambda x: tg.cat([x, x])), ("dtype", lambda x: x.float()), ("shape", lambda x: x[None])],
    ids=["size", "dtype", "dimensions"],
)
def test_output_that_is_of_another_kind_beside_the_point_is_refused(what: str, other: Any, fast_mode: bool) -> None:
    x = tg.ones(1, dtype=tg.float64, requires_grad=True)
    with pytest.raises(AssertionError, match=f"outputs with the same {what} when inputs are perturbed"):
        tg.autograd.gradcheck(lambda x: other(x) if x[0] >= 1.0 else x, (x,), fast_mode=fast_mode)


def test_dtypes_of_gradients_are_checked() -> None:
    x = leaf([1.0])
    y = tg.tensor([2.0], dtype=tg.float32, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert gradcheck(lambda x, y: x * y, (x, y), eps=1e-3, atol=1e-2, check_grad_dtypes=True)


@over("function", [lambda x: x.exp() * x[0], lambda x: x * x.view(2, 1)])
def test_inputs_may_be_results(function: Any) -> None:
    x = leaf([1.0, 2.0])
    assert gradcheck(function, x * 2.0) and gradcheck(lambda x, y: function(x) * y, (x, leaf([3.0, 1.0]) * 0.5))


@MODES
@over("part", [lambda x: x, lambda x: x.reshape(4), lambda x: x.T, lambda x: x[0], lambda x: x.unbind(1)])
def test_outputs_may_be_views_of_the_input(part: Callable[[tg.Tensor], Any], fast_mode: bool) -> None:
    assert gradcheck(part, leaf([[1.0, 2.0], [3.0, 4.0]]), fast_mode=fast_mode)


def test_inputs_may_be_empty() -> None:
    assert gradcheck(lambda x: x * 2.0, tg.empty(4, 0, requires_grad=True))
