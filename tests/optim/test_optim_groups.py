"""Groups of parameters, their options and state, and what steps do to graphs that were recorded before."""

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

OPTIMISERS: dict[str, Callable[[Any], tg.optim.Optimizer]] = {
    "SGD": lambda params: tg.optim.SGD(params, lr=0.1, momentum=0.9),
    "Adam": lambda params: tg.optim.Adam(params, lr=0.1, amsgrad=True),
    "AdamW": lambda params: tg.optim.AdamW(params, lr=0.1),
    "RMSprop": lambda params: tg.optim.RMSprop(params, lr=0.1, momentum=0.5, centered=True),
    "Adagrad": lambda params: tg.optim.Adagrad(params, lr=0.1),
    "Adamax": lambda params: tg.optim.Adamax(params, lr=0.1),
    "NAdam": lambda params: tg.optim.NAdam(params, lr=0.1),
    "RAdam": lambda params: tg.optim.RAdam(params, lr=0.1, betas=(0.5, 0.8)),
    "Adadelta": lambda params: tg.optim.Adadelta(params),
    "Rprop": lambda params: tg.optim.Rprop(params, lr=0.1),
    "ASGD": lambda params: tg.optim.ASGD(params, lr=0.1, t0=1),
    "LBFGS": lambda params: tg.optim.LBFGS(params, lr=0.1, max_iter=2),
}


def leaves() -> list[tg.Tensor]:
    return [tg.tensor(0.5, requires_grad=True), tg.tensor([[1.0, -2.0]], requires_grad=True)]


def train(optimizer: tg.optim.Optimizer, steps: int = 2) -> list[Any]:
    params = [p for group in optimizer.param_groups for p in group["params"]]

    def closure() -> Any:
        optimizer.zero_grad()
        loss = sum((p.exp() - p).sum() for p in params)
        loss.backward()
        return loss

    for _ in range(steps):
        optimizer.step(closure)
    return [p.tolist() for p in params]


def saved_and_loaded(state: Any) -> Any:
    file = io.BytesIO()
    tg.save(state, file)
    file.seek(0)
    return tg.load(file)


@pytest.mark.parametrize("way", [saved_and_loaded, copy.deepcopy, lambda state: pickle.loads(pickle.dumps(state))])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_loaded_state_goes_on_as_if_nothing_happened(name: str, way: Callable[[Any], Any]) -> None:
    params = leaves()
    optimizer = OPTIMISERS[name](params)
    train(optimizer)
    others = [p.detach().clone().requires_grad_() for p in params]
    state = way(optimizer.state_dict())
    resumed = OPTIMISERS[name](others)
    resumed.load_state_dict(state)
    assert train(resumed) == train(optimizer)


@pytest.mark.parametrize("way", [copy.deepcopy, lambda optimizer: pickle.loads(pickle.dumps(optimizer))])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_copy_optimises_copies(name: str, way: Callable[[Any], Any]) -> None:
    params = leaves()
    optimizer = OPTIMISERS[name](params)
    train(optimizer)
    before = [p.tolist() for p in params]
    copied = way(optimizer)
    after = train(copied)
    assert [p.tolist() for p in params] == before
    assert train(optimizer) == after


def test_loading_copies_the_state() -> None:
    first, second = OPTIMISERS["SGD"](leaves()), OPTIMISERS["SGD"](leaves())
    train(first)
    second.load_state_dict(first.state_dict())
    kept = first.state_dict()["state"][1]["momentum_buffer"].tolist()
    train(second)
    assert first.state_dict()["state"][1]["momentum_buffer"].tolist() == kept


def test_state_takes_the_dtype_of_its_parameter() -> None:
    first = OPTIMISERS["Adam"](leaves())
    train(first)
    second = OPTIMISERS["Adam"]([p.detach().float().requires_grad_() for p in leaves()])
    second.load_state_dict(first.state_dict())
    assert second.state_dict()["state"][1]["exp_avg"].dtype == tg.float32


def test_state_dict_has_numbers_for_parameters() -> None:
    x, y = leaves()
    optimizer = tg.optim.Adam([{"params": [x]}, {"params": y, "lr": 0.5}])
    train(optimizer, 1)
    state = optimizer.state_dict()
    assert list(state) == ["state", "param_groups"]
    assert [group["params"] for group in state["param_groups"]] == [[0], [1]]
    assert [group["lr"] for group in state["param_groups"]] == [1e-3, 0.5]
    assert [set(state["state"][number]) for number in (0, 1)] == [{"step", "exp_avg", "exp_avg_sq"}] * 2
    assert state["state"][0]["step"].item() == 1.0


