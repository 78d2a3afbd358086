"""grad_fn, next_functions and the node names: the graph that can be looked at."""

import gc
import re
import weakref
from collections.abc import Callable

import pytest
from engine_fixtures import leaf, node_name, parents

import tapegrad as tg


@pytest.mark.point(2)
def test_two_entries_for_two_tracked_operands() -> None:
    y = leaf([1.0]) * leaf([2.0])
    assert parents(y.grad_fn) == ["torch::autograd::AccumulateGrad"] * 2 or parents(y.grad_fn) == ["AccumulateGrad"] * 2


@pytest.mark.point(2)
def test_next_functions_is_a_tuple_of_pairs() -> None:
    x = leaf([1.0])
    y = x * 1.0 + x * 1.0
    assert isinstance(y.grad_fn.next_functions, tuple)
    assert [number for _, number in y.grad_fn.next_functions] == [0, 0]


@pytest.mark.point(2)
@pytest.mark.parametrize("make", [lambda x: x * 2, lambda x: x + 1, lambda x: x - 1.5, lambda x: x * tg.tensor([2.0])])
def test_untracked_operands_and_numbers_give_none(make: Callable[[tg.Tensor], tg.Tensor]) -> None:
    pairs = make(leaf([1.0])).grad_fn.next_functions
    assert (len(pairs), pairs[1]) == (2, (None, 0))


@pytest.mark.point(2)
def test_untracked_first_operand_gives_none() -> None:
    y = tg.tensor([2.0]) * leaf([1.0])
    assert y.grad_fn.next_functions[0] == (None, 0)


def test_next_functions_walk_to_the_leaf() -> None:
    x = leaf([1.0])
    node = (x.exp().sin() + 1.0).grad_fn
    names = []
    while node is not None:
        names.append(node.name().split("::")[-1])
        node = node.next_functions[0][0] if node.next_functions else None
    assert names == ["AddBackward0", "SinBackward0", "ExpBackward0", "AccumulateGrad"]


@pytest.mark.point(3)
def test_leaf_s_node_names_its_leaf() -> None:
    x = leaf([1.0])
    node = (x * 2).grad_fn.next_functions[0][0]
    assert node.variable is x


@pytest.mark.point(3)
def test_leaf_s_node_reads_from_nothing() -> None:
    assert (leaf([1.0]) * 2).grad_fn.next_functions[0][0].next_functions == ()


@pytest.mark.point(3)
def test_leaf_s_node_keeps_its_leaf() -> None:
    node = (leaf([1.0]) * 2).grad_fn.next_functions[0][0]
    gc.collect()
    assert node.variable.tolist() == [1.0]


@pytest.mark.point(3)
def test_leaf_does_not_keep_its_node() -> None:
    x = leaf([1.0])
    node = weakref.ref((x * 2).grad_fn.next_functions[0][0])
    assert node() is None and x.is_leaf


@pytest.mark.point(3)
def test_leaf_has_one_node_for_all_its_uses() -> None:
    x = leaf([1.0])
    first, second = (x * 2).grad_fn, (x + 1).grad_fn
    assert first.next_functions[0][0] is second.next_functions[0][0]


@pytest.mark.point(3)
def test_leaf_used_twice_in_one_operation_has_one_node() -> None:
    x = leaf([1.0])
    pairs = (x * x).grad_fn.next_functions
    assert pairs[0][0] is pairs[1][0]


@pytest.mark.point(4)
@pytest.mark.parametrize("start", [1.5, [1.5]])
def test_grad_fn_is_the_same_object_while_held(start: float | list[float]) -> None:
    y = leaf(start) * 2
    node = y.grad_fn
    assert y.grad_fn is node


def test_next_functions_lead_to_the_operand_s_grad_fn() -> None:
    y = leaf([1.5]) * 2
    node = y.grad_fn
    assert (y + 1).grad_fn.next_functions[0][0] is node


def test_grad_fn_of_different_results_differ() -> None:
    x = leaf([1.5])
    first, second = x * 2, x * 2
    assert first.grad_fn is not second.grad_fn


@pytest.mark.point(4)
def test_outputs_of_one_operation_share_their_node() -> None:
    first, second = (leaf([1.0, 2.0]) * 1.0).split(1)
    node = first.grad_fn
    assert second.grad_fn is node


@pytest.mark.point(4)
def test_outputs_of_one_operation_are_numbered() -> None:
    outputs = leaf([1.0, 2.0, 3.0]).unbind(0)
    assert [output.output_nr for output in outputs] == [0, 1, 2]


