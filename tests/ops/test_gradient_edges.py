"""Edges of the graph in the place of tensors, gradients of several seeds at once, and writes that autograd is told of."""

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf, live_rows

import tapegrad as tg

graph = tg.autograd.graph
Tensor = tg.Tensor


@pytest.mark.point(97)
def test_gradient_edge_names_the_node_and_the_output() -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * x
    first, second = y.unbind(0)
    assert graph.get_gradient_edge(y).node is y.grad_fn
    assert graph.get_gradient_edge(y).output_nr == 0
    assert graph.get_gradient_edge(second) == graph.GradientEdge(first.grad_fn, 1)
    edge = graph.get_gradient_edge(x)
    assert edge.node.name() == "torch::autograd::AccumulateGrad" and edge.node.variable is x and edge.output_nr == 0


def test_gradient_edge_of_a_scalar_written_in_place_is_that_of_the_new_value() -> None:
    x = leaf(2.0)
    y = x * 3.0
    y.add_(1.0)
    assert graph.get_gradient_edge(y).node.name() == "AddBackward0"


@pytest.mark.point(97)
def test_untracked_tensors_have_no_edge() -> None:
    with pytest.raises(RuntimeError, match="not possible to get the gradient edge for a Tensor that does not require gradients"):
        graph.get_gradient_edge(tg.ones(2))


OUTPUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "array": lambda x: x * x,
    "scalar": lambda x: x.sum() * 2.0,
    "float32": lambda x: (x * x).to(tg.float32),
    "view": lambda x: (x * x)[0],
    "piece": lambda x: (x * x).unbind(0)[1],
    "second output": lambda x: tg.linalg.slogdet(x)[1],
    "one of two factors": lambda x: tg.linalg.qr(x)[1],
    "host row": lambda x: tg.linalg.inv(x),
    "leaf": lambda x: x,
}


@pytest.mark.point(97)
@pytest.mark.parametrize("name", OUTPUTS)
def test_gradient_edge_is_differentiated_by_as_its_tensor_is(name: str) -> None:
    x = leaf([[1.0, 2.0], [3.0, 5.0]])
    t = OUTPUTS[name](x)
    loss = (t * t * t).sum()
    (expected,) = tg.autograd.grad(loss, t, retain_graph=True)
    (got,) = tg.autograd.grad(loss, graph.get_gradient_edge(t))
    assert got.dtype == t.dtype
    assert_values(got, expected.tolist())


@pytest.mark.point(97)
@pytest.mark.parametrize("name", OUTPUTS)
def test_gradient_edge_is_a_root_as_its_tensor_is(name: str) -> None:
    x = leaf([[1.0, 2.0], [3.0, 5.0]])
    t = OUTPUTS[name](x)
    seed = tg.tensor(np.arange(1.0, t.numel() + 1).reshape(tuple(t.shape)), dtype=t.dtype)
    (expected,) = tg.autograd.grad(t, x, seed, retain_graph=True)
    (got,) = tg.autograd.grad(graph.get_gradient_edge(t), x, seed, retain_graph=True)
    assert_values(got, expected.tolist())
    tg.autograd.backward(graph.get_gradient_edge(t), seed)
    assert_values(x.grad, expected.tolist())


@pytest.mark.point(97)
def test_gradient_edges_stand_beside_tensors() -> None:
    x = leaf([1.0, 2.0])
    y = x * x
    by_y, by_x = tg.autograd.grad(y.sum(), (graph.get_gradient_edge(y), x))
    assert_values(by_y, [1.0, 1.0])
    assert_values(by_x, [2.0, 4.0])


@pytest.mark.point(97)
def test_gradient_is_accumulated_at_the_edge_of_a_leaf() -> None:
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (x * w).sum().backward(inputs=[graph.get_gradient_edge(x)])
    assert_values(x.grad, [3.0, 4.0])
    assert w.grad is None


@pytest.mark.point(97)
def test_gradient_edge_that_nothing_depends_on_is_unused() -> None:
    x = leaf([1.0, 2.0])
    edge = graph.get_gradient_edge(x * 2.0)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        tg.autograd.grad(x.sum(), edge)
    assert tg.autograd.grad(x.sum(), edge, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used when the given input is a GradientEdge"):
        tg.autograd.grad(x.sum(), edge, materialize_grads=True)


@pytest.mark.point(97)
def test_gradient_edge_needs_a_seed_as_its_tensor_does() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        tg.autograd.grad(graph.get_gradient_edge(x * x), x)
    (g,) = tg.autograd.grad(graph.get_gradient_edge((x * x).sum()), x)
    assert_values(g, [2.0, 4.0])


def test_gradient_edge_keeps_the_graph_and_not_the_tensor() -> None:
    x = leaf([1.0, 2.0])
    y = x * x
    edge, link = graph.get_gradient_edge(y), weakref.ref(y)
    del y
    assert link() is None
    (g,) = tg.autograd.grad(edge, x, tg.ones(2))
    assert_values(g, [2.0, 4.0])


def test_gradient_edges_leave_no_rows_behind() -> None:
    x = leaf([1.0, 2.0])
    _ = x * 1.0
    before = live_rows()
    for _ in range(20):
        y = x * x
        tg.autograd.grad(y.sum(), graph.get_gradient_edge(y))
        del y
    gc.collect()
    assert live_rows() <= before


def test_output_that_does_not_exist_is_refused() -> None:
    y = leaf([1.0, 2.0]) * 2.0
    with pytest.raises(RuntimeError, match="MulBackward0 has no output 1"):
        tg.autograd.grad(y.sum(), graph.GradientEdge(y.grad_fn, 1))


SEEDS = tg.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]])


