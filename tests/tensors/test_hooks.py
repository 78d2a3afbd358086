"""Hooks on tensors, nodes and leaves: when they run, with what, and what their results do."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

Tensor = tg.Tensor


class Held:
    """Something that a hook can hold and that can be watched."""


@pytest.fixture
def x() -> Tensor:
    return tg.tensor([1.0, 2.0], requires_grad=True)


@pytest.fixture
def seen() -> list[Any]:
    return []


def accumulator(leaf: Tensor) -> Any:
    return leaf.expand_as(leaf).grad_fn.next_functions[0][0]


def note(seen: list[Any], name: Any) -> Any:
    def hook(*_: Any) -> None:
        seen.append(name)

    return hook


# Tensor hooks


@pytest.mark.point(45)
@pytest.mark.parametrize("value", [3.0, [1.0, 2.0]])
def test_tensor_hook_gets_the_complete_gradient_once(value: Any, seen: list[Any]) -> None:
    x = tg.tensor(value, requires_grad=True)
    y = x * 1.0
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * y + 3 * y + tg.sin(y)).sum().backward()
    assert len(seen) == 1
    np.testing.assert_allclose(seen[0], 2 * np.array(value) + 3 + np.cos(value))


@pytest.mark.point(45)
def test_tensor_hooks_run_in_order_and_results_replace(x: Tensor, seen: list[Any]) -> None:
    y = x * 1.0
    y.register_hook(lambda g: g * 2)
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g + 1)
    y.sum().backward()
    assert seen == [[2.0, 2.0]]
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.point(45)
def test_the_same_function_twice_runs_twice(x: Tensor) -> None:
    def double(g: Tensor) -> Tensor:
        return g * 2

    x.register_hook(double)
    x.register_hook(double)
    x.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


@pytest.mark.point(45)
def test_removed_hook_does_not_run_and_remove_may_be_repeated(x: Tensor) -> None:
    handle = x.register_hook(lambda g: g * 100)
    handle.remove()
    handle.remove()
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


@pytest.mark.point(45)
def test_handle_is_a_context(x: Tensor) -> None:
    with x.register_hook(lambda g: g * 10):
        x.sum().backward()
    x.sum().backward()
    assert x.grad.tolist() == [11.0, 11.0]


def test_handles_are_of_the_public_class(x: Tensor) -> None:
    assert isinstance(x.register_hook(print), tg.utils.hooks.RemovableHandle)


def test_hook_may_write_to_its_gradient(x: Tensor) -> None:
    def hook(g: Tensor) -> None:
        g.mul_(5)

    y = x * 1.0
    y.register_hook(hook)
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def named(g: Tensor) -> Any:
    return g[:1]


def widened(g: Tensor) -> Any:
    return g.float()


def number(g: Tensor) -> Any:
    return 5


@pytest.mark.point(46)
@pytest.mark.parametrize(
    ("hook", "error", "message"),
    [
        (named, RuntimeError, "hook 'named' has changed the size of value"),
        (widened, RuntimeError, r"hook 'widened' has changed the type of value \(was DoubleTensor got FloatTensor\)"),
        (number, TypeError, "expected Variable, but hook returned 'int'"),
        (partial(named), RuntimeError, "hook '<unknown>' has changed the size"),
    ],
)
@pytest.mark.parametrize("recorded", [False, True])
def test_bad_results_raise_and_leave_gradients(x: Tensor, hook: Any, error: type[Exception], message: str, recorded: bool) -> None:
    w = tg.tensor([1.0, 1.0], requires_grad=True)
    w.grad = tg.tensor([7.0, 7.0])
    y = x * 2
    y.register_hook(hook)
    run = partial(tg.autograd.grad, inputs=x, create_graph=True) if recorded else tg.autograd.backward
    loss = (y * w).sum()
    with pytest.raises(error, match=message):
        run(loss)
    assert x.grad is None
    assert w.grad.tolist() == [7.0, 7.0]


@pytest.mark.point(46)
def test_exceptions_of_hooks_keep_their_type_and_leave_gradients(x: Tensor) -> None:
    def fail(g: Tensor) -> None:
        raise KeyError("mine")

    w = tg.tensor([1.0, 1.0], requires_grad=True)
    y = x * 2
    y.register_hook(fail)
    loss = (y * w).sum()
    with pytest.raises(KeyError, match="mine"):
        loss.backward()
    assert x.grad is None
    assert w.grad is None


@pytest.mark.point(46)
def test_untracked_tensors_take_no_hooks() -> None:
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        tg.tensor(1.0).register_hook(print)


@pytest.mark.point(47)
@pytest.mark.parametrize("value", [3.0, [1.0, 2.0]])
def test_hook_belongs_to_the_value_at_registration(value: Any, seen: list[Any]) -> None:
    x = tg.tensor(value, requires_grad=True)
    y = x * 1.0
    y.register_hook(lambda g: seen.append(("old", np.mean(g.tolist()))))
    y.mul_(3.0)
    y.register_hook(lambda g: seen.append(("new", np.mean(g.tolist()))))
    (y * 2.0).sum().backward()
    assert seen == [("new", 2.0), ("old", 6.0)]


@pytest.mark.point(47, 48)
def test_retained_gradient_follows_the_newest_value(x: Tensor) -> None:
    y = x * 1.0
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.mul_(3.0)
    (y * 2.0).sum().backward()
    assert y.grad.tolist() == [2.0, 2.0]
    assert x.grad.tolist() == [60.0, 60.0]


@pytest.mark.point(48)
@pytest.mark.parametrize("first", [True, False])
def test_retained_gradient_is_what_all_tensor_hooks_made(x: Tensor, first: bool) -> None:
    y = x * 1.0
    if first:
        y.retain_grad()
    y.register_hook(lambda g: g * 2)
    if not first:
        y.retain_grad()
    y.register_hook(lambda g: g * 3)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert y.grad.tolist() == [12.0, 12.0]


@pytest.mark.point(48)
@pytest.mark.parametrize("value", [3.0, [1.0, 2.0]])
def test_retained_gradient_does_not_keep_the_tensor(value: Any) -> None:
    y = tg.tensor(value, requires_grad=True) * 2.0
    y.retain_grad()
    z = y * 3.0
    link = weakref.ref(y)
    del y
    assert link() is None and z.requires_grad


@pytest.mark.point(27)
def test_gradient_given_to_a_hook_stays_as_it_is(x: Tensor, seen: list[Any]) -> None:
    x.register_hook(seen.append)
    seed = tg.tensor([1.0, 2.0])
    (x + 0).backward(seed)
    (x + 0).backward(seed)
    seed.zero_()
    assert [g.tolist() for g in seen] == [[1.0, 2.0]] * 2
    assert x.grad.tolist() == [2.0, 4.0]


@pytest.mark.point(52)
def test_hook_removed_by_an_earlier_one_still_runs(x: Tensor, seen: list[Any]) -> None:
    y = x * 1.0
    handles: list[Any] = []
    y.register_hook(lambda g: handles[0].remove())
    handles.append(y.register_hook(note(seen, "removed")))
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert seen == ["removed"]


@pytest.mark.parametrize("value", [3.0, [1.0, 2.0]])
def test_hook_outlives_its_tensor(value: Any, seen: list[Any]) -> None:
    x = tg.tensor(value, requires_grad=True)

    def loss() -> Tensor:
        y = x * 2.0
        y.register_hook(note(seen, "ran"))
        return tg.sin(y).sum()

    kept = loss()
    tg.tape.default_tape().collect()
    kept.backward()
    assert seen == ["ran"]


def test_hook_of_a_leaf_follows_new_data(x: Tensor, seen: list[Any]) -> None:
    x.register_hook(note(seen, "ran"))
    x.sum().backward()
    x.data = tg.tensor([1.0, 2.0, 3.0])
    x.requires_grad_(False)
    x.requires_grad_(True)
    x.sum().backward()
    assert seen == ["ran", "ran"]


def test_large_leaf_is_replaced_in_place() -> None:
    x = tg.ones(5000, requires_grad=True)
    x.register_hook(lambda g: g * 2)
    (x * 3.0).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full(5000, 6.0))


# Nodes


@pytest.mark.point(25)
@pytest.mark.parametrize("made", ["abc", "bca", "bac"])
def test_newest_of_the_nodes_that_are_ready_runs_first(made: str, x: Tensor, seen: list[Any]) -> None:
    make = {"a": lambda of: x * 2, "b": lambda of: x * 3, "c": lambda of: of["b"] * 2}
    of: dict[str, Tensor] = {}
    for name in made:
        of[name] = make[name](of)
        of[name].grad_fn.register_hook(note(seen, name))
    (of["a"] + of["c"]).sum().backward()
    assert "".join(seen) == made[::-1]


@pytest.mark.point(25)
def test_leaf_has_the_age_of_its_first_use(x: Tensor, seen: list[Any]) -> None:
    w = tg.tensor([1.0, 1.0], requires_grad=True)
    first = x * 1
    older, newer = w * 3, x * 2
    for name, t in (("older", older), ("newer", newer), ("leaf", x)):
        t.register_hook(note(seen, name))
    (older + newer).sum().backward()
    assert seen == ["newer", "older", "leaf"] and first.requires_grad


@pytest.mark.point(25)
def test_gradients_are_put_in_place_after_all_operations(x: Tensor, seen: list[Any]) -> None:
    w = tg.tensor([1.0, 1.0], requires_grad=True)
    older, newer = w * 3, x * 2
    older.register_hook(lambda g: seen.append(x.grad))
    (older + newer).sum().backward()
    assert seen == [None] and x.grad.tolist() == [2.0, 2.0]


@pytest.mark.point(49)
def test_order_at_a_node_and_at_a_leaf(x: Tensor, seen: list[Any]) -> None:
    y = x * 2
    node = accumulator(x)
    node.register_hook(note(seen, "leaf node"))
    node.register_prehook(note(seen, "leaf prehook"))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(("in place", leaf.grad.tolist())))
    x.register_hook(note(seen, "leaf tensor"))
    y.grad_fn.register_hook(note(seen, "node"))
    y.grad_fn.register_prehook(note(seen, "prehook"))
    y.register_hook(note(seen, "tensor"))
    y.sum().backward()
    assert seen == ["tensor", "prehook", "node", "leaf tensor", "leaf prehook", ("in place", [2.0, 2.0]), "leaf node"]


@pytest.mark.point(50)
def test_node_hooks_get_tuples_with_none_for_untracked_operands(x: Tensor, seen: list[Any]) -> None:
    y = x * 2
    y.grad_fn.register_hook(lambda i, o: seen.append((i, o)))
    y.sum().backward()
    ((inputs, outputs),) = seen
    assert inputs[0].tolist() == [2.0, 2.0]
    assert inputs[1] is None
    assert [g.tolist() for g in outputs] == [[1.0, 1.0]]


@pytest.mark.point(50)
@pytest.mark.parametrize("recorded", [False, True])
def test_results_of_node_hooks_replace(x: Tensor, recorded: bool) -> None:
    y = x * 2
    y.grad_fn.register_prehook(lambda o: (o[0] * 3,))
    y.grad_fn.register_hook(lambda i, o: (i[0] + o[0], None))
    (g,) = tg.autograd.grad(y.sum(), x, create_graph=recorded)
    assert g.tolist() == [9.0, 9.0]


@pytest.mark.point(50)
@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (lambda i: (i[0],), RuntimeError, r"incorrect number of values \(got 1, but expected 2\)"),
        (lambda i: i[0], TypeError, "expected tuple, but hook returned 'Tensor'"),
        (lambda i: (i[0], i[0]), RuntimeError, "can't replace a None gradient with a non-None value"),
        (lambda i: (3, None), TypeError, "expected Variable, but hook returned 'int'"),
    ],
)
def test_bad_results_of_node_hooks(x: Tensor, result: Any, error: type[Exception], message: str) -> None:
    y = x * 2
    y.grad_fn.register_hook(lambda i, o: result(i))
    loss = y.sum()
    with pytest.raises(error, match=message):
        loss.backward()
    assert x.grad is None


def test_node_hook_may_drop_a_gradient(x: Tensor) -> None:
    y = x * 2
    y.grad_fn.register_hook(lambda i, o: (None, None))
    y.sum().backward()
    assert x.grad is None


def test_node_hooks_of_array_products_use_the_same_derivatives() -> None:
    a = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    expected = tg.autograd.grad((tg.softmax(a @ a, 1) * a).sum(), a)[0]
    product = a @ a
    product.grad_fn.register_hook(lambda i, o: None)
    soft = tg.softmax(product, 1)
    soft.grad_fn.register_prehook(lambda o: None)
    (soft * a).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), expected.numpy(), rtol=1e-14)


def test_metadata_stays_with_the_node(x: Tensor) -> None:
    y = x * 2
    y.grad_fn.metadata["place"] = 3
    assert y.grad_fn.metadata == {"place": 3}


# Which hooks run in which pass


@pytest.mark.point(51)
@pytest.mark.parametrize("recorded", [False, True])
def test_grad_runs_the_tensor_hooks_of_captured_inputs_only(x: Tensor, seen: list[Any], recorded: bool) -> None:
    y = x * 2
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g * 100)
    y.grad_fn.register_prehook(note(seen, "own prehook"))
    y.grad_fn.register_hook(note(seen, "own node"))
    node = accumulator(x)
    node.register_prehook(note(seen, "leaf prehook"))
    node.register_hook(note(seen, "leaf node"))
    x.register_post_accumulate_grad_hook(note(seen, "accumulated"))
    (inner,) = tg.autograd.grad(y.sum(), y, create_graph=recorded, retain_graph=True)
    assert inner.tolist() == [10.0, 10.0]
    assert seen == []
    (outer,) = tg.autograd.grad(y.sum(), x, create_graph=recorded)
    assert outer.tolist() == [2000.0, 2000.0]
    assert seen == ["own prehook", "own node"]


def test_backward_to_chosen_leaves_accumulates_with_hooks(x: Tensor, seen: list[Any]) -> None:
    w = tg.tensor([1.0, 1.0], requires_grad=True)
    for leaf, name in ((x, "x"), (w, "w")):
        leaf.register_post_accumulate_grad_hook(note(seen, name))
    (x * w).sum().backward(inputs=[x])
    assert seen == ["x"]


@pytest.mark.point(53)
@pytest.mark.parametrize("recorded", [False, True])
def test_hooks_of_an_output_without_gradient_are_called_with_none(seen: list[Any], recorded: bool) -> None:
    x = tg.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    a, b = x.split(2)
    a.register_hook(lambda g: seen.append(("a", g.tolist())))
    b.register_hook(lambda g: seen.append(("b", g)))
    tg.autograd.grad(a.sum(), x, create_graph=recorded)
    assert seen == [("a", [1.0, 1.0]), ("b", None)]


@pytest.mark.point(53)
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("split", [lambda x: x.split(2), lambda x: x.view(2, 2).unbind(0)])
def test_node_hooks_see_the_gradient_of_each_output(seen: list[Any], recorded: bool, split: Any) -> None:
    x = tg.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    a, b = split(x * 1.0)
    a.grad_fn.register_prehook(lambda o: (o[0] * 2, o[1]))
    b.grad_fn.register_hook(lambda i, o: seen.append([g if g is None else g.tolist() for g in (*i, *o)]))
    (g,) = tg.autograd.grad((a * a).sum(), x, create_graph=recorded)
    assert seen[0][1:] == [[4.0, 8.0], None]
    assert np.ravel(seen[0][0]).tolist() == g.tolist() == [4.0, 8.0, 0.0, 0.0]


@pytest.mark.parametrize("recorded", [False, True])
def test_hooks_below_an_undefined_gradient_are_called_with_none(x: Tensor, seen: list[Any], recorded: bool) -> None:
    y = x * 2
    y.grad_fn.register_hook(lambda i, o: seen.append((i, o)))
    z = y * 3
    z.grad_fn.register_hook(lambda i, o: (None, None))
    y.register_hook(seen.append)
    x.register_hook(seen.append)
    (g,) = tg.autograd.grad(z.sum(), x, allow_unused=True, create_graph=recorded)
    assert g is None
    assert seen == [None, ((None, None), (None,)), None]


@pytest.mark.point(55)
@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("recorded", [False, True])
def test_grad_mode_in_hooks_is_that_of_the_pass(x: Tensor, seen: list[Any], recorded: bool) -> None:
    def hook(*_: Any) -> None:
        seen.append(tg.is_grad_enabled())

    y = x * 2
    y.register_hook(hook)
    y.grad_fn.register_prehook(hook)
    y.grad_fn.register_hook(hook)
    x.register_hook(hook)
    x.register_post_accumulate_grad_hook(hook)
    y.sum().backward(create_graph=recorded)
    assert seen == [recorded] * 5


def test_results_of_hooks_are_differentiated_in_a_recorded_pass() -> None:
    x = tg.tensor(2.0, requires_grad=True)
    y = x * x
    y.register_hook(lambda g: g * x)
    (g,) = tg.autograd.grad(y * 1.0, x, create_graph=True)
    assert g.item() == 8.0  # x * 2x
    assert tg.autograd.grad(g, x)[0].item() == 8.0  # 4x


@pytest.mark.filterwarnings("ignore:Using backward")
def test_recorded_pass_that_frees_calls_hooks_once(x: Tensor, seen: list[Any]) -> None:
    y = x * x
    y.register_hook(note(seen, "ran"))
    y.sum().backward(create_graph=True, retain_graph=False)
    assert seen == ["ran"]


# Leaves


@pytest.mark.point(54)
def test_post_accumulate_hook_may_reset_the_gradient(x: Tensor, seen: list[Any]) -> None:
    def step(leaf: Tensor) -> None:
        seen.append((leaf is x, leaf.grad.tolist()))
        leaf.grad = None

    x.register_post_accumulate_grad_hook(step)
    x.sum().backward()
    (2 * x).sum().backward()
    assert seen == [(True, [1.0, 1.0]), (True, [2.0, 2.0])]
    assert x.grad is None


@pytest.mark.point(54)
def test_post_accumulate_hook_sees_all_gradients(x: Tensor, seen: list[Any]) -> None:
    w = tg.tensor([3.0, 4.0], requires_grad=True)
    w.register_post_accumulate_grad_hook(lambda leaf: seen.append(x.grad.tolist()))
    (x * w).sum().backward()
    assert seen == [[3.0, 4.0]]


def test_post_accumulate_hook_that_fails_leaves_all_gradients_complete(x: Tensor) -> None:
    w = tg.tensor([3.0, 4.0], requires_grad=True)

    def fail(leaf: Tensor) -> None:
        raise KeyError

    w.register_post_accumulate_grad_hook(fail)
    loss = (x * w).sum()
    with pytest.raises(KeyError):
        loss.backward()
    assert x.grad.tolist() == [3.0, 4.0]
    assert w.grad.tolist() == [1.0, 2.0]


@pytest.mark.point(54)
def test_post_accumulate_hook_returns_nothing(x: Tensor) -> None:
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.grad)
    loss = x.sum()
    with pytest.raises(RuntimeError, match="hook '<lambda>' returned"):
        loss.backward()


@pytest.mark.point(54)
def test_results_take_no_post_accumulate_hooks(x: Tensor) -> None:
    y = x * 2
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        y.register_post_accumulate_grad_hook(print)


# Several tensors


def test_multi_hook_gets_what_the_pass_computes(x: Tensor, seen: list[Any]) -> None:
    y, z, u = x * 2, x * 3, x * 4
    handle = tg.autograd.graph.register_multi_grad_hook((y, z, u), seen.append)
    (y + z).sum().backward()
    assert [g if g is None else g.tolist() for g in seen[0]] == [[1.0, 1.0], [1.0, 1.0], None]
    handle.remove()
    (u * 1.0).sum().backward()
    assert len(seen) == 1


def test_multi_hook_for_any_gets_the_first(x: Tensor, seen: list[Any]) -> None:
    y, z = x * 2, x * 3
    tg.autograd.graph.register_multi_grad_hook((y, z), lambda g: seen.append(g.tolist()), mode="any")
    (y.sum() + 5 * z.sum()).backward()
    assert seen == [[5.0, 5.0]]


def test_multi_hook_of_unknown_mode(x: Tensor) -> None:
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        tg.autograd.graph.register_multi_grad_hook((x,), print, mode="some")


# Lifetimes


@pytest.mark.parametrize("register", ["tensor", "node", "prehook"])
@pytest.mark.parametrize("value", [3.0, [1.0, 2.0]])
def test_hook_that_holds_its_tensor_is_collected(register: str, value: Any) -> None:
    x = tg.tensor(value, requires_grad=True)
    held = Held()
    link = weakref.ref(held)

    def graph(held: Held) -> None:
        y = x * 2.0

        def hook(*_: Any) -> None:
            assert y, held

        if register == "tensor":
            y.register_hook(hook)
        elif register == "node":
            y.grad_fn.register_hook(hook)
        else:
            y.grad_fn.register_prehook(hook)
        tg.sin(y)

    graph(held)
    del held
    gc.collect()
    assert link() is None


def test_hook_dies_with_the_graph_without_the_collector() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    held = Held()
    link = weakref.ref(held)

    def graph(held: Held) -> Tensor:
        y = x * 2.0
        y.register_hook(lambda g, held=held: None)
        return tg.sin(y)

    z = graph(held)
    del held
    assert link() is not None
    del z
    assert link() is None


def test_hook_of_a_scalar_that_died_before_its_graph_dies_when_rows_are_collected() -> None:
    x = tg.tensor(1.0, requires_grad=True)
    held = Held()
    link = weakref.ref(held)

    def graph(held: Held) -> Tensor:
        y = x * 2.0
        y.register_hook(lambda g, held=held: None)
        return tg.sin(y)

    z, later = graph(held), x * 3.0
    del held
    assert link() is not None
    del z
    tg.tape.default_tape().collect()
    assert link() is None and later.requires_grad


def test_tensor_resurrected_by_its_hook_is_untracked_and_whole(seen: list[Any]) -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)

    def graph() -> Tensor:
        y = x * 2.0
        y.register_hook(lambda g, y=y: seen.append((y + 1.0).tolist()))
        return tg.sin(y)

    z = graph()
    gc.collect()
    z.sum().backward()
    assert seen == [[3.0, 5.0]]


def test_hooks_at_moved_rows(x: Tensor, seen: list[Any]) -> None:
    tape = tg.tape.default_tape()
    first = [x * float(k) for k in range(5)]
    y = x * 3.0
    y.register_hook(note(seen, "ran"))
    del first
    tape.collect()
    z = y * 2.0
    tape.collect()
    z.sum().backward()
    assert seen == ["ran"]


def test_hooks_of_rows_that_are_gone_do_not_replace_those_of_the_first_row() -> None:
    tape = tg.tape.default_tape()
    gc.collect()
    tape.collect()
    w = tg.tensor(1.0, requires_grad=True)
    seen: list[str] = []
    w.register_hook(lambda g: seen.append("leaf"))
    a = w * 2.0
    c = w * 3.0 * 2.0
    y = c * 2.0
    y.register_hook(lambda g: seen.append("gone"))
    z = y * 2.0
    del y, z, a
    tape.collect()
    c.backward()
    assert seen == ["leaf"]


def test_hooks_are_found_when_a_collection_was_interrupted(x: Tensor, seen: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    tape = tg.tape.default_tape()
    dead = [x * float(k) for k in range(5)]
    y = x * 3.0
    y.register_hook(note(seen, "ran"))
    y.retain_grad()
    node = y.grad_fn
    del dead

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(tape), "_set_limit", interrupt)  # the first step after the rows have moved
    with pytest.raises(KeyboardInterrupt):
        tape.collect()
    monkeypatch.undo()
    y.sum().backward()
    assert (seen, y.grad.tolist(), y.grad_fn is node) == (["ran"], [1.0, 1.0], True)


# Tensors that leave their rows


def test_hooks_of_a_leaf_run_in_the_graph_that_was_made_before_its_flag_was_cleared(x: Tensor, seen: list[Any]) -> None:
    x.register_hook(note(seen, "ran"))
    before = (x * 2.0).sum()
    x.requires_grad_(False)
    x.requires_grad_(True)
    assert x.requires_grad
    tg.autograd.backward(before)
    assert seen == ["ran"]


def test_detach_in_place_gives_the_graph_of_a_hooked_tensor_back(x: Tensor) -> None:
    array = np.ones(2)
    link = weakref.ref(array)
    y = x * tg.from_numpy(array)
    y.register_hook(lambda g: None)
    del array
    y.detach_()
    assert link() is None


def test_hooks_run_in_the_graph_above_a_tensor_that_was_detached_in_place(x: Tensor, seen: list[Any]) -> None:
    y = x * 2.0
    y.register_hook(note(seen, "ran"))
    z = (y * 3.0).sum()
    y.detach_()
    z.backward()
    assert (seen, x.grad.tolist()) == (["ran"], [6.0, 6.0])


def test_gradient_that_a_hook_takes_away_starts_anew(x: Tensor) -> None:
    x.grad = tg.tensor([100.0, 100.0])

    def reset(g: Tensor) -> None:
        x.grad = None

    y = x * 2.0
    y.register_hook(reset)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("register", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hooks_must_be_callable(x: Tensor, register: str) -> None:
    with pytest.raises(TypeError, match="a hook must be callable, but got int"):
        getattr(x, register)(3)