@pytest.mark.point(2)
def test_output_number_appears_in_next_functions() -> None:
    _, second = leaf([1.0, 2.0]).unbind(0)
    assert (second * 2).grad_fn.next_functions[0][1] == 1


def test_output_number_of_an_ordinary_result_is_zero() -> None:
    assert (leaf([1.0]) * 2).output_nr == 0


def test_node_outlives_its_tensor() -> None:
    x = leaf([1.0])
    y = x.exp() * 2
    node = y.grad_fn
    del y
    assert node.name() == "MulBackward0" and parents(node) == ["ExpBackward0", None]


def test_node_held_through_other_work_stays_the_same_row() -> None:
    x = leaf([1.0])
    node = x.exp().grad_fn
    for _ in range(5000):
        (x * 2 + 1).backward()
    assert node.name() == "ExpBackward0" and node.next_functions[0][0].variable is x


def test_result_of_a_dropped_chain_still_shows_its_parents() -> None:
    x = leaf([1.0])
    y = (x.exp().sin() + 1.0).log()
    for _ in range(5000):
        _ = x * 2
    assert parents(y.grad_fn) == ["AddBackward0"] and parents(y.grad_fn.next_functions[0][0]) == ["SinBackward0", None]


@pytest.mark.point(90)
@pytest.mark.parametrize("start", [1.5, [1.5]])
def test_nodes_print_their_name_and_address(start: float | list[float]) -> None:
    assert re.fullmatch(r"<MulBackward0 object at 0x[0-9a-fA-F]+>", repr((leaf(start) * 2).grad_fn))


def test_leaf_s_node_prints_its_name() -> None:
    node = (leaf([1.0]) * 2).grad_fn.next_functions[0][0]
    assert re.fullmatch(r"<AccumulateGrad object at 0x[0-9a-fA-F]+>", repr(node))


@pytest.mark.point(90)
def test_calling_a_node_with_a_wrong_count_raises() -> None:
    with pytest.raises(TypeError, match="(?i)expected 1 arguments?, got 0 instead"):
        (leaf([1.0]) * 2).grad_fn()


@pytest.mark.point(84)
def test_result_prints_the_name_of_its_node() -> None:
    assert repr(leaf([2.0]) * 3) == "tensor([6.], grad_fn=<MulBackward0>)"


@pytest.mark.point(84)
def test_scalar_result_prints_the_name_of_its_node() -> None:
    assert repr(leaf(2.0) * 3) == "tensor(6., grad_fn=<MulBackward0>)"


@pytest.mark.point(84)
def test_leaf_prints_that_it_is_tracked() -> None:
    assert repr(leaf([2.0])) == "tensor([2.], requires_grad=True)"


def x1() -> tg.Tensor:
    return leaf([0.5, 0.75])


def x2() -> tg.Tensor:
    return leaf([[4.0, 1.0], [1.0, 3.0]])


def x3() -> tg.Tensor:
    return leaf([[[1.0, 2.0], [3.0, 4.0]]])


