"""Modules: what they find, how they print, how their state travels; layers and losses against NumPy."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn
from tapegrad.nn import functional


class Twice(nn.Module):
    """Two layers, the second used under two names, and a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.second = nn.Linear(3, 3, bias=False)
        self.again = self.second
        self.shift = nn.Parameter(tg.zeros(3))

    def forward(self, x: tg.Tensor) -> tg.Tensor:
        return self.again(self.second(self.first(x))) + self.shift


# Parameter


def test_parameter_is_a_tracked_leaf():
    parameter = nn.Parameter(tg.ones(2))
    assert (parameter.requires_grad, parameter.is_leaf, isinstance(parameter, tg.Tensor)) == (True, True, True)


def test_parameter_can_be_untracked():
    assert not nn.Parameter(tg.ones(2), requires_grad=False).requires_grad


def test_parameter_of_a_result_is_a_leaf():
    assert nn.Parameter(tg.ones(2, requires_grad=True) * 2.0).grad_fn is None


def test_parameter_collects_a_gradient():
    parameter = nn.Parameter(tg.tensor([3.0]))
    (parameter * parameter).backward()
    assert parameter.grad.tolist() == [6.0]


def test_parameter_prints_as_one():
    assert repr(nn.Parameter(tg.tensor([1.0, 2.0]))) == ("Parameter containing:\ntensor([1., 2.], requires_grad=True)")


def test_parameter_needs_a_tensor():
    with pytest.raises(TypeError, match="Parameter data has to be a tensor, but got list"):
        nn.Parameter([1.0])


def test_results_of_parameters_are_tensors():
    assert type(nn.Parameter(tg.ones(2)) * 2.0) is tg.Tensor


# What a module finds


def test_named_parameters_lists_each_once_with_dotted_names():
    assert [name for name, _ in Twice().named_parameters()] == [
        "shift",
        "first.weight",
        "first.bias",
        "second.weight",
    ]


def test_named_parameters_of_the_module_alone():
    assert [name for name, _ in Twice().named_parameters(recurse=False)] == ["shift"]


def test_named_modules_lists_each_once():
    assert [name for name, _ in Twice().named_modules()] == ["", "first", "second"]


def test_named_children_lists_each_once():
    assert [name for name, _ in Twice().named_children()] == ["first", "second"]


def test_children_and_modules_are_those_with_names():
    net = Twice()
    assert (list(net.children()), list(net.modules())) == ([net.first, net.second], [net, net.first, net.second])


def test_a_new_parameter_replaces_the_old():
    net = nn.Linear(2, 2)
    net.bias = nn.Parameter(tg.ones(2))
    assert len(list(net.parameters())) == 2
    assert net.bias.tolist() == [1.0, 1.0]


def test_a_parameter_can_be_taken_away():
    net = nn.Linear(2, 2)
    net.bias = None
    assert [name for name, _ in net.named_parameters()] == ["weight"]


def test_a_parameter_can_be_deleted():
    net = nn.Linear(2, 2)
    del net.bias
    assert not hasattr(net, "bias")


def test_a_plain_tensor_does_not_replace_a_parameter():
    with pytest.raises(TypeError, match="cannot assign 'Tensor' as parameter 'bias'"):
        nn.Linear(2, 2).bias = tg.ones(2)


def test_anything_but_a_module_does_not_replace_a_part():
    net = Twice()
    with pytest.raises(TypeError, match="cannot assign 'int' as child module 'first'"):
        net.first = 3