@pytest.mark.point(98)
@pytest.mark.parametrize("create_graph", [False, True])
def test_batch_of_seeds_gives_the_gradients_of_each(create_graph: bool) -> None:
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = x * x * w
    found = tg.autograd.grad(y, (x, w), SEEDS, is_grads_batched=True, create_graph=create_graph)
    for got, expected in zip(found, [[[6.0, 0.0], [0.0, 16.0], [12.0, -16.0]], [[1.0, 0.0], [0.0, 4.0], [2.0, -4.0]]], strict=True):
        assert_values(got, expected)
        assert got.requires_grad == create_graph


@pytest.mark.point(98)
def test_gradients_of_a_batch_differentiate_by_the_seeds_too() -> None:
    x, seeds = leaf([1.0, 2.0]), leaf(SEEDS.tolist())
    (found,) = tg.autograd.grad(x * x, x, seeds, is_grads_batched=True, create_graph=True)
    by_x, by_seeds = tg.autograd.grad(found.sum(), (x, seeds))
    assert_values(by_x, [6.0, 0.0])
    assert_values(by_seeds, [[2.0, 4.0]] * 3)


@pytest.mark.point(98)
def test_batch_of_several_outputs() -> None:
    x = leaf([1.0, 2.0])
    (found,) = tg.autograd.grad((x * x, x.sum()), x, (SEEDS, tg.tensor([1.0, 2.0, 3.0])), is_grads_batched=True)
    assert_values(found, [[3.0, 1.0], [2.0, 6.0], [7.0, -1.0]])


@pytest.mark.point(98)
def test_batch_frees_the_graph_when_it_is_over() -> None:
    x = leaf([1.0, 2.0])
    y = x * x
    tg.autograd.grad(y, x, SEEDS, is_grads_batched=True)
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        tg.autograd.grad(y, x, SEEDS, is_grads_batched=True)


@pytest.mark.point(98)
def test_unused_inputs_of_a_batch() -> None:
    x, w = leaf([1.0, 2.0]), leaf([[3.0], [4.0]])
    y = x * 2.0
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        tg.autograd.grad(y, (x, w), SEEDS, True, is_grads_batched=True)
    assert tg.autograd.grad(y, (x, w), SEEDS, True, is_grads_batched=True, allow_unused=True)[1] is None
    found = tg.autograd.grad(y, (x, w), SEEDS, is_grads_batched=True, materialize_grads=True)
    assert found[0].shape == (3, 2)
    assert found[1].tolist() == [[0.0], [0.0]]


@pytest.mark.point(98)
@pytest.mark.parametrize(
    ("seeds", "error", "message"),
    [
        (tg.ones(3, 3), RuntimeError, "interpret the first dimension of each grad_output as the batch dimension"),
        (tg.ones(2), RuntimeError, "interpret the first dimension of each grad_output as the batch dimension"),
        (None, RuntimeError, "grad can be implicitly created only for scalar outputs"),
        (tg.ones(0, 2), IndexError, "size 0"),
        ([[[1.0, 2.0]]], TypeError, "gradients can be either Tensors or None, but got list"),
    ],
)
def test_seeds_that_are_no_batch_are_refused(seeds: object, error: type[Exception], message: str) -> None:
    x = leaf([1.0, 2.0])
    y = x * x
    with pytest.raises(error, match=message):
        tg.autograd.grad(y, x, seeds, is_grads_batched=True)
    y.sum().backward()  # nothing was freed


@pytest.mark.point(98)
def test_batches_of_several_sizes_are_refused() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(ValueError, match="the same size"):
        tg.autograd.grad((x * x, x * 2.0), x, (tg.ones(3, 2), tg.ones(2, 2)), is_grads_batched=True)


@pytest.mark.point(99)
@pytest.mark.parametrize("value", [2.0, [1.0, 2.0]])
def test_value_that_was_needed_is_stale_when_others_wrote_it(value: object) -> None:
    y = leaf(value).exp()
    graph.increment_version(y)
    assert y._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.point(99)
def test_versions_of_several_tensors_are_counted() -> None:
    x, y = leaf([1.0, 2.0]), tg.ones(2)
    graph.increment_version([x, y[:1]])
    graph.increment_version(t for t in (x,))
    assert (x._version, y._version) == (2, 1)
    (x * 2.0).sum().backward()


@pytest.mark.point(99)
@pytest.mark.parametrize("given", [3, [3], ["a"]])
def test_versions_of_something_else_are_refused(given: object) -> None:
    with pytest.raises(RuntimeError, match="increment_version expect"):
        graph.increment_version(given)  # type: ignore[arg-type]


def test_inference_tensors_have_no_version_to_count() -> None:
    with tg.inference_mode():
        x = tg.ones(2)
    graph.increment_version(x)