def test_groups_have_their_own_options() -> None:
    x, y = tg.ones(1, requires_grad=True), tg.ones(1, requires_grad=True)
    optimizer = tg.optim.SGD([{"params": [x]}, {"params": [y], "lr": 0.25, "maximize": True}], lr=0.5)
    (x.sum() + y.sum()).backward()
    optimizer.step()
    assert (x.item(), y.item()) == (0.5, 1.25)


def test_option_that_is_changed_takes_effect() -> None:
    x = tg.ones(1, requires_grad=True)
    optimizer = tg.optim.SGD([x], lr=0.5)
    optimizer.param_groups[0]["lr"] = 0.25
    x.sum().backward()
    optimizer.step()
    assert x.item() == 0.75


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_group_that_is_added_later_is_optimised(name: str) -> None:
    x, y = leaves()
    optimizer = OPTIMISERS[name]([x])
    train(optimizer)
    optimizer.add_param_group({"params": y})
    train(optimizer, 1)
    fresh = leaves()[1]
    train(OPTIMISERS[name]([fresh]), 1)
    assert y.tolist() == fresh.tolist()


def test_names_of_parameters_are_kept() -> None:
    net = tg.nn.Linear(2, 1)
    optimizer = tg.optim.SGD(net.named_parameters(), lr=0.1)
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


def test_repr_lists_the_options() -> None:
    optimizer = tg.optim.Adagrad([{"params": p} for p in leaves()], lr=0.5)
    options = "".join(
        f"    {line}\n"
        for line in (
            "differentiable: False", "eps: 1e-10", "foreach: None", "fused: None", "initial_accumulator_value: 0", "lr: 0.5",
            "lr_decay: 0", "maximize: False", "weight_decay: 0",
        )
    )  # fmt: skip
    assert repr(optimizer) == f"Adagrad (\nParameter Group 0\n{options}\nParameter Group 1\n{options})"


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_step_returns_the_loss_of_the_closure(name: str) -> None:
    params = leaves()
    optimizer = OPTIMISERS[name](params)
    with tg.no_grad():
        loss = optimizer.step(lambda: params[0] * 3.0)
    assert loss.requires_grad
    assert optimizer.step() is None


def test_zero_grad_forgets_gradients() -> None:
    x = tg.ones(2, requires_grad=True)
    optimizer = tg.optim.SGD([x])
    x.sum().backward()
    optimizer.zero_grad()
    assert x.grad is None


@pytest.mark.parametrize("start", [2.0, [2.0, 3.0]])
def test_zero_grad_can_keep_the_memory(start: Any) -> None:
    x = tg.tensor(start, requires_grad=True)
    optimizer = tg.optim.SGD([x])
    gradient = x.grad = x * 2.0
    optimizer.zero_grad(set_to_none=False)
    assert x.grad is gradient
    assert not gradient.requires_grad
    assert np.all(gradient.numpy() == 0.0)