def test_assigning_before_init_says_what_to_do():
    class Forgetful(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(tg.ones(1))

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Forgetful()


def test_missing_attributes_are_named():
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'wieght'"):
        nn.Linear(2, 2).wieght


def test_a_module_without_forward_says_so():
    with pytest.raises(NotImplementedError, match='missing the required "forward" function'):
        nn.Module()(1.0)


# State


def test_train_and_eval_reach_all_parts():
    net = Twice()
    net.eval()
    assert [module.training for module in net.modules()] == [False] * 3
    net.train()
    assert [module.training for module in net.modules()] == [True] * 3


def test_requires_grad_reaches_all_parameters():
    assert not any(parameter.requires_grad for parameter in Twice().requires_grad_(False).parameters())


def test_zero_grad_forgets_gradients():
    net = nn.Linear(2, 1)
    net(tg.ones(1, 2)).sum().backward()
    net.zero_grad()
    assert [parameter.grad for parameter in net.parameters()] == [None, None]


def test_zero_grad_can_fill_with_zeros():
    net = nn.Linear(2, 1)
    net(tg.ones(1, 2)).sum().backward()
    kept = net.bias.grad
    net.zero_grad(set_to_none=False)
    assert net.bias.grad is kept
    assert kept.tolist() == [0.0]


def test_state_dict_names_shared_parameters_under_both_names():
    assert list(Twice().state_dict()) == [
        "shift",
        "first.weight",
        "first.bias",
        "second.weight",
        "again.weight",
    ]


def test_state_dict_is_untracked_and_shares_memory():
    net = nn.Linear(2, 1)
    bias = net.state_dict()["bias"]
    bias.fill_(7.0)
    assert (bias.requires_grad, net.bias.tolist()) == (False, [7.0])


def test_state_travels_to_another_module():
    source, target = Twice(), Twice()
    report = target.load_state_dict(source.state_dict())
    x = tg.randn(4, 2)
    assert repr(report) == "<All keys matched successfully>"
    assert target(x).tolist() == source(x).tolist()


def test_loading_keeps_parameters_tracked():
    net = nn.Linear(2, 1)
    net.load_state_dict(nn.Linear(2, 1).state_dict())
    assert all(parameter.requires_grad for parameter in net.parameters())


def test_loading_names_missing_and_unexpected_keys():
    with pytest.raises(RuntimeError) as caught:
        nn.Linear(2, 1).load_state_dict({"weight": tg.ones(1, 2), "wieght": tg.ones(1, 2)})
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Linear:\n"
        '\tUnexpected key(s) in state_dict: "wieght".\n'
        '\tMissing key(s) in state_dict: "bias".'
    )


def test_loading_not_strictly_reports_them():
    report = nn.Linear(2, 1).load_state_dict({"weight": tg.ones(1, 2), "wieght": tg.ones(1, 2)}, strict=False)
    assert report == (["bias"], ["wieght"])


def test_a_refused_state_changes_nothing():
    net = nn.Linear(2, 1)
    before = net.weight.tolist()
    with pytest.raises(RuntimeError, match="size mismatch for bias"):
        net.load_state_dict({"weight": tg.zeros(1, 2), "bias": tg.zeros(2)})
    assert net.weight.tolist() == before


# Linear and Sequential


def test_linear_is_an_affine_map():
    layer, x = nn.Linear(3, 4), tg.randn(2, 3)
    expected = x.numpy() @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=1e-14)


def test_linear_maps_the_last_axis():
    assert tuple(nn.Linear(3, 4)(tg.randn(5, 2, 3)).shape) == (5, 2, 4)


def test_linear_is_one_operation():
    assert nn.Linear(3, 4)(tg.randn(2, 3)).grad_fn.name() == "AddmmBackward0"


def test_linear_maps_a_vector():
    assert tuple(nn.Linear(3, 4)(tg.randn(3)).shape) == (4,)


def test_linear_gradients():
    layer, x = nn.Linear(3, 4), tg.randn(2, 3)
    layer(x).sum().backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), np.tile(x.numpy().sum(0), (4, 1)), rtol=1e-14)
    assert layer.bias.grad.tolist() == [2.0] * 4


def test_linear_without_bias():
    layer = nn.Linear(3, 4, bias=False)
    assert layer.bias is None
    assert repr(layer) == "Linear(in_features=3, out_features=4, bias=False)"