NAMES: dict[str, tuple[Callable[[], tg.Tensor], str]] = {
    "x + y": (lambda: x1() + x1(), "AddBackward0"),
    "x + 1": (lambda: x1() + 1, "AddBackward0"),
    "1 + x": (lambda: 1 + x1(), "AddBackward0"),
    "x - y": (lambda: x1() - x1(), "SubBackward0"),
    "x - 1": (lambda: x1() - 1, "SubBackward0"),
    "1 - x": (lambda: 1 - x1(), "RsubBackward1"),
    "x * y": (lambda: x1() * x1(), "MulBackward0"),
    "2 * x": (lambda: 2 * x1(), "MulBackward0"),
    "x / y": (lambda: x1() / x1(), "DivBackward0"),
    "x / 2": (lambda: x1() / 2, "DivBackward0"),
    "2 / x": (lambda: 2 / x1(), "MulBackward0"),
    "-x": (lambda: -x1(), "NegBackward0"),
    "lerp by a number": (lambda: tg.lerp(x1(), x1(), 0.5), "LerpBackward0"),
    "lerp by a tensor": (lambda: tg.lerp(x1(), x1(), x1()), "LerpBackward1"),
    "lerp_ by a tensor": (lambda: x1().exp().lerp_(x1(), x1()), "LerpBackward1"),
    "glu": (lambda: tg.nn.functional.glu(x1()), "GluBackward0"),
    "glu of nothing": (lambda: tg.nn.functional.glu(x1()[:0]), "GluBackward0"),
    "diff": (lambda: tg.diff(x1(), 5), "SubBackward0"),
    "diff not taken": (lambda: tg.diff(x1(), 0), "torch::autograd::CopyBackwards"),
    "fill_diagonal_": (lambda: tg.outer(x1(), x1()).fill_diagonal_(1.0), "torch::autograd::CopySlices"),
    "x ** 3": (lambda: x1() ** 3, "PowBackward0"),
    "x ** y": (lambda: x1() ** x1(), "PowBackward1"),
    "2 ** x": (lambda: 2 ** x1(), "PowBackward2"),
    "square": (lambda: x1().square(), "PowBackward0"),
    "abs": (lambda: x1().abs(), "AbsBackward0"),
    "exp": (lambda: x1().exp(), "ExpBackward0"),
    "log": (lambda: x1().log(), "LogBackward0"),
    "log1p": (lambda: x1().log1p(), "Log1PBackward0"),
    "expm1": (lambda: x1().expm1(), "Expm1Backward0"),
    "sqrt": (lambda: x1().sqrt(), "SqrtBackward0"),
    "rsqrt": (lambda: x1().rsqrt(), "RsqrtBackward0"),
    "reciprocal": (lambda: x1().reciprocal(), "ReciprocalBackward0"),
    "sin": (lambda: x1().sin(), "SinBackward0"),
    "cos": (lambda: x1().cos(), "CosBackward0"),
    "tanh": (lambda: x1().tanh(), "TanhBackward0"),
    "sigmoid": (lambda: x1().sigmoid(), "SigmoidBackward0"),
    "relu": (lambda: x1().relu(), "ReluBackward0"),
    "erf": (lambda: x1().erf(), "ErfBackward0"),
    "lgamma": (lambda: x1().lgamma(), "LgammaBackward0"),
    "atan2": (lambda: tg.atan2(x1(), x1()), "Atan2Backward0"),
    "maximum": (lambda: tg.maximum(x1(), x1()), "MaximumBackward0"),
    "minimum": (lambda: tg.minimum(x1(), x1()), "MinimumBackward0"),
    "where": (lambda: tg.where(x1() > 0.6, x1(), 0.0), "WhereBackward0"),
    "clamp by numbers": (lambda: x1().clamp(0.0, 1.0), "ClampBackward1"),
    "clamp by tensors": (lambda: x1().clamp(tg.zeros(2), tg.ones(2)), "ClampBackward0"),
    "sum": (lambda: x2().sum(), "SumBackward0"),
    "sum of an axis": (lambda: x2().sum(1), "SumBackward1"),
    "mean": (lambda: x2().mean(), "MeanBackward0"),
    "mean of an axis": (lambda: x2().mean(1), "MeanBackward1"),
    "max": (lambda: x2().max(), "MaxBackward1"),
    "max of an axis": (lambda: x2().max(1)[0], "MaxBackward0"),
    "min": (lambda: x2().min(), "MinBackward1"),
    "min of an axis": (lambda: x2().min(1)[0], "MinBackward0"),
    "prod": (lambda: x2().prod(), "ProdBackward0"),
    "prod of an axis": (lambda: x2().prod(1), "ProdBackward1"),
    "norm": (lambda: x2().norm(), "LinalgVectorNormBackward0"),
    "var": (lambda: x2().var(), "VarBackward0"),
    "std": (lambda: x2().std(), "StdBackward0"),
    "amax": (lambda: x2().amax(), "AmaxBackward0"),
    "logsumexp": (lambda: x2().logsumexp(1), "LogsumexpBackward0"),
    "softmax": (lambda: x2().softmax(1), "SoftmaxBackward0"),
    "log_softmax": (lambda: x2().log_softmax(1), "LogSoftmaxBackward0"),
    "cumsum": (lambda: x2().cumsum(1), "CumsumBackward0"),
    "cumprod": (lambda: x2().cumprod(1), "CumprodBackward0"),
    "vector @ vector": (lambda: x1() @ x1(), "DotBackward0"),
    "matrix @ vector": (lambda: x2() @ x1(), "MvBackward0"),
    "matrix @ matrix": (lambda: x2() @ x2(), "MmBackward0"),
    "vector @ matrix": (lambda: x1() @ x2(), "SqueezeBackward4"),
    "batched @": (lambda: x3() @ x3(), "UnsafeViewBackward0"),
    "mm": (lambda: x2().mm(x2()), "MmBackward0"),
    "mv": (lambda: x2().mv(x1()), "MvBackward0"),
    "dot": (lambda: x1().dot(x1()), "DotBackward0"),
    "bmm": (lambda: tg.bmm(x3(), x3()), "BmmBackward0"),
    "linear with bias": (lambda: tg.nn.Linear(2, 3)(x2()), "AddmmBackward0"),
    "linear without bias": (lambda: tg.nn.Linear(2, 3, bias=False)(x2()), "MmBackward0"),
    "linear of rank three": (lambda: tg.nn.Linear(2, 3)(x3()), "ViewBackward0"),
    "t": (lambda: x2().t(), "TBackward0"),
    "T": (lambda: x2().T, "PermuteBackward0"),
    "mT": (lambda: x2().mT, "TransposeBackward0"),
    "transpose": (lambda: x2().transpose(0, 1), "TransposeBackward0"),
    "permute": (lambda: x2().permute(1, 0), "PermuteBackward0"),
    "reshape": (lambda: x2().reshape(4), "ViewBackward0"),
    "view": (lambda: x2().view(4), "ViewBackward0"),
    "reshape of strided": (lambda: x2().t().reshape(4), "UnsafeViewBackward0"),
    "flatten of strided": (lambda: x2().t().flatten(), "UnsafeViewBackward0"),
    "flatten": (lambda: x2().flatten(), "ViewBackward0"),
    "squeeze": (lambda: x3().squeeze(0), "SqueezeBackward1"),
    "unsqueeze": (lambda: x2().unsqueeze(0), "UnsqueezeBackward0"),
    "expand": (lambda: x3().expand(2, 2, 2), "ExpandBackward0"),
    "contiguous": (lambda: x2().t().contiguous(), "CloneBackward0"),
    "clone": (lambda: x2().clone(), "CloneBackward0"),
    "float": (lambda: x2().float(), "ToCopyBackward0"),
    "double": (lambda: x2().float().double(), "ToCopyBackward0"),
    "to": (lambda: x2().to(tg.float32), "ToCopyBackward0"),
    "x[0]": (lambda: x2()[0], "SelectBackward0"),
    "x[1:]": (lambda: x2()[1:], "SliceBackward0"),
    "x[None]": (lambda: x2()[None], "UnsqueezeBackward0"),
    "x[...]": (lambda: x2()[...], "AliasBackward0"),
    "mask": (lambda: x1()[tg.tensor([True, False])], "IndexBackward0"),
    "integers": (lambda: x1()[tg.tensor([1, 1])], "IndexBackward0"),
    "split": (lambda: x2().split(1)[0], "SplitBackward0"),
    "chunk": (lambda: x2().chunk(2)[0], "SplitBackward0"),
    "split into sizes": (lambda: x2().split([1, 1])[0], "SplitWithSizesBackward0"),
    "unbind": (lambda: x2().unbind(0)[0], "UnbindBackward0"),
    "iteration": (lambda: next(iter(x2())), "UnbindBackward0"),
    "cat": (lambda: tg.cat([x1(), x1()]), "CatBackward0"),
    "stack": (lambda: tg.stack([x1(), x1()]), "StackBackward0"),
}