@pytest.mark.parametrize("start", [2.0, [2.0, 3.0]])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_values_saved_before_a_step_are_protected(name: str, start: Any) -> None:
    x = tg.tensor(start, requires_grad=True)
    optimizer = OPTIMISERS[name]([x])
    loss = (x * x).sum()
    train(optimizer, 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    assert x._version > 0


@pytest.mark.parametrize("start", [2.0, [2.0, 3.0]])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_graphs_after_a_step_have_the_new_values(name: str, start: Any) -> None:
    x = tg.tensor(start, requires_grad=True)
    optimizer = OPTIMISERS[name]([x])
    (x * x).sum().backward()
    train(optimizer, 1)
    x.grad = None
    (x * x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.detach().numpy())
    assert x.is_leaf


def test_views_follow_the_step() -> None:
    x = tg.ones(2, requires_grad=True)
    view = x[:1]
    x.grad = tg.ones(2)
    tg.optim.SGD([x], lr=0.5).step()
    assert view.item() == 0.5


def test_state_saved_in_a_graph_is_protected() -> None:
    x, w = tg.ones(2, requires_grad=True), tg.ones(2, requires_grad=True)
    optimizer = tg.optim.SGD([x], lr=0.5, momentum=0.9)
    x.grad = tg.ones(2)
    optimizer.step()
    loss = (w * optimizer.state[x]["momentum_buffer"]).sum()
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_state_of_another_shape_changes_nothing() -> None:
    x = tg.ones(1, requires_grad=True)
    optimizer = tg.optim.Adam([x])
    other = tg.optim.Adam([tg.ones(3, requires_grad=True)])
    train(other, 1)
    optimizer.load_state_dict(other.state_dict())
    x.grad = tg.ones(1)
    with pytest.raises(tg.ShapeError, match=r"shape \[1\].*shape \[3\]"):
        optimizer.step()
    assert (x.item(), x._version, optimizer.state[x]["step"].item()) == (1.0, 0, 1.0)


def test_read_only_memory_is_refused() -> None:
    x = tg.ones(1).expand(3).detach().requires_grad_()
    x.grad = tg.ones(3)
    with pytest.raises(RuntimeError, match="more than one element"):
        tg.optim.SGD([x], lr=0.5).step()
    assert x.tolist() == [1.0] * 3


def a_result() -> tg.Tensor:
    return tg.ones(2, requires_grad=True) * 2.0


SHARED = tg.ones(1, requires_grad=True)
ONE = [tg.ones(1, requires_grad=True)]


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: tg.optim.SGD([]), ValueError, "optimizer got an empty parameter list"),
        (lambda: tg.optim.SGD(ONE[0]), TypeError, "params argument given to the optimizer should be an iterable"),
        (lambda: tg.optim.SGD([1.0]), TypeError, "optimizer can only optimize Tensors, but one of the params is float"),
        (lambda: tg.optim.SGD([{"params": {SHARED}}]), TypeError, "ordered collections"),
        (lambda: tg.optim.SGD([a_result()]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: tg.optim.SGD([{"params": SHARED}, {"params": SHARED}]), ValueError, "appear in more than one parameter group"),
        (lambda: tg.optim.SGD(ONE).add_param_group([SHARED]), TypeError, "param_group must be a dict"),
        (lambda: tg.optim.SGD([("x", SHARED), ONE[0]]), ValueError, "Some param names are missing"),
        (lambda: tg.optim.SGD([{"params": [("x", SHARED)]}, {"params": ONE}]), ValueError, "should be with/without names"),
        (lambda: tg.optim.SGD(ONE, lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: tg.optim.SGD(ONE, lr=tg.ones(2)), ValueError, "must be 1-element"),
        (lambda: tg.optim.SGD(ONE, momentum=-0.5), ValueError, "Invalid momentum value: -0.5"),
        (lambda: tg.optim.SGD(ONE, nesterov=True), ValueError, "Nesterov momentum requires a momentum and zero dampening"),
        (lambda: tg.optim.SGD(ONE, differentiable=True), NotImplementedError, "differentiable=True is not supported"),
        (lambda: tg.optim.SGD(ONE, fused=True, foreach=True), RuntimeError, "cannot be `True` together"),
        (lambda: tg.optim.Adam(ONE, eps=-1.0), ValueError, "Invalid epsilon value: -1.0"),
        (lambda: tg.optim.Adam(ONE, betas=(0.9, 1.0)), ValueError, "Invalid beta parameter at index 1: 1.0"),
        (lambda: tg.optim.AdamW(ONE, lr=float("nan")), ValueError, "Invalid learning rate: nan"),
        (lambda: tg.optim.RMSprop(ONE, alpha=-1.0), ValueError, "Invalid alpha value: -1.0"),
        (lambda: tg.optim.Adagrad(ONE, lr_decay=-1.0), ValueError, "Invalid lr_decay value: -1.0"),
        (lambda: tg.optim.NAdam(ONE, momentum_decay=-1.0), ValueError, "Invalid momentum_decay value: -1.0"),
        (lambda: tg.optim.RAdam(ONE, betas=(1.0, 0.5)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda: tg.optim.Adadelta(ONE, rho=1.5), ValueError, "Invalid rho value: 1.5"),
        (lambda: tg.optim.Rprop(ONE, etas=(1.5, 1.2)), ValueError, "Invalid eta values: 1.5, 1.2"),
        (lambda: tg.optim.Optimizer(ONE, {}).step(), NotImplementedError, "defines no step"),
    ],
)
def test_wrong_arguments(make: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_duplicates_in_a_group_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="duplicate parameters"):
        tg.optim.SGD([SHARED, SHARED])


def test_group_that_is_refused_changes_nothing() -> None:
    optimizer = tg.optim.SGD(ONE)
    group = {"params": [SHARED, ONE[0]]}
    with pytest.raises(ValueError, match="more than one parameter group"):
        optimizer.add_param_group(group)
    assert list(group) == ["params"]
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state["param_groups"].append(state["param_groups"][0]), "different number of parameter groups"),
        (lambda state: state["param_groups"][0]["params"].append(7), "doesn't match the size of optimizer's group"),
    ],
)
def test_state_of_other_groups_is_refused(change: Callable[[Any], None], message: str) -> None:
    optimizer = OPTIMISERS["SGD"](leaves())
    train(optimizer, 1)
    state = copy.deepcopy(optimizer.state_dict())
    change(state)
    with pytest.raises(ValueError, match=message):
        optimizer.load_state_dict(state)
