"""Modules: hooks, buffers, names, state, dtypes; containers; layers with state of their own."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn
from tapegrad.nn.dimensions import Spatial


class Counting(nn.Module):
    """A layer, and a buffer that counts calls."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.register_buffer("calls", tg.zeros(1))
        self.register_buffer("scratch", tg.ones(1), persistent=False)

    def forward(self, x, scale=1.0):
        self.calls += 1.0
        return self.layer(x) * scale


# Buffers


def test_buffers_are_found_with_dotted_names():
    assert [name for name, _ in nn.Sequential(Counting()).named_buffers()] == ["0.calls", "0.scratch"]


def test_buffers_are_no_parameters():
    assert [name for name, _ in Counting().named_parameters()] == ["layer.weight", "layer.bias"]


def test_the_state_has_persistent_buffers_only():
    assert list(Counting().state_dict()) == ["calls", "layer.weight", "layer.bias"]


def test_a_buffer_written_in_place_stays_one():
    net = Counting()
    net(tg.ones(1, 2))
    assert net.get_buffer("calls").tolist() == [1.0]


def test_a_buffer_can_be_replaced():
    net = Counting()
    net.calls = tg.tensor([7.0])
    assert dict(net.named_buffers())["calls"].tolist() == [7.0]


def test_a_buffer_takes_no_number():
    with pytest.raises(TypeError, match="cannot assign 'float' as buffer 'calls'"):
        Counting().calls = 1.0


@pytest.mark.parametrize(
    ("name", "words"),
    [("a.b", "buffer name can't contain"), ("", "buffer name can't be empty"), ("layer", "attribute 'layer' already exists")],
)
def test_names_that_cannot_be_registered(name, words):
    with pytest.raises(KeyError) as caught:
        Counting().register_buffer(name, tg.ones(1))
    assert words in caught.value.args[0]


def test_a_parameter_takes_the_place_of_an_attribute():
    net = nn.Module()
    net.a = 3
    net.a = nn.Parameter(tg.ones(1))
    assert [name for name, _ in net.named_parameters()] == ["a"]


def test_a_module_takes_the_place_of_a_parameter():
    net = nn.Module()
    net.a = nn.Parameter(tg.ones(1))
    net.a = nn.ReLU()
    assert (list(net.parameters()), [name for name, _ in net.named_children()]) == ([], ["a"])


# Names


def test_parts_are_found_by_dotted_names():
    net = nn.Sequential(Counting())
    assert net.get_submodule("0.layer") is net[0].layer
    assert net.get_parameter("0.layer.bias") is net[0].layer.bias
    assert net.get_submodule("") is net


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda net: net.get_submodule("lost"), "Counting has no attribute `lost`"),
        (lambda net: net.get_submodule("calls"), "`calls` is not an nn.Module"),
        (lambda net: net.get_parameter("calls"), "`calls` is not an nn.Parameter"),
        (lambda net: net.get_buffer("layer"), "`layer` is not a buffer"),
    ],
)
def test_what_is_not_there_is_named(ask, words):
    with pytest.raises(AttributeError, match=words):
        ask(Counting())


def test_duplicates_can_be_listed():
    layer = nn.Linear(1, 1, bias=False)
    net = nn.Sequential(layer, layer)
    assert [name for name, _ in net.named_parameters(remove_duplicate=False)] == ["0.weight", "1.weight"]
    assert [name for name, _ in net.named_modules(remove_duplicate=False)] == ["", "0", "1"]


def test_apply_goes_from_the_inside_out():
    met = []
    nn.Sequential(nn.Sequential(nn.ReLU()), nn.Tanh()).apply(lambda module: met.append(type(module).__name__))
    assert met == ["ReLU", "Sequential", "Tanh", "Sequential"]


# Hooks


def test_a_hook_before_changes_the_arguments():
    net = nn.Identity()
    net.register_forward_pre_hook(lambda module, args: args[0] + 1.0)
    assert net(tg.ones(1)).tolist() == [2.0]


def test_a_hook_after_changes_the_result():
    net = nn.Identity()
    net.register_forward_hook(lambda module, args, result: result + args[0])
    assert net(tg.ones(1)).tolist() == [2.0]


