"""Nonlinearities as modules: each is its function with its options, and prints them."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn
from tapegrad.nn import functional

MODULES = [
    (nn.CELU(1.5), lambda x: functional.celu(x, 1.5), "CELU(alpha=1.5)"),
    (nn.ELU(2.0), lambda x: functional.elu(x, 2.0), "ELU(alpha=2.0)"),
    (nn.GELU("tanh"), lambda x: functional.gelu(x, "tanh"), "GELU(approximate='tanh')"),
    (nn.GLU(), functional.glu, "GLU(dim=-1)"),
    (nn.Hardshrink(0.7), lambda x: functional.hardshrink(x, 0.7), "Hardshrink(0.7)"),
    (nn.Hardsigmoid(), functional.hardsigmoid, "Hardsigmoid()"),
    (nn.Hardswish(), functional.hardswish, "Hardswish()"),
    (nn.Hardtanh(-0.5, 0.25), lambda x: functional.hardtanh(x, -0.5, 0.25), "Hardtanh(min_val=-0.5, max_val=0.25)"),
    (nn.LeakyReLU(0.2), lambda x: functional.leaky_relu(x, 0.2), "LeakyReLU(negative_slope=0.2)"),
    (nn.LogSigmoid(), functional.logsigmoid, "LogSigmoid()"),
    (nn.LogSoftmax(1), lambda x: functional.log_softmax(x, 1), "LogSoftmax(dim=1)"),
    (nn.Mish(), functional.mish, "Mish()"),
    (nn.RReLU(0.3, 0.3), lambda x: functional.leaky_relu(x, 0.3), "RReLU(lower=0.3, upper=0.3)"),
    (nn.ReLU(), functional.relu, "ReLU()"),
    (nn.ReLU6(), functional.relu6, "ReLU6()"),
    (nn.SELU(), functional.selu, "SELU()"),
    (nn.SiLU(), functional.silu, "SiLU()"),
    (nn.Softmin(0), lambda x: functional.softmin(x, 0), "Softmin(dim=0)"),
    (nn.Softplus(2.0, 1.0), lambda x: functional.softplus(x, 2.0, 1.0), "Softplus(beta=2.0, threshold=1.0)"),
    (nn.Softshrink(0.1), lambda x: functional.softshrink(x, 0.1), "Softshrink(0.1)"),
    (nn.Softsign(), functional.softsign, "Softsign()"),
    (nn.Tanhshrink(), functional.tanhshrink, "Tanhshrink()"),
    (nn.Threshold(0.5, -1.0), lambda x: functional.threshold(x, 0.5, -1.0), "Threshold(threshold=0.5, value=-1.0)"),
]
NAMES = [type(module).__name__ for module, _, _ in MODULES]
X = np.array([[0.7, -1.3, 2.2, 0.1], [-0.4, 1.6, -2.8, -0.05]])


@pytest.mark.parametrize(("module", "function"), [case[:2] for case in MODULES], ids=NAMES)
def test_a_module_is_its_function(module, function):
    assert module(tg.tensor(X)).tolist() == function(tg.tensor(X)).tolist()


@pytest.mark.parametrize(("module", "text"), [(module, text) for module, _, text in MODULES], ids=NAMES)
def test_a_module_prints_its_options(module, text):
    assert repr(module) == text


@pytest.mark.parametrize("kind", [nn.ReLU, nn.ReLU6, nn.ELU, nn.CELU, nn.SELU, nn.SiLU, nn.LeakyReLU, nn.Hardtanh, nn.Mish])
def test_a_module_can_write_into_its_input(kind):
    x, module = tg.tensor(X), kind(inplace=True)
    assert module(x) is x
    assert x.tolist() == kind()(tg.tensor(X)).tolist()
    assert "inplace=True" in repr(module)


def test_slopes_are_learned():
    module = nn.PReLU(4)
    module(tg.tensor(X)).sum().backward()
    assert module.weight.tolist() == [0.25] * 4
    np.testing.assert_allclose(module.weight.grad.numpy(), np.minimum(X, 0.0).sum(0))


def test_softmax_over_channels():
    result = nn.Softmax2d()(tg.randn(2, 3, 2, 2))
    np.testing.assert_allclose(result.sum(1).numpy(), np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match="expected input to be 3D or 4D, got 2D"):
        nn.Softmax2d()(tg.ones(2, 2))


def test_random_slopes_are_for_training():
    module = nn.RReLU(0.1, 0.9).eval()
    np.testing.assert_allclose(module(tg.tensor([-1.0])).item(), -0.5)