@pytest.mark.point(86, 87, 88, 89)
@pytest.mark.parametrize("operation", NAMES)
def test_node_name(operation: str) -> None:
    make, name = NAMES[operation]
    assert node_name(make()) == name


@pytest.mark.point(89)
@pytest.mark.filterwarnings("ignore:.*reference cycle:UserWarning")
def test_gradient_of_a_recorded_pass_prints_that_it_is_a_copy() -> None:
    x = x1()
    (x * x).sum().backward(create_graph=True)
    assert "grad_fn=<CopyBackwards>" in repr(x.grad)


@pytest.mark.point(86)
def test_quotient_of_a_number_stands_on_a_reciprocal() -> None:
    assert parents((2 / x1()).grad_fn)[0] == "ReciprocalBackward0"


def test_untracked_result_has_no_node() -> None:
    assert (tg.tensor([1.0]) + 1).grad_fn is None


def test_walk_over_a_diamond_meets_the_shared_node_once() -> None:
    shared = leaf([2.0]).exp()
    y = shared * 2 + shared * 3
    met: set[int] = set()
    held = [y.grad_fn]
    for node in held:
        for parent, _ in node.next_functions:
            if parent is not None and id(parent) not in met:
                met.add(id(parent))
                held.append(parent)
    assert sorted(node.name().split("::")[-1] for node in held) == [
        "AccumulateGrad",
        "AddBackward0",
        "ExpBackward0",
        "MulBackward0",
        "MulBackward0",
    ]