def test_hooks_see_keywords_if_asked_for():
    net, seen = Counting(), []
    net.register_forward_pre_hook(lambda module, args, kwargs: (args, {"scale": 0.0}), with_kwargs=True)
    net.register_forward_hook(lambda module, args, kwargs, result: seen.append(kwargs), with_kwargs=True)
    assert net(tg.ones(1, 2), scale=5.0).tolist() == [[0.0, 0.0]]
    assert seen == [{"scale": 0.0}]


def test_hooks_run_in_order_and_those_put_first_before():
    net, order = nn.Identity(), []
    net.register_forward_hook(lambda *_: order.append("first"))
    net.register_forward_hook(lambda *_: order.append("second"))
    net.register_forward_hook(lambda *_: order.append("zeroth"), prepend=True)
    net(tg.ones(1))
    assert order == ["zeroth", "first", "second"]


def test_a_removed_hook_does_not_run():
    net, calls = nn.Identity(), []
    with net.register_forward_hook(lambda *_: calls.append(1)) as handle:
        net(tg.ones(1))
    handle.remove()
    net(tg.ones(1))
    assert calls == [1]


def test_a_hook_can_run_after_an_exception():
    net, results = nn.Linear(2, 2), []
    net.register_forward_hook(lambda module, args, result: results.append(result), always_call=True)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        net(tg.ones(1, 3))
    assert results == [None]


