"""What rows of one map send back in a recorded pass: compiled for small adjoints, by Python where somebody looks at each row."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.drivers.derivatives import Derivative

MAPS = {
    "sum": lambda x: x.sum(),
    "sum of rows": lambda x: x.sum(1),
    "mean of columns": lambda x: x.mean(0, keepdim=True),
    "flip": lambda x: x.flip(0, 1),
    "steps": lambda x: x[::2, 1::2],
    "from an element on": lambda x: x.reshape(-1)[5:17],
    "an element": lambda x: x[2, 3],
    "an element of one": lambda x: x[0, :1][0],
    "transpose": lambda x: x.T,
    "permute": lambda x: x.reshape(2, 2, 6).permute(2, 0, 1),
    "expand": lambda x: x[:, None, :].expand(4, 3, 6),
    "overlapping windows": lambda x: x.unfold(1, 3, 1),
    "as_strided": lambda x: x.as_strided((3, 4), (2, 3), 1),
    "diagonal": lambda x: x.diagonal(1),
    "pad": lambda x: tg.nn.functional.pad(x, (1, 2)),
    "stack of one": lambda x: tg.stack([x]),
    "nothing": lambda x: x[:, 3:3],
    "more than a block": lambda x: x[:, None, :].expand(4, 40, 6).sum((0, 2)),
}


def _derivatives(f, seed):
    x = tg.tensor(seed.normal(size=(4, 6)), requires_grad=True)
    y = f(x * x)
    weights = tg.tensor(seed.normal(size=y.shape))
    (first,) = tg.autograd.grad((y * weights).sum(), x, create_graph=True)
    (second,) = tg.autograd.grad((first * first).sum(), x)
    return y, first, second


def _names(t):
    names, nodes = [], [t.grad_fn]
    while nodes and len(names) < 40:
        node = nodes.pop()
        if node is not None:
            names.append(node.name())
            nodes.extend(node for node, _ in node.next_functions)
    return names


@pytest.mark.parametrize("name", MAPS)
def test_compiled_and_python_forms_agree_to_the_last_digit(name):
    _, first, second = _derivatives(MAPS[name], np.random.default_rng(0))
    with pytest.warns(UserWarning, match="Anomaly Detection"), tg.autograd.detect_anomaly():
        _, by_python, further = _derivatives(MAPS[name], np.random.default_rng(0))

    np.testing.assert_array_equal(first.detach().numpy(), by_python.detach().numpy(), strict=True)
    np.testing.assert_array_equal(second.numpy(), further.numpy(), strict=True)


@pytest.mark.parametrize("name", MAPS)
def test_compiled_sweeps_read_what_was_recorded(name):
    x = tg.tensor(np.random.default_rng(0).normal(size=(4, 6)), requires_grad=True)
    y = MAPS[name](x * x)
    (first,) = tg.autograd.grad((y * y).sum(), x, create_graph=True)

    by_sweeps = Derivative([x], [first])
    products = [tg.autograd.grad(first, x, tg.tensor(row.reshape(4, 6)), retain_graph=True)[0] for row in np.eye(24)]

    np.testing.assert_allclose(by_sweeps.pull(np.eye(24)).T, [product.numpy().ravel() for product in products], rtol=1e-14)


@pytest.mark.parametrize("name", MAPS)
def test_the_graph_is_the_same(name):
    _, first, _ = _derivatives(MAPS[name], np.random.default_rng(0))
    with pytest.warns(UserWarning, match="Anomaly Detection"), tg.autograd.detect_anomaly():
        _, by_python, _ = _derivatives(MAPS[name], np.random.default_rng(0))

    assert _names(first) == _names(by_python)


def test_a_pass_that_is_not_recorded_gives_constants():
    x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x[1:].sum()

    with tg.no_grad():
        (first,) = tg.autograd.grad(y, x, create_graph=True)

    assert first.tolist() == [0.0, 1.0, 1.0]
    assert not first.requires_grad