@pytest.mark.parametrize("name", ["weight", "bias"])
def test_linear_starts_uniform_within_the_bound(name):
    values = np.abs(getattr(nn.Linear(16, 4000), name).detach().numpy())
    assert values.max() <= 0.25
    assert abs(values.mean() - 0.125) < 0.01


def test_linear_takes_a_dtype():
    assert nn.Linear(2, 2, dtype=tg.float32).weight.dtype == tg.float32


def test_linear_refuses_rows_of_another_length():
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        nn.Linear(3, 4)(tg.ones(2, 5))


def test_sequential_applies_in_order():
    first, second, x = nn.Linear(2, 3), nn.Linear(3, 1), tg.randn(4, 2)
    assert nn.Sequential(first, nn.Tanh(), second)(x).tolist() == second(first(x).tanh()).tolist()


def test_sequential_prints_its_parts():
    net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Softmax(dim=1)))
    assert repr(net) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (1): Sequential(\n"
        "    (0): ReLU()\n"
        "    (1): Softmax(dim=1)\n"
        "  )\n"
        ")"
    )


def test_sequential_takes_names():
    net = nn.Sequential({"inner": nn.Linear(2, 3)})
    assert [name for name, _ in net.named_parameters()] == ["inner.weight", "inner.bias"]


def test_sequential_can_be_indexed():
    net = nn.Sequential(nn.ReLU(), nn.Tanh())
    assert (len(net), net[-1]) == (2, net[1])


def test_sequential_takes_modules_only():
    with pytest.raises(TypeError, match="function is not a Module subclass"):
        nn.Sequential(lambda x: x)


# Functional


@pytest.mark.parametrize(
    ("module", "function", "reference"),
    [
        (nn.ReLU(), functional.relu, lambda x: np.maximum(x, 0.0)),
        (nn.Sigmoid(), functional.sigmoid, lambda x: 1.0 / (1.0 + np.exp(-x))),
        (nn.Tanh(), functional.tanh, np.tanh),
        (
            nn.Softmax(1),
            lambda x: functional.softmax(x, 1),
            lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True),
        ),
    ],
    ids=["relu", "sigmoid", "tanh", "softmax"],
)
def test_activations(module, function, reference):
    x = tg.randn(3, 4)
    np.testing.assert_allclose(function(x).numpy(), reference(x.numpy()), rtol=1e-13)
    assert module(x).tolist() == function(x).tolist()


@pytest.mark.parametrize(("reduction", "value"), [("mean", 2.5), ("sum", 5.0), ("none", [1.0, 4.0])])
def test_mse_loss(reduction, value):
    assert functional.mse_loss(tg.tensor([1.0, 3.0]), tg.tensor([2.0, 1.0]), reduction).tolist() == value


def test_mse_loss_gradient():
    x = tg.tensor([1.0, 3.0], requires_grad=True)
    functional.mse_loss(x, tg.tensor([2.0, 1.0])).backward()
    assert x.grad.tolist() == [-1.0, 2.0]


def test_mse_loss_warns_of_broadcasting():
    with pytest.warns(UserWarning, match="Using a target size"):
        functional.mse_loss(tg.zeros(2), tg.zeros(2, 2))


def test_mse_loss_refuses_another_reduction():
    with pytest.raises(ValueError, match="is not a valid value for reduction"):
        functional.mse_loss(tg.zeros(2), tg.zeros(2), "median")


def test_a_small_network_learns():
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    x = tg.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    exclusive_or = tg.tensor([[0.0], [1.0], [1.0], [0.0]])
    for _ in range(1000):
        net.zero_grad()
        loss = functional.mse_loss(net(x), exclusive_or)
        loss.backward()
        with tg.no_grad():
            for parameter in net.parameters():
                parameter -= 0.3 * parameter.grad
    assert loss.item() < 1e-3