def test_a_hook_with_keywords_returns_both():
    net = nn.Identity()
    net.register_forward_pre_hook(lambda module, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple of"):
        net(tg.ones(1))


class Scaled(nn.Module):
    def forward(self, a, b=None):
        return 3.0 * a if b is None else (3.0 * a * b, "and words")


def gradients_seen(seen):
    def hook(module, grad_input, grad_output):
        seen.append([None if g is None else g.tolist() for g in (*grad_input, *grad_output)])

    return hook


def test_a_backward_hook_sees_the_gradients_on_both_sides():
    net, seen = Scaled(), []
    net.register_full_backward_hook(gradients_seen(seen))
    net(tg.ones(2, requires_grad=True)).sum().backward()
    assert seen == [[[3.0, 3.0], [1.0, 1.0]]]


def test_a_backward_hook_has_none_for_what_is_not_tracked():
    net, seen = Scaled(), []
    net.register_full_backward_hook(gradients_seen(seen))
    product, _ = net(tg.ones(1, requires_grad=True), 2.0 * tg.ones(1))
    product.backward()
    assert seen == [[[6.0], None, [1.0], None]]


class First(nn.Module):
    def forward(self, a, b):
        return 2.0 * a


def test_a_backward_hook_has_zeros_for_an_argument_that_is_not_used():
    net, seen = First(), []
    net.register_full_backward_hook(gradients_seen(seen))
    net(tg.ones(1, requires_grad=True), tg.ones(1, requires_grad=True)).backward()
    assert seen == [[[2.0], [0.0], [1.0]]]


def test_a_backward_hook_replaces_the_gradients_of_the_arguments():
    net, x = Scaled(), tg.ones(2, requires_grad=True)
    net.register_full_backward_hook(lambda module, grad_input, grad_output: (10.0 * grad_input[0],))
    net(x).sum().backward()
    assert x.grad.tolist() == [30.0, 30.0]


def test_a_backward_pre_hook_replaces_the_gradients_of_the_results():
    net, x = Scaled(), tg.ones(2, requires_grad=True)
    net.register_full_backward_pre_hook(lambda module, grad_output: (10.0 * grad_output[0],))
    net(x).sum().backward()
    assert x.grad.tolist() == [30.0, 30.0]


def test_backward_hooks_get_what_those_before_returned():
    net, seen = Scaled(), []
    net.register_full_backward_pre_hook(lambda module, grad_output: 2.0 * grad_output[0])
    net.register_full_backward_hook(lambda module, grad_input, grad_output: 5.0 * grad_input[0])
    net.register_full_backward_hook(gradients_seen(seen))
    net(tg.ones(1, requires_grad=True)).backward()
    assert seen == [[[30.0], [2.0]]]


def test_backward_hooks_of_nested_modules_run_from_the_outside_in():
    order = []
    inner = Scaled()
    net = nn.Sequential(inner, Scaled())
    net.register_full_backward_pre_hook(lambda *_: order.append("net before"))
    net.register_full_backward_hook(lambda *_: order.append("net after"))
    inner.register_full_backward_pre_hook(lambda *_: order.append("inner before"))
    inner.register_full_backward_hook(lambda *_: order.append("inner after"))
    net(tg.ones(1, requires_grad=True)).backward()
    assert order == ["net before", "inner before", "inner after", "net after"]


def test_parameters_get_the_gradient_that_a_backward_pre_hook_made():
    net = nn.Linear(2, 1, bias=False)
    net.register_full_backward_pre_hook(lambda module, grad_output: 10.0 * grad_output[0])
    net(tg.ones(1, 2)).sum().backward()
    assert net.weight.grad.tolist() == [[10.0, 10.0]]


def test_a_backward_hook_without_tracked_arguments_warns_and_has_none():
    net, seen = nn.Linear(2, 1), []
    net.register_full_backward_hook(gradients_seen(seen))
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        net(tg.ones(1, 2)).sum().backward()
    assert seen == [[None, [[1.0]]]]


def test_a_backward_hook_without_tracked_arguments_returns_none():
    net = nn.Linear(2, 1)
    net.register_full_backward_hook(lambda module, grad_input, grad_output: (tg.ones(1, 2),))
    result = net(tg.ones(1, 2)).sum()
    with pytest.warns(UserWarning, match="no inputs"), pytest.raises(RuntimeError, match="should always return None"):
        result.backward()
    assert net.weight.grad is None


@pytest.mark.parametrize("register", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_backward_hooks_return_as_many_gradients_as_they_get(register):
    net, x = Scaled(), tg.ones(1, requires_grad=True)
    getattr(net, register)(lambda module, *gradients: (tg.ones(1), tg.ones(1)))
    result = net(x)
    with pytest.raises(RuntimeError, match="returned an invalid number of grad_.*put, got 2, but expected 1"):
        result.backward()
    assert x.grad is None


def test_a_removed_backward_hook_does_not_run():
    net, seen = Scaled(), []
    net.register_full_backward_hook(gradients_seen(seen)).remove()
    net(tg.ones(1, requires_grad=True)).backward()
    assert seen == []


def test_backward_hooks_leave_what_is_not_recorded_alone():
    net, seen = Scaled(), []
    net.register_full_backward_hook(gradients_seen(seen))
    with tg.no_grad():
        assert net(tg.ones(1, requires_grad=True)).tolist() == [3.0]


def test_gradients_of_backward_hooks_can_be_differentiated():
    net, x = Scaled(), tg.tensor(2.0, requires_grad=True)
    net.register_full_backward_hook(lambda module, grad_input, grad_output: (x * grad_input[0],))
    (first,) = tg.autograd.grad(net(x), x, create_graph=True)
    (second,) = tg.autograd.grad(first, x)
    assert (first.item(), second.item()) == (6.0, 3.0)


# State and dtypes


def test_loading_reaches_buffers():
    net = Counting()
    net.load_state_dict(Counting().state_dict() | {"calls": tg.tensor([5.0])})
    assert net.calls.tolist() == [5.0]


def test_a_state_can_be_assigned():
    net = nn.Linear(1, 1)
    state = {"weight": tg.ones(1, 1, dtype=tg.float32), "bias": tg.ones(1)}
    net.load_state_dict(state, assign=True)
    state["weight"].fill_(3.0)
    assert (net.weight.dtype, net.weight.tolist(), net.weight.requires_grad) == (tg.float32, [[3.0]], True)


def test_a_state_has_tensors_only():
    with pytest.raises(RuntimeError, match='While copying the parameter named "bias", expected'):
        nn.Linear(1, 1).load_state_dict({"weight": tg.ones(1, 1), "bias": 3.0})


def test_a_state_is_a_mapping():
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        nn.Linear(1, 1).load_state_dict([1, 2])


def test_state_with_a_prefix():
    assert list(nn.Linear(1, 1).state_dict(prefix="part.")) == ["part.weight", "part.bias"]


def test_conversion_keeps_the_parameters_and_their_gradients():
    net = nn.BatchNorm1d(2)
    weight = net.weight
    net(tg.randn(3, 2)).sum().backward()
    net.float()
    assert net.weight is weight
    assert [t.dtype for t in (weight, weight.grad, net.running_mean)] == [tg.float32] * 3
    assert net.num_batches_tracked.dtype == tg.int64


def test_a_converted_module_trains_on():
    net = nn.Linear(2, 1).to(dtype=tg.float32)
    net(tg.ones(1, 2, dtype=tg.float32)).sum().backward()
    assert net.weight.grad.dtype == tg.float32


def test_conversion_refuses_integers():
    with pytest.raises(TypeError, match="only accepts floating point"):
        nn.Linear(1, 1).to(tg.int64)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))], ids=["deepcopy", "pickle"])
def test_copies_have_the_values_and_their_own_memory(again):
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    other = again(net)
    x = tg.randn(3, 2)
    assert other(x).tolist() == net(x).tolist()
    other[0].weight.data.fill_(0.0)
    assert net[0].weight.abs().sum().item() > 0.0


# Containers


def test_a_slice_of_a_sequential_is_one():
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    assert repr(net[1:]) == "Sequential(\n  (1): Tanh()\n  (2): Linear(in_features=3, out_features=1, bias=True)\n)"
    assert net[1:][1] is net[2]


def test_a_sequential_grows_and_shrinks():
    net = nn.Sequential(nn.ReLU()).append(nn.Tanh()).insert(0, nn.Sigmoid()).extend([nn.Identity()])
    del net[1]
    assert [(name, type(module).__name__) for name, module in net.named_children()] == [
        ("0", "Sigmoid"),
        ("1", "Tanh"),
        ("2", "Identity"),
    ]


def test_an_index_out_of_range():
    with pytest.raises(IndexError, match="index 2 is out of range"):
        nn.Sequential(nn.ReLU())[2]


def test_a_module_list_is_a_list():
    layers = nn.ModuleList([nn.Linear(1, 1), nn.ReLU()])
    layers += [nn.Tanh()]
    layers[1] = nn.Sigmoid()
    assert [type(module).__name__ for module in layers] == ["Linear", "Sigmoid", "Tanh"]
    assert [name for name, _ in layers.named_parameters()] == ["0.weight", "0.bias"]


def test_a_module_dict_is_a_dict():
    parts = nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.ReLU()})
    del parts["b"]
    assert (list(parts), "a" in parts, len(parts)) == (["a"], True, 1)
    assert [name for name, _ in parts.named_parameters()] == ["a.weight", "a.bias"]


def test_a_parameter_list_makes_parameters():
    shifts = nn.ParameterList([tg.zeros(2)]).append(tg.ones(3))
    assert [(name, tuple(p.shape)) for name, p in shifts.named_parameters()] == [("0", (2,)), ("1", (3,))]
    assert shifts[-1] is shifts[1]


# Layers


def test_batch_norm_uses_the_batch_in_training_and_running_values_after():
    layer, x = nn.BatchNorm1d(1, momentum=1.0, eps=0.0), tg.tensor([[1.0], [3.0]])
    assert layer(x).tolist() == [[-1.0], [1.0]]
    np.testing.assert_allclose(layer.eval()(x).detach().numpy(), [[-np.sqrt(0.5)], [np.sqrt(0.5)]])
    assert layer.num_batches_tracked.item() == 1


def test_batch_norm_without_momentum_keeps_plain_means():
    layer = nn.BatchNorm1d(1, momentum=None)
    for shift in (0.0, 1.0, 5.0):
        layer(tg.tensor([[shift], [shift + 2.0]]))
    np.testing.assert_allclose(layer.running_mean.numpy(), [3.0])


def test_batch_norm_checks_the_rank():
    with pytest.raises(ValueError, match=r"expected 4D input \(got 2D input\)"):
        nn.BatchNorm2d(2)(tg.ones(3, 2))


def test_the_padding_row_of_an_embedding_starts_at_zero():
    assert nn.Embedding(3, 2, padding_idx=1).weight[1].tolist() == [0.0, 0.0]


def test_an_embedding_of_given_rows_is_frozen():
    table = nn.Embedding.from_pretrained(tg.tensor([[1.0], [2.0]]))
    assert (table(tg.tensor([1])).tolist(), table.weight.requires_grad) == ([[2.0]], False)


def test_dropout_is_at_work_in_training_only():
    net, x = nn.Dropout(1.0), tg.ones(2)
    assert (net(x).tolist(), net.eval()(x).tolist()) == ([0.0, 0.0], [1.0, 1.0])


@pytest.mark.parametrize(("mode", "name"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
def test_padding_modes_continue_the_image(mode, name):
    layer, x = nn.Conv2d(1, 1, 3, padding=(1, 2), padding_mode=mode), tg.randn(1, 1, 4, 5)
    padded = np.pad(x.numpy(), ((0, 0), (0, 0), (1, 1), (2, 2)), mode=name)
    expected = nn.functional.conv2d(tg.tensor(padded), layer.weight, layer.bias)
    np.testing.assert_allclose(layer(x).detach().numpy(), expected.detach().numpy(), rtol=1e-12)


def test_a_transposed_convolution_takes_the_size_of_its_result():
    layer = nn.ConvTranspose1d(1, 1, 3, stride=2)
    assert layer(tg.ones(1, 1, 4), output_size=(10,)).shape[-1] == 10
    with pytest.raises(ValueError, match=r"requested an output size of \[12\], but valid sizes range from"):
        layer(tg.ones(1, 1, 4), output_size=(12,))


@pytest.mark.parametrize(
    "make", [lambda: nn.Conv2d(8, 500, 5), lambda: nn.ConvTranspose1d(100, 500, 2)], ids=["conv", "transposed"]
)
def test_convolutions_start_uniform_within_the_bound(make):
    weight = make().weight.detach().numpy()
    bound = 1.0 / np.sqrt(np.prod(weight.shape[1:]))
    assert 0.99 * bound < np.abs(weight).max() <= bound


def test_losses_keep_their_factors_as_buffers():
    loss = nn.CrossEntropyLoss(weight=tg.tensor([1.0, 3.0]), label_smoothing=0.5, reduction="sum")
    assert list(loss.state_dict()) == ["weight"]
    expected = nn.functional.cross_entropy(tg.ones(1, 2), tg.tensor([1]), loss.weight, reduction="sum", label_smoothing=0.5)
    assert loss(tg.ones(1, 2), tg.tensor([1])).item() == expected.item()


def test_a_convolutional_network_learns():
    tg.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 2))
    x = tg.zeros(2, 1, 4, 4)
    x[0, 0, 1] = 1.0  # a row, and a column
    x[1, 0, :, 1] = 1.0
    for _ in range(60):
        net.zero_grad()
        loss = nn.functional.cross_entropy(net(x), tg.tensor([0, 1]))
        loss.backward()
        with tg.no_grad():
            for parameter in net.parameters():
                parameter -= 0.3 * parameter.grad
    assert loss.item() < 0.1


@pytest.mark.parametrize("family", ["Conv", "ConvTranspose", "MaxPool", "AvgPool", "AdaptiveAvgPool", "AdaptiveMaxPool"])
@pytest.mark.parametrize(("dimensions", "thing"), [(1, "a signal"), (2, "an image"), (3, "a volume")])
def test_help_of_every_dimension_shows_parameters_and_an_example(family: str, dimensions: int, thing: str) -> None:
    layer = getattr(tg.nn, f"{family}{dimensions}d")
    text = inspect.getdoc(layer) or ""
    assert thing in text and f">>> tg.nn.{family}{dimensions}d(" in text.replace(">>> layer = ", ">>> ")
    assert [name for name in inspect.signature(layer).parameters if name not in text] == []


def test_texts_without_indentation_are_put_together_as_those_with_it() -> None:
    """Python 3.13 takes the indentation away."""

    class Family(Spatial):
        __doc__ = "Of {thing}.\n\nParameters\n----------\nsize : {number}"

    class Member(Family, dimensions=2):
        __doc__ = "Of images.\n\nExamples\n--------\n>>> 1"

    assert Member.__doc__ == "Of an image.\n\nParameters\n----------\nsize : int or pair of int\n\nExamples\n--------\n>>> 1"


def test_subclass_of_a_convolution_may_have_a_rank_of_its_own() -> None:
    class LowRank(tg.nn.Conv2d):
        rank = 4

        def __init__(self) -> None:
            super().__init__(1, 2, 3)
            self.rank = 5

    assert LowRank()(tg.ones(1, 1, 4, 4)).shape == (1, 2, 2, 2) and LowRank().rank == 5
